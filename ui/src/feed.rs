//! Hearing from the town: a thread attaches to whoever serves it, passes on the state and every event, and comes back by
//! itself when the connection breaks. It never takes the lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::value::RawValue;
use yard_client::views::AlertList;
use yard_client::{Ask, Attached, Connection, EventsAsk, Lost, Place, Request};
use yard_engine::{Event, Recorded, Seq, State, Timestamp};

use crate::msg::News;

/// How long to wait before trying again.
const TRY_AGAIN: Duration = Duration::from_millis(250);
/// The same where each try is a call over the network; with each that fails it is so much longer, up to so many times.
const TRY_AGAIN_AFAR: Duration = Duration::from_secs(1);
const MOST_PATIENT: u32 = 10;
/// How often alerts that the log does not hold are asked for.
const LOOK: Duration = Duration::from_secs(2);
/// Events of the past that are fetched for the events view.
const PAST: usize = 2_000;

/// Where news goes; false when nobody listens any more.
pub(crate) type Tell = Arc<dyn Fn(News) -> bool + Send + Sync>;

/// What time it is, for moments that no event names.
pub(crate) type Now = fn() -> Timestamp;

/// The threads that listen; they end when they are told or nobody wants their news.
pub(crate) struct Feed {
    ended: Arc<AtomicBool>,
    #[expect(dead_code, reason = "kept so that the threads have an owner; they end by themselves")]
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
    }
}

impl Feed {
    /// Listens to the town there.
    pub(crate) fn start(place: Place, now: Now, tell: Tell) -> std::io::Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        let (its_place, its_tell, its_end) = (place.clone(), Arc::clone(&tell), Arc::clone(&ended));
        threads.push(thread::Builder::new().name("ym-feed".to_owned()).spawn(move || {
            listen(&its_place, now, &its_tell, &its_end);
        })?);
        let its_end = Arc::clone(&ended);
        threads.push(thread::Builder::new().name("ym-alerts".to_owned()).spawn(move || {
            look_for_alerts(&place, &tell, &its_end);
        })?);
        Ok(Self { ended, threads })
    }
}

fn request(ask: Ask) -> Request {
    Request { actor: "console".to_owned(), ask }
}

fn listen(place: &Place, now: Now, tell: &Tell, ended: &AtomicBool) {
    let mut seen: Option<Seq> = None;
    let mut known_lost = false;
    let mut tries = 0;
    while !ended.load(Ordering::SeqCst) {
        let mut went_live = false;
        let why = match attach(place, tell, ended, &mut seen, &mut went_live) {
            Ok(()) => "the connection ended".to_owned(),
            Err(Lost::BeforeAsking(_)) => "nobody serves the town".to_owned(),
            Err(error) => error.to_string(),
        };
        if ended.load(Ordering::SeqCst) {
            return;
        }
        // Said once per loss: the header counts the time since.
        if (went_live || !known_lost) && !tell(News::Lost { at: now(), why }) {
            return;
        }
        known_lost = true;
        tries = if went_live { 1 } else { (tries + 1).min(MOST_PATIENT) };
        thread::sleep(if place.is_remote() { TRY_AGAIN_AFAR * tries } else { TRY_AGAIN });
    }
}

/// Attaches once; returns when the connection ends.
fn attach(
    place: &Place,
    tell: &Tell,
    ended: &AtomicBool,
    seen: &mut Option<Seq>,
    went_live: &mut bool,
) -> Result<(), Lost> {
    let mut connection = Connection::to(place)?;
    let hello = connection.hello().clone();
    if !hello.role.dispatches_by_itself() {
        return Err(Lost::BeforeAsking(std::io::ErrorKind::WouldBlock.into()));
    }
    let mut reading = Reading::default();
    let mut unreadable = None;
    let since = *seen;
    let answer = connection.ask(&request(Ask::Attach { since }), |item| {
        if ended.load(Ordering::SeqCst) {
            return false;
        }
        let item = serde_json::from_str::<Attached>(item.get()).map_err(|error| error.to_string());
        let news = match item.and_then(|item| reading.take(item)) {
            Ok(news) => news,
            Err(why) => {
                unreadable = Some(why);
                return false;
            }
        };
        let mut going = true;
        for news in news {
            if let News::Events(events) = &news {
                *seen = events.last().map(|event| event.seq).or(*seen);
            }
            if let News::State(state) = &news {
                *seen = Some(state.seq());
            }
            going &= tell(news);
        }
        if reading.caught_up() && !*went_live {
            *went_live = true;
            going &= tell(News::Live { role: hello.role, pid: hello.pid });
            if since.is_none() {
                going &= tell(News::Earlier(past(place)));
            }
        }
        going
    })?;
    if let Some(why) = unreadable {
        // Going on without it would show a town that is not there.
        let why = format!("what the town sends cannot be read: {why}; is this the same version of ym?");
        return Err(Lost::WhileWaiting(std::io::Error::other(why)));
    }
    match answer {
        Ok(_) => Ok(()),
        Err(refusal) => Err(Lost::WhileWaiting(std::io::Error::other(refusal.message))),
    }
}

