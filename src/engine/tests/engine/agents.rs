//! Agents: who is known and what they are doing, orders and what becomes of them, claims with leases and tokens.

use yard_engine::agent::{AgentState, Message, Process, Registration};
use yard_engine::alert::AlertKind;
use yard_engine::bead::BeadStatus;
use yard_engine::command::{AgentStatus, AssignTo, ClaimEnd};
use yard_engine::readiness::ReasonCode;
use yard_engine::settings::RigAssign;
use yard_engine::{AgentName, Answer, BeadId, Command, DispatchId, Millis, Refusal, Standing};

use crate::town::{Town, bead_id, rig_name};

pub(crate) fn agent_name(text: &str) -> AgentName {
    AgentName::parse(text).expect("a name")
}

/// What an agent without any particular skill says about itself.
pub(crate) fn registration(name: &str) -> Registration {
    Registration {
        name: agent_name(name),
        program: "test".to_owned(),
        model: None,
        skills: None,
        auto_claim: None,
        process: None,
    }
}

pub(crate) fn done() -> ClaimEnd {
    ClaimEnd::Done { reason: None }
}

pub(crate) fn released() -> ClaimEnd {
    ClaimEnd::Released { note: None }
}

impl Town {
    pub(crate) fn agent(&mut self, name: &str) {
        self.does(&Command::AgentRegister(Box::new(registration(name))));
    }

    pub(crate) fn agents(&mut self, names: &[&str]) {
        for name in names {
            self.agent(name);
        }
    }

    pub(crate) fn skilled(&mut self, name: &str, skills: &str) {
        let skills = Some(skills.to_owned());
        self.does(&Command::AgentRegister(Box::new(Registration { skills, ..registration(name) })));
    }

    pub(crate) fn gives_away(&mut self, ids: &[&str]) {
        for id in ids {
            self.sling_with(id, |request| request.assign = Some(AssignTo::Anyone));
        }
    }

    pub(crate) fn claims(&mut self, agent: &str, bead: &str) -> Result<(DispatchId, bool), Refusal> {
        let command = Command::AgentClaim { agent: agent.to_owned(), bead: bead.to_owned() };
        self.command(&command).map(|answer| match answer {
            Answer::Claimed { dispatch_id, already, .. } => (dispatch_id, already),
            other => panic!("{other:?}"),
        })
    }

    pub(crate) fn claimed(&mut self, agent: &str, bead: &str) -> DispatchId {
        self.claims(agent, bead).expect("it may be claimed").0
    }

    pub(crate) fn ends(&mut self, agent: &str, bead: &str, how: ClaimEnd) -> Result<Answer, Refusal> {
        let (agent, bead) = (agent.to_owned(), bead.to_owned());
        self.command(&Command::AgentEnds { agent, bead, token: None, how })
    }

    pub(crate) fn beats(&mut self, agent: &str) {
        self.does(&Command::AgentHeartbeat { agent: agent.to_owned() });
    }

    pub(crate) fn says(&mut self, agent: &str, status: AgentStatus) {
        self.does(&Command::AgentStatus { agent: agent.to_owned(), status, note: None });
    }

    pub(crate) fn state_of(&self, agent: &str) -> AgentState {
        self.state.agent(&agent_name(agent)).expect("it is registered").state
    }

    /// The beads that an agent has orders for, and those it is told are its no longer.
    pub(crate) fn mail(&self, agent: &str) -> (Vec<BeadId>, Vec<BeadId>) {
        let (mut orders, mut notices) = (Vec::new(), Vec::new());
        for message in self.state.inbox(&agent_name(agent)) {
            match message {
                Message::Order { bead, .. } => orders.push(bead),
                Message::Notice(notice) => notices.push(notice.bead),
            }
        }
        (orders, notices)
    }

    pub(crate) fn orders(&self, agent: &str) -> Vec<BeadId> {
        self.mail(agent).0
    }

    /// Who was sent which bead.
    pub(crate) fn sent(&self) -> Vec<(String, String)> {
        let open = self.state.open_contexts();
        let mut sent: Vec<_> =
            open.filter_map(|c| Some((c.bead().to_string(), c.sent.as_ref()?.agent.to_string()))).collect();
        sent.sort();
        sent
    }
}

