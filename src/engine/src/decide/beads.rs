//! Native beads being made, changed, linked and closed.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Asker;
use super::bounds::{
    check_argv, check_changed_texts, check_description, check_reason, check_texts, check_title,
};
use super::sling::task_has_ended;
use crate::agent::Agent;
use crate::bead::{
    Bead, BeadChange, BeadEvent, BeadStatus, DepKind, Dependency, RareFields, bead_kind,
    default_bead_priority, one_per_pair,
};
use crate::command::{Answer, NewBead};
use crate::context::{CloseReason, ContextEvent};
use crate::dispatch::{Dispatch, Outcome, StopReason};
use crate::ids::{base36, scatter};
use crate::readiness::{arrows, claimed_elsewhere};
use crate::refusal::Refusal;
use crate::rig::{Rig, TOWN_PREFIX};
use crate::state::State;
use crate::tx::Tx;
use crate::{BeadId, ConvoyId, RigName};

impl Tx<'_> {
    pub(super) fn bead_add(&mut self, asker: &Asker<'_>, new: &NewBead) -> Result<Answer, Refusal> {
        let bead = self.checked_bead(new)?;
        if self.state().beads.contains_key(&bead.id) {
            return Err(Refusal::new("exists", format!("bead {} exists already", bead.id)));
        }
        let known = |id: &BeadId| self.state().beads.contains_key(id);
        if let Some(missing) = bead.dependencies.iter().find(|d| !known(&d.on)) {
            return Err(Refusal::new("unknown-bead", format!("there is no bead {}", missing.on))
                .hint("add that one first"));
        }
        // Beads may have waited for this id before it existed.
        let mut waits = bead.dependencies.iter().filter(|d| d.kind.makes_wait());
        if let Some(path) = waits.find_map(|d| self.state().waiting_path(&d.on, &bead.id)) {
            return Err(cycle(&bead.id, &path));
        }
        let id = bead.id.to_string();
        self.emit(BeadEvent::Added { bead: Arc::new(bead), actor: asker.actor.to_owned() });
        Ok(Answer::Created { ids: vec![id] })
    }

    /// Checks a new bead and gives it an id.
    pub(super) fn checked_bead(&self, new: &NewBead) -> Result<Bead, Refusal> {
        let id = match &new.id {
            Some(text) => BeadId::parse(text)?,
            None => self.state().new_bead_id(new.rig.as_ref(), 0, |_| false)?,
        };
        self.checked_bead_with(new, id)
    }

    /// Checks everything about a new bead but its id.
    pub(super) fn checked_bead_with(&self, new: &NewBead, id: BeadId) -> Result<Bead, Refusal> {
        check_title(&new.title)?;
        if let Some(text) = &new.description {
            check_description(text)?;
        }
        if let Some(argv) = &new.argv {
            check_argv(argv)?;
        }
        if let Some(bad) = new.priority.filter(|p| *p > 4) {
            return Err(Refusal::new("bad-priority", format!("P{bad} is not known: use P0 to P4")));
        }
        check_texts(new)?;
        if let (Some(rig), Some(_)) = (&new.rig, &new.id) {
            self.state().known_rig(rig)?;
            if self.state().rig_of(&id).is_none_or(|r| r.name != *rig) {
                let message = format!("the prefix of {id} does not belong to rig {rig}");
                return Err(Refusal::new("cross-rig", message));
            }
        }
        if new.dependencies.iter().any(|edge| edge.on == id) {
            return Err(Refusal::new("cycle", format!("{id} cannot depend on itself")));
        }
        let closed = new.status.is_closed();
        let rare = RareFields {
            description: new.description.clone().filter(|t| !t.is_empty()),
            assignee: new.assignee.clone().filter(|t| !t.is_empty()),
            labels: new.labels.clone(),
            closed_at: closed.then_some(self.now()),
            close_reason: new.close_reason.clone().filter(|_| closed),
            defer_until: new.defer_until,
        };
        Ok(Bead {
            id,
            title: new.title.clone(),
            kind: bead_kind(if new.kind.is_empty() { "task" } else { &new.kind }),
            status: new.status.clone(),
            priority: new.priority.unwrap_or_else(default_bead_priority),
            dependencies: one_per_pair(new.dependencies.clone()),
            created_at: new.created_at.unwrap_or(self.now()),
            source: None,
            pinned: new.pinned,
            ephemeral: new.ephemeral,
            is_template: new.is_template,
            argv: new.argv.clone().map(Vec::into_boxed_slice),
            rare: rare.into(),
        })
    }

    pub(super) fn bead_update(
        &mut self,
        asker: &Asker<'_>,
        text: &str,
        change: &BeadChange,
    ) -> Result<Answer, Refusal> {
        let id = self.state().native_bead(text)?;
        if let Some(title) = &change.title {
            check_title(title)?;
        }
        if let Some(description) = &change.description {
            check_description(description)?;
        }
        check_changed_texts(change)?;
        if let Some(bad) = change.priority.filter(|p| *p > 4) {
            return Err(Refusal::new("bad-priority", format!("P{bad} is not known: use P0 to P4")));
        }
        if change.status.as_ref().is_some_and(BeadStatus::is_closed) {
            return Err(Refusal::new("bad-status", "a status does not close a bead")
                .hint(format!("ym bead close {id}")));
        }
        if self.state().is_closed(&id) && change.status.is_some() {
            return Err(
                Refusal::new("closed", format!("{id} is closed")).hint(format!("ym bead reopen {id}"))
            );
        }
        if *change == BeadChange::default() {
            return Ok(done(false, format!("nothing to change on {id}"), &id));
        }
        if change.status.is_some() || change.assignee.is_some() {
            self.state().refuse_lost_claim(asker.actor, &id)?;
        }
        let (change, actor) = (Box::new(change.clone()), asker.actor.to_owned());
        self.emit(BeadEvent::Updated { id: id.clone(), change, actor });
        self.close_stale_context(asker, &id);
        Ok(done(true, format!("{id} updated"), &id))
    }

    pub(super) fn bead_close(
        &mut self,
        asker: &Asker<'_>,
        texts: &[String],
        reason: Option<&str>,
    ) -> Result<Answer, Refusal> {
        check_reason(reason)?;
        let found: Result<Vec<_>, _> = texts.iter().map(|t| self.state().native_bead(t)).collect();
        let open: Vec<BeadId> = found?.into_iter().filter(|id| !self.state().is_closed(id)).collect();
        for id in &open {
            self.state().refuse_lost_claim(asker.actor, id)?;
        }
        for id in &open {
            self.close_bead(id, reason.unwrap_or("closed"), asker.actor);
        }
        let ids: Vec<String> = open.iter().map(ToString::to_string).collect();
        let message = match ids.as_slice() {
            [] => "closed already".to_owned(),
            _ => format!("closed {}", ids.join(", ")),
        };
        Ok(Answer::Done { changed: !ids.is_empty(), message, ids })
    }

    /// Closes a bead, and with it a context that waited for it and a convoy it was the last of.
    pub(super) fn close_bead(&mut self, id: &BeadId, reason: &str, actor: &str) {
        let (reason, actor) = (reason.to_owned(), actor.to_owned());
        self.emit(BeadEvent::Closed { id: id.clone(), reason, actor: actor.clone(), closed_at: None });
        self.follow_close(id, &actor);
    }

    /// What a bead's close means for its context, its alert and its convoys.
    pub(crate) fn follow_close(&mut self, id: &BeadId, actor: &str) {
        self.claim_over(id);
        self.close_stale_context(&Asker { actor, kitchen: &super::Kitchen::default() }, id);
        self.end_alerts_of_request(id);
        for convoy in self.state().convoys_tracking(id).map(|c| c.id.clone()).collect::<Vec<_>>() {
            self.close_if_complete(&convoy, actor);
        }
    }

    /// A context whose bead was closed or taken is closed at once.
    pub(super) fn close_stale_context(&mut self, asker: &Asker<'_>, id: &BeadId) {
        let gone = self.state().gone.get(id);
        let Some(entry) = self.state().beads.get(id).or(gone) else { return };
        let Some(context) = entry.work.context.as_ref().and_then(|c| self.state().context(c)) else {
            return;
        };
        if entry.work.live.is_some() {
            return;
        }
        let detail = if gone.is_some() {
            format!("{id} vanished from its workspace")
        } else if entry.bead.is_closed() {
            format!("{id} was closed")
        } else {
            match claimed_elsewhere(entry).filter(|_| !context.forced) {
                Some(owner) => owner,
                None => return,
            }
        };
        let event = ContextEvent::Closed {
            id: context.id.clone(),
            bead: id.clone(),
            reason: CloseReason::StaleWorkBead,
            detail: Some(detail),
            taken_back: None,
            actor: asker.actor.to_owned(),
        };
        self.emit(event);
    }

    pub(super) fn bead_reopen(&mut self, asker: &Asker<'_>, text: &str) -> Result<Answer, Refusal> {
        let id = self.state().native_bead(text)?;
        if !self.state().is_closed(&id) {
            return Ok(done(false, format!("{id} is open already"), &id));
        }
        if self.state().tasks.contains_key(&id) {
            return Err(Refusal::new("task-ended", task_has_ended(&id)));
        }
        self.emit(BeadEvent::Reopened { id: id.clone(), actor: asker.actor.to_owned() });
        Ok(done(true, format!("{id} reopened"), &id))
    }

    pub(super) fn dependency_add(
        &mut self,
        asker: &Asker<'_>,
        text: &str,
        on: &str,
        kind: &DepKind,
    ) -> Result<Answer, Refusal> {
        let id = self.state().native_bead(text)?;
        let on = self.state().exact_bead(on)?;
        if id == on {
            return Err(Refusal::new("cycle", format!("{id} cannot depend on itself")));
        }
        let dependency = Dependency::new(on.clone(), kind.clone());
        if self.state().beads[&id].bead.dependencies.contains(&dependency) {
            return Ok(done(false, format!("{id} depends on {on} already"), &id));
        }
        if kind.makes_wait()
            && let Some(path) = self.state().waiting_path(&on, &id)
        {
            return Err(cycle(&id, &path));
        }
        self.emit(BeadEvent::DependencyAdded { id: id.clone(), dependency, actor: asker.actor.to_owned() });
        Ok(done(true, format!("{id} needs {on} ({})", kind.as_str()), &id))
    }

    pub(super) fn dependency_remove(
        &mut self,
        asker: &Asker<'_>,
        text: &str,
        on: &str,
    ) -> Result<Answer, Refusal> {
        let id = self.state().native_bead(text)?;
        let on = BeadId::parse(on)?;
        if !self.state().beads[&id].bead.dependencies.iter().any(|d| d.on == on) {
            return Ok(done(false, format!("{id} does not depend on {on}"), &id));
        }
        let actor = asker.actor.to_owned();
        self.emit(BeadEvent::DependencyRemoved { id: id.clone(), on: on.clone(), actor });
        Ok(done(true, format!("{id} no longer needs {on}"), &id))
    }

    /// Takes beads over from a file. Known ids are replaced; dependencies may point anywhere.
    pub(super) fn bead_import(&mut self, asker: &Asker<'_>, news: &[NewBead]) -> Result<Answer, Refusal> {
        let mut beads: Vec<Bead> = Vec::with_capacity(news.len());
        let mut taken: BTreeSet<BeadId> = news.iter().filter_map(|n| n.id.as_ref()?.parse().ok()).collect();
        for (nth, new) in news.iter().enumerate() {
            let id = match &new.id {
                Some(text) => BeadId::parse(text)?,
                None => self.state().new_bead_id(new.rig.as_ref(), nth as u64, |id| taken.contains(id))?,
            };
            taken.insert(id.clone());
            beads.push(self.checked_bead_with(new, id)?);
        }
        if let Some(shown) = beads.iter().find(|b| self.state().shows(&b.id).is_some()) {
            return Err(self.state().read_only(&shown.id));
        }
        if let Some(running) =
            beads.iter().find(|b| self.state().bead(&b.id).is_some_and(|e| e.work.live.is_some()))
        {
            let message = format!("{} is running; nothing was imported", running.id);
            return Err(Refusal::new("busy", message).hint("wait for it, or cancel it"));
        }
        let ids: Vec<String> = beads.iter().map(|b| b.id.to_string()).collect();
        for bead in beads {
            let (id, is_closed) = (bead.id.clone(), bead.is_closed());
            self.emit(BeadEvent::Added { bead: Arc::new(bead), actor: asker.actor.to_owned() });
            if is_closed {
                self.follow_close(&id, asker.actor);
            } else {
                self.close_stale_context(asker, &id);
            }
        }
        Ok(Answer::Created { ids })
    }
}

