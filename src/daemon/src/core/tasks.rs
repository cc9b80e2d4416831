//! Tasks of the HTTP API in the loop: serving it, sending actions and webhooks, and hearing what came of them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::{Value, json};
use yard_client::views;
use yard_engine::dispatch::StopReason;
use yard_engine::{BeadId, DispatchId, Timestamp, WebhookFailure, WorkerExit};

use super::Core;
use crate::http::{Action, ActionOutcome, Letter, Sent};
use crate::launch::log_path;

/// So much of what a worker wrote is kept as its task's result.
const LONGEST_OUTPUT: u64 = 16 * 1024;

impl Core {
    /// Listens as configured. Only who dispatches by itself does: tasks are to be run, not only kept.
    pub(super) fn serve_http(&mut self) {
        if !self.role.dispatches_by_itself() {
            return;
        }
        let settings = self.store.state().settings().http.clone();
        let trouble = match &mut self.stage {
            Some(stage) => stage.listen(&settings),
            None => self.http.follow(&settings),
        };
        self.store.decide(self.now, |tx| tx.http_trouble(trouble.as_deref()));
    }

    /// Records that actions are about to be sent: whoever finds that after a crash knows that they may have been.
    pub(super) fn note_actions(&mut self) {
        for id in std::mem::take(&mut self.to_send) {
            self.store.decide(self.now, |tx| tx.worker_running(&id, None));
        }
    }

    /// Sends an action of which it is on disk that it is.
    pub(super) fn send_action(&mut self, id: &DispatchId) {
        let state = self.store.state();
        let live = state.dispatch(id).is_some_and(|it| it.is_live() && it.is_action());
        let Some(task) = state.task(id.bead()).filter(|_| live) else { return };
        if let Some(stage) = &mut self.stage {
            self.http.note_sent(Some(id), None);
            return stage.send_action(id);
        }
        let action = Action::of(task, id, &state.settings().http_executor);
        self.http.send_action(id, action);
    }

    pub(super) fn action_answered(&mut self, id: &DispatchId, outcome: ActionOutcome) {
        self.http.answered(id, &outcome);
        self.store.decide(self.now, |tx| tx.action_answered(id, outcome));
    }

    /// What a task that ran in a worker has to show: how it ended, and the end of what it wrote.
    pub(super) fn answer_of_worker(&self, id: &DispatchId, exit: &WorkerExit) -> Option<Value> {
        self.store.state().task(id.bead())?;
        let output = tail_of(&log_path(&self.town, id)).unwrap_or_default();
        Some(json!({"exitCode": exit.code, "output": output}))
    }

    /// Finds out about an action that the log calls live.
    pub(super) fn recover_action(&mut self, id: &DispatchId) {
        match self.http.action(id) {
            Some(Sent::UnderWay(_)) => {}
            Some(Sent::Answered(outcome)) => {
                let outcome = outcome.clone();
                self.store.decide(self.now, |tx| tx.action_answered(id, outcome));
            }
            None => self.store.decide(self.now, |tx| tx.action_lost(id)),
        }
    }

    /// Removes what the workers of forgotten tasks wrote, if anything.
    pub(super) fn remove_logs_of(&self, workers: &[DispatchId]) {
        for id in workers {
            let _ = std::fs::remove_file(log_path(&self.town, id));
        }
    }

    /// A drain lets actions come to their end, for as long as it may take.
    pub(super) fn end_actions_past_the_drain(&mut self) {
        let over = self.drain.as_ref().is_some_and(|drain| drain.until <= self.clock.instant());
        if !over {
            return;
        }
        let actions = self.store.state().live_dispatches().filter(|it| it.is_action());
        for id in actions.map(|it| it.id.clone()).collect::<Vec<_>>() {
            self.store.decide(self.now, |tx| {
                tx.terminate(&id, StopReason::GracefulShutdown, false, "daemon");
            });
        }
    }

    /// Sends the webhooks that are due, some at a time.
    pub(super) fn send_webhooks(&mut self) {
        if !self.dispatches() {
            return;
        }
        let state = self.store.state();
        let mut letters = Vec::new();
        let due = state.due_webhooks(self.now).filter(|task| !self.http.is_sending_webhook(&task.id));
        for task in due.take(self.http.places_for_webhooks()) {
            let Some(webhook) = &task.webhook else { continue };
            // How telling went so far is no part of what is told: a repeat is the same, byte for byte.
            let view = views::task::TaskView { webhook: None, ..views::task::task(state, task) };
            if let Ok(body) = serde_json::to_string(&view) {
                letters.push(Letter { task: task.id.clone(), url: webhook.url.clone(), body, at: self.now });
            }
        }
        for letter in letters {
            if let Some(stage) = &mut self.stage {
                self.http.note_sent(None, Some(&letter.task));
                stage.send_webhook(&letter.task);
            } else {
                self.http.send_webhook(letter);
            }
        }
    }

    pub(super) fn webhook_tried(&mut self, task: &BeadId, failure: Option<WebhookFailure>) {
        self.http.webhook_tried(task);
        self.store.decide(self.now, |tx| tx.webhook_tried(task, failure));
    }

    /// When the next webhook is to be sent, if it may be.
    pub(super) fn next_webhook(&self) -> Option<Timestamp> {
        if !self.dispatches() || self.http.places_for_webhooks() == 0 {
            return None;
        }
        let mut waiting =
            self.store.state().webhook_times().filter(|(_, id)| !self.http.is_sending_webhook(id));
        waiting.next().map(|(at, _)| at)
    }
}

/// The end of a log, as text.
fn tail_of(path: &Path) -> io::Result<String> {
    let mut log = File::open(path)?;
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(LONGEST_OUTPUT)))?;
    let mut tail = Vec::new();
    log.take(LONGEST_OUTPUT).read_to_end(&mut tail)?;
    Ok(String::from_utf8_lossy(&tail).into_owned())
}
