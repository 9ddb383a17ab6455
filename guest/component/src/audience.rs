//! The workspace's settings file, as far as it says who sees what: read, and changed by the owner.
//!
//! Knows how to fetch and replace the file. What it says, and whether it can be relied on, core knows.

use recollex_core::trust::{Narrowing, Prefix, SETTINGS_BYTES_MAX, SETTINGS_PATH, SettingsFault, Verb};

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{Area, Change, Edit, Expect, StoreError};
use crate::bindings::recollex::memory::types::Problem;
use crate::change::{Planned, carry_out};
use crate::convert;
use crate::session::Session;
use crate::tree;

/// How often the file is read again because somebody is changing it.
const READ_TRIES: u32 = 4;

/// Where people find the file, in a finding.
const PLACE: &str = ".scriptorium/recollex.json";

/// What the file says, and what must still be there when it is replaced.
pub(crate) struct Settings {
    pub(crate) narrowing: Narrowing,
    expect: Expect,
}

/// Reads the file; none is as good as one that says nothing.
pub(crate) fn read() -> Result<Settings, SettingsFault> {
    let fault = |error: StoreError| SettingsFault { line: None, what: convert::in_words(&error) };
    for _ in 1..READ_TRIES {
        match try_read() {
            Err(StoreError::Changed) => {}
            read => return read.map_err(fault)?,
        }
    }
    try_read().map_err(fault)?
}

/// The outer error: it could not be read; the inner one: what it says is nothing.
fn try_read() -> Result<Result<Settings, SettingsFault>, StoreError> {
    let Some(entry) = tree::find(Area::Runtime, SETTINGS_PATH)? else {
        return Ok(Ok(Settings { narrowing: Narrowing::default(), expect: Expect::Absent }));
    };
    let fault = |what: &str| Ok(Err(SettingsFault { line: None, what: what.to_owned() }));
    if !tree::is_file(&entry) {
        return fault("it is not a regular file");
    }
    if entry.stamp.size > u64::from(SETTINGS_BYTES_MAX) {
        return fault("it is longer than any settings file");
    }
    let text = tree::read_range(Area::Runtime, SETTINGS_PATH, Some(&entry.stamp), 0, entry.stamp.size)?;
    Ok(Narrowing::parse(&text).map(|narrowing| Settings { narrowing, expect: Expect::Same(entry.stamp) }))
}

/// What the owner is told if the file cannot be relied on.
pub(crate) fn finding() -> Option<wit::Finding> {
    read().err().map(|fault| convert::finding(fault.finding(PLACE)))
}

/// What only the owner sees.
pub(crate) fn list(session: &Session) -> Result<wit::Audience, wit::Error> {
    session.allow(Verb::Audience)?;
    let settings = read().map_err(unreadable)?;
    Ok(wit::Audience { owner_only: settings.narrowing.prefixes().map(str::to_owned).collect() })
}

/// Narrows the audience of what lies at or below `prefix` to the owner.
pub(crate) fn narrow(session: &Session, prefix: &str) -> Result<wit::AudienceChange, wit::Error> {
    session.allow(Verb::NarrowAudience)?;
    change(session, prefix, "narrow-audience", |narrowing, prefix| Ok(narrowing.narrow(prefix)))
}

/// Takes such a prefix back.
pub(crate) fn widen(session: &Session, prefix: &str) -> Result<wit::AudienceChange, wit::Error> {
    session.allow(Verb::WidenAudience)?;
    change(session, prefix, "widen-audience", |narrowing, prefix| {
        narrowing.widen(&prefix).map_err(|above| {
            let problem = convert::problem("INVALID_ARGUMENT", "narrowed-above", None, above.to_string());
            wit::Error::Refused(vec![Problem { subject: Some(above.0), ..problem }])
        })
    })
}

fn change(
    session: &Session,
    prefix: &str,
    verb: &str,
    edit: impl Fn(&mut Narrowing, Prefix) -> Result<bool, wit::Error>,
) -> Result<wit::AudienceChange, wit::Error> {
    let prefix = Prefix::parse(prefix).map_err(|error| {
        let problem = convert::problem("INVALID_ARGUMENT", "invalid-prefix", None, error.to_string());
        wit::Error::Invalid(Problem { subject: Some(error.shown), ..problem })
    })?;
    let planned = || {
        let mut settings = read().map_err(unreadable)?;
        let is_changed = edit(&mut settings.narrowing, prefix.clone())?;
        let put = || Change {
            area: Area::Runtime,
            path: SETTINGS_PATH.to_owned(),
            expect: settings.expect.clone(),
            edit: Edit::Put(settings.narrowing.file()),
        };
        let changes = is_changed.then(put).into_iter().collect();
        Ok(Planned { changes, note: "who sees what".to_owned(), basis: () })
    };
    let changed = carry_out(session, verb, planned, |error| error)?.committed.is_some();
    let entries = tree::list(Area::Tree, "").map_err(|error| convert::store_error(error, None))?;
    let files = entries.iter().filter(|entry| prefix.covers(&entry.path)).count() as u64;
    Ok(wit::AudienceChange { prefix: prefix.as_str().to_owned(), changed, files })
}

/// The refusal for the owner, who may know what is wrong.
fn unreadable(fault: SettingsFault) -> wit::Error {
    let message = format!("{PLACE} cannot be relied on: {fault}; put it right or delete it");
    let problem = convert::problem("AUTHORITY_CAPABILITY_DENIED", "audience-unreadable", Some(PLACE), message);
    wit::Error::Refused(vec![Problem { line: fault.line, ..problem }])
}
