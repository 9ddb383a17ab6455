//! From cursors to marks.
//!
//! Knows how archives are read. What of them counts core's `turns` says.

use recollex_core::ids::is_v2_path;
use recollex_core::source::Tier;
use recollex_core::turns::{CursorCandidates, has_cursors, without_cursors};

use super::conversation::Conversation;
use super::files::Found;
use crate::bindings::exports::recollex::memory::turns as wit;
use crate::bindings::exports::recollex::memory::workspace::SessionBorrow;
use crate::bindings::recollex::memory::store::{Area, StoreError};
use crate::change::{self, carry_out};
use crate::convert;
use crate::read;
use crate::session::{Session, settled};
use crate::survey::RUNTIME_FILE;
use crate::tree;
use crate::view::View;

/// Archives of sessions that had cursors lie below this.
const ARCHIVES: &str = "sources/openprogram";

/// A migration.
pub(crate) struct Migration {
    session: Session,
    candidates: CursorCandidates,
}

impl wit::GuestMigration for Migration {
    fn start(of: SessionBorrow<'_>) -> Result<Option<wit::Migration>, wit::Error> {
        let session = super::of(&of)?;
        let runtime = Found::read(RUNTIME_FILE.0)?;
        if !runtime.text.as_deref().is_some_and(has_cursors) {
            return Ok(None);
        }
        let candidates = settled(|_| candidates(&session))?;
        Ok(Some(wit::Migration::new(Self { session, candidates })))
    }

    fn nodes(&self, conversation: wit::ConversationBorrow<'_>) -> Result<Vec<String>, wit::Error> {
        let conversation: &Conversation = conversation.get();
        conversation.whole(|nodes| Ok(nodes.migrated(&self.candidates).into_iter().map(str::to_owned).collect()))
    }

    fn finish(&self) -> Result<(), wit::Error> {
        let plan = || {
            let runtime = Found::read(RUNTIME_FILE.0)?;
            let text = runtime.text.as_deref().filter(|text| has_cursors(text)).map(without_cursors);
            let changes = text.and_then(|text| runtime.change(RUNTIME_FILE.0, text));
            Ok(change::Planned { changes: changes.into_iter().collect(), note: "cursors go".to_owned(), basis: () })
        };
        carry_out(&self.session, "migrate", plan, |error| error).map(|_| ())
    }
}

/// What archives hold of such sessions.
fn candidates(session: &Session) -> Result<CursorCandidates, wit::Error> {
    let failed = |error| convert::store_error(error, Some(ARCHIVES));
    let view = View::of(Tier::Owner)?;
    let entries = match view.list(ARCHIVES) {
        Ok(entries) => entries,
        Err(StoreError::NotFound) => Vec::new(),
        Err(error) => return Err(failed(error)),
    };
    let mut candidates = CursorCandidates::default();
    for entry in entries.iter().filter(|entry| tree::is_file(entry)) {
        if is_v2_path(&entry.path) {
            read::scan(entry, &session.settings.limits(), |frame| {
                candidates.see_frame(frame);
                true
            })?;
        } else {
            let most = CursorCandidates::OLDER_BYTES as u64;
            let chunk = crate::bindings::recollex::memory::store::read_bytes(
                Area::Tree,
                &entry.path,
                Some(&entry.stamp),
                0,
                u32::try_from(most).unwrap_or(u32::MAX),
            )
            .map_err(|error| convert::store_error(error, Some(&entry.path)))?;
            candidates.see_older(&entry.path, &chunk.data);
        }
    }
    Ok(candidates)
}
