//! What is around the loop while it turns, and what comes of its orders. The world lends its workers, its tracker and its
//! oracle for each round, so that they can answer the loop in the middle of it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use yard_daemon::rehearsal::{GitJob, Replies, Time};
use yard_engine::town::TownEvent;
use yard_engine::{
    AgentName, AlertId, BeadId, DispatchId, Event, Millis, Recorded, Seq, Settings, Timestamp,
};

use super::coverage::Coverage;
use super::disk::disk;
use super::past::Past;
use super::vfs;
use crate::sim::Broken;
use crate::sim::dice::Dice;
use crate::sim::oracle::Oracle;
use crate::sim::tracker::Tracker;
use crate::sim::workers::Workers;

/// The clocks of the simulated machine.
pub(super) struct Clocks {
    start: Instant,
    steady: Cell<Duration>,
    wall: Cell<Timestamp>,
    /// Runs on, follows the wall clock forward, and never goes back.
    latest: Cell<Timestamp>,
}

impl Clocks {
    pub(super) fn new(wall: Timestamp) -> Self {
        Self {
            start: Instant::now(),
            steady: Cell::default(),
            wall: Cell::new(wall),
            latest: Cell::new(wall),
        }
    }

    /// Time goes by.
    pub(super) fn pass(&self, span: Duration) {
        self.steady.set(self.steady.get() + span);
        self.latest.set(self.latest.get().after(span));
        self.set_wall(self.wall.get().after(span));
    }

    /// Somebody sets the clock on the wall, or the machine slept.
    pub(super) fn set_wall(&self, wall: Timestamp) {
        self.wall.set(wall);
        self.latest.set(self.latest.get().max(wall));
    }

    /// No loop's clock is ahead of this.
    pub(super) fn latest(&self) -> Timestamp {
        self.latest.get()
    }

    /// How long the machine has been up.
    pub(super) fn uptime(&self) -> Millis {
        Millis(self.steady.get().as_millis() as u64)
    }
}

impl Time for Clocks {
    fn instant(&self) -> Instant {
        self.start + self.steady.get()
    }

    fn wall(&self) -> Timestamp {
        self.wall.get()
    }
}

/// Somebody's question that is not answered yet.
pub(super) struct Asked {
    pub(super) replies: Replies,
    /// What it was about, in a word; empty if it was no command.
    pub(super) command: String,
    /// It was asked in this round.
    pub(super) fresh: bool,
    pub(super) heard: Vec<yard_client::Reply>,
}

impl Asked {
    fn listen(&mut self) {
        while let Some(reply) = self.replies.take() {
            self.heard.push(reply);
        }
    }
}

/// All questions under way.
#[derive(Default)]
pub(super) struct Desk {
    pub(super) asked: Vec<Asked>,
}

impl Desk {
    pub(super) fn listen(&mut self) {
        self.asked.iter_mut().for_each(Asked::listen);
    }

    /// A command of this round that was told yes, although the round's events are only being written.
    pub(super) fn answered_early(&mut self) -> Option<String> {
        self.listen();
        let early = self.asked.iter().find(|asked| {
            let yes = asked.heard.iter().any(|reply| matches!(reply, yard_client::Reply::Ok { .. }));
            asked.fresh && !asked.command.is_empty() && yes
        });
        early.map(|asked| format!("{} was answered before it was durable", asked.command))
    }
}

/// What the world lends.
#[derive(Default)]
pub(in crate::sim) struct Lent {
    pub(in crate::sim) dice: Dice,
    pub(in crate::sim) workers: Workers,
    pub(in crate::sim) tracker: Tracker,
    pub(in crate::sim) oracle: Oracle,
    pub(in crate::sim) wanted: Settings,
    pub(in crate::sim) faults: bool,
    pub(in crate::sim) story: Option<Vec<String>>,
}

/// What the loop finds around itself.
pub(super) struct Around {
    pub(super) lent: Lent,
    pub(super) clocks: Rc<Clocks>,
    /// Who reads along.
    reader: Option<Connection>,
    journal: String,
    /// How far the disk was when it was read last.
    read_at: u64,
    /// Orders whose shims are this pool's own.
    pub(super) own: BTreeSet<DispatchId>,
    pub(super) git: VecDeque<GitJob>,
    pub(super) alerts: Vec<AlertId>,
    pub(super) messages: Vec<(AgentName, u64)>,
    pub(super) actions: Vec<DispatchId>,
    pub(super) webhooks: Vec<BeadId>,
    /// What other threads are to do.
    pub(super) beside: Vec<Box<dyn FnOnce()>>,
    pub(super) busy: bool,
    pub(super) coverage: Coverage,
    pub(super) past: Past,
    pub(super) broken: Option<Broken>,
}

impl Around {
    pub(super) fn new(clocks: Rc<Clocks>, journal: String) -> Self {
        Self {
            lent: Lent::default(),
            clocks,
            reader: None,
            journal,
            read_at: 0,
            own: BTreeSet::new(),
            git: VecDeque::new(),
            alerts: Vec::new(),
            messages: Vec::new(),
            actions: Vec::new(),
            webhooks: Vec::new(),
            beside: Vec::new(),
            past: Past::default(),
            busy: false,
            coverage: Coverage::default(),
            broken: None,
        }
    }

