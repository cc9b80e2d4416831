//! Commands: what people, scripts and agents ask for. They travel over the socket as JSON and are what `undo`
//! replays backwards.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::Registration;
pub use crate::answer::FullQueue;
pub use crate::answer::{Answer, Recovery, RecoveryKind, SlingAction, SlingResult, TaskReceipt};
use crate::bead::{BeadChange, BeadStatus, DepKind, Dependency, Verdict};
use crate::money::Usd;
use crate::rig::{Rig, RigSwitch};
use crate::session::Session;
use crate::settings::Merge;
use crate::task::IdempotencyKey;
use crate::town::Pause;
use crate::undo::ConfigEdit;
use crate::used::Used;
use crate::{AccountName, AgentName, BeadId, ContextId, DispatchId, FormulaName, RigName, Timestamp};

/// Something asked of the town.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Command {
    /// Registers a project.
    RigAdd {
        /// Its record.
        rig: Rig,
    },
    /// Forgets a project that has no work under way.
    RigRemove {
        /// Which one.
        name: RigName,
    },
    /// Parks, docks or releases a project.
    RigSwitch {
        /// Which one.
        name: RigName,
        /// What to switch.
        switch: RigSwitch,
    },
    /// Makes a native bead.
    BeadAdd {
        /// What is to be made.
        bead: Box<NewBead>,
    },
    /// Changes a native bead.
    BeadUpdate {
        /// Which one.
        id: String,
        /// What changes.
        change: BeadChange,
    },
    /// Closes native beads.
    BeadClose {
        /// Which ones.
        ids: Vec<String>,
        /// Why.
        reason: Option<String>,
    },
    /// Opens a closed bead again.
    BeadReopen {
        /// Which one.
        id: String,
    },
    /// Makes one bead need another.
    DependencyAdd {
        /// The one that waits.
        id: String,
        /// The one it waits for.
        on: String,
        /// What kind of edge.
        kind: DepKind,
    },
    /// Removes such an edge.
    DependencyRemove {
        /// The one that waits.
        id: String,
        /// The one it waits for.
        on: String,
    },
    /// Takes over beads from a file in the beads format.
    BeadImport {
        /// The records.
        beads: Vec<NewBead>,
    },
    /// Makes beads that run a command, and schedules them.
    Add {
        /// What is to be run, all or nothing.
        items: Vec<AddItem>,
    },
    /// Asks for beads to be run.
    Sling(Box<SlingRequest>),
    /// One planning pass now.
    Run {
        /// At most so many starts; 0 = no limit, none = as configured.
        batch: Option<u32>,
        /// Only say what would start.
        dry_run: bool,
    },
    /// Stops all dispatch.
    Pause {
        /// Why.
        reason: Option<String>,
        /// Until when.
        until: Option<Timestamp>,
    },
    /// Lets dispatch go on.
    Resume,
    /// Takes beads off the schedule.
    Clear {
        /// Only this one.
        bead: Option<String>,
    },
    /// Puts contexts back that a clear took off, as they were.
    Restore {
        /// Which contexts.
        contexts: Vec<ContextId>,
    },
    /// Gives broken, failed, cancelled or person-blocked work another chance, with fresh budgets.
    Retry {
        /// Which bead.
        bead: String,
    },
    /// Holds scheduled work back, or lets it go.
    Hold {
        /// Which bead or context.
        id: String,
        /// Held or released.
        held: bool,
    },
    /// Changes the priority of scheduled work.
    Priority {
        /// Which bead or context.
        id: String,
        /// 1 to 100.
        priority: u8,
    },
    /// Calls work off: takes it off the schedule, and ends its worker.
    Cancel {
        /// Which bead, context or dispatch.
        id: String,
        /// Ends the worker at once, without SIGTERM first.
        at_once: bool,
    },
    /// Has a running bead give way to other work.
    Preempt {
        /// Which bead or dispatch.
        id: String,
        /// To this bead; otherwise to the most urgent one that its slot lets start.
        candidate: Option<String>,
    },
    /// Says something about a dispatch, from inside it.
    Worker {
        /// The dispatch, which is the worker's token.
        dispatch: String,
        /// What.
        says: WorkerSays,
    },
    /// Makes an open convoy of beads.
    ConvoyCreate(Box<NewConvoy>),
    /// Adds beads to a convoy; a closed one is open again.
    ConvoyAdd {
        /// Which one.
        id: String,
        /// What joins.
        beads: Vec<String>,
    },
    /// Plans a convoy of an epic, of tasks, or anew, and keeps it back.
    ConvoyStage {
        /// One epic, one convoy, or tasks.
        targets: Vec<String>,
        /// What it is about.
        title: Option<String>,
        /// Lets it go at once, if nothing speaks against it.
        launch: bool,
    },
    /// Plans afresh and lets a convoy go.
    ConvoyLaunch {
        /// One epic, one convoy, or tasks.
        targets: Vec<String>,
        /// Warnings do not keep it back.
        force: bool,
    },
    /// Closes convoys that are complete.
    ConvoyCheck {
        /// Only this one.
        id: Option<String>,
        /// Only say which.
        dry_run: bool,
    },
    /// Closes a convoy by hand.
    ConvoyClose {
        /// Which one.
        id: String,
        /// Why.
        reason: Option<String>,
        /// Even with open beads.
        force: bool,
    },
    /// Closes an owned convoy whose work is done.
    ConvoyLand {
        /// Which one.
        id: String,
        /// Even with open beads.
        force: bool,
        /// Only say what would happen.
        dry_run: bool,
    },
    /// Has somebody told of a convoy's end, or no longer.
    ConvoyWatch {
        /// Which one.
        id: String,
        /// Who.
        watcher: String,
        /// Whether he wants to.
        wants: bool,
    },
    /// The safety scan now: stale hooks, stale contexts, stranded convoys.
    Recover {
        /// Only say what is found.
        dry_run: bool,
    },
    /// A person has seen an alert.
    AlertAck {
        /// Which one.
        id: String,
    },
    /// Sets a key of the config file to what a person typed, or takes it out. Whoever serves the town edits the file.
    Configure {
        /// The dotted key.
        key: String,
        /// What was typed; none takes the key out.
        value: Option<String>,
    },
    /// An agent says what it is.
    AgentRegister(Box<Registration>),
    /// An agent will not come back.
    AgentRetire {
        /// Which one.
        agent: String,
    },
    /// An agent is alive.
    AgentHeartbeat {
        /// Which one.
        agent: String,
    },
    /// An agent says what it is doing.
    AgentStatus {
        /// Which one.
        agent: String,
        /// What.
        status: AgentStatus,
        /// In its own words.
        note: Option<String>,
    },
    /// An agent reads what it is told.
    AgentInbox {
        /// Which one.
        agent: String,
        /// What it reads stays unread.
        keep: bool,
    },
    /// An agent takes a bead.
    AgentClaim {
        /// Which one.
        agent: String,
        /// Which bead.
        bead: String,
    },
    /// An agent says something about a bead it has.
    AgentSays {
        /// Which one.
        agent: String,
        /// Which bead.
        bead: String,
        /// Its claim.
        token: String,
        /// What.
        says: WorkerSays,
    },
    /// An agent is done with a bead, one way or the other.
    AgentEnds {
        /// Which one.
        agent: String,
        /// Which bead.
        bead: String,
        /// Only if this is its claim.
        token: Option<String>,
        /// How.
        how: ClaimEnd,
    },
    /// Takes tasks of the HTTP API in, each by itself.
    TaskSubmit {
        /// The tasks.
        tasks: Vec<NewTask>,
    },
    /// Calls a task off.
    TaskCancel {
        /// Which one.
        id: String,
        /// Only if it belongs to this agent.
        agent: Option<String>,
    },
    /// Takes the last operator command back.
    Undo,
    /// Does again what was taken back last.
    Redo,
    // What leads back from the commands above. Each has a way back of its own, which is how redo comes about.
    /// Puts a pause back as it was, with who made it and when.
    PauseAgain {
        /// The pause.
        pause: Pause,
    },
    /// Takes contexts off the schedule again that a command had put there, and leaves their beads as they were.
    Withdraw {
        /// Which contexts.
        contexts: Vec<ContextId>,
        /// What each bead was left with before.
        verdict: Option<Verdict>,
    },
    /// Gives a waiting request the budgets back that it had before a retry renewed them.
    PutBudgetsBack {
        /// Which context.
        context: ContextId,
        /// What it had used up.
        used: Used,
    },
    /// Lets a worker that was asked to give way go on.
    PreemptNoMore {
        /// Which dispatch.
        victim: DispatchId,
    },
    /// Puts a convoy away that is staged.
    ConvoyUnstage {
        /// Which one.
        id: String,
    },
    /// Opens a convoy again that was closed by hand.
    ConvoyReopen {
        /// Which one.
        id: String,
    },
    /// Puts an entry of the config file back, unless the file has come to say something else.
    ConfigPutBack {
        /// Which, and from what to what.
        edit: ConfigEdit,
    },
}

