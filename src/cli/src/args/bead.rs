//! The family `bead`.

use clap::{Args, Subcommand, ValueEnum};

use crate::words;

/// `ym bead …`
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum BeadCmd {
    /// Make a bead
    #[command(
        after_long_help = "Examples:\n  ym bead add \"Fix the login page\" --rig api --needs api-x1\n  ym bead add \"Nightly build\" --id api-nightly -- make nightly"
    )]
    Add(Box<BeadAdd>),
    /// Show a bead
    #[command(after_long_help = "Example:\n  ym bead show gt-abc")]
    Show {
        /// Which one
        id: String,
    },
    /// List beads
    #[command(after_long_help = "Example:\n  ym bead list --rig api --all")]
    List {
        /// Only of this rig
        #[arg(long)]
        rig: Option<String>,
        /// Closed ones too
        #[arg(long, short)]
        all: bool,
    },
    /// List beads that would start
    #[command(
        after_long_help = "Examples:\n  ym bead ready\n  ym bead ready --like br --json     # what br ready --limit 0 would say"
    )]
    Ready {
        /// Only of this rig
        #[arg(long)]
        rig: Option<String>,
        /// Answer as this tool would; what ym starts follows its own rules
        #[arg(long)]
        like: Option<Like>,
    },
    /// List beads that wait for others or for a person
    #[command(after_long_help = "Examples:\n  ym bead blocked\n  ym bead blocked --like br")]
    Blocked {
        /// Only of this rig
        #[arg(long)]
        rig: Option<String>,
        /// Answer as this tool would; what ym starts follows its own rules
        #[arg(long)]
        like: Option<Like>,
    },
    /// Close native beads
    #[command(after_long_help = "Example:\n  ym bead close gt-abc --reason \"done by hand\"")]
    Close {
        /// Which ones
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Why
        #[arg(long, short)]
        reason: Option<String>,
    },
    /// Open a closed bead again
    #[command(after_long_help = "Example:\n  ym bead reopen gt-abc")]
    Reopen {
        /// Which one
        id: String,
    },
    /// Change the fields of a bead
    #[command(after_long_help = "Example:\n  ym bead update gt-abc --priority P0 --label urgent")]
    Update(Box<BeadUpdate>),
    /// Make one bead need another, or no longer
    #[command(
        subcommand,
        after_long_help = "Example:\n  ym bead dep add gt-abc gt-def      # gt-abc needs gt-def"
    )]
    Dep(DepCmd),
    /// Take beads over from a file in the beads format
    #[command(after_long_help = "Example:\n  ym bead import .beads/issues.jsonl")]
    Import {
        /// JSON lines; - for standard input
        file: String,
    },
}

/// Whose rules to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Like {
    /// beads_rust
    Br,
    /// beads
    Bd,
}

impl Like {
    /// The name of the tool.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Br => "br",
            Self::Bd => "bd",
        }
    }
}

// `ym bead add`
#[derive(Debug, Args)]
pub(crate) struct BeadAdd {
    /// One line saying what is to be done
    pub(crate) title: String,
    /// Its id [default: made up, with the rig's prefix]
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// The rig it is for
    #[arg(long)]
    pub(crate) rig: Option<String>,
    /// task, bug, feature, chore, epic, …
    #[arg(long = "type", short = 't', value_name = "T", default_value = "task")]
    pub(crate) kind: String,
    /// P0 (first) to P4
    #[arg(long, short, value_name = "P", value_parser = words::bead_priority)]
    pub(crate) priority: Option<u8>,
    /// A bead that must close first
    #[arg(long, value_name = "ID")]
    pub(crate) needs: Vec<String>,
    /// The epic it belongs to
    #[arg(long, value_name = "ID")]
    pub(crate) parent: Option<String>,
    /// A label
    #[arg(long, short, value_name = "L")]
    pub(crate) label: Vec<String>,
    /// More about it
    #[arg(long, short, allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
    /// The command it runs instead of a formula
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

// `ym bead update`
#[derive(Debug, Args)]
pub(crate) struct BeadUpdate {
    /// Which one
    pub(crate) id: String,
    /// New title
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// New description; empty clears it
    #[arg(long, short, allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
    /// New type
    #[arg(long = "type", short = 't', value_name = "T")]
    pub(crate) kind: Option<String>,
    /// New status, such as open, in_progress or deferred
    #[arg(long, short)]
    pub(crate) status: Option<String>,
    /// P0 (first) to P4
    #[arg(long, short, value_name = "P", value_parser = words::bead_priority)]
    pub(crate) priority: Option<u8>,
    /// New assignee; empty clears it
    #[arg(long)]
    pub(crate) assignee: Option<String>,
    /// New labels, replacing all
    #[arg(long, short, value_name = "L")]
    pub(crate) label: Vec<String>,
}

/// `ym bead dep …`
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum DepCmd {
    /// Make A need B
    #[command(after_long_help = "Example:\n  ym bead dep add gt-abc gt-def")]
    Add {
        /// The one that waits
        a: String,
        /// The one it waits for
        b: String,
        /// blocks, conditional-blocks, waits-for, merge-blocks, parent-child, related, …
        #[arg(long = "type", short = 't', value_name = "T", default_value = "blocks")]
        kind: String,
    },
    /// Make A no longer need B
    #[command(after_long_help = "Example:\n  ym bead dep remove gt-abc gt-def")]
    Remove {
        /// The one that waits
        a: String,
        /// The one it waits for
        b: String,
    },
}
