//! `archive-unpaired`: a message and its place in the quota, in one commit.
//!
//! Knows which files it takes. What a message becomes, and whether there is room, core decides.

use recollex_core::source::Batch;
use recollex_core::trust::{Quota, UnpairedLimits, UnpairedMessage, Verb, channel_directory, channel_has_room};

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::log::{Level, write};
use crate::bindings::recollex::memory::store::{Area, Change, Edit, Expect, StoreError};
use crate::clock;
use crate::convert;
use crate::keep;
use crate::session::{Session, refused, unfit};
use crate::tree;

/// Keeps what somebody unpaired said. A message that was kept before costs nothing of the quota.
pub(crate) fn archive(session: &Session, message: wit::UnpairedMessage) -> Result<wit::Archived, wit::Error> {
    session.allow(Verb::ArchiveUnpaired)?;
    let limits = session.settings.unpaired;
    let (channel, text) = (message.channel.clone(), message.text.len() as u64);
    let record = core_message(message).record(&limits).map_err(refused)?;
    let batch = Batch::check(vec![record], &session.settings.limits()).map_err(unfit)?;
    let mut files = session.files();
    let plan = keep::keep(session, &batch, "archive-unpaired", &mut files, |_| {
        let (quota, expect) = quota()?;
        let quota = quota.accept(clock::seconds(), &limits).map_err(|problem| refused(vec![problem]))?;
        room(&channel, text, &limits)?;
        let path = Quota::PATH.to_owned();
        Ok(vec![Change { area: Area::Runtime, path, expect, edit: Edit::Put(quota.file()) }])
    })?;
    session.archived(plan, files)
}

/// The quota as it stands, and what must still be there when it is replaced.
fn quota() -> Result<(Quota, Expect), wit::Error> {
    let failed = |error| convert::runtime_error(error, Quota::PATH);
    let Some(entry) = tree::find(Area::Runtime, Quota::PATH).map_err(failed)? else {
        return Ok((Quota::default(), Expect::Absent));
    };
    let text = match u64::from(Quota::BYTES_MAX) < entry.stamp.size {
        true => None,
        false => match tree::read_range(Area::Runtime, Quota::PATH, Some(&entry.stamp), 0, entry.stamp.size) {
            Ok(text) => Some(text),
            Err(StoreError::NotText(_)) => None,
            Err(error) => return Err(failed(error)),
        },
    };
    let quota = text.and_then(|text| Quota::parse(&text)).unwrap_or_else(|| {
        write(Level::Warn, &format!("{} was damaged; the quota of unpaired messages begins anew", Quota::PATH));
        Quota::default()
    });
    Ok((quota, Expect::Same(entry.stamp)))
}

/// Refuses a message for which its channel has no room.
fn room(channel: &str, text: u64, limits: &UnpairedLimits) -> Result<(), wit::Error> {
    let directory = channel_directory(channel);
    let entries = tree::list(Area::Tree, &directory).map_err(|error| convert::store_error(error, Some(&directory)))?;
    let bytes = entries.iter().map(|entry| entry.stamp.size).fold(0, u64::saturating_add);
    channel_has_room(channel, bytes, text, limits).map_err(|problem| refused(vec![problem]))
}

fn core_message(message: wit::UnpairedMessage) -> UnpairedMessage {
    let wit::UnpairedMessage { channel, account, chat, message, user, user_display, text, time } = message;
    UnpairedMessage { channel, account, chat, message, user, user_display, text, time }
}
