//! What became of a bead, one line per event that changed how it stands.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use yard_engine::agent::AgentEvent;
use yard_engine::bead::{BeadEvent, Verdict};
use yard_engine::context::ContextEvent;
use yard_engine::dispatch::{DispatchEvent, Next, Outcome, Said};
use yard_engine::merge::{MergeEvent, MergeStage};
use yard_engine::preempt::PreemptionEvent;
use yard_engine::{Event, Recorded, Seq, Timestamp};

use super::show::outcome_words;

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

/// An event as a transition of its bead; none if it changes nothing one would ask about.
pub fn history_line(recorded: &Recorded) -> Option<HistoryLine> {
    let (to, reason, actor) = match &recorded.event {
        Event::Bead(event) => bead_line(event)?,
        Event::Context(event) => context_line(event),
        Event::Dispatch(event) => dispatch_line(event)?,
        Event::Preemption(event) => preemption_line(event),
        Event::Agent(event) => agent_line(event)?,
        Event::Merge(event) => merge_line(event),
        Event::Convoy(_) | Event::Town(_) | Event::Rig(_) | Event::Alert(_) | Event::Task(_) => return None,
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
        ContextEvent::BudgetsPutBack { actor, .. } => {
            ("queued", "has its old budgets again".to_owned(), actor.into())
        }
        ContextEvent::Closed { taken_back: Some(before), actor, .. } => {
            let to = before.verdict.map_or("open", |verdict| after(Next::Settled(verdict)));
            (to, "off the schedule again: taken back".to_owned(), actor.into())
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
        DispatchEvent::Started { dispatch } if dispatch.claim.is_some() => {
            let agent = dispatch.claim.as_ref().map(|claim| claim.agent.as_str()).unwrap_or_default();
            ("running", format!("{} claimed", dispatch.id), agent.into())
        }
        DispatchEvent::Started { dispatch } => {
            ("running", format!("{} starts", dispatch.id), "scheduler".into())
        }
        DispatchEvent::Running { id, .. } => ("running", format!("{id} runs"), "scheduler".into()),
        DispatchEvent::Isolated { worktree, .. } => {
            let words = match &worktree.head {
                None => format!("works on branch {} from {}", worktree.branch, worktree.base),
                Some(head) => format!("left branch {} at {}", worktree.branch, short(head)),
            };
            ("running", words, "worker".into())
        }
        DispatchEvent::StepDone { step, .. } => ("running", format!("step {step} done"), "worker".into()),
        DispatchEvent::Checkpoint { note, .. } => {
            ("running", format!("checkpoint: {}", first_line(note)), "worker".into())
        }
        DispatchEvent::Cost { usd, .. } if !usd.is_zero() => {
            ("running", format!("cost {usd}"), "worker".into())
        }
        DispatchEvent::Said { said: Said::Done { .. }, .. } => {
            ("running", "says that it is done".to_owned(), "worker".into())
        }
        DispatchEvent::Said { said: Said::Failed { message, .. }, .. } => {
            ("running", format!("says that it failed: {message}"), "worker".into())
        }
        DispatchEvent::Stuck { since, .. } => {
            ("running", format!("no sign of life since {since}"), "scheduler".into())
        }
        DispatchEvent::StopRequested { reason, actor, .. } => {
            ("running", format!("asked to stop: {}", reason.as_str()), actor.into())
        }
        // A failed start follows as an event of its context, with its count.
        DispatchEvent::Ended { outcome: Outcome::StartFailed { .. }, .. }
        | DispatchEvent::Cost { .. }
        | DispatchEvent::Session { .. }
        | DispatchEvent::Progress { .. }
        | DispatchEvent::LastLine { .. }
        | DispatchEvent::Steps { .. }
        | DispatchEvent::LinedUp { .. }
        | DispatchEvent::CalledBack { .. }
        | DispatchEvent::Heard { .. }
        | DispatchEvent::TakenUp { .. }
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

fn agent_line(event: &AgentEvent) -> Option<Line<'_>> {
    Some(match event {
        AgentEvent::Sent { order, .. } => {
            ("assigned", format!("sent to agent {} ({})", order.agent, order.reason), "scheduler".into())
        }
        AgentEvent::Withdrawn { name, why, .. } => {
            ("queued", format!("taken back from agent {name}: {}", why.words()), "scheduler".into())
        }
        AgentEvent::Registered { .. }
        | AgentEvent::Retired { .. }
        | AgentEvent::Heard { .. }
        | AgentEvent::Said { .. }
        | AgentEvent::WentOffline { .. }
        | AgentEvent::Read { .. }
        | AgentEvent::Told { .. }
        | AgentEvent::TrackGiven { .. } => return None,
    })
}

fn merge_line(event: &MergeEvent) -> Line<'_> {
    let done = |words: String| ("done", words, Cow::Borrowed("scheduler"));
    match event {
        MergeEvent::Requested { merge } if merge.stage == MergeStage::Offered => {
            done(format!("branch {} is kept for whoever merges it into {}", merge.branch, merge.base))
        }
        MergeEvent::Requested { merge } => {
            done(format!("branch {} stands in line to be merged into {}", merge.branch, merge.base))
        }
        MergeEvent::Began { .. } => done("is being merged".to_owned()),
        MergeEvent::Checking { run, commit, .. } => {
            done(format!("{run} checks the merged tree {}", short(commit)))
        }
        MergeEvent::Landing { onto, commit, .. } => {
            done(format!("the base goes from {} to {}", short(onto), short(commit)))
        }
        MergeEvent::Merged { commit, .. } => done(format!("merged as {}", short(commit))),
        MergeEvent::Blocked { problem, .. } => ("blocked", problem.words(), "scheduler".into()),
        MergeEvent::Requeued { why, .. } => done(format!("stands in line again: {why}")),
        MergeEvent::Withdrawn { why, verdict, .. } => {
            let to = verdict.map_or("open", |verdict| after(Next::Settled(verdict)));
            (to, format!("is not merged: {why}"), "scheduler".into())
        }
    }
}

/// As much of a commit as people read.
fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

fn preemption_line(event: &PreemptionEvent) -> Line<'_> {
    match event {
        PreemptionEvent::Requested { cycle, actor, .. } => {
            let again = if cycle.round > 1 { " again" } else { "" };
            let words = format!("{} is asked{again} to give way to {}", cycle.victim, cycle.bead);
            ("running", words, actor.into())
        }
        PreemptionEvent::Ended { why, .. } => {
            ("running", format!("preemption over: {why}"), "scheduler".into())
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Where an end leaves the bead.
fn after(next: Next) -> &'static str {
    match next {
        Next::BackInQueue | Next::Requeued => "queued",
        Next::GivenBack => "open",
        Next::Finished | Next::AwaitingMerge | Next::AwaitingClose { .. } | Next::Settled(Verdict::Done) => {
            "done"
        }
        Next::Settled(Verdict::Failed) => "failed",
        Next::Settled(Verdict::Unavailable) => "blocked",
        Next::Settled(Verdict::Cancelled) => "cancelled",
        Next::Settled(Verdict::CircuitBroken) => "circuit-broken",
    }
}
