//! Listening and serving connections, with an end to everybody's patience.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tower_service::Service;
use yard_client::{Ask, Document, Reply, Request as LoopRequest};
use yard_engine::Refusal;
use yard_engine::settings::HttpSettings;

use super::connections::{Connection, Connections, Rates};
use super::error::ApiError;
use super::routes;
use super::socket::{self, Becoming};
use crate::input::{Input, Inputs, ReplyTo};
use crate::server::Talk;

/// How long a client may take to say what it wants.
const HEADERS: Duration = Duration::from_secs(10);
/// How long a client may read nothing of its answer.
const WRITING: Duration = Duration::from_mins(1);
/// Longest head of a request.
const LONGEST_HEAD: usize = 64 * 1024;
/// Streams of events at the same time: each has a thread that reads the journal.
const STREAMS: usize = 32;

/// An address that is listened on, until this is dropped.
pub(super) struct Listening {
    address: SocketAddr,
    accepting: AbortHandle,
    shared: Arc<Shared>,
}

/// What all connections share.
pub(super) struct Shared {
    token: watch::Sender<String>,
    /// How connections are encrypted; none = not at all.
    tls: Mutex<Option<TlsAcceptor>>,
    inputs: Inputs,
    talk: Arc<Talk>,
    settings: Arc<RwLock<HttpSettings>>,
    connections: Connections,
    pub(super) rates: Rates,
    pub(super) streams: Arc<Semaphore>,
}

/// From where a request came.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) address: IpAddr,
    pub(super) connection: Arc<Connection>,
    pub(super) becoming: Becoming,
}

/// What is listened with.
pub(super) struct Keys {
    pub(super) token: String,
    pub(super) tls: Option<TlsAcceptor>,
}

impl Listening {
    pub(super) fn start(
        runtime: &Runtime,
        address: &str,
        keys: Keys,
        inputs: Inputs,
        talk: Arc<Talk>,
        settings: Arc<RwLock<HttpSettings>>,
    ) -> io::Result<Self> {
        let Keys { token, tls } = keys;
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            token: watch::Sender::new(token),
            tls: Mutex::new(tls),
            inputs,
            talk,
            settings,
            connections: Connections::new(),
            rates: Rates::default(),
            streams: Arc::new(Semaphore::new(STREAMS)),
        });
        let _inside = runtime.enter();
        let listener = TcpListener::from_std(listener)?;
        let accepting = runtime.spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self { address, accepting, shared })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens to these, and no longer to the token before. Whoever is connected stays under his encryption.
    pub(super) fn set_keys(&self, keys: Keys) {
        self.shared.token.send_if_modified(|token| {
            let is_other = *token != keys.token;
            *token = keys.token;
            is_other
        });
        *self.shared.tls.lock().unwrap_or_else(PoisonError::into_inner) = keys.tls;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.accepting.abort();
        self.shared.connections.end_all();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let router = routes::router(Arc::clone(&shared));
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => welcome(stream, peer.ip(), &shared, &router),
            // Out of descriptors: those who are connected are served on, and some will go.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

fn welcome(stream: TcpStream, peer: IpAddr, shared: &Arc<Shared>, router: &Router) {
    // Everybody is being served: who comes now may try again.
    let Some((id, connection)) = shared.connections.enter() else { return };
    let _ = stream.set_nodelay(true);
    let _ = yard_client::notice_when_gone(&stream);
    let ours = Arc::clone(shared);
    let router = router.clone();
    let peer = Peer { address: peer, connection, becoming: Becoming::default() };
    let tls = shared.tls.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let serving = tokio::spawn(async move {
        match tls {
            None => serve(stream, peer, router, &ours).await,
            Some(tls) => {
                // Whoever speaks no TLS, or no more, has nothing to be told.
                if let Ok(Ok(stream)) = tokio::time::timeout(HEADERS, tls.accept(stream)).await {
                    serve(stream, peer, router, &ours).await;
                }
            }
        }
        ours.connections.leave(id);
    });
    shared.connections.can_be_ended(id, serving.abort_handle());
}

async fn serve<S>(stream: S, peer: Peer, router: Router, shared: &Shared)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    // From here on: a change of the token after it was shown must not be missed.
    let token = shared.token.subscribe();
    let (becoming, connection) = (peer.becoming.clone(), Arc::clone(&peer.connection));
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer.clone());
        let mut router = router.clone();
        let busy = peer.connection.busy();
        async move {
            let response: Result<Response<Body>, Infallible> = router.call(request).await;
            drop(busy);
            response
        }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(LONGEST_HEAD);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITING));
    // A connection that breaks concerns nobody but its client.
    let served = server.serve_connection(TokioIo::new(Box::pin(stream)), service).with_upgrades().await;
    if served.is_ok()
        && let Some(upgraded) = becoming.become_it().await
    {
        let _busy = connection.busy();
        socket::talk(upgraded, &shared.talk, token).await;
    }
}

impl Shared {
    /// The token that opens everything.
    pub(super) fn token(&self) -> String {
        self.token.borrow().clone()
    }

    /// The settings in force.
    pub(super) fn settings(&self) -> HttpSettings {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the loop; it answers once what it says is on disk.
    pub(super) async fn ask(&self, actor: String, ask: Ask) -> Result<Document, ApiError> {
        self.ask_for(actor, ask).await?.map_err(|refusal| ApiError::of(&refusal))
    }

    /// The same about agents, whose refusals mean other things.
    pub(super) async fn ask_agent(&self, actor: String, ask: Ask) -> Result<Document, ApiError> {
        self.ask_for(actor, ask).await?.map_err(|refusal| ApiError::of_agent(&refusal))
    }

    async fn ask_for(&self, actor: String, ask: Ask) -> Result<Result<Document, Refusal>, ApiError> {
        let (reply_to, mut replies) = ReplyTo::new();
        self.send(actor, ask, reply_to)?;
        match replies.recv().await {
            Some(Reply::Ok { document, .. }) => Ok(Ok(document)),
            Some(Reply::Error(refusal)) => Ok(Err(refusal)),
            Some(Reply::Item(_)) | None => Err(stopping()),
        }
    }

    /// Asks the loop for something that comes bit by bit.
    pub(super) fn send(&self, actor: String, ask: Ask, reply_to: ReplyTo) -> Result<(), ApiError> {
        let request = Box::new(LoopRequest { actor, ask });
        if self.inputs.send(Input::Ask { request, reply_to }) { Ok(()) } else { Err(stopping()) }
    }
}

fn stopping() -> ApiError {
    ApiError::unavailable("the daemon is stopping")
}
