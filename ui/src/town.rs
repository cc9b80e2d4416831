//! What the console knows of its town: the same state the daemon has, folded from the same events, and what a person
//! wants remembered beside it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use yard_client::ServerRole;
use yard_client::views::AlertView;
use yard_engine::convoy::Convoy;
use yard_engine::dispatch::DispatchEvent;
use yard_engine::{BeadId, ConvoyId, Event, Recorded, Seq, State, Timestamp};

/// Events kept for the events view.
const KEPT_EVENTS: usize = 20_000;
/// Milliseconds in one column of the sparkline of starts.
const COLUMN: i64 = 10_000;
/// Columns of it that are kept.
const COLUMNS: usize = 60;

/// How the console hears of its town.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// The state is on its way: so many of so many records and events.
    Loading {
        /// Read so far.
        read: usize,
        /// In all; 0 while it is not known.
        of: usize,
    },
    /// Events arrive as they happen.
    Live {
        /// Who sends them.
        role: ServerRole,
        /// Its process.
        pid: u32,
    },
    /// Nobody answers; the console tries again by itself.
    Lost {
        /// Since when.
        since: Timestamp,
        /// In words.
        why: String,
    },
}

/// The town as the console knows it.
#[derive(Debug)]
pub struct Town {
    /// The name of its directory.
    pub name: String,
    /// Its directory.
    pub root: PathBuf,
    /// The fold of its log.
    pub state: State,
    /// How it hears of it.
    pub link: Link,
    /// The last events, oldest first.
    pub recent: VecDeque<Arc<Recorded>>,
    /// The waves of its convoys.
    pub waves: Waves,
    /// Alerts that the log knows nothing of.
    pub transient: Vec<AlertView>,
    /// Beads that may look different since the table was last brought up to date.
    changed: BTreeSet<BeadId>,
    /// Events that wait because the display is frozen.
    waiting: Option<Vec<Arc<Recorded>>>,
    starts: Starts,
    /// Goes up with every change.
    version: u64,
}

impl Town {
    /// A town nothing is known of yet.
    pub fn unknown(root: PathBuf) -> Self {
        let name = root.file_name().map_or_else(|| "town".to_owned(), |n| n.to_string_lossy().into_owned());
        Self {
            name,
            root,
            state: State::default(),
            link: Link::Loading { read: 0, of: 0 },
            recent: VecDeque::new(),
            waves: Waves::default(),
            transient: Vec::new(),
            changed: BTreeSet::new(),
            waiting: None,
            starts: Starts::default(),
            version: 0,
        }
    }

    /// Takes a whole state over.
    pub fn replace(&mut self, state: State) {
        self.waves = Waves::of_town(&state);
        self.starts = Starts::of_town(&state);
        self.recent.clear();
        self.waiting = self.waiting.take().map(|_| Vec::new());
        self.state = state;
        self.version += 1;
    }

    /// Folds events in, or keeps them for later while the display is frozen.
    pub fn hear(&mut self, events: Vec<Arc<Recorded>>) {
        match &mut self.waiting {
            Some(waiting) => waiting.extend(events),
            None => self.fold(events),
        }
        self.version += 1;
    }

    /// Puts older events before those that are known.
    pub fn remember(&mut self, events: Vec<Arc<Recorded>>) {
        let first = self.recent.front().map_or(Seq(u64::MAX), |event| event.seq);
        for event in events.into_iter().rev().filter(|event| event.seq < first) {
            self.recent.push_front(event);
        }
    }

    fn fold(&mut self, events: Vec<Arc<Recorded>>) {
        let mut convoys_changed = false;
        for event in events {
            if event.seq <= self.state.seq() {
                continue;
            }
            self.state.apply(&event);
            convoys_changed |= matches!(event.event, Event::Convoy(_));
            if let Event::Dispatch(DispatchEvent::Started { dispatch }) = &event.event {
                self.starts.count(dispatch.started_at);
            }
            self.recent.push_back(event);
        }
        while self.recent.len() > KEPT_EVENTS {
            self.recent.pop_front();
        }
        for id in self.state.take_changed_beads() {
            // What waits for it, and what inherits its blockers, may stand differently too.
            self.changed.extend(self.state.dependents_of(&id).cloned());
            self.changed.extend(self.state.children_of(&id).cloned());
            self.changed.insert(id);
        }
        if convoys_changed {
            self.waves = Waves::of_town(&self.state);
        }
    }

