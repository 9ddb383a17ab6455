//! Tables say what is true or nothing, whatever happened to the files they are kept in.

use proptest::collection::vec;
use proptest::prelude::*;
use recollex_core::digest::{CHUNK_BYTES, Chunks, Digest, FileHasher};
use recollex_core::ids::{Location, Revision};
use recollex_core::source::{
    Batch, EntryKind, Finding, FrameRef, Given, Limits, Metadata, NewRecord, Resume, Scanner, Summary, Tail, Trust,
    Verifier,
};
use recollex_core::table::{
    ArchiveFiles, ArchiveHead, FileState, FileTable, IdIndex, Key, ROWS_MAX, RowLog, Rows, Save, Stamp, chunks_range,
    merge_keys, read_chunks, row_key, rows_length, rows_range, write_chunks,
};
use std::collections::BTreeMap;

// --- The file table, over a workspace that is only a map.

#[derive(Clone, Debug)]
struct File {
    content: Vec<u8>,
    token: u64,
    racy: bool,
}

impl File {
    fn state(&self) -> FileState {
        let mut hasher = FileHasher::new();
        hasher.push(&self.content);
        let root = hasher.finish().root;
        let length = self.content.len() as u64;
        FileState { root, frames: length / 3, legacy_records: length / 2, clean: !self.content.contains(&0) }
    }
}

#[derive(Default)]
struct Workspace {
    files: BTreeMap<String, File>,
    cache: Option<Vec<u8>>,
    changes: u64,
    read: usize,
    written: usize,
}

impl Workspace {
    fn put(&mut self, path: &str, content: Vec<u8>, racy: bool) {
        self.changes += 1;
        self.files.insert(path.to_owned(), File { content, token: self.changes, racy });
    }

    /// What a session does: known files from the table, the others read.
    fn survey(&mut self, limits: &Limits) -> Revision {
        let mut table = FileTable::load(self.cache.clone().unwrap_or_default(), limits);
        let mut roots = Vec::new();
        for (path, file) in &self.files {
            let token = file.token.to_string();
            let stamp = Stamp { size: file.content.len() as u64, token: &token, racy: file.racy };
            let state = table.known(path, &stamp).unwrap_or_else(|| {
                self.read += 1;
                let state = file.state();
                table.note(path, &stamp, state);
                state
            });
            assert_eq!(state, file.state(), "{path}");
            roots.push((path.clone(), state.root));
        }
        match table.save(true) {
            Save::Nothing => {}
            Save::Append { length, bytes } => {
                let cache = self.cache.as_mut().expect("what is added to is there");
                assert_eq!(cache.len() as u64, length);
                self.written += bytes.len();
                cache.extend_from_slice(&bytes);
            }
            Save::Replace(bytes) => {
                self.written += bytes.len();
                self.cache = Some(bytes);
            }
        }
        Revision::of(roots)
    }

    fn full(&self) -> Revision {
        Revision::of(self.files.iter().map(|(path, file)| (path.clone(), file.state().root)))
    }
}

#[derive(Clone, Debug)]
enum Event {
    Write(u8, Vec<u8>),
    WriteRacy(u8, Vec<u8>),
    /// Other bytes, the same length.
    Twist(u8),
    Remove(u8),
    Settle,
    DropCache,
    CutCache(usize),
    FlipCache(usize, u8),
    JunkBehindCache(Vec<u8>),
    OtherSettings,
}

fn event() -> impl Strategy<Value = Event> {
    let file = 0_u8..12;
    let content = || vec(0_u8..4, 0..12);
    prop_oneof![
        4 => (file.clone(), content()).prop_map(|(n, c)| Event::Write(n, c)),
        2 => (file.clone(), content()).prop_map(|(n, c)| Event::WriteRacy(n, c)),
        2 => file.clone().prop_map(Event::Twist),
        2 => file.prop_map(Event::Remove),
        1 => Just(Event::Settle),
        1 => Just(Event::DropCache),
        1 => any::<usize>().prop_map(Event::CutCache),
        2 => (any::<usize>(), 1_u8..).prop_map(|(at, bits)| Event::FlipCache(at, bits)),
        1 => vec(any::<u8>(), 1..40).prop_map(Event::JunkBehindCache),
        1 => Just(Event::OtherSettings),
    ]
}

