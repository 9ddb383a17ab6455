//! Where everything is and how it is set: option, then environment, then configuration file, then default.
//!
//! Knows option names, `RECOLLEX_*`, the XDG directories and the file's form. Must not know what a setting means: those of
//! the component are handed on as they are.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;
use recollex::Limits;
use recollex::history;
use recollex::model::RolesSettings;
use rustix::fs::OFlags;
use serde::Deserialize;
use toml::Spanned;

use super::args::Global;
use super::failure::Failure;
use super::writing::Format;
use super::zone;

/// What the process was started with, read once, so that everything below is a function of it.
#[derive(Debug, Default)]
pub struct Environment {
    /// Variables, those that are set to something.
    pub variables: BTreeMap<String, OsString>,
    /// The user's directories; none if even their home is unknown.
    pub base: Option<Base>,
    /// What `/etc/localtime` leads to; none if it is no link.
    pub localtime: Option<PathBuf>,
}

/// The user's directories by the XDG specification.
#[derive(Clone, Debug)]
pub struct Base {
    /// Home.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`
    pub config: PathBuf,
    /// `$XDG_DATA_HOME`
    pub data: PathBuf,
    /// `$XDG_CACHE_HOME`
    pub cache: PathBuf,
}

/// Variables that are read.
const VARIABLES: [&str; 8] = [
    "RECOLLEX_WORKSPACE",
    "RECOLLEX_PROFILE",
    "RECOLLEX_CONFIG",
    "RECOLLEX_BACKEND",
    "RECOLLEX_HISTORY",
    "RECOLLEX_SESSIONS",
    "RECOLLEX_TIME_ZONE",
    "TZ",
];

impl Environment {
    /// This process's.
    pub fn read() -> Self {
        let variables = VARIABLES
            .iter()
            .map(|name| (*name).to_owned())
            .chain(role_keys().map(|(role, key)| role_variable(role, key)))
            .filter_map(|name| Some((name.clone(), std::env::var_os(name).filter(|value| !value.is_empty())?)))
            .collect();
        let base = etcetera::base_strategy::Xdg::new().ok().map(|xdg| Base {
            home: xdg.home_dir().to_owned(),
            config: xdg.config_dir(),
            data: xdg.data_dir(),
            cache: xdg.cache_dir(),
        });
        Self { variables, base, localtime: fs::read_link("/etc/localtime").ok() }
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(name).map(PathBuf::from)
    }

    fn text(&self, name: &str) -> Result<Option<String>, Failure> {
        let Some(value) = self.variables.get(name) else { return Ok(None) };
        value
            .to_str()
            .map(|text| Some(text.to_owned()))
            .ok_or_else(|| Failure::usage("environment", format!("{name} is not UTF-8")))
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An option of this call.
    Option,
    /// A `RECOLLEX_*` variable.
    Environment,
    /// The configuration file.
    Configuration,
    /// Nobody said.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Option => "option",
            Self::Environment => "environment",
            Self::Configuration => "configuration",
            Self::Default => "default",
        })
    }
}

/// How this call is set up.
#[derive(Debug)]
pub struct Setup {
    /// The workspace's directory, absolute.
    pub workspace: PathBuf,
    /// Who named it.
    pub workspace_from: Origin,
    /// The profile that led to it; none where a directory was named.
    pub profile: Option<String>,
    /// The configuration file; it may not exist. None: the home directory is unknown.
    pub config: Option<PathBuf>,
    /// Where compiled components are kept; none where nothing may be.
    pub compiled: Option<PathBuf>,
    /// The component's settings, with who set them.
    pub settings: BTreeMap<String, (String, Origin)>,
    /// The time zone's name, with who said it; none: nobody, and UTC is used.
    pub time_zone: Option<(String, Origin)>,
    /// Whether commits are recorded with git.
    pub history: history::Mode,
    /// The models, and where they are read again.
    pub models: RolesSettings,
    pub models_from: ModelsSource,
    /// The host's limits.
    pub limits: Limits,
    /// What a compressed archive may unpack to, in bytes.
    pub unpacked_bytes: u64,
    /// Where conversations are kept, as far as it is said.
    pub sessions: Sessions,
    /// When the daemon works.
    pub daemon: DaemonTimes,
    /// Home, where other programs' workspaces are looked for.
    pub home: Option<PathBuf>,
}

/// Where conversations are kept.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// A directory, or a file.
    pub path: Option<PathBuf>,
    /// How.
    pub format: Option<Format>,
    /// Under which their turns are archived.
    pub provider: Option<String>,
}

/// When the daemon works.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DaemonTimes {
    /// Seconds between two looks at conversations.
    pub poll_s: Option<u64>,
    /// When memory is put in order: `HH:MM`, or `off`.
    pub nightly: Option<String>,
}

