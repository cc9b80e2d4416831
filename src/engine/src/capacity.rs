//! The one capacity function: how much room each configured limit leaves. Status, dry runs, planning and the
//! console all ask here, so they cannot disagree.

use serde::{Deserialize, Serialize};

use crate::state::State;
use crate::{AccountName, RigName};

/// A configured limit on live workers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Limit {
    /// The whole town: `scheduler.max_polecats`.
    Town,
    /// One rig.
    Rig(RigName),
    /// One account.
    Account(AccountName),
}

impl Limit {
    /// The limits a worker of this rig and account counts against.
    pub(crate) fn of(rig: &RigName, account: Option<&AccountName>) -> impl Iterator<Item = Self> {
        let account = account.cloned().map(Self::Account);
        [Self::Town, Self::Rig(rig.clone())].into_iter().chain(account)
    }

    /// The name shown to people: `town`, `rig api`, `account main`.
    pub fn name(&self) -> String {
        match self {
            Self::Town => "town".to_owned(),
            Self::Rig(name) => format!("rig {name}"),
            Self::Account(name) => format!("account {name}"),
        }
    }
}

/// How much room a limit leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The configured maximum; none = unlimited.
    pub max: Option<u64>,
    /// Live workers that count against it.
    pub active: u64,
}

impl Room {
    /// Free places; none = unlimited.
    pub fn free(self) -> Option<u64> {
        self.max.map(|max| max.saturating_sub(self.active))
    }

    /// Whether one more fits.
    pub fn has_room(self) -> bool {
        self.free() != Some(0)
    }
}

impl State {
    /// The one capacity function.
    pub fn room(&self, limit: &Limit) -> Room {
        let max = match limit {
            Limit::Town => self.settings.town_cap(),
            Limit::Rig(name) => {
                let configured = self.settings.rigs.get(name).and_then(|r| r.max_polecats);
                configured.or_else(|| self.rigs.get(name).and_then(|r| r.max_polecats))
            }
            Limit::Account(name) => self.settings.accounts.get(name).and_then(|a| a.max_polecats),
        };
        Room { max, active: self.active.get(limit).copied().unwrap_or(0) }
    }

    /// Every limit that is configured or in use, town first.
    pub fn limits(&self) -> Vec<(Limit, Room)> {
        let rigs = self.rigs.keys().cloned().map(Limit::Rig);
        let accounts = self.settings.accounts.keys().cloned().map(Limit::Account);
        let all = std::iter::once(Limit::Town).chain(rigs).chain(accounts);
        let rooms = all.map(|limit| (limit.clone(), self.room(&limit)));
        rooms.filter(|(limit, room)| *limit == Limit::Town || room.max.is_some()).collect()
    }
}