proptest! {
    #[test]
    fn the_revision_is_that_of_a_full_reading(events in vec(vec(event(), 0..4), 1..24)) {
        let mut limits = Limits::default();
        let mut workspace = Workspace::default();
        for step in events {
            for event in step {
                let path = |n: u8| format!("sources/p/_v2/{}.md", ["a", "b/c", "ü", "a-b"][usize::from(n % 4)].repeat(1 + usize::from(n / 4)));
                match event {
                    Event::Write(n, content) => workspace.put(&path(n), content, false),
                    Event::WriteRacy(n, content) => workspace.put(&path(n), content, true),
                    Event::Twist(n) => if let Some(File { mut content, .. }) = workspace.files.get(&path(n)).cloned() {
                        content.iter_mut().for_each(|byte| *byte ^= 2);
                        workspace.put(&path(n), content, false);
                    },
                    Event::Remove(n) => { workspace.files.remove(&path(n)); }
                    Event::Settle => workspace.files.values_mut().for_each(|file| file.racy = false),
                    Event::DropCache => workspace.cache = None,
                    Event::CutCache(at) => if let Some(cache) = &mut workspace.cache { let at = at % (cache.len() + 1); cache.truncate(at); },
                    Event::FlipCache(at, bits) => if let Some(cache) = workspace.cache.as_mut().filter(|cache| !cache.is_empty()) {
                        let at = at % cache.len();
                        cache[at] ^= bits;
                    },
                    Event::JunkBehindCache(junk) => if let Some(cache) = &mut workspace.cache { cache.extend(junk) },
                    Event::OtherSettings => limits.header_bytes ^= 1,
                }
            }
            prop_assert_eq!(workspace.survey(&limits), workspace.full());
            let (read, written) = (workspace.read, workspace.written);
            prop_assert_eq!(workspace.survey(&limits), workspace.full());
            let racy = workspace.files.values().filter(|file| file.racy).count();
            prop_assert!(workspace.read - read <= racy, "what is known is not read again");
            prop_assert_eq!(workspace.written, written, "what is unchanged is not written again");
        }
    }
}

#[test]
fn a_file_table_stays_in_proportion() {
    let limits = Limits::default();
    let mut workspace = Workspace::default();
    for n in 0..300 {
        workspace.put(&format!("topics/{n:04}.md"), vec![1; 9], false);
    }
    workspace.survey(&limits);
    let whole = workspace.cache.as_ref().map_or(0, Vec::len);
    let written = workspace.written;
    for n in 0..600 {
        workspace.put(&format!("topics/{:04}.md", n * 7 % 300), vec![2; n % 50], false);
        workspace.survey(&limits);
        assert!(workspace.cache.as_ref().map_or(0, Vec::len) < whole * 2 + 70_000);
    }
    // Each change costs its own line, and its share of a few rewritings.
    assert!(workspace.written - written < 600 * 400, "{}", workspace.written - written);
    workspace.files.clear();
    workspace.survey(&limits);
    workspace.survey(&limits);
    assert!(workspace.cache.as_ref().is_some_and(|cache| cache.len() < whole * 2 + 70_000));
    assert_eq!(FileTable::load(workspace.cache.clone().unwrap_or_default(), &limits).unseen().count(), 0);
}

#[test]
fn a_flipped_bit_of_a_file_table_never_makes_a_wrong_statement() {
    let limits = Limits::default();
    let mut workspace = Workspace::default();
    for n in 0..3_u8 {
        workspace.put(&format!("topics/{n}.md"), vec![n; 5], false);
        workspace.survey(&limits);
    }
    let sound = workspace.cache.clone().expect("written");
    for at in 0..sound.len() * 8 {
        let mut bytes = sound.clone();
        bytes[at / 8] ^= 1 << (at % 8);
        workspace.cache = Some(bytes);
        // Asserts that every statement is true.
        assert_eq!(workspace.survey(&limits), workspace.full());
    }
}

