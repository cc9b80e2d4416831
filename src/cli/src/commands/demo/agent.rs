//! A simulated agent: says what it does, reports progress, cost and checkpoints like a real one, gives way when asked,
//! and sometimes fails. It sleeps nearly all the time. What it does follows from its bead and its attempt alone.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use yard_client::views::HeardView;
use yard_client::{Ask, Connection, Request};
use yard_daemon::TownDir;
use yard_engine::Command;
use yard_engine::command::WorkerSays;
use yard_engine::money::Usd;

use super::lines::Scribe;
use super::work::{self, Piece, Trouble};

/// By these exit codes it says what became of it: a service was not there, it gave way.
const UNAVAILABLE: u8 = 69;
const YIELDED: u8 = 75;
/// What one second of its work costs, in thousandths of a dollar.
const COST: u32 = 40;
/// How many seconds a silent one says nothing.
const SILENCE: u32 = 11;
/// What its checkpoints begin with; whoever goes on after it finds the second there.
const NOTE: &str = "second ";

/// `ym __agent SPEED`: plays the bead it was started for.
pub(crate) fn agent(speed: Option<&str>) -> ExitCode {
    let known = |name: &str| std::env::var(name).unwrap_or_default();
    let (bead, town) = (known("YM_BEAD"), known("YM_TOWN"));
    let played = work::name_of(&bead).and_then(|(name, _)| work::all().find(|piece| piece.id == name));
    let Some(piece) = played else { return ExitCode::from(64) };
    let agent = Agent {
        piece,
        attempt: known("YM_ATTEMPT").parse().unwrap_or(1),
        beat: Duration::from_secs(1) / speed.and_then(|speed| speed.parse().ok()).unwrap_or(1).max(1),
        line: Line::to(Path::new(&town), known("YM_DISPATCH"), known("YM_ACTOR")),
    };
    let begun =
        known("YM_CHECKPOINT").strip_prefix(NOTE).and_then(|rest| rest.split(' ').next()?.parse().ok());
    agent.work(begun.unwrap_or(0))
}

struct Agent {
    piece: &'static Piece,
    attempt: u32,
    /// A second of the story.
    beat: Duration,
    line: Line,
}

impl Agent {
    fn work(mut self, begun: u32) -> ExitCode {
        let Piece { id, title, seconds, trouble, .. } = *self.piece;
        let scribe = Scribe::new(id, title);
        say(&if begun == 0 { scribe.greets() } else { scribe.goes_on() });
        for second in begun..seconds {
            std::thread::sleep(self.beat);
            if trouble == Trouble::Silent && (1..=SILENCE).contains(&second) {
                continue;
            }
            for line in scribe.works(second, seconds) {
                say(&line);
            }
            match trouble {
                Trouble::Fails(times, why) if self.attempt <= times && second * 2 >= seconds => {
                    say(&scribe.fails(why));
                    return ExitCode::FAILURE;
                }
                Trouble::Unavailable if self.attempt == 1 && second * 2 >= seconds => {
                    say(&scribe.finds_nobody());
                    return ExitCode::from(UNAVAILABLE);
                }
                Trouble::None | Trouble::Silent | Trouble::Fails(..) | Trouble::Unavailable => {}
            }
            if self.reports(second, seconds, &scribe) {
                say(&scribe.gives_way());
                return ExitCode::from(YIELDED);
            }
        }
        say(&scribe.ends());
        ExitCode::SUCCESS
    }

    /// Tells the town how it stands, now and then; true if it should give way.
    fn reports(&mut self, second: u32, seconds: u32, scribe: &Scribe) -> bool {
        if second.is_multiple_of(2) {
            self.line.says(WorkerSays::Progress { text: scribe.progress(second, seconds) });
        }
        if second % 3 == 2 || second + 1 == seconds {
            let spent = (second % 3 + 1) * COST;
            if let Ok(usd) = Usd::from_dollars(f64::from(spent) / 1000.0) {
                self.line.says(WorkerSays::Cost { usd, total: false, tokens: Some(u64::from(spent) * 60) });
            }
        }
        if second % 3 != 1 {
            return false;
        }
        let note = format!("{NOTE}{} of {seconds}: {}", second + 1, scribe.progress(second, seconds));
        let heard = self.line.says(WorkerSays::Checkpoint { note, session: None });
        heard.is_some_and(|heard| heard.should_yield)
    }
}

/// Whoever reads the log sees each line as it comes. Nobody reading it is not our business.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// The way to whoever serves the town; an agent works on without one.
struct Line {
    connection: Option<Connection>,
    dispatch: String,
    actor: String,
}

impl Line {
    fn to(town: &Path, dispatch: String, actor: String) -> Self {
        let town = TownDir::at(town).ok();
        Self { connection: town.and_then(|town| Connection::open(&town.folder()).ok()), dispatch, actor }
    }

    fn says(&mut self, says: WorkerSays) -> Option<HeardView> {
        let command = Command::Worker { dispatch: self.dispatch.clone(), says };
        let request = Request { actor: self.actor.clone(), ask: Ask::Command { command } };
        let answer = self.connection.as_mut()?.ask(&request, |_| true);
        if answer.is_err() {
            self.connection = None;
        }
        let (document, _) = answer.ok()?.ok()?;
        serde_json::from_str(document.get()).ok()
    }
}
