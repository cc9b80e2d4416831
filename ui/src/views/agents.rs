//! Registered agents, then live workers: what each is on, says and costs, how long its claim or order still holds, and
//! why an agent has no order. Only the rows that are seen are built.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use yard_client::views::doing;
use yard_engine::State;
use yard_engine::agent::{Agent, AgentState};
use yard_engine::dispatch::Dispatch;

use crate::console::{Console, Pane};
use crate::crew::{self, Held, Row};
use crate::layout::{Plan, inside, list_area};
use crate::look::Look;
use crate::paint::Pen;
use crate::panes::agent;
use crate::text::{column, right, shown, span, span_exact};
use crate::theme::Role;

/// Less than this is left of a claim or an order: it shows.
const SOON: i64 = 120_000;

/// Which columns there is room for.
#[derive(Debug, Clone, Copy)]
struct Columns {
    /// Of an agent's name and of a bead's id.
    names: usize,
    /// Of titles; 0 for none.
    title: usize,
    /// Since when, done, idle share and cost.
    tallies: bool,
    /// Of a worker's title, and whether its rig is told.
    work: (usize, bool),
}

impl Columns {
    fn of(width: u16) -> Self {
        match width {
            130.. => Self { names: 12, title: 20, tallies: true, work: (20, true) },
            100.. => Self { names: 12, title: 0, tallies: true, work: (20, true) },
            _ => Self { names: 10, title: 0, tallies: false, work: (14, false) },
        }
    }
}

