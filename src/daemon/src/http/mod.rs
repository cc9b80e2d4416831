//! The edge to the web: the HTTP API, the actions that tasks are forwarded as, and the webhooks that tell of their ends.
//!
//! Promises: it never touches the state. What clients ask goes through the loop like everything else, and is answered
//! once it is on disk; an action is sent once, after that was recorded; whatever is sent tells the loop how it went.

mod address;
mod agents;
mod auth;
mod body;
mod connections;
mod error;
mod events;
mod executor;
mod metrics;
mod routes;
mod server;
mod socket;
mod submit;
mod tls;
mod webhook;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;
use yard_client::ServerRole;
use yard_engine::command::NewTask;
use yard_engine::settings::HttpSettings;
use yard_engine::{BeadId, DispatchId};

pub use self::auth::{TokenError, session_token, token};
pub(crate) use self::executor::{Action, ActionOutcome};
use self::server::{Keys, Listening};
use self::tls::TlsFiles;
pub(crate) use self::webhook::Letter;
use self::webhook::Post;
pub use self::webhook::webhook_secret;
use crate::config::needs_tls;
use crate::input::{Input, Inputs};
use crate::server::Talk;
use crate::stamp::FileStamp;
use crate::town::TownDir;

/// The task in a body, for the fuzz target.
pub(crate) fn task_in(body: &[u8]) -> Option<NewTask> {
    submit::task_in(body, &[]).ok()
}

/// Whether an address asks for a list of tasks, for the fuzz target.
pub(crate) fn is_list(address: &axum::http::Uri) -> bool {
    routes::list_query(address).is_ok()
}

/// Who asks with these headers, for the fuzz target.
pub(crate) fn actor_of(token: &str, headers: &axum::http::HeaderMap) -> Option<String> {
    auth::caller(token, headers).ok().map(|caller| caller.actor())
}

/// Webhooks under way at the same time; the others wait for their turn.
const WEBHOOKS_AT_ONCE: usize = 16;
/// How long answers may take to reach their clients when the server ends.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// What the loop has of the web.
pub(crate) struct HttpEdge {
    town: TownDir,
    inputs: Inputs,
    /// For those who talk as on the town's socket.
    talk: Arc<Talk>,
    /// Made when it is first needed.
    runtime: Option<Runtime>,
    client: Option<reqwest::Client>,
    listening: Option<(Listening, Listener)>,
    /// What could not be listened on, and why; said once.
    trouble: Option<(Listener, String)>,
    settings: Arc<RwLock<HttpSettings>>,
    actions: BTreeMap<DispatchId, Sent>,
    webhooks: BTreeSet<BeadId>,
    /// Made when it is first needed.
    post: Option<Arc<Post>>,
}

/// An action that was sent.
pub(crate) enum Sent {
    /// Nobody has answered yet.
    UnderWay(Option<AbortHandle>),
    /// It was answered; kept until that is on disk.
    Answered(ActionOutcome),
}

/// What tells one way of listening from another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listener {
    address: String,
    token_file: PathBuf,
    token_seen: FileStamp,
    tls: Option<TlsFiles>,
}

impl HttpEdge {
    pub(crate) fn new(town: TownDir, role: ServerRole, inputs: Inputs) -> Self {
        Self {
            town,
            talk: Arc::new(Talk::new(role, inputs.clone())),
            inputs,
            runtime: None,
            client: None,
            listening: None,
            trouble: None,
            settings: Arc::default(),
            actions: BTreeMap::new(),
            webhooks: BTreeSet::new(),
            post: None,
        }
    }

    fn runtime(&mut self) -> io::Result<&Runtime> {
        if self.runtime.is_none() {
            let mut runtime = Builder::new_multi_thread();
            self.runtime = Some(runtime.worker_threads(1).thread_name("ym-http").enable_all().build()?);
        }
        self.runtime.as_ref().ok_or_else(|| io::Error::other("no runtime"))
    }

    /// Listens as configured, or no longer. Returns what is wrong, if anything is.
    pub(crate) fn follow(&mut self, settings: &HttpSettings) -> Option<String> {
        {
            let mut known = self.settings.write().unwrap_or_else(PoisonError::into_inner);
            if *known != *settings {
                known.clone_from(settings);
            }
        }
        let Some(address) = &settings.listen else {
            (self.listening, self.trouble) = (None, None);
            return None;
        };
        let token_file = auth::token_path(&self.town, settings);
        let token_seen = FileStamp::of(&token_file);
        let (tls, half) = match TlsFiles::of(&self.town, settings) {
            Ok(tls) => (tls, None),
            Err(half) => (None, Some(half)),
        };
        let wanted = Listener { address: address.clone(), token_file, token_seen, tls };
        if half.is_none() && self.listening.as_ref().is_some_and(|(_, as_is)| *as_is == wanted) {
            self.trouble = None;
            return None;
        }
        let token = auth::token(&self.town, settings).map_err(|error| error.to_string());
        if token.is_err() || self.listening.as_ref().is_some_and(|(_, as_is)| as_is.address != wanted.address)
        {
            // A certificate gone wrong leaves things as they are; the old token or address is wanted no more.
            self.listening = None;
        }
        let keys = half.map_or(token, Err).and_then(|token| keys(&wanted, token));
        match keys.and_then(|keys| self.listen(&wanted, keys)) {
            Ok(()) => {
                self.trouble = None;
                None
            }
            Err(error) => {
                if self.trouble.as_ref().is_none_or(|(known, said)| *known != wanted || *said != error) {
                    tracing::warn!("{error}");
                }
                self.trouble = Some((wanted, error.clone()));
                Some(error)
            }
        }
    }

