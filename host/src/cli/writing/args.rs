//! These verbs as they are typed.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::sessions::Format;

/// Where conversations are kept.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Conversations")]
pub struct Sessions {
    /// Where conversations are kept: a directory of session directories, a directory of `*.jsonl`, or one such file
    /// [env: RECOLLEX_SESSIONS] [config: sessions.path]
    #[arg(long = "sessions", value_name = "DIR|FILE", value_hint = ValueHint::AnyPath)]
    pub path: Option<PathBuf>,
    /// How [config: sessions.format] [default: by what is there]
    #[arg(long = "sessions-format", value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Under which their turns are archived; it is a part of their ids [config: sessions.provider] [default: `openprogram` for
    /// directories of it]
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
}

/// Which branches of a conversation count.
#[derive(Args, Clone, Debug, Default)]
pub struct Heads {
    /// The node that the conversation is at [default: what the store says, or else the newest]
    #[arg(long, value_name = "NODE", requires = "session")]
    pub head: Option<String>,
    /// A node whose branch was put away; may be repeated
    #[arg(long, value_name = "NODE", requires = "session")]
    pub archived: Vec<String>,
}

/// `recollex turns`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  recollex turns pending --sessions ~/.openprogram/sessions
  recollex turns owed --session local_42
  recollex turns write --force
  recollex turns write --session local_42 --stranded")]
pub struct Turns {
    /// What to do
    #[command(subcommand)]
    pub action: TurnsAction,
}

/// What to do with turns.
#[derive(Debug, Subcommand)]
pub enum TurnsAction {
    /// What is owed: turns that the next writes write, branch by branch
    Pending(Looked),
    /// Marks held against evidence and citations: what is unmarked, marked and uncited, stranded, cited and unmarked
    Owed(Looked),
    /// Write what is due of conversations
    Write(TurnsWrite),
    /// Mark nodes as written, without writing them
    Mark(Mark),
    /// Mark what an older form of the other program had written, which kept cursors instead of marks
    Migrate(Migrate),
}

/// `recollex turns pending`, `recollex turns owed`
#[derive(Args, Debug)]
pub struct Looked {
    /// This conversation alone
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub heads: Heads,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub sessions: Sessions,
}

/// `recollex turns write`
#[derive(Args, Debug)]
pub struct TurnsWrite {
    /// This conversation alone
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Write everything that is owed, not only what is large or old enough
    #[arg(long)]
    pub force: bool,
    /// Write what is stranded: turns that no branch owes, because a later one is marked, and that nothing rests on
    #[arg(long)]
    pub stranded: bool,
    /// Another model than the configured one
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub heads: Heads,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub sessions: Sessions,
}

/// `recollex turns mark`
#[derive(Args, Debug)]
pub struct Mark {
    /// The conversation
    #[arg(long, value_name = "ID")]
    pub session: String,
    /// Ids of its nodes
    #[arg(required = true, num_args = 1.., value_name = "NODE")]
    pub nodes: Vec<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub sessions: Sessions,
}

/// `recollex turns migrate`
#[derive(Args, Debug)]
pub struct Migrate {
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub sessions: Sessions,
}

/// `recollex write`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  recollex write --session local_42
  recollex write --session local_42 --force
  recollex write --hook                     reads {\"session_id\":…} from stdin, as agents' hooks give it")]
pub struct Write {
    /// The conversation that has stopped
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Write everything that it owes, not only what is large or old enough
    #[arg(long)]
    pub force: bool,
    /// For an agent's hook: exit code 0 whatever happens, and not a word where there is nothing to say
    #[arg(long)]
    pub hook: bool,
    /// Another model than the configured one
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub heads: Heads,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub sessions: Sessions,
}

/// `recollex sleep`
#[derive(Args, Debug)]
pub struct Sleep {
    /// Only what was written to since the last time
    #[arg(long)]
    pub recent: bool,
    /// Another model than the configured one
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

/// `recollex backfill`
#[derive(Args, Debug)]
pub struct Backfill {
    /// Only say how much there is to do
    #[arg(long)]
    pub dry_run: bool,
    /// Another model than the configured one
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

/// `recollex salvage`
#[derive(Args, Debug)]
#[command(after_long_help = "\
Takes JSON Lines, {\"speaker\",\"text\"} (or {\"role\",\"content\"}) a line, or plain text.

Example:
  recollex salvage < about-to-be-dropped.jsonl")]
pub struct Salvage {
    /// What is about to be discarded; `-` or nothing: stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Another model than the configured one
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

/// `recollex daemon`
#[derive(Args, Debug)]
pub struct Daemon {
    /// One look, and no more
    #[arg(long)]
    pub once: bool,
    /// Another model than the configured one
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub sessions: Sessions,
}
