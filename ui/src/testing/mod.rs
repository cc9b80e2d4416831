//! A yard for tests: a real engine decides, and the console hears of it as it would of a real town.

pub(crate) mod apollo;
pub(crate) mod atelier;
pub(crate) mod cast;
pub(crate) mod picture;
pub(crate) mod scenes;
pub(crate) mod session;
pub(crate) mod story;

use std::path::PathBuf;
use std::sync::Arc;

use yard_engine::bead::{DepKind, Dependency};
use yard_engine::command::{NewBead, SlingRequest, WorkerSays};
use yard_engine::dispatch::Category;
use yard_engine::plan::Scope;
use yard_engine::rig::Rig;
use yard_engine::{
    Answer, Asker, BeadId, Command, DispatchId, Kitchen, Recorded, Refusal, Settings, State, Timestamp, Tx,
    WorkerExit,
};

use crate::console::Console;
use crate::look::Look;
use crate::msg::{Effect, Msg, News};
use crate::table::{Facts, Slack};
use crate::town::Town;
use crate::{prepare, update};

/// Nothing is forecast.
pub(crate) struct NoSlack;

impl Slack for NoSlack {
    fn slack(&self, _: &BeadId) -> Option<u64> {
        None
    }
}

/// 2026-11-16T14:00:00Z: every picture shows the same day.
pub(crate) const BEGINNING: i64 = 1_794_837_600_000;

/// A town with an engine of its own.
pub(crate) struct Yard {
    /// As the daemon has it.
    pub(crate) state: State,
    /// What time it is.
    pub(crate) now: Timestamp,
    /// Everything that happened.
    pub(crate) log: Vec<Arc<Recorded>>,
    town: Town,
}

impl Yard {
    /// A town in direct mode with one rig, `gt`.
    pub(crate) fn new() -> Self {
        Self::made_at(BEGINNING)
    }

    /// The same, made at another time.
    pub(crate) fn made_at(millis: i64) -> Self {
        let mut yard = Self {
            state: State::default(),
            now: Timestamp::from_millis(millis),
            log: Vec::new(),
            town: Town::unknown(PathBuf::from("/towns/gastown")),
        };
        yard.rig("gt", "gt", None);
        yard
    }

    /// The same with so many slots.
    pub(crate) fn with_cap(slots: i64) -> Self {
        let mut yard = Self::new();
        yard.configure(|settings| settings.max_polecats = slots);
        yard
    }

