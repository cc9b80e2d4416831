//! Random histories of tasks, among all else that may happen to a town.

use proptest::prelude::*;
use yard_engine::bead::BeadChange;
use yard_engine::command::{NewConvoy, NewTask};
use yard_engine::dispatch::Category;
use yard_engine::{Command, Millis, WebhookFailure};

use crate::tasks::task_of;
use crate::town::{Town, exit, sling_of};

/// What may happen to tasks; numbers are taken modulo what there is.
#[derive(Debug, Clone)]
pub(crate) enum TaskHappening {
    Submitted {
        agent: u8,
        priority: i64,
        by_formula: bool,
        after: Option<usize>,
        attempts: u32,
        told: bool,
    },
    Cancelled(usize),
    Answered(usize),
    Lost(usize),
    WebhookTried {
        nth: usize,
        failed: bool,
        hopeless: bool,
    },
    Limits {
        queue: u64,
        per_agent: u64,
        inflight: u64,
        per_agent_inflight: u64,
        ttl: u64,
    },
    /// A person does something to a task as if it were any bead.
    Handled {
        nth: usize,
        how: usize,
    },
}

pub(crate) fn task_happening() -> impl Strategy<Value = TaskHappening> {
    use TaskHappening as H;
    let nth = || 0_usize..12;
    let new = (0_u8..3, -2_i64..3, any::<bool>(), proptest::option::of(nth()), 1_u32..3, any::<bool>());
    prop_oneof![
        6 => new.prop_map(|(agent, priority, by_formula, after, attempts, told)| {
            H::Submitted { agent, priority, by_formula, after, attempts, told }
        }),
        2 => nth().prop_map(H::Cancelled),
        4 => nth().prop_map(H::Answered),
        1 => nth().prop_map(H::Lost),
        2 => (nth(), any::<bool>(), any::<bool>())
            .prop_map(|(nth, failed, hopeless)| H::WebhookTried { nth, failed, hopeless }),
        1 => (1_u64..6, 1_u64..4, 1_u64..4, 1_u64..3, 0_u64..90_000).prop_map(
            |(queue, per_agent, inflight, per_agent_inflight, ttl)| {
                H::Limits { queue, per_agent, inflight, per_agent_inflight, ttl }
            }
        ),
        2 => (nth(), 0_usize..9).prop_map(|(nth, how)| H::Handled { nth, how }),
    ]
}

fn nth_task(town: &Town, nth: usize) -> Option<String> {
    let ids: Vec<String> = town.state.tasks().map(|task| task.id.to_string()).collect();
    ids.get(nth % ids.len().max(1)).cloned()
}

pub(crate) fn task_happens(town: &mut Town, happening: &TaskHappening) {
    match happening {
        TaskHappening::Submitted { agent, priority, by_formula, after, attempts, told } => {
            let after = after.and_then(|nth| nth_task(town, nth)).into_iter().collect();
            let task = NewTask {
                priority: *priority,
                formula: by_formula.then(|| "work".parse().expect("a name")),
                after,
                max_attempts: *attempts,
                callback: told.then(|| "https://x.example/".to_owned()),
                ..task_of(&format!("agent-{agent}"))
            };
            town.does(&Command::TaskSubmit { tasks: vec![task] });
        }
        TaskHappening::Cancelled(nth) => {
            let Some(id) = nth_task(town, *nth) else { return };
            let _ = town.command(&Command::TaskCancel { id, agent: None });
        }
        TaskHappening::Answered(nth) | TaskHappening::Lost(nth) => {
            let actions = town.state.live_dispatches().filter(|it| it.is_action());
            let actions: Vec<_> = actions.map(|it| it.id.clone()).collect();
            let Some(id) = actions.get(nth % actions.len().max(1)) else { return };
            let lost = matches!(happening, TaskHappening::Lost(_));
            town.act(|tx| {
                if lost {
                    return tx.action_lost(id);
                }
                tx.worker_running(id, None);
                tx.task_answered(id, serde_json::json!(1));
                tx.worker_ended(id, &exit(0, Category::Crash));
            });
        }
        TaskHappening::WebhookTried { nth, failed, hopeless } => {
            let due: Vec<_> = town.state.due_webhooks(town.now).map(|task| task.id.clone()).collect();
            let Some(id) = due.get(nth % due.len().max(1)) else { return };
            let failure = failed.then(|| WebhookFailure { error: "no".to_owned(), hopeless: *hopeless });
            town.act(|tx| tx.webhook_tried(id, failure));
        }
        TaskHappening::Limits { queue, per_agent, inflight, per_agent_inflight, ttl } => {
            town.configure(|settings| {
                let http = &mut settings.http;
                (http.max_queue, http.max_per_agent) = (*queue, *per_agent);
                (http.max_inflight, http.max_per_agent_inflight) = (*inflight, *per_agent_inflight);
                settings.results_ttl = Millis(*ttl);
            });
        }
        TaskHappening::Handled { nth, how } => {
            let Some(id) = nth_task(town, *nth) else { return };
            let _ = town.command(&handled(id, *how));
        }
    }
}

fn handled(id: String, how: usize) -> Command {
    match how {
        0 => Command::Cancel { id, at_once: false },
        1 => Command::Hold { id, held: true },
        2 => Command::Hold { id, held: false },
        3 => Command::Clear { bead: Some(id) },
        4 => Command::Retry { bead: id },
        5 => Command::BeadClose { ids: vec![id], reason: None },
        6 => Command::BeadUpdate {
            id,
            change: BeadChange { assignee: Some("bob".to_owned()), ..BeadChange::default() },
        },
        7 => Command::ConvoyCreate(Box::new(NewConvoy { beads: vec![id], ..NewConvoy::default() })),
        _ => Command::Sling(Box::new(sling_of(&[&id]))),
    }
}
