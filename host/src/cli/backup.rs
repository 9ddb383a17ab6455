//! `recollex backup`: a consistent copy of the workspace in one file.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use recollex::maintenance;
use recollex::store::Directory;
use serde::Serialize;

use super::args::Backup;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::Unit;
use super::terminal::{bytes, count};

#[derive(Serialize)]
struct Document<'a> {
    path: String,
    workspace: Option<&'a str>,
    generation: u64,
    time: &'a str,
    files: usize,
    bytes: u64,
    left_out: &'a [String],
}

/// Runs the verb.
pub fn run(args: &Backup, context: &Context) -> Result<Exit, Failure> {
    context.owner_only("backup")?;
    let root = &context.setup.workspace;
    if !root.is_dir() {
        return Err(Failure::not_found("no-workspace", "there is no workspace to back up")
            .at_path(root.display().to_string())
            .next("name another: --workspace DIR"));
    }
    let store = Directory::new(root);
    let target = target(&args.target, &store)?;
    let guard = context.lock_to_read("backup")?;
    let backup = {
        let progress = context.remarks.progress("backup", 1, Unit::Bytes);
        maintenance::backup(&store, &*guard, &target, args.force, &mut |done, total| progress.at(done, total))
            .map_err(|error| Failure::backup(error, &target))?
    };
    drop(guard);
    let (manifest, shown) = (&backup.manifest, backup.path.display().to_string());
    if context.out.json {
        context.out.document(&Document {
            path: shown,
            workspace: manifest.workspace.as_deref(),
            generation: manifest.generation,
            time: &manifest.time,
            files: manifest.files.len(),
            bytes: manifest.bytes(),
            left_out: &backup.left_out,
        });
    } else {
        context.out.line(&format!(
            "Backed up {}, {}, to {}",
            count(manifest.files.len() as u64, "file", "files"),
            bytes(manifest.bytes()),
            context.out.look.foreign(&shown)
        ));
    }
    left_out(context, &backup.left_out);
    Ok(Exit::DONE)
}

/// Says what a backup does not hold.
pub fn left_out(context: &Context, paths: &[String]) {
    for path in paths {
        context.warn(&format!("{path} is no regular file, or its name is not UTF-8: it is not in the backup"));
    }
}

/// The file to make: beside what is there in a directory, and never in the workspace, which it would then be part of.
pub fn target(given: &Path, store: &Directory) -> Result<PathBuf, Failure> {
    if given.as_os_str().as_encoded_bytes().ends_with(b"/") && !given.exists() {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(given);
        made.map_err(|error| Failure::io("make the directory", given, &error))?;
    }
    let path = if given.is_dir() { given.join(maintenance::name(store)) } else { given.to_owned() };
    let path = std::path::absolute(&path).map_err(|error| Failure::io("resolve this path", &path, &error))?;
    let directory = path.parent().unwrap_or(&path);
    let real = directory.canonicalize().map_err(|error| Failure::io("write there", directory, &error))?;
    if store.root().canonicalize().is_ok_and(|root| real.starts_with(root)) {
        return Err(Failure::usage("inside-workspace", "a backup cannot lie in the workspace it is a copy of")
            .at_path(path.display().to_string())
            .next("name a file or a directory elsewhere"));
    }
    Ok(path)
}
