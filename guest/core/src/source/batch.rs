//! New records: checked together before anything is written.
//!
//! Every fault of every record is told, and one fault keeps the whole batch out (FORMAT.md, "Appending"). Knows what a frame may
//! hold and how it is written. Must not know what is stored already: [`Batch::compare`] leads there.

use super::branches::Predecessor;
use super::frame::{ContentHasher, MARKER, RECORD_LINES_MAX, write_head};
use super::limits::{LimitReached, Limits};
use super::metadata::{Metadata, REDACTED_KIND, Tier, Trust, UNKNOWN};
use super::report::Problem;
use super::scan::Tail;
use crate::digest::Digest;
use crate::ids::{SourceId, SourceIdError, SpeakerId, label};
use crate::text::{identity_part, is_printable_writing};
use memchr::memchr_iter;
use std::collections::{BTreeMap, BTreeSet};

/// Greatest length of a file's or directory's name in bytes: that of the common file systems.
const NAME_BYTES_MAX: usize = 255;

/// A record to keep, as a runtime saw it. Nothing is checked yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewRecord {
    /// `openprogram`, `claude-code`, a channel.
    pub provider: String,
    /// The conversation.
    pub thread: String,
    /// Within the conversation; the three joined by `/` are the source id.
    pub id: String,
    /// Order within the conversation; records with the same number keep the order given.
    pub ordinal: i64,
    /// The label where there is no speaker.
    pub role: String,
    /// Kept byte for byte.
    pub text: String,
    /// Usually ISO 8601; none or empty is written as `[]`.
    pub time: Option<String>,
    /// From the runtime, never from the text.
    pub speaker_id: Option<String>,
    /// From the runtime, never from the text.
    pub speaker_display: Option<String>,
    /// None or empty: `unknown`.
    pub speaker_kind: Option<String>,
    /// None or empty: `unknown`.
    pub principal: Option<String>,
    /// `owner`, `paired` or none.
    pub tier: Option<String>,
    /// `trusted` or `pending`.
    pub trust: String,
    /// What it comes behind, where that need not be the record before it in the archive. A record that is neither in the
    /// archive nor in the batch counts as none.
    pub after: Predecessor,
}

impl NewRecord {
    /// The checks of [`Batch::check`] for this record alone: how many bytes it takes in an archive.
    ///
    /// # Errors
    /// Every fault of it.
    pub fn check(&self, limits: &Limits) -> Result<u64, Vec<Problem>> {
        let mut faults = Faults { record: self, number: 1, found: Vec::new() };
        match faults.check(limits) {
            Some(parts) if faults.found.is_empty() => Ok(parts.bytes(self.text.len())),
            _ => Err(faults.found),
        }
    }
}

/// Why a batch was not accepted. Nothing was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchError {
    /// Every fault of every record.
    Refused(Vec<Problem>),
    /// The batch is too large.
    Limit(LimitReached),
}

/// Records that can be written, in the order of (provider, thread, ordinal). Made only by [`Batch::check`].
#[derive(Clone, Debug)]
pub struct Batch {
    pub(super) turns: Vec<Turn>,
    /// By archive: places in `turns`, ascending.
    archives: BTreeMap<String, Vec<usize>>,
}

/// A record that was checked, and its frame in parts.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) id: SourceId,
    pub(super) path: String,
    /// Its place in the batch as it was given, from 1.
    number: u64,
    speaker: Option<String>,
    metadata: Metadata,
    record_lines: u64,
    /// The frame above the record.
    head: String,
    /// `[time] label: `
    first: String,
    text: String,
    pub(super) after: Predecessor,
}

impl Turn {
    pub(super) fn content(&self) -> Digest {
        let mut hasher =
            ContentHasher::new(self.id.as_str(), self.speaker.as_deref(), Some(&self.metadata), self.record_lines);
        hasher.push(self.first.as_bytes());
        hasher.push(self.text.as_bytes());
        hasher.finish()
    }

    fn bytes(&self) -> u64 {
        frame_bytes(&self.head, &self.first, self.text.len())
    }

    /// The id of the record it comes behind, if it names one.
    pub(super) fn predecessor(&self) -> Option<SourceId> {
        let Predecessor::Record(message) = &self.after else { return None };
        SourceId::for_reading(&format!("{}/{}/{message}", self.id.provider(), self.id.thread())).ok()
    }

    /// Adds the frame to what an archive with that tail becomes, and the empty line that has to come first.
    pub(super) fn write(&self, tail: Tail, out: &mut String) {
        match tail {
            Tail::Empty => {
                out.push_str(MARKER);
                out.push_str("\n\n");
            }
            Tail::AfterRecord => out.push('\n'),
            Tail::AfterBlank | Tail::Damaged => {}
        }
        for part in [&self.head, &self.first, &self.text] {
            out.push_str(part);
        }
        out.push('\n');
    }
}

