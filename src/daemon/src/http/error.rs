//! Errors as clients of this API know them: a sentence, a code, whether trying again may help, and details.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use serde_json::{Value, json};
use yard_engine::Refusal;

/// Longest sentence, in bytes.
const LONGEST: usize = 1024;

/// An error that a client is told.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    retryable: bool,
    details: Option<Value>,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retryable: false, details: None }
    }

    /// What was asked makes no sense.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "error", message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(super) fn missing_token() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "missing_token",
            "missing token: send Authorization: Bearer TOKEN",
        )
    }

    pub(super) fn bad_token(code: &'static str, message: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, code, message)
    }

    pub(super) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message).retryable()
    }

    pub(super) fn retryable(self) -> Self {
        Self { retryable: true, ..self }
    }

    pub(super) fn with(self, details: Value) -> Self {
        Self { details: Some(details), ..self }
    }

    /// What a refusal of the engine means here.
    pub(super) fn of(refusal: &Refusal) -> Self {
        let message = match &refusal.hint {
            Some(hint) => format!("{}; {hint}", refusal.message),
            None => refusal.message.clone(),
        };
        match refusal.code.as_str() {
            "not_found" => Self::not_found(message),
            "conflict" => Self::new(StatusCode::CONFLICT, "conflict", message),
            "agent_forbidden" => Self::forbidden("agent_forbidden", message),
            "idempotency_conflict" => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_conflict", message)
            }
            "read-only" | "journal" | "no-rig" => Self::unavailable(message),
            "past-deadline" | "queue_full" => Self::bad_request(message),
            "internal" => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "error", message),
            _ => Self::bad_request(format!("invalid task: {message}")),
        }
    }

    /// What a refusal means to an agent: mostly that somebody or something is in its way.
    pub(super) fn of_agent(refusal: &Refusal) -> Self {
        let message = refusal.message.clone();
        match refusal.code.as_str() {
            "unknown-agent" | "unknown-bead" | "unknown-dispatch" | "ambiguous" => Self::not_found(message),
            "read-only" | "journal" | "draining" => Self::unavailable(message),
            "bad-id" | "too-long" | "bad-text" | "no-program" => Self::bad_request(message),
            "internal" => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "error", message),
            reason => Self::new(StatusCode::CONFLICT, "conflict", message).with(json!({"reason": reason})),
        }
    }

    #[cfg(test)]
    pub(super) fn code(&self) -> &'static str {
        self.code
    }

    /// What stands in the answer.
    pub(super) fn document(&self) -> Value {
        let mut document = json!({"error": sentence(&self.message), "code": self.code});
        if self.retryable {
            document["retryable"] = true.into();
        }
        if let Some(details) = &self.details {
            document["details"] = details.clone();
        }
        document
    }
}

/// One line without control characters, and not too long.
pub(super) fn sentence(text: &str) -> String {
    let mut clean = String::new();
    for letter in text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }) {
        if clean.len() + letter.len_utf8() > LONGEST {
            break;
        }
        clean.push(letter);
    }
    clean
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.document().to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::UNAUTHORIZED {
            let asks = format!("Bearer realm=\"yardmaster\", error=\"{}\"", self.code);
            if let Ok(value) = HeaderValue::from_str(&asks) {
                headers.insert(WWW_AUTHENTICATE, value);
            }
        }
        if matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_one_line_of_bounded_length() {
        assert_eq!(sentence("a\nb\u{1b}[31m"), "a b [31m");
        assert_eq!(sentence(&"ü".repeat(2000)).len(), 1024);
    }
}
