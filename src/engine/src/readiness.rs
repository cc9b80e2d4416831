//! The one readiness function. It answers with every named reason why a bead does not start; no reason means
//! ready. Staging, feeding, planning, status, dry runs and the console all ask here.

use crate::bead::{BeadEntry, BeadStatus, Verdict};
use crate::context::{CloseReason, Context};
use crate::dispatch::Recovery;
use crate::merge::{MergeRequest, MergeStage};
pub use crate::reason::{Reason, ReasonCode};
use crate::settings::CostSettings;
use crate::spending::Budget;
use crate::state::State;
use crate::{BeadId, Timestamp};

/// Who listens while the reasons are gone through. Returning false ends the walk.
trait Listener {
    fn hears(&mut self, code: ReasonCode, reason: impl FnOnce() -> Reason) -> bool;

    /// Whether it wants to know which beads and limits are waited for; finding that out costs most.
    fn asks_who_is_waited_for(&self) -> bool {
        true
    }
}

struct Everything(Vec<Reason>);
impl Listener for Everything {
    fn hears(&mut self, _: ReasonCode, reason: impl FnOnce() -> Reason) -> bool {
        self.0.push(reason());
        true
    }
}

struct AnyBesidesRoom(bool);
impl Listener for AnyBesidesRoom {
    fn hears(&mut self, code: ReasonCode, _: impl FnOnce() -> Reason) -> bool {
        self.0 = !code.is_about_room();
        !self.0
    }
}

/// What keeps a bead from starting besides room and other beads: until when, or for ever.
#[derive(Debug, Default)]
pub(crate) struct Prospect {
    /// Nothing speaks against it from then on.
    pub(crate) from: Option<Timestamp>,
    /// It never starts as things stand.
    pub(crate) never: Option<Reason>,
    /// Whether its convoy is taken to be launched.
    launched: bool,
}

impl Listener for Prospect {
    fn hears(&mut self, code: ReasonCode, reason: impl FnOnce() -> Reason) -> bool {
        use ReasonCode as C;
        match code {
            C::BlockedBy
            | C::MissingDependency
            | C::Cycle
            | C::Running
            | C::Closed
            | C::Paused
            | C::Capacity
            | C::AwaitingAgent
            | C::HostLoad => {}
            C::Staged if self.launched => {}
            C::NotBefore | C::AccountCooldown | C::Deferred | C::CostLimit => {
                let reason = reason();
                match reason.until {
                    Some(until) => self.from = self.from.max(Some(until)),
                    None => self.never = Some(reason),
                }
            }
            C::Gated
            | C::Staged
            | C::RigParked
            | C::RigDocked
            | C::CircuitBroken
            | C::AwaitingClose
            | C::AwaitingMerge
            | C::MergeConflict
            | C::Held
            | C::ClaimedElsewhere
            | C::RetriesExhausted
            | C::NotDispatchable
            | C::NoRig => self.never = Some(reason()),
        }
        self.never.is_none()
    }

    fn asks_who_is_waited_for(&self) -> bool {
        false
    }
}

impl State {
    /// What keeps a bead from starting besides room and other beads; `launched` takes its staged convoy for launched.
    pub(crate) fn prospect(&self, entry: &BeadEntry, context: Option<&Context>, launched: bool) -> Prospect {
        let mut prospect = Prospect { launched, ..Prospect::default() };
        self.tell_reasons(entry, context, &mut prospect);
        prospect
    }

    /// Every reason why this bead does not start now; empty means ready.
    pub fn reasons(&self, bead: &BeadId) -> Vec<Reason> {
        let Some(entry) = self.beads.get(bead) else {
            return vec![Reason::new(ReasonCode::NotDispatchable, "no such bead")];
        };
        self.reasons_of(entry, entry.work.context.as_ref().and_then(|id| self.context(id)))
    }

    /// As `reasons`, for whoever has the bead and its open context at hand already.
    pub fn reasons_of(&self, entry: &BeadEntry, context: Option<&Context>) -> Vec<Reason> {
        let mut all = Everything(Vec::new());
        self.tell_reasons(entry, context, &mut all);
        all.0
    }

