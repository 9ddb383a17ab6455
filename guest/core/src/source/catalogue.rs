//! What an archive holds, for somebody who looks into it: its files, its records without their text, who speaks in them.
//!
//! Frames are added as a scanner shows them. A record costs 48 bytes, its time and what its id has beyond the first id of
//! the file; names are kept once. Nothing else is kept: texts stay in their files, where offset and length find them.
//! Knows records and files; must not know who is asking, or where the files are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::metadata::{Tier, Trust, UNKNOWN};
use super::record::{Record, RecordRef, Speaker};
use super::verify::{FileClass, FileOutcome};
use crate::digest::Digest;
use crate::ids::{TurnRef, anchor_of};

/// Rows that lie together. Further ones get a place of their own, so that nothing is moved as the catalogue grows.
const BLOCK_ROWS: usize = 1024;

/// First bytes of a [`Key`]: what it is of.
const HEAD: u8 = 0;
const VOICE: u8 = 1;
const FILE: u8 = 2;

/// What lies at a path is none.
const NO_FILE: u32 = u32::MAX;

/// How far a name may be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// The runtime gave the speaker, and the record may be built on.
    Trusted,
    /// The runtime gave the speaker, but nobody has vouched for the record; or only the text of an older record says who
    /// it is from.
    Hint,
    /// There is no speaker. The label is a role, or what somebody wrote there.
    Unnamed,
}

/// All records of one speaker, or of one label where there is no speaker. Two speakers are one if id, name and standing
/// are the same to the last byte: names that only look alike stay apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voice {
    /// Counted from 0 in the order of their first records; stays the same while records are added.
    pub number: u32,
    /// How far the name may be relied on.
    pub standing: Standing,
    /// None where the runtime gave no speaker.
    pub speaker: Option<Speaker>,
    /// The label of the first of the records.
    pub label: String,
    /// Records that were kept.
    pub records: u64,
    /// Files that those are in.
    pub files: u32,
    /// Number of the first of them.
    pub first_record: u64,
}

/// How many voices of one standing there are, and how many records they have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Voices.
    pub voices: u32,
    /// Records that were kept.
    pub records: u64,
}

/// A file of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueFile {
    /// Counted from 0 in the order in which the files came.
    pub number: u32,
    /// As it was given.
    pub path: String,
    /// What it is.
    pub class: FileClass,
    /// Provider and thread, as the first record's id says. None: there is no record, or its id has no such parts.
    pub conversation: Option<(String, String)>,
    /// Bytes read; 0 until the file is closed.
    pub bytes: u64,
    /// Records that were kept.
    pub records: u64,
    /// Number of the first of them; the others follow without a gap. Where there is none: the number it would have.
    pub first_record: u64,
    /// Whether nothing is wrong with it; none until it is closed.
    pub clean: Option<bool>,
}

/// Which records to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All.
    All,
    /// Those of the file with this number.
    File(u32),
    /// Those of the voice with this number.
    Voice(u32),
}

/// A record of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Counted from 0 in the order read.
    pub number: u64,
    /// Number of its file.
    pub file: u32,
    /// Number of its voice.
    pub voice: u32,
    /// The record.
    pub record: Record,
}

/// Files, records and voices of an archive, in the order in which they came.
pub struct Catalogue {
    records_max: u64,
    dropped: u64,
    kept: u64,
    blocks: Vec<Block>,
    files: Vec<FileRow>,
    heads: Vec<Head>,
    voices: Vec<VoiceRow>,
    /// Numbers of heads, voices and files by what makes each of them one: see [`Key`].
    numbers: Numbers,
    key: Key,
}

/// A record. Its id is the beginning of its file's first id and then, in the block's text, the rest; behind that the time.
#[derive(Clone, Copy)]
struct Row {
    offset: u64,
    length: u64,
    line: u64,
    text: usize,
    shared: u32,
    id: u32,
    time: u32,
    file: u32,
    head: u32,
}

#[derive(Default)]
struct Block {
    rows: Vec<Row>,
    text: String,
}

struct FileRow {
    path: String,
    class: FileClass,
    first_id: String,
    bytes: u64,
    records: u64,
    first_record: u64,
    clean: Option<bool>,
}

/// What records of one speaker usually have in common.
struct Head {
    label: Box<str>,
    named: Named,
    kind: Box<str>,
    principal: Box<str>,
    trust: Trust,
    tier: Option<Tier>,
    voice: u32,
}

