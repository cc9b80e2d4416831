//! Doors for the fuzz targets of `tests/`: what hostile clients and files can reach, without a daemon. Nobody else should
//! use them.

use axum::http::{HeaderMap, HeaderValue, Uri};
use yard_engine::command::NewTask;

use crate::{config, http};

/// The task in the body of a `POST /tasks`, if it makes sense.
pub fn task_body(body: &[u8]) -> Option<NewTask> {
    http::task_in(body)
}

/// Whether a path with its query is a list of tasks that can be asked for.
pub fn task_list(address: &str) -> bool {
    address.parse::<Uri>().is_ok_and(|address| http::is_list(&address))
}

/// Whom an `Authorization` header makes of its sender, for a town with this token.
pub fn authorized(token: &str, header: &[u8]) -> Option<String> {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_bytes(header).ok()?);
    http::actor_of(token, &headers)
}

/// What `ym config set` makes of a file; none if it refuses.
pub fn config_set(file: &str, key: &str, typed: &str) -> Option<String> {
    config::set_in_text(file, key, typed).ok()
}
