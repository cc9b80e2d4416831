//! Submitting tasks, one or many. What makes no sense is said before anything is asked of the queue.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value, json};
use sha2::{Digest, Sha256};
use yard_client::Ask;
use yard_engine::command::{NewTask, TaskReceipt};
use yard_engine::task::IdempotencyKey;
use yard_engine::{Command, FormulaName, RigName, Timestamp};

use super::auth::Caller;
use super::error::ApiError;
use super::routes::{Api, answer, who};
use super::server::Shared;
use super::{address, body};

/// Tasks in one batch at most.
const LARGEST_BATCH: usize = 50;
/// Longest name of an agent, in characters.
const LONGEST_AGENT: usize = 200;
/// Longest action, tab, selector or address, in characters.
const LONGEST_TEXT: usize = 8 * 1024;
/// Longest key of a client.
const LONGEST_KEY: usize = 255;
/// Attempts at most.
const MOST_ATTEMPTS: i64 = 100;
/// Tasks that one may wait for at most.
const MOST_AFTER: usize = 100;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// A task as its client writes it. What is not known is ignored; null is nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TaskBody {
    agent_id: Option<String>,
    action: Option<String>,
    tab_id: Option<String>,
    selector: Option<String>,
    #[serde(rename = "ref")]
    reference: Option<String>,
    params: Option<Map<String, Value>>,
    #[serde(deserialize_with = "whole")]
    priority: Option<i64>,
    deadline: Option<String>,
    callback_url: Option<String>,
    formula: Option<String>,
    rig: Option<String>,
    after: Option<Vec<String>>,
    #[serde(deserialize_with = "whole")]
    max_attempts: Option<i64>,
}

/// A whole number, also if it is written as `3.0`.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else { return Ok(None) };
    // Beyond this, a number with a point is not told from its neighbours.
    let exact = |float: &f64| float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0;
    let whole = number.as_i64().or_else(|| number.as_f64().filter(exact).map(|float| float as i64));
    whole.map(Some).ok_or_else(|| serde::de::Error::custom(format!("{number} is not a whole number")))
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BatchBody {
    agent_id: Option<String>,
    callback_url: Option<String>,
    tasks: Option<Vec<Map<String, Value>>>,
}

/// The task in a body, if it makes sense.
pub(super) fn task_in(bytes: &[u8], webhook_allow: &[String]) -> Result<NewTask, ApiError> {
    body::json::<TaskBody>(bytes)?.checked(webhook_allow)
}

/// `POST /tasks`
pub(super) async fn one(State(shared): Api, request: Request) -> Result<Response<Body>, ApiError> {
    let caller = who(&request)?;
    let key = key_of(request.headers())?;
    let bytes = body::read(request).await?;
    let mut task = task_in(&bytes, &shared.settings().webhook_allow)?;
    belongs_to(&caller, &task.agent)?;
    task.key = key.map(|key| key_for(&task.agent, "task", &key, fingerprint(&[&bytes])));
    let agent = task.agent.clone();
    let receipt = submit(&shared, &caller, vec![task]).await?.pop();
    let receipt = receipt.ok_or_else(|| ApiError::unavailable("the task was not answered for"))?;
    if let Some(refusal) = &receipt.refusal {
        return Err(match receipt.full {
            None => ApiError::of(refusal),
            Some(full) => {
                let error =
                    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", refusal.message.clone());
                error.retryable().with(json!({
                    "agentId": agent,
                    "queued": full.queued,
                    "maxQueue": full.max_queue,
                    "maxPerAgent": full.max_per_agent,
                    "taskId": receipt.id,
                }))
            }
        });
    }
    let replayed = receipt.replayed;
    let mut said = json!({"taskId": receipt.id, "state": receipt.state, "createdAt": receipt.created_at});
    if let Some(position) = receipt.position {
        said["position"] = position.into();
    }
    Ok(with_replay(answer(StatusCode::ACCEPTED, said.to_string()), replayed))
}

