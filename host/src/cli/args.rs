//! The command line as it is typed: every verb, option and help text. Completions and manual pages come from here too.
//!
//! Knows words, not what they do. Environment variables are named in the help and read in [`super::config`], so that
//! one place decides what wins.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

pub use super::writing::args::{Backfill, Daemon, Salvage, Sleep, Turns, Write};

const LONG_ABOUT: &str = "The long-term memory of AI agents, kept as files a person can read.

What was said is kept word for word in an archive that only grows, checked to the byte, and searchable in any language.";

const AFTER_LONG_HELP: &str = "\
Exit codes:
  0  done, found, clean (also when memory is degraded: the reason is on stderr)
  1  nothing found, memory empty, or findings
  2  usage, or input that cannot be read
  3  conflict: the workspace has moved on
  4  locked by another writer
  5  memory is switched off
  6  refused: against a rule, or not allowed
  7  a limit was reached, or the component failed
  8  memory is broken

Files:
  $XDG_CONFIG_HOME/recollex/config.toml   settings; `recollex paths` shows every place in use

Start with `recollex demo`.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "recollex",
    version,
    about = "The long-term memory of AI agents, kept as files a person can read",
    long_about = LONG_ABOUT,
    after_long_help = AFTER_LONG_HELP,
    max_term_width = 100
)]
pub struct Cli {
    /// Options that every verb takes.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Options that every verb takes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Workspace directory [env: RECOLLEX_WORKSPACE]
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "profile")]
    pub workspace: Option<PathBuf>,
    /// Named workspace: that of the configuration's [profiles.NAME], or one of its own in the data directory
    /// [env: RECOLLEX_PROFILE]
    #[arg(long, global = true, value_name = "NAME")]
    pub profile: Option<String>,
    /// Configuration file [env: RECOLLEX_CONFIG]
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Where memory is kept; `none` switches it off [env: RECOLLEX_BACKEND]
    #[arg(long, global = true, value_name = "NAME")]
    pub backend: Option<String>,
    /// On whose level of trust to act
    #[arg(long, global = true, value_enum, value_name = "TIER", default_value_t = Tier::Owner)]
    pub tier: Tier,
    /// Time zone for days and "yesterday", such as `Europe/Berlin` [env: RECOLLEX_TIME_ZONE] [default: this machine's]
    #[arg(long, global = true, value_name = "NAME")]
    pub time_zone: Option<String>,
    /// Whether each change is recorded with git: `auto` (where the workspace is a repository), `on` or `off`
    /// [env: RECOLLEX_HISTORY]
    #[arg(long, global = true, value_name = "MODE")]
    pub history: Option<String>,
    /// One JSON document on stdout; errors too
    #[arg(long, global = true)]
    pub json: bool,
    /// A setting of the component, such as `search.top-k-max=50`; may be repeated
    #[arg(long, global = true, value_name = "NAME=VALUE", value_parser = assignment, action = ArgAction::Append)]
    pub set: Vec<(String, String)>,
    /// A setting of a model's role, such as `writer.model=NAME`; may be repeated [env: RECOLLEX_WRITER_MODEL, …]
    #[arg(long, global = true, value_name = "ROLE.NAME=VALUE", value_parser = assignment, action = ArgAction::Append)]
    pub role: Vec<(String, String)>,
    /// A limit: `deadline_ms`, `model_time_ms`, `memory_bytes`, `output_bytes` or `host_calls` of a call, `unpacked_bytes` of a compressed
    /// archive; may be repeated
    #[arg(long, global = true, value_name = "NAME=VALUE", value_parser = assignment, action = ArgAction::Append)]
    pub limit: Vec<(String, String)>,
    /// Say what is done and how long it took, on stderr; twice: everything
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// No progress, hints or warnings on stderr
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
}

