//! Watching the demo: what happens, as it happens, until nothing more can.

use std::io;
use std::time::Instant;

use serde_json::Value;
use serde_json::value::RawValue;
use yard_client::views::SchedulerStatus;
use yard_client::{Ask, EventsAsk, safe_line};
use yard_daemon::TownDir;
use yard_engine::Seq;

use crate::errors::Report;
use crate::output::{Out, Tone};
use crate::session::{Session, ask_town};

/// How wide the middle of a line is.
const WHAT: usize = 36;

/// What was seen, for the summary.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) started: usize,
    pub(super) crashed: usize,
    pub(super) most_at_once: usize,
    running: usize,
}

/// Prints what happens until everything has ended.
pub(super) fn until_all_ended(session: &mut Session, began: Instant) -> Result<Seen, Report> {
    let town = session.town()?;
    let out = &mut session.out;
    let mut seen = Seen::default();
    let mut failed: Option<Report> = None;
    let mut each = |item: Box<RawValue>| match note(&town, out, &mut seen, &item, began) {
        Ok(goes_on) => goes_on,
        Err(report) => {
            failed = Some(report);
            false
        }
    };
    let query = EventsAsk { since: Some(Seq(0)), follow: true, ..EventsAsk::default() };
    ask_town(&town, Ask::Events { query }, &mut each)?;
    match failed {
        Some(report) => Err(report),
        None => Ok(seen),
    }
}

/// Takes one event in; false when it was the last of the show.
fn note(
    town: &TownDir,
    out: &mut Out,
    seen: &mut Seen,
    item: &RawValue,
    began: Instant,
) -> Result<bool, Report> {
    let event: Value = serde_json::from_str(item.get())?;
    let kind = event["type"].as_str().unwrap_or_default();
    let Some((tone, mark, id, what)) = seen.take(kind, &event) else {
        return Ok(true);
    };
    let answered = ask_town(town, Ask::SchedulerStatus { summary: true }, &mut |_| true)?;
    let status: SchedulerStatus = serde_json::from_str(answered.document.get())?;
    if !out.json() {
        print(out, (tone, mark), &format!("{id:<14} {what}"), &status, began)?;
    }
    // Starting work is still open as a context; ended work is not.
    let ended = kind == "dispatch.ended" || kind == "context.closed";
    Ok(!(ended && status.queued_total == 0 && status.active_polecats == 0))
}

impl Seen {
    /// What a person would like to see of an event: tone, mark, bead and words.
    fn take(&mut self, kind: &str, event: &Value) -> Option<(Tone, &'static str, String, String)> {
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let bead = |dispatch: &str| dispatch.rsplit_once('@').map_or(dispatch, |(bead, _)| bead).to_owned();
        Some(match kind {
            "dispatch.running" => {
                self.started += 1;
                self.running += 1;
                self.most_at_once = self.most_at_once.max(self.running);
                (Tone::Bold, "▶", bead(&text("/id")), "runs".to_owned())
            }
            "dispatch.ended" => match text("/outcome/how").as_str() {
                "succeeded" => {
                    self.running = self.running.saturating_sub(1);
                    (Tone::Good, "✓", bead(&text("/id")), "done".to_owned())
                }
                "failed" => {
                    self.running = self.running.saturating_sub(1);
                    self.crashed += 1;
                    let why = text("/outcome/message");
                    (Tone::Warn, "✗", bead(&text("/id")), format!("crashed ({why})"))
                }
                _ => return None,
            },
            "context.start_failed" => {
                let times = event["failures"].as_u64().unwrap_or(0);
                (Tone::Warn, "!", bead(&text("/dispatch")), format!("could not start ({times})"))
            }
            "context.closed" if text("/reason") == "circuit-broken" => {
                (Tone::Bad, "■", text("/bead"), "circuit-broken".to_owned())
            }
            _ => return None,
        })
    }
}

fn print(
    out: &mut Out,
    (tone, mark): (Tone, &str),
    what: &str,
    status: &SchedulerStatus,
    began: Instant,
) -> io::Result<()> {
    let blocked = status.queued_total.saturating_sub(status.queued_ready);
    let counts =
        format!("{} running {} queued {blocked} blocked", status.active_polecats, status.queued_ready);
    let what = safe_line(what, WHAT);
    let seconds = began.elapsed().as_secs_f64();
    let mark = out.paint(tone, mark);
    let pad = " ".repeat(WHAT.saturating_sub(what.chars().count()));
    let counts = out.paint(Tone::Dim, &counts);
    out.line(format!("{seconds:5.1}s {mark} {what}{pad} {counts}"))?;
    out.flush()
}
