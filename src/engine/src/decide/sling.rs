//! Sling: asking for beads to be run, one by one, as a batch, as an epic or as a convoy. Every way ends in an open
//! context; whether it starts at once is the plan's business.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::bounds::check_sling;
use super::{Asker, Kitchen};
use crate::bead::{Bead, BeadEntry, BeadStatus};
use crate::capacity::Limit;
use crate::command::{Answer, SlingAction, SlingRequest, SlingResult};
use crate::context::{Assign, Context, ContextEvent, ContextExtras, ContextFields, RequestExtras};
use crate::convoy::{CONVOY_PREFIX, Convoy, ConvoyEvent};
use crate::dispatch::SLURM_EXECUTOR;
use crate::ids::base36;
use crate::readiness::claimed_elsewhere;
use crate::refusal::Refusal;
use crate::settings::RigAssign;
use crate::state::State;
use crate::task::TaskPlace;
use crate::tx::Tx;
use crate::{BeadId, ContextId, ConvoyId, FormulaName, RigName, Timestamp};

/// A bead that passed every guard, or what is said about one that did not.
type Judged = Result<Accepted, Box<SlingResult>>;

/// What an id of a sling stands for.
struct Targets {
    beads: Vec<BeadId>,
    /// A set (epic or convoy): unfit members are left out rather than refused.
    is_set: bool,
    /// The convoy that was named.
    convoy: Option<ConvoyId>,
    /// What an auto-convoy is called.
    title: String,
}

/// A bead that passed every guard.
pub(super) struct Accepted {
    pub(super) bead: BeadId,
    pub(super) rig: RigName,
    pub(super) formula: Option<FormulaName>,
    pub(super) priority: u8,
    pub(super) task: Option<TaskPlace>,
    pub(super) assign: Option<Assign>,
}