/// Draws it.
pub(crate) fn draw(pen: &mut Pen<'_>, plan: &Plan, console: &Console) {
    let list = list_area(console);
    let state = console.state();
    let columns = Columns::of(list.width);
    let seen: Vec<(usize, Row<'_>)> =
        crew::rows(state).enumerate().skip(console.agents.offset).take(usize::from(list.height)).collect();
    if plan.framed {
        let (title, keys) = titles(state, columns);
        pen.frame(plan.main, pen.title(&title), keys, console.pane == Pane::Main);
        let head = match seen.first() {
            Some((_, Row::Agent(_) | Row::More(..) | Row::Workers)) => agent_heads(pen, columns),
            Some((_, Row::Worker(_))) | None => worker_heads(pen, columns),
        };
        pen.put(list.x, list.y.saturating_sub(1), list.width, &head, pen.style(Role::Dim));
    }
    if seen.is_empty() {
        nobody(pen, list, state);
    }
    for (line, (number, row)) in seen.iter().enumerate() {
        let selected = *number == console.agents.at;
        let mut spans = vec![Span::raw(if selected { pen.look.glyphs.cursor } else { " " })];
        spans.extend(match row {
            Row::Agent(one) => agent_row(pen, console, columns, one),
            Row::More(one, held) => more_row(pen, console, columns, one, held),
            // Its cells begin where those of the rows below do.
            Row::Workers => vec![pen.span(worker_heads(pen, columns)[1..].to_owned(), Role::Dim)],
            Row::Worker(dispatch) => worker_row(pen, console, columns, dispatch),
        });
        pen.line(list, line as u16, &Line::from(spans));
        if selected {
            pen.tint(Rect { y: list.y + line as u16, height: 1, ..list }, pen.style(Role::Selection));
        }
    }
    if let Some(area) = plan.detail {
        agent::beside(pen, area, console);
    }
    let inner = inside(plan.main);
    if plan.framed && inner.bottom() > list.bottom() {
        let below = Rect { y: list.bottom(), height: inner.bottom() - list.bottom(), ..inner };
        agent::below(pen, below, console);
    }
}

/// Who is there, and the keys that help.
fn titles(state: &State, columns: Columns) -> (String, &'static str) {
    let workers = crew::workers(state).count();
    let mut counts = [0_usize; 4];
    for agent in state.agents() {
        counts[match agent.state {
            AgentState::Working => 0,
            AgentState::Idle => 1,
            AgentState::Blocked => 2,
            AgentState::Offline | AgentState::Unresponsive => 3,
        }] += 1;
    }
    let agents: usize = counts.iter().sum();
    if agents == 0 {
        return (format!("workers  {workers}"), "l logs  a attach  x act");
    }
    let mut title = format!("agents  {agents}");
    if columns.tallies {
        let named = counts.iter().zip(["working", "idle", "blocked", "gone"]);
        let named: Vec<String> = named
            .filter(|(number, _)| **number > 0)
            .map(|(number, word)| format!("{number} {word}"))
            .collect();
        title = format!("{title}: {}", named.join(", "));
    }
    if workers > 0 {
        title = format!("{title}  workers  {workers}");
    }
    (title, "w why  u release  X retire  x act")
}

/// Words and the next step where nobody works.
fn nobody(pen: &mut Pen<'_>, list: Rect, state: &State) {
    let first = match state.open_context_count() {
        0 => "No worker is live, and nothing is scheduled.",
        _ => "No worker is live: w says of any waiting bead why.",
    };
    let words = [
        first,
        "No agent is registered either: ym agent register NAME --program P makes one known,",
        "and ym sling BEAD --assign gives it work.",
    ];
    for (row, text) in (0..list.height).zip(words) {
        pen.put(list.x + 1, list.y + row, list.width.saturating_sub(1), text, pen.style(Role::Dim));
    }
}

fn agent_heads(pen: &Pen<'_>, columns: Columns) -> String {
    let cut = pen.look.glyphs.ellipsis;
    let mut head = format!("  {} {}", column("AGENT", columns.names, cut), column("STATE", 12, cut));
    if columns.tallies {
        head = format!("{head} {}", right("FOR", 4, cut));
    }
    head = format!("{head} {}", column("BEAD", columns.names, cut));
    if columns.title > 0 {
        head = format!("{head} {}", column("TITLE", columns.title, cut));
    }
    head = format!("{head} {} {}", right("LEFT", 5, cut), right("HEARD", 5, cut));
    if columns.tallies {
        head =
            format!("{head} {} {} {}", right("DONE", 4, cut), right("IDLE", 4, cut), right("COST", 7, cut));
    }
    format!("{head} SAYS, OR WHY NO ORDER")
}

fn agent_row<'t>(pen: &Pen<'_>, console: &Console, columns: Columns, agent: &Agent) -> Vec<Span<'t>> {
    let (state, now) = (console.state(), console.shown_now());
    let cut = pen.look.glyphs.ellipsis;
    let (sign, role) = crew::sign(&pen.look.glyphs, agent.state);
    let ago = |at: yard_engine::Timestamp| span(now.as_millis() - at.as_millis());
    let mut spans = vec![
        pen.span(sign, role),
        Span::raw(column(&shown(agent.name().as_str()), columns.names, cut)),
        pen.span(format!(" {}", column(agent.state.as_str(), 12, cut)), role),
    ];
    if columns.tallies {
        spans.push(pen.span(format!(" {}", right(&ago(agent.since), 4, cut)), Role::Dim));
    }
    spans.extend(held_cells(pen, console, columns, crew::held(state, agent).next().as_ref()));
    spans.push(pen.span(format!(" {}", right(&ago(agent.heard_at), 5, cut)), Role::Dim));
    if columns.tallies {
        let share = crew::idle_share(agent, now).map(|share| format!("{share}%")).unwrap_or_default();
        let cost = crew::cost(state, agent).map(|cost| cost.to_string()).unwrap_or_default();
        spans.push(Span::raw(format!(" {}", right(&agent.counts.done.to_string(), 4, cut))));
        spans.push(pen.span(format!(" {}", right(&share, 4, cut)), Role::Dim));
        spans.push(Span::raw(format!(" {}", right(&cost, 7, cut))));
    }
    let says = match agent.state {
        AgentState::Working | AgentState::Blocked => Role::Text,
        AgentState::Idle => Role::Accent,
        AgentState::Offline | AgentState::Unresponsive => role,
    };
    spans.push(pen.span(format!(" {}", crew::says(state, agent, now)), says));
    spans
}

/// The second and every further thing that an agent holds, below it.
fn more_row<'t>(
    pen: &Pen<'_>,
    console: &Console,
    columns: Columns,
    agent: &Agent,
    held: &Held<'_>,
) -> Vec<Span<'t>> {
    let cut = pen.look.glyphs.ellipsis;
    let last = crew::held(console.state(), agent).last().is_some_and(|last| last.bead() == held.bead());
    let branch = if last { pen.look.glyphs.last_branch } else { pen.look.glyphs.branch };
    let mut spans = vec![
        pen.span(format!(" {}", column(branch, columns.names, cut)), Role::Dim),
        pen.span(format!(" {}", column(held.word(), 12, cut)), Role::Dim),
    ];
    if columns.tallies {
        spans.push(Span::raw(" ".repeat(5)));
    }
    spans.extend(held_cells(pen, console, columns, Some(held)));
    spans.push(Span::raw(" ".repeat(6)));
    if columns.tallies {
        let cost = match held {
            Held::Claim(dispatch) if !dispatch.cost.is_zero() => dispatch.cost.to_string(),
            Held::Claim(_) | Held::InHand(_) | Held::Order(..) => String::new(),
        };
        spans.push(Span::raw(format!("{} {}", " ".repeat(10), right(&cost, 7, cut))));
    }
    spans.push(Span::raw(format!(" {}", crew::progress(held).map(shown).unwrap_or_default())));
    spans
}

