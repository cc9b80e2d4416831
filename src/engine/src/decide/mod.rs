//! Decisions: one file per family of commands. Each reads the state, refuses or emits, and answers.

mod add;
mod agents;
mod alerts;
mod assign;
mod beads;
mod bounds;
mod budget;
mod convoys;
mod launch;
mod lookup;
mod merges;
mod operator;
mod preempt;
mod recover;
mod reports;
mod rigs;
mod schedule;
mod sling;
mod sources;
mod tasks;
mod time;
mod undo;
mod undo_convoys;
mod worker;

use std::collections::BTreeMap;

pub use bounds::{DEEPEST, is_too_deep};
pub use reports::WorkerExit;
pub(crate) use sling::sling_priority;
pub use tasks::WebhookFailure;

use crate::command::{Answer, Command};
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::undo::ConfigEdit;
use crate::{BeadId, FormulaName, RigName};

/// What the outside world found out for a command before it is decided: formulas and the config are files, and the
/// engine reads and writes none. Absent means fine.
#[derive(Debug, Clone, Default)]
pub struct Kitchen {
    /// Formulas that cannot be cooked for a rig, and why.
    pub spoiled: BTreeMap<(RigName, FormulaName), String>,
    /// Beads whose own text cannot be cooked, and why.
    pub spoiled_beads: BTreeMap<BeadId, String>,
    /// Of tasks that are submitted together, those whose formula cannot be cooked, and why.
    pub spoiled_tasks: BTreeMap<usize, String>,
    /// What became of edits of the config file, by key.
    pub edits: BTreeMap<String, Result<ConfigEdit, Refusal>>,
}

/// Who is asking, and whether this process dispatches by itself.
#[derive(Debug, Clone)]
pub struct Asker<'a> {
    /// The person, script or agent.
    pub actor: &'a str,
    /// What the outside found out.
    pub kitchen: &'a Kitchen,
}

impl Tx<'_> {
    /// Decides a command: refuses without a trace, or emits events and answers.
    pub fn decide(&mut self, asker: &Asker<'_>, command: &Command) -> Result<Answer, Refusal> {
        bounds::check_actor(asker.actor)?;
        let before = self.state().seq();
        let answer = self.decide_command(asker, command);
        debug_assert!(answer.is_ok() || self.state().seq() == before, "a refused command left a trace");
        answer
    }

    fn decide_command(&mut self, asker: &Asker<'_>, command: &Command) -> Result<Answer, Refusal> {
        match command {
            Command::RigAdd { rig } => self.rig_add(asker, rig),
            Command::RigRemove { name } => self.rig_remove(asker, name),
            Command::RigSwitch { name, switch } => self.rig_switch(asker, name, *switch),
            Command::BeadAdd { bead } => self.bead_add(asker, bead),
            Command::BeadUpdate { id, change } => self.bead_update(asker, id, change),
            Command::BeadClose { ids, reason } => self.bead_close(asker, ids, reason.as_deref()),
            Command::BeadReopen { id } => self.bead_reopen(asker, id),
            Command::DependencyAdd { id, on, kind } => self.dependency_add(asker, id, on, kind),
            Command::DependencyRemove { id, on } => self.dependency_remove(asker, id, on),
            Command::BeadImport { beads } => self.bead_import(asker, beads),
            Command::Add { items } => self.add(asker, items),
            Command::Sling(request) => self.sling(asker, request),
            Command::Run { batch, dry_run } => Ok(self.run(asker, *batch, *dry_run)),
            Command::Pause { reason, until } => self.pause(asker, reason.clone(), *until),
            Command::Resume => Ok(self.resume(asker)),
            Command::Clear { bead } => self.clear(asker, bead.as_deref()),
            Command::Restore { contexts } => Ok(self.restore(asker, contexts)),
            Command::Retry { bead } => self.retry(asker, bead),
            Command::Hold { id, held } => self.hold(asker, id, *held),
            Command::Priority { id, priority } => self.priority(asker, id, *priority),
            Command::Cancel { id, at_once } => self.cancel(asker, id, *at_once),
            Command::Preempt { id, candidate } => self.preempt_by_hand(asker, id, candidate.as_deref()),
            Command::Worker { dispatch, says } => self.worker_says(asker, dispatch, says),
            Command::ConvoyCreate(new) => self.convoy_create(asker, new),
            Command::ConvoyAdd { id, beads } => self.convoy_add(asker, id, beads),
            Command::ConvoyStage { targets, title, launch } => {
                self.convoy_stage(asker, targets, title.as_deref(), *launch)
            }
            Command::ConvoyLaunch { targets, force } => self.convoy_launch(asker, targets, *force),
            Command::ConvoyCheck { id, dry_run } => self.convoy_check(asker, id.as_deref(), *dry_run),
            Command::ConvoyClose { id, reason, force } => {
                self.convoy_close(asker, id, reason.as_deref(), *force)
            }
            Command::ConvoyLand { id, force, dry_run } => self.convoy_land(asker, id, *force, *dry_run),
            Command::ConvoyWatch { id, watcher, wants } => self.convoy_watch(asker, id, watcher, *wants),
            Command::Recover { dry_run } => Ok(self.recover(asker, *dry_run)),
            Command::AlertAck { id } => self.alert_ack(asker, id),
            Command::Configure { key, value } => self.configure(asker, key, value.as_deref()),
            Command::AgentRegister(registration) => self.agent_register(asker, registration),
            Command::AgentRetire { agent } => self.agent_retire(asker, agent),
            Command::AgentHeartbeat { agent } => self.agent_heartbeat(agent),
            Command::AgentStatus { agent, status, note } => {
                self.agent_status(agent, *status, note.as_deref())
            }
            Command::AgentInbox { agent, keep } => self.agent_inbox(agent, *keep),
            Command::AgentClaim { agent, bead } => self.agent_claim(asker, agent, bead),
            Command::AgentSays { agent, bead, token, says } => {
                self.agent_says(asker, agent, bead, token, says)
            }
            Command::AgentEnds { agent, bead, token, how } => {
                self.agent_ends(agent, bead, token.as_deref(), how)
            }
            Command::TaskSubmit { tasks } => Ok(self.task_submit(asker, tasks)),
            Command::TaskCancel { id, agent } => self.task_cancel(asker, id, agent.as_deref()),
            Command::Undo => self.undo(asker),
            Command::Redo => self.redo(asker),
            Command::PauseAgain { pause } => self.pause_again(asker, pause),
            Command::Withdraw { contexts, verdict } => self.withdraw(asker, contexts, *verdict),
            Command::PutBudgetsBack { context, used } => self.put_budgets_back(asker, context, used),
            Command::PreemptNoMore { victim } => self.preempt_no_more(asker, victim),
            Command::ConvoyUnstage { id } => self.convoy_unstage(asker, id),
            Command::ConvoyReopen { id } => self.convoy_reopen(asker, id),
            Command::ConfigPutBack { edit } => self.config_put_back(asker, edit),
        }
    }
}
