//! Everything about one thing: its facts, what it depends on and what depends on it, its attempts, or the raw JSON.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use serde_json::json;
use yard_client::views;
use yard_engine::{BeadId, Standing};

use crate::console::{Console, Subject};
use crate::crew::{self, Held};
use crate::layers::Text;
use crate::look::Look;
use crate::paint::Pen;
use crate::text::{shown, span_exact};
use crate::theme::Role;

/// Draws it in a box.
pub(crate) fn draw(
    pen: &mut Pen<'_>,
    screen: Rect,
    console: &Console,
    text: Text,
    subject: &Subject,
    raw: bool,
) {
    let (title, lines) = match subject {
        Subject::Bead(id) if !raw => (format!("bead {id}"), bead(pen, console, id)),
        Subject::Bead(id) => (format!("bead {id}"), json_lines(&document(console, subject))),
        Subject::Agent(name) if !raw => {
            let wide = usize::from(screen.width).saturating_sub(8).min(110);
            let mut lines = super::agent::facts(pen, console, name, wide);
            lines.extend(super::agent::tracks(pen, console));
            (format!("agent {name}"), lines)
        }
        Subject::Agent(name) => (format!("agent {name}"), json_lines(&document(console, subject))),
        Subject::Convoy(id) => (format!("convoy {id}"), json_lines(&document(console, subject))),
        Subject::Event(seq) => (format!("event {}", seq.0), json_lines(&document(console, subject))),
        Subject::Alert(id) => (format!("alert {id}"), json_lines(&document(console, subject))),
    };
    super::text::draw(pen, screen, &title, &lines, text, "Esc back  w why  J raw JSON  y copy");
}

/// Draws the facts of a bead beside the list.
pub(crate) fn beside(pen: &mut Pen<'_>, area: Rect, console: &Console) {
    let Some(id) = console.bead() else {
        pen.frame(area, pen.title("bead"), "", false);
        return;
    };
    let inner = pen.frame(area, pen.title(id.as_str()), "", false);
    for (row, line) in bead(pen, console, &id).iter().take(usize::from(inner.height)).enumerate() {
        let place = Rect { x: inner.x + 1, width: inner.width.saturating_sub(1), ..inner };
        pen.line(place, row as u16, line);
    }
}

fn document(console: &Console, subject: &Subject) -> serde_json::Value {
    let state = console.state();
    match subject {
        Subject::Bead(id) => {
            let dispatches: Vec<_> = state.dispatches_of(id).map(views::dispatch).collect();
            let mut value = json!(views::bead(state, id));
            if let Some(fields) = value.as_object_mut() {
                fields.insert("dispatches".to_owned(), json!(dispatches));
            }
            value
        }
        Subject::Agent(name) => json!(state.agent(name).map(|agent| views::agent(state, agent))),
        Subject::Convoy(id) => json!(views::convoy(state, id)),
        Subject::Event(seq) => json!(console.event(*seq).map(|event| &**event)),
        Subject::Alert(id) => {
            let alerts = views::alerts(state, true, console.town.transient.clone()).alerts;
            json!(alerts.into_iter().find(|alert| alert.id == *id))
        }
    }
}

/// The JSON of what the cursor is on.
pub(crate) fn json(console: &Console) -> String {
    let value = console.subject().map(|subject| document(console, &subject));
    value.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_default()
}

fn json_lines<'t>(value: &serde_json::Value) -> Vec<Line<'t>> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.lines().map(|line| Line::from(shown(line))).collect()
}