/// What an agent may say it is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentStatus {
    /// Whatever its work shows.
    Idle,
    /// Busy with something nobody else knows of.
    Working,
    /// Waiting for something.
    Blocked,
    /// Leaving.
    Offline,
}

/// How an agent is done with a bead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClaimEnd {
    /// The work is done.
    Done {
        /// Why the bead closes.
        reason: Option<String>,
    },
    /// The work failed.
    Failed {
        /// In words.
        message: String,
        /// Through no fault of the work: a service was not there.
        unavailable: bool,
    },
    /// It is given back, or not wanted.
    Released {
        /// Why.
        note: Option<String>,
    },
}

/// To whom a sling gives its beads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AssignTo {
    /// Whoever fits.
    Anyone,
    /// This agent.
    Agent(AgentName),
}

impl AssignTo {
    /// The agent by name.
    pub(crate) fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Anyone => None,
            Self::Agent(name) => Some(name),
        }
    }
}

/// What a worker says while it works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum WorkerSays {
    /// Where it is, for whoever goes on after it; the answer says whether to yield.
    Checkpoint {
        /// In its own words.
        note: String,
        /// The agent's session.
        session: Option<Session>,
    },
    /// What it cost.
    Cost {
        /// How much.
        usd: Usd,
        /// That is all so far, rather than more.
        total: bool,
        /// Tokens used.
        tokens: Option<u64>,
    },
    /// What it is doing.
    Progress {
        /// In its own words.
        text: String,
    },
    /// The work is done, whatever the exit code will be.
    Done {
        /// Why the bead closes.
        reason: Option<String>,
    },
    /// The work failed, whatever the exit code will be.
    Fail {
        /// In words.
        message: String,
        /// Through no fault of the work: a service was not there.
        unavailable: bool,
    },
}

