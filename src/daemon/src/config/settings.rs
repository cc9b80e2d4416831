//! The config file as the engine's settings.

use std::fs;
use std::io;
use std::path::Path;

use toml_edit::{Document, Item, TableLike};
use yard_engine::money::Usd;
use yard_engine::settings::{
    AgentSettings, Fairness, HttpSettings, Isolation, Merge, RigAssign, RigSettings, WorkerSettings,
};
use yard_engine::slurm::SlurmRequest;
use yard_engine::{AccountName, FormulaName, RigName, Settings};

use super::ConfigError;
use super::keys::{self, Place};
use super::value::{self, Meaning};

/// Reads the config file; an absent one means all defaults.
pub fn read_settings(path: &Path) -> Result<Settings, ConfigError> {
    parse_settings(&read_text(path)?)
}

/// Reads the text of a config file.
pub fn parse_settings(text: &str) -> Result<Settings, ConfigError> {
    let mut settings = Settings::default();
    for found in entries(text)? {
        let meaning = found.meaning?;
        take(&mut settings, &found.place, meaning);
    }
    check(&settings.http)?;
    Ok(settings)
}

/// What no key can say of itself: in plain, only this machine may hear what the API says, tokens included.
fn check(http: &HttpSettings) -> Result<(), ConfigError> {
    match &http.listen {
        Some(address) if needs_tls(address) && (http.tls_cert.is_none() || http.tls_key.is_none()) => {
            Err(ConfigError::NeedsTls { address: address.clone() })
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether others than this machine can reach an address.
pub(crate) fn needs_tls(address: &str) -> bool {
    !address.parse::<std::net::SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
}

/// The text of the file; empty if there is none.
pub(super) fn read_text(path: &Path) -> Result<String, ConfigError> {
    // A pipe or a device in its place must not hold up the daemon.
    let odd = fs::metadata(path).is_ok_and(|it| !it.is_file());
    let text = if odd { Err(io::Error::other("it is not a file")) } else { fs::read_to_string(path) };
    match text {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(ConfigError::Io { what: "read", path: path.to_owned(), error }),
    }
}

/// A key that stands in the file.
pub(super) struct Found {
    pub(super) place: Place,
    pub(super) json: serde_json::Value,
    pub(super) meaning: Result<Meaning, ConfigError>,
}

/// Every key in the text, in the order written. A key that nobody knows is an error.
pub(super) fn entries(text: &str) -> Result<Vec<Found>, ConfigError> {
    let document = Document::parse(text).map_err(|error| not_toml(text, &error))?;
    let mut found = Vec::new();
    walk(text, document.as_table(), &mut Vec::new(), &mut found)?;
    Ok(found)
}

pub(super) fn not_toml(text: &str, error: &toml_edit::TomlError) -> ConfigError {
    let line = line_of(text, error.span().map_or(0, |span| span.start));
    ConfigError::NotToml { line, message: error.message().replace('\n', " ") }
}

fn walk<'a>(
    text: &str,
    table: &'a dyn TableLike,
    path: &mut Vec<&'a str>,
    found: &mut Vec<Found>,
) -> Result<(), ConfigError> {
    for (key, item) in table.iter() {
        path.push(key);
        let span = item.span().or_else(|| table.key(key).and_then(toml_edit::Key::span));
        let line = line_of(text, span.map_or(0, |span| span.start));
        match keys::find_path(path).map_err(|error| error.at_line(line))? {
            Some(place) => {
                let meaning = value::read(&place, item).map_err(|error| error.at_line(line));
                found.push(Found { json: value::shown(&place, item), place, meaning });
            }
            None => match item.as_table_like() {
                Some(inner) => walk(text, inner, path, found)?,
                None => return Err(not_a_table(path, item).at_line(line)),
            },
        }
        path.pop();
    }
    Ok(())
}

fn not_a_table(path: &[&str], item: &Item) -> ConfigError {
    ConfigError::BadValue {
        key: path.join("."),
        line: None,
        expected: "a table of keys".to_owned(),
        found: value::to_json(item).to_string().chars().take(120).collect(),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|b| *b == b'\n').count() + 1
}

/// Puts a value where the engine looks for it. Keys of features the engine does not decide about are only checked.
fn take(settings: &mut Settings, place: &Place, meaning: Meaning) {
    use Meaning as M;
    let name = place.name.as_deref();
    match (place.spec.key, meaning) {
        ("scheduler.max_polecats", M::Int(n)) => settings.max_polecats = n,
        ("scheduler.batch_size", M::Int(n)) => settings.batch_size = n as u32,
        ("scheduler.spawn_delay", M::Span(span)) => settings.spawn_delay = span,
        ("scheduler.max_dispatch_failures", M::Int(n)) => settings.max_dispatch_failures = n as u32,
        ("scheduler.fairness", M::Text(word)) => settings.fairness = fairness(&word),
        ("scheduler.aging", M::Span(span)) => settings.aging = Some(span).filter(|s| s.0 > 0),
        ("retry.crash.backoff", M::Spans(spans)) => settings.retry_crash.backoff = spans,
        ("retry.crash.max_attempts", M::Int(n)) => settings.retry_crash.max_attempts = n as u32,
        ("retry.unavailable.backoff", M::Spans(spans)) => settings.retry_unavailable.backoff = spans,
        ("retry.unavailable.max_attempts", M::Int(n)) => settings.retry_unavailable.max_attempts = n as u32,
        ("preemption.threshold", M::Int(n)) => {
            settings.preemption.threshold = u32::try_from(n).unwrap_or(u32::MAX);
        }
        ("preemption.timeout", M::Span(span)) => settings.preemption.timeout = span,
        ("preemption.min_run", M::Span(span)) => settings.preemption.min_run = span,
        ("cost.per_bead", M::Number(n)) => settings.cost.per_bead = Some(budget(n)),
        ("cost.per_convoy", M::Number(n)) => settings.cost.per_convoy = Some(budget(n)),
        ("cost.daily", M::Number(n)) => settings.cost.daily = Some(budget(n)),
        ("cost.monthly", M::Number(n)) => settings.cost.monthly = Some(budget(n)),
        ("limits.stuck_after", M::Span(span)) => settings.stuck_after = span,
        ("limits.hard_cap", M::Span(span)) => settings.hard_cap = span,
        ("limits.kill_grace", M::Span(span)) => settings.kill_grace = span,
        ("limits.shutdown_timeout", M::Span(span)) => settings.shutdown_timeout = span,
        ("limits.spawn_timeout", M::Span(span)) => settings.spawn_timeout = span,
        ("scheduler.safety_scan", M::Span(span)) => settings.safety_scan = span,
        ("recovery.stale_after", M::Span(span)) => settings.stale_after = span,
        ("limits.close_grace", M::Span(span)) => settings.close_grace = span,
        ("sources.poll", M::Span(span)) => settings.sources_poll = span,
        ("alerts.command", M::Texts(argv)) => settings.alerts_command = Some(argv),
        ("alerts.retry", M::Span(span)) => settings.alerts_retry = span,
        ("host.max_load_per_core", M::Number(n)) => settings.max_load_per_core = Some(n),
        ("host.min_free_memory", M::Bytes(n)) => settings.min_free_memory = Some(n),
        ("worker.log_cap", M::Bytes(n)) => settings.log_cap = n,
        ("results.ttl", M::Span(span)) => settings.results_ttl = span,
        (key, meaning) if key.starts_with("executor.slurm.") => take_slurm(&mut settings.slurm, key, meaning),
        ("executor.http.base_url", M::Text(url)) => settings.http_executor.base_url = Some(url),
        ("executor.http.instances", M::Table(table)) => settings.http_executor.instances = table,
        (key, meaning) => {
            if let Some(field) = key.strip_prefix("agents.") {
                take_agents(&mut settings.agents, field, meaning);
            } else if let Some(field) = key.strip_prefix("http.") {
                take_http(&mut settings.http, field, meaning);
            } else if let Some(field) = key.strip_prefix("worker.") {
                take_worker(&mut settings.worker, field, meaning);
            } else if let (Some(field), Some(rig)) = (key.strip_prefix("rig.NAME."), rig_name(name)) {
                take_rig(settings.rigs.entry(rig).or_default(), field, meaning);
            } else if let (Some(field), Some(account)) =
                (key.strip_prefix("account.NAME."), account_name(name))
            {
                let account = settings.accounts.entry(account).or_default();
                match (field, meaning) {
                    ("max_polecats", M::Int(n)) => account.max_polecats = cap(n),
                    ("cooldown", M::Span(span)) => account.cooldown = Some(span),
                    _ => {}
                }
            }
        }
    }
}

fn take_agents(agents: &mut AgentSettings, field: &str, meaning: Meaning) {
    match (field, meaning) {
        ("offline_after", Meaning::Span(span)) => agents.offline_after = span,
        ("claim_timeout", Meaning::Span(span)) => agents.claim_timeout = span,
        ("lease", Meaning::Span(span)) => agents.lease = span,
        ("auto_claim", Meaning::Bool(on)) => agents.auto_claim = on,
        ("tracks", Meaning::Bool(on)) => agents.tracks = on,
        ("hook", Meaning::Texts(argv)) => agents.hook = Some(argv),
        _ => {}
    }
}

fn take_http(http: &mut HttpSettings, field: &str, meaning: Meaning) {
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    match (field, meaning) {
        ("listen", Meaning::Text(address)) => http.listen = Some(address),
        ("token_file", Meaning::Text(path)) => http.token_file = Some(path),
        ("tls_cert", Meaning::Text(path)) => http.tls_cert = Some(path),
        ("tls_key", Meaning::Text(path)) => http.tls_key = Some(path),
        ("max_queue", Meaning::Int(n)) => http.max_queue = count(n),
        ("max_per_agent", Meaning::Int(n)) => http.max_per_agent = count(n),
        ("max_inflight", Meaning::Int(n)) => http.max_inflight = count(n),
        ("max_per_agent_inflight", Meaning::Int(n)) => http.max_per_agent_inflight = count(n),
        ("rate_limit", Meaning::Int(n)) => http.rate_limit = count(n),
        ("webhook_allow", Meaning::Texts(hosts)) => http.webhook_allow = hosts,
        _ => {}
    }
}

fn take_slurm(slurm: &mut SlurmRequest, key: &str, meaning: Meaning) {
    match (key, meaning) {
        ("executor.slurm.partition", Meaning::Text(name)) => slurm.partition = Some(name),
        ("executor.slurm.account", Meaning::Text(name)) => slurm.account = Some(name),
        ("executor.slurm.time_limit", Meaning::Span(span)) => {
            slurm.time_limit = Some(span).filter(|s| s.0 > 0);
        }
        ("executor.slurm.cpus", Meaning::Int(n)) => slurm.cpus = Some(u32::try_from(n).unwrap_or(u32::MAX)),
        ("executor.slurm.memory", Meaning::Bytes(bytes)) => slurm.memory = Some(bytes).filter(|b| *b > 0),
        ("executor.slurm.gres", Meaning::Text(name)) => slurm.gres = Some(name),
        _ => {}
    }
}

fn take_rig(rig: &mut RigSettings, field: &str, meaning: Meaning) {
    match (field, meaning) {
        ("max_polecats", Meaning::Int(n)) => rig.max_polecats = cap(n),
        ("wake", Meaning::Texts(argv)) => rig.wake = Some(argv),
        ("assign", Meaning::Text(word)) => {
            rig.assign = match word.as_str() {
                "slung" => RigAssign::Slung,
                "ready" => RigAssign::Ready,
                _ => RigAssign::Off,
            };
        }
        (field, meaning) => take_worker(&mut rig.worker, field, meaning),
    }
}

fn take_worker(worker: &mut WorkerSettings, field: &str, meaning: Meaning) {
    match (field, meaning) {
        ("agent", Meaning::Texts(argv)) => worker.agent = Some(argv),
        ("formula", Meaning::Text(name)) => worker.formula = FormulaName::parse(&name).ok(),
        ("executor", Meaning::Text(name)) => worker.executor = Some(name),
        ("merge", Meaning::Text(word)) => worker.merge = word.parse::<Merge>().ok(),
        ("isolation", Meaning::Text(word)) => {
            let isolation = if word == "worktree" { Isolation::Worktree } else { Isolation::None };
            worker.isolation = Some(isolation);
        }
        ("check", Meaning::Texts(argv)) => worker.check = Some(argv),
        _ => {}
    }
}

/// -1 and 0 mean that there is no cap of one's own.
fn cap(n: i64) -> Option<u64> {
    u64::try_from(n).ok().filter(|n| *n > 0)
}

/// A budget of something: neither nothing, which would stop everything, nor more than is ever counted.
fn budget(dollars: f64) -> Usd {
    Usd::from_dollars(dollars).unwrap_or(Usd::MOST).max(Usd::LEAST)
}

fn rig_name(name: Option<&str>) -> Option<RigName> {
    RigName::parse(name?).ok()
}

fn account_name(name: Option<&str>) -> Option<AccountName> {
    AccountName::parse(name?).ok()
}

fn fairness(word: &str) -> Fairness {
    match word {
        "rig" => Fairness::Rig,
        "convoy" => Fairness::Convoy,
        "agent" => Fairness::Agent,
        _ => Fairness::Town,
    }
}

#[cfg(test)]
mod tests {
    use yard_engine::Millis;

    use super::*;

    #[test]
    fn an_absent_file_means_the_defaults() {
        let settings = read_settings(Path::new("/nonexistent/config.toml")).expect("defaults");
        assert_eq!(settings, Settings::default());
        assert_eq!(parse_settings("# only a comment\n").expect("defaults"), Settings::default());
    }

    #[test]
    fn every_default_in_the_table_is_the_engines_default() {
        let mut text = String::new();
        for spec in super::super::KEYS {
            if let super::super::Absent::Is(json) = spec.absent {
                text.extend([spec.key, " = ", json, "\n"]);
            }
        }
        let defaults = Settings {
            worker: WorkerSettings {
                formula: FormulaName::parse("mol-polecat-work").ok(),
                executor: Some("local".to_owned()),
                merge: Some(Merge::Mr),
                isolation: Some(Isolation::None),
                agent: None,
                check: None,
            },
            http: HttpSettings {
                token_file: Some(".yardmaster/http-token".to_owned()),
                ..HttpSettings::default()
            },
            ..Settings::default()
        };
        assert_eq!(parse_settings(&text).expect("valid"), defaults);
    }

    #[test]
    fn values_reach_their_fields() {
        let text = r#"
            scheduler.max_polecats = 5
            scheduler.aging = "10m"
            [worker]
            agent = ["claude", "-p"]
            log_cap = "1MiB"
            [rig.api]
            max_polecats = 2
            wake = ["true"]
            merge = "local"
            isolation = "worktree"
            check = ["cargo", "test"]
            [account.main]
            max_polecats = -1
            cooldown = "5m"
            [host]
            min_free_memory = "2GiB"
            max_load_per_core = 2
        "#;
        let settings = parse_settings(text).expect("valid");
        assert_eq!(settings.max_polecats, 5);
        assert_eq!(settings.aging, Some(Millis::minutes(10)));
        assert_eq!(settings.worker.agent, Some(vec!["claude".to_owned(), "-p".to_owned()]));
        assert_eq!((settings.log_cap, settings.min_free_memory), (1 << 20, Some(2 << 30)));
        let rig = &settings.rigs["api"];
        assert_eq!((rig.max_polecats, rig.worker.merge), (Some(2), Some(Merge::Local)));
        let check = vec!["cargo".to_owned(), "test".to_owned()];
        let rig_name = RigName::parse("api").expect("a name");
        assert_eq!(settings.isolation(&rig_name), Isolation::Worktree);
        assert_eq!(settings.check_command(&rig_name), Some(&check));
        let account = &settings.accounts["main"];
        assert_eq!((account.max_polecats, account.cooldown), (None, Some(Millis::minutes(5))));
    }

    #[test]
    fn others_than_this_machine_are_listened_to_only_under_tls() {
        let tls = "http.tls_cert = \"cert.pem\"\nhttp.tls_key = \"key.pem\"\n";
        for address in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[2001:db8::1]:1"] {
            let listen = format!("http.listen = \"{address}\"\n");
            let refused = parse_settings(&listen).expect_err("refused").to_string();
            assert!(refused.contains("http.tls_cert"), "{refused}");
            assert!(parse_settings(&format!("{listen}http.tls_cert = \"c\"\n")).is_err());
            assert!(parse_settings(&format!("{listen}{tls}")).is_ok());
        }
        for address in ["127.0.0.1:1", "127.0.0.2:1", "[::1]:1"] {
            assert!(parse_settings(&format!("http.listen = \"{address}\"\n")).is_ok());
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let said = |text: &str| parse_settings(text).expect_err("bad").to_string();
        let text = "[scheduler]\nmax_polecats = 5\nbatch_size = \"two\"\n";
        assert_eq!(
            said(text),
            "scheduler.batch_size = \"two\" (line 3) is not valid: expected a whole number, 0 or more"
        );
        assert_eq!(said("\n[scheduler]\nspeed = 1\n"), "there is no config key \"scheduler.speed\" (line 3)");
        assert!(said("a = = 1").starts_with("the config is not valid TOML, line 1"));
        assert!(said("scheduler = 5").contains("expected a table of keys"));
    }
}