    /// Stops the display, or lets it catch up.
    pub fn freeze(&mut self, freeze: bool) {
        match (freeze, self.waiting.take()) {
            (true, waiting) => self.waiting = Some(waiting.unwrap_or_default()),
            (false, Some(waiting)) => self.fold(waiting),
            (false, None) => {}
        }
        self.version += 1;
    }

    /// Whether the display is stopped, and how many events wait.
    pub fn frozen(&self) -> Option<usize> {
        self.waiting.as_ref().map(Vec::len)
    }

    /// The beads that may look different since the last call.
    pub fn take_changed(&mut self) -> BTreeSet<BeadId> {
        std::mem::take(&mut self.changed)
    }

    /// Goes up with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Starts per column of ten seconds, up to now, oldest first.
    pub fn starts_until(&self, now: Timestamp, columns: usize) -> Vec<u32> {
        self.starts.until(now, columns)
    }
}

/// How many dispatches started when.
#[derive(Debug, Default)]
struct Starts(BTreeMap<i64, u32>);

impl Starts {
    fn of_town(state: &State) -> Self {
        let mut starts = Self::default();
        let since = state.clock().as_millis() - COLUMN * COLUMNS as i64;
        for dispatch in state.dispatches().filter(|d| d.started_at.as_millis() >= since) {
            starts.count(dispatch.started_at);
        }
        starts
    }

    fn count(&mut self, at: Timestamp) {
        *self.0.entry(at.as_millis().div_euclid(COLUMN)).or_default() += 1;
        while self.0.len() > COLUMNS {
            self.0.pop_first();
        }
    }

    fn until(&self, now: Timestamp, columns: usize) -> Vec<u32> {
        let last = now.as_millis().div_euclid(COLUMN);
        let first = last - columns as i64 + 1;
        (first..=last).map(|column| self.0.get(&column).copied().unwrap_or(0)).collect()
    }
}

/// Which bead belongs to which convoys, and in which wave. The last one counts: an open one after a staged one after a
/// closed one.
#[derive(Debug, Default)]
pub struct Waves(BTreeMap<BeadId, Vec<(ConvoyId, Option<u32>)>>);

impl Waves {
    /// Looks them up.
    pub fn of_town(state: &State) -> Self {
        let mut waves = Self::default();
        let rank = |convoy: &Convoy| match (&convoy.closed, convoy.staged) {
            (Some(_), _) => 0,
            (None, Some(_)) => 1,
            (None, None) => 2,
        };
        let mut convoys: Vec<&Convoy> = state.convoys().collect();
        // The convoy that a plain sling makes has no waves, and says less than one that was planned.
        convoys.sort_by_key(|convoy| (rank(convoy), convoy.waves.len(), convoy.created_at));
        for convoy in convoys {
            let numbers = convoy.wave_numbers();
            for bead in &convoy.tracked {
                let place = (convoy.id.clone(), numbers.get(bead).copied());
                waves.0.entry(bead.clone()).or_default().push(place);
            }
        }
        waves
    }

    /// The wave of a bead.
    pub fn of(&self, bead: &BeadId) -> Option<u32> {
        self.0.get(bead)?.last()?.1
    }

    /// The convoy of a bead.
    pub fn convoy_of(&self, bead: &BeadId) -> Option<&ConvoyId> {
        self.0.get(bead)?.last().map(|(convoy, _)| convoy)
    }

    /// Whether a convoy tracks a bead.
    pub fn is_in(&self, bead: &BeadId, convoy: &ConvoyId) -> bool {
        self.0.get(bead).is_some_and(|places| places.iter().any(|(known, _)| known == convoy))
    }
}
