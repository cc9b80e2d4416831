//! The operations, each in the town that the ones before it have left.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use yard_client::views;
use yard_engine::command::{AddItem, NewConvoy};
use yard_engine::plan::Scope;
use yard_engine::stage::StageInput;
use yard_engine::{Command, Event, Recorded, Seq, WorkerExit};
use yard_journal::{Journal, Reader};
use yard_tests::world::{World, changed_rows, fold, graph, name, sling};
use yard_ui::console::Console;
use yard_ui::look::Look;
use yard_ui::msg::{Msg, News};

use super::curve::Per;
use crate::Fallible;
use crate::work::Work;

/// How often what costs one event is done.
const TIMES: u32 = 200;
/// How often what may cost more is done.
const FEW_TIMES: u32 = 5;
/// How many run at a time.
const SLOTS: i64 = 50;
/// Beads the safety scan looks at in one turn, as in the daemon.
const SCAN_SLICE: usize = 500;

/// What was measured.
pub(super) struct Sample {
    pub(super) operation: &'static str,
    pub(super) per: Per,
    pub(super) span: Duration,
}

/// The samples as they come.
#[derive(Default)]
struct Samples(Vec<Sample>);

impl Samples {
    /// Something about all beads.
    fn whole<T>(&mut self, operation: &'static str, work: impl FnOnce() -> Fallible<T>) -> Fallible<T> {
        let began = Work::now();
        let done = work()?;
        self.0.push(Sample { operation, per: Per::Whole, span: began.elapsed() });
        Ok(done)
    }

    /// Something about one event, done several times.
    fn event(
        &mut self,
        operation: &'static str,
        times: u32,
        mut work: impl FnMut(usize) -> Fallible<()>,
    ) -> Fallible<()> {
        let began = Work::now();
        for time in 0..times {
            work(time as usize)?;
        }
        self.0.push(Sample { operation, per: Per::Event, span: began.elapsed() / times });
        Ok(())
    }
}

/// Every operation, with so many beads.
pub(super) fn measure(beads: usize) -> Fallible<Vec<Sample>> {
    let mut samples = Samples::default();
    added(&mut samples, beads)?;
    let mut world = World::new()?;
    taken_in(&mut samples, &mut world, beads)?;
    worked(&mut samples, &mut world, beads)?;
    asked(&mut samples, &world, beads)?;
    kept(&mut samples, world)?;
    Ok(samples.0)
}

/// `add --file`: decided, and stored.
fn added(samples: &mut Samples, beads: usize) -> Fallible<()> {
    let mut world = World::new()?;
    let item = |number| AddItem {
        argv: vec!["/bin/true".to_owned()],
        id: Some(name(number)),
        after: number.checked_sub(100).map(name).into_iter().collect(),
        ..AddItem::default()
    };
    let command = Command::Add { items: (0..beads).map(item).collect() };
    let events = samples.whole("add --file: decide", || world.command(&command))?;
    samples.whole("add --file: encode and store", || world.store(&events))
}

/// Import, sling, stage.
fn taken_in(samples: &mut Samples, world: &mut World, beads: usize) -> Fallible<()> {
    world.slots(SLOTS)?;
    let import = Command::BeadImport { beads: graph(beads) };
    let events = samples.whole("import: decide", || world.command(&import))?;
    world.store(&events)?;
    drop((events, import));
    samples.whole("stage", || {
        let all = world.state.beads().map(|entry| entry.bead.id.clone()).collect();
        black_box(world.state.stage_plan(&StageInput::Tasks(all)));
        Ok(())
    })?;
    let all = sling(beads);
    let events = samples.whole("sling all", || world.command(&all))?;
    world.store(&events)?;
    let convoy = NewConvoy {
        title: Some("all".to_owned()),
        beads: (0..beads).map(name).collect(),
        owned: true,
        ..NewConvoy::default()
    };
    let convoy = Command::ConvoyCreate(Box::new(convoy));
    let events = samples.whole("convoy create", || world.command(&convoy))?;
    world.store(&events)
}

