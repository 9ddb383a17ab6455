//! What crash tests interrupt, told to the tests and to the program that is killed (`--bin crash-child`) in one place:
//! commits, and what is made of commits; and what each commit must come to, by a model that knows nothing of journals.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use recollex::lock::{FileLock, Lock as _};
use recollex::maintenance::{self, Manifest};
use recollex::store::{
    About, Area, Change, Directory, Edit, Expect, Guard, Splice, Store as _, StoreError, UndoLimits,
};

/// What the child says when the commit with this number (from 1) has returned success.
pub const COMMITTED: &str = "committed";

/// What the child says just before it does what may be interrupted.
pub const READY: &str = "ready";

/// Files by area and path.
pub type Files = BTreeMap<(Area, String), String>;

/// What may go wrong where nothing is meant to.
pub type Done<T> = Result<T, Box<dyn Error>>;

/// What is done with a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Its commits are made, by a store that leaves nothing to take them back with.
    Bare,
    /// Its commits are made, by the store as it is shipped.
    Commit,
    /// Its last commit is taken back.
    Undo,
    /// Its last commit, taken back, is brought back.
    Redo,
    /// The workspace becomes what it was before its commits, from a backup of then.
    Restore,
}

impl Act {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Bare, Self::Commit, Self::Undo, Self::Redo, Self::Restore];

    /// Names it on the child's command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Commit => "commit",
            Self::Undo => "undo",
            Self::Redo => "redo",
            Self::Restore => "restore",
        }
    }

    /// The store that does it.
    #[must_use]
    pub fn store(self, root: &Path) -> Directory {
        let store = Directory::new(root);
        if self == Self::Bare { store } else { store.with_undo(UndoLimits::default()) }
    }

    /// Does it: the lock is taken, and `made` told after each commit. `backup` is a backup's file, for [`Act::Restore`].
    ///
    /// # Errors
    /// As the store does.
    pub fn perform(self, root: &Path, case: &Case, backup: &Path, made: &mut dyn FnMut(usize)) -> Done<()> {
        let (store, lock) = (self.store(root), FileLock::new(root));
        match self {
            Self::Bare | Self::Commit => {
                let guard = lock.acquire(0, "crash")?;
                for (number, changes) in (1..).zip(&case.commits) {
                    store.commit(&*guard, store.generation()?, changes, &About::new("crash", case.name))?;
                    made(number);
                }
            }
            Self::Undo => {
                store.undo(&*lock.acquire(0, "undo")?)?;
                made(1);
            }
            Self::Redo => {
                store.redo(&*lock.acquire(0, "redo")?)?;
                made(1);
            }
            Self::Restore => {
                let mut file = fs::File::open(backup)?;
                let manifest = maintenance::check(&mut file, &mut |_, _| {})?;
                restore(&store, &*lock.acquire(0, "restore")?, &mut file, &manifest)?;
                made(1);
            }
        }
        Ok(())
    }
}

/// As `recollex restore` does it.
fn restore(store: &Directory, guard: &dyn Guard, file: &mut fs::File, manifest: &Manifest) -> Done<()> {
    store.recover(guard)?;
    let plan = maintenance::plan(store, manifest, &mut |_, _| {})?;
    maintenance::restore(store, guard, file, manifest, &plan, &mut |_, _| {})?;
    Ok(())
}

/// Backs a workspace up, as `recollex backup` does it.
///
/// # Errors
/// As that fails.
pub fn backup(root: &Path, target: &Path, replace: bool) -> Done<Manifest> {
    let guard = FileLock::new(root).acquire(0, "backup")?;
    Ok(maintenance::backup(&Directory::new(root), &*guard, target, replace, &mut |_, _| {})?.manifest)
}

