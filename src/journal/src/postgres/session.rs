//! A connection to the server, and what its errors mean for the journal.

use std::time::{Duration, Instant};

use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};

use super::password::kept_password;
use super::url::PostgresUrl;
use crate::JournalError;

/// How long a server may take to accept a connection.
const CONNECTING: Duration = Duration::from_secs(5);
/// How long a server may be away, say for a restart, before whoever writes gives up.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// What a server says that ends sessions which idle, or transactions that last.
const TIMEOUTS: [&str; 2] = ["57P05", "25P04"];
/// How often it is tried meanwhile.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// Connects; the server knows the session by `label`.
pub(super) fn connect(url: &PostgresUrl, label: &str) -> Result<Client, JournalError> {
    let mut config = url.config().clone();
    config.application_name(label);
    if config.get_password().is_none()
        && let Some(password) = kept_password(&config)
    {
        config.password(password);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECTING);
    }
    // A host that was cut off is noticed within seconds.
    config.keepalives_idle(Duration::from_secs(2)).keepalives_interval(Duration::from_secs(1));
    config.keepalives_retries(3).tcp_user_timeout(Duration::from_secs(5));
    let mut client = connect_when_there_is_room(&config)?;
    // A role may have other defaults. Only these make every write see the term as it is.
    client.batch_execute(&format!(
        "SET search_path TO {};
         SET default_transaction_isolation TO 'read committed';
         SELECT set_config(name, '0', false) FROM pg_settings
         WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_session_timeout', 'transaction_timeout')
           AND setting <> '0'",
        url.quoted_schema()
    ))?;
    Ok(client)
}

/// A server whose connections are all taken has one again in a moment: those of commands are short.
fn connect_when_there_is_room(config: &Config) -> Result<Client, postgres::Error> {
    let until = Instant::now() + CONNECTING;
    loop {
        match config.connect(NoTls) {
            Err(error) if error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS) && Instant::now() < until => {
                std::thread::sleep(TRY_AGAIN);
            }
            other => return other,
        }
    }
}

/// Makes a session fit for writing: what it commits is on the server's disk, and a transaction that its client has
/// forgotten does not hold the lease's row for ever.
pub(super) fn prepare_for_writing(client: &mut Client) -> Result<(), JournalError> {
    client.batch_execute(
        "SELECT set_config('synchronous_commit', 'on', false)
         WHERE current_setting('synchronous_commit') IN ('off', 'local');
         SET idle_in_transaction_session_timeout TO '10s'",
    )?;
    Ok(())
}

/// Tries again while the server cannot be reached, but not longer than [`PATIENCE`].
pub(super) fn patiently<T>(mut attempt: impl FnMut() -> Result<T, JournalError>) -> Result<T, JournalError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(JournalError::Unreachable(_)) if Instant::now() < until => std::thread::sleep(TRY_AGAIN),
            other => return other,
        }
    }
}

/// What a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its version.
    pub version: String,
    /// Whether what it commits survives a power cut: `fsync` is on.
    pub durable: bool,
    /// How large the town's schema is, in bytes.
    pub size: u64,
}

impl PostgresUrl {
    /// Asks the server what it is.
    pub fn server(&self) -> Result<Server, JournalError> {
        let mut client = connect(self, "ym doctor")?;
        let row = client.query_one(
            "SELECT current_setting('server_version'), current_setting('fsync') = 'on',
                    coalesce((SELECT sum(pg_total_relation_size(it.oid))::bigint FROM pg_class AS it
                              WHERE it.relnamespace = to_regnamespace($1)::oid AND it.relkind = 'r'), 0)",
            &[&self.schema()],
        )?;
        Ok(Server {
            version: row.try_get(0)?,
            durable: row.try_get(1)?,
            size: row.try_get::<_, i64>(2)?.try_into().unwrap_or(0),
        })
    }
}

impl From<postgres::Error> for JournalError {
    fn from(error: postgres::Error) -> Self {
        let Some(refusal) = error.as_db_error() else {
            let why = words(&error);
            let cause = std::error::Error::source(&error);
            let is_io = matches!(cause, Some(cause) if cause.is::<std::io::Error>());
            return if error.is_closed() || is_io { Self::Unreachable(why) } else { Self::Server(why) };
        };
        let said = refusal.message().to_owned();
        let code = refusal.code();
        if [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        ]
        .contains(code)
            || code.code().starts_with("08")
            || TIMEOUTS.contains(&code.code())
        {
            return Self::Unreachable(said);
        }
        if *code == SqlState::DISK_FULL {
            Self::Full
        } else if *code == SqlState::LOCK_NOT_AVAILABLE {
            Self::Busy
        } else if [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::INSUFFICIENT_PRIVILEGE].contains(code) {
            Self::Readonly(said)
        } else if *code == SqlState::IO_ERROR {
            Self::Disk(said)
        } else if *code == SqlState::INVALID_CATALOG_NAME {
            Self::Server(format!("{said}; create it first (createdb)"))
        } else {
            Self::Server(said)
        }
    }
}

/// An error with what is behind it.
fn words(error: &postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
