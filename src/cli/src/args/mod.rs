//! The words of the command line. One definition yields parsing, help, man page and completions.

mod agent;
mod bead;
mod convoy;
mod family;
mod mcp;
mod sling;
mod worker;
mod worktree;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use agent::{AgentArgs, AgentCmd, AgentRegister, StatusWord};
pub(crate) use bead::{BeadAdd, BeadCmd, BeadUpdate, DepCmd, Like};
pub(crate) use convoy::{ConvoyCmd, ConvoyCreate};
pub(crate) use family::{
    ConfigCmd, HookSnippet, HooksCmd, HttpCmd, JournalCmd, RigAdd, RigCmd, SchedulerCmd,
};
pub(crate) use mcp::McpArgs;
pub(crate) use sling::{AddArgs, MergeWord, SlingArgs};
pub(crate) use worker::{WorkerArgs, WorkerCmd};
pub(crate) use worktree::WorktreeCmd;

use crate::words::{self, Since};

/// Runs work that runs by itself: coding agents, and any long command.
#[derive(Debug, Parser)]
#[command(name = "ym", version, disable_help_subcommand = true, max_term_width = 80)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,

    /// Serve the town in the foreground until SIGTERM: dispatch by itself, answer commands
    #[arg(long)]
    pub(crate) daemon: bool,

    /// Colours of the console: terminal, okabe-ito, light, mono, or a TOML file [default: YM_THEME]
    #[arg(long, value_name = "THEME")]
    pub(crate) theme: Option<String>,

    /// Only ASCII characters in the console
    #[arg(long)]
    pub(crate) ascii: bool,

    #[command(subcommand)]
    pub(crate) command: Option<Cmd>,
}

/// Flags of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// The town: a directory or ssh://host/path [default: YM_TOWN, else the nearest directory upwards with a .yardmaster folder]
    #[arg(long, global = true, value_name = "TOWN", display_order = 900)]
    pub(crate) town: Option<PathBuf>,

    /// The town behind this address, such as https://host:7777, or one of several [default: YM_SERVER]
    #[arg(long, global = true, value_name = "URL", conflicts_with = "town", display_order = 904)]
    pub(crate) server: Option<String>,

    /// The file with the server's token [default: what YM_TOKEN says]
    #[arg(long, global = true, value_name = "FILE", display_order = 905)]
    pub(crate) token_file: Option<PathBuf>,

    /// Who signed the server's certificate (PEM) [default: YM_CA, else whom the system trusts]
    #[arg(long, global = true, value_name = "FILE", display_order = 906)]
    pub(crate) ca: Option<PathBuf>,

    /// Somebody at the other end of ssh looks at this, on a terminal with so many columns
    #[arg(long, global = true, hide = true, value_name = "COLUMNS")]
    pub(crate) seen_afar: Option<u16>,

    /// Answer with a JSON document
    #[arg(long, global = true, display_order = 901)]
    pub(crate) json: bool,

    /// Print only ids
    #[arg(short, long, global = true, display_order = 902)]
    pub(crate) quiet: bool,

    /// When to use colours: auto, always or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    #[arg(hide_default_value = true, display_order = 903)]
    pub(crate) color: ColorChoice,
}

// `ym demo`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DemoArgs {
    /// Progress lines and a summary, no console
    #[arg(long)]
    pub(crate) headless: bool,
    /// How many times the usual work
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub(crate) scale: u32,
    /// So many times as fast; the usual work takes about two minutes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub(crate) speed: u32,
}

