//! Moving about without a terminal: one step out, filters, prompt, sorting, freezing, mouse, replay and what-if.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use crate::console::{Console, Mode, Pane, View};
use crate::layers::Layer;
use crate::layout::{list_area, plan};
use crate::msg::{Effect, Msg, News};
use crate::testing::session::Session;
use crate::testing::{commands, press, scenes, screen, typing};
use crate::{prepare, update};

fn apollo() -> Session {
    Session::on(scenes::apollo(), (120, 40), "terminal", false)
}

fn line_error(console: &Console) -> Option<&str> {
    match console.layers.last() {
        Some(Layer::Line(line)) => line.error.as_deref(),
        _ => None,
    }
}

fn typed(console: &Console) -> &str {
    match console.layers.last() {
        Some(Layer::Line(line)) => line.input.value(),
        other => panic!("nothing is typed: {other:?}"),
    }
}

#[test]
fn escape_leads_out_step_by_step_and_never_quits() {
    let mut session = apollo();
    session.press("5 l");
    let console = &mut session.console;
    let mut quit = Vec::new();
    let mut step = |console: &mut Console| quit.extend(press(console, "Esc"));
    assert!(console.full && console.pane == Pane::Log);
    step(console);
    assert!(!console.full && console.pane == Pane::Main && console.view == View::Problems);
    step(console);
    assert_eq!(console.view, View::Yard);
    for _ in 0..20 {
        step(console);
    }
    assert!(!quit.iter().any(|effect| matches!(effect, Effect::Quit(_))));
    assert_eq!(console.said.as_ref().map(|said| said.text.as_str()), Some("q quits"));
}

#[test]
fn escape_takes_off_one_thing_at_a_time() {
    let mut session = apollo();
    session.press("/").typing("state:blocked").press("Enter");
    let rows = session.console.table.len();
    session.press("Space v");
    session.press("Esc");
    assert!(session.console.range_from.is_none() && session.console.marks.len() == 1);
    session.press("Esc");
    assert!(session.console.marks.is_empty());
    assert_eq!(session.console.table.len(), rows, "the filter is still on");
    session.press("Esc");
    assert!(session.console.table.len() > rows);
}

#[test]
fn a_filter_works_as_it_is_typed_and_names_its_mistakes() {
    let mut session = apollo();
    let all = session.console.table.len();
    session.press("/").typing("state:running");
    assert_eq!(session.console.table.len(), 6);
    session.press("Enter");
    assert!(session.console.layers.is_empty());
    session.press("/ Ctrl-u").typing("~(");
    assert!(line_error(&session.console).is_some());
    session.press("Enter");
    assert!(!session.console.layers.is_empty(), "a mistake is not accepted");
    session.press("Ctrl-u").typing("colour:red");
    assert!(line_error(&session.console).is_some_and(|error| error.contains("colour")));
    session.press("Esc");
    assert_eq!(session.console.table.len(), all);
    session.press("/").typing("rig:db !state:closed");
    assert!(session.console.table.ids().all(|id| id.as_str().starts_with("db-")));
}

#[test]
fn the_prompt_completes_and_remembers() {
    let mut session = apollo();
    session.console.commands = ["scheduler pause", "scheduler resume", "status"]
        .map(|line| crate::console::Known { line: line.to_owned(), about: String::new() })
        .to_vec();
    session.press(":").typing("sch").press("Tab");
    assert_eq!(typed(&session.console), "scheduler ");
    session.typing("r").press("Tab");
    assert_eq!(typed(&session.console), "scheduler resume ");
    let effects = press(&mut session.console, "Enter");
    assert_eq!(commands(&effects), ["scheduler resume"]);
    session.press(":").typing("show gt-43").press("Tab");
    assert_eq!(typed(&session.console), "show gt-43", "ten beads begin like this");
    session.typing("2").press("Tab");
    assert_eq!(typed(&session.console), "show gt-432 ");
    press(&mut session.console, "Enter");
    session.press(": Up");
    assert_eq!(typed(&session.console), "show gt-432");
    session.press("Up");
    assert_eq!(typed(&session.console), "scheduler resume");
    session.press("Down Down");
    assert_eq!(typed(&session.console), "");
}

#[test]
fn the_prompt_knows_views_and_refuses_what_would_fight_for_the_terminal() {
    let mut session = apollo();
    session.press(":").typing("problems").press("Enter");
    assert_eq!(session.console.view, View::Problems);
    for line in ["logs gt-420 --follow", "demo", "--daemon"] {
        let effects = {
            session.press(":").typing(line);
            press(&mut session.console, "Enter")
        };
        assert!(commands(&effects).is_empty(), "{line}");
        assert!(line_error(&session.console).is_some_and(|error| error.contains("inside the console")));
        session.press("Esc");
    }
    session.press(":").typing("show \"unclosed").press("Enter");
    assert_eq!(line_error(&session.console), Some("a quote is not closed"));
}

