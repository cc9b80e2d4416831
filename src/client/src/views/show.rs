//! `show`, `why` and where logs lie.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use yard_engine::context::{Context, ContextFields, Resume};
use yard_engine::dispatch::{Dispatch, Outcome};
use yard_engine::merge::MergeRequest;
use yard_engine::money::Usd;
use yard_engine::readiness::Reason;
use yard_engine::{BeadId, ContextId, DispatchId, Millis, Recorded, Standing, State, Timestamp};

use super::bead::BeadView;
use super::history::{HistoryLine, history_line};

/// A bead with everything known about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShowView {
    /// The bead.
    #[serde(flatten)]
    pub bead: BeadView,
    /// The open context, or the last one.
    pub context: Option<ContextView>,
    /// Every attempt.
    pub dispatches: Vec<DispatchView>,
    /// What is to become of the branch its work is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeRequest>,
    /// Every event that named it, as far as the log is kept.
    pub events: Vec<Value>,
}

/// A context: every field of the record, and how it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextView {
    /// Its id.
    pub id: ContextId,
    /// `open` or `closed`.
    pub status: String,
    /// Why it closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close_reason: Option<String>,
    /// When it closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
    /// The record, with every field, also those the stored form leaves out.
    #[serde(flatten, serialize_with = "every_field")]
    pub fields: ContextFields,
    /// 1 to 100.
    pub priority: u8,
    /// Held back.
    pub held: bool,
    /// Not before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Expires then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Attempts that crashed.
    pub crashes: u32,
    /// Attempts that found a service unavailable.
    pub unavailables: u32,
    /// How long earlier attempts ran, in milliseconds.
    pub active_ms: Millis,
    /// What all attempts have cost, in US dollars.
    pub cost: Usd,
    /// Where the next attempt goes on.
    #[serde(default, skip_serializing_if = "Resume::is_from_the_start")]
    pub resume: Resume,
    /// The context it succeeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<ContextId>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DispatchView {
    /// The record.
    #[serde(flatten)]
    pub dispatch: Dispatch,
    /// `starting`, `running` or how it ended.
    pub phase: String,
    /// The exit code, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// Where a log lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogView {
    /// The dispatch whose log it is.
    pub dispatch_id: DispatchId,
    /// The file; it need not exist when nothing was written.
    pub path: String,
    /// More may come.
    pub live: bool,
    /// The attempt after it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<DispatchId>,
    /// Its bead is not over: without a next attempt one may follow.
    #[serde(default)]
    pub goes_on: bool,
    /// Which executor runs it.
    #[serde(default)]
    pub executor: String,
}

/// A place in a log, which goes on in another file when one is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPlace {
    /// Which file.
    pub file: u64,
    /// How far into it.
    pub at: u64,
}

/// What a log holds from a place on, as much as goes into one answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPiece {
    /// Whose log it is.
    pub log: LogView,
    /// Where it goes on; none while there is no file.
    pub next: Option<LogPlace>,
    /// What was written, in base64; nothing when there is no more at present.
    #[serde(serialize_with = "in_base64", deserialize_with = "from_base64")]
    pub bytes: Vec<u8>,
    /// Nothing was written before it.
    pub from_start: bool,
    /// More lines were asked for than were looked for.
    pub cut: bool,
}

fn in_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    STANDARD.decode(text).map_err(serde::de::Error::custom)
}

/// Why a bead is not running, and how it came here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyView {
    /// The bead.
    pub id: BeadId,
    /// Its title.
    #[serde(default)]
    pub title: String,
    /// `bead` or `convoy`.
    pub kind: String,
    /// Where it stands; none of a bead that is gone from its workspace.
    pub state: Option<Standing>,
    /// It would start at once.
    pub ready: bool,
    /// Every reason why it does not.
    pub reasons: Vec<Reason>,
    /// Its transitions.
    pub history: Vec<HistoryLine>,
}