impl Tx<'_> {
    pub(super) fn sling(&mut self, asker: &Asker<'_>, request: &SlingRequest) -> Result<Answer, Refusal> {
        let request = &self.state().with_trailing_rig(request);
        if let Some(rig) = &request.rig {
            self.state().known_rig(rig)?;
        }
        let targets = self.targets(request)?;
        check_sling(request, self.now())?;
        let direct = !self.state().settings.is_deferred();
        let judged: Vec<_> = targets
            .beads
            .iter()
            .map(|id| (id.clone(), self.judge(id, request, targets.is_set, asker.kitchen)))
            .collect();
        if request.dry_run {
            let results = self.foretell(request, judged);
            return Ok(Answer::Slung { direct, results });
        }
        let accepted = judged.iter().filter_map(|(_, v)| v.as_ref().ok().map(|a| &a.bead));
        let convoys = self.convoys_for(asker, request, &targets, accepted.cloned().collect());
        let mut results = Vec::with_capacity(judged.len());
        for (id, verdict) in judged {
            results.push(match verdict {
                Err(result) => *result,
                Ok(accepted) => {
                    let convoy = convoys.get(&id).cloned();
                    self.open_context(asker, request, &accepted, convoy)
                }
            });
        }
        Ok(Answer::Slung { direct, results })
    }

    /// What a sling would do: in direct mode work starts while there is room, and waits otherwise.
    fn foretell(&self, request: &SlingRequest, judged: Vec<(BeadId, Judged)>) -> Vec<SlingResult> {
        let state = self.state();
        let stopped = state.settings.is_deferred() || state.pause.is_some() || state.host_gate.is_some();
        let later = request.not_before.is_some_and(|t| t > self.now());
        let mut taken: BTreeMap<Limit, u64> = BTreeMap::new();
        let tell = |(id, verdict): (BeadId, Judged)| match verdict {
            Err(result) => *result,
            Ok(accepted) => {
                let by_agent = accepted.assign.is_some();
                let executor = state.executor_for(request.executor.as_deref(), &accepted.rig);
                let on_cluster = executor == SLURM_EXECUTOR;
                let account = request.account.as_ref();
                let limits: Vec<Limit> =
                    Limit::of(&accepted.rig, account, None, by_agent, on_cluster).collect();
                let mut fits = |limit: &Limit| {
                    let ahead = taken.get(limit).copied().unwrap_or(0);
                    state.room(limit).free().is_none_or(|free| free > ahead)
                };
                let starts = !stopped && !later && !by_agent && limits.iter().all(&mut fits);
                let action = if starts { SlingAction::Dispatched } else { SlingAction::Scheduled };
                for limit in limits.into_iter().filter(|_| starts) {
                    *taken.entry(limit).or_default() += 1;
                }
                SlingResult { rig: Some(accepted.rig), ..SlingResult::new(id.as_str(), action) }
            }
        };
        judged.into_iter().map(tell).collect()
    }

    /// What the ids stand for: one epic or convoy, or a list of beads.
    fn targets(&self, request: &SlingRequest) -> Result<Targets, Refusal> {
        let state = self.state();
        let [only] = request.ids.as_slice() else {
            if request.ids.is_empty() {
                return Err(Refusal::new("no-bead", "say which bead to sling").hint("ym sling BEAD… [RIG]"));
            }
            return self.batch(request);
        };
        if only.starts_with(CONVOY_PREFIX) {
            let convoy = &state.convoys[&state.find_convoy(only)?];
            if convoy.staged.is_some() {
                return Err(Refusal::new("staged", format!("convoy {} is staged", convoy.id))
                    .hint(format!("ym convoy launch {} lets it go", convoy.id)));
            }
            if !convoy.is_open() {
                return Err(Refusal::new("closed", format!("convoy {} is closed", convoy.id)));
            }
            no_rig_for_a_set(request, "convoy")?;
            let (title, id) = (convoy.title.clone(), convoy.id.clone());
            return Ok(Targets { beads: convoy.tracked.clone(), is_set: true, convoy: Some(id), title });
        }
        let id = BeadId::parse(only)?;
        let Some(bead) = state.beads.get(&id).map(|e| &e.bead) else {
            // Refused below, with all the others.
            return Ok(Targets { beads: vec![id], is_set: false, convoy: None, title: String::new() });
        };
        let title = format!("Work: {}", bead.title);
        if bead.is_epic() {
            no_rig_for_a_set(request, "epic")?;
            let beads = state.open_descendants(&id);
            if beads.is_empty() {
                return Err(Refusal::new("empty-epic", format!("epic {id} has no open children"))
                    .hint("ym bead add --parent makes children"));
            }
            return Ok(Targets { beads, is_set: true, convoy: None, title });
        }
        Ok(Targets { beads: vec![id], is_set: false, convoy: None, title })
    }

    fn batch(&self, request: &SlingRequest) -> Result<Targets, Refusal> {
        let mut beads = Vec::new();
        let mut seen = BTreeSet::new();
        for text in &request.ids {
            if text.starts_with(CONVOY_PREFIX) {
                return Err(Refusal::new("mixed-sling", "sling a convoy by itself, not in a list"));
            }
            let id = BeadId::parse(text)?;
            let entry = self.state().bead(&id);
            if entry.is_none() && Some(text) == request.ids.last() && !text.contains('-') {
                let known: Vec<&str> = self.state().rigs.keys().map(RigName::as_str).collect();
                return Err(Refusal::new("unknown-rig", format!("there is no rig {text:?}"))
                    .hint(format!("known rigs: {}", known.join(", "))));
            }
            if entry.is_some_and(|e| e.bead.is_epic()) {
                return Err(Refusal::new("mixed-sling", format!("{id} is an epic: sling it by itself")));
            }
            if seen.insert(id.clone()) {
                beads.push(id);
            }
        }
        let title = format!("Work: {} beads", beads.len());
        Ok(Targets { beads, is_set: false, convoy: None, title })
    }

    /// Asks for one bead, of a convoy or by itself: the same guards, the same context as any sling.
    pub(crate) fn sling_into(
        &mut self,
        asker: &Asker<'_>,
        bead: &BeadId,
        convoy: Option<&ConvoyId>,
        request: &SlingRequest,
    ) -> SlingResult {
        match self.judge(bead, request, true, asker.kitchen) {
            Err(result) => *result,
            Ok(accepted) => self.open_context(asker, request, &accepted, convoy.cloned()),
        }
    }

    /// The guards, in the order the manual gives.
    fn judge(&self, id: &BeadId, request: &SlingRequest, is_set: bool, kitchen: &Kitchen) -> Judged {
        let state = self.state();
        let no = |action, code: &str, message: String| {
            Err(Box::new(SlingResult::new(id.as_str(), action).because(code, message)))
        };
        let left_out = if is_set { SlingAction::Skipped } else { SlingAction::Refused };
        let Some(entry) = state.beads.get(id) else {
            let near = state.find_bead(id.as_str()).map(|near| format!("; did you mean {near}?"));
            let message = format!("there is no bead {id}{}", near.unwrap_or_default());
            return no(left_out, "unknown-bead", message);
        };
        let bead = &entry.bead;
        if bead.is_closed() {
            return no(left_out, "closed", format!("{id} is {}", bead.status.as_str()));
        }
        if state.tasks.get(id).is_some_and(|task| task.ended.is_some()) {
            return no(left_out, "task-ended", task_has_ended(id));
        }
        if let Some(why) = bead.not_work_because() {
            return no(left_out, "not-dispatchable", format!("{id}: {why}"));
        }
        if state.is_town_level(id) {
            return no(left_out, "not-dispatchable", format!("{id} is town-level and never dispatched"));
        }
        let home = state.rig_of(id);
        let Some(rig) = request.rig.as_ref().and_then(|name| state.rigs.get(name)).or(home) else {
            let message = format!("no rig owns the prefix of {id}; see ym rig add");
            return no(left_out, "no-rig", message);
        };
        if home.is_none_or(|h| h.name != rig.name) && !request.force {
            let owner = home.map_or("no rig".to_owned(), |h| format!("rig {}", h.name));
            let message = format!("{id} belongs to {owner}, not to {}; --force overrides", rig.name);
            return no(SlingAction::Refused, "cross-rig", message);
        }
        if rig.parked {
            return no(SlingAction::Refused, "rig-parked", format!("rig {} is parked", rig.name));
        }
        if rig.docked {
            return no(SlingAction::Refused, "rig-docked", format!("rig {} is docked", rig.name));
        }
        if let Some(live) = &entry.work.live {
            let mut result = SlingResult::new(id.as_str(), SlingAction::AlreadyRunning);
            result.dispatch_id = Some(live.clone());
            result.rig = Some(rig.name.clone());
            return Err(Box::new(result));
        }
        if let Some(context) = &entry.work.context {
            let mut result = SlingResult::new(id.as_str(), SlingAction::AlreadyScheduled);
            result.context_id = Some(context.clone());
            result.rig = state.context(context).map(|c| c.fields.target_rig.clone());
            return Err(Box::new(result));
        }
        if let Err(refusal) = self.refuse_while_merging(id) {
            return no(left_out, refusal.code.as_ref(), refusal.message.clone());
        }
        if !request.force {
            guard_status(entry, state.clock(), left_out)?;
        }
        let assign = state.assign_for(request, &rig.name);
        let formula = state.formula_for(bead, &rig.name, request).filter(|_| assign.is_none());
        if let Some(formula) = &formula
            && let Some(error) = kitchen
                .spoiled
                .get(&(rig.name.clone(), formula.clone()))
                .or_else(|| kitchen.spoiled_beads.get(id))
        {
            return no(SlingAction::Refused, "formula", error.clone());
        }
        if request.hook_raw_bead && bead.argv.is_none() && assign.is_none() {
            let message = format!("{id} has no command of its own to run without a formula");
            return no(SlingAction::Refused, "formula", message);
        }
        if !state.settings.is_deferred() && entry.blocked && assign.is_none() {
            let reasons = state.reasons(id);
            let waits = reasons.iter().filter(|r| r.code.is_blocking() && !r.ids.is_empty());
            let message: Vec<&str> = waits.map(|r| r.message.as_str()).collect();
            return no(SlingAction::Refused, "blocked-by", format!("{id} {}", message.join("; ")));
        }
        let priority = request.priority.unwrap_or_else(|| sling_priority(bead));
        Ok(Accepted { bead: id.clone(), rig: rig.name.clone(), formula, priority, task: None, assign })
    }

    /// The convoy of each accepted bead: the named one, one that tracks it already, or a new one for the rest.
    fn convoys_for(
        &mut self,
        asker: &Asker<'_>,
        request: &SlingRequest,
        targets: &Targets,
        accepted: Vec<BeadId>,
    ) -> BTreeMap<BeadId, ConvoyId> {
        let mut convoys = BTreeMap::new();
        let mut untracked = Vec::new();
        for bead in accepted {
            let tracking = self.state().convoys_tracking(&bead).next().map(|c| c.id.clone());
            match targets.convoy.clone().or(tracking) {
                Some(convoy) => {
                    convoys.insert(bead, convoy);
                }
                None => untracked.push(bead),
            }
        }
        if untracked.is_empty() || request.no_convoy {
            return convoys;
        }
        let title = targets.title.chars().take(200).collect();
        let made = Convoy::new(self.state().new_convoy_id(), title, untracked.clone(), self.now());
        let convoy = Convoy { owned: request.owned, merge: request.merge, ..made };
        convoys.extend(untracked.into_iter().map(|bead| (bead, convoy.id.clone())));
        self.emit(ConvoyEvent::Created { convoy: Box::new(convoy), actor: asker.actor.to_owned() });
        convoys
    }

    pub(super) fn open_context(
        &mut self,
        asker: &Asker<'_>,
        request: &SlingRequest,
        accepted: &Accepted,
        convoy: Option<ConvoyId>,
    ) -> SlingResult {
        self.withdraw_merge(&accepted.bead, "it is worked on anew", None);
        let vars: Vec<String> = request.vars.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let extras = RequestExtras {
            args: request.args.clone(),
            vars: (!vars.is_empty()).then(|| vars.join("\n")),
            merge: request.merge,
            base_branch: request.base_branch.clone(),
            account: request.account.clone(),
            agent: request.agent.clone(),
            mode: request.ralph.then(|| "ralph".to_owned()),
            ..RequestExtras::default()
        };
        let fields = ContextFields {
            version: 1,
            work_bead_id: accepted.bead.clone(),
            target_rig: accepted.rig.clone(),
            formula: accepted.formula.clone(),
            enqueued_at: self.now(),
            convoy: convoy.clone(),
            no_merge: request.no_merge,
            hook_raw_bead: request.hook_raw_bead,
            owned: request.owned,
            dispatch_failures: 0,
            extras: extras.into(),
        };
        let extras = ContextExtras {
            not_before: request.not_before,
            deadline: request.deadline,
            executor: request.executor.clone(),
            task: accepted.task.clone(),
            assign: accepted.assign.clone(),
            ..ContextExtras::default()
        };
        let context = Context {
            id: self.state().next_context_id(),
            fields,
            priority: accepted.priority,
            order: self.state().seq().next().0,
            held: false,
            forced: request.force,
            no_boot: request.no_boot,
            crashes: 0,
            unavailables: 0,
            closed: None,
            extras: extras.into(),
        };
        self.end_alerts_of_request(&accepted.bead);
        let mut result = SlingResult::new(accepted.bead.as_str(), SlingAction::Scheduled);
        result.context_id = Some(context.id.clone());
        result.rig = Some(accepted.rig.clone());
        result.convoy_id = convoy;
        self.emit(ContextEvent::Opened { context: Arc::new(context), actor: asker.actor.to_owned() });
        result
    }
}

