//! Alerts as documents.

use serde::{Deserialize, Serialize};
use yard_engine::alert::Alert;
use yard_engine::{State, Timestamp};

/// Something a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertView {
    /// Its id, for `ym alerts --ack`.
    pub id: String,
    /// Since when.
    pub at: Timestamp,
    /// What it is about, in a word.
    pub kind: String,
    /// In words.
    pub message: String,
    /// The beads, convoys or rigs concerned.
    pub ids: Vec<String>,
    /// Who asked to be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watchers: Vec<String>,
    /// Who has seen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_by: Option<String>,
}

impl AlertView {
    /// A condition of the moment that the log knows nothing of, such as a full disk: its kind is its id.
    pub fn transient(kind: &str, message: impl Into<String>, at: Timestamp) -> Self {
        Self {
            id: kind.to_owned(),
            at,
            kind: kind.to_owned(),
            message: message.into(),
            ids: Vec::new(),
            watchers: Vec::new(),
            acked_by: None,
        }
    }
}

impl From<&Alert> for AlertView {
    fn from(alert: &Alert) -> Self {
        Self {
            id: alert.id.to_string(),
            at: alert.at,
            kind: alert.kind.as_str().to_owned(),
            message: alert.message.clone(),
            ids: alert.ids.clone(),
            watchers: alert.watchers.clone(),
            acked_by: alert.acked_by.clone(),
        }
    }
}

/// Alerts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertList {
    /// Oldest first.
    pub alerts: Vec<AlertView>,
}

/// Renders the alerts of the log together with those of the moment; `all` also shows what somebody has seen.
pub fn alerts(state: &State, all: bool, transient: Vec<AlertView>) -> AlertList {
    let kept = state.all_alerts().filter(|alert| all || alert.acked_by.is_none());
    let mut alerts: Vec<AlertView> = kept.map(AlertView::from).chain(transient).collect();
    alerts.sort_by_key(|alert| alert.at);
    AlertList { alerts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_of_the_moment_stand_among_the_others_by_age() {
        let at = |second: i64| Timestamp::from_millis(second * 1000);
        let (late, early) =
            (AlertView::transient("disk", "full", at(9)), AlertView::transient("config", "bad", at(3)));
        let list = alerts(&State::default(), false, vec![late, early]);
        let ids: Vec<&str> = list.alerts.iter().map(|alert| alert.id.as_str()).collect();
        assert_eq!(ids, ["config", "disk"]);
    }
}
