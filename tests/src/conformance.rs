//! What a store and a lock must do, as cases that any implementation of [`Store`] and [`Lock`] can be held to.
//!
//! Each case takes one or a few promises of `wit/store.wit` and `wit/lock.wit`, on fresh workspaces that a [`Fixture`]
//! makes. Where the contract leaves open what an answer is, a case asks only for what it leaves no choice in: that
//! nothing has changed, say. What a fixture cannot do is skipped and told, never passed. Must know no implementation.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use recollex::lock::{Lock, LockError};
use recollex::store::{
    About, Area, Change, CommitError, Committed, Edit, Entry, Expect, FileId, Guard, Kind, Page, Splice, Stamp, Store,
    StoreError,
};

/// A store and a lock on one workspace.
pub type Handle = (Box<dyn Store>, Box<dyn Lock>);

/// Makes workspaces to try a store and its lock on.
pub trait Fixture {
    /// An empty workspace that shares nothing with those made before. Generation 0, or whatever a new one begins with.
    fn fresh(&self) -> Box<dyn Workspace>;

    /// What its workspaces can do besides.
    fn abilities(&self) -> Vec<Ability>;
}

/// One workspace.
pub trait Workspace {
    /// Its store.
    fn store(&self) -> &dyn Store;

    /// Its lock.
    fn lock(&self) -> &dyn Lock;

    /// Another store and another lock on the same workspace, as another session would have. For [`Ability::Another`].
    fn another(&self) -> Option<Handle> {
        None
    }

    /// Writes a file of the tree behind the store's back, or removes it (none). Answers whether it could. For
    /// [`Ability::Behind`].
    fn write_behind(&self, path: &str, data: Option<&[u8]>) -> bool {
        let _ = (path, data);
        false
    }

    /// Whether these bytes are anywhere that the store keeps anything: the workspace, its history, what it put aside. None:
    /// the fixture cannot look. For [`Ability::Search`].
    fn holds(&self, bytes: &[u8]) -> Option<bool> {
        let _ = bytes;
        None
    }

    /// Makes the step of the medium fail that comes after `steps` others; none: no step any more. For
    /// [`Ability::Faults`].
    fn fail(&self, fault: Option<(usize, StoreError)>) {
        let _ = fault;
    }

    /// Whether a step that was to fail has not come.
    fn is_failing(&self) -> bool {
        false
    }
}

/// What not every fixture can do, or not every medium needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    /// A second handle on the same workspace.
    Another,
    /// Writing behind the store's back.
    Behind,
    /// A guard can be told from one of another lock ([`Guard::file`] answers).
    Guards,
    /// Letter case is no difference between names.
    LetterCase,
    /// Nor is NFC or NFD.
    NormalForms,
    /// All that the store keeps can be searched for bytes.
    Search,
    /// Failures of the medium can be brought about.
    Faults,
}

/// A group of promises.
pub struct Case {
    /// For people and for reports.
    pub name: &'static str,
    /// What it takes.
    pub needs: &'static [Ability],
    /// Tries it. The error names the promise that was broken, and how.
    ///
    /// # Errors
    /// The promise was broken.
    pub run: fn(&dyn Fixture) -> Result<(), String>,
}

/// What came of all cases.
#[derive(Debug, Default)]
pub struct Report {
    /// The names of the cases that passed.
    pub passed: Vec<&'static str>,
    /// Those that take what the fixture cannot do.
    pub skipped: Vec<&'static str>,
    /// Those that failed, with the promise.
    pub failed: Vec<(&'static str, String)>,
}

/// Runs all cases that the fixture can.
#[must_use]
pub fn run(fixture: &dyn Fixture) -> Report {
    let abilities = fixture.abilities();
    let mut report = Report::default();
    for case in CASES {
        if !case.needs.iter().all(|need| abilities.contains(need)) {
            report.skipped.push(case.name);
            continue;
        }
        match (case.run)(fixture) {
            Ok(()) => report.passed.push(case.name),
            Err(broken) => report.failed.push((case.name, broken)),
        }
    }
    report
}

const fn case(name: &'static str, needs: &'static [Ability], run: fn(&dyn Fixture) -> Result<(), String>) -> Case {
    Case { name, needs, run }
}

/// All cases, the simple ones first.
pub const CASES: &[Case] = &[
    case("empty-workspace", &[], empty_workspace),
    case("containment", &[], containment),
    case("areas", &[], areas),
    case("listing", &[], listing),
    case("stat", &[], stat),
    case("text-ranges", &[], text_ranges),
    case("byte-ranges", &[], byte_ranges),
    case("not-text", &[Ability::Behind], not_text),
    case("stamps", &[], stamps),
    case("stamps-behind", &[Ability::Behind], stamps_behind),
    case("edits-and-expectations", &[], edits_and_expectations),
    case("keep", &[], keep),
    case("all-or-nothing", &[], all_or_nothing),
    case("generation", &[], generation),
    case("second-handle", &[Ability::Another], second_handle),
    case("letter-case", &[Ability::LetterCase], letter_case),
    case("normal-forms", &[Ability::NormalForms], normal_forms),
    case("wrong-kind", &[], wrong_kind),
    case("moves", &[], moves),
    case("splices", &[], splices),
    case("duplicate-paths", &[], duplicate_paths),
    case("names", &[], names),
    case("large-text", &[], large_text),
    case("cache", &[], cache),
    case("lock", &[], lock),
    case("lock-between-handles", &[Ability::Another], lock_between_handles),
    case("lock-lost", &[Ability::Guards], lock_lost),
    case("erasing", &[], erasing),
    case("erased-everywhere", &[Ability::Search], erased_everywhere),
    case("faults", &[Ability::Faults], faults),
];

/// Ends the case unless the promise was kept.
macro_rules! promise {
    ($kept:expr, $($what:tt)+) => {
        if !$kept {
            return Err(format!($($what)+));
        }
    };
}

/// What a call that must succeed answered.
fn must<T, E: std::fmt::Debug>(result: Result<T, E>, doing: &str) -> Result<T, String> {
    result.map_err(|error| format!("{doing} must succeed: {error:?}"))
}

/// All that a reader sees.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    generation: u64,
    files: BTreeMap<(Area, String), (Stamp, Vec<u8>)>,
}

impl Seen {
    fn texts(&self, area: Area) -> BTreeMap<&str, String> {
        let of = self.files.iter().filter(|((of, _), _)| *of == area);
        of.map(|((_, path), (_, data))| (path.as_str(), String::from_utf8_lossy(data).into_owned())).collect()
    }

    /// The same but for how fresh things are, which passes by itself.
    fn is_as(&self, other: &Self) -> bool {
        self.generation == other.generation && self.has_files_of(other)
    }

    /// The same files, at whatever generation.
    fn has_files_of(&self, other: &Self) -> bool {
        self.files.len() == other.files.len()
            && self.files.iter().zip(&other.files).all(|((path, (stamp, data)), (other_path, (other_stamp, other)))| {
                path == other_path && stamp.same_version(other_stamp) && data == other
            })
    }
}

fn seen(store: &dyn Store) -> Result<Seen, String> {
    let mut files = BTreeMap::new();
    for area in [Area::Tree, Area::Runtime] {
        for entry in list(store, area, "", 0)? {
            let data = bytes(store, area, &entry.path)?;
            promise!(
                entry.stamp.size == data.len() as u64,
                "stamp.size is the length in bytes: {} has {} and {:?}",
                entry.path,
                data.len(),
                entry.stamp
            );
            files.insert((area, entry.path), (entry.stamp, data));
        }
    }
    Ok(Seen { generation: must(store.generation(), "generation")?, files })
}

fn bytes(store: &dyn Store, area: Area, path: &str) -> Result<Vec<u8>, String> {
    let mut data = Vec::new();
    loop {
        let chunk =
            must(store.read_bytes(area, path, None, data.len() as u64, 1 << 20), "read-bytes of what is listed")?;
        promise!(chunk.eof || !chunk.data.is_empty(), "read-bytes gives something unless at the end: {path}");
        data.extend(chunk.data);
        if chunk.eof {
            return Ok(data);
        }
    }
}

