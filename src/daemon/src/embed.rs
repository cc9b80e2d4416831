//! The same loop inside another program: a console without a daemon serves its town itself.

use std::sync::mpsc;
use std::thread::JoinHandle;

use yard_client::{Ask, Request, ServerRole};
use yard_journal::Role;

use crate::core::Core;
use crate::input::{Input, Inputs, ReplyTo};
use crate::serve::{DaemonError, lasting_lease};
use crate::server::Server;
use crate::town::TownDir;

/// A town served by a thread of this process. It serves until it is told to end.
#[derive(Debug)]
pub struct Embedded {
    inputs: Inputs,
    thread: JoinHandle<()>,
}

impl Embedded {
    /// Takes the town over and serves it; refused, naming the holder, when somebody does already.
    pub fn start(town: &TownDir) -> Result<Self, DaemonError> {
        let lease = lasting_lease(town, Role::Console)?;
        let (opened, outcome) = mpsc::channel();
        let town = town.clone();
        let thread = std::thread::Builder::new().name("ym-loop".to_owned()).spawn(move || {
            let serving = Core::open(town.clone(), ServerRole::Console, &lease, None)
                .map_err(DaemonError::from)
                .and_then(|core| {
                    let inputs = core.inputs();
                    lease.when_lost(move |error| {
                        inputs.send(Input::LeaseLost(error));
                    });
                    let server = Server::start(&town, ServerRole::Console, core.inputs(), false)?;
                    Ok((core, server))
                });
            match serving {
                Ok((mut core, server)) => {
                    let _ = opened.send(Ok(core.inputs()));
                    core.run(|_| false);
                    server.finish();
                }
                Err(error) => {
                    let _ = opened.send(Err(error));
                }
            }
        })?;
        let inputs = outcome.recv().map_err(|_| std::io::Error::other("the loop ended at once"))??;
        Ok(Self { inputs, thread })
    }

    /// Ends: workers are drained as a daemon drains them, or left to their shims. Returns when all is on disk.
    pub fn end(self, leave_running: bool) {
        let ask = Ask::Stop { timeout_ms: None, leave_running };
        let request = Box::new(Request { actor: "console".to_owned(), ask });
        let (reply_to, _replies) = ReplyTo::new();
        self.inputs.send(Input::Ask { request, reply_to });
        // A loop that panicked has said so already.
        let _ = self.thread.join();
    }
}
