//! Staging and launching convoys. Both plan from the live graph; errors make nothing, warnings want `--force`, and
//! everything is validated before anything changes.

use std::collections::BTreeSet;

use super::Asker;
use super::bounds::check_title;
use crate::command::{Answer, Command, SlingRequest, SlingResult};
use crate::convoy::{CONVOY_PREFIX, Convoy, ConvoyEvent, Staged};
use crate::readiness::list;
use crate::refusal::Refusal;
use crate::stage::{Finding, StageInput, StagePlan};
use crate::state::State;
use crate::tx::Tx;
use crate::{BeadId, ConvoyId, RigName};

/// What was named to be staged or launched.
enum Named {
    Convoy(ConvoyId),
    Epic(BeadId),
    Tasks(Vec<BeadId>),
}

/// A plan that may go, and the convoy it is for.
struct Prepared {
    convoy: Convoy,
    plan: StagePlan,
    /// The convoy was staged before.
    known: bool,
}

impl Tx<'_> {
    pub(super) fn convoy_stage(
        &mut self,
        asker: &Asker<'_>,
        targets: &[String],
        title: Option<&str>,
        launch: bool,
    ) -> Result<Answer, Refusal> {
        if let Some(title) = title {
            check_title(title)?;
        }
        let named = self.state().named(targets)?;
        if let Named::Convoy(id) = &named
            && self.state().convoys[id].staged.is_none()
        {
            let status = self.state().convoys[id].status();
            return Err(Refusal::new("not-staged", format!("{id} is {status}: it cannot be staged again")));
        }
        let plan = self.state().plan_of(&named);
        if !plan.errors.is_empty() {
            let plan = Box::new(plan);
            return Ok(Answer::Staged { convoy_id: None, restaged: false, plan, launched: None });
        }
        let Prepared { convoy, plan, known } = self.prepare(named, plan, title)?;
        let launch = launch && plan.warnings.is_empty();
        if launch {
            self.state().formulas_are_fine(asker, &plan)?;
        }
        let id = convoy.id.clone();
        self.emit(ConvoyEvent::Staged { convoy: Box::new(convoy), actor: asker.actor.to_owned() });
        let launched = launch.then(|| self.let_go(asker, &id, &plan));
        if !launch {
            self.staging_can_be_undone(asker, &id, known);
        }
        Ok(Answer::Staged { convoy_id: Some(id), restaged: known, plan: Box::new(plan), launched })
    }

    pub(super) fn convoy_launch(
        &mut self,
        asker: &Asker<'_>,
        targets: &[String],
        force: bool,
    ) -> Result<Answer, Refusal> {
        let named = self.state().named(targets)?;
        if let Named::Convoy(id) = &named {
            let convoy = &self.state().convoys[id];
            if convoy.closed.is_some() {
                return Err(Refusal::new("closed", format!("{id} is closed"))
                    .hint(format!("ym convoy add {id} BEAD opens it again")));
            }
            if convoy.is_fed() {
                return Err(Refusal::new("already-launched", format!("{id} is under way already"))
                    .hint(format!("ym convoy status {id}")));
            }
        }
        let plan = self.state().plan_of(&named);
        if let Some(error) = plan.errors.first() {
            return Err(refusal_of(error, &plan.errors).hint("ym convoy stage shows the whole plan"));
        }
        let Prepared { convoy, plan, known } = self.prepare(named, plan, None)?;
        if let Some(warning) = plan.warnings.first().filter(|_| !force) {
            let refusal = refusal_of(warning, &plan.warnings);
            return Err(refusal.hint("look into it with ym convoy stage, or launch with --force"));
        }
        self.state().formulas_are_fine(asker, &plan)?;
        let id = convoy.id.clone();
        if !known {
            self.emit(ConvoyEvent::Staged { convoy: Box::new(convoy), actor: asker.actor.to_owned() });
        }
        let wave1 = self.let_go(asker, &id, &plan);
        Ok(Answer::Launched { convoy_id: id, wave1 })
    }

    /// A convoy that was staged can be put away; one that was only planned anew cannot be planned as before.
    fn staging_can_be_undone(&mut self, asker: &Asker<'_>, id: &ConvoyId, known: bool) {
        let did = format!("convoy stage {id}");
        if known {
            let why = "it was staged before, and was only planned afresh".to_owned();
            return self.cannot_be_undone(asker, did, why);
        }
        self.can_be_undone(asker, did, vec![Command::ConvoyUnstage { id: id.to_string() }]);
    }

    /// Opens a convoy as planned, and puts its first wave on the schedule.
    fn let_go(&mut self, asker: &Asker<'_>, id: &ConvoyId, plan: &StagePlan) -> Vec<SlingResult> {
        let (tracked, waves) = (self.state().tracked_by(id, plan), wave_sizes(plan));
        let expected_end = self.state().expected_at_launch(id, &tracked, self.now());
        let actor = asker.actor.to_owned();
        self.emit(ConvoyEvent::Launched { id: id.clone(), tracked, waves, expected_end, actor });
        let why = format!(
            "its beads are on the schedule; ym convoy close {id} --force ends the convoy, ym scheduler clear empties the schedule"
        );
        self.cannot_be_undone(asker, format!("convoy launch {id}"), why);
        let first = plan.waves.first().map(Vec::as_slice).unwrap_or_default();
        first.iter().map(|bead| self.feed_one(bead, Some(id), asker.actor)).collect()
    }

    /// The convoy a plan is for: the one named, the one staged convoy that has some of these beads, or a new one.
    fn prepare(&self, named: Named, plan: StagePlan, title: Option<&str>) -> Result<Prepared, Refusal> {
        let state = self.state();
        if plan.waves.is_empty() && plan.gated.is_empty() {
            let message = "there is no open work in it: only tasks, bugs, features and chores are run";
            return Err(Refusal::new("nothing-to-do", message));
        }
        let old = match &named {
            Named::Convoy(id) => Some(id.clone()),
            Named::Epic(_) | Named::Tasks(_) => state.overlapping(plan.tracked())?,
        };
        let made_up = match &named {
            Named::Convoy(_) => None,
            Named::Epic(epic) => Some(format!("Convoy: {}", state.title_of(epic))),
            Named::Tasks(_) => {
                let rigs: BTreeSet<&RigName> =
                    plan.tracked().filter_map(|id| state.rig_of(id)).map(|rig| &rig.name).collect();
                Some(format!("Staged: {} beads across {} rigs", plan.tracked().count(), rigs.len()))
            }
        };
        let staged = Some(if plan.warnings.is_empty() { Staged::Ready } else { Staged::Warnings });
        let known = old.is_some();
        let before = old.and_then(|id| state.convoys.get(&id).cloned());
        let convoy = before.unwrap_or_else(|| {
            let title = made_up.unwrap_or_default().chars().take(200).collect();
            Convoy::new(state.new_convoy_id(), title, Vec::new(), self.now())
        });
        let title = title.map_or(convoy.title.clone(), str::to_owned);
        let (tracked, waves) = (state.tracked_by(&convoy.id, &plan), wave_sizes(&plan));
        Ok(Prepared { convoy: Convoy { title, tracked, waves, staged, ..convoy }, plan, known })
    }
}

