//! Keys in, command lines out: the operator's verbs, their questions, and what they say when they do not apply.

use crate::console::Console;
use crate::layers::{Layer, Menu, Pick};
use crate::msg::{Effect, Leaving, Msg};
use crate::testing::session::Session;
use crate::testing::{Yard, commands, press, scenes, typing};
use crate::{prepare, update};

fn on(yard: &Yard, id: &str) -> Console {
    let mut console = yard.console((120, 40), "terminal", false);
    put_on(&mut console, id);
    console
}

fn put_on(console: &mut Console, id: &str) {
    let wanted = crate::testing::bead(id);
    let row = console.table.ids().position(|known| *known == wanted).expect("a row");
    console.table.move_to(row);
    prepare(console);
}

fn said(console: &Console) -> &str {
    console.said.as_ref().map_or("", |said| said.text.as_str())
}

fn menu(console: &Console) -> &Menu {
    match console.layers.last() {
        Some(Layer::Menu(menu)) => menu,
        other => panic!("no menu but {other:?}"),
    }
}

#[test]
fn each_verb_writes_exactly_the_line_one_would_type() {
    let yard = scenes::apollo();
    let cases = [
        ("gt-430", "c", "scheduler clear --bead gt-430"),
        ("gt-411", "r", "scheduler retry gt-411"),
        ("gt-414", "r", "scheduler retry gt-414"),
        ("gt-430", "R", "scheduler run"),
        ("gt-430", "z", "undo"),
        ("gt-430", "x h", "hold gt-430"),
        ("gt-425", "x u", "unhold gt-425"),
        ("gt-430", "x g", "rig park gt"),
        ("gt-600", "x s", "sling gt-600"),
        ("gt-420", "P y", "preempt gt-420"),
        ("gt-420", "x C y", "cancel gt-420"),
        ("gt-420", "x K y", "kill gt-420"),
        ("gt-430", "x d y", "bead close gt-430"),
        ("gt-430", "x a y", "scheduler clear"),
    ];
    for (id, keys, line) in cases {
        let mut console = on(&yard, id);
        let effects = press(&mut console, keys);
        assert_eq!(commands(&effects), [line], "{keys} on {id}: {}", said(&console));
        assert!(console.layers.is_empty(), "{keys} on {id} leaves {:?}", console.layers);
    }
}

#[test]
fn a_waiting_bead_may_choose_who_makes_room_for_it() {
    let yard = scenes::apollo();
    let mut console = on(&yard, "gt-418");
    press(&mut console, "P");
    assert_eq!(menu(&console).title, "who makes room for gt-418?");
    let first = menu(&console).items[0].title.clone();
    let victim = first.split(' ').next().expect("an id").to_owned();
    assert_eq!(commands(&press(&mut console, "1")), [format!("preempt {victim} --for gt-418")]);
}

#[test]
fn pausing_asks_for_a_reason_and_resuming_does_not() {
    let yard = scenes::apollo();
    let mut console = on(&yard, "gt-430");
    assert!(commands(&press(&mut console, "p")).is_empty());
    typing(&mut console, "moving house");
    assert_eq!(commands(&press(&mut console, "Enter")), ["scheduler pause --reason moving house"]);
    let mut console = on(&yard, "gt-430");
    assert_eq!(commands(&press(&mut console, "p Enter")), ["scheduler pause"]);
    let mut console = on(&scenes::paused(), "gt-2");
    assert_eq!(commands(&press(&mut console, "p")), ["scheduler resume"]);
}

#[test]
fn a_priority_is_typed_and_must_be_one() {
    let mut console = on(&scenes::apollo(), "gt-430");
    press(&mut console, "x o");
    typing(&mut console, "500");
    assert!(commands(&press(&mut console, "Enter")).is_empty());
    let Some(Layer::Line(line)) = console.layers.last() else { panic!("the line stays") };
    assert_eq!(line.error.as_deref(), Some("a priority is a number from 1 to 100"));
    press(&mut console, "Ctrl-u");
    typing(&mut console, "80");
    assert_eq!(commands(&press(&mut console, "Enter")), ["priority gt-430 80"]);
}

