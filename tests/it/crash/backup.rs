//! A backup that is interrupted: its file is there, whole, or not at all, and the workspace is as it was.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use recollex::maintenance::{self, Manifest, Member};
use recollex_tests::crash::{self, Act};
use recollex_tests::trace::Traced;

use super::kills::{kill_at, reported, stops};
use super::power::{NARROW, failures, try_each};
use super::record;
use super::report;
use super::share;
use super::workspace::{Template, child, scratch};
use crate::support::snapshot;

/// Where the workspace is, below a directory, and the backup beside it.
const WORKSPACE: &str = "w";
const TARGET: &str = "b.tar";

fn backup(top: &Path) -> std::process::Command {
    let mut command = child();
    command.args(["traced", "backup"]).arg(top.join(WORKSPACE)).arg(top.join(TARGET));
    command
}

/// The file if it is there, and then it is whole, for its owner alone.
fn whole(top: &Path, what: &str) -> Option<Vec<Member>> {
    let mut file = File::open(top.join(TARGET)).ok()?;
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o7777, 0o600, "{what}");
    let manifest: Manifest =
        maintenance::check(&mut file, &mut |_, _| {}).unwrap_or_else(|error| panic!("{what}: {error}"));
    Some(manifest.files)
}

/// Another backup can be made, and nothing of the first is in its way.
fn goes_on(top: &Path, files: &[Member], what: &str) {
    let made = crash::backup(&top.join(WORKSPACE), &top.join("again.tar"), false);
    assert_eq!(made.unwrap_or_else(|error| panic!("{what}: {error}")).files, files, "{what}");
}

/// A workspace, and what a backup of it holds.
fn prepare() -> (Template, Vec<Member>) {
    let template = Template::of(Act::Bare, &["everything"]).remove(0);
    let top = scratch();
    template.copy_to(&top.path().join(WORKSPACE));
    let files = crash::backup(&top.path().join(WORKSPACE), &top.path().join(TARGET), false).unwrap().files;
    assert!(files.len() > 5);
    (template, files)
}

#[test]
fn killed_at_every_system_call_a_backup_is_whole_or_not_there() {
    let (template, files) = prepare();
    let first = scratch();
    template.copy_to(&first.path().join(WORKSPACE));
    let (count, _) = stops(Traced::start(&mut backup(first.path())));
    let spots: Vec<_> = (0..std::thread::available_parallelism().map_or(1, usize::from)).map(|_| scratch()).collect();
    let (absent, there) = (AtomicUsize::new(0), AtomicUsize::new(0));
    share(&(0..count).step_by(2).collect::<Vec<_>>(), |thread, &stop| {
        let top = spots[thread].path().join("top");
        let _ = fs::remove_dir_all(&top);
        fs::create_dir(&top).unwrap();
        template.copy_to(&top.join(WORKSPACE));
        let before = snapshot(&top.join(WORKSPACE).join("topics"));
        let what = format!("backup killed at stop {stop}");
        let Some(said) = kill_at(Traced::start(&mut backup(&top)), stop) else { return };
        match whole(&top, &what) {
            Some(found) => {
                assert_eq!(found, files, "{what}");
                there.fetch_add(1, Ordering::Relaxed);
            }
            None => {
                assert_eq!(reported(&said), 0, "{what}: it was reported as made");
                absent.fetch_add(1, Ordering::Relaxed);
            }
        }
        assert!(snapshot(&top.join(WORKSPACE).join("topics")) == before, "{what}");
        goes_on(&top, &files, &what);
    });
    let (absent, there) = (absent.into_inner(), there.into_inner());
    report(&format!("{} kills of backups: {absent} times none, {there} times a whole one", absent + there));
    assert!(absent > 50 && there > 5, "{absent} {there}");
}

#[test]
fn a_medium_without_power_has_a_whole_backup_or_none() {
    let (template, files) = prepare();
    let top = scratch();
    template.copy_to(&top.path().join(WORKSPACE));
    let recording = record::process(top.path(), &mut backup(top.path()));
    let found = failures(&recording, 0, NARROW, "backup");
    let (absent, there) = (AtomicUsize::new(0), AtomicUsize::new(0));
    try_each(&found, |top, found| match whole(top, &found.what) {
        Some(members) => {
            assert_eq!(members, files, "{}", found.what);
            there.fetch_add(1, Ordering::Relaxed);
        }
        None => {
            assert_eq!(found.reported, 0, "{}: it was reported as made", found.what);
            absent.fetch_add(1, Ordering::Relaxed);
        }
    });
    let (absent, there) = (absent.into_inner(), there.into_inner());
    report(&format!(
        "{} states of a medium with a backup: {absent} times none, {there} times a whole one",
        found.len()
    ));
    assert!(absent > 20 && there > 5, "{absent} {there}");
}