/// The bead, its title where there is room, and how long the claim or the order still holds.
fn held_cells<'t>(
    pen: &Pen<'_>,
    console: &Console,
    columns: Columns,
    held: Option<&Held<'_>>,
) -> Vec<Span<'t>> {
    let (state, now) = (console.state(), console.shown_now());
    let cut = pen.look.glyphs.ellipsis;
    let titled = if columns.title > 0 { columns.title + 1 } else { 0 };
    let Some(held) = held else {
        return vec![Span::raw(" ".repeat(columns.names + 1 + titled + 6))];
    };
    let standing = state.standing(held.bead());
    let mut spans = vec![
        pen.span(format!(" {}", pen.look.glyphs.standing(standing)), Look::role_of(standing)),
        Span::raw(column(&shown(held.bead().as_str()), columns.names - 1, cut)),
    ];
    if columns.title > 0 {
        let title = state.bead(held.bead()).map(|entry| shown(&entry.bead.title)).unwrap_or_default();
        spans.push(Span::raw(format!(" {}", column(&title, columns.title, cut))));
    }
    let left = held.left(state, now);
    let role = if left.is_some_and(|left| left < SOON) { Role::Warning } else { Role::Dim };
    spans.push(pen.span(format!(" {}", right(&left.map(span_exact).unwrap_or_default(), 5, cut)), role));
    spans
}

fn worker_heads(pen: &Pen<'_>, columns: Columns) -> String {
    let cut = pen.look.glyphs.ellipsis;
    let (title, rig) = columns.work;
    format!(
        "  {} {} {}{} {} {} {} SAYS",
        column("BEAD", 12, cut),
        column("TITLE", title, cut),
        if rig { format!("{} ", column("RIG", 10, cut)) } else { String::new() },
        column("STATE", 9, cut),
        right("FOR", 4, cut),
        right("COST", 7, cut),
        right("HEARD", 5, cut),
    )
}

fn worker_row<'t>(pen: &Pen<'_>, console: &Console, columns: Columns, worker: &Dispatch) -> Vec<Span<'t>> {
    let (state, now) = (console.state(), console.shown_now());
    let cut = pen.look.glyphs.ellipsis;
    let yields_to = state.preemption().filter(|cycle| cycle.victim == worker.id);
    let (glyph, word, role) = if worker.stuck {
        (pen.look.glyphs.warning, "stalled".to_owned(), Role::Warning)
    } else if worker.stop.is_some() {
        (pen.look.glyphs.cancelled, "stopping".to_owned(), Role::Warning)
    } else if let Some(cycle) = yields_to {
        (pen.look.glyphs.preempted, format!("for {}", cycle.bead), Role::Warning)
    } else {
        (pen.look.glyphs.running, "running".to_owned(), Role::Running)
    };
    let title = state.bead(worker.id.bead()).map(|entry| shown(&entry.bead.title)).unwrap_or_default();
    let says = shown(&doing(worker));
    let ago = |at: yard_engine::Timestamp| span(now.as_millis() - at.as_millis());
    let cost = if worker.cost.is_zero() { String::new() } else { worker.cost.to_string() };
    let (title_wide, rig) = columns.work;
    let rig = if rig { format!(" {} ", column(worker.rig.as_str(), 10, cut)) } else { " ".to_owned() };
    vec![
        pen.span(glyph, role),
        Span::raw(column(&shown(worker.id.bead().as_str()), 12, cut)),
        Span::raw(format!(" {}", column(&title, title_wide, cut))),
        pen.span(rig, Role::Dim),
        pen.span(column(&word, 9, cut), role),
        pen.span(
            format!(" {} ", right(&ago(worker.running_at.unwrap_or(worker.started_at)), 4, cut)),
            Role::Dim,
        ),
        Span::raw(right(&cost, 7, cut)),
        pen.span(format!(" {} ", right(&worker.heard_at.map(ago).unwrap_or_default(), 5, cut)), Role::Dim),
        Span::raw(says),
    ]
}
