//! The loop and its agents: answering those who wait for mail, telling the hook, and finding out who is alive although
//! nothing was heard of it.

use std::time::Instant;

use tracing::warn;
use yard_client::views::{self, MessageView};
use yard_client::{Reply, ServerRole};
use yard_engine::agent::Process;
use yard_engine::{AgentName, Answer, Asker, Command, Kitchen, Refusal};
use yard_workers::process_mark;

use super::alerts::tell_command;
use super::{Core, Owed};
use crate::input::{Input, ReplyTo};

/// Somebody who waits for mail.
#[derive(Debug)]
pub(super) struct MailWaiter {
    agent: AgentName,
    keep: bool,
    until: Option<Instant>,
    reply_to: ReplyTo,
}

/// A message on its way to the hook.
pub(super) type MessageKey = (AgentName, u64);

impl Core {
    /// Takes in somebody who waits for mail.
    pub(super) fn wait_for_mail(
        &mut self,
        agent: &str,
        keep: bool,
        until: Option<Instant>,
        reply_to: ReplyTo,
    ) -> Option<Owed> {
        let agent = match self.store.state().find_agent(agent) {
            Ok(agent) => agent,
            Err(refusal) => return Some(Owed::Reply(reply_to, Reply::Error(refusal))),
        };
        if self.role == ServerRole::Command {
            let refusal = Refusal::new("no-daemon", "nobody sends orders: no daemon is running")
                .hint("ym --daemon starts one; without --wait the inbox is read as it is");
            return Some(Owed::Reply(reply_to, Reply::Error(refusal)));
        }
        self.store.decide(self.now, |tx| tx.agent_heard(&agent));
        self.mail_waiters.push(MailWaiter { agent, keep, until, reply_to });
        None
    }

    /// When the first one's time to wait is over.
    pub(super) fn next_mail_timeout(&self) -> Option<Instant> {
        self.mail_waiters.iter().filter_map(|waiter| waiter.until).min()
    }

    /// Hands out mail to those who wait for it, at the end of a turn: they are answered once it is durable.
    pub(super) fn hand_out_mail(&mut self, owed: &mut Vec<Owed>) {
        if self.mail_waiters.is_empty() {
            return;
        }
        let (now, stopping) = (self.clock.instant(), self.drain.is_some());
        for waiter in std::mem::take(&mut self.mail_waiters) {
            if waiter.reply_to.is_gone() {
                continue;
            }
            let timed_out = waiter.until.is_some_and(|until| until <= now);
            let state = self.store.state();
            if state.agent(&waiter.agent).is_none() {
                let refusal = Refusal::new("unknown-agent", format!("agent {} was retired", waiter.agent));
                owed.push(Owed::Reply(waiter.reply_to, Reply::Error(refusal)));
            } else if state.has_mail(&waiter.agent) || timed_out {
                let reply = self.read_mail(&waiter.agent, waiter.keep, timed_out);
                owed.push(Owed::Reply(waiter.reply_to, reply));
            } else if stopping {
                let refusal =
                    Refusal::new("draining", "the daemon is stopping").hint("wait again in a moment");
                owed.push(Owed::Reply(waiter.reply_to, Reply::Error(refusal)));
            } else {
                self.mail_waiters.push(waiter);
            }
        }
    }

    fn read_mail(&mut self, agent: &AgentName, keep: bool, timed_out: bool) -> Reply {
        let command = Command::AgentInbox { agent: agent.to_string(), keep };
        let kitchen = Kitchen::default();
        let asker = Asker { actor: agent.as_str(), kitchen: &kitchen };
        match self.store.decide(self.now, |tx| tx.decide(&asker, &command)) {
            Ok(Answer::Inbox { agent, messages }) => {
                let timed_out = timed_out && messages.is_empty();
                Reply::document(&views::inbox(self.store.state(), &agent, &messages, timed_out))
            }
            Ok(_) => Reply::Error(Refusal::new("internal", "this is not an inbox")),
            Err(refusal) => Reply::Error(refusal),
        }
    }

