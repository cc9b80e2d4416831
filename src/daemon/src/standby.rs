//! A daemon beside the one that serves. Where the journal is in a database it does not give up because somebody else has
//! the lease: it folds what the other commits, and takes over when the lease is given back or its heartbeat stops.

use std::time::Duration;

use tracing::{info, warn};
use yard_engine::{Seq, State};
use yard_journal::{EventQuery, Holder, JournalError, Lease, LeaseError, Reader, Role};

use crate::fold::fold;
use crate::serve::{DaemonError, tell_service_manager};
use crate::store::{StoreError, recorded};
use crate::town::TownDir;

/// How often the lease is looked at when nothing is told.
const LOOK: Duration = Duration::from_millis(250);
/// How long the database is left alone between two looks: whoever serves may commit many times in it.
const PAUSE: Duration = Duration::from_millis(25);
/// Events read at a time.
const SLICE: usize = 2_000;

/// The state as the log tells it, up to where it was followed.
pub(crate) struct Followed {
    pub(crate) state: State,
    /// The last event of the checkpoint that the state began with.
    pub(crate) checkpoint: Seq,
}

/// Waits until the lease can be had, and follows the log meanwhile.
pub(crate) fn await_lease(town: &TownDir) -> Result<(Lease, Option<Followed>), DaemonError> {
    let mut standby = Standby { town: town.clone(), reader: None, followed: None, leader: None, away: false };
    loop {
        match town.try_lease(Role::Daemon) {
            Ok(lease) => return Ok((lease, standby.up_to_date()?)),
            Err(LeaseError::Held(holder)) => standby.meet(holder),
            // Without a server nobody can lead. Whoever starts without one hears so; whoever waits goes on waiting.
            Err(LeaseError::Journal(JournalError::Unreachable(error))) if standby.leader.is_some() => {
                standby.miss(&error);
            }
            Err(error) => return Err(DaemonError::Lease(error)),
        }
        while !standby.look()? {}
    }
}

struct Standby {
    town: TownDir,
    reader: Option<Reader>,
    followed: Option<Followed>,
    leader: Option<Holder>,
    /// The server cannot be reached at present.
    away: bool,
}

impl Standby {
    /// Somebody else has the lease.
    fn meet(&mut self, holder: Holder) {
        let passes = matches!(holder.role, Some(Role::Command) | None);
        if !passes && self.leader.as_ref() != Some(&holder) {
            info!(town = %self.town.root().display(), "standing by: {holder} serves the town");
            tell_service_manager("READY=1\nSTATUS=standing by");
            self.leader = Some(holder);
        }
    }

    fn miss(&mut self, error: &dyn std::fmt::Display) {
        if !self.away {
            warn!(%error, "standing by; the server is away");
        }
        self.away = true;
        self.reader = None;
        std::thread::sleep(LOOK);
    }

    /// Waits for news and takes them in; true when the lease is free.
    fn look(&mut self) -> Result<bool, StoreError> {
        match self.try_look() {
            Err(StoreError::Journal(JournalError::Unreachable(error))) => {
                self.miss(&error);
                Ok(false)
            }
            // Whoever serves has not made the journal yet.
            Err(StoreError::Journal(JournalError::Missing(_))) => {
                std::thread::sleep(LOOK);
                Ok(true)
            }
            other => other,
        }
    }

    fn try_look(&mut self) -> Result<bool, StoreError> {
        let reader = match self.reader.take() {
            Some(reader) => reader,
            None => self.town.reader()?,
        };
        let reader = self.reader.insert(reader);
        self.away = false;
        let Some(holder) = reader.holder()? else { return Ok(true) };
        follow(reader, &mut self.followed)?;
        reader.wait_for_news(LOOK)?;
        std::thread::sleep(PAUSE);
        self.meet(holder);
        Ok(false)
    }

    /// What the log has by now, when nobody else can write it any more. Nothing if it was not followed.
    fn up_to_date(mut self) -> Result<Option<Followed>, StoreError> {
        if let (Some(reader), Some(_)) = (&self.reader, &self.followed) {
            match follow(reader, &mut self.followed) {
                // It is read as a whole then.
                Err(StoreError::Journal(JournalError::Unreachable(_))) => return Ok(None),
                other => other?,
            }
            info!("taking over");
        }
        Ok(self.followed)
    }
}

/// Adds what the log has to what was followed. After a new checkpoint it is read as a whole: the checkpoint must be gone on
/// with by whoever knows what is in it.
fn follow(reader: &Reader, followed: &mut Option<Followed>) -> Result<(), StoreError> {
    let checkpoint = reader.checkpoint()?;
    let before = followed.take_if(|before| before.checkpoint == checkpoint);
    let Some(Followed { mut state, checkpoint }) = before else {
        let (state, checkpoint) = fold(|take| reader.load_in_pieces(take))?;
        *followed = Some(Followed { state, checkpoint });
        return Ok(());
    };
    loop {
        let query = EventQuery { since: Some(state.seq()), limit: Some(SLICE), ..EventQuery::default() };
        let rows = reader.events(&query)?;
        // What was cut off before it was seen is in a checkpoint that was not seen either.
        if rows.first().is_some_and(|row| row.seq != state.seq().next()) {
            return Ok(());
        }
        for row in &rows {
            state.apply(&recorded(row)?);
        }
        if rows.len() < SLICE {
            *followed = Some(Followed { state, checkpoint });
            return Ok(());
        }
    }
}