#[test]
fn names_and_tokens_too_long_for_the_table_are_left_out() {
    let limits = Limits::default();
    let mut table = FileTable::load(Vec::new(), &limits);
    let state = FileState { root: Digest::of(b"x"), frames: 0, legacy_records: 0, clean: true };
    let (long, fits) = ("t".repeat(256), "t".repeat(255));
    table.note("a", &Stamp { size: 1, token: &long, racy: false }, state);
    table.note(&"p".repeat(65_536), &Stamp { size: 1, token: "t", racy: false }, state);
    table.note("b", &Stamp { size: 1, token: &fits, racy: false }, state);
    let Save::Replace(bytes) = table.save(true) else { panic!("a new table") };
    let mut table = FileTable::load(bytes, &limits);
    assert_eq!(table.unseen().collect::<Vec<_>>(), ["b"]);
    assert_eq!(table.known("b", &Stamp { size: 1, token: &fits, racy: true }), Some(state));
    assert_eq!(table.known("b", &Stamp { size: 2, token: &fits, racy: false }), None);
    assert_eq!(table.save(true), Save::Nothing);
}

// --- The record table of one archive.

const PATH: &str = "sources/p/_v2/t.md";

fn records(numbers: core::ops::Range<u64>) -> Vec<NewRecord> {
    numbers
        .map(|n| NewRecord {
            provider: "p".into(),
            thread: "t".into(),
            id: format!("m{n}"),
            ordinal: n as i64,
            role: "user".into(),
            text: format!("said {n}\n").repeat(1 + n as usize % 3),
            trust: if n.is_multiple_of(2) { "trusted" } else { "pending" }.into(),
            ..NewRecord::default()
        })
        .collect()
}

fn text(numbers: core::ops::Range<u64>) -> String {
    let batch = Batch::check(records(numbers), &Limits::default()).expect("good records");
    let plan = batch.compare(BTreeMap::new()).expect("no file").plan().expect("nothing to read");
    plan.changes.into_iter().map(|change| change.text).collect()
}

/// The rows that a log says, and the bytes it makes.
fn log(text: &str) -> (RowLog, Vec<(String, u64)>) {
    let mut log = RowLog::new(PATH, &Limits::default());
    let mut ids = Vec::new();
    let mut add = |frame: &FrameRef<'_>| {
        log.push(frame, (ids.len() % 3 == 0).then(|| Digest::of(frame.id.as_bytes())).as_ref());
        ids.push((frame.id.to_owned(), frame.offset));
    };
    let mut scanner = Scanner::new(Some(Location::of_path(PATH)), &Limits::default());
    scanner.push_text(text, &mut add);
    scanner.finish(&mut add);
    (log, ids)
}

fn slice(bytes: &[u8], range: core::ops::Range<u64>) -> Option<&[u8]> {
    bytes.get(range.start as usize..range.end as usize)
}

/// Looks an id up as a session does: `None` when something is damaged, else the row, if there is one.
fn look_up(index: &[u8], rows: &[u8], id: &Digest, key: &[u8], pages: &mut u64) -> Option<Option<u64>> {
    let head = IdIndex::read(slice(index, IdIndex::HEAD)?)?;
    let mut search = head.search(key);
    while let Some(number) = search.wanted() {
        *pages += 1;
        search.supply(&head.read_page(number, slice(index, head.page(number))?)?);
    }
    let Some(row) = search.row().map(u64::from) else { return Some(None) };
    let read = Rows::read(slice(rows, rows_range(row..row + 1))?, 1)?;
    read.rows.first().filter(|row| row.is_of(id)).map(|row| Some(row.offset))
}

