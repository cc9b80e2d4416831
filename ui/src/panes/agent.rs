//! Everything about one agent: what it is, what it holds and says, why it has no order, and whose the tracks are. The same
//! lines stand below the list, beside it, and in a box of their own, as far as each has room.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use yard_engine::AgentName;
use yard_engine::agent::{Agent, AgentState};

use crate::console::{Console, Subject};
use crate::crew::{self, Held};
use crate::layers::Text;
use crate::look::Look;
use crate::paint::Pen;
use crate::text::{count, shown, span, span_exact, wrapped};
use crate::theme::Role;

/// Cells of a name before its value.
const NAMES: usize = 10;
/// Lines below the list that leave no room for tracks.
const FEW: usize = 4;
/// Beads of a track that are named.
const NAMED: usize = 8;

/// Draws why an agent has no order, in a box.
pub(crate) fn draw_why(pen: &mut Pen<'_>, screen: Rect, console: &Console, text: Text, name: &AgentName) {
    let wide = usize::from(screen.width).saturating_sub(8);
    let lines = why(pen, console, name, wide.min(100));
    let title = format!("why {name} is sent nothing now");
    super::text::draw(pen, screen, &title, &lines, text, "Enter its details  x act  Esc back");
}

/// Every reason, with how the agent stands before and who waits for one after.
fn why<'t>(pen: &Pen<'_>, console: &Console, name: &AgentName, wide: usize) -> Vec<Line<'t>> {
    let state = console.state();
    let Some(agent) = state.agent(name) else {
        return vec![Line::from("it is not registered any more")];
    };
    let mut lines = vec![state_line(pen, console, agent), Line::default()];
    for reason in crew::why(state, name, console.shown_now()) {
        let mut rows = wrapped(&reason, wide.saturating_sub(2)).into_iter();
        if let Some(first) = rows.next() {
            lines.push(Line::from(vec![
                pen.span(format!("{} ", pen.look.glyphs.arrow), Role::Accent),
                Span::raw(first),
            ]));
        }
        lines.extend(rows.map(|row| Line::from(format!("  {row}"))));
    }
    lines
}

/// Everything about an agent.
pub(crate) fn facts<'t>(pen: &Pen<'_>, console: &Console, name: &AgentName, wide: usize) -> Vec<Line<'t>> {
    let state = console.state();
    let now = console.shown_now();
    let Some(agent) = state.agent(name) else {
        return vec![Line::from("it is not registered any more")];
    };
    let mut lines =
        vec![Line::from(pen.span(what_it_is(agent), Role::Title)), state_line(pen, console, agent)];
    let mut fact = |name: &str, value: &str, role: Role| {
        for (number, row) in wrapped(value, wide.saturating_sub(NAMES)).into_iter().enumerate() {
            let name = if number == 0 { name } else { "" };
            lines.push(Line::from(vec![pen.span(format!("{name:<NAMES$}"), Role::Dim), pen.span(row, role)]));
        }
    };
    for held in crew::held(state, agent) {
        fact(held.word(), &about_held(console, &held), Role::Text);
    }
    if agent.state != AgentState::Working {
        for reason in crew::why(state, name, now) {
            fact("no order", &reason, Role::Accent);
        }
    }
    let note = agent.says.as_ref().and_then(|says| says.note.as_deref());
    // Of one that is blocked, its note is part of the reason.
    if let Some(note) = note.filter(|_| agent.state != AgentState::Blocked) {
        fact("says", &shown(note), Role::Text);
    }
    let counts = &agent.counts;
    let tallies = format!(
        "{} done of {} claimed; {} sent, {} lapsed, {} lost",
        counts.done,
        counts.claimed,
        count(counts.ordered as usize, "order"),
        counts.lapsed,
        count(counts.expired as usize, "claim")
    );
    fact("so far", &tallies, Role::Text);
    let (idle, working) = agent.times(now);
    fact("time", &format!("{} at work, {} idle", span(working.0 as i64), span(idle.0 as i64)), Role::Text);
    if let Some(cost) = crew::cost(state, agent) {
        fact("cost", &format!("{cost} for what it has"), Role::Text);
    }
    if !agent.track.is_empty() {
        let beads: Vec<String> = agent.track.iter().map(|bead| shown(bead.as_str())).collect();
        fact("its track", &beads.join(" "), Role::Text);
    }
    if let Some(process) = &agent.registration.process {
        fact("process", &process.pid.to_string(), Role::Text);
    }
    let zone = console.look.zone;
    fact("known", &format!("since {}", zone.minute_on(agent.registered_at, now)), Role::Dim);
    lines
}

/// `fern  claude-code opus  (sql, migrations)`
fn what_it_is(agent: &Agent) -> String {
    let of = &agent.registration;
    let mut text = format!("{}  {}", shown(of.name.as_str()), shown(&of.program));
    if let Some(model) = &of.model {
        text = format!("{text} {}", shown(model));
    }
    if let Some(skills) = &of.skills {
        text = format!("{text}  ({})", shown(skills));
    }
    text
}