/// Renders a context.
pub fn context(context: &Context) -> ContextView {
    let closed = context.closed.as_ref();
    ContextView {
        id: context.id.clone(),
        status: if closed.is_some() { "closed" } else { "open" }.to_owned(),
        close_reason: closed.map(|c| c.reason.as_str().to_owned()),
        closed_at: closed.map(|c| c.at),
        fields: context.fields.clone(),
        priority: context.priority,
        held: context.held,
        not_before: context.not_before,
        deadline: context.deadline,
        crashes: context.crashes,
        unavailables: context.unavailables,
        active_ms: context.active,
        cost: context.cost,
        resume: context.resume.clone(),
        predecessor: context.predecessor.clone(),
    }
}

fn every_field<S: Serializer>(fields: &ContextFields, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = match serde_json::to_value(fields) {
        Ok(Value::Object(map)) => map,
        _ => serde_json::Map::new(),
    };
    let texts = [
        "formula",
        "args",
        "vars",
        "merge",
        "convoy",
        "base_branch",
        "account",
        "agent",
        "mode",
        "last_failure",
    ];
    let flags = ["no_merge", "hook_raw_bead", "owned"];
    let absent =
        texts.map(|key| (key, Value::Null)).into_iter().chain(flags.map(|key| (key, Value::Bool(false))));
    for (key, value) in absent {
        map.entry(key).or_insert(value);
    }
    map.serialize(serializer)
}

/// Renders a dispatch.
pub fn dispatch(dispatch: &Dispatch) -> DispatchView {
    let phase = match (&dispatch.ended, dispatch.running_at) {
        (None, None) => "starting".to_owned(),
        (None, Some(_)) => "running".to_owned(),
        (Some(ended), _) => outcome_words(&ended.outcome),
    };
    let exit_code = match dispatch.ended.as_ref().map(|ended| &ended.outcome) {
        Some(Outcome::Succeeded) => Some(0),
        Some(Outcome::Failed { code, .. }) => *code,
        _ => None,
    };
    DispatchView { dispatch: dispatch.clone(), phase, exit_code }
}

pub(super) fn outcome_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Succeeded => "succeeded".to_owned(),
        Outcome::Failed { message, .. } => message.clone(),
        Outcome::StartFailed { error } => format!("could not start: {error}"),
        Outcome::Stopped { reason } => format!("stopped: {}", reason.as_str()),
        Outcome::Lost { why } => format!("lost: {why}"),
        Outcome::NeverRan { why } => format!("never ran: {why}"),
    }
}

/// Renders `why`, from the events that named the bead.
pub fn why(state: &State, id: &BeadId, events: &[Recorded]) -> Option<WhyView> {
    let bead = super::bead::bead(state, id)?;
    let mut history: Vec<HistoryLine> = Vec::new();
    for event in events {
        if let Some(mut line) = history_line(event) {
            line.from = history.last().map(|l| l.to.clone());
            history.push(line);
        }
    }
    // As in `scheduler status`: ready means that only room is missing.
    let work = state.bead(id).map(|entry| &entry.work);
    let ready = work.is_some_and(|work| match &work.context {
        Some(context) => state.is_ready(context),
        None => bead.reasons.is_empty() && work.verdict.is_none(),
    });
    Some(WhyView {
        id: id.clone(),
        title: bead.title,
        kind: "bead".to_owned(),
        state: bead.state,
        ready,
        reasons: bead.reasons,
        history,
    })
}

/// Renders `why` of a convoy: where it stands as a whole, and what keeps its beads.
pub fn why_convoy(state: &State, id: &yard_engine::ConvoyId) -> Option<WhyView> {
    let is_staged = state.convoy(id)?.staged.is_some();
    let view = super::convoy::convoy(state, id)?;
    let standing = match () {
        () if view.status == "closed" => Standing::Closed,
        () if is_staged => Standing::Staged,
        () if view.running > 0 => Standing::Running,
        () if view.queued > 0 => Standing::Queued,
        () if view.blocked > 0 => Standing::Blocked,
        () if view.failed > 0 => Standing::Failed,
        () => Standing::Open,
    };
    let open = view.tracked.into_iter().filter(|t| t.state != Some(Standing::Closed));
    Some(WhyView {
        id: BeadId::parse(id.as_str()).ok()?,
        title: view.title,
        kind: "convoy".to_owned(),
        state: Some(standing),
        ready: view.ready > 0,
        reasons: open.flat_map(|t| t.reasons).collect(),
        history: Vec::new(),
    })
}