impl State {
    /// A free id with the rig's prefix: short, longer as the town grows. `nth` tells ids made at one moment apart.
    pub(super) fn new_bead_id(
        &self,
        rig: Option<&RigName>,
        nth: u64,
        taken: impl Fn(&BeadId) -> bool,
    ) -> Result<BeadId, Refusal> {
        let prefix = &self.rig_for_new(rig)?.prefix;
        let width = match self.beads.len() {
            0..1_000 => 4,
            1_000..30_000 => 5,
            30_000..1_000_000 => 6,
            _ => 8,
        };
        let range = 36_u64.pow(width as u32);
        let base = self.seq.0.wrapping_add(nth);
        let made = (0_u64..).map(|salt| {
            let spread = scatter(base.wrapping_add(salt.wrapping_mul(0x0123_4567_89ab)));
            format!("{prefix}-{}", base36(spread % range, width))
        });
        let ids = made.map_while(|text| BeadId::parse(&text).ok());
        let mut free = ids.filter(|id| !self.beads.contains_key(id) && !taken(id));
        free.next()
            .ok_or_else(|| Refusal::new("bad-prefix", format!("prefix {prefix} is too long for more ids")))
    }

    /// An agent cannot close or take what another has claimed, nor what it has claimed itself and lost.
    fn refuse_lost_claim(&self, actor: &str, bead: &BeadId) -> Result<(), Refusal> {
        let Some(agent) = self.agents.get(actor).map(Agent::name) else { return Ok(()) };
        let holder = self.live_dispatch(bead).and_then(|live| Some((&live.claim.as_ref()?.agent, &live.id)));
        if holder.is_some_and(|(holder, _)| holder == agent) {
            return Ok(());
        }
        let own = |it: &&Dispatch| it.claim.as_ref().is_some_and(|claim| claim.agent == *agent);
        let last = self.dispatches_of(bead).rev().find(own).and_then(|it| it.ended.as_ref());
        let expired = Outcome::Stopped { reason: StopReason::LeaseExpired };
        if last.is_some_and(|ended| ended.outcome == expired)
            && let Some(refusal) = self.lost_claim(agent, bead)
        {
            return Err(refusal);
        }
        match holder {
            Some((holder, token)) => {
                Err(Refusal::new("claimed", format!("{bead} is claimed by {holder} ({token})")))
            }
            None => Ok(()),
        }
    }