    /// Whether an open context would start if there were room.
    pub(crate) fn could_start(&self, context: &Context) -> bool {
        let entry = self.beads.get(context.bead());
        entry.is_some_and(|entry| !self.has_reason_besides_room(entry, Some(context)))
    }

    /// Whether anything but room keeps a bead from starting.
    pub(crate) fn has_reason_besides_room(&self, entry: &BeadEntry, context: Option<&Context>) -> bool {
        let mut any = AnyBesidesRoom(false);
        self.tell_reasons(entry, context, &mut any);
        any.0
    }

    /// Goes through all reasons, cheap ones first. `None` from the inner walk means the listener has heard enough.
    fn tell_reasons(&self, entry: &BeadEntry, context: Option<&Context>, listener: &mut impl Listener) {
        let _ = self.walk_reasons(entry, context, listener);
    }

    fn walk_reasons(
        &self,
        entry: &BeadEntry,
        context: Option<&Context>,
        listener: &mut impl Listener,
    ) -> Option<()> {
        use ReasonCode as C;
        let asks_who = listener.asks_who_is_waited_for();
        let mut tell = |code: C, reason: &dyn Fn() -> Reason| listener.hears(code, reason).then_some(());
        let bead = &entry.bead;
        if bead.is_closed() {
            tell(C::Closed, &|| Reason::new(C::Closed, "it is closed"))?;
            return self.walk_merge(entry, &mut tell);
        }
        if let Some(live) = &entry.work.live {
            tell(C::Running, &|| Reason::new(C::Running, format!("{live} runs it")))?;
            return Some(());
        }
        if entry.work.lined {
            tell(C::Running, &|| Reason::new(C::Running, "it is next in line and starts when another ends"))?;
        }
        if let Some(why) = bead.not_work_because() {
            tell(C::NotDispatchable, &|| Reason::new(C::NotDispatchable, why.clone()))?;
        }
        if self.is_town_level(&bead.id) {
            let message = "town-level beads are never dispatched";
            tell(C::NotDispatchable, &|| Reason::new(C::NotDispatchable, message))?;
        }
        self.walk_claim(entry, context, &mut tell)?;
        if entry.blocked && asks_who {
            self.walk_blockers(entry, &mut tell)?;
        }
        let rig = match context {
            Some(context) => self.rigs.get(&context.fields.target_rig),
            None => self.rig_of(&bead.id),
        };
        match rig {
            None => {
                let message = || format!("no rig owns the prefix of {}; see ym rig add", bead.id);
                tell(C::NoRig, &|| Reason::new(C::NoRig, message()))?;
            }
            Some(rig) => {
                if rig.parked {
                    let message = || format!("rig {} is parked; ym rig unpark {}", rig.name, rig.name);
                    tell(C::RigParked, &|| Reason::new(C::RigParked, message()))?;
                }
                if rig.docked {
                    let message = || format!("rig {} is docked; ym rig undock {}", rig.name, rig.name);
                    tell(C::RigDocked, &|| Reason::new(C::RigDocked, message()))?;
                }
            }
        }
        match context {
            Some(context) => {
                self.walk_context(context, &mut tell)?;
                if asks_who { self.walk_room(context, &mut tell) } else { Some(()) }
            }
            None => self.walk_verdict(entry, &mut tell),
        }
    }

    /// Whether a person or another tool has a claim on the bead.
    fn walk_claim(
        &self,
        entry: &BeadEntry,
        context: Option<&Context>,
        tell: &mut impl FnMut(ReasonCode, &dyn Fn() -> Reason) -> Option<()>,
    ) -> Option<()> {
        use ReasonCode as C;
        if context.is_some_and(|c| c.forced) {
            return Some(());
        }
        if let Some(owner) = claimed_elsewhere(entry) {
            let message = || format!("{owner}; --force takes it");
            tell(C::ClaimedElsewhere, &|| Reason::new(C::ClaimedElsewhere, message()))?;
        }
        if let Some(until) = entry.bead.defer_until.filter(|until| *until > self.clock) {
            tell(C::Deferred, &|| Reason::new(C::Deferred, format!("put off until {until}")).until(until))?;
        }
        match &entry.bead.status {
            BeadStatus::Deferred => {
                tell(C::Deferred, &|| Reason::new(C::Deferred, "it was put off (status deferred)"))?;
            }
            BeadStatus::Blocked | BeadStatus::Other(_) => tell(C::Gated, &|| {
                Reason::new(C::Gated, format!("its status is {}", entry.bead.status.as_str()))
            })?,
            BeadStatus::Open
            | BeadStatus::InProgress
            | BeadStatus::Hooked
            | BeadStatus::Pinned
            | BeadStatus::Closed
            | BeadStatus::Tombstone => {}
        }
        Some(())
    }

