//! `show`, `why` and where logs lie.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use yard_engine::bead::{BeadEvent, Verdict};
use yard_engine::context::{Context, ContextEvent, ContextFields};
use yard_engine::dispatch::{Dispatch, DispatchEvent, Next, Outcome};
use yard_engine::readiness::Reason;
use yard_engine::{BeadId, ContextId, DispatchId, Event, Recorded, Seq, Standing, State, Timestamp};

use super::bead::BeadView;

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

/// One transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryLine {
    /// Position in the log.
    pub seq: Seq,
    /// When.
    pub at: Timestamp,
    /// From which state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// To which state.
    pub to: String,
    /// What happened, in words.
    pub reason: String,
    /// Who did it.
    pub actor: String,
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

fn outcome_words(outcome: &Outcome) -> String {
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

/// An event as a transition of its bead; none if it changes nothing one would ask about.
pub fn history_line(recorded: &Recorded) -> Option<HistoryLine> {
    let (to, reason, actor) = match &recorded.event {
        Event::Bead(event) => bead_line(event)?,
        Event::Context(event) => context_line(event),
        Event::Dispatch(event) => dispatch_line(event)?,
        Event::Convoy(_) | Event::Town(_) | Event::Rig(_) | Event::Alert(_) => return None,
    };
    let (to, actor) = (to.to_owned(), actor.into_owned());
    Some(HistoryLine { seq: recorded.seq, at: recorded.at, from: None, to, reason, actor })
}

/// Where an event leads, what happened in words, and who did it.
type Line<'a> = (&'a str, String, Cow<'a, str>);

fn bead_line(event: &BeadEvent) -> Option<Line<'_>> {
    Some(match event {
        BeadEvent::Added { bead, actor } => (bead.status.as_str(), "added".to_owned(), actor.into()),
        BeadEvent::Observed { bead } => {
            let source = bead.source.as_ref().map(yard_engine::RigName::as_str).unwrap_or_default();
            (bead.status.as_str(), "shown by its workspace".to_owned(), format!("beads:{source}").into())
        }
        BeadEvent::Vanished { .. } => {
            ("gone", "shown by its workspace no longer".to_owned(), Cow::Borrowed("beads"))
        }
        BeadEvent::Updated { change, actor, .. } => {
            (change.status.as_ref().map_or("open", |s| s.as_str()), "updated".to_owned(), actor.into())
        }
        BeadEvent::Closed { reason, actor, .. } => {
            let reason = if reason.is_empty() { "closed" } else { reason };
            ("closed", reason.to_owned(), actor.into())
        }
        BeadEvent::Reopened { actor, .. } => ("open", "reopened".to_owned(), actor.into()),
        BeadEvent::DependencyAdded { .. } | BeadEvent::DependencyRemoved { .. } => return None,
    })
}

fn context_line(event: &ContextEvent) -> Line<'_> {
    use yard_engine::context::CloseReason as R;
    match event {
        ContextEvent::Opened { context, actor } => {
            let what = match (&context.predecessor, context.not_before) {
                (None, _) => "scheduled".to_owned(),
                (Some(_), None) => "scheduled again".to_owned(),
                (Some(_), Some(until)) => format!("scheduled again, not before {until}"),
            };
            ("queued", what, actor.into())
        }
        ContextEvent::StartFailed { error, failures, .. } => {
            ("queued", format!("start failed ({failures}): {error}"), "scheduler".into())
        }
        ContextEvent::Rested { why, .. } => {
            ("queued", format!("could not be handed over: {why}"), "scheduler".into())
        }
        ContextEvent::Rearmed { actor, .. } => ("queued", "re-armed".to_owned(), actor.into()),
        ContextEvent::Held { held, actor, .. } => {
            ("queued", if *held { "held" } else { "released" }.to_owned(), actor.into())
        }
        ContextEvent::Prioritised { priority, actor, .. } => {
            ("queued", format!("priority {priority}"), actor.into())
        }
        ContextEvent::Closed { reason, detail, actor, .. } => {
            let to = match reason {
                R::CircuitBroken => "circuit-broken",
                R::Cancelled => "cancelled",
                R::Expired | R::InvalidContext => "failed",
                R::Dispatched => "running",
                R::Cleared | R::StaleWorkBead => "open",
            };
            let detail = detail.as_ref().map(|d| format!(": {d}")).unwrap_or_default();
            (to, format!("{}{detail}", reason.as_str()), actor.into())
        }
    }
}

fn dispatch_line(event: &DispatchEvent) -> Option<Line<'_>> {
    Some(match event {
        DispatchEvent::Started { dispatch } => {
            ("running", format!("{} starts", dispatch.id), "scheduler".into())
        }
        DispatchEvent::Running { id, .. } => ("running", format!("{id} runs"), "scheduler".into()),
        DispatchEvent::StepDone { step, .. } => ("running", format!("step {step} done"), "worker".into()),
        DispatchEvent::StopRequested { reason, actor, .. } => {
            ("running", format!("asked to stop: {}", reason.as_str()), actor.into())
        }
        // A failed start follows as an event of its context, with its count.
        DispatchEvent::Ended { outcome: Outcome::StartFailed { .. }, .. }
        | DispatchEvent::LateReport { .. } => {
            return None;
        }
        DispatchEvent::Ended { id, outcome, next } => {
            (after(*next), format!("{id} {}", outcome_words(outcome)), "worker".into())
        }
        DispatchEvent::CloseOverdue { id, next } => {
            let words = format!("{id} finished, but its bead was not closed in time");
            (after(*next), words, "scheduler".into())
        }
    })
}

/// Where an end leaves the bead.
fn after(next: Next) -> &'static str {
    match next {
        Next::BackInQueue | Next::Requeued => "queued",
        Next::Finished | Next::AwaitingClose { .. } | Next::Settled(Verdict::Done) => "done",
        Next::Settled(Verdict::Failed) => "failed",
        Next::Settled(Verdict::Unavailable) => "blocked",
        Next::Settled(Verdict::Cancelled) => "cancelled",
        Next::Settled(Verdict::CircuitBroken) => "circuit-broken",
    }
}