/// What says who spoke.
enum Named {
    Nobody,
    Marker(Box<str>),
    /// A text of an older archive.
    Hint(Speaker),
}

struct VoiceRow {
    standing: Standing,
    speaker: Option<Speaker>,
    /// The head that came first.
    head: u32,
    records: u64,
    files: u32,
    last_file: u32,
    first_record: u64,
}

/// Texts and flags as bytes that are equal only if all of them are.
#[derive(Default)]
pub(crate) struct Key(Vec<u8>);

/// Numbers by what each of them is of.
pub(crate) type Numbers = BTreeMap<Box<[u8]>, u32>;

impl Key {
    pub(crate) fn set(&mut self, flags: &[u8], texts: &[&str]) -> &[u8] {
        self.0.clear();
        self.0.extend_from_slice(flags);
        for text in texts {
            self.0.extend_from_slice(&next_number(text.len()).to_le_bytes());
            self.0.extend_from_slice(text.as_bytes());
        }
        &self.0
    }
}

/// More than `u32::MAX` of anything needs more memory than there is where this runs.
pub(crate) fn next_number(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

impl Catalogue {
    /// Without a file. Keeps at most `records_max` records; further ones are only counted, and belong to no file and no
    /// voice here.
    pub fn new(records_max: u64) -> Self {
        Self {
            records_max,
            dropped: 0,
            kept: 0,
            blocks: Vec::new(),
            files: Vec::new(),
            heads: Vec::new(),
            voices: Vec::new(),
            numbers: Numbers::new(),
            key: Key::default(),
        }
    }

    /// The records that come next are this file's.
    pub fn file(&mut self, path: &str, class: FileClass) {
        self.numbers.insert(self.key.set(&[FILE], &[path]).into(), next_number(self.files.len()));
        self.files.push(FileRow {
            path: path.to_owned(),
            class,
            first_id: String::new(),
            bytes: 0,
            records: 0,
            first_record: self.kept,
            clean: None,
        });
    }

    /// Something else than a file lies at that path.
    pub fn set_aside(&mut self, path: &str) {
        self.numbers.insert(self.key.set(&[FILE], &[path]).into(), NO_FILE);
    }

    /// Whether something came with that path.
    pub fn has(&self, path: &str) -> bool {
        self.number(path).is_some()
    }

    /// The number of the file at that path.
    pub(crate) fn file_number(&self, path: &str) -> Option<u32> {
        self.number(path).filter(|number| *number != NO_FILE)
    }

    fn number(&self, path: &str) -> Option<u32> {
        let mut key = Key::default();
        self.numbers.get(key.set(&[FILE], &[path])).copied()
    }

    /// A record of the file that came last; without one nothing happens, nor for what is no record.
    pub fn add(&mut self, record: RecordRef<'_>) {
        let Some(number) = next_number(self.files.len()).checked_sub(1).filter(|_| record.is_record()) else { return };
        if self.kept >= self.records_max {
            self.dropped += 1;
            return;
        }
        let said = Said::of(record);
        let head = self.head(&said);
        let Some(file) = self.files.last_mut() else { return };
        if file.records == 0 {
            file.first_id = said.id.to_owned();
        }
        file.records += 1;
        let shared = shared_beginning(&file.first_id, said.id);
        let rest = said.id.get(shared..).unwrap_or_default();

        if self.blocks.last().is_none_or(|block| block.rows.len() >= BLOCK_ROWS) {
            if let Some(full) = self.blocks.last_mut() {
                full.text.shrink_to_fit();
            }
            self.blocks.push(Block { rows: Vec::with_capacity(BLOCK_ROWS), text: String::new() });
        }
        let Some(block) = self.blocks.last_mut() else { return };
        block.rows.push(Row {
            offset: said.offset,
            length: said.length,
            line: said.line,
            text: block.text.len(),
            shared: next_number(shared),
            id: next_number(rest.len()),
            time: next_number(said.time.len()),
            file: number,
            head,
        });
        block.text.push_str(rest);
        block.text.push_str(said.time);

        let voice = self.heads.get(head as usize).and_then(|head| self.voices.get_mut(head.voice as usize));
        if let Some(voice) = voice {
            if voice.records == 0 || voice.last_file != number {
                voice.files += 1;
                voice.last_file = number;
            }
            voice.records += 1;
        }
        self.kept += 1;
    }

    /// What came of the file that came last.
    pub fn close(&mut self, outcome: &FileOutcome) {
        if let Some(file) = self.files.last_mut() {
            file.bytes = outcome.bytes;
            file.clean = Some(outcome.clean);
        }
    }

    /// Records that were counted only.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Voices and records of that standing.
    pub fn tally(&self, standing: Standing) -> Tally {
        let of = self.voices.iter().filter(|voice| voice.standing == standing);
        of.fold(Tally::default(), |tally, voice| Tally {
            voices: tally.voices + 1,
            records: tally.records + voice.records,
        })
    }

    /// Files from number `from` on, at most `max`.
    pub fn files(&self, from: u32, max: usize) -> Vec<CatalogueFile> {
        let rows = (from..).zip(self.files.get(from as usize..).unwrap_or_default());
        rows.take(max)
            .map(|(number, file)| CatalogueFile {
                number,
                path: file.path.clone(),
                class: file.class,
                conversation: conversation(&file.first_id),
                bytes: file.bytes,
                records: file.records,
                first_record: file.first_record,
                clean: file.clean,
            })
            .collect()
    }

    /// Voices from place `from` on, at most `max`: trusted ones first, then hints, then those without a speaker; among
    /// those of one standing the one with most records first, and of equals the one that came first.
    pub fn voices(&self, from: u32, max: usize) -> Vec<Voice> {
        let order = (0..).zip(&self.voices).map(|(number, voice)| (voice.standing, Reverse(voice.records), number));
        // A heap sorts in a tenth of the code of `sort`, and nobody waits for it.
        let order = BinaryHeap::from_iter(order).into_sorted_vec();
        let numbers = order.into_iter().skip(from as usize).take(max);
        numbers
            .filter_map(|(standing, Reverse(records), number)| {
                let voice = self.voices.get(number as usize)?;
                Some(Voice {
                    number,
                    standing,
                    speaker: voice.speaker.clone(),
                    label: self.heads.get(voice.head as usize)?.label.to_string(),
                    records,
                    files: voice.files,
                    first_record: voice.first_record,
                })
            })
            .collect()
    }

    /// Records of a selection from number `from` on, at most `max`. Whoever wants more asks from the number behind the
    /// last one on. A file or voice that is not there has none.
    pub fn records(&self, of: Selection, from: u64, max: usize) -> Vec<Listed> {
        let (first, end) = match of {
            Selection::All => (0, self.kept),
            Selection::File(number) => match self.files.get(number as usize) {
                Some(file) => (file.first_record, file.first_record + file.records),
                None => (0, 0),
            },
            Selection::Voice(number) => match self.voices.get(number as usize) {
                Some(voice) => (voice.first_record, self.kept),
                None => (0, 0),
            },
        };
        let numbers = from.max(first)..end;
        numbers.filter_map(|number| self.listed(number, of)).take(max).collect()
    }

    fn listed(&self, number: u64, of: Selection) -> Option<Listed> {
        let at = usize::try_from(number).ok()?;
        let block = self.blocks.get(at / BLOCK_ROWS)?;
        let row = block.rows.get(at % BLOCK_ROWS)?;
        let head = self.heads.get(row.head as usize)?;
        if matches!(of, Selection::Voice(wanted) if wanted != head.voice) {
            return None;
        }
        let file = self.files.get(row.file as usize)?;
        let (id, time) = block.text.get(row.text..)?.split_at_checked(row.id as usize)?;
        let time = time.get(..row.time as usize)?;
        let id = [file.first_id.get(..row.shared as usize)?, id].concat();
        let label = head.label.as_ref();
        let record = Record {
            anchor: TurnRef::parse(&id).map_or_else(|| anchor_of(&Digest::of(id.as_bytes())), |turn| turn.anchor()),
            id,
            path: file.path.clone(),
            line: row.line,
            offset: row.offset,
            length: row.length,
            time: time.to_owned(),
            label: label.to_owned(),
            speaker: match &head.named {
                Named::Nobody => None,
                Named::Marker(marker) => Speaker::new(marker, label, head.trust),
                Named::Hint(hint) => Some(hint.clone()),
            },
            trust: head.trust,
            kind: head.kind.to_string(),
            principal: head.principal.to_string(),
            tier: head.tier,
        };
        Some(Listed { number, file: row.file, voice: head.voice, record })
    }

    /// The number of what this record has in common with others of its speaker.
    fn head(&mut self, said: &Said<'_>) -> u32 {
        let tier_flag = said.tier.map_or(0, |tier| 1 + tier as u8);
        let (flag, names) = match said.named {
            Naming::Nobody => (0, ["", ""]),
            Naming::Marker(marker) => (1, [marker, ""]),
            Naming::Hint(hint) => (2, [hint.id.as_str(), hint.label.as_str()]),
        };
        let [first, second] = names;
        let flags = [HEAD, said.trust as u8, tier_flag, flag];
        let key = self.key.set(&flags, &[said.label, first, second, said.kind, said.principal]);
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let number = next_number(self.heads.len());
        self.numbers.insert(key.into(), number);
        let voice = self.voice(said, number);
        self.heads.push(Head {
            label: said.label.into(),
            named: match said.named {
                Naming::Nobody => Named::Nobody,
                Naming::Marker(marker) => Named::Marker(marker.into()),
                Naming::Hint(hint) => Named::Hint(hint.clone()),
            },
            kind: said.kind.into(),
            principal: said.principal.into(),
            trust: said.trust,
            tier: said.tier,
            voice,
        });
        number
    }

    /// The number of the voice that a head belongs to.
    fn voice(&mut self, said: &Said<'_>, head: u32) -> u32 {
        let speaker = match said.named {
            Naming::Nobody => None,
            Naming::Marker(marker) => Speaker::new(marker, said.label, said.trust),
            Naming::Hint(hint) => Some(hint.clone()),
        };
        let (standing, texts) = match &speaker {
            Some(speaker) if speaker.trusted => (Standing::Trusted, [speaker.id.as_str(), &speaker.display]),
            Some(speaker) => (Standing::Hint, [speaker.id.as_str(), &speaker.display]),
            None => (Standing::Unnamed, ["", said.label]),
        };
        let key = self.key.set(&[VOICE, standing as u8], &texts);
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let number = next_number(self.voices.len());
        self.numbers.insert(key.into(), number);
        let (records, files, last_file, first_record) = (0, 0, 0, self.kept);
        self.voices.push(VoiceRow { standing, speaker, head, records, files, last_file, first_record });
        number
    }
}

/// What is kept of a record, whichever form its archive has.
struct Said<'a> {
    id: &'a str,
    offset: u64,
    length: u64,
    line: u64,
    time: &'a str,
    label: &'a str,
    named: Naming<'a>,
    kind: &'a str,
    principal: &'a str,
    trust: Trust,
    tier: Option<Tier>,
}