    /// Whatever an agent asks under its own name is a sign of life.
    pub(super) fn heard_of(&mut self, actor: &str) {
        if self.read_only.is_none()
            && let Ok(name) = self.store.state().find_agent(actor)
        {
            self.store.decide(self.now, |tx| tx.agent_heard(&name));
        }
    }

    /// Any call of an agent is a sign of life, also one that is refused.
    pub(super) fn agent_called(&mut self, command: &Command) {
        let (Command::AgentStatus { agent, .. }
        | Command::AgentInbox { agent, .. }
        | Command::AgentClaim { agent, .. }
        | Command::AgentSays { agent, .. }
        | Command::AgentEnds { agent, .. }) = command
        else {
            return;
        };
        self.heard_of(agent);
    }

    /// Looks after agents that seem silent: who waits for mail, or whose process lives, is alive.
    pub(super) fn listen_for_agents(&mut self) {
        for (name, process) in self.store.state().silent_agents(self.now) {
            let waits = self.mail_waiters.iter().any(|it| it.agent == name && !it.reply_to.is_gone());
            if waits {
                self.store.decide(self.now, |tx| tx.agent_heard(&name));
            } else if process.is_some_and(|process| self.lives(&process)) {
                self.store.decide(self.now, |tx| tx.agent_lives(&name));
            }
        }
    }

    fn lives(&mut self, process: &Process) -> bool {
        match &mut self.stage {
            Some(stage) => stage.lives(process),
            None => process_mark(process.pid).is_some_and(|mark| mark == process.mark),
        }
    }

    /// Starts telling the hook what is durable and untold.
    pub(super) fn tell_messages(&mut self) {
        let Some(argv) = self.store.state().settings().agents.hook.clone() else { return };
        let untold = self.store.state().untold_messages();
        let keys: Vec<MessageKey> = untold.iter().map(|(to, message)| (to.clone(), message.id())).collect();
        self.mailing.keep(|key| keys.contains(key));
        let free = self.mailing.free();
        let state = self.store.state();
        let now = self.clock.instant();
        let due = untold.iter().filter(|(to, message)| self.mailing.is_due(&(to.clone(), message.id()), now));
        let due: Vec<(AgentName, MessageView)> =
            due.take(free).map(|(to, one)| (to.clone(), views::message(state, to, one))).collect();
        for (to, message) in due {
            if let Some(stage) = &mut self.stage {
                stage.tell_message(&to, message.id);
                self.mailing.began((to, message.id));
                continue;
            }
            let (town, argv, inputs, key) =
                (self.town.clone(), argv.clone(), self.inputs(), (to.clone(), message.id));
            let spawned = std::thread::Builder::new().name("ym-hook".to_owned()).spawn(move || {
                let env = [("YM_AGENT", to.as_str()), ("YM_SUBJECT", message.subject.as_str())];
                let id = message.id;
                let mut document = serde_json::to_value(&message).unwrap_or_default();
                document["agent"] = to.as_str().into();
                let error = tell_command(&town, "agents.hook", &argv, &env, &document).err();
                inputs.send(Input::MessageTold { agent: to, message: id, error });
            });
            match spawned {
                Ok(_) => self.mailing.began(key),
                Err(error) => warn!(%error, "the hook cannot be told at present"),
            }
        }
    }

    /// The hook has ended.
    pub(super) fn message_told(&mut self, agent: AgentName, message: u64, error: Option<String>) {
        let key = (agent, message);
        if let Some(error) = &error {
            let wait = self.store.state().settings().alerts_retry;
            let again = self.mailing.failed(&key, self.clock.instant_after(wait.duration()));
            warn!(agent = %key.0, message, error, again, "the hook failed");
            if again {
                return;
            }
        }
        self.mailing.forget(&key);
        self.store.decide(self.now, |tx| tx.message_told(&key.0, message, error));
    }
}