/// A state on its way: records, then events up to where the log ended when we asked.
#[derive(Default)]
struct Reading {
    records: Vec<(String, String, Box<RawValue>)>,
    wanted: usize,
    from: Seq,
    last: Seq,
    state: Option<State>,
    live: bool,
}

impl Reading {
    fn caught_up(&self) -> bool {
        self.live
    }

    /// What an item tells; the error says what cannot be read.
    fn take(&mut self, item: Attached) -> Result<Vec<News>, String> {
        match item {
            Attached::Begin { seq, records: None, last } => {
                self.live = true;
                self.last = last;
                self.from = seq;
                Ok(Vec::new())
            }
            Attached::Begin { seq, records: Some(wanted), last } => {
                self.wanted = wanted;
                self.from = seq;
                self.last = last;
                self.finish_if_whole()
            }
            Attached::Records(records) => {
                self.records.extend(records);
                let read = self.records.len();
                let mut news = vec![News::Loading { read, of: self.wanted + self.behind() }];
                news.extend(self.finish_if_whole()?);
                Ok(news)
            }
            Attached::Events(rows) => {
                let events = read_rows(rows)?;
                match &mut self.state {
                    Some(state) if !self.live => {
                        for event in &events {
                            state.apply(event);
                        }
                        let read = self.wanted + (state.seq().0 - self.from.0) as usize;
                        let of = self.wanted + self.behind();
                        let mut news = vec![News::Loading { read, of }];
                        news.extend(self.finish_if_whole()?);
                        Ok(news)
                    }
                    _ => Ok(vec![News::Events(events)]),
                }
            }
        }
    }

    /// Events after the checkpoint that are still awaited.
    fn behind(&self) -> usize {
        (self.last.0 - self.from.0) as usize
    }

    fn finish_if_whole(&mut self) -> Result<Vec<News>, String> {
        if self.state.is_none() && self.records.len() >= self.wanted {
            let rows = self.records.iter().map(|(kind, id, body)| (kind.as_str(), id.as_str(), body.get()));
            self.state = Some(State::restore(self.from, rows).map_err(|error| error.to_string())?);
            self.records = Vec::new();
        }
        if self.state.as_ref().is_some_and(|state| state.seq() >= self.last) {
            self.live = true;
            return Ok(self.state.take().map(|state| News::State(Box::new(state))).into_iter().collect());
        }
        Ok(Vec::new())
    }
}

/// The last events before we came; without them the list of events begins with now.
fn past(place: &Place) -> Vec<Arc<Recorded>> {
    read_events(place, EventsAsk { tail: Some(PAST), ..EventsAsk::default() }).unwrap_or_default()
}

/// Reads events of the log, oldest first: all that were asked for, or why not.
pub(crate) fn read_events(place: &Place, query: EventsAsk) -> Result<Vec<Arc<Recorded>>, String> {
    let mut connection = Connection::to(place).map_err(|error| error.to_string())?;
    let mut events = Vec::new();
    let mut unreadable = None;
    let answer = connection.ask(&request(Ask::Events { query }), |item| match recorded(item.get()) {
        Ok(event) => {
            events.push(Arc::new(event));
            true
        }
        Err(why) => {
            unreadable = Some(why);
            false
        }
    });
    match (unreadable, answer) {
        (Some(why), _) => Err(why),
        (None, Ok(Ok(_))) => Ok(events),
        (None, Ok(Err(refusal))) => Err(refusal.message),
        (None, Err(error)) => Err(error.to_string()),
    }
}