    pub(super) fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.lent.story {
            story.push(line());
        }
    }

    /// The process is gone, and with it what it had under way.
    pub(super) fn forget_the_process(&mut self) {
        self.reader = None;
        self.own.clear();
        self.git.clear();
        self.alerts.clear();
        self.messages.clear();
        self.actions.clear();
        self.webhooks.clear();
        self.beside.clear();
    }

    /// Whether the process is gone, and nothing it orders reaches anybody.
    pub(super) fn is_dead() -> bool {
        disk(|disk| disk.dead)
    }

    /// The process may end here.
    pub(super) fn may_crash(&mut self, when: &str) {
        if self.lent.faults && !Self::is_dead() && self.lent.dice.one_in(30) {
            self.tell(|| format!("crash {when}"));
            disk(super::disk::Disk::kill);
        }
    }

    /// Notes the first promise that does not hold.
    pub(super) fn hold(&mut self, outcome: Result<(), Broken>) {
        if let Err(broken) = outcome {
            self.broken.get_or_insert(broken);
        }
    }

    /// Reads what has become durable since the last look, and holds it against what is known.
    pub(super) fn catch_up(&mut self) {
        let steps = disk(|disk| disk.steps);
        if steps == self.read_at && self.reader.is_some() {
            return;
        }
        self.read_at = steps;
        disk(|disk| disk.onlooker = true);
        let rows = self.read();
        disk(|disk| disk.onlooker = false);
        match rows {
            Ok(rows) => {
                for recorded in rows {
                    let outcome = self.becomes_durable(&recorded);
                    if outcome.is_err() {
                        return self.hold(outcome);
                    }
                }
                let line = self.lent.oracle.check_line();
                self.hold(line);
            }
            Err(broken) => self.hold(Err(broken)),
        }
    }

    fn becomes_durable(&mut self, recorded: &Recorded) -> Result<(), Broken> {
        self.tell(|| format!("  {} {} {}", recorded.seq, recorded.event.kind(), recorded.event.body()));
        self.coverage.event(recorded.event.kind());
        self.past.happened(recorded);
        let Lent { workers, tracker, oracle, wanted, .. } = &mut self.lent;
        if let Event::Town(TownEvent::SettingsChanged { settings, .. }) = &recorded.event {
            wanted.clone_from(settings);
        }
        oracle.becomes_durable(recorded, workers, tracker, wanted)
    }

    /// Counts from what the state was read: a checkpoint, the events after it, or both.
    pub(super) fn note_how_it_was_read(&mut self) {
        let Some(reader) = &self.reader else { return };
        disk(|disk| disk.onlooker = true);
        let query =
            "SELECT checkpoint_seq, (SELECT count(*) FROM events WHERE seq > checkpoint_seq) FROM meta";
        let found = reader.query_row(query, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
        disk(|disk| disk.onlooker = false);
        if let Ok((checkpoint, tail)) = found {
            if checkpoint > 0 {
                self.coverage.route("checkpoint-restored");
            }
            if tail > 0 {
                self.coverage.route("tail-replayed");
            }
        }
    }

    fn read(&mut self) -> Result<Vec<Recorded>, Broken> {
        let failed = |error: rusqlite::Error| Broken(format!("the journal cannot be read along: {error}"));
        if self.reader.is_none() {
            let there =
                disk(|disk| disk.files.get(&self.journal).is_some_and(|it| !it.borrow().now.is_empty()));
            if !there {
                return Ok(Vec::new());
            }
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let reader = Connection::open_with_flags_and_vfs(Path::new(&self.journal), flags, vfs::NAME);
            let reader = reader.map_err(failed)?;
            let has_tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'events'";
            let tables: i64 = reader.query_row(has_tables, [], |row| row.get(0)).map_err(failed)?;
            if tables == 0 {
                return Ok(Vec::new());
            }
            self.reader = Some(reader);
        }
        let Some(reader) = &self.reader else { return Ok(Vec::new()) };
        let known = self.lent.oracle.durable.seq();
        let query = "SELECT seq, at, kind, body FROM events WHERE seq > ?1 ORDER BY seq";
        let mut query = reader.prepare_cached(query).map_err(failed)?;
        let rows = query.query_map([known.0 as i64], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, String>(2)?,
                row.get::<_, String>(3)?,
            ))
        });
        let mut found = Vec::new();
        for row in rows.map_err(failed)? {
            let (seq, at, kind, body) = row.map_err(failed)?;
            let event = Event::from_stored(&kind, &body).map_err(|error| Broken(error.to_string()))?;
            found.push(Recorded { seq: Seq(seq as u64), at: Timestamp::from_millis(at), event });
        }
        Ok(found)
    }
}

/// Around, as the loop's stand-ins hold it.
pub(super) type Shared = Rc<RefCell<Around>>;