/// The caller's tier: what the component lets them do and see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Tier {
    /// Whose memory it is
    #[default]
    Owner,
    /// Somebody the owner lets in
    Paired,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show the main job end to end on a sample, in a temporary workspace
    ///
    /// Makes a workspace, archives a conversation of three people and an assistant, verifies it, searches it in English,
    /// in Chinese and by speaker, then damages a copy at one byte and shows the finding. Each step is checked: the exit
    /// code is 0 only if all of them gave what they must. No memory of yours is touched.
    Demo(Demo),
    /// Make a workspace, or say what is there
    ///
    /// What older programs left in the directory (`journal`, `wiki`, `.state`, `index.sqlite`) is moved to its sibling
    /// `<DIR>-superseded`; nothing is overwritten.
    Init,
    /// Keep turns of a conversation as evidence
    ///
    /// Reads JSON Lines, one turn a line, and appends the turns to the archive of their conversation: all of them, or
    /// none. Turns that are there already are skipped, so repeating a call changes nothing. A turn with the id of another
    /// one but other content is reported, with exit code 1, and the first stays.
    Archive(Archive),
    /// Take in conversations that another program exported
    ///
    /// Reads the export in pieces, whatever its size, and keeps each conversation whole or not at all: dates, speakers and
    /// branches as the export has them. What is there already is left as it is, so the same export again, a newer one,
    /// or one that was interrupted adds only what is missing; what an export no longer has stays. Exit code 0: all of it
    /// is there; 1: something is not, and why is said; Ctrl-C stops between conversations.
    Import(Import),
    /// Check a workspace or one archive file
    ///
    /// Checks encoding, structure, ids and their anchors, the form of speakers and metadata, and names; reads everything once, in
    /// pieces, takes no lock and changes nothing of memory; the directory `.scriptorium-recollex`, a cache, may be
    /// refreshed. A letter changed within a text leaves all of these as they are: it is not found. Exit code 0: clean;
    /// 1: there are findings that are warnings or errors.
    Verify(Verify),
    /// Check a workspace and this machine's side of it
    ///
    /// Everything that `verify` finds; then the lock, an unfinished commit, what was kept aside after a conflict, another
    /// program's half install, permissions, names that are one to some file systems, leftovers, caches. Exit code 0: clean;
    /// 1: there are findings that are warnings or errors.
    Doctor(Doctor),
    /// Find what was said
    ///
    /// Exit code 1: nothing matched, memory is empty, or the query has no word to look for; stderr says which.
    Search(Search),
    /// What an agent's turn is told of memory: the best of what was said and claimed, in a fence for its prompt
    ///
    /// Reads the text of the turn from the command line or, where there is none, from stdin. Pending evidence is not told.
    /// Exit code 1: there is nothing to tell; stderr says why.
    Recall(Recall),
    /// Read a file or a record
    ///
    /// On a terminal with line numbers; elsewhere the text as it is.
    Get(Get),
    /// Find lines by text or by a regular expression
    ///
    /// On a terminal with the matches marked. Exit code 1: nothing matches.
    Grep(Grep),
    /// Claims by the time of their evidence, oldest first
    ///
    /// Exit code 1: there is none.
    Timeline(Timeline),
    /// What a claim rests on: who said what it cites, when, and whether that may be built on
    Why(Why),
    /// List files; with `--blocks`, what topics say
    Browse(Browse),
    /// Blocks that another program's task refers to, as they read now, for its prompt
    ///
    /// Reads a JSON list of `{"workspace_id","memory_id"}`, at most 16. All of them are shown, or none: exit code 1 where one
    /// leads to no block, 2 where one leads into another workspace. `browse --blocks` shows what there is to refer to.
    References(References),
    /// The part of memory that every prompt holds: `core.md`
    ///
    /// Exit code 1: there is none.
    Core,
    /// Change topics, by the rules: all of a request, or nothing
    ///
    /// Reads one JSON object: operations on records, whole topics, or a unified diff, with sources it quotes. Ids and stable
    /// footnotes are given, links kept right, views made anew in the same commit. A request that breaks rules is refused with
    /// every reason (exit code 6); one made for another state of the workspace is a conflict (3). Nothing is changed then.
    Update(Update),
    /// Vouch for pending records, so that they may be built on
    ///
    /// Shows who said what, and asks. Nothing of a record changes but its trust; who vouched for what is kept in the audit
    /// log. Only for the owner, in person.
    Promote(Promote),
    /// What of the workspace only its owner sees
    ///
    /// A prefix is a file or directory of the workspace, by whole parts; letter case and percent-encoding do not matter.
    /// While anything is narrowed, paired callers (`--tier paired`) see only `sources/`, and of that what is not narrowed.
    Audience(Audience),
    /// State of memory in figures
    ///
    /// Changes nothing of memory, except that views are made anew where somebody has edited topics by hand; the directory
    /// `.scriptorium-recollex`, a cache, may be refreshed.
    Status,
    /// Serve memory to an assistant that speaks the Model Context Protocol
    ///
    /// Reads requests from stdin and answers on stdout until the client goes away; everything else is said on stderr. The tools
    /// only read: `memory_search`, `memory_recall`, `memory_get`, `memory_browse`, `memory_grep`, `memory_status`. A client is
    /// told to run `recollex mcp --workspace DIR`; with `--tier paired` it sees what somebody else than the owner may see.
    #[cfg(feature = "mcp")]
    Mcp,
    /// Turns of conversations on their way to memory: what is owed, written, marked
    ///
    /// Conversations are kept by the program that they are held with: --sessions, RECOLLEX_SESSIONS or the configuration says
    /// where. Each turn of each branch is written once, and its node is marked there. Exit code 1: a conversation cannot be
    /// read, has faults, or (`owed`) has turns that are not both marked and cited.
    Turns(Turns),
    /// A conversation has just stopped: write what is due of it
    ///
    /// Evidence, then topics, then marks; ended at any moment it loses nothing and writes nothing twice. That nothing was due is
    /// no failure.
    Write(Write),
    /// Put memory in order: split, merge, repair links, move what must be seen into the core
    Sleep(Sleep),
    /// Write evidence into topics that no topic cites
    ///
    /// Trusted evidence of any kind, whether conversations are marked or not. What is cited is not offered again, so repeating
    /// the call goes on where it was.
    Backfill(Backfill),
    /// What is worth keeping of messages that are about to be discarded
    ///
    /// For an agent that shortens its context. Stores nothing. Exit code 1: nothing is worth keeping.
    Salvage(Salvage),
    /// Watch for conversations that have stopped, and put memory in order at night; in the foreground
    ///
    /// Looks every five minutes (`poll_s` in [daemon] of the configuration) and writes what is owed of those in which nothing was
    /// said for half an hour (the setting `turns.idle-s`); all of memory is put in order at 03:00 (`nightly`; `off`). Ends on
    /// SIGTERM and Ctrl-C. With --json a JSON object a line. One for each workspace.
    Daemon(Daemon),
    /// Copy the workspace to one file, as it is at one moment
    ///
    /// Other writers wait meanwhile. The file is a tar archive, whole or not there, readable by its owner alone; it holds
    /// the files of memory with their digests, and neither version control nor caches.
    Backup(Backup),
    /// Make the workspace what a backup is
    ///
    /// The backup is checked to the last byte first. Then one commit replaces what differs and removes what the backup does
    /// not have: a crash leaves the old state or the new one.
    Restore(Restore),
    /// Take the last commits back
    ///
    /// In their order, the last one first, as long as every file is as its commit left it; if one is not, exit code 3 and
    /// nothing is done from there on. Only commits made by this program count. Evidence is never edited: what was archived
    /// last can be taken back as a whole, before anything newer builds on it.
    Undo(Undo),
    /// Every directory and file in use
    Paths,
    /// How this call is set up, and by whom: settings, limits, and the models of each role
    ///
    /// Roles are `writer` (turns conversations into topics), `organiser` and `observer` (the writer where nothing is set) and
    /// `embedding`. Each has: `provider` (`openai`, `anthropic`, `command`, `replay`, `none`), `model`, `base_url`, `key_env` or
    /// `key_file`, `max_output`, `max_output_field`, `context`, `effort`, `thinking_budget`, `tools`, `command`, `pass_env`,
    /// `recording`, `record`, `dimensions`, `reply_bytes`. They are set in the configuration (`[models.writer]`), by
    /// variables (RECOLLEX_WRITER_MODEL) or by `--role writer.model=NAME`. Keys are read where they are named, and never
    /// shown.
    Config,
    /// Completions for a shell, on stdout
    Completions(Completions),
    /// Manual pages, made from these definitions
    #[command(hide = true)]
    Man(Man),
}

