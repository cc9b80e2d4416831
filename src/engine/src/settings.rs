//! What the operator configured, as the engine sees it. Settings are recorded as events, so a replay decides
//! with the settings of that moment and never with today's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::money::Usd;
use crate::slurm::SlurmRequest;
use crate::{AccountName, FormulaName, Millis, RigName};

/// Everything configurable that a decision may depend on. Defaults are those of the manual.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// -1 and 0: direct dispatch; N > 0: deferred, at most N live workers.
    pub max_polecats: i64,
    /// At most this many starts in one planning pass; 0 = no limit.
    pub batch_size: u32,
    /// Pause between two spawns of one pass.
    pub spawn_delay: Millis,
    /// Start failures after which the breaker opens.
    pub max_dispatch_failures: u32,
    /// What a lane is.
    pub fairness: Fairness,
    /// +1 priority per interval waited.
    pub aging: Option<Millis>,
    /// Retries of workers that crashed.
    pub retry_crash: RetryPolicy,
    /// Retries of workers that found their service unavailable.
    pub retry_unavailable: RetryPolicy,
    /// When work pushes other work out.
    pub preemption: PreemptionSettings,
    /// What may be spent.
    pub cost: CostSettings,
    /// How long a worker may be silent before a person is told; 0 = for ever.
    pub stuck_after: Millis,
    /// Active time after which a dispatch is ended.
    pub hard_cap: Millis,
    /// Time between SIGTERM and SIGKILL.
    pub kill_grace: Millis,
    /// How long a drain waits for running workers.
    pub shutdown_timeout: Millis,
    /// How long a start may take before it counts as failed.
    pub spawn_timeout: Millis,
    /// How often the safety scan runs.
    pub safety_scan: Millis,
    /// How long a bead may be in progress without a worker we know.
    pub stale_after: Millis,
    /// How long a finished bead may wait for its tracker to close it.
    pub close_grace: Millis,
    /// How often workspaces without a live file are asked; 0 = only when poked.
    pub sources_poll: Millis,
    /// The command that is told each alert.
    pub alerts_command: Option<Vec<String>>,
    /// How long that command is left alone after it failed.
    pub alerts_retry: Millis,
    /// Load per core above which nothing starts.
    pub max_load_per_core: Option<f64>,
    /// Free memory in bytes below which nothing starts.
    pub min_free_memory: Option<u64>,
    /// Largest log kept of one dispatch, in bytes.
    pub log_cap: u64,
    /// How long results are kept.
    pub results_ttl: Millis,
    /// Registered agents and their orders.
    pub agents: AgentSettings,
    /// The HTTP API and what it may take in.
    pub http: HttpSettings,
    /// Where actions over HTTP go.
    pub http_executor: HttpExecutorSettings,
    /// What jobs of Slurm ask for when their formula does not say.
    pub slurm: SlurmRequest,
    /// Defaults of a sling.
    pub worker: WorkerSettings,
    /// Per-rig overrides.
    pub rigs: BTreeMap<RigName, RigSettings>,
    /// Per-account limits.
    pub accounts: BTreeMap<AccountName, AccountSettings>,
}

