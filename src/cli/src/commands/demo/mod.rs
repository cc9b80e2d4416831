//! `ym demo`: a throw-away town with simulated agents. A real daemon runs it, and nothing is left behind.

mod agent;
mod lines;
mod play;
mod script;
mod stage;
mod watch;
mod work;

use std::io::IsTerminal;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use serde_json::json;
use yard_client::Ask;
use yard_client::views::{BeadList, BeadView, SchedulerStatus};
use yard_engine::Standing;
use yard_ui::look::{Look, Wishes};

pub(crate) use self::agent::agent;
use self::play::DemoTown;
pub(crate) use self::stage::end_with_parent;
use self::watch::Seen;
use super::{Done, console};
use crate::args::DemoArgs;
use crate::errors::Report;
use crate::output::Tone;
use crate::render::Table;
use crate::session::Session;

/// In a town that comes to its end by itself, something happens at least this often.
const STALLED: Duration = Duration::from_mins(1);

/// What the console says first.
const GREETING: &str = "a town of simulated agents: one bead will break, and wants you to find it and retry it (r); ? shows the keys";

pub(super) fn demo(session: &mut Session, args: &DemoArgs, wishes: &Wishes) -> Done {
    let on_a_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if on_a_terminal && !args.headless && !session.out.json() && !session.out.quiet() {
        let look = Look::choose(wishes, |name| std::env::var(name).ok())
            .map_err(|error| Report::usage(error.to_string()))?;
        return show(args, look);
    }
    let began = Instant::now();
    let town = DemoTown::prepare(args.scale, args.speed)?;
    session.enter(town.town().clone());
    play(session, &town, began)
}

/// Opens the console on the town; the story goes on beside it.
pub(super) fn show(args: &DemoArgs, look: Look) -> Done {
    let mut town = DemoTown::prepare(args.scale, args.speed)?;
    town.launch()?;
    town.direct();
    town.leave_signals_to_others();
    console::open(town.town(), look, Some(GREETING.to_owned()))
}

/// Prints what happens until the story has come to its end.
fn play(session: &mut Session, town: &DemoTown, began: Instant) -> Done {
    if !session.out.json() {
        let root = town.town().root().display().to_string();
        session.out.line(format!("A town in {root}, thrown away at the end. Agents are simulated."))?;
        session.out.flush()?;
    }
    let (events, mut director, hand) = (town.events(), town.director(), town.hand());
    town.launch()?;
    let mut seen = Seen::default();
    while !director.is_finished() {
        let event = match events.recv_timeout(STALLED) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => {
                return Err(Report::new("demo", "nothing happens any more, and the story is not over"));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Report::new("demo", "the demo's daemon has gone"));
            }
        };
        let mut lines: Vec<watch::Line> = seen.take(&event).into_iter().collect();
        for (telling, act) in director.heed(&event) {
            hand.makes_happen(telling, act)?;
            lines.push(watch::act_line(telling, act));
        }
        if !session.out.json() && !lines.is_empty() {
            let status: SchedulerStatus = session.ask_for(Ask::SchedulerStatus { summary: true })?;
            for line in lines {
                watch::print(&mut session.out, line, &status, began)?;
            }
        }
    }
    summary(session, &seen, director.broken(), began)
}

fn summary(session: &mut Session, seen: &Seen, broken: usize, began: Instant) -> Done {
    let filter = yard_client::BeadFilter { all: true, ..yard_client::BeadFilter::default() };
    let beads: BeadList = session.ask_for(Ask::BeadList { filter })?;
    // Epics and decisions are nobody's work.
    let worked_on: Vec<_> = beads.beads.iter().filter(|bead| bead.kind == "task").collect();
    let is_closed = |bead: &&&BeadView| bead.state == Some(Standing::Closed);
    let seconds = began.elapsed().as_secs_f64();
    let closed = worked_on.iter().filter(is_closed).count();
    let out = &mut session.out;
    if out.json() {
        out.line(json!({"beads": worked_on.len(), "closed": closed, "circuit_broken": broken,
            "dispatches": seen.started, "crashes": seen.crashed, "unavailable": seen.unavailable,
            "preemptions": seen.preempted, "alerts": seen.alerts, "most_at_once": seen.most_at_once,
            "seconds": seconds}))?;
        return Ok(0);
    }
    out.line("")?;
    let mut table = Table::new(&["RIG", "BEADS", "CLOSED", "NOT CLOSED"]);
    for (rig, _) in work::RIGS {
        let of_rig =
            || worked_on.iter().filter(|bead| bead.rig.as_ref().is_some_and(|name| name.as_str() == rig));
        let state = |bead: &&BeadView| format!("{} {}", bead.id, bead.state.map_or("gone", Standing::as_str));
        let open: Vec<String> = of_rig().filter(|bead| !is_closed(bead)).map(state).take(3).collect();
        let done = of_rig().filter(is_closed).count();
        table.row(vec![rig.to_owned(), of_rig().count().to_string(), done.to_string(), open.join(", ")]);
    }
    table.print(out)?;
    out.line("")?;
    let line = format!(
        "{closed} of {} beads closed in {seconds:.1} s, by {} dispatches, at most {} at once.",
        worked_on.len(),
        seen.started,
        seen.most_at_once
    );
    out.line(out.paint(Tone::Good, &line))?;
    out.line(format!(
        "Crashed and tried again: {}. Gave way to urgent work: {}. Alerts: {}.",
        seen.crashed, seen.preempted, seen.alerts
    ))?;
    if broken > 0 {
        out.line("What could not be started three times waits for a person (circuit breaker);")?;
        out.line("its tool is there by now, and ym scheduler retry would run it.")?;
    }
    out.line("Now your own: ym help quickstart")?;
    Ok(0)
}

/// Something the demo itself ran into.
fn failed(what: &str, error: impl std::fmt::Display) -> Report {
    Report::new("demo", format!("{what}: {error}"))
}