impl Setup {
    /// Resolves everything.
    ///
    /// # Errors
    /// A configuration file that cannot be read or has an unknown key (with file and line), a value that is not what its
    /// name asks for, or a home directory that would be needed and is unknown.
    pub fn resolve(global: &Global, environment: &Environment) -> Result<Self, Failure> {
        let base = environment.base.as_ref();
        let named = global.config.clone().or_else(|| environment.path("RECOLLEX_CONFIG"));
        let must_exist = named.is_some();
        let config = named.or_else(|| base.map(|base| base.config.join("recollex").join("config.toml")));
        let file = match &config {
            Some(path) => File::load(path, must_exist)?,
            None => File::default(),
        };
        let beside = config.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let from_file = |path: &Path| beside.join(expand(path, base));
        let models_from = ModelsSource {
            config: config.clone(),
            must_exist,
            base: environment.base.clone(),
            said: said_of_models(global, environment)?,
        };

        let profile = environment.text("RECOLLEX_PROFILE")?;
        let of_profile = |name: &str, origin: Origin| -> Result<(PathBuf, Origin, Option<String>), Failure> {
            check_profile(name)?;
            let own = file.profiles.get(name).and_then(|profile| profile.workspace.as_ref());
            let directory = match own {
                Some(path) => from_file(path.get_ref()),
                None => data_directory(base, name)?,
            };
            Ok((directory, origin, Some(name.to_owned())))
        };
        // What an option says beats what the environment says, whichever of the two words it uses; so does the
        // environment the file.
        let (workspace, workspace_from, profile) = if let Some(path) = &global.workspace {
            (path.clone(), Origin::Option, None)
        } else if let Some(name) = &global.profile {
            of_profile(name, Origin::Option)?
        } else if let Some(path) = environment.path("RECOLLEX_WORKSPACE") {
            (path, Origin::Environment, None)
        } else if let Some(name) = &profile {
            of_profile(name, Origin::Environment)?
        } else if let Some(path) = &file.workspace {
            (from_file(path.get_ref()), Origin::Configuration, None)
        } else if let Some(name) = &file.profile {
            of_profile(name, Origin::Configuration)?
        } else {
            of_profile(DEFAULT_PROFILE, Origin::Default)?
        };

        let table = &file.sessions;
        let sessions = Sessions {
            path: environment.path("RECOLLEX_SESSIONS").or_else(|| table.path.as_deref().map(from_file)),
            format: table.format,
            provider: table.provider.clone(),
        };
        if file.daemon.poll_s == Some(0) {
            let failure = Failure::usage("invalid-setting", "`poll_s` must be more than 0");
            return Err(match &config {
                Some(path) => failure.at_path(path.display().to_string()),
                None => failure,
            });
        }

        let (limits, unpacked_bytes) = limits(global, &file, config.as_deref())?;
        Ok(Self {
            workspace: absolute(&workspace)?,
            workspace_from,
            profile,
            settings: settings(global, environment, &file).map_err(|failure| match &config {
                // A variable names itself; a setting of the file does not say where it stands.
                Some(path) if failure.reason == "config" => failure.at_path(path.display().to_string()),
                _ => failure,
            })?,
            time_zone: time_zone(global, environment, &file)?,
            history: history_mode(global, environment, &file)?,
            models: models_from.over(file.models),
            models_from,
            limits,
            unpacked_bytes,
            sessions,
            daemon: file.daemon.clone(),
            config,
            compiled: base.map(|base| base.cache.join("recollex").join("compiled")),
            home: base.map(|base| base.home.clone()),
        })
    }

    /// Memory is switched off: no verb may leave a trace, a cache included. That it answers so is the component's doing.
    pub fn off(&self) -> bool {
        self.settings.get("backend").is_some_and(|(value, _)| value == "none")
    }

    /// How long to wait for another writer, in milliseconds, by the component's rule, for verbs that take the lock by
    /// themselves: as `lock.wait-ms` says, and otherwise by who waits (`caller`).
    ///
    /// # Errors
    /// A value that the component would refuse.
    pub fn lock_wait_ms(&self) -> Result<u32, Failure> {
        let refused = |name: &str, value: &str, takes: &str| {
            Failure::usage("invalid-setting", format!("setting `{name}` takes {takes}, not `{value}`"))
        };
        let value = |name| self.settings.get(name).map(|(value, _)| value.as_str());
        let by_caller = match value("caller") {
            None | Some("interactive") => INTERACTIVE_WAIT_MS,
            Some("background") => BACKGROUND_WAIT_MS,
            Some(other) => return Err(refused("caller", other, "`interactive` or `background`")),
        };
        let Some(wait) = value("lock.wait-ms") else { return Ok(by_caller) };
        let number = wait.bytes().all(|byte| byte.is_ascii_digit()).then(|| wait.parse().ok()).flatten();
        number
            .filter(|wait| *wait <= WAIT_MS_MAX)
            .ok_or_else(|| refused("lock.wait-ms", wait, "a whole number from 0 to 600000"))
    }

