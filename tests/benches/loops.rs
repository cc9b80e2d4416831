//! The inner loops: what one event, one line, one file costs. `cargo bench -p yard-tests` takes a minute or two; figures
//! next to peers are the business of `tests/bench`.

#![expect(clippy::expect_used, reason = "a bench that cannot be set up has nothing to say")]

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use divan::{Bencher, black_box};
use yard_client::views;
use yard_engine::command::AddItem;
use yard_engine::plan::Scope;
use yard_engine::{Command, Event, Recorded, RigName, WorkerExit};
use yard_sources::Record;
use yard_tests::world::{World, graph, name, row, sling};
use yard_ui::filter::Filter;
use yard_ui::town::Waves;

/// How many beads a town has.
const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// How many run at a time.
const SLOTS: i64 = 50;

fn main() {
    divan::main();
}

/// One town of each size, shared by all loops: making a large one takes seconds.
static TOWNS: LazyLock<Mutex<BTreeMap<usize, World>>> = LazyLock::new(Mutex::default);

/// A town in which so many beads are queued, and as many run as may.
struct Town(MutexGuard<'static, BTreeMap<usize, World>>, usize);

impl Town {
    fn of(beads: usize) -> Self {
        let mut towns = TOWNS.lock().unwrap_or_else(PoisonError::into_inner);
        towns.entry(beads).or_insert_with(|| {
            let mut world = World::new().expect("a town");
            world.slots(SLOTS).expect("slots");
            for command in [Command::BeadImport { beads: graph(beads) }, sling(beads)] {
                let events = world.command(&command).expect("accepted");
                world.store(&events).expect("stored");
            }
            world.pass().expect("a pass");
            world
        });
        Self(towns, beads)
    }

    fn world(&mut self) -> &mut World {
        self.0.get_mut(&self.1).expect("it was made")
    }
}

mod engine {
    use super::{AddItem, Bencher, Command, SIZES, Scope, Town, WorkerExit, name, views};

    /// A worker ends, its dependents are freed, the next starts and runs.
    #[divan::bench(args = SIZES, sample_count = 20, sample_size = 10)]
    fn end_and_next_start(bencher: Bencher<'_, '_>, beads: usize) {
        let mut town = Town::of(beads);
        let (world, exit) = (town.world(), WorkerExit::succeeded());
        bencher.bench_local(|| {
            let id = world.running().expect("something runs");
            world.act(|tx| tx.worker_ended(&id, &exit));
            world.act(|tx| tx.pass(Scope::Everything, None));
            let started = world.state.live_dispatches().last().expect("something starts").id.clone();
            world.act(|tx| tx.worker_running(&started, Some(1)))
        });
    }

    #[divan::bench(args = SIZES, sample_count = 50, sample_size = 20)]
    fn pass_without_room(bencher: Bencher<'_, '_>, beads: usize) {
        let mut town = Town::of(beads);
        let world = town.world();
        bencher.bench_local(|| world.act(|tx| tx.pass(Scope::Everything, None)));
    }

    #[divan::bench(args = SIZES, sample_count = 20, sample_size = 10)]
    fn add_one(bencher: Bencher<'_, '_>, beads: usize) {
        let mut town = Town::of(beads);
        let world = town.world();
        let mut made = 0;
        bencher.bench_local(|| {
            made += 1;
            let id = Some(format!("gt-add{made}-{}", world.state.seq().0));
            let item = AddItem { argv: vec!["/bin/true".to_owned()], id, ..AddItem::default() };
            world.command(&Command::Add { items: vec![item] }).expect("accepted")
        });
    }

    #[divan::bench(args = SIZES, sample_count = 20, sample_size = 1)]
    fn close_by_hand(bencher: Bencher<'_, '_>, beads: usize) {
        let mut town = Town::of(beads);
        let world = town.world();
        let mut next = beads / 2;
        bencher.bench_local(|| {
            next += 1;
            world.command(&Command::BeadClose { ids: vec![name(next)], reason: None }).expect("accepted")
        });
    }

    #[divan::bench(args = SIZES, sample_count = 50, sample_size = 20)]
    fn why(bencher: Bencher<'_, '_>, beads: usize) {
        let mut town = Town::of(beads);
        let state = &town.world().state;
        bencher.bench_local(|| {
            let id = state.find_bead(&name(beads - 1)).expect("known");
            views::why(state, &id, &[])
        });
    }

    #[divan::bench(args = SIZES, sample_count = 10, sample_size = 1)]
    fn status_summary(bencher: Bencher<'_, '_>, beads: usize) {
        let mut town = Town::of(beads);
        let state = &town.world().state;
        bencher.bench_local(|| serde_json::to_string(&views::scheduler_status(state, true)).expect("JSON"));
    }
}

/// The events of a bead's life, as they stand in the log.
fn life() -> Vec<Recorded> {
    let mut world = World::new().expect("a town");
    world.slots(1).expect("slots");
    let item = AddItem { argv: vec!["/bin/true".to_owned()], ..AddItem::default() };
    let mut events = world.command(&Command::Add { items: vec![item] }).expect("accepted");
    events.extend(world.act(|tx| tx.pass(Scope::Everything, None)).1);
    let id = world.running().expect("it starts");
    events.extend(world.act(|tx| tx.worker_running(&id, Some(1))).1);
    events.extend(world.act(|tx| tx.worker_ended(&id, &WorkerExit::succeeded())).1);
    events
}

mod events {
    use super::{Bencher, Event, black_box, life, row};

    /// All events of one bead.
    #[divan::bench]
    fn encode_a_life(bencher: Bencher<'_, '_>) {
        let events = life();
        bencher.bench_local(|| events.iter().map(row).collect::<Vec<_>>());
    }

    #[divan::bench]
    fn decode_a_life(bencher: Bencher<'_, '_>) {
        let rows: Vec<_> = life().iter().map(row).collect();
        bencher.bench_local(|| {
            for row in &rows {
                black_box(Event::from_stored(&row.kind, &row.body).expect("our own"));
            }
        });
    }
}

mod journal {
    use super::{Bencher, Recorded, World, life, row};

    /// So many events in one durable transaction.
    #[divan::bench(args = [1, 10, 100], max_time = 2)]
    fn append(bencher: Bencher<'_, '_>, events: usize) {
        let mut world = World::new().expect("a town");
        let sample = life().into_iter().map(|recorded| recorded.event).collect::<Vec<_>>();
        bencher.bench_local(|| {
            let mut seq = world.journal.last_seq();
            let rows = sample.iter().cycle().take(events).map(|event| {
                seq = seq.next();
                row(&Recorded { seq, at: world.now, event: event.clone() })
            });
            let rows: Vec<_> = rows.collect();
            world.journal.append(&rows).expect("stored");
        });
    }
}

mod claims {
    use std::fs::{self, OpenOptions};
    use std::io::Write as _;

    use super::Bencher;

    /// What daemon and shim do to a dispatch's claim, call by call: created, opened, locked, two lines, removed.
    #[divan::bench]
    fn cycle(bencher: Bencher<'_, '_>) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("gt-1@1.claim");
        bencher.bench_local(|| {
            let created =
                OpenOptions::new().read(true).append(true).create_new(true).open(&path).expect("created");
            let mut shim = OpenOptions::new().read(true).append(true).open(&path).expect("opened");
            shim.try_lock().expect("locked");
            let about = shim.metadata().expect("about it");
            assert_eq!(about.len(), 0);
            shim.write_all(b"claimed 1 2026-11-18T00:00:00Z 0123456789abcdef\n").expect("written");
            shim.write_all(b"ended 0 2026-11-18T00:00:00Z 0123456789abcdef\n").expect("written");
            drop(shim);
            fs::remove_file(&path).expect("removed");
            created
        });
    }
}

