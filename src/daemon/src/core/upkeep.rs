//! What the loop sees to by itself: config, host load, the safety scan, a full disk, the drain.

use std::collections::BTreeMap;
use std::time::Duration;

use tracing::{error, info, warn};
use yard_client::{Reply, ServerRole};
use yard_engine::dispatch::{Dispatch, StopReason};
use yard_engine::{DispatchId, Settings, Timestamp, Tx};
use yard_journal::JournalError;
use yard_workers::Recovered;

use super::{Core, DRAIN_SLACK, Drain, LOOK_AROUND, SCAN_SLICE, SHIMS_KEPT, ScanFrom};
use crate::input::ReplyTo;
use crate::stamp::FileStamp;
use crate::store::StoreError;
use crate::{config, host};

impl Core {
    /// The journal took nothing: say so, stay readable, try again every second.
    pub(super) fn lost_the_disk(&mut self, failure: &StoreError) {
        if let StoreError::Journal(JournalError::Fsync) = failure {
            error!(%failure, "ending at once: what is on disk is unknown");
            match &mut self.stage {
                Some(stage) => stage.end(),
                None => std::process::exit(1),
            }
        }
        if let StoreError::Journal(error) = failure
            && error.is_final()
        {
            // Nothing of what this process still has in mind may happen: somebody else may be at work by now.
            error!(%failure, "ending at once: the town is no longer ours");
            if self.role == ServerRole::Daemon {
                std::process::exit(1);
            }
            self.is_over = true;
        } else if self.read_only.is_none() {
            error!(%failure, "the journal takes no writes; trying again every second");
        }
        self.read_only = Some(failure.to_string());
    }

    /// Looks whether the journal takes writes again; what happened meanwhile is in the claims.
    pub(super) fn try_the_disk_again(&mut self) {
        if let Err(error) = self.store.confirm() {
            return self.lost_the_disk(&error);
        }
        self.forget_what_is_over();
        self.recover();
        let now = self.now;
        self.store.decide(now, |tx| tx.emit(yard_engine::town::TownEvent::ClockAdvanced {}));
        match self.store.commit() {
            Ok(events) => {
                info!("the journal takes writes again");
                self.read_only = None;
                self.perform(&events);
                self.recover_merges();
                self.settle(&events, Vec::new());
                self.follow_sources_anew();
            }
            Err(error) => self.lost_the_disk(&error),
        }
    }

    /// Once a second: config file, host load. Every so often, as configured: claims, and a slice of the indexes each
    /// turn until all were seen.
    pub(super) fn look_around(&mut self) {
        if let Some(ScanFrom(from)) = self.scanning.take() {
            let next = self.store.decide(self.now, |tx| tx.scan(from.as_ref(), SCAN_SLICE));
            self.scanning = next.map(|bead| ScanFrom(Some(bead)));
        }
        self.cut_log();
        let now = self.clock.instant();
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOK_AROUND;
        self.read_config();
        self.serve_http();
        self.follow_sources();
        let settings = self.store.state().settings();
        let busy = match &mut self.stage {
            Some(stage) => stage.too_busy(settings),
            None => host::too_busy(settings),
        };
        let time = self.now;
        self.store.decide(time, |tx| tx.host_observed(busy));
        let state = self.store.state();
        let wanted = state.wants_cluster().then(|| state.settings().slurm.clone());
        if let Some(jobs) = self.pool.cluster_room(wanted.as_ref()) {
            self.store.decide(time, |tx| tx.cluster_observed(jobs));
        }
        if now >= self.next_scan {
            self.next_scan = self.clock.instant_after(self.store.state().settings().safety_scan.duration());
            self.safety_scan(time);
        }
    }

    pub(super) fn safety_scan(&mut self, now: Timestamp) {
        let live: Vec<DispatchId> = self.store.state().live_dispatches().map(|d| d.id.clone()).collect();
        for id in live {
            if !self.has_worker(&id) {
                continue;
            }
            match self.pool.recover(&id) {
                Ok(found) => self.take_recovered(&id, found),
                Err(error) => warn!(dispatch = %id, %error, "cannot tell how it stands"),
            }
        }
        for run in self.live_checks() {
            self.recover_check(&run);
        }
        for id in std::mem::take(&mut self.unasked) {
            self.ask_again_to_stop(&id);
        }
        let patience = self.store.state().settings().spawn_timeout.duration();
        let slow: Vec<DispatchId> = self
            .store
            .state()
            .live_dispatches()
            .filter(|d| d.has_worker() && !d.starts_elsewhere() && d.running_at.is_none())
            .filter(|d| now.since(d.started_at) > patience)
            .map(|d| d.id.clone())
            .collect();
        for id in slow {
            self.store.decide(now, |tx| tx.terminate(&id, StopReason::SpawnTimeout, false, "scheduler"));
        }
        self.pool.stand_down(self.starts_to_expect().max(SHIMS_KEPT));
        self.scanning = Some(ScanFrom(None));
        self.look_at_beginning();
    }

