//! The scheduler's side of a bead. Most beads of a large town were never asked for: what they do not have takes no
//! memory, and reads as if it stood in the record itself.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize};

use super::{Happenings, Verdict};
use crate::money::Usd;
use crate::seldom::{Seldom, Unfilled};
use crate::{AgentName, ContextId, DispatchId, Timestamp};

/// The scheduler's side of a bead: kept apart, because the work bead itself is not ours to change. It also has what
/// stands in [`WorkFields`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Work {
    /// Every event that named this bead.
    pub history: Happenings,
    #[serde(flatten)]
    asked_for: Seldom<WorkFields>,
}

/// What only beads have that were asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct WorkFields {
    /// How many dispatches this bead ever had; the next id follows from it.
    pub attempts: u32,
    /// The open context, if it is scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextId>,
    /// The context before that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_context: Option<ContextId>,
    /// The dispatch that runs it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<DispatchId>,
    /// A dispatch of it is decided, and waits for the end of another.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lined: bool,
    /// The agent that has claimed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<Box<AgentName>>,
    /// What became of the last request, until a new one is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Until when its tracker is to close it, once its worker has finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close_by: Option<Timestamp>,
    /// What all its dispatches have cost.
    #[serde(skip_serializing_if = "Usd::is_zero")]
    pub cost: Usd,
}

static NEVER_ASKED_FOR: WorkFields = WorkFields {
    attempts: 0,
    context: None,
    last_context: None,
    live: None,
    lined: false,
    holder: None,
    verdict: None,
    close_by: None,
    cost: Usd::ZERO,
};

impl Unfilled for WorkFields {
    fn unfilled() -> &'static Self {
        &NEVER_ASKED_FOR
    }
}

impl Work {
    /// With this much to remember.
    pub(crate) fn new(history: Happenings, fields: WorkFields) -> Self {
        Self { history, asked_for: fields.into() }
    }
}

impl Deref for Work {
    type Target = WorkFields;

    #[inline]
    fn deref(&self) -> &WorkFields {
        &self.asked_for
    }
}

impl DerefMut for Work {
    fn deref_mut(&mut self) -> &mut WorkFields {
        &mut self.asked_for
    }
}

/// As it is read from a checkpoint.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredWork {
    attempts: u32,
    context: Option<ContextId>,
    last_context: Option<ContextId>,
    live: Option<DispatchId>,
    lined: bool,
    holder: Option<Box<AgentName>>,
    verdict: Option<Verdict>,
    close_by: Option<Timestamp>,
    cost: Usd,
    history: Happenings,
}

impl<'de> Deserialize<'de> for Work {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredWork::deserialize(deserializer)?;
        let StoredWork {
            attempts,
            context,
            last_context,
            live,
            lined,
            holder,
            verdict,
            close_by,
            cost,
            history,
        } = stored;
        let fields =
            WorkFields { attempts, context, last_context, live, lined, holder, verdict, close_by, cost };
        Ok(Self::new(history, fields))
    }
}
