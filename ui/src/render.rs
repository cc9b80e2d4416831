//! The screen as a plain function of the console. Nothing is changed here, and any size is fine.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::console::{Console, View};
use crate::layers::Layer;
use crate::layout::{is_tiny, plan};
use crate::paint::Pen;
use crate::panes::{
    agent, banner, bottom, detail, finder, header, log, menu, plan as stage, text, tiles, why,
};
use crate::text::shown;
use crate::theme::Role;
use crate::views::{agents, beads, convoys, events, problems, timeline};

/// Draws everything.
pub fn render(console: &Console, buf: &mut Buffer) {
    let screen = buf.area;
    if screen.is_empty() {
        return;
    }
    let mut pen = Pen { buf, look: &console.look };
    pen.tint(screen, pen.style(Role::Text));
    if is_tiny(console.size) {
        header::one_line(&mut pen, screen, console);
        return;
    }
    let plan = plan(console);
    header::draw(&mut pen, plan.header, console);
    if console.homeless {
        welcome(&mut pen, screen);
    } else {
        if let Some(area) = plan.tiles {
            tiles::draw(&mut pen, area, console);
        }
        if let Some(area) = plan.banner {
            banner::draw(&mut pen, area, console);
        }
        if plan.main.height > 0 {
            match console.view {
                View::Yard => beads::draw(&mut pen, &plan, console),
                View::Convoys => convoys::draw(&mut pen, &plan, console),
                View::Timeline => timeline::draw(&mut pen, &plan, console),
                View::Agents => agents::draw(&mut pen, &plan, console),
                View::Problems => problems::draw(&mut pen, &plan, console),
                View::Events => events::draw(&mut pen, &plan, console),
            }
        }
        if let Some(area) = plan.log {
            log::draw(&mut pen, area, console);
        }
    }
    for layer in &console.layers {
        over(&mut pen, screen, console, layer);
    }
    if let Some(area) = plan.message {
        bottom::message(&mut pen, area, console);
    }
    if let Some(area) = plan.footer {
        bottom::footer(&mut pen, area, console);
    }
}

fn over(pen: &mut Pen<'_>, screen: Rect, console: &Console, layer: &Layer) {
    // What is typed stands on the message line, and what can be done on the footer: both stay in sight.
    let room = Rect { height: screen.height.saturating_sub(2), ..screen };
    match layer {
        Layer::Finder(it) => finder::draw(pen, room, it),
        Layer::Line(_) => {}
        Layer::Menu(it) => menu::draw(pen, screen, it),
        Layer::Why(scroll, id) => why::draw(pen, room, console, *scroll, id),
        Layer::WhyIdle(scroll, name) => agent::draw_why(pen, room, console, *scroll, name),
        Layer::Detail(scroll, subject, raw) => detail::draw(pen, room, console, *scroll, subject, *raw),
        Layer::Output(scroll, title, lines) => {
            let lines: Vec<_> = lines.iter().map(|line| ratatui::text::Line::from(shown(line))).collect();
            text::draw(pen, room, &shown(title), &lines, *scroll, "Esc back");
        }
        Layer::Plan(scroll, view) => stage::draw(pen, room, console, *scroll, view),
    }
}

/// Where there is no town.
fn welcome(pen: &mut Pen<'_>, screen: Rect) {
    let words = [
        "Yardmaster runs work that runs by itself: coding agents, and any long command.",
        "",
        "It assembles convoys, decides what leaves when, holds, recalls and retries.",
    ];
    for (row, text) in words.iter().enumerate() {
        let place =
            Rect { x: screen.x + 2, width: screen.width.saturating_sub(2), y: screen.y + 2, height: 4 };
        pen.line(place, row as u16, &ratatui::text::Line::from(pen.span(*text, Role::Dim)));
    }
}
