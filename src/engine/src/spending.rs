//! What work costs, and what it may cost: per request of a bead, per convoy, per day and per month (UTC). A used-up
//! budget keeps its work from starting, as the reason `cost-limit`, until it is raised, renewed, or a person retries.

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::money::Usd;
use crate::state::State;
use crate::{BeadId, ConvoyId, DispatchId, Timestamp};

/// A person is told when this much of a budget is spent, in percent.
const WARNING: u64 = 80;

/// What the town has spent in the current day and month.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spending {
    /// When anything was last spent; tells which day and month these are.
    at: Timestamp,
    today: Usd,
    this_month: Usd,
}

impl Spending {
    fn add(&mut self, usd: Usd, at: Timestamp) {
        (self.today, self.this_month) = (self.on_day(at), self.in_month(at));
        self.at = self.at.max(at);
        self.today += usd;
        self.this_month += usd;
    }

    fn on_day(&self, now: Timestamp) -> Usd {
        if day_of(self.at) == day_of(now) { self.today } else { Usd::ZERO }
    }

    fn in_month(&self, now: Timestamp) -> Usd {
        if month_of(self.at) == month_of(now) { self.this_month } else { Usd::ZERO }
    }
}

fn day_of(at: Timestamp) -> NaiveDate {
    DateTime::<Utc>::from_timestamp_millis(at.as_millis()).unwrap_or_default().date_naive()
}

fn month_of(at: Timestamp) -> Option<NaiveDate> {
    day_of(at).with_day(1)
}

fn start_of(day: Option<NaiveDate>) -> Timestamp {
    let midnight = day.and_then(|day| day.and_hms_opt(0, 0, 0));
    Timestamp::from_millis(midnight.map_or(i64::MAX, |time| time.and_utc().timestamp_millis()))
}

/// Something that may be spent only so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Budget {
    /// What one request of a bead may cost, over all its attempts.
    Bead(BeadId),
    /// What the beads of one convoy may cost.
    Convoy(ConvoyId),
    /// What the town may spend in a day.
    Daily,
    /// What the town may spend in a month.
    Monthly,
}

/// How far a budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A person should know.
    Warning,
    /// Used up.
    Spent,
}

impl Budget {
    /// The condition of an alert about this budget.
    pub(crate) fn key(&self, level: Level) -> String {
        let word = match level {
            Level::Warning => "cost-warning",
            Level::Spent => "cost-limit",
        };
        match self {
            Self::Bead(id) => format!("{word}:bead:{id}"),
            Self::Convoy(id) => format!("{word}:convoy:{id}"),
            Self::Daily => format!("{word}:daily"),
            Self::Monthly => format!("{word}:monthly"),
        }
    }

    /// The budget and level that the condition of an alert is about.
    pub(crate) fn of_key(key: &str) -> Option<(Self, Level)> {
        let (word, rest) = key.split_once(':')?;
        let level = match word {
            "cost-warning" => Level::Warning,
            "cost-limit" => Level::Spent,
            _ => return None,
        };
        let budget = match (rest, rest.split_once(':')) {
            (_, Some(("bead", id))) => Self::Bead(BeadId::parse(id).ok()?),
            (_, Some(("convoy", id))) => Self::Convoy(ConvoyId::parse(id).ok()?),
            ("daily", None) => Self::Daily,
            ("monthly", None) => Self::Monthly,
            _ => return None,
        };
        Some((budget, level))
    }

    /// The setting that limits it.
    pub fn setting(&self) -> &'static str {
        match self {
            Self::Bead(_) => "cost.per_bead",
            Self::Convoy(_) => "cost.per_convoy",
            Self::Daily => "cost.daily",
            Self::Monthly => "cost.monthly",
        }
    }
}

/// How much of a budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// So much is.
    pub spent: Usd,
    /// So much may be.
    pub limit: Usd,
}

impl Spent {
    /// Whether a person should know, or nothing more may be spent.
    pub fn level(self) -> Option<Level> {
        if self.spent >= self.limit {
            Some(Level::Spent)
        } else if self.spent >= self.limit.percent(WARNING) {
            Some(Level::Warning)
        } else {
            None
        }
    }
}

impl State {
    /// How much of a budget is spent now; none where nothing limits it.
    pub fn spent(&self, budget: &Budget) -> Option<Spent> {
        let cost = &self.settings.cost;
        let (limit, spent) = match budget {
            Budget::Bead(id) => (cost.per_bead, self.current_context(id).map_or(Usd::ZERO, |c| c.cost)),
            Budget::Convoy(id) => {
                (cost.per_convoy, self.convoys.get(id).map_or(Usd::ZERO, |convoy| convoy.cost))
            }
            Budget::Daily => (cost.daily, self.spending.on_day(self.clock)),
            Budget::Monthly => (cost.monthly, self.spending.in_month(self.clock)),
        };
        limit.map(|limit| Spent { spent, limit })
    }

    /// Whether nothing more may be spent of it.
    pub(crate) fn is_spent(&self, budget: &Budget) -> bool {
        self.spent(budget).and_then(Spent::level) == Some(Level::Spent)
    }

