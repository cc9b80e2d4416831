//! What each tool is told. The comments are what an agent reads about its arguments; a word that is none of them is
//! refused, because a misspelt argument would otherwise be a silent default.

use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use crate::args::StatusWord;

/// `register`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Register {
    /// Your name, such as fern. Beads are assigned to it. Default: the name this server was started with.
    pub(super) name: Option<String>,
    /// What you are, such as claude-code. Default: what your client calls itself.
    pub(super) program: Option<String>,
    /// The model you run on.
    pub(super) model: Option<String>,
    /// What you are good at or busy with, in words that titles and labels of beads may share.
    pub(super) skills: Option<String>,
    /// Have orders claimed for you when they are sent. Default: as the town is configured.
    pub(super) auto_claim: Option<bool>,
}

/// `set_status`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetStatus {
    /// What you are doing.
    pub(super) status: StatusWord,
    /// In your own words, such as what you wait for.
    pub(super) note: Option<String>,
    /// Your name, if it is not the session's.
    pub(super) agent: Option<String>,
}

/// `heartbeat`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Heartbeat {
    /// Your name, if it is not the session's.
    pub(super) agent: Option<String>,
}

/// `inbox`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Inbox {
    /// Wait up to so many seconds until there is something; at most 300. Default: 0, do not wait.
    #[serde(default)]
    pub(super) wait_seconds: u32,
    /// Your name, if it is not the session's.
    pub(super) agent: Option<String>,
}

/// `claim`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    /// The bead's id.
    pub(super) bead: String,
    /// Your name, if it is not the session's.
    pub(super) agent: Option<String>,
}

/// `checkpoint`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Checkpoint {
    /// Where you are, for whoever goes on after you.
    pub(super) note: String,
    /// The bead's id; needed only if you have claimed several.
    pub(super) bead: Option<String>,
    /// Your name, if it is not the session's.
    pub(super) agent: Option<String>,
}

/// `progress`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Progress {
    /// What you are doing, in a line, such as "3 of 7: running the tests".
    pub(super) text: String,
    /// The bead's id; needed only if you have claimed several.
    pub(super) bead: Option<String>,
    /// Your name, if it is not the session's.
    pub(super) agent: Option<String>,
}

/// `cost`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Cost {
    /// US dollars, such as 0.42.
    pub(super) usd: f64,
    /// That is all of this claim so far, rather than more. Default: false, more.
    #[serde(default)]
    pub(super) total: bool,
    /// Tokens used for it.
    pub(super) tokens: Option<u64>,
    /// The bead's id; needed only if you have claimed several.
    pub(super) bead: Option<String>,
    /// Your name, if it is not the session's.
    pub(super) agent: Option<String>,
}

/// `done`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Finished {
    /// Why the bead closes, such as "merged as 4f2a".
    pub(super) reason: Option<String>,
    /// The bead's id; needed only if you have claimed several.
    pub(super) bead: Option<String>,
    /// Your name, if it is not the session's.
    pub(super) agent: Option<String>,
}

/// `fail`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fail {
    /// What went wrong.
    pub(super) message: String,
    /// A service was not there: not the work's fault. Default: false.
    #[serde(default)]
    pub(super) unavailable: bool,
    /// The bead's id; needed only if you have claimed several.
    pub(super) bead: Option<String>,
    /// Your name, if it is not the session's.
    pub(super) agent: Option<String>,
}

/// `release`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Release {
    /// For whoever has it next: where you are, or why you do not want it.
    pub(super) note: Option<String>,
    /// The bead's id; needed to decline an order, and if you have claimed several.
    pub(super) bead: Option<String>,
    /// Your name, if it is not the session's.
    pub(super) agent: Option<String>,
}

/// `why`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Why {
    /// Ask about this bead instead: why it is not running.
    pub(super) bead: Option<String>,
    /// Which agent. Default: you; without a name, all that have no work.
    pub(super) agent: Option<String>,
}
