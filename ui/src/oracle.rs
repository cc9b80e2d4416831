//! The forecaster: a thread with a state of its own, fed by the same events, so that a forecast never delays a key.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use yard_engine::{Recorded, State};

use crate::forecasts::{Forecasts, Wanted, forecast};

/// What it is told.
enum Told {
    State(Box<State>),
    Events(Vec<Arc<Recorded>>),
    Wanted(Wanted),
}

/// The way to it.
pub(crate) struct Oracle(Sender<Told>);

impl Oracle {
    /// Starts the thread; what it forecasts goes to `tell`.
    pub(crate) fn start(tell: impl Fn(Arc<Forecasts>) + Send + 'static) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        thread::Builder::new().name("ym-oracle".to_owned()).spawn(move || run(&receiver, &tell))?;
        Ok(Self(sender))
    }

    /// The whole state.
    pub(crate) fn state(&self, state: State) {
        let _ = self.0.send(Told::State(Box::new(state)));
    }

    /// What happened.
    pub(crate) fn events(&self, events: Vec<Arc<Recorded>>) {
        let _ = self.0.send(Told::Events(events));
    }

    /// A forecast is wanted.
    pub(crate) fn want(&self, wanted: Wanted) {
        let _ = self.0.send(Told::Wanted(wanted));
    }
}

fn run(told: &Receiver<Told>, tell: &impl Fn(Arc<Forecasts>)) {
    let mut state = State::default();
    while let Ok(first) = told.recv() {
        let mut wanted = None;
        for next in std::iter::once(first).chain(told.try_iter()) {
            match next {
                Told::State(new) => state = *new,
                Told::Events(events) => {
                    for event in events.iter().filter(|event| event.seq > state.seq()).collect::<Vec<_>>() {
                        state.apply(event);
                    }
                    state.take_changed_beads();
                }
                // Of several wishes only the last one counts.
                Told::Wanted(new) => wanted = Some(new),
            }
        }
        if let Some(wanted) = wanted {
            tell(Arc::new(forecast(&state, &wanted)));
        }
    }
}