/// The whole text, in pieces of `max`, with what each piece promises.
fn text(store: &dyn Store, area: Area, path: &str, max: u32) -> Result<String, String> {
    let mut whole = String::new();
    loop {
        let chunk = must(store.read_text(area, path, None, whole.len() as u64, max), "read-text")?;
        promise!(
            chunk.eof || !chunk.text.is_empty(),
            "read-text gives at least one character unless at the end: {path}"
        );
        whole.push_str(&chunk.text);
        promise!(chunk.next == whole.len() as u64, "next is the offset behind the text: {path}: {}", chunk.next);
        if chunk.eof {
            promise!(chunk.stamp.size == chunk.next, "eof says that nothing follows: {path}: {:?}", chunk.stamp);
            return Ok(whole);
        }
    }
}

fn list(store: &dyn Store, area: Area, prefix: &str, max: u32) -> Result<Vec<Entry>, String> {
    let (mut entries, mut cursor) = (Vec::<Entry>::new(), None::<String>);
    loop {
        let Page { entries: page, next, .. } = must(store.entries(area, prefix, cursor.as_deref(), max), "entries")?;
        promise!(
            max == 0 || page.len() as u64 <= u64::from(max),
            "a page has at most max entries: {} of {max}",
            page.len()
        );
        promise!(!page.is_empty() || next.is_none(), "a page has at least one entry if there is one");
        for entry in page {
            promise!(
                entries.last().is_none_or(|last| last.path < entry.path),
                "entries come in code-point order of the path, each path once: {:?} behind {:?}",
                entry.path,
                entries.last().map(|last| &last.path)
            );
            entries.push(entry);
        }
        promise!(next.is_none() || next > cursor, "a listing goes on behind its cursor: {next:?} behind {cursor:?}");
        match next {
            Some(next) => cursor = Some(next),
            None => return Ok(entries),
        }
    }
}

fn paths(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.path.as_str()).collect()
}

fn acquire(workspace: &dyn Workspace) -> Result<Box<dyn Guard>, String> {
    must(workspace.lock().acquire(10_000, "conformance"), "acquire of a free lock")
}

fn commit(workspace: &dyn Workspace, changes: &[Change]) -> Result<Result<Committed, CommitError>, String> {
    let guard = acquire(workspace)?;
    let base = must(workspace.store().generation(), "generation")?;
    Ok(workspace.store().commit(&*guard, base, changes, &About::new("test", "conformance")))
}

/// A commit that must happen.
fn made(workspace: &dyn Workspace, changes: &[Change]) -> Result<Committed, String> {
    commit(workspace, changes)?.map_err(|error| format!("commit of {} must succeed: {error:?}", shown(changes)))
}

/// Changes, without drowning the reader of a failure in a text of megabytes.
fn shown(changes: &[Change]) -> String {
    format!("{changes:?}").chars().take(400).collect()
}

/// Changes that must be refused, alone and behind others that could be made, and leave everything as it was.
fn refused(
    workspace: &dyn Workspace,
    changes: &[Change],
    promise: &str,
    is_right: impl Fn(&CommitError) -> bool,
) -> Result<(), String> {
    let before = seen(workspace.store())?;
    let others = [put("other/new", "x"), append("other-new", 0, "y")];
    for batch in [changes.to_vec(), [&others, changes].concat(), [changes, &others].concat()] {
        match commit(workspace, &batch)? {
            Ok(_) => return Err(format!("{promise}: {} was made", shown(&batch))),
            Err(error) => promise!(is_right(&error), "{promise}: {} answered {error:?}", shown(&batch)),
        }
        let after = seen(workspace.store())?;
        promise!(after.is_as(&before), "a commit that fails changes nothing ({promise}): {}", shown(&batch));
    }
    Ok(())
}

fn changed_at(path: &str) -> impl Fn(&CommitError) -> bool {
    move |error| *error == CommitError::Changed(path.to_owned())
}

fn denied_at(path: &str) -> impl Fn(&CommitError) -> bool {
    move |error| matches!(error, CommitError::Failed { path: at, error: StoreError::Denied(_) } if at == path)
}

fn change(path: &str, edit: Edit) -> Change {
    Change { area: Area::Tree, path: path.to_owned(), expect: Expect::Any, edit }
}

fn expecting(expect: Expect, change: Change) -> Change {
    Change { expect, ..change }
}

fn put(path: &str, text: &str) -> Change {
    change(path, Edit::Put(text.to_owned()))
}

fn append(path: &str, length: u64, text: &str) -> Change {
    change(path, Edit::Append { length, text: text.to_owned() })
}

fn splice(path: &str, splices: &[(u64, u64, &str)]) -> Change {
    let splice = |(offset, remove, insert): &(u64, u64, &str)| Splice {
        offset: *offset,
        remove: *remove,
        insert: (*insert).to_owned(),
    };
    change(path, Edit::Splice(splices.iter().map(splice).collect()))
}

fn delete(path: &str) -> Change {
    change(path, Edit::Delete)
}

fn rename(path: &str, to: &str) -> Change {
    change(path, Edit::MoveTo(to.to_owned()))
}

/// A workspace with files in its tree.
fn with(fixture: &dyn Fixture, files: &[(&str, &str)]) -> Result<Box<dyn Workspace>, String> {
    let workspace = fixture.fresh();
    let changes: Vec<_> = files.iter().map(|(path, text)| put(path, text)).collect();
    made(&*workspace, &changes)?;
    Ok(workspace)
}

fn stamp_of(store: &dyn Store, path: &str) -> Result<Stamp, String> {
    must(store.stat(Area::Tree, path), &format!("stat of {path}")).map(|entry| entry.stamp)
}

fn empty_workspace(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = fixture.fresh();
    let store = workspace.store();
    must(store.generation(), "generation of an empty workspace")?;
    for area in [Area::Tree, Area::Runtime, Area::Cache] {
        promise!(list(store, area, "", 0)?.is_empty(), "a new workspace is empty: {area:?}");
        promise!(list(store, area, "absent", 0)?.is_empty(), "an absent prefix is an empty listing: {area:?}");
        promise!(store.stat(area, "a") == Err(StoreError::NotFound), "stat is not-found where nothing is: {area:?}");
        let read = store.read_text(area, "a/b", None, 0, 9);
        promise!(read == Err(StoreError::NotFound), "read-text is not-found where nothing is: {read:?}");
        let read = store.read_bytes(area, "a/b", None, 0, 9);
        promise!(read == Err(StoreError::NotFound), "read-bytes is not-found where nothing is: {read:?}");
    }
    let state = workspace.lock().current();
    promise!(state == Ok(None), "nobody holds the lock of a new workspace: {state:?}");
    must(store.troubles(), "troubles").map(drop)
}

const OUTSIDE: [&str; 13] =
    ["", "/", "/etc/passwd", ".", "..", "../x", "a/../b", "a/..", "./a", "a/./b", "a//b", "a/", "a\0b"];