/// Reads the town as it was at the beginning of its log, and all events since.
pub(crate) fn read_past(place: &Place) -> Result<(State, Vec<Arc<Recorded>>), String> {
    let mut connection = Connection::to(place).map_err(|error| error.to_string())?;
    let mut reading = Reading::default();
    let (mut events, mut unreadable) = (Vec::new(), None);
    let answer = connection.ask(&request(Ask::Past), |item| {
        let item = serde_json::from_str::<Attached>(item.get()).map_err(|error| error.to_string());
        let taken = item.and_then(|item| match item {
            Attached::Events(rows) => read_rows(rows).map(|rows| events.extend(rows)),
            Attached::Begin { seq, records, .. } => {
                // The state is kept as it was, for what follows is to be replayed.
                reading.take(Attached::Begin { seq, records, last: seq.next() }).map(drop)
            }
            Attached::Records(_) => reading.take(item).map(drop),
        });
        unreadable = taken.err();
        unreadable.is_none()
    });
    match (unreadable, answer) {
        (Some(why), _) => Err(why),
        (None, Ok(Ok(_))) => {
            let beginning = reading.state.unwrap_or_default();
            let mut due = beginning.seq();
            let follows = |event: &Arc<Recorded>| {
                due = due.next();
                event.seq == due
            };
            if events.iter().all(follows) {
                Ok((beginning, events))
            } else {
                Err("old events were just cut off; try again".to_owned())
            }
        }
        (None, Ok(Err(refusal))) => Err(refusal.message),
        (None, Err(error)) => Err(error.to_string()),
    }
}

/// Events as they are sent.
fn read_rows(rows: Vec<(Seq, Timestamp, String, Box<RawValue>)>) -> Result<Vec<Arc<Recorded>>, String> {
    let event = |(seq, at, kind, body): (Seq, Timestamp, String, Box<RawValue>)| {
        let event = Event::from_stored(&kind, body.get()).map_err(|error| error.to_string())?;
        Ok(Arc::new(Recorded { seq, at, event }))
    };
    rows.into_iter().map(event).collect()
}

/// An event as the log shows it to people.
fn recorded(text: &str) -> Result<Recorded, String> {
    #[derive(serde::Deserialize)]
    struct Place {
        seq: Seq,
        at: Timestamp,
        r#type: String,
    }
    let place: Place = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let event = Event::from_stored(&place.r#type, text).map_err(|error| error.to_string())?;
    Ok(Recorded { seq: place.seq, at: place.at, event })
}

/// Asks for the alerts that only whoever serves the town knows of.
fn look_for_alerts(place: &Place, tell: &Tell, ended: &AtomicBool) {
    let mut kept = None;
    while !ended.load(Ordering::SeqCst) {
        let list = kept.take().or_else(|| Connection::to(place).ok()).and_then(|mut connection| {
            let answer = connection.ask(&request(Ask::Alerts { all: false }), |_| true).ok()?.ok()?;
            // Making one takes a while where it goes over the network.
            kept = Some(connection).filter(|_| place.is_remote());
            serde_json::from_str::<AlertList>(answer.0.get()).ok()
        });
        if let Some(list) = list {
            // The log's own alerts have numbers; those of the moment are called by their kind.
            let transient = list.alerts.into_iter().filter(|alert| alert.id == alert.kind).collect();
            if !tell(News::Transient(transient)) {
                return;
            }
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Yard;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("JSON")
    }

    /// The events of a log as a server sends them.
    fn sent(yard: &Yard) -> Attached {
        let row = |event: &Arc<Recorded>| {
            (event.seq, event.at, event.event.kind().to_owned(), raw(&event.event.body()))
        };
        Attached::Events(yard.log.iter().map(row).collect())
    }

    #[test]
    fn events_that_follow_a_checkpoint_are_part_of_the_state() {
        let mut yard = Yard::with_cap(1);
        yard.bead("gt-1", "work", |_| {});
        let mut reading = Reading::default();
        let last = yard.state.seq();
        let begin = Attached::Begin { seq: Seq(0), records: Some(0), last };
        assert!(reading.take(begin).expect("read").is_empty() && !reading.caught_up());
        let news = reading.take(sent(&yard)).expect("read");
        assert!(reading.caught_up());
        let state = news.into_iter().find_map(|news| match news {
            News::State(state) => Some(state),
            _ => None,
        });
        state.expect("the state").check_same_as(&yard.state).expect("the same town");
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_not_another_town() {
        let mut reading = Reading::default();
        reading.take(Attached::Begin { seq: Seq(0), records: None, last: Seq(0) }).expect("read");
        let newer = vec![(Seq(1), Timestamp::default(), "moon.rose".to_owned(), raw("{}"))];
        let why = reading.take(Attached::Events(newer)).expect_err("unknown");
        assert!(why.contains("moon.rose"), "{why}");
        let mut reading = Reading::default();
        reading.take(Attached::Begin { seq: Seq(0), records: Some(1), last: Seq(0) }).expect("read");
        let broken = vec![("bead".to_owned(), "gt-1".to_owned(), raw("{}"))];
        assert!(reading.take(Attached::Records(broken)).is_err());
    }
}
