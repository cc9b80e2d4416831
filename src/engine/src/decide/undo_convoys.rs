//! What leads back from the commands about convoys.

use super::Asker;
use crate::alert::{Alert, AlertKind};
use crate::command::{Answer, Command};
use crate::convoy::ConvoyEvent;
use crate::refusal::Refusal;
use crate::tx::Tx;

impl Tx<'_> {
    /// Takes back that a convoy was staged.
    pub(super) fn convoy_unstage(&mut self, asker: &Asker<'_>, text: &str) -> Result<Answer, Refusal> {
        let id = self.state().find_convoy(text)?;
        let convoy = &self.state().convoys[&id];
        match (&convoy.closed, convoy.staged) {
            (Some(_), _) => return Ok(done(false, format!("{id} is closed already"), &id)),
            (None, None) => {
                return Err(Refusal::new("not-staged", format!("{id} is open: it was launched meanwhile")));
            }
            (None, Some(_)) => {}
        }
        self.end_convoy(&id, "its staging was taken back", asker.actor);
        let inverse = Command::ConvoyReopen { id: id.to_string() };
        self.can_be_undone(asker, format!("convoy close {id}"), vec![inverse]);
        Ok(done(true, format!("{id} is put away"), &id))
    }

    /// Takes back that a person closed a convoy.
    pub(super) fn convoy_reopen(&mut self, asker: &Asker<'_>, text: &str) -> Result<Answer, Refusal> {
        let id = self.state().find_convoy(text)?;
        let convoy = &self.state().convoys[&id];
        let Some(closed) = &convoy.closed else {
            return Ok(done(false, format!("{id} is open already"), &id));
        };
        let closes_by_itself = !convoy.owned && convoy.staged.is_none() && !convoy.tracked.is_empty();
        if closes_by_itself && convoy.tracked.iter().all(|bead| self.state().is_closed(bead)) {
            return Err(Refusal::new("complete", format!("every bead of {id} is closed: so is the convoy")));
        }
        let inverse = if convoy.staged.is_some() {
            Command::ConvoyUnstage { id: id.to_string() }
        } else {
            let reason = Some(closed.reason.clone());
            Command::ConvoyClose { id: id.to_string(), reason, force: true }
        };
        self.emit(ConvoyEvent::Reopened { id: id.clone(), actor: asker.actor.to_owned() });
        // Whoever has not been told of its end yet need not be.
        let told =
            |alert: &&Alert| alert.kind == AlertKind::ConvoyClosed && alert.ids.contains(&id.to_string());
        let keys: Vec<String> =
            self.state().all_alerts().filter(told).map(|alert| alert.key.clone()).collect();
        for key in &keys {
            self.end_alert(key);
        }
        self.can_be_undone(asker, format!("convoy reopen {id}"), vec![inverse]);
        Ok(done(true, format!("{id} is open again"), &id))
    }
}

fn done(changed: bool, message: String, id: &crate::ConvoyId) -> Answer {
    Answer::Done { changed, message, ids: vec![id.to_string()] }
}
