//! The one table of config keys. Reading, `config set|get|list` and the help topic all follow it.

use yard_engine::dispatch::EXECUTORS;

use super::ConfigError;

/// A config key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeySpec {
    /// Its dotted name; `NAME` stands for any rig or account.
    pub key: &'static str,
    /// What a value looks like.
    pub kind: Kind,
    /// What holds when nothing is said.
    pub absent: Absent,
    /// One line of help.
    pub help: &'static str,
}

/// What holds when a key is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// This value, written as in JSON.
    Is(&'static str),
    /// Nothing; the word may also be given as the value.
    Word(&'static str),
}

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A whole number, at least this.
    Int(i64),
    /// A number greater than 0.
    Number,
    /// true or false.
    Bool,
    /// A span such as `30s`.
    Span,
    /// A number of bytes such as `2GiB`.
    Size,
    /// Any text.
    Text,
    /// A name that follows the id grammar.
    Name,
    /// A word that is passed on to Slurm.
    SlurmWord,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A command: program and arguments.
    Argv,
    /// Spans, one after the other.
    Spans,
    /// Any texts.
    Texts,
    /// Servers by tab-id glob.
    Table,
    /// An address to listen on, such as `127.0.0.1:7777`.
    Listen,
    /// The address of a web server.
    Url,
    /// Where the journal is.
    Store,
}

impl Kind {
    /// What is expected, in words.
    pub fn expected(self) -> String {
        match self {
            Self::Int(i64::MIN) => "a whole number".to_owned(),
            Self::Int(min) => format!("a whole number, {min} or more"),
            Self::Number => "a number greater than 0".to_owned(),
            Self::Bool => "true or false".to_owned(),
            Self::Span => "a duration such as 30s, 10m or 2h".to_owned(),
            Self::Size => "a size such as 64MiB or 2GiB".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::Name => "a name of letters, digits, '.', '_' and '-'".to_owned(),
            Self::SlurmWord => {
                "letters, digits and any of _.,:=+@/-, beginning with a letter or digit".to_owned()
            }
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::Argv => "a command as a list, such as [\"claude\", \"-p\"]".to_owned(),
            Self::Spans => "a list of durations, such as [\"1m\", \"5m\"]".to_owned(),
            Self::Texts => "a list of texts".to_owned(),
            Self::Listen => "an address with a port, such as 127.0.0.1:7777".to_owned(),
            Self::Url => "an address such as http://127.0.0.1:9867, without a password".to_owned(),
            Self::Store => {
                "sqlite, or an address such as postgres://ann@localhost/yards?schema=NAME".to_owned()
            }
            Self::Table => "a table of texts, such as { \"tab-1*\" = \"http://127.0.0.1:9867\" }".to_owned(),
        }
    }
}

const OFF: Absent = Absent::Word("off");
const NONE: Absent = Absent::Word("none");
const UNLIMITED: Absent = Absent::Word("unlimited");

const fn key(key: &'static str, kind: Kind, absent: Absent, help: &'static str) -> KeySpec {
    KeySpec { key, kind, absent, help }
}

