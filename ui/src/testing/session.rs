//! A console whose wishes come true: what it wants done is done by the real engine, at once. For pictures, recordings
//! and tests of whole sessions.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use yard_client::views::{StageDocument, StageView};
use yard_engine::command::{ClaimEnd, SlingRequest};
use yard_engine::{Answer, BeadId, Command, Settings};

use super::{Yard, painted, screen};
use crate::console::Console;
use crate::forecasts::forecast;
use crate::layers::LogPane;
use crate::msg::{Effect, LogLine, LogNews, Msg, News, Ran};
use crate::{prepare, update};

/// A console on a yard.
pub(crate) struct Session {
    pub(crate) yard: Yard,
    pub(crate) console: Console,
    heard: usize,
    /// It hears of so many events and no more.
    until: usize,
}

impl Session {
    pub(crate) fn on(yard: Yard, size: (u16, u16), theme: &str, ascii: bool) -> Self {
        let mut console = yard.console(size, theme, ascii);
        // So that the first frame has the forecast of the convoy at hand, as a console has after a moment.
        let wanted = crate::forecasts::Wanted {
            now: yard.now,
            convoys: console.convoy_at_hand().into_iter().chain(console.main_convoy()).collect(),
            ..Default::default()
        };
        update(&mut console, Msg::Forecast(Arc::new(forecast(&yard.state, &wanted))));
        console.log.bead = None;
        let heard = yard.log.len();
        let mut session = Self { yard, console, heard, until: usize::MAX };
        session.settle(Vec::new());
        session
    }

    /// A console that came to the town when so many events had happened.
    pub(crate) fn from_the_past(yard: Yard, events: usize, size: (u16, u16)) -> Self {
        let mut state = yard_engine::State::default();
        for event in &yard.log[..events] {
            state.apply(event);
        }
        let mut console = yard.console(size, "terminal", false);
        // Nothing of what it would have known at the end.
        (console.now, console.forecasts, console.log) = (state.clock(), Arc::default(), LogPane::default());
        let effects = update(&mut console, Msg::Town(News::State(Box::new(state))));
        let mut session = Self { yard, console, heard: events, until: events };
        session.settle(effects);
        session
    }

    /// Lets it hear of one more event; gives its time, or none if that was all.
    pub(crate) fn one_more(&mut self) -> Option<yard_engine::Timestamp> {
        let next = self.yard.log.get(self.heard)?.at;
        self.until = self.heard + 1;
        self.console.now = next;
        self.settle(Vec::new());
        if let Some(bead) = self.console.log.bead.clone() {
            let lines = self.written(&bead, &self.console.log.attempts);
            update(&mut self.console, Msg::Log(LogNews { bead, fresh: true, lines }));
        }
        Some(next)
    }

    /// From now on it hears of everything.
    pub(crate) fn catch_up(&mut self) {
        self.until = usize::MAX;
        self.tick();
    }

    /// Presses keys, by name.
    pub(crate) fn press(&mut self, keys: &str) -> &mut Self {
        for name in keys.split_whitespace() {
            let key = crate::keys::key(name).expect("a key");
            let effects = update(&mut self.console, Msg::Key(key));
            self.settle(effects);
        }
        self
    }

    /// Types a text.
    pub(crate) fn typing(&mut self, text: &str) -> &mut Self {
        for letter in text.chars() {
            let name = if letter == ' ' { "Space".to_owned() } else { letter.to_string() };
            self.press(&name);
        }
        self
    }

    /// Puts the cursor on a bead of the table.
    pub(crate) fn select(&mut self, id: &str) -> &mut Self {
        let wanted = super::bead(id);
        let row = self.console.table.ids().position(|known| *known == wanted).expect("the bead has a row");
        self.console.table.move_to(row);
        self.settle(Vec::new());
        self
    }

    /// The screen as text.
    pub(crate) fn screen(&self) -> String {
        screen(&self.console)
    }

    /// The screen.
    pub(crate) fn painted(&self) -> Buffer {
        painted(&self.console)
    }

    /// Time passed: the console hears of it, and of what happened.
    pub(crate) fn tick(&mut self) -> &mut Self {
        let effects = update(&mut self.console, Msg::Tick(self.yard.now));
        self.settle(effects);
        self
    }

    /// Does what is wanted until nothing more is.
    fn settle(&mut self, effects: Vec<Effect>) {
        let mut pending = effects;
        loop {
            let known = self.yard.log.len().min(self.until);
            if self.heard < known {
                let events = self.yard.log[self.heard..known].to_vec();
                self.heard = known;
                pending.extend(update(&mut self.console, Msg::Town(News::Events(events))));
            }
            pending.extend(prepare(&mut self.console));
            if pending.is_empty() {
                return;
            }
            for effect in std::mem::take(&mut pending) {
                if let Some(answer) = self.answer(effect) {
                    pending.extend(update(&mut self.console, answer));
                }
            }
        }
    }

