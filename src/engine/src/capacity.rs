//! The one capacity function: how much room each configured limit leaves. Status, dry runs, planning and the
//! console all ask here, so they cannot disagree.

use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::dispatch::SLURM_EXECUTOR;
use crate::state::State;
use crate::task::TaskPlace;
use crate::{AccountName, BeadId, RigName};

/// A configured limit on live workers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Limit {
    /// The whole town: `scheduler.max_polecats`.
    Town,
    /// One rig.
    Rig(RigName),
    /// One account.
    Account(AccountName),
    /// The registered agents that are there.
    Agents,
    /// All tasks of the HTTP API: `http.max_inflight`.
    Tasks,
    /// The tasks of one of its agents: `http.max_per_agent_inflight`.
    TasksOf(String),
    /// What the cluster has room for, as it was last seen.
    Slurm,
}

impl Limit {
    /// The limits that work of this rig, account and task counts against. An action over HTTP takes no worker, nor does
    /// what is given to an agent, so the limits on workers are not their concern.
    pub(crate) fn of(
        rig: &RigName,
        account: Option<&AccountName>,
        task: Option<&TaskPlace>,
        by_agent: bool,
        on_cluster: bool,
    ) -> impl Iterator<Item = Self> + use<> {
        let takes_worker = !by_agent && task.is_none_or(|task| task.takes_worker);
        let account = account.cloned().map(Self::Account);
        let of_workers = [Self::Town, Self::Rig(rig.clone())].into_iter().chain(account);
        let of_tasks = task.map(|task| [Self::Tasks, Self::TasksOf(task.agent.clone())]);
        let of_agents = by_agent.then_some(Self::Agents);
        let of_cluster = (takes_worker && on_cluster).then_some(Self::Slurm);
        let of_workers = of_workers.filter(move |_| takes_worker);
        of_workers.chain(of_tasks.into_iter().flatten()).chain(of_agents).chain(of_cluster)
    }

    /// The name shown to people: `town`, `rig api`, `account main`.
    pub fn name(&self) -> String {
        match self {
            Self::Town => "town".to_owned(),
            Self::Rig(name) => format!("rig {name}"),
            Self::Account(name) => format!("account {name}"),
            Self::Agents => "agents".to_owned(),
            Self::Tasks => "tasks".to_owned(),
            Self::TasksOf(agent) => format!("tasks of {agent}"),
            Self::Slurm => "slurm".to_owned(),
        }
    }
}

impl Limit {
    /// The setting that raises it; only one more agent raises the number of agents, and none makes a cluster larger.
    pub fn setting(&self) -> Option<String> {
        Some(match self {
            Self::Town => "scheduler.max_polecats".to_owned(),
            Self::Rig(name) => format!("rig.{name}.max_polecats"),
            Self::Account(name) => format!("account.{name}.max_polecats"),
            Self::Agents | Self::Slurm => return None,
            Self::Tasks => "http.max_inflight".to_owned(),
            Self::TasksOf(_) => "http.max_per_agent_inflight".to_owned(),
        })
    }

    /// Whom it counts.
    fn counts(&self) -> &'static str {
        match self {
            Self::Town | Self::Rig(_) | Self::Account(_) => "workers busy",
            Self::Agents => "agents busy",
            Self::Tasks | Self::TasksOf(_) => "under way",
            Self::Slurm => "jobs there, as far as its partition has processors",
        }
    }

    /// That it leaves no room, in words.
    pub(crate) fn is_full(&self, active: u64, max: u64) -> String {
        format!("{}: {active} of {max} {}", self.name(), self.counts())
    }
}

/// How much room a limit leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The configured maximum; none = unlimited.
    pub max: Option<u64>,
    /// Live workers that count against it.
    pub active: u64,
}

impl Room {
    /// Free places; none = unlimited.
    pub fn free(self) -> Option<u64> {
        self.max.map(|max| max.saturating_sub(self.active))
    }

    /// Whether one more fits.
    pub fn has_room(self) -> bool {
        self.free() != Some(0)
    }
}

impl State {
    /// The one capacity function.
    pub fn room(&self, limit: &Limit) -> Room {
        let max = match limit {
            Limit::Town => self.settings.town_cap(),
            Limit::Rig(name) => {
                let configured = self.settings.rigs.get(name).and_then(|r| r.max_polecats);
                configured.or_else(|| self.rigs.get(name).and_then(|r| r.max_polecats))
            }
            Limit::Account(name) => self.settings.accounts.get(name).and_then(|a| a.max_polecats),
            Limit::Agents => Some(self.agents_there()),
            Limit::Tasks => Some(self.settings.http.max_inflight),
            Limit::TasksOf(_) => Some(self.settings.http.max_per_agent_inflight),
            Limit::Slurm => self.cluster_room,
        };
        Room { max, active: self.active.get(limit).copied().unwrap_or(0) }
    }

    /// The limits that a scheduled bead counts against when it runs.
    pub fn limits_of(&self, bead: &BeadId) -> Vec<Limit> {
        let context = self.work(bead).and_then(|work| self.context(work.context.as_ref()?));
        context.into_iter().flat_map(|context| self.limits_for(context)).collect()
    }

    /// The limits that a context counts against when it runs.
    pub(crate) fn limits_for(&self, context: &Context) -> impl Iterator<Item = Limit> + use<> {
        context.limits(self.executor_of(context) == SLURM_EXECUTOR)
    }

    /// Whether something runs on the cluster, or would if it had room.
    pub fn wants_cluster(&self) -> bool {
        self.active.contains_key(&Limit::Slurm) || self.queue.counts_against(&Limit::Slurm)
    }

    /// Every limit that is configured or in use, town first.
    pub fn limits(&self) -> Vec<(Limit, Room)> {
        let rigs = self.rigs.keys().cloned().map(Limit::Rig);
        let accounts = self.settings.accounts.keys().cloned().map(Limit::Account);
        let tasks = (!self.tasks.is_empty()).then_some(Limit::Tasks);
        let agents = (!self.agents.is_empty()).then_some(Limit::Agents);
        let cluster = self.wants_cluster().then_some(Limit::Slurm);
        let all = std::iter::once(Limit::Town).chain(rigs).chain(accounts);
        let all = all.chain(tasks).chain(agents).chain(cluster);
        let rooms = all.map(|limit| (limit.clone(), self.room(&limit)));
        rooms.filter(|(limit, room)| *limit == Limit::Town || room.max.is_some()).collect()
    }
}
