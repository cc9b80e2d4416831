//! What is done to agents: taking back what one has or is to claim, and forgetting one. Nothing takes either back, so both
//! ask first.

use yard_engine::agent::Agent;
use yard_engine::readiness::ReasonCode;
use yard_engine::{AgentName, BeadId, State};

use super::menus::{ask, leave};
use super::perform::words;
use crate::actions::Act;
use crate::console::Console;
use crate::crew::{self, Held};
use crate::layers::{Item, Menu, Pick};
use crate::text::shown;

/// Something that can be taken back from an agent.
pub(super) struct Taken {
    agent: AgentName,
    bead: BeadId,
    /// It has not claimed it yet.
    ordered: bool,
    /// What becomes of the bead.
    fate: String,
}

impl Taken {
    fn of(state: &State, agent: &Agent, held: &Held<'_>) -> Option<Self> {
        let ordered = match held {
            Held::Claim(_) => false,
            Held::Order(..) => true,
            // Only its tracker can change that.
            Held::InHand(_) => return None,
        };
        let (agent, bead) = (agent.name().clone(), held.bead().clone());
        let fate = fate(state, &agent, &bead);
        Some(Self { agent, bead, ordered, fate })
    }

    fn line(&self) -> Vec<String> {
        words(&["agent", "release", self.bead.as_str(), "--as", self.agent.as_str()])
    }

    fn question(&self) -> Menu {
        let Self { agent, bead, ordered, fate } = self;
        let mut notes = vec![fate.clone()];
        let title = if *ordered {
            format!("take {bead} back before {agent} claims it?")
        } else {
            notes.push(format!("What {agent} has not handed in may be lost."));
            format!("take {bead} from {agent}?")
        };
        notes
            .push(format!("It counts as a sign of life of {agent}, who may be sent something else at once."));
        ask(title, notes, "take it back", vec![self.line()])
    }

    fn item(&self, key: char) -> Item {
        let what = if self.ordered { "take back the order for" } else { "take back" };
        let title = format!("{what} {} from {}", self.bead, self.agent);
        Item::new(key, title, "asks first", Pick::Ask(Box::new(self.question())))
    }
}

/// What becomes of a bead that is taken back from an agent.
fn fate(state: &State, agent: &AgentName, bead: &BeadId) -> String {
    let work = state.bead(bead).map(|entry| &entry.work);
    let live = work.and_then(|work| work.live.as_ref()).and_then(|id| state.dispatch(id));
    let waiting = work.and_then(|work| work.context.as_ref());
    let context = live.map(|live| &live.context).or(waiting).and_then(|id| state.context(id));
    let assign = context.and_then(|context| context.assign.as_ref());
    let again = "is offered it again after a while";
    match assign {
        Some(assign) if assign.own => format!("Nobody else has asked for {bead}."),
        Some(assign) if assign.to.is_some() => format!("{bead} is for {agent} alone, who {again}."),
        _ if crew::track_owner(state, bead) == Some(agent) => format!("Its track is {agent}'s, who {again}."),
        _ => format!("Others are offered {bead}; {agent} {again}."),
    }
}

fn all_of(state: &State, agent: &Agent) -> Vec<Taken> {
    crew::held(state, agent).filter_map(|held| Taken::of(state, agent, &held)).collect()
}

/// What an agent could give back: everything that the selected one has, or the selected bead. Never empty; the error
/// says why there is nothing.
pub(super) fn releasable(console: &Console) -> Result<Vec<Taken>, String> {
    let state = console.state();
    if let Some(agent) = console.agent().and_then(|name| state.agent(&name)) {
        let all = all_of(state, agent);
        let name = agent.name();
        return match (all.is_empty(), state.in_hand(name).next()) {
            (false, _) => Ok(all),
            (true, Some(bead)) => {
                Err(format!("{name} has not claimed {bead}: its tracker says that it has it"))
            }
            (true, None) => Err(format!("{name} has nothing to give back")),
        };
    }
    let Some(bead) = console.bead() else { return Err("no agent is selected: 4 lists them".to_owned()) };
    let taken = crew::holder(state, &bead).and_then(|(agent, held)| Taken::of(state, agent, &held));
    taken.map(|taken| vec![taken]).ok_or_else(|| format!("no agent has {bead}"))
}