/// A frame with its record's last LF and the empty line before the next.
fn frame_bytes(head: &str, first: &str, text: usize) -> u64 {
    (head.len() + first.len() + text + 2) as u64
}

impl Batch {
    /// Checks every record: nothing is written unless all are good.
    ///
    /// # Errors
    /// Every fault of every record, in the order given; or, if there is none, that together they are too large.
    pub fn check(records: Vec<NewRecord>, limits: &Limits) -> Result<Self, BatchError> {
        let mut problems = Vec::new();
        let mut checked = Vec::with_capacity(records.len());
        for (index, record) in records.into_iter().enumerate() {
            let order = (record.provider.clone(), record.thread.clone(), record.ordinal);
            let mut faults = Faults { record: &record, number: index as u64 + 1, found: Vec::new() };
            match faults.check(limits) {
                Some(parts) if faults.found.is_empty() => {
                    checked.push((order, parts.turn(index as u64 + 1, record.text, record.after)));
                }
                _ => problems.append(&mut faults.found),
            }
        }
        if !problems.is_empty() {
            return Err(BatchError::Refused(problems));
        }
        let asked = checked.iter().map(|(_, turn)| turn.bytes()).sum();
        if asked > limits.batch_bytes {
            let name = Limits::BATCH_BYTES;
            return Err(BatchError::Limit(LimitReached { name, allowed: limits.batch_bytes, asked, subject: None }));
        }
        checked.sort_by(|(a, _), (b, _)| a.cmp(b));
        let turns: Vec<Turn> = checked.into_iter().map(|(_, turn)| turn).collect();
        let mut archives: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, turn) in turns.iter().enumerate() {
            match archives.get_mut(&turn.path) {
                Some(places) => places.push(at),
                None => drop(archives.insert(turn.path.clone(), vec![at])),
            }
        }
        Ok(Self { turns, archives })
    }

    /// The archives this batch belongs to, each once, sorted: what must be looked at before planning.
    pub fn paths(&self) -> Vec<&str> {
        self.archives.keys().map(String::as_str).collect()
    }

    /// Of the records whose archive is at `path` or below it, the first one as the batch was given: its place, from 1, and
    /// its id. For who must say which record a path is needed for.
    pub fn first_at(&self, path: &str) -> Option<(u64, &SourceId)> {
        let is_at =
            |archive: &str| archive.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let places = self.archives.iter().filter(|(archive, _)| is_at(archive)).flat_map(|(_, places)| places);
        let turns = places.filter_map(|at| self.turns.get(*at));
        turns.min_by_key(|turn| turn.number).map(|turn| (turn.number, &turn.id))
    }

    /// The records that belong in the archive at `path`, in the batch's order. Costs what they are, not what the batch is:
    /// it may have as many archives as records.
    pub(super) fn turns_of(&self, path: &str) -> impl Iterator<Item = &Turn> + use<'_> {
        let places = self.archives.get(path).map(Vec::as_slice).unwrap_or_default();
        places.iter().filter_map(|at| self.turns.get(*at))
    }

    /// The records that belong in the archive at `path`: ids, and a way to the content digest of each.
    pub fn offered<'b>(&'b self, path: &'b str) -> impl Iterator<Item = (&'b SourceId, impl Fn() -> Digest + 'b)> {
        self.turns_of(path).map(|turn| (&turn.id, || turn.content()))
    }

    /// The records that those in the archive at `path` come behind and that are not in the batch themselves, each once,
    /// sorted: whether they are in the archive has to be found out.
    pub fn predecessors(&self, path: &str) -> Vec<SourceId> {
        let mut named: BTreeSet<SourceId> = BTreeSet::new();
        let mut before = "";
        for turn in self.turns_of(path) {
            // Nearly always the one before it.
            if !matches!(&turn.after, Predecessor::Record(message) if message == before) {
                named.extend(turn.predecessor());
            }
            before = turn.id.message();
        }
        if !named.is_empty() {
            for turn in self.turns_of(path) {
                named.remove(&turn.id);
            }
        }
        named.into_iter().collect()
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }
}

/// A turn without its text, which is moved in only once all is well.
struct Parts {
    id: SourceId,
    speaker: Option<String>,
    metadata: Metadata,
    record_lines: u64,
    head: String,
    first: String,
}

impl Parts {
    fn turn(self, number: u64, text: String, after: Predecessor) -> Turn {
        let Self { id, speaker, metadata, record_lines, head, first } = self;
        Turn { path: id.v2_path(), id, number, speaker, metadata, record_lines, head, first, text, after }
    }