#[test]
fn a_question_is_never_answered_by_the_key_that_opened_it() {
    let yard = scenes::apollo();
    let questions =
        [("gt-420", "P"), ("gt-420", "x C"), ("gt-420", "x K"), ("gt-430", "x d"), ("gt-430", "x a")];
    for (id, keys) in questions {
        let mut console = on(&yard, id);
        press(&mut console, keys);
        let opener = keys.split(' ').next_back().expect("a key");
        let chosen = menu(&console).at;
        assert_eq!(menu(&console).items[chosen].key, 'n', "{keys}: Enter alone must change nothing");
        let effects = press(&mut console, &format!("{opener} {opener} {opener}"));
        assert!(commands(&effects).is_empty(), "{keys} {opener} on {id} did {:?}", commands(&effects));
    }
    let mut console = on(&yard, "gt-420");
    assert!(commands(&press(&mut console, "P Enter")).is_empty());
    assert!(console.layers.is_empty());
}

#[test]
fn what_does_not_apply_says_why_and_does_nothing() {
    let yard = scenes::apollo();
    let cases = [
        ("gt-420", "c", "running"),
        ("gt-401", "r", "closed"),
        ("gt-401", "P", "closed"),
        ("gt-420", "A", "no alert is selected"),
        ("gt-420", "D", "a daemon serves the town already"),
        ("gt-430", "a", "not running"),
        ("gt-420", "%", "% does nothing here"),
    ];
    for (id, keys, words) in cases {
        let mut console = on(&yard, id);
        let effects = press(&mut console, keys);
        assert!(commands(&effects).is_empty(), "{keys} on {id}");
        assert!(said(&console).contains(words), "{keys} on {id} said {:?}", said(&console));
        assert!(console.said.as_ref().is_some_and(|said| said.bad), "{keys} on {id}");
    }
    let mut console = scenes::empty().console((120, 40), "terminal", false);
    for (keys, words) in
        [("z", "nothing to take back"), ("w", "no bead is selected"), ("Enter", "nothing is selected")]
    {
        assert!(commands(&press(&mut console, keys)).is_empty());
        assert!(said(&console).contains(words), "{keys} said {:?}", said(&console));
    }
}

#[test]
fn launching_means_the_convoy_that_is_looked_at_or_the_only_one_that_is_staged() {
    let mut session = Session::on(scenes::apollo(), (120, 40), "terminal", false);
    session.select("gt-420").press("L");
    let title = menu(&session.console).title.clone();
    assert!(title.starts_with("launch hq-cv-"), "in the yard the staged one is asked about: {title}");
    session.press("Esc 2 Enter L");
    assert!(session.console.layers.is_empty());
    assert!(said(&session.console).contains("under way already"), "{:?}", said(&session.console));
}

#[test]
fn a_way_out_is_taken_from_where_the_reasons_are_told() {
    let mut session = Session::on(scenes::apollo(), (120, 40), "terminal", false);
    session.select("gt-425").press("w Enter");
    assert_eq!(menu(&session.console).items[0].pick, Pick::Run(vec![vec!["unhold".into(), "gt-425".into()]]));
    session.press("Enter");
    assert!(session.console.layers.len() == 1, "leaving is what a hasty Enter does");
    session.press("Enter 1");
    assert!(session.console.layers.is_empty());
    assert!(said(&session.console).contains("gt-425"), "{:?}", said(&session.console));
}

#[test]
fn a_hasty_enter_in_the_menu_of_acts_does_nothing() {
    let mut console = on(&scenes::apollo(), "gt-430");
    let effects = press(&mut console, "x Enter");
    assert!(commands(&effects).is_empty());
    let effects = press(&mut console, "Down Enter");
    assert_eq!(commands(&effects), ["hold gt-430"]);
}