    /// Refuses a workspace whose path leads to something else than a directory, or nowhere ever. A directory that is
    /// only not there yet is none of that, and whether it may be read or written shows when it is.
    ///
    /// # Errors
    /// What is wrong with the path, and who named it.
    pub fn check_workspace(&self) -> Result<(), Failure> {
        let path = &self.workspace;
        let fault = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Ok(()),
            Ok(_) => "it is not a directory".to_owned(),
            Err(error) => match error.kind() {
                io::ErrorKind::PermissionDenied => return Ok(()),
                io::ErrorKind::NotFound if path.symlink_metadata().is_ok() => "it is a link to nothing".to_owned(),
                io::ErrorKind::NotFound => return Ok(()),
                _ => error.to_string(),
            },
        };
        let failure = Failure::usage("workspace-path", format!("this cannot be a workspace: {fault}"))
            .at_path(path.display().to_string());
        Err(match (self.workspace_from, &self.config) {
            (Origin::Environment, _) => {
                failure.next("the environment names it (RECOLLEX_WORKSPACE, RECOLLEX_PROFILE); or: --workspace DIR")
            }
            (Origin::Configuration, Some(config)) => {
                failure.next(format!("{} names it; or name another: --workspace DIR", config.display()))
            }
            _ => failure.next("name a directory: --workspace DIR"),
        })
    }

    /// Workspaces of OpenProgram on this machine: `~/.openprogram/memory` and `~/.openprogram-NAME/memory`.
    pub fn openprogram(&self) -> Vec<PathBuf> {
        let Some(entries) = self.home.as_deref().and_then(|home| fs::read_dir(home).ok()) else { return Vec::new() };
        let mut found: Vec<PathBuf> = entries
            .flatten()
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name == ".openprogram" || name.starts_with(".openprogram-")
            })
            .map(|entry| entry.path().join("memory"))
            .filter(|path| path.is_dir())
            .collect();
        found.sort();
        found
    }
}

/// Where models are set, to be read again with every call of one.
#[derive(Clone, Debug, Default)]
pub struct ModelsSource {
    config: Option<PathBuf>,
    must_exist: bool,
    base: Option<Base>,
    /// What options and the environment say, which stays.
    said: RolesSettings,
}

impl ModelsSource {
    /// As they are set now.
    ///
    /// # Errors
    /// As [`Setup::resolve`], for the configuration file.
    pub fn read(&self) -> Result<RolesSettings, Failure> {
        let file = match &self.config {
            Some(path) => File::load(path, self.must_exist)?,
            None => File::default(),
        };
        Ok(self.over(file.models))
    }

    /// What was said otherwise, over what a file says.
    fn over(&self, mut file: RolesSettings) -> RolesSettings {
        let beside = self.config.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        for path in file.paths_mut() {
            *path = beside.join(expand(path, self.base.as_ref()));
        }
        self.said.clone().or(file)
    }
}

/// What can be said of a role by options and variables: text,
const ROLE_TEXTS: [&str; 9] =
    ["provider", "model", "base_url", "key_env", "key_file", "max_output_field", "effort", "recording", "record"];
/// whole numbers,
const ROLE_NUMBERS: [&str; 5] = ["max_output", "context", "thinking_budget", "dimensions", "reply_bytes"];
/// words with white space between them,
const ROLE_LISTS: [&str; 2] = ["command", "pass_env"];
/// and `true` or `false`.
const ROLE_FLAGS: [&str; 1] = ["tools"];

fn role_keys() -> impl Iterator<Item = (&'static str, &'static str)> {
    let keys = || ROLE_TEXTS.into_iter().chain(ROLE_NUMBERS).chain(ROLE_LISTS).chain(ROLE_FLAGS);
    RolesSettings::ROLES.into_iter().flat_map(move |(role, _)| keys().map(move |key| (role, key)))
}

/// `RECOLLEX_WRITER_MODEL`
fn role_variable(role: &str, key: &str) -> String {
    format!("RECOLLEX_{}_{}", role.to_uppercase(), key.to_uppercase())
}

/// What options say of models, and over what they do not say, the environment.
fn said_of_models(global: &Global, environment: &Environment) -> Result<RolesSettings, Failure> {
    let mut by_environment = Vec::new();
    for (role, key) in role_keys() {
        let name = role_variable(role, key);
        if let Some(text) = environment.text(&name)? {
            by_environment.push((role.to_owned(), key.to_owned(), text, name));
        }
    }
    let mut by_options = Vec::new();
    for (name, text) in &global.role {
        let known = role_keys().find(|(role, key)| name.split_once('.') == Some((role, key)));
        let Some((role, key)) = known else {
            let failure = Failure::usage("role", format!("`{name}` is no setting of a model's role"));
            return Err(
                failure.next("name role and setting, such as writer.model; recollex help config has all of them")
            );
        };
        by_options.push((role.to_owned(), key.to_owned(), text.clone(), format!("--role {name}")));
    }
    let mut said = roles(by_options)?.or(roles(by_environment)?);
    for path in said.paths_mut() {
        *path = absolute(path)?;
    }
    Ok(said)
}

/// Role, setting, text and who says it, as settings.
fn roles(said: Vec<(String, String, String, String)>) -> Result<RolesSettings, Failure> {
    let mut roles = toml::Table::new();
    for (role, key, text, who) in said {
        let refused = |takes: &str| Failure::usage("role", format!("{who} takes {takes}, not `{text}`"));
        let value = if ROLE_NUMBERS.contains(&&*key) {
            toml::Value::Integer(text.parse().map_err(|_| refused("a whole number"))?)
        } else if ROLE_FLAGS.contains(&&*key) {
            toml::Value::Boolean(text.parse().map_err(|_| refused("`true` or `false`"))?)
        } else if ROLE_LISTS.contains(&&*key) {
            toml::Value::Array(text.split_whitespace().map(toml::Value::from).collect())
        } else {
            toml::Value::from(text.as_str())
        };
        // One at a time, so that a fault has its name.
        let one = toml::Table::from_iter([(key.clone(), value.clone())]);
        let whole = toml::Table::from_iter([(role.clone(), toml::Value::Table(one))]);
        if let Err(error) = RolesSettings::deserialize(toml::Value::Table(whole)) {
            return Err(Failure::usage("role", format!("{who}: {}", error.message().trim())));
        }
        let role = roles.entry(role).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        if let toml::Value::Table(role) = role {
            role.insert(key, value);
        }
    }
    RolesSettings::deserialize(toml::Value::Table(roles))
        .map_err(|error| Failure::usage("role", error.message().trim().to_owned()))
}

