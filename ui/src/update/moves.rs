//! Moving about: rows, pages, panes, and keeping the cursor in sight.

use crate::console::{Console, Pane, View};
use crate::layers::{Layer, Text};
use crate::layout::{inner_height, plan};

/// How a move goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    By(isize),
    Pages(isize),
    Half(isize),
    Top,
    Bottom,
}

/// Moves the cursor of whatever has the keyboard.
pub(super) fn go(console: &mut Console, how: Move) {
    if console.pane == Pane::Log {
        go_in_log(console, how);
        return;
    }
    let page = list_height(console).max(1) as isize;
    let step = |at: usize, rows: usize| -> usize {
        let to = match how {
            Move::By(by) => at.saturating_add_signed(by),
            Move::Pages(pages) => at.saturating_add_signed(pages * page),
            Move::Half(halves) => at.saturating_add_signed(halves * (page / 2).max(1)),
            Move::Top => 0,
            Move::Bottom => rows,
        };
        to.min(rows.saturating_sub(1))
    };
    let row = step(console.place().at, rows(console));
    console.set_row(row);
}

/// How many rows the list of the view has.
pub(crate) fn rows(console: &Console) -> usize {
    match console.view {
        View::Yard | View::Timeline => console.table.len(),
        View::Convoys => match &console.convoy {
            Some(id) => console.state().convoy(id).map_or(0, |convoy| convoy.tracked.len()),
            None => console.convoy_list().len(),
        },
        View::Agents => crate::crew::rows(console.state()).count(),
        View::Problems => console.shown_problems().len(),
        View::Events => console.event_count(),
    }
}

fn list_height(console: &Console) -> usize {
    inner_height(console)
}

fn go_in_log(console: &mut Console, how: Move) {
    let height = plan(console).log.map_or(1, |area| area.height.saturating_sub(2).max(1)) as usize;
    let log = &mut console.log;
    let last = log.lines.len().saturating_sub(height);
    let top = if log.follow { last } else { log.top.min(last) };
    let page = height as isize;
    let to = match how {
        Move::By(by) => top.saturating_add_signed(by),
        Move::Pages(pages) => top.saturating_add_signed(pages * page),
        Move::Half(halves) => top.saturating_add_signed(halves * (page / 2).max(1)),
        Move::Top => 0,
        Move::Bottom => last,
    };
    log.top = to.min(last);
    log.follow = to >= last;
}

/// Goes to the next line of the log that matches, or the one before; says whether there is one.
pub(super) fn search(console: &mut Console, on: bool) -> bool {
    let matches = console.log.matches();
    let height = plan(console).log.map_or(1, |area| area.height.saturating_sub(2).max(1)) as usize;
    let log = &mut console.log;
    let last = log.lines.len().saturating_sub(height);
    let from = if log.follow { last } else { log.top };
    let found = if on {
        matches.iter().find(|at| **at > from).or(matches.first())
    } else {
        matches.iter().rev().find(|at| **at < from).or(matches.last())
    };
    if let Some(at) = found {
        log.top = *at;
        log.follow = false;
    }
    found.is_some()
}

/// Scrolls the list so that its cursor is in sight.
pub(super) fn scroll(console: &mut Console) {
    if console.view == View::Convoys && console.convoy.is_none() {
        console.find_convoy();
    }
    if console.view == View::Agents {
        console.find_agent();
    }
    let (rows, height) = (rows(console), list_height(console));
    match console.list() {
        Some(cursor) => cursor.scroll(rows, height),
        None => console.table.scroll(height),
    }
}

/// Scrolls what lies on top, if the key is one that scrolls.
pub(super) fn scroll_layer(console: &mut Console, name: &str) -> bool {
    let page = usize::from(console.size.1).saturating_sub(8).max(1);
    let Some(
        Layer::Why(text, _)
        | Layer::WhyIdle(text, _)
        | Layer::Detail(text, ..)
        | Layer::Output(text, ..)
        | Layer::Plan(text, _),
    ) = console.layers.last_mut()
    else {
        return false;
    };
    let Text { scroll } = text;
    match name {
        "j" | "Down" => *scroll = scroll.saturating_add(1),
        "k" | "Up" => *scroll = scroll.saturating_sub(1),
        "PgDn" | "Ctrl-f" | "Space" => *scroll = scroll.saturating_add(page),
        "PgUp" | "Ctrl-b" => *scroll = scroll.saturating_sub(page),
        "Ctrl-d" => *scroll = scroll.saturating_add(page / 2),
        "Ctrl-u" => *scroll = scroll.saturating_sub(page / 2),
        "g" | "Home" => *scroll = 0,
        // The painter knows where the end is.
        "G" | "End" => *scroll = usize::MAX / 2,
        _ => return false,
    }
    true
}
