//! Registered agents: their rows and signs, why one has no order, what can be done to one, and what a bead that waits for
//! one says.

use yard_engine::Command;
use yard_engine::agent::AgentState;
use yard_engine::readiness::ReasonCode;

use crate::console::{Subject, View};
use crate::crew::{self, Row};
use crate::layers::{Layer, Menu, Pick};
use crate::msg::Effect;
use crate::testing::session::Session;
use crate::testing::{Yard, bead, commands, press, scenes};

fn atelier(size: (u16, u16)) -> Session {
    let mut session = Session::on(scenes::atelier(), size, "terminal", false);
    session.press("4");
    session
}

/// Puts the cursor on an agent.
fn on(session: &mut Session, name: &str) {
    let is_it = |row: Row<'_>| matches!(row, Row::Agent(agent) if agent.name().as_str() == name);
    let row = crew::rows(session.console.state()).position(is_it).expect("the agent has a row");
    session.console.set_row(row);
    crate::prepare(&mut session.console);
}

fn menu(session: &Session) -> &Menu {
    match session.console.layers.last() {
        Some(Layer::Menu(menu)) => menu,
        other => panic!("no menu but {other:?}: {:?}", session.console.said),
    }
}

fn said(session: &Session) -> String {
    session.console.said.as_ref().map(|said| said.text.clone()).unwrap_or_default()
}

