//! Vouching for a pending record: one word of its metadata, and a line in the audit log (FORMAT.md, "Promotion").
//!
//! Who may is asked first, of the caller alone; then what is there decides. Only the trust state changes: record, speaker,
//! principal and the rest of the metadata stay as they are, byte for byte, and so do the lengths of all lines. A writer run
//! that takes the record up, unless something cites it already, is for whoever calls this, once there is a writer.
//!
//! Knows frames and the log's lines. Must not know how an archive is found or written.

use super::authority::CAPABILITY_DENIED;
use crate::ids::SpeakerId;
use crate::source::{Fault, FindingCode, FrameRef, Metadata, Problem, REDACTED_KIND, Trust, UNKNOWN, metadata_token};
use crate::text::json_string;
use crate::time::{Instant, Zone};
use core::ops::Range;

/// The runtime directory's log of promotions: a JSON object a line.
pub const AUDIT_PATH: &str = "trust-audit.jsonl";

/// Whoever wants to vouch, apart from their tier.
#[derive(Clone, Copy, Debug)]
pub struct Promoter<'a> {
    /// They are there in person: the setting `caller`.
    pub is_interactive: bool,
    /// On whose behalf their session is.
    pub principal: Option<&'a str>,
    /// What the host calls the owner, if it says: the setting `owner.principal`.
    pub owner: Option<&'a str>,
}

impl Promoter<'_> {
    /// Whether they may vouch for anything, given the tier for it. Where the host does not say what it calls the owner, the
    /// tier is all there is to go by.
    ///
    /// # Errors
    /// `not-interactive`, `other-principal`: each that holds.
    pub fn check(&self) -> Result<(), Vec<Problem>> {
        let refused = |reason, message: &str| Problem {
            code: CAPABILITY_DENIED,
            reason,
            path: None,
            line: None,
            subject: None,
            message: message.to_owned(),
        };
        let mut problems = Vec::new();
        if !self.is_interactive {
            problems.push(refused(
                "not-interactive",
                "only the owner in person vouches for a record, not work in the background; ask them",
            ));
        }
        if self.owner.is_some() && self.principal != self.owner {
            problems.push(refused(
                "other-principal",
                "only the owner vouches for a record, and this session is on somebody else's behalf; open one on theirs",
            ));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// The line of the audit log, with its LF: that they vouched for `frame` at `now`, seconds since 1970. Their tier is the
    /// owner's, or they could not have. A clock that shows no time leaves it empty.
    pub fn audit_line(&self, frame: &Vouched, now: f64) -> String {
        let time = Instant::from_seconds(now).map(|instant| instant.iso(&Zone::utc()));
        format!(
            "{{\"timestamp\":{},\"action\":\"promote\",\"source_id\":{},\"principal_id\":{},\"speaker_id\":{},\
             \"authority_tier\":\"owner\"}}\n",
            json_string(&time.unwrap_or_default()),
            json_string(&frame.id),
            json_string(self.principal.unwrap_or(UNKNOWN)),
            json_string(&frame.speaker_id),
        )
    }
}

/// A frame that can be vouched for, and how it then reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vouched {
    /// Its id.
    id: String,
    /// Its speaker, decoded; empty where it has none.
    speaker_id: String,
    /// Of the metadata token in the file.
    offset: u64,
    /// What stands there now, and what is to.
    token: (String, String),
}

/// What vouching for a frame takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Promotion {
    /// Nothing: it is trusted.
    Already,
    /// One splice and a line in the audit log.
    Needed(Vouched),
}

impl Promotion {
    /// Of a frame of the archive at `path`. `header` is the text from its first byte to its record.
    ///
    /// # Errors
    /// `no-metadata`: nothing in it says that it is not trusted, and there is nothing to change. `reserved-kind`: it stands
    /// for a record that was removed.
    pub fn plan(path: &str, frame: &FrameRef<'_>, header: &str) -> Result<Self, Problem> {
        let refused = |reason, message: &str| Problem {
            code: "INVALID_ARGUMENT",
            reason,
            path: Some(path.to_owned()),
            line: Some(frame.anchor_line),
            subject: Some(frame.id.to_owned()),
            message: message.to_owned(),
        };
        let place = metadata_token(header).and_then(|range| Some((range.start, header.get(range)?)));
        let (Some(metadata), Some((start, token))) = (frame.metadata, place) else {
            return Err(refused(
                "no-metadata",
                "the record carries no metadata that could be changed; such records count as trusted",
            ));
        };
        if metadata.kind == REDACTED_KIND {
            return Err(refused("reserved-kind", "the record was removed; there is nothing left to vouch for"));
        }
        if metadata.trust == Trust::Trusted {
            return Ok(Self::Already);
        }
        // A frame's token is one, so there is always another for it.
        let after =
            Metadata::vouched(token).ok_or_else(|| refused("invalid-metadata", "its metadata cannot be read"))?;
        let speaker_id = frame.speaker.and_then(SpeakerId::from_marker);
        Ok(Self::Needed(Vouched {
            id: frame.id.to_owned(),
            speaker_id: speaker_id.map(|id| id.as_str().to_owned()).unwrap_or_default(),
            offset: frame.offset.saturating_add(start as u64),
            token: (token.to_owned(), after),
        }))
    }
}

impl Vouched {
    /// Where in the file something changes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes that are replaced.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.length())
    }

    /// How many bytes are replaced there; by as many.
    pub fn length(&self) -> u64 {
        self.token.0.len() as u64
    }

    /// What takes their place.
    pub fn insert(&self) -> &str {
        &self.token.1
    }
}