#[test]
fn marked_beads_are_acted_on_together_and_unmarked_afterwards() {
    let mut console = on(&scenes::apollo(), "gt-430");
    press(&mut console, "Space");
    put_on(&mut console, "gt-418");
    press(&mut console, "Space");
    assert_eq!(console.marks.len(), 2);
    let effects = press(&mut console, "c");
    assert_eq!(commands(&effects), ["scheduler clear --bead gt-418", "scheduler clear --bead gt-430"]);
    assert!(console.marks.is_empty());
}

#[test]
fn of_marked_beads_only_those_are_touched_to_which_it_applies() {
    let mut console = on(&scenes::apollo(), "gt-411");
    press(&mut console, "Space");
    put_on(&mut console, "gt-420");
    press(&mut console, "Space");
    assert_eq!(commands(&press(&mut console, "r")), ["scheduler retry gt-411"]);
    put_on(&mut console, "gt-420");
    press(&mut console, "Space");
    put_on(&mut console, "gt-421");
    press(&mut console, "Space r");
    assert_eq!(said(&console), "none of the 2 marked beads were given up");
}

#[test]
fn a_range_marks_everything_between_two_rows_and_all_marks_all() {
    let mut console = on(&scenes::apollo(), "gt-420");
    press(&mut console, "v j j j v");
    assert_eq!(console.marks.len(), 4);
    press(&mut console, "Esc");
    assert!(console.marks.is_empty());
    press(&mut console, "V");
    assert_eq!(console.marks.len(), console.table.len());
    press(&mut console, "V");
    assert!(console.marks.is_empty());
}

#[test]
fn staging_shows_the_plan_and_launching_asks_once_more() {
    let mut session = Session::on(scenes::staged(), (120, 40), "terminal", false);
    session.press("s e");
    assert!(matches!(session.console.layers.last(), Some(Layer::Plan(..))));
    session.press("L");
    let title = menu(&session.console).title.clone();
    assert!(title.starts_with("launch hq-cv-"), "{title}");
    session.press("L L");
    assert_eq!(session.yard.state.live_count(), 0, "the opening key does not confirm");
    session.press("y");
    assert_eq!(session.yard.state.live_count(), 2, "wave 1 fills both slots: {:?}", session.console.said);
}

#[test]
fn reasons_are_told_in_spans_and_not_in_dates() {
    let mut session = Session::on(scenes::apollo(), (120, 40), "terminal", false);
    for (bead, words) in
        [("gt-419", "not for another 2m19"), ("gt-424", "account claude rests for another 2m09")]
    {
        for keys in ["w", "Enter"] {
            session.select(bead).press(keys);
            let screen = session.screen();
            assert!(screen.contains(words) && !screen.contains("2026-"), "{keys} on {bead}: {screen}");
            session.press("Esc");
        }
        assert!(session.screen().contains(&format!("why {bead}: {words}")), "{}", session.screen());
    }
}

#[test]
fn undo_tells_what_it_would_take_back() {
    let mut session = Session::on(scenes::apollo(), (200, 60), "terminal", false);
    session.select("gt-430").press("x h");
    let screen = session.screen();
    assert!(screen.contains("held"), "{screen}");
    session.yard.later(9);
    session.tick();
    assert!(session.screen().contains("z takes back: hold gt-430"), "{}", session.screen());
    session.press("z");
    let context = session.yard.state.open_contexts().find(|context| context.bead().as_str() == "gt-430");
    assert!(context.is_some_and(|context| !context.held));
}

#[test]
fn quitting_asks_only_if_work_would_be_left_alone() {
    let quits =
        |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Quit(Leaving::Plainly)));
    let mut console = on(&scenes::apollo(), "gt-430");
    assert!(quits(&press(&mut console, "q")), "a daemon has the work");
    console.embedded = true;
    assert!(!quits(&press(&mut console, "q")));
    assert_eq!(menu(&console).title, "quit");
    for (key, leaving) in [("d", Leaving::ToDaemon), ("s", Leaving::Draining), ("l", Leaving::LeavingRunning)]
    {
        let mut console = on(&scenes::apollo(), "gt-430");
        console.embedded = true;
        let effects = press(&mut console, &format!("q {key}"));
        assert!(effects.iter().any(|e| matches!(e, Effect::Quit(how) if *how == leaving)), "{key}");
    }
    assert!(press(&mut console, "n").is_empty());
    let mut idle = scenes::empty().console((80, 24), "terminal", false);
    idle.embedded = true;
    assert!(quits(&press(&mut idle, "q")));
}

