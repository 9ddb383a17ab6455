//! Builds wasm guests from a build script and wraps them as components.
//!
//! Used by `host/build.rs` and `tests/build.rs`. Knows how to call cargo for another target without confusing the cargo
//! that is running, and nothing about what the guests do.
//!
//! Three traps shape it. The inner build needs a target directory of its own that stays the same over all outer builds:
//! in `OUT_DIR` every `check` and `clippy` would build the guests again. The outer build's flags and wrappers must not
//! reach it. And a missing target must be said in words, because cargo's own message names a missing crate `core`.

// Printing is how a build script speaks to cargo.
#![allow(clippy::print_stdout)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

/// The target of every guest: nothing of WASI comes in from the standard library, and the verifier needs no import.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// A guest crate, and where to find a finished component instead of building it.
#[derive(Clone, Copy, Debug)]
pub struct Guest {
    /// Cargo package name.
    pub package: &'static str,
    /// Environment variable that may name a ready component file. It is also what the path is published as.
    pub variable: &'static str,
    /// What it is optimised for.
    pub aim: Aim,
}

/// What a guest is optimised for, beyond what the profile `guest` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Speed. Functions keep their names, for back traces.
    Speed,
    /// Size, for what a page has to load: everything but the search for bytes, the check of UTF-8 and hashing is optimised for
    /// size, at the cost of about a fifth of the speed, and nothing in it has a name.
    Size,
}

impl Aim {
    /// Arguments for cargo, and behind them for the compiler of the guest's own crate.
    fn arguments(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Speed => (&[], &[]),
            Self::Size => (
                &[
                    "--config",
                    "profile.guest.package.recollex-core.opt-level=\"z\"",
                    "--config",
                    "profile.guest.package.base64.opt-level=\"z\"",
                    "--config",
                    "profile.guest.package.serde_core.opt-level=\"z\"",
                    "--config",
                    "profile.guest.package.serde_json.opt-level=\"z\"",
                ],
                &["-Cstrip=symbols"],
            ),
        }
    }
}

/// The components that are shipped.
pub const SHIPPED: [Guest; 2] = [
    Guest { package: "recollex-component", variable: "RECOLLEX_MEMORY_COMPONENT", aim: Aim::Speed },
    Guest { package: "recollex-verifier", variable: "RECOLLEX_VERIFIER_COMPONENT", aim: Aim::Size },
];

/// What those are made of, as paths in the workspace.
pub const SOURCES: [&str; 4] = ["guest", "wit", "Cargo.lock", "Cargo.toml"];

/// Builds `guests`, each by itself because together they would get the union of their features, and publishes each
/// component's path to the crate being built as the environment variable [`Guest::variable`], to be read by `env!` or
/// `include_bytes!(env!(…))`, and its SHA-256, in hexadecimal digits, as the variable of that name with `_SHA256` behind it.
///
/// A guest whose variable is set in the environment is not built; that file is taken as it is, after a look that it is a
/// component at all. `watched` are the paths, relative to the workspace root, whose change asks for a new build.
///
/// # Errors
/// A sentence for people, meant for `cargo::error=`.
pub fn provide(guests: &[Guest], watched: &[&str]) -> Result<(), String> {
    let root = workspace_root()?;
    for path in watched {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    for guest in guests {
        println!("cargo::rerun-if-env-changed={}", guest.variable);
        let component = match env::var_os(guest.variable) {
            Some(path) => ready_component(guest, Path::new(&path))?,
            None => wrap(&compile(&root, guest)?, guest)?,
        };
        let bytes = fs::read(&component).map_err(|error| format!("{}: {error}", component.display()))?;
        println!("cargo::rustc-env={}={}", guest.variable, component.display());
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        println!("cargo::rustc-env={}_SHA256={digest}", guest.variable);
    }
    Ok(())
}

/// The directory of the workspace's `Cargo.toml`: the nearest one above the crate being built that has a lock file.
fn workspace_root() -> Result<PathBuf, String> {
    let manifest =
        env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set: run this from a build script")?;
    Path::new(&manifest)
        .ancestors()
        .find(|dir| dir.join("Cargo.lock").is_file())
        .map(Path::to_path_buf)
        .ok_or_else(|| "no Cargo.lock above the crate being built".to_owned())
}

fn ready_component(guest: &Guest, path: &Path) -> Result<PathBuf, String> {
    let path =
        fs::canonicalize(path).map_err(|error| format!("{} names {}: {error}", guest.variable, path.display()))?;
    println!("cargo::rerun-if-changed={}", path.display());
    let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    // A component's header: the wasm magic, then version 13 in layer 1. A core module has version 1 in layer 0.
    if bytes.starts_with(b"\0asm\x0d\0\x01\0") {
        Ok(path)
    } else {
        Err(format!("{} names {}, which is not a wasm component", guest.variable, path.display()))
    }
}

/// Builds the guest's core module. Answers with the directory it lies in.
fn compile(root: &Path, guest: &Guest) -> Result<PathBuf, String> {
    require_target()?;
    let target_dir = target_dir(root);
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let (of_cargo, of_compiler) = guest.aim.arguments();
    let mut command = Command::new(cargo);
    command
        .current_dir(root)
        .args(["rustc", "--locked", "--profile", "guest", "--target", TARGET, "--target-dir"])
        .arg(&target_dir)
        .args(["--package", guest.package])
        .args(of_cargo)
        .arg("--")
        .args(of_compiler);
    for (name, _) in env::vars_os() {
        let name_text = name.to_string_lossy();
        let of_outer_build = matches!(
            &*name_text,
            "RUSTFLAGS"
                | "RUSTDOCFLAGS"
                | "RUSTC_WRAPPER"
                | "RUSTC_WORKSPACE_WRAPPER"
                | "CARGO_BUILD_TARGET"
                | "CARGO_TARGET_DIR"
        ) || name_text.starts_with("CARGO_PROFILE_")
            || name_text.starts_with("CARGO_FEATURE_")
            || name_text.starts_with("CARGO_CFG_");
        if of_outer_build {
            command.env_remove(&name);
        }
    }
    // memchr and UTF-8 checks are several times faster with vectors, which every runtime we name has had for years.
    command.env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+simd128");
    let output = command.output().map_err(|error| format!("cargo could not be started: {error}"))?;
    if !output.status.success() {
        for line in String::from_utf8_lossy(&output.stderr).lines() {
            println!("cargo::warning={line}");
        }
        return Err(format!("{} did not build ({}); cargo's words are above", guest.package, output.status));
    }
    Ok(target_dir.join(TARGET).join("guest"))
}

/// Where the inner build keeps its files: beside the outer build's, so that `cargo clean` removes both.
fn target_dir(root: &Path) -> PathBuf {
    let outer = env::var_os("OUT_DIR").map(PathBuf::from);
    // OUT_DIR is <target>[/<triple>]/<profile>/build/<crate>-<hash>/out.
    let above_build = outer.as_deref().and_then(|out| out.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file()));
    above_build.map_or_else(|| root.join("target"), Path::to_path_buf).join("guest-wasm")
}

