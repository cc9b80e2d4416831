//! The families `config`, `rig`, `scheduler` and `journal`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::words;

/// `ym config …`
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ConfigCmd {
    /// Print the value of a key
    #[command(after_long_help = "Example:\n  ym config get scheduler.max_polecats")]
    Get {
        /// Such as scheduler.max_polecats
        key: String,
    },
    /// Set a key; comments in the file are kept
    #[command(
        after_long_help = "Examples:\n  ym config set scheduler.max_polecats -1\n  ym config set worker.agent claude\n  ym config set limits.hard_cap 2h"
    )]
    Set {
        /// Such as scheduler.max_polecats
        key: String,
        /// A number, a duration such as 30s, a word, or a list
        #[arg(allow_negative_numbers = true)]
        value: String,
        /// Further words of a list; those with a hyphen after --
        #[arg(value_name = "WORD", hide = true)]
        more: Vec<String>,
    },
    /// Take a key out of the file, so that its default holds
    #[command(after_long_help = "Example:\n  ym config unset worker.agent")]
    Unset {
        /// Such as scheduler.max_polecats
        key: String,
    },
    /// Print every key with its value
    #[command(after_long_help = "Example:\n  ym config list scheduler")]
    List {
        /// Only keys that begin so
        prefix: Option<String>,
    },
}

/// `ym http …`
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum HttpCmd {
    /// Print the token that opens the HTTP API, or the session of one agent
    ///
    /// The token opens everything and lies in http.token_file, which is made on first use. A session opens only the
    /// tasks of one agent: it submits, sees and calls off nothing else. It holds as long as the token does.
    #[command(
        after_long_help = "Examples:\n  curl -H \"Authorization: Bearer $(ym http token)\" http://127.0.0.1:7777/tasks\n  ym http token --agent agent-1     # for Authorization: Session …"
    )]
    Token {
        /// Print the session of this agent instead
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
    },
    /// Print the key that webhooks are signed with
    ///
    /// Receivers check webhook-signature with it, as the Standard Webhooks specification says.
    #[command(after_long_help = "Example:\n  ym http secret")]
    Secret,
}

/// `ym hooks …`
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum HooksCmd {
    /// Write the hooks that bd runs into the workspaces of rigs
    ///
    /// A hook that is there already and is not ours stays as it is; what to add to it is printed.
    #[command(after_long_help = "Example:\n  ym hooks install --rig shop")]
    Install {
        /// Only of this rig
        #[arg(long, value_name = "RIG")]
        rig: Option<String>,
    },
    /// Print which hooks are there
    #[command(after_long_help = "Example:\n  ym hooks list")]
    List {
        /// Only of this rig
        #[arg(long, value_name = "RIG")]
        rig: Option<String>,
    },
    /// Take our hooks away
    #[command(after_long_help = "Example:\n  ym hooks remove")]
    Remove {
        /// Only of this rig
        #[arg(long, value_name = "RIG")]
        rig: Option<String>,
    },
    /// Print a hook for a tool, to be put in its place by hand
    #[command(
        after_long_help = "Examples:\n  ym hooks show claude\n  ym hooks show git > .git/hooks/post-merge"
    )]
    Show {
        /// Which tool
        what: HookSnippet,
        /// Have only the workspace of this rig read
        #[arg(long, value_name = "RIG")]
        rig: Option<String>,
    },
}

/// What `ym hooks show` prints.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum HookSnippet {
    /// A script for .beads/hooks
    Beads,
    /// Hooks for Claude Code's settings.json
    Claude,
    /// A script for .git/hooks
    Git,
}

/// `ym rig …`
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum RigCmd {
    /// Register a project
    ///
    /// A directory with a beads workspace (.beads) becomes a rig that reads its beads from there: ym follows it as it
    /// changes and never writes to it.
    #[command(
        after_long_help = "Examples:\n  ym rig add api --prefix api --path ~/src/api --max-polecats 2\n  ym rig add shop --path ~/src/shop      # reads ~/src/shop/.beads"
    )]
    Add(RigAdd),
    /// List the projects
    #[command(after_long_help = "Example:\n  ym rig list --json")]
    List,
    /// Forget a project that has no work under way
    #[command(after_long_help = "Example:\n  ym rig remove api")]
    Remove {
        /// Which one
        name: String,
    },
    /// Stop new work in a project
    #[command(after_long_help = "Example:\n  ym rig park api")]
    Park {
        /// Which one
        name: String,
    },
    /// Let work start again in a parked project
    #[command(after_long_help = "Example:\n  ym rig unpark api")]
    Unpark {
        /// Which one
        name: String,
    },
    /// Take a project out of service
    #[command(after_long_help = "Example:\n  ym rig dock api")]
    Dock {
        /// Which one
        name: String,
    },
    /// Put a docked project back into service
    #[command(after_long_help = "Example:\n  ym rig undock api")]
    Undock {
        /// Which one
        name: String,
    },
}