impl Default for DemoArgs {
    fn default() -> Self {
        Self { headless: false, scale: 1, speed: 1 }
    }
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Every command. Each is made only when it is called, after all that is said of it here: a doc comment on a struct of
/// arguments would take the place of that, so those have plain ones.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Cmd {
    /// Make a town; its directory becomes the first rig
    ///
    /// If the directory has a beads workspace (.beads), the rig reads its beads from there.
    #[command(after_long_help = "Example:\n  ym init ~/work/shop --prefix shop")]
    Init {
        /// Where [default: the working directory]
        dir: Option<PathBuf>,
        /// Bead prefix of the first rig [default: from its beads, else from its name]
        #[arg(long, short)]
        prefix: Option<String>,
        /// Where its journal is: sqlite, or postgres://…?schema=NAME [default: sqlite]
        #[arg(long)]
        store: Option<String>,
    },
    /// Watch a throw-away town with simulated agents at work
    ///
    /// Night trains go on sale: an epic of sixty beads in two rigs, with crashes, a preemption and a circuit that breaks.
    /// On a terminal the console opens on it; otherwise what happens is printed. Nothing is left behind.
    #[command(after_long_help = "Examples:\n  ym demo\n  ym demo --headless --scale 3")]
    Demo(DemoArgs),
    /// Show the whole picture: queue, workers, blocked, broken, capacity
    #[command(after_long_help = "Example:\n  ym status --json | jq .scheduler.queued_ready")]
    Status,
    /// Read and change the settings of the town
    #[command(
        subcommand,
        after_long_help = "Example:\n  ym config set scheduler.max_polecats 5\n\nym help config lists every key."
    )]
    Config(ConfigCmd),
    /// Manage the projects of the town
    #[command(subcommand, after_long_help = "Example:\n  ym rig add api --prefix api --path ~/src/api")]
    Rig(RigCmd),
    /// Manage native beads, the pieces of work
    #[command(
        subcommand,
        after_long_help = "Example:\n  ym bead add \"Fix the login page\" --rig api --priority P1"
    )]
    Bead(BeadCmd),
    /// Schedule a command as a bead of its own
    #[command(
        after_long_help = "Examples:\n  ym add -- make test\n  ym add --after b-x1 --priority 80 -- ./deploy.sh staging\n  ym add --file jobs.jsonl      # {\"argv\": [\"true\"], \"id\": \"b-1\", \"after\": []}"
    )]
    Add(AddArgs),
    /// Wait until beads have ended or nothing can progress
    #[command(
        after_long_help = "Examples:\n  ym wait gt-abc gt-def --timeout 30m\n  ym wait --all\n\nExit code 1 if any failed or is stuck."
    )]
    Wait {
        /// Beads
        #[arg(required_unless_present = "all", value_name = "ID")]
        ids: Vec<String>,
        /// Everything that is scheduled or runs
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// For how long at most
        #[arg(long, value_name = "D", value_parser = words::span)]
        timeout: Option<Duration>,
    },
    /// Ask for beads, an epic or a convoy to be run
    #[command(
        after_long_help = "Examples:\n  ym sling gt-abc gastown              # one bead\n  ym sling gt-abc gt-def gastown       # a batch\n  ym sling gt-epic-123                 # all children of an epic\n  ym sling hq-cv-abc12                 # all beads of a convoy\n  ym sling gt-abc --args \"mind the tests\" --var model=opus"
    )]
    Sling(Box<SlingArgs>),
    /// Look at the queue, run a pass, pause and resume
    #[command(subcommand, after_long_help = "Example:\n  ym scheduler run --dry-run")]
    Scheduler(SchedulerCmd),
    /// Plan, launch and follow sets of beads
    #[command(
        subcommand,
        after_long_help = "Examples:\n  ym convoy stage shop-e1 && ym convoy launch shop-e1\n  ym convoy create \"Login\" gt-abc gt-def\n\nym help convoys is the short manual."
    )]
    Convoy(ConvoyCmd),
    /// Say when it will be done, and what holds it up
    ///
    /// Plays the schedule of what is left through, by the scheduler's own rules and with durations from earlier runs:
    /// by formula or program, rig and type. Beads unlike anything that ever ran rest on a guess, which is said.
    /// A staged convoy is forecast as if it were launched now.
    #[command(
        after_long_help = "Examples:\n  ym forecast                       # everything that is asked for\n  ym forecast hq-cv-abc12           # one convoy, wave by wave\n  ym forecast --max-polecats 16     # what 16 slots would change\n\nym help forecast says what it knows and what it does not."
    )]
    Forecast {
        /// A convoy [default: the whole town]
        convoy: Option<String>,
        /// Say what this many slots of the town would change
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        max_polecats: Option<i64>,
    },
    /// Say why a bead is not running, and how it came to where it is
    #[command(after_long_help = "Example:\n  ym why gt-abc")]
    Why {
        /// A bead or convoy
        id: String,
    },
    /// Show all that is known of a bead, context, dispatch or convoy
    #[command(after_long_help = "Example:\n  ym show gt-abc@2")]
    Show {
        /// Which; a unique prefix will do
        id: String,
    },
    /// Print what a worker wrote
    #[command(after_long_help = "Examples:\n  ym logs gt-abc -n 50\n  ym logs gt-abc@2 -f")]
    Logs {
        /// A bead (its last dispatch) or a dispatch
        id: String,
        /// Go on until the dispatch ends
        #[arg(short, long)]
        follow: bool,
        /// Only the last so many lines
        #[arg(short = 'n', long, value_name = "N")]
        lines: Option<usize>,
    },
    /// Go to a worker's own terminal, where it has one
    #[command(
        after_long_help = "Examples:\n  ym sling gt-abc --executor tmux\n  ym attach gt-abc\n\nC-b d detaches; the worker goes on. Inside another tmux whose prefix is C-b\nit is C-b C-b d. A worker of the executors local and slurm has no terminal:\nym logs -f follows what it writes."
    )]
    Attach {
        /// A bead (its last dispatch) or a dispatch
        id: String,
        /// Only look: what is typed does not reach the worker
        #[arg(short, long)]
        read_only: bool,
    },
    /// Show what a person should know
    #[command(
        after_long_help = "Examples:\n  ym alerts\n  ym alerts --ack al-2f\n\nalerts.command is told each alert once, as JSON on its standard input."
    )]
    Alerts {
        /// Also those somebody has seen
        #[arg(long, short)]
        all: bool,
        /// You have seen this one
        #[arg(long, value_name = "ID", conflicts_with = "all")]
        ack: Option<String>,
    },
    /// Print the log of everything that happened
    #[command(
        after_long_help = "Examples:\n  ym events --since 10m\n  ym events --follow --type dispatch --json"
    )]
    Events {
        /// Go on as they happen
        #[arg(short, long)]
        follow: bool,
        /// From there on: a position, a time or a span ago
        #[arg(long, value_name = "T|SEQ", value_parser = words::since)]
        since: Option<Since>,
        /// Only this type, such as bead.closed, or this concept, such as bead
        #[arg(long = "type", value_name = "T")]
        kind: Option<String>,
        /// Only the last so many
        #[arg(short = 'n', long, value_name = "N")]
        lines: Option<usize>,
    },
    /// Call work off: off the schedule, its worker ended
    #[command(after_long_help = "Example:\n  ym cancel gt-abc")]
    Cancel {
        /// A bead, context or dispatch
        id: String,
    },
    /// Call work off and kill its worker at once
    #[command(after_long_help = "Example:\n  ym kill gt-abc")]
    Kill {
        /// A bead, context or dispatch
        id: String,
    },
    /// Have a running bead give way to work that waits
    ///
    /// Its worker is asked to come to a checkpoint, asked once more, then ended; its bead goes back to its old place in
    /// the queue and goes on after its last finished step.
    #[command(after_long_help = "Examples:\n  ym preempt gt-abc\n  ym preempt gt-abc --for gt-urgent")]
    Preempt {
        /// A running bead, or its dispatch
        id: String,
        /// Who gets the slot [default: the most urgent bead it would let start]
        #[arg(long = "for", value_name = "BEAD")]
        candidate: Option<String>,
    },
    /// Hold scheduled work back
    #[command(after_long_help = "Example:\n  ym hold gt-abc")]
    Hold {
        /// A bead or context
        id: String,
    },
    /// Let held work go
    #[command(after_long_help = "Example:\n  ym unhold gt-abc")]
    Unhold {
        /// A bead or context
        id: String,
    },
    /// Change the priority of scheduled work
    #[command(after_long_help = "Example:\n  ym priority gt-abc 90")]
    Priority {
        /// A bead or context
        id: String,
        /// 1 to 100, higher is sooner
        #[arg(value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
        priority: u8,
    },
    /// Say something about the dispatch you run in
    #[command(
        after_long_help = "Examples:\n  ym worker checkpoint \"tests written\"\n  ym worker cost 0.42\n\nA worker is known by YM_DISPATCH. What comes from a dispatch that is over is refused."
    )]
    Worker(WorkerArgs),
    /// Registered agents: orders, claims and who does what
    #[command(
        after_long_help = "Examples:\n  ym agent register fern --program claude-code\n  ym sling gt-abc --assign\n  ym agent inbox --as fern --wait\n  ym agent claim gt-abc --as fern && ym agent done gt-abc --as fern\n\nym help agents is the short manual."
    )]
    Agent(AgentArgs),
    /// Serve agents over MCP, on standard input and output
    ///
    /// A server of the Model Context Protocol, started by the agent's program: register, inbox, claim, done and so on as
    /// tools. It lives as long as its client; every call asks the town, with or without a daemon, but only a daemon sends
    /// orders.
    #[command(after_long_help = mcp::EXAMPLES)]
    Mcp(McpArgs),
    /// Take the last operator command back
    ///
    /// Pause, resume, hold, unhold, priority, clear, retry, cancel of waiting work, park, dock, config set and unset, and
    /// convoy stage, close, land and watch can be taken back, one after the other, up to 50. What no longer applies, or
    /// cannot be taken back (a worker that was stopped, a convoy that was launched), is said in words and then forgotten;
    /// nothing else changes. A setting that somebody has changed since in the file is left alone.
    #[command(
        after_long_help = "Examples:\n  ym scheduler clear && ym undo\n  ym config set scheduler.max_polecats 16 && ym undo"
    )]
    Undo,
    /// Do again what was taken back last
    ///
    /// Any new operator command ends what could be done again.
    #[command(after_long_help = "Example:\n  ym undo && ym redo")]
    Redo,
    /// Drain and stop the daemon
    #[command(
        after_long_help = "Examples:\n  ym stop --timeout 5m\n  ym stop --leave-running     # workers carry on without it"
    )]
    Stop {
        /// How long workers may take to end [default: limits.shutdown_timeout]
        #[arg(long, value_name = "D", value_parser = words::span)]
        timeout: Option<Duration>,
        /// Leave the workers to their shims
        #[arg(long)]
        leave_running: bool,
    },
    /// Have config and beads workspaces read again, now
    ///
    /// With --hook it is for scripts that other tools run: it says nothing, exits 0 whatever happens, and is over within
    /// moments, also where nobody serves the town or the daemon hangs.
    #[command(
        after_long_help = "Examples:\n  ym poke\n  ym poke shop        # after a change in a workspace that ym cannot watch\n  ym poke --hook shop # from a hook (ym hooks)"
    )]
    Poke {
        /// Only the workspace of this rig
        rig: Option<String>,
        /// From a hook: silent, quick, always 0
        #[arg(long)]
        hook: bool,
    },
    /// Look after the git worktrees of dispatches
    #[command(
        subcommand,
        after_long_help = "Example:\n  ym worktree list\n\nym help worktrees is the short manual."
    )]
    Worktree(WorktreeCmd),
    /// Check the health of the town
    #[command(after_long_help = "Example:\n  ym doctor --fix")]
    Doctor {
        /// Repair what can safely be repaired
        #[arg(long)]
        fix: bool,
        /// Try beads again from here whose workers only another place knows: only when that place is gone for good
        #[arg(long)]
        give_up_workers: bool,
    },
    /// Hooks by which other tools tell that beads changed
    #[command(
        subcommand,
        after_long_help = "Examples:\n  ym hooks install\n  ym hooks show claude\n\nym help presets is the short manual."
    )]
    Hooks(HooksCmd),
    /// Tokens of the HTTP API
    #[command(
        subcommand,
        after_long_help = "Examples:\n  ym config set http.listen 127.0.0.1:7777\n  ym http token\n\nym help tasks is the short manual."
    )]
    Http(HttpCmd),
    /// Check or copy the log of everything that happened
    #[command(subcommand, after_long_help = "Example:\n  ym journal check")]
    Journal(JournalCmd),
    /// Print a completion script for a shell
    #[command(
        after_long_help = "Example:\n  ym completions bash > ~/.local/share/bash-completion/completions/ym"
    )]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(after_long_help = "Example:\n  ym man | man -l -")]
    Man {
        /// Of this command
        command: Vec<String>,
    },
    /// Explain a command or a topic
    #[command(after_long_help = "Example:\n  ym help quickstart")]
    Help {
        /// A command, or one of quickstart, concepts, convoys, dispatches, agents, tasks, forecast, presets, remote, config, formulas, json, exit-codes
        topic: Vec<String>,
    },
}
