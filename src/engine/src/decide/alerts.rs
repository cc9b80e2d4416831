//! Raising, ending and acknowledging alerts.

use super::Asker;
use crate::alert::{Alert, AlertEvent, AlertKind};
use crate::bead::Verdict;
use crate::command::Answer;
use crate::dispatch::Recovery;
use crate::ids::base36;
use crate::refusal::Refusal;
use crate::spending::{Budget, Level};
use crate::tx::Tx;
use crate::{AlertId, BeadId, DispatchId};

/// A condition to be raised.
pub(crate) struct Condition {
    pub(crate) key: String,
    pub(crate) kind: AlertKind,
    pub(crate) message: String,
    pub(crate) ids: Vec<String>,
    pub(crate) watchers: Vec<String>,
}

/// The key of what became of a bead.
pub(crate) fn bead_key(bead: &BeadId) -> String {
    format!("bead:{bead}")
}

/// The key of what is said about the merge of a bead.
pub(crate) fn merge_key(bead: &BeadId) -> String {
    format!("merge:{bead}")
}

/// The key of a bead that is in progress with nobody on it.
pub(crate) fn hook_key(bead: &BeadId) -> String {
    format!("hook:{bead}")
}

/// The key of a dispatch that gives no sign of life.
pub(crate) fn stuck_key(dispatch: &DispatchId) -> String {
    format!("stuck:{dispatch}")
}

impl Tx<'_> {
    /// Raises an alert, unless its condition has one.
    pub(crate) fn raise(&mut self, condition: Condition) {
        if self.state().alert_of(&condition.key).is_some() {
            return;
        }
        let Condition { key, kind, message, ids, watchers } = condition;
        let id = AlertId::parse(&format!("al-{}", base36(self.state().seq().next().0, 1)));
        let id = id.expect("base 36 follows the grammar");
        let at = self.now();
        let alert = Alert { id, key, kind, message, ids, watchers, at, told: false, acked_by: None };
        self.emit(AlertEvent::Raised { alert: Box::new(alert) });
    }

    /// Ends the alert of a condition that is over, if it has one.
    pub(crate) fn end_alert(&mut self, key: &str) {
        if let Some(id) = self.state().alert_of(key).cloned() {
            self.emit(AlertEvent::Ended { id });
        }
    }

    /// Ends whatever there is about a bead that nobody has any more.
    pub(super) fn end_alerts_about(&mut self, bead: &BeadId) {
        self.end_alerts_of_request(bead);
        self.end_alert(&hook_key(bead));
    }

    /// Raises, changes or ends the one alert about the config file.
    pub fn config_mistake(&mut self, mistake: Option<&str>) {
        self.mistake("config", mistake);
    }

    /// The same about an HTTP API that cannot be served as configured.
    pub fn http_trouble(&mut self, trouble: Option<&str>) {
        self.mistake("http", trouble);
    }

    /// Something ran of which the log knows nothing, because it has lost events; it has been ended.
    pub fn stranger_ended(&mut self, id: &DispatchId) {
        let message = format!("{id} ran without being in the journal, which has lost events, and was ended");
        let (key, kind, ids) = (format!("stranger:{id}"), AlertKind::UnknownWorker, vec![id.to_string()]);
        self.raise(Condition { key, kind, message, ids, watchers: Vec::new() });
    }

    fn mistake(&mut self, key: &str, mistake: Option<&str>) {
        let known = self.state().alert_of(key).and_then(|id| self.state().alerts.get(id));
        if known.map(|alert| alert.message.as_str()) == mistake {
            return;
        }
        self.end_alert(key);
        if let Some(message) = mistake {
            let (key, message) = (key.to_owned(), message.to_owned());
            let (ids, watchers) = (Vec::new(), Vec::new());
            self.raise(Condition { key, kind: AlertKind::Config, message, ids, watchers });
        }
    }

    /// Tells a person that a bead was given up.
    pub(super) fn alert_if_given_up(&mut self, bead: &BeadId) {
        let Some(verdict) = self.state().bead(bead).and_then(|entry| entry.work.verdict) else { return };
        let (kind, what) = match verdict {
            Verdict::Failed => match self.state().last_stop_of(bead) {
                Some(reason) if reason.recovery() == Recovery::Failed => (AlertKind::BeadFailed, "failed"),
                Some(_) | None => (AlertKind::BeadFailed, "failed and has no more retries"),
            },
            Verdict::Unavailable => (AlertKind::BeadFailed, "found its service unavailable too often"),
            Verdict::CircuitBroken => (AlertKind::CircuitBroken, "could not be started"),
            Verdict::Done | Verdict::Cancelled => return,
        };
        self.raise_about_bead(bead, kind, what);
    }

    /// Tells a person that a bead was given up for a reason that its verdict alone does not tell.
    pub(super) fn alert_given_up(&mut self, bead: &BeadId, what: &str) {
        self.raise_about_bead(bead, AlertKind::BeadFailed, what);
    }

    fn raise_about_bead(&mut self, bead: &BeadId, kind: AlertKind, what: &str) {
        if self.state().tasks.contains_key(bead) {
            // How a task came out is its client's business, who is told.
            return;
        }
        let why = self.state().last_words_about(bead).map(|words| format!(" ({words})")).unwrap_or_default();
        let message = format!("{bead} {what}{why}; ym scheduler retry {bead}");
        let ids = vec![bead.to_string()];
        self.raise(Condition { key: bead_key(bead), kind, message, ids, watchers: Vec::new() });
    }

    /// Ends what was said about the last request of a bead: how it came out, and what it cost.
    pub(super) fn end_alerts_of_request(&mut self, bead: &BeadId) {
        self.end_alert(&bead_key(bead));
        let budget = Budget::Bead(bead.clone());
        for level in [Level::Warning, Level::Spent] {
            self.end_alert(&budget.key(level));
        }
    }

    /// The alert command was told, or could not be.
    pub fn alert_told(&mut self, id: &AlertId, error: Option<String>) {
        if self.state().alerts.get(id).is_some_and(|alert| !alert.told) {
            self.emit(AlertEvent::Told { id: id.clone(), error });
        }
    }

    pub(super) fn alert_ack(&mut self, asker: &Asker<'_>, text: &str) -> Result<Answer, Refusal> {
        let Some(alert) = self.state().alerts.get(text) else {
            return Err(Refusal::new("unknown-alert", format!("there is no alert {text:?}"))
                .hint("ym alerts shows what there is"));
        };
        let (id, seen) = (alert.id.clone(), alert.acked_by.clone());
        let ids = vec![id.to_string()];
        if let Some(by) = seen {
            return Ok(Answer::Done { changed: false, message: format!("{by} has seen {id} already"), ids });
        }
        let message = format!("{id} is acknowledged");
        self.emit(AlertEvent::Acked { id, actor: asker.actor.to_owned() });
        Ok(Answer::Done { changed: true, message, ids })
    }
}