// `ym rig add`
#[derive(Debug, Args)]
pub(crate) struct RigAdd {
    /// Its name
    pub(crate) name: String,
    /// The prefix of its beads, without the hyphen [default: that of its beads workspace]
    #[arg(long, short)]
    pub(crate) prefix: Option<String>,
    /// Where its workers run [default: NAME in the town if there, else the town]
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
    /// The JSON lines its beads are read from [default: those of .beads in its directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) beads: Option<PathBuf>,
    /// Leave a beads workspace alone; its beads are native
    #[arg(long, conflicts_with = "beads")]
    pub(crate) no_beads: bool,
    /// At most so many live workers; -1 and 0: no limit
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_polecats: Option<i64>,
    /// Executor of its beads: local, tmux or slurm
    #[arg(long)]
    pub(crate) executor: Option<String>,
    /// Formula of its beads
    #[arg(long)]
    pub(crate) formula: Option<String>,
}

/// `ym scheduler …`
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum SchedulerCmd {
    /// Show mode, pause, queue and capacity
    #[command(after_long_help = "Example:\n  ym scheduler status")]
    Status,
    /// List scheduled beads by rig, with what they wait for
    #[command(after_long_help = "Example:\n  ym scheduler list")]
    List,
    /// Run one planning pass now
    #[command(after_long_help = "Examples:\n  ym scheduler run --dry-run\n  ym scheduler run --batch 2")]
    Run {
        /// Only say what would start
        #[arg(long)]
        dry_run: bool,
        /// At most so many starts; 0: no limit [default: scheduler.batch_size]
        #[arg(long, value_name = "N")]
        batch: Option<u32>,
    },
    /// Pause all dispatch
    #[command(after_long_help = "Example:\n  ym scheduler pause --reason \"API outage\" --for 2h")]
    Pause {
        /// Why
        #[arg(long)]
        reason: Option<String>,
        /// For how long [default: until resumed]
        #[arg(long = "for", value_name = "D", value_parser = words::span)]
        span: Option<Duration>,
    },
    /// Resume dispatch
    #[command(after_long_help = "Example:\n  ym scheduler resume")]
    Resume,
    /// Take beads off the schedule
    #[command(
        after_long_help = "Examples:\n  ym scheduler clear --bead gt-abc\n  ym scheduler clear          # all of them; ym undo puts them back"
    )]
    Clear {
        /// Only this one
        #[arg(long)]
        bead: Option<String>,
    },
    /// Give broken, failed or cancelled work another chance, with fresh budgets
    #[command(after_long_help = "Example:\n  ym scheduler retry gt-abc")]
    Retry {
        /// Which bead
        bead: String,
    },
    /// Run the safety scan now: find what was left behind, and release it
    ///
    /// Looks for dead workers, beads in progress that nobody is on (recovery.stale_after), contexts whose bead was closed or
    /// taken, ready beads that were missed, and stuck convoys. What it releases becomes ready like everything else; beads
    /// of a workspace are only reported.
    #[command(
        after_long_help = "Examples:\n  ym scheduler recover --dry-run\n  ym scheduler recover\n\nA daemon runs this scan by itself (scheduler.safety_scan)."
    )]
    Recover {
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
    },
}

/// `ym journal …`
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum JournalCmd {
    /// Look for damage in the whole journal; exit code 1 if there is any
    #[command(after_long_help = "Example:\n  ym journal check --json")]
    Check,
    /// Write a copy of this moment to a new file, or move the journal
    ///
    /// A copy to a file can be made beside a running daemon. One to a database, or back to sqlite, is for moving the town's
    /// journal there, so nobody may serve the town meanwhile; ym config set store then has the town use it. Nothing is ever
    /// written over. ym help config says what an address looks like.
    #[command(
        after_long_help = "Examples:\n  ym journal copy ~/backup/town-journal.db\n  ym journal copy 'postgres://ann@localhost/yards?schema=shop'\n  ym journal copy sqlite"
    )]
    Copy {
        /// What to copy, if not the town's journal: a file, sqlite or postgres://…
        #[arg(value_name = "FROM")]
        first: String,
        /// Where to: a new file, sqlite (the town's own file) or postgres://…?schema=NAME
        #[arg(value_name = "TO")]
        second: Option<String>,
    },
}
