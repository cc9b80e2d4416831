//! The demo's town with its story: prepared, begun, and directed. Whoever shows it, as lines or in the console, only
//! needs the town's directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{self, Receiver};

use serde_json::Value;
use yard_client::{Ask, EventsAsk, Request};
use yard_daemon::TownDir;
use yard_engine::command::SlingRequest;
use yard_engine::rig::Rig;
use yard_engine::{AccountName, Command, RigName, Seq};

use super::failed;
use super::script::{Act, Director};
use super::stage::Stage;
use super::work::{self, BROKEN, DECISION, EPIC, HELD, HOTFIX, Telling, URGENT};
use crate::errors::Report;

/// Workers at a time, per telling of the story; more than the second would only make the machine slow.
const WORKERS: u64 = 10;
const MOST_WORKERS: u64 = 64;
/// What the epic may cost, in dollars: enough, but most of it is spent towards the end.
const BUDGET: &str = "22";

/// A throw-away town with a story in it. Dropping it ends its daemon and removes its directory.
pub(crate) struct DemoTown {
    stage: Stage,
    scale: u32,
    speed: u32,
    convoys: Vec<String>,
}

impl DemoTown {
    /// Makes the town, `scale` times the story in it, and its daemon: everything is staged, only errands run already.
    pub(crate) fn prepare(scale: u32, speed: u32) -> Result<Self, Report> {
        let settings = settings(scale, speed)?;
        let folders: Vec<&str> = work::RIGS.iter().map(|(name, _)| *name).collect();
        let stage = Stage::open(&settings, &folders)?;
        let mut town = Self { stage, scale, speed, convoys: Vec::new() };
        for (name, workers) in work::RIGS {
            town.add_rig(name, (workers * u64::from(scale)).min(MOST_WORKERS))?;
        }
        for telling in town.tellings() {
            town.set_up(telling)?;
        }
        Ok(town)
    }

    /// Where it is.
    pub(crate) fn town(&self) -> &TownDir {
        self.stage.town()
    }

    /// Lets the convoys go.
    pub(crate) fn launch(&self) -> Result<(), Report> {
        for convoy in &self.convoys {
            self.does("mara", Command::ConvoyLaunch { targets: vec![convoy.clone()], force: true })?;
        }
        Ok(())
    }

    /// Leaves SIGINT, SIGTERM and SIGHUP to whoever shows the town, who must return when one comes.
    pub(crate) fn leave_signals_to_others(&mut self) {
        self.stage.leave_signals_to_others();
    }

    /// Everything that happens in the town, from its beginning, until nobody serves it any more.
    pub(super) fn events(&self) -> Receiver<Value> {
        let (sender, receiver) = mpsc::channel();
        let town = self.town().clone();
        std::thread::spawn(move || {
            let query = EventsAsk { since: Some(Seq(0)), follow: true, ..EventsAsk::default() };
            let request = Request { actor: "director".to_owned(), ask: Ask::Events { query } };
            // The end of the daemon is the end of the events.
            let _ = yard_daemon::ask(&town, &request, &mut |item| {
                serde_json::from_str(item.get()).is_ok_and(|event: Value| sender.send(event).is_ok())
            });
        });
        receiver
    }

    pub(super) fn director(&self) -> Director {
        Director::new(self.scale)
    }

    /// What makes things happen, for whoever has the events.
    pub(crate) fn hand(&self) -> Hand {
        Hand { town: self.town().clone(), speed: self.speed }
    }

    /// Directs the story on a thread of its own, for as long as the town is served.
    pub(crate) fn direct(&self) {
        let (events, mut director, hand) = (self.events(), self.director(), self.hand());
        std::thread::spawn(move || {
            for event in events {
                for (telling, act) in director.heed(&event) {
                    // What the person in front of the console did first need not happen again.
                    let _ = hand.makes_happen(telling, act);
                }
            }
        });
    }

    fn tellings(&self) -> impl Iterator<Item = Telling> + use<> {
        let of = self.scale;
        (1..=of).map(move |number| Telling { number, of })
    }

    fn does(&self, actor: &str, command: Command) -> Result<Value, Report> {
        self.hand().does(actor, command)
    }

    fn add_rig(&self, name: &str, workers: u64) -> Result<(), Report> {
        let rig = Rig {
            name: RigName::parse(name).map_err(|error| failed("a rig", error))?,
            prefix: name.to_owned(),
            path: self.town().root().join(name).to_string_lossy().into_owned(),
            parked: false,
            docked: false,
            max_polecats: Some(workers),
            executor: None,
            formula: None,
            source: None,
        };
        self.does("mara", Command::RigAdd { rig }).map(|_| ())
    }

