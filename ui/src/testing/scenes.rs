//! The other towns that tests look at.

use yard_engine::bead::DepKind;
use yard_engine::command::{AgentStatus, NewBead, WorkerSays};
use yard_engine::{Command, Timestamp};

use super::{Yard, bead, edge};
use crate::msg::LogLine;

pub(crate) use super::apollo::apollo;
pub(crate) use super::atelier::atelier;

/// A town in which nothing was ever asked for.
pub(crate) fn empty() -> Yard {
    Yard::with_cap(4)
}

/// A convoy that was planned, with a warning, and not launched.
pub(crate) fn staged() -> Yard {
    let mut yard = Yard::with_cap(2);
    yard.bead("gt-e1", "Login that remembers", |bead| bead.kind = "epic".to_owned());
    for (id, title, needs) in [
        ("gt-1", "session-store", None),
        ("gt-2", "login-form", Some("gt-1")),
        ("gt-3", "login-test", Some("gt-2")),
        ("gt-4", "release-note", None),
    ] {
        yard.bead(id, title, |bead| {
            bead.dependencies = needs.into_iter().map(|on| edge(on, DepKind::Blocks)).collect();
            bead.dependencies.push(edge("gt-e1", DepKind::ParentChild));
        });
    }
    yard.must(&Command::ConvoyStage { targets: vec!["gt-e1".to_owned()], title: None, launch: false });
    yard
}

/// Somebody paused dispatch while one bead runs and one waits.
pub(crate) fn paused() -> Yard {
    let mut yard = Yard::with_cap(1);
    yard.bead("gt-1", "session-store", |_| {});
    yard.bead("gt-2", "login-form", |_| {});
    yard.sling("gt-1");
    yard.all_run();
    yard.sling("gt-2");
    yard.must(&Command::Pause { reason: Some("the build machine is being moved".to_owned()), until: None });
    yard.later(90);
    yard
}

/// Letters that would move the cursor, turn text around, pile up on each other, or take two cells.
pub(crate) const HOSTILE: [&str; 9] = [
    "\u{1b}[2J\u{1b}[H\u{1b}[31mred\u{1b}]0;owned\u{7}\u{1b}[?1049l",
    "line one\r\nline two\ttabbed\u{8}\u{8}\u{7f}\u{9b}31m",
    "\u{202e}drowssap\u{202c} \u{2066}isolated\u{2069} \u{200f}right",
    "שלום עולם مرحبا بالعالم",
    "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}vil",
    "日本語のタイトルはとても長いので切られます、それでも枠は壊れません",
    "👩‍👩‍👧‍👦 family 👍🏽 thumb 🇩🇪 flag",
    "\u{feff}\u{200b}\u{200d}\u{2060}\u{ad}nothing to see",
    "\u{e0041}\u{e007f}tags and \u{fff9}annotations\u{fffb}",
];

/// Beads whose titles, progress and failures are full of such letters.
pub(crate) fn hostile() -> Yard {
    let mut yard = Yard::with_cap(4);
    for (number, title) in HOSTILE.iter().enumerate() {
        yard.bead(&format!("gt-h{number}"), title, |_| {});
    }
    yard.bead("gt-long", &"ten kilobytes of title ".repeat(450), |_| {});
    yard.bead("gt-wait", HOSTILE[0], |bead| bead.dependencies = vec![edge("gt-h0", DepKind::Blocks)]);
    for id in ["gt-h0", "gt-h1", "gt-h2", "gt-h3", "gt-h4", "gt-h5", "gt-long", "gt-wait"] {
        yard.sling(id);
    }
    yard.all_run();
    yard.later(60);
    let live: Vec<String> =
        yard.state.live_dispatches().map(|dispatch| dispatch.id.bead().to_string()).collect();
    for (id, text) in live.iter().zip(HOSTILE) {
        yard.says(id, WorkerSays::Progress { text: text.to_owned() });
    }
    yard.ends(&live[0], 1, yard_engine::dispatch::Category::HardCap, HOSTILE[0]);
    for _ in 0..3 {
        yard.start_fails_if_starting("gt-h4", HOSTILE[2]);
    }
    agents_that_say(&mut yard, &HOSTILE);
    yard.must(&Command::Pause { reason: Some(HOSTILE[0].to_owned()), until: None });
    yard.later(30);
    yard
}