pub(crate) fn ids(all: &[&str]) -> Vec<BeadId> {
    all.iter().map(|id| bead_id(id)).collect()
}

pub(crate) fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(bead, agent)| ((*bead).to_owned(), (*agent).to_owned())).collect()
}

#[test]
fn a_ready_bead_and_an_idle_agent_find_each_other_whoever_comes_first() {
    let mut town = Town::new();
    town.agent("fern");
    town.beads(&["gt-a", "gt-b"]);
    town.gives_away(&["gt-a"]);
    town.pass();
    assert_eq!((town.orders("fern"), town.standing("gt-a")), (ids(&["gt-a"]), Standing::Assigned));
    town.gives_away(&["gt-b"]);
    town.pass();
    assert_eq!(town.codes("gt-b"), [ReasonCode::AwaitingAgent]);
    town.agent("moss");
    town.pass();
    assert_eq!(town.sent(), pairs(&[("gt-a", "fern"), ("gt-b", "moss")]));
}

#[test]
fn what_is_given_away_is_never_started_here_nor_counted_as_a_worker() {
    let mut town = Town::deferred(1);
    town.beads(&["gt-a", "gt-b"]);
    town.gives_away(&["gt-a"]);
    town.sling(&["gt-b"]);
    town.agent("fern");
    assert_eq!(town.pass().started, ["gt-b"]);
    town.claimed("fern", "gt-a");
    assert_eq!(town.state.live_workers().count(), 1);
    assert_eq!((town.standing("gt-a"), town.state_of("fern")), (Standing::Running, AgentState::Working));
    town.ends("fern", "gt-a", done()).expect("it is done");
    assert_eq!((town.standing("gt-a"), town.state_of("fern")), (Standing::Closed, AgentState::Idle));
}

#[test]
fn a_rig_may_give_everything_that_is_slung_to_agents_or_everything_that_is_ready() {
    let mut town = Town::new();
    town.agents(&["fern", "moss"]);
    town.configure(|s| s.rigs.entry(rig_name("gastown")).or_default().assign = RigAssign::Slung);
    town.beads(&["gt-a", "gt-b"]);
    town.sling(&["gt-a"]);
    town.pass();
    assert_eq!((town.sent(), town.standing("gt-b")), (pairs(&[("gt-a", "fern")]), Standing::Open));
    town.configure(|s| s.rigs.entry(rig_name("gastown")).or_default().assign = RigAssign::Ready);
    town.bead_needing("gt-c", &["gt-b"]);
    town.pass();
    assert_eq!(town.sent(), pairs(&[("gt-a", "fern"), ("gt-b", "moss")]));
    assert_eq!(town.standing("gt-c"), Standing::Blocked);
    town.claimed("moss", "gt-b");
    town.ends("moss", "gt-b", done()).expect("it is done");
    town.pass();
    assert_eq!(town.orders("moss"), ids(&["gt-c"]), "unblocked and given away in the same moment");
}

#[test]
fn what_a_person_takes_off_the_schedule_is_not_offered_again_by_itself() {
    let mut town = Town::new();
    town.configure(|s| s.rigs.entry(rig_name("gastown")).or_default().assign = RigAssign::Ready);
    town.bead("gt-a");
    town.pass();
    town.does(&Command::Clear { bead: Some("gt-a".to_owned()) });
    town.pass();
    assert_eq!((town.standing("gt-a"), town.codes("gt-a")), (Standing::Open, vec![ReasonCode::Held]));
}

#[test]
fn priority_goes_first_then_age() {
    let mut town = Town::new();
    for (id, priority) in [("gt-old", 2), ("gt-young", 2), ("gt-urgent", 0), ("gt-low", 4)] {
        town.bead_with(id, |bead| bead.priority = Some(priority));
        town.gives_away(&[id]);
        town.advance(Millis::seconds(1));
    }
    let mut order = Vec::new();
    town.agent("fern");
    for _ in 0..4 {
        town.pass();
        let bead = town.orders("fern").remove(0).to_string();
        town.claimed("fern", &bead);
        town.ends("fern", &bead, done()).expect("it is done");
        order.push(bead);
    }
    assert_eq!(order, ["gt-urgent", "gt-old", "gt-young", "gt-low"]);
}

