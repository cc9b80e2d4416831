//! What becomes due by itself: the end of a pause, waits, deadlines; and what changed outside: settings, host load.

use super::Asker;
use crate::bead::Verdict;
use crate::context::CloseReason;
use crate::settings::Settings;
use crate::state::State;
use crate::town::TownEvent;
use crate::tx::Tx;
use crate::{BeadId, ContextId, Timestamp};

impl State {
    /// When something becomes due next.
    pub fn next_due(&self) -> Option<Timestamp> {
        let timer = self.timers.first().map(|(due, _)| *due);
        let deadline = self.deadlines.first().map(|(due, _)| *due);
        let pause = self.pause.as_ref().and_then(|p| p.until);
        let alarm = self.alarms.first().map(|(due, _)| *due);
        let close = self.awaited_closes.first().map(|(due, _)| *due);
        let rested = self.cooling.values().min().copied();
        let money = [self.renewed_at, self.warnings_end()];
        let looks = [self.looks.first(), self.roster.looks.first()];
        let all = [timer, deadline, pause, alarm, close, rested, self.next_retirement()];
        all.into_iter().chain(money).chain(looks).flatten().min()
    }

    /// What an operator must look at: beads left with a verdict, by id.
    pub fn settled(&self) -> impl Iterator<Item = (&BeadId, Verdict)> {
        // How a task came out is its client's business.
        let settled = self.settled.iter().filter(|(id, _)| !self.tasks.contains_key(*id));
        settled.map(|(id, verdict)| (id, *verdict))
    }
}

impl Tx<'_> {
    /// Does what has become due. Emits nothing when nothing has.
    pub fn tick(&mut self) {
        let now = self.now();
        self.settle_tasks();
        if self.state().next_due().is_none_or(|due| due > now) {
            return;
        }
        if self.state().pause.as_ref().and_then(|p| p.until).is_some_and(|t| t <= now) {
            self.emit(TownEvent::Resumed { actor: "scheduler (the pause is over)".to_owned() });
        }
        let timer = self.state().timers.first().map(|(due, _)| *due);
        let alarm = self.state().alarms.first().map(|(due, _)| *due);
        let rested = self.state().cooling.values().min().copied();
        let money = [self.state().renewed_at, self.state().warnings_end()].into_iter().flatten().min();
        if [timer, alarm, rested, money].into_iter().flatten().any(|due| due <= now) {
            self.emit(TownEvent::ClockAdvanced {});
        }
        if money.is_some_and(|due| due <= now) {
            self.end_cost_alerts();
        }
        for id in self.state().looks.due(now).cloned().collect::<Vec<_>>() {
            self.look_at(&id);
        }
        self.mind_agents();
        let unclosed = self.state().awaited_closes.iter().take_while(|(due, _)| *due <= now);
        for bead in unclosed.map(|(_, bead)| bead.clone()).collect::<Vec<_>>() {
            self.close_overdue(&bead);
        }
        let overdue = self.state().deadlines.iter().take_while(|(due, _)| *due <= now);
        for id in overdue.map(|(_, id)| id.clone()).collect::<Vec<_>>() {
            self.expire(&id);
        }
        self.settle_tasks();
        self.retire_tasks();
    }

    /// Closes a context whose deadline has passed before it started.
    fn expire(&mut self, id: &ContextId) {
        let Some(bead) = self.state().context(id).map(|c| c.bead().clone()) else { return };
        let asker = Asker { actor: "scheduler", kitchen: &super::Kitchen::default() };
        let detail = Some("its deadline passed before it could start".to_owned());
        self.close(&asker, id, &bead, CloseReason::Expired, detail);
        self.alert_given_up(&bead, "was not started before its deadline");
    }

    /// Takes settings over if they differ from those in force.
    pub fn settings_read(&mut self, settings: &Settings) {
        if self.state().settings != *settings {
            self.emit(TownEvent::SettingsChanged { settings: Box::new(settings.clone()) });
            self.mind_all_budgets();
        }
    }

    /// Takes over whether the host has room for new work.
    pub fn host_observed(&mut self, closed_because: Option<String>) {
        if self.state().host_gate.is_some() != closed_because.is_some() {
            self.emit(TownEvent::HostGate { closed_because });
        }
    }

    /// Takes over how many jobs of ours the cluster has room for.
    pub fn cluster_observed(&mut self, jobs: u64) {
        if self.state().cluster_room() != Some(jobs) {
            self.emit(TownEvent::ClusterRoom { jobs });
        }
    }

    /// Closes contexts whose bead was closed, taken or lost while nobody looked.
    pub fn close_stale_contexts(&mut self) {
        let asker = Asker { actor: "scheduler", kitchen: &super::Kitchen::default() };
        let open: Vec<(ContextId, BeadId)> =
            self.state().open_contexts().map(|c| (c.id.clone(), c.bead().clone())).collect();
        for (context, bead) in open {
            if self.state().work(&bead).is_none() {
                let detail = Some(format!("{bead} is gone"));
                self.close(&asker, &context, &bead, CloseReason::StaleWorkBead, detail);
            } else {
                self.close_stale_context(&asker, &bead);
            }
        }
    }

    /// Closes a bead's context if the bead was closed or taken.
    pub(crate) fn close_if_stale(&mut self, bead: &BeadId) {
        self.close_stale_context(&Asker { actor: "scheduler", kitchen: &super::Kitchen::default() }, bead);
    }
}
