//! Going back: the same events folded by the same function, up to any point of the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use yard_engine::convoy::ConvoyEvent;
use yard_engine::dispatch::{DispatchEvent, Outcome};
use yard_engine::{BeadId, ConvoyId, Event, Recorded, Seq, State, Timestamp};

use crate::forecasts::{Forecasts, Wanted, forecast};
use crate::town::Waves;

/// States kept on the way, so that going back need not begin at the beginning.
const KEYFRAMES: usize = 24;
/// At least so many events lie between two of them.
const APART: usize = 500;

/// In larger towns nothing is forecast for the past.
const MOST_FORECAST: usize = 2_000;

/// A replay.
#[derive(Debug)]
pub struct Replay {
    events: Vec<Arc<Recorded>>,
    keyframes: Vec<(usize, State)>,
    state: State,
    /// So many events are folded.
    at: usize,
    /// Events with which a convoy or one of its waves begins, or a convoy ends.
    waves: Vec<usize>,
    /// Events that a person would call a fault.
    faults: Vec<usize>,
    /// The waves at that moment.
    wave_numbers: Waves,
    /// What was forecast then, as it would have been made from the same past.
    forecasts: Forecasts,
    /// It runs by itself.
    pub playing: bool,
    /// What is different now is shown.
    pub diff: bool,
}

/// Where a replay can go with one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A launch, or the first start of a wave.
    Wave,
    /// Something went wrong.
    Fault,
}

impl Replay {
    /// A replay of these events, at their end, from the town as it was before them.
    pub fn new(mut state: State, events: Vec<Arc<Recorded>>) -> Self {
        let apart = (events.len() / KEYFRAMES).max(APART);
        let mut keyframes = vec![(0, state.clone())];
        let (mut waves, mut faults) = (Vec::new(), Vec::new());
        let mut beginnings = Beginnings::default();
        for (number, event) in events.iter().enumerate() {
            state.apply(event);
            if beginnings.notice(&event.event) {
                waves.push(number);
            }
            if is_fault(event) {
                faults.push(number);
            }
            state.take_changed_beads();
            if (number + 1).is_multiple_of(apart) {
                keyframes.push((number + 1, state.clone()));
            }
        }
        let at = events.len();
        let forecasts = Forecasts::default();
        let mut replay = Self {
            events,
            keyframes,
            state,
            at,
            waves,
            faults,
            wave_numbers: Waves::default(),
            forecasts,
            playing: false,
            diff: true,
        };
        replay.look_ahead();
        replay
    }

    /// The town at that moment.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// All events.
    pub fn events(&self) -> &[Arc<Recorded>] {
        &self.events
    }

    /// How many events are folded.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The last event folded.
    pub fn last(&self) -> Option<&Arc<Recorded>> {
        self.at.checked_sub(1).and_then(|last| self.events.get(last))
    }

    /// Goes to where so many events are folded.
    pub fn go(&mut self, at: usize) {
        let at = at.min(self.events.len());
        let from = self.keyframes.iter().rev().find(|(keyframe, _)| *keyframe <= at);
        let (keyframe, state) = from.map_or((0, None), |(keyframe, state)| (*keyframe, Some(state)));
        if self.at > at || self.at < keyframe {
            self.state = state.cloned().unwrap_or_default();
            self.at = keyframe;
        }
        for event in &self.events[self.at..at] {
            self.state.apply(event);
        }
        self.state.take_changed_beads();
        self.at = at;
        self.look_ahead();
    }

    /// Numbers waves as they were, and forecasts from that moment, unless it would make stepping slow.
    fn look_ahead(&mut self) {
        self.wave_numbers = Waves::of_town(&self.state);
        self.forecasts = if self.state.bead_count() > MOST_FORECAST || self.playing {
            Forecasts::default()
        } else {
            forecast(&self.state, &Wanted { now: self.state.clock(), ..Wanted::default() })
        };
    }

    /// The waves at that moment.
    pub fn waves(&self) -> &Waves {
        &self.wave_numbers
    }

    /// What was forecast then.
    pub fn forecasts(&self) -> &Forecasts {
        &self.forecasts
    }

    /// Goes so many events on or back.
    pub fn step(&mut self, by: isize) {
        self.go(self.at.saturating_add_signed(by));
    }

    /// Goes to the next such event, or the one before; says whether there was one.
    pub fn seek(&mut self, mark: Mark, on: bool) -> bool {
        let marks = match mark {
            Mark::Wave => &self.waves,
            Mark::Fault => &self.faults,
        };
        let found = if on {
            marks.iter().find(|mark| **mark >= self.at)
        } else {
            marks.iter().rev().find(|mark| **mark + 1 < self.at)
        };
        let found = found.copied();
        if let Some(at) = found {
            self.go(at + 1);
        }
        found.is_some()
    }

    /// Goes to the last event at or before a moment.
    pub fn go_to_time(&mut self, time: Timestamp) {
        self.go(self.events.partition_point(|event| event.at <= time));
    }

    /// Goes to a position in the log.
    pub fn go_to_seq(&mut self, seq: Seq) {
        self.go(self.events.partition_point(|event| event.seq <= seq));
    }

    /// Where such events lie, as shares of the whole.
    pub fn shares(&self, mark: Mark) -> impl Iterator<Item = f64> {
        let marks = match mark {
            Mark::Wave => &self.waves,
            Mark::Fault => &self.faults,
        };
        let all = self.events.len().max(1) as f64;
        marks.iter().map(move |at| *at as f64 / all)
    }
}

/// Notices where waves begin: with the first start of one of their beads.
#[derive(Default)]
struct Beginnings {
    wave_of: BTreeMap<BeadId, (ConvoyId, u32)>,
    seen: BTreeSet<(ConvoyId, u32)>,
}

impl Beginnings {
    fn notice(&mut self, event: &Event) -> bool {
        match event {
            Event::Convoy(ConvoyEvent::Launched { id, tracked, waves, .. }) => {
                let numbers =
                    waves.iter().zip(1_u32..).flat_map(|(size, wave)| (0..*size).map(move |_| wave));
                for (bead, wave) in tracked.iter().zip(numbers) {
                    self.wave_of.insert(bead.clone(), (id.clone(), wave));
                }
                true
            }
            Event::Convoy(ConvoyEvent::Closed { .. }) => true,
            Event::Dispatch(DispatchEvent::Started { dispatch }) => {
                self.wave_of.get(dispatch.id.bead()).is_some_and(|wave| self.seen.insert(wave.clone()))
            }
            _ => false,
        }
    }
}

/// Whether an event is one that a person would call a fault.
pub fn is_fault(event: &Recorded) -> bool {
    use yard_engine::alert::AlertEvent;
    use yard_engine::context::{CloseReason, ContextEvent};
    match &event.event {
        Event::Dispatch(DispatchEvent::Ended { outcome, .. }) => {
            matches!(outcome, Outcome::Failed { .. } | Outcome::StartFailed { .. } | Outcome::Lost { .. })
        }
        Event::Dispatch(DispatchEvent::Stuck { .. } | DispatchEvent::CloseOverdue { .. }) => true,
        Event::Context(ContextEvent::Closed { reason, .. }) => *reason == CloseReason::CircuitBroken,
        Event::Alert(AlertEvent::Raised { alert }) => !alert.kind.is_news(),
        _ => false,
    }
}
