//! What can be asked of the API, and how it is answered.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use axum::routing::{get, post, put};
use serde::Deserialize;
use serde_json::json;
use yard_client::views::task::TaskFilter;
use yard_client::{Ask, Document};
use yard_engine::Command;

use super::auth::{Caller, caller};
use super::error::ApiError;
use super::server::{Peer, Shared};
use super::{agents, events, metrics, socket, submit};

/// What clients read about this API.
const OPENAPI: &str = include_str!("../../../../assets/openapi.json");
/// Tasks on one page at most.
const LARGEST_PAGE: usize = 1000;
/// By which a request is found again in logs.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id of a request that is passed on.
const LONGEST_REQUEST_ID: usize = 128;

pub(super) type Api = State<Arc<Shared>>;

/// Every address there is.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let guarded = Router::new()
        .route("/tasks", post(submit::one).get(list))
        .route("/tasks/batch", post(submit::batch))
        .route("/tasks/{id}", get(show))
        .route("/tasks/{id}/cancel", post(cancel))
        .route("/agents", post(agents::register).get(agents::list))
        .route("/agents/{name}/inbox", get(agents::inbox))
        .route("/agents/{name}/why", get(agents::why))
        .route("/agents/{name}/heartbeat", post(agents::heartbeat))
        .route("/agents/{name}/status", post(agents::status))
        .route("/agents/{name}/claims/{bead}", put(agents::claim))
        .route("/agents/{name}/claims/{bead}/{verb}", post(agents::about_claim))
        .route("/scheduler/stats", get(stats))
        .route("/events", get(events::stream))
        .route("/metrics", get(metrics::text))
        .route("/socket", get(socket::upgrade))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), guard));
    Router::new()
        .route("/healthz", get(health))
        .route("/openapi.json", get(openapi))
        .merge(guarded)
        .fallback(async || ApiError::not_found("there is nothing here; GET /openapi.json says what there is"))
        .method_not_allowed_fallback(async || {
            ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "this address takes another method",
            )
        })
        .layer(middleware::from_fn(name_request))
        .with_state(shared)
}

/// Gives every request an id, its own if it has one.
async fn name_request(request: Request, next: Next) -> Response<Body> {
    let own = request.headers().get(REQUEST_ID).filter(|id| id.len() <= LONGEST_REQUEST_ID).cloned();
    let id = own.or_else(|| {
        let mut bytes = [0_u8; 8];
        getrandom::fill(&mut bytes).ok()?;
        HeaderValue::from_str(&format!("{:016x}", u64::from_be_bytes(bytes))).ok()
    });
    let mut response = next.run(request).await;
    if let Some(id) = id {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// Lets in who may come in, and not too often.
async fn guard(State(shared): Api, mut request: Request, next: Next) -> Response<Body> {
    let most = shared.settings().rate_limit;
    let peer = request.extensions().get::<Peer>().map(|peer| peer.address);
    if let Some(peer) = peer.filter(|_| most > 0)
        && !shared.rates.allow(peer, most)
    {
        let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "too many requests");
        return error.retryable().with(json!({"windowSec": 10, "max": most})).into_response();
    }
    match caller(&shared.token(), request.headers()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// Whoever was let in.
pub(super) fn who(request: &Request) -> Result<Caller, ApiError> {
    request.extensions().get::<Caller>().cloned().ok_or_else(ApiError::missing_token)
}

/// Whoever was let in, if he may see everything.
pub(super) fn owner(request: &Request) -> Result<Caller, ApiError> {
    match who(request)? {
        Caller::Owner => Ok(Caller::Owner),
        Caller::Agent(_) => {
            Err(ApiError::forbidden("session_scope_forbidden", "an agent's session opens only its own tasks"))
        }
    }
}

/// A document as an answer.
pub(super) fn answer(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn found(document: &Document) -> Response<Body> {
    answer(StatusCode::OK, document.get().to_owned())
}

async fn openapi() -> Response<Body> {
    answer(StatusCode::OK, OPENAPI.to_owned())
}

/// Alive, and able to take in what must not be lost.
async fn health(State(shared): Api) -> Result<Response<Body>, ApiError> {
    shared.ask("http".to_owned(), Ask::Health).await.map(|document| found(&document))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListQuery {
    agent_id: Option<String>,
    state: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// Which tasks an address asks for, and how many at most.
pub(super) fn list_query(address: &Uri) -> Result<(ListQuery, usize), ApiError> {
    let query = Query::<ListQuery>::try_from_uri(address)
        .map_err(|error| ApiError::bad_request(format!("bad query: {error}")))?
        .0;
    let limit = match query.limit.as_deref() {
        None => LARGEST_PAGE,
        Some(text) => {
            let limit = text.parse::<usize>().ok().filter(|limit| (1..=LARGEST_PAGE).contains(limit));
            limit.ok_or_else(|| ApiError::bad_request(format!("limit must be 1 to {LARGEST_PAGE}")))?
        }
    };
    Ok((query, limit))
}

async fn list(State(shared): Api, request: Request) -> Result<Response<Body>, ApiError> {
    let caller = who(&request)?;
    let (query, limit) = list_query(request.uri())?;
    let asked = query.agent_id.filter(|agent| !agent.is_empty());
    let agent = match (caller.agent(), asked) {
        (Some(own), Some(asked)) if own != asked => {
            return Err(ApiError::forbidden("agent_forbidden", "these tasks belong to another agent"));
        }
        (Some(own), _) => Some(own.to_owned()),
        (None, asked) => asked,
    };
    let words = |list: String| -> Vec<String> {
        list.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
    };
    let states = query.state.map(words).filter(|states| !states.is_empty());
    let filter = TaskFilter { agent, states, after: query.cursor, limit: Some(limit) };
    shared.ask(caller.actor(), Ask::Tasks { filter }).await.map(|document| found(&document))
}

/// The id in the address of a task; what is no id names no task.
type TaskId = Result<Path<String>, PathRejection>;

fn id_of(id: TaskId) -> Result<String, ApiError> {
    id.map(|Path(id)| id).map_err(|_| ApiError::not_found("task not found"))
}

async fn show(State(shared): Api, id: TaskId, request: Request) -> Result<Response<Body>, ApiError> {
    let (caller, id) = (who(&request)?, id_of(id)?);
    let ask = Ask::Task { id, agent: caller.agent().map(str::to_owned) };
    shared.ask(caller.actor(), ask).await.map(|document| found(&document))
}

async fn cancel(State(shared): Api, id: TaskId, request: Request) -> Result<Response<Body>, ApiError> {
    let (caller, id) = (who(&request)?, id_of(id)?);
    let command = Command::TaskCancel { id: id.clone(), agent: caller.agent().map(str::to_owned) };
    shared.ask(caller.actor(), Ask::Command { command }).await?;
    Ok(answer(StatusCode::OK, json!({"status": "cancelled", "taskId": id}).to_string()))
}

async fn stats(State(shared): Api, request: Request) -> Result<Response<Body>, ApiError> {
    let caller = who(&request)?;
    let agent = caller.agent().map(str::to_owned);
    shared.ask(caller.actor(), Ask::TaskStats { agent }).await.map(|document| found(&document))
}
