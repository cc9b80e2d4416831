//! Findings: what somebody should know before a convoy starts. Each says in words what is the matter, and names a
//! command that mends it.

use std::collections::BTreeMap;

use super::cycles::{Cycles, Knot};
use super::graph::Graph;
use super::reach::{Reach, Role};
use super::{Category, Finding, StageInput, StagePlan};
use crate::bead::Bead;
use crate::readiness::{arrows, list};
use crate::rig::Rig;
use crate::state::State;
use crate::{BeadId, RigName};

/// Everything a finding may be about.
pub(super) struct Findings<'a> {
    pub(super) state: &'a State,
    pub(super) input: &'a StageInput,
    pub(super) reach: &'a Reach<'a>,
    pub(super) graph: &'a Graph,
    pub(super) cycles: &'a Cycles,
}

impl Findings<'_> {
    /// Adds all findings to the plan, by category and then by the first bead concerned.
    pub(super) fn add_to(&self, plan: &mut StagePlan) {
        let mut all = Vec::new();
        self.knots(&mut all);
        self.rigs(&mut all);
        self.unknown(&mut all);
        self.blockers(&mut all);
        if let StageInput::Epic(root) = self.input {
            self.orphans(&mut all);
            self.branches(root, &mut all);
        }
        self.crowded_waves(plan, &mut all);
        all.sort_by(|a, b| (a.category, a.bead_ids.first()).cmp(&(b.category, b.bead_ids.first())));
        (plan.errors, plan.warnings) = all.into_iter().partition(|finding| finding.category.is_error());
    }

    fn knots(&self, all: &mut Vec<Finding>) {
        for Knot { paths, others } in &self.cycles.knots {
            for path in paths {
                let mut bead_ids = self.ids(path);
                bead_ids.extend(bead_ids.first().cloned());
                let message = format!("waits for itself: {}", shortened(&bead_ids));
                all.push(finding(Category::Cycle, bead_ids, message, self.fix_of_cycle(path)));
            }
            if !others.is_empty() {
                let mut bead_ids = self.ids(others);
                bead_ids.sort_unstable();
                let message = format!("on further cycles with the beads of the others: {}", list(&bead_ids));
                all.push(finding(Category::Cycle, bead_ids, message, None));
            }
        }
    }

    /// Removing one blocking edge opens the circle; one we may change is preferred.
    fn fix_of_cycle(&self, path: &[u32]) -> Option<String> {
        let mut elsewhere = None;
        for (holder, on) in path.iter().zip(path.iter().skip(1).chain(path.first())) {
            let (Some(holder), on) = (self.reach.bead(*holder), self.reach.id(*on)) else { continue };
            if !holder.dependencies.iter().any(|d| d.on == *on && d.kind.blocks()) {
                continue;
            }
            if holder.source.is_none() {
                return Some(drop_edge(holder, on));
            }
            elsewhere.get_or_insert_with(|| drop_edge(holder, on));
        }
        elsewhere
    }

    /// Rigs that are missing, stopped, or not the one of most.
    fn rigs(&self, all: &mut Vec<Finding>) {
        let mut of_rig: BTreeMap<&RigName, (&Rig, Vec<u32>)> = BTreeMap::new();
        let mut homeless: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        let mut rigs = self.state.rigs_of_beads();
        for member in self.reach.open_members() {
            let id = self.reach.id(member);
            match rigs.of(id) {
                Some(rig) => of_rig.entry(&rig.name).or_insert_with(|| (rig, Vec::new())).1.push(member),
                None => homeless.entry(prefix_of(id)).or_default().push(member),
            }
        }
        for (prefix, members) in homeless {
            all.push(self.homeless(prefix, self.ids(&members)));
        }
        let most = of_rig.values().map(|(_, members)| members.len()).max();
        let home = of_rig.iter().find(|(_, (_, members))| Some(members.len()) == most).map(|(name, _)| *name);
        for (name, (rig, members)) in &of_rig {
            if rig.parked || rig.docked {
                all.push(stopped(rig, self.ids(members)));
            }
            if let Some(home) = home.filter(|home| home != name) {
                let bead_ids = self.ids(members);
                let message = format!("on rig {name}, while most are on {home}: {}", list(&bead_ids));
                let fix = format!("if they are work of its own: ym convoy stage {}", words(&bead_ids));
                all.push(finding(Category::CrossRig, bead_ids, message, Some(fix)));
            }
        }
    }

    fn homeless(&self, prefix: &str, bead_ids: Vec<BeadId>) -> Finding {
        let elsewhere = "ym bead add TITLE --rig NAME makes one that a rig can run".to_owned();
        let (message, fix) = if self.state.is_town_level(&bead_ids[0]) {
            (format!("town-level beads are never dispatched: {}", list(&bead_ids)), elsewhere)
        } else if prefix.is_empty() {
            (format!("an id without a prefix belongs to no rig: {}", list(&bead_ids)), elsewhere)
        } else {
            let fix = format!("ym rig add NAME --prefix {prefix}");
            (format!("no rig owns the prefix {prefix}: {}", list(&bead_ids)), fix)
        };
        finding(Category::NoRig, bead_ids, message, Some(fix))
    }

    fn unknown(&self, all: &mut Vec<Finding>) {
        for id in &self.reach.unknown {
            let (message, fix) = (format!("there is no bead {id}"), "ym bead list shows what there is");
            all.push(finding(Category::MissingBead, vec![(*id).clone()], message, Some(fix.to_owned())));
        }
    }

    /// What the members wait for outside the convoy: one finding for each such bead, about those that name it.
    fn blockers(&self, all: &mut Vec<Finding>) {
        let mut waits: Vec<(u32, u32)> = Vec::new();
        for holder in self.holders() {
            let outside = |on: &u32| matches!(self.reach.role(*on), Role::Outside | Role::Missing);
            let own = self.reach.waits(holder).iter().filter(|w| !w.is_inherited()).map(|w| w.slot());
            waits.extend(own.filter(outside).map(|on| (on, holder)));
        }
        waits.sort_unstable();
        for same in waits.chunk_by(|a, b| a.0 == b.0) {
            let mut holders: Vec<u32> = same.iter().map(|(_, holder)| *holder).collect();
            holders.sort_unstable_by_key(|holder| self.reach.id(*holder));
            all.extend(self.blocker(same[0].0, &holders));
        }
    }

    fn blocker(&self, on: u32, holders: &[u32]) -> Option<Finding> {
        let (id, bead_ids) = (self.reach.id(on), self.ids(holders));
        let first = self.reach.bead(holders[0])?;
        let Some(bead) = self.reach.bead(on) else {
            let edge = first.dependencies.iter().find(|d| d.on == *id);
            let target = edge.map_or(id.as_str(), |edge| edge.target());
            let message = format!("{target}, which nobody has, is needed by {}", list(&bead_ids));
            return Some(finding(Category::MissingBead, bead_ids, message, Some(drop_edge(first, id))));
        };
        // A cycle through it says more.
        if self.cycles.has(on) {
            return None;
        }
        let waiting = list(&bead_ids);
        if bead.is_slingable() {
            let message = format!("{id}, which is not in the convoy, must close before {waiting}");
            let fix = format!("ym convoy add CONVOY {id}, or let it run by itself: ym sling {id}");
            return Some(finding(Category::OutsideBlocker, bead_ids, message, Some(fix)));
        }
        let kind = if bead.kind.is_empty() { "bead" } else { &bead.kind };
        let message = format!("{kind} {id} is open, no worker will close it, and {waiting} must wait for it");
        let fix = match &bead.source {
            Some(rig) => format!("close {id} in the tracker of rig {rig} when it is settled"),
            None => format!("when it is settled: ym bead close {id}"),
        };
        Some(finding(Category::Gated, bead_ids, message, Some(fix)))
    }

    /// Open members, and the parents whose blockers they inherit.
    fn holders(&self) -> Vec<u32> {
        let mut holders: Vec<u32> = self.reach.open_members().collect();
        let mut seen = vec![false; self.graph.doors().len()];
        let mut at = 0;
        while let Some(holder) = holders.get(at) {
            for wait in self.reach.waits(*holder).iter().filter(|w| w.is_inherited()) {
                let Some(door) = self.graph.door_of(wait.slot()) else { continue };
                let seen = &mut seen[(door - self.graph.doors().start) as usize];
                if !*seen {
                    *seen = true;
                    let parents = self.graph.behind(door).iter();
                    holders.extend(parents.filter(|slot| self.reach.role(**slot) != Role::Member));
                }
            }
            at += 1;
        }
        holders
    }

    /// Members that nothing joins to the rest of the epic: perhaps somebody forgot a dependency.
    fn orphans(&self, all: &mut Vec<Finding>) {
        if self.reach.open_members().len() < 2 {
            return;
        }
        let first_door = self.graph.doors().start;
        let mut joined = vec![false; self.graph.doors().len()];
        for door in self.graph.doors() {
            let mut any = self.graph.behind(door).iter().any(|slot| self.reach.is_joined(*slot));
            self.graph.each_wait(self.reach, door, |on| {
                any |= self.graph.is_door(on) && joined[(on - first_door) as usize];
            });
            joined[(door - first_door) as usize] = any;
        }
        let inherits = |member: u32| {
            let parents = self.reach.waits(member).iter().filter(|w| w.is_inherited());
            let mut doors = parents.filter_map(|w| self.graph.door_of(w.slot()));
            doors.any(|door| joined[(door - first_door) as usize])
        };
        let alone = |member: &u32| !self.reach.is_joined(*member) && !inherits(*member);
        let bead_ids: Vec<BeadId> =
            self.reach.open_members().filter(alone).map(|member| self.reach.id(member).clone()).collect();
        if let [first, ..] = bead_ids.as_slice() {
            let message = format!("joined to nothing else of the epic: {}", list(&bead_ids));
            let fix = format!("if something must come first: ym bead dep add {first} OTHER");
            all.push(finding(Category::Orphan, bead_ids, message, Some(fix)));
        }
    }

    fn branches(&self, root: &BeadId, all: &mut Vec<Finding>) {
        let within = |bead: &&Bead| bead.id != *root && bead.is_epic() && !bead.is_closed();
        for epic in self.reach.asked().filter(within) {
            let id = &epic.id;
            if self.state.children_of(id).next().is_some() {
                let message = format!("epic {id} has no branch of its own to gather its children's work");
                let fix = format!("ym convoy create {id} --from-epic {id} --base-branch {id}");
                all.push(finding(Category::MissingBranch, vec![id.clone()], message, Some(fix)));
            }
        }
    }

    fn crowded_waves(&self, plan: &StagePlan, all: &mut Vec<Finding>) {
        let Some(cap) = self.state.settings().town_cap() else { return };
        for (wave, number) in plan.waves.iter().zip(1..) {
            let beads = wave.len();
            if beads as u64 > cap {
                let message =
                    format!("wave {number} has {beads} beads, and at most {cap} workers run at once");
                let fix = format!("ym config set scheduler.max_polecats {beads}");
                all.push(finding(Category::Capacity, wave.clone(), message, Some(fix)));
            }
        }
    }

    fn ids(&self, slots: &[u32]) -> Vec<BeadId> {
        slots.iter().map(|slot| self.reach.id(*slot).clone()).collect()
    }
}