/// The case of this name, its first commit expecting what is there.
///
/// # Errors
/// There is none, or the workspace cannot be read.
pub fn case(name: &str, root: &Path) -> Done<Case> {
    let mut case = cases().into_iter().find(|case| case.name == name).ok_or("no such case")?;
    let store = Directory::new(root);
    for change in case.commits.first_mut().into_iter().flatten() {
        change.expect = match store.stat(change.area, &change.path) {
            Ok(entry) => Expect::Same(entry.stamp),
            Err(StoreError::NotFound) => Expect::Absent,
            Err(error) => return Err(error.into()),
        };
    }
    Ok(case)
}

/// One thing to interrupt: commits, one after the other, upon a workspace.
#[derive(Clone, Debug)]
pub struct Case {
    /// Names it on the child's command line.
    pub name: &'static str,
    /// Whether there is a workspace at all before; if not, the root does not exist.
    pub is_workspace: bool,
    /// The commits.
    pub commits: Vec<Vec<Change>>,
}

/// The workspace before: what another program wrote, so that modes differ from those of the store.
///
/// `sources/long.md` is longer than the end of a file that the journal proves an addition by.
#[must_use]
pub fn before() -> Files {
    let long: String = (0..300).map(|line| format!("line {line} of a long thread, größer als der Rest\n")).collect();
    [
        (Area::Tree, "core.md", "the core\n"),
        (Area::Tree, "sources/long.md", long.as_str()),
        (Area::Tree, "sources/short.md", "one line\n"),
        (Area::Tree, "sources/empty.md", ""),
        (Area::Tree, "topics/a.md", "alpha bravo charlie\n"),
        (Area::Tree, "topics/b.md", "delta\n"),
        (Area::Tree, "topics/alone/c.md", "the only file of its directory\n"),
        (Area::Runtime, "runtime.json", "{\"sessions\":{}}\n"),
        (Area::Runtime, "audit/1.jsonl", "{}\n"),
    ]
    .into_iter()
    .map(|(area, path, text)| ((area, path.to_owned()), text.to_owned()))
    .collect()
}

/// Writes files as a program that knows nothing of Recollex does.
///
/// # Errors
/// As the file system fails.
pub fn write(root: &Path, files: &Files) -> io::Result<()> {
    for ((area, path), text) in files {
        let path = match area {
            Area::Runtime => root.join(".scriptorium").join(path),
            _ => root.join(path),
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640))?;
    }
    Ok(())
}

/// What changes come to. They are known to be possible.
pub fn apply(files: &mut Files, changes: &[Change]) {
    for change in changes {
        let key = (change.area, change.path.clone());
        let old = files.get(&key).cloned().unwrap_or_default();
        match &change.edit {
            Edit::Put(text) => {
                files.insert(key, text.clone());
            }
            Edit::Append { text, .. } => {
                files.insert(key, old + text);
            }
            Edit::Splice(splices) => {
                let (mut new, mut at) = (String::new(), 0);
                for splice in splices {
                    let (from, to) = (splice.offset as usize, (splice.offset + splice.remove) as usize);
                    new.push_str(old.get(at..from).unwrap_or_default());
                    new.push_str(&splice.insert);
                    at = to;
                }
                new.push_str(old.get(at..).unwrap_or_default());
                files.insert(key, new);
            }
            Edit::Keep => {}
            Edit::Delete => {
                files.remove(&key);
            }
            Edit::MoveTo(to) => {
                files.remove(&key);
                files.insert((change.area, to.clone()), old);
            }
        }
    }
}

