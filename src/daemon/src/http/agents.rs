//! Agents over HTTP: the same calls as on the command line, for agents that live elsewhere. An agent's session opens only
//! what is its own.

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, Request, State};
use axum::http::{Response, StatusCode};
use serde::Deserialize;
use yard_client::{Ask, Document};
use yard_engine::agent::Registration;
use yard_engine::command::{AgentStatus, ClaimEnd, WorkerSays};
use yard_engine::money::Usd;
use yard_engine::{AgentName, Command};

use super::auth::Caller;
use super::body;
use super::error::ApiError;
use super::routes::{Api, answer, who};
use super::server::Shared;

/// How long an inbox may be waited for in one request, in seconds.
const LONGEST_WAIT: u64 = 60;

type Name = Result<Path<String>, PathRejection>;
type NameAndBead = Result<Path<(String, String)>, PathRejection>;
type NameBeadAndVerb = Result<Path<(String, String, String)>, PathRejection>;
type Answer = Result<Response<Body>, ApiError>;

fn unknown(_: PathRejection) -> ApiError {
    ApiError::not_found("there is no such agent")
}

/// Whoever was let in, if this agent is his.
fn own(request: &Request, agent: &str) -> Result<Caller, ApiError> {
    let caller = who(request)?;
    match caller.agent() {
        Some(own) if own != agent => {
            Err(ApiError::forbidden("agent_forbidden", "this session is another agent's"))
        }
        Some(_) | None => Ok(caller),
    }
}

async fn ask(shared: &Shared, caller: &Caller, ask: Ask) -> Answer {
    shared
        .ask_agent(caller.actor(), ask)
        .await
        .map(|document: Document| answer(StatusCode::OK, document.get().to_owned()))
}

async fn command(shared: &Shared, caller: &Caller, command: Command) -> Answer {
    ask(shared, caller, Ask::Command { command }).await
}

/// `GET /agents`.
pub(super) async fn list(State(shared): Api, request: Request) -> Answer {
    let caller = super::routes::owner(&request)?;
    ask(&shared, &caller, Ask::AgentList).await
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewAgent {
    name: String,
    program: String,
    model: Option<String>,
    skills: Option<String>,
    auto_claim: Option<bool>,
}

/// `POST /agents`.
pub(super) async fn register(State(shared): Api, request: Request) -> Answer {
    let caller = who(&request)?;
    let new: NewAgent = body::json(&body::read(request).await?)?;
    if caller.agent().is_some_and(|own| own != new.name) {
        return Err(ApiError::forbidden("agent_forbidden", "this session is another agent's"));
    }
    let name = AgentName::parse(&new.name).map_err(|error| ApiError::bad_request(error.to_string()))?;
    let NewAgent { program, model, skills, auto_claim, .. } = new;
    let registration = Registration { name, program, model, skills, auto_claim, process: None };
    command(&shared, &caller, Command::AgentRegister(Box::new(registration))).await
}

#[derive(Debug, Deserialize)]
struct InboxQuery {
    wait: Option<String>,
    keep: Option<String>,
}

/// `GET /agents/{name}/inbox`.
pub(super) async fn inbox(State(shared): Api, name: Name, request: Request) -> Answer {
    let Path(agent) = name.map_err(unknown)?;
    let caller = own(&request, &agent)?;
    let query = Query::<InboxQuery>::try_from_uri(request.uri())
        .map_err(|error| ApiError::bad_request(format!("bad query: {error}")))?
        .0;
    let seconds = query.wait.as_deref().map(str::parse::<u64>).transpose();
    let seconds = seconds.ok().filter(|wait| wait.is_none_or(|wait| wait <= LONGEST_WAIT));
    let Some(wait) = seconds else {
        return Err(ApiError::bad_request(format!("wait must be 0 to {LONGEST_WAIT} seconds")));
    };
    let keep = match query.keep.as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(ApiError::bad_request("keep must be true or false")),
    };
    match wait.filter(|wait| *wait > 0) {
        Some(wait) => {
            ask(&shared, &caller, Ask::AgentWait { agent, keep, timeout_ms: Some(wait * 1000) }).await
        }
        None => command(&shared, &caller, Command::AgentInbox { agent, keep }).await,
    }
}