impl WorkerSays {
    /// The word for the log.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Checkpoint { .. } => "checkpoint",
            Self::Cost { .. } => "cost",
            Self::Progress { .. } => "progress",
            Self::Done { .. } => "done",
            Self::Fail { .. } => "fail",
        }
    }
}

/// A native bead to be made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NewBead {
    /// The id; made up if absent.
    pub id: Option<String>,
    /// The rig whose prefix a made-up id gets.
    pub rig: Option<RigName>,
    /// One line saying what is to be done.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
    /// Type; empty means task.
    pub kind: String,
    /// Status, for imports.
    pub status: BeadStatus,
    /// 0 to 4.
    pub priority: Option<u8>,
    /// Who has it, for imports.
    pub assignee: Option<String>,
    /// Labels.
    pub labels: Vec<String>,
    /// Dependencies.
    pub dependencies: Vec<Dependency>,
    /// The command it runs.
    pub argv: Option<Vec<String>>,
    /// For imports.
    pub created_at: Option<Timestamp>,
    /// For imports.
    pub close_reason: Option<String>,
    /// For imports.
    pub defer_until: Option<Timestamp>,
    /// For imports.
    pub pinned: bool,
    /// For imports.
    pub ephemeral: bool,
    /// For imports.
    pub is_template: bool,
}