    /// What was spent today and this month, whatever the limits.
    pub fn spent_lately(&self) -> (Usd, Usd) {
        (self.spending.on_day(self.clock), self.spending.in_month(self.clock))
    }

    /// The open context of a bead, or that of its last dispatch.
    fn current_context(&self, bead: &BeadId) -> Option<&Context> {
        let work = self.work(bead)?;
        let id = work.context.as_ref().or(work.last_context.as_ref())?;
        self.context(id)
    }

    /// The budgets that what this bead costs is taken from.
    pub(crate) fn budgets_of(&self, bead: &BeadId) -> Vec<Budget> {
        let convoys = self.convoys_tracking(bead).map(|convoy| Budget::Convoy(convoy.id.clone()));
        let own = [Budget::Bead(bead.clone())].into_iter().chain(convoys);
        own.chain([Budget::Daily, Budget::Monthly]).collect()
    }

    /// Books what a dispatch cost.
    pub(crate) fn charge(&mut self, id: &DispatchId, usd: Usd, at: Timestamp) {
        let bead = id.bead().clone();
        if let Some(work) = self.work_mut(&bead) {
            work.cost += usd;
        }
        let context = self.dispatch(id).map(|dispatch| dispatch.context.clone());
        if let Some(context) = context.and_then(|context| self.context_mut(&context)) {
            context.cost += usd;
            let id = context.id.clone();
            self.touch_context(&id);
        }
        let convoys: Vec<ConvoyId> = self.convoys_tracking(&bead).map(|convoy| convoy.id.clone()).collect();
        for convoy in convoys {
            let budget = Budget::Convoy(convoy.clone());
            let before = self.is_spent(&budget);
            if let Some(convoy) = self.convoys.get_mut(&convoy) {
                convoy.cost += usd;
            }
            self.touch_convoy(&convoy);
            if before != self.is_spent(&budget) {
                let tracked = self.convoys.get(&convoy).map(|c| c.tracked.clone()).unwrap_or_default();
                for bead in &tracked {
                    self.refresh_bead(bead);
                }
            }
        }
        self.spending.add(usd, at);
        self.touch_town();
        self.refresh_budget();
    }

    /// Notices that the town's budget is used up or renewed, and tells the queue.
    pub(crate) fn refresh_budget(&mut self) {
        let renewed_at = self.derive_renewal();
        if std::mem::replace(&mut self.renewed_at, renewed_at) != renewed_at {
            for id in self.open_contexts.clone() {
                self.refresh_context(&id);
            }
        }
    }

    /// When a person's warning about the day or the month is out of date.
    pub(crate) fn warnings_end(&self) -> Option<Timestamp> {
        let (day, month) = (day_of(self.spending.at), month_of(self.spending.at));
        let warned = |budget: Budget| self.alert_of(&budget.key(Level::Warning)).is_some();
        let day = warned(Budget::Daily).then(|| start_of(day.checked_add_days(Days::new(1))));
        let next = || start_of(month.and_then(|first| first.checked_add_months(Months::new(1))));
        day.into_iter().chain(warned(Budget::Monthly).then(next)).min()
    }

    /// When the town may spend again, if its budget for the day or the month is used up.
    pub(crate) fn derive_renewal(&self) -> Option<Timestamp> {
        let today = day_of(self.clock);
        let tomorrow = || start_of(today.checked_add_days(Days::new(1)));
        let next_month =
            || start_of(month_of(self.clock).and_then(|day| day.checked_add_months(Months::new(1))));
        let day = self.is_spent(&Budget::Daily).then(tomorrow);
        let month = self.is_spent(&Budget::Monthly).then(next_month);
        day.max(month)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_an_alert_says_what_it_is_about() {
        let bead = Budget::Bead(BeadId::parse("gt-a").expect("an id"));
        let convoy = Budget::Convoy(ConvoyId::parse("hq-cv-abcde").expect("an id"));
        for budget in [bead, convoy, Budget::Daily, Budget::Monthly] {
            for level in [Level::Warning, Level::Spent] {
                assert_eq!(Budget::of_key(&budget.key(level)), Some((budget.clone(), level)));
            }
        }
        for other in ["config", "bead:gt-a", "cost-limit:yearly", "cost-limit:rig:x"] {
            assert_eq!(Budget::of_key(other), None);
        }
    }

    #[test]
    fn a_day_and_a_month_begin_with_nothing_spent() {
        let at = |text| Timestamp::parse_rfc3339(text).expect("a time");
        let usd = |n| Usd::from_dollars(n).expect("an amount");
        let mut spending = Spending::default();
        spending.add(usd(3.0), at("2026-11-29T23:59:59.999Z"));
        spending.add(usd(2.0), at("2026-11-30T00:00:00Z"));
        let evening = at("2026-11-30T20:00:00Z");
        assert_eq!((spending.on_day(evening), spending.in_month(evening)), (usd(2.0), usd(5.0)));
        let later = at("2026-12-01T00:00:00Z");
        assert_eq!((spending.on_day(later), spending.in_month(later)), (Usd::ZERO, Usd::ZERO));
    }
}
