//! Workspaces to interrupt, and the one question about them afterwards: which state are they in?

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use recollex::lock::{FileLock, Lock as _};
use recollex::store::{About, Area, Change, Directory, Edit, Expect, Store as _, UndoError};
use recollex_tests::crash::{self, Act, Case, Files};

/// Below a root: path to mode and, for a file, content. Without what is the store's own.
type Raw = BTreeMap<PathBuf, (u32, Option<Vec<u8>>)>;

/// What a workspace may be in after an interruption.
pub struct State {
    pub generation: u64,
    /// As readers see it.
    pub files: Files,
    /// As other programs see it, once nothing is pending.
    raw: Raw,
}

/// An act upon a case, with the workspace before it and all states on its way.
pub struct Template {
    pub act: Act,
    pub case: Case,
    directory: tempfile::TempDir,
    /// The one before, and the one after each commit.
    pub states: Vec<State>,
    /// For each of them, the files that taking the last commit back leads to.
    back: Vec<Files>,
    /// How often all that could be taken back after an interruption was.
    pub taken_back: AtomicUsize,
}

/// What interrupted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The death of the process.
    Death,
    /// A failure of power.
    Power,
}

/// The program that is killed.
pub fn child() -> Command {
    Command::new(env!("CARGO_BIN_EXE_crash-child"))
}

/// A directory for workspaces whose medium does not matter: in memory, where there is such a place. The death of a
/// process loses nothing that the kernel has.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

impl Template {
    /// An act upon all cases.
    pub fn all(act: Act) -> Vec<Self> {
        crash::cases().into_iter().map(|case| Self::new(act, case)).collect()
    }

    /// An act upon the cases of these names.
    pub fn of(act: Act, names: &[&str]) -> Vec<Self> {
        let cases: Vec<_> = crash::cases().into_iter().filter(|case| names.contains(&case.name)).collect();
        assert_eq!(cases.len(), names.len(), "{names:?}");
        cases.into_iter().map(|case| Self::new(act, case)).collect()
    }

    fn new(act: Act, case: Case) -> Self {
        let template = Self {
            act,
            case,
            directory: scratch(),
            states: Vec::new(),
            back: Vec::new(),
            taken_back: AtomicUsize::new(0),
        };
        let mut files = Files::new();
        if template.case.is_workspace {
            files = crash::before();
            crash::write(&template.root(), &files).unwrap();
            // One file is the store's, and the generation is not the first.
            let text = files[&(Area::Tree, "topics/b.md".to_owned())].clone();
            template.commit(&template.root(), &[put("topics/b.md", Expect::Any, &text)]);
        }
        // What happens before the act, in the act's own way: commits, their taking back, a backup of the state before.
        let before = files.clone();
        let mut after = before.clone();
        template.case.commits.iter().for_each(|changes| crash::apply(&mut after, changes));
        let perform = |act: Act, root: &Path| {
            act.perform(root, &template.case, &template.backup(), &mut |_| {})
                .unwrap_or_else(|error| panic!("{error}"));
        };
        match act {
            Act::Bare | Act::Commit => {}
            Act::Undo => perform(Act::Commit, &template.root()),
            Act::Redo => {
                perform(Act::Commit, &template.root());
                perform(Act::Undo, &template.root());
            }
            Act::Restore => {
                crash::backup(&template.root(), &template.backup(), false).unwrap();
                perform(Act::Commit, &template.root());
            }
        }
        // The states on the way, each made without interruption, and held against the model.
        let aside = scratch();
        let root = aside.path().join("w");
        template.copy_to(&root);
        let mut states = Vec::new();
        let mut back = vec![before.clone()];
        match act {
            Act::Bare | Act::Commit => {
                states.push(state(&root, &files));
                for changes in &template.case.commits {
                    back.push(files.clone());
                    crash::apply(&mut files, changes);
                    template.commit(&root, changes);
                    states.push(state(&root, &files));
                }
            }
            Act::Undo | Act::Redo | Act::Restore => {
                let restored: Files = after
                    .iter()
                    // No backup holds these, and no restore touches them.
                    .filter(|((area, path), _)| *area == Area::Runtime && path.starts_with("audit/"))
                    .chain(before.iter().filter(|((area, path), _)| *area == Area::Tree || path == "runtime.json"))
                    .map(|(key, text)| (key.clone(), text.clone()))
                    .collect();
                let (from, to, then) = match act {
                    Act::Redo => (&before, &after, &before),
                    Act::Undo => (&after, &before, &before),
                    _ => (&after, &restored, &after),
                };
                states.push(state(&root, from));
                perform(act, &root);
                states.push(state(&root, to));
                back.push(then.clone());
            }
        }
        Self { states, back, ..template }
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("w")
    }

