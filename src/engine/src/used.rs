//! What a request has used up of the budgets that a retry renews, so that a retry can be taken back.

use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::money::Usd;
use crate::{Millis, Timestamp};

/// What a request has used up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Used {
    /// Starts that failed in a row.
    pub dispatch_failures: u32,
    /// Attempts that crashed.
    pub crashes: u32,
    /// Attempts that found their service unavailable.
    pub unavailables: u32,
    /// How long attempts ran.
    pub active: Millis,
    /// What they cost.
    pub cost: Usd,
    /// Not before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Short rest after a failed start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest_until: Option<Timestamp>,
}

impl Context {
    /// What it has used up so far.
    pub(crate) fn used(&self) -> Used {
        Used {
            dispatch_failures: self.fields.dispatch_failures,
            crashes: self.crashes,
            unavailables: self.unavailables,
            active: self.active,
            cost: self.cost,
            not_before: self.not_before,
            rest_until: self.rest_until,
        }
    }

    /// Has used up this much, whatever it was before.
    pub(crate) fn set_used(&mut self, used: &Used) {
        self.fields.dispatch_failures = used.dispatch_failures;
        (self.crashes, self.unavailables) = (used.crashes, used.unavailables);
        (self.active, self.cost) = (used.active, used.cost);
        (self.not_before, self.rest_until) = (used.not_before, used.rest_until);
    }
}