/// `POST /tasks/batch`: each task by itself, in order.
pub(super) async fn batch(State(shared): Api, request: Request) -> Result<Response<Body>, ApiError> {
    let caller = who(&request)?;
    let key = key_of(request.headers())?;
    let bytes = body::read(request).await?;
    let batch: BatchBody = body::json(&bytes)?;
    let agent = batch.agent_id.filter(|agent| !agent.trim().is_empty());
    let agent = agent.ok_or_else(|| ApiError::bad_request("missing required field 'agentId'"))?;
    check_agent(&agent)?;
    belongs_to(&caller, &agent)?;
    let tasks = batch.tasks.unwrap_or_default();
    if tasks.is_empty() {
        return Err(ApiError::bad_request("batch must contain at least one task"));
    }
    if tasks.len() > LARGEST_BATCH {
        let message = format!("batch too large: at most {LARGEST_BATCH} tasks");
        let error = ApiError::new(StatusCode::BAD_REQUEST, "batch_too_large", message);
        return Err(error.with(json!({"submitted": tasks.len(), "max": LARGEST_BATCH})));
    }
    let mut said: Vec<Value> = Vec::with_capacity(tasks.len());
    let (mut fit, mut places) = (Vec::new(), Vec::new());
    for (nth, task) in tasks.into_iter().enumerate() {
        let task: TaskBody = serde_json::from_value(Value::Object(task))
            .map_err(|error| ApiError::bad_request(format!("bad JSON: task {nth}: {error}")))?;
        let task = TaskBody {
            agent_id: Some(agent.clone()),
            callback_url: task.callback_url.or_else(|| batch.callback_url.clone()),
            ..task
        };
        match task.checked(&shared.settings().webhook_allow) {
            Err(error) => said.push(json!({"state": "rejected", "error": error.document()["error"]})),
            Ok(mut task) => {
                let place = nth.to_be_bytes();
                task.key = key
                    .as_ref()
                    .map(|key| key_for(&agent, &format!("batch {nth}"), key, fingerprint(&[&bytes, &place])));
                places.push(nth);
                fit.push(task);
                said.push(Value::Null);
            }
        }
    }
    let receipts = if fit.is_empty() { Vec::new() } else { submit(&shared, &caller, fit).await? };
    let replayed = !receipts.is_empty() && receipts.iter().all(|receipt| receipt.replayed);
    for (nth, receipt) in places.into_iter().zip(receipts) {
        said[nth] = batch_item(&receipt);
    }
    let said = json!({"tasks": said, "submitted": said.len()});
    Ok(with_replay(answer(StatusCode::ACCEPTED, said.to_string()), replayed))
}

/// Says so if the same request was made before.
fn with_replay(mut response: Response<Body>, replayed: bool) -> Response<Body> {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

fn batch_item(receipt: &TaskReceipt) -> Value {
    let mut item = json!({"state": receipt.state});
    if let Some(id) = &receipt.id {
        item["taskId"] = id.as_str().into();
    }
    if let Some(position) = receipt.position {
        item["position"] = position.into();
    }
    if let Some(refusal) = &receipt.refusal {
        item["error"] = ApiError::of(refusal).document()["error"].clone();
    }
    item
}

async fn submit(shared: &Shared, caller: &Caller, tasks: Vec<NewTask>) -> Result<Vec<TaskReceipt>, ApiError> {
    let command = Command::TaskSubmit { tasks };
    let document = shared.ask(caller.actor(), Ask::Command { command }).await?;
    serde_json::from_str(document.get())
        .map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "error", error.to_string()))
}

/// An agent submits for itself only.
fn belongs_to(caller: &Caller, agent: &str) -> Result<(), ApiError> {
    match caller.agent() {
        Some(own) if own != agent => {
            Err(ApiError::forbidden("agent_forbidden", format!("this session belongs to agent {own:?}")))
        }
        Some(_) | None => Ok(()),
    }
}