#[test]
fn beads_go_to_those_who_know_about_them_and_otherwise_to_those_with_the_fewest_orders() {
    let mut town = Town::new();
    town.skilled("fern", "I am working on SQL optimization and queries");
    town.skilled("moss", "css, layout");
    town.agent("reed");
    for (id, title) in [("gt-a", "Fix the layout of the page"), ("gt-b", "Slow query"), ("gt-c", "Docs")] {
        town.bead_with(id, |bead| bead.title = title.to_owned());
    }
    town.gives_away(&["gt-a", "gt-b", "gt-c"]);
    town.pass();
    let fern_knows_nothing_of_slow_query = town.sent();
    assert_eq!(
        fern_knows_nothing_of_slow_query,
        pairs(&[("gt-a", "moss"), ("gt-b", "fern"), ("gt-c", "reed")])
    );
}

#[test]
fn a_skill_never_goes_before_an_urgent_bead_nor_before_one_that_has_waited_long() {
    let mut town = Town::new();
    let titled = |town: &mut Town, id: &str, title: &str, priority: u8| {
        town.bead_with(id, |bead| (bead.title, bead.priority) = (title.to_owned(), Some(priority)));
        town.gives_away(&[id]);
        town.advance(Millis::seconds(1));
    };
    titled(&mut town, "gt-plain", "Docs", 2);
    titled(&mut town, "gt-sql", "Tune the sql", 2);
    titled(&mut town, "gt-hot", "Outage", 0);
    titled(&mut town, "gt-hot-sql", "Outage of sql", 0);
    town.skilled("fern", "sql");
    let mut order = Vec::new();
    for _ in 0..3 {
        town.pass();
        let bead = town.orders("fern").remove(0).to_string();
        town.claimed("fern", &bead);
        town.ends("fern", &bead, done()).expect("it is done");
        order.push(bead);
    }
    assert_eq!(order, ["gt-hot", "gt-hot-sql", "gt-sql"], "among equals what it knows goes first");
    titled(&mut town, "gt-sql2", "More sql", 2);
    town.beats("fern");
    town.advance(Millis::minutes(5));
    town.beats("fern");
    titled(&mut town, "gt-sql3", "Yet more sql", 2);
    town.pass();
    assert_eq!(town.orders("fern"), ids(&["gt-plain"]), "it has waited long enough");
}

#[test]
fn who_did_what_a_bead_builds_on_is_sent_it() {
    let mut town = Town::new();
    town.agents(&["fern", "moss"]);
    town.bead("gt-a");
    town.bead_needing("gt-b", &["gt-a"]);
    town.gives_away(&["gt-a", "gt-b"]);
    town.pass();
    town.claimed("fern", "gt-a");
    town.ends("fern", "gt-a", done()).expect("it is done");
    town.pass();
    assert_eq!(town.sent(), pairs(&[("gt-b", "fern")]), "although moss has had fewer orders");
}

#[test]
fn work_is_spread_evenly_over_agents_that_know_nothing_in_particular() {
    let mut town = Town::new();
    town.agents(&["fern", "moss", "reed"]);
    for round in 0..6 {
        let id = format!("gt-{round}");
        town.bead(&id);
        town.gives_away(&[&id]);
        town.pass();
        let (_, agent) = town.sent().remove(0);
        town.claimed(&agent, &id);
        town.ends(&agent, &id, done()).expect("it is done");
    }
    let counts: Vec<u64> = town.state.agents().map(|agent| agent.counts.done).collect();
    assert_eq!(counts, [2, 2, 2]);
}

#[test]
fn an_order_that_is_not_claimed_goes_to_the_next_and_the_first_is_left_alone_until_heard_of() {
    let mut town = Town::new();
    town.agents(&["fern", "moss"]);
    town.bead("gt-a");
    town.gives_away(&["gt-a"]);
    town.pass();
    town.advance(Millis::minutes(5));
    town.pass();
    assert_eq!(
        (town.state_of("fern"), town.mail("fern")),
        (AgentState::Unresponsive, (vec![], ids(&["gt-a"])))
    );
    assert_eq!(town.orders("moss"), ids(&["gt-a"]));
    assert_eq!(town.alert_kinds(), [AlertKind::AgentSilent]);
    let late = town.claims("fern", "gt-a").expect_err("it is moss's now");
    assert!(late.message.contains("moss"), "{late}");
    town.beats("fern");
    assert_eq!((town.state_of("fern"), town.alert_kinds()), (AgentState::Idle, vec![]));
    town.bead("gt-b");
    town.gives_away(&["gt-b"]);
    town.pass();
    assert_eq!(town.orders("fern"), ids(&["gt-b"]));
}

