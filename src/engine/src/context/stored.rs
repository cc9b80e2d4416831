//! Contexts as they are stored: flat, whatever few of them have. In memory that takes room only where it is.

use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::{Assign, Context, ContextClosed, ContextExtras, ContextFields, Passed, RequestExtras, Resume};
use crate::agent::Order;
use crate::money::Usd;
use crate::seldom::Unfilled;
use crate::settings::Merge;
use crate::stored::is_default;
use crate::task::TaskPlace;
use crate::{AccountName, BeadId, ContextId, ConvoyId, FormulaName, Millis, RigName, Timestamp};

/// As it is stored.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredFields {
    version: u32,
    work_bead_id: BeadId,
    target_rig: RigName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    formula: Option<FormulaName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    args: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vars: Option<String>,
    enqueued_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    merge: Option<Merge>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    convoy: Option<ConvoyId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_branch: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    no_merge: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<AccountName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hook_raw_bead: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    owned: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    #[serde(default)]
    dispatch_failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_failure: Option<String>,
}

/// As it is stored.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredContext {
    id: ContextId,
    fields: ContextFields,
    priority: u8,
    order: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rest_until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    held: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    executor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<TaskPlace>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    assign: Option<Assign>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sent: Option<Order>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    passed: Vec<Passed>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    forced: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    no_boot: bool,
    #[serde(default)]
    crashes: u32,
    #[serde(default)]
    unavailables: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    active: Millis,
    #[serde(default, skip_serializing_if = "is_default")]
    cost: Usd,
    #[serde(default, skip_serializing_if = "is_default")]
    pushed_out: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ahead_from: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_default")]
    resume: Resume,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    predecessor: Option<ContextId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

impl From<ContextFields> for StoredFields {
    fn from(live: ContextFields) -> Self {
        let ContextFields {
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
            extras,
        } = live;
        let RequestExtras { args, vars, merge, base_branch, account, agent, mode, last_failure } =
            extras.into_fields();
        Self {
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

impl From<Context> for StoredContext {
    fn from(live: Context) -> Self {
        let Context {
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
            extras,
        } = live;
        let ContextExtras {
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
        } = extras.into_fields();
        Self {
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
