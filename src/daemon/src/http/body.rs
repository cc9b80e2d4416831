//! Bodies of requests: read only so far, and only for so long.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Bytes;
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// Longest body.
pub(super) const LONGEST: usize = 1024 * 1024;
/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The body of a request. One that says it is too long is not even begun with.
pub(super) async fn read(request: Request<Body>) -> Result<Bytes, ApiError> {
    let too_long = || {
        let message = format!("request body too large: at most {LONGEST} bytes");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "error", message)
    };
    let said =
        request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if said.is_some_and(|length| length > LONGEST as u64) {
        return Err(too_long());
    }
    let body = Limited::new(request.into_body(), LONGEST).collect();
    match tokio::time::timeout(PATIENCE, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_long()),
        Ok(Err(error)) => Err(ApiError::bad_request(format!("request body cannot be read: {error}"))),
        Err(_) => Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "error", "request body took too long")),
    }
}

/// The first JSON value of a body; what follows it is ignored.
pub(super) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let bad = |why: String| ApiError::bad_request(format!("bad JSON: {why}"));
    // A list would pass for an object with its fields in order.
    if body.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
        return Err(bad("expected an object".to_owned()));
    }
    let mut values = serde_json::Deserializer::from_slice(body).into_iter::<T>();
    match values.next() {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(bad(error.to_string())),
        None => Err(bad("the body is empty".to_owned())),
    }
}
