//! `promote`: one word of an archive and one line of the audit log, in one commit.

use recollex_core::ids::SourceId;
use recollex_core::session::Caller;
use recollex_core::source::{FrameRef, Limits};
use recollex_core::table::FileTable;
use recollex_core::trust::{AUDIT_PATH, Promoter, Promotion, Verb, damaged};

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{
    self, Addition, Area, Change, CommitError, Edit, Entry, Expect, Splice, StoreError,
};
use crate::bindings::recollex::memory::types::Problem;
use crate::clock;
use crate::convert;
use crate::keep::PLAN_TRIES;
use crate::records::Archive;
use crate::session::{Session, about, generation, new_workspace_id, refused, workspace_id};
use crate::tree;

/// Vouches for the record with that id.
pub(crate) fn promote(session: &Session, id: &str) -> Result<wit::Promotion, wit::Error> {
    session.allow(Verb::Promote)?;
    let promoter = Promoter {
        is_interactive: session.settings.caller == Caller::Interactive,
        principal: session.principal.as_deref(),
        owner: session.settings.owner_principal.as_deref(),
    };
    promoter.check().map_err(refused)?;
    let source = SourceId::for_reading(id).map_err(|error| {
        let problem = convert::problem("INVALID_ARGUMENT", error.reason(), None, error.to_string());
        wit::Error::Invalid(Problem { subject: Some(id.to_owned()), ..problem })
    })?;
    let limits = session.settings.limits();
    let guard = session.lock("promote")?;
    let mut files = session.files();
    let mut tries = PLAN_TRIES;
    let promoted = loop {
        let base = generation()?;
        let planned = look(&source, &limits, &mut files)
            .and_then(|(entry, archive, promotion)| Ok((entry, archive, promotion, audit_log()?)));
        let (entry, archive, promotion, log) = match planned {
            Err(error) if tries > 1 && convert::is_changed(&error) => {
                tries -= 1;
                continue;
            }
            planned => planned?,
        };
        let Promotion::Needed(vouched) = promotion else {
            archive.keep_unchanged(&limits, &mut files);
            break false;
        };
        let splice = Splice { offset: vouched.offset(), remove: vouched.length(), insert: vouched.insert().to_owned() };
        let changed = vouched.offset()..vouched.offset().saturating_add(vouched.length());
        let line = promoter.audit_line(&vouched, clock::now());
        let mut changes = vec![
            Change {
                area: Area::Tree,
                path: entry.path,
                expect: Expect::Same(entry.stamp),
                edit: Edit::Splice(vec![splice]),
            },
            log.with(&line),
        ];
        if workspace_id()?.is_none() {
            changes.push(new_workspace_id().1);
        }
        match store::commit(&guard, base, &changes, &about("promote", "one record")) {
            Ok(committed) => {
                if let Some(Some(stamp)) = committed.stamps.into_iter().next() {
                    archive.keep_replaced(changed, &stamp, &limits, &mut files);
                }
                break true;
            }
            Err(CommitError::Stale(_) | CommitError::Changed(_)) if tries > 1 => tries -= 1,
            Err(error) => return Err(session.not_committed(error)),
        }
    };
    drop(guard);
    Ok(wit::Promotion { source_id: id.to_owned(), promoted, revision: session.revision(files)? })
}

/// Finds the record, and what it takes to vouch for it.
fn look(source: &SourceId, limits: &Limits, files: &mut FileTable) -> Result<(Entry, Archive, Promotion), wit::Error> {
    let (path, id) = (source.v2_path(), source.as_str());
    let failed = |error| convert::store_error(error, Some(&path));
    let missing = || {
        let message = "no archive has a record of this id; `search` shows ids";
        let problem = convert::problem("MEMORY_NOT_FOUND", "no-such-record", Some(&path), message);
        wit::Error::NotFound(Problem { subject: Some(id.to_owned()), ..problem })
    };
    let entry = tree::find(Area::Tree, &path).map_err(failed)?.ok_or_else(missing)?;
    if !tree::is_file(&entry) {
        return Err(failed(StoreError::Denied("not a regular file".to_owned())));
    }
    let mut found = None;
    let mut plan = |frame: &FrameRef<'_>| {
        let header = frame.record_offset.saturating_sub(frame.offset);
        let header = tree::read_range(Area::Tree, &path, Some(&entry.stamp), frame.offset, header);
        found = Some(header.map(|header| Promotion::plan(&path, frame, &header)));
    };
    let (archive, fault) = Archive::find(&entry, source, limits, files, &mut plan).map_err(failed)?;
    if let Some(fault) = fault {
        return Err(refused(vec![damaged(&path, id, &fault)]));
    }
    let promotion = found.ok_or_else(missing)?.map_err(failed)?.map_err(|problem| refused(vec![problem]))?;
    Ok((entry, archive, promotion))
}

/// The audit log as it stands.
struct AuditLog {
    expect: Expect,
    length: u64,
    /// Its last line is not over: somebody wrote it without its LF, or was stopped.
    is_open: bool,
}

fn audit_log() -> Result<AuditLog, wit::Error> {
    let failed = |error| convert::store_error(error, Some(AUDIT_PATH));
    let Some(entry) = tree::find(Area::Runtime, AUDIT_PATH).map_err(failed)? else {
        return Ok(AuditLog { expect: Expect::Absent, length: 0, is_open: false });
    };
    let length = entry.stamp.size;
    let last = match length.checked_sub(1) {
        Some(at) => store::read_bytes(Area::Runtime, AUDIT_PATH, Some(&entry.stamp), at, 1).map_err(failed)?.data,
        None => Vec::new(),
    };
    let is_open = last.first().is_some_and(|byte| *byte != b'\n');
    Ok(AuditLog { expect: Expect::Same(entry.stamp), length, is_open })
}

impl AuditLog {
    /// The change that adds a line.
    fn with(self, line: &str) -> Change {
        let text = if self.is_open { format!("\n{line}") } else { line.to_owned() };
        Change {
            area: Area::Runtime,
            path: AUDIT_PATH.to_owned(),
            expect: self.expect,
            edit: Edit::Append(Addition { length: self.length, text }),
        }
    }
}