fn containment(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = with(fixture, &[("a/b", "x"), ("b", "y")])?;
    let store = workspace.store();
    let internal = [".git/config", ".scriptorium/workspace-id", ".scriptorium"];
    let tree = OUTSIDE.iter().chain(&internal).map(|path| (Area::Tree, *path));
    let others = [Area::Runtime, Area::Cache].into_iter().flat_map(|area| OUTSIDE.map(|path| (area, path)));
    for (area, path) in tree.chain(others) {
        let is_denied = |error: Option<StoreError>| matches!(error, Some(StoreError::Denied(_)));
        let what = format!("a path outside is denied: {path:?} in {area:?}");
        promise!(is_denied(store.stat(area, path).err()), "{what}, to stat");
        promise!(is_denied(store.read_text(area, path, None, 0, 9).err()), "{what}, to read-text");
        promise!(is_denied(store.read_bytes(area, path, None, 0, 9).err()), "{what}, to read-bytes");
        if !path.is_empty() {
            promise!(is_denied(store.entries(area, path, None, 0).err()), "{what}, as a prefix");
        }
        match area {
            Area::Cache => {
                promise!(is_denied(store.put_cache(path, b"x").err()), "{what}, to put-cache");
                promise!(is_denied(store.append_cache(path, 0, b"x").err()), "{what}, to append-cache");
            }
            Area::Runtime => {
                refused(&*workspace, &[Change { area, ..put(path, "x") }], &what, denied_at(path))?;
            }
            Area::Tree => {
                for changed in [put(path, "x"), append(path, 0, "x"), delete(path), change(path, Edit::Keep)] {
                    refused(&*workspace, &[changed], &what, denied_at(path))?;
                }
                refused(&*workspace, &[rename("b", path)], &format!("{what}, as a target"), denied_at(path))?;
            }
        }
    }
    // A cursor need not be a path that exists. An empty one, and one with a slash at its end, are left open.
    for cursor in OUTSIDE.iter().chain(&internal).filter(|cursor| !["", "a/"].contains(*cursor)) {
        for prefix in ["", "a"] {
            let page = store.entries(Area::Tree, prefix, Some(cursor), 0);
            promise!(
                matches!(page, Err(StoreError::Denied(_))),
                "a cursor outside is denied: {cursor:?} below {prefix:?} answered {page:?}"
            );
        }
    }
    let cached = Change { area: Area::Cache, ..put("x", "x") };
    refused(&*workspace, &[cached], "the cache is no part of commits", |error| {
        matches!(error, CommitError::Failed { .. })
    })
}

fn areas(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = with(fixture, &[("same/name", "tree")])?;
    let runtime = |path: &str, text: &str| Change { area: Area::Runtime, ..put(path, text) };
    made(&*workspace, &[runtime("same/name", "runtime"), runtime("runtime.json", "{}")])?;
    let after = seen(workspace.store())?;
    let tree = after.texts(Area::Tree);
    promise!(tree == [("same/name", "tree".to_owned())].into(), "the tree never shows the other areas: {tree:?}");
    let expected = [("same/name", "runtime".to_owned()), ("runtime.json", "{}".to_owned())].into();
    let found = after.texts(Area::Runtime);
    promise!(found == expected, "the runtime area is one of its own: {found:?}");
    made(&*workspace, &[Change { area: Area::Runtime, ..delete("same/name") }])?;
    let kept = text(workspace.store(), Area::Tree, "same/name", 9)?;
    promise!(kept == "tree", "the runtime area is one of its own: a change of it came to the tree");
    Ok(())
}

fn listing(fixture: &dyn Fixture) -> Result<(), String> {
    let names = [
        "a/x",
        "a/y/z",
        "a-b",
        "a0",
        "a.md",
        "a/y.md",
        "b/c/d/e",
        "Z",
        "\u{e9}",
        "\u{1f600}",
        "\u{ffee}",
        ".hidden",
        "b/c.md",
    ];
    let workspace = with(fixture, &names.map(|name| (name, name)))?;
    let store = workspace.store();
    let mut sorted = names;
    sorted.sort_unstable();
    for max in 0..=names.len() as u32 + 1 {
        let entries = list(store, Area::Tree, "", max)?;
        promise!(
            paths(&entries) == sorted,
            "pages of {max} make up the listing, without gap or overlap: {:?}",
            paths(&entries)
        );
        for entry in &entries {
            let stat =
                store.stat(Area::Tree, &entry.path).map(|stat| (stat.kind, stat.stamp.same_version(&entry.stamp)));
            promise!(stat == Ok((Kind::File, true)), "stat says what the listing says: {}: {stat:?}", entry.path);
        }
    }
    for cursor in sorted.into_iter().chain(["a", "a/y", "b/.z", "m", "\u{10ffff}"]) {
        let page = must(store.entries(Area::Tree, "", Some(cursor), 0), "entries behind a path that may not be there")?;
        let behind: Vec<_> = sorted.iter().copied().filter(|path| *path > cursor).collect();
        let found = paths(&page.entries);
        let is_begin = behind.starts_with(&found) && (page.next.is_some() || found.len() == behind.len());
        promise!(is_begin, "a page begins right behind its cursor {cursor:?}: {found:?}");
    }
    for (prefix, expected) in [
        ("a", &["a/x", "a/y.md", "a/y/z"][..]),
        ("a/y", &["a/y/z"]),
        ("b", &["b/c.md", "b/c/d/e"]),
        ("absent", &[]),
        ("absent/deep", &[]),
        ("a.md", &[]),
        ("a.md/x", &[]),
    ] {
        for max in 0..3 {
            let entries = list(store, Area::Tree, prefix, max)?;
            promise!(
                paths(&entries) == expected,
                "files below a directory; none where it is absent or a file: {prefix:?}: {:?}",
                paths(&entries)
            );
        }
    }
    let before = must(store.entries(Area::Tree, "", None, 0), "entries")?.generation;
    promise!(Ok(before) == store.generation(), "a page has the generation at which it was read");
    let after = made(&*workspace, &[put("new", "x")])?.generation;
    let page = must(store.entries(Area::Tree, "", Some("a"), 2), "entries")?;
    promise!(
        page.generation == after,
        "a page has the generation at which it was read: {} of {after}",
        page.generation
    );
    Ok(())
}

fn stat(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = with(fixture, &[("d/file", "\u{6c49}x"), ("empty", "")])?;
    let store = workspace.store();
    let entry = must(store.stat(Area::Tree, "d/file"), "stat")?;
    promise!(
        (entry.path.as_str(), entry.kind, entry.stamp.size) == ("d/file", Kind::File, 4),
        "stat is the path's entry: {entry:?}"
    );
    promise!(stamp_of(store, "empty")?.size == 0, "size is the length in bytes");
    for path in ["d", "none", "d/none", "d/file/x"] {
        let found = store.stat(Area::Tree, path);
        promise!(
            found == Err(StoreError::NotFound),
            "stat is not-found where nothing is, and for a directory: {path}: {found:?}"
        );
    }
    Ok(())
}

fn text_ranges(fixture: &dyn Fixture) -> Result<(), String> {
    let whole = "a\u{e9}\u{6c49}\u{1f600}\u{0}\r\n\u{10ffff}z\u{6c49}\u{6c49}";
    let workspace = with(fixture, &[("t", whole), ("empty", "")])?;
    let store = workspace.store();
    for max in 0..=whole.len() as u32 + 3 {
        promise!(text(store, Area::Tree, "t", max)? == whole, "pieces of {max} bytes make up the text");
    }
    for offset in 0..=whole.len() + 2 {
        for max in [0, 1, 2, 3, 4, 5, 7, u32::MAX] {
            let read = store.read_text(Area::Tree, "t", None, offset as u64, max);
            if offset < whole.len() && !whole.is_char_boundary(offset) {
                let inside = Err(StoreError::NotText(offset as u64));
                promise!(read == inside, "an offset inside a character is not-text: {offset}: {read:?}");
                continue;
            }
            let chunk = must(read, &format!("read-text of {max} bytes at {offset}"))?;
            let rest = whole.get(offset..).unwrap_or("");
            let first = rest.chars().next().map_or(0, char::len_utf8) as u64;
            promise!(rest.starts_with(&chunk.text), "read-text reads from its offset on, {offset}: {:?}", chunk.text);
            promise!(
                chunk.text.len() as u64 <= u64::from(max).max(first),
                "read-text reads at most max bytes, but one character: {max} at {offset}: {:?}",
                chunk.text
            );
            promise!(chunk.text.is_empty() == rest.is_empty(), "text is empty at the end and nowhere else: {offset}");
            promise!(chunk.eof == (chunk.text == rest), "eof says whether something follows: {max} at {offset}");
            let next = offset as u64 + chunk.text.len() as u64;
            promise!(chunk.next == next, "next is the offset behind the text: {} for {next}", chunk.next);
            promise!(chunk.stamp.same_version(&stamp_of(store, "t")?), "a chunk has the file's stamp");
        }
    }
    let chunk = must(store.read_text(Area::Tree, "empty", None, 0, 0), "read-text of an empty file")?;
    promise!((chunk.text.as_str(), chunk.next, chunk.eof) == ("", 0, true), "an empty file is at its end: {chunk:?}");
    let directory = with(fixture, &[("d/f", "")])?.store().read_text(Area::Tree, "d", None, 0, 9);
    let is_refused = matches!(directory, Err(StoreError::Denied(_) | StoreError::NotFound));
    promise!(is_refused, "a directory cannot be read: {directory:?}");
    Ok(())
}

