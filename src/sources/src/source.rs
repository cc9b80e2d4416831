//! A rig's source of beads, whatever its kind.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use yard_engine::rig::BeadSource;
use yard_engine::{RigName, SourceReading};

use crate::command::CommandSource;
use crate::details::Descriptions;
use crate::jsonl::JsonlSource;

/// Where the beads of a rig come from. Read it once, then hand it to a [`crate::Watch`], which goes on from there.
pub struct Source {
    kind: Kind,
}

enum Kind {
    Jsonl(JsonlSource),
    Command(CommandSource),
}

impl Source {
    /// The source of a rig whose directory is `dir`, an absolute path. Nothing is read yet.
    pub fn open(rig: RigName, spec: &BeadSource, dir: &Path) -> Self {
        let kind = match spec {
            BeadSource::Jsonl { path } => Kind::Jsonl(JsonlSource::open(rig, dir.join(path))),
            BeadSource::Command { argv } => {
                Kind::Command(CommandSource::open(rig, argv.clone(), dir.to_path_buf()))
            }
        };
        Self { kind }
    }

    /// Says that beads of this source are known from before this process: then a missing file or an empty answer is
    /// trouble, not a workspace that has yet to begin.
    pub fn expect_beads(&mut self) {
        match &mut self.kind {
            Kind::Jsonl(source) => source.expect_beads(),
            Kind::Command(source) => source.expect_beads(),
        }
    }

    /// What is new since the last reading; none if nothing is. The first reading is whole if anything could be read.
    /// A command source runs its command and waits for it.
    pub fn read(&mut self) -> Option<SourceReading> {
        match &mut self.kind {
            Kind::Jsonl(source) => source.read(),
            Kind::Command(source) => source.read(),
        }
    }

    /// The stamp that a certain reading would have now: a reading can be skipped if the journal has seen it. Stamps of
    /// uncertain readings end with `?` and never equal one, except that of a file that is not there and never was.
    /// None if only a reading can tell.
    pub fn stamp_now(&self) -> Option<String> {
        match &self.kind {
            Kind::Jsonl(source) => source.stamp_now(),
            Kind::Command(_) => None,
        }
    }

    /// The handle that answers what the beads say at length; it stays good while a watch has the source.
    pub fn descriptions(&self) -> Descriptions {
        match &self.kind {
            Kind::Jsonl(source) => source.descriptions(),
            Kind::Command(source) => source.descriptions(),
        }
    }

    /// The file to watch, if there is one.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match &self.kind {
            Kind::Jsonl(source) => Some(source.path().to_path_buf()),
            Kind::Command(_) => None,
        }
    }

    /// How long a file may be in trouble before it is told: half-written files heal by themselves.
    pub(crate) fn set_patience(&mut self, patience: Duration) {
        match &mut self.kind {
            Kind::Jsonl(source) => source.set_patience(patience),
            Kind::Command(_) => {}
        }
    }

    /// When it should be read again although nothing seems to happen.
    pub(crate) fn due(&self) -> Option<Instant> {
        match &self.kind {
            Kind::Jsonl(source) => source.due(),
            Kind::Command(_) => None,
        }
    }

    /// Ends a reading from another thread, where readings can take long.
    pub(crate) fn stop_flag(&self) -> Option<Arc<AtomicBool>> {
        match &self.kind {
            Kind::Jsonl(_) => None,
            Kind::Command(source) => Some(source.stop_flag()),
        }
    }
}
