//! Values: from the words of a command line or the items of a TOML file to what they mean.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value as Json;
use toml_edit::{Array, InlineTable, Item, Value};
use yard_engine::slurm::is_slurm_word;
use yard_engine::{Millis, parse_size};
use yard_journal::Store;

use super::ConfigError;
use super::keys::{Absent, Kind, Place};
use super::store;

/// What a value means.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Meaning {
    /// As if the key were not there.
    Absent,
    Int(i64),
    Number(f64),
    Bool(bool),
    Span(Millis),
    Bytes(u64),
    Text(String),
    Texts(Vec<String>),
    Spans(Vec<Millis>),
    Table(BTreeMap<String, String>),
}

/// Reads the value of a key in a file.
pub(super) fn read(place: &Place, item: &Item) -> Result<Meaning, ConfigError> {
    let json = to_json(item);
    let bad = || bad_value(place, &json);
    if let (Absent::Word(word), Some(text)) = (place.spec.absent, json.as_str())
        && text == word
    {
        return Ok(Meaning::Absent);
    }
    meaning(place.spec.kind, &json).ok_or_else(bad)
}

/// Reads what a person typed, as the TOML value to be stored.
pub(super) fn typed(place: &Place, text: &str) -> Result<Value, ConfigError> {
    if matches!(place.spec.absent, Absent::Word(word) if word == text) {
        return Ok(Value::from(text));
    }
    let list = || text_list(text).unwrap_or_else(|| words(text));
    let value = match place.spec.kind {
        Kind::Int(_) => text.trim().parse::<i64>().ok().map(Value::from),
        Kind::Number => number(text),
        Kind::Bool => text.trim().parse::<bool>().ok().map(Value::from),
        Kind::Span
        | Kind::OneOf(_)
        | Kind::Name
        | Kind::SlurmWord
        | Kind::Listen
        | Kind::Url
        | Kind::Store => Some(Value::from(text.trim())),
        Kind::Size => match text.trim().parse::<i64>() {
            Ok(bytes) => Some(Value::from(bytes)),
            Err(_) => Some(Value::from(text.trim())),
        },
        Kind::Text => Some(Value::from(text)),
        Kind::Argv | Kind::Spans | Kind::Texts => Some(Value::Array(list())),
        Kind::Table => table(text).map(Value::InlineTable),
    };
    let bad = || bad_value(place, &Json::from(text));
    let value = value.ok_or_else(bad)?;
    meaning(place.spec.kind, &to_json(&Item::Value(value.clone()))).ok_or_else(bad)?;
    Ok(value)
}

/// A JSON document for a TOML item.
pub(super) fn to_json(item: &Item) -> Json {
    match item {
        Item::None => Json::Null,
        Item::Value(value) => value_to_json(value),
        Item::Table(table) => table.iter().map(|(key, item)| (key.to_owned(), to_json(item))).collect(),
        Item::ArrayOfTables(tables) => {
            let table = |t: &toml_edit::Table| to_json(&Item::Table(t.clone()));
            Json::Array(tables.iter().map(table).collect())
        }
    }
}

fn value_to_json(value: &Value) -> Json {
    match value {
        Value::String(text) => Json::from(text.value().as_str()),
        Value::Integer(number) => Json::from(*number.value()),
        Value::Float(number) => Json::from(*number.value()),
        Value::Boolean(is) => Json::from(*is.value()),
        Value::Datetime(time) => Json::from(time.value().to_string()),
        Value::Array(list) => Json::Array(list.iter().map(value_to_json).collect()),
        Value::InlineTable(table) => {
            table.iter().map(|(key, value)| (key.to_owned(), value_to_json(value))).collect()
        }
    }
}

