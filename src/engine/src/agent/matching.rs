//! Which bead goes to which agent. The bead that is first in the queue goes first, to the agent that knows most about it, or
//! to the one with the fewest orders. Among beads of one priority a free agent may be given one it knows about although
//! another has waited longer; but nothing ever goes ahead of an urgent bead, nor of one that has waited for long.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::bead::{BeadEntry, DepKind};
use crate::context::Context;
use crate::queue::OrderKey;
use crate::state::State;
use crate::{AgentName, BeadId, ContextId, Millis, Timestamp};

/// Beads of one priority that are compared before one is given to an agent that knows about it.
const COMPARED: usize = 32;
/// Beads nobody free may take that are passed over before the search ends.
const PASSED_OVER: usize = 1000;
/// P0 as a priority of requests: nobody's knowledge goes before it.
const URGENT: u8 = 90;
/// Who has waited so long is not passed over any more.
const PATIENCE: Millis = Millis::minutes(5);
/// Words of skills that say nothing.
const EMPTY_WORDS: [&str; 14] = [
    "the", "and", "for", "with", "from", "that", "this", "into", "work", "working", "task", "fix", "add",
    "am",
];

/// A bead, an agent, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) context: ContextId,
    pub(crate) agent: AgentName,
    pub(crate) reason: String,
}

/// What speaks for giving a bead to an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Affinity {
    score: u32,
    /// In words, the weightiest last.
    why: Vec<String>,
}

impl Affinity {
    fn add(&mut self, score: u32, why: String) {
        self.score += score;
        if !self.why.contains(&why) {
            self.why.push(why);
        }
    }
}

/// What free agents know, by what a bead may be recognised by.
#[derive(Debug, Default)]
pub(crate) struct Matcher {
    words: BTreeMap<String, Vec<AgentName>>,
    beads: BTreeMap<BeadId, Vec<AgentName>>,
    parents: BTreeMap<BeadId, Vec<AgentName>>,
}

/// The words of a text by which a bead may be recognised.
fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 1);
    let lower = parts.map(str::to_lowercase);
    lower.filter(|word| !EMPTY_WORDS.contains(&word.as_str())).map(|word| match word.strip_suffix('s') {
        Some(one) if one.len() > 3 => one.to_owned(),
        Some(_) | None => word,
    })
}

fn parents(entry: &BeadEntry) -> impl Iterator<Item = &BeadId> {
    entry.bead.dependencies.iter().filter(|edge| edge.kind == DepKind::ParentChild).map(|edge| &edge.on)
}

impl Matcher {
    /// What the free agents know.
    pub(crate) fn of(state: &State) -> Self {
        let mut matcher = Self::default();
        for (.., name) in &state.roster.free {
            let Some(agent) = state.agents.get(name) else { continue };
            for word in agent.registration.skills.iter().flat_map(|skills| words(skills)) {
                add(&mut matcher.words, word, name);
            }
            for bead in &agent.worked {
                add(&mut matcher.beads, bead.clone(), name);
                let entry = state.beads.get(bead);
                for parent in entry.into_iter().flat_map(parents) {
                    add(&mut matcher.parents, parent.clone(), name);
                }
            }
        }
        matcher
    }

    fn knows_nothing(&self) -> bool {
        self.words.is_empty() && self.beads.is_empty()
    }

    /// What each free agent that knows something about a bead knows about it.
    fn affinities<'a>(&'a self, state: &State, entry: &BeadEntry) -> BTreeMap<&'a AgentName, Affinity> {
        let bead = &entry.bead;
        let mut known: BTreeMap<&'a AgentName, Affinity> = BTreeMap::new();
        let mut note = |names: Option<&'a Vec<AgentName>>, score: u32, why: &dyn Fn() -> String| {
            for name in names.into_iter().flatten() {
                known.entry(name).or_default().add(score, why());
            }
        };
        let of_labels = bead.labels.iter().flat_map(|label| words(label));
        let mut seen: Vec<String> = words(&bead.title).chain(of_labels).chain(words(&bead.kind)).collect();
        seen.sort_unstable();
        seen.dedup();
        for word in seen {
            note(self.words.get(&word), 2, &|| format!("knows {word}"));
        }
        note(self.beads.get(&bead.id), 6, &|| "has worked on it before".to_owned());
        for edge in bead.dependencies.iter().filter(|edge| edge.kind.blocks()) {
            note(self.beads.get(&edge.on), 3, &|| format!("did {}, which it builds on", edge.on));
        }
        for dependent in state.dependents_of(&bead.id) {
            note(self.beads.get(dependent), 1, &|| format!("worked on {dependent}, which needs it"));
        }
        for parent in parents(entry) {
            note(self.parents.get(parent), 1, &|| format!("worked below {parent}"));
        }
        known
    }

    /// The free agent that a bead should go to.
    fn best_for(&self, state: &State, entry: &BeadEntry, context: &Context) -> Option<(AgentName, Affinity)> {
        let willing = |name: &AgentName| context.passed_until(name).is_none();
        let known = self.affinities(state, entry).into_iter();
        let able = known.filter_map(|(name, affinity)| {
            let place = state.roster.place(name).filter(|_| willing(name))?;
            Some((name, affinity, place))
        });
        // The fewest orders come first among equals.
        let best = able.min_by_key(|(_, affinity, place)| (Reverse(affinity.score), *place));
        if let Some((name, affinity, _)) = best {
            return Some((name.clone(), affinity));
        }
        let free = || state.roster.free.iter().map(|(.., name)| name);
        // Whoever let it go before comes last, whatever he knows.
        let name = free().find(|name| willing(name));
        let name = name.or_else(|| free().find(|name| context.may_be_offered(name, state.clock)))?;
        Some((name.clone(), Affinity::default()))
    }
}

