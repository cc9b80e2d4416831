//! `ym bead …`

use yard_client::views::BeadList;
use yard_client::{Ask, BeadFilter};
use yard_engine::bead::{BeadChange, BeadStatus, DepKind, Dependency};
use yard_engine::command::NewBead;
use yard_engine::{BeadId, Command, Refusal};

use super::rig::rig_name;
use super::{Done, change, import, say, show};
use crate::args::{BeadAdd, BeadCmd, BeadUpdate, DepCmd, Like};
use crate::errors::Report;
use crate::render;
use crate::session::Session;

pub(super) fn run(session: &mut Session, command: BeadCmd) -> Done {
    match command {
        BeadCmd::Add(args) => add(session, *args),
        BeadCmd::Show { id } => show::show(session, id),
        BeadCmd::List { rig, all } => list(session, BeadFilter { all, rig, ..BeadFilter::default() }),
        BeadCmd::Ready { rig, like } => {
            list(session, BeadFilter { ready: true, rig, like: word(like), ..BeadFilter::default() })
        }
        BeadCmd::Blocked { rig, like } => {
            list(session, BeadFilter { blocked: true, rig, like: word(like), ..BeadFilter::default() })
        }
        BeadCmd::Close { ids, reason } => change(session, Command::BeadClose { ids, reason }),
        BeadCmd::Reopen { id } => change(session, Command::BeadReopen { id }),
        BeadCmd::Update(args) => update(session, *args),
        BeadCmd::Dep(DepCmd::Add { a, b, kind }) => {
            change(session, Command::DependencyAdd { id: a, on: b, kind: DepKind::from(kind) })
        }
        BeadCmd::Dep(DepCmd::Remove { a, b }) => change(session, Command::DependencyRemove { id: a, on: b }),
        BeadCmd::Import { file } => import::import(session, &file),
    }
}

fn word(like: Option<Like>) -> Option<String> {
    like.map(|like| like.as_str().to_owned())
}

fn add(session: &mut Session, args: BeadAdd) -> Done {
    let edge = |text: &String, kind: DepKind| -> Result<Dependency, Report> {
        Ok(Dependency::new(BeadId::parse(text).map_err(Refusal::from)?, kind))
    };
    let mut dependencies = Vec::new();
    for id in &args.needs {
        dependencies.push(edge(id, DepKind::Blocks)?);
    }
    if let Some(parent) = &args.parent {
        dependencies.push(edge(parent, DepKind::ParentChild)?);
    }
    let bead = NewBead {
        id: args.id,
        rig: args.rig.as_deref().map(rig_name).transpose()?,
        title: args.title,
        description: args.description,
        kind: args.kind,
        priority: args.priority,
        labels: args.label,
        dependencies,
        argv: Some(args.command).filter(|argv| !argv.is_empty()),
        ..NewBead::default()
    };
    let document = session.command(Command::BeadAdd { bead: Box::new(bead) })?;
    say(session, &document, |outcome| format!("Bead {} added", outcome.ids.join(", ")))
}

fn update(session: &mut Session, args: BeadUpdate) -> Done {
    let change_to = BeadChange {
        title: args.title,
        description: args.description,
        kind: args.kind,
        status: args.status.map(BeadStatus::from),
        priority: args.priority,
        assignee: args.assignee,
        labels: Some(args.label).filter(|labels| !labels.is_empty()),
    };
    change(session, Command::BeadUpdate { id: args.id, change: change_to })
}

fn list(session: &mut Session, filter: BeadFilter) -> Done {
    let document = session.ask(Ask::BeadList { filter })?;
    if session.out.json() {
        session.out.document(&document)?;
    } else {
        let view: BeadList = serde_json::from_str(document.get())?;
        render::beads(&mut session.out, &view.beads)?;
    }
    Ok(0)
}