#[test]
fn rows_say_where_the_frames_are() {
    let text = text(0..50);
    let (log, ids) = log(&text);
    let bytes = log.bytes().expect("fits");
    assert_eq!(bytes.len() as u64, rows_length(50));
    let all = Rows::read(slice(bytes, rows_range(0..50)).expect("there"), 50).expect("sound");
    assert_eq!(all.behind, log.chain());
    for (number, (row, (id, offset))) in all.rows.iter().zip(&ids).enumerate() {
        assert!(row.is_of(&Digest::of(id.as_bytes())) && row.offset == *offset);
        assert_eq!(row.has_content(&Digest::of(id.as_bytes())), number % 3 == 0);
        // The frame stands alone there.
        let resume = Resume { bytes: row.offset, lines: row.line - 1, tail: Tail::AfterBlank };
        let mut found = 0;
        let mut check = |frame: &FrameRef<'_>| {
            found += 1;
            let header = frame.record_offset - frame.offset;
            assert_eq!((frame.id, header, frame.record_length), (id.as_str(), row.header, row.length));
            assert_eq!((frame.anchor_line, frame.record_lines), (row.line, row.lines));
        };
        let mut scanner = Scanner::resume(Location::of_path(PATH), resume, &Limits::default());
        let end = row.frame().end.min(text.len() as u64);
        scanner.push_text(&text[row.offset as usize..end as usize], &mut check);
        assert!(scanner.finish(&mut check).complete);
        assert_eq!(found, 1);
    }
}

/// Promoting a record changes no row of its archive, however the rows come about.
#[test]
fn rows_do_not_depend_on_trust() {
    let text = text(0..20);
    let metadata = |trust| Metadata { trust, ..Metadata::absent() }.encode();
    let promoted = text.replace(&metadata(Trust::Pending), &metadata(Trust::Trusted));
    assert_ne!(text, promoted);
    assert_eq!(log(&text).0.bytes(), log(&promoted).0.bytes());
}

#[test]
fn chunks_are_sound_if_the_head_s_state_comes_of_them() {
    let mut hasher = FileHasher::new();
    hasher.push(&vec![7; CHUNK_BYTES * 3 + 1]);
    let digest = hasher.finish();
    let bytes = write_chunks(&digest.added);
    assert_eq!(bytes.len() as u64, chunks_range(digest.chunks.count()).end);
    assert_eq!(read_chunks(&bytes, &digest.chunks), Some(digest.added.clone()));
    assert_eq!(read_chunks(&bytes[..64], &digest.chunks), None);
    assert_eq!(read_chunks(&bytes[..95], &digest.chunks), None);
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        assert_eq!(read_chunks(&flipped, &digest.chunks), None, "byte {at}");
    }
}

#[test]
fn rows_written_in_parts_are_the_rows_written_at_once() {
    let (whole, early) = (text(0..40), text(0..25));
    let (all, _) = log(&whole);
    let (mut parts, _) = log(&early);
    let mut bytes = parts.bytes().expect("fits").to_vec();
    let (_, at) = scan_end(&early);
    let mut later = RowLog::resume(parts.rows(), parts.chain());
    let mut number = 25;
    let mut scanner = Scanner::resume(Location::of_path(PATH), at, &Limits::default());
    let mut add = |frame: &FrameRef<'_>| {
        later.push(frame, (number % 3 == 0).then(|| Digest::of(frame.id.as_bytes())).as_ref());
        number += 1;
    };
    scanner.push_text(&whole[at.bytes as usize..], &mut add);
    scanner.finish(&mut add);
    bytes.extend_from_slice(later.bytes().expect("fits"));
    assert_eq!(bytes, all.bytes().expect("fits"));
    assert_eq!((later.rows(), later.chain()), (all.rows(), all.chain()));
    let mut keys = parts.keys().to_vec();
    keys.extend_from_slice(later.keys());
    assert_eq!(keys, all.keys());
    parts = later;
    assert_eq!(parts.rows(), 40);
}

fn scan_end(text: &str) -> (u64, Resume) {
    let mut scanner = Scanner::new(Some(Location::of_path(PATH)), &Limits::default());
    scanner.push_text(text, &mut |_| {});
    let end = scanner.finish(&mut |_| {});
    (end.frames, end.resume().expect("sound"))
}