fn meaning(kind: Kind, json: &Json) -> Option<Meaning> {
    let strings = || -> Option<Vec<String>> {
        json.as_array()?.iter().map(|item| Some(item.as_str()?.to_owned())).collect()
    };
    match kind {
        Kind::Int(min) => json.as_i64().filter(|n| *n >= min && *n <= i64::from(u32::MAX)).map(Meaning::Int),
        Kind::Number => json.as_f64().filter(|n| n.is_finite() && *n > 0.0).map(Meaning::Number),
        Kind::Bool => json.as_bool().map(Meaning::Bool),
        Kind::Span => span(json.as_str()?).map(Meaning::Span),
        Kind::Size => match json.as_i64() {
            Some(bytes) => u64::try_from(bytes).ok().map(Meaning::Bytes),
            None => parse_size(json.as_str()?).map(Meaning::Bytes),
        },
        Kind::Text => json.as_str().filter(|t| !t.is_empty()).map(|t| Meaning::Text(t.to_owned())),
        Kind::Name => {
            let text = json.as_str()?;
            yard_engine::FormulaName::parse(text).ok().map(|_| Meaning::Text(text.to_owned()))
        }
        Kind::SlurmWord => {
            json.as_str().filter(|text| is_slurm_word(text)).map(|text| Meaning::Text(text.to_owned()))
        }
        Kind::OneOf(words) => {
            let text = json.as_str()?;
            words.contains(&text).then(|| Meaning::Text(text.to_owned()))
        }
        Kind::Argv => {
            let argv = strings()?;
            let runs = argv.first().is_some_and(|program| !program.is_empty());
            (runs && argv.iter().all(|arg| !arg.contains('\0'))).then_some(Meaning::Texts(argv))
        }
        Kind::Spans => {
            let spans: Option<Vec<Millis>> = strings()?.iter().map(|text| span(text)).collect();
            spans.filter(|spans| !spans.is_empty()).map(Meaning::Spans)
        }
        Kind::Texts => strings().map(Meaning::Texts),
        Kind::Listen => {
            let text = json.as_str()?;
            text.parse::<std::net::SocketAddr>().ok().map(|_| Meaning::Text(text.to_owned()))
        }
        Kind::Url => json.as_str().and_then(server).map(Meaning::Text),
        Kind::Store => {
            let text = json.as_str()?;
            Store::parse(text, Path::new("")).ok().map(|_| Meaning::Text(text.to_owned()))
        }
        Kind::Table => {
            let pair = |(glob, url): (&String, &Json)| {
                globset::Glob::new(glob).ok()?;
                Some((glob.clone(), server(url.as_str()?)?))
            };
            json.as_object()?.iter().map(pair).collect::<Option<_>>().map(Meaning::Table)
        }
    }
}

/// The address of a web server. What it holds is shown and logged, so it may hold no password.
fn server(text: &str) -> Option<String> {
    let url = reqwest::Url::parse(text).ok()?;
    let fits = matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none();
    let fits = fits && url.username().is_empty() && url.password().is_none();
    fits.then(|| text.trim_end_matches('/').to_owned())
}

/// A span such as `90s` or `1h 30m`; at most a hundred years, so that sums with it stay in range.
fn span(text: &str) -> Option<Millis> {
    const LONGEST: u128 = 100 * 365 * 24 * 3600 * 1000;
    let millis = humantime::parse_duration(text.trim()).ok()?.as_millis();
    (millis <= LONGEST).then_some(Millis(millis as u64))
}

fn number(text: &str) -> Option<Value> {
    match text.trim().parse::<i64>() {
        Ok(whole) => Some(Value::from(whole)),
        Err(_) => text.trim().parse::<f64>().ok().map(Value::from),
    }
}

/// A list written as JSON or TOML; `None` if it is neither.
fn text_list(text: &str) -> Option<Array> {
    if let Ok(list) = serde_json::from_str::<Vec<String>>(text) {
        return Some(list.into_iter().collect());
    }
    if !text.trim_start().starts_with('[') {
        return None;
    }
    match text.trim().parse::<Value>() {
        Ok(Value::Array(list)) => Some(list),
        // A list gone wrong must not become a program called "[…": an empty one is refused further on.
        _ => Some(Array::new()),
    }
}

fn words(text: &str) -> Array {
    text.split_whitespace().collect()
}

fn table(text: &str) -> Option<InlineTable> {
    if let Ok(map) = serde_json::from_str::<std::collections::BTreeMap<String, String>>(text) {
        return Some(map.into_iter().map(|(key, value)| (key, Value::from(value))).collect());
    }
    match text.trim().parse::<Value>() {
        Ok(Value::InlineTable(table)) => Some(table),
        _ => None,
    }
}

/// A value as it may be shown.
pub(super) fn shown(place: &Place, item: &Item) -> Json {
    let json = to_json(item);
    if place.spec.kind == Kind::Store { store::shown(json) } else { json }
}

fn bad_value(place: &Place, found: &Json) -> ConfigError {
    let hidden = (place.spec.kind == Kind::Store).then(|| store::shown(found.clone()));
    let found = hidden.as_ref().unwrap_or(found);
    let expected = match place.spec.absent {
        Absent::Word(word) => format!("{}, or {word}", place.spec.kind.expected()),
        Absent::Is(_) => place.spec.kind.expected(),
    };
    let found: String = found.to_string().chars().take(120).collect();
    ConfigError::BadValue { key: place.key(), line: None, expected, found }
}