mod lines {
    use super::{AddItem, Bencher, Record, RigName, black_box};

    const LINE: &str = r#"{"id":"gt-abc123","title":"piece of work number 123","status":"open","priority":2,"issue_type":"task","created_at":"2026-11-14T17:00:00.265560Z","created_by":"gen","updated_at":"2026-11-14T17:00:00.265560Z","source_repo":".","compaction_level":0,"original_size":0,"dependencies":[{"issue_id":"gt-abc123","depends_on_id":"gt-abc120","type":"blocks"},{"issue_id":"gt-abc123","depends_on_id":"gt-abc119","type":"blocks"},{"issue_id":"gt-abc123","depends_on_id":"gt-abc118","type":"blocks"}]}"#;

    /// A tracker's line, to a bead.
    #[divan::bench]
    fn workspace(bencher: Bencher<'_, '_>) {
        let rig = RigName::parse("gt").expect("a name");
        bencher.bench_local(|| {
            let record = Record::parse(LINE.as_bytes()).expect("JSON").expect("a bead");
            record.into_bead(rig.clone())
        });
    }

    /// A line of `ym add --file`.
    #[divan::bench]
    fn add_file(bencher: Bencher<'_, '_>) {
        let line = r#"{"id":"gt-123","argv":["/bin/true","--flag","value"],"after":["gt-122","gt-121"]}"#;
        bencher.bench_local(|| serde_json::from_str::<AddItem>(black_box(line)).expect("an item"));
    }
}

mod filter {
    use super::{Bencher, Filter, Town, Waves, black_box};

    const TEXT: &str = "work state:blocked !label:later prio:0..2 ~number";

    #[divan::bench]
    fn parse() -> Filter {
        Filter::parse(black_box(TEXT)).expect("a filter")
    }

    /// A thousand beads.
    #[divan::bench]
    fn thousand_beads(bencher: Bencher<'_, '_>) {
        let mut town = Town::of(1_000);
        let state = &town.world().state;
        let (filter, waves) = (Filter::parse(TEXT).expect("a filter"), Waves::of_town(state));
        let ids: Vec<_> = state.beads().map(|entry| entry.bead.id.clone()).collect();
        bencher.bench_local(|| {
            ids.iter().filter(|id| filter.lets_through(state, &waves, id, state.standing(id))).count()
        });
    }
}
