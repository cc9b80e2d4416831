//! While programs run: output, time limits, stop requests, ended children; and the end of everything they started.
//!
//! One `poll` over signals, output, the pool's connection and the window. The first cause of an end counts; SIGTERM goes to every
//! process once, SIGKILL after the grace as often as it takes, until the kernel says that no child is left.

use std::os::fd::AsFd as _;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use yard_engine::Millis;

use super::run::Run;
use super::window::Window;
use crate::record::ExitCause;
use crate::sys::{self, Outcome, Reaped, boot_millis};
use crate::wire;

/// How often SIGKILL is repeated, for processes that were being made meanwhile.
const KILL_AGAIN: u64 = 20;
/// How often a job looks into its claim by itself: the signal that tells it to goes through a controller, which may be down.
const LOOK_EVERY: u64 = 2000;

impl Run<'_> {
    /// Attends to everything until `program` has ended or, without one, until nothing is left.
    pub(super) fn watch(&mut self, program: Option<u32>, deadline: Option<u64>) -> Outcome {
        let mut ended = None;
        // A request may have come in the same breath as the order.
        self.hear();
        loop {
            match program {
                Some(_) => {
                    if let Some(outcome) = ended {
                        return outcome;
                    }
                }
                None if self.abandoned || (self.alone && sys::tree_is_gone(&self.groups)) => {
                    return Outcome { code: None, signal: None };
                }
                None => {}
            }
            let timeout = self.keep_time(deadline);
            // Without a connection or a window the first one is watched twice, which does no harm.
            let first = self.shim.signals.fd();
            let window = self.shim.window.as_ref().and_then(Window::interest);
            let (window, interest) = window.unwrap_or((first, PollFlags::POLLIN));
            let mut fds = [
                PollFd::new(first, PollFlags::POLLIN),
                PollFd::new(self.shim.output.0.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.shim.link.socket().map_or(first, |s| s.as_fd()), PollFlags::POLLIN),
                PollFd::new(window, interest),
            ];
            if poll(&mut fds, timeout).is_err() {
                continue;
            }
            let [signals, output, message, window] = fds.map(|fd| fd.any() == Some(true));
            if signals {
                let arrived = self.shim.signals.take();
                if arrived.child {
                    ended = ended.or(self.reap(program));
                }
                if arrived.look {
                    self.look_for_requests();
                }
                if arrived.resized
                    && let Some(window) = &self.shim.window
                {
                    window.pass_size_on(&self.shim.output.1);
                }
                if arrived.stop {
                    self.begin_end(ExitCause::Stopped, self.grace, "the shim was asked to end");
                }
            }
            if output {
                self.take_output(16);
            }
            if message {
                self.shim.link.fill();
                self.hear();
            }
            if window {
                self.attend_window();
            }
        }
    }

    /// Does what is due and says how long one may wait.
    fn keep_time(&mut self, step_deadline: Option<u64>) -> PollTimeout {
        let time = boot_millis();
        if self.flush_at.is_some_and(|at| at <= time) {
            self.flush();
        }
        if self.look_at.is_some_and(|at| at <= time) {
            self.look_at = Some(time + LOOK_EVERY);
            self.look_for_requests();
        }
        if self.cause.is_none() {
            if step_deadline.is_some_and(|at| at <= time) {
                self.begin_end(ExitCause::Timeout, self.grace, "the step took longer than its timeout");
            } else if self.hard_cap.is_some_and(|at| at <= time) {
                self.begin_end(ExitCause::HardCap, self.grace, "the dispatch took longer than its hard cap");
            }
        }
        if self.kill_at.is_some_and(|at| at <= time) {
            let reached = sys::signal_descendants(&self.groups, Signal::SIGKILL);
            if reached.signalled == 0 && reached.forbidden > 0 {
                self.abandoned = true;
                self.note = Some(format!("{} processes of another user are left", reached.forbidden));
            }
            self.kill_at = Some(time + KILL_AGAIN);
        }
        if self.meter_at.is_some_and(|at| at <= time) || self.line_at.is_some_and(|at| at <= time) {
            self.note_meter();
        }
        let always = [self.flush_at, self.look_at, self.kill_at, self.meter_at, self.line_at];
        let mut next = always.into_iter().flatten().min();
        if self.cause.is_none() {
            next = [next, step_deadline, self.hard_cap].into_iter().flatten().min();
        }
        if self.alone && self.kill_at.is_some() {
            // Where there is no reaper, the end of a process group must be asked for.
            next = Some(next.unwrap_or(u64::MAX).min(time + KILL_AGAIN));
        }
        // Look at the clock once a minute: poll does not count the time a machine sleeps.
        next.map_or(PollTimeout::NONE, |at| PollTimeout::from(at.saturating_sub(time).min(60_000) as u16))
    }

    fn reap(&mut self, program: Option<u32>) -> Option<Outcome> {
        let mut ended = None;
        loop {
            match sys::reap() {
                Reaped::Child(pid, outcome) if Some(pid) == program => ended = Some(outcome),
                Reaped::Child(..) => {}
                Reaped::AllAlive => {
                    self.alone = false;
                    return ended;
                }
                Reaped::Nobody => {
                    self.alone = true;
                    return ended;
                }
            }
        }
    }

    /// SIGTERM to everything now, SIGKILL after `grace`. A second request can only shorten the time.
    fn begin_end(&mut self, cause: ExitCause, grace: Millis, note: &str) {
        let at = boot_millis().saturating_add(grace.0);
        if self.cause.is_none() {
            self.cause = Some(cause);
            self.note = Some(note.to_owned());
        }
        if self.kill_at.is_none() {
            sys::signal_descendants(&self.groups, Signal::SIGTERM);
        }
        self.kill_at = Some(self.kill_at.map_or(at, |old| old.min(at)));
    }

    /// Looks into the claim for requests of a daemon that has no line to us.
    pub(super) fn look_for_requests(&mut self) {
        let Ok(story) = self.claim.story() else { return };
        self.claim.heal();
        self.yield_wanted = story.yield_wanted;
        if let Some((grace, reason)) = story.stop {
            self.begin_end(ExitCause::Stopped, grace, &reason);
        }
    }

    /// Obeys what the pool says, if it is about this dispatch.
    pub(super) fn hear(&mut self) {
        while let Some(message) = self.shim.link.next() {
            match message {
                wire::ToShim::Stop { dispatch, grace, reason } if dispatch == self.dispatch => {
                    self.claim.heal();
                    self.begin_end(ExitCause::Stopped, grace, &reason);
                }
                wire::ToShim::Yield { dispatch, wanted } if dispatch == self.dispatch => {
                    self.claim.heal();
                    self.yield_wanted = wanted;
                }
                // Its turn comes when this dispatch is over.
                order @ wire::ToShim::Start { .. } => self.shim.waiting.push_back(order),
                // What is for a former dispatch comes too late.
                wire::ToShim::Stop { .. } | wire::ToShim::Yield { .. } => {}
            }
        }
    }

    /// Moves output into the log and the window, at most `rounds` pieces of it.
    pub(super) fn take_output(&mut self, rounds: u32) {
        for _ in 0..rounds {
            match nix::unistd::read(&self.shim.output.0, &mut self.shim.buffer) {
                Ok(n) if n > 0 => {
                    let mut text = &self.shim.buffer[..n];
                    // A terminal gives less than there is.
                    let all = n < self.shim.buffer.len() && self.shim.window.is_none();
                    if let Some(window) = &mut self.shim.window {
                        text = window.show(text);
                    }
                    // A worker is not stopped by a full disk; its output is dropped meanwhile.
                    let _ = self.log.write(text);
                    let news = self.meter.read(text);
                    if news.figures {
                        self.meter_soon();
                    }
                    if news.line {
                        self.line_soon();
                    }
                    if all {
                        return;
                    }
                }
                _ => return,
            }
        }
    }

    /// Shows what waits to be shown, and passes on what was typed.
    fn attend_window(&mut self) {
        let Some(window) = &mut self.shim.window else { return };
        window.show_more();
        let typed = window.typed(&mut self.shim.buffer);
        if self.reads_keys && !typed.is_empty() {
            // Keys that nobody reads are lost, as on every terminal.
            let _ = nix::unistd::write(&self.shim.output.0, typed);
        }
    }

    /// Ends whatever the programs left running.
    pub(super) fn end_leftovers(&mut self) {
        if !self.alone || !sys::tree_is_gone(&self.groups) {
            let (cause, note) = (self.cause, self.note.take());
            self.begin_end(cause.unwrap_or(ExitCause::Exit), self.grace, "");
            self.note = note;
            self.watch(None, None);
        }
        self.take_output(64);
        if let Some(window) = &mut self.shim.window {
            let _ = self.log.write(window.last_words());
        }
        self.meter.end_line();
    }
}
