//! The family `agent`.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use yard_engine::command::AgentStatus;

use crate::words;

// `ym agent`.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// The agent this is about [default: YM_AGENT]
    #[arg(long = "as", global = true, value_name = "NAME")]
    pub(crate) name: Option<String>,

    #[command(subcommand)]
    pub(crate) command: AgentCmd,
}

// `ym agent …`
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum AgentCmd {
    /// Make an agent known, or tell anew what it is
    ///
    /// From then on it is sent orders. Any call of it counts as a sign of life, and so does its process, if --pid names
    /// it: without either for agents.offline_after it counts as gone, and after agents.lease its claims are returned.
    #[command(
        after_long_help = "Examples:\n  ym agent register fern --program claude-code --model opus --skills \"sql, migrations\"\n  ym agent register moss --program codex --pid $$ --auto-claim"
    )]
    Register(Box<AgentRegister>),
    /// List the agents and what they are doing
    #[command(after_long_help = "Example:\n  ym agent list --json")]
    List,
    /// Say that an agent is alive; renews its claims
    #[command(after_long_help = "Example:\n  ym agent heartbeat --as fern")]
    Heartbeat,
    /// Say what an agent is doing where its work does not show it; without a word, show it
    #[command(
        after_long_help = "Examples:\n  ym agent status blocked --note \"waiting for review\" --as fern\n  ym agent status idle --as fern\n  ym agent status --as fern"
    )]
    Status {
        /// What it is doing
        status: Option<StatusWord>,
        /// In its own words
        #[arg(long, short, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Read what an agent is told: orders, and what is its no longer
    ///
    /// An order stays until it is claimed, declined or withdrawn; everything else is shown once.
    #[command(
        after_long_help = "Examples:\n  ym agent inbox --as fern --wait\n  ym agent inbox --as fern --wait --timeout 10m --json"
    )]
    Inbox {
        /// Wait until there is something
        #[arg(long, short)]
        wait: bool,
        /// For how long at most
        #[arg(long, value_name = "D", value_parser = words::span, requires = "wait")]
        timeout: Option<Duration>,
        /// Leave what is read unread
        #[arg(long)]
        keep: bool,
    },
    /// Take a ready bead, ordered or not
    ///
    /// One step: either the agent has it afterwards, or it is told who does. Claiming again changes nothing. The answer's
    /// dispatch_id is the token of the claim; YM_DISPATCH=TOKEN ym worker checkpoint|cost|progress say things about it.
    #[command(after_long_help = "Example:\n  ym agent claim gt-abc --as fern")]
    Claim {
        /// Which bead
        bead: String,
    },
    /// Give a bead back, or decline an order
    #[command(after_long_help = "Example:\n  ym agent release gt-abc --as fern --note \"needs a database\"")]
    Release {
        /// Which bead
        bead: String,
        /// For whoever has it next
        #[arg(long, short, value_name = "TEXT")]
        note: Option<String>,
        /// Only if this is the claim
        #[arg(long, value_name = "ID")]
        token: Option<String>,
    },
    /// Say that a bead is done; a native one closes
    #[command(after_long_help = "Example:\n  ym agent done gt-abc --as fern --reason \"merged as 4f2a\"")]
    Done {
        /// Which bead
        bead: String,
        /// Why it closes
        #[arg(long, short)]
        reason: Option<String>,
        /// Only if this is the claim
        #[arg(long, value_name = "ID")]
        token: Option<String>,
    },
    /// Say that the work on a bead failed; it is tried again by the retry policy
    #[command(after_long_help = "Example:\n  ym agent fail gt-abc \"the tests fail\" --as fern")]
    Fail {
        /// Which bead
        bead: String,
        /// What went wrong
        message: String,
        /// A service was not there: not the work's fault
        #[arg(long)]
        unavailable: bool,
        /// Only if this is the claim
        #[arg(long, value_name = "ID")]
        token: Option<String>,
    },
    /// Say why nothing is assigned: to one agent, or to anybody
    #[command(after_long_help = "Examples:\n  ym agent why\n  ym agent why --as fern")]
    Why,
    /// Show the tracks: beads that hang together, and whose they are
    #[command(after_long_help = "Example:\n  ym config set agents.tracks true && ym agent tracks")]
    Tracks,
    /// Forget an agent that will not come back
    #[command(after_long_help = "Example:\n  ym agent retire fern")]
    Retire {
        /// Which one [default: --as]
        #[arg(value_name = "AGENT")]
        agent: Option<String>,
    },
}

// `ym agent register`
#[derive(Debug, Args)]
pub(crate) struct AgentRegister {
    /// Its name, which is also its name as an assignee
    #[arg(value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// What it is, such as claude-code
    #[arg(long, value_name = "P")]
    pub(crate) program: String,
    /// The model it runs on
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
    /// What it is good at or busy with, in words that titles and labels may share
    #[arg(long, value_name = "S", alias = "task-description")]
    pub(crate) skills: Option<String>,
    /// Its process on this machine: while that lives, so does the agent
    #[arg(long)]
    pub(crate) pid: Option<u32>,
    /// Whether orders are claimed for it when they are sent [default: agents.auto_claim]
    #[arg(long, value_name = "YES|NO", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub(crate) auto_claim: Option<bool>,
}

/// What an agent may say it is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum StatusWord {
    /// Whatever its work shows
    Idle,
    /// Busy with something nobody else knows of
    Working,
    /// Waiting for something
    Blocked,
    /// Leaving
    Offline,
}

impl From<StatusWord> for AgentStatus {
    fn from(word: StatusWord) -> Self {
        match word {
            StatusWord::Idle => Self::Idle,
            StatusWord::Working => Self::Working,
            StatusWord::Blocked => Self::Blocked,
            StatusWord::Offline => Self::Offline,
        }
    }
}