/// Every key there is, a row each.
#[rustfmt::skip]
pub const KEYS: &[KeySpec] = &[
    key("scheduler.max_polecats", Kind::Int(-1), Absent::Is("-1"), "live workers at most; -1 and 0: direct dispatch"),
    key("scheduler.batch_size", Kind::Int(0), Absent::Is("0"), "starts per planning pass; 0: no limit"),
    key("scheduler.spawn_delay", Kind::Span, Absent::Is("\"0s\""), "pause between two spawns"),
    key("scheduler.max_dispatch_failures", Kind::Int(1), Absent::Is("3"), "failed starts that open the circuit breaker"),
    key("scheduler.fairness", Kind::OneOf(&["town", "rig", "convoy", "agent"]), Absent::Is("\"town\""), "what a lane is"),
    key("scheduler.aging", Kind::Span, OFF, "+1 priority per interval waited"),
    key("scheduler.safety_scan", Kind::Span, Absent::Is("\"30s\""), "how often everything is derived afresh and compared"),
    key("preemption.threshold", Kind::Int(1), Absent::Is("20"), "priority difference that lets work push other work out"),
    key("preemption.timeout", Kind::Span, Absent::Is("\"60s\""), "how long a worker may take to yield"),
    key("preemption.min_run", Kind::Span, Absent::Is("\"60s\""), "how long a worker is left alone at first"),
    key("retry.crash.backoff", Kind::Spans, Absent::Is("[\"1m\",\"5m\",\"15m\",\"30m\",\"30m\"]"), "waits before the retries of a crash"),
    key("retry.crash.max_attempts", Kind::Int(1), Absent::Is("5"), "attempts of a crashing bead, the first included"),
    key("retry.unavailable.backoff", Kind::Spans, Absent::Is("[\"2m\",\"5m\",\"10m\",\"15m\",\"15m\"]"), "waits when a service is unavailable"),
    key("retry.unavailable.max_attempts", Kind::Int(1), Absent::Is("5"), "attempts against an unavailable service"),
    key("limits.hard_cap", Kind::Span, Absent::Is("\"8h\""), "a worker is ended after this time"),
    key("limits.stuck_after", Kind::Span, Absent::Is("\"30m\""), "a worker without a sign of life is reported"),
    key("limits.kill_grace", Kind::Span, Absent::Is("\"10s\""), "time between SIGTERM and SIGKILL"),
    key("limits.shutdown_timeout", Kind::Span, Absent::Is("\"30s\""), "how long a drain waits for workers"),
    key("limits.close_grace", Kind::Span, Absent::Is("\"5m\""), "how long a finished worker's bead may stay open"),
    key("limits.spawn_timeout", Kind::Span, Absent::Is("\"5m\""), "a start that takes longer has failed"),
    key("cost.per_bead", Kind::Number, UNLIMITED, "USD one bead may cost"),
    key("cost.per_convoy", Kind::Number, UNLIMITED, "USD one convoy may cost"),
    key("cost.daily", Kind::Number, UNLIMITED, "USD per day"),
    key("cost.monthly", Kind::Number, UNLIMITED, "USD per month"),
    key("host.max_load_per_core", Kind::Number, OFF, "nothing starts above this load"),
    key("host.min_free_memory", Kind::Size, OFF, "nothing starts with less memory free"),
    key("account.NAME.max_polecats", Kind::Int(-1), OFF, "live workers of the account; -1 and 0: no limit"),
    key("account.NAME.cooldown", Kind::Span, OFF, "rest of an account that was unavailable"),
    key("agents.offline_after", Kind::Span, Absent::Is("\"10m\""), "an agent silent so long counts as gone"),
    key("agents.claim_timeout", Kind::Span, Absent::Is("\"5m\""), "how long an agent may take to accept work"),
    key("agents.lease", Kind::Span, Absent::Is("\"10m\""), "how long a claim holds without a sign of life"),
    key("agents.auto_claim", Kind::Bool, Absent::Is("false"), "work is claimed for an agent when sent"),
    key("agents.tracks", Kind::Bool, Absent::Is("false"), "give whole connected tracks to one agent"),
    key("agents.hook", Kind::Argv, NONE, "command that gets each message to an agent as JSON on stdin"),
    key("recovery.stale_after", Kind::Span, Absent::Is("\"1h\""), "a hook without a worker is taken back"),
    key("worker.agent", Kind::Argv, NONE, "the agent command mol-polecat-work runs"),
    key("worker.formula", Kind::Name, Absent::Is("\"mol-polecat-work\""), "formula of a sling that names none"),
    key("worker.executor", Kind::OneOf(&EXECUTORS), Absent::Is("\"local\""), "executor of a sling that names none"),
    key("worker.merge", Kind::OneOf(&["direct", "mr", "local"]), Absent::Is("\"mr\""), "merge strategy of a sling that names none"),
    key("worker.isolation", Kind::OneOf(&["none", "worktree"]), Absent::Is("\"none\""), "where work is done: in the rig's directory, or each in a git worktree"),
    key("worker.check", Kind::Argv, NONE, "command that must succeed on a merged tree before it becomes the base"),
    key("worker.log_cap", Kind::Size, Absent::Is("\"64MiB\""), "largest log kept of one dispatch"),
    key("rig.NAME.agent", Kind::Argv, NONE, "worker.agent of one rig"),
    key("rig.NAME.formula", Kind::Name, NONE, "worker.formula of one rig"),
    key("rig.NAME.executor", Kind::OneOf(&EXECUTORS), NONE, "worker.executor of one rig"),
    key("rig.NAME.merge", Kind::OneOf(&["direct", "mr", "local"]), NONE, "worker.merge of one rig"),
    key("rig.NAME.isolation", Kind::OneOf(&["none", "worktree"]), NONE, "worker.isolation of one rig"),
    key("rig.NAME.check", Kind::Argv, NONE, "worker.check of one rig"),
    key("rig.NAME.max_polecats", Kind::Int(-1), OFF, "live workers of one rig; -1 and 0: no limit"),
    key("rig.NAME.assign", Kind::OneOf(&["slung", "ready"]), OFF, "give the rig's work to agents: what is slung, or all that is ready"),
    key("rig.NAME.wake", Kind::Argv, NONE, "command run once after a pass gave the rig work"),
    key("results.ttl", Kind::Span, Absent::Is("\"7d\""), "how long closed beads, their logs and old events are kept"),
    key("http.listen", Kind::Listen, OFF, "address of the HTTP API, such as 127.0.0.1:7777"),
    key("http.tls_cert", Kind::Text, NONE, "its certificate chain (PEM), for TLS; needed where others can listen in"),
    key("http.tls_key", Kind::Text, NONE, "the key of that certificate (PEM)"),
    key("http.token_file", Kind::Text, Absent::Is("\".yardmaster/http-token\""), "where the bearer token lies"),
    key("http.max_queue", Kind::Int(1), Absent::Is("1000"), "HTTP tasks waiting at most"),
    key("http.max_per_agent", Kind::Int(1), Absent::Is("100"), "HTTP tasks waiting at most per agent"),
    key("http.max_inflight", Kind::Int(1), Absent::Is("20"), "HTTP tasks running at most"),
    key("http.max_per_agent_inflight", Kind::Int(1), Absent::Is("10"), "HTTP tasks running at most per agent"),
    key("http.rate_limit", Kind::Int(0), Absent::Is("0"), "requests per client in 10 s; 0: no limit"),
    key("http.webhook_allow", Kind::Texts, Absent::Is("[]"), "private hosts that webhooks may go to all the same"),
    key("executor.http.base_url", Kind::Url, NONE, "server that gets POST /tabs/{tabId}/action"),
    key("executor.http.instances", Kind::Table, NONE, "servers by tab-id glob"),
    key("executor.slurm.partition", Kind::SlurmWord, NONE, "partition of Slurm jobs whose formula names none"),
    key("executor.slurm.account", Kind::SlurmWord, NONE, "account that Slurm charges for them"),
    key("executor.slurm.time_limit", Kind::Span, NONE, "how long Slurm lets such a job run"),
    key("executor.slurm.cpus", Kind::Int(1), NONE, "processors of such a job"),
    key("executor.slurm.memory", Kind::Size, NONE, "memory of such a job"),
    key("executor.slurm.gres", Kind::SlurmWord, NONE, "generic resources of such a job, as gpu:1"),
    key("sources.poll", Kind::Span, Absent::Is("\"1m\""), "how often a workspace without a live file is asked; 0s: only by ym poke"),
    key("store", Kind::Store, Absent::Is("\"sqlite\""), "where the journal is: sqlite, or postgres://…?schema=NAME"),
    key("alerts.command", Kind::Argv, NONE, "command that gets each alert as JSON on stdin"),
    key("alerts.retry", Kind::Span, Absent::Is("\"30s\""), "how long a failed alerts.command is left alone"),
];

