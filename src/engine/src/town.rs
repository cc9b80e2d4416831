//! What concerns the town as a whole: settings, pause, host load, time, and the operator's commands that can be
//! taken back.

use serde::{Deserialize, Serialize};

use crate::capacity::Limit;
use crate::command::Command;
use crate::settings::Settings;
use crate::state::State;
pub use crate::undo::Undoable;
use crate::{AccountName, BeadId, ConvoyId, DispatchId, RigName, Timestamp};

/// Dispatch is stopped town-wide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Who paused.
    pub by: String,
    /// Since when.
    pub at: Timestamp,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// What can happen to the town.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum TownEvent {
    /// The config file was read and differs from what was in force.
    #[serde(rename = "town.settings_changed")]
    SettingsChanged {
        /// All settings.
        settings: Box<Settings>,
    },
    /// Dispatch was paused.
    #[serde(rename = "scheduler.paused")]
    Paused {
        /// Who, why, until when.
        pause: Pause,
    },
    /// Dispatch goes on.
    #[serde(rename = "scheduler.resumed")]
    Resumed {
        /// Who did it.
        actor: String,
    },
    /// The host is too busy to start anything, or no longer.
    #[serde(rename = "scheduler.host_gate")]
    HostGate {
        /// In words; none when it opened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        closed_because: Option<String>,
    },
    /// The cluster has room for so many jobs of ours, those that run there included.
    #[serde(rename = "scheduler.cluster_room")]
    ClusterRoom {
        /// How many.
        jobs: u64,
    },
    /// Time passed and something became due.
    #[serde(rename = "town.clock_advanced")]
    ClockAdvanced {},
    /// What nobody needs any more was forgotten: its time was up.
    #[serde(rename = "town.retired")]
    Retired {
        /// Closed beads, each after those that counted on it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        beads: Vec<BeadId>,
        /// Closed convoys.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        convoys: Vec<ConvoyId>,
        /// The attempts of those beads that had workers, whose logs go too.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        workers: Vec<DispatchId>,
    },
    /// An operator did something that can be taken back.
    #[serde(rename = "operator.did")]
    OperatorDid {
        /// What, and how to take it back.
        undoable: Undoable,
        /// Who did it.
        actor: String,
    },
    /// An operator took the last such command back.
    #[serde(rename = "operator.undid")]
    OperatorUndid {
        /// What was taken back.
        did: String,
        /// What does it again; nothing if it could not be taken back.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        again: Vec<Command>,
        /// Who did it.
        actor: String,
    },
    /// An operator did again what was taken back last.
    #[serde(rename = "operator.redid")]
    OperatorRedid {
        /// What was done again.
        did: String,
        /// What takes it back; nothing if it could not be done again.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        inverse: Vec<Command>,
        /// Who did it.
        actor: String,
    },
    /// The safety scan found an index that differed from the truth, and repaired it.
    #[serde(rename = "town.repaired")]
    Repaired {
        /// What differed.
        difference: String,
    },
    /// A rig's workspace was read, and looked like this.
    #[serde(rename = "source.read")]
    SourceRead {
        /// Whose workspace.
        rig: RigName,
        /// What tells this version of it from another.
        stamp: String,
        /// The beads it shows that belong to somebody else.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        contested: Vec<BeadId>,
    },
    /// An account's service was unavailable, so nobody uses it for a while.
    #[serde(rename = "account.cooling")]
    AccountCooling {
        /// Which account.
        account: AccountName,
        /// Until when.
        until: Timestamp,
        /// Who found out.
        dispatch: DispatchId,
    },
}

impl State {
    pub(crate) fn apply_town(&mut self, event: &TownEvent) {
        match event {
            TownEvent::SettingsChanged { settings } => {
                self.settings = Settings::clone(settings);
                self.rebuild_queue();
            }
            TownEvent::Paused { pause } => self.pause = Some(pause.clone()),
            TownEvent::Resumed { .. } => self.pause = None,
            TownEvent::HostGate { closed_because } => self.host_gate.clone_from(closed_because),
            TownEvent::ClusterRoom { jobs } => {
                self.cluster_room = Some(*jobs);
                self.queue.limit_freed(&Limit::Slurm);
            }
            TownEvent::ClockAdvanced {} => {}
            TownEvent::Retired { beads, convoys, .. } => self.apply_retired(beads, convoys),
            TownEvent::OperatorDid { undoable, .. } => self.apply_did(undoable),
            TownEvent::OperatorUndid { did, again, .. } => self.apply_undid(did, again),
            TownEvent::OperatorRedid { did, inverse, .. } => self.apply_redid(did, inverse),
            TownEvent::Repaired { .. } => self.rebuild_indexes(),
            TownEvent::SourceRead { rig, stamp, contested } => {
                self.sources.insert(rig.clone(), Some(stamp.clone()));
                self.contested.remove(rig);
                if !contested.is_empty() {
                    self.contested.insert(rig.clone(), contested.iter().cloned().collect());
                }
            }
            TownEvent::AccountCooling { account, until, .. } => {
                let known = self.cooling.entry(account.clone()).or_insert(*until);
                *known = (*until).max(*known);
                self.refresh_contexts_of_account(account);
            }
        }
        self.touch_town();
    }

    /// What a rig's workspace looked like when it was last read; none if it never was, or must be read anew.
    pub fn source_stamp(&self, rig: &RigName) -> Option<&str> {
        self.sources.get(rig)?.as_deref()
    }

    /// Whether a rig's workspace must be read as a whole again: it shows a bead that was left to somebody else, who has
    /// it no longer.
    pub fn must_be_read_anew(&self, rig: &RigName) -> bool {
        self.sources.get(rig).is_some_and(Option::is_none)
    }

    /// An id is nobody's any more: who shows it as well may have it.
    pub(crate) fn free_id(&mut self, id: &BeadId) {
        let mut freed = Vec::new();
        self.contested.retain(|rig, ids| {
            if ids.remove(id) {
                freed.push(rig.clone());
            }
            !ids.is_empty()
        });
        for rig in freed {
            self.sources.insert(rig, None);
            self.touch_town();
        }
    }

    /// The accounts that rest, and until when.
    pub fn cooling_accounts(&self) -> impl Iterator<Item = (&AccountName, Timestamp)> {
        self.cooling.iter().map(|(account, until)| (account, *until))
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The pause in force.
    pub fn pause(&self) -> Option<&Pause> {
        self.pause.as_ref()
    }

    /// Why the host takes no new work, if so.
    pub fn host_gate(&self) -> Option<&str> {
        self.host_gate.as_deref()
    }

    /// How many jobs of ours the cluster has room for, as last seen.
    pub fn cluster_room(&self) -> Option<u64> {
        self.cluster_room
    }

    /// When anything was last started.
    pub fn last_dispatch_at(&self) -> Option<Timestamp> {
        self.last_dispatch_at
    }
}