fn key_of(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(ApiError::bad_request("send one Idempotency-Key, not several"));
    }
    let fits = |key: &&str| {
        (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match value.to_str().ok().filter(fits) {
        Some(key) => Ok(Some(key.to_owned())),
        None => Err(ApiError::bad_request(format!(
            "Idempotency-Key must be 1 to {LONGEST_KEY} visible ASCII characters"
        ))),
    }
}

/// An agent's own name for a task, or for one of a batch: the same name of another agent is another name.
fn key_for(agent: &str, what: &str, key: &str, fingerprint: String) -> IdempotencyKey {
    IdempotencyKey { key: format!("{agent}\n{what}\n{key}"), fingerprint }
}

fn fingerprint(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    URL_SAFE_NO_PAD.encode(hash.finalize())
}

fn check_agent(agent: &str) -> Result<(), ApiError> {
    if agent.chars().count() > LONGEST_AGENT || agent.chars().any(char::is_control) {
        let most = format!(
            "invalid task: agentId must be at most {LONGEST_AGENT} characters, none of them a control character"
        );
        return Err(ApiError::bad_request(most));
    }
    Ok(())
}

impl TaskBody {
    /// The task, if it makes sense.
    fn checked(self, webhook_allow: &[String]) -> Result<NewTask, ApiError> {
        let bad = |why: String| ApiError::bad_request(format!("invalid task: {why}"));
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let required = |text: Option<String>, name: &str| {
            let text = text.filter(|text| !text.trim().is_empty());
            text.ok_or_else(|| bad(format!("missing required field '{name}'")))
        };
        let agent = required(self.agent_id, "agentId")?;
        check_agent(&agent)?;
        let action = required(self.action, "action")?;
        let (tab, selector, reference) = (given(self.tab_id), given(self.selector), given(self.reference));
        let texts = [Some(&action), tab.as_ref(), selector.as_ref(), reference.as_ref()];
        if texts.into_iter().flatten().any(|text| text.chars().count() > LONGEST_TEXT || text.contains('\0'))
        {
            return Err(bad(format!("a text is longer than {LONGEST_TEXT} characters or holds a NUL")));
        }
        let callback = given(self.callback_url);
        if let Some(url) = &callback {
            let checked = address::check(url, webhook_allow);
            checked.map_err(|why| bad(format!("invalid callbackUrl: {why}")))?;
            if url.chars().count() > LONGEST_TEXT {
                return Err(bad("invalid callbackUrl: too long".to_owned()));
            }
        }
        let deadline = given(self.deadline).map(|text| Timestamp::parse_rfc3339(&text)).transpose();
        let deadline =
            deadline.map_err(|error| ApiError::bad_request(format!("invalid deadline format: {error}")))?;
        let params = self.params.map(Value::Object);
        if params.as_ref().is_some_and(yard_engine::is_too_deep) {
            return Err(bad(format!("params are nested more than {} levels deep", yard_engine::DEEPEST)));
        }
        let params = params.and_then(|params| match params {
            Value::Object(params) => Some(params),
            _ => None,
        });
        let formula = given(self.formula).map(|name| FormulaName::parse(&name));
        let formula = formula.transpose().map_err(|error| bad(error.to_string()))?;
        let rig = given(self.rig).map(|name| RigName::parse(&name));
        let rig = rig.transpose().map_err(|error| bad(error.to_string()))?;
        let attempts = self.max_attempts.unwrap_or(1);
        if !(1..=MOST_ATTEMPTS).contains(&attempts) {
            return Err(bad(format!("maxAttempts must be 1 to {MOST_ATTEMPTS}")));
        }
        let after = self.after.unwrap_or_default();
        if after.len() > MOST_AFTER {
            return Err(bad(format!("after names more than {MOST_AFTER} tasks")));
        }
        Ok(NewTask {
            agent,
            action,
            tab,
            selector,
            reference,
            params,
            priority: self.priority.unwrap_or(0),
            deadline,
            callback,
            max_attempts: u32::try_from(attempts).unwrap_or(1),
            formula,
            rig,
            after,
            key: None,
        })
    }
}
