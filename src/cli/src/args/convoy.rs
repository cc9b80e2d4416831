//! The family `convoy`.

use clap::{Args, Subcommand};

use super::MergeWord;

/// `ym convoy …`
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ConvoyCmd {
    /// Plan a convoy, look at it, and keep it back
    ///
    /// Shows what an epic (with everything below it), a list of tasks, or a staged convoy would do: the tree, which beads
    /// could start together (waves), and what speaks against it. Errors make nothing. Otherwise the convoy is staged:
    /// nothing of it starts before it is launched.
    #[command(
        after_long_help = "Examples:\n  ym convoy stage shop-e1                    # an epic\n  ym convoy stage shop-a shop-b --title Login\n  ym convoy stage hq-cv-abc12                # plan it anew\n  ym convoy stage shop-e1 --launch           # and go, if nothing speaks against it\n\nExit code 1 on errors, and when --launch found warnings. ym help convoys explains."
    )]
    Stage {
        /// One epic, tasks, or one staged convoy
        #[arg(required = true, value_name = "TARGET")]
        targets: Vec<String>,
        /// What it is about [default: from the epic]
        #[arg(long, value_name = "T")]
        title: Option<String>,
        /// Launch it at once, unless there are warnings
        #[arg(long)]
        launch: bool,
    },
    /// Plan afresh, and let a convoy go
    ///
    /// Its first wave is scheduled at once, and every further bead as soon as it is ready. Warnings hold it back unless
    /// --force says otherwise; errors always do.
    #[command(
        after_long_help = "Examples:\n  ym convoy launch hq-cv-abc12\n  ym convoy launch shop-e1 --force       # in spite of warnings"
    )]
    Launch {
        /// One staged convoy, one epic, or tasks
        #[arg(required = true, value_name = "TARGET")]
        targets: Vec<String>,
        /// Warnings do not keep it back
        #[arg(long, short)]
        force: bool,
    },
    /// Make an open convoy of beads; its ready beads are scheduled
    #[command(
        after_long_help = "Examples:\n  ym convoy create \"Login\" gt-abc gt-def\n  ym convoy create \"Checkout\" --from-epic gt-e1 --owned"
    )]
    Create(Box<ConvoyCreate>),
    /// Add beads to a convoy; a closed one is open again
    #[command(after_long_help = "Example:\n  ym convoy add hq-cv-abc12 gt-ghi")]
    Add {
        /// Which; a unique prefix will do
        convoy: String,
        /// Beads
        #[arg(required = true, value_name = "BEAD")]
        beads: Vec<String>,
    },
    /// List the convoys that are staged or open
    #[command(after_long_help = "Examples:\n  ym convoy list --all\n  ym convoy list --tree")]
    List {
        /// Closed ones too
        #[arg(long, short)]
        all: bool,
        /// Each with its beads
        #[arg(long)]
        tree: bool,
    },
    /// Show a convoy and its beads
    #[command(
        after_long_help = "Examples:\n  ym convoy status hq-cv-abc12\n  ym convoy status 2           # the second of ym convoy list"
    )]
    Status {
        /// Which: a unique prefix, or its number in the list [default: the list]
        #[arg(value_name = "ID|N")]
        id: Option<String>,
    },
    /// Close convoys of which every bead is closed
    #[command(
        after_long_help = "Example:\n  ym convoy check --dry-run\n\nThis happens by itself with every close; empty and owned convoys stay open."
    )]
    Check {
        /// Only this one
        id: Option<String>,
        /// Only say which
        #[arg(long, short = 'n')]
        dry_run: bool,
    },
    /// List convoys that are really stuck, with the reason for each bead
    #[command(after_long_help = "Example:\n  ym convoy stranded --json")]
    Stranded,
    /// Close a convoy; its beads stay as they are
    #[command(after_long_help = "Example:\n  ym convoy close hq-cv-abc12 --reason \"not needed\" --force")]
    Close {
        /// Which; a unique prefix will do
        id: String,
        /// Why
        #[arg(long, short)]
        reason: Option<String>,
        /// Even with open beads
        #[arg(long, short)]
        force: bool,
    },
    /// Close an owned convoy whose work is done
    #[command(after_long_help = "Example:\n  ym convoy land hq-cv-abc12 --dry-run")]
    Land {
        /// Which; a unique prefix will do
        id: String,
        /// Even with open beads
        #[arg(long, short)]
        force: bool,
        /// Only say what would happen
        #[arg(long, short = 'n')]
        dry_run: bool,
    },
    /// Have somebody told when a convoy closes
    #[command(
        after_long_help = "Examples:\n  ym convoy watch hq-cv-abc12\n  ym convoy watch hq-cv-abc12 --addr mayor\n\nalerts.command gets the alert with all watchers, once."
    )]
    Watch {
        /// Which; a unique prefix will do
        id: String,
        /// Whom [default: you]
        #[arg(long, value_name = "A")]
        addr: Option<String>,
    },
    /// Have somebody no longer told
    #[command(after_long_help = "Example:\n  ym convoy unwatch hq-cv-abc12")]
    Unwatch {
        /// Which; a unique prefix will do
        id: String,
        /// Whom [default: you]
        #[arg(long, value_name = "A")]
        addr: Option<String>,
    },
}

// `ym convoy create`
#[derive(Debug, Args)]
pub(crate) struct ConvoyCreate {
    /// What it is about; a bead here is taken as one, and the convoy named after it
    #[arg(required_unless_present = "from_epic")]
    pub(crate) name: Option<String>,
    /// Beads
    #[arg(value_name = "BEAD")]
    pub(crate) beads: Vec<String>,
    /// All open work below this epic
    #[arg(long, value_name = "EPIC")]
    pub(crate) from_epic: Option<String>,
    /// You look after it: nothing is scheduled by itself, and it waits for ym convoy land
    #[arg(long)]
    pub(crate) owned: bool,
    /// Merge strategy of its beads
    #[arg(long)]
    pub(crate) merge: Option<MergeWord>,
    /// Base branch of its beads
    #[arg(long, value_name = "B")]
    pub(crate) base_branch: Option<String>,
}
