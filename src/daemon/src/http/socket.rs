//! `GET /socket`: a connection that becomes one like those of the town's own socket, for commands and consoles on other
//! hosts. Only the owner's token opens it, and it ends with that token.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::{HeaderValue, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::sync::watch;

use super::error::ApiError;
use super::routes::owner;
use super::server::Peer;
use crate::server::{Talk, serve};

/// Where a connection keeps what it is to become, until its last answer in HTTP has been sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Becoming(Arc<Mutex<Option<OnUpgrade>>>);

impl Becoming {
    fn set(&self, upgrade: OnUpgrade) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(upgrade);
    }

    /// What the connection has become; none if it stayed what it was.
    pub(super) async fn become_it(&self) -> Option<Upgraded> {
        let upgrade = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        upgrade.await.ok()
    }
}

/// Lets the owner in.
pub(super) async fn upgrade(mut request: Request) -> Result<Response<Body>, ApiError> {
    owner(&request)?;
    let asks = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(yard_client::UPGRADE.as_bytes());
    let becoming = request.extensions().get::<Peer>().map(|peer| peer.becoming.clone());
    let Some(becoming) = becoming.filter(|_| request.headers().get(UPGRADE).is_some_and(asks)) else {
        let message = format!("this address is for ym --server: Upgrade: {}", yard_client::UPGRADE);
        return Err(ApiError::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", message));
    };
    becoming.set(hyper::upgrade::on(&mut request));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(yard_client::UPGRADE));
    Ok(response)
}

/// Talks until the client goes, or the token is another one.
pub(super) async fn talk(upgraded: Upgraded, talk: &Talk, mut token: watch::Receiver<String>) {
    let (read, write) = tokio::io::split(TokioIo::new(upgraded));
    tokio::select! {
        // A connection that breaks concerns nobody but its client.
        _ = serve(read, write, talk) => {}
        _ = token.changed() => {}
    }
}