fn no_rig_for_a_set(request: &SlingRequest, what: &str) -> Result<(), Refusal> {
    match &request.rig {
        None => Ok(()),
        Some(_) => Err(Refusal::new(
            "no-explicit-rig",
            format!("a rig cannot be given with {what}: each bead goes to its own"),
        )),
    }
}

/// Somebody else's claim, or a person's wish, on a bead; `--force` overrides both.
fn guard_status(entry: &BeadEntry, now: Timestamp, left_out: SlingAction) -> Result<(), Box<SlingResult>> {
    let id = &entry.bead.id;
    let no = |code: &str, message: String| {
        Err(Box::new(SlingResult::new(id.as_str(), left_out).because(code, message)))
    };
    if let Some(owner) = claimed_elsewhere(entry) {
        return no("claimed-elsewhere", format!("{id}: {owner}; --force takes it"));
    }
    if entry.bead.status == BeadStatus::Deferred {
        return no("deferred", format!("{id} was put off (status deferred); --force takes it"));
    }
    if let Some(until) = entry.bead.defer_until.filter(|until| *until > now) {
        return no("deferred", format!("{id} was put off until {until}; --force takes it"));
    }
    Ok(())
}

/// A task comes to one end, of which its client was told.
pub(super) fn task_has_ended(id: &BeadId) -> String {
    format!("{id} is a task that has come to its end; submit it again as a new one")
}