#[test]
fn the_order_of_rows_is_chosen_and_turned_around() {
    let mut session = apollo();
    session.press("o i");
    let first = session.console.table.ids().next().cloned();
    assert_eq!(first.map(|id| id.to_string()).as_deref(), Some("db-306"));
    assert!(session.screen().contains("sort: id ↑"));
    session.press("o i");
    let first = session.console.table.ids().next().cloned();
    assert_eq!(first.map(|id| id.to_string()).as_deref(), Some("gt-600"));
    assert!(session.screen().contains("sort: id ↓"));
}

#[test]
fn help_and_palette_are_searched_and_run() {
    let mut session = apollo();
    session.press("?").typing("what needs a person").press("Enter");
    assert_eq!(session.console.view, View::Problems);
    session.console.commands =
        vec![crate::console::Known { line: "doctor".to_owned(), about: "Checks the town.".to_owned() }];
    session.press("Ctrl-p").typing("doctor").press("Enter");
    assert_eq!(typed(&session.console), "doctor ", "a command is put on the prompt, not run");
}

#[test]
fn a_frozen_display_stands_still_while_the_town_goes_on() {
    let mut session = apollo();
    session.press("F");
    let before = session.console.state().live_count();
    session.yard.exits("gt-420", 0);
    session.tick();
    assert!(session.screen().contains("FROZEN"));
    assert_eq!(session.console.state().seq(), session.console.town.state.seq());
    assert!(
        session.console.state().bead(&crate::testing::bead("gt-420")).is_some_and(|e| !e.bead.is_closed())
    );
    assert_eq!(session.console.state().live_count(), before);
    session.press("F");
    assert!(
        session.console.state().bead(&crate::testing::bead("gt-420")).is_some_and(|e| e.bead.is_closed())
    );
}

#[test]
fn logs_are_searched_wrapped_and_followed() {
    let mut session = apollo();
    session.select("gt-419").press("l /").typing("refused").press("Enter");
    assert!(!session.console.log.follow && session.console.layers.is_empty());
    let first = session.console.log.top;
    session.press("n");
    assert_ne!(session.console.log.top, first);
    session.press("/ Ctrl-u").typing("no such words").press("Enter");
    let said = session.console.said.as_ref().map(|said| said.text.as_str());
    assert_eq!(said, Some("\"no such words\" is not in this log"));
    assert!(session.console.layers.is_empty(), "keys are keys again");
    session.press("F");
    assert!(session.console.log.follow, "F in a log follows, and freezes nothing");
    assert!(session.console.town.frozen().is_none());
    session.press("w");
    assert!(session.console.log.wrap && session.console.layers.is_empty());
}

fn mouse(console: &mut Console, kind: MouseEventKind, at: Position) -> Vec<Effect> {
    let event = MouseEvent { kind, column: at.x, row: at.y, modifiers: KeyModifiers::NONE };
    let effects = update(console, Msg::Mouse(event));
    prepare(console);
    effects
}

#[test]
fn a_click_hits_the_row_that_is_drawn_there_at_any_size() {
    for size in [(200, 60), (120, 40), (80, 24), (60, 16), (40, 10)] {
        let mut console = scenes::apollo().console(size, "terminal", false);
        // Scrolled, so that rows and lines are not the same.
        press(&mut console, "G");
        let list = list_area(&console);
        for line in (0..list.height).rev() {
            let at = Position::new(list.x + 8, list.y + line);
            mouse(&mut console, MouseEventKind::Down(MouseButton::Left), at);
            // The row may have been selected already, and is opened then.
            console.layers.clear();
            let selected = console.table.selected().expect("a row").to_string();
            let drawn = screen(&console).lines().nth(usize::from(at.y)).expect("a line").to_owned();
            assert!(drawn.contains(&selected), "{size:?}: clicked {drawn:?}, got {selected}");
        }
    }
}

#[test]
fn a_second_click_opens_the_wheel_scrolls_and_a_click_outside_closes() {
    let mut console = scenes::apollo().console((120, 40), "terminal", false);
    let list = list_area(&console);
    let row = Position::new(list.x + 8, list.y + 3);
    let left = MouseEventKind::Down(MouseButton::Left);
    mouse(&mut console, left, row);
    assert!(console.layers.is_empty());
    mouse(&mut console, left, row);
    assert!(matches!(console.layers.last(), Some(Layer::Detail(..))));
    press(&mut console, "Esc");
    mouse(&mut console, MouseEventKind::ScrollDown, row);
    assert_eq!(console.table.cursor(), 6);
    mouse(&mut console, MouseEventKind::ScrollUp, row);
    assert_eq!(console.table.cursor(), 3);
    let log = plan(&console).log.expect("a log");
    mouse(&mut console, left, Position::new(log.x + 2, log.y + 2));
    assert_eq!(console.pane, Pane::Log);
    press(&mut console, "Esc x");
    mouse(&mut console, left, Position::new(0, 0));
    assert!(console.layers.is_empty());
}

#[test]
fn a_click_on_a_choice_is_that_choice() {
    let mut session = apollo();
    session.select("gt-430").press("x");
    let screen = session.screen();
    let (y, line) = screen.lines().enumerate().find(|(_, line)| line.contains("[h] hold")).expect("hold");
    let x = line.chars().position(|letter| letter == '[').expect("a column");
    let at = Position::new(x as u16 + 1, y as u16);
    let effects = mouse(&mut session.console, MouseEventKind::Down(MouseButton::Left), at);
    assert_eq!(commands(&effects), ["hold gt-430"]);
}