    /// Of the workspace before the commits, for [`Act::Restore`].
    fn backup(&self) -> PathBuf {
        self.directory.path().join("backup.tar")
    }

    /// For people.
    pub fn name(&self) -> String {
        format!("{} {}", self.act.name(), self.case.name)
    }

    /// How many commits the act makes.
    pub fn commits(&self) -> usize {
        self.states.len() - 1
    }

    /// The process that does it.
    pub fn child(&self, when: &str, root: &Path) -> Command {
        let mut command = child();
        command.args([when, self.act.name()]).arg(root).arg(self.case.name).arg(self.backup());
        command
    }

    /// Commits, uninterrupted.
    fn commit(&self, root: &Path, changes: &[Change]) {
        let store = self.act.store(root);
        let guard = FileLock::new(root).acquire(0, "test").unwrap();
        store.commit(&*guard, store.generation().unwrap(), changes, &About::default()).unwrap();
    }

    /// Makes the workspace before, at a path where nothing is.
    pub fn copy_to(&self, root: &Path) {
        if self.root().exists() {
            copy(&self.root(), root);
        }
    }

    /// Which state an interrupted workspace is in: what a reader sees without the lock, and, the same, what is there
    /// after recovery. At least `reported` commits have returned. Everything that may be asked of it is asked.
    pub fn settle(&self, root: &Path, after: After, reported: usize, what: &str) -> usize {
        let reader = Directory::new(root);
        let seen = see(&reader);
        let generation = reader.generation().unwrap();
        let index = self
            .states
            .iter()
            .position(|state| state.files == seen && state.generation == generation)
            .unwrap_or_else(|| panic!("{what}: generation {generation} with {seen:#?} in {}", preserve(root)));
        let state = &self.states[index];
        assert!(index >= reported, "{what}: state {index} after {reported} commits have returned, {}", preserve(root));

        // The dead hold no lock, and what they began is completed to what was seen.
        let lock = FileLock::new(root);
        let guard = lock.acquire(0, "after").unwrap_or_else(|error| panic!("{what}: {error}"));
        let recovery = Directory::new(root)
            .recover(&*guard)
            .unwrap_or_else(|error| panic!("{what}: {error} in {}", preserve(root)));
        assert!(!recovery.damaged && recovery.kept == 0, "{what}: {recovery:?} in {}", preserve(root));
        let mut there = raw(root);
        if after == After::Power {
            // Directories left empty may go; nobody waits for the medium to take that in.
            there.retain(|path, _| state.raw.contains_key(path) || !self.is_left_empty(root, path));
        }
        assert!(
            there == state.raw,
            "{what}: seen was state {index}, there is {} in {}",
            differences(&state.raw, &there),
            preserve(root)
        );
        assert!(!reader.is_unfinished().unwrap(), "{what}");
        assert_eq!((see(&reader), reader.generation().unwrap()), (seen, generation), "{what}: the same reader");

        // Work goes on.
        let more = put("after/the crash.md", Expect::Absent, "it goes on\n");
        let made = self
            .act
            .store(root)
            .commit(&*guard, generation, std::slice::from_ref(&more), &About::default())
            .unwrap_or_else(|error| panic!("{what}: {error} in {}", preserve(root)));
        assert_eq!(made.generation, generation + 1, "{what}");
        let mut files = state.files.clone();
        crash::apply(&mut files, &[more]);
        assert!(see(&Directory::new(root)) == files, "{what}: after one more commit, in {}", preserve(root));
        assert_eq!(reader.kept().unwrap(), [], "{what}");
        self.take_back(root, &*guard, index, after, what);
        drop(guard);

        // Nothing is left over.
        let own = root.join(".scriptorium/recollex");
        let mut left = names(&own);
        left.retain(|name| name != "undo" || self.act == Act::Bare);
        assert_eq!(left, ["journal"], "{what}: left over in {}", preserve(root));
        let notes = names(&own.join("undo"));
        let is_noted = |generation: &str| notes.iter().any(|name| name.starts_with(&format!("{generation}.")));
        for name in &notes {
            let is_right = name.ends_with(".note") && name.as_bytes()[0].is_ascii_digit()
                || name.ends_with(".old") && name.split_once('-').is_some_and(|(of, _)| is_noted(of));
            assert!(is_right, "{what}: {name} left over in {}", preserve(root));
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode(&own), mode(&own.join("journal"))), (0o700, 0o600), "{what}");
        assert_eq!(mode(&root.join(".scriptorium/write.lock")), 0o600, "{what}");
        index
    }
}

