//! Beads at rest: closed, with nothing going on about them. A town keeps many of these and looks at few, so each is
//! packed into few bytes, together with its requests and attempts. Whoever looks finds it as it was; whoever changes it
//! has it awake again.
//!
//! Being at rest is no part of what is known about a bead: two states are the same whichever of their beads rest.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use hashbrown::HashTable;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::shelf::Place;
use super::{Bead, BeadEntry, Beads};
use crate::checkpoint::CheckpointRow;
use crate::context::Context;
use crate::dispatch::Dispatch;
use crate::lookup::hash_of;
use crate::packed::{Packer, Shapes, Unpacker};
use crate::queue::Lane;
use crate::state::State;
use crate::{BeadId, ContextId, DispatchId, Timestamp};

/// So many beads that were looked at stay unpacked until the next decision is over.
const LOOKED_AT: usize = 1000;

/// What all beads at rest share.
#[derive(Debug, Clone, Default)]
pub(super) struct Rest {
    shapes: Shapes,
    /// Requests of beads at rest: a hash of the id, and the bead's number.
    contexts: HashTable<(u32, u32)>,
    /// The requests and attempts of beads that were woken only to be counted anew.
    pasts: BTreeMap<u32, Box<Past>>,
    /// When lanes were last served by attempts that are at rest.
    served: BTreeMap<Lane, u64>,
    /// Beads that have been woken since the last checkpoint.
    woken: Vec<u32>,
    /// Beads that were put to rest since.
    unsaved: Vec<u32>,
    looked_at: Count,
}

#[derive(Debug, Default)]
struct Count(AtomicUsize);

impl Clone for Count {
    fn clone(&self) -> Self {
        Self(AtomicUsize::new(self.0.load(Relaxed)))
    }
}

/// The requests and attempts of one bead.
#[derive(Debug, Clone, Default)]
struct Past {
    contexts: Vec<Context>,
    /// First attempt first.
    dispatches: Vec<Dispatch>,
}

/// A bead at rest.
#[derive(Debug, Clone)]
pub(super) struct Packed {
    bytes: Box<[u8]>,
    counts: Counts,
    /// When it was closed, if it is to be forgotten in time.
    closed: Option<Timestamp>,
    /// As it was, while somebody has looked at it lately.
    unpacked: OnceLock<Box<Unpacked>>,
}

#[derive(Debug, Clone)]
struct Unpacked {
    entry: BeadEntry,
    past: Past,
}

/// What is derived of a bead from others, which may change while it rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// As in [`BeadEntry`].
    pub(crate) open_blockers: u32,
    /// As in [`BeadEntry`].
    pub(crate) blocked: bool,
}

/// A bead at rest as it is stored: the records, each as it would be stored by itself.
#[derive(Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    entry: &'a RawValue,
    #[serde(borrow)]
    contexts: Vec<&'a RawValue>,
    #[serde(borrow)]
    dispatches: Vec<&'a RawValue>,
}

/// What a record is known by.
#[derive(Deserialize)]
struct Head {
    id: String,
}

/// A bead at rest as it was read from a checkpoint, not yet in its place.
pub(crate) struct Sleeper<'a> {
    unpacked: Unpacked,
    stored: Stored<'a>,
}

impl<'a> Sleeper<'a> {
    /// Reads one. Everything is looked at, so that nothing can be found unreadable later.
    pub(crate) fn read(body: &'a str) -> Result<Self, String> {
        fn read<T: serde::de::DeserializeOwned>(record: &RawValue) -> Result<T, String> {
            serde_json::from_str(record.get()).map_err(|error| error.to_string())
        }
        let stored: Stored<'a> = serde_json::from_str(body).map_err(|error| error.to_string())?;
        let entry: BeadEntry = read(stored.entry)?;
        if !entry.may_rest() {
            return Err("something still goes on about it".to_owned());
        }
        let contexts = stored.contexts.iter().map(|context| read(context)).collect::<Result<_, _>>()?;
        let dispatches = stored.dispatches.iter().map(|dispatch| read(dispatch)).collect::<Result<_, _>>()?;
        Ok(Self { unpacked: Unpacked { entry, past: Past { contexts, dispatches } }, stored })
    }
}

/// From when the time counts after which a closed bead is forgotten; none if it never is.
fn forgotten_from(bead: &Bead) -> Option<Timestamp> {
    bead.closed_at.filter(|_| bead.source.is_none() && !bead.pinned)
}