fn byte_ranges(fixture: &dyn Fixture) -> Result<(), String> {
    let whole = "\u{6c49}\u{1f600}0123456789\u{e9}";
    let workspace = with(fixture, &[("b", whole)])?;
    let whole = whole.as_bytes();
    for offset in 0..=whole.len() + 2 {
        for max in [1, 2, 3, 7, whole.len(), whole.len() + 1, 1 << 30] {
            let read = workspace.store().read_bytes(Area::Tree, "b", None, offset as u64, max as u32);
            let chunk = must(read, &format!("read-bytes of {max} at {offset}"))?;
            let rest = whole.get(offset..).unwrap_or(&[]);
            promise!(rest.starts_with(&chunk.data), "read-bytes reads from its offset on: {offset}");
            promise!(chunk.data.len() <= max, "read-bytes reads at most max bytes: {} of {max}", chunk.data.len());
            promise!(chunk.data.is_empty() == rest.is_empty(), "data is empty at the end and nowhere else: {offset}");
            promise!(chunk.eof == (chunk.data == rest), "eof says whether something follows: {max} at {offset}");
            let stamp = stamp_of(workspace.store(), "b")?;
            promise!(chunk.stamp.same_version(&stamp), "a chunk has the file's stamp");
        }
    }
    Ok(())
}

fn not_text(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = with(fixture, &[("d/x", "")])?;
    let store = workspace.store();
    for bad in [&b"\xff"[..], b"\xc3", b"\xe6\xb1", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe6\xb1x"] {
        for before in ["", "x", "\u{6c49}\u{6c49}", "0123456789"] {
            let whole = [before.as_bytes(), bad].concat();
            promise!(workspace.write_behind("t", Some(&whole)), "the fixture writes behind the store's back");
            for max in [1, 3, 4, 5, 64] {
                let mut offset = 0;
                let error = loop {
                    match store.read_text(Area::Tree, "t", None, offset, max) {
                        Ok(chunk) => {
                            let end = offset as usize + chunk.text.len();
                            promise!(
                                before.get(offset as usize..end) == Some(&chunk.text) && !chunk.text.is_empty(),
                                "text before the first invalid byte is readable: {whole:?}: {chunk:?}"
                            );
                            promise!(!chunk.eof, "invalid bytes are no end of the file: {whole:?}");
                            offset = chunk.next;
                        }
                        Err(error) => break error,
                    }
                };
                promise!(
                    error == StoreError::NotText(before.len() as u64) && offset == before.len() as u64,
                    "the read that reaches the first invalid byte is not-text, with its offset: {whole:?} in pieces of {max}: {error:?} at {offset}"
                );
            }
            promise!(bytes(store, Area::Tree, "t")? == whole, "read-bytes is never not-text: {whole:?}");
        }
    }
    Ok(())
}

fn read_at(store: &dyn Store, path: &str, at: &Stamp) -> [Option<StoreError>; 2] {
    [store.read_text(Area::Tree, path, Some(at), 0, 9).err(), store.read_bytes(Area::Tree, path, Some(at), 0, 9).err()]
}

const CHANGED: [Option<StoreError>; 2] = [Some(StoreError::Changed), Some(StoreError::Changed)];

fn stamps(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = fixture.fresh();
    let store = workspace.store();
    let mut last: Option<Stamp> = None;
    let mut length = 3;
    let file = |stamp: &Stamp| stamp.token.rsplit_once('-').map(|(_, file)| file.to_owned());
    for changed in [put("t", "one"), append("t", 3, "two"), splice("t", &[(0, 3, "six")]), put("t", "sevens")] {
        let is_added = matches!(changed.edit, Edit::Append { .. });
        let committed = made(&*workspace, &[changed, put("u", "x")])?;
        let stamp = committed.stamps.first().cloned().flatten();
        let stamp = must(stamp.ok_or("none"), "a commit's stamp of what it wrote")?;
        let now = stamp_of(store, "t")?;
        promise!(
            stamp.same_version(&now) && stamp.size == length,
            "committed.stamps are the stamps after it: {stamp:?}, {now:?}"
        );
        length = 6;
        promise!(
            read_at(store, "t", &stamp) == [None, None],
            "a commit's stamp is good as `at`: {:?}",
            read_at(store, "t", &stamp)
        );
        let other = Stamp { racy: !stamp.racy, ..stamp.clone() };
        promise!(read_at(store, "t", &other) == [None, None], "racy is no part of a version");
        for wrong in [
            Stamp { size: stamp.size + 1, ..stamp.clone() },
            Stamp { token: format!("{}x", stamp.token), ..stamp.clone() },
        ] {
            promise!(read_at(store, "t", &wrong) == CHANGED, "a read at another version is changed: {wrong:?}");
        }
        if let Some(last) = last {
            let is_told = last.racy || read_at(store, "t", &last) == CHANGED;
            promise!(is_told, "a stamp changes whenever the bytes do: {last:?}");
            let is_new = file(&last).is_none_or(|last| file(&stamp) != Some(last));
            promise!(
                is_added || is_new,
                "only a file that is added to keeps its name in the token: {last:?}, {stamp:?}"
            );
        }
        last = Some(stamp);
    }
    let last = must(last.ok_or(()), "the stamp of the last commit")?;
    made(&*workspace, &[put("v", "x"), delete("u")])?;
    promise!(read_at(store, "t", &last) == [None, None], "a commit to other files leaves a stamp good");
    made(&*workspace, &[delete("t")])?;
    let gone = read_at(store, "t", &last);
    promise!(gone == [Some(StoreError::NotFound), Some(StoreError::NotFound)], "what is gone is not-found: {gone:?}");
    Ok(())
}

fn stamps_behind(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = with(fixture, &[("t", "one"), ("u", "x")])?;
    let store = workspace.store();
    for data in ["two", "six", "longer", "six"] {
        let stamp = stamp_of(store, "t")?;
        promise!(workspace.write_behind("t", Some(data.as_bytes())), "the fixture writes behind the store's back");
        let now = stamp_of(store, "t")?;
        promise!(!now.same_version(&stamp) || stamp.racy, "equal stamps mean equal bytes, unless racy: {stamp:?}");
        if !now.same_version(&stamp) {
            promise!(read_at(store, "t", &stamp) == CHANGED, "what another program wrote is changed");
            let changed = expecting(Expect::Same(stamp), put("t", "mine"));
            refused(&*workspace, &[changed], "what another program wrote is not as expected", changed_at("t"))?;
        }
        promise!(text(store, Area::Tree, "t", 4)? == data, "what another program wrote is read");
    }
    let stamp = stamp_of(store, "u")?;
    promise!(workspace.write_behind("u", None), "the fixture removes behind the store's back");
    promise!(store.stat(Area::Tree, "u") == Err(StoreError::NotFound), "what another program removed is not-found");
    let same = expecting(Expect::Same(stamp), put("u", "mine"));
    refused(&*workspace, &[same], "what another program removed is not as expected", changed_at("u"))?;
    let listed = list(store, Area::Tree, "", 0)?;
    promise!(paths(&listed) == ["t"], "what another program removed is not listed: {:?}", paths(&listed));
    made(&*workspace, &[put("t", "committed"), expecting(Expect::Absent, put("u", "again"))]).map(drop)
}

