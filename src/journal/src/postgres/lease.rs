//! The lease as a row: a term, who holds it, and a heartbeat by the server's clock.
//!
//! Taking it makes a new term, durably, before anybody acts upon it. Every write checks the term in its own transaction, so
//! it does not matter whether whoever was replaced knows of it: nothing of his is stored any more. The heartbeat only says
//! when the row may be taken from somebody who did not give it back.

use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use postgres::error::SqlState;
use postgres::{Client, Row};
use yard_engine::Timestamp;

use super::place::Place;
use super::schema;
use super::session::{PATIENCE, connect, prepare_for_writing};
use super::url::PostgresUrl;
use crate::lease::this_host;
use crate::{Holder, JournalError, LeaseError, Role};

/// How often the holder says that it lives.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// The row is never waited for long.
const SHORT_LOCKS: &str = "SET lock_timeout TO '1s'";

/// What is done when the lease is lost.
type Act = Box<dyn FnOnce(JournalError) + Send>;

/// The row, held until dropped.
pub(crate) struct RowLease {
    term: i64,
    /// By what its sessions are known.
    label: String,
    url: PostgresUrl,
    /// The directory it is held from.
    place: Option<Place>,
    /// Who held it last, if that was from another directory.
    elsewhere: Option<Holder>,
    fate: Arc<Mutex<Fate>>,
    /// Dropping the sender ends the heartbeat, which gives the row back.
    heart: Option<(Sender<()>, JoinHandle<()>)>,
}

/// What became of a lease.
#[derive(Default)]
enum Fate {
    /// It is held.
    #[default]
    Held,
    /// It is held, and somebody wants to know when it is not.
    Watched(Act),
    /// It was lost.
    Lost(Option<JournalError>),
}

impl RowLease {
    /// Takes the row if nobody has it, or whoever had it has not been heard of for too long.
    pub(crate) fn try_acquire(url: &PostgresUrl, role: Role) -> Result<Self, LeaseError> {
        let mut client = connect(url, &format!("ym {} lease", url.schema()))?;
        schema::must_exist(&mut client, url)?;
        let place = Place::that_leads(&mut client, url)?;
        prepare_for_writing(&mut client)?;
        if let Some(holder) = Self::holder_by(&mut client)? {
            return Err(LeaseError::Held(holder));
        }
        end_sessions_of_the_last(&mut client, url).map_err(JournalError::from)?;
        let taken = take(&mut client, url, role).map_err(JournalError::from)?;
        let Some(term) = taken else {
            // Somebody else was faster, or a write of the last holder is not over yet.
            return Err(LeaseError::Held(Self::holder_by(&mut client)?.unwrap_or_default()));
        };
        let elsewhere = Self::home_other_than(&mut client, place.as_ref())?;
        let (fate, label) = (Arc::default(), url.label(term));
        let (theirs, own_url, url) = (Arc::clone(&fate), url.clone(), url.clone());
        let (end, ended) = channel();
        let heard = Heard::now();
        heard.watch(&fate)?;
        let heart = std::thread::Builder::new().name("ym-lease".to_owned()).spawn(move || {
            let mut heart = Heart { client, url, term };
            loop {
                match ended.recv_timeout(HEARTBEAT) {
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return heart.give_back(),
                    Err(RecvTimeoutError::Timeout) => {}
                }
                match heart.beat() {
                    Ok(()) => heard.note(),
                    Err(error @ JournalError::Replaced) => return lose(&theirs, error),
                    Err(error) if heard.is_long_ago() => return lose(&theirs, error),
                    // Whatever it is may pass; the next write says whether the term still is ours.
                    Err(_) => heart.connect_again(),
                }
            }
        })?;
        Ok(Self { term, label, url: own_url, place, elsewhere, fate, heart: Some((end, heart)) })
    }

    /// Who led the log last, if that was not from this directory.
    pub(super) fn home_other_than(
        client: &mut Client,
        place: Option<&Place>,
    ) -> Result<Option<Holder>, JournalError> {
        let row = client.query_one("SELECT home, home_host, home_address FROM lease", &[])?;
        let home: String = row.try_get(0)?;
        if home.is_empty() || place.is_some_and(|place| place.name == home) {
            return Ok(None);
        }
        let (host, town) = (Some(row.try_get(1)?), Some(row.try_get(2)?));
        Ok(Some(Holder { host, town, ..Holder::default() }))
    }

