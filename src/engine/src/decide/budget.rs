//! Minding budgets: telling a person when most of one is spent, and ending what is paid from one that is used up.

use std::collections::BTreeSet;

use super::alerts::Condition;
use crate::DispatchId;
use crate::alert::AlertKind;
use crate::dispatch::StopReason;
use crate::spending::{Budget, Level, Spent};
use crate::tx::Tx;

impl Tx<'_> {
    /// Does what the level of a budget calls for. A person is told once, however often this is asked.
    pub(super) fn mind_budget(&mut self, budget: &Budget, actor: &str) {
        let Some(spent) = self.state().spent(budget) else { return };
        let Some(level) = spent.level() else { return };
        let ended = match level {
            Level::Warning => 0,
            Level::Spent => self.stop_spending(budget, actor),
        };
        let (name, ids) = match budget {
            Budget::Bead(bead) => (bead.to_string(), vec![bead.to_string()]),
            Budget::Convoy(convoy) => (convoy.to_string(), vec![convoy.to_string()]),
            Budget::Daily => ("today's work".to_owned(), Vec::new()),
            Budget::Monthly => ("this month's work".to_owned(), Vec::new()),
        };
        let amounts = format!("{name} has cost {} of {} ({})", spent.spent, spent.limit, budget.setting());
        let (kind, message) = match level {
            Level::Warning => (AlertKind::CostWarning, amounts),
            Level::Spent => {
                let workers = if ended == 1 { "worker is" } else { "workers are" };
                (AlertKind::CostLimit, format!("{amounts}: {ended} {workers} ended, nothing more starts"))
            }
        };
        self.raise(Condition { key: budget.key(level), kind, message, ids, watchers: Vec::new() });
    }

    /// Limits have changed: alerts that no longer hold end, and whatever runs on a budget that is now used up ends too.
    pub(super) fn mind_all_budgets(&mut self) {
        self.end_cost_alerts();
        let beads: BTreeSet<_> = self.state().live_dispatches().map(|d| d.id.bead().clone()).collect();
        for bead in beads {
            for budget in self.state().budgets_of(&bead) {
                self.mind_budget(&budget, "scheduler");
            }
        }
    }

    /// Ends every live dispatch that is paid from a budget; says how many.
    fn stop_spending(&mut self, budget: &Budget, actor: &str) -> usize {
        let state = self.state();
        let paid = state.live_dispatches().filter(|dispatch| match budget {
            Budget::Bead(bead) => dispatch.id.bead() == bead,
            Budget::Convoy(convoy) => state.convoys_tracking(dispatch.id.bead()).any(|c| c.id == *convoy),
            Budget::Daily | Budget::Monthly => true,
        });
        let paid: Vec<DispatchId> = paid.map(|dispatch| dispatch.id.clone()).collect();
        paid.iter().filter(|id| self.terminate(id, StopReason::CostLimitReached, false, actor)).count()
    }

    /// Ends the alerts of budgets that were raised or renewed, or that have since been used up altogether.
    pub(super) fn end_cost_alerts(&mut self) {
        let state = self.state();
        let over = state.all_alerts().filter(|alert| {
            let Some((budget, level)) = Budget::of_key(&alert.key) else { return false };
            state.spent(&budget).and_then(Spent::level) != Some(level)
        });
        for key in over.map(|alert| alert.key.clone()).collect::<Vec<_>>() {
            self.end_alert(&key);
        }
    }
}