impl Template {
    /// The commit after the interruption is taken back, and then the one that was interrupted, or, if that did not happen,
    /// the one before: to exactly what was there. After a failure of power there may be nothing left to do it with.
    fn take_back(&self, root: &Path, guard: &dyn recollex::store::Guard, index: usize, after: After, what: &str) {
        if self.act == Act::Bare {
            return;
        }
        let store = self.act.store(root);
        for (which, expected) in
            [("the commit after", &self.states[index].files), ("the last commit", &self.back[index])]
        {
            match store.undo(guard) {
                Ok(_) => assert!(see(&store) == *expected, "{what}: {which} taken back, in {}", preserve(root)),
                // Where nobody died there was perhaps nothing to take back, and after a loss nothing to do it with.
                Err(UndoError::Nothing) if after == After::Power || !self.case.is_workspace => return,
                Err(UndoError::Changed(_)) if after == After::Power => return,
                Err(error) => panic!("{what}: {which} cannot be taken back: {error}, in {}", preserve(root)),
            }
        }
        self.taken_back.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a path is an empty directory that the workspace had before.
    fn is_left_empty(&self, root: &Path, path: &Path) -> bool {
        let was_there = self.states[0].raw.get(path).is_some_and(|(_, content)| content.is_none());
        was_there && fs::read_dir(root.join(path)).is_ok_and(|mut entries| entries.next().is_none())
    }
}

/// Keeps a workspace that should not be as it is, for whoever looks into it, and says where.
fn preserve(root: &Path) -> String {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crashed");
    // The last one counts.
    let _ = fs::remove_dir_all(&kept);
    copy(root, &kept);
    kept.display().to_string()
}

/// The names in a directory, sorted; none if there is no directory.
fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn put(path: &str, expect: Expect, text: &str) -> Change {
    Change { area: Area::Tree, path: path.to_owned(), expect, edit: Edit::Put(text.to_owned()) }
}

fn state(root: &Path, files: &Files) -> State {
    let store = Directory::new(root);
    assert_eq!(&see(&store), files, "without any interruption");
    State { generation: store.generation().unwrap(), files: files.clone(), raw: raw(root) }
}

/// What a reader sees in the two areas that commits change.
pub fn see(store: &Directory) -> Files {
    let mut files = Files::new();
    for area in [Area::Tree, Area::Runtime] {
        let page = store.entries(area, "", None, 0).unwrap();
        assert_eq!(page.next, None);
        for entry in page.entries {
            let chunk = store.read_bytes(area, &entry.path, Some(&entry.stamp), 0, 1 << 20).unwrap();
            assert!(chunk.eof && chunk.data.len() as u64 == entry.stamp.size, "{}", entry.path);
            files.insert((area, entry.path), String::from_utf8(chunk.data).unwrap());
        }
    }
    files
}

/// What another program sees.
fn raw(root: &Path) -> Raw {
    fn visit(root: &Path, directory: &Path, found: &mut Raw) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        for entry in entries {
            let path = entry.unwrap().path();
            let relative = path.strip_prefix(root).unwrap();
            if relative == Path::new(".scriptorium/write.lock") || relative == Path::new(".scriptorium/recollex") {
                continue;
            }
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = metadata.is_file().then(|| fs::read(&path).unwrap());
            // It comes with the lock, before any commit.
            if relative != Path::new(".scriptorium") {
                found.insert(relative.to_owned(), (metadata.permissions().mode(), content));
            }
            if metadata.is_dir() {
                visit(root, &path, found);
            }
        }
    }
    let mut found = Raw::new();
    visit(root, root, &mut found);
    found
}

fn differences(expected: &Raw, there: &Raw) -> String {
    let text = |found: Option<&(u32, Option<Vec<u8>>)>| match found {
        Some((mode, Some(content))) => format!("{mode:o} {:?}", String::from_utf8_lossy(content)),
        Some((mode, None)) => format!("{mode:o}"),
        None => "nothing".to_owned(),
    };
    expected
        .keys()
        .chain(there.keys().filter(|path| !expected.contains_key(*path)))
        .filter(|path| expected.get(*path) != there.get(*path))
        .map(|path| format!("{}: {} for {}\n", path.display(), text(there.get(path)), text(expected.get(path))))
        .collect()
}

/// Copies a directory as `cp -a` does: modes and times, by which the journal knows files.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
            times(&path, &target);
        }
    }
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    times(from, to);
}

fn times(from: &Path, to: &Path) {
    let modified = fs::metadata(from).unwrap().modified().unwrap();
    File::open(to).unwrap().set_times(FileTimes::new().set_modified(modified)).unwrap();
}