    /// Who led the log before, if that was from another directory.
    pub(crate) fn led_from_elsewhere(&self) -> Option<&Holder> {
        self.elsewhere.as_ref()
    }

    /// From now on the log is led from this directory.
    pub(crate) fn make_home(&self) -> Result<(), JournalError> {
        let Some(place) = &self.place else { return Ok(()) };
        let mut client = connect(&self.url, &format!("ym {} lease", self.url.schema()))?;
        prepare_for_writing(&mut client)?;
        let made = client.execute(
            "UPDATE lease SET home = $2, home_host = $3, home_address = $4
             WHERE term = $1 AND (home, home_host, home_address) IS DISTINCT FROM ($2, $3, $4)",
            &[&self.term, &place.name, &this_host(), &self.url.town()],
        )?;
        let is_ours =
            made > 0 || client.query_opt("SELECT 1 FROM lease WHERE term = $1", &[&self.term])?.is_some();
        if is_ours { Ok(()) } else { Err(JournalError::Replaced) }
    }

    /// Who holds the lease now, if anybody does.
    pub(crate) fn holder(url: &PostgresUrl) -> Result<Option<Holder>, JournalError> {
        let mut client = connect(url, &format!("ym {} lease", url.schema()))?;
        schema::must_exist(&mut client, url)?;
        Self::holder_by(&mut client)
    }

    /// The same on a connection that is open.
    pub(super) fn holder_by(client: &mut Client) -> Result<Option<Holder>, JournalError> {
        let found = client.query_opt(
            &format!(
                "SELECT role, pid, host, address, (extract(epoch FROM taken_at) * 1000)::bigint
                 FROM lease WHERE NOT ({IS_FREE})"
            ),
            &[],
        )?;
        Ok(found.map(|row| holder(&row)).transpose()?)
    }

    /// A name that no other holder has.
    pub(crate) fn leader(&self) -> String {
        format!("{} pid {} on {}", self.label, std::process::id(), this_host())
    }

    /// The term in which this lease is held.
    pub(super) fn term(&self) -> i64 {
        self.term
    }

    /// Has something done when the lease is lost; at once if it was lost already.
    pub(crate) fn when_lost(&self, act: Act) {
        let mut fate = self.fate.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *fate) {
            Fate::Held | Fate::Watched(_) => *fate = Fate::Watched(act),
            Fate::Lost(error) => {
                *fate = Fate::Lost(None);
                drop(fate);
                act(error.unwrap_or(JournalError::Replaced));
            }
        }
    }
}

impl fmt::Debug for RowLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowLease").field("term", &self.term).finish_non_exhaustive()
    }
}

impl Drop for RowLease {
    fn drop(&mut self) {
        if let Some((end, heart)) = self.heart.take() {
            drop(end);
            // Whoever comes next must find the row free.
            let _ = heart.join();
        }
    }
}

/// Nobody has the row, or whoever has it has not been heard of for too long. A server that was away itself gives everybody
/// this time again.
const IS_FREE: &str = "NOT held OR greatest(heartbeat_at, pg_postmaster_start_time()) \
                       < clock_timestamp() - interval '3 seconds'";