#[test]
fn ids_are_found_within_a_page_or_two_and_others_are_not() {
    let count = 20_000_u64;
    let keys = |numbers: core::ops::Range<u64>| -> Vec<(Key, u32)> {
        numbers.map(|n| (row_key(&Digest::of(format!("id {n}").as_bytes())), n as u32)).collect()
    };
    let early = merge_keys(keys(0..count / 2), []);
    let all = merge_keys(early, keys(count / 2..count));
    assert!(all.is_sorted());
    let index = IdIndex::write(&all, [7; 8]);
    let head = IdIndex::read(&index[..IdIndex::HEAD.end as usize]).expect("sound");
    assert_eq!((head.rows(), head.chain(), head.pages()), (count, [7; 8], count.div_ceil(255)));
    assert_eq!(head.page(head.pages() - 1).end, index.len() as u64);
    let mut pages = 0;
    for n in 0..count + 2000 {
        let id = Digest::of(format!("id {n}").as_bytes());
        // By the whole key, and by the part that an anchor has.
        for key in [&row_key(&id)[..], &row_key(&id)[..8]] {
            let mut search = head.search(key);
            while let Some(number) = search.wanted() {
                pages += 1;
                let page = slice(&index, head.page(number)).expect("within");
                search.supply(&head.read_page(number, page).expect("sound"));
            }
            assert_eq!(search.row(), (n < count).then_some(n as u32));
        }
    }
    assert!(pages < (count + 2000) * 2 * 2, "{pages} pages for {} searches", (count + 2000) * 2);
    // Nothing is in an empty index.
    let empty = IdIndex::read(&IdIndex::write(&[], [0; 8])).expect("sound");
    assert_eq!(empty.search(&[1; 12]).wanted(), None);
}

proptest! {
    /// Ids cannot be chosen freely, but near enough: any distribution of keys is searched in a bounded number of pages.
    #[test]
    fn uneven_keys_are_found_too(seed in any::<u64>(), shift in 0_u32..60, count in 1_u64..4000, probe in any::<u64>()) {
        let key = |n: u64| -> Key {
            let number = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed) >> shift;
            let mut key = [0; 12];
            key[..8].copy_from_slice(&number.to_be_bytes());
            key[8..].copy_from_slice(&(n as u32).to_be_bytes());
            key
        };
        let all = merge_keys((0..count).map(|n| (key(n), n as u32)).collect(), []);
        let index = IdIndex::write(&all, [0; 8]);
        let head = IdIndex::read(&index[..IdIndex::HEAD.end as usize]).expect("sound");
        for n in [0, count - 1, count / 2, probe % count, count + probe % 1000] {
            let mut search = head.search(&key(n));
            let mut pages = 0;
            while let Some(number) = search.wanted() {
                pages += 1;
                let page = slice(&index, head.page(number)).expect("within");
                search.supply(&head.read_page(number, page).expect("sound"));
            }
            prop_assert_eq!(search.row(), (n < count).then_some(n as u32));
            prop_assert!(pages <= 4 + 5, "{} pages", pages);
        }
    }

    /// A byte changed or a piece lost anywhere: the answer is the right one, or that something is wrong.
    #[test]
    fn damage_to_rows_or_index_is_noticed(file in any::<bool>(), at in any::<usize>(), bits in 1_u8.., cut in any::<bool>(), probe in 0_u64..400) {
        let text = text(0..300);
        let (log, ids) = log(&text);
        let mut rows = log.bytes().expect("fits").to_vec();
        let mut index = IdIndex::write(&merge_keys(log.keys().to_vec(), []), log.chain());
        let damaged = if file { &mut rows } else { &mut index };
        let at = at % damaged.len();
        if cut { damaged.truncate(at) } else { damaged[at] ^= bits }
        let id = Digest::of(format!("p/t/m{probe}").as_bytes());
        let truth = ids.get(probe as usize).map(|(_, offset)| *offset);
        let key = row_key(&id);
        if let Some(found) = look_up(&index, &rows, &id, &key, &mut 0) {
            prop_assert_eq!(found, truth);
        }
        if let Some(read) = slice(&rows, rows_range(0..300)).and_then(|bytes| Rows::read(bytes, 300))
            && read.behind == log.chain()
        {
            let offsets: Vec<u64> = read.rows.iter().map(|row| row.offset).collect();
            prop_assert_eq!(offsets, ids.iter().map(|(_, offset)| *offset).collect::<Vec<_>>());
        }
    }
}

#[test]
fn rows_of_another_archive_or_setting_have_another_chain() {
    let log = |path, limits: &Limits| RowLog::new(path, limits).chain();
    let limits = Limits::default();
    assert_ne!(log(PATH, &limits), log("sources/p/_v2/u.md", &limits));
    assert_ne!(log(PATH, &limits), log(PATH, &Limits { header_bytes: 4096, ..limits }));
}

