//! Contexts as they are read: flat, whatever few of them have. In memory that takes room only where it is.

use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use serde::Deserialize;

use super::{Assign, Context, ContextClosed, ContextExtras, ContextFields, Passed, RequestExtras, Resume};
use crate::agent::Order;
use crate::money::Usd;
use crate::seldom::Unfilled;
use crate::settings::Merge;
use crate::task::TaskPlace;
use crate::{AccountName, BeadId, ContextId, ConvoyId, FormulaName, Millis, RigName, Timestamp};

/// As it is read.
#[derive(Deserialize)]
pub(super) struct StoredFields {
    version: u32,
    work_bead_id: BeadId,
    target_rig: RigName,
    #[serde(default)]
    formula: Option<FormulaName>,
    #[serde(default)]
    args: Option<String>,
    #[serde(default)]
    vars: Option<String>,
    enqueued_at: Timestamp,
    #[serde(default)]
    merge: Option<Merge>,
    #[serde(default)]
    convoy: Option<ConvoyId>,
    #[serde(default)]
    base_branch: Option<String>,
    #[serde(default)]
    no_merge: bool,
    #[serde(default)]
    account: Option<AccountName>,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    hook_raw_bead: bool,
    #[serde(default)]
    owned: bool,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    dispatch_failures: u32,
    #[serde(default)]
    last_failure: Option<String>,
}

/// As it is read.
#[derive(Deserialize)]
pub(super) struct StoredContext {
    id: ContextId,
    fields: ContextFields,
    priority: u8,
    order: u64,
    #[serde(default)]
    not_before: Option<Timestamp>,
    #[serde(default)]
    deadline: Option<Timestamp>,
    #[serde(default)]
    rest_until: Option<Timestamp>,
    #[serde(default)]
    held: bool,
    #[serde(default)]
    held_by: Option<String>,
    #[serde(default)]
    executor: Option<String>,
    #[serde(default)]
    task: Option<TaskPlace>,
    #[serde(default)]
    assign: Option<Assign>,
    #[serde(default)]
    sent: Option<Order>,
    #[serde(default)]
    passed: Vec<Passed>,
    #[serde(default)]
    forced: bool,
    #[serde(default)]
    no_boot: bool,
    #[serde(default)]
    crashes: u32,
    #[serde(default)]
    unavailables: u32,
    #[serde(default)]
    active: Millis,
    #[serde(default)]
    cost: Usd,
    #[serde(default)]
    pushed_out: u32,
    #[serde(default)]
    ahead_from: Option<Timestamp>,
    #[serde(default)]
    resume: Resume,
    #[serde(default)]
    predecessor: Option<ContextId>,
    #[serde(default)]
    closed: Option<ContextClosed>,
}

impl From<StoredFields> for ContextFields {
    fn from(stored: StoredFields) -> Self {
        let StoredFields {
            version,
            work_bead_id,
            target_rig,
            formula,
            args,
            vars,
            enqueued_at,
            merge,
            convoy,
            base_branch,
            no_merge,
            account,
            agent,
            hook_raw_bead,
            owned,
            mode,
            dispatch_failures,
            last_failure,
        } = stored;
        let extras = RequestExtras { args, vars, merge, base_branch, account, agent, mode, last_failure };
        Self {
            version,
            work_bead_id,
            target_rig,
            formula,
            enqueued_at,
            convoy,
            no_merge,
            hook_raw_bead,
            owned,
            dispatch_failures,
            extras: extras.into(),
        }
    }
}

impl From<StoredContext> for Context {
    fn from(stored: StoredContext) -> Self {
        let StoredContext {
            id,
            fields,
            priority,
            order,
            not_before,
            deadline,
            rest_until,
            held,
            held_by,
            executor,
            task,
            assign,
            sent,
            passed,
            forced,
            no_boot,
            crashes,
            unavailables,
            active,
            cost,
            pushed_out,
            ahead_from,
            resume,
            predecessor,
            closed,
        } = stored;
        let extras = ContextExtras {
            not_before,
            deadline,
            rest_until,
            held_by,
            executor,
            task,
            assign,
            sent,
            passed,
            active,
            cost,
            pushed_out,
            ahead_from,
            resume,
            predecessor,
        };
        Self {
            id,
            fields,
            priority,
            order,
            held,
            forced,
            no_boot,
            crashes,
            unavailables,
            closed,
            extras: extras.into(),
        }
    }
}

impl Unfilled for RequestExtras {
    fn unfilled() -> &'static Self {
        static NOTHING: LazyLock<RequestExtras> = LazyLock::new(RequestExtras::default);
        &NOTHING
    }
}

impl Deref for ContextFields {
    type Target = RequestExtras;

    fn deref(&self) -> &RequestExtras {
        &self.extras
    }
}

impl DerefMut for ContextFields {
    fn deref_mut(&mut self) -> &mut RequestExtras {
        &mut self.extras
    }
}

impl Unfilled for ContextExtras {
    fn unfilled() -> &'static Self {
        static NOTHING: LazyLock<ContextExtras> = LazyLock::new(ContextExtras::default);
        &NOTHING
    }
}

impl Deref for Context {
    type Target = ContextExtras;

    fn deref(&self) -> &ContextExtras {
        &self.extras
    }
}

impl DerefMut for Context {
    fn deref_mut(&mut self) -> &mut ContextExtras {
        &mut self.extras
    }
}