#[test]
fn an_agent_alone_is_offered_again_what_it_let_lapse_once_it_is_heard_of() {
    let mut town = Town::new();
    town.agent("fern");
    town.bead("gt-a");
    town.gives_away(&["gt-a"]);
    town.pass();
    town.advance(Millis::minutes(5));
    town.pass();
    assert_eq!(town.sent(), []);
    assert!(town.why("gt-a").contains("1 UNRESPONSIVE"), "{}", town.why("gt-a"));
    town.beats("fern");
    town.pass();
    assert_eq!(town.orders("fern"), ids(&["gt-a"]));
}

#[test]
fn the_state_of_an_agent_follows_the_work_that_any_source_shows() {
    let mut town = Town::new();
    town.agent("fern");
    town.beads(&["gt-a", "gt-b"]);
    town.status("gt-a", BeadStatus::InProgress, Some("fern"));
    town.status("gt-b", BeadStatus::InProgress, Some("fern"));
    assert_eq!(town.state_of("fern"), AgentState::Working);
    town.close("gt-a");
    assert_eq!(town.state_of("fern"), AgentState::Working);
    town.close("gt-b");
    assert_eq!(town.state_of("fern"), AgentState::Idle);
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a"]);
    tracker.claims("ox-a", "fern");
    town.reads(&mut tracker);
    assert_eq!(town.state_of("fern"), AgentState::Working);
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    assert_eq!(town.state_of("fern"), AgentState::Idle);
}

#[test]
fn an_agent_is_gone_after_ten_minutes_but_not_while_it_holds_a_lease_or_lives() {
    let mut town = Town::new();
    town.configure(|s| s.agents.lease = Millis::minutes(30));
    town.agents(&["fern", "moss"]);
    let process = Some(Process { pid: 7, mark: "x".to_owned() });
    town.does(&Command::AgentRegister(Box::new(Registration {
        process: process.clone(),
        ..registration("reed")
    })));
    town.bead("gt-a");
    town.claimed("fern", "gt-a");
    town.now = town.in_time(Millis::minutes(10));
    let silent = town.state.silent_agents(town.now);
    assert_eq!(silent, [(agent_name("moss"), None), (agent_name("reed"), process)]);
    town.act(|tx| tx.agent_heard(&agent_name("reed")));
    town.advance(Millis(0));
    let states = ["fern", "moss", "reed"].map(|name| town.state_of(name));
    assert_eq!(states, [AgentState::Working, AgentState::Offline, AgentState::Idle]);
    town.agent("moss");
    assert_eq!(town.state_of("moss"), AgentState::Idle);
}

#[test]
fn what_an_agent_says_covers_what_nothing_else_shows() {
    let mut town = Town::new();
    town.agents(&["fern", "moss"]);
    town.bead("gt-a");
    town.gives_away(&["gt-a"]);
    town.pass();
    town.says("fern", AgentStatus::Blocked);
    town.pass();
    assert_eq!((town.state_of("fern"), town.orders("moss")), (AgentState::Blocked, ids(&["gt-a"])));
    town.says("fern", AgentStatus::Offline);
    assert_eq!(town.state_of("fern"), AgentState::Offline);
    town.beats("fern");
    assert_eq!(town.state_of("fern"), AgentState::Blocked);
    town.says("fern", AgentStatus::Working);
    assert_eq!(town.state_of("fern"), AgentState::Working);
    town.claimed("moss", "gt-a");
    let leaving = Command::AgentStatus { agent: "moss".to_owned(), status: AgentStatus::Offline, note: None };
    assert_eq!(town.refuses(&leaving).code, "busy", "whoever holds a lease is not offline");
}

