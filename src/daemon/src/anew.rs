//! A state made anew of the journal, as a restart would make it. What came and went one by one lies scattered over pages
//! that cannot be given back; what is read in one go lies close together. It is read on a thread of its own while the loop
//! goes on, and what the loop commits meanwhile is added before it takes the place of the old one.

use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::{io, thread};

use tracing::warn;
use yard_engine::{Recorded, State};

use crate::memory;
use crate::store::read_state;
use crate::town::TownDir;

/// So many events may be missed: whoever is that busy again gains nothing by it.
const MOST_MISSED: usize = 20_000;

/// A state that is being read.
pub(crate) struct Anew {
    made: Receiver<State>,
    /// What was committed since the reading began; the first of it may have been read.
    missed: Vec<Recorded>,
}

/// How far a reading is.
pub(crate) enum Progress {
    /// Not done yet.
    Reading(Anew),
    /// Done, and up to date.
    Done(Box<State>),
    /// It came to nothing.
    Failed,
}

impl Anew {
    /// Begins to read a journal, and calls `wake` when that is done.
    pub(crate) fn begin(town: &TownDir, wake: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let (make, made) = mpsc::channel();
        let town = town.clone();
        let work = move || {
            let read = town.reader().map_err(Into::into).and_then(|reader| read_state(&reader));
            match read {
                // Whoever no longer wants it has let go of the other end.
                Ok(state) => drop(make.send(state)),
                Err(error) => warn!(%error, "the town cannot be read anew; it stays as it lies in memory"),
            }
            wake();
        };
        thread::Builder::new().name("ym-anew".to_owned()).spawn(work)?;
        Ok(Self { made, missed: Vec::new() })
    }

    /// Something was committed; false when that was too much to go on.
    pub(crate) fn miss(&mut self, events: &[Recorded]) -> bool {
        self.missed.extend_from_slice(events);
        self.missed.len() <= MOST_MISSED
    }

    /// Looks whether the state is there.
    pub(crate) fn progress(self) -> Progress {
        match self.made.try_recv() {
            Err(TryRecvError::Empty) => Progress::Reading(self),
            Err(TryRecvError::Disconnected) => Progress::Failed,
            Ok(mut state) => {
                for event in &self.missed {
                    if event.seq > state.seq() {
                        state.apply(event);
                    }
                }
                Progress::Done(Box::new(state))
            }
        }
    }
}

/// Lets a state go, which takes a while, and gives back what it took.
pub(crate) fn let_go(old: State) {
    // If no thread can be had, it is let go here and now.
    let _ = thread::Builder::new().name("ym-let-go".to_owned()).spawn(move || {
        drop(old);
        memory::give_back();
    });
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use serde_json::{Value, json};
    use yard_engine::{Asker, Kitchen, Timestamp};

    use crate::store::Store;
    use crate::town::TownDir;

    fn carry_out(store: &mut Store, command: Value) {
        let command = serde_json::from_value(command).unwrap();
        let asker = Asker { actor: "ann", kitchen: &Kitchen::default() };
        store.decide(Timestamp::from_millis(1), |tx| tx.decide(&asker, &command).map(drop)).unwrap();
        store.commit().unwrap();
    }

    fn add_beads(store: &mut Store, count: usize) {
        let items: Vec<Value> = (0..count).map(|_| json!({ "argv": ["true"] })).collect();
        carry_out(store, json!({ "do": "add", "items": items }));
    }

    fn opened(town: &TownDir) -> Store {
        Store::load(yard_journal::Journal::open(&town.journal()).unwrap()).unwrap()
    }

    fn town_with_beads() -> (tempfile::TempDir, TownDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let town = TownDir::create(folder.path()).unwrap();
        let mut store = opened(&town);
        carry_out(&mut store, json!({ "do": "rig-add", "rig": { "name": "r", "prefix": "b", "path": "." } }));
        add_beads(&mut store, 50);
        (folder, town, store)
    }

    /// Has the state read, lets `meanwhile` happen, and says whether it was taken over.
    fn read_anew(town: &TownDir, store: &mut Store, meanwhile: impl FnOnce(&mut Store)) -> bool {
        let (wake, awake) = std::sync::mpsc::channel();
        assert!(store.read_anew(town, move || wake.send(()).unwrap()));
        awake.recv().unwrap();
        meanwhile(store);
        store.take_anew()
    }

    #[test]
    fn a_state_made_anew_is_the_old_one_with_what_was_committed_meanwhile() {
        let (_folder, town, mut store) = town_with_beads();
        store.checkpoint_now().unwrap();
        add_beads(&mut store, 5);
        let mut before = None;
        let taken = read_anew(&town, &mut store, |store| {
            add_beads(store, 7);
            before = Some(store.state().clone());
        });
        assert!(taken);
        before.unwrap().check_same_as(store.state()).unwrap();
        store.checkpoint_now().unwrap();
        opened(&town).state().check_same_as(store.state()).unwrap();
    }

    #[test]
    fn what_is_only_decided_is_not_lost_to_a_state_made_anew() {
        let (_folder, town, mut store) = town_with_beads();
        let mut seq = store.state().seq();
        let taken = read_anew(&town, &mut store, |store| {
            let pause = serde_json::from_value(json!({ "do": "pause" })).unwrap();
            let asker = Asker { actor: "ann", kitchen: &Kitchen::default() };
            store.decide(Timestamp::from_millis(2), |tx| tx.decide(&asker, &pause).map(drop)).unwrap();
            seq = store.state().seq();
        });
        assert!(!taken && store.state().seq() == seq);
        store.commit().unwrap();
        assert!(store.take_anew() && store.state().seq() == seq);
    }

    #[test]
    fn a_checkpoint_makes_a_reading_that_began_before_it_worthless() {
        let (_folder, town, mut store) = town_with_beads();
        assert!(!read_anew(&town, &mut store, |store| store.checkpoint_now().unwrap()));
    }
}
