//! The mouse: a click picks a row or a choice, a second one opens it, the wheel scrolls what is under it.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::moves::{Move, go, rows, scroll_layer};
use super::perform;
use crate::actions::Act;
use crate::console::{Console, Pane};
use crate::layers::Layer;
use crate::layout::{list_area, plan};
use crate::msg::Effect;

/// Rows that one notch of the wheel moves.
const NOTCH: isize = 3;

pub(super) fn mouse(console: &mut Console, event: MouseEvent) -> Vec<Effect> {
    let at = Position::new(event.column, event.row);
    match event.kind {
        MouseEventKind::ScrollDown => wheel(console, at, NOTCH),
        MouseEventKind::ScrollUp => wheel(console, at, -NOTCH),
        MouseEventKind::Down(MouseButton::Left) => return click(console, at),
        _ => {}
    }
    Vec::new()
}

fn wheel(console: &mut Console, at: Position, by: isize) {
    if !console.layers.is_empty() {
        for _ in 0..by.unsigned_abs() {
            scroll_layer(console, if by > 0 { "Down" } else { "Up" });
        }
        return;
    }
    let over_log = plan(console).log.is_some_and(|area| area.contains(at));
    let pane = std::mem::replace(&mut console.pane, if over_log { Pane::Log } else { Pane::Main });
    go(console, Move::By(by));
    console.pane = pane;
}

fn click(console: &mut Console, at: Position) -> Vec<Effect> {
    if let Some(Layer::Menu(menu)) = console.layers.last() {
        let area = crate::panes::menu::area(menu, screen(console));
        let row = usize::from(at.y.saturating_sub(area.y + 1)).checked_sub(menu.notes.len());
        let inside = area.contains(at);
        let chosen = row.filter(|_| inside).and_then(|row| menu.items.get(row)).map(|item| item.key);
        return match chosen {
            Some(key) => crate::keys::key(&key.to_string())
                .map(|key| super::keys::key(console, key))
                .unwrap_or_default(),
            None if inside => Vec::new(),
            None => {
                console.layers.pop();
                Vec::new()
            }
        };
    }
    if !console.layers.is_empty() {
        return Vec::new();
    }
    let whole = plan(console);
    if whole.log.is_some_and(|area| area.contains(at)) {
        console.pane = Pane::Log;
        return Vec::new();
    }
    if at.y == whole.header.y {
        return Vec::new();
    }
    let list = list_area(console);
    if !list.contains(at) {
        return Vec::new();
    }
    console.pane = Pane::Main;
    let line = usize::from(at.y - list.y);
    let before = console.place();
    let row = line + before.offset;
    if row >= rows(console) {
        return Vec::new();
    }
    console.set_row(row);
    // A second click on the same row opens it.
    if before.at == row { perform(console, Act::Detail) } else { Vec::new() }
}

fn screen(console: &Console) -> Rect {
    Rect::new(0, 0, console.size.0, console.size.1)
}
