//! What needs a person, most urgent first, each with its cause and its remedy. Each detector is one function; a new one
//! is one more line in `DETECTORS`.

use yard_client::views::{AlertView, alerts};
use yard_engine::bead::Verdict;
use yard_engine::{BeadId, State, Timestamp};

use crate::actions::Act;
use crate::console::Subject;
use crate::theme::Role;

/// Something that needs a person, or will mend itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Smaller is more urgent.
    pub rank: u8,
    /// One word.
    pub word: &'static str,
    /// How bad it is.
    pub role: Role,
    /// What it is about.
    pub subject: Option<Subject>,
    /// Its name.
    pub name: String,
    /// What is the matter.
    pub cause: String,
    /// What helps.
    pub remedy: String,
    /// The action that does.
    pub act: Option<Act>,
    /// Since when.
    pub since: Option<Timestamp>,
}

impl Problem {
    /// Everything one might search for.
    pub fn text(&self) -> String {
        format!("{} {} {}", self.word, self.name, self.cause)
    }

    /// Whether it goes away by itself.
    pub fn heals(&self) -> bool {
        self.rank >= HEALS
    }
}

/// From this rank on, nobody has to do anything.
const HEALS: u8 = 100;

type Detector = fn(&State, &[AlertView], Timestamp, &mut Vec<Problem>);

const DETECTORS: [Detector; 8] = [settled, conflicts, stuck, held, paused, cooling, alerted, stranded];

/// Everything that needs a person, most urgent first, then what mends itself.
pub fn problems(state: &State, transient: &[AlertView], now: Timestamp) -> Vec<Problem> {
    let mut found = Vec::new();
    for detect in DETECTORS {
        detect(state, transient, now, &mut found);
    }
    found.sort_by(|a, b| (a.rank, a.since, &a.name).cmp(&(b.rank, b.since, &b.name)));
    found
}

fn of_bead(state: &State, id: &BeadId) -> (Option<Subject>, String) {
    let title = state.bead(id).map(|entry| entry.bead.title.as_str()).unwrap_or_default();
    (Some(Subject::Bead(id.clone())), format!("{id} {title}"))
}

/// Beads that were given up.
fn settled(state: &State, _: &[AlertView], _: Timestamp, found: &mut Vec<Problem>) {
    for (id, verdict) in state.settled() {
        let (rank, word, remedy) = match verdict {
            Verdict::CircuitBroken => (0, "BROKEN", "mend what it starts, then r retries"),
            Verdict::Failed => (1, "FAILED", "l shows its log; r retries with fresh budgets"),
            Verdict::Unavailable => (2, "UNAVAIL", "its service stayed away; r retries"),
            // What is in the way of its merge is told below.
            Verdict::Done if state.merge_of(id).is_some_and(|merge| !merge.is_merged()) => continue,
            Verdict::Done => (HEALS, "CLOSE", "its agent must close it; it is tried again if nobody does"),
            Verdict::Cancelled => continue,
        };
        let reasons = state.reasons(id);
        let last = state.dispatches_of(id).next_back();
        let told = reasons.iter().find(|reason| {
            use yard_engine::readiness::ReasonCode as C;
            matches!(reason.code, C::CircuitBroken | C::RetriesExhausted | C::AwaitingClose)
        });
        let (subject, name) = of_bead(state, id);
        found.push(Problem {
            rank,
            word,
            role: if rank >= HEALS { Role::Dim } else { Role::Bad },
            subject,
            name,
            cause: failure(state, id)
                .or_else(|| told.map(|reason| reason.message.clone()))
                .unwrap_or_default(),
            remedy: remedy.to_owned(),
            act: (rank < HEALS).then_some(Act::Retry),
            since: last.and_then(|dispatch| dispatch.ended.as_ref()).map(|ended| ended.at),
        });
    }
}

/// Branches that cannot be merged as they are.
fn conflicts(state: &State, _: &[AlertView], _: Timestamp, found: &mut Vec<Problem>) {
    for merge in state.merges() {
        let Some(problem) = merge.problem() else { continue };
        let (subject, name) = of_bead(state, &merge.bead);
        found.push(Problem {
            rank: 1,
            word: "CONFLICT",
            role: Role::Bad,
            subject,
            name,
            cause: format!("{} into {}: {}", merge.branch, merge.base, problem.words()),
            remedy: "mend its branch or the base, then r merges it again".to_owned(),
            act: Some(Act::Retry),
            since: Some(merge.requested_at),
        });
    }
}

/// What the last attempt failed with.
fn failure(state: &State, id: &BeadId) -> Option<String> {
    use yard_engine::dispatch::Outcome;
    let tried = state.dispatches_of(id).count();
    let ended = state.dispatches_of(id).next_back()?.ended.as_ref()?;
    let words = match &ended.outcome {
        Outcome::StartFailed { error } => format!("cannot start: {error}"),
        Outcome::Failed { message, .. } => message.clone(),
        Outcome::Lost { why } => format!("its worker was lost: {why}"),
        Outcome::Stopped { reason } => format!("ended: {}", reason.as_str()),
        Outcome::Succeeded | Outcome::NeverRan { .. } => return None,
    };
    Some(format!("{words} ({})", crate::text::count(tried, "attempt")))
}