/// Agents whose programs, models, skills, notes and progress are such texts, with a bead each where there is one.
fn agents_that_say(yard: &mut Yard, texts: &[&str]) {
    for (number, text) in texts.iter().enumerate() {
        let name = format!("agent{number}");
        yard.agent(&name, text, |agent| {
            (agent.model, agent.skills) = (Some((*text).to_owned()), Some((*text).to_owned()));
        });
        yard.bead(&format!("gt-a{number}"), text, |_| {});
        match number % 3 {
            0 => yard.agent_says(&name, AgentStatus::Blocked, text),
            1 => yard.agent_says(&name, AgentStatus::Working, text),
            _ => {
                yard.claims(&name, &format!("gt-a{number}"));
                yard.says(&format!("gt-a{number}"), WorkerSays::Progress { text: (*text).to_owned() });
            }
        }
    }
}

impl Yard {
    /// Has the start of a bead fail, if it is being started.
    fn start_fails_if_starting(&mut self, id: &str, error: &str) {
        let starting = self.state.bead(&bead(id)).and_then(|entry| entry.work.live.clone());
        if starting.is_some_and(|id| self.state.dispatch(&id).is_some_and(|d| d.running_at.is_none())) {
            self.start_fails(id, error);
        }
    }
}

/// So many beads, in chains of ten, with some of them at work: for measuring.
pub(crate) fn large(beads: usize) -> Yard {
    let mut yard = Yard::with_cap(100);
    let record = |number: usize| {
        let mut bead = NewBead {
            id: Some(format!("gt-{number}")),
            title: format!("bead number {number}"),
            created_at: Some(Timestamp::from_millis(super::BEGINNING - 60_000)),
            ..NewBead::default()
        };
        if !number.is_multiple_of(10) {
            bead.dependencies = vec![edge(&format!("gt-{}", number - 1), DepKind::Blocks)];
        }
        bead
    };
    yard.must(&Command::BeadImport { beads: (0..beads).map(record).collect() });
    for number in (0..beads.min(2_000)).step_by(10) {
        yard.sling(&format!("gt-{number}"));
    }
    yard.all_run();
    yard.later(30);
    yard
}

/// Beads of the atelier that agents have: nobody writes a log of those.
const AGENTS_HAVE: [&str; 2] = ["gt-11", "gt-15"];

/// What a worker wrote. A few beads have words of their own; colours are the workers'.
pub(crate) fn log_of(id: &str, attempts: &[String]) -> Vec<LogLine> {
    let text = |line: &str| LogLine::Text(line.to_owned());
    let mut lines = Vec::new();
    if AGENTS_HAVE.contains(&id) {
        return lines;
    }
    for (number, attempt) in attempts.iter().enumerate() {
        lines.push(LogLine::Attempt(attempt.clone()));
        match id {
            "db-416" => lines.extend(
                [
                    "13:44:17  \u{1b}[1mmigrate\u{1b}[0m 0042_orders_to_checkout.sql on db/orders",
                    "13:44:17  plan: copy 2 954 128 rows in batches of 5 000, then swap",
                    "13:49:35  batch  88  \u{1b}[32mok\u{1b}[0m    440 000 rows (14%)",
                    "13:54:58  batch 171  \u{1b}[32mok\u{1b}[0m    855 000 rows (28%)",
                    "13:59:12  \u{1b}[33mlock wait 2.1s on orders_pkey, tried again\u{1b}[0m",
                    "14:02:53  batch 290  \u{1b}[32mok\u{1b}[0m  1 450 000 rows (49%)",
                    "14:07:26  batch 360  \u{1b}[32mok\u{1b}[0m  1 801 447 rows (61%)",
                ]
                .map(text),
            ),
            "gt-419" => lines.extend(
                [
                    "playwright 1.56  41 pages, 3 browsers",
                    "\u{1b}[32m  38 passed\u{1b}[0m",
                    "\u{1b}[31m  3 failed\u{1b}[0m   /checkout /cart /cart/empty: net::ERR_CONNECTION_REFUSED",
                    "\u{1b}[31mexit 1\u{1b}[0m",
                ]
                .map(text),
            ),
            "gt-h0" | "gt-h1" | "gt-h2" => lines.extend(HOSTILE.map(text)),
            // It never ran.
            "gt-411" => {}
            _ => {
                lines.push(text(&format!("working on {id}, attempt {}", number + 1)));
                lines.push(text("reading the task, and what others left"));
            }
        }
    }
    lines
}
