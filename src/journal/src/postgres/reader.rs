//! Reading beside a writer, from any host.

use std::cell::RefCell;
use std::time::Duration;

use postgres::Client;
use postgres::fallible_iterator::FallibleIterator as _;

use super::lease::RowLease;
use super::place::Place;
use super::rows::Moment;
use super::schema;
use super::session::connect;
use super::url::PostgresUrl;
use crate::{Holder, JournalError};

/// How long the server is left alone after it went away.
const AWAY: Duration = Duration::from_millis(100);

/// A read-only view of the log in a database.
pub(crate) struct PostgresReader {
    url: PostgresUrl,
    session: RefCell<Session>,
}

struct Session {
    client: Client,
    /// It is told when the log grows.
    listens: bool,
}

impl PostgresReader {
    /// Opens an existing journal.
    pub(crate) fn open(url: &PostgresUrl) -> Result<Self, JournalError> {
        let session = RefCell::new(Session::open(url)?);
        Ok(Self { url: url.clone(), session })
    }

    /// Runs `work` on one moment of the log.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Moment<'_>) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let mut session = self.awake()?;
        // A session that was lost is only found out when it is used.
        let lives = session.client.batch_execute("");
        if let Err(JournalError::Unreachable(_)) = lives.map_err(JournalError::from) {
            *session = Session::open(&self.url)?;
        }
        let moment = Moment::now(&mut session.client)?;
        let answer = work(&moment)?;
        moment.finish()?;
        Ok(answer)
    }

    /// Who holds the lease now, if anybody does.
    pub(crate) fn holder(&self) -> Result<Option<Holder>, JournalError> {
        RowLease::holder_by(&mut self.awake()?.client)
    }

    /// Who led it last, if that was from another directory than the one that asks.
    pub(crate) fn led_from_elsewhere(&self) -> Result<Option<Holder>, JournalError> {
        let mut session = self.awake()?;
        let place = Place::that_asks(&mut session.client, &self.url)?;
        RowLease::home_other_than(&mut session.client, place.as_ref())
    }

    /// Waits until something is notified, not longer than this.
    pub(crate) fn wait_for_news(&self, patience: Duration) -> Result<(), JournalError> {
        let mut session = self.awake()?;
        if !session.listens {
            session.client.batch_execute(&format!("LISTEN {}", self.url.channel()))?;
            session.listens = true;
            // What was notified before may be missed: look at once.
            return Ok(());
        }
        let mut news = session.client.notifications();
        let told = news.timeout_iter(patience).next()?.is_some();
        // What came together is one piece of news.
        while told && news.iter().next()?.is_some() {}
        Ok(())
    }

    /// The session, connected again if it was lost meanwhile.
    fn awake(&self) -> Result<std::cell::RefMut<'_, Session>, JournalError> {
        let mut session = self.session.borrow_mut();
        if session.client.is_closed() {
            match Session::open(&self.url) {
                Ok(again) => *session = again,
                Err(error) => {
                    // Whoever asks in a loop must not spin.
                    std::thread::sleep(AWAY);
                    return Err(error);
                }
            }
        }
        Ok(session)
    }
}

impl Session {
    fn open(url: &PostgresUrl) -> Result<Self, JournalError> {
        let mut client = connect(url, &format!("ym {} reader", url.schema()))?;
        schema::must_exist(&mut client, url)?;
        Place::that_asks(&mut client, url)?;
        Ok(Self { client, listens: false })
    }
}