#[test]
fn too_many_records_have_no_table() {
    let text = text(0..1);
    let mut log = RowLog::resume(ROWS_MAX - 1, [0; 8]);
    let mut scanner = Scanner::new(Some(Location::of_path(PATH)), &Limits::default());
    let mut fits = Vec::new();
    let mut twice = |frame: &FrameRef<'_>| {
        for _ in 0..2 {
            log.push(frame, None);
            fits.push(log.bytes().is_some());
        }
    };
    scanner.push_text(&text, &mut twice);
    scanner.finish(&mut twice);
    assert_eq!(fits, [true, false]);
}

#[test]
fn a_head_comes_back_whole_or_not_at_all() {
    let limits = Limits::default();
    let mut hasher = FileHasher::new();
    hasher.push(&[9; 70_000]);
    let head = ArchiveHead {
        size: 70_000,
        token: "a.b-c".into(),
        at: Resume { bytes: 70_000, lines: 900, tail: Tail::AfterRecord },
        chunks: hasher.finish().chunks,
        rows: 300,
        chain: *b"12345678",
    };
    let bytes = head.write(PATH, &limits).expect("fits");
    assert_eq!(ArchiveHead::read(&bytes, PATH, &limits).as_ref(), Some(&head));
    assert!(head.is_of(&Stamp { size: 70_000, token: "a.b-c", racy: true }));
    assert!(!head.is_of(&Stamp { size: 70_000, token: "a.b-d", racy: false }));
    assert_eq!(ArchiveHead::read(&bytes, "sources/p/_v2/u.md", &limits), None);
    assert_eq!(ArchiveHead::read(&bytes, PATH, &Limits { header_bytes: 4096, ..limits }), None);
    for at in 0..bytes.len() {
        assert_eq!(ArchiveHead::read(&bytes[..at], PATH, &limits), None);
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            assert_eq!(ArchiveHead::read(&damaged, PATH, &limits), None, "byte {at} bit {bit}");
        }
    }
    let damaged = Resume { tail: Tail::Damaged, ..head.at };
    assert_eq!(ArchiveHead { at: damaged, chunks: Chunks::default(), ..head }.write(PATH, &limits), None);
}

#[test]
fn cache_files_of_an_archive_are_named_by_its_path() {
    let files = ArchiveFiles::of(PATH);
    let name = Digest::of(PATH.as_bytes()).hex_prefix(32);
    assert_eq!(
        [files.head, files.rows, files.ids],
        ["head", "rows", "ids"].map(|kind| format!("records/{name}.{kind}"))
    );
}

/// What the table of a large workspace takes. Run by hand with `--release -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stdout, reason = "what it is for")]
fn measure_a_large_file_table() {
    let limits = Limits::default();
    let mut table = FileTable::load(Vec::new(), &limits);
    let token = |n: u64| format!("6565a1b2.{n:08x}-6565a1b2.{n:08x}-{n:06x}");
    let paths: Vec<(String, String)> = (0..100_000).map(|n| (format!("topics/people/{n:06}.md"), token(n))).collect();
    let start = std::time::Instant::now();
    for (path, token) in &paths {
        let state = FileState { root: Digest([7; 32]), frames: 0, legacy_records: 0, clean: true };
        table.note(path, &Stamp { size: 100, token, racy: false }, state);
    }
    println!("noted {:?}", start.elapsed());
    let start = std::time::Instant::now();
    let Save::Replace(bytes) = table.save(true) else { panic!("a new table") };
    println!("written {:?}, {} bytes", start.elapsed(), bytes.len());
    let start = std::time::Instant::now();
    let mut table = FileTable::load(bytes, &limits);
    println!("loaded {:?}", start.elapsed());
    let start = std::time::Instant::now();
    let mut revision = recollex_core::ids::RevisionBuilder::default();
    for (path, token) in &paths {
        let state = table.known(path, &Stamp { size: 100, token, racy: false }).expect("known");
        revision.add(path, state.root);
    }
    println!("asked {:?}", start.elapsed());
    let start = std::time::Instant::now();
    println!("{}, {:?}", revision.finish(), start.elapsed());
    let start = std::time::Instant::now();
    assert_eq!(table.save(true), Save::Nothing);
    println!("nothing to save {:?}", start.elapsed());
}