/// What says who spoke.
#[derive(Clone, Copy)]
enum Naming<'a> {
    Nobody,
    Marker(&'a str),
    Hint(&'a Speaker),
}

impl<'a> Said<'a> {
    fn of(record: RecordRef<'a>) -> Self {
        match record {
            RecordRef::Frame(frame) => Self {
                id: frame.id,
                offset: frame.record_offset,
                length: frame.record_length,
                line: frame.record_line,
                time: frame.time,
                label: frame.label,
                named: frame.speaker.map_or(Naming::Nobody, Naming::Marker),
                kind: frame.kind(),
                principal: frame.principal(),
                trust: frame.trust(),
                tier: frame.tier(),
            },
            RecordRef::Legacy(legacy) => Self {
                id: legacy.id,
                offset: legacy.offset,
                length: legacy.length,
                line: legacy.line,
                time: legacy.time,
                label: legacy.label,
                named: legacy.hint.map_or(Naming::Nobody, Naming::Hint),
                kind: UNKNOWN,
                principal: UNKNOWN,
                trust: Trust::Trusted,
                tier: None,
            },
        }
    }
}

/// Bytes that both texts begin with, whole characters only.
fn shared_beginning(a: &str, b: &str) -> usize {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    b.floor_char_boundary(same)
}

/// Provider and thread of an id.
fn conversation(id: &str) -> Option<(String, String)> {
    let (provider, rest) = id.split_once('/')?;
    let (thread, _) = rest.split_once('/')?;
    Some((provider.to_owned(), thread.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::{EntryKind, Given, Limits, Verifier};
    use super::*;

    const TRUSTED: &str = "<!-- source-meta:eyJhdXRob3JpdHlfdGllciI6bnVsbCwicHJpbmNpcGFsX2lkIjoidW5rbm93biIsInNwZWFrZXJfa2luZCI6InVua25vd24iLCJ0cnVzdF9zdGF0ZSI6InRydXN0ZWQiLCJ2ZXJzaW9uIjoxfQ -->\n";
    const PENDING: &str = "<!-- source-meta:eyJhdXRob3JpdHlfdGllciI6InBhaXJlZCIsInByaW5jaXBhbF9pZCI6ImFkYSIsInNwZWFrZXJfa2luZCI6Imh1bWFuIiwidHJ1c3Rfc3RhdGUiOiJwZW5kaW5nIiwidmVyc2lvbiI6MX0 -->\n";

    /// Message, marker, metadata, label.
    type Turn<'a> = (&'a str, Option<&'a str>, &'a str, &'a str);

    fn archive(thread: &str, turns: &[Turn<'_>]) -> String {
        let mut text = format!("{}\n", super::super::MARKER);
        for (message, marker, metadata, label) in turns {
            let id = format!("p/{thread}/{message}");
            let anchor = anchor_of(&Digest::of(id.as_bytes()));
            let marker = marker.map(|marker| format!("<!-- speaker-id:{marker} -->\n")).unwrap_or_default();
            text.push_str(&format!(
                "\n<a id=\"{anchor}\"></a>\n<!-- source-id:{id} -->\n{marker}{metadata}<!-- record-lines:1 -->\n\
                 [2026-01-0{}] {label}: said\n",
                message.len() % 10
            ));
        }
        text
    }

    /// What is kept of these files, and the records as they are without a catalogue.
    fn read(files: &[(&str, String)], records_max: u64) -> (Catalogue, Vec<Record>) {
        let mut verifier = Verifier::new(Given::InWorkspace, &Limits::default());
        let mut catalogue = Catalogue::new(records_max);
        let mut records = Vec::new();
        for (path, text) in files {
            let class = verifier.file(path, EntryKind::File);
            catalogue.file(path, class);
            let mut keep = |path: &str, record: RecordRef<'_>| {
                catalogue.add(record);
                match record {
                    RecordRef::Frame(frame) => records.push(Record::new(path, frame)),
                    RecordRef::Legacy(legacy) if legacy.is_record() => records.push(Record::of_legacy(path, legacy)),
                    RecordRef::Legacy(_) => {}
                }
            };
            verifier.push_text(text, &mut keep);
            let outcome = verifier.end(&mut keep).expect("an open file");
            catalogue.close(&outcome);
        }
        (catalogue, records)
    }

    fn sample() -> Vec<(&'static str, String)> {
        let first = [
            ("m1", Some("u%2D1"), TRUSTED, "Ada (u-1)"),
            ("m2", Some("u%2D1"), PENDING, "Ada (u-1)"),
            ("m3", None, TRUSTED, "assistant"),
            ("其他", Some("u%2D1"), "", "Ada (u-1)"),
            ("其他2", Some("u%2D1"), TRUSTED, "Аda (u-1)"),
        ];
        let second = [("x/y", None, "", "assistant"), ("m1", Some(""), TRUSTED, "Ada (u-1)"), ("", None, "", "x")];
        vec![
            ("sources/p/_v2/t.md", archive("t", &first)),
            ("topics/a.md", "# A".to_owned()),
            ("sources/p/_v2/u.md", archive("u", &second)),
        ]
    }

    #[test]
    fn records_come_back_as_they_were() {
        let (catalogue, records) = read(&sample(), u64::MAX);
        assert_eq!(records.len(), 7, "the last turn of the second file has no id");
        let listed = catalogue.records(Selection::All, 0, usize::MAX);
        assert_eq!(listed.iter().map(|listed| &listed.record).collect::<Vec<_>>(), records.iter().collect::<Vec<_>>());
        assert!(listed.iter().zip(0..).all(|(listed, number)| listed.number == number));
        // Page by page.
        let page = catalogue.records(Selection::All, 2, 3);
        assert_eq!(page, listed[2..5]);
        assert_eq!(catalogue.records(Selection::All, 7, 3), []);
        assert_eq!(catalogue.records(Selection::All, u64::MAX, 3), []);
    }

    #[test]
    fn files_and_what_is_in_them() {
        let (catalogue, _) = read(&sample(), u64::MAX);
        let files = catalogue.files(0, usize::MAX);
        let seen: Vec<_> =
            files.iter().map(|file| (file.path.as_str(), file.class, file.records, file.clean)).collect();
        assert_eq!(
            seen,
            [
                ("sources/p/_v2/t.md", FileClass::Archive, 5, Some(true)),
                ("topics/a.md", FileClass::Topic, 0, Some(true)),
                ("sources/p/_v2/u.md", FileClass::Archive, 2, Some(false)),
            ]
        );
        assert_eq!(files[0].conversation, Some(("p".to_owned(), "t".to_owned())));
        assert_eq!((files[1].conversation.clone(), files[1].bytes, files[1].first_record), (None, 3, 5));
        let of_second = catalogue.records(Selection::File(2), 0, usize::MAX);
        assert_eq!(of_second.iter().map(|listed| listed.record.id.as_str()).collect::<Vec<_>>(), ["p/u/x/y", "p/u/m1"]);
        assert_eq!(catalogue.records(Selection::File(1), 0, 9), []);
        assert_eq!(catalogue.records(Selection::File(3), 0, 9), []);
        assert_eq!(catalogue.files(1, 1), files[1..2]);
        assert_eq!(catalogue.files(9, 1), []);
    }

    #[test]
    fn voices_are_apart_by_standing_and_by_every_byte() {
        let (catalogue, _) = read(&sample(), u64::MAX);
        let voices = catalogue.voices(0, usize::MAX);
        let seen: Vec<_> = voices
            .iter()
            .map(|voice| {
                let speaker = voice.speaker.as_ref().map(|speaker| (speaker.id.as_str(), speaker.display.as_str()));
                (voice.standing, speaker, voice.records, voice.files)
            })
            .collect();
        assert_eq!(
            seen,
            [
                // A frame without metadata is trusted, so it is the same voice.
                (Standing::Trusted, Some(("u-1", "Ada")), 2, 1),
                // A Cyrillic А.
                (Standing::Trusted, Some(("u-1", "Аda")), 1, 1),
                // A name only, which looks like another's name and id.
                (Standing::Trusted, Some(("", "Ada (u-1)")), 1, 1),
                (Standing::Hint, Some(("u-1", "Ada")), 1, 1),
                (Standing::Unnamed, None, 2, 2),
            ]
        );
        for voice in &voices {
            let records = catalogue.records(Selection::Voice(voice.number), 0, usize::MAX);
            assert_eq!(records.len() as u64, voice.records);
            assert_eq!(records[0].number, voice.first_record);
            assert!(
                records.iter().all(|listed| listed.voice == voice.number && listed.record.speaker == voice.speaker)
            );
        }
        assert_eq!(catalogue.tally(Standing::Trusted), Tally { voices: 3, records: 4 });
        assert_eq!(catalogue.tally(Standing::Hint), Tally { voices: 1, records: 1 });
        assert_eq!(catalogue.tally(Standing::Unnamed), Tally { voices: 1, records: 2 });
        assert_eq!(catalogue.voices(3, 1), voices[3..4]);
        assert_eq!(catalogue.records(Selection::Voice(5), 0, 9), []);
    }

    #[test]
    fn what_is_over_the_limit_is_counted() {
        let (catalogue, _) = read(&sample(), 3);
        assert_eq!(catalogue.dropped(), 4);
        assert_eq!(catalogue.records(Selection::All, 0, usize::MAX).len(), 3);
        assert_eq!(catalogue.files(0, 9).iter().map(|file| file.records).collect::<Vec<_>>(), [3, 0, 0]);
        assert_eq!(catalogue.voices(0, 9).iter().map(|voice| voice.records).sum::<u64>(), 3);
        let (none, _) = read(&sample(), 0);
        assert_eq!((none.dropped(), none.voices(0, 9), none.files(0, 9).len()), (7, Vec::new(), 3));
    }

    #[test]
    fn more_records_than_a_block_holds() {
        let names: Vec<String> = (0..3 * BLOCK_ROWS).map(|number| format!("m{number}")).collect();
        let turns: Vec<Turn<'_>> = names
            .iter()
            .map(|name| (name.as_str(), None, "", if name.ends_with('7') { "user" } else { "tool" }))
            .collect();
        let (catalogue, records) = read(&[("sources/p/_v2/t.md", archive("t", &turns))], u64::MAX);
        let listed = catalogue.records(Selection::All, 0, usize::MAX);
        assert!(
            listed.len() == names.len() && listed.iter().zip(&records).all(|(listed, record)| listed.record == *record)
        );
        let user = catalogue.voices(1, 1).remove(0);
        assert_eq!(
            (user.label.as_str(), user.records),
            ("user", names.iter().filter(|name| name.ends_with('7')).count() as u64)
        );
        // By voice from the middle of the second block on.
        let page = catalogue.records(Selection::Voice(user.number), 1500, 2);
        assert_eq!(page.iter().map(|listed| listed.number).collect::<Vec<_>>(), [1507, 1517]);
    }
}