fn finding(category: Category, bead_ids: Vec<BeadId>, message: String, fix: Option<String>) -> Finding {
    Finding { category, bead_ids, message, suggested_fix: fix }
}

fn stopped(rig: &Rig, bead_ids: Vec<BeadId>) -> Finding {
    let name = &rig.name;
    let (word, fix) = match (rig.parked, rig.docked) {
        (true, true) => ("parked and docked", format!("ym rig unpark {name}; ym rig undock {name}")),
        (true, false) => ("parked", format!("ym rig unpark {name}")),
        (false, _) => ("docked", format!("ym rig undock {name}")),
    };
    let message = format!("rig {name} is {word}, so these do not start: {}", list(&bead_ids));
    finding(Category::BlockedRig, bead_ids, message, Some(fix))
}

/// How to drop a dependency where that may be done.
fn drop_edge(holder: &Bead, on: &BeadId) -> String {
    match &holder.source {
        Some(rig) => format!("drop the dependency of {} on {on} in the tracker of rig {rig}", holder.id),
        None => format!("ym bead dep remove {} {on}", holder.id),
    }
}

/// What a rig's prefix would be; empty if the id has none.
fn prefix_of(id: &BeadId) -> &str {
    id.as_str().split_once('-').map_or("", |(prefix, _)| prefix)
}

/// A path in a sentence; of a long one the beginning and the end.
fn shortened(path: &[BeadId]) -> String {
    let (Some(last), true) = (path.last(), path.len() > 11) else { return arrows(path) };
    format!("{} -> {} more -> {last}", arrows(&path[..9]), path.len() - 10)
}

/// Ids as arguments of a command.
fn words(ids: &[BeadId]) -> String {
    let shown: Vec<&str> = ids.iter().take(10).map(BeadId::as_str).collect();
    let more = if ids.len() > 10 { " …" } else { "" };
    format!("{}{more}", shown.join(" "))
}