const DEFAULT_PROFILE: &str = "default";
/// The component's own measures where `lock.wait-ms` is not set, and the most that it may be (FORMAT.md, "Settings").
const INTERACTIVE_WAIT_MS: u32 = 10_000;
const BACKGROUND_WAIT_MS: u32 = 1_000;
const WAIT_MS_MAX: u32 = 600_000;
/// What a compressed archive may unpack to where nobody says: more than any export that was seen, and less than a disk.
const UNPACKED_BYTES: u64 = 64 << 30;
/// No configuration is longer, in bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

fn data_directory(base: Option<&Base>, profile: &str) -> Result<PathBuf, Failure> {
    base.map(|base| base.data.join("recollex").join(profile)).ok_or_else(|| {
        Failure::usage("no-home", "your home directory is unknown, so there is no place for a workspace")
            .next("name one: --workspace DIR")
    })
}

/// A profile's name becomes the name of a directory.
fn check_profile(name: &str) -> Result<(), Failure> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || name.len() > 100 || !name.chars().all(fits) {
        return Err(Failure::usage(
            "profile",
            format!("`{name}` cannot be a profile: use letters, digits, `-`, `_` and `.`, and no `.` at the start"),
        )
        .next(
            "name a profile with --profile, RECOLLEX_PROFILE or in the configuration; or a directory: --workspace DIR",
        ));
    }
    Ok(())
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::io("resolve this path", path, &error))
}

/// `~/x` in a file means what it means in a shell.
fn expand(path: &Path, base: Option<&Base>) -> PathBuf {
    match (path.strip_prefix("~"), base) {
        (Ok(rest), Some(base)) => base.home.join(rest),
        _ => path.to_owned(),
    }
}

/// The configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    workspace: Option<Spanned<PathBuf>>,
    profile: Option<String>,
    backend: Option<String>,
    time_zone: Option<String>,
    history: Option<String>,
    profiles: BTreeMap<String, Profile>,
    limits: LimitsTable,
    models: RolesSettings,
    sessions: SessionsTable,
    daemon: DaemonTimes,
    settings: toml::Table,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SessionsTable {
    path: Option<PathBuf>,
    format: Option<Format>,
    provider: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Profile {
    workspace: Option<Spanned<PathBuf>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LimitsTable {
    deadline_ms: Option<u64>,
    model_time_ms: Option<u64>,
    memory_bytes: Option<u64>,
    output_bytes: Option<u64>,
    host_calls: Option<u64>,
    unpacked_bytes: Option<u64>,
}

impl File {
    fn load(path: &Path, must_exist: bool) -> Result<Self, Failure> {
        let absent = |error: &io::Error| {
            // Where a part of the default path is a file, there is no configuration either.
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) && !must_exist
        };
        let bytes = match read_config(path) {
            Ok(bytes) => bytes,
            Err(error) if absent(&error) => return Ok(Self::default()),
            Err(error) => return Err(Failure::io("read the configuration", path, &error)),
        };
        let Some(bytes) = bytes else {
            return Err(Failure::usage(
                "config",
                format!("the configuration is not a regular file of at most {CONFIG_BYTES_MAX} bytes"),
            )
            .at_path(path.display().to_string())
            .next("name a file: --config FILE"));
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            let line = line_at(error.as_bytes(), error.utf8_error().valid_up_to());
            Failure::usage("config", "the configuration is not UTF-8").at_path(path.display().to_string()).at_line(line)
        })?;
        let file: Self = toml::from_str(&text).map_err(|error| {
            let failure =
                Failure::usage("config", format!("the configuration has a fault: {}", error.message().trim()))
                    .at_path(path.display().to_string());
            match error.span() {
                Some(span) => failure.at_line(line_at(text.as_bytes(), span.start)),
                None => failure,
            }
        })?;
        // What can be no path at all is a fault of the file, whichever profile is in use.
        let workspaces = file.profiles.values().filter_map(|profile| profile.workspace.as_ref());
        for workspace in file.workspace.iter().chain(workspaces) {
            let bytes = workspace.get_ref().as_os_str().as_bytes();
            let fault = if bytes.is_empty() {
                "the workspace is empty: name a directory"
            } else if bytes.contains(&0) {
                "the workspace has a NUL in it, which no path may"
            } else {
                continue;
            };
            return Err(Failure::usage("config", fault)
                .at_path(path.display().to_string())
                .next("write a directory's path there")
                .at_line(line_at(text.as_bytes(), workspace.span().start)));
        }
        Ok(file)
    }
}

/// A configuration's bytes; none if it is no regular file, or too long. Does not wait at a pipe for someone to write.
fn read_config(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        // The usual word for "none".
        return Ok((path == Path::new("/dev/null")).then(Vec::new));
    }
    let mut bytes = Vec::new();
    file.take(CONFIG_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= CONFIG_BYTES_MAX).then_some(bytes))
}

