//! Webhooks: telling a client that its task has come to an end. Each is signed as the Standard Webhooks specification
//! says, carries the same id however often it is sent, and goes only to addresses that were looked at.

use std::sync::Once;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::redirect::Policy;
use yard_engine::{BeadId, Timestamp, WebhookFailure};

use super::executor::chain;
use super::{address, auth};
use crate::town::TownDir;

/// How long a receiver may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The file with the key that webhooks are signed with, in the town's folder.
const SECRET_FILE: &str = "webhook-secret";
/// What such keys begin with.
const SECRET_PREFIX: &str = "whsec_";

/// A webhook on its way.
#[derive(Debug)]
pub(crate) struct Letter {
    /// Of which task.
    pub(crate) task: BeadId,
    /// Where to.
    pub(crate) url: String,
    /// How the task stands, as JSON.
    pub(crate) body: String,
    /// When it is sent.
    pub(crate) at: Timestamp,
}

/// The TLS library wants to be told once whose arithmetic to use.
pub(super) fn use_one_crypto_provider() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Whoever was first has chosen the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

impl Letter {
    /// Sends it, once.
    pub(super) async fn send(self, town: &TownDir, allowed: &[String]) -> Result<(), WebhookFailure> {
        let failure = |error: String, hopeless: bool| WebhookFailure { error, hopeless };
        let url = address::check(&self.url, allowed).map_err(|error| failure(error, true))?;
        let addresses = address::resolve(&url, allowed).await.map_err(|error| {
            let hopeless = error.contains("private address");
            failure(error, hopeless)
        })?;
        let secret = webhook_secret(town).map_err(|error| failure(error.to_string(), false))?;
        use_one_crypto_provider();
        let host = url.host_str().unwrap_or_default();
        let client = reqwest::Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .timeout(PATIENCE)
            .resolve_to_addrs(host, &addresses)
            .build()
            .map_err(|error| failure(chain(&error), false))?;
        let request = client.post(url).headers(self.headers(&secret)).body(self.body);
        let response = request.send().await.map_err(|error| failure(chain(&error), false))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            // Gone: the receiver asks not to be told any more.
            status => Err(failure(format!("the receiver answered {status}"), status.as_u16() == 410)),
        }
    }

    fn headers(&self, secret: &str) -> axum::http::HeaderMap {
        // The specification's libraries take what follows the prefix for base64.
        let key = secret.strip_prefix(SECRET_PREFIX).and_then(|text| STANDARD.decode(text).ok());
        let key = key.unwrap_or_else(|| secret.as_bytes().to_vec());
        let id = format!("whd_{}", self.task);
        let seconds = (self.at.as_millis() / 1000).to_string();
        let signed: [&[u8]; 5] = [id.as_bytes(), b".", seconds.as_bytes(), b".", self.body.as_bytes()];
        let signature = format!("v1,{}", STANDARD.encode(auth::sign(&key, &signed)));
        let headers = [
            ("content-type", "application/json"),
            ("x-pinchtab-event", "task.completed"),
            ("x-pinchtab-task-id", self.task.as_str()),
            ("webhook-id", &id),
            ("webhook-timestamp", &seconds),
            ("webhook-signature", &signature),
        ];
        let header = |(name, value): (&'static str, &str)| {
            Some((axum::http::HeaderName::from_static(name), value.parse().ok()?))
        };
        headers.into_iter().filter_map(header).collect()
    }
}

/// The key that the webhooks of a town are signed with, made if there is none.
pub fn webhook_secret(town: &TownDir) -> Result<String, super::TokenError> {
    let write = |bytes: &[u8]| format!("{SECRET_PREFIX}{}", STANDARD.encode(bytes));
    auth::secret(&town.folder().join(SECRET_FILE), write)
}