/// Workers that give no sign of life.
fn stuck(state: &State, _: &[AlertView], _: Timestamp, found: &mut Vec<Problem>) {
    for dispatch in state.live_dispatches().filter(|dispatch| dispatch.stuck) {
        let (subject, name) = of_bead(state, dispatch.id.bead());
        found.push(Problem {
            rank: 3,
            word: "STALLED",
            role: Role::Warning,
            subject,
            name,
            cause: "its worker gives no sign of life, and holds its slot".to_owned(),
            remedy: "l shows its log; x cancels or kills it".to_owned(),
            act: Some(Act::Logs),
            since: dispatch.heard_at.or(Some(dispatch.started_at)),
        });
    }
}

/// Beads that a person holds back, and forgets.
fn held(state: &State, _: &[AlertView], _: Timestamp, found: &mut Vec<Problem>) {
    for context in state.open_contexts().filter(|context| context.held) {
        let (subject, name) = of_bead(state, context.bead());
        let waiting = state.dependents_of(context.bead()).count();
        found.push(Problem {
            rank: 6,
            word: "HELD",
            role: Role::Warning,
            subject,
            name,
            cause: match waiting {
                0 => "held back by a person".to_owned(),
                1 => "held back by a person; 1 bead waits for it".to_owned(),
                more => format!("held back by a person; {more} beads wait for it"),
            },
            remedy: "x, then u lets it go".to_owned(),
            act: Some(Act::ActMenu),
            since: Some(context.fields.enqueued_at),
        });
    }
}

/// The town stands still because somebody said so.
fn paused(state: &State, _: &[AlertView], _: Timestamp, found: &mut Vec<Problem>) {
    let Some(pause) = state.pause() else { return };
    let reason = pause.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    found.push(Problem {
        rank: if pause.until.is_some() { HEALS } else { 5 },
        word: "PAUSED",
        role: Role::Warning,
        subject: None,
        name: "the whole town".to_owned(),
        cause: format!("{} paused dispatch{reason}", pause.by),
        remedy: "p lets it go on".to_owned(),
        act: Some(Act::Pause),
        since: Some(pause.at),
    });
}

/// Accounts that rest.
fn cooling(state: &State, _: &[AlertView], now: Timestamp, found: &mut Vec<Problem>) {
    for (account, until) in state.cooling_accounts() {
        let left = crate::text::span_exact(until.as_millis() - now.as_millis());
        found.push(Problem {
            rank: HEALS,
            word: "COOLING",
            role: Role::Dim,
            subject: None,
            name: format!("account {account}"),
            cause: format!("its service was unavailable; it rests for {left} more"),
            remedy: "nothing to do".to_owned(),
            act: None,
            since: None,
        });
    }
}

/// What somebody should know and nobody has seen.
fn alerted(state: &State, transient: &[AlertView], _: Timestamp, found: &mut Vec<Problem>) {
    for alert in alerts(state, false, transient.to_vec()).alerts {
        let about = alert.ids.first().and_then(|id| id.parse::<BeadId>().ok());
        let covered = found
            .iter()
            .any(|known| matches!((&known.subject, &about), (Some(Subject::Bead(a)), Some(b)) if a == b));
        if covered {
            // The bead itself is in the list, with a remedy.
            continue;
        }
        found.push(of_alert(alert));
    }
}

fn of_alert(alert: AlertView) -> Problem {
    let (rank, role) = match alert.kind.as_str() {
        "convoy-closed" | "merge-request" => (HEALS - 1, Role::Good),
        "config" | "read-only" | "cost-limit" => (4, Role::Bad),
        _ => (7, Role::Warning),
    };
    Problem {
        rank,
        word: "ALERT",
        role,
        subject: Some(Subject::Alert(alert.id.clone())),
        name: alert.kind.clone(),
        cause: alert.message.clone(),
        remedy: "A acknowledges it".to_owned(),
        act: Some(Act::Acknowledge),
        since: Some(alert.at),
    }
}

/// Convoys that cannot go on.
fn stranded(state: &State, _: &[AlertView], _: Timestamp, found: &mut Vec<Problem>) {
    for convoy in yard_client::views::stranded(state, true).convoys {
        let told = |id: &BeadId| found.iter().any(|known| known.subject == Some(Subject::Bead(id.clone())));
        if convoy.stuck.iter().any(|stuck| told(&stuck.id)) {
            // What holds it is in the list already, with a remedy.
            continue;
        }
        let stuck = convoy.stuck.len();
        found.push(Problem {
            rank: 8,
            word: "STRANDED",
            role: Role::Warning,
            subject: Some(Subject::Convoy(convoy.id.clone())),
            name: format!("{} {}", convoy.id, convoy.title),
            cause: format!("{} cannot go on by themselves", crate::text::count(stuck, "bead")),
            remedy: "Enter shows which, and why".to_owned(),
            act: Some(Act::Detail),
            since: None,
        });
    }
}