#[test]
fn a_replay_steps_seeks_and_tells_what_is_different_now() {
    let mut session = apollo();
    let all = session.yard.log.len();
    session.press("T");
    let at = |session: &Session| match &session.console.mode {
        Mode::Replay(replay) => replay.at(),
        other => panic!("no replay: {other:?}"),
    };
    assert_eq!(at(&session), all);
    session.press("Left Left");
    assert_eq!(at(&session), all - 2);
    session.press("Right");
    assert_eq!(at(&session), all - 1);
    session.press("{");
    let fault = at(&session);
    assert!(fault < all - 1);
    session.press("{ }");
    assert_eq!(at(&session), fault, "there and back");
    session.press("@").typing("50%").press("Enter");
    assert_eq!(at(&session), all / 2);
    session.press("@").typing("14:00").press("Enter");
    assert!(session.screen().contains("14:00:00"));
    session.press("@").typing("soon").press("Enter");
    assert!(line_error(&session.console).is_some_and(|error| error.contains("neither a time")));
    session.press("Esc @").typing("10").press("Enter");
    assert!(session.screen().contains("stand differently"), "{}", session.screen());
    session.press("d");
    assert!(!session.screen().contains("stand differently"));
    session.press("T");
    assert!(matches!(session.console.mode, Mode::Live));
}

#[test]
fn a_replay_plays_by_itself_and_stops_at_the_end() {
    let mut session = apollo();
    session.press("T Left Left Left Space");
    for _ in 0..10 {
        session.yard.later(1);
        session.tick();
    }
    let Mode::Replay(replay) = &session.console.mode else { panic!("it is still a replay") };
    assert!(!replay.playing);
}

#[test]
fn events_that_arrive_during_a_replay_do_not_move_it() {
    let mut session = apollo();
    session.press("T { {");
    let before = session.screen();
    session.yard.exits("gt-420", 0);
    let events = session.yard.log[session.yard.log.len() - 3..].to_vec();
    update(&mut session.console, Msg::Town(News::Events(events)));
    prepare(&mut session.console);
    let beads = |screen: &str| screen.lines().filter(|line| line.contains("gt-4")).count();
    assert_eq!(beads(&session.screen()), beads(&before));
}

#[test]
fn a_what_if_turns_knobs_compares_and_applies_as_commands() {
    let mut session = apollo();
    session.select("gt-430").press("W A");
    assert_eq!(session.console.said.as_ref().map(|said| said.text.as_str()), Some("nothing was turned yet"));
    session.press("+ + j -");
    let before = session.yard.log.len();
    assert!(session.screen().contains("SIMULATION"));
    let effects = press(&mut session.console, "A y");
    assert_eq!(
        commands(&effects),
        ["config set scheduler.max_polecats 8", "config set rig.db.max_polecats 1"]
    );
    assert_eq!(session.yard.log.len(), before, "nothing happens before it is applied");
    let mut session = apollo();
    session.press("W + r");
    let Mode::WhatIf(what_if) = &session.console.mode else { panic!("a what-if") };
    assert!(what_if.changes().is_empty());
    session.press("Esc");
    assert!(matches!(session.console.mode, Mode::Live));
}

#[test]
fn more_workers_finish_no_later_in_a_what_if() {
    let mut session = apollo();
    session.press("W + + + +");
    let Mode::WhatIf(what_if) = &session.console.mode else { panic!("a what-if") };
    let (now, tried) = (what_if.baseline.town.as_ref(), what_if.scenario().town.as_ref());
    let p50 = |forecast: Option<&yard_engine::forecast::Forecast>| {
        forecast.and_then(|f| f.finish).map(|band| band.p50)
    };
    assert!(p50(tried).expect("a forecast") <= p50(now).expect("a forecast"));
    assert!(!what_if.pending, "the forecast of what is tried has come");
}

#[test]
fn typing_into_help_does_not_press_keys() {
    let mut session = apollo();
    session.press("?");
    let effects = typing(&mut session.console, "quit now");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Quit(_))));
    assert!(matches!(session.console.layers.last(), Some(Layer::Finder(_))));
}

#[test]
fn help_knows_the_words_on_the_screen() {
    for word in ["slack", "held", "breaker", "sling", "polecats"] {
        let mut session = apollo();
        session.press("?").typing(word);
        assert!(!session.screen().contains("nothing is called like that"), "{word}");
    }
}

#[test]
fn the_cursor_of_the_list_of_convoys_stays_on_its_convoy() {
    let mut session = apollo();
    session.press("2 j");
    let picked = session.console.subject();
    assert!(picked.is_some());
    let crate::console::Subject::Convoy(id) = picked.clone().expect("a convoy") else { panic!("{picked:?}") };
    let command = yard_engine::Command::ConvoyClose { id: id.to_string(), reason: None, force: true };
    session.yard.must(&command);
    session.tick();
    crate::prepare(&mut session.console);
    assert_eq!(session.console.subject(), picked, "wherever it stands in the list now");
}
