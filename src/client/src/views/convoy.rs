//! Convoys as documents.

use serde::{Deserialize, Serialize};
use yard_engine::convoy::Convoy;
use yard_engine::dispatch::Dispatch;
use yard_engine::money::Usd;
use yard_engine::readiness::Reason;
use yard_engine::settings::Merge;
use yard_engine::{BeadId, ConvoyId, DispatchId, RigName, Standing, State, Timestamp};

use super::bead::absent;

/// A convoy in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConvoySummary {
    /// Its id.
    pub id: ConvoyId,
    /// What it is about.
    pub title: String,
    /// `staged:ready`, `staged:warnings`, `open` or `closed`.
    pub status: String,
    /// The caller looks after it.
    pub owned: bool,
    /// How many beads.
    pub total: usize,
    /// How many of them are closed.
    pub completed: usize,
    /// When it came to be.
    pub created_at: Timestamp,
}

/// Convoys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConvoyList {
    /// By id.
    pub convoys: Vec<ConvoySummary>,
}

/// A convoy with its beads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConvoyView {
    /// Its id.
    pub id: ConvoyId,
    /// What it is about.
    pub title: String,
    /// `staged:ready`, `staged:warnings`, `open` or `closed`.
    pub status: String,
    /// The caller looks after it.
    pub owned: bool,
    /// Merge strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_strategy: Option<Merge>,
    /// Base branch of its beads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    /// What its beads have cost while it was open, in US dollars.
    #[serde(default, skip_serializing_if = "Usd::is_zero")]
    pub cost: Usd,
    /// Who is told when it closes.
    pub watchers: Vec<String>,
    /// When it came to be.
    pub created_at: Timestamp,
    /// When it closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
    /// Why it closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close_reason: Option<String>,
    /// When it will be done, as likely before as after; filled in by whoever knows the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta: Option<Timestamp>,
    /// How many beads.
    pub total: usize,
    /// Closed.
    pub completed: usize,
    /// Queued and free to start.
    pub ready: usize,
    /// Running.
    pub running: usize,
    /// Queued.
    pub queued: usize,
    /// Blocked.
    pub blocked: usize,
    /// Failed, cancelled or circuit-broken.
    pub failed: usize,
    /// Each bead.
    pub tracked: Vec<TrackedView>,
}

/// A bead of a convoy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedView {
    /// Its id.
    pub id: BeadId,
    /// Its title.
    pub title: String,
    /// Its status in the tracker.
    pub status: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its wave as last planned; none if it was not planned, is gated or was closed then.
    pub wave: Option<u32>,
    /// Its rig.
    pub rig: Option<RigName>,
    /// Where it stands; none if nobody has it.
    pub state: Option<Standing>,
    /// Why it does not run.
    pub reasons: Vec<Reason>,
    /// The dispatch that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_id: Option<DispatchId>,
    /// Who is on it: what runs its dispatch, else whom its tracker names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// Renders the list of convoys: staged and open ones, with `all` the closed ones too.
pub fn convoys(state: &State, all: bool) -> ConvoyList {
    let shown = state.convoys().filter(|c| all || c.closed.is_none());
    ConvoyList { convoys: shown.map(|c| summary(state, c)).collect() }
}

fn summary(state: &State, convoy: &Convoy) -> ConvoySummary {
    ConvoySummary {
        id: convoy.id.clone(),
        title: convoy.title.clone(),
        status: convoy.status().to_owned(),
        owned: convoy.owned,
        total: convoy.tracked.len(),
        completed: completed(state, convoy),
        created_at: convoy.created_at,
    }
}

fn completed(state: &State, convoy: &Convoy) -> usize {
    convoy.tracked.iter().filter(|id| state.bead(id).is_some_and(|e| e.bead.is_closed())).count()
}

/// Renders one convoy.
pub fn convoy(state: &State, id: &ConvoyId) -> Option<ConvoyView> {
    let convoy = state.convoy(id)?;
    let waves = convoy.wave_numbers();
    let view = |id: &BeadId| tracked(state, id, waves.get(id).copied());
    let tracked: Vec<TrackedView> = convoy.tracked.iter().map(view).collect();
    let count =
        |wanted: &[Standing]| tracked.iter().filter(|t| t.state.is_some_and(|s| wanted.contains(&s))).count();
    Some(ConvoyView {
        id: convoy.id.clone(),
        title: convoy.title.clone(),
        status: convoy.status().to_owned(),
        owned: convoy.owned,
        merge_strategy: convoy.merge,
        base_branch: convoy.base_branch.clone(),
        cost: convoy.cost,
        watchers: convoy.watchers.clone(),
        created_at: convoy.created_at,
        closed_at: convoy.closed.as_ref().map(|closed| closed.at),
        close_reason: convoy.closed.as_ref().map(|closed| closed.reason.clone()),
        eta: None,
        total: tracked.len(),
        completed: count(&[Standing::Closed]),
        ready: tracked.iter().filter(|t| t.state == Some(Standing::Queued) && t.reasons.is_empty()).count(),
        running: count(&[Standing::Running]),
        queued: count(&[Standing::Queued, Standing::Assigned]),
        blocked: count(&[Standing::Blocked]),
        failed: count(&[Standing::Failed, Standing::Cancelled, Standing::CircuitBroken]),
        tracked,
    })
}