/// Every edit, on a file and on none, with every expectation.
fn edits_and_expectations(fixture: &dyn Fixture) -> Result<(), String> {
    const OLD: &str = "a\u{6c49}b";
    let workspace = with(fixture, &[("stamped", "x")])?;
    let foreign = stamp_of(workspace.store(), "stamped")?;
    let mut number = 0;
    for there in [true, false] {
        let length = if there { OLD.len() as u64 } else { 0 };
        for (edit, on_file, on_nothing) in [
            (Edit::Put("new".to_owned()), Some("new"), Some("new")),
            (Edit::Append { length, text: "+".to_owned() }, Some("a\u{6c49}b+"), Some("+")),
            (splice("", &[(1, 3, "-")]).edit, Some("a-b"), None),
            (Edit::Delete, None, None),
            (Edit::MoveTo(String::new()), None, None),
            (Edit::Keep, Some(OLD), None),
        ] {
            for expected in ["any", "absent", "this", "another"] {
                number += 1;
                let (path, target) = (format!("case/{number}"), format!("case/{number}-moved"));
                if there {
                    made(&*workspace, &[put(&path, OLD)])?;
                }
                let (expect, holds) = match expected {
                    "any" => (Expect::Any, true),
                    "absent" => (Expect::Absent, !there),
                    "this" if there => (Expect::Same(stamp_of(workspace.store(), &path)?), true),
                    _ => (Expect::Same(foreign.clone()), false),
                };
                let is_move = matches!(edit, Edit::MoveTo(_));
                let edit = if is_move { Edit::MoveTo(target.clone()) } else { edit.clone() };
                let changed = expecting(expect, change(&path, edit.clone()));
                if !holds {
                    let promise = "nothing happens unless a path is as its change expects";
                    refused(&*workspace, &[changed], promise, changed_at(&path))?;
                    continue;
                }
                if !there && matches!(edit, Edit::Splice(_) | Edit::MoveTo(_)) {
                    let promise = "nothing can be spliced or moved where nothing is";
                    refused(&*workspace, &[changed], promise, |_| true)?;
                    continue;
                }
                let before = seen(workspace.store())?;
                let result = commit(&*workspace, std::slice::from_ref(&changed))?;
                let after = seen(workspace.store())?;
                if !there && edit == Edit::Delete {
                    // The contract leaves open whether this is a failure; that nothing comes of it, it does not.
                    promise!(after.is_as(&before), "to delete what is not there changes nothing: {changed:?}");
                    continue;
                }
                let committed = must(result, &format!("commit of {changed:?} as expected"))?;
                let content = if there { on_file } else { on_nothing };
                let tree = after.texts(Area::Tree);
                let found = tree.get(path.as_str()).map(String::as_str);
                promise!(found == content, "an edit makes of the file what it says: {changed:?}: {found:?}");
                let moved = tree.get(target.as_str()).map(String::as_str);
                promise!(moved == is_move.then_some(OLD), "a move brings the file to its target: {moved:?}");
                let grows = u64::from(edit != Edit::Keep);
                promise!(
                    committed.generation == after.generation
                        && if grows == 0 {
                            after.generation == before.generation
                        } else {
                            after.generation > before.generation
                        },
                    "the generation rises with every commit that changes anything, and with no other: {changed:?}: {} behind {}",
                    after.generation,
                    before.generation
                );
                let at = if is_move { &target } else { &path };
                let now = workspace.store().stat(Area::Tree, at).ok().map(|entry| entry.stamp);
                let told = committed.stamps.first().cloned().flatten();
                let is_same = match (&told, &now) {
                    (Some(told), Some(now)) => told.same_version(now),
                    (None, None) => true,
                    _ => false,
                };
                promise!(
                    is_same && committed.stamps.len() == 1,
                    "a stamp for each change: the target's of a move, none where nothing is: {changed:?}: {told:?} for {now:?}"
                );
                let others = |seen: &Seen| -> Vec<_> {
                    let is_other = |of: &&(Area, String)| of.1 != path && of.1 != target;
                    seen.files.keys().filter(is_other).cloned().collect()
                };
                promise!(others(&after) == others(&before), "a commit changes only what it names: {changed:?}");
            }
        }
    }
    for (length, path) in [(0, "stamped"), (2, "stamped"), (1, "none")] {
        let promise = "an addition to another length is changed";
        refused(&*workspace, &[append(path, length, "x")], promise, changed_at(path))?;
    }
    Ok(())
}

fn keep(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = with(fixture, &[("a", "one"), ("b", "two")])?;
    let stamp = stamp_of(workspace.store(), "a")?;
    let kept = |path: &str, expect| expecting(expect, change(path, Edit::Keep));
    let same = || Expect::Same(Stamp { racy: !stamp.racy, ..stamp.clone() });
    let before = seen(workspace.store())?;
    for changes in [
        vec![],
        vec![kept("a", same())],
        vec![kept("a", Expect::Any), kept("none", Expect::Absent), kept("no/such/directory", Expect::Any)],
    ] {
        let committed = made(&*workspace, &changes)?;
        promise!(
            committed.generation == before.generation && committed.stamps.len() == changes.len(),
            "a commit that changes nothing does not raise the generation: {committed:?}"
        );
        let after = seen(workspace.store())?;
        promise!(after.is_as(&before), "keep changes nothing: {changes:?}");
    }
    let committed = made(&*workspace, &[put("b", "three"), kept("a", same()), kept("none", Expect::Absent)])?;
    promise!(committed.generation > before.generation, "a commit that changes anything raises the generation");
    let told: Vec<_> =
        committed.stamps.iter().skip(1).map(|told| told.as_ref().map(|told| told.same_version(&stamp))).collect();
    promise!(told == [Some(true), None], "a kept file has the stamp that it had: {told:?}");
    made(&*workspace, &[put("a", "four")])?;
    for (path, expect) in [("a", same()), ("a", Expect::Absent), ("none", same())] {
        let promise = "a keep whose expectation fails ends the whole commit";
        refused(&*workspace, &[kept(path, expect)], promise, changed_at(path))?;
    }
    Ok(())
}

fn all_or_nothing(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = with(fixture, &[("put", "p"), ("append", "a"), ("splice", "s"), ("delete", "d"), ("move", "m")])?;
    let good = [
        put("put", "P"),
        append("append", 1, "A"),
        splice("splice", &[(0, 1, "S")]),
        delete("delete"),
        rename("move", "moved/here"),
        put("new/dir/file", "n"),
        Change { area: Area::Runtime, ..put("state.json", "{}") },
    ];
    let before = seen(workspace.store())?;
    for at in 0..=good.len() {
        let mut batch = good.to_vec();
        batch.insert(at, expecting(Expect::Absent, put("bad/..", "x")));
        let result = commit(&*workspace, &batch)?;
        promise!(result.is_err(), "a batch with one bad change is refused, wherever that is: at {at}");
        let mut batch = good.to_vec();
        batch.insert(at, append("another", 7, "x"));
        let result = commit(&*workspace, &batch)?;
        promise!(
            result == Err(CommitError::Changed("another".to_owned())),
            "one change that is not as expected ends all: {result:?}"
        );
        let after = seen(workspace.store())?;
        promise!(after.is_as(&before), "all changes of a commit are made or none: the bad one is at {at}");
    }
    let committed = made(&*workspace, &good)?;
    promise!(committed.stamps.len() == good.len(), "a stamp for each change");
    let after = seen(workspace.store())?;
    let expected = [("put", "P"), ("append", "aA"), ("splice", "S"), ("moved/here", "m"), ("new/dir/file", "n")];
    let expected = expected.map(|(path, text)| (path, text.to_owned())).into();
    promise!(after.texts(Area::Tree) == expected, "all changes of a commit are made: {:?}", after.texts(Area::Tree));
    promise!(after.texts(Area::Runtime).len() == 1, "a commit may change both areas");
    Ok(())
}

