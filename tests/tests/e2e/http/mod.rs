//! Tasks over HTTP, over real sockets: the API its clients know, and none of the defects of the queue it comes from.

mod actions;
mod api;
mod conformance;
mod crowds;
mod restarts;
mod streams;
mod webhooks;

use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};
use yard_tests::http::{Http, Peer};
use yard_tests::town::Town;

/// A town that serves HTTP, with more settings.
fn serving(settings: &[(&str, &str)]) -> (Town, Http) {
    let mut town = Town::new();
    town.set("http.listen", "127.0.0.1:0");
    for (key, value) in settings {
        town.set(key, value);
    }
    town.start_daemon();
    let http = Http::of(&town);
    (town, http)
}

/// A town that takes tasks in and starts none.
fn paused(settings: &[(&str, &str)]) -> (Town, Http) {
    let (town, http) = serving(settings);
    town.run(["scheduler", "pause"]).ok();
    (town, http)
}

fn click(agent: &str) -> Value {
    json!({"agentId": agent, "action": "click", "tabId": "tab-1"})
}

/// A server that keeps whoever asks waiting until it is let go.
struct Slow {
    peer: Peer,
    open: Arc<(Mutex<bool>, Condvar)>,
}

impl Slow {
    fn start() -> Self {
        let open = Arc::<(Mutex<bool>, Condvar)>::default();
        let theirs = Arc::clone(&open);
        let peer = Peer::start(move |_| {
            let (open, opened) = &*theirs;
            let waiting = open.lock().expect("not poisoned");
            drop(opened.wait_while(waiting, |open| !*open).expect("not poisoned"));
            (200, "{}".to_owned())
        });
        Self { peer, open }
    }

    fn let_go(&self) {
        *self.open.0.lock().expect("not poisoned") = true;
        self.open.1.notify_all();
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.let_go();
    }
}
