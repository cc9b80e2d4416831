//! A town in this process: the engine's state and a journal on disk, without a daemon between. For measuring what the
//! parts cost.

use std::error::Error;

use tempfile::TempDir;
use yard_engine::bead::{DepKind, Dependency};
use yard_engine::command::{NewBead, SlingRequest};
use yard_engine::plan::Scope;
use yard_engine::rig::Rig;
use yard_engine::{Asker, BeadId, Command, DispatchId, Event, Kitchen, Recorded, State, Timestamp, Tx};
use yard_journal::{EntityRow, Journal, Loaded, Row};

/// What keeps something from being measured, in words.
type Fallible<T> = Result<T, Box<dyn Error>>;

/// Beads in a layer of the graph: so many are ready at a time, whatever the size.
const LAYER: usize = 500;

/// A town.
pub struct World {
    /// What the engine knows.
    pub state: State,
    /// Where it is stored.
    pub journal: Journal,
    /// The time; it moves on with every decision.
    pub now: Timestamp,
    /// Where the journal lies, as `journal.db`.
    pub dir: TempDir,
}

impl World {
    /// A town with one rig, `gt`.
    pub fn new() -> Fallible<Self> {
        let dir = tempfile::Builder::new().prefix("ym-world-").tempdir()?;
        let journal = Journal::open(&dir.path().join("journal.db"))?;
        let now = Timestamp::from_millis(1_794_837_600_000);
        let mut world = Self { state: State::default(), journal, now, dir };
        let rig: Rig =
            serde_json::from_value(serde_json::json!({"name": "gt", "prefix": "gt", "path": "/gt"}))?;
        let events = world.command(&Command::RigAdd { rig })?;
        world.store(&events)?;
        Ok(world)
    }

    /// Decides something; the events are not stored yet.
    pub fn act<T>(&mut self, decide: impl FnOnce(&mut Tx<'_>) -> T) -> (T, Vec<Recorded>) {
        self.now = Timestamp::from_millis(self.now.as_millis() + 1);
        let mut tx = Tx::new(&mut self.state, self.now);
        let outcome = decide(&mut tx);
        (outcome, tx.finish())
    }

    /// Decides a command.
    pub fn command(&mut self, command: &Command) -> Fallible<Vec<Recorded>> {
        let kitchen = Kitchen::default();
        let asker = Asker { actor: "bench", kitchen: &kitchen };
        let (answer, events) = self.act(|tx| tx.decide(&asker, command));
        answer?;
        Ok(events)
    }

    /// Stores events, in one transaction.
    pub fn store(&mut self, events: &[Recorded]) -> Fallible<()> {
        let rows: Vec<Row> = events.iter().map(row).collect();
        Ok(self.journal.append(&rows)?)
    }

    /// Sets how many may run.
    pub fn slots(&mut self, slots: i64) -> Fallible<()> {
        let mut settings = self.state.settings().clone();
        settings.max_polecats = slots;
        let ((), events) = self.act(|tx| tx.settings_read(&settings));
        self.store(&events)
    }

    /// One planning pass; what starts also runs.
    pub fn pass(&mut self) -> Fallible<()> {
        let (_, mut events) = self.act(|tx| tx.pass(Scope::Everything, None));
        let starting = self.state.live_dispatches().filter(|dispatch| dispatch.running_at.is_none());
        for id in starting.map(|dispatch| dispatch.id.clone()).collect::<Vec<_>>() {
            events.extend(self.act(|tx| tx.worker_running(&id, Some(1))).1);
        }
        self.store(&events)
    }

    /// A dispatch that runs.
    pub fn running(&self) -> Fallible<DispatchId> {
        let live = self.state.live_dispatches().next();
        Ok(live.ok_or("nothing runs any more")?.id.clone())
    }
}

/// The name of a bead.
pub fn name(number: usize) -> String {
    format!("gt-{number}")
}

/// Beads in layers, each waiting for three of the layer before.
pub fn graph(beads: usize) -> Vec<NewBead> {
    let after = |number: usize| {
        let on = (0..3).filter_map(move |step| number.checked_sub(LAYER + step * 7));
        on.filter_map(|on| name(on).parse::<BeadId>().ok()).map(|on| Dependency::new(on, DepKind::Blocks))
    };
    let bead = |number: usize| NewBead {
        id: Some(name(number)),
        title: format!("piece of work number {number}"),
        priority: Some((number % 5) as u8),
        dependencies: after(number).collect(),
        argv: Some(vec!["/bin/true".to_owned()]),
        ..NewBead::default()
    };
    (0..beads).map(bead).collect()
}

/// A request for all of them.
pub fn sling(beads: usize) -> Command {
    let ids = (0..beads).map(name).collect();
    Command::Sling(Box::new(SlingRequest { ids, no_convoy: true, ..SlingRequest::default() }))
}

/// An event as the daemon stores it.
pub fn row(recorded: &Recorded) -> Row {
    let (kind, body) = (recorded.event.kind().to_owned(), recorded.event.body());
    Row { seq: recorded.seq, at: recorded.at, kind, body }
}

/// The state of what a journal holds.
pub fn fold(loaded: &Loaded) -> Fallible<State> {
    let rows = loaded.entities.iter();
    let rows = rows.filter_map(|row| Some((row.kind.as_str(), row.id.as_str(), row.body.as_deref()?)));
    let mut state = State::restore(loaded.checkpoint_seq, rows)?;
    for Row { seq, at, kind, body } in &loaded.tail {
        state.apply(&Recorded { seq: *seq, at: *at, event: Event::from_stored(kind, body)? });
    }
    Ok(state)
}

/// The records a checkpoint would store now.
pub fn changed_rows(state: &mut State) -> Vec<EntityRow> {
    let rows = state.take_changed_records().into_iter();
    rows.map(|row| EntityRow { kind: row.kind.to_owned(), id: row.id, body: row.body }).collect()
}
