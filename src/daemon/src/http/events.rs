//! `GET /events`: the log as it grows, as server-sent events. Their ids are positions in the log, so that a client that
//! was cut off goes on where it was.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::Response;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream;
use serde::Deserialize;
use serde_json::value::RawValue;
use yard_client::{Ask, EventsAsk, Reply};
use yard_engine::Seq;

use super::error::ApiError;
use super::routes::{Api, owner};
use super::server::Peer;
use crate::input::ReplyTo;

/// How often a client hears that the connection is alive.
const ALIVE: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize)]
struct EventsQuery {
    since: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// What is needed of an event to send it.
#[derive(Deserialize)]
struct Head {
    seq: Seq,
    #[serde(rename = "type")]
    kind: String,
}

pub(super) async fn stream(State(shared): Api, request: Request) -> Result<Response<Body>, ApiError> {
    let caller = owner(&request)?;
    let query = Query::<EventsQuery>::try_from_uri(request.uri())
        .map_err(|error| ApiError::bad_request(format!("bad query: {error}")))?
        .0;
    let last = request.headers().get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let since = match last.or(query.since).filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => {
            let position = text.parse::<u64>().map_err(|_| {
                ApiError::bad_request("since, or Last-Event-ID, must be the position of an event")
            })?;
            Some(Seq(position.min(i64::MAX as u64)))
        }
    };
    let place = std::sync::Arc::clone(&shared.streams).try_acquire_owned();
    let place = place.map_err(|_| ApiError::unavailable("too many streams of events are open"))?;
    let (reply_to, replies) = ReplyTo::for_few();
    // Without a position: only what happens from now on.
    let tail = since.is_none().then_some(0);
    let kind = query.kind.filter(|kind| !kind.is_empty());
    let ask = Ask::Events { query: EventsAsk { since, kind, tail, follow: true, since_time: None } };
    shared.send(caller.actor(), ask, reply_to)?;
    // The connection is not idle as long as it streams.
    let busy = request.extensions().get::<Peer>().map(|peer| peer.connection.busy());
    let items = stream::unfold((replies, place, busy), |(mut replies, place, busy)| async move {
        match replies.recv().await? {
            Reply::Item(item) => Some((Ok::<Event, Infallible>(event(&item)), (replies, place, busy))),
            Reply::Ok { .. } | Reply::Error(_) => None,
        }
    });
    Ok(Sse::new(items).keep_alive(KeepAlive::new().interval(ALIVE)).into_response())
}

fn event(item: &RawValue) -> Event {
    let event = Event::default().data(item.get());
    match serde_json::from_str::<Head>(item.get()) {
        Ok(head) => event.id(head.seq.to_string()).event(head.kind),
        Err(_) => event,
    }
}