fn add<K: Ord>(index: &mut BTreeMap<K, Vec<AgentName>>, key: K, name: &AgentName) {
    let names = index.entry(key).or_default();
    if names.last() != Some(name) {
        names.push(name.clone());
    }
}

impl State {
    /// The bead that is to be given to an agent next, and to whom.
    pub(crate) fn next_match(&self, matcher: &Matcher) -> Option<Match> {
        if self.roster.free.is_empty() {
            return None;
        }
        let named = self.first_by_name();
        let general = self.best_for_anyone(matcher);
        match (named, general) {
            (Some((key, found)), Some((other, better))) => Some(if key < other { found } else { better }),
            (named, general) => named.or(general).map(|(_, found)| found),
        }
    }

    /// The first bead that waits for one agent by name who is free.
    fn first_by_name(&self) -> Option<(OrderKey, Match)> {
        let free = self.roster.offers.names().filter(|name| self.roster.is_free(name));
        let firsts = free.filter_map(|name| {
            let line = self.roster.offers.for_one(name);
            let mut fits = line.filter(|(_, id)| self.contexts[*id].may_be_offered(name, self.clock));
            fits.next().map(|(key, id)| (*key, id, name))
        });
        let (key, id, name) = firsts.min_by_key(|(key, ..)| *key)?;
        let asked = self.contexts[id].assign.as_ref().is_some_and(|assign| assign.to.is_some());
        let why = if asked { "asked for by name" } else { "its track is this agent's" };
        let reason = format!("{}; {why}", self.standing_in_line(&self.contexts[id]));
        Some((key, Match { context: id.clone(), agent: name.clone(), reason }))
    }

    /// The best pair among what anybody may take.
    fn best_for_anyone(&self, matcher: &Matcher) -> Option<(OrderKey, Match)> {
        let mut best: Option<(OrderKey, &Context, AgentName, Affinity)> = None;
        let mut priority = None;
        let mut compared = 0;
        for (key, id) in self.roster.offers.for_anyone().take(PASSED_OVER) {
            let context = &self.contexts[id];
            if priority.is_some_and(|priority| priority != context.priority) {
                break;
            }
            let Some(entry) = self.beads.get(context.bead()) else { continue };
            let Some((agent, affinity)) = matcher.best_for(self, entry, context) else { continue };
            let first = best.is_none();
            priority = Some(context.priority);
            if best.as_ref().is_none_or(|(.., known)| affinity.score > known.score) {
                best = Some((*key, context, agent, affinity));
            }
            compared += 1;
            let waits_for_nobody = first && (matcher.knows_nothing() || cannot_wait(context, self.clock));
            if waits_for_nobody || compared == COMPARED {
                break;
            }
        }
        let (key, context, agent, affinity) = best?;
        let mut why = vec![self.standing_in_line(context)];
        why.extend(affinity.why.into_iter().map(|known| format!("{agent} {known}")));
        if why.len() == 1 {
            why.push(format!("{agent} is free"));
        }
        Some((key, Match { context: context.id.clone(), agent, reason: why.join("; ") }))
    }

    /// Where a bead stood when it was given away.
    fn standing_in_line(&self, context: &Context) -> String {
        let priority = self.beads.get(context.bead()).map_or(2, |entry| entry.bead.priority);
        let waited = self.clock.since(context.fields.enqueued_at);
        format!("P{priority}, waited {}s", waited.as_secs())
    }
}

/// Whether nothing may go ahead of a request.
fn cannot_wait(context: &Context, now: Timestamp) -> bool {
    context.priority >= URGENT || now.since(context.fields.enqueued_at) >= PATIENCE.duration()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_a_text_is_about() {
        let found: Vec<String> = words("Fix the SQL-queries of users, again (C++)").collect();
        assert_eq!(found, ["sql", "querie", "of", "user", "again"]);
        assert_eq!(words("queries").collect::<Vec<_>>(), ["querie"]);
        assert_eq!(words("bus css").collect::<Vec<_>>(), ["bus", "css"]);
    }
}
