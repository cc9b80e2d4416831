//! The demo as lines: what happens, as it happens.

use std::io;
use std::time::Instant;

use serde_json::Value;
use yard_client::safe_line;
use yard_client::views::SchedulerStatus;

use super::script::Act;
use super::work::{BROKEN, DECISION, HELD, TOOL, Telling, URGENT};
use crate::output::{Out, Tone};

/// How wide the middle of a line is.
const WHAT: usize = 42;

/// A line in the making: tone, mark, whom it is about, and what happened.
pub(super) type Line = (Tone, &'static str, String, String);

/// What was seen, for the summary.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) started: usize,
    pub(super) crashed: usize,
    pub(super) unavailable: usize,
    pub(super) preempted: usize,
    pub(super) circuits: usize,
    pub(super) alerts: usize,
    pub(super) most_at_once: usize,
    running: usize,
}

impl Seen {
    /// What a person would like to see of an event.
    pub(super) fn take(&mut self, event: &Value) -> Option<Line> {
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let bead =
            |path: &str| text(path).split_once('@').map_or_else(|| text(path), |(bead, _)| bead.to_owned());
        Some(match event["type"].as_str().unwrap_or_default() {
            "dispatch.running" => {
                self.started += 1;
                self.running += 1;
                self.most_at_once = self.most_at_once.max(self.running);
                (Tone::Bold, "▶", bead("/id"), "runs".to_owned())
            }
            "dispatch.ended" => return self.take_end(event),
            "context.start_failed" => {
                let times = event["failures"].as_u64().unwrap_or(0);
                (Tone::Warn, "!", bead("/dispatch"), format!("could not start ({times})"))
            }
            "context.closed" if text("/reason") == "circuit-broken" => {
                self.circuits += 1;
                (Tone::Bad, "■", text("/bead"), "circuit-broken".to_owned())
            }
            "preemption.requested" => {
                (Tone::Warn, "‖", bead("/cycle/victim"), format!("is to give way to {}", text("/cycle/bead")))
            }
            "account.cooling" => (Tone::Warn, "~", text("/account"), "account rests".to_owned()),
            "alert.raised" => {
                self.alerts += 1;
                (Tone::Bad, "⚠", text("/alert/kind"), text("/alert/ids/0"))
            }
            "convoy.launched" => (Tone::Bold, "◆", text("/id"), "launched".to_owned()),
            "convoy.closed" => (Tone::Good, "◆", text("/id"), "complete".to_owned()),
            _ => return None,
        })
    }

    fn take_end(&mut self, event: &Value) -> Option<Line> {
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let bead = text("/id").split_once('@').map_or("", |(bead, _)| bead).to_owned();
        let how = text("/outcome/how");
        if matches!(how, "start-failed" | "never-ran") {
            return None;
        }
        self.running = self.running.saturating_sub(1);
        Some(match (how, text("/outcome/category"), text("/outcome/reason")) {
            ("succeeded", ..) => (Tone::Good, "✓", bead, "done".to_owned()),
            ("failed", "unavailable", _) => {
                self.unavailable += 1;
                (Tone::Warn, "✗", bead, "its service was not there".to_owned())
            }
            ("failed", ..) => {
                self.crashed += 1;
                (Tone::Warn, "✗", bead, format!("crashed ({})", text("/outcome/message")))
            }
            (_, _, "cooperative_preemption" | "preemption_timeout") => {
                self.preempted += 1;
                (Tone::Warn, "‖", bead, "has given way".to_owned())
            }
            (_, _, reason) => (Tone::Warn, "✗", bead, format!("ended: {reason}")),
        })
    }
}

/// What the director did, in words.
pub(super) fn act_line(telling: Telling, act: Act) -> Line {
    let (name, what) = match act {
        Act::Hotfix => (URGENT, "comes up, and cannot wait".to_owned()),
        Act::Decide => (DECISION, "decided by a person".to_owned()),
        Act::Release => (HELD, "released by a person".to_owned()),
        Act::Install => (BROKEN, format!("{TOOL} is there now")),
    };
    (Tone::Bold, "+", telling.id(name), what)
}

/// Prints a line with how the town stands.
pub(super) fn print(
    out: &mut Out,
    (tone, mark, whom, what): Line,
    status: &SchedulerStatus,
    began: Instant,
) -> io::Result<()> {
    let waiting = status.queued_total.saturating_sub(status.queued_ready);
    let counts =
        format!("{} running {} ready {waiting} waiting", status.active_polecats, status.queued_ready);
    let what = safe_line(&format!("{whom:<14} {what}"), WHAT);
    let seconds = began.elapsed().as_secs_f64();
    let mark = out.paint(tone, mark);
    let pad = " ".repeat(WHAT.saturating_sub(what.chars().count()));
    let counts = out.paint(Tone::Dim, &counts);
    out.line(format!("{seconds:5.1}s {mark} {what}{pad} {counts}"))?;
    out.flush()
}
