//! `ym demo`: a throw-away town with simulated agents. A real daemon runs it, and nothing is left behind.

mod stage;
mod watch;
mod work;

use std::time::Instant;

use serde_json::json;
use yard_client::Ask;
use yard_client::views::{BeadList, StatusView};
use yard_engine::command::SlingRequest;
use yard_engine::{Command, FormulaName, Standing};

use super::Done;
use crate::errors::Report;
use crate::output::Tone;
use crate::render::Table;
use crate::session::Session;
use crate::words::count;
use stage::Stage;

/// Workers at a time, per unit of scale; more would only make the machine slow.
const WORKERS: u32 = 4;
const MOST_WORKERS: u32 = 64;

pub(super) fn demo(session: &mut Session, _headless: bool, scale: u32) -> Done {
    let began = Instant::now();
    let stage = Stage::open((WORKERS * scale).min(MOST_WORKERS))?;
    session.enter(stage.town().clone());
    let played = play(session, scale, began);
    stage.close();
    played
}

fn play(session: &mut Session, scale: u32, began: Instant) -> Done {
    if !session.out.json() {
        let town = session.town()?;
        session.out.line(format!(
            "A town in {}, thrown away at the end. Agents are simulated.",
            town.root().display()
        ))?;
        session.out.flush()?;
    }
    for rig in work::rigs(&session.town()?) {
        session.command(Command::RigAdd { rig })?;
    }
    let pieces = work::pieces(scale);
    session.command(Command::BeadImport { beads: pieces.iter().map(work::Piece::bead).collect() })?;
    for seconds in work::spans(&pieces) {
        let ids =
            pieces.iter().filter(|piece| piece.seconds == seconds).map(|piece| piece.id.clone()).collect();
        let mut request = SlingRequest { ids, ..SlingRequest::default() };
        if let Some(seconds) = seconds {
            request.formula = FormulaName::parse("demo").ok();
            request.vars.insert("seconds".to_owned(), seconds.to_string());
        }
        session.command(Command::Sling(Box::new(request)))?;
    }
    let seen = watch::until_all_ended(session, began)?;
    summary(session, &seen, began)
}

fn summary(session: &mut Session, seen: &watch::Seen, began: Instant) -> Done {
    let status: StatusView = session.ask_for(Ask::Status { summary: true })?;
    let filter = yard_client::BeadFilter { all: true, ..yard_client::BeadFilter::default() };
    let beads: BeadList = session.ask_for(Ask::BeadList { filter })?;
    let seconds = began.elapsed().as_secs_f64();
    let closed = beads.beads.iter().filter(|bead| bead.state == Some(Standing::Closed)).count();
    let out = &mut session.out;
    if out.json() {
        let broken = status.scheduler.circuit_broken;
        out.line(json!({"beads": beads.beads.len(), "closed": closed, "circuit_broken": broken,
            "dispatches": seen.started, "crashes": seen.crashed, "most_at_once": seen.most_at_once, "seconds": seconds}))?;
        return Ok(0);
    }
    out.line("")?;
    let mut table = Table::new(&["RIG", "BEADS", "CLOSED", "NOT CLOSED"]);
    for rig in work::RIGS {
        let of_rig =
            || beads.beads.iter().filter(|bead| bead.rig.as_ref().is_some_and(|name| name.as_str() == *rig));
        let open: Vec<String> = of_rig()
            .filter(|bead| bead.state != Some(Standing::Closed))
            .map(|bead| format!("{} {}", bead.id, bead.state.map_or("gone", Standing::as_str)))
            .collect();
        let done = of_rig().count() - open.len();
        table.row(vec![(*rig).to_owned(), of_rig().count().to_string(), done.to_string(), open.join(", ")]);
    }
    table.print(out)?;
    out.line("")?;
    let attempts = format!(
        "{}, at most {} at once",
        count(seen.started, "dispatch").replace("dispatchs", "dispatches"),
        seen.most_at_once
    );
    let line = format!("{closed} of {} beads closed in {seconds:.1} s: {attempts}.", beads.beads.len());
    out.line(out.paint(Tone::Good, &line))?;
    out.line(format!(
        "{} crashed and {} retried; what could not be",
        count(seen.crashed, "worker"),
        if seen.crashed == 1 { "was" } else { "were" }
    ))?;
    out.line("started three times waits for a person (circuit breaker).")?;
    out.line("Now your own: ym help quickstart")?;
    Ok(0)
}

/// Something the demo itself ran into.
fn failed(what: &str, error: impl std::fmt::Display) -> Report {
    Report::new("demo", format!("{what}: {error}"))
}
