//! The console's budgets: from a key to the bytes of the frame that shows it, with 100,000 beads and 1,000 events a second
//! arriving; what a frame costs; and how long a filter or another order takes.

use std::io::{Sink, sink};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use yard_engine::bead::{DepKind, Dependency};
use yard_engine::command::{NewBead, NewConvoy, SlingRequest};
use yard_engine::plan::Scope;
use yard_engine::rig::Rig;
use yard_engine::{Asker, BeadId, Command, DispatchId, Kitchen, Recorded, State, Timestamp, Tx, WorkerExit};
use yard_ui::console::Console;
use yard_ui::forecasts::{Wanted, forecast};
use yard_ui::look::Look;
use yard_ui::msg::{Msg, News};
use yard_ui::town::Town;
use yard_ui::{prepare, render, update};

use crate::Fallible;
use crate::table::{Table, say};
use crate::work::Work;

/// Beads, as the budget names them.
pub(crate) const BEADS: usize = 100_000;
/// Events a second, as the budget names them.
const RATE: usize = 1_000;
/// Frames a second.
const FRAMES: usize = 30;
/// How many seconds of that are played.
const SECONDS: usize = 20;
/// Live workers.
const SLOTS: i64 = 500;
/// The budget: from a key to its frame, at the 99th percentile.
const KEY_BAR: Duration = Duration::from_millis(50);
/// The budget: one frame.
const FRAME_BAR: Duration = Duration::from_millis(2);

/// Plays a busy town and measures what the user waits for.
pub(crate) fn run(beads: usize) -> Fallible<usize> {
    let mut busy = Busy::new(beads)?;
    let mut screen = Screen::new(200, 60)?;
    let loaded = Work::now();
    let look = Look::fixed("terminal", false)?;
    let mut console = Console::new(Town::unknown(PathBuf::from("/towns/large")), look, busy.now, (200, 60));
    update(&mut console, Msg::Town(News::State(Box::new(busy.state.clone()))));
    screen.draw(&mut console)?;
    let loaded = loaded.elapsed();
    // What the forecaster's thread would send.
    let wanted = Wanted { now: busy.now, ..Wanted::default() };
    update(&mut console, Msg::Forecast(Arc::new(forecast(&busy.state, &wanted))));
    let keys =
        ["j", "j", "k", "PgDn", "G", "g", "3", "1", "2", "4", "5", "6", "1", "w", "Esc", "?", "Esc", "Space"];
    let mut waits = Vec::new();
    let mut frames = Vec::new();
    for frame in 0..SECONDS * FRAMES {
        let events = busy.events(RATE / FRAMES);
        let key = keys[frame % keys.len()];
        let pressed = Work::now();
        update(&mut console, Msg::Town(News::Events(events)));
        update(&mut console, Msg::Tick(busy.now));
        if let Some(key) = yard_ui::keys::key(key) {
            update(&mut console, Msg::Key(key));
        }
        prepare(&mut console);
        let drawing = Work::now();
        screen.draw(&mut console)?;
        frames.push(drawing.elapsed());
        waits.push(pressed.elapsed());
    }
    let mut table = Table::new(
        "The console, 200x60, 1,000 events/s arriving: processor time",
        &["what", "median", "p99", "worst", "bar"],
    );
    let mut missed = 0;
    missed += row(&mut table, "key to frame", &mut waits, Some(KEY_BAR));
    missed += row(&mut table, "one frame", &mut frames, Some(FRAME_BAR));
    let mut typed =
        timed(&mut console, &mut screen, &["/", "s", "t", "a", "t", "e", ":", "r", "u", "n", "Enter"])?;
    missed += row(&mut table, "a letter of a filter", &mut typed, Some(KEY_BAR));
    let mut sorted = timed(&mut console, &mut screen, &["Esc", "o", "t", "o", "p", "o", "s"])?;
    row(&mut table, "another order", &mut sorted, None);
    table.print();
    say(&format!(
        "\n{beads} beads; taking the state over and drawing it: {:.0} ms",
        loaded.as_secs_f64() * 1e3
    ));
    Ok(missed)
}

/// From each key to its frame.
fn timed(console: &mut Console, screen: &mut Screen, keys: &[&str]) -> Fallible<Vec<Duration>> {
    let mut spans = Vec::new();
    for key in keys {
        let pressed = Work::now();
        if let Some(key) = yard_ui::keys::key(key) {
            update(console, Msg::Key(key));
        }
        prepare(console);
        screen.draw(console)?;
        spans.push(pressed.elapsed());
    }
    Ok(spans)
}

