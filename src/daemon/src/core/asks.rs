//! What clients ask: decided in a turn, answered once the turn is durable.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use yard_client::views::{self, DaemonView, HeardView, RecoverView};
use yard_client::{Ask, Reply, Request, ServerRole};
use yard_engine::command::SlingRequest;
use yard_engine::plan::Scope;
use yard_engine::{Answer, Asker, Command, Kitchen, Millis, Recorded, Refusal};

use super::worktrees::PruneRequest;
use super::{Core, Owed};
use crate::attach::{attach, send_past};
use crate::config::Change;
use crate::eventlog::send_events;
use crate::input::ReplyTo;
use crate::launch;
use crate::logtext::send_piece;
use crate::reads::{Desk, is_read};
use crate::starts::{Promise, Staged};
use crate::store::StoreError;
use crate::waiting::{Outlook, WaitFor};

impl Core {
    pub(super) fn take_ask(&mut self, request: Request, reply_to: ReplyTo, owed: &mut Vec<Owed>) {
        let Request { actor, ask } = request;
        self.heard_of(&actor);
        match ask {
            Ask::Command { mut command } => {
                command.put_off(self.clock.lead());
                let outcome = match &self.read_only {
                    Some(why) if !is_dry(&command) => Err(Refusal::new("read-only", why.clone())),
                    _ => self.take_command(&actor, &command),
                };
                if outcome.is_err() && self.read_only.is_none() {
                    self.agent_called(&command);
                }
                owed.push(match outcome {
                    Ok(promise) => match promise {
                        Answered::Now(reply) => Owed::Reply(reply_to, self.with_notice(&command, reply)),
                        Answered::Later(promise) => Owed::Promise(reply_to, promise),
                    },
                    Err(refusal) => Owed::Reply(reply_to, Reply::Error(refusal)),
                });
            }
            Ask::Wait { ids, all, timeout_ms, summary } => {
                let found: Result<BTreeSet<_>, _> =
                    ids.iter().map(|id| self.store.state().find_bead(id)).collect();
                let until = timeout_ms.map(|ms| self.clock.instant_after(Duration::from_millis(ms)));
                owed.push(match found {
                    Ok(ids) => Owed::Wait(reply_to, WaitFor { ids, all, summary, until }),
                    Err(refusal) => Owed::Reply(reply_to, Reply::Error(refusal)),
                });
            }
            Ask::AgentWait { agent, keep, timeout_ms } => {
                let until = timeout_ms.map(|ms| self.clock.instant_after(Duration::from_millis(ms)));
                owed.extend(self.wait_for_mail(&agent, keep, until, reply_to));
            }
            Ask::Health => {
                owed.push(Owed::Reply(
                    reply_to,
                    match &self.read_only {
                        Some(why) => Reply::Error(Refusal::new("read-only", why.clone())),
                        None => {
                            Reply::document(&json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))
                        }
                    },
                ));
            }
            Ask::Events { query } => {
                let follow = self.role.dispatches_by_itself();
                send_events(&self.town, query, reply_to, follow.then(|| Arc::clone(&self.published)));
            }
            Ask::WorktreeList => self.list_worktrees(reply_to),
            Ask::WorktreePrune { ids, all, branches, dry_run } => {
                self.prune_worktrees(&PruneRequest { ids, all, branches, dry_run }, reply_to);
            }
            Ask::LogPiece { id, from, lines } => match self.desk().log_of(&id) {
                Ok(log) => send_piece(log, from, lines, reply_to),
                Err(refusal) => owed.push(Owed::Reply(reply_to, Reply::Error(refusal))),
            },
            Ask::Past => send_past(&self.town, reply_to),
            Ask::Attach { since } => {
                if self.role.dispatches_by_itself() {
                    attach(&self.town, since, reply_to, Arc::clone(&self.published));
                } else {
                    let refusal = Refusal::new("passing", "only a passing command serves the town");
                    owed.push(Owed::Reply(reply_to, Reply::Error(refusal)));
                }
            }
            Ask::Poke { rig } => {
                let known = rig.as_deref().map(|rig| self.store.state().find_rig(rig)).transpose();
                let reply = if let Err(refusal) = known {
                    Reply::Error(refusal)
                } else {
                    self.poke(rig.as_deref());
                    self.look_at_offers(true);
                    self.next_scan = self.clock.instant();
                    Reply::document(&json!({"poked": true, "alerts": self.config_notices()}))
                };
                owed.push(Owed::Reply(reply_to, reply));
            }
            Ask::Stop { timeout_ms, leave_running } => {
                if self.role == ServerRole::Command {
                    let refusal =
                        Refusal::new("no-daemon", "no daemon is running").hint("ym --daemon starts one");
                    owed.push(Owed::Reply(reply_to, Reply::Error(refusal)));
                } else {
                    let configured = self.store.state().settings().shutdown_timeout;
                    let timeout = timeout_ms.map_or(configured, Millis).duration();
                    self.start_drain(timeout, leave_running, Some(reply_to));
                }
            }
            read => {
                debug_assert!(is_read(&read), "every other ask is handled above");
                owed.push(Owed::Read(reply_to, read));
            }
        }
    }

    pub(super) fn take_command(&mut self, actor: &str, command: &Command) -> Result<Answered, Refusal> {
        let starts_work = matches!(command, Command::Run { dry_run: false, .. });
        if starts_work && self.drain.is_some() {
            return Err(Refusal::new("draining", "the daemon is stopping and starts nothing any more"));
        }
        if starts_work && self.inside_worker {
            return Err(Refusal::new("inside-worker", "a worker's end would take what it starts along")
                .hint("run `ym --daemon` outside; it starts what waits"));
        }
        // What the pass would do if no spawn delay stretched it.
        let whole = match command {
            Command::Run { batch, dry_run: false }
                if self.store.state().settings().spawn_delay.0 > 0 && !self.dispatches() =>
            {
                let batch = batch.unwrap_or(self.store.state().settings().batch_size);
                Some(self.store.state().preview(batch))
            }
            _ => None,
        };
        let mut kitchen = self.kitchen_for(command);
        let edited = self.edit_config(command, &mut kitchen);
        let now = self.now;
        let dead = match command {
            Command::Recover { dry_run: false } => self.look_for_dead_workers(),
            _ => Vec::new(),
        };
        let asker = Asker { actor, kitchen: &kitchen };
        let answer = self.store.decide(now, |tx| tx.decide(&asker, command))?;
        if let Command::RigAdd { .. } | Command::RigRemove { .. } = command {
            // The answer comes when the rig's beads are there to be staged and slung.
            self.follow_sources();
        }
        let direct = !self.store.state().settings().is_deferred();
        Ok(match answer {
            Answer::Slung { direct, results } => self.promise(Promise::Slung { direct, results }, command),
            Answer::Added { results } => self.promise(Promise::Added { direct, results }, command),
            Answer::Passed { starts, skipped, reason, dry_run } => Answered::Later(match whole {
                None => Promise::Passed { whole: starts.len() as u64, starts, skipped, reason, dry_run },
                Some(pass) => Promise::Passed {
                    whole: pass.starts.len() as u64,
                    starts,
                    skipped: pass.skipped,
                    reason: pass.reason,
                    dry_run,
                },
            }),
            Answer::Staged { convoy_id, restaged, plan, launched } => {
                let staged = Staged { convoy_id, restaged, plan, launched };
                self.promise(Promise::Staged { direct, staged }, command)
            }
            Answer::Launched { convoy_id, wave1 } => {
                self.promise(Promise::Launched { direct, convoy_id, results: wave1 }, command)
            }
            Answer::Recovered { dry_run, mut findings } => {
                findings.splice(0..0, dead);
                Answered::Now(Reply::document(&RecoverView { dry_run, findings }))
            }
            Answer::Heard { dispatch_id, accepted, should_yield, reason } => Answered::Now(if accepted {
                Reply::document(&HeardView { dispatch_id, should_yield, reason })
            } else {
                let message = format!("{dispatch_id} is over: what its worker says no longer counts");
                let hint = "a worker that was ended should end; ym why says what became of its bead";
                Reply::Error(Refusal::new("stale-dispatch", message).hint(hint))
            }),
            Answer::Agent { name } => Answered::Now(match self.store.state().agent(&name) {
                Some(agent) => Reply::document(&views::agent(self.store.state(), agent)),
                None => Reply::Error(Refusal::new("unknown-agent", format!("there is no agent {name}"))),
            }),
            Answer::Claimed { agent, dispatch_id, already } => {
                let view = views::claim(self.store.state(), &agent, &dispatch_id, already);
                Answered::Now(Reply::document(&view))
            }
            Answer::Inbox { agent, messages } => {
                let view = views::inbox(self.store.state(), &agent, &messages, false);
                Answered::Now(Reply::document(&view))
            }
            Answer::Tasks { receipts } => Answered::Now(Reply::document(&receipts)),
            Answer::Created { ids } => {
                let id = ids.first().cloned();
                Answered::Now(Reply::document(&json!({"id": id, "ids": ids})))
            }
            Answer::Done { changed, message, ids } => {
                let done = json!({"changed": changed, "message": message, "ids": ids});
                Answered::Now(Reply::document(&self.with_more(command, done, edited.as_ref())))
            }
        })
    }

    /// Adds what some commands say besides: which setting changed, and what undo and redo would be about next.
    fn with_more(&self, command: &Command, mut done: Value, edited: Option<&Change>) -> Value {
        if let Some(change) = edited {
            done["key"] = change.key.clone().into();
            (done["old"], done["value"]) = (json!(change.old), change.new.clone());
        }
        if let Command::ConvoyLand { id, .. } = command {
            let convoy = self.store.state().find_convoy(id);
            done["branches"] =
                json!(convoy.map(|id| self.store.state().unmerged_of(&id)).unwrap_or_default());
        }
        if let Command::Undo | Command::Redo = command {
            let state = self.store.state();
            for (key, next) in [("undo", state.undoable()), ("redo", state.redoable())] {
                if let Some(next) = next {
                    done[key] = next.did.clone().into();
                }
            }
        }
        done
    }

    /// Cooks what a command would use before it is decided, so that a bad formula is refused and not queued.
    fn kitchen_for(&self, command: &Command) -> Kitchen {
        if let Command::TaskSubmit { tasks } = command {
            return launch::kitchen_of_tasks(self.store.state(), &self.town, tasks);
        }
        let of_targets =
            |targets: &[String]| SlingRequest { ids: targets.to_vec(), ..SlingRequest::default() };
        let request = match command {
            Command::Sling(request) => SlingRequest::clone(request),
            Command::ConvoyLaunch { targets, .. } | Command::ConvoyStage { targets, launch: true, .. } => {
                of_targets(targets)
            }
            _ => return Kitchen::default(),
        };
        launch::kitchen(self.store.state(), &self.town, &request)
    }

    /// In direct mode a sling starts what it asked for; who dispatches by himself does so at the end of the turn.
    pub(super) fn promise(&mut self, promise: Promise, command: &Command) -> Answered {
        let contexts = promise.starts_at_once().filter(|_| !is_dry(command));
        if let (Some(contexts), false, None) = (contexts, self.inside_worker, &self.drain) {
            self.store.decide(self.now, |tx| tx.pass(Scope::Only(&contexts), None));
        }
        Answered::Later(promise)
    }

    /// Answers what the turn owes, and whoever waited for what has just become durable.
    pub(super) fn settle(&mut self, events: &[Recorded], owed: Vec<Owed>) {
        self.waiters.notice(events);
        self.starts.notice(self.store.state(), events);
        for debt in owed {
            match debt {
                Owed::Reply(reply_to, reply) => {
                    reply_to.send(reply);
                }
                Owed::Promise(reply_to, mut promise) => {
                    promise.name_dispatches(self.store.state());
                    let Some((reply_to, promise)) = self.stretch(reply_to, promise) else { continue };
                    let notices = self.notices(&promise);
                    self.starts.promise(self.store.state(), reply_to, promise, notices);
                }
                Owed::Read(reply_to, ask) => {
                    reply_to.send(self.desk().answer(&ask));
                }
                Owed::Wait(reply_to, wait) => {
                    self.waiters.add(self.store.state(), self.clock.instant(), reply_to, wait);
                }
            }
        }
        if !self.waiters.is_empty() {
            let outlook = match (&self.read_only, self.dispatches()) {
                (Some(_), _) => Outlook::Unclear,
                (None, true) => Outlook::GoesOn,
                (None, false) => Outlook::StandsStill,
            };
            self.waiters.look(self.store.state(), self.clock.instant(), outlook);
        }
    }

    pub(super) fn notices(&self, promise: &Promise) -> Vec<String> {
        self.nobody_starts(promise.left_waiting())
    }

    /// Adds the notice to what gave waiting work a chance: somebody may expect it to start now.
    fn with_notice(&self, command: &Command, reply: Reply) -> Reply {
        let gives_a_chance = matches!(
            command,
            Command::Resume
                | Command::Retry { .. }
                | Command::Undo
                | Command::Redo
                | Command::Hold { held: false, .. }
                | Command::ConvoyCreate(_)
                | Command::ConvoyAdd { .. }
        );
        match reply {
            Reply::Ok { document, mut notices } if matches!(command, Command::Preempt { .. }) => {
                if !self.dispatches() {
                    notices.push("nobody goes on with this: `ym --daemon` does".to_owned());
                }
                Reply::Ok { document, notices }
            }
            Reply::Ok { document, .. } if gives_a_chance => {
                let state = self.store.state();
                let left = state.ready_count() + state.hungry().count();
                Reply::Ok { document, notices: self.nobody_starts(left) }
            }
            other => other,
        }
    }

    fn nobody_starts(&self, left: usize) -> Vec<String> {
        let mut notices: Vec<String> = match self.role {
            // Who asks a daemon sees its alerts in the status.
            ServerRole::Command => self.config_notices(),
            ServerRole::Daemon | ServerRole::Console => Vec::new(),
        };
        let (waits, it) = if left == 1 {
            ("1 bead waits".to_owned(), "it")
        } else {
            (format!("{left} beads wait"), "them")
        };
        if left == 0 || (self.dispatches() && self.store.state().pause().is_none()) {
            return notices;
        }
        notices.push(if self.store.state().pause().is_some() {
            format!("{waits}: dispatch is paused; `ym scheduler resume` lets it go on")
        } else if self.drain.is_some() {
            format!("{waits}: the daemon is stopping; `ym --daemon` starts {it} later")
        } else {
            format!(
                "{waits}, and nothing will start {it} by itself: run `ym --daemon`, or `ym scheduler run`"
            )
        });
        notices
    }

    pub(super) fn desk(&self) -> Desk<'_> {
        let running = self.role.dispatches_by_itself();
        let daemon = DaemonView {
            running,
            pid: running.then(std::process::id),
            http: self.http.address(),
            tls: self.http.is_tls(),
            silent_pid: None,
        };
        Desk { state: self.store.state(), town: &self.town, transient: self.alert_views(), daemon }
    }

    pub(super) fn refuse(&self, owed: Vec<Owed>, error: &StoreError) {
        for debt in owed {
            match debt {
                Owed::Read(reply_to, ask) => {
                    reply_to.send(self.desk().answer(&ask));
                }
                Owed::Reply(reply_to, Reply::Error(refusal)) => {
                    reply_to.send(Reply::Error(refusal));
                }
                Owed::Reply(reply_to, _) | Owed::Promise(reply_to, _) | Owed::Wait(reply_to, _) => {
                    reply_to.send(Reply::Error(Refusal::new("journal", error.to_string())));
                }
            }
        }
    }
}

/// Whether a command has its answer now, or when its starts are known.
pub(super) enum Answered {
    Now(Reply),
    Later(Promise),
}

fn is_dry(command: &Command) -> bool {
    match command {
        Command::Sling(request) => request.dry_run,
        Command::Run { dry_run, .. } => *dry_run,
        _ => false,
    }
}