/// The agent that can be forgotten; the error says why none can.
pub(super) fn retirable(console: &Console) -> Result<AgentName, String> {
    let Some(name) = console.agent() else { return Err("no agent is selected: 4 lists them".to_owned()) };
    let claim = console.state().claims_of(&name).next().cloned();
    match claim {
        Some(claim) => Err(format!("{name} still has {}: u takes it back first", claim.bead())),
        None => Ok(name),
    }
}

/// Whether to take something back, and what if there are several.
pub(super) fn release(console: &Console) -> Menu {
    let all = releasable(console).unwrap_or_default();
    match all.as_slice() {
        [one] => one.question(),
        many => {
            let mut items: Vec<Item> = ('1'..='9').zip(many).map(|(key, taken)| taken.item(key)).collect();
            items.push(leave());
            let at = items.len() - 1;
            Menu { title: "take back which?".to_owned(), notes: Vec::new(), items, at }
        }
    }
}

/// The choice of taking a bead back from the agent that has it.
pub(super) fn release_item(state: &State, bead: &BeadId, key: char) -> Option<Item> {
    let (agent, held) = crew::holder(state, bead)?;
    Taken::of(state, agent, &held).map(|taken| taken.item(key))
}

/// Whether to forget an agent.
pub(super) fn retire(name: &AgentName) -> Menu {
    let notes = vec![
        "Nothing is sent to it any more; what it has not claimed is offered to others.".to_owned(),
        format!("ym agent register {name} --program P makes it known again."),
    ];
    ask(format!("retire {name}?"), notes, "retire it", vec![words(&["agent", "retire", name.as_str()])])
}

/// Everything that applies to an agent, from narrow to broad.
pub(super) fn act(console: &Console, name: &AgentName) -> Menu {
    let state = console.state();
    let Some(agent) = state.agent(name) else { return Menu::default() };
    let mut items = vec![Item::new('w', "why it is sent nothing now", "", Pick::Act(Act::Why))];
    let taken = all_of(state, agent);
    match taken.as_slice() {
        [one] => items.push(one.item('u')),
        many => items.extend(('1'..='9').zip(many).map(|(key, taken)| taken.item(key))),
    }
    items.push(match retirable(console) {
        Ok(name) => Item::new('X', "retire it", "asks first", Pick::Ask(Box::new(retire(&name)))),
        Err(why) => Item::new('X', "retire it", "not while it has a bead", Pick::Nothing(why)),
    });
    // Nothing is chosen at first, as in the menu of beads.
    let at = items.len();
    let title = format!("act on {} ({})", name, agent.state.as_str());
    Menu { title, notes: Vec::new(), items, at }
}

/// The command lines about an agent, to be copied.
pub(super) fn lines(console: &Console, name: &AgentName) -> Vec<Item> {
    let state = console.state();
    let mut lines = vec![('c', words(&["agent", "why", "--as", name.as_str()]))];
    let taken = state.agent(name).map(|agent| all_of(state, agent)).unwrap_or_default();
    lines.extend(taken.first().map(|taken| ('u', taken.line())));
    lines.push(('X', words(&["agent", "retire", name.as_str()])));
    let item = |(key, line): (char, Vec<String>)| {
        let line = format!("ym {}", line.join(" "));
        Item::new(key, "command line", line.clone(), Pick::Copy("the command line".to_owned(), line))
    };
    lines.into_iter().map(item).collect()
}

/// What is left to do about a bead that waits for an agent; none if it does not. Registering one is left to be typed:
/// only whoever starts an agent knows what it is.
pub(super) fn more_agents(state: &State, bead: &BeadId) -> Option<Item> {
    state.reasons(bead).iter().find(|reason| reason.code == ReasonCode::AwaitingAgent)?;
    let context = state.bead(bead)?.work.context.as_ref().and_then(|id| state.context(id))?;
    let nothing = |words: String| Item::new('1', words.clone(), "", Pick::Nothing(words));
    let register = |name: &str, line: String| {
        let note = format!("ym agent register {name} --program P");
        Item::new('1', format!("make {name} known, on the prompt"), note, Pick::Command(line))
    };
    if let Some(order) = &context.sent {
        return Some(nothing(format!("{} is to claim it; otherwise others are offered it", order.agent)));
    }
    let named = context.assign.as_ref().and_then(|assign| assign.to.as_ref());
    Some(match named.or_else(|| crew::track_owner(state, bead)) {
        Some(name) if state.agent(name).is_some() => {
            nothing(format!("it waits for {}: nothing else helps", shown(name.as_str())))
        }
        Some(name) => register(name.as_str(), format!("agent register {name} --program ")),
        None => register("NAME", "agent register ".to_owned()),
    })
}