/// Its state with sign and word, since when, when it was heard of, and what it has done.
fn state_line<'t>(pen: &Pen<'_>, console: &Console, agent: &Agent) -> Line<'t> {
    let (state, now) = (console.state(), console.shown_now());
    let (sign, role) = crew::sign(&pen.look.glyphs, agent.state);
    let ago = |at: yard_engine::Timestamp| span(now.as_millis() - at.as_millis());
    let dot = pen.look.glyphs.dot;
    let mut rest = format!(" for {} {dot} heard {} ago", ago(agent.since), ago(agent.heard_at));
    let lease = crew::held(state, agent).find(|held| matches!(held, Held::Claim(_)));
    if let Some(left) = lease.and_then(|held| held.left(state, now)) {
        rest = format!("{rest} {dot} lease {}", span_exact(left));
    }
    rest = format!("{rest} {dot} {} done", agent.counts.done);
    if let Some(share) = crew::idle_share(agent, now) {
        rest = format!("{rest} {dot} idle {share}%");
    }
    if let Some(cost) = crew::cost(state, agent) {
        rest = format!("{rest} {dot} {cost}");
    }
    Line::from(vec![pen.span(format!("{sign} {}", agent.state.as_str()), role), pen.span(rest, Role::Text)])
}

/// A bead that an agent has or is to claim, with what is left of its time.
fn about_held(console: &Console, held: &Held<'_>) -> String {
    let (state, now) = (console.state(), console.shown_now());
    let title = state.bead(held.bead()).map(|entry| shown(&entry.bead.title)).unwrap_or_default();
    let left = held.left(state, now).map(span_exact);
    let left = match (held, left) {
        (Held::Claim(_), Some(left)) => format!(", lease {left}"),
        (Held::Order(..), Some(left)) => format!(", {left} left to do so"),
        (Held::InHand(_), _) | (_, None) => String::new(),
    };
    let says = crew::progress(held).map(|says| format!(": {}", shown(says))).unwrap_or_default();
    format!("{} {title}{left}{says}", shown(held.bead().as_str()))
}

/// Whose the tracks are, where whole tracks are given away; nothing otherwise.
pub(crate) fn tracks<'t>(pen: &Pen<'_>, console: &Console) -> Vec<Line<'t>> {
    let tracks = &console.digest.tracks;
    if tracks.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![Line::from(pen.span("tracks", Role::Dim))];
    for track in tracks {
        let (owner, role) = match &track.agent {
            Some(name) => (shown(name.as_str()), Role::Text),
            None => ("nobody".to_owned(), Role::Dim),
        };
        let mut spans = vec![
            pen.span(format!("{:<9} ", track.track_id), Role::Dim),
            pen.span(format!("{owner:<10} "), role),
        ];
        for item in track.items.iter().take(NAMED) {
            let sign = pen.look.glyphs.standing(item.state);
            spans.push(pen.span(format!("{sign} "), Look::role_of(item.state)));
            spans.push(Span::raw(format!("{}  ", shown(item.id.as_str()))));
        }
        let more = track.items.len().saturating_sub(NAMED);
        if more > 0 {
            spans.push(pen.span(format!("and {more} more"), Role::Dim));
        }
        lines.push(Line::from(spans));
    }
    lines
}

/// What the cursor is on.
fn about_row<'t>(pen: &Pen<'_>, console: &Console, wide: usize) -> Vec<Line<'t>> {
    match console.subject() {
        Some(Subject::Agent(name)) => facts(pen, console, &name, wide),
        Some(Subject::Bead(id)) => super::detail::bead(pen, console, &id),
        Some(Subject::Convoy(_) | Subject::Event(_) | Subject::Alert(_)) | None => Vec::new(),
    }
}

/// Draws it below the list, the tracks at the end where there is room for both.
pub(crate) fn below(pen: &mut Pen<'_>, area: Rect, console: &Console) {
    let rule = pen.look.glyphs.rule.repeat(usize::from(area.width));
    pen.put(area.x, area.y, area.width, &rule, pen.style(Role::Border));
    let place = Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(1),
        height: area.height.saturating_sub(1),
    };
    let room = usize::from(place.height);
    // With room for a few lines each is a thing of its own, and shows that it is cut.
    let wide = if room > FEW { usize::from(place.width) } else { usize::MAX };
    let mut lines = about_row(pen, console, wide);
    let tracks = tracks(pen, console);
    if room > FEW && !tracks.is_empty() {
        lines.truncate(room.saturating_sub(tracks.len()).max(room / 2));
        lines.extend(tracks);
    }
    for (row, line) in lines.iter().take(room).enumerate() {
        pen.line(place, row as u16, line);
    }
}

/// Draws it beside the list.
pub(crate) fn beside(pen: &mut Pen<'_>, area: Rect, console: &Console) {
    let title = match console.subject() {
        Some(Subject::Agent(name)) => shown(name.as_str()),
        Some(Subject::Bead(id)) => shown(id.as_str()),
        Some(Subject::Convoy(_) | Subject::Event(_) | Subject::Alert(_)) | None => String::new(),
    };
    let inner = pen.frame(area, pen.title(&title), "", false);
    let place = Rect { x: inner.x + 1, width: inner.width.saturating_sub(1), ..inner };
    let mut lines = about_row(pen, console, usize::from(place.width));
    let tracks = tracks(pen, console);
    if !tracks.is_empty() {
        lines.push(Line::default());
        lines.extend(tracks);
    }
    for (row, line) in lines.iter().take(usize::from(place.height)).enumerate() {
        pen.line(place, row as u16, line);
    }
}
