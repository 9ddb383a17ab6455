//! `promote`: one word of an archive and one line of the audit log, in one commit.
//!
//! Knows where to look and what to hand over. Who may, and what changes, core decides.

use recollex_core::ids::SourceId;
use recollex_core::session::Caller;
use recollex_core::source::{FrameRef, Limits};
use recollex_core::table::FileTable;
use recollex_core::trust::{AUDIT_PATH, Promoter, Promotion, Verb, Vouched, damaged};

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{self, Addition, Area, Change, Edit, Expect, Splice, StoreError};
use crate::bindings::recollex::memory::types::Problem;
use crate::change::{Planned, carry_out};
use crate::clock;
use crate::convert;
use crate::index::IndexLog;
use crate::records::Archive;
use crate::session::{Session, refused, settled};
use crate::tree;

/// Vouches for the record with that id.
pub(crate) fn promote(session: &Session, id: &str) -> Result<wit::Promotion, wit::Error> {
    let (promoter, source) = asked(session, Verb::Promote, id)?;
    let limits = session.settings.limits();
    let mut files = session.files();
    let planned = || {
        let Look { archive, needed } = look(&source, &limits, &mut files)?;
        let changes = match &needed {
            Some((vouched, log)) => changes(&archive, vouched, log, &promoter.audit_line(vouched, clock::seconds())),
            None => Vec::new(),
        };
        Ok(Planned { changes, note: "one record".to_owned(), basis: Look { archive, needed } })
    };
    let done = carry_out(session, "promote", planned, |error| error)?;
    let Look { archive, needed } = done.basis;
    let promoted = done.committed.is_some();
    match (done.committed.and_then(|committed| committed.stamps.into_iter().next()?), needed) {
        (Some(stamp), Some((vouched, _))) => {
            if let (Some(before), Some(mut log)) = (archive.stamp(), IndexLog::open(&session.settings)) {
                // Whether a record may be built on is no part of the index.
                log.touched(archive.path(), archive.records(), before, &stamp);
            }
            archive.keep_replaced(vouched.range(), &stamp, &limits, &mut files);
        }
        (_, None) => archive.keep_unchanged(&limits, &mut files),
        // Where a store gives no stamp, the archive is read again next time.
        (None, Some(_)) => {}
    }
    drop(done.guard);
    Ok(wit::Promotion { source_id: id.to_owned(), promoted, revision: session.revision(files)? })
}

/// What vouching for it would do now.
pub(crate) fn would_promote(session: &Session, id: &str) -> Result<wit::Promotion, wit::Error> {
    let (_, source) = asked(session, Verb::WouldPromote, id)?;
    let limits = session.settings.limits();
    let mut files = session.files();
    let promoted = settled(|_| look(&source, &limits, &mut files))?.needed.is_some();
    Ok(wit::Promotion { source_id: id.to_owned(), promoted, revision: session.revision(files)? })
}

/// Who vouches, and for what, if they may.
fn asked<'a>(session: &'a Session, verb: Verb, id: &str) -> Result<(Promoter<'a>, SourceId), wit::Error> {
    session.allow(verb)?;
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
    Ok((promoter, source))
}

/// An archive, and what it takes to vouch for one of its records; none: it is trusted.
struct Look {
    archive: Archive,
    needed: Option<(Vouched, AuditLog)>,
}

/// Finds the record, and what it takes to vouch for it.
fn look(source: &SourceId, limits: &Limits, files: &mut FileTable) -> Result<Look, wit::Error> {
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
    let needed = match promotion {
        Promotion::Already => None,
        Promotion::Needed(vouched) => Some((vouched, audit_log()?)),
    };
    Ok(Look { archive, needed })
}

/// The archive first: its stamp is the first of the commit's.
fn changes(archive: &Archive, vouched: &Vouched, log: &AuditLog, line: &str) -> Vec<Change> {
    let splice = Splice { offset: vouched.offset(), remove: vouched.length(), insert: vouched.insert().to_owned() };
    let edit = Edit::Splice(vec![splice]);
    let of_archive = Change { area: Area::Tree, path: archive.path().to_owned(), expect: archive.expect.clone(), edit };
    vec![of_archive, log.with(line)]
}

/// The audit log as it stands.
struct AuditLog {
    expect: Expect,
    length: u64,
    /// Its last line is not over: somebody wrote it without its LF, or was stopped.
    is_open: bool,
}

fn audit_log() -> Result<AuditLog, wit::Error> {
    let failed = |error| convert::runtime_error(error, AUDIT_PATH);
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
    fn with(&self, line: &str) -> Change {
        let text = if self.is_open { format!("\n{line}") } else { line.to_owned() };
        Change {
            area: Area::Runtime,
            path: AUDIT_PATH.to_owned(),
            expect: self.expect.clone(),
            edit: Edit::Append(Addition { length: self.length, text }),
        }
    }
}