fn json<T: Serialize>(record: &T) -> String {
    serde_json::to_string(record).expect("records hold only strings, numbers and lists")
}

fn read<T: serde::de::DeserializeOwned>(json: &str) -> T {
    serde_json::from_str(json).expect("it was packed from such a record")
}

/// Packs a bead's record, its requests and its attempts, each as it is stored.
fn pack<'a>(
    shapes: &mut Shapes,
    id: &BeadId,
    entry: &str,
    contexts: impl ExactSizeIterator<Item = Cow<'a, str>>,
    dispatches: impl ExactSizeIterator<Item = Cow<'a, str>>,
) -> Box<[u8]> {
    let mut packer = Packer::new(shapes, id.as_str());
    packer.number(contexts.len() as u64);
    packer.number(dispatches.len() as u64);
    packer.json(entry);
    contexts.chain(dispatches).for_each(|record| packer.json(&record));
    packer.finish()
}

impl Packed {
    /// The bead as it was.
    pub(super) fn entry(&self, id: &BeadId, rest: &Rest) -> &BeadEntry {
        &self.unpacked(id, rest).entry
    }

    fn unpacked(&self, id: &BeadId, rest: &Rest) -> &Unpacked {
        self.unpacked.get_or_init(|| {
            rest.looked_at.0.fetch_add(1, Relaxed);
            Box::new(self.unpack(id, rest))
        })
    }

    fn unpack(&self, id: &BeadId, rest: &Rest) -> Unpacked {
        let (entry, contexts, dispatches) = self.texts(id, rest);
        let mut entry: BeadEntry = read(&entry);
        (entry.open_blockers, entry.blocked) = (self.counts.open_blockers, self.counts.blocked);
        let contexts = contexts.iter().map(|text| read(text)).collect();
        let dispatches = dispatches.iter().map(|text| read(text)).collect();
        Unpacked { entry, past: Past { contexts, dispatches } }
    }

    /// The records, each as it is stored.
    fn texts(&self, id: &BeadId, rest: &Rest) -> (String, Vec<String>, Vec<String>) {
        let mut unpacker = Unpacker::new(&rest.shapes, id.as_str(), &self.bytes);
        let (contexts, dispatches) = (unpacker.number(), unpacker.number());
        let entry = unpacker.json();
        let mut several = |count| (0..count).map(|_| unpacker.json()).collect();
        (entry, several(contexts), several(dispatches))
    }
}

impl Rest {
    /// Notes whose requests these are, and which lanes the attempts came from.
    fn note(&mut self, past: &Past, number: u32) {
        for context in &past.contexts {
            let hash = hash_of_context(&context.id);
            self.contexts.insert_unique(spread(hash), (hash, number), |(hash, _)| spread(*hash));
        }
        for Dispatch { lane, order, .. } in &past.dispatches {
            if let Some(served) = self.served.get_mut(lane) {
                *served = (*order).max(*served);
            } else {
                self.served.insert(lane.clone(), *order);
            }
        }
    }
}

impl BeadEntry {
    /// Whether it is closed and by itself has nothing going on about it.
    fn may_rest(&self) -> bool {
        let work = &self.work;
        let asked_for = work.context.is_some() || work.live.is_some() || work.holder.is_some();
        let awaited = work.verdict.is_some() || work.close_by.is_some() || self.bead.defer_until.is_some();
        let claimed = self.claimed_since.is_some() || self.claimed_for.is_some();
        self.bead.is_closed() && !self.gone && !asked_for && !awaited && !claimed
    }
}

fn hash_of_context(id: &ContextId) -> u32 {
    (hash_of(id) >> 32) as u32
}

/// As a table needs it.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

impl Beads {
    /// Whether a bead is at rest.
    pub(crate) fn is_at_rest(&self, id: &BeadId) -> bool {
        self.number(id).is_some_and(|number| matches!(self.place(number), Some(Place::AtRest(_))))
    }

    fn past_of(&self, number: u32) -> Option<&Past> {
        match self.place(number)? {
            Place::AtRest(packed) => Some(&packed.unpacked(self.name(number), &self.rest).past),
            Place::Awake(_) | Place::Empty => self.rest.pasts.get(&number).map(|past| &**past),
        }
    }

