//! Webhooks: telling a client that its task has come to an end. Each is signed as the Standard Webhooks specification
//! says, carries the same id however often it is sent, and goes only to addresses that were looked at.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use yard_engine::{BeadId, Timestamp, WebhookFailure};

use super::executor::chain;
use super::{address, auth};
use crate::town::TownDir;

/// How long a receiver may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Names whose addresses are remembered at the same time.
const MOST_PINNED: usize = 1000;
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

/// What webhooks are sent with: one client for all, which connects only to addresses that were looked at.
pub(super) struct Post {
    client: Result<reqwest::Client, String>,
    pinned: Pinned,
}

/// The addresses that names stood for when they were looked at last.
#[derive(Debug, Clone, Default)]
struct Pinned(Arc<Mutex<BTreeMap<String, Vec<SocketAddr>>>>);

impl Pinned {
    fn put(&self, host: &str, addresses: Vec<SocketAddr>) {
        let mut pinned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pinned.len() >= MOST_PINNED {
            pinned.clear();
        }
        pinned.insert(host.to_ascii_lowercase(), addresses);
    }
}

impl Resolve for Pinned {
    fn resolve(&self, name: Name) -> Resolving {
        let pinned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = pinned.get(&name.as_str().to_ascii_lowercase()).cloned();
        Box::pin(async move {
            match found {
                Some(addresses) => Ok(Box::new(addresses.into_iter()) as Addrs),
                None => Err(format!("{} was not looked at", name.as_str()).into()),
            }
        })
    }
}

impl Post {
    pub(super) fn open() -> Self {
        use_one_crypto_provider();
        let pinned = Pinned::default();
        let client = reqwest::Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .timeout(PATIENCE)
            .pool_max_idle_per_host(0)
            .dns_resolver(Arc::new(pinned.clone()))
            .build();
        Self { client: client.map_err(|error| chain(&error)), pinned }
    }

    /// Sends a webhook, once.
    pub(super) async fn send(
        &self,
        letter: Letter,
        town: &TownDir,
        allowed: &[String],
    ) -> Result<(), WebhookFailure> {
        let failure = |error: String, hopeless: bool| WebhookFailure { error, hopeless };
        let url = address::check(&letter.url, allowed).map_err(|error| failure(error, true))?;
        let addresses = address::resolve(&url, allowed).await;
        let addresses = addresses.map_err(|error| failure(error.words, error.private))?;
        self.pinned.put(url.host_str().unwrap_or_default(), addresses);
        let secret = webhook_secret(town).map_err(|error| failure(error.to_string(), false))?;
        let client = self.client.as_ref().map_err(|error| failure(error.clone(), false))?;
        let headers = letter.headers(&secret);
        let request = client.post(url).headers(headers).body(letter.body);
        let response = request.send().await.map_err(|error| failure(chain(&error.without_url()), false))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            // Gone: the receiver asks not to be told any more.
            status => Err(failure(format!("the receiver answered {status}"), status.as_u16() == 410)),
        }
    }
}

impl Letter {
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