    fn walk_blockers(
        &self,
        entry: &BeadEntry,
        tell: &mut impl FnMut(ReasonCode, &dyn Fn() -> Reason) -> Option<()>,
    ) -> Option<()> {
        use ReasonCode as C;
        let id = &entry.bead.id;
        let waits = self.waits_for(id);
        let known = |on: &BeadId| self.beads.contains_key(on);
        for (code, open) in [(C::BlockedBy, true), (C::MissingDependency, false)] {
            let mut holders: Vec<&BeadId> =
                waits.iter().filter(|w| known(&w.1) == open).map(|w| &w.0).collect();
            holders.dedup();
            for holder in holders {
                tell(code, &|| {
                    let of_holder = waits.iter().filter(|w| w.0 == *holder && known(&w.1) == open);
                    let ids: Vec<BeadId> = of_holder.map(|w| w.1.clone()).collect();
                    let names: Vec<&str> = ids.iter().map(|on| self.name_of_edge(holder, on)).collect();
                    let through =
                        if holder == id { String::new() } else { format!(" (through its parent {holder})") };
                    let merging = |on: &BeadId| self.is_closed(on) && self.is_unmerged(on);
                    let message = if open && ids.iter().all(merging) {
                        format!("waits for the merge of {}{through}", list(&ids))
                    } else if open {
                        format!("waits for {}{through}", list(&ids))
                    } else {
                        format!("depends on {}, which nobody has{through}", list_names(&names))
                    };
                    Reason::new(code, message).about(ids)
                })?;
            }
        }
        if !self.may_cycle() {
            return Some(());
        }
        let around = waits.iter().find_map(|(holder, on)| Some((holder, self.waiting_path(on, holder)?)));
        if let Some((holder, path)) = around {
            tell(C::Cycle, &|| {
                let message = format!("waits for itself: {holder} -> {}", arrows(&path));
                Reason::new(C::Cycle, message).about(path.clone())
            })?;
        }
        Some(())
    }

    fn walk_context(
        &self,
        context: &Context,
        tell: &mut impl FnMut(ReasonCode, &dyn Fn() -> Reason) -> Option<()>,
    ) -> Option<()> {
        use ReasonCode as C;
        if context.held {
            let by = context.held_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            tell(C::Held, &|| Reason::new(C::Held, format!("held{by}; ym unhold {}", context.bead())))?;
        }
        if let Some(until) = context.not_before.filter(|t| *t > self.clock) {
            tell(C::NotBefore, &|| Reason::new(C::NotBefore, format!("not before {until}")).until(until))?;
        }
        if let Some(until) = context.rest_until.filter(|t| *t > self.clock) {
            tell(C::NotBefore, &|| {
                Reason::new(C::NotBefore, format!("rests after a failed start until {until}")).until(until)
            })?;
        }
        let account = context.fields.account.as_ref();
        if let Some((account, until)) = account.and_then(|account| self.cooling.get_key_value(account)) {
            tell(C::AccountCooldown, &|| {
                let message = format!("account {account} rests until {until}: its service was unavailable");
                Reason::new(C::AccountCooldown, message).until(*until)
            })?;
        }
        self.walk_budgets(context, tell)
    }

