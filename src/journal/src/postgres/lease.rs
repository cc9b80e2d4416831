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

use super::schema;
use super::session::{PATIENCE, connect, prepare_for_writing};
use super::url::PostgresUrl;
use crate::lease::this_host;
use crate::{Holder, JournalError, LeaseError, Role};

/// How often the holder says that it lives.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// What is done when the lease is lost.
type Act = Box<dyn FnOnce(JournalError) + Send>;

/// The row, held until dropped.
pub(crate) struct RowLease {
    term: i64,
    /// By what its sessions are known.
    label: String,
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
        schema::ensure(&mut client, url)?;
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
        let (fate, label) = (Arc::default(), url.label(term));
        let (theirs, url) = (Arc::clone(&fate), url.clone());
        let (end, ended) = channel();
        let heart = std::thread::Builder::new().name("ym-lease".to_owned()).spawn(move || {
            let mut heart = Heart { client, url, term };
            let mut heard = Instant::now();
            loop {
                match ended.recv_timeout(HEARTBEAT) {
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return heart.give_back(),
                    Err(RecvTimeoutError::Timeout) => {}
                }
                match heart.beat() {
                    Ok(()) => heard = Instant::now(),
                    Err(JournalError::Unreachable(_)) if heard.elapsed() < PATIENCE => heart.connect_again(),
                    Err(error) => return lose(&theirs, error),
                }
            }
        })?;
        Ok(Self { term, label, fate, heart: Some((end, heart)) })
    }

    /// Who holds the lease now, if anybody does.
    pub(crate) fn holder(url: &PostgresUrl) -> Result<Option<Holder>, JournalError> {
        let mut client = connect(url, &format!("ym {} lease", url.schema()))?;
        match schema::inspect(&mut client, url)? {
            schema::Found::Nothing => Ok(None),
            schema::Found::Tables => Self::holder_by(&mut client),
        }
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
    client.batch_execute("SET lock_timeout TO '1s'")?;
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
        if let Ok(client) = connect(&self.url, &format!("ym {} lease", self.url.schema())) {
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
