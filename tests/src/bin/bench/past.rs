//! A town with a past: events as its daemon would have decided, stored and checkpointed them, made without the daemon
//! because a million of them would take it a quarter of an hour.

use std::path::Path;

use yard_engine::command::AddItem;
use yard_engine::plan::Scope;
use yard_engine::{Asker, Command, DispatchId, Kitchen, State, Timestamp, Tx, WorkerExit};
use yard_journal::{Journal, Row};
use yard_tests::world::{changed_rows, fold, row};

use crate::Fallible;

/// As in `src/daemon/src/store.rs`: changed records after which a busy daemon takes a checkpoint.
const CHECKPOINT_AT: usize = 20_000;
/// Events that are stored in one transaction.
const AT_ONCE: usize = 500;
/// Commands that are added at a time.
const BATCH: usize = 200;

/// The log of a town that nobody serves meanwhile.
pub(crate) struct Past {
    journal: Journal,
    state: State,
    now: Timestamp,
    pending: Vec<Row>,
    added: usize,
}

impl Past {
    /// Goes on from what the town's journal holds.
    pub(crate) fn of(town: &Path) -> Fallible<Self> {
        let mut journal = Journal::open(&town.join(".yardmaster/journal.db"))?;
        let state = fold(&journal.load()?)?;
        let now = Timestamp::from_millis(state.clock().as_millis() + 1);
        Ok(Self { journal, state, now, pending: Vec::new(), added: 0 })
    }

    /// How many events there are.
    pub(crate) fn events(&self) -> u64 {
        self.state.seq().0
    }

    /// Runs commands of one argument vector to their end, until the log has so many events.
    pub(crate) fn run_until(&mut self, events: u64, argv: &[String]) -> Fallible<()> {
        while self.events() < events {
            self.add(BATCH, argv)?;
            self.run_all()?;
        }
        Ok(())
    }

    /// Runs so many commands to their end.
    pub(crate) fn run(&mut self, beads: usize, argv: &[String]) -> Fallible<()> {
        for _ in 0..beads.div_ceil(BATCH) {
            self.add(BATCH, argv)?;
            self.run_all()?;
        }
        Ok(())
    }

    /// Adds commands that wait.
    pub(crate) fn queue(&mut self, beads: usize, argv: &[String]) -> Fallible<()> {
        for done in (0..beads).step_by(BATCH) {
            self.add(BATCH.min(beads - done), argv)?;
        }
        Ok(())
    }

    /// Stores what is left. The journal is then as after `kill -9`: the checkpoint lies some way back.
    pub(crate) fn close(mut self) -> Fallible<()> {
        self.store()
    }

    fn add(&mut self, beads: usize, argv: &[String]) -> Fallible<()> {
        let first = self.added;
        self.added += beads;
        let item = |number: usize| AddItem {
            argv: argv.to_vec(),
            id: Some(format!("y-{}", yard_engine::ids::base36(number as u64, 6))),
            ..AddItem::default()
        };
        let items = (first..first + beads).map(item).collect();
        let kitchen = Kitchen::default();
        let asker = Asker { actor: "bench", kitchen: &kitchen };
        self.act(|tx| tx.decide(&asker, &Command::Add { items }).map(drop))?
            .map_err(|refusal| refusal.message.into())
    }

    /// Starts, runs and ends everything that waits, slot by slot.
    fn run_all(&mut self) -> Fallible<()> {
        let exit = WorkerExit::succeeded();
        loop {
            self.now = Timestamp::from_millis(self.now.as_millis() + 2);
            self.act(|tx| drop(tx.pass(Scope::Everything, None)))?;
            let live: Vec<DispatchId> =
                self.state.live_dispatches().map(|dispatch| dispatch.id.clone()).collect();
            if live.is_empty() {
                return Ok(());
            }
            for id in &live {
                self.act(|tx| tx.worker_running(id, Some(1)))?;
                self.act(|tx| tx.worker_ended(id, &exit))?;
            }
        }
    }

    fn act<T>(&mut self, decide: impl FnOnce(&mut Tx<'_>) -> T) -> Fallible<T> {
        let mut tx = Tx::new(&mut self.state, self.now);
        let outcome = decide(&mut tx);
        self.pending.extend(tx.finish().iter().map(row));
        if self.pending.len() >= AT_ONCE {
            self.store()?;
        }
        Ok(outcome)
    }

    fn store(&mut self) -> Fallible<()> {
        self.journal.append(&std::mem::take(&mut self.pending))?;
        if self.state.changed_records() >= CHECKPOINT_AT {
            let rows = changed_rows(&mut self.state);
            self.journal.checkpoint(self.state.seq(), &rows)?;
        }
        Ok(())
    }
}