fn row(table: &mut Table, what: &str, spans: &mut [Duration], bar: Option<Duration>) -> usize {
    spans.sort();
    let at = |share: usize| spans[(spans.len() * share / 100).min(spans.len() - 1)];
    let ms = |span: Duration| format!("{:.2} ms", span.as_secs_f64() * 1e3);
    let met = bar.is_none_or(|bar| at(99) <= bar);
    let verdict =
        bar.map_or_else(String::new, |bar| format!("{} {}", ms(bar), if met { "met" } else { "MISSED" }));
    table.row([what.to_owned(), ms(at(50)), ms(at(99)), ms(at(100)), verdict]);
    usize::from(!met)
}

/// A screen whose bytes go nowhere.
struct Screen(Terminal<CrosstermBackend<Sink>>);

impl Screen {
    fn new(width: u16, height: u16) -> Fallible<Self> {
        let viewport = Viewport::Fixed(Rect::new(0, 0, width, height));
        Ok(Self(Terminal::with_options(CrosstermBackend::new(sink()), TerminalOptions { viewport })?))
    }

    fn draw(&mut self, console: &mut Console) -> Fallible<()> {
        self.0.draw(|frame| render(console, frame.buffer_mut()))?;
        Ok(())
    }
}

/// A town in which work ends and starts all the time.
struct Busy {
    state: State,
    now: Timestamp,
    pending: Vec<Arc<Recorded>>,
}

impl Busy {
    fn new(beads: usize) -> Fallible<Self> {
        let mut busy = Self {
            state: State::default(),
            now: Timestamp::from_millis(1_794_837_600_000),
            pending: Vec::new(),
        };
        let rig: Rig =
            serde_json::from_value(serde_json::json!({"name": "gt", "prefix": "gt", "path": "/gt"}))?;
        busy.command(&Command::RigAdd { rig })?;
        let bead = |number: usize| NewBead {
            id: Some(format!("gt-{number}")),
            title: format!("piece of work number {number}"),
            priority: Some((number % 5) as u8),
            dependencies: blockers(number),
            ..NewBead::default()
        };
        busy.command(&Command::BeadImport { beads: (0..beads).map(bead).collect() })?;
        let mut settings = busy.state.settings().clone();
        settings.max_polecats = SLOTS;
        busy.act(|tx| tx.settings_read(&settings));
        let ids = (0..beads / 2).map(|number| format!("gt-{number}")).collect();
        busy.command(&Command::Sling(Box::new(SlingRequest {
            ids,
            no_convoy: true,
            ..SlingRequest::default()
        })))?;
        let beads = (0..beads).map(|number| format!("gt-{number}")).collect();
        let convoy = NewConvoy { title: Some("all".to_owned()), beads, owned: true, ..NewConvoy::default() };
        busy.command(&Command::ConvoyCreate(Box::new(convoy)))?;
        busy.pass();
        busy.pending.clear();
        Ok(busy)
    }

    fn act<T>(&mut self, decide: impl FnOnce(&mut Tx<'_>) -> T) -> T {
        let mut tx = Tx::new(&mut self.state, self.now);
        let outcome = decide(&mut tx);
        self.pending.extend(tx.finish().into_iter().map(Arc::new));
        self.state.take_changed_beads();
        outcome
    }

    fn command(&mut self, command: &Command) -> Fallible<()> {
        let kitchen = Kitchen::default();
        let asker = Asker { actor: "bench", kitchen: &kitchen };
        self.act(|tx| tx.decide(&asker, command))?;
        Ok(())
    }

    fn pass(&mut self) {
        self.act(|tx| {
            tx.pass(Scope::Everything, None);
        });
        let starting = self.state.live_dispatches().filter(|dispatch| dispatch.running_at.is_none());
        for id in starting.map(|dispatch| dispatch.id.clone()).collect::<Vec<_>>() {
            self.act(|tx| tx.worker_running(&id, Some(1)));
        }
    }

    /// At least so many new events: workers end, others start.
    fn events(&mut self, wanted: usize) -> Vec<Arc<Recorded>> {
        self.now = Timestamp::from_millis(self.now.as_millis() + 33);
        while self.pending.len() < wanted {
            let next: Option<DispatchId> =
                self.state.live_dispatches().next().map(|dispatch| dispatch.id.clone());
            let Some(id) = next else { break };
            let exit = WorkerExit::succeeded();
            self.act(|tx| tx.worker_ended(&id, &exit));
            self.pass();
        }
        let rest = self.pending.split_off(wanted.min(self.pending.len()));
        std::mem::replace(&mut self.pending, rest)
    }
}

/// Three of the beads before it, so that closing one lets others go.
fn blockers(number: usize) -> Vec<Dependency> {
    let layer = 1_000;
    let on = (1..=3).filter_map(|step| number.checked_sub(layer + step * 7));
    let ids = on.filter_map(|on| format!("gt-{on}").parse::<BeadId>().ok());
    ids.map(|on| Dependency::new(on, DepKind::Blocks)).collect()
}