/// Where a key leads: its row, and the rig or account in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    pub(super) spec: &'static KeySpec,
    pub(super) name: Option<String>,
}

impl Place {
    /// The key with its name filled in.
    pub(super) fn key(&self) -> String {
        match &self.name {
            Some(name) => self.spec.key.replace("NAME", name),
            None => self.spec.key.to_owned(),
        }
    }

    /// The key as a path through tables.
    pub(super) fn path(&self) -> Vec<String> {
        let part = |part: &str| match (&self.name, part) {
            (Some(name), "NAME") => name.clone(),
            _ => part.to_owned(),
        };
        self.spec.key.split('.').map(part).collect()
    }
}

/// Finds a dotted key. The name of a rig may itself hold dots.
pub(super) fn find(key: &str) -> Result<Place, ConfigError> {
    for spec in KEYS {
        match spec.key.split_once("NAME") {
            None if spec.key == key => return Ok(Place { spec, name: None }),
            None => {}
            Some((before, after)) => {
                let name = key.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                if let Some(name) = name.filter(|name| yard_engine::RigName::parse(name).is_ok()) {
                    return Ok(Place { spec, name: Some(name.to_owned()) });
                }
            }
        }
    }
    Err(unknown(key))
}

/// Finds the key of a path through tables; `None` if it is a table on the way to keys.
pub(super) fn find_path(path: &[&str]) -> Result<Option<Place>, ConfigError> {
    let mut on_the_way = false;
    for spec in KEYS {
        let mut parts = spec.key.split('.');
        let mut name = None;
        let fits = path.iter().all(|have| match parts.next() {
            Some("NAME") => {
                name = Some((*have).to_owned());
                yard_engine::RigName::parse(have).is_ok()
            }
            want => want == Some(*have),
        });
        if fits && parts.next().is_none() {
            return Ok(Some(Place { spec, name }));
        }
        on_the_way |= fits;
    }
    if on_the_way { Ok(None) } else { Err(unknown(&path.join("."))) }
}