#[test]
fn what_became_of_commands_is_said() {
    let ran = |argv: &str, ok: bool, output: &str| crate::msg::Ran {
        argv: argv.split(' ').map(str::to_owned).collect(),
        ok,
        output: output.to_owned(),
    };
    let mut console = on(&scenes::apollo(), "gt-430");
    let mut tell = |lines, show| {
        update(&mut console, Msg::Ran { lines, show });
        let layer = console.layers.pop();
        (said(&console).to_owned(), layer.is_some())
    };
    assert_eq!(tell(vec![ran("hold gt-430", true, "gt-430 is held\n")], false).0, "gt-430 is held");
    assert_eq!(tell(vec![ran("undo", true, "")], false).0, "done: ym undo");
    let refused = vec![ran("undo", false, "error: nothing to undo\nhint: do something first")];
    assert_eq!(tell(refused, false).0, "error: nothing to undo; hint: do something first");
    let several = vec![ran("hold a", true, ""), ran("hold b", false, "no such bead")];
    assert_eq!(tell(several, false).0, "1 of 2 done; ym hold b: no such bead");
    assert!(tell(vec![ran("status", true, "one\ntwo")], true).1, "long output has a pane of its own");
}

#[test]
fn in_the_past_and_in_a_simulation_nothing_is_done_to_the_town() {
    for (mode, words) in [("T", "this is the past"), ("W", "this is a simulation")] {
        for verb in ["c", "P", "s", "L", "p", "R", "x", "z"] {
            let mut session = Session::on(scenes::apollo(), (120, 40), "terminal", false);
            session.select("gt-430").press(mode);
            let before = session.yard.log.len();
            session.press(verb);
            assert_eq!(session.yard.log.len(), before, "{verb} in {mode}");
            assert!(said(&session.console).contains(words), "{verb} said {:?}", said(&session.console));
        }
    }
}

#[test]
fn marked_beads_are_slung_by_one_command() {
    let mut yard = Yard::with_cap(1);
    for number in 1..=3 {
        yard.bead(&format!("gt-{number}"), "work", |_| {});
    }
    let mut console = yard.console((120, 40), "terminal", false);
    let effects = press(&mut console, "V x s");
    assert_eq!(commands(&effects), ["sling gt-1 gt-2 gt-3"]);
}

#[test]
fn what_would_stop_a_bead_nobody_asked_for_is_said_too() {
    let mut yard = Yard::with_cap(1);
    yard.bead("gt-1", "work", |_| {});
    yard.must(&yard_engine::Command::Pause { reason: None, until: None });
    let mut session = Session::on(yard, (120, 40), "terminal", false);
    session.press("w");
    let screen = session.screen();
    assert!(screen.contains("dispatch is paused by ann"), "{screen}");
    assert!(!screen.contains("dispatch is not paused"), "{screen}");
}

#[test]
fn applying_what_was_tried_leads_back_to_the_town_and_holds_back_first() {
    let mut session = Session::on(scenes::apollo(), (120, 40), "terminal", false);
    session.press("W + j j j");
    while !matches!(&session.console.mode, crate::console::Mode::WhatIf(tried) if tried.changes().len() > 1) {
        session.press("+ j");
    }
    session.press("A");
    let lines = match &menu(&session.console).items[0].pick {
        Pick::Run(lines) => lines.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(lines.last().map(|line| line[0].as_str()), Some("config"), "{lines:?}");
    session.press("y");
    assert!(matches!(session.console.mode, crate::console::Mode::Live));
}