    /// What keeps a context that could start from starting now.
    fn walk_room(
        &self,
        context: &Context,
        tell: &mut impl FnMut(ReasonCode, &dyn Fn() -> Reason) -> Option<()>,
    ) -> Option<()> {
        use ReasonCode as C;
        if let Some(pause) = &self.pause {
            tell(C::Paused, &|| {
                let why = pause.reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default();
                let reason = Reason::new(C::Paused, format!("dispatch is paused by {}{why}", pause.by));
                Reason { until: pause.until, ..reason }
            })?;
        }
        if let Some(busy) = &self.host_gate {
            tell(C::HostLoad, &|| Reason::new(C::HostLoad, busy.clone()))?;
        }
        if context.assign.is_some() {
            let waits = context.sent.is_some() || self.roster.offers.contains(&context.id);
            if !waits {
                return Some(());
            }
            return tell(C::AwaitingAgent, &|| {
                let (message, until) = self.why_no_agent(context);
                Reason { until, ..Reason::new(C::AwaitingAgent, message) }
            });
        }
        for limit in self.limits_for(context) {
            let room = self.room(&limit);
            if let (false, Some(max)) = (room.has_room(), room.max) {
                tell(C::Capacity, &|| {
                    let reason = Reason::new(C::Capacity, limit.is_full(room.active, max));
                    Reason { limit: Some(limit.name()), ..reason }
                })?;
            }
        }
        Some(())
    }

    /// The budgets that leave nothing for a bead.
    fn walk_budgets(
        &self,
        context: &Context,
        tell: &mut impl FnMut(ReasonCode, &dyn Fn() -> Reason) -> Option<()>,
    ) -> Option<()> {
        if self.settings.cost == CostSettings::default() {
            return Some(());
        }
        for budget in self.budgets_of(context.bead()) {
            if self.is_spent(&budget) {
                tell(ReasonCode::CostLimit, &|| self.cost_reason(context.bead(), &budget))?;
            }
        }
        Some(())
    }

    fn cost_reason(&self, bead: &BeadId, budget: &Budget) -> Reason {
        let amounts = self.spent(budget).map(|s| format!("{} of {}", s.spent, s.limit)).unwrap_or_default();
        let raise = format!("ym config set {} USD raises it", budget.setting());
        let message = match budget {
            Budget::Bead(_) => format!("it has cost {amounts}; {raise}, ym scheduler retry {bead} renews it"),
            Budget::Convoy(id) => format!("convoy {id} has cost {amounts}; {raise}"),
            Budget::Daily => format!("{amounts} are spent today; {raise}"),
            Budget::Monthly => format!("{amounts} are spent this month; {raise}"),
        };
        let until = match budget {
            Budget::Bead(_) | Budget::Convoy(_) => None,
            Budget::Daily | Budget::Monthly => self.renewed_at,
        };
        Reason { until, ..Reason::new(ReasonCode::CostLimit, message) }
    }

    /// What keeps the branch of a finished bead out of its base.
    fn walk_merge(
        &self,
        entry: &BeadEntry,
        tell: &mut impl FnMut(ReasonCode, &dyn Fn() -> Reason) -> Option<()>,
    ) -> Option<()> {
        use ReasonCode as C;
        let Some(merge) = self.merges.get(&entry.bead.id).filter(|merge| !merge.is_merged()) else {
            return Some(());
        };
        let MergeRequest { branch, base, bead, .. } = merge;
        match &merge.stage {
            MergeStage::Blocked { problem } => tell(C::MergeConflict, &|| {
                let again = format!("mend {branch} or {base}, then ym scheduler retry {bead}");
                Reason::new(C::MergeConflict, format!("{} ({branch} into {base}); {again}", problem.words()))
            }),
            stage => tell(C::AwaitingMerge, &|| {
                let what = match stage {
                    MergeStage::Offered => "waits for somebody to merge it",
                    MergeStage::Checking { .. } => "is merged on trial, and being checked",
                    MergeStage::Composing | MergeStage::Landing { .. } => "is being merged",
                    MergeStage::Waiting | MergeStage::Blocked { .. } | MergeStage::Merged { .. } => {
                        "stands in line to be merged"
                    }
                };
                let by = match stage {
                    MergeStage::Waiting => "; a daemon or an open console does that, in turn",
                    _ => "",
                };
                Reason::new(C::AwaitingMerge, format!("{branch} {what} into {base}{by}"))
            }),
        }
    }