/// What happens all the time while a long queue waits.
fn worked(samples: &mut Samples, world: &mut World, beads: usize) -> Fallible<()> {
    world.pass()?;
    samples.event("plan pass without room", TIMES, |_| {
        world.act(|tx| black_box(tx.pass(Scope::Everything, None)));
        Ok(())
    })?;
    samples.event("turn without news (tick, next timer)", TIMES, |_| {
        world.act(|tx| {
            tx.tick();
        });
        black_box(world.state.next_due());
        Ok(())
    })?;
    let exit = WorkerExit::succeeded();
    let mut events: Vec<Recorded> = Vec::new();
    samples.event("worker ends, dependents, next start", TIMES, |_| {
        let id = world.running()?;
        events.extend(world.act(|tx| tx.worker_ended(&id, &exit)).1);
        events.extend(world.act(|tx| tx.pass(Scope::Everything, None)).1);
        let started = world.state.live_dispatches().last().ok_or("nothing starts")?.id.clone();
        events.extend(world.act(|tx| tx.worker_running(&started, Some(1))).1);
        Ok(())
    })?;
    world.store(&events)?;
    events.clear();
    samples.event("one bead added and queued", TIMES, |time| {
        let items = vec![AddItem {
            argv: vec!["/bin/true".to_owned()],
            id: Some(format!("gt-new{time}")),
            ..AddItem::default()
        }];
        events.extend(world.command(&Command::Add { items })?);
        Ok(())
    })?;
    samples.event("store: a transaction of ten events", TIMES / 10, |time| {
        let at = time * 10;
        world.store(&events[at..at + 10])
    })?;
    world.store(&events[(TIMES / 10) as usize * 10..])?;
    let mut from = None;
    samples.event("a slice of the safety scan", TIMES / 10, |_| {
        from = world.act(|tx| tx.scan(from.as_ref(), SCAN_SLICE)).0;
        Ok(())
    })?;
    samples.event("priority of a queued bead", TIMES, |time| {
        let id = name(beads - 1 - time);
        let events = world.command(&Command::Priority { id, priority: 70 })?;
        world.store(&events)
    })?;
    samples.event("close by hand, with dependents", TIMES / 10, |time| {
        let ids = vec![name(beads / 2 + time)];
        let events = world.command(&Command::BeadClose { ids, reason: None })?;
        world.store(&events)
    })
}

/// What people ask.
fn asked(samples: &mut Samples, world: &World, beads: usize) -> Fallible<()> {
    let state = &world.state;
    samples.event("scheduler status, text", FEW_TIMES, |_| {
        black_box(serde_json::to_string(&views::scheduler_status(state, true))?);
        Ok(())
    })?;
    samples.whole("scheduler status --json", || {
        Ok(black_box(serde_json::to_string(&views::scheduler_status(state, false))?).len())
    })?;
    samples.event("find a bead by its id", TIMES, |time| {
        black_box(state.find_bead(&name(time * 3)))?;
        Ok(())
    })?;
    samples.event("why", TIMES, |time| {
        let id = state.find_bead(&name(beads - 1 - time))?;
        black_box(views::why(state, &id, &[]));
        Ok(())
    })?;
    let reader = Reader::open(&world.dir.path().join("journal.db"))?;
    samples.event("why: the history in the journal", TIMES, |time| {
        let id = state.find_bead(&name(time))?;
        let history = &state.bead(&id).ok_or("the bead is known")?.work.history;
        black_box(reader.events_at(&history.all())?);
        Ok(())
    })?;
    samples.event("status, text", FEW_TIMES, |_| {
        let daemon =
            views::DaemonView { running: true, pid: Some(1), http: None, tls: false, silent_pid: None };
        black_box(serde_json::to_string(&views::status(state, true, Vec::new(), daemon))?);
        Ok(())
    })?;
    samples.event("convoy list", FEW_TIMES, |_| {
        black_box(views::convoys(state, false));
        Ok(())
    })?;
    samples.event("metrics", FEW_TIMES, |_| {
        black_box(views::metrics(state, true));
        Ok(())
    })?;
    samples.whole("forecast", || {
        black_box(views::forecast(state, None, None, world.now, true));
        Ok(())
    })
}

/// What is stored, and read again.
fn kept(samples: &mut Samples, mut world: World) -> Fallible<()> {
    let (mut rows, seq) = (Vec::new(), world.state.seq());
    samples.whole("checkpoint of everything", || {
        rows = changed_rows(&mut world.state);
        Ok(world.journal.checkpoint(seq, &rows)?)
    })?;
    let exit = WorkerExit::succeeded();
    samples.event("checkpoint after one more end", TIMES / 10, |_| {
        let id = world.running()?;
        let ((), events) = world.act(|tx| tx.worker_ended(&id, &exit));
        world.store(&events)?;
        world.pass()?;
        let rows = changed_rows(&mut world.state);
        Ok(world.journal.checkpoint(world.state.seq(), &rows)?)
    })?;
    let path = world.dir.path().join("journal.db");
    let World { state, journal, now, dir } = world;
    drop((state, journal));
    let state =
        samples.whole("restart: read and fold the journal", || fold(&Journal::open(&path)?.load()?))?;
    decoded(samples, &path)?;
    samples.whole("console attaches and draws", || {
        let town = yard_ui::town::Town::unknown(PathBuf::from("/town"));
        let mut console = Console::new(town, Look::fixed("terminal", false)?, now, (200, 60));
        yard_ui::update(&mut console, Msg::Town(News::State(Box::new(state))));
        yard_ui::prepare(&mut console);
        let mut buffer = ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 200, 60));
        yard_ui::render(&console, &mut buffer);
        black_box(buffer);
        Ok(())
    })?;
    drop(dir);
    Ok(())
}

/// Every event of the log, read back.
fn decoded(samples: &mut Samples, path: &std::path::Path) -> Fallible<()> {
    let reader = Reader::open(path)?;
    let query = yard_journal::EventQuery { since: Some(Seq(0)), ..yard_journal::EventQuery::default() };
    let rows = reader.events(&query)?;
    samples.whole("events read from the log decoded", || {
        for row in &rows {
            black_box(Event::from_stored(&row.kind, &row.body)?);
        }
        Ok(())
    })
}