impl State {
    /// What the ids stand for: one convoy, one epic, or tasks; never a mixture.
    fn named(&self, targets: &[String]) -> Result<Named, Refusal> {
        if targets.is_empty() {
            return Err(Refusal::new("no-bead", "name an epic, tasks, or a convoy"));
        }
        if let [only] = targets
            && only.starts_with(CONVOY_PREFIX)
        {
            return Ok(Named::Convoy(self.find_convoy(only)?));
        }
        let mut ids = Vec::with_capacity(targets.len());
        let mut seen = BTreeSet::new();
        for text in targets {
            if text.starts_with(CONVOY_PREFIX) {
                return Err(mixed("a convoy"));
            }
            let id = BeadId::parse(text)?;
            let bead = self.beads.get(&id).map(|entry| &*entry.bead);
            if let Some(epic) = bead.filter(|bead| bead.is_epic()) {
                if targets.len() > 1 {
                    return Err(mixed("an epic"));
                }
                return Ok(Named::Epic(epic.id.clone()));
            }
            if let Some(why) = bead.and_then(crate::bead::Bead::not_work_because) {
                return Err(Refusal::new("not-dispatchable", format!("{id}: {why}")));
            }
            if seen.insert(id.clone()) {
                ids.push(id);
            }
        }
        Ok(Named::Tasks(ids))
    }