fn generation(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = fixture.fresh();
    let store = workspace.store();
    let mut last = must(store.generation(), "generation")?;
    for changed in [put("a", "1"), append("a", 1, "2"), put("b", ""), delete("b"), rename("a", "c"), delete("c")] {
        let committed = made(&*workspace, std::slice::from_ref(&changed))?.generation;
        let now = must(store.generation(), "generation")?;
        promise!(
            committed > last,
            "every commit that changes anything raises the generation: {changed:?}: {committed} behind {last}"
        );
        promise!(committed == now, "a commit tells the generation from here on: {committed} for {now}");
        last = now;
    }
    let guard = acquire(&*workspace)?;
    for base in [0, last - 1, last + 1, u64::MAX] {
        for changes in [&[put("x", "x")][..], &[]] {
            let result = store.commit(&*guard, base, changes, &About::default());
            promise!(
                result == Err(CommitError::Stale(last)),
                "another base than the generation is stale: {base} at {last}: {result:?}"
            );
        }
    }
    drop(guard);
    promise!(Ok(last) == store.generation(), "a stale commit changes nothing");
    promise!(list(store, Area::Tree, "", 0)?.is_empty(), "a stale commit changes nothing");
    must(store.put_cache("x", b"x").map(drop).or_else(denied_is_fine), "put-cache, or denied")?;
    promise!(Ok(last) == store.generation(), "a cache write does not raise the generation");
    Ok(())
}

fn denied_is_fine(error: StoreError) -> Result<(), StoreError> {
    if matches!(error, StoreError::Denied(_)) { Ok(()) } else { Err(error) }
}

fn another(workspace: &dyn Workspace) -> Result<Handle, String> {
    must(workspace.another().ok_or("the fixture has none"), "a second handle")
}

fn second_handle(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = with(fixture, &[("a", "one")])?;
    let (store, lock) = another(&*workspace)?;
    let is_same = |store: &dyn Store| Ok::<_, String>(seen(store)?.is_as(&seen(workspace.store())?));
    promise!(is_same(&*store)?, "two handles see one workspace");
    let stamp = made(&*workspace, &[append("a", 3, "two")])?.stamps.into_iter().next().flatten();
    let stamp = must(stamp.ok_or(()), "a stamp of what was written")?;
    promise!(is_same(&*store)?, "what one handle commits the other sees at once");
    promise!(read_at(&*store, "a", &stamp) == [None, None], "a stamp is good for both handles");
    let base = must(workspace.store().generation(), "generation")?;
    let guard = must(lock.acquire(1_000, ""), "acquire by the second handle")?;
    let changes = [expecting(Expect::Same(stamp), put("a", "three"))];
    must(store.commit(&*guard, base, &changes, &About::default()), "commit by the second handle")?;
    promise!(is_same(&*store)?, "what the other commits the first sees at once");
    drop(guard);
    let guard = acquire(&*workspace)?;
    let late = workspace.store().commit(&*guard, base, &[put("b", "x")], &About::default());
    promise!(
        matches!(late, Err(CommitError::Stale(now)) if now > base),
        "a base from before another's commit is stale: {late:?}"
    );
    Ok(())
}

fn collides(workspace: &dyn Workspace, changes: &[Change], planned: &str, existing: &str) -> Result<(), String> {
    let promise = format!("two names that are one to the medium never both come into being: {planned:?}, {existing:?}");
    let error = CommitError::Collision { planned: planned.to_owned(), existing: existing.to_owned() };
    refused(workspace, changes, &promise, |found| *found == error)
}

/// Within one commit the contract does not say which of the two is told first.
fn collide(workspace: &dyn Workspace, changes: &[Change], pair: [&str; 2]) -> Result<(), String> {
    let promise = format!("two names that are one to the medium never both come into being: {pair:?}");
    refused(workspace, changes, &promise, |error| match error {
        CommitError::Collision { planned, existing } => {
            [planned.as_str(), existing] == pair || [existing.as_str(), planned] == pair
        }
        _ => false,
    })
}

fn letter_case(fixture: &dyn Fixture) -> Result<(), String> {
    let files = [("sources/p/_v2/sess-1.md", "x"), ("sources/q/_V2/other.md", "x"), ("Upper/x.md", "x"), ("m", "x")];
    let workspace = &*with(fixture, &files)?;
    for (path, planned, existing) in [
        ("sources/p/_v2/SESS-1.md", "sources/p/_v2/SESS-1.md", "sources/p/_v2/sess-1.md"),
        ("sources/q/_v2/sess-1.md", "sources/q/_v2", "sources/q/_V2"),
        ("Sources/P/_v2/new.md", "Sources", "sources"),
        ("sources/P/_V2/new.md", "sources/P", "sources/p"),
        ("upper/deep/y.md", "upper", "Upper"),
        ("upper", "upper", "Upper"),
    ] {
        collides(workspace, &[put(path, "y")], planned, existing)?;
        collides(workspace, &[append(path, 0, "y")], planned, existing)?;
        collides(workspace, &[rename("m", path)], planned, existing)?;
    }
    collide(workspace, &[put("new/A.md", ""), put("new/a.md", "")], ["new/A.md", "new/a.md"])?;
    collide(workspace, &[put("New/a.md", ""), put("new/b.md", "")], ["New", "new"])?;
    collide(workspace, &[put("n/D/a", ""), rename("m", "n/d/b")], ["n/D", "n/d"])?;
    // A name that is there may be written as it is, and one that differs otherwise may be made.
    made(workspace, &[put("sources/p/_v2/sess-1.md", "y"), put("sources/p/_v2/sess-2.md", "y"), put("Upper/X2.md", "")])
        .map(drop)
}

fn normal_forms(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = &*with(fixture, &[("topics/caf\u{e9}.md", "x"), ("e\u{301}t\u{e9}/a", "x"), ("m", "x")])?;
    collides(workspace, &[put("topics/cafe\u{301}.md", "y")], "topics/cafe\u{301}.md", "topics/caf\u{e9}.md")?;
    collides(workspace, &[put("\u{e9}t\u{e9}/b", "y")], "\u{e9}t\u{e9}", "e\u{301}t\u{e9}")?;
    collides(workspace, &[rename("m", "\u{e9}te\u{301}/b")], "\u{e9}te\u{301}", "e\u{301}t\u{e9}")?;
    collide(workspace, &[put("n\u{e9}w/a", ""), put("ne\u{301}w/b", "")], ["n\u{e9}w", "ne\u{301}w"])?;
    made(workspace, &[put("topics/cafe.md", "y"), put("topics/caf\u{e8}.md", "y")]).map(drop)
}

fn wrong_kind(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = &*with(fixture, &[("d/file", "x"), ("f", "x"), ("m", "x")])?;
    for (changes, at) in [
        (vec![put("f/x", "y")], "f"),
        (vec![put("f/deep/x", "y")], "f"),
        (vec![append("d/file/x", 0, "y")], "d/file"),
        (vec![put("d", "y")], "d"),
        (vec![delete("d")], "d"),
        (vec![rename("d", "e")], "d"),
        (vec![rename("m", "d")], "d"),
        (vec![rename("m", "f/m")], "f"),
        (vec![rename("m", "m/n")], "m"),
        (vec![put("n", ""), put("n/o", "")], "n"),
        (vec![put("n/o", ""), put("n", "")], "n"),
    ] {
        let promise = format!("a file where the commit needs a directory, or the reverse, is wrong-kind: {at}");
        refused(workspace, &changes, &promise, |error| *error == CommitError::WrongKind(at.to_owned()))?;
    }
    Ok(())
}

fn moves(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = &*with(fixture, &[("a", "one"), ("b", "two"), ("d/e", "three")])?;
    refused(workspace, &[rename("a", "b")], "a move goes where nothing is", changed_at("b"))?;
    refused(workspace, &[rename("a", "a")], "a move goes where nothing is", |_| true)?;
    refused(workspace, &[rename("none", "new")], "what is not there cannot be moved", |_| true)?;
    let stamp = stamp_of(workspace.store(), "a")?;
    let committed = made(workspace, &[expecting(Expect::Same(stamp), rename("a", "x/y/a")), rename("d/e", "e")])?;
    let after = seen(workspace.store())?;
    let expected = [("b", "two"), ("e", "three"), ("x/y/a", "one")].map(|(path, text)| (path, text.to_owned())).into();
    promise!(
        after.texts(Area::Tree) == expected,
        "a move renames, and makes what directories it needs: {:?}",
        after.texts(Area::Tree)
    );
    for (path, stamp) in ["x/y/a", "e"].iter().zip(&committed.stamps) {
        let now = stamp_of(workspace.store(), path)?;
        promise!(
            stamp.as_ref().is_some_and(|stamp| stamp.same_version(&now)),
            "a move's stamp is the target's: {path}"
        );
    }
    made(workspace, &[put("a", "again"), rename("e", "d/e")]).map(drop)
}