/// A task to be taken in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NewTask {
    /// Whose it is.
    pub agent: String,
    /// What is to be done.
    pub action: String,
    /// The browser tab it is about.
    pub tab: Option<String>,
    /// The element it is about.
    pub selector: Option<String>,
    /// The same, in the old way.
    pub reference: Option<String>,
    /// More about it.
    pub params: Option<Map<String, Value>>,
    /// Lower is sooner.
    pub priority: i64,
    /// Not done by then: failed.
    pub deadline: Option<Timestamp>,
    /// Whom to tell of its end.
    pub callback: Option<String>,
    /// Attempts altogether; 0 means one.
    pub max_attempts: u32,
    /// Run by this formula instead of an action over HTTP.
    pub formula: Option<FormulaName>,
    /// In this rig instead of the first.
    pub rig: Option<RigName>,
    /// Tasks and beads that must be done first.
    pub after: Vec<String>,
    /// The client's own name for the request.
    pub key: Option<IdempotencyKey>,
}

/// A convoy to be made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NewConvoy {
    /// What it is about; otherwise the title of its first bead.
    pub title: Option<String>,
    /// The beads.
    pub beads: Vec<String>,
    /// All work below this epic.
    pub from_epic: Option<String>,
    /// The caller looks after it.
    pub owned: bool,
    /// Merge strategy.
    pub merge: Option<Merge>,
    /// Base branch.
    pub base_branch: Option<String>,
}

/// A command to be run as a bead of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddItem {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// An id; made up if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Beads that must close first; they may come earlier in the same list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// 1 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
}

/// A sling, with all that can be said about it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SlingRequest {
    /// Beads, epics or convoys.
    pub ids: Vec<String>,
    /// Where; otherwise by prefix.
    pub rig: Option<RigName>,
    /// Instructions in plain language.
    pub args: Option<String>,
    /// Formula variables.
    pub vars: BTreeMap<String, String>,
    /// Formula instead of the default.
    pub formula: Option<FormulaName>,
    /// No formula at all.
    pub hook_raw_bead: bool,
    /// Merge strategy.
    pub merge: Option<Merge>,
    /// Keep the result on its branch.
    pub no_merge: bool,
    /// Base branch.
    pub base_branch: Option<String>,
    /// Account whose cap counts.
    pub account: Option<AccountName>,
    /// Agent override.
    pub agent: Option<String>,
    /// Given to a registered agent instead of being started.
    pub assign: Option<AssignTo>,
    /// The caller looks after the convoy.
    pub owned: bool,
    /// No convoy.
    pub no_convoy: bool,
    /// Do not run the rig's wake command.
    pub no_boot: bool,
    /// A fresh session per step.
    pub ralph: bool,
    /// Which executor.
    pub executor: Option<String>,
    /// 1 to 100.
    pub priority: Option<u8>,
    /// Not before this time.
    pub not_before: Option<Timestamp>,
    /// Expires if not started by then.
    pub deadline: Option<Timestamp>,
    /// Overrides guards, never closed beads nor parked or docked rigs.
    pub force: bool,
    /// Only say what would happen.
    pub dry_run: bool,
}

impl Command {
    /// Puts off every moment that a person has named: his clock is so far behind the one that the town lives by.
    pub fn put_off(&mut self, by: Duration) {
        let moments: Vec<&mut Option<Timestamp>> = match self {
            Self::Pause { until, .. } => vec![until],
            Self::Sling(request) => vec![&mut request.not_before, &mut request.deadline],
            Self::TaskSubmit { tasks } => tasks.iter_mut().map(|task| &mut task.deadline).collect(),
            _ => Vec::new(),
        };
        for moment in moments.into_iter().flatten() {
            *moment = moment.after(by);
        }
    }
}

impl From<BeadId> for String {
    fn from(id: BeadId) -> Self {
        id.as_str().to_owned()
    }
}