    fn plan_of(&self, named: &Named) -> StagePlan {
        self.stage_plan(&match named {
            Named::Convoy(id) => StageInput::Beads(self.convoys[id].tracked.clone()),
            Named::Epic(id) => StageInput::Epic(id.clone()),
            Named::Tasks(ids) => StageInput::Tasks(ids.clone()),
        })
    }

    /// The one staged convoy that tracks some of these beads; open ones, and several, are refused.
    fn overlapping<'a>(&self, beads: impl Iterator<Item = &'a BeadId>) -> Result<Option<ConvoyId>, Refusal> {
        let mut staged = BTreeSet::new();
        if self.convoy_open_beads.is_empty() {
            return Ok(None);
        }
        for bead in beads {
            for convoy in self.all_convoys_tracking(bead) {
                if convoy.is_open() {
                    let message = format!("{bead} is tracked by {}, which is open", convoy.id);
                    return Err(Refusal::new("tracked-elsewhere", message)
                        .hint(format!("ym convoy add {} adds to it, ym convoy close ends it", convoy.id)));
                }
                staged.insert(convoy.id.clone());
            }
        }
        if staged.len() > 1 {
            let ids: Vec<&str> = staged.iter().map(ConvoyId::as_str).collect();
            let message = format!("several staged convoys track these beads: {}", ids.join(", "));
            return Err(Refusal::new("ambiguous", message).hint("name one of them, or close the others"));
        }
        Ok(staged.pop_first())
    }

    /// What a convoy tracks after a plan: the planned work, and whatever else it was given by hand.
    fn tracked_by(&self, id: &ConvoyId, plan: &StagePlan) -> Vec<BeadId> {
        let mut tracked: Vec<BeadId> = plan.tracked().cloned().collect();
        let old = self.convoys.get(id).map(|convoy| convoy.tracked.as_slice()).unwrap_or_default();
        // Containers that somebody added are no work, hence not planned, but the convoy is not complete without them.
        let is_container = |id: &&BeadId| self.beads.get(id).is_some_and(|entry| !entry.bead.is_slingable());
        tracked.extend(old.iter().filter(is_container).cloned());
        tracked
    }

    /// Whether every formula that the plan's beads would use can be cooked.
    fn formulas_are_fine(&self, asker: &Asker<'_>, plan: &StagePlan) -> Result<(), Refusal> {
        let kitchen = asker.kitchen;
        if kitchen.spoiled.is_empty() && kitchen.spoiled_beads.is_empty() {
            return Ok(());
        }
        for id in plan.tracked() {
            let (Some(entry), Some(rig)) = (self.beads.get(id), self.rig_of(id)) else { continue };
            let formula = self.formula_for(&entry.bead, &rig.name, &SlingRequest::default());
            let spoiled = formula.and_then(|formula| {
                kitchen.spoiled.get(&(rig.name.clone(), formula)).or_else(|| kitchen.spoiled_beads.get(id))
            });
            if let Some(error) = spoiled.filter(|_| !entry.bead.is_closed()) {
                return Err(Refusal::new("formula", format!("{id}: {error}")));
            }
        }
        Ok(())
    }
}

fn wave_sizes(plan: &StagePlan) -> Vec<u32> {
    plan.wave_sizes().map(|size| u32::try_from(size).unwrap_or(u32::MAX)).collect()
}

fn mixed(what: &str) -> Refusal {
    Refusal::new("mixed-targets", format!("{what} stands by itself: name one epic, one convoy, or tasks"))
}

/// A refusal in the words of the first finding, naming how many more there are.
fn refusal_of(first: &Finding, all: &[Finding]) -> Refusal {
    let more = all.len() - 1;
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    let beads =
        if first.bead_ids.is_empty() { String::new() } else { format!(" [{}]", list(&first.bead_ids)) };
    Refusal::new(first.category.as_str(), format!("{}{beads}{more}", first.message))
}