fn splices(fixture: &dyn Fixture) -> Result<(), String> {
    let old = "a\u{e9}b\u{6c49}c";
    let workspace = &*with(fixture, &[("t", old)])?;
    for (bad, what) in [
        (&[(4, 1, ""), (0, 1, "")][..], "splices ascend"),
        (&[(0, 3, ""), (1, 2, "")], "splices do not overlap"),
        (&[(2, 0, "x")], "a splice begins between characters"),
        (&[(1, 1, "")], "a splice ends between characters"),
        (&[(0, 1, ""), (4, 2, "")], "a splice ends between characters"),
        (&[(8, 1, "")], "a splice lies within the file"),
        (&[(9, 0, "x")], "a splice lies within the file"),
        (&[(u64::MAX, 2, "x")], "a splice lies within the file"),
        (&[(1, u64::MAX, "x")], "a splice lies within the file"),
    ] {
        refused(workspace, &[splice("t", bad)], what, |_| true)?;
    }
    for (good, expected) in [
        (&[(0, 1, "A"), (3, 1, ""), (4, 3, "\u{1f600}"), (8, 0, "!")][..], "A\u{e9}\u{1f600}c!"),
        (&[(0, 0, "<"), (8, 0, ">")], "<a\u{e9}b\u{6c49}c>"),
        (&[(0, 1, "x"), (1, 2, "y")], "xyb\u{6c49}c"),
        (&[(0, 8, "")], ""),
        (&[], old),
    ] {
        made(workspace, &[put("t", old)])?;
        made(workspace, &[splice("t", good)])?;
        let found = text(workspace.store(), Area::Tree, "t", 5)?;
        promise!(found == expected, "offsets of splices count in the old content: {good:?}: {found:?}");
    }
    Ok(())
}

fn duplicate_paths(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = &*with(fixture, &[("a", "x"), ("b", "y")])?;
    for changes in [
        [put("c", "1"), put("c", "2")],
        [append("a", 1, "x"), append("a", 2, "y")],
        [delete("a"), put("a", "x")],
        [change("a", Edit::Keep), put("a", "x")],
        [rename("a", "c"), put("c", "x")],
        [put("c", "x"), rename("a", "c")],
        [delete("b"), rename("a", "b")],
        [rename("a", "c"), rename("b", "c")],
        [rename("a", "c"), put("a", "x")],
    ] {
        refused(workspace, &changes, "a path is named at most once in a commit", |_| true)?;
    }
    // The same path of two areas is two.
    made(workspace, &[put("c", "1"), Change { area: Area::Runtime, ..put("c", "2") }]).map(drop)
}

fn names(fixture: &dyn Fixture) -> Result<(), String> {
    let names = [
        "a b/c d.md",
        " leading and trailing ",
        "100%/%2e%2e/%2Fx",
        "\u{4e2d}\u{6587}/\u{6587}\u{4ef6}.md",
        "\u{1f600}\u{1f468}\u{200d}\u{1f469}.md",
        "..a/...",
        "-rf",
        "quote'\"$(x)`.md",
        "#&?=+;,@!~[]{}",
    ];
    let workspace = with(fixture, &names.map(|name| (name, name)))?;
    let listed = list(workspace.store(), Area::Tree, "", 2)?;
    let mut sorted = names;
    sorted.sort_unstable();
    promise!(paths(&listed) == sorted, "a name comes back as it was given: {:?}", paths(&listed));
    for name in names {
        promise!(
            text(workspace.store(), Area::Tree, name, 64)? == name,
            "a file is found by the name it was given: {name}"
        );
        made(&*workspace, &[append(name, name.len() as u64, "+")])?;
    }
    made(&*workspace, &names.map(delete))?;
    promise!(list(workspace.store(), Area::Tree, "", 0)?.is_empty(), "what is deleted is gone");
    Ok(())
}

fn large_text(fixture: &dyn Fixture) -> Result<(), String> {
    let line = "A line \u{6c49}\u{5b57} \u{1f600} \u{e9}.\n";
    let mut whole = line.repeat((3 << 20) / line.len());
    let workspace = with(fixture, &[("large", &whole)])?;
    let store = workspace.store();
    for max in [(64 << 10) + 1, 1 << 20, u32::MAX] {
        promise!(
            text(store, Area::Tree, "large", max)? == whole,
            "a text of some MiB comes back as it is, in pieces of {max}"
        );
    }
    made(&*workspace, &[append("large", whole.len() as u64, "end")])?;
    whole.push_str("end");
    let middle = whole.len() / 2 / line.len() * line.len();
    made(&*workspace, &[splice("large", &[(0, 1, "The"), (middle as u64, line.len() as u64, "")])])?;
    whole.replace_range(middle..middle + line.len(), "");
    whole.replace_range(0..1, "The");
    promise!(text(store, Area::Tree, "large", 1 << 20)? == whole, "an addition and splices of a large text are exact");
    Ok(())
}

fn cache(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = with(fixture, &[("t", "x")])?;
    let store = workspace.store();
    let before = seen(store)?;
    let stamp = match store.put_cache("index/base", b"\xff01") {
        Err(StoreError::Denied(_)) => {
            let others = (store.append_cache("x", 0, b"x").err(), list(store, Area::Cache, "", 0)?.len());
            promise!(
                matches!(others, (Some(StoreError::Denied(_)), 0)),
                "a host without caches denies all writes to them: {others:?}"
            );
            return Ok(());
        }
        result => must(result, "put-cache, or denied")?,
    };
    let read = |name: &str| bytes(store, Area::Cache, name);
    let at = must(store.read_bytes(Area::Cache, "index/base", Some(&stamp), 0, 9), "a read at the stamp of put-cache")?;
    promise!(at.data == b"\xff01", "put-cache keeps any bytes");
    let newer = must(store.append_cache("index/base", 3, b"23"), "append-cache")?;
    promise!(newer.size == 5 && !newer.same_version(&stamp), "append-cache answers the new stamp: {newer:?}");
    promise!(read("index/base")? == b"\xff0123", "append-cache adds at the end");
    for (name, length) in [("index/base", 0), ("index/base", 3), ("index/base", 6), ("none", 1)] {
        let result = store.append_cache(name, length, b"x");
        promise!(
            result == Err(StoreError::Changed),
            "append-cache to another length is changed: {name} {length}: {result:?}"
        );
    }
    must(store.append_cache("new", 0, b"x"), "append-cache with length 0 where there is none")?;
    must(store.put_cache("new", b""), "put-cache over a file")?;
    promise!(read("new")?.is_empty(), "put-cache replaces the whole file");
    must(store.append_cache("new", 0, b"y"), "append-cache with length 0 to an empty file")?;
    let listed = list(store, Area::Cache, "", 1)?;
    promise!(
        paths(&listed) == ["index/base", "new"],
        "the cache is listed as the other areas are: {:?}",
        paths(&listed)
    );
    for name in ["new", "new", "none/at/all"] {
        must(store.drop_cache(name), "drop-cache, also of what is not there")?;
    }
    let listed = list(store, Area::Cache, "", 0)?;
    promise!(paths(&listed) == ["index/base"], "drop-cache removes: {:?}", paths(&listed));
    promise!(seen(store)?.is_as(&before), "the cache is no part of the tree, and no commit");
    Ok(())
}

fn lock(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = fixture.fresh();
    exclusive(workspace.lock(), workspace.lock())
}

fn lock_between_handles(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = fixture.fresh();
    let (_, other) = another(&*workspace)?;
    exclusive(workspace.lock(), &*other)?;
    exclusive(&*other, workspace.lock())
}

