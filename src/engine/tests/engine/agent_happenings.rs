//! Random histories of agents, among all else that may happen to a town.

use proptest::prelude::*;
use yard_engine::agent::Registration;
use yard_engine::command::{AgentStatus, AssignTo, ClaimEnd};
use yard_engine::settings::RigAssign;
use yard_engine::{Command, Millis};

use crate::agents::{agent_name, done, registration, released};
use crate::town::{Town, rig_name, sling_of};

const NAMES: [&str; 3] = ["fern", "moss", "reed"];

/// What may happen to agents; numbers are taken modulo what there is.
#[derive(Debug, Clone)]
pub(crate) enum AgentHappening {
    Registered { who: usize, skilled: bool, auto_claim: Option<bool> },
    Retired(usize),
    Heard(usize),
    Says { who: usize, what: usize },
    Reads { who: usize, keep: bool },
    Claims { who: usize, bead: usize },
    Ends { who: usize, bead: usize, how: usize },
    GivenAway { bead: usize, to: Option<usize> },
    Configured { tracks: bool, auto_claim: bool, assign: usize, hook: bool, short: bool },
    Told,
}

pub(crate) fn agent_happening() -> impl Strategy<Value = AgentHappening> {
    use AgentHappening as H;
    let who = || 0_usize..NAMES.len();
    let bead = || 0_usize..20;
    prop_oneof![
        4 => (who(), any::<bool>(), proptest::option::of(any::<bool>()))
            .prop_map(|(who, skilled, auto_claim)| H::Registered { who, skilled, auto_claim }),
        1 => who().prop_map(H::Retired),
        3 => who().prop_map(H::Heard),
        2 => (who(), 0_usize..4).prop_map(|(who, what)| H::Says { who, what }),
        2 => (who(), any::<bool>()).prop_map(|(who, keep)| H::Reads { who, keep }),
        6 => (who(), bead()).prop_map(|(who, bead)| H::Claims { who, bead }),
        5 => (who(), bead(), 0_usize..4).prop_map(|(who, bead, how)| H::Ends { who, bead, how }),
        6 => (bead(), proptest::option::of(who())).prop_map(|(bead, to)| H::GivenAway { bead, to }),
        2 => (any::<bool>(), any::<bool>(), 0_usize..3, any::<bool>(), any::<bool>()).prop_map(
            |(tracks, auto_claim, assign, hook, short)| {
                H::Configured { tracks, auto_claim, assign, hook, short }
            }
        ),
        1 => Just(H::Told),
    ]
}

fn nth_bead(town: &Town, nth: usize) -> Option<String> {
    let ids: Vec<String> = town.state.beads().map(|entry| entry.bead.id.to_string()).collect();
    ids.get(nth % ids.len().max(1)).cloned()
}

pub(crate) fn agent_happens(town: &mut Town, happening: &AgentHappening) {
    let name = |who: &usize| NAMES[who % NAMES.len()].to_owned();
    match happening {
        AgentHappening::Registered { who, skilled, auto_claim } => {
            let skills = skilled.then(|| "work on gt".to_owned());
            let of = Registration { skills, auto_claim: *auto_claim, ..registration(&name(who)) };
            town.does(&Command::AgentRegister(Box::new(of)));
        }
        AgentHappening::Retired(who) => {
            let _ = town.command(&Command::AgentRetire { agent: name(who) });
        }
        AgentHappening::Heard(who) => {
            let _ = town.command(&Command::AgentHeartbeat { agent: name(who) });
        }
        AgentHappening::Says { who, what } => {
            let all = [AgentStatus::Idle, AgentStatus::Working, AgentStatus::Blocked, AgentStatus::Offline];
            let (agent, status) = (name(who), all[what % all.len()]);
            let _ = town.command(&Command::AgentStatus { agent, status, note: None });
        }
        AgentHappening::Reads { who, keep } => {
            let _ = town.command(&Command::AgentInbox { agent: name(who), keep: *keep });
        }
        AgentHappening::Claims { who, bead } => {
            let agent = name(who);
            let ordered = town
                .state
                .open_contexts()
                .find(|context| context.sent.as_ref().is_some_and(|order| order.agent.as_str() == agent));
            let ordered = ordered.map(|context| context.bead().to_string()).filter(|_| bead % 2 == 0);
            let Some(bead) = ordered.or_else(|| nth_bead(town, *bead)) else { return };
            let _ = town.claims(&agent, &bead);
        }
        AgentHappening::Ends { who, bead, how } => {
            let agent = name(who);
            let known = town.state.agent(&agent_name(&agent)).is_some();
            let held = town.state.claims_of(&agent_name(&agent)).next().map(|id| id.bead().to_string());
            let Some(bead) = held.filter(|_| known).or_else(|| nth_bead(town, *bead)) else { return };
            let failed = |unavailable| ClaimEnd::Failed { message: "no".to_owned(), unavailable };
            let how = [done(), released(), failed(false), failed(true)][how % 4].clone();
            let _ = town.ends(&agent, &bead, how);
        }
        AgentHappening::GivenAway { bead, to } => {
            let Some(bead) = nth_bead(town, *bead) else { return };
            let mut request = sling_of(&[&bead]);
            request.assign =
                Some(to.map_or(AssignTo::Anyone, |who| AssignTo::Agent(agent_name(&name(&who)))));
            let _ = town.command(&Command::Sling(Box::new(request)));
        }
        AgentHappening::Configured { tracks, auto_claim, assign, hook, short } => {
            town.configure(|settings| {
                let agents = &mut settings.agents;
                (agents.tracks, agents.auto_claim) = (*tracks, *auto_claim);
                agents.hook = hook.then(|| vec!["tell".to_owned()]);
                agents.lease = if *short { Millis::seconds(30) } else { Millis::minutes(10) };
                let how = [RigAssign::Off, RigAssign::Slung, RigAssign::Ready][assign % 3];
                settings.rigs.entry(rig_name("gastown")).or_default().assign = how;
            });
        }
        AgentHappening::Told => {
            let untold = town.state.untold_messages();
            let Some((to, message)) = untold.first().map(|(to, message)| (to.clone(), message.id())) else {
                return;
            };
            town.act(|tx| tx.message_told(&to, message, None));
        }
    }
}
