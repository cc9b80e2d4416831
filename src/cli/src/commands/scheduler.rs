//! `ym scheduler …`

use serde::Deserialize;
use yard_client::Ask;
use yard_client::views::{RecoverView, RunView, SchedulerList, SchedulerStatus};
use yard_engine::Command;

use super::{Done, change};
use crate::args::SchedulerCmd;
use crate::render;
use crate::session::Session;
use crate::words::now;

/// A longer queue is not looked at for the short answer.
const SHORT_QUEUE: usize = 50;

pub(super) fn run(session: &mut Session, command: SchedulerCmd) -> Done {
    match command {
        SchedulerCmd::Status => status(session),
        SchedulerCmd::List => list(session),
        SchedulerCmd::Run { dry_run, batch } => pass(session, dry_run, batch),
        SchedulerCmd::Pause { reason, span } => {
            let until = span.map(|span| now().after(span));
            change(session, Command::Pause { reason, until })
        }
        SchedulerCmd::Resume => change(session, Command::Resume),
        SchedulerCmd::Clear { bead } => change(session, Command::Clear { bead }),
        SchedulerCmd::Retry { bead } => change(session, Command::Retry { bead }),
        SchedulerCmd::Recover { dry_run } => recover(session, dry_run),
    }
}

fn status(session: &mut Session) -> Done {
    if session.out.json() {
        let document = session.ask(Ask::SchedulerStatus { summary: false })?;
        session.out.document(&document)?;
        return Ok(0);
    }
    let mut view: SchedulerStatus = session.ask_for(Ask::SchedulerStatus { summary: true })?;
    if (1..=SHORT_QUEUE).contains(&view.queued_total) {
        view = session.ask_for(Ask::SchedulerStatus { summary: false })?;
    }
    if session.out.quiet() {
        for bead in &view.beads {
            session.out.line(&bead.id)?;
        }
        return Ok(0);
    }
    render::scheduler_status(&mut session.out, &view)?;
    render::first_queued(&mut session.out, &view.beads)?;
    Ok(0)
}

fn list(session: &mut Session) -> Done {
    let document = session.ask(Ask::SchedulerList)?;
    if session.out.json() {
        session.out.document(&document)?;
        return Ok(0);
    }
    let view: SchedulerList = serde_json::from_str(document.get())?;
    render::scheduler_list(&mut session.out, &view)?;
    Ok(0)
}

fn pass(session: &mut Session, dry_run: bool, batch: Option<u32>) -> Done {
    /// Only what is needed to say how things stand.
    #[derive(Deserialize)]
    struct Pause {
        pause_reason: Option<String>,
        paused_by: Option<String>,
    }
    let document = session.command(Command::Run { batch, dry_run })?;
    if session.out.json() {
        session.out.document(&document)?;
        return Ok(0);
    }
    let view: RunView = serde_json::from_str(document.get())?;
    let paused = view.reason == yard_engine::plan::PlanReason::Paused;
    let why = if paused && !session.out.quiet() {
        let pause: Pause = session.ask_for(Ask::SchedulerStatus { summary: true })?;
        let by = pause.paused_by.map(|by| format!(" by {by}")).unwrap_or_default();
        let reason = pause.pause_reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{by}{reason}")
    } else {
        String::new()
    };
    render::pass(&mut session.out, &view, &why)?;
    Ok(0)
}

fn recover(session: &mut Session, dry_run: bool) -> Done {
    let document = session.command(Command::Recover { dry_run })?;
    if session.out.json() {
        session.out.document(&document)?;
    } else {
        let view: RecoverView = serde_json::from_str(document.get())?;
        render::recovered(&mut session.out, &view)?;
    }
    Ok(0)
}