/// `recollex demo`
#[derive(Args, Debug)]
pub struct Demo {
    /// Keep the directory and print where it is
    #[arg(long)]
    pub keep: bool,
}

/// `recollex archive`
#[derive(Args, Debug)]
#[command(after_long_help = "\
One turn a line:
  {\"id\",\"role\":\"user|assistant|system|tool\",\"text\",\"time\"?,\"speaker\"?:{\"id\"?,\"display\"?,\"kind\"?},
   \"principal\"?,\"tier\"?,\"trust\"?,\"provider\"?,\"thread\"?}

Example:
  echo '{\"id\":\"m1\",\"role\":\"user\",\"text\":\"Dark blue it is.\"}' \\
    | recollex archive --provider notes --thread boat")]
pub struct Archive {
    /// Where the turns come from (`openprogram`, `claude-code`, a channel), for lines that do not say
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// The conversation, for lines that do not say
    #[arg(long, value_name = "NAME")]
    pub thread: Option<String>,
    /// Archive in several batches: one for each conversation, and within the size of a batch
    #[arg(long)]
    pub chunk: bool,
    /// JSON Lines; `-` or nothing: stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
}

/// `recollex import`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Where the programs have it:
  chatgpt      Settings > Data controls > Export data; a link to a .zip comes by e-mail. Inside: conversations.json
  claude       Settings > Privacy > Export data; a link to a .zip comes by e-mail. Inside: conversations.json
  claude-code  ~/.claude/projects/<project>/<session>.jsonl
  openprogram  directories of sessions, <session>/history/<number>-<role>-<id>.json
  jsonl        what `recollex archive` takes: see `recollex help archive`

Examples:
  recollex import chatgpt ~/Downloads/chatgpt-export.zip --dry-run
  recollex import claude ~/Downloads/data-2026-05-04-batch-0000.zip
  recollex import claude-code ~/.claude/projects
  unzip -p export.zip conversations.json | recollex import chatgpt -
  recollex import jsonl notes.jsonl --provider notes --thread boat --trust pending

With --json: a JSON object a line, {\"kind\":\"conversation\",…} for each conversation as it is kept,
{\"kind\":\"damage\",…} for a place in a file that holds none, and {\"kind\":\"file\",…} for each file that was left
out; the last line is {\"kind\":\"summary\",…}.

Trust: what is trusted may be built on; it does not mean that it is true. Your own exports are what you and your
assistants said, so `trusted` is the default, as it is for `archive`; what an export itself calls pending stays so.
Take in what others gave you with --trust pending: it is found and marked, and nothing is built on it, whatever
the files say of themselves.")]
pub struct Import {
    /// What the export is
    #[arg(value_enum)]
    pub format: ExportFormat,
    /// Files, directories, or the .zip as it was sent; `-`: stdin
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Instead of the format's own provider; for `jsonl`: of lines that do not say
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// For `jsonl`: the conversation of lines that do not say
    #[arg(long, value_name = "NAME")]
    pub thread: Option<String>,
    /// Whether records may be built on; with `pending` none may, whatever the export says of itself
    #[arg(long, value_enum, default_value_t = GivenTrust::Trusted)]
    pub trust: GivenTrust,
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// What an export is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A ChatGPT export: `conversations.json`
    Chatgpt,
    /// A Claude export: `conversations.json`
    Claude,
    /// Sessions of Claude Code: `*.jsonl`
    ClaudeCode,
    /// Sessions of OpenProgram: `history/*.json`
    Openprogram,
    /// JSON Lines as `archive` takes them
    Jsonl,
}

/// Whether records may be built on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GivenTrust {
    /// They may
    Trusted,
    /// Not until the owner vouches for them
    Pending,
}

/// `recollex verify`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  recollex verify                                    the workspace
  recollex verify sources/openprogram/_v2/boat.md    one file of it
  recollex verify ~/backup/memory                    another workspace
  recollex verify - --as sources/openprogram/_v2/boat.md < copy.md")]
pub struct Verify {
    /// A workspace directory, an archive file, or `-` for stdin; nothing: the workspace
    #[arg(value_hint = ValueHint::AnyPath)]
    pub path: Option<PathBuf>,
    /// The path that the file has in its workspace, if it lies elsewhere now: a record's id must fit its file
    #[arg(long = "as", value_name = "PATH")]
    pub path_in_workspace: Option<String>,
    /// First put in order what is safe to put in order in topics that somebody has edited: ids, footnotes, links, views
    #[arg(long, conflicts_with_all = ["path", "path_in_workspace"])]
    pub fix: bool,
    /// With --fix: only say what would be done
    #[arg(long, requires = "fix")]
    pub dry_run: bool,
}

/// `recollex update`
#[derive(Args, Debug)]
#[command(after_long_help = "\
The request, with one of memory_changes, changes and patch (FORMAT.md, \"Updates\"):
  {\"base_revision\",\"memory_changes\":[{\"op\":\"create_record\",\"content\",\"time\",\"source_refs\":[…],
     \"destination\":{\"topic_path\",\"headings\":[…],\"position\":\"end\"}}, …],
   \"changes\":[{\"path\",\"action\":\"write|delete\",\"content\"}], \"patch\":\"…\",
   \"sources\"?:[{\"label\":\"new-source-a\",\"role\",\"content\",\"observed_at\"}], \"removed_blocks\"?:[…],
   \"commit_message\"?}

base_revision is what `recollex status` calls revision. Example:
  recollex update --dry-run request.json")]
pub struct Update {
    /// The request; `-` or nothing: stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Show what would change, as a diff, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Who said what the request quotes, as their program knows them
    #[arg(long, value_name = "ID", default_value = "owner/local")]
    pub speaker_id: String,
    /// Their name
    #[arg(long, value_name = "NAME")]
    pub speaker: Option<String>,
    /// Their kind: `owner`, `human`, …
    #[arg(long, value_name = "KIND", default_value = "owner")]
    pub speaker_kind: String,
    /// Where it was said: conversation and turn
    #[arg(long, value_name = "PLACE", default_value = "shell")]
    pub origin: String,
}

/// `recollex doctor`
#[derive(Args, Debug)]
pub struct Doctor {
    /// Put right what is safe to put right: complete a commit, narrow permissions, remove leftovers and damaged caches
    #[arg(long)]
    pub fix: bool,
    /// With --fix: only say what would be done
    #[arg(long, requires = "fix")]
    pub dry_run: bool,
}

/// `recollex search`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  recollex search keel bolts price
  recollex search 喷油嘴 --top-k 3
  recollex search boat --speaker Ada --from 2026-05 --to 2026-05-07")]
pub struct Search {
    /// Words to look for
    #[arg(required = true, num_args = 1.., value_name = "QUERY")]
    pub query: Vec<String>,
    /// How many results at most
    #[arg(short = 'k', long, value_name = "N", default_value_t = 10)]
    pub top_k: u32,
    /// Only what this speaker said: an id, a name or a label
    #[arg(long, value_name = "WHO")]
    pub speaker: Option<String>,
    /// Only below this path of the workspace
    #[arg(long, value_name = "PATH")]
    pub path_prefix: Option<String>,
    /// First day: `YYYY`, `YYYY-MM` or `YYYY-MM-DD`; leaves out what has no date
    #[arg(long, value_name = "DAY")]
    pub from: Option<String>,
    /// Last day, included, in the same form
    #[arg(long, value_name = "DAY")]
    pub to: Option<String>,
    /// Where to look
    #[arg(long, value_enum, default_value_t = Kind::Any)]
    pub kind: Kind,
    /// The conversation you are in: `provider/thread`. What stands on your own branch of it comes first
    #[arg(long, value_name = "SESSION", requires = "head")]
    pub session: Option<String>,
    /// Where you are in it: the last message's part of its id
    #[arg(long, value_name = "MESSAGE", requires = "session")]
    pub head: Option<String>,
    /// By what it is found; this version finds by words only
    #[arg(long, value_enum, default_value_t = Method::Words)]
    pub method: Method,
    /// Say how each score came about
    #[arg(long)]
    pub explain: bool,
}

/// `recollex recall`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  recollex recall What do the keel bolts cost?
  recollex recall --max-tokens 400 --json < turn.txt")]
pub struct Recall {
    /// What the turn is about; none: stdin
    #[arg(value_name = "TEXT")]
    pub text: Vec<String>,
    /// Tokens it may take, the fence included [default: the setting `recall.tokens`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Records and claims at most [default: the setting `recall.memories`]
    #[arg(short = 'k', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_memories: Option<u32>,
    /// Wait so many milliseconds at most; then say that the answer is pending, and tell nothing
    #[arg(long, value_name = "MS")]
    pub wait_ms: Option<u64>,
}

/// By what something is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// By its words
    Words,
    /// By what it means, as the model of `[models.embedding]` has it; what matches is sent to that model once
    Embedding,
    /// By both; by words alone if the model fails
    Hybrid,
}

/// Where to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// What was said
    Source,
    /// What it means
    Topic,
    /// Both
    Any,
}

/// `recollex get`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  recollex get openprogram/boat/m1
  recollex get sources/openprogram/_v2/boat.md:200             as findings name a line
  recollex get sources/openprogram/_v2/boat.md --from-line 200 --lines 50
  recollex get topics/boat.md --heading Paint
  recollex get --block 88a4558a                                a paragraph with its footnotes")]
pub struct Get {
    /// A path in the workspace, a record's id, or `path#anchor`
    #[arg(required_unless_present = "block", conflicts_with = "block", default_value = "", hide_default_value = true)]
    pub target: String,
    /// First line, from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub from_line: Option<u64>,
    /// How many lines at most [default: the setting `get.lines`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub lines: Option<u32>,
    /// Only what stands under this heading
    #[arg(long, value_name = "TITLE", conflicts_with_all = ["from_line", "lines", "block"])]
    pub heading: Option<String>,
    /// A block of a topic, by its id, with the footnotes it cites
    #[arg(long, value_name = "ID", conflicts_with_all = ["from_line", "lines"])]
    pub block: Option<String>,
    /// As HTML, for viewers: topics and views as they read, records and archives as they stand
    #[arg(long, conflicts_with = "json")]
    pub html: bool,
}

/// `recollex grep`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  recollex grep 'dark blue'
  recollex grep -e 'keel|bolts?' --path-prefix topics -C 2")]
pub struct Grep {
    /// What to look for within a line
    pub pattern: String,
    /// The pattern is a regular expression, of the kind that takes time in proportion to the text
    #[arg(short = 'e', long)]
    pub regex: bool,
    /// Upper and lower case differ
    #[arg(short = 's', long)]
    pub case_sensitive: bool,
    /// Only below this path
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    pub path_prefix: String,
    /// Lines to show before and after each match
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0)]
    pub context: u32,
    /// How many matches at most [default: the setting `grep.matches`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max: Option<u32>,
}

/// `recollex timeline`
#[derive(Args, Debug)]
pub struct Timeline {
    /// First day: YYYY, YYYY-MM or YYYY-MM-DD
    #[arg(long, value_name = "DATE")]
    pub from: Option<String>,
    /// Last day, the same way, included
    #[arg(long, value_name = "DATE")]
    pub to: Option<String>,
    /// How many claims at most [default: the setting `timeline.entries`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max: Option<u32>,
}

/// `recollex why`
#[derive(Args, Debug)]
pub struct Why {
    /// Id of the claim's block, as `search` and `timeline` show it
    pub block: String,
}

/// `recollex browse`
#[derive(Args, Debug)]
pub struct Browse {
    /// Only below this path of the workspace
    #[arg(default_value = "", hide_default_value = true)]
    pub prefix: String,
    /// At most this many files, or blocks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max: Option<u32>,
    /// List the blocks of topics: of each its id, its headings and how it begins
    #[arg(long)]
    pub blocks: bool,
    /// Only blocks of which an id, the path or the text contains this
    #[arg(long = "match", value_name = "TEXT", requires = "blocks")]
    pub matching: Option<String>,
}

/// `recollex references`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  echo '[{\"workspace_id\":\"w-0a1b2c3d\",\"memory_id\":\"k3x9q2ab\"}]' | recollex references --max-chars 2000")]
pub struct References {
    /// The list; `-` or nothing: stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// How many characters the text may have; the blocks share them [default: the setting `references.chars`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_chars: Option<u32>,
}

/// `recollex promote`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  recollex promote channel-slack/acct%3AC1/6ecfdeb3e011aa09e1b56443
  recollex promote slack/general/m7 slack/general/m9 --dry-run")]
pub struct Promote {
    /// Ids of records, or `path#anchor`
    #[arg(required = true, num_args = 1.., value_name = "ID")]
    pub ids: Vec<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// `recollex audience`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  recollex audience
  recollex audience narrow sources/channel-slack
  recollex audience narrow topics/health
  recollex audience widen topics/health")]
pub struct Audience {
    /// Nothing: `list`
    #[command(subcommand)]
    pub action: Option<AudienceAction>,
}

/// What to do with the audience.
#[derive(Debug, Subcommand)]
pub enum AudienceAction {
    /// List what only the owner sees
    List,
    /// Let only the owner see a path and what lies below it
    Narrow {
        /// A file or directory of the workspace
        prefix: String,
    },
    /// Take such a prefix back
    Widen {
        /// As `list` shows it
        prefix: String,
    },
}

/// `recollex backup`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  recollex backup ~/backups                  a file named after workspace and time
  recollex backup /media/stick/memory.tar")]
pub struct Backup {
    /// The file to make, or the directory to make it in
    #[arg(value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub target: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
}

/// `recollex restore`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  recollex restore memory.tar --dry-run
  recollex restore memory.tar --workspace /srv/memory      into an empty directory
  recollex restore memory.tar --replace                    over what is there, after a backup of that")]
pub struct Restore {
    /// A file made by `recollex backup`
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Replace what is there; a backup of it is made first
    #[arg(long)]
    pub replace: bool,
    /// Where that backup goes [default: beside the workspace]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub safety: Option<PathBuf>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// `recollex undo`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  recollex undo --list
  recollex undo --dry-run
  recollex undo 2
  recollex undo --redo

Commits are taken back in their order, the last one first, and only while the files that they touched are as they left
them. The last 32 are kept, and of old versions at most 256 MiB. It ends at a commit of more than 1,000 changes, at one
that another program made, at one that erased something for good, and where the medium has no hard links.")]
pub struct Undo {
    /// How many commits
    #[arg(value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// List the commits that can be taken back, the last one first
    #[arg(long, conflicts_with_all = ["redo", "dry_run"])]
    pub list: bool,
    /// Bring back what was taken back
    #[arg(long)]
    pub redo: bool,
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// `recollex completions`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  recollex completions bash > ~/.local/share/bash-completion/completions/recollex
  recollex completions zsh > ~/.zfunc/_recollex
  recollex completions fish > ~/.config/fish/completions/recollex.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// `recollex man`
#[derive(Args, Debug)]
pub struct Man {
    /// The verb; nothing: the program
    pub verb: Option<String>,
    /// Write all pages into this directory instead
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "verb")]
    pub dir: Option<PathBuf>,
}

/// `NAME=VALUE`
fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(words: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once(&"recollex").chain(words))
    }

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_options_stand_before_or_behind_the_verb() {
        for words in [&["--json", "--workspace", "/w", "status"][..], &["status", "--json", "--workspace", "/w"]] {
            let cli = parse(words).unwrap();
            assert!(cli.global.json);
            assert_eq!(cli.global.workspace.as_deref(), Some(std::path::Path::new("/w")));
        }
    }

    #[test]
    fn search_takes_words_and_filters() {
        let cli = parse(&["search", "keel", "bolts", "--speaker", "Ada", "-k", "3", "--kind", "source"]).unwrap();
        let Verb::Search(search) = cli.verb else { panic!("not search") };
        assert_eq!(search.query, ["keel", "bolts"]);
        assert_eq!((search.speaker.as_deref(), search.top_k, search.kind), (Some("Ada"), 3, Kind::Source));
    }

    #[test]
    fn an_empty_query_is_for_the_component_to_refuse() {
        let Verb::Search(search) = parse(&["search", ""]).unwrap().verb else { panic!("not search") };
        assert_eq!(search.query, [""]);
        assert!(parse(&["search"]).is_err());
    }

    #[test]
    fn assignments_keep_later_equals_signs() {
        let cli = parse(&["status", "--set", "a.b=c=d", "--limit", "deadline_ms=5"]).unwrap();
        assert_eq!(cli.global.set, [("a.b".to_owned(), "c=d".to_owned())]);
        assert_eq!(cli.global.limit, [("deadline_ms".to_owned(), "5".to_owned())]);
        assert!(parse(&["status", "--set", "=x"]).is_err());
        assert!(parse(&["status", "--set", "x"]).is_err());
    }

    #[test]
    fn contradictions_are_refused() {
        assert!(parse(&["status", "--workspace", "/w", "--profile", "p"]).is_err());
        assert!(parse(&["status", "-v", "--quiet"]).is_err());
        assert!(parse(&["get", "x", "--from-line", "0"]).is_err());
        assert!(parse(&["search", "x", "--kind", "experience"]).is_err());
        assert!(parse(&["import", "chatgpt"]).is_err());
        assert!(parse(&["import", "export.zip", "chatgpt"]).is_err());
    }
}
