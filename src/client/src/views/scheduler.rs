//! `scheduler status` and `scheduler list`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use yard_engine::bead::{BeadEntry, Verdict};
use yard_engine::capacity::{Limit, Room};
use yard_engine::context::Context;
use yard_engine::readiness::Reason;
use yard_engine::{BeadId, ContextId, RigName, State, Timestamp};

/// The scheduler at a glance. `B` is the list of beads: as read, or as it is being written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SchedulerStatus<B = Vec<Queued>> {
    /// `direct` or `deferred`.
    pub mode: String,
    /// Whether dispatch is stopped.
    pub paused: bool,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_reason: Option<String>,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_until: Option<Timestamp>,
    /// Scheduled beads that have not started.
    pub queued_total: usize,
    /// Those that would start if there were room.
    pub queued_ready: usize,
    /// Live workers.
    pub active_polecats: usize,
    /// Beads whose breaker is open.
    pub circuit_broken: usize,
    /// Room.
    pub capacity: CapacityView,
    /// When anything was last started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_dispatch_at: Option<Timestamp>,
    /// Everything scheduled, in order of priority and age.
    pub beads: B,
}

/// How much room there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapacityView {
    /// Town-wide cap; none in direct mode.
    pub max: Option<u64>,
    /// Live workers.
    pub active: u64,
    /// Free places; none when unlimited.
    pub free: Option<u64>,
    /// Every configured limit.
    pub limits: Vec<LimitView>,
}

/// One configured limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitView {
    /// `town`, `rig api`, `account main`.
    pub name: String,
    /// The cap.
    pub max: Option<u64>,
    /// Live workers that count.
    pub active: u64,
    /// Free places.
    pub free: Option<u64>,
}

/// A scheduled bead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// The bead.
    pub id: BeadId,
    /// Its title.
    pub title: String,
    /// Its status in the tracker.
    pub status: String,
    /// Where it will run.
    pub target_rig: RigName,
    /// The context.
    pub context_id: ContextId,
    /// 1 to 100.
    pub priority: u8,
    /// Since when it waits.
    pub enqueued_at: Timestamp,
    /// It would start if there were room.
    pub ready: bool,
    /// It waits for other beads or a person.
    pub blocked: bool,
    /// Every reason why it has not started.
    pub reasons: Vec<Reason>,
    /// Starts that failed.
    pub dispatch_failures: u32,
    /// What the last one said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
    /// Not before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
}

/// Scheduled beads by rig.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerList {
    /// One per rig that has any.
    pub rigs: Vec<RigQueue>,
}

/// The scheduled beads of one rig.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RigQueue {
    /// The rig.
    pub rig: RigName,
    /// Its beads.
    pub beads: Vec<Queued>,
}

/// Scheduled beads that are rendered one by one while they are written: a queue of thousands takes no memory of its own.
#[derive(Debug)]
pub struct Waiting<'a> {
    state: &'a State,
    beads: Vec<(&'a Context, &'a BeadEntry)>,
}

impl Serialize for Waiting<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer
            .collect_seq(self.beads.iter().map(|(context, entry)| queued_view(self.state, context, entry)))
    }
}

/// Renders `scheduler status` for writing; a summary leaves the beads out.
pub fn scheduler_status(state: &State, summary: bool) -> SchedulerStatus<Waiting<'_>> {
    let beads = if summary { Vec::new() } else { waiting(state) };
    status_with(state, Waiting { state, beads })
}

/// `scheduler status` as part of a larger document.
pub(super) fn scheduler_part(state: &State, summary: bool) -> SchedulerStatus {
    status_with(state, if summary { Vec::new() } else { queued(state) })
}

fn status_with<B>(state: &State, beads: B) -> SchedulerStatus<B> {
    let pause = state.pause();
    let broken = state.settled().filter(|(_, verdict)| *verdict == Verdict::CircuitBroken).count();
    let starting = state.live_dispatches().filter(|d| d.running_at.is_none()).count();
    SchedulerStatus {
        mode: if state.settings().is_deferred() { "deferred" } else { "direct" }.to_owned(),
        paused: pause.is_some(),
        paused_by: pause.map(|p| p.by.clone()),
        paused_at: pause.map(|p| p.at),
        pause_reason: pause.and_then(|p| p.reason.clone()),
        pause_until: pause.and_then(|p| p.until),
        queued_total: state.open_context_count() - starting,
        queued_ready: state.ready_count(),
        active_polecats: state.live_workers().count(),
        circuit_broken: broken,
        capacity: capacity(state),
        last_dispatch_at: state.last_dispatch_at(),
        beads,
    }
}

fn capacity(state: &State) -> CapacityView {
    let view = |(limit, room): (Limit, Room)| LimitView {
        name: limit.name(),
        max: room.max,
        active: room.active,
        free: room.free(),
    };
    let limits: Vec<LimitView> = state.limits().into_iter().map(view).collect();
    let town = state.room(&Limit::Town);
    CapacityView { max: town.max, active: town.active, free: town.free(), limits }
}

/// Everything scheduled that has not started, in order of priority and age.
pub fn queued(state: &State) -> Vec<Queued> {
    waiting(state).into_iter().map(|(context, entry)| queued_view(state, context, entry)).collect()
}

fn waiting(state: &State) -> Vec<(&Context, &BeadEntry)> {
    let with_bead = state.open_contexts().filter_map(|context| Some((context, state.bead(context.bead())?)));
    let mut waiting: Vec<(&Context, &BeadEntry)> = with_bead.filter(|(_, e)| e.work.live.is_none()).collect();
    waiting.sort_by_key(|(c, _)| (std::cmp::Reverse(c.priority), c.fields.enqueued_at, c.order));
    waiting
}

fn queued_view(state: &State, context: &Context, entry: &BeadEntry) -> Queued {
    let bead = &entry.bead;
    let reasons = state.reasons_of(entry, Some(context));
    Queued {
        id: bead.id.clone(),
        title: bead.title.clone(),
        status: bead.status.as_str().to_owned(),
        target_rig: context.fields.target_rig.clone(),
        context_id: context.id.clone(),
        priority: context.priority,
        enqueued_at: context.fields.enqueued_at,
        ready: state.is_ready(&context.id),
        blocked: reasons.iter().any(|r| r.code.is_blocking()),
        reasons,
        dispatch_failures: context.fields.dispatch_failures,
        last_failure: context.fields.last_failure.clone(),
        not_before: context.not_before,
    }
}

/// Renders `scheduler list`.
pub fn scheduler_list(state: &State) -> SchedulerList {
    let mut rigs: BTreeMap<RigName, Vec<Queued>> = BTreeMap::new();
    for bead in queued(state) {
        rigs.entry(bead.target_rig.clone()).or_default().push(bead);
    }
    SchedulerList { rigs: rigs.into_iter().map(|(rig, beads)| RigQueue { rig, beads }).collect() }
}
