//! The rigs' workspaces: read before anything is served, watched from then on. A passing command reads what changed
//! since the journal last heard of it, and watches nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};
use yard_client::ServerRole;
use yard_engine::rig::BeadSource;
use yard_engine::{BeadId, RigName, SourceReading, State};
use yard_sources::{Descriptions, Source, Watch, WatchOptions};

use super::Core;
use crate::input::Input;
use crate::town::TownDir;

/// The workspaces that are followed.
#[derive(Default)]
pub(crate) struct Sources {
    followed: BTreeMap<RigName, Followed>,
    /// How many were ever followed.
    begun: u64,
}

/// One of them.
struct Followed {
    how: How,
    /// Which of all that were ever followed this is.
    number: u64,
    /// None in a rehearsal.
    descriptions: Option<Descriptions>,
    /// None in a passing command.
    watch: Option<Watch>,
    /// Whether the town knows all it has told: whatever must be read anew after that, it will not tell by itself.
    is_heard: bool,
}

/// How a workspace is read; another way means another watch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct How {
    spec: BeadSource,
    dir: PathBuf,
    poll: Option<Duration>,
}

impl Sources {
    /// What a bead of a workspace says at length.
    pub(crate) fn description(&self, rig: &RigName, bead: &BeadId) -> Option<String> {
        self.followed.get(rig)?.descriptions.as_ref()?.details(bead)?.description
    }

    /// Has workspaces read again now: all of them, or one rig's.
    pub(super) fn poke(&self, rig: Option<&str>) {
        for (name, followed) in &self.followed {
            if let Some(watch) =
                followed.watch.as_ref().filter(|_| rig.is_none_or(|rig| rig == name.as_str()))
            {
                watch.poke();
            }
        }
    }
}

impl Core {
    /// Brings what is followed in line with the rigs there are: new workspaces are read at once, and so are those that
    /// show beads which were somebody else's until now.
    pub(super) fn follow_sources(&mut self) {
        let state = self.store.state();
        let wanted = wanted(state, &self.town);
        self.sources.followed.retain(|rig, followed| {
            let must = state.must_be_read_anew(rig);
            let stays = wanted.get(rig) == Some(&followed.how) && !(must && followed.is_heard);
            followed.is_heard |= !must;
            stays
        });
        for (rig, how) in wanted {
            if !self.sources.followed.contains_key(&rig) {
                let followed = self.follow(&rig, how, false);
                self.sources.followed.insert(rig, followed);
            }
        }
    }

    /// Reads every workspace anew, whatever the journal knows: after a failed commit it is unknown what it missed.
    pub(super) fn follow_sources_anew(&mut self) {
        self.sources.followed.clear();
        for (rig, how) in wanted(self.store.state(), &self.town) {
            let followed = self.follow(&rig, how, true);
            self.sources.followed.insert(rig, followed);
        }
    }

    fn follow(&mut self, rig: &RigName, how: How, anew: bool) -> Followed {
        self.sources.begun += 1;
        let number = self.sources.begun;
        if let Some(stage) = &mut self.stage {
            if let Some(reading) = stage.read_workspace(rig) {
                self.take_reading(&reading);
            }
            let is_heard = !self.store.state().must_be_read_anew(rig);
            return Followed { how, number, descriptions: None, watch: None, is_heard };
        }
        let mut source = Source::open(rig.clone(), &how.spec, &how.dir);
        let known = self.store.state().source_stamp(rig).map(str::to_owned);
        if self.store.state().beads().any(|entry| entry.bead.source.as_ref() == Some(rig)) {
            source.expect_beads();
        }
        let descriptions = Some(source.descriptions());
        let serves = self.role.dispatches_by_itself();
        let worth_reading = serves || anew || is_news(&source, &how, known.as_deref());
        if let Some(reading) = worth_reading.then(|| source.read()).flatten() {
            info!(%rig, beads = reading.beads.len(), "workspace read");
            self.take_reading(&reading);
        }
        let watch = serves.then(|| self.watch(source, how.poll, number)).flatten();
        let is_heard = !self.store.state().must_be_read_anew(rig);
        Followed { how, number, descriptions, watch, is_heard }
    }

    fn watch(&self, source: Source, poll: Option<Duration>, number: u64) -> Option<Watch> {
        let inputs = self.inputs();
        let sink = Arc::new(move |reading| {
            inputs.send(Input::Source { reading: Box::new(reading), watch: number });
        });
        let options = WatchOptions { poll, force_polling: false };
        Watch::start(source, options, sink)
            .inspect_err(|error| warn!(%error, "a workspace is read, but cannot be watched"))
            .ok()
    }

    /// The number of the watch that a rig's workspace has now; 0 if none.
    pub(crate) fn watch_of(&self, rig: &RigName) -> u64 {
        self.sources.followed.get(rig).map_or(0, |followed| followed.number)
    }

    /// Takes what a watch has seen, unless the workspace was read anew since: what was seen before that is older.
    pub(super) fn take_watched(&mut self, reading: &SourceReading, watch: u64) {
        if watch == self.watch_of(&reading.rig) && watch > 0 {
            self.take_reading(reading);
        }
    }

    pub(super) fn take_reading(&mut self, reading: &SourceReading) {
        self.store.decide(self.now, |tx| tx.source_read(reading));
    }
}

/// The workspaces that the town's rigs have.
fn wanted(state: &State, town: &TownDir) -> BTreeMap<RigName, How> {
    let poll = Some(state.settings().sources_poll.duration()).filter(|poll| !poll.is_zero());
    let with_source = state.rigs().filter_map(|rig| Some((rig, rig.source.clone()?)));
    let how = |(rig, spec): (&yard_engine::rig::Rig, BeadSource)| {
        let poll = match &spec {
            BeadSource::Jsonl { .. } => None,
            BeadSource::Command { .. } => poll,
        };
        (rig.name.clone(), How { spec, dir: town.rig_path(&rig.path), poll })
    };
    with_source.map(how).collect()
}

/// Whether a passing command has to read a workspace: a file that changed, or one never read. A tool that must be run
/// for it is left to pokes and to the daemon's poll.
fn is_news(source: &Source, how: &How, known: Option<&str>) -> bool {
    match &how.spec {
        BeadSource::Jsonl { .. } => known.is_none() || source.stamp_now().as_deref() != known,
        BeadSource::Command { .. } => known.is_none(),
    }
}

/// Whether some workspace changed since the journal last heard of it, so that a reader should let somebody look first.
pub(crate) fn any_news(state: &State, town: &TownDir) -> bool {
    wanted(state, town).into_iter().any(|(rig, how)| {
        let source = Source::open(rig.clone(), &how.spec, &how.dir);
        is_news(&source, &how, state.source_stamp(&rig))
    })
}

impl Core {
    /// Has config and workspaces read again. A passing command reads them itself.
    pub(super) fn poke(&mut self, rig: Option<&str>) {
        self.config_seen = None;
        self.follow_config();
        match self.role {
            ServerRole::Daemon | ServerRole::Console => match &mut self.stage {
                Some(stage) => stage.poke(rig),
                None => self.sources.poke(rig),
            },
            ServerRole::Command => self.follow_sources_anew(),
        }
    }
}