/// A text without the breaks of lines and frames.
fn flowing(screen: &str) -> String {
    screen.replace(['│', '\n'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_town_has_an_agent_in_every_state_an_order_and_a_bead_that_waits() {
    use AgentState as S;
    let yard = scenes::atelier();
    for state in [S::Idle, S::Working, S::Blocked, S::Offline, S::Unresponsive] {
        assert!(yard.state.agents().any(|agent| agent.state == state), "{state:?}");
    }
    assert!(yard.state.agents().any(|agent| yard.state.order_of(agent.name()).is_some()));
    let waits = |id: &str| {
        yard.state.reasons(&bead(id)).iter().any(|reason| reason.code == ReasonCode::AwaitingAgent)
    };
    assert!(waits("gt-13") && waits("gt-16"));
}

#[test]
fn agents_at_three_sizes() {
    for size in [(200, 60), (120, 40), (80, 24)] {
        let mut session = atelier(size);
        on(&mut session, "fern");
        insta::assert_snapshot!(format!("working_agent_{}x{}", size.0, size.1), session.screen());
        on(&mut session, "reed");
        insta::assert_snapshot!(format!("idle_agent_{}x{}", size.0, size.1), session.screen());
    }
}

#[test]
fn what_is_said_about_an_agent_and_about_a_bead_that_waits_for_one() {
    let mut session = atelier((80, 24));
    on(&mut session, "reed");
    session.press("w");
    insta::assert_snapshot!("why_no_order_80x24", session.screen());
    session.press("Esc");
    on(&mut session, "fern");
    session.press("Enter");
    insta::assert_snapshot!("agent_detail_80x24", session.screen());
    session.press("Esc x");
    insta::assert_snapshot!("agent_act_80x24", session.screen());
    let mut session = Session::on(scenes::atelier(), (120, 40), "terminal", false);
    session.select("gt-13").press("w");
    insta::assert_snapshot!("why_awaiting_agent_120x40", session.screen());
}

#[test]
fn a_state_is_a_sign_a_word_and_a_colour() {
    let session = atelier((120, 40));
    let screen = session.screen();
    for (sign, name, word) in [
        ("⚠", "ash", "UNRESPONSIVE"),
        ("▶", "fern", "WORKING"),
        ("◌", "moss", "BLOCKED"),
        ("○", "rue", "IDLE"),
        ("−", "sage", "OFFLINE"),
    ] {
        let row = screen.lines().find(|line| line.contains(&format!("{sign}{name} "))).unwrap_or_default();
        assert!(row.contains(word), "{name}: {screen}");
    }
    let states = session.yard.state.agents().map(|agent| agent.state);
    let roles: std::collections::BTreeSet<_> =
        states.map(|state| format!("{:?}", crew::sign(&session.console.look.glyphs, state).1)).collect();
    assert_eq!(roles.len(), 5);
}

#[test]
fn an_agents_claims_stand_under_it_and_not_among_the_workers() {
    let session = atelier((120, 40));
    let state = session.console.state();
    let workers: Vec<_> = crew::workers(state).map(|worker| worker.id.bead().to_string()).collect();
    assert_eq!(workers, ["gt-20"]);
    let claimed = crew::rows(state).filter(|row| matches!(row, Row::More(..))).count();
    assert_eq!(claimed, 1, "fern's second bead");
    for id in ["gt-11", "gt-15", "gt-20"] {
        let list = session.screen().lines().take(16).filter(|line| line.contains(id)).count();
        assert_eq!(list, 1, "{id}: {}", session.screen());
    }
}

#[test]
fn the_reason_why_an_idle_agent_has_no_order_is_in_its_row_and_in_full_behind_w() {
    for size in [(200, 60), (120, 40), (80, 24)] {
        let session = atelier(size);
        let idle = |agent: &&yard_engine::agent::Agent| agent.state == AgentState::Idle;
        let names: Vec<String> =
            session.yard.state.agents().filter(idle).map(|agent| agent.name().to_string()).collect();
        assert_eq!(names, ["reed", "rue"]);
        for name in names {
            let mut session = atelier(size);
            on(&mut session, &name);
            let agent = session.console.agent().expect("it is selected");
            let why = crew::why(session.console.state(), &agent, session.console.now).join(" ");
            let beginning: String = why.chars().take(20).collect();
            let screen = session.screen();
            let row = screen.lines().find(|line| line.contains(&format!("○{name} "))).unwrap_or_default();
            assert!(row.contains(&beginning), "{name} at {size:?}: {row}");
            session.press("w");
            assert!(flowing(&session.screen()).contains(&why), "{why}: {}", session.screen());
            assert!(!session.screen().contains("2026-"), "{}", session.screen());
        }
    }
}

#[test]
fn taking_back_and_retiring_ask_first_and_write_the_line_one_would_type() {
    let cases = [
        ("fern", "u 1 y", "agent release gt-11 --as fern"),
        ("fern", "u 2 y", "agent release gt-15 --as fern"),
        ("fern", "x 2 y", "agent release gt-15 --as fern"),
        ("rue", "X y", "agent retire rue"),
        ("sage", "x X y", "agent retire sage"),
    ];
    for (name, keys, line) in cases {
        let mut session = atelier((120, 40));
        on(&mut session, name);
        let question = keys.rsplit_once(' ').expect("a question").0;
        assert!(commands(&press(&mut session.console, question)).is_empty(), "{keys} on {name}");
        assert_eq!(menu(&session).items[menu(&session).at].key, 'n', "Enter alone must change nothing");
        let opener = question.split(' ').next_back().expect("a key");
        assert!(commands(&press(&mut session.console, opener)).is_empty(), "{keys} on {name}");
        assert_eq!(commands(&press(&mut session.console, "y")), [line], "{keys} on {name}");
        assert!(session.console.layers.is_empty());
    }
}

#[test]
fn an_order_can_be_taken_back_before_it_is_claimed() {
    let mut session = atelier((120, 40));
    on(&mut session, "rue");
    session.press("u");
    assert_eq!(menu(&session).title, "take gt-17 back before rue claims it?");
    session.press("y");
    let rue = session.yard.state.find_agent("rue").expect("an agent");
    assert!(session.yard.state.order_of(&rue).is_none(), "{}", said(&session));
}

#[test]
fn the_question_says_what_becomes_of_the_bead() {
    let mut yard = Yard::with_cap(1);
    for id in ["gt-1", "gt-2", "gt-3"] {
        yard.bead(id, "work", |_| {});
    }
    for name in ["ash", "fern", "moss"] {
        yard.agent(name, "codex", |_| {});
    }
    yard.gives("gt-1", None);
    yard.gives("gt-2", Some("fern"));
    yard.claims("moss", "gt-3");
    let mut session = Session::on(yard, (80, 24), "terminal", false);
    session.press("4");
    for (name, words) in [
        ("ash", "Others are offered gt-1; ash is offered it again after a while."),
        ("fern", "gt-2 is for fern alone, who is offered it again after a while."),
        ("moss", "Nobody else has asked for gt-3."),
    ] {
        on(&mut session, name);
        session.press("u");
        assert_eq!(menu(&session).notes[0], words);
        session.press("Esc");
    }
}

#[test]
fn what_is_done_to_agents_is_done_by_the_engine() {
    let mut session = atelier((120, 40));
    on(&mut session, "fern");
    session.press("u 1 y");
    let fern = session.yard.state.find_agent("fern").expect("an agent");
    let left: Vec<_> = session.yard.state.claims_of(&fern).map(|id| id.bead().to_string()).collect();
    assert_eq!(left, ["gt-15"], "{}", said(&session));
    on(&mut session, "rue");
    session.press("X y");
    assert!(session.yard.state.find_agent("rue").is_err(), "{}", said(&session));
}

#[test]
fn what_cannot_be_done_to_an_agent_says_why() {
    let mut session = atelier((120, 40));
    for (name, key, words) in [
        ("fern", "X", "fern still has gt-11: u takes it back first"),
        ("moss", "u", "moss has nothing to give"),
    ] {
        on(&mut session, name);
        session.press(key);
        assert!(session.console.layers.is_empty() && said(&session).contains(words), "{}", said(&session));
    }
    session.press("G u");
    assert!(said(&session).contains("no agent has gt-20"), "{}", said(&session));
    session.press("X");
    assert!(said(&session).contains("no agent is selected"), "{}", said(&session));
}

#[test]
fn y_copies_the_command_lines_of_an_agent() {
    let copied = |session: &mut Session, keys: &str| {
        let effects = press(&mut session.console, keys);
        effects.into_iter().find_map(|effect| match effect {
            Effect::Copy { text, .. } => Some(text),
            _ => None,
        })
    };
    let mut session = atelier((120, 40));
    on(&mut session, "fern");
    for (keys, line) in [
        ("y i", "fern"),
        ("y c", "ym agent why --as fern"),
        ("y u", "ym agent release gt-11 --as fern"),
        ("y X", "ym agent retire fern"),
    ] {
        assert_eq!(copied(&mut session, keys).as_deref(), Some(line), "{keys}");
    }
    let json = copied(&mut session, "y j").expect("JSON");
    assert!(json.contains("\"state\": \"WORKING\""), "{json}");
}

#[test]
fn the_cursor_steps_over_the_heading_of_workers_both_ways() {
    let mut session = atelier((120, 40));
    session.press("G");
    assert_eq!(session.console.subject(), Some(Subject::Bead(bead("gt-20"))));
    session.press("k");
    assert_eq!(session.console.agent().map(|name| name.to_string()).as_deref(), Some("sage"));
    session.press("j");
    assert_eq!(session.console.subject(), Some(Subject::Bead(bead("gt-20"))));
}

#[test]
fn the_cursor_stays_on_its_agent_when_others_come_and_go() {
    let mut session = atelier((80, 24));
    on(&mut session, "moss");
    session.yard.agent("alder", "codex", |_| {});
    session.tick();
    assert_eq!(session.console.agent().map(|name| name.to_string()).as_deref(), Some("moss"));
    session.yard.must(&Command::AgentRetire { agent: "ash".to_owned() });
    session.tick();
    assert_eq!(session.console.agent().map(|name| name.to_string()).as_deref(), Some("moss"));
}

#[test]
fn a_bead_that_waits_for_an_agent_says_so_and_nothing_harmful_is_offered() {
    let mut yard = Yard::with_cap(1);
    yard.bead("gt-1", "login-form", |_| {});
    yard.gives("gt-1", None);
    let mut session = Session::on(yard, (120, 40), "terminal", false);
    session.press("w");
    let screen = session.screen();
    let guard = screen.lines().find(|line| line.contains("agent     BLOCK")).unwrap_or_default();
    assert!(guard.contains("no agent is registered; ym agent register NAME --program P"), "{screen}");
    assert!(!screen.contains("cheapest ways out"), "{screen}");
    session.press("Enter");
    assert_eq!(menu(&session).items[0].pick, Pick::Command("agent register ".to_owned()));
    let runs = menu(&session).items.iter().any(|item| matches!(item.pick, Pick::Run(_)));
    assert!(!runs, "nothing is run for it");
    // All agents are gone: no way out but another one either.
    session.press("Esc Esc");
    session.yard.agent("fern", "codex", |_| {});
    session.yard.agent_says("fern", yard_engine::command::AgentStatus::Offline, "");
    session.tick();
    session.press("w");
    assert!(session.screen().contains("no agent is free: 1 OFFLINE"), "{}", session.screen());
    assert!(!session.screen().contains("cheapest ways out"), "{}", session.screen());
}

#[test]
fn an_order_that_is_not_claimed_may_go_to_whoever_else_is_free() {
    let mut yard = Yard::with_cap(1);
    yard.bead("gt-1", "login-form", |_| {});
    yard.agent("fern", "codex", |_| {});
    yard.gives("gt-1", None);
    yard.later(60);
    let mut session = Session::on(yard, (120, 40), "terminal", false);
    session.press("w");
    let screen = session.screen();
    assert!(screen.contains("fern has been sent it, and has another 4m00 to claim it"), "{screen}");
    assert!(!screen.contains("cheapest ways out"), "nobody else is free: {screen}");
    session.press("Esc");
    session.yard.agent("moss", "codex", |_| {});
    session.tick();
    session.press("w Enter 1");
    let moss = session.yard.state.find_agent("moss").expect("an agent");
    assert!(session.yard.state.order_of(&moss).is_some(), "{}", said(&session));
}

#[test]
fn the_track_of_a_bead_is_told_with_it_and_all_of_them_with_the_agents() {
    let mut session = atelier((120, 40));
    on(&mut session, "rue");
    let screen = session.screen();
    for words in ["track-A   fern", "gt-11", "gt-12"] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    let mut session = Session::on(scenes::atelier(), (120, 40), "terminal", false);
    session.select("gt-12").press("Enter");
    assert!(session.screen().contains("track     fern's"), "{}", session.screen());
    session.press("Esc");
    session.select("gt-11").press("Enter");
    assert!(session.screen().contains("agent     fern has it, lease "), "{}", session.screen());
}

#[test]
fn the_yard_counts_agents_beside_workers() {
    let session = Session::on(scenes::atelier(), (120, 40), "terminal", false);
    let screen = session.screen();
    assert!(screen.contains("1/2  agents 1/4"), "{screen}");
    assert!(!Session::on(scenes::apollo(), (120, 40), "terminal", false).screen().contains("agents "));
}

#[test]
fn without_agents_and_workers_the_next_step_is_named() {
    let mut session = Session::on(scenes::empty(), (80, 24), "terminal", false);
    session.press("4");
    assert_eq!(session.console.view, View::Agents);
    assert!(session.screen().contains("ym agent register NAME --program P"), "{}", session.screen());
}

#[test]
fn of_a_bead_that_an_agent_has_no_worker_is_killed_or_preempted() {
    let mut session = Session::on(scenes::atelier(), (120, 40), "terminal", false);
    session.select("gt-11").press("P");
    assert!(said(&session).contains("an agent has it"), "{}", said(&session));
    session.press("x");
    let keys: String = menu(&session).items.iter().map(|item| item.key).collect();
    assert!(keys.contains('f') && keys.contains('O') && !keys.contains(['K', 'C']), "{keys}");
}