    /// Has a bead awake; its requests and attempts stay where they are.
    pub(super) fn wake_at(&mut self, number: u32) {
        if !matches!(self.place(number), Some(Place::AtRest(_))) {
            return;
        }
        let Place::AtRest(mut packed) = std::mem::replace(self.place_mut(number), Place::Empty) else {
            return;
        };
        let unpacked = packed.unpacked.take().map(|unpacked| *unpacked);
        let Unpacked { entry, past } =
            unpacked.unwrap_or_else(|| packed.unpack(self.name(number), &self.rest));
        *self.place_mut(number) = Place::Awake(entry);
        self.rest.pasts.insert(number, Box::new(past));
        self.rest.woken.push(number);
    }

    fn take_past(&mut self, number: u32) -> Option<Past> {
        self.wake_at(number);
        let past = *self.rest.pasts.remove(&number)?;
        for context in &past.contexts {
            let hash = hash_of_context(&context.id);
            let is_it = |(known, home): &(u32, u32)| (*known, *home) == (hash, number);
            if let Ok(found) = self.rest.contexts.find_entry(spread(hash), is_it) {
                found.remove();
            }
        }
        Some(past)
    }

    /// The number of the bead at rest, or just woken, that has a request.
    fn home_of(&self, id: &ContextId) -> Option<u32> {
        let hash = hash_of_context(id);
        let has_it = |(known, home): &(u32, u32)| {
            *known == hash && self.past_of(*home).is_some_and(|past| past.context(id).is_some())
        };
        self.rest.contexts.find(spread(hash), has_it).map(|(_, home)| *home)
    }

    fn put_to_rest(&mut self, number: u32, past: &Past) {
        let Place::Awake(entry) = std::mem::replace(self.place_mut(number), Place::Empty) else { return };
        self.rest.note(past, number);
        let contexts = past.contexts.iter().map(|context| Cow::Owned(json(context)));
        let dispatches = past.dispatches.iter().map(|dispatch| Cow::Owned(json(dispatch)));
        let bytes = pack(&mut self.rest.shapes, &entry.bead.id, &json(&entry), contexts, dispatches);
        let counts = Counts { open_blockers: entry.open_blockers, blocked: entry.blocked };
        let closed = forgotten_from(&entry.bead);
        *self.place_mut(number) = Place::AtRest(Packed { bytes, counts, closed, unpacked: OnceLock::new() });
        self.rest.unsaved.push(number);
    }

    /// Puts a bead in its place that was at rest when a checkpoint was taken; says its number. `note_sleepers` has to
    /// follow.
    pub(crate) fn insert_sleeper(&mut self, sleeper: &Sleeper<'_>) -> u32 {
        let Unpacked { entry: BeadEntry { bead, .. }, past } = &sleeper.unpacked;
        let number = self.give_number(&bead.id);
        self.rest.note(past, number);
        let Stored { entry, contexts, dispatches } = &sleeper.stored;
        let contexts = contexts.iter().map(|context| Cow::Borrowed(context.get()));
        let dispatches = dispatches.iter().map(|dispatch| Cow::Borrowed(dispatch.get()));
        let bytes = pack(&mut self.rest.shapes, &bead.id, entry.get(), contexts, dispatches);
        let closed = forgotten_from(bead);
        let packed = Packed { bytes, counts: Counts::default(), closed, unpacked: OnceLock::new() };
        *self.place_mut(number) = Place::AtRest(packed);
        self.note_sleeper(number, &bead.dependencies);
        number
    }

    /// What is derived of a bead, if somebody has it.
    pub(crate) fn counts(&self, number: u32) -> Option<Counts> {
        match self.place(number)? {
            Place::Empty => None,
            Place::Awake(entry) => {
                Some(Counts { open_blockers: entry.open_blockers, blocked: entry.blocked })
            }
            Place::AtRest(packed) => Some(packed.counts),
        }
    }

    /// The same, to be changed; nobody is woken for that.
    pub(crate) fn set_counts(&mut self, number: u32, counts: Counts) {
        match self.place_mut(number) {
            Place::Empty => {}
            Place::Awake(entry) => {
                (entry.open_blockers, entry.blocked) = (counts.open_blockers, counts.blocked);
            }
            Place::AtRest(packed) if packed.counts == counts => {}
            Place::AtRest(packed) => {
                packed.counts = counts;
                packed.unpacked.take();
            }
        }
    }

