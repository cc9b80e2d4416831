//! What people say to a town about convoys, recovery and alerts, and what they see of it.

use yard_engine::alert::{Alert, AlertKind};
use yard_engine::command::{NewConvoy, Recovery, SlingResult};
use yard_engine::convoy::Convoy;
use yard_engine::plan::Scope;
use yard_engine::stage::StagePlan;
use yard_engine::{Answer, Command, ConvoyId, Refusal, SourceReading, Tx};

use crate::town::Town;

/// What `convoy stage` answered.
pub(crate) struct Staged {
    pub(crate) convoy: Option<String>,
    pub(crate) restaged: bool,
    pub(crate) plan: StagePlan,
    pub(crate) launched: Option<Vec<SlingResult>>,
}

fn texts(ids: &[&str]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

pub(crate) fn launch_of(targets: &[&str]) -> Command {
    Command::ConvoyLaunch { targets: texts(targets), force: false }
}

pub(crate) fn stage_of(targets: &[&str]) -> Command {
    Command::ConvoyStage { targets: texts(targets), title: None, launch: false }
}

pub(crate) fn add_of(id: &str, beads: &[&str]) -> Command {
    Command::ConvoyAdd { id: id.to_owned(), beads: texts(beads) }
}

pub(crate) fn close_of(id: &str, force: bool) -> Command {
    Command::ConvoyClose { id: id.to_owned(), reason: None, force }
}

pub(crate) fn land_of(id: &str, force: bool) -> Command {
    Command::ConvoyLand { id: id.to_owned(), force, dry_run: false }
}

pub(crate) fn watch_of(id: &str, watcher: &str, wants: bool) -> Command {
    Command::ConvoyWatch { id: id.to_owned(), watcher: watcher.to_owned(), wants }
}

/// Whether a command changed anything.
pub(crate) fn changed(answer: &Answer) -> bool {
    match answer {
        Answer::Done { changed, .. } => *changed,
        other => panic!("{other:?}"),
    }
}

impl Town {
    /// One turn of the daemon: what came in is decided together with what it makes startable. Answers with what started.
    pub(crate) fn turn(&mut self, input: impl FnOnce(&mut Tx<'_>)) -> Vec<String> {
        let pass = self.act(|tx| {
            tx.tick();
            input(tx);
            tx.pass(Scope::Everything, None)
        });
        self.state.check_nothing_waits_needlessly().expect("everything that has room starts");
        pass.starts.iter().map(|start| start.id.to_string()).collect()
    }

    /// The turn in which a reading arrives.
    pub(crate) fn turn_hearing(&mut self, reading: &SourceReading) -> Vec<String> {
        self.turn(|tx| tx.source_read(reading))
    }

    // Convoys.

    pub(crate) fn convoy_with(&mut self, change: impl FnOnce(&mut NewConvoy)) -> String {
        let mut new = NewConvoy { title: Some("a convoy".to_owned()), ..NewConvoy::default() };
        change(&mut new);
        match self.does(&Command::ConvoyCreate(Box::new(new))) {
            Answer::Created { ids } => ids.into_iter().next().expect("an id"),
            other => panic!("{other:?}"),
        }
    }

    /// A convoy that its owner looks after.
    pub(crate) fn owned_convoy(&mut self, beads: &[&str]) -> String {
        self.convoy_with(|new| (new.owned, new.beads) = (true, texts(beads)))
    }

    pub(crate) fn stage(&mut self, targets: &[&str]) -> Staged {
        self.stage_with(&stage_of(targets))
    }

    pub(crate) fn stage_with(&mut self, command: &Command) -> Staged {
        match self.does(command) {
            Answer::Staged { convoy_id, restaged, plan, launched } => {
                Staged { convoy: convoy_id.map(|id| id.to_string()), restaged, plan: *plan, launched }
            }
            other => panic!("{other:?}"),
        }
    }

    /// Stages what nothing speaks against, and answers with the convoy.
    pub(crate) fn staged(&mut self, targets: &[&str]) -> String {
        self.stage(targets).convoy.expect("nothing speaks against it")
    }

    pub(crate) fn try_launch(&mut self, targets: &[&str]) -> Result<(String, Vec<SlingResult>), Refusal> {
        self.command(&launch_of(targets)).map(launched)
    }

    pub(crate) fn launch(&mut self, targets: &[&str]) -> (String, Vec<SlingResult>) {
        self.try_launch(targets).expect("nothing speaks against it")
    }

    pub(crate) fn launch_by_force(&mut self, targets: &[&str]) -> (String, Vec<SlingResult>) {
        launched(self.does(&Command::ConvoyLaunch { targets: texts(targets), force: true }))
    }

    pub(crate) fn convoy_record(&self, id: &str) -> &Convoy {
        self.state.convoy(&ConvoyId::parse(id).expect("a convoy id")).expect("a known convoy")
    }

    pub(crate) fn tracked(&self, id: &str) -> Vec<&str> {
        self.convoy_record(id).tracked.iter().map(yard_engine::BeadId::as_str).collect()
    }

    /// The convoys that are stuck, each with its beads in the order they are tracked.
    pub(crate) fn stranded(&self) -> Vec<(String, Vec<String>)> {
        let stranded = self.state.stranded(true).into_iter();
        stranded
            .map(|s| (s.convoy.to_string(), s.stuck.iter().map(|(id, _)| id.to_string()).collect()))
            .collect()
    }

    // Recovery.

    pub(crate) fn recover(&mut self, dry_run: bool) -> Vec<Recovery> {
        match self.does(&Command::Recover { dry_run }) {
            Answer::Recovered { findings, .. } => findings,
            other => panic!("{other:?}"),
        }
    }

    /// The background scan, all of it.
    pub(crate) fn scan(&mut self) {
        self.act(|tx| {
            tx.scan(None, usize::MAX);
        });
    }

    /// The daemon is killed and starts again from the log.
    pub(crate) fn restart(&mut self) {
        self.state = self.replayed().clone();
        self.act(|tx| {
            tx.close_stale_contexts();
        });
    }

    // Alerts.

    pub(crate) fn alerts_of(&self, kind: AlertKind) -> Vec<&Alert> {
        self.state.all_alerts().filter(|alert| alert.kind == kind).collect()
    }

    /// What every alert is about, oldest first.
    pub(crate) fn alert_kinds(&self) -> Vec<AlertKind> {
        let mut all: Vec<&Alert> = self.state.all_alerts().collect();
        all.sort_by_key(|alert| alert.at);
        all.into_iter().map(|alert| alert.kind).collect()
    }

    /// How often this kind of event is in the log.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.log.iter().filter(|recorded| recorded.event.kind() == kind).count()
    }
}

fn launched(answer: Answer) -> (String, Vec<SlingResult>) {
    match answer {
        Answer::Launched { convoy_id, wave1 } => (convoy_id.to_string(), wave1),
        other => panic!("{other:?}"),
    }
}