    /// The rig a new bead goes to.
    pub(super) fn rig_for_new(&self, rig: Option<&RigName>) -> Result<&Rig, Refusal> {
        match rig {
            Some(name) => self.known_rig(name),
            None if self.rigs.is_empty() => {
                Err(Refusal::new("no-rig", "the town has no rig").hint("ym rig add NAME --prefix P"))
            }
            None => self.first_rig().ok_or_else(|| {
                Refusal::new("no-rig", "say which rig the bead is for").hint("--rig NAME, or --id PREFIX-x")
            }),
        }
    }

    /// The rig new beads go to when none is named: the only one, or the one of the town's own directory.
    fn first_rig(&self) -> Option<&Rig> {
        let mut rigs = self.rigs.values();
        match (rigs.next(), rigs.next()) {
            (Some(only), None) => Some(only),
            _ => self.rigs.values().find(|rig| rig.path == "."),
        }
    }

    /// A free convoy id.
    pub(super) fn new_convoy_id(&self) -> ConvoyId {
        let made = (0_u64..).map(|salt| {
            let spread = scatter(self.seq.0 ^ 0xc04e_0000_0000 ^ salt.wrapping_mul(0x0123_4567_89ab));
            format!("{TOWN_PREFIX}-cv-{}", base36(spread % 36_u64.pow(5), 5))
        });
        let free =
            made.filter_map(|text| ConvoyId::parse(&text).ok()).find(|id| !self.convoys.contains_key(id));
        free.expect("the salt goes on until an id is free")
    }
}

fn cycle(id: &BeadId, path: &[BeadId]) -> Refusal {
    let message = format!("this would make a cycle: {id} -> {}", arrows(path));
    Refusal::new("cycle", message).hint("remove one of these dependencies first")
}

fn done(changed: bool, message: String, id: &BeadId) -> Answer {
    Answer::Done { changed, message, ids: vec![id.to_string()] }
}