    fn listen(&mut self, wanted: &Listener, keys: Keys) -> Result<(), String> {
        // The token may have been made just now.
        let wanted = Listener { token_seen: FileStamp::of(&wanted.token_file), ..wanted.clone() };
        if let Some((listening, as_is)) = &mut self.listening
            && as_is.address == wanted.address
            && as_is.tls.is_some() == wanted.tls.is_some()
        {
            // Only token or certificate are others: who comes from now on meets the new ones.
            listening.set_keys(keys);
            *as_is = wanted;
            return Ok(());
        }
        self.listening = None;
        let (inputs, talk, shared) =
            (self.inputs.clone(), Arc::clone(&self.talk), Arc::clone(&self.settings));
        let runtime = self.runtime().map_err(|error| error.to_string())?;
        let listening = Listening::start(runtime, &wanted.address, keys, inputs, talk, shared)
            .map_err(|error| format!("http.listen: cannot listen on {}: {error}", wanted.address))?;
        tracing::info!(address = %listening.address(), tls = wanted.tls.is_some(), "serving HTTP");
        self.listening = Some((listening, wanted));
        Ok(())
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> Option<String> {
        self.listening.as_ref().map(|(listening, _)| listening.address().to_string())
    }

    /// Whether it does so under TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.listening.as_ref().is_some_and(|(_, as_is)| as_is.tls.is_some())
    }

    /// Sends an action whose start is on disk; its outcome comes to the loop.
    pub(crate) fn send_action(&mut self, id: &DispatchId, action: Action) {
        let (inputs, dispatch) = (self.inputs.clone(), id.clone());
        let client = self.client().map_err(|error| format!("executor request failed: {error}"));
        let sending = async move {
            let outcome = match client {
                Ok(client) => action.send(&client).await,
                Err(error) => Err(error),
            };
            inputs.send(Input::ActionAnswered { dispatch, outcome });
        };
        match self.runtime() {
            Ok(runtime) => {
                let handle = runtime.spawn(sending).abort_handle();
                self.actions.insert(id.clone(), Sent::UnderWay(Some(handle)));
            }
            Err(error) => {
                let outcome = Err(format!("executor request failed: {error}"));
                self.inputs.send(Input::ActionAnswered { dispatch: id.clone(), outcome });
            }
        }
    }

    /// Notes that somebody else has sent an action, or is sending a webhook, and will tell the loop how it went.
    pub(crate) fn note_sent(&mut self, action: Option<&DispatchId>, webhook: Option<&BeadId>) {
        self.actions.extend(action.map(|id| (id.clone(), Sent::UnderWay(None))));
        self.webhooks.extend(webhook.cloned());
    }

    fn client(&mut self) -> Result<reqwest::Client, String> {
        if self.client.is_none() {
            self.client = Some(executor::client()?);
        }
        self.client.clone().ok_or_else(|| "no client".to_owned())
    }

    /// An action was answered. The answer is kept until its end is on disk.
    pub(crate) fn answered(&mut self, id: &DispatchId, outcome: &ActionOutcome) {
        if let Some(sent) = self.actions.get_mut(id) {
            *sent = Sent::Answered(outcome.clone());
        }
    }

    /// How an action stands that the log calls live; none if nobody here knows of it.
    pub(crate) fn action(&self, id: &DispatchId) -> Option<&Sent> {
        self.actions.get(id)
    }

    /// Forgets an action that is over; if it is under way, whoever waits for its answer does so no longer.
    pub(crate) fn drop_action(&mut self, id: &DispatchId) {
        if let Some(Sent::UnderWay(Some(handle))) = self.actions.remove(id) {
            handle.abort();
        }
    }

    /// How many more webhooks may be sent now.
    pub(crate) fn places_for_webhooks(&self) -> usize {
        WEBHOOKS_AT_ONCE.saturating_sub(self.webhooks.len())
    }

    /// Whether a webhook of this task is under way.
    pub(crate) fn is_sending_webhook(&self, id: &BeadId) -> bool {
        self.webhooks.contains(id)
    }

    /// Sends a webhook; how it went comes to the loop.
    pub(crate) fn send_webhook(&mut self, letter: Letter) {
        let (inputs, town, task) = (self.inputs.clone(), self.town.clone(), letter.task.clone());
        let allowed = self.settings.read().unwrap_or_else(PoisonError::into_inner).webhook_allow.clone();
        let post = self.post.get_or_insert_with(|| Arc::new(Post::open())).clone();
        let id = letter.task.clone();
        let sending = async move {
            let failure = post.send(letter, &town, &allowed).await.err();
            inputs.send(Input::WebhookTried { task, failure });
        };
        match self.runtime() {
            Ok(runtime) => {
                runtime.spawn(sending);
                self.webhooks.insert(id);
            }
            Err(error) => tracing::warn!(%error, "a webhook cannot be sent at present"),
        }
    }

    /// A webhook came back.
    pub(crate) fn webhook_tried(&mut self, id: &BeadId) {
        self.webhooks.remove(id);
    }
}

/// What is to be listened with; never in plain where others can listen in, whatever the config says.
fn keys(wanted: &Listener, token: String) -> Result<Keys, String> {
    let tls = wanted.tls.as_ref().map(TlsFiles::load).transpose()?;
    if tls.is_none() && needs_tls(&wanted.address) {
        return Err(format!("http.listen: {} needs http.tls_cert and http.tls_key", wanted.address));
    }
    Ok(Keys { token, tls })
}

impl Drop for HttpEdge {
    fn drop(&mut self) {
        self.listening = None;
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(LAST_WORDS);
        }
    }
}