#[cfg(test)]
mod tests {
    use super::super::keys::find;
    use super::*;

    fn stored(key: &str, text: &str) -> Option<String> {
        typed(&find(key).expect("a key"), text).ok().map(|value| value.to_string())
    }

    #[test]
    fn words_of_a_command_line_become_toml() {
        let cases = [
            ("scheduler.max_polecats", "-1", Some("-1")),
            ("scheduler.max_polecats", "-2", None),
            ("scheduler.max_polecats", "five", None),
            ("scheduler.max_polecats", "99999999999", None),
            ("scheduler.batch_size", "-1", None),
            ("scheduler.max_dispatch_failures", "0", None),
            ("scheduler.spawn_delay", "3s", Some("\"3s\"")),
            ("scheduler.spawn_delay", "3", None),
            ("scheduler.aging", "off", Some("\"off\"")),
            ("scheduler.fairness", "rig", Some("\"rig\"")),
            ("scheduler.fairness", "alphabetical", None),
            ("host.max_load_per_core", "1.5", Some("1.5")),
            ("host.max_load_per_core", "2", Some("2")),
            ("host.max_load_per_core", "nan", None),
            ("host.min_free_memory", "2GiB", Some("\"2GiB\"")),
            ("host.min_free_memory", "2 parsecs", None),
            ("worker.agent", "claude -p", Some("[\"claude\", \"-p\"]")),
            (
                "worker.agent",
                "[\"claude\",\"-p\",\"two words\"]",
                Some("[\"claude\", \"-p\", \"two words\"]"),
            ),
            ("worker.agent", "[\"claude\"", None),
            ("worker.agent", "", None),
            ("worker.formula", "../evil", None),
            ("retry.crash.backoff", "[\"1s\", \"2s\"]", Some("[\"1s\", \"2s\"]")),
            ("retry.crash.backoff", "1s 2s", Some("[\"1s\", \"2s\"]")),
            ("retry.crash.backoff", "soon", None),
            ("retry.crash.max_attempts", "0", None),
            ("agents.tracks", "true", Some("true")),
            ("http.webhook_allow", "[]", Some("[]")),
            ("http.listen", "127.0.0.1:7777", Some("\"127.0.0.1:7777\"")),
            ("http.listen", "[::1]:0", Some("\"[::1]:0\"")),
            ("http.listen", "0.0.0.0:7777", Some("\"0.0.0.0:7777\"")),
            ("http.listen", "localhost", None),
            ("executor.http.base_url", "http://127.0.0.1:9867/", Some("\"http://127.0.0.1:9867/\"")),
            ("executor.http.base_url", "file:///etc/passwd", None),
            ("executor.http.base_url", "127.0.0.1:9867", None),
            (
                "executor.http.instances",
                "{\"tab-*\": \"http://127.0.0.1:1\"}",
                Some("{ \"tab-*\" = \"http://127.0.0.1:1\" }"),
            ),
            ("executor.http.instances", "{\"tab-[\": \"http://127.0.0.1:1\"}", None),
            ("executor.slurm.partition", "big", Some("\"big\"")),
            ("executor.slurm.partition", "none", Some("\"none\"")),
            ("executor.slurm.partition", "--wrap=reboot", None),
            ("executor.slurm.account", "a b", None),
            ("executor.slurm.gres", "gpu:a100:2", Some("\"gpu:a100:2\"")),
            ("executor.slurm.gres", "gpu:$(id)", None),
            ("executor.slurm.time_limit", "2h", Some("\"2h\"")),
            ("executor.slurm.time_limit", "2", None),
            ("executor.slurm.cpus", "0", None),
            ("executor.slurm.memory", "4GiB", Some("\"4GiB\"")),
            ("cost.daily", "12.50", Some("12.5")),
            ("cost.daily", "unlimited", Some("\"unlimited\"")),
        ];
        for (key, text, want) in cases {
            assert_eq!(stored(key, text).as_deref(), want, "{key} {text}");
        }
    }

    #[test]
    fn every_default_fits_its_own_key() {
        for spec in super::super::KEYS {
            if let Absent::Is(text) = spec.absent {
                let json: Json = serde_json::from_str(text).expect(spec.key);
                assert!(meaning(spec.kind, &json).is_some(), "{}", spec.key);
            }
        }
    }
}