impl Default for Settings {
    fn default() -> Self {
        let minutes = |list: [u64; 5]| list.map(Millis::minutes).to_vec();
        Self {
            max_polecats: -1,
            batch_size: 0,
            spawn_delay: Millis(0),
            max_dispatch_failures: 3,
            fairness: Fairness::Town,
            aging: None,
            retry_crash: RetryPolicy { backoff: minutes([1, 5, 15, 30, 30]), max_attempts: 5 },
            retry_unavailable: RetryPolicy { backoff: minutes([2, 5, 10, 15, 15]), max_attempts: 5 },
            preemption: PreemptionSettings::default(),
            cost: CostSettings::default(),
            stuck_after: Millis::minutes(30),
            hard_cap: Millis::minutes(8 * 60),
            kill_grace: Millis::seconds(10),
            shutdown_timeout: Millis::seconds(30),
            spawn_timeout: Millis::minutes(5),
            safety_scan: Millis::seconds(30),
            stale_after: Millis::minutes(60),
            close_grace: Millis::minutes(5),
            sources_poll: Millis::minutes(1),
            alerts_command: None,
            alerts_retry: Millis::seconds(30),
            max_load_per_core: None,
            min_free_memory: None,
            log_cap: 64 * 1024 * 1024,
            results_ttl: Millis::minutes(7 * 24 * 60),
            agents: AgentSettings::default(),
            http: HttpSettings::default(),
            http_executor: HttpExecutorSettings::default(),
            slurm: SlurmRequest::default(),
            worker: WorkerSettings::default(),
            rigs: BTreeMap::new(),
            accounts: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Whether a sling waits for a planning pass instead of starting at once.
    pub fn is_deferred(&self) -> bool {
        self.max_polecats > 0
    }

    /// The town-wide cap; direct mode has none.
    pub fn town_cap(&self) -> Option<u64> {
        u64::try_from(self.max_polecats).ok().filter(|&n| n > 0)
    }

    /// The formula a bead of this rig gets when nobody names one.
    pub fn default_formula(&self, rig: &RigName) -> FormulaName {
        let of_rig = self.rigs.get(rig).and_then(|r| r.worker.formula.clone());
        of_rig.or_else(|| self.worker.formula.clone()).unwrap_or_else(|| {
            FormulaName::parse("mol-polecat-work").expect("the built-in name follows the grammar")
        })
    }

    /// Where work of a rig is done whose formula says nothing about it.
    pub fn isolation(&self, rig: &RigName) -> Isolation {
        let of_rig = self.rigs.get(rig).and_then(|rig| rig.worker.isolation);
        of_rig.or(self.worker.isolation).unwrap_or_default()
    }

    /// What has to go well on a merged tree of a rig, where the formula names nothing.
    pub fn check_command(&self, rig: &RigName) -> Option<&Vec<String>> {
        let of_rig = self.rigs.get(rig).and_then(|rig| rig.worker.check.as_ref());
        of_rig.or(self.worker.check.as_ref())
    }

    /// The agent command configured for this rig.
    pub fn agent_command(&self, rig: &RigName) -> Option<&Vec<String>> {
        let of_rig = self.rigs.get(rig).and_then(|r| r.worker.agent.as_ref());
        of_rig.or(self.worker.agent.as_ref())
    }

    /// The executor that the config names for this rig.
    pub fn executor(&self, rig: &RigName) -> Option<&String> {
        let of_rig = self.rigs.get(rig).and_then(|r| r.worker.executor.as_ref());
        of_rig.or(self.worker.executor.as_ref())
    }
}

/// What a lane is, for fairness between lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fairness {
    /// One lane for the whole town.
    #[default]
    Town,
    /// A lane per rig.
    Rig,
    /// A lane per convoy.
    Convoy,
    /// A lane per agent.
    Agent,
}

/// How often and after which waits a failure is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Wait before the n-th retry; the last one repeats.
    pub backoff: Vec<Millis>,
    /// Attempts altogether, the first included.
    pub max_attempts: u32,
}

/// When work pushes other work out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PreemptionSettings {
    /// How much more urgent it must be.
    pub threshold: u32,
    /// How long a worker may take to give way, each time it is asked.
    pub timeout: Millis,
    /// How long a worker is left alone.
    pub min_run: Millis,
}

impl Default for PreemptionSettings {
    fn default() -> Self {
        Self { threshold: 20, timeout: Millis::seconds(60), min_run: Millis::seconds(60) }
    }
}

/// What may be spent; none = without limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CostSettings {
    /// By one request of a bead.
    pub per_bead: Option<Usd>,
    /// By one convoy.
    pub per_convoy: Option<Usd>,
    /// In a day, UTC.
    pub daily: Option<Usd>,
    /// In a month, UTC.
    pub monthly: Option<Usd>,
}