    /// Decides something.
    pub(crate) fn act<T>(&mut self, decide: impl FnOnce(&mut Tx<'_>) -> T) -> T {
        let mut tx = Tx::new(&mut self.state, self.now);
        let outcome = decide(&mut tx);
        let events: Vec<Arc<Recorded>> = tx.finish().into_iter().map(Arc::new).collect();
        self.state.take_changed_beads();
        self.log.extend(events.iter().cloned());
        self.town.hear(events);
        outcome
    }

    /// Carries a command out, and starts what it lets start.
    pub(crate) fn command(&mut self, command: &Command) -> Result<Answer, Refusal> {
        let kitchen = Kitchen::default();
        let asker = Asker { actor: "ann", kitchen: &kitchen };
        let answer = self.act(|tx| tx.decide(&asker, command));
        self.pass();
        answer
    }

    /// The same, when it must succeed.
    pub(crate) fn must(&mut self, command: &Command) {
        self.command(command).expect("the command is carried out");
    }

    /// One pass of the planner.
    pub(crate) fn pass(&mut self) {
        self.act(|tx| {
            tx.pass(Scope::Everything, None);
            tx.preempt();
        });
    }

    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut Settings)) {
        let mut settings = self.state.settings().clone();
        change(&mut settings);
        self.act(|tx| tx.settings_read(&settings));
    }

    pub(crate) fn rig(&mut self, name: &str, prefix: &str, cap: Option<u64>) {
        let rig: Rig = serde_json::from_value(serde_json::json!({
            "name": name, "prefix": prefix, "path": format!("/towns/gastown/{name}"), "max_polecats": cap,
        }))
        .expect("a rig");
        self.must(&Command::RigAdd { rig });
    }

    pub(crate) fn bead(&mut self, id: &str, title: &str, change: impl FnOnce(&mut NewBead)) {
        let mut bead = NewBead { id: Some(id.to_owned()), title: title.to_owned(), ..NewBead::default() };
        change(&mut bead);
        self.must(&Command::BeadAdd { bead: Box::new(bead) });
    }

    pub(crate) fn needs(&mut self, id: &str, on: &str) {
        self.must(&Command::DependencyAdd { id: id.to_owned(), on: on.to_owned(), kind: DepKind::Blocks });
    }

    pub(crate) fn sling(&mut self, id: &str) {
        self.must(&Command::Sling(Box::new(SlingRequest {
            ids: vec![id.to_owned()],
            ..SlingRequest::default()
        })));
    }

    /// Lets time pass.
    pub(crate) fn later(&mut self, seconds: i64) {
        self.now = Timestamp::from_millis(self.now.as_millis() + seconds * 1000);
        self.act(|tx| {
            tx.tick();
        });
        self.pass();
    }

    /// The live dispatch of a bead.
    pub(crate) fn live(&self, id: &str) -> DispatchId {
        let entry = self.state.bead(&bead(id)).expect("the bead");
        entry.work.live.clone().expect("it runs")
    }

    /// Its worker's first program runs.
    pub(crate) fn runs(&mut self, id: &str) {
        let dispatch = self.live(id);
        self.act(|tx| tx.worker_running(&dispatch, Some(4_711)));
    }

    /// Everything that was started runs.
    pub(crate) fn all_run(&mut self) {
        let starting = self.state.live_dispatches().filter(|dispatch| dispatch.running_at.is_none());
        for id in starting.map(|dispatch| dispatch.id.clone()).collect::<Vec<_>>() {
            self.act(|tx| tx.worker_running(&id, Some(4_711)));
        }
    }

    /// Its worker ends with this code; the planner goes on.
    pub(crate) fn exits(&mut self, id: &str, code: i32) {
        self.ends(id, code, Category::Crash, &format!("exit {code}"));
    }

    /// The same, when a failure is of another class and has words of its own.
    pub(crate) fn ends(&mut self, id: &str, code: i32, category: Category, message: &str) {
        let dispatch = self.live(id);
        let exit = WorkerExit {
            code: Some(code),
            signal: None,
            step: None,
            stopped: false,
            awaits_close: false,
            category,
            active: None,
            message: message.to_owned(),
            resumes: false,
            worktree: None,
        };
        self.act(|tx| tx.worker_ended(&dispatch, &exit));
        self.pass();
    }

    /// It cannot be started.
    pub(crate) fn start_fails(&mut self, id: &str, error: &str) {
        let dispatch = self.live(id);
        self.act(|tx| tx.worker_start_failed(&dispatch, error));
        self.pass();
    }

    /// Its worker says something.
    pub(crate) fn says(&mut self, id: &str, says: WorkerSays) {
        let dispatch = self.live(id).to_string();
        self.must(&Command::Worker { dispatch, says });
    }

    /// The town as the console has it.
    pub(crate) fn town(&mut self) -> &mut Town {
        &mut self.town
    }

    pub(crate) fn facts<'a>(&'a self, slack: &'a dyn Slack) -> Facts<'a> {
        Facts { state: &self.town.state, waves: &self.town.waves, slack }
    }

    /// A console on this town.
    pub(crate) fn console(&self, size: (u16, u16), theme: &str, ascii: bool) -> Console {
        let look = Look::fixed(theme, ascii).expect("a look");
        let town = Town::unknown(PathBuf::from("/towns/gastown"));
        let mut console = Console::new(town, look, self.now, size);
        update(&mut console, Msg::Town(News::State(Box::new(self.state.clone()))));
        update(&mut console, Msg::Town(News::Earlier(self.log.clone())));
        let live = News::Live { role: yard_client::ServerRole::Daemon, pid: 4_242 };
        update(&mut console, Msg::Town(live));
        let wanted = crate::forecasts::Wanted { now: self.now, ..crate::forecasts::Wanted::default() };
        let made = crate::forecasts::forecast(&self.state, &wanted);
        update(&mut console, Msg::Forecast(Arc::new(made)));
        prepare(&mut console);
        console
    }
}

pub(crate) fn bead(id: &str) -> BeadId {
    id.parse().expect("an id")
}

/// Presses keys, by name, one after the other; gives what the console wanted done.
pub(crate) fn press(console: &mut Console, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for name in keys.split_whitespace() {
        let key = crate::keys::key(name).expect("a key");
        effects.extend(update(console, Msg::Key(key)));
        effects.extend(prepare(console));
    }
    effects
}

/// Types a text, letter by letter.
pub(crate) fn typing(console: &mut Console, text: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for letter in text.chars() {
        let name = if letter == ' ' { "Space".to_owned() } else { letter.to_string() };
        effects.extend(update(console, Msg::Key(crate::keys::key(&name).expect("a letter"))));
    }
    effects.extend(prepare(console));
    effects
}

/// The commands among what the console wanted done, as a person would type them.
pub(crate) fn commands(effects: &[Effect]) -> Vec<String> {
    let lines = effects.iter().filter_map(|effect| match effect {
        Effect::Run { lines, .. } => Some(lines),
        _ => None,
    });
    lines.flatten().map(|line| line.join(" ")).collect()
}

/// The screen as text, line by line.
pub(crate) fn screen(console: &Console) -> String {
    let buffer = painted(console);
    let area = buffer.area;
    let mut out = String::new();
    for y in 0..area.height {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..area.width {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
            line.push_str(symbol);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The screen as a buffer.
pub(crate) fn painted(console: &Console) -> ratatui::buffer::Buffer {
    let area = ratatui::layout::Rect::new(0, 0, console.size.0, console.size.1);
    let mut buffer = ratatui::buffer::Buffer::empty(area);
    crate::render(console, &mut buffer);
    buffer
}

/// A dependency of a kind.
pub(crate) fn edge(on: &str, kind: DepKind) -> Dependency {
    Dependency::new(bead(on), kind)
}