/// Who has it by `first` keeps out who asks `second`.
fn exclusive(first: &dyn Lock, second: &dyn Lock) -> Result<(), String> {
    let purpose = format!("purpose {}", "\u{6c49}".repeat(40));
    let guard = must(first.acquire(0, &purpose), "acquire of a free lock without waiting")?;
    let holder = must(second.current(), "current")?;
    let holder = must(holder.ok_or("nobody"), "current while somebody holds the lock")?;
    if let Some(shown) = &holder.purpose {
        promise!(
            shown.len() <= 64 && !shown.is_empty() && purpose.starts_with(shown.as_str()),
            "at most 64 bytes of the purpose are shown, as it was said: {shown:?}"
        );
    }
    for wait in [0, 80] {
        let begun = Instant::now();
        let result = second.acquire(wait, "second");
        promise!(matches!(result, Err(LockError::Held(_))), "one at a time, and not re-entrant: {result:?}");
        promise!(
            begun.elapsed() >= Duration::from_millis(wait.into()),
            "acquire waits for {wait} ms before it says held"
        );
    }
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| second.acquire(60_000, "").map(drop));
        std::thread::sleep(Duration::from_millis(60));
        let is_waiting = !waiter.is_finished();
        drop(guard);
        let result = waiter.join().map_err(|_| "acquire panicked while waiting".to_owned())?;
        promise!(is_waiting, "acquire waits while the lock is held");
        promise!(result.is_ok(), "dropping the guard gives the lock to who waits: {result:?}");
        Ok(())
    })?;
    let state = first.current();
    promise!(state == Ok(None), "dropping the guard gives the lock back: {state:?}");
    must(first.acquire(0, ""), "acquire of a lock that was given back").map(drop)
}

/// A guard that no lock gave.
#[derive(Debug)]
struct Forged(Option<FileId>);

impl Guard for Forged {
    fn file(&self) -> Option<FileId> {
        self.0
    }
}

fn lock_lost(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = with(fixture, &[("a", "x")])?;
    let elsewhere = fixture.fresh();
    let foreign = acquire(&*elsewhere)?;
    let before = seen(workspace.store())?;
    let refuse = |guard: &dyn Guard, whose: &str| {
        for changes in [&[put("a", "y"), put("b", "z")][..], &[]] {
            let result = workspace.store().commit(guard, before.generation, changes, &About::default());
            promise!(
                result == Err(CommitError::LockLost),
                "a commit without the lock is lock-lost: {whose}: {result:?}"
            );
            promise!(seen(workspace.store())?.is_as(&before), "a commit without the lock changes nothing: {whose}");
        }
        Ok(())
    };
    refuse(&*foreign, "the guard of another workspace")?;
    refuse(&Forged(None), "a guard of nothing")?;
    refuse(&Forged(Some(FileId { device: 1, inode: 1 })), "a guard of another file")?;
    // Also while somebody holds it.
    let guard = acquire(&*workspace)?;
    refuse(&*foreign, "the guard of another workspace, while the lock is held")?;
    let result = workspace.store().commit(&*guard, before.generation, &[put("a", "y")], &About::default());
    must(result, "commit by who holds the lock").map(drop)
}

fn erase(workspace: &dyn Workspace, changes: &[Change]) -> Result<Result<Committed, CommitError>, String> {
    let guard = acquire(workspace)?;
    let base = must(workspace.store().generation(), "generation")?;
    Ok(workspace.store().commit(&*guard, base, changes, &About::new("test", "conformance").erasing()))
}

/// A commit that erases is a commit like others, or is refused as the contract has it.
fn erasing(fixture: &dyn Fixture) -> Result<(), String> {
    let workspace = with(fixture, &[("a", "one"), ("b", "two"), ("c", "three")])?;
    let before = seen(workspace.store())?;
    match erase(&*workspace, &[put("a", "1"), splice("b", &[(0, 2, "2")]), delete("c")])? {
        Ok(committed) => {
            let after = seen(workspace.store())?;
            let tree = [("a", "1".to_owned()), ("b", "2o".to_owned())].into();
            promise!(after.texts(Area::Tree) == tree, "a commit that erases is made, whole: {:?}", after.files);
            promise!(
                committed.generation == after.generation && after.generation > before.generation,
                "a commit that erases raises the generation: {committed:?}"
            );
        }
        Err(error) => {
            promise!(
                matches!(error, CommitError::Failed { error: StoreError::Denied(_), .. }),
                "a host that cannot erase denies the commit: {error:?}"
            );
            promise!(seen(workspace.store())?.is_as(&before), "a commit that is denied changes nothing");
        }
    }
    // What it expects counts as ever.
    let stale = erase(&*workspace, &[expecting(Expect::Absent, put("a", "x"))])?;
    promise!(stale.is_err(), "a commit that erases checks what it expects: {stale:?}");
    made(&*workspace, &[put("next", "x")]).map(drop)
}

fn erased_everywhere(fixture: &dyn Fixture) -> Result<(), String> {
    let secret = "what nobody is to find any more";
    let holds = |workspace: &dyn Workspace| {
        workspace.holds(secret.as_bytes()).ok_or_else(|| "a fixture that can search answers".to_owned())
    };
    let long = format!("before {secret} behind");
    for erasing in [put("a", "-"), splice("a", &[(7, secret.len() as u64, "")]), delete("a")] {
        let workspace = with(fixture, &[("a", "first"), ("b", "b")])?;
        made(&*workspace, &[put("a", &long), put("c", secret)])?;
        made(&*workspace, &[append("b", 1, secret), rename("c", "d")])?;
        made(&*workspace, &[put("b", "b"), delete("d")])?;
        promise!(holds(&*workspace)?, "what is in the workspace is found by searching");
        match erase(&*workspace, std::slice::from_ref(&erasing))? {
            Ok(_) => promise!(!holds(&*workspace)?, "what a commit erases is kept nowhere: {erasing:?}"),
            Err(error) => promise!(
                matches!(error, CommitError::Failed { error: StoreError::Denied(_), .. }),
                "a host that cannot erase denies the commit: {error:?}"
            ),
        }
    }
    Ok(())
}

/// Each step of a commit fails once, in each way.
fn faults(fixture: &dyn Fixture) -> Result<(), String> {
    let errors = [StoreError::Full, StoreError::Io("injected".to_owned()), StoreError::Denied("injected".to_owned())];
    for error in errors {
        let mut hits = 0;
        for step in 0.. {
            promise!(step < 100_000, "the fixture's faults come to an end");
            let workspace = with(fixture, &[("a", "one"), ("b", "two"), ("c", "three")])?;
            let store = workspace.store();
            let before = seen(store)?;
            let changes = [put("a", "1"), append("b", 3, "2"), delete("c"), put("d/e", "4")];
            let guard = acquire(&*workspace)?;
            workspace.fail(Some((step, error.clone())));
            let result = store.commit(&*guard, before.generation, &changes, &About::default());
            let is_over = workspace.is_failing();
            workspace.fail(None);
            drop(guard);
            let after = seen(store)?;
            let tree = [("a", "1"), ("b", "two2"), ("d/e", "4")].map(|(path, text)| (path, text.to_owned())).into();
            match &result {
                Err(_) => promise!(
                    after.has_files_of(&before) && after.generation >= before.generation,
                    "a commit that the medium fails did not happen: step {step}, {result:?}: {:?}",
                    after.texts(Area::Tree)
                ),
                Ok(committed) => promise!(
                    after.texts(Area::Tree) == tree && committed.generation == after.generation,
                    "a commit that is answered as made is made, whole: step {step}: {:?}",
                    after.texts(Area::Tree)
                ),
            }
            if let Err(CommitError::Failed { error: found, .. }) = &result {
                let is_told = std::mem::discriminant(found) == std::mem::discriminant(&error);
                promise!(is_told, "a failure of the medium is told as it is: {found:?} for {error:?}");
            }
            hits += usize::from(result.is_err());
            made(&*workspace, &[put("next", "x"), put("a", "next")])?;
            if is_over {
                promise!(result.is_ok(), "without a fault the commit is made: {result:?}");
                break;
            }
        }
        promise!(hits > 0, "the fixture's faults reach a commit: {error:?}");
    }
    Ok(())
}