#[test]
fn a_notice_is_read_once_and_an_order_until_it_is_claimed() {
    let mut town = Town::new();
    town.agent("fern");
    town.beads(&["gt-a", "gt-b"]);
    town.gives_away(&["gt-a", "gt-b"]);
    town.pass();
    town.does(&Command::Cancel { id: "gt-a".to_owned(), at_once: false });
    town.pass();
    assert_eq!(town.mail("fern"), (ids(&["gt-b"]), ids(&["gt-a"])));
    town.does(&Command::AgentInbox { agent: "fern".to_owned(), keep: true });
    assert_eq!(town.mail("fern"), (ids(&["gt-b"]), ids(&["gt-a"])));
    town.does(&Command::AgentInbox { agent: "fern".to_owned(), keep: false });
    assert_eq!(town.mail("fern"), (ids(&["gt-b"]), vec![]));
    town.claimed("fern", "gt-b");
    town.does(&Command::Cancel { id: "gt-b".to_owned(), at_once: false });
    assert_eq!((town.mail("fern"), town.standing("gt-b")), ((vec![], ids(&["gt-b"])), Standing::Cancelled));
    assert_eq!(town.state_of("fern"), AgentState::Idle);
}

#[test]
fn the_hook_is_told_of_each_message_once() {
    let mut town = Town::new();
    town.configure(|s| s.agents.hook = Some(vec!["tell".to_owned()]));
    town.agent("fern");
    town.bead("gt-a");
    town.gives_away(&["gt-a"]);
    town.pass();
    let [(to, message)] = &town.state.untold_messages()[..] else { panic!("one message") };
    let (to, id) = (to.clone(), message.id());
    town.act(|tx| tx.message_told(&to, id, None));
    assert_eq!(town.state.untold_messages(), []);
    town.does(&Command::Cancel { id: "gt-a".to_owned(), at_once: false });
    assert_eq!(town.state.untold_messages().len(), 1);
    town.does(&Command::AgentInbox { agent: "fern".to_owned(), keep: false });
    assert_eq!(town.state.untold_messages(), [], "who has read it need not be told");
}

#[test]
fn whole_tracks_go_to_one_agent_where_that_is_wanted() {
    let mut town = Town::new();
    town.configure(|s| s.agents.tracks = true);
    town.agents(&["fern", "moss"]);
    town.beads(&["gt-a1", "gt-b1"]);
    town.bead_needing("gt-a2", &["gt-a1"]);
    town.bead_needing("gt-a3", &["gt-a1"]);
    town.gives_away(&["gt-a1", "gt-a2", "gt-a3", "gt-b1"]);
    town.pass();
    assert_eq!(town.sent(), pairs(&[("gt-a1", "fern"), ("gt-b1", "moss")]));
    let tracks = town.state.tracks();
    let shown: Vec<_> = tracks.iter().map(|track| (track.beads.len(), track.agent.clone())).collect();
    assert_eq!(shown, [(3, Some(agent_name("fern"))), (1, None)]);
    for (agent, bead) in [("moss", "gt-b1"), ("fern", "gt-a1")] {
        town.claimed(agent, bead);
        town.ends(agent, bead, done()).expect("it is done");
    }
    town.pass();
    assert_eq!(town.sent(), pairs(&[("gt-a2", "fern")]), "moss is free, but the track is fern's");
    assert!(town.why("gt-a3").contains("its track is fern's"), "{}", town.why("gt-a3"));
    // A bead that joins the track later belongs to it.
    town.bead_needing("gt-a4", &["gt-a2"]);
    town.bead_needing("gt-a5", &["gt-a3"]);
    town.gives_away(&["gt-a4", "gt-a5"]);
    town.advance(Millis::minutes(5));
    town.beats("moss");
    town.pass();
    let taken: Vec<_> = town.sent();
    assert_eq!(
        taken,
        pairs(&[("gt-a2", "moss")]),
        "fern does not answer, so its track goes to moss as a whole"
    );
    assert_eq!(town.state.tracks()[0].agent, Some(agent_name("moss")));
}