    /// One telling of the story: its beads, the errands beside it, and its convoy, staged.
    fn set_up(&mut self, telling: Telling) -> Result<(), Report> {
        self.does("mara", Command::BeadImport { beads: telling.beads() })?;
        // Held before it could start: nobody may take a slot while it is slung.
        self.does("mara", Command::Pause { reason: Some("setting up".to_owned()), until: None })?;
        for (piece, account, priority) in &work::ERRANDS {
            self.does("mara", sling(&telling.id(piece.id), *account, *priority))?;
        }
        self.does("mara", Command::Hold { id: telling.id(HELD), held: true })?;
        self.does("mara", Command::Resume)?;
        let title = match telling.of {
            1 => "Night trains go on sale".to_owned(),
            _ => format!("Night trains go on sale ({})", telling.number),
        };
        let targets = vec![telling.id(EPIC)];
        let staged =
            self.does("mara", Command::ConvoyStage { targets, title: Some(title), launch: false })?;
        let convoy =
            staged["convoy_id"].as_str().ok_or_else(|| failed("the epic has errors", &staged["errors"]))?;
        self.convoys.push(convoy.to_owned());
        Ok(())
    }
}

fn sling(id: &str, account: Option<&str>, priority: u8) -> Command {
    Command::Sling(Box::new(SlingRequest {
        ids: vec![id.to_owned()],
        account: account.and_then(|name| AccountName::parse(name).ok()),
        priority: Some(priority),
        no_convoy: true,
        ..SlingRequest::default()
    }))
}

fn settings(scale: u32, speed: u32) -> Result<Vec<(&'static str, String)>, Report> {
    let program = std::env::current_exe().map_err(|error| failed("cannot find ym itself", error))?;
    let agent = [program.to_string_lossy().into_owned(), "__agent".to_owned(), speed.to_string()];
    let span = |seconds: u32| format!("{}ms", seconds * 1000 / speed);
    let per_telling = |workers: u64| (workers * u64::from(scale)).min(MOST_WORKERS).to_string();
    Ok(vec![
        ("scheduler.max_polecats", per_telling(WORKERS)),
        ("worker.agent", serde_json::to_string(&agent)?),
        ("retry.crash.backoff", span(3)),
        ("retry.unavailable.backoff", span(4)),
        ("preemption.min_run", span(2)),
        ("preemption.timeout", span(6)),
        ("account.lab.max_polecats", per_telling(1)),
        ("account.search.max_polecats", per_telling(1)),
        ("account.search.cooldown", span(10)),
        ("cost.per_convoy", BUDGET.to_owned()),
        ("limits.stuck_after", span(7)),
        ("limits.shutdown_timeout", "1s".to_owned()),
        ("limits.kill_grace", "1s".to_owned()),
    ])
}

/// Makes things happen in the town, as the people of the story.
pub(crate) struct Hand {
    town: TownDir,
    speed: u32,
}

impl Hand {
    fn does(&self, actor: &str, command: Command) -> Result<Value, Report> {
        let request = Request { actor: actor.to_owned(), ask: Ask::Command { command } };
        let answered = yard_daemon::ask(&self.town, &request, &mut |_| true)?;
        Ok(serde_json::from_str(answered.document.get())?)
    }

    /// Makes one thing happen.
    pub(super) fn makes_happen(&self, telling: Telling, act: Act) -> Result<(), Report> {
        match act {
            Act::Hotfix => {
                let (piece, account, priority) = &HOTFIX;
                self.does("ops", Command::BeadAdd { bead: Box::new(telling.bead(piece, None)) })?;
                self.does("ops", sling(&telling.id(URGENT), Some(account), *priority))?;
            }
            Act::Decide => {
                let reason = Some("small dogs may, in a basket".to_owned());
                self.does("legal", Command::BeadClose { ids: vec![telling.id(DECISION)], reason })?;
            }
            Act::Release => {
                self.does("mara", Command::Hold { id: telling.id(HELD), held: false })?;
            }
            Act::Install => self.install()?,
        }
        Ok(())
    }

    /// Puts the missing tool where its bead looks for it, whole.
    fn install(&self) -> Result<(), Report> {
        let rig = work::rig_of(BROKEN).map_or(String::new(), |rig| rig.to_string());
        let tool = self.town.root().join(rig).join(work::TOOL);
        let program = std::env::current_exe().map_err(|error| failed("cannot find ym itself", error))?;
        if let Some(folder) = tool.parent().filter(|folder| !folder.exists()) {
            fs::create_dir(folder)?;
        }
        let beside = tool.with_extension("new");
        let quoted = program.to_string_lossy().replace('\'', r"'\''");
        fs::write(&beside, format!("#!/bin/sh\nexec '{quoted}' __agent {}\n", self.speed))?;
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o755))?;
        Ok(fs::rename(&beside, &tool)?)
    }
}
