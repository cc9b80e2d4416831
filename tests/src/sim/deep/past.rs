//! The beginning of the log: copies of checkpoints on the simulated disk, and what must be true of them whatever happened.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use yard_daemon::rehearsal::{Keeping, Shelf};
use yard_engine::town::TownEvent;
use yard_engine::{Event, Millis, Recorded, Seq, State, Timestamp};
use yard_journal::{EventQuery, JournalError, OtherDisk, Reader};

use super::around::Around;
use super::disk::{Disk, Fault, Step, Verdict, disk};
use super::vfs;
use crate::sim::Broken;
use crate::sim::daemon::Halt;
use crate::sim::history::World;

/// Where the journal lies on the simulated disk.
pub(super) const JOURNAL: &str = "/town/journal.db";
const FOLDER: &str = "/town/";
const UNFINISHED: &str = "/town/past.new";

/// Whether this is a copy that is still being made, or something of it.
pub(super) fn is_unfinished(path: &str) -> bool {
    path.starts_with(UNFINISHED)
}

/// How histories keep the past: copies after few events, cut in small pieces.
pub(super) fn keeping(place: OtherDisk, seed: u64) -> Keeping {
    Keeping {
        shelf: Arc::new(SimulatedShelf(place)),
        worth_a_copy: 1 + seed % 24,
        cut_at_once: 1 + seed % 7 * 6,
    }
}

/// The folder of the journal on the simulated disk of whichever thread looks.
struct SimulatedShelf(OtherDisk);

fn at(name: &str) -> String {
    format!("{FOLDER}{name}")
}

fn names() -> Vec<String> {
    disk(|disk| disk.files.keys().filter_map(|path| path.strip_prefix(FOLDER)).map(str::to_owned).collect())
}

impl Shelf for SimulatedShelf {
    fn names(&self) -> Vec<String> {
        names()
    }

