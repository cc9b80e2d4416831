//! Forwarding a task to the server that has its tab, as one request, once.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, HeaderValue};
use globset::Glob;
use reqwest::Url;
use reqwest::redirect::Policy;
use serde_json::{Map, Value};
use yard_engine::settings::HttpExecutorSettings;
use yard_engine::task::Task;
use yard_engine::{DispatchId, Timestamp, is_too_deep};

use super::error::sentence;

/// Longest answer that is kept.
const LONGEST_ANSWER: usize = 1024 * 1024;

/// What came of an action: the answer, or what went wrong.
pub(crate) type ActionOutcome = Result<Value, String>;

/// A task on its way.
#[derive(Debug)]
pub(crate) struct Action {
    /// Where to, or why nowhere.
    url: Result<Url, String>,
    headers: HeaderMap,
    body: Value,
}

/// The client that all actions share. A deadline ends them, and nothing else.
pub(super) fn client() -> Result<reqwest::Client, String> {
    super::webhook::use_one_crypto_provider();
    // Each on a connection of its own: one kept open may be closed by its server just when an action is sent on it, and
    // then nobody knows whether it arrived.
    let builder = reqwest::Client::builder().redirect(Policy::none()).no_proxy().pool_max_idle_per_host(0);
    builder.build().map_err(|error| error.to_string())
}

impl Action {
    /// The request of a task's attempt.
    pub(crate) fn of(task: &Task, dispatch: &DispatchId, settings: &HttpExecutorSettings) -> Self {
        let tab = task.tab.as_deref().unwrap_or_default();
        let mut headers = HeaderMap::new();
        let mut put = |name: &'static str, value: &str| {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                headers.insert(name, value);
            }
        };
        put("content-type", "application/json");
        put("x-pinchtab-source", "scheduler");
        put("x-pinchtab-tab-id", tab);
        put("x-agent-id", &task.agent);
        put("idempotency-key", &dispatch.to_string());
        if let Some(deadline) = task.deadline {
            put("x-deadline", &Timestamp::to_string(&deadline));
        }
        Self { url: address(tab, settings), headers, body: envelope(task) }
    }

    /// Sends it and waits for the answer, however long that takes.
    pub(super) async fn send(self, client: &reqwest::Client) -> ActionOutcome {
        let failed = |error: reqwest::Error| format!("executor request failed: {}", chain(&error));
        let request = client.post(self.url?).headers(self.headers).body(self.body.to_string());
        let mut response = request.send().await.map_err(failed)?;
        let status = response.status();
        let mut answer = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            if answer.len() + piece.len() > LONGEST_ANSWER {
                return Err(format!("executor answered with more than {LONGEST_ANSWER} bytes"));
            }
            answer.extend_from_slice(&piece);
        }
        let text = String::from_utf8_lossy(&answer);
        if status.as_u16() >= 400 {
            return Err(format!("executor returned {}: {}", status.as_u16(), sentence(text.trim())));
        }
        let value = serde_json::from_slice(&answer).ok().filter(|value| !is_too_deep(value));
        Ok(value.unwrap_or_else(|| Value::String(text.into_owned())))
    }
}

/// What went wrong, down to its cause.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        cause = error.source();
    }
    words
}

/// What stands in the request: the parameters of a task never overwrite what it is about.
fn envelope(task: &Task) -> Value {
    let own = ["kind", "ref", "selector", "tabId"];
    let params = task.params.iter().flatten().filter(|(name, _)| !own.contains(&name.as_str()));
    let mut body: Map<String, Value> = params.map(|(name, value)| (name.clone(), value.clone())).collect();
    body.insert("kind".to_owned(), task.action.clone().into());
    for (name, value) in [("ref", &task.reference), ("selector", &task.selector)] {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            body.insert(name.to_owned(), value.clone().into());
        }
    }
    Value::Object(body)
}

/// The server that has this tab.
fn address(tab: &str, settings: &HttpExecutorSettings) -> Result<Url, String> {
    if tab.is_empty() {
        return Err("tabId is required for task execution".to_owned());
    }
    let unresolved = |why: &str| format!("could not resolve tab {tab:?}: {why}");
    if matches!(tab, "." | "..") {
        return Err(unresolved("this is no tab id"));
    }
    let server = instance(tab, &settings.instances).or(settings.base_url.as_deref());
    let server = server.ok_or_else(|| unresolved("neither executor.http.base_url nor an instance is set"))?;
    let mut url = Url::parse(server).map_err(|error| unresolved(&error.to_string()))?;
    match url.path_segments_mut() {
        Ok(mut segments) => segments.pop_if_empty().extend(["tabs", tab, "action"]),
        Err(()) => return Err(unresolved("executor.http.base_url has no path")),
    };
    Ok(url)
}

/// The server of the longest glob that fits.
fn instance<'a>(tab: &str, instances: &'a BTreeMap<String, String>) -> Option<&'a str> {
    let fits = |glob: &str| Glob::new(glob).is_ok_and(|glob| glob.compile_matcher().is_match(tab));
    let fitting = instances.iter().filter(|(glob, _)| fits(glob));
    fitting.max_by_key(|(glob, _)| glob.len()).map(|(_, server)| server.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(fields: &Value) -> Task {
        let mut whole =
            json!({"id": "tsk_1", "agent": "a", "action": "click", "created_at": "2026-11-16T00:00:00Z"});
        for (name, value) in fields.as_object().expect("fields") {
            whole[name] = value.clone();
        }
        serde_json::from_value(whole).expect("a task")
    }

    #[test]
    fn parameters_never_overwrite_what_a_task_is_about() {
        let params =
            json!({"kind": "evil", "ref": "evil", "selector": "evil", "tabId": "evil", "text": "hi"});
        let body = envelope(&task(&json!({"params": params, "reference": "e14", "selector": ""})));
        assert_eq!(body, json!({"kind": "click", "ref": "e14", "text": "hi"}));
    }

    #[test]
    fn a_tab_leads_to_its_server() {
        let instances = [("tab-*", "http://127.0.0.1:1/base/"), ("tab-9*", "http://127.0.0.1:9")];
        let instances = instances.map(|(glob, url)| (glob.to_owned(), url.to_owned())).into();
        let settings = HttpExecutorSettings { base_url: Some("http://127.0.0.1:2".to_owned()), instances };
        let of = |tab: &str| address(tab, &settings).map(|url| url.to_string());
        assert_eq!(of("tab-1").as_deref(), Ok("http://127.0.0.1:1/base/tabs/tab-1/action"));
        assert_eq!(of("tab-91").as_deref(), Ok("http://127.0.0.1:9/tabs/tab-91/action"));
        assert_eq!(of("other").as_deref(), Ok("http://127.0.0.1:2/tabs/other/action"));
        assert_eq!(of("a/../b?c#d").as_deref(), Ok("http://127.0.0.1:2/tabs/a%2F..%2Fb%3Fc%23d/action"));
        assert!(of("..").is_err_and(|error| error.starts_with("could not resolve tab \"..\"")));
        assert_eq!(of(""), Err("tabId is required for task execution".to_owned()));
        let nowhere = address("x", &HttpExecutorSettings::default()).expect_err("not configured");
        assert!(nowhere.starts_with("could not resolve tab \"x\":"), "{nowhere}");
    }
}