fn line_at(bytes: &[u8], offset: usize) -> u64 {
    bytes.iter().take(offset).filter(|byte| **byte == b'\n').count() as u64 + 1
}

fn settings(
    global: &Global,
    environment: &Environment,
    file: &File,
) -> Result<BTreeMap<String, (String, Origin)>, Failure> {
    let mut settings = BTreeMap::new();
    flatten(&file.settings, "", &mut settings)?;
    if let Some(value) = &file.backend {
        settings.insert("backend".to_owned(), (value.clone(), Origin::Configuration));
    }
    if let Some(value) = environment.text("RECOLLEX_BACKEND")? {
        settings.insert("backend".to_owned(), (value, Origin::Environment));
    }
    for (name, value) in &global.set {
        settings.insert(name.clone(), (value.clone(), Origin::Option));
    }
    if let Some(value) = &global.backend {
        settings.insert("backend".to_owned(), (value.clone(), Origin::Option));
    }
    Ok(settings)
}

fn time_zone(global: &Global, environment: &Environment, file: &File) -> Result<Option<(String, Origin)>, Failure> {
    if let Some(name) = &global.time_zone {
        return Ok(Some((name.clone(), Origin::Option)));
    }
    if let Some(name) = environment.text("RECOLLEX_TIME_ZONE")? {
        return Ok(Some((name, Origin::Environment)));
    }
    if let Some(name) = &file.time_zone {
        return Ok(Some((name.clone(), Origin::Configuration)));
    }
    // The system's word is not ours to complain about: what cannot be read there is as if nobody had said it.
    let tz = environment.text("TZ").ok().flatten();
    Ok(zone::of_system(tz.as_deref(), environment.localtime.as_deref()).map(|name| (name, Origin::Default)))
}

fn history_mode(global: &Global, environment: &Environment, file: &File) -> Result<history::Mode, Failure> {
    let named = match &global.history {
        Some(mode) => Some(mode.clone()),
        None => environment.text("RECOLLEX_HISTORY")?.or_else(|| file.history.clone()),
    };
    let Some(named) = named else { return Ok(history::Mode::default()) };
    history::Mode::named(&named).ok_or_else(|| {
        Failure::usage("invalid-setting", format!("`history` takes {}, not `{named}`", history::Mode::WORDS))
    })
}

/// `search.top-k-max = 50` is a nested table to TOML and one name to us; a quoted name is the same.
fn flatten(table: &toml::Table, prefix: &str, into: &mut BTreeMap<String, (String, Origin)>) -> Result<(), Failure> {
    for (key, value) in table {
        let name = format!("{prefix}{key}");
        let text = match value {
            toml::Value::String(text) => text.clone(),
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Float(number) => number.to_string(),
            toml::Value::Boolean(flag) => flag.to_string(),
            toml::Value::Table(inner) => {
                flatten(inner, &format!("{name}."), into)?;
                continue;
            }
            toml::Value::Datetime(_) | toml::Value::Array(_) => {
                return Err(Failure::usage(
                    "config",
                    format!("setting `{name}` must be text, a number, true or false"),
                ));
            }
        };
        into.insert(name, (text, Origin::Configuration));
    }
    Ok(())
}

/// The limits of the host, and that of this program: what a compressed archive may unpack to.
fn limits(global: &Global, file: &File, config: Option<&Path>) -> Result<(Limits, u64), Failure> {
    let mut limits = (Limits::default(), UNPACKED_BYTES);
    let in_file = [
        ("deadline_ms", file.limits.deadline_ms),
        ("model_time_ms", file.limits.model_time_ms),
        ("memory_bytes", file.limits.memory_bytes),
        ("output_bytes", file.limits.output_bytes),
        ("host_calls", file.limits.host_calls),
        ("unpacked_bytes", file.limits.unpacked_bytes),
    ];
    for (name, value) in in_file {
        if let Some(value) = value {
            set_limit(&mut limits, name, value).map_err(|failure| match config {
                Some(path) => failure.at_path(path.display().to_string()),
                None => failure,
            })?;
        }
    }
    for (name, text) in &global.limit {
        let value = text
            .parse()
            .map_err(|_| Failure::usage("limit", format!("limit `{name}` takes a whole number, not `{text}`")))?;
        set_limit(&mut limits, name, value)?;
    }
    Ok(limits)
}

