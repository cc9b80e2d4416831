//! What-if: a fork of the town in which an operator has changed something, by the same events a command would make. Each
//! change knows the command that brings it about.

use crate::context::ContextEvent;
use crate::event::{Event, Recorded};
use crate::rig::{RigEvent, RigSwitch};
use crate::settings::Settings;
use crate::state::State;
use crate::town::{Pause, TownEvent};
use crate::{AccountName, BeadId, RigName};

/// Who does things in a fork.
const ACTOR: &str = "what-if";

/// Something an operator may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// `scheduler.max_polecats`: slots of the town.
    MaxPolecats(i64),
    /// `rig.NAME.max_polecats`: slots of one rig; none leaves what `rig add` said.
    RigMaxPolecats(RigName, Option<u64>),
    /// `account.NAME.max_polecats`: slots of one account; none = no limit.
    AccountMaxPolecats(AccountName, Option<u64>),
    /// The priority of a scheduled bead.
    Priority(BeadId, u8),
    /// A scheduled bead is held back, or let go.
    Hold(BeadId, bool),
    /// Dispatch is paused until resumed, or goes on.
    Paused(bool),
    /// A rig is parked, or goes on.
    Parked(RigName, bool),
}

impl Change {
    /// The words after `ym` that bring it about.
    pub fn command_line(&self) -> Vec<String> {
        let words: Vec<String> = match self {
            Self::MaxPolecats(slots) => set("scheduler.max_polecats", slots),
            Self::RigMaxPolecats(rig, slots) => cap(&format!("rig.{rig}.max_polecats"), *slots),
            Self::AccountMaxPolecats(account, slots) => {
                cap(&format!("account.{account}.max_polecats"), *slots)
            }
            Self::Priority(bead, priority) => words(&["priority", bead.as_str(), &priority.to_string()]),
            Self::Hold(bead, held) => words(&[if *held { "hold" } else { "unhold" }, bead.as_str()]),
            Self::Paused(paused) => words(&["scheduler", if *paused { "pause" } else { "resume" }]),
            Self::Parked(rig, parked) => {
                words(&["rig", if *parked { "park" } else { "unpark" }, rig.as_str()])
            }
        };
        words
    }

    fn event(&self, state: &State) -> Option<Event> {
        let actor = ACTOR.to_owned();
        let context_of = |bead: &BeadId| state.beads.get(bead).and_then(|entry| entry.work.context.clone());
        Some(match self {
            Self::MaxPolecats(slots) => settings(state, |s| s.max_polecats = *slots),
            Self::RigMaxPolecats(rig, slots) => {
                settings(state, |s| s.rigs.entry(rig.clone()).or_default().max_polecats = *slots)
            }
            Self::AccountMaxPolecats(account, slots) => {
                settings(state, |s| s.accounts.entry(account.clone()).or_default().max_polecats = *slots)
            }
            Self::Priority(bead, priority) => {
                ContextEvent::Prioritised { id: context_of(bead)?, priority: *priority, actor }.into()
            }
            Self::Hold(bead, held) => ContextEvent::Held { id: context_of(bead)?, held: *held, actor }.into(),
            Self::Paused(true) => {
                let pause = Pause { by: actor, at: state.clock, reason: None, until: None };
                TownEvent::Paused { pause }.into()
            }
            Self::Paused(false) => TownEvent::Resumed { actor }.into(),
            Self::Parked(rig, parked) => {
                let switch = if *parked { RigSwitch::Park } else { RigSwitch::Unpark };
                RigEvent::Switched { name: rig.clone(), switch, actor }.into()
            }
        })
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn set(key: &str, value: &impl ToString) -> Vec<String> {
    words(&["config", "set", key, &value.to_string()])
}

fn cap(key: &str, slots: Option<u64>) -> Vec<String> {
    slots.map_or_else(|| words(&["config", "unset", key]), |slots| set(key, &slots))
}

fn settings(state: &State, change: impl FnOnce(&mut Settings)) -> Event {
    let mut settings = state.settings.clone();
    change(&mut settings);
    TownEvent::SettingsChanged { settings: Box::new(settings) }.into()
}

impl State {
    /// A fork of the town in which these changes were made. Priorities and holds concern beads that are scheduled; of
    /// others they change nothing, as the commands would.
    #[must_use]
    pub fn what_if(&self, changes: &[Change]) -> State {
        let mut fork = self.clone();
        for change in changes {
            if let Some(event) = change.event(&fork) {
                let (seq, at) = (fork.seq.next(), fork.clock);
                fork.apply(&Recorded { seq, at, event });
            }
        }
        fork
    }
}
