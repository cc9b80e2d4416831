//! `ym convoy …`

use serde_json::{Value, json};
use yard_client::views::{ConvoyList, ConvoyView, LaunchView, StageOutcome, StageView, StrandedList};
use yard_client::{Ask, Safe};
use yard_engine::Command;
use yard_engine::command::NewConvoy;

use super::{Done, change, say};
use crate::args::{ConvoyCmd, ConvoyCreate};
use crate::errors::{FAILED, Report};
use crate::render;
use crate::session::{Session, actor};

pub(super) fn run(session: &mut Session, command: ConvoyCmd) -> Done {
    match command {
        ConvoyCmd::Stage { targets, title, launch } => stage(session, targets, title, launch),
        ConvoyCmd::Launch { targets, force } => launch(session, targets, force),
        ConvoyCmd::Create(args) => create(session, *args),
        ConvoyCmd::Add { convoy, beads } => change(session, Command::ConvoyAdd { id: convoy, beads }),
        ConvoyCmd::List { all, tree: false } => list(session, all),
        ConvoyCmd::List { all, tree: true } => trees(session, all),
        ConvoyCmd::Status { id: None } => list(session, false),
        ConvoyCmd::Status { id: Some(id) } => status(session, id),
        ConvoyCmd::Check { id, dry_run } => change(session, Command::ConvoyCheck { id, dry_run }),
        ConvoyCmd::Stranded => stranded(session),
        ConvoyCmd::Close { id, reason, force } => change(session, Command::ConvoyClose { id, reason, force }),
        ConvoyCmd::Land { id, force, dry_run } => land(session, Command::ConvoyLand { id, force, dry_run }),
        ConvoyCmd::Watch { id, addr } => watch(session, id, addr, true),
        ConvoyCmd::Unwatch { id, addr } => watch(session, id, addr, false),
    }
}

/// Says what became of it, and which branches somebody still has to merge.
fn land(session: &mut Session, command: Command) -> Done {
    let document = session.command(command)?;
    let code = say(session, &document, |outcome| outcome.message.clone())?;
    if !session.out.json() && !session.out.quiet() {
        let answer: Value = serde_json::from_str(document.get())?;
        let text = |merge: &Value, key: &str| merge[key].as_str().unwrap_or_default().to_owned();
        for merge in answer["branches"].as_array().into_iter().flatten() {
            let (bead, branch, base) = (text(merge, "bead"), text(merge, "branch"), text(merge, "base"));
            session.out.line(Safe(&format!("  {bead}: {branch} is not in {base} yet")))?;
        }
    }
    Ok(code)
}

fn stage(session: &mut Session, targets: Vec<String>, title: Option<String>, launch: bool) -> Done {
    let document = session.command(Command::ConvoyStage { targets, title, launch })?;
    let StageOutcome { convoy_id, launched } = if session.out.json() {
        session.out.document(&document)?;
        StageOutcome::of(document.get(), launch)?
    } else {
        let view: StageView = serde_json::from_str(document.get())?;
        render::staged(&mut session.out, &view)?;
        StageOutcome { convoy_id: view.convoy_id, launched: view.launched }
    };
    let Some(id) = convoy_id else { return Ok(FAILED) };
    if launch && !launched {
        session.out.notice(&format!(
            "not launched because of its warnings; ym convoy launch {id} --force launches it in spite of them"
        ));
        return Ok(FAILED);
    }
    Ok(0)
}

fn launch(session: &mut Session, targets: Vec<String>, force: bool) -> Done {
    let document = session.command(Command::ConvoyLaunch { targets, force })?;
    if session.out.json() {
        session.out.document(&document)?;
    } else {
        let view: LaunchView = serde_json::from_str(document.get())?;
        render::launched(&mut session.out, &view)?;
    }
    Ok(0)
}

fn create(session: &mut Session, args: ConvoyCreate) -> Done {
    let convoy = NewConvoy {
        title: args.name,
        beads: args.beads,
        from_epic: args.from_epic,
        owned: args.owned,
        merge: args.merge.map(Into::into),
        base_branch: args.base_branch,
    };
    let document = session.command(Command::ConvoyCreate(Box::new(convoy)))?;
    say(session, &document, |outcome| {
        let id = outcome.ids.join(", ");
        format!("Convoy {id} made; ym convoy status {id} shows it")
    })
}

fn watch(session: &mut Session, id: String, addr: Option<String>, wants: bool) -> Done {
    let watcher = addr.unwrap_or_else(actor);
    change(session, Command::ConvoyWatch { id, watcher, wants })
}

fn list(session: &mut Session, all: bool) -> Done {
    let document = session.ask(Ask::ConvoyList { all })?;
    if session.out.json() {
        session.out.document(&document)?;
    } else {
        let view: ConvoyList = serde_json::from_str(document.get())?;
        render::convoys(&mut session.out, &view.convoys)?;
    }
    Ok(0)
}

/// The list with each convoy whole.
fn trees(session: &mut Session, all: bool) -> Done {
    let list: ConvoyList = session.ask_for(Ask::ConvoyList { all })?;
    if session.out.quiet() {
        return render::convoys(&mut session.out, &list.convoys).map(|()| 0).map_err(Into::into);
    }
    let mut convoys: Vec<ConvoyView> = Vec::new();
    for convoy in &list.convoys {
        convoys.push(session.ask_for(Ask::ConvoyStatus { id: convoy.id.to_string() })?);
    }
    if session.out.json() {
        session.out.line(json!({"convoys": convoys}))?;
    } else {
        render::convoy_trees(&mut session.out, &convoys)?;
    }
    Ok(0)
}

fn status(session: &mut Session, id: String) -> Done {
    let id = match id.parse::<usize>() {
        Ok(number) => nth(session, number)?,
        Err(_) => id,
    };
    let document = session.ask(Ask::ConvoyStatus { id })?;
    if session.out.json() {
        session.out.document(&document)?;
    } else {
        let view: ConvoyView = serde_json::from_str(document.get())?;
        render::convoy(&mut session.out, &view)?;
    }
    Ok(0)
}

/// The convoy that stands at this place in the list, from 1.
fn nth(session: &mut Session, number: usize) -> Result<String, Report> {
    let list: ConvoyList = session.ask_for(Ask::ConvoyList { all: false })?;
    let found = number.checked_sub(1).and_then(|place| list.convoys.get(place));
    found.map(|convoy| convoy.id.to_string()).ok_or_else(|| {
        let message = format!("there is no convoy number {number}: the list has {}", list.convoys.len());
        Report::new("unknown-convoy", message).hint("ym convoy list")
    })
}

fn stranded(session: &mut Session) -> Done {
    let document = session.ask(Ask::ConvoyStranded)?;
    if session.out.json() {
        session.out.document(&document)?;
    } else {
        let view: StrandedList = serde_json::from_str(document.get())?;
        render::stranded(&mut session.out, &view.convoys)?;
    }
    Ok(0)
}
