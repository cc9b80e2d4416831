//! What others write reaches the screen, never the terminal: titles, progress, failures, reasons and logs full of
//! escape sequences, text that runs the other way, piles of marks, wide letters and ten kilobytes.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::frames::{LAYERS, SIZES};
use crate::layout::plan;
use crate::msg::Msg;
use crate::testing::session::Session;
use crate::testing::{painted, scenes};
use crate::{prepare, update};

/// Letters that turn text around, or show nothing at all.
fn is_unsafe(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{61c}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn assert_safe(buffer: &Buffer, what: &str) {
    for (at, cell) in buffer.content().iter().enumerate() {
        let symbol = cell.symbol();
        assert!(!symbol.chars().any(is_unsafe), "{what}: cell {at} is {symbol:?}");
        assert!(symbol.chars().count() <= 12 && symbol.width() <= 2, "{what}: cell {at} is {symbol:?}");
    }
}

/// Both sides of a frame, from corner to corner.
fn assert_framed(buffer: &Buffer, area: Rect, what: &str) {
    for (x, side) in [(area.x, "left"), (area.right() - 1, "right")] {
        for y in area.y..area.bottom() {
            let symbol = buffer[(x, y)].symbol();
            assert!("┌┐└┘│".contains(symbol), "{what}: the {side} side at line {y} is {symbol:?}");
        }
    }
}

fn hostile() -> Session {
    Session::on(scenes::hostile(), (120, 40), "terminal", false)
}

#[test]
fn nothing_unsafe_is_in_any_cell_of_any_view_with_any_layer() {
    for view in 1..=6 {
        for (layer, keys) in LAYERS {
            let mut session = hostile();
            session.select("gt-h0");
            session.press(&view.to_string()).press(keys);
            for size in SIZES {
                update(&mut session.console, Msg::Resize(size.0, size.1));
                prepare(&mut session.console);
                assert_safe(&painted(&session.console), &format!("view {view} with {layer} at {size:?}"));
            }
        }
    }
}

#[test]
fn every_frame_stays_whole_whatever_is_inside() {
    for size in [(200, 60), (120, 40), (80, 24), (60, 16)] {
        for view in 1..=6 {
            let mut session = hostile();
            session.press(&view.to_string());
            update(&mut session.console, Msg::Resize(size.0, size.1));
            for row in 0..12 {
                prepare(&mut session.console);
                let (buffer, plan) = (painted(&session.console), plan(&session.console));
                let panes = [plan.banner, Some(plan.main), plan.side, plan.detail, plan.log];
                for pane in panes.into_iter().flatten().filter(|pane| pane.height > 1) {
                    assert_framed(&buffer, pane, &format!("view {view} at {size:?}, row {row}"));
                }
                session.press("j");
            }
        }
    }
}

#[test]
fn what_lies_over_the_view_is_framed_too() {
    for (keys, title) in [("w", " why "), ("Enter", " bead "), ("x", " act on "), ("P", "?"), ("?", " help ")]
    {
        for bead in ["gt-h1", "gt-h2", "gt-h5", "gt-long", "gt-wait"] {
            let mut session = hostile();
            session.select(bead).press(keys);
            let buffer = session.painted();
            if let Some(area) = frame_titled(&buffer, title) {
                assert_framed(&buffer, area, &format!("{title} of {bead}"));
            }
        }
    }
}

/// The frame whose upper edge says so.
fn frame_titled(buffer: &Buffer, title: &str) -> Option<Rect> {
    let area = buffer.area;
    for y in 0..area.height {
        let row: Vec<&str> = (0..area.width).map(|x| buffer[(x, y)].symbol()).collect();
        for left in (0..row.len()).filter(|x| row[*x] == "┌") {
            let right = (left..row.len()).find(|x| row[*x] == "┐")?;
            if row[left..right].concat().contains(title) && !row[left..right].concat().contains(" beads ") {
                let bottom = (y..area.height).find(|y| buffer[(left as u16, *y)].symbol() == "└")?;
                return Some(Rect::new(left as u16, y, (right - left + 1) as u16, bottom - y + 1));
            }
        }
    }
    None
}

#[test]
fn a_pasted_line_cannot_hide_anything_in_the_prompt() {
    let mut session = hostile();
    session.press(":");
    update(&mut session.console, Msg::Paste(scenes::HOSTILE.concat()));
    assert_safe(&session.painted(), "the prompt");
    session.press("Esc ?");
    update(&mut session.console, Msg::Paste(scenes::HOSTILE.concat()));
    assert_safe(&session.painted(), "the help");
}

#[test]
fn what_a_command_printed_is_made_safe_line_by_line() {
    let mut session = hostile();
    let ran = crate::msg::Ran { argv: vec!["show".to_owned()], ok: true, output: scenes::HOSTILE.join("\n") };
    update(&mut session.console, Msg::Ran { lines: vec![ran.clone()], show: true });
    assert_safe(&session.painted(), "the output");
    session.press("Esc");
    update(&mut session.console, Msg::Ran { lines: vec![ran], show: false });
    assert_safe(&session.painted(), "the message line");
}
