//! `ym events`

use std::io;
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use yard_client::{Ask, EventsAsk};
use yard_engine::Seq;

use super::Done;
use crate::errors::Report;
use crate::render::event_line;
use crate::session::{Session, ask_town};
use crate::words::Since;

/// How often the log is looked at while nobody serves the town.
const LOOK: Duration = Duration::from_millis(300);

pub(super) fn events(
    session: &mut Session,
    follow: bool,
    since: Option<Since>,
    kind: Option<String>,
    lines: Option<usize>,
) -> Done {
    let mut query = EventsAsk { kind, tail: lines, follow, ..EventsAsk::default() };
    match since {
        Some(Since::Seq(seq)) => query.since = Some(seq),
        Some(Since::Time(time)) => query.since_time = Some(time),
        None => {}
    }
    let (mut was_there, mut is_away) = (false, false);
    loop {
        let last = match read_on(session, &query) {
            // A server elsewhere that was there once will be there again, or says why not.
            Err(report) if follow && was_there && report.code() == "unreachable" => {
                if !std::mem::replace(&mut is_away, true) {
                    session.out.notice(&format!("{report}; it is tried again until it can"));
                }
                None
            }
            last => {
                is_away = false;
                last?
            }
        };
        if !follow {
            return Ok(0);
        }
        was_there = true;
        // The server left, or there is none: go on after the last event seen, whoever serves next.
        if let Some(last) = last {
            query = EventsAsk { since: Some(last), since_time: None, tail: None, ..query };
        }
        std::thread::sleep(LOOK);
    }
}

/// Prints what there is, and gives the position of the last one.
fn read_on(session: &mut Session, query: &EventsAsk) -> Result<Option<Seq>, Report> {
    let mut last = None;
    let mut failed: Option<io::Error> = None;
    let town = session.asked()?;
    let out = &mut session.out;
    let (json, width) = (out.json(), out.width());
    let mut each = |item: Box<RawValue>| {
        let parsed: Option<Value> = serde_json::from_str(item.get()).ok();
        if let Some(seq) = parsed.as_ref().and_then(|value| value["seq"].as_u64()) {
            last = Some(Seq(seq));
        }
        let written = match parsed {
            Some(value) if !json => out.line(event_line(&value, width)),
            _ => out.line(item.get()),
        };
        let written = if query.follow { written.and_then(|()| out.flush()) } else { written };
        written.map_err(|error| failed = Some(error)).is_ok()
    };
    let answered = ask_town(&town, Ask::Events { query: query.clone() }, &mut each);
    if let Some(error) = failed {
        return Err(error.into());
    }
    match answered {
        Err(report) if query.follow && report.code() == "lost" => Ok(last),
        Err(report) => Err(report),
        Ok(answered) => {
            answered.notices.iter().for_each(|notice| session.out.notice(notice));
            Ok(last)
        }
    }
}