/// Registered agents: how long they may be silent, and how they are given work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentSettings {
    /// An agent silent so long counts as gone.
    pub offline_after: Millis,
    /// How long an agent may take to claim an order.
    pub claim_timeout: Millis,
    /// How long a claim holds without a sign of life.
    pub lease: Millis,
    /// Orders are claimed for agents when they are sent.
    pub auto_claim: bool,
    /// Whole tracks go to one agent.
    pub tracks: bool,
    /// The command that is told each message to an agent.
    pub hook: Option<Vec<String>>,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            offline_after: Millis::minutes(10),
            claim_timeout: Millis::minutes(5),
            lease: Millis::minutes(10),
            auto_claim: false,
            tracks: false,
            hook: None,
        }
    }
}

/// Whether the work of a rig is given to agents instead of being started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RigAssign {
    /// It is started.
    #[default]
    Off,
    /// Whatever is slung or launched is given to agents.
    Slung,
    /// Everything that is ready is, without anybody asking for it.
    Ready,
}

/// The HTTP API: where it is, and how much it takes in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpSettings {
    /// The address it listens on; none = off.
    pub listen: Option<String>,
    /// The file with its token; none = where it usually lies.
    pub token_file: Option<String>,
    /// The file with its certificate chain; none = no TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<String>,
    /// The file with the key of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<String>,
    /// Tasks that may wait.
    pub max_queue: u64,
    /// Tasks that may wait of one agent.
    pub max_per_agent: u64,
    /// Tasks that may run.
    pub max_inflight: u64,
    /// Tasks that may run of one agent.
    pub max_per_agent_inflight: u64,
    /// Requests one client may make in ten seconds; 0 = any number.
    pub rate_limit: u64,
    /// Hosts that webhooks may go to although their addresses are private.
    pub webhook_allow: Vec<String>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            listen: None,
            token_file: None,
            tls_cert: None,
            tls_key: None,
            max_queue: 1000,
            max_per_agent: 100,
            max_inflight: 20,
            max_per_agent_inflight: 10,
            rate_limit: 0,
            webhook_allow: Vec::new(),
        }
    }
}

/// Where actions over HTTP go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpExecutorSettings {
    /// The server of every tab that no glob below names.
    pub base_url: Option<String>,
    /// Servers by tab-id glob; of several that fit, the longest one counts.
    pub instances: BTreeMap<String, String>,
}

/// Defaults of a sling, for the town or one rig.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerSettings {
    /// The agent command `mol-polecat-work` runs.
    pub agent: Option<Vec<String>>,
    /// The formula used when none is named.
    pub formula: Option<FormulaName>,
    /// The executor used when none is named.
    pub executor: Option<String>,
    /// The merge strategy used when none is named.
    pub merge: Option<Merge>,
    /// Where work is done whose formula says nothing about it.
    pub isolation: Option<Isolation>,
    /// What has to go well on a merged tree, where the formula names nothing.
    pub check: Option<Vec<String>>,
}

/// Per-rig settings from the config file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RigSettings {
    /// Overrides of the worker defaults.
    #[serde(flatten)]
    pub worker: WorkerSettings,
    /// At most this many live workers in the rig.
    pub max_polecats: Option<u64>,
    /// Whether its work is given to agents.
    pub assign: RigAssign,
    /// Command run once after a pass that gave the rig work.
    pub wake: Option<Vec<String>>,
}

/// Limits of one account.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountSettings {
    /// At most this many live workers on the account.
    pub max_polecats: Option<u64>,
    /// How long the account rests after an unavailable outcome.
    pub cooldown: Option<Millis>,
}

/// Where a dispatch works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// In the rig's own directory.
    #[default]
    None,
    /// In a git worktree of its own.
    Worktree,
}

/// What happens to a finished branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Merge {
    /// We merge it into the base.
    Direct,
    /// It is announced, and somebody else merges it.
    Mr,
    /// It stays where it is, and nobody is told.
    Local,
}

impl std::str::FromStr for Merge {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "direct" => Ok(Self::Direct),
            "mr" => Ok(Self::Mr),
            "local" => Ok(Self::Local),
            other => Err(format!("merge strategy {other:?} is not known: use direct, mr or local")),
        }
    }
}