    fn bytes(&self, text: usize) -> u64 {
        frame_bytes(&self.head, &self.first, text)
    }
}

/// What to say of a path with a name that file systems do not take.
fn too_long_name(path: &str) -> Option<String> {
    let longest = path.split('/').map(str::len).max().filter(|&bytes| bytes > NAME_BYTES_MAX)?;
    Some(format!(
        "provider or thread takes {longest} bytes as a file's name, percent-encoded; {NAME_BYTES_MAX} is the most, so \
         shorten it or give a digest of it"
    ))
}

struct Faults<'a> {
    record: &'a NewRecord,
    number: u64,
    found: Vec<Problem>,
}

impl Faults<'_> {
    /// All checks, whether or not an earlier one failed. None only if something was found.
    fn check(&mut self, limits: &Limits) -> Option<Parts> {
        let id = self.id();
        let time = self.record.time.as_deref().unwrap_or_default();
        if let Some(c) = time.chars().find(|&c| !is_printable_writing(c) || matches!(c, '[' | ']')) {
            self.add(
                "unsafe-timestamp",
                format!("the time contains {c:?}; give a time without brackets and control characters, or none"),
            );
        }
        let display = self.record.speaker_display.as_deref().unwrap_or_default();
        let speaker_id = self.record.speaker_id.as_deref().unwrap_or_default();
        let label = label(display, speaker_id, &self.record.role);
        if label.is_empty() {
            self.add(
                "empty-label",
                "neither speaker nor role has a visible character; give a role such as user".into(),
            );
        }
        let metadata = self.metadata();
        let record_lines = memchr_iter(b'\n', self.record.text.as_bytes()).count() as u64 + 1;
        if record_lines > RECORD_LINES_MAX {
            self.add("too-many-lines", format!("the text has more than {RECORD_LINES_MAX} lines; split it"));
        }
        let longest = |id: &SourceId| match self.record.after {
            Predecessor::Before => id.v2_path(),
            Predecessor::Start | Predecessor::Record(_) => id.branches_path(),
        };
        if let Some(name) = id.as_ref().and_then(|id| too_long_name(&longest(id))) {
            self.add("name-too-long", name);
        }
        let (id, metadata) = (id?, metadata?);
        let vouched = !identity_part(speaker_id).is_empty() || !identity_part(display).is_empty();
        let speaker = vouched.then(|| SpeakerId::new(speaker_id).marker());
        let mut head = String::with_capacity(512);
        write_head(&mut head, id.as_str(), &id.anchor(), speaker.as_deref(), &metadata, record_lines);
        let first = format!("[{time}] {label}: ");
        if head.len() + first.len() > limits.header_bytes {
            self.add(
                "header-too-long",
                format!(
                    "id, time, speaker and principal take {} bytes in the archive, {} allows {}; shorten them",
                    head.len() + first.len(),
                    Limits::HEADER_BYTES,
                    limits.header_bytes,
                ),
            );
        }
        Some(Parts { id, speaker, metadata, record_lines, head, first })
    }

    fn id(&mut self) -> Option<SourceId> {
        match SourceId::for_writing(&self.joined()) {
            Ok(id) => Some(id),
            Err(error) => {
                let advice = match error {
                    SourceIdError::Malformed => "give provider, thread and id, none empty",
                    SourceIdError::Unsafe(_) => "encode such characters before they come here",
                };
                self.add(error.reason(), format!("{error}; {advice}"));
                None
            }
        }
    }

    fn metadata(&mut self) -> Option<Metadata> {
        let trust = Trust::parse(&self.record.trust);
        if trust.is_none() {
            self.add("invalid-metadata", "trust must be trusted or pending".into());
        }
        let tier = match self.record.tier.as_deref() {
            None => Some(None),
            Some(word) => Tier::parse(word).map(Some),
        };
        if tier.is_none() {
            self.add("invalid-metadata", "tier must be owner, paired or absent".into());
        }
        let named = |text: &Option<String>| match text.as_deref() {
            None | Some("") => UNKNOWN.to_owned(),
            Some(text) => text.to_owned(),
        };
        let kind = named(&self.record.speaker_kind);
        if kind == REDACTED_KIND {
            self.add("reserved-kind", format!("the kind {REDACTED_KIND} marks redactions; no input may carry it"));
        }
        Some(Metadata { trust: trust?, kind, principal: named(&self.record.principal), tier: tier? })
    }

    fn joined(&self) -> String {
        format!("{}/{}/{}", self.record.provider, self.record.thread, self.record.id)
    }

    fn add(&mut self, reason: &'static str, message: String) {
        self.found.push(Problem {
            code: "INVALID_ARGUMENT",
            reason,
            path: None,
            line: Some(self.number),
            subject: Some(self.joined()),
            message,
        });
    }
}