fn unknown(key: &str) -> ConfigError {
    let key: String = key.chars().take(120).collect();
    let near = KEYS.iter().map(|spec| (distance(spec.key, &key), spec.key)).min();
    // Half of a short key is no slip of the pen.
    let is_near = |far: usize| far <= 3.max(key.len() / 4) && 2 * far < key.len();
    let near = near.filter(|(far, _)| is_near(*far)).map(|(_, near)| near.to_owned());
    let by_last = || {
        let last = key.rsplit('.').next()?;
        let fits = |spec: &&KeySpec| spec.key.rsplit('.').next() == Some(last);
        KEYS.iter().find(fits).map(|spec| spec.key.to_owned())
    };
    let near = near.or_else(by_last);
    ConfigError::UnknownKey { key, line: None, near }
}

/// How many letters must be changed to turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let changed = corner + usize::from(ca != *cb);
            corner = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_name_and_by_path() {
        let place = find("scheduler.max_polecats").expect("a key");
        assert_eq!(place.spec.key, "scheduler.max_polecats");
        let place = find("rig.my.api.agent").expect("a rig's key");
        assert_eq!(place.name.as_deref(), Some("my.api"));
        assert_eq!(place.path(), ["rig", "my.api", "agent"]);
        assert_eq!(find_path(&["rig", "my.api", "agent"]).expect("a key"), Some(place));
        assert_eq!(find_path(&["retry", "crash"]).expect("a table"), None);
        assert!(find("rig.../x.agent").is_err());
    }

    #[test]
    fn a_slip_of_the_pen_is_named() {
        let near = |key: &str| match find(key) {
            Err(ConfigError::UnknownKey { near, .. }) => near,
            other => panic!("{other:?}"),
        };
        assert_eq!(near("scheduler.max_polecat").as_deref(), Some("scheduler.max_polecats"));
        assert_eq!(near("max_polecats").as_deref(), Some("scheduler.max_polecats"));
        assert_eq!(near("nothing.like.that"), None);
        assert_eq!(near("nope"), None);
    }
}
