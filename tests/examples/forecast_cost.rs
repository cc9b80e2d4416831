//! What a forecast costs: `cargo run --release -p yard-tests --example forecast_cost`.

#![expect(clippy::print_stdout, reason = "a bench prints its result")]

use std::time::{Duration, Instant};

use serde_json::json;
use yard_engine::dispatch::Category;
use yard_engine::forecast::{Change, Forecaster, Options, Scope};
use yard_engine::plan;
use yard_engine::{Asker, Command, Kitchen, Millis, State, Timestamp, Tx, WorkerExit};

fn main() {
    println!(
        "{:>7} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "beads", "samples", "model", "forecast", "expected", "what-if"
    );
    for beads in [500, 2_000, 10_000, 100_000] {
        let mut town = Town::new();
        town.fill(beads);
        let (state, now) = (&town.state, town.now);
        let (model, mut forecaster) = best(|| Forecaster::new(state, &Scope::Town, now));
        let whole = Options { most: usize::MAX, ..Options::default() };
        let expected = Options { samples: 0, ..whole };
        let samples = if beads > 10_000 { expected } else { whole };
        let (forecast, answer) = best(|| forecaster.forecast(&samples));
        let (alone, _) = best(|| forecaster.forecast(&expected));
        assert_eq!(answer.left, beads);
        let (fork, _) = best(|| state.what_if(&[Change::MaxPolecats(16)]));
        let _ = forecaster.finish_with(&yard_engine::capacity::Limit::Town, Some(16), &expected);
        println!(
            "{beads:>7} {:>9} {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
            answer.samples,
            millis(model),
            millis(forecast),
            millis(alone),
            millis(fork)
        );
    }
    println!("milliseconds; what-if is the fork alone");
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}

fn best<T>(mut work: impl FnMut() -> T) -> (Duration, T) {
    let mut best = Duration::MAX;
    let mut result = None;
    for _ in 0..5 {
        let (start, busy) = (Instant::now(), processor_time());
        result = Some(work());
        let used = processor_time().zip(busy).map(|(now, then)| now.saturating_sub(then));
        // The system counts in ticks, which are too coarse for what takes a moment.
        let used = used.filter(|used| *used > Duration::from_millis(10));
        best = best.min(used.unwrap_or(start.elapsed()));
    }
    (best, result.expect("it was done"))
}

/// What this thread has used of the processor, where the system tells: others may be at work beside it.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

struct Town {
    state: State,
    now: Timestamp,
}

impl Town {
    /// Five rigs, four of them small, that have run a dozen beads each.
    fn new() -> Self {
        let mut town = Self { state: State::default(), now: Timestamp::from_millis(1_700_000_000_000) };
        let mut settings = town.state.settings().clone();
        settings.max_polecats = 12;
        town.act(|tx| tx.settings_read(&settings));
        for rig in 0..5 {
            let cap = (rig > 0).then_some(2 + rig);
            let rig = json!({"name": format!("r{rig}"), "prefix": format!("r{rig}"), "path": ".", "max_polecats": cap});
            let rig = serde_json::from_value(rig).expect("a rig");
            town.does(&Command::RigAdd { rig });
        }
        for n in 0..60 {
            let id = format!("r{}-past{n}", n % 5);
            town.import(&[(id.clone(), Vec::new())]);
            town.sling(&[id]);
            let starts = town.act(|tx| tx.pass(plan::Scope::Everything, None)).starts;
            for start in &starts {
                town.act(|tx| tx.worker_running(&start.dispatch_id, None));
            }
            town.now = town.now.after(Millis::seconds(60 + n * 37 % 400).duration());
            for start in starts {
                town.act(|tx| tx.worker_ended(&start.dispatch_id, &exit()));
            }
        }
        town
    }

    /// Layers of beads, each with two or three blockers in the layer before.
    fn fill(&mut self, beads: usize) {
        let layer = (beads / 20).max(10);
        let id = |n: usize| format!("r{}-{n:06}", n % 5);
        let needs = |n: usize| {
            let before = n.checked_sub(layer);
            before.map(|on| [on, on.saturating_sub(7), on.saturating_sub(13)].map(id).to_vec())
        };
        let all: Vec<_> = (0..beads).map(|n| (id(n), needs(n).unwrap_or_default())).collect();
        self.import(&all);
        let ids: Vec<String> = all.into_iter().map(|(id, _)| id).collect();
        self.sling(&ids);
    }

    fn import(&mut self, beads: &[(String, Vec<String>)]) {
        let bead = |(id, needs): &(String, Vec<String>)| {
            let edges: Vec<_> =
                needs.iter().map(|on| json!({"depends_on_id": on, "type": "blocks"})).collect();
            json!({"id": id, "title": id, "dependencies": edges})
        };
        let beads = beads.iter().map(bead).collect();
        let beads = serde_json::from_value(beads).expect("beads");
        self.does(&Command::BeadImport { beads });
    }

    fn sling(&mut self, ids: &[String]) {
        let request = yard_engine::command::SlingRequest {
            ids: ids.to_vec(),
            no_convoy: true,
            ..yard_engine::command::SlingRequest::default()
        };
        self.does(&Command::Sling(Box::new(request)));
    }

    fn does(&mut self, command: &Command) {
        let kitchen = Kitchen::default();
        let asker = Asker { actor: "bench", kitchen: &kitchen };
        self.act(|tx| tx.decide(&asker, command)).expect("the command is accepted");
    }

    fn act<T>(&mut self, decide: impl FnOnce(&mut Tx<'_>) -> T) -> T {
        let mut tx = Tx::new(&mut self.state, self.now);
        let result = decide(&mut tx);
        tx.finish();
        result
    }
}

fn exit() -> WorkerExit {
    WorkerExit {
        code: Some(0),
        signal: None,
        step: None,
        stopped: false,
        awaits_close: false,
        active: None,
        resumes: false,
        worktree: None,
        category: Category::Crash,
        message: String::new(),
    }
}
