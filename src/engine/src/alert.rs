//! Alerts: what a person should know. One per condition, not one per event: while a condition lasts, its key is taken
//! and nothing more is raised. Each is told once to the alert command; until that is done it counts as untold, so that a
//! crash in between tells it again under the same id rather than never.

use serde::{Deserialize, Serialize};

use crate::state::State;
use crate::{AlertId, Timestamp};

/// Something a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    /// Its id, the same however often it is told.
    pub id: AlertId,
    /// The condition, so that it is raised once.
    pub key: String,
    /// What it is about.
    pub kind: AlertKind,
    /// In words.
    pub message: String,
    /// The beads, convoys or rigs concerned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// Who asked to be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watchers: Vec<String>,
    /// Since when.
    pub at: Timestamp,
    /// Whether the alert command has been told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
    /// Who has seen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_by: Option<String>,
}

/// What an alert is about; a contract with scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlertKind {
    /// The config file has a mistake.
    Config,
    /// A workspace cannot be read as a whole.
    Source,
    /// Two workspaces, or a workspace and the town, have a bead of the same id.
    SourceConflict,
    /// A bead was tried as often as allowed.
    BeadFailed,
    /// A bead could not be started.
    CircuitBroken,
    /// A bead is in progress, and nobody we know is on it.
    StaleHook,
    /// A convoy is complete.
    ConvoyClosed,
    /// A worker gives no sign of life.
    Stuck,
    /// An agent let an order lapse, or lost what it had by its silence.
    AgentSilent,
    /// A branch cannot be merged as it is.
    MergeConflict,
    /// A branch is ready for somebody else to merge it.
    MergeRequest,
    /// A worker ran of which the journal knew nothing, and was ended.
    UnknownWorker,
    /// Most of a budget is spent.
    CostWarning,
    /// A budget is used up.
    CostLimit,
}

impl AlertKind {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Source => "source",
            Self::SourceConflict => "source-conflict",
            Self::BeadFailed => "bead-failed",
            Self::CircuitBroken => "circuit-broken",
            Self::StaleHook => "stale-hook",
            Self::ConvoyClosed => "convoy-closed",
            Self::Stuck => "stuck",
            Self::AgentSilent => "agent-silent",
            Self::MergeConflict => "merge-conflict",
            Self::MergeRequest => "merge-request",
            Self::UnknownWorker => "unknown-worker",
            Self::CostWarning => "cost-warning",
            Self::CostLimit => "cost-limit",
        }
    }

    /// Whether it is news rather than a condition that lasts: once told, it is over.
    pub fn is_news(self) -> bool {
        match self {
            Self::ConvoyClosed | Self::MergeRequest => true,
            Self::Config
            | Self::Source
            | Self::SourceConflict
            | Self::BeadFailed
            | Self::CircuitBroken
            | Self::StaleHook
            | Self::Stuck
            | Self::AgentSilent
            | Self::UnknownWorker
            | Self::MergeConflict
            | Self::CostWarning
            | Self::CostLimit => false,
        }
    }
}

/// What can happen to an alert.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum AlertEvent {
    /// The condition came to be.
    #[serde(rename = "alert.raised")]
    Raised {
        /// The record.
        alert: Box<Alert>,
    },
    /// The alert command was told, or there is none.
    #[serde(rename = "alert.told")]
    Told {
        /// Which alert.
        id: AlertId,
        /// What went wrong in telling, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A person has seen it.
    #[serde(rename = "alert.acked")]
    Acked {
        /// Which alert.
        id: AlertId,
        /// Who.
        actor: String,
    },
    /// The condition is over.
    #[serde(rename = "alert.ended")]
    Ended {
        /// Which alert.
        id: AlertId,
    },
}

impl State {
    pub(crate) fn apply_alert(&mut self, event: &AlertEvent) {
        let id = match event {
            AlertEvent::Raised { alert } => {
                self.alert_keys.insert(alert.key.clone(), alert.id.clone());
                self.alerts.insert(alert.id.clone(), Alert::clone(alert));
                &alert.id
            }
            AlertEvent::Told { id, .. } => {
                match self.alerts.get_mut(id) {
                    Some(alert) if !alert.kind.is_news() => alert.told = true,
                    _ => self.forget_alert(id),
                }
                id
            }
            AlertEvent::Acked { id, actor } => {
                if let Some(alert) = self.alerts.get_mut(id) {
                    alert.acked_by = Some(actor.clone());
                }
                id
            }
            AlertEvent::Ended { id } => {
                self.forget_alert(id);
                id
            }
        };
        self.touch_alert(id);
    }

    fn forget_alert(&mut self, id: &AlertId) {
        if let Some(alert) = self.alerts.remove(id) {
            self.alert_keys.remove(&alert.key);
        }
    }

    /// The alerts whose condition lasts and which nobody has seen yet, oldest first.
    pub fn alerts(&self) -> impl Iterator<Item = &Alert> {
        self.all_alerts().filter(|alert| alert.acked_by.is_none())
    }

    /// Also those somebody has seen.
    pub fn all_alerts(&self) -> impl Iterator<Item = &Alert> {
        self.alerts.values()
    }

    /// The alerts that the alert command is to be told.
    pub fn untold_alerts(&self) -> impl Iterator<Item = &Alert> {
        self.alerts.values().filter(|alert| !alert.told)
    }

    /// Whether the alert command is still to be told this one.
    pub fn is_untold(&self, id: &AlertId) -> bool {
        self.alerts.get(id).is_some_and(|alert| !alert.told)
    }

    /// Whether this condition has an alert.
    pub(crate) fn alert_of(&self, key: &str) -> Option<&AlertId> {
        self.alert_keys.get(key)
    }
}