fn tracked(state: &State, id: &BeadId, wave: Option<u32>) -> TrackedView {
    let entry = state.bead(id);
    let bead = entry.map(|e| &*e.bead).or_else(|| state.vanished_bead(id));
    let dispatch_id = entry.and_then(|e| e.work.live.clone());
    let runs_it = dispatch_id.as_ref().and_then(|id| state.dispatch(id)).map(worker);
    TrackedView {
        id: id.clone(),
        title: bead.map(|b| b.title.clone()).unwrap_or_default(),
        status: entry.map(|e| e.bead.status.as_str().to_owned()).unwrap_or_default(),
        kind: bead.map(|b| b.kind.to_string()).unwrap_or_default(),
        wave,
        rig: state.rig_of(id).map(|r| r.name.clone()),
        state: state.standing(id),
        reasons: match entry {
            Some(_) => state.reasons(id),
            None => vec![absent(state, id)],
        },
        worker: runs_it.or_else(|| entry.and_then(|e| e.bead.assignee.clone())),
        dispatch_id,
    }
}

fn worker(dispatch: &Dispatch) -> String {
    match dispatch.pid {
        Some(pid) => format!("{} pid {pid}", dispatch.executor),
        None => dispatch.executor.clone(),
    }
}

#[cfg(test)]
mod tests {
    use yard_engine::bead::BeadEvent;
    use yard_engine::convoy::{ConvoyEvent, Staged};

    use super::super::testing::{Town, bead_id, record};
    use super::*;

    fn town_with(staged: Option<Staged>) -> (Town, ConvoyId) {
        let mut town = Town::new();
        town.bead("shop-a", "task", &[]);
        town.bead("shop-b", "task", &[("shop-a", "blocks")]);
        let id = ConvoyId::parse("hq-cv-abc12").expect("an id");
        let tracked = ["shop-a", "shop-b", "shop-g"].map(bead_id).to_vec();
        let convoy = Convoy {
            waves: vec![1, 1],
            staged,
            watchers: vec!["ann".to_owned()],
            ..Convoy::new(id.clone(), "Login".to_owned(), tracked, Timestamp::from_millis(0))
        };
        town.emit(ConvoyEvent::Created { convoy: Box::new(convoy), actor: "ann".to_owned() });
        (town, id)
    }

    #[test]
    fn each_bead_has_its_wave_and_one_that_is_gone_says_so() {
        let (mut town, id) = town_with(None);
        let mut shown = record("shop-g", "task", &[]);
        shown.source = Some("shop".parse().expect("a name"));
        town.emit(BeadEvent::Observed { bead: std::sync::Arc::new(shown) });
        town.emit(BeadEvent::Vanished { id: bead_id("shop-g") });
        let view = convoy(&town.0, &id).expect("there");
        let waves: Vec<Option<u32>> = view.tracked.iter().map(|bead| bead.wave).collect();
        assert_eq!(waves, [Some(1), Some(2), None]);
        let gone = &view.tracked[2];
        assert_eq!((gone.title.as_str(), gone.state), ("Title of shop-g", None));
        assert!(gone.reasons[0].message.contains("shows it no longer"), "{:?}", gone.reasons);
        assert_eq!(view.watchers, ["ann"]);
    }

    #[test]
    fn staged_convoys_are_listed_and_closed_ones_only_with_all() {
        let (mut town, id) = town_with(Some(Staged::Warnings));
        assert_eq!(convoys(&town.0, false).convoys[0].status, "staged:warnings");
        assert_eq!(convoy(&town.0, &id).expect("there").tracked[0].state, Some(Standing::Staged));
        town.emit(ConvoyEvent::Closed { id, reason: "no".to_owned(), actor: "ann".to_owned() });
        assert!(convoys(&town.0, false).convoys.is_empty());
        assert_eq!(convoys(&town.0, true).convoys[0].status, "closed");
    }
}