/// A component without the section that names its parts for whoever takes it apart. None if it is cut short.
fn without_names(component: &[u8]) -> Option<Vec<u8>> {
    const HEADER: usize = 8;
    const NAMES: &[u8] = b"component-name";
    let (header, mut rest) = component.split_at_checked(HEADER)?;
    let mut out = header.to_vec();
    while let Some((id, behind)) = rest.split_first() {
        let (size, content) = number(behind)?;
        let (content, next) = content.split_at_checked(size)?;
        let is_names = *id == 0 && number(content).is_some_and(|(length, name)| name.get(..length) == Some(NAMES));
        if !is_names {
            out.extend_from_slice(rest.get(..rest.len() - next.len())?);
        }
        rest = next;
    }
    Some(out)
}

/// A number as wasm writes it (LEB128), and what comes behind.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let (written, rest) = bytes.split_at_checked(length)?;
    let value = written
        .iter()
        .rev()
        .try_fold(0_usize, |value, byte| value.checked_mul(0x80)?.checked_add(usize::from(byte & 0x7f)))?;
    Some((value, rest))
}

fn require_target() -> Result<(), String> {
    if has_target() {
        return Ok(());
    }
    // rustup installs it where it may; where it is absent or told not to, say what to do.
    let added = Command::new("rustup").args(["target", "add", TARGET]).output();
    if added.is_ok_and(|output| output.status.success()) && has_target() {
        return Ok(());
    }
    Err(format!("the Rust target {TARGET} is not installed and could not be added; run: rustup target add {TARGET}"))
}

fn has_target() -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let Ok(output) = Command::new(rustc).args(["--print", "sysroot"]).output() else { return false };
    let sysroot = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Path::new(&sysroot).join("lib/rustlib").join(TARGET).join("lib").is_dir()
}

/// Makes a component of the core module that cargo left, if that is newer than the component of last time.
fn wrap(directory: &Path, guest: &Guest) -> Result<PathBuf, String> {
    let stem = guest.package.replace('-', "_");
    let module_path = directory.join(format!("{stem}.wasm"));
    let component_path = directory.join(format!("{stem}.component.wasm"));
    let module = fs::read(&module_path).map_err(|error| format!("{}: {error}", module_path.display()))?;
    let mut component = wit_component::ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|encoder| encoder.encode())
        .map_err(|error| format!("{} could not be made a component: {error:#}", guest.package))?;
    if guest.aim == Aim::Size {
        component = without_names(&component)
            .ok_or_else(|| format!("{}: the component's sections cannot be told apart", guest.package))?;
    }
    if fs::read(&component_path).is_ok_and(|old| old == component) {
        return Ok(component_path);
    }
    // Another build script may do the same just now: replace the file whole.
    let temporary = directory.join(format!("{stem}.component.{}.tmp", std::process::id()));
    fs::write(&temporary, &component)
        .and_then(|()| fs::rename(&temporary, &component_path))
        .map_err(|error| format!("{}: {error}", component_path.display()))?;
    Ok(component_path)
}