/// `GET /agents/{name}/why`.
pub(super) async fn why(State(shared): Api, name: Name, request: Request) -> Answer {
    let Path(agent) = name.map_err(unknown)?;
    let caller = own(&request, &agent)?;
    ask(&shared, &caller, Ask::AgentWhy { agent: Some(agent) }).await
}

/// `POST /agents/{name}/heartbeat`.
pub(super) async fn heartbeat(State(shared): Api, name: Name, request: Request) -> Answer {
    let Path(agent) = name.map_err(unknown)?;
    let caller = own(&request, &agent)?;
    command(&shared, &caller, Command::AgentHeartbeat { agent }).await
}

#[derive(Debug, Deserialize)]
struct NewStatus {
    status: AgentStatus,
    note: Option<String>,
}

/// `POST /agents/{name}/status`.
pub(super) async fn status(State(shared): Api, name: Name, request: Request) -> Answer {
    let Path(agent) = name.map_err(unknown)?;
    let caller = own(&request, &agent)?;
    let NewStatus { status, note } = body::json(&body::read(request).await?)?;
    command(&shared, &caller, Command::AgentStatus { agent, status, note }).await
}

/// `PUT /agents/{name}/claims/{bead}`.
pub(super) async fn claim(State(shared): Api, path: NameAndBead, request: Request) -> Answer {
    let Path((agent, bead)) = path.map_err(unknown)?;
    let caller = own(&request, &agent)?;
    command(&shared, &caller, Command::AgentClaim { agent, bead }).await
}

/// What may be said about a claim. The token is that of the claim: an older one is refused.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AboutClaim {
    token: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    unavailable: Option<bool>,
    note: Option<String>,
    text: Option<String>,
    usd: Option<serde_json::Number>,
    total: Option<bool>,
    tokens: Option<u64>,
}

/// `POST /agents/{name}/claims/{bead}/{verb}`.
pub(super) async fn about_claim(State(shared): Api, path: NameBeadAndVerb, request: Request) -> Answer {
    let Path((agent, bead, verb)) = path.map_err(unknown)?;
    let caller = own(&request, &agent)?;
    let bytes = body::read(request).await?;
    let about: AboutClaim =
        if bytes.trim_ascii().is_empty() { AboutClaim::default() } else { body::json(&bytes)? };
    let missing = |what: &str| ApiError::bad_request(format!("{verb} needs {what}"));
    let AboutClaim { token, reason, message, unavailable, note, text, usd, total, tokens } = about;
    let says = match verb.as_str() {
        "done" | "release" | "fail" => {
            let how = match verb.as_str() {
                "done" => ClaimEnd::Done { reason },
                "release" => ClaimEnd::Released { note },
                _ => {
                    let message = message.ok_or_else(|| missing("a message"))?;
                    ClaimEnd::Failed { message, unavailable: unavailable.unwrap_or(false) }
                }
            };
            return command(&shared, &caller, Command::AgentEnds { agent, bead, token, how }).await;
        }
        "checkpoint" => {
            WorkerSays::Checkpoint { note: note.ok_or_else(|| missing("a note"))?, session: None }
        }
        "progress" => WorkerSays::Progress { text: text.ok_or_else(|| missing("a text"))? },
        "cost" => {
            let usd = usd.ok_or_else(|| missing("usd"))?.to_string();
            let usd: Usd = usd.parse().map_err(|error| ApiError::bad_request(format!("usd: {error}")))?;
            WorkerSays::Cost { usd, total: total.unwrap_or(false), tokens }
        }
        _ => {
            let known = "done, fail, release, checkpoint, progress and cost are what there is";
            return Err(ApiError::not_found(known));
        }
    };
    let token = token.ok_or_else(|| missing("the token of the claim"))?;
    command(&shared, &caller, Command::AgentSays { agent, bead, token, says }).await
}