    /// Takes the config file over if it changed, also for the HTTP API.
    pub(super) fn follow_config(&mut self) {
        let seen = self.config_seen;
        self.read_config();
        if self.config_seen != seen {
            self.serve_http();
        }
    }

    /// Takes the config file over if it changed. A bad one keeps the old settings and raises an alert.
    pub(super) fn read_config(&mut self) {
        let path = self.town.config();
        let seen = FileStamp::of(&path);
        if self.config_seen.as_ref() == Some(&seen) {
            return;
        }
        self.config_seen = Some(seen);
        let now = self.now;
        let in_force = self.store.state().settings();
        if !path.exists() && *in_force != Settings::default() {
            let mistake = format!(
                "config: {} is missing; the old settings stay in force (an empty file means the defaults)",
                path.display()
            );
            warn!("{mistake}");
            return self.store.decide(now, |tx| tx.config_mistake(Some(&mistake)));
        }
        match config::read_settings(&path) {
            Ok(settings) => self.store.decide(now, |tx| {
                tx.config_mistake(None);
                tx.settings_read(&settings);
            }),
            Err(error) => {
                warn!(%error, "the config file has a mistake; the old settings stay in force");
                self.store.decide(now, |tx| tx.config_mistake(Some(&format!("config: {error}"))));
            }
        }
    }

    pub(super) fn start_drain(&mut self, timeout: Duration, leave_running: bool, reply_to: Option<ReplyTo>) {
        let until = self.clock.instant_after(timeout);
        let drain = self.drain.get_or_insert(Drain { until, leave_running, reply_to: Vec::new() });
        drain.until = drain.until.min(until);
        drain.leave_running |= leave_running;
        drain.reply_to.extend(reply_to);
        if drain.leave_running {
            return;
        }
        info!(live = self.store.state().live_workers().count(), "draining");
        self.pool.hurry();
        let workers = self.store.state().live_workers();
        let live: Vec<DispatchId> = workers.map(|it| it.id.clone()).collect();
        let now = self.now;
        for id in live {
            let asked = |tx: &mut Tx<'_>| tx.terminate(&id, StopReason::GracefulShutdown, false, "daemon");
            if !self.store.decide(now, asked) {
                // It is ending already, but may have been given more time than is left now.
                self.ask_again_to_stop(&id);
            }
        }
    }

    pub(super) fn drain_is_over(&self) -> bool {
        self.drain.as_ref().is_some_and(|drain| {
            let state = self.store.state();
            let told = self.telling.is_idle() && self.mailing.is_idle();
            let told = told && !state.live_dispatches().any(Dispatch::is_action);
            (told && (drain.leave_running || state.live_workers().next().is_none()))
                || self.clock.instant() >= drain.until + DRAIN_SLACK
        })
    }

    /// How many workers go on without us. The end of one that could not be recorded, on a full disk, is known to its claim.
    fn workers_left(&mut self) -> usize {
        let workers = self.store.state().live_workers();
        let mut live: Vec<DispatchId> = workers.map(|it| it.id.clone()).collect();
        if self.read_only.is_some() {
            live.retain(|id| matches!(self.pool.recover(id), Ok(Recovered::Adopted { .. }) | Err(_)));
        }
        live.len()
    }

    pub(crate) fn leave(&mut self) {
        if let Err(error) = self.store.checkpoint_if_due(true) {
            warn!(%error, "no checkpoint on leaving");
        }
        let left = self.workers_left();
        if let Some(drain) = self.drain.take() {
            let still_running: BTreeMap<&str, usize> = BTreeMap::from([("still_running", left)]);
            for reply_to in drain.reply_to {
                reply_to.send(Reply::document(&still_running));
            }
        }
    }
}