/// The refusal for an archive that is damaged: where records end is then a guess, and nothing in it is vouched for.
pub fn damaged(path: &str, id: &str, fault: &Fault) -> Problem {
    Problem {
        code: "COMMIT_REJECTED",
        reason: if fault.code == FindingCode::InvalidUtf8 { "invalid-utf8" } else { "damaged-archive" },
        path: Some(path.to_owned()),
        line: Some(fault.line),
        subject: Some(id.to_owned()),
        message: format!(
            "the archive is damaged ({}) and nothing in it can be vouched for; verify it, then restore it from a copy or \
             cut it behind its last whole record",
            fault.code.as_str()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Location;
    use crate::source::{Limits, MARKER, Scanner, Tier};
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    const PATH: &str = "sources/p/_v2/t.md";

    /// An archive of one record with that line of metadata, and what becomes of promoting it.
    fn plan(meta: &str) -> (String, Result<Promotion, Problem>) {
        let anchor = crate::ids::SourceId::parse("p/t/m").expect("an id").anchor();
        let file = format!(
            "{MARKER}\n\n<a id=\"{anchor}\"></a>\n<!-- source-id:p/t/m -->\n<!-- speaker-id:u%2D1 -->\n{meta}\
             <!-- record-lines:2 -->\n[] U (u-1): <!-- source-meta:AAAA -->\n<!-- source-meta:AAAA -->\n"
        );
        let mut planned = None;
        let mut scanner = Scanner::new(Some(Location::of_path(PATH)), &Limits::default());
        let mut sink = |frame: &FrameRef<'_>| {
            let header = &file[frame.offset as usize..frame.record_offset as usize];
            planned = Some(Promotion::plan(PATH, frame, header));
        };
        scanner.push_text(&file, &mut sink);
        scanner.finish(&mut sink);
        (file, planned.expect("a whole frame"))
    }

    fn line(token: &str) -> String {
        format!("<!-- source-meta:{token} -->\n")
    }

    fn pending() -> Metadata {
        Metadata {
            trust: Trust::Pending,
            kind: "human".into(),
            principal: "\"trust_state\":\"pending\"".into(),
            tier: Some(Tier::Paired),
        }
    }

    fn promoted(file: &str, vouched: &Vouched) -> String {
        let (start, length) = (vouched.offset() as usize, vouched.length() as usize);
        format!("{}{}{}", &file[..start], vouched.insert(), &file[start + length..])
    }

    #[test]
    fn only_the_trust_state_changes() {
        let (file, planned) = plan(&line(&pending().encode()));
        let Ok(Promotion::Needed(vouched)) = planned else { panic!("{planned:?}") };
        let trusted = Metadata { trust: Trust::Trusted, ..pending() };
        assert_eq!(promoted(&file, &vouched), plan(&line(&trusted.encode())).0);
        let promoter = Promoter { is_interactive: true, principal: Some("owner/é\n"), owner: None };
        assert_eq!(
            promoter.audit_line(&vouched, 1_800_000_000.0),
            "{\"timestamp\":\"2027-01-15T08:00:00+00:00\",\"action\":\"promote\",\"source_id\":\"p/t/m\",\
             \"principal_id\":\"owner/é\\n\",\"speaker_id\":\"u-1\",\"authority_tier\":\"owner\"}\n"
        );
    }

    #[test]
    fn the_second_shape_stays_the_second_shape() {
        let json = |trust| {
            format!(
                "{{\"origin_scope\":{{\"capabilities\":[\"a\",\"trust_state\"],\"origin\":\"legacy-unknown\"}},\
                 \"principal_id\":\"\",\"speaker_kind\":null,\"trust_state\":\"{trust}\",\"version\":true}}"
            )
        };
        let token = |trust| URL_SAFE_NO_PAD.encode(json(trust));
        let (file, planned) = plan(&line(&token("pending")));
        let Ok(Promotion::Needed(vouched)) = planned else { panic!("{planned:?}") };
        assert_eq!(promoted(&file, &vouched), plan(&line(&token("trusted"))).0);
        assert_eq!(vouched.length(), vouched.insert().len() as u64);
        assert_eq!(plan(&line(&token("trusted"))).1, Ok(Promotion::Already));
    }

    #[test]
    fn what_cannot_be_vouched_for() {
        let reason = |meta: &str| plan(meta).1.expect_err("it is refused").reason;
        assert_eq!(reason(""), "no-metadata");
        assert_eq!(reason(&line(&Metadata { kind: REDACTED_KIND.into(), ..pending() }.encode())), "reserved-kind");
        let trusted = Metadata { trust: Trust::Trusted, ..pending() };
        assert_eq!(plan(&line(&trusted.encode())).1, Ok(Promotion::Already));
    }

    #[test]
    fn who_may() {
        let reasons = |is_interactive, principal, owner| {
            let checked = Promoter { is_interactive, principal, owner }.check();
            checked.err().unwrap_or_default().into_iter().map(|problem| problem.reason).collect::<Vec<_>>()
        };
        for (principal, owner) in [(None, None), (Some("a"), None), (Some("a"), Some("a"))] {
            assert_eq!(reasons(true, principal, owner), [""; 0]);
            assert_eq!(reasons(false, principal, owner), ["not-interactive"]);
        }
        for principal in [None, Some("b"), Some("A"), Some("a ")] {
            assert_eq!(reasons(true, principal, Some("a")), ["other-principal"]);
        }
        assert_eq!(reasons(false, None, Some("a")), ["not-interactive", "other-principal"]);
    }
}