/// Every kind of edit, over what exists and what does not, alone and together.
#[must_use]
pub fn cases() -> Vec<Case> {
    let case = |name, changes| Case { name, is_workspace: true, commits: vec![changes] };
    let files = before();
    let length = |path: &str| files.get(&(Area::Tree, path.to_owned())).map_or(0, |text| text.len() as u64);
    let append = |path: &str, text: String| tree(path, Edit::Append { length: length(path), text });
    let addition: String = (0..120).map(|line| format!("line {line} of the addition: 汉字, ünïcode\n")).collect();
    let splices = vec![
        Splice { offset: 0, remove: 5, insert: "ALPHA AND MORE".to_owned() },
        Splice { offset: 6, remove: 0, insert: "inserted ".to_owned() },
        Splice { offset: 12, remove: 8, insert: String::new() },
    ];
    let archive = |path: &str, text: &str, count: u32| {
        vec![
            append(path, text.to_owned()),
            runtime("runtime.json", Edit::Put(format!("{{\"sessions\":{{\"s\":{count}}}}}\n"))),
        ]
    };
    let everything = || {
        vec![
            tree("new.md", put("new\n")),
            tree("made/for/this.md", put("in directories of its own\n")),
            tree("topics/b.md", put("replaced\n")),
            append("sources/long.md", addition.clone()),
            append("sources/fresh/thread.md", "first\n".to_owned()),
            tree("topics/a.md", Edit::Splice(splices.clone())),
            tree("sources/short.md", Edit::Delete),
            tree("topics/alone/c.md", Edit::MoveTo("moved/here.md".to_owned())),
            runtime("runtime.json", put("{\"sessions\":{\"s\":1}}\n")),
            runtime("audit/2.jsonl", put("{\"second\":true}\n")),
            runtime("audit/1.jsonl", Edit::Append { length: 3, text: "{\"first\":\"again\"}\n".to_owned() }),
        ]
    };
    vec![
        case("put-new", vec![tree("topics/new.md", put("new\n"))]),
        case("put-new-in-new-directories", vec![tree("topics/x/y/z.md", put("deep\n"))]),
        case("put-over", vec![tree("topics/a.md", put("replaced\n"))]),
        case("append", vec![append("sources/long.md", addition.clone())]),
        case("append-to-short", vec![append("sources/short.md", "another line\n".to_owned())]),
        case("append-to-empty", vec![append("sources/empty.md", "no longer empty\n".to_owned())]),
        case("append-new", vec![append("sources/new.md", "first line\n".to_owned())]),
        case("splice", vec![tree("topics/a.md", Edit::Splice(splices.clone()))]),
        case("delete", vec![tree("topics/b.md", Edit::Delete)]),
        case("delete-last-of-directory", vec![tree("topics/alone/c.md", Edit::Delete)]),
        case("move", vec![tree("topics/b.md", Edit::MoveTo("topics/c.md".to_owned()))]),
        case("move-between", vec![tree("topics/alone/c.md", Edit::MoveTo("sources/new/c.md".to_owned()))]),
        case("runtime", vec![runtime("runtime.json", put("{}\n"))]),
        case("archive", archive("sources/long.md", "one turn\n", 1)),
        case("everything", everything()),
        Case {
            name: "two",
            is_workspace: true,
            commits: vec![
                vec![
                    append("sources/short.md", "second\n".to_owned()),
                    append("sources/made.md", "made by the first\n".to_owned()),
                    tree("topics/b.md", put("first put\n")),
                ],
                vec![
                    tree("sources/short.md", Edit::Append { length: 16, text: "third\n".to_owned() }),
                    tree("sources/made.md", Edit::Append { length: 18, text: "added by the second\n".to_owned() }),
                    tree("topics/b.md", put("second put\n")),
                ],
            ],
        },
        Case {
            name: "first",
            is_workspace: false,
            commits: vec![vec![
                tree("sources/t.md", Edit::Append { length: 0, text: "the first turn\n".to_owned() }),
                runtime("runtime.json", put("{}\n")),
            ]],
        },
    ]
}

fn tree(path: &str, edit: Edit) -> Change {
    Change { area: Area::Tree, path: path.to_owned(), expect: Expect::Any, edit }
}

fn runtime(path: &str, edit: Edit) -> Change {
    Change { area: Area::Runtime, path: path.to_owned(), expect: Expect::Any, edit }
}

fn put(text: &str) -> Edit {
    Edit::Put(text.to_owned())
}