/// The facts of a bead.
pub(super) fn bead<'t>(pen: &Pen<'_>, console: &Console, id: &BeadId) -> Vec<Line<'t>> {
    let state = console.state();
    let Some(view) = views::bead(state, id) else {
        return vec![Line::from("nobody has such a bead")];
    };
    let now = console.shown_now();
    let mut lines = Vec::new();
    let fact = |name: &str, value: String, role: Role| {
        Line::from(vec![pen.span(format!("{name:<10}"), Role::Dim), pen.span(value, role)])
    };
    lines.push(Line::from(pen.span(shown(&view.title), Role::Title)));
    let word = view.state.map_or("gone", Standing::as_str);
    let sign = pen.look.glyphs.standing(view.state);
    lines.push(fact("state", format!("{sign} {word}"), Look::role_of(view.state)));
    for reason in view.reasons.iter().take(4) {
        lines.push(fact("", crate::ways::words_of(reason, now), Role::Text));
    }
    let kind = if view.kind.is_empty() { "task" } else { &view.kind };
    lines.push(fact(
        "type",
        format!("{} P{} {}", shown(kind), view.priority, shown(&view.status)),
        Role::Text,
    ));
    if let Some((agent, held)) = crew::holder(state, id) {
        let left = held.left(state, now).map(span_exact).unwrap_or_default();
        let words = match held {
            Held::Claim(_) => format!("{} has it, lease {left}", agent.name()),
            Held::InHand(_) => format!("{} has it", agent.name()),
            Held::Order(..) => format!("{} has {left} left to claim it", agent.name()),
        };
        lines.push(fact("agent", words, Role::Text));
    }
    if let Some(owner) = crew::track_owner(state, id) {
        lines.push(fact("track", format!("{owner}'s"), Role::Text));
    }
    if let Some(rig) = &view.rig {
        lines.push(fact("rig", rig.to_string(), Role::Text));
    }
    if let Some(convoy) = console.waves().convoy_of(id) {
        let wave = console.waves().of(id).map(|wave| format!(", wave {wave}")).unwrap_or_default();
        lines.push(fact("convoy", format!("{convoy}{wave}"), Role::Text));
    }
    if !view.labels.is_empty() {
        lines.push(fact("labels", shown(&view.labels.join(", ")), Role::Text));
    }
    if let Some(argv) = &view.argv {
        lines.push(fact("runs", shown(&argv.join(" ")), Role::Accent));
    }
    let live = state.bead(id).and_then(|entry| state.dispatch(entry.work.live.as_ref()?));
    if let Some(doing) = live.map(views::doing).filter(|doing| !doing.is_empty()) {
        lines.push(fact("doing", shown(&doing), Role::Text));
    }
    let cost = state.bead(id).map(|entry| entry.work.cost).filter(|cost| !cost.is_zero());
    if let Some(cost) = cost {
        lines.push(fact("cost", cost.to_string(), Role::Text));
    }
    if let Some(planned) = console.shown_forecasts().planned(id) {
        let zone = console.look.zone;
        let critical = if planned.critical { ", on the critical path" } else { "" };
        let words = format!(
            "{} to {}{critical}",
            zone.minute_on(planned.start, now),
            zone.minute_on(planned.end, now)
        );
        lines.push(fact("planned", words, Role::Text));
        let slack = span_exact(planned.slack.0 as i64);
        lines.push(fact("slack", slack, Role::Text));
    }
    edges(pen, console, id, &view, &mut lines);
    attempts(pen, console, id, &mut lines);
    if let Some(description) = &view.description {
        lines.push(Line::default());
        lines.extend(description.lines().map(|line| Line::from(shown(line))));
    }
    lines
}

fn edges(pen: &Pen<'_>, console: &Console, id: &BeadId, view: &views::BeadView, lines: &mut Vec<Line<'_>>) {
    let state = console.state();
    let one = |on: &BeadId, kind: &str| {
        let standing = state.standing(on);
        let title = state.bead(on).map(|entry| shown(&entry.bead.title)).unwrap_or_default();
        Line::from(vec![
            pen.span(format!("  {} ", pen.look.glyphs.standing(standing)), Look::role_of(standing)),
            Span::raw(format!("{on} {title}")),
            pen.span(if kind == "blocks" { String::new() } else { format!("  {kind}") }, Role::Dim),
        ])
    };
    let is_parent = |edge: &&views::DependencyView| edge.kind == "parent-child";
    let (parents, needs): (Vec<_>, Vec<_>) = view.dependencies.iter().partition(is_parent);
    for (heading, edges, plain) in [("part of", parents, "parent-child"), ("needs", needs, "blocks")] {
        if !edges.is_empty() {
            lines.push(Line::from(pen.span(heading, Role::Dim)));
            let kind = |kind: &str| if kind == plain { "blocks".to_owned() } else { kind.to_owned() };
            lines.extend(edges.into_iter().map(|edge| one(&edge.id, &kind(&edge.kind))));
        }
    }
    let below: Vec<&BeadId> = state.children_of(id).take(40).collect();
    if !below.is_empty() {
        lines.push(Line::from(pen.span("contains", Role::Dim)));
        lines.extend(below.into_iter().map(|on| one(on, "blocks")));
    }
    let dependents: Vec<&BeadId> = state.dependents_of(id).take(12).collect();
    if !dependents.is_empty() {
        lines.push(Line::from(pen.span("needed by", Role::Dim)));
        lines.extend(dependents.into_iter().map(|on| one(on, "blocks")));
    }
}

fn attempts(pen: &Pen<'_>, console: &Console, id: &BeadId, lines: &mut Vec<Line<'_>>) {
    let state = console.state();
    let zone = console.look.zone;
    for (number, dispatch) in state.dispatches_of(id).enumerate() {
        if number == 0 {
            lines.push(Line::from(pen.span("attempts", Role::Dim)));
        }
        let view = views::dispatch(dispatch);
        let from = dispatch.running_at.unwrap_or(dispatch.started_at);
        let to = dispatch.ended.as_ref().map_or(console.shown_now(), |ended| ended.at);
        let took = span_exact(to.as_millis() - from.as_millis());
        let cost = if dispatch.cost.is_zero() { String::new() } else { format!("  {}", dispatch.cost) };
        let text = format!("  {} {} {took}{cost}  {}", dispatch.id, zone.clock(from), shown(&view.phase));
        lines.push(Line::from(text));
        if let Some(note) = &dispatch.checkpoint {
            lines.push(Line::from(pen.span(format!("    checkpoint: {}", shown(note)), Role::Dim)));
        }
    }
}
