//! What people do with convoys and alerts, and who is told of them.

use yard_engine::{AlertId, Command};

use super::daemon::Halt;
use super::history::World;

impl World {
    fn some_convoy(&mut self) -> String {
        let ids: Vec<String> = self.state().convoys().map(|convoy| convoy.id.to_string()).collect();
        self.dice.pick(&ids).cloned().unwrap_or_else(|| "hq-cv-none".to_owned())
    }

    fn some_beads(&mut self) -> Vec<String> {
        let count = self.dice.between(1, 4);
        (0..count).map(|_| self.some_bead().to_string()).collect()
    }

    /// Somebody plans, launches, changes or ends a convoy.
    pub(super) fn convoy_work(&mut self) -> Result<(), Halt> {
        let id = self.some_convoy();
        let command = match self.dice.below(12) {
            0..3 => {
                let (targets, launch) = (self.some_beads(), self.dice.one_in(3));
                Command::ConvoyStage { targets, title: None, launch }
            }
            3 => Command::ConvoyStage { targets: vec![id], title: None, launch: false },
            4 | 5 => Command::ConvoyLaunch { targets: self.some_beads(), force: true },
            6 | 7 => Command::ConvoyLaunch { targets: vec![id], force: self.dice.one_in(2) },
            8 => Command::ConvoyAdd { id, beads: self.some_beads() },
            9 => Command::ConvoyClose { id, reason: None, force: self.dice.one_in(2) },
            10 => Command::ConvoyLand { id, force: self.dice.one_in(2), dry_run: false },
            _ => {
                let (watcher, wants) = ("bob".to_owned(), !self.dice.one_in(4));
                Command::ConvoyWatch { id, watcher, wants }
            }
        };
        self.ask(&command).map(|_| ())
    }

    /// The alert command is told what it has not been told yet; a crash in between tells it again.
    pub(super) fn tell_alerts(&mut self) -> Result<bool, Halt> {
        if self.is_deep() {
            return self.deep_outside();
        }
        let untold: Vec<AlertId> = self.state().untold_alerts().map(|alert| alert.id.clone()).collect();
        for id in &untold {
            self.oracle.is_told(id);
            self.may_crash("after an alert was told")?;
            self.alert_is_told(id)?;
        }
        Ok(!untold.is_empty())
    }
}