fn set_limit((limits, unpacked_bytes): &mut (Limits, u64), name: &str, value: u64) -> Result<(), Failure> {
    if value == 0 {
        return Err(Failure::usage("limit", format!("limit `{name}` must be more than 0")));
    }
    match name {
        "deadline_ms" => limits.deadline = Duration::from_millis(value),
        "model_time_ms" => limits.model_time = Duration::from_millis(value),
        "memory_bytes" => limits.memory_bytes = value,
        "output_bytes" => limits.output_bytes = value,
        "host_calls" => limits.host_calls = value,
        "unpacked_bytes" => *unpacked_bytes = value,
        _ => {
            return Err(Failure::usage("limit", format!("there is no limit `{name}`"))
                .next("use deadline_ms, model_time_ms, memory_bytes, output_bytes, host_calls or unpacked_bytes"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        directory: tempfile::TempDir,
        environment: Environment,
        global: Global,
    }

    fn fixture(config: Option<&str>) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().to_owned();
        let base = Base { config: home.join("config"), data: home.join("data"), cache: home.join("cache"), home };
        if let Some(text) = config {
            fs::create_dir_all(base.config.join("recollex")).unwrap();
            fs::write(base.config.join("recollex/config.toml"), text).unwrap();
        }
        let environment = Environment { variables: BTreeMap::new(), base: Some(base), localtime: None };
        Fixture { directory, environment, global: Global::default() }
    }

    impl Fixture {
        fn variable(&mut self, name: &str, value: impl Into<OsString>) {
            self.environment.variables.insert(name.to_owned(), value.into());
        }
        fn resolve(&self) -> Result<Setup, Failure> {
            Setup::resolve(&self.global, &self.environment)
        }
        fn path(&self, rest: &str) -> PathBuf {
            self.directory.path().join(rest)
        }
    }

    #[test]
    fn options_beat_the_environment_beats_the_file_beats_the_default() {
        let mut f = fixture(None);
        let setup = f.resolve().unwrap();
        assert_eq!((setup.workspace, setup.workspace_from), (f.path("data/recollex/default"), Origin::Default));

        f = fixture(Some("workspace = '/from/file'"));
        let setup = f.resolve().unwrap();
        assert_eq!((setup.workspace, setup.workspace_from), (PathBuf::from("/from/file"), Origin::Configuration));

        f.variable("RECOLLEX_WORKSPACE", "/from/environment");
        let setup = f.resolve().unwrap();
        assert_eq!((setup.workspace, setup.workspace_from), (PathBuf::from("/from/environment"), Origin::Environment));

        f.global.profile = Some("work".to_owned());
        let setup = f.resolve().unwrap();
        assert_eq!((setup.workspace, setup.workspace_from), (f.path("data/recollex/work"), Origin::Option));

        f.global.profile = None;
        f.global.workspace = Some("/from/option".into());
        let setup = f.resolve().unwrap();
        assert_eq!((setup.workspace, setup.workspace_from), (PathBuf::from("/from/option"), Origin::Option));
    }

    #[test]
    fn the_time_zone_is_the_machines_unless_somebody_says_another() {
        let mut f = fixture(None);
        assert_eq!(f.resolve().unwrap().time_zone, None);
        let said = |f: &Fixture| f.resolve().unwrap().time_zone.unwrap();
        f.environment.localtime = Some("/usr/share/zoneinfo/Asia/Tokyo".into());
        assert_eq!(said(&f), ("Asia/Tokyo".to_owned(), Origin::Default));
        f.variable("TZ", ":Asia/Seoul");
        assert_eq!(said(&f), ("Asia/Seoul".to_owned(), Origin::Default));
        f.variable("RECOLLEX_TIME_ZONE", "Europe/Oslo");
        assert_eq!(said(&f), ("Europe/Oslo".to_owned(), Origin::Environment));
        f.global.time_zone = Some("UTC".to_owned());
        assert_eq!(said(&f), ("UTC".to_owned(), Origin::Option));
        let f = fixture(Some("time_zone = 'Europe/Berlin'"));
        assert_eq!(said(&f), ("Europe/Berlin".to_owned(), Origin::Configuration));
    }

    #[test]
    fn profiles_may_name_their_workspace() {
        let mut f = fixture(Some(
            "profile = 'boat'\n[profiles.boat]\nworkspace = '~/boat/memory'\n[profiles.near]\nworkspace = 'near'",
        ));
        let setup = f.resolve().unwrap();
        assert_eq!((setup.workspace, setup.profile.as_deref()), (f.path("boat/memory"), Some("boat")));
        f.variable("RECOLLEX_PROFILE", "near");
        assert_eq!(f.resolve().unwrap().workspace, f.path("config/recollex/near"), "beside the file");
        for bad in ["../x", "a/b", ".hidden", "", "a\0b"] {
            f.global.profile = Some(bad.to_owned());
            assert_eq!(f.resolve().unwrap_err().reason, "profile", "{bad:?}");
        }
    }

    #[test]
    fn unknown_keys_are_refused_with_file_line_and_key() {
        for (text, line, key) in [
            ("# mine\nworkspce = '/x'\n", 2, "workspce"),
            ("[limits]\n\ndeadline = 5\n", 3, "deadline"),
            ("[profiles.a]\nworkspace = '/x'\nspeed = 1\n", 3, "speed"),
        ] {
            let failure = fixture(Some(text)).resolve().unwrap_err();
            assert_eq!(failure.line, Some(line), "{text}");
            assert!(failure.path.as_deref().unwrap().ends_with("config/recollex/config.toml"));
            assert!(failure.message.contains(key), "{}", failure.message);
            assert_eq!(failure.exit.0, 2);
        }
    }

    #[test]
    fn faults_in_the_file_name_the_line() {
        let failure = fixture(Some("a = [\nb =\n")).resolve().unwrap_err();
        assert_eq!(failure.reason, "config");
        assert!(failure.line.is_some());
        let f = fixture(None);
        fs::create_dir_all(f.path("config/recollex")).unwrap();
        fs::write(f.path("config/recollex/config.toml"), b"# ok\n# \xff\n").unwrap();
        assert_eq!(f.resolve().unwrap_err().line, Some(2));
    }

    #[test]
    fn a_workspace_in_the_file_must_be_a_path() {
        for (text, line) in [
            ("# mine\nworkspace = \"a\\u0000b\"\n", 2),
            ("workspace = ''\n", 1),
            ("[profiles.boat]\n\nworkspace = \"\\u0000\"\n", 3),
        ] {
            let failure = fixture(Some(text)).resolve().unwrap_err();
            assert_eq!((&*failure.reason, failure.line, failure.exit.0), ("config", Some(line), 2), "{text}");
            assert!(failure.path.as_deref().unwrap().ends_with("config/recollex/config.toml"));
        }
    }

    #[test]
    fn what_is_no_directory_cannot_be_a_workspace() {
        let mut f = fixture(None);
        fs::write(f.path("file"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", f.path("dangling")).unwrap();
        std::os::unix::fs::symlink("loop", f.path("loop")).unwrap();
        for bad in ["file", "file/below", "dangling", "loop", &"x".repeat(300)] {
            f.variable("RECOLLEX_WORKSPACE", f.path(bad));
            let failure = f.resolve().unwrap().check_workspace().unwrap_err();
            assert_eq!((&*failure.reason, failure.exit.0), ("workspace-path", 2), "{bad}");
            assert_eq!(failure.path.as_deref(), f.path(bad).to_str());
            assert!(failure.next.unwrap().contains("RECOLLEX_WORKSPACE"));
        }
        for good in ["", "not/yet"] {
            f.variable("RECOLLEX_WORKSPACE", f.path(good));
            f.resolve().unwrap().check_workspace().unwrap();
        }
    }

    #[test]
    fn a_configuration_is_a_short_regular_file() {
        let mut f = fixture(None);
        let pipe = f.path("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        fs::write(f.path("long"), "#".repeat(1 + (1 << 20))).unwrap();
        for bad in [pipe, f.path("long"), f.path(""), "/dev/zero".into()] {
            f.global.config = Some(bad.clone());
            let failure = f.resolve().unwrap_err();
            assert_eq!((failure.path.as_deref(), failure.exit.0), (bad.to_str(), 2), "{}", failure.message);
        }
        f.global.config = Some("/dev/null".into());
        f.resolve().unwrap();
    }

    #[test]
    fn a_file_in_the_way_of_the_default_configuration_is_no_configuration() {
        let mut f = fixture(None);
        fs::write(f.path("config"), "").unwrap();
        f.resolve().unwrap();
        f.global.config = Some(f.path("config/recollex/config.toml"));
        assert_eq!(f.resolve().unwrap_err().code, "IO", "one that was named must be there");
    }

    #[test]
    fn the_wait_for_the_lock_is_the_components_setting() {
        let wait = |set: &[(&str, &str)]| {
            let mut f = fixture(None);
            f.global.set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            f.resolve().unwrap().lock_wait_ms().map_err(|failure| failure.reason)
        };
        assert_eq!(wait(&[]), Ok(10_000));
        assert_eq!(wait(&[("caller", "interactive")]), Ok(10_000));
        assert_eq!(wait(&[("caller", "background")]), Ok(1_000));
        assert_eq!(wait(&[("lock.wait-ms", "7"), ("caller", "background")]), Ok(7));
        for refused in [("caller", "me"), ("lock.wait-ms", "+7"), ("lock.wait-ms", "600001"), ("lock.wait-ms", "")] {
            assert_eq!(wait(&[refused]), Err("invalid-setting".to_owned()), "{refused:?}");
        }
    }

    #[test]
    fn a_named_file_must_exist() {
        let mut f = fixture(None);
        f.variable("RECOLLEX_CONFIG", "/nowhere/config.toml");
        assert_eq!(f.resolve().unwrap_err().code, "IO");
    }

    #[test]
    fn settings_are_flat_names() {
        let mut f = fixture(Some("backend = 'files'\n[settings]\nsearch.top-k-max = 50\n'get.lines' = '9'\n"));
        f.global.set = vec![("get.lines".to_owned(), "10".to_owned())];
        let setup = f.resolve().unwrap();
        assert_eq!(setup.settings["search.top-k-max"], ("50".to_owned(), Origin::Configuration));
        assert_eq!(setup.settings["get.lines"], ("10".to_owned(), Origin::Option));
        assert!(!setup.off());
        f.variable("RECOLLEX_BACKEND", "none");
        assert!(f.resolve().unwrap().off());
        f.global.backend = Some("files".to_owned());
        assert!(!f.resolve().unwrap().off());
    }

    #[test]
    fn models_are_set_by_option_environment_and_file_and_read_again() {
        use recollex::model::{Kind, OBSERVER, WRITER};
        let writer = "[models.writer]\nprovider = 'openai'\nmodel = 'a'\nmax_output = 5\nkey_file = 'key'\n";
        let mut f = fixture(Some(&format!("{writer}[models.observer]\neffort = 'low'\n")));
        let role = |setup: &Setup, purpose| setup.models.of(purpose).unwrap();
        let setup = f.resolve().unwrap();
        assert_eq!(role(&setup, WRITER).key_file, Some(f.path("config/recollex/key")), "beside the file");
        let observer = role(&setup, OBSERVER);
        assert_eq!((observer.provider, observer.effort.as_deref()), (Some(Kind::Openai), Some("low")));
        assert_eq!((observer.model.as_deref(), observer.max_output), (Some("a"), Some(5)));

        f.variable("RECOLLEX_WRITER_MODEL", "b");
        f.variable("RECOLLEX_WRITER_MAX_OUTPUT", "7");
        f.variable("RECOLLEX_WRITER_KEY_ENV", "KEY");
        f.global.role = vec![("writer.model".to_owned(), "c".to_owned())];
        let setup = f.resolve().unwrap();
        let set = role(&setup, WRITER);
        assert_eq!((set.model.as_deref(), set.max_output, set.key_file), (Some("c"), Some(7), None));
        assert_eq!(set.key_env.as_deref(), Some("KEY"));

        fs::write(f.path("config/recollex/config.toml"), "[models.writer]\nprovider = 'none'\nmodel = 'd'").unwrap();
        let again = setup.models_from.read().unwrap().of(WRITER).unwrap();
        assert_eq!((again.provider, again.model.as_deref()), (Some(Kind::None), Some("c")));
        fs::write(f.path("config/recollex/config.toml"), "[models.writer]\nkey = 'secret'").unwrap();
        let failure = setup.models_from.read().unwrap_err();
        assert!(failure.line == Some(2) && !failure.message.contains("secret"), "{failure:?}");
        fs::remove_file(f.path("config/recollex/config.toml")).unwrap();

        for (name, value) in
            [("writer.speed", "1"), ("writer.max_output", "many"), ("editor.model", "a"), ("writer", "a")]
        {
            f.global.role = vec![(name.to_owned(), value.to_owned())];
            assert_eq!(f.resolve().unwrap_err().reason, "role", "{name}");
        }
        f.global.role = vec![("writer.provider".to_owned(), "telepathy".to_owned())];
        assert!(f.resolve().unwrap_err().message.contains("writer.provider"));
    }

    #[test]
    fn every_setting_of_a_role_can_be_said_in_each_way() {
        let json = serde_json::to_value(recollex::model::RoleSettings::default()).unwrap();
        let mut keys: Vec<&str> = role_keys().filter(|(role, _)| *role == "writer").map(|(_, key)| key).collect();
        keys.sort_unstable();
        let mut known: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        known.sort_unstable();
        assert_eq!(keys, known);
    }

    #[test]
    fn conversations_are_named_by_the_environment_or_the_file() {
        let mut f = fixture(Some(
            "[sessions]\npath = 'talk'\nformat = 'jsonl'\nprovider = 'notes'\n[daemon]\npoll_s = 60\nnightly = 'off'\n",
        ));
        let setup = f.resolve().unwrap();
        assert_eq!(setup.sessions.path, Some(f.path("config/recollex/talk")), "beside the file");
        assert_eq!((setup.sessions.format, setup.sessions.provider.as_deref()), (Some(Format::Jsonl), Some("notes")));
        assert_eq!((setup.daemon.poll_s, setup.daemon.nightly.as_deref()), (Some(60), Some("off")));
        f.variable("RECOLLEX_SESSIONS", "/elsewhere");
        assert_eq!(f.resolve().unwrap().sessions.path, Some(PathBuf::from("/elsewhere")));
        for bad in ["[sessions]\nformat = 'xml'\n", "[sessions]\nplace = 'x'\n", "[daemon]\npoll_s = 0\n"] {
            assert_eq!(fixture(Some(bad)).resolve().unwrap_err().exit.0, 2, "{bad}");
        }
    }

    #[test]
    fn memory_can_be_off_in_every_place() {
        assert!(fixture(Some("backend = 'none'")).resolve().unwrap().off());
        assert!(fixture(Some("[settings]\nbackend = 'none'")).resolve().unwrap().off());
        let mut f = fixture(None);
        f.global.set = vec![("backend".to_owned(), "none".to_owned())];
        assert!(f.resolve().unwrap().off());
    }

    #[test]
    fn limits_are_checked() {
        let mut f = fixture(Some("[limits]\ndeadline_ms = 250\n"));
        f.global.limit = vec![("memory_bytes".to_owned(), "1048576".to_owned())];
        let limits = f.resolve().unwrap().limits;
        assert_eq!((limits.deadline, limits.memory_bytes), (Duration::from_millis(250), 1 << 20));
        for (name, value) in [("memory", "1"), ("deadline_ms", "soon"), ("deadline_ms", "0"), ("deadline_ms", "-1")] {
            f.global.limit = vec![(name.to_owned(), value.to_owned())];
            assert_eq!(f.resolve().unwrap_err().reason, "limit", "{name}={value}");
        }
    }

    #[test]
    fn without_a_home_a_workspace_must_be_named() {
        let mut f = fixture(None);
        f.environment.base = None;
        assert_eq!(f.resolve().unwrap_err().reason, "no-home");
        f.global.workspace = Some("/w".into());
        let setup = f.resolve().unwrap();
        assert_eq!((setup.config, setup.compiled), (None, None));
    }

    #[test]
    fn other_programs_workspaces_are_found() {
        let f = fixture(None);
        for path in [".openprogram/memory", ".openprogram-work/memory", ".openprogramx/memory", ".openprogram-empty"] {
            fs::create_dir_all(f.path(path)).unwrap();
        }
        assert_eq!(
            f.resolve().unwrap().openprogram(),
            [f.path(".openprogram/memory"), f.path(".openprogram-work/memory")]
        );
    }
}
