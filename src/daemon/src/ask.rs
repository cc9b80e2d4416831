//! Asking a town something, whether or not somebody serves it: a daemon or console answers if there is one;
//! otherwise reads come from the journal, and changes are made by taking the lease for a moment.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use yard_client::views::{DaemonView, WaitView};
use yard_client::{Ask, Connection, Document, Lost, Reply, Request};
use yard_engine::{Refusal, Standing, Tx};
use yard_journal::{Holder, JournalError, LeaseError, Role, Store};

use crate::clock::instant_after;
use crate::config;
use crate::core::any_news;
use crate::eventlog::send_events;
use crate::input::ReplyTo;
use crate::reads::{Desk, is_read};
use crate::serve::{DaemonError, LEASE_PATIENCE, serve_one};
use crate::store::{StoreError, read_state};
use crate::town::TownDir;

/// How long to wait before trying again when somebody else has the town for a moment.
const TRY_AGAIN: Duration = Duration::from_millis(5);
/// The longest wait before a lease in a database is asked for again: many who do so at once slow down whoever has it.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// How often `wait` looks when nobody serves the town.
const LOOK: Duration = Duration::from_millis(50);

/// What a town answered.
#[derive(Debug)]
pub struct Answered {
    /// The document.
    pub document: Document,
    /// For stderr.
    pub notices: Vec<String>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The town refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The connection broke.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The town cannot be opened.
    #[error(transparent)]
    Town(#[from] DaemonError),
    /// The journal cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Whoever serves the town does so on another host, and takes commands there.
    #[error("the town is served by {0}, which only takes commands there")]
    Elsewhere(Holder),
}

/// Whether it will be gone in a moment.
fn is_passing(holder: &Holder) -> bool {
    matches!(holder.role, Some(Role::Command) | None)
}

/// Whether the journal alone has no answer, whoever can open it.
fn needs_a_server(ask: &Ask) -> bool {
    match ask {
        Ask::Events { query } => query.follow,
        Ask::Wait { .. } | Ask::AgentWait { .. } | Ask::Attach { .. } | Ask::Past | Ask::Stop { .. } => true,
        _ => false,
    }
}

type Each<'a> = &'a mut dyn FnMut(Box<RawValue>) -> bool;

/// Asks whoever serves the town; otherwise opens it, for as long as this takes.
pub fn ask(town: &TownDir, request: &Request, each: Each<'_>) -> Result<Answered, AskError> {
    let patience = Instant::now() + LEASE_PATIENCE;
    let (mut pause, mut next_try) = (TRY_AGAIN, Instant::now());
    loop {
        if let Some(answered) = ask_server(town, request, each)? {
            return Ok(answered);
        }
        if Instant::now() < next_try {
            std::thread::sleep(TRY_AGAIN);
            continue;
        }
        if needs_a_server(&request.ask)
            && let Some(leader) = town.leader_elsewhere()
        {
            return Err(AskError::Elsewhere(leader));
        }
        match &request.ask {
            Ask::Events { query } => return read_events(town, query, each),
            Ask::Wait { .. } => return wait_unserved(town, request, each),
            Ask::AgentWait { .. } => {
                return Err(Refusal::new("no-daemon", "nobody sends orders: no daemon is running")
                    .hint("ym --daemon starts one; without --wait the inbox is read as it is")
                    .into());
            }
            Ask::Attach { .. } | Ask::Past => {
                return Err(Refusal::new("no-daemon", "nobody serves the town").into());
            }
            Ask::Stop { .. } => {
                return Err(Refusal::new("no-daemon", "no daemon is running")
                    .hint("ym --daemon starts one")
                    .into());
            }
            ask if is_read(ask) => {
                if let Some(answered) = read_unserved(town, ask)? {
                    return Ok(answered);
                }
            }
            _ => {}
        }
        match town.try_lease(Role::Command) {
            Err(LeaseError::Held(holder)) if holder.is_elsewhere() && !is_passing(&holder) => {
                return Err(AskError::Elsewhere(holder));
            }
            Ok(lease) => return last_word(serve_one(town, lease, request.clone())?, each),
            Err(LeaseError::Held(holder)) if Instant::now() > patience => {
                let message = format!("the town is held by {holder}, which does not answer");
                return Err(Refusal::new("busy", message).hint("ym doctor looks into it").into());
            }
            Err(LeaseError::Held(_)) => {
                next_try = Instant::now() + pause;
                if matches!(town.store(), Ok(Store::Postgres(_))) {
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            Err(error) => return Err(DaemonError::Lease(error).into()),
        }
    }
}

/// Asks over the socket; none when nobody serves it, or when a passing command cannot take this request.
fn ask_server(town: &TownDir, request: &Request, each: Each<'_>) -> Result<Option<Answered>, AskError> {
    let mut connection = match Connection::open(&town.folder()) {
        Ok(connection) => connection,
        Err(Lost::BeforeAsking(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let lasts = matches!(
        &request.ask,
        Ask::Wait { .. } | Ask::Events { .. } | Ask::Attach { .. } | Ask::Past | Ask::AgentWait { .. }
    );
    if lasts && !connection.hello().role.dispatches_by_itself() {
        return Ok(None);
    }
    match connection.ask(request, each)? {
        Ok((document, notices)) => Ok(Some(Answered { document, notices })),
        Err(refusal) => Err(refusal.into()),
    }
}

fn last_word(replies: Vec<Reply>, each: Each<'_>) -> Result<Answered, AskError> {
    for reply in replies {
        match reply {
            Reply::Item(item) => {
                each(item);
            }
            Reply::Ok { document, notices } => return Ok(Answered { document, notices }),
            Reply::Error(refusal) => return Err(refusal.into()),
        }
    }
    Err(Refusal::new("internal", "the town gave no answer").into())
}

/// Answers a read from the journal, without the lease. None when workers may have ended unnoticed, so that whoever
/// can take the lease should look first.
fn read_unserved(town: &TownDir, ask: &Ask) -> Result<Option<Answered>, AskError> {
    let reader = match town.reader() {
        Ok(reader) => reader,
        Err(JournalError::Missing(_)) => return Ok(None),
        Err(error) => return Err(StoreError::from(error).into()),
    };
    let mut state = read_state(&reader)?;
    // The journal learns of a changed config with the next command; whoever looks before should see it too.
    if let (true, Ok(settings)) = (town.config().exists(), config::read_settings(&town.config())) {
        let now = state.clock();
        Tx::new(&mut state, now).settings_read(&settings);
    }
    let holder = town.holder();
    // Only where its workers were started anybody can look after them.
    let home_elsewhere = reader.led_from_elsewhere().map_err(StoreError::from)?;
    if (state.live_workers().next().is_some() || any_news(&state, town))
        && holder.is_none()
        && home_elsewhere.is_none()
    {
        return Ok(None);
    }
    let (elsewhere, silent) = match holder.filter(|holder| !is_passing(holder)) {
        Some(holder) if holder.is_elsewhere() => (Some(holder), None),
        here => (None, here),
    };
    let elsewhere_serves = elsewhere.is_some();
    let daemon = DaemonView {
        running: elsewhere_serves,
        pid: elsewhere.and_then(|holder| holder.pid),
        http: None,
        tls: false,
        silent_pid: silent.as_ref().and_then(|holder| holder.pid),
    };
    let desk = Desk { state: &state, town, transient: Vec::new(), daemon };
    let mut answered = last_word(vec![desk.answer(ask)], &mut |_| true)?;
    let notice = silent
        .as_ref()
        .map(|holder| format!("{holder} has the town and does not answer: this is what the journal says"));
    answered.notices.extend(notice);
    if let (Some(home), None) = (home_elsewhere, &silent)
        && !elsewhere_serves
    {
        let notice =
            format!("nobody serves the town, and it was last led by {home}: this is what the journal says");
        answered.notices.push(notice);
    }
    Ok(Some(answered))
}

fn read_events(town: &TownDir, query: &yard_client::EventsAsk, each: Each<'_>) -> Result<Answered, AskError> {
    let (reply_to, mut replies) = ReplyTo::new();
    let query = yard_client::EventsAsk { follow: false, ..query.clone() };
    send_events(town, query, reply_to, None);
    while let Some(reply) = replies.blocking_recv() {
        match reply {
            Reply::Item(item) => {
                if !each(item) {
                    break;
                }
            }
            last => return last_word(vec![last], each),
        }
    }
    Ok(Answered { document: Document::null(), notices: Vec::new() })
}

/// Waits without anybody serving: looks again and again, taking in what workers left, until all have ended or
/// nothing runs that could change anything. A daemon that comes up meanwhile takes over.
fn wait_unserved(town: &TownDir, request: &Request, each: Each<'_>) -> Result<Answered, AskError> {
    let Ask::Wait { ids, all, timeout_ms, summary } = &request.ask else {
        return Err(Refusal::new("internal", "this is not a wait").into());
    };
    let until = timeout_ms.map(|ms| instant_after(Duration::from_millis(ms)));
    let time_left = || until.map(|t| t.saturating_duration_since(Instant::now()));
    // Whatever was seen running belongs to the answer, also when "everything" no longer finds it.
    let mut wanted: BTreeSet<String> = ids.iter().cloned().collect();
    let ask = |wanted: &BTreeSet<String>, patience: Option<Duration>| Request {
        actor: request.actor.clone(),
        ask: Ask::Wait {
            ids: wanted.iter().cloned().collect(),
            all: *all,
            timeout_ms: patience.map(|p| u64::try_from(p.as_millis()).unwrap_or(u64::MAX)),
            summary: *summary,
        },
    };
    loop {
        if let Some(answered) = ask_server(town, &ask(&wanted, time_left()), each)? {
            return Ok(answered);
        }
        if let Ok(lease) = town.try_lease(Role::Command) {
            // A look: with no time to wait, the answer says how things stand now.
            let glance = ask(&wanted, Some(Duration::ZERO));
            let answered = last_word(serve_one(town, lease, glance)?, each)?;
            let mut view: WaitView = serde_json::from_str(answered.document.get())
                .map_err(|e| Refusal::new("internal", e.to_string()))?;
            let time_is_up = time_left() == Some(Duration::ZERO);
            let waits_for_workers = view.stuck.iter().any(|s| s.state == Some(Standing::Running));
            if !waits_for_workers || time_is_up {
                view.timed_out = waits_for_workers && time_is_up;
                let document = serde_json::value::to_raw_value(&view)
                    .map_err(|e| Refusal::new("internal", e.to_string()))?;
                return Ok(Answered { document: document.into(), notices: answered.notices });
            }
            wanted.extend(view.stuck.iter().map(|stuck| stuck.id.to_string()));
        }
        std::thread::sleep(LOOK);
    }
}