    /// Forgets what beads at rest looked like, if many were looked at.
    pub(crate) fn look_away(&mut self) {
        if self.rest.looked_at.0.load(Relaxed) < LOOKED_AT {
            return;
        }
        for place in self.places_mut() {
            if let Place::AtRest(packed) = place {
                packed.unpacked.take();
            }
        }
        self.rest.looked_at = Count::default();
    }
}

impl Past {
    fn context(&self, id: &ContextId) -> Option<&Context> {
        self.contexts.iter().find(|context| context.id == *id)
    }
}

impl State {
    /// Puts those of these beads to rest about which nothing goes on.
    pub(crate) fn put_to_rest(&mut self, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            if self.may_rest(number) {
                let mut past = self.beads.take_past(number).unwrap_or_default();
                self.add_to_past(number, &mut past);
                self.beads.put_to_rest(number, &past);
            }
        }
        self.beads.look_away();
    }

    /// The rows of beads that were put to rest or woken since this was last asked, and of what is stored with them.
    pub(crate) fn take_rows_of_rest(&mut self) -> Vec<CheckpointRow> {
        let woken = std::mem::take(&mut self.beads.rest.woken);
        // What was only counted or looked through may rest again.
        self.put_to_rest(woken.iter().copied());
        let unsaved = std::mem::take(&mut self.beads.rest.unsaved);
        let mut numbers: Vec<u32> = woken.into_iter().chain(unsaved).collect();
        numbers.sort_unstable_by(|one, other| self.beads.name(*one).cmp(self.beads.name(*other)));
        numbers.dedup();
        numbers.into_iter().flat_map(|number| self.rows_of_rest(number)).collect()
    }

    fn rows_of_rest(&self, number: u32) -> Vec<CheckpointRow> {
        let id = self.beads.name(number);
        let row = |kind, id: &dyn ToString, body| CheckpointRow { kind, id: id.to_string(), body };
        if let Some(Place::AtRest(packed)) = self.beads.place(number) {
            let (entry, contexts, dispatches) = packed.texts(id, &self.beads.rest);
            let (all_contexts, all_dispatches) = (contexts.join(","), dispatches.join(","));
            let body =
                format!(r#"{{"entry":{entry},"contexts":[{all_contexts}],"dispatches":[{all_dispatches}]}}"#);
            let mut rows = vec![row("rest", id, Some(body)), row("bead", id, None)];
            rows.extend(contexts.iter().map(|text| row("context", &read::<Head>(text).id, None)));
            rows.extend(dispatches.iter().map(|text| row("dispatch", &read::<Head>(text).id, None)));
            return rows;
        }
        // Awake again, or gone: each record is a row of its own. Those that were brought back are marked as changed.
        let entry = self.beads.get(id).or_else(|| self.gone.get(id));
        let mut rows = vec![row("rest", id, None), row("bead", id, entry.map(json))];
        if let Some(past) = self.beads.past_of(number) {
            rows.extend(past.contexts.iter().map(|record| row("context", &record.id, Some(json(record)))));
            rows.extend(past.dispatches.iter().map(|record| row("dispatch", &record.id, Some(json(record)))));
        }
        rows
    }

    /// Whether a request is stored with a bead at rest.
    pub(crate) fn rests_with_its_bead(&self, id: &ContextId) -> bool {
        let home = self.beads.home_of(id);
        home.is_some_and(|home| matches!(self.beads.place(home), Some(Place::AtRest(_))))
    }

    /// Nobody takes checkpoints of this state.
    pub(crate) fn forget_rows_of_rest(&mut self) {
        self.beads.rest.woken.clear();
        self.beads.rest.unsaved.clear();
    }

    /// Whether a bead is closed, with nothing going on about it.
    fn may_rest(&self, number: u32) -> bool {
        let Some(Place::Awake(entry)) = self.beads.place(number) else { return false };
        let id = &entry.bead.id;
        entry.may_rest()
            && !self.tasks.contains_key(id)
            && self.merges.get(id).is_none_or(crate::merge::MergeRequest::is_merged)
    }

    /// When a bead was closed about which nothing goes on, if it is to be forgotten in time.
    pub(crate) fn forgotten_from(&self, number: u32) -> Option<Timestamp> {
        match self.beads.place(number)? {
            Place::AtRest(packed) => packed.closed,
            Place::Awake(entry) if self.may_rest(number) => forgotten_from(&entry.bead),
            Place::Empty | Place::Awake(_) => None,
        }
    }

    /// Takes a bead's requests and attempts out of the lists of those that are awake.
    fn add_to_past(&mut self, number: u32, past: &mut Past) {
        let Some(entry) = self.beads.at(number) else { return };
        let (id, mut next) = (entry.bead.id.clone(), entry.work.last_context.clone());
        while let Some(context) = next.and_then(|id| self.contexts.remove(&id)) {
            let before = context.predecessor.clone();
            past.contexts.push(Arc::unwrap_or_clone(context));
            next = before;
        }
        let attempts: Vec<DispatchId> = self.dispatches_of(&id).map(|dispatch| dispatch.id.clone()).collect();
        past.dispatches.extend(attempts.iter().filter_map(|id| self.dispatches.remove(id)));
    }

    /// Has a bead awake with all its requests and attempts, to be changed.
    pub(crate) fn bring_back(&mut self, id: &BeadId) {
        let Some(number) = self.beads.number(id) else { return };
        let Some(past) = self.beads.take_past(number) else { return };
        for context in past.contexts {
            self.touch_context(&context.id);
            self.contexts.insert(context.id.clone(), Arc::new(context));
        }
        for dispatch in past.dispatches {
            self.touch_dispatch(&dispatch.id);
            self.dispatches.insert(dispatch.id.clone(), dispatch);
        }
    }

    /// A context by id.
    pub fn context(&self, id: &ContextId) -> Option<&Context> {
        let awake = self.contexts.get(id).map(|context| &**context);
        awake.or_else(|| self.beads.past_of(self.beads.home_of(id)?)?.context(id))
    }

    /// The same, to be changed.
    pub(crate) fn context_mut(&mut self, id: &ContextId) -> Option<&mut Context> {
        if !self.contexts.contains_key(id) {
            let bead = self.context(id)?.bead().clone();
            self.bring_back(&bead);
        }
        self.contexts.get_mut(id).map(Arc::make_mut)
    }

    /// A dispatch by id.
    pub fn dispatch(&self, id: &DispatchId) -> Option<&Dispatch> {
        self.dispatches.get(id).or_else(|| self.past_dispatches(id.bead()).iter().find(|past| past.id == *id))
    }

    /// The same, to be changed.
    pub(crate) fn dispatch_mut(&mut self, id: &DispatchId) -> Option<&mut Dispatch> {
        if !self.dispatches.contains_key(id) {
            self.bring_back(id.bead());
        }
        self.dispatches.get_mut(id)
    }

    fn past_dispatches(&self, bead: &BeadId) -> &[Dispatch] {
        let past = self.beads.number(bead).and_then(|number| self.beads.past_of(number));
        past.map_or(&[], |past| &past.dispatches)
    }

    /// All dispatches of one bead, first attempt first.
    pub fn dispatches_of(&self, bead: &BeadId) -> impl DoubleEndedIterator<Item = &Dispatch> {
        let from = DispatchId::new(bead.clone(), 0);
        let to = DispatchId::new(bead.clone(), u32::MAX);
        self.past_dispatches(bead).iter().chain(self.dispatches.range(from..=to).map(|(_, d)| d))
    }

    fn pasts(&self) -> impl Iterator<Item = &Past> {
        (0..self.beads.numbers() as u32).filter_map(|number| self.beads.past_of(number))
    }

    /// All contexts, open and closed, by id.
    pub fn contexts(&self) -> impl Iterator<Item = &Context> {
        let mut all: Vec<&Context> = self.pasts().flat_map(|past| &past.contexts).collect();
        all.extend(self.contexts.values().map(|context| &**context));
        all.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        all.into_iter()
    }

    /// Every dispatch that is remembered, by id.
    pub fn dispatches(&self) -> impl Iterator<Item = &Dispatch> {
        let mut all: Vec<&Dispatch> = self.pasts().flat_map(|past| &past.dispatches).collect();
        all.extend(self.dispatches.values());
        all.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        all.into_iter()
    }

    /// When lanes were last served by attempts of beads at rest.
    pub(crate) fn lanes_served_at_rest(&self) -> impl Iterator<Item = (&Lane, u64)> {
        self.beads.rest.served.iter().map(|(lane, served)| (lane, *served))
    }
}