    fn answer(&mut self, effect: Effect) -> Option<Msg> {
        match effect {
            Effect::Run { lines, show } => {
                let lines = lines.into_iter().map(|argv| self.run(argv)).collect();
                Some(Msg::Ran { lines, show })
            }
            Effect::Stage { targets, .. } => Some(Msg::Staged(self.stage(targets))),
            Effect::FollowLog { bead, attempts } => {
                let lines = self.written(&bead, &attempts);
                Some(Msg::Log(LogNews { bead, fresh: true, lines }))
            }
            Effect::Forecast(wanted) => {
                // Of what the console knows, which may be the past.
                Some(Msg::Forecast(Arc::new(forecast(&self.console.town.state, &wanted))))
            }
            Effect::ReadHistory => Some(Msg::History(Box::default(), self.yard.log.clone())),
            Effect::Copy { what, .. } => Some(Msg::Copied(Ok(format!("copied {what}")))),
            Effect::Mouse(_)
            | Effect::Bell
            | Effect::Suspend
            | Effect::Redraw
            | Effect::Outside { .. }
            | Effect::Quit(_)
            | Effect::Enter(_) => None,
        }
    }

    /// What the workers of a bead have written by now; lines that begin with a time come at that time.
    fn written(&self, bead: &BeadId, attempts: &[String]) -> Vec<LogLine> {
        let now = crate::text::Zone::Utc.clock(self.console.now);
        let is_time =
            |text: &str| text.as_bytes().get(2) == Some(&b':') && text.as_bytes().get(5) == Some(&b':');
        let mut lines = super::scenes::log_of(bead.as_str(), attempts);
        lines.retain(|line| match line {
            LogLine::Attempt(_) => true,
            LogLine::Text(text) => !is_time(text) || text.as_str() <= now.as_str() || text.starts_with(&now),
        });
        lines
    }

    fn stage(&mut self, targets: Vec<String>) -> Result<Box<StageView>, String> {
        let command = Command::ConvoyStage { targets, title: None, launch: false };
        match self.yard.command(&command) {
            Ok(Answer::Staged { convoy_id, restaged, plan, .. }) => {
                let document = StageDocument {
                    state: &self.yard.state,
                    convoy_id: convoy_id.as_ref(),
                    restaged,
                    plan: &plan,
                    wave1: None,
                };
                let written = document.write().map_err(|error| error.to_string())?;
                serde_json::from_str(written.get()).map(Box::new).map_err(|error| error.to_string())
            }
            Ok(other) => Err(format!("{other:?}")),
            Err(refusal) => Err(refusal.to_string()),
        }
    }

    /// Carries out a command line, as far as the console writes them.
    fn run(&mut self, argv: Vec<String>) -> Ran {
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        let own = |word: &&str| (*word).to_owned();
        let command = match words.as_slice() {
            ["config", "set", key, value] => {
                let (key, value) = (own(key), own(value));
                self.yard.configure(|settings| configured(settings, &key, &value));
                self.yard.pass();
                let output = format!("{key} = {value}");
                return Ran { argv, ok: true, output };
            }
            ["scheduler", "pause", rest @ ..] => Command::Pause { reason: rest.last().map(own), until: None },
            ["scheduler", "resume"] => Command::Resume,
            ["scheduler", "run"] => Command::Run { batch: None, dry_run: false },
            ["scheduler", "clear", "--bead", id] => Command::Clear { bead: Some(own(id)) },
            ["scheduler", "retry", id] => Command::Retry { bead: own(id) },
            ["hold", id] => Command::Hold { id: own(id), held: true },
            ["unhold", id] => Command::Hold { id: own(id), held: false },
            ["preempt", id] => Command::Preempt { id: own(id), candidate: None },
            ["preempt", id, "--for", other] => Command::Preempt { id: own(id), candidate: Some(own(other)) },
            ["convoy", "launch", id, rest @ ..] => {
                Command::ConvoyLaunch { targets: vec![own(id)], force: !rest.is_empty() }
            }
            ["sling", id] => {
                Command::Sling(Box::new(SlingRequest { ids: vec![own(id)], ..SlingRequest::default() }))
            }
            ["agent", "release", id, "--as", name] => Command::AgentEnds {
                agent: own(name),
                bead: own(id),
                token: None,
                how: ClaimEnd::Released { note: None },
            },
            ["agent", "retire", name] => Command::AgentRetire { agent: own(name) },
            ["undo"] => Command::Undo,
            _ => return Ran { argv, ok: false, output: "not in this play".to_owned() },
        };
        match self.yard.command(&command) {
            Ok(Answer::Done { message, .. }) => Ran { argv, ok: true, output: message },
            Ok(_) => Ran { argv, ok: true, output: String::new() },
            Err(refusal) => Ran { argv, ok: false, output: refusal.to_string() },
        }
    }
}

fn configured(settings: &mut Settings, key: &str, value: &str) {
    let number: i64 = value.parse().expect("a number");
    match key.split('.').collect::<Vec<_>>().as_slice() {
        ["rig", name, "max_polecats"] => {
            let rig = settings.rigs.entry(name.parse().expect("a rig")).or_default();
            rig.max_polecats = u64::try_from(number).ok();
        }
        _ => settings.max_polecats = number,
    }
}