#[test]
fn every_idle_agent_and_every_waiting_bead_knows_why() {
    let mut town = Town::new();
    town.bead("gt-a");
    town.gives_away(&["gt-a"]);
    town.pass();
    assert!(town.why("gt-a").contains("no agent is registered"), "{}", town.why("gt-a"));
    town.sling_with("gt-a", |_| {});
    town.bead("gt-b");
    town.sling_with("gt-b", |request| request.assign = Some(AssignTo::Agent(agent_name("moss"))));
    town.agent("fern");
    town.pass();
    let code = |town: &Town, name: &str| town.state.why_no_order(&agent_name(name))[0].code.clone();
    assert_eq!(code(&town, "fern"), "ordered");
    assert!(town.why("gt-b").contains("no agent of that name"), "{}", town.why("gt-b"));
    town.claimed("fern", "gt-a");
    assert_eq!(code(&town, "fern"), "working");
    town.ends("fern", "gt-a", done()).expect("it is done");
    assert_eq!(code(&town, "fern"), "not-for-it");
    town.close("gt-b");
    assert_eq!(code(&town, "fern"), "no-work");
    town.pause();
    assert_eq!(code(&town, "fern"), "paused");
    assert_eq!(code(&town, "reed"), "unknown-agent");
}

#[test]
fn an_agent_retires_when_it_has_nothing() {
    let mut town = Town::new();
    town.agents(&["fern", "moss"]);
    town.beads(&["gt-a", "gt-b"]);
    town.claimed("fern", "gt-a");
    let retire = Command::AgentRetire { agent: "fern".to_owned() };
    assert_eq!(town.refuses(&retire).code, "busy");
    town.ends("fern", "gt-a", done()).expect("it is done");
    town.gives_away(&["gt-b"]);
    town.pass();
    let (_, first) = town.sent().remove(0);
    town.does(&Command::AgentRetire { agent: first.clone() });
    town.pass();
    let (_, second) = town.sent().remove(0);
    assert_ne!(first, second);
}

#[test]
fn pausing_stops_orders_too() {
    let mut town = Town::new();
    town.agent("fern");
    town.bead("gt-a");
    town.pause();
    town.gives_away(&["gt-a"]);
    town.pass();
    assert_eq!(town.sent(), []);
    town.resume();
    town.pass();
    assert_eq!(town.sent(), pairs(&[("gt-a", "fern")]));
}

#[test]
fn an_order_is_withdrawn_when_its_bead_is_not_ready_any_more() {
    let mut town = Town::new();
    town.agent("fern");
    town.beads(&["gt-a", "gt-b"]);
    town.gives_away(&["gt-a", "gt-b"]);
    town.pass();
    town.does(&Command::Hold { id: "gt-a".to_owned(), held: true });
    town.pass();
    assert_eq!(town.mail("fern"), (ids(&["gt-b"]), ids(&["gt-a"])), "it gets something else instead");
    town.pause();
    town.pass();
    assert_eq!(town.sent(), []);
    town.advance(Millis::minutes(5));
    assert_eq!(town.state_of("fern"), AgentState::Idle, "it let nothing lapse");
    town.resume();
    town.pass();
    assert_eq!(town.sent(), pairs(&[("gt-b", "fern")]));
}

#[test]
fn a_live_process_does_not_answer_for_an_agent_that_let_an_order_lapse() {
    let mut town = Town::new();
    town.agent("fern");
    town.bead("gt-a");
    town.gives_away(&["gt-a"]);
    town.pass();
    town.advance(Millis::minutes(5));
    for _ in 0..3 {
        town.now = town.in_time(Millis::minutes(10));
        town.act(|tx| tx.agent_lives(&agent_name("fern")));
        town.advance(Millis(0));
        town.pass();
        assert_eq!((town.state_of("fern"), town.sent()), (AgentState::Unresponsive, vec![]));
    }
    town.beats("fern");
    town.pass();
    assert_eq!(town.sent(), pairs(&[("gt-a", "fern")]));
}

#[test]
fn what_a_staged_convoy_keeps_back_is_not_offered() {
    let mut town = Town::new();
    town.configure(|s| s.rigs.entry(rig_name("gastown")).or_default().assign = RigAssign::Ready);
    town.bead("gt-a");
    let targets = vec!["gt-a".to_owned()];
    town.does(&Command::ConvoyStage { targets: targets.clone(), title: None, launch: false });
    town.agent("fern");
    town.pass();
    assert_eq!((town.sent(), town.standing("gt-a")), (vec![], Standing::Staged));
    town.does(&Command::ConvoyLaunch { targets, force: true });
    town.pass();
    assert_eq!(town.sent(), pairs(&[("gt-a", "fern")]));
}
