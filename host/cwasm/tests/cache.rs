//! What the cache loads, and what it must not.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, SystemTime};

use recollex_cwasm::{Cache, Origin, Reason, Unusable, Wasm};
use wasmtime::{Config, Engine};

/// The smallest component there is: it has nothing in it. What is tested here does not depend on what is.
const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

struct Fixture {
    /// Holds the directory for as long as the test runs.
    above: tempfile::TempDir,
    engine: Engine,
}

impl Fixture {
    fn new() -> Self {
        Self { above: tempfile::tempdir().expect("a temporary directory"), engine: Engine::default() }
    }

    fn directory(&self) -> PathBuf {
        self.above.path().join("cache")
    }

    fn load(&self) -> Origin {
        self.load_with(&self.engine)
    }

    fn load_with(&self, engine: &Engine) -> Origin {
        Cache::new(self.directory()).component(engine, Wasm::new(EMPTY)).expect("a component").1
    }

    /// The one entry.
    fn entry(&self) -> PathBuf {
        let entries = files(&self.directory());
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries.into_iter().next().expect("an entry")
    }

    /// After something was done to the entry: it is passed over for a reason, replaced, and good again.
    fn replaced(&self) -> Reason {
        let Origin::Compiled { passed_over: Some(Unusable { path, reason }), kept: Ok(()) } = self.load() else {
            panic!("it was loaded, or not replaced");
        };
        assert_eq!(path, self.entry());
        assert_eq!(mode(&path), 0o600);
        assert!(matches!(self.load(), Origin::Cache), "the new entry is good");
        reason
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(directory).expect("the directory").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("its metadata").mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("to change the mode");
}

fn compiled_and_kept(origin: &Origin) -> bool {
    matches!(origin, Origin::Compiled { passed_over: None, kept: Ok(()) })
}

#[test]
fn first_compiles_then_loads() {
    let fixture = Fixture::new();
    assert!(compiled_and_kept(&fixture.load()));
    assert!(matches!(fixture.load(), Origin::Cache));
    assert_eq!(mode(&fixture.directory()), 0o700);
    assert_eq!(mode(&fixture.entry()), 0o600);
}

#[test]
fn what_is_no_component_is_an_error_and_leaves_nothing() {
    let fixture = Fixture::new();
    let cache = Cache::new(fixture.directory());
    assert!(cache.component(&fixture.engine, Wasm::new(b"\0asm\x01\0\0\0")).is_err());
    assert_eq!(files(&fixture.directory()), Vec::<PathBuf>::new());
}

#[test]
fn a_changed_byte_anywhere_is_noticed() {
    let fixture = Fixture::new();
    fixture.load();
    let entry = fixture.entry();
    let sound = fs::read(&entry).expect("the entry");
    // Code, magic, digest: first and last byte of each, and one in the middle of the code.
    let end = sound.len();
    for position in [0, end / 2, end - 49, end - 48, end - 33, end - 32, end - 1] {
        let mut damaged = sound.clone();
        damaged[position] ^= 1;
        fs::write(&entry, damaged).expect("to write");
        assert!(matches!(fixture.replaced(), Reason::Damaged), "byte {position}");
    }
}

#[test]
fn a_file_that_is_cut_or_longer_is_noticed() {
    let fixture = Fixture::new();
    fixture.load();
    let entry = fixture.entry();
    let sound = fs::read(&entry).expect("the entry");
    for length in [0, 1, 16, 47, 48, 49, sound.len() - 48, sound.len() - 1] {
        fs::write(&entry, &sound[..length]).expect("to write");
        assert!(matches!(fixture.replaced(), Reason::Damaged), "{length} bytes");
    }
    fs::write(&entry, [&*sound, b"\0"].concat()).expect("to write");
    assert!(matches!(fixture.replaced(), Reason::Damaged));
}

#[test]
fn an_entry_that_others_may_read_or_write_is_passed_over() {
    let fixture = Fixture::new();
    fixture.load();
    for bits in [0o644, 0o620, 0o602, 0o4600, 0o700] {
        set_mode(&fixture.entry(), bits);
        let reason = fixture.replaced();
        assert!(matches!(reason, Reason::Mode(found) if found == bits), "{bits:o}: {reason}");
    }
}

#[test]
fn an_entry_of_another_user_is_passed_over() {
    let fixture = Fixture::new();
    fixture.load();
    let other = rustix::fs::Uid::from_raw(12345);
    // Only the superuser can give a file away; elsewhere this state cannot come about by this user's doing.
    if rustix::fs::chown(fixture.entry(), Some(other), None).is_ok() {
        assert!(matches!(fixture.replaced(), Reason::Owner(12345)));
    }
}

#[test]
fn an_entry_behind_a_link_is_passed_over_and_the_target_left_alone() {
    let fixture = Fixture::new();
    fixture.load();
    let entry = fixture.entry();
    let target = fixture.above.path().join("target");
    fs::rename(&entry, &target).expect("to move");
    let before = fs::read(&target).expect("the target");
    symlink(&target, &entry).expect("a link");
    assert!(matches!(fixture.replaced(), Reason::Kind("regular file")));
    assert_eq!(fs::read(&target).expect("the target"), before);
}

#[test]
fn a_pipe_in_place_of_an_entry_does_not_block() {
    let fixture = Fixture::new();
    fixture.load();
    let entry = fixture.entry();
    fs::remove_file(&entry).expect("to remove");
    rustix::fs::mknodat(rustix::fs::CWD, &entry, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .expect("a pipe");
    assert!(matches!(fixture.replaced(), Reason::Kind("regular file")));
}

#[test]
fn a_directory_in_place_of_an_entry_costs_only_the_compiling() {
    let fixture = Fixture::new();
    fixture.load();
    let entry = fixture.entry();
    fs::remove_file(&entry).expect("to remove");
    fs::create_dir(&entry).expect("a directory");
    let Origin::Compiled { passed_over: Some(passed_over), kept: Err(kept) } = fixture.load() else {
        panic!("it cannot have been loaded or kept");
    };
    assert!(matches!(passed_over.reason, Reason::Kind("regular file")));
    assert!(matches!(kept.reason, Reason::System(_)));
    assert_eq!(files(&fixture.directory()), [entry], "no leftover");
}

#[test]
fn a_directory_that_others_may_write_in_is_not_used() {
    let fixture = Fixture::new();
    fixture.load();
    let before = fs::read(fixture.entry()).expect("the entry");
    for bits in [0o770, 0o702, 0o777] {
        set_mode(&fixture.directory(), bits);
        let Origin::Compiled { passed_over: None, kept: Err(unusable) } = fixture.load() else {
            panic!("{bits:o} was used");
        };
        assert_eq!(unusable.path, fixture.directory());
        assert!(matches!(unusable.reason, Reason::Mode(found) if found == bits));
    }
    assert_eq!(fs::read(fixture.entry()).expect("the entry"), before);
    set_mode(&fixture.directory(), 0o755);
    assert!(matches!(fixture.load(), Origin::Cache), "others may look");
}

#[test]
fn a_directory_behind_a_link_is_not_used() {
    let fixture = Fixture::new();
    let real = fixture.above.path().join("real");
    fs::create_dir(&real).expect("a directory");
    set_mode(&real, 0o700);
    symlink(&real, fixture.directory()).expect("a link");
    let Origin::Compiled { passed_over: None, kept: Err(unusable) } = fixture.load() else { panic!("it was used") };
    assert!(matches!(unusable.reason, Reason::Kind("directory")), "{unusable}");
    assert_eq!(files(&real), Vec::<PathBuf>::new());
}

#[test]
fn without_a_directory_it_works_all_the_same() {
    let fixture = Fixture::new();
    // Nothing can be made below a file.
    File::create(fixture.directory()).expect("a file");
    let cache = Cache::new(fixture.directory().join("below"));
    let (_, origin) = cache.component(&fixture.engine, Wasm::new(EMPTY)).expect("a component");
    assert!(matches!(origin, Origin::Compiled { passed_over: None, kept: Err(_) }));
}

#[test]
fn directories_above_it_are_made() {
    let fixture = Fixture::new();
    let cache = Cache::new(fixture.directory().join("recollex").join("cwasm"));
    let (_, origin) = cache.component(&fixture.engine, Wasm::new(EMPTY)).expect("a component");
    assert!(compiled_and_kept(&origin));
    assert_eq!(mode(cache.directory()), 0o700);
}

#[test]
fn engines_that_compile_otherwise_have_entries_of_their_own() {
    let fixture = Fixture::new();
    let other = Engine::new(Config::new().epoch_interruption(true)).expect("an engine");
    assert!(compiled_and_kept(&fixture.load()));
    let first = fixture.entry();
    assert!(compiled_and_kept(&fixture.load_with(&other)));
    let second = files(&fixture.directory()).into_iter().find(|file| *file != first).expect("a second entry");
    assert!(matches!(fixture.load(), Origin::Cache));
    assert!(matches!(fixture.load_with(&other), Origin::Cache));

    // Even under the other's name, with a digest that is right, the code does not get past the engine.
    fs::copy(&second, &first).expect("to copy");
    let Origin::Compiled { passed_over: Some(passed_over), kept: Ok(()) } = fixture.load() else {
        panic!("code of another engine was loaded");
    };
    assert!(matches!(passed_over.reason, Reason::Engine(_)), "{passed_over}");
}

#[test]
fn writers_at_the_same_time_leave_one_sound_entry() {
    let fixture = Fixture::new();
    const WRITERS: usize = 8;
    let together = Barrier::new(WRITERS);
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                together.wait();
                match fixture.load() {
                    Origin::Cache | Origin::Compiled { passed_over: None, kept: Ok(()) } => {}
                    other => panic!("{other:?}"),
                }
            });
        }
    });
    fixture.entry();
    assert!(matches!(fixture.load(), Origin::Cache));
}

#[test]
fn old_entries_go_and_other_files_stay() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.directory()).expect("a directory");
    set_mode(&fixture.directory(), 0o700);
    let make = |name: &str, age: u64| {
        let file = File::create(fixture.directory().join(name)).expect("a file");
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).expect("to set its time");
    };
    for number in 0..20 {
        make(&format!("{number:064x}.cwasm"), 100 + number);
    }
    make("notes.txt", 1_000_000);
    make(&format!("{:063x}.cwasm", 1), 1_000_000);
    make(".new-1-1", 1_000_000);
    make(".new-1-2", 10);

    assert!(compiled_and_kept(&fixture.load()));
    assert!(matches!(fixture.load(), Origin::Cache), "the new one stays");
    let left: Vec<String> = files(&fixture.directory())
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    let has = |name: &str| left.iter().any(|left| left == name);
    assert!(has("notes.txt") && has(&format!("{:063x}.cwasm", 1)), "not ours: {left:?}");
    assert!(!has(".new-1-1"), "an old leftover");
    assert!(has(".new-1-2"), "perhaps still being written");
    // The fifteen youngest of the twenty.
    for number in 0..20 {
        assert_eq!(has(&format!("{number:064x}.cwasm")), number < 15, "{number}");
    }
}
