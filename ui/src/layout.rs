//! Where things go on a screen of any size. Painters and the mouse ask the same functions, so they cannot disagree.

use ratatui::layout::Rect;

use crate::console::{Console, Mode, Pane, View};

/// The parts of the screen; what has no room is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The first line.
    pub header: Rect,
    /// Capacity, guards and finish.
    pub tiles: Option<Rect>,
    /// What a mode has to say: knobs or the axis of a replay.
    pub banner: Option<Rect>,
    /// The list.
    pub main: Rect,
    /// Beside the list: the timeline.
    pub side: Option<Rect>,
    /// Beside both: the selected bead.
    pub detail: Option<Rect>,
    /// The log.
    pub log: Option<Rect>,
    /// What was said last.
    pub message: Option<Rect>,
    /// Keys.
    pub footer: Option<Rect>,
    /// Frames are drawn around panes.
    pub framed: bool,
}

/// Narrower or lower, there is one line and nothing else.
const TINY: (u16, u16) = (20, 5);
/// Narrower or lower, rows stand without frames.
const SMALL: (u16, u16) = (60, 16);
/// As low as this, the header's boxes give way to its one line.
const TILES_FROM: u16 = 30;
/// As narrow as this, the timeline stands beside the list.
pub const SIDE_FROM: u16 = 120;
/// As narrow as this, the selected bead stands beside both.
const DETAIL_FROM: u16 = 160;

/// Whether there is room for one line only.
pub fn is_tiny((width, height): (u16, u16)) -> bool {
    width < TINY.0 || height < TINY.1
}

/// Divides the screen.
pub fn plan(console: &Console) -> Plan {
    let (width, height) = console.size;
    let line = |y: u16| Rect::new(0, y, width, 1);
    let framed = width >= SMALL.0 && height >= SMALL.1;
    let mut plan = Plan {
        header: Rect::new(0, 0, width, height.min(1)),
        tiles: None,
        banner: None,
        main: Rect::new(0, 0, width, 0),
        side: None,
        detail: None,
        log: None,
        message: None,
        footer: None,
        framed,
    };
    if is_tiny(console.size) {
        return plan;
    }
    let (mut top, mut bottom) = (1, height);
    if height >= 8 {
        bottom -= 1;
        plan.footer = Some(line(bottom));
    }
    bottom -= 1;
    plan.message = Some(line(bottom));
    let alone = console.full;
    if !alone && console.view == View::Yard && height >= TILES_FROM && width >= 100 {
        plan.tiles = Some(Rect::new(0, top, width, 5));
        top += 5;
    }
    let banner = match &console.mode {
        Mode::Live => 0,
        Mode::Replay(_) => 5,
        Mode::WhatIf(what_if) => (what_if.knobs.len() as u16 + 3).max(9).min((bottom - top) / 2),
    };
    if banner > 0 && framed {
        plan.banner = Some(Rect::new(0, top, width, banner));
        top += banner;
    }
    let middle = bottom.saturating_sub(top);
    let wants_log = matches!(console.view, View::Yard | View::Agents | View::Problems | View::Timeline);
    if alone && console.pane == Pane::Log {
        plan.log = Some(Rect::new(0, top, width, middle));
        plan.main = Rect::new(0, top, width, 0);
        return plan;
    }
    let mut log = 0;
    if framed && wants_log && !alone && middle >= 12 {
        let usual = (i32::from(middle) * 3 / 10).clamp(4, 12);
        let wished = usual + i32::from(console.share);
        log = wished.clamp(3, i32::from(middle) - 6) as u16;
        plan.log = Some(Rect::new(0, bottom - log, width, log));
    }
    let area = Rect::new(0, top, width, middle - log);
    plan.main = area;
    if framed && width >= SIDE_FROM && console.view == View::Yard && !alone {
        let detail = if width >= DETAIL_FROM { (width / 5).min(44) } else { 0 };
        // A little more than half, so that titles and reasons can be read.
        let list = ((width - detail) * 11 / 20).max(60);
        plan.main = Rect { width: list, ..area };
        plan.side = Some(Rect { x: list, width: width - detail - list, ..area });
        plan.detail = (detail > 0).then_some(Rect { x: width - detail, width: detail, ..area });
    }
    if framed && width >= DETAIL_FROM && console.view == View::Agents && !alone && has_agents(console) {
        let detail = (width * 3 / 10).min(64);
        plan.main = Rect { width: width - detail, ..area };
        plan.detail = Some(Rect { x: width - detail, width: detail, ..area });
    }
    plan
}

/// The rows of the view's list: inside its frame, below its headings.
pub fn list_area(console: &Console) -> Rect {
    let plan = plan(console);
    let area = if plan.framed { inside(plan.main) } else { plan.main };
    let above = if plan.framed { headings(console) } else { 0 };
    let below = if plan.framed && (plan.detail.is_none() || console.view != View::Agents) {
        footnotes(console, area.height)
    } else {
        0
    };
    Rect { y: area.y + above.min(area.height), height: area.height.saturating_sub(above + below), ..area }
}

/// How many rows of the list are visible.
pub fn inner_height(console: &Console) -> usize {
    usize::from(list_area(console).height)
}

/// Lines above the rows.
pub fn headings(console: &Console) -> u16 {
    match console.view {
        View::Yard | View::Timeline | View::Agents | View::Problems | View::Events => 1,
        View::Convoys => match &console.convoy {
            Some(id) => crate::views::convoys::head_height(console, id),
            None => 1,
        },
    }
}

/// Lines below the rows.
pub fn footnotes(console: &Console, height: u16) -> u16 {
    match console.view {
        View::Yard if height >= 8 => 2,
        View::Timeline if height >= 8 => 3,
        View::Problems if height >= 8 => 4,
        View::Agents if height >= 8 && has_agents(console) => {
            // More of the selected one, unless that would hide others.
            let rows = crate::crew::rows(console.state()).count();
            let spare = usize::from(height).saturating_sub(rows + 2);
            (spare as u16).clamp(4, 12)
        }
        View::Yard | View::Timeline | View::Problems | View::Convoys | View::Agents | View::Events => 0,
    }
}

/// Whether agents are registered, of which there is more to tell than a row has room for.
fn has_agents(console: &Console) -> bool {
    console.state().agents().next().is_some()
}

/// Inside a frame.
pub fn inside(area: Rect) -> Rect {
    if area.width < 2 || area.height < 2 {
        return Rect { width: 0, height: 0, ..area };
    }
    Rect::new(area.x + 1, area.y + 1, area.width - 2, area.height - 2)
}

/// A box in the middle of the screen, as large as wished where there is room.
pub fn centred(screen: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(screen.width), height.min(screen.height));
    let x = screen.x + (screen.width - width) / 2;
    let y = screen.y + (screen.height - height) / 2;
    Rect::new(x, y, width, height)
}
