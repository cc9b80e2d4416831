//! `ym convoy …`

use yard_client::Ask;
use yard_client::views::{ConvoyList, ConvoyView};
use yard_engine::Command;

use super::{Done, say};
use crate::args::ConvoyCmd;
use crate::errors::Report;
use crate::render;
use crate::session::Session;

pub(super) fn run(session: &mut Session, command: ConvoyCmd) -> Done {
    match command {
        ConvoyCmd::Create { name, beads, from_epic, owned, merge, base_branch } => {
            if from_epic.is_some() || base_branch.is_some() {
                return Err(Report::later("--from-epic and --base-branch do not work on convoys yet")
                    .hint("name the beads, or ym sling the epic"));
            }
            let merge = merge.map(Into::into);
            let said = format!("of {}", crate::words::count(beads.len(), "bead"));
            let document = session.command(Command::ConvoyCreate { title: name, beads, owned, merge })?;
            say(session, &document, |outcome| format!("Convoy {} {said}", outcome.ids.join(", ")))
        }
        ConvoyCmd::List { all } => list(session, all),
        ConvoyCmd::Status { id: None } => list(session, false),
        ConvoyCmd::Status { id: Some(id) } => {
            let document = session.ask(Ask::ConvoyStatus { id })?;
            if session.out.json() {
                session.out.document(&document)?;
            } else {
                let view: ConvoyView = serde_json::from_str(document.get())?;
                render::convoy(&mut session.out, &view)?;
            }
            Ok(0)
        }
    }
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