/// Bead priorities P0 to P4 as sling priorities.
pub(crate) fn sling_priority(bead: &Bead) -> u8 {
    match bead.priority {
        0 => 90,
        1 => 70,
        2 => 50,
        3 => 30,
        _ => 10,
    }
}

impl State {
    /// How a sling gives its beads to agents, if it does: as it says, or as the rig does.
    fn assign_for(&self, request: &SlingRequest, rig: &RigName) -> Option<Assign> {
        let of_request = request.assign.as_ref().map(|to| Assign { to: to.agent().cloned(), own: false });
        of_request.or_else(|| (self.assign_of(rig) != RigAssign::Off).then(Assign::default))
    }

    /// The last word of a sling is a rig if one has that name, and no bead was meant: a rig wins.
    pub fn with_trailing_rig(&self, request: &SlingRequest) -> SlingRequest {
        let mut request = request.clone();
        if let (None, [_, .., last]) = (&request.rig, request.ids.as_slice())
            && let Some(rig) = self.rigs.get(last.as_str())
        {
            request.rig = Some(rig.name.clone());
            request.ids.pop();
        }
        request
    }

    /// The formula a sling of this bead uses; none when it runs its own command.
    pub fn formula_for(&self, bead: &Bead, rig: &RigName, request: &SlingRequest) -> Option<FormulaName> {
        if request.hook_raw_bead {
            return None;
        }
        if request.formula.is_some() {
            return request.formula.clone();
        }
        if bead.argv.is_some() {
            return None;
        }
        let of_rig = self.rigs.get(rig).and_then(|r| r.formula.clone());
        Some(of_rig.unwrap_or_else(|| self.settings.default_formula(rig)))
    }