    fn path(&self, name: &str) -> PathBuf {
        at(name).into()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        disk(|disk| disk.rename(&at(from), &at(to)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let gone = disk(|disk| {
            disk.files.contains_key(&at(name))
                && matches!(disk.step(Step::Delete, false), Verdict::Go)
                && disk.delete(&at(name), false)
        });
        if gone { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn sync(&self) -> io::Result<()> {
        disk(Disk::sync_folder)
    }

    fn log(&self) -> Result<Reader, JournalError> {
        Reader::open_on(self.0, Path::new(JOURNAL))
    }
}

/// What is known of the past, whatever the log has left of it.
#[derive(Default)]
pub(super) struct Past {
    /// When each event happened, the first one first.
    times: Vec<Timestamp>,
    /// The shortest time that results were ever kept.
    shortest_ttl: Option<Millis>,
    /// Where the log began when it was last looked at.
    beginning: Seq,
}

impl Past {
    pub(super) fn happened(&mut self, recorded: &Recorded) {
        self.times.push(recorded.at);
        if let Event::Town(TownEvent::SettingsChanged { settings, .. }) = &recorded.event {
            let ttl = settings.results_ttl;
            self.shortest_ttl = Some(self.shortest_ttl.map_or(ttl, |shortest| shortest.min(ttl)));
        }
    }

    /// The log begins here now; whether it was cut since the last look, which it may be only at what is old.
    fn begins(&mut self, beginning: Seq, now: Timestamp) -> Result<bool, Broken> {
        let before = std::mem::replace(&mut self.beginning, beginning);
        Broken::unless(before <= beginning, || {
            format!("the log began after {before}, and now after {beginning}")
        })?;
        if before == beginning {
            return Ok(false);
        }
        let ttl = self.shortest_ttl.unwrap_or_default().duration();
        let last = (beginning.0 as usize).checked_sub(1).and_then(|index| self.times.get(index));
        let is_old = last.is_some_and(|at| now.since(*at) >= ttl);
        Broken::unless(is_old, || format!("the log was cut at {beginning}, which is not old enough"))?;
        Ok(true)
    }
}

/// A copy on the disk whose name says that it is whole.
struct Copy {
    seq: Seq,
    sum: u64,
    path: String,
}

impl Copy {
    fn named(name: &str) -> Option<Self> {
        let (seq, sum) = name.strip_prefix("past-")?.strip_suffix(".db")?.split_once('-')?;
        let (seq, sum) = (Seq(seq.parse().ok()?), u64::from_str_radix(sum, 16).ok()?);
        Some(Self { seq, sum, path: at(name) })
    }
}

impl Around {
    /// Holds the beginning of the log against what is known: it is 0, or there is a copy of a checkpoint to begin with, and
    /// every such copy gives the town as it is now when the events after it are folded in.
    fn check_past(&mut self) -> Result<(), Broken> {
        disk(|disk| disk.onlooker = true);
        let checked = self.look_at_past();
        disk(|disk| disk.onlooker = false);
        checked
    }

    fn look_at_past(&mut self) -> Result<(), Broken> {
        let failed = |error: JournalError| Broken(format!("the past cannot be read: {error}"));
        let place = OtherDisk { vfs: vfs::NAME, wal_limit: 0 };
        let log = Reader::open_on(place, Path::new(JOURNAL)).map_err(failed)?;
        let beginning = log.beginning().map_err(failed)?;
        if self.past.begins(beginning, self.clocks.latest())? {
            self.coverage.route("log-cut");
        }
        let mut begins_with_one = beginning == Seq(0);
        for copy in names().iter().filter_map(|name| Copy::named(name)) {
            if copy.seq < beginning || !log.has_sum(copy.seq, copy.sum).map_err(failed)? {
                continue;
            }
            self.coverage.route(if copy.seq == beginning { "past-copied" } else { "past-copied-ahead" });
            begins_with_one = true;
            let then =
                Reader::open_on(place, Path::new(&copy.path)).and_then(|it| it.load()).map_err(failed)?;
            Broken::unless(then.checkpoint_seq == copy.seq, || {
                format!("{} stands at {}", copy.path, then.checkpoint_seq)
            })?;
            let rows = then
                .entities
                .iter()
                .map(|row| (row.kind.as_str(), row.id.as_str(), row.body.as_deref().unwrap_or_default()));
            let mut state = State::restore(copy.seq, rows).map_err(|error| Broken(error.to_string()))?;
            let query = EventQuery { since: Some(copy.seq), ..EventQuery::default() };
            for row in log.events(&query).map_err(failed)? {
                let event = Event::from_stored(&row.kind, &row.body).map_err(|it| Broken(it.to_string()))?;
                state.apply(&Recorded { seq: row.seq, at: row.at, event });
            }
            Broken::unless(state.seq() == self.lent.oracle.durable.seq(), || {
                format!("{} and the events after it end at {}", copy.path, state.seq())
            })?;
            state.check_same_as(&self.lent.oracle.durable)?;
        }
        Broken::unless(begins_with_one, || {
            format!("the log begins after {beginning}, and no copy of a checkpoint fits: {:?}", names())
        })
    }
}

impl World {
    /// What other threads of the process were to do is done; whether there was anything.
    pub(super) fn others_work(&mut self) -> Result<bool, Halt> {
        let works = self.around(|around| std::mem::take(&mut around.beside));
        let any = !works.is_empty();
        for work in works {
            self.tell(|| "the checkpoint is copied".to_owned());
            let had = disk(|disk| disk.files.contains_key(UNFINISHED));
            if had {
                self.covers("unfinished-copy-cleared-away");
            }
            self.may_plan_a_fault_within(60);
            self.with_core(|_| work())?;
        }
        Ok(any)
    }

    /// Results become old: checkpoints are copied, and the log is cut, if nothing comes between.
    pub(in crate::sim) fn the_past_goes_by(&mut self) -> Result<(), Halt> {
        let ttl = self.state().settings().results_ttl;
        for _ in 0..self.dice.between(2, 6) {
            self.checkpoint()?;
            let span = Millis(self.dice.between(ttl.0 / 2, ttl.0 + 1_000));
            self.now = self.now.after(span.duration());
            self.tell(|| format!("{span:?} go by"));
            self.may_plan_a_fault_within(6);
            self.scan()?;
            if !self.dice.one_in(4) {
                self.others_work()?;
            }
        }
        self.check_past()
    }

    /// Something may go wrong with one of so many steps.
    fn may_plan_a_fault_within(&mut self, steps: u64) {
        if self.faults && self.dice.one_in(3) {
            let fault = if self.dice.one_in(3) { Fault::Fail } else { Fault::Crash };
            match self.dice.below(8) {
                0 => disk(|disk| disk.plan_for(Step::Rename, fault)),
                1 => disk(|disk| disk.plan_for(Step::SyncFolder, fault)),
                _ => {
                    let steps = self.dice.between(1, steps);
                    disk(|disk| disk.plan(steps, fault));
                }
            }
        }
    }

    /// Holds the beginning of the log against what is known.
    pub(super) fn check_past(&mut self) -> Result<(), Halt> {
        self.lend();
        let checked = self.around(Around::check_past);
        self.take_back();
        Ok(checked?)
    }
}