// --- What the verifier makes of a file that is known, and of one that is begun again.

/// An archive of the older form, of two records.
const OLDER: &str = "# D1\n\n<a id=\"d1-1\"></a>\n[] A: x [D1:1]\n\n<a id=\"d1-2\"></a>\n[] B: y [D1:2]\n";

fn verified(drive: impl FnOnce(&mut Verifier)) -> (Summary, Vec<Finding>) {
    let mut verifier = Verifier::new(Given::InWorkspace, &Limits::default());
    drive(&mut verifier);
    (verifier.summary(), verifier.take_findings(usize::MAX))
}

#[test]
fn a_known_file_counts_like_one_that_was_read() {
    let archive = text(0..20);
    let files = [(PATH, archive.as_str()), ("topics/a.md", "A topic.\n"), ("sources/D1.md", OLDER), ("x.txt", "x")];
    let read = verified(|verifier| {
        for (path, content) in files {
            verifier.file(path, EntryKind::File);
            verifier.push_text(content, &mut |_, _| {});
            assert!(verifier.end(&mut |_, _| {}).is_some_and(|outcome| outcome.clean), "{path}");
        }
    });
    let known = verified(|verifier| {
        for (path, content) in files {
            verifier.file(path, EntryKind::File);
            let legacy_records = if path == "sources/D1.md" { 2 } else { 0 };
            verifier.known(content.len() as u64, if path == PATH { 20 } else { 0 }, legacy_records);
        }
    });
    assert_eq!(known, read);
    let counts = read.0.counts;
    assert_eq!((counts.frames, counts.legacy_records, read.1.len()), (20, 2, 0));
}

#[test]
fn files_with_something_wrong_are_not_clean() {
    let archive = text(0..3);
    let faults: [(&str, &[u8]); 7] = [
        (PATH, &archive.as_bytes()[..archive.len() - 1]),
        (PATH, b""),
        (PATH, b"no archive"),
        ("topics/a.md", b"\xff"),
        ("sources/p/old.md", b"a\xc3"),
        ("sources/D1.md", b"<a id=\"d1-1\"></a>\n"),
        ("sources/D1.md", b"<a id=\"d2-1\"></a>\n"),
    ];
    for (path, content) in faults {
        let (_, findings) = verified(|verifier| {
            verifier.file(path, EntryKind::File);
            verifier.push_bytes(content, &mut |_, _| {});
            assert!(verifier.end(&mut |_, _| {}).is_some_and(|outcome| !outcome.clean), "{path} {content:?}");
        });
        assert!(!findings.is_empty());
    }
}

#[test]
fn a_file_begun_again_counts_once() {
    let archive = text(0..20);
    let once = verified(|verifier| {
        verifier.file("topics/a.md", EntryKind::File);
        verifier.push_text("A topic.\n", &mut |_, _| {});
        verifier.file(PATH, EntryKind::File);
        verifier.push_text(&archive, &mut |_, _| {});
        verifier.file("sources/D1.md", EntryKind::File);
        verifier.push_text(OLDER, &mut |_, _| {});
        verifier.end(&mut |_, _| {});
    });
    let again = verified(|verifier| {
        verifier.file("topics/a.md", EntryKind::File);
        verifier.push_bytes(b"A to\xff", &mut |_, _| {});
        verifier.again();
        verifier.push_text("A topic.\n", &mut |_, _| {});
        verifier.file(PATH, EntryKind::File);
        verifier.push_text(&archive[..archive.len() / 2], &mut |_, _| {});
        verifier.push_text("something else entirely", &mut |_, _| {});
        verifier.again();
        verifier.push_text(&archive, &mut |_, _| {});
        verifier.file("sources/D1.md", EntryKind::File);
        verifier.push_text(OLDER, &mut |_, _| {});
        verifier.again();
        verifier.push_text(OLDER, &mut |_, _| {});
        verifier.end(&mut |_, _| {});
        // None is open any more.
        verifier.again();
    });
    assert_eq!(again, once);
}