    /// The formulas a sling would use, so that they can be cooked before it is decided: each with one of its beads, and
    /// with each bead whose text may be too long for it.
    pub fn formulas_of(&self, request: &SlingRequest) -> BTreeSet<(RigName, FormulaName, BeadId)> {
        let request = &self.with_trailing_rig(request);
        let mut needed = BTreeSet::new();
        let mut asked = BTreeSet::new();
        let mut visit = |id: &BeadId| {
            let Some(entry) = self.beads.get(id) else { return };
            let rig = request.rig.as_ref().and_then(|r| self.rigs.get(r)).or_else(|| self.rig_of(id));
            let Some(rig) = rig else { return };
            if self.assign_for(request, &rig.name).is_none()
                && let Some(formula) = self.formula_for(&entry.bead, &rig.name, request)
                && (entry.bead.has_long_text() || asked.insert((rig.name.clone(), formula.clone())))
            {
                needed.insert((rig.name.clone(), formula, id.clone()));
            }
        };
        for text in &request.ids {
            if let Some(convoy) = self.convoys.get(text.as_str()) {
                convoy.tracked.iter().for_each(&mut visit);
            } else if let Ok(id) = BeadId::parse(text) {
                visit(&id);
                self.open_descendants(&id).iter().for_each(&mut visit);
            }
        }
        needed
    }

    /// All open beads below this one, by parent-child; containers are walked through, not listed.
    pub(crate) fn open_descendants(&self, id: &BeadId) -> Vec<BeadId> {
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::from([id.clone()]);
        let mut pending = vec![id.clone()];
        while let Some(next) = pending.pop() {
            for child in self.children_of(&next) {
                if !seen.insert(child.clone()) {
                    continue;
                }
                pending.push(child.clone());
                if let Some(entry) = self.beads.get(child)
                    && !entry.bead.is_closed()
                    && !entry.bead.is_epic()
                {
                    found.insert(child.clone());
                }
            }
        }
        found.into_iter().collect()
    }

    /// The id of the next context, after the position of the event that opens it.
    pub(crate) fn next_context_id(&self) -> ContextId {
        let text = format!("ctx-{}", base36(self.seq().next().0, 1));
        ContextId::parse(&text).expect("base 36 follows the grammar")
    }
}
