//! `ym logs` of a town whose files are elsewhere: piece by piece, over one connection as long as it holds.

use yard_client::views::{LogPiece, LogPlace};
use yard_client::{Ask, Connection, Lost, Place, Request};
use yard_daemon::AskError;

use super::Done;
use super::logs::{LOOK, Printer};
use crate::errors::Report;
use crate::session::{Session, actor};

/// How much longer than here it is between two looks: each is a question over the network.
const SLOWER: u32 = 5;

/// Asks for pieces.
struct Asker {
    place: Place,
    connection: Option<Connection>,
}

impl Asker {
    /// A piece. A connection that broke is made anew, once: nothing but what was read is lost with it.
    fn piece(&mut self, id: &str, from: Option<LogPlace>, lines: Option<usize>) -> Result<LogPiece, Report> {
        let ask = Ask::LogPiece { id: id.to_owned(), from, lines };
        let request = Request { actor: actor(), ask };
        if let Some(connection) = &mut self.connection
            && let Ok(answer) = connection.ask(&request, |_| true)
        {
            return Ok(serde_json::from_str(answer?.0.get())?);
        }
        self.connection = None;
        let asked = |lost: Lost| Report::from(AskError::from(lost));
        let mut connection = Connection::to(&self.place).map_err(asked)?;
        let answer = connection.ask(&request, |_| true).map_err(asked)?;
        self.connection = Some(connection);
        Ok(serde_json::from_str(answer?.0.get())?)
    }
}

pub(super) fn logs(session: &mut Session, id: &str, follow: bool, lines: Option<usize>) -> Done {
    let Some(place) = session.there().cloned() else { return Ok(0) };
    let mut asker = Asker { place, connection: None };
    let mut printer = Printer::default();
    let mut piece = asker.piece(id, None, lines)?;
    let names_one = piece.log.dispatch_id.to_string() == id;
    if piece.next.is_none() && !(follow && (piece.log.live || piece.log.goes_on)) {
        session.out.notice(&format!("{} has no output yet", piece.log.dispatch_id));
        return Ok(0);
    }
    if piece.cut {
        session.out.notice("its beginning lies too far back to be looked for from here");
    }
    loop {
        printer.print(&piece.bytes, &mut session.out)?;
        let log = &piece.log;
        let mut current = log.dispatch_id.to_string();
        let mut from = piece.next;
        if piece.bytes.is_empty() {
            match (&log.next, follow) {
                // It is over, nothing more came, and the next attempt is wanted, too.
                (Some(next), true) if !log.live && !names_one => {
                    printer.finish(&mut session.out)?;
                    session.out.notice(&format!("{next} begins"));
                    (current, from) = (next.to_string(), None);
                }
                (_, true) if log.live || (log.goes_on && !names_one) => {
                    session.out.flush()?;
                    std::thread::sleep(LOOK * SLOWER);
                }
                _ => break,
            }
        }
        piece = asker.piece(&current, from, None)?;
    }
    printer.finish(&mut session.out)?;
    Ok(0)
}