    /// What keeps an unscheduled bead from being tried again.
    fn walk_verdict(
        &self,
        entry: &BeadEntry,
        tell: &mut impl FnMut(ReasonCode, &dyn Fn() -> Reason) -> Option<()>,
    ) -> Option<()> {
        use ReasonCode as C;
        let retry = || format!("ym scheduler retry {}", entry.bead.id);
        match entry.work.verdict {
            None if self.is_only_staged(&entry.bead.id) => tell(C::Staged, &|| {
                let convoy = self.all_convoys_tracking(&entry.bead.id).map(|c| c.id.as_str()).next();
                let convoy = convoy.unwrap_or_default();
                Reason::new(C::Staged, format!("convoy {convoy} is staged; ym convoy launch {convoy}"))
            }),
            Some(Verdict::Cancelled) => {
                tell(C::Held, &|| Reason::new(C::Held, format!("called off by a person; {}", retry())))
            }
            None if self.taken_off(entry) => tell(C::Held, &|| {
                let again = format!("ym sling {} brings it back", entry.bead.id);
                Reason::new(C::Held, format!("cleared from the schedule by a person; {again}"))
            }),
            None => Some(()),
            Some(Verdict::Done) if self.merges.get(&entry.bead.id).is_some_and(|m| !m.is_merged()) => {
                self.walk_merge(entry, tell)
            }
            Some(Verdict::Done) => tell(C::AwaitingClose, &|| {
                Reason::new(C::AwaitingClose, "its worker finished; the bead is not closed yet")
            }),
            Some(Verdict::CircuitBroken) => tell(C::CircuitBroken, &|| {
                Reason::new(C::CircuitBroken, format!("failed to start too often; {}", retry()))
            }),
            Some(Verdict::Failed | Verdict::Unavailable) => tell(C::RetriesExhausted, &|| {
                let last = entry.work.last_context.as_ref().and_then(|c| self.context(c)?.closed.as_ref());
                let expired = last.is_some_and(|c| c.reason == CloseReason::Expired);
                let stopped = self.last_stop_of(&entry.bead.id).filter(|r| r.recovery() == Recovery::Failed);
                let what = match stopped {
                    _ if expired => "its deadline passed".to_owned(),
                    Some(reason) => format!("it {}", reason.words()),
                    None => "no more retries".to_owned(),
                };
                Reason::new(C::RetriesExhausted, format!("{what}; {}", retry()))
            }),
        }
    }
}

/// Who else is on a bead: a status or an assignee that is not ours.
pub(crate) fn claimed_elsewhere(entry: &BeadEntry) -> Option<String> {
    let bead = &entry.bead;
    let assignee = bead.assignee.as_deref().filter(|who| !is_our_actor(who) && !entry.was_left_by(who));
    match (&bead.status, assignee) {
        (BeadStatus::InProgress | BeadStatus::Hooked | BeadStatus::Pinned, who) => {
            // A worker of ours that names nobody is ours as well as one that names itself.
            let ours = bead.assignee.is_some() || entry.claimed_by_worker;
            if who.is_none() && ours {
                return None;
            }
            let by = who.map(|w| format!(" by {w}")).unwrap_or_default();
            Some(format!("it is {}{by}", bead.status.as_str()))
        }
        (_, Some(who)) => Some(format!("it is assigned to {who}")),
        (_, None) => None,
    }
}

/// The actor our workers act as; a bead claimed under it is ours.
pub const WORKER_ACTOR_PREFIX: &str = "ym/";

pub(crate) fn is_our_actor(who: &str) -> bool {
    who.starts_with(WORKER_ACTOR_PREFIX)
}

/// Ids in a sentence, not more than ten of them.
pub(crate) fn list(ids: &[BeadId]) -> String {
    list_names(&ids.iter().map(BeadId::as_str).collect::<Vec<_>>())
}

pub(crate) fn list_names(names: &[&str]) -> String {
    let shown: Vec<&str> = names.iter().take(10).copied().collect();
    let more = names.len().saturating_sub(10);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

pub(crate) fn arrows(path: &[BeadId]) -> String {
    path.iter().map(BeadId::as_str).collect::<Vec<_>>().join(" -> ")
}
