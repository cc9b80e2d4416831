//! The state together with its journal: what is decided becomes durable here, or did not happen.

use yard_engine::{Event, Recorded, Seq, State, Timestamp, Tx, UnreadableEvent, UnreadableRow};
use yard_journal::{EntityRow, Journal, JournalError, Lease, Reader, Row};

use crate::anew::{Anew, Progress, let_go};
use crate::fold::fold;
use crate::memory;
use crate::standby::Followed;
use crate::town::TownDir;

/// Changed records after which a checkpoint is due at once.
const CHECKPOINT_AT: usize = 20_000;
/// Events after which a checkpoint is taken when there is nothing else to do, or on leaving.
const CHECKPOINT_WHEN_IDLE: u64 = 2_000;

/// Why the town cannot be opened or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An event this program cannot read.
    #[error(transparent)]
    Event(#[from] UnreadableEvent),
    /// A checkpoint this program cannot read.
    #[error(transparent)]
    Row(#[from] UnreadableRow),
}

/// The state and its journal, owned by the one that holds the lease.
pub(crate) struct Store {
    journal: Journal,
    state: State,
    /// Decided, applied to the state, not yet durable.
    pending: Vec<Recorded>,
    checkpoint: Seq,
    /// The same state, while it is made anew.
    anew: Option<Anew>,
}

impl Store {
    /// Opens the journal and folds it, as far as that was not done while following it.
    pub(crate) fn open(
        town: &TownDir,
        lease: &Lease,
        followed: Option<Followed>,
    ) -> Result<Self, StoreError> {
        let store = town.store()?;
        if let yard_journal::Store::Sqlite(path) = store {
            // A town without one has lost it, or was never made.
            Journal::must_exist(path)?;
        }
        let journal = lease.open_journal(store)?;
        let store = match followed {
            Some(Followed { state, checkpoint }) if state.seq() == journal.last_seq() => {
                Self { journal, state, pending: Vec::new(), checkpoint, anew: None }
            }
            Some(_) | None => Self::load(journal)?,
        };
        if let Some(elsewhere) = lease.led_from_elsewhere()
            && store.state.live_workers().next().is_some()
        {
            return Err(JournalError::WorkersElsewhere(elsewhere.clone()).into());
        }
        lease.make_home()?;
        Ok(store)
    }

    /// Folds a journal that is open.
    pub(crate) fn load(mut journal: Journal) -> Result<Self, StoreError> {
        let (state, checkpoint) = fold(|take| journal.load_in_pieces(take))?;
        Ok(Self { journal, state, pending: Vec::new(), checkpoint, anew: None })
    }

    /// Gives back the memory that only a busy town needs; lists are closed up only if that is worth it.
    pub(crate) fn rest(&mut self, worth_closing_up: bool) {
        // First, so that closed lists take the place of what is freed here.
        self.journal.rest();
        if worth_closing_up {
            self.state.tidy();
        }
        memory::give_back();
    }

    /// Begins to make the state anew, unless that is under way, and calls `wake` when it is done; false if it cannot be
    /// begun.
    pub(crate) fn read_anew(&mut self, town: &TownDir, wake: impl FnOnce() + Send + 'static) -> bool {
        if self.anew.is_none() {
            self.anew = Anew::begin(town, wake).ok();
        }
        self.anew.is_some()
    }

    /// Puts the state that was made anew in the place of the old one, if it is there; says so.
    pub(crate) fn take_anew(&mut self) -> bool {
        // What is decided and not committed is in the old one only.
        let Some(anew) = self.anew.take_if(|_| self.pending.is_empty()) else { return false };
        match anew.progress() {
            Progress::Reading(anew) => self.anew = Some(anew),
            Progress::Done(state) if state.seq() == self.state.seq() => {
                let_go(std::mem::replace(&mut self.state, *state));
                return true;
            }
            Progress::Done(_) | Progress::Failed => {}
        }
        false
    }

    /// The last event that the checkpoint contains.
    pub(crate) fn checkpoint(&self) -> Seq {
        self.checkpoint
    }

    /// The last event that was cut off; 0 if none was.
    pub(crate) fn beginning(&mut self) -> Result<Seq, JournalError> {
        self.journal.beginning()
    }

    /// Whether the log has, or was cut off at, an event with this sum.
    pub(crate) fn has_sum(&mut self, seq: Seq, sum: u64) -> Result<bool, JournalError> {
        self.journal.has_sum(seq, sum)
    }

    /// When an event happened that is still in the log.
    pub(crate) fn time_of(&mut self, seq: Seq) -> Result<Option<Timestamp>, JournalError> {
        self.journal.time_of(seq)
    }

    /// Cuts off events up to `seq`, not more than `most`; says how many.
    pub(crate) fn cut_off(&mut self, seq: Seq, most: u64) -> Result<u64, StoreError> {
        Ok(self.journal.cut_off(seq, most)?)
    }

    /// Whether the town still is ours; an error if it is not.
    pub(crate) fn confirm(&mut self) -> Result<(), StoreError> {
        Ok(self.journal.confirm()?)
    }

    /// Prepares for a long stay.
    pub(crate) fn settle_in(&self) {
        self.journal.settle_in();
    }

    /// The state, with everything decided so far.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// What was decided and is not on disk yet.
    pub(crate) fn pending(&self) -> &[Recorded] {
        &self.pending
    }

    /// Decides something; the events wait for the next commit.
    pub(crate) fn decide<T>(&mut self, now: Timestamp, decision: impl FnOnce(&mut Tx<'_>) -> T) -> T {
        let mut tx = Tx::new(&mut self.state, now);
        let outcome = decision(&mut tx);
        self.pending.extend(tx.finish());
        outcome
    }

    /// Makes everything decided durable, in one transaction, and hands it out. After an error the state is what
    /// the journal says: nothing of it happened.
    pub(crate) fn commit(&mut self) -> Result<Vec<Recorded>, StoreError> {
        let events = std::mem::take(&mut self.pending);
        if events.is_empty() {
            return Ok(events);
        }
        let rows: Vec<Row> = events.iter().map(row).collect();
        if let Err(error) = self.journal.append(&rows) {
            // Whoever must end has no use for a state.
            if !error.is_final() {
                self.reload()?;
            }
            return Err(error.into());
        }
        self.anew = self.anew.take().and_then(|mut anew| anew.miss(&events).then_some(anew));
        Ok(events)
    }

    fn reload(&mut self) -> Result<(), StoreError> {
        self.anew = None;
        (self.state, self.checkpoint) = fold(|take| self.journal.load_in_pieces(take))?;
        Ok(())
    }

    /// Takes a checkpoint if one is due: at once after very many changes, sooner when idle.
    pub(crate) fn checkpoint_if_due(&mut self, idle: bool) -> Result<(), StoreError> {
        let events = self.state.seq().0 - self.checkpoint.0;
        let due = self.state.changed_records() >= CHECKPOINT_AT || (idle && events >= CHECKPOINT_WHEN_IDLE);
        if due { self.checkpoint_now() } else { Ok(()) }
    }

    /// Takes a checkpoint.
    pub(crate) fn checkpoint_now(&mut self) -> Result<(), StoreError> {
        let rows: Vec<EntityRow> = self
            .state
            .take_changed_records()
            .into_iter()
            .map(|row| EntityRow { kind: row.kind.to_owned(), id: row.id, body: row.body })
            .collect();
        let seq = self.state.seq();
        // One that was read before does not know which records this one writes.
        self.anew = None;
        if let Err(error) = self.journal.checkpoint(seq, &rows) {
            // The records still are to be written; only a fresh fold knows which.
            if !error.is_final() {
                self.reload()?;
            }
            return Err(error.into());
        }
        self.checkpoint = seq;
        Ok(())
    }
}

fn row(recorded: &Recorded) -> Row {
    Row {
        seq: recorded.seq,
        at: recorded.at,
        kind: recorded.event.kind().to_owned(),
        body: recorded.event.body(),
    }
}

/// A stored row as an event.
pub(crate) fn recorded(row: &Row) -> Result<Recorded, UnreadableEvent> {
    Ok(Recorded { seq: row.seq, at: row.at, event: Event::from_stored(&row.kind, &row.body)? })
}

/// The state as the journal has it, for those who only look.
pub(crate) fn read_state(reader: &Reader) -> Result<State, StoreError> {
    fold(|take| reader.load_in_pieces(take)).map(|(state, _)| state)
}
