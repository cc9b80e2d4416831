//! Screens that were looked at and found good. `INSTA_UPDATE=always cargo nextest run -p yard-ui snapshots` accepts
//! others: look at them first.

use std::fmt::Write as _;

use ratatui::buffer::Buffer;

use crate::look::Look;
use crate::msg::Msg;
use crate::testing::session::Session;
use crate::testing::{Yard, scenes};
use crate::theme::{ROLES, Theme};
use crate::{prepare, update};

fn at(yard: Yard, size: (u16, u16)) -> Session {
    Session::on(yard, size, "terminal", false)
}

fn apollo(size: (u16, u16)) -> Session {
    let mut session = at(scenes::apollo(), size);
    session.select("db-416");
    session
}

/// A snapshot of text, under the name of what it shows and its size.
fn snap(session: &Session, name: &str) {
    let (width, height) = session.console.size;
    insta::assert_snapshot!(format!("{name}_{width}x{height}"), session.screen());
}

#[test]
fn the_yard_at_three_sizes() {
    for size in [(200, 60), (120, 40), (80, 24)] {
        snap(&apollo(size), "yard");
    }
}

#[test]
fn the_other_views_at_three_sizes() {
    for size in [(200, 60), (120, 40), (80, 24)] {
        let mut session = apollo(size);
        for (keys, name) in [
            ("2", "convoys"),
            ("Enter", "convoy"),
            ("3", "timeline"),
            ("4", "agents"),
            ("5", "problems"),
            ("6", "events"),
        ] {
            session.press(keys);
            snap(&session, name);
        }
    }
}

#[test]
fn why_and_detail() {
    let mut session = apollo((120, 40));
    session.select("gt-432").press("w");
    snap(&session, "why");
    session.press("Esc");
    session.select("gt-419").press("Enter");
    snap(&session, "detail");
}

#[test]
fn menus_and_questions() {
    let mut session = apollo((80, 24));
    session.select("gt-418").press("x");
    snap(&session, "act");
    session.press("Esc P");
    snap(&session, "preempt");
    session.press("Esc ?");
    session.typing("retry");
    snap(&session, "help");
    session.press("Esc /");
    session.typing("state:run");
    snap(&session, "filter");
}

#[test]
fn a_plan_before_its_launch() {
    let mut session = at(scenes::staged(), (120, 40));
    session.press("s e");
    assert!(matches!(session.console.layers.last(), Some(crate::layers::Layer::Plan(..))));
    snap(&session, "plan");
}

#[test]
fn what_if_and_replay() {
    let mut session = apollo((120, 40));
    session.press("W + +");
    snap(&session, "what_if");
    let mut session = apollo((120, 40));
    session.press("T { { {");
    snap(&session, "replay");
}

#[test]
fn nothing_to_do_and_nothing_allowed() {
    snap(&at(scenes::empty(), (120, 40)), "empty");
    snap(&at(scenes::paused(), (80, 24)), "paused");
    let mut homeless = at(scenes::empty(), (80, 24));
    homeless.console.town.link = crate::town::Link::Loading { read: 0, of: 0 };
    homeless.console.homeless = true;
    homeless.press("Esc");
    snap(&homeless, "no_town");
}

#[test]
fn without_colours_and_in_plain_characters() {
    let mut session = apollo((80, 24));
    session.console.look = Look::fixed("mono", true).expect("a look");
    insta::assert_snapshot!("ascii_80x24", session.screen());
    update(&mut session.console, Msg::Resize(40, 10));
    prepare(&mut session.console);
    insta::assert_snapshot!("ascii_40x10", session.screen());
}

/// A theme in which every role has a colour of its own, by which it is found again.
fn telling_theme() -> Theme {
    let lines = ROLES.iter().enumerate().map(|(number, (_, name, _))| {
        // What is laid over text must not hide whose text it is.
        let how = if *name == "selection" { "on " } else { "" };
        format!("{name} = \"{how}{}\"\n", number + 16)
    });
    Theme::parse("telling", &lines.collect::<String>()).expect("a theme")
}

/// A letter per cell: the role that gave it its style; a selected row is capital rubbish otherwise, so it is told in the
/// margin.
fn style_map(buffer: &Buffer) -> String {
    use ratatui::style::Color;
    let selection = 16 + ROLES.iter().position(|(_, name, _)| *name == "selection").expect("a role") as u8;
    let letter = |colour: Color| match colour {
        Color::Indexed(number @ 16..=40) => ROLES[usize::from(number - 16)].2,
        // A worker's own colours, in its log.
        _ => '?',
    };
    let mut map = String::new();
    for y in 0..buffer.area.height {
        let mut row: String = (0..buffer.area.width).map(|x| letter(buffer[(x, y)].fg)).collect();
        let selected = (0..buffer.area.width).filter(|x| buffer[(*x, y)].bg == Color::Indexed(selection));
        let selected: Vec<u16> = selected.collect();
        if let (Some(first), Some(last)) = (selected.first(), selected.last()) {
            let _ = write!(row, "  # {first}..{last}");
        }
        map.push_str(row.trim_end());
        map.push('\n');
    }
    map
}

#[test]
fn every_cell_of_the_yard_has_the_style_of_what_it_means() {
    for size in [(200, 60), (120, 40), (80, 24)] {
        let mut session = apollo(size);
        session.press("Space Space k k");
        session.console.look.theme = telling_theme();
        let (width, height) = size;
        insta::assert_snapshot!(
            format!("styles_of_the_yard_{width}x{height}"),
            style_map(&session.painted())
        );
        session.select("gt-432").press("w");
        insta::assert_snapshot!(format!("styles_of_why_{width}x{height}"), style_map(&session.painted()));
    }
}