/// Ends what the last holder may still have under way, such as a transaction in the middle of which it stopped and which
/// would keep the term from changing.
fn end_sessions_of_the_last(client: &mut Client, url: &PostgresUrl) -> Result<(), postgres::Error> {
    let Some(last) = client.query_opt(&format!("SELECT term FROM lease WHERE {IS_FREE}"), &[])? else {
        return Ok(());
    };
    let term: i64 = last.try_get(0)?;
    let ended = client.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = $1 AND datname = current_database() AND pid <> pg_backend_pid()",
        &[&url.label(term)],
    );
    match ended {
        // Another role's sessions are its own business: a transaction of theirs ends by itself after a while.
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Makes the next term ours, if the row is free; says which it is.
fn take(client: &mut Client, url: &PostgresUrl, role: Role) -> Result<Option<i64>, postgres::Error> {
    client.batch_execute(SHORT_LOCKS)?;
    let pid = i64::from(std::process::id());
    let taken = client.query_opt(
        &format!(
            "UPDATE lease SET term = term + 1, held = true, role = $1, pid = $2, host = $3, address = $4,
                 taken_at = clock_timestamp(), heartbeat_at = clock_timestamp()
             WHERE {IS_FREE} RETURNING term, pg_notify('{}', '')",
            url.channel()
        ),
        &[&role.to_string(), &pid, &this_host(), &url.town()],
    );
    match taken {
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(None),
        Err(error) => Err(error),
        Ok(None) => Ok(None),
        Ok(Some(row)) => row.try_get(0).map(Some),
    }
}

fn holder(row: &Row) -> Result<Holder, postgres::Error> {
    let role: String = row.try_get(0)?;
    let roles = [Role::Daemon, Role::Console, Role::Command];
    let address: String = row.try_get(3)?;
    Ok(Holder {
        pid: u32::try_from(row.try_get::<_, i64>(1)?).ok(),
        role: roles.into_iter().find(|it| it.to_string() == role),
        host: Some(row.try_get(2)?),
        town: Some(address).filter(|address| !address.is_empty()),
        since: Some(Timestamp::from_millis(row.try_get(4)?)),
    })
}

/// When the server was heard of last.
#[derive(Clone)]
struct Heard(Arc<Mutex<Instant>>);

impl Heard {
    fn now() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn is_long_ago(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= PATIENCE
    }

    /// Notices that the heart itself is held up, by a way to the server that neither answers nor breaks. Ends with the heart.
    fn watch(&self, fate: &Arc<Mutex<Fate>>) -> std::io::Result<()> {
        let (weak, fate) = (Arc::downgrade(&self.0), Arc::clone(fate));
        let thread = std::thread::Builder::new().name("ym-lease-watch".to_owned());
        thread.spawn(move || {
            while let Some(heard) = weak.upgrade() {
                if Self(heard).is_long_ago() {
                    let why = format!("nothing was heard of it for {} seconds", PATIENCE.as_secs());
                    return lose(&fate, JournalError::Unreachable(why));
                }
                let begun = Instant::now();
                std::thread::sleep(HEARTBEAT);
                if begun.elapsed() > 4 * HEARTBEAT
                    && let Some(heard) = weak.upgrade()
                {
                    // It was this process that stood still: the heart has yet to find out what became of the lease.
                    Self(heard).note();
                }
            }
        })?;
        Ok(())
    }
}

fn lose(fate: &Mutex<Fate>, error: JournalError) {
    let mut fate = fate.lock().unwrap_or_else(PoisonError::into_inner);
    match std::mem::take(&mut *fate) {
        Fate::Watched(act) => {
            *fate = Fate::Lost(None);
            drop(fate);
            act(error);
        }
        Fate::Held | Fate::Lost(_) => *fate = Fate::Lost(Some(error)),
    }
}

/// Who says that the holder lives.
struct Heart {
    client: Client,
    url: PostgresUrl,
    term: i64,
}

impl Heart {
    fn beat(&mut self) -> Result<(), JournalError> {
        let beat = self.client.execute(
            // One that a crash of the server forgets only makes the lease look older.
            "UPDATE lease SET heartbeat_at = clock_timestamp()
             WHERE term = $1 AND set_config('synchronous_commit', 'off', true) IS NOT NULL",
            &[&self.term],
        );
        match beat {
            Ok(0) => Err(JournalError::Replaced),
            Ok(_) => Ok(()),
            // Whoever takes it over has the row; the next beat sees what came of that.
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn connect_again(&mut self) {
        let again = connect(&self.url, &format!("ym {} lease", self.url.schema())).and_then(|mut client| {
            client.batch_execute(SHORT_LOCKS)?;
            Ok(client)
        });
        if let Ok(client) = again {
            self.client = client;
        }
    }

    fn give_back(&mut self) {
        let give_back = format!(
            "UPDATE lease SET held = false WHERE term = $1 RETURNING pg_notify('{}', '')",
            self.url.channel()
        );
        // What cannot be given back runs out.
        if self.client.query(&give_back, &[&self.term]).is_err() {
            self.connect_again();
            let _ = self.client.query(&give_back, &[&self.term]);
        }
    }
}
