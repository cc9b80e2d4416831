//! The yard: the table of beads, with the timeline beside it where there is room and in the row where there is less.

use std::fmt::Write as _;

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;
use yard_engine::BeadId;

use crate::console::{Console, Pane};
use crate::layout::{Plan, inside, list_area};
use crate::paint::Pen;
use crate::rows::row;
use crate::text::{column, fit, right, shown, span};
use crate::theme::Role;
use crate::timeline::{Axis, axis, bars, load};

/// Draws table and timeline.
pub(crate) fn draw(pen: &mut Pen<'_>, plan: &Plan, console: &Console) {
    let list = list_area(console);
    if plan.framed {
        let title = heading(pen, console);
        let (order, reversed) = console.table.order();
        let arrow = if reversed { pen.look.glyphs.down } else { pen.look.glyphs.up };
        let sorted = format!("sort: {} {arrow}", order.name());
        pen.frame(plan.main, title, &sorted, console.pane == Pane::Main);
    }
    table(pen, plan, list, console);
    if let Some(side) = plan.side {
        timeline_beside(pen, side, list, console);
    }
    if let Some(area) = plan.detail {
        crate::panes::detail::beside(pen, area, console);
    }
}

/// `beads 61/143  /convoy:apollo`.
pub(crate) fn heading<'t>(pen: &Pen<'_>, console: &Console) -> Line<'t> {
    let all = console.state().bead_count();
    let mut spans = vec![Span::raw(" "), pen.span("beads", Role::Title)];
    let count = if console.table.filter().is_empty() {
        format!("  {all}")
    } else {
        format!("  {}/{all}  /{}", console.table.len(), shown(console.table.filter().text()))
    };
    spans.push(pen.span(count, Role::Accent));
    spans.push(Span::raw(" "));
    Line::from(spans)
}

/// How wide each column is.
struct Widths {
    id: usize,
    title: usize,
    wave: usize,
    state: usize,
    age: usize,
    slack: usize,
    why: usize,
    bar: usize,
}

impl Widths {
    fn of(console: &Console, width: usize, beside: bool) -> Self {
        let ids = console.table.visible(200).map(|id| id.as_str().width()).max().unwrap_or(6);
        let id = ids.clamp(4, 14.min(width / 4).max(4));
        let mut widths = Self { id, title: 0, wave: 2, state: 8, age: 4, slack: 0, why: 0, bar: 0 };
        if width >= 46 {
            widths.slack = 4;
        }
        let fixed = 4 + id + 1 + widths.wave + 1 + widths.state + 1 + widths.age + 1;
        let slack = if widths.slack > 0 { widths.slack + 1 } else { 0 };
        let rest = width.saturating_sub(fixed + slack);
        if beside || width < 72 {
            // The reason stands in the row, because the bars stand beside it or nowhere.
            widths.why = if rest >= 18 { rest / 2 } else { 0 };
            widths.title = rest.saturating_sub(widths.why + usize::from(widths.why > 0));
        } else {
            widths.title = (rest * 4 / 10).clamp(8, 40);
            widths.bar = rest.saturating_sub(widths.title + 1);
        }
        widths
    }
}

fn table(pen: &mut Pen<'_>, plan: &Plan, list: Rect, console: &Console) {
    let cut = pen.look.glyphs.ellipsis;
    let widths = Widths::of(console, usize::from(list.width), plan.side.is_some());
    let axis = axis(console, widths.bar);
    if plan.framed {
        let mut head = format!(
            "    {} {} {} {} {}",
            column("BEAD", widths.id, cut),
            column("TITLE", widths.title, cut),
            right("W", widths.wave, cut),
            column("STATE", widths.state, cut),
            right("AGE", widths.age, cut),
        );
        if widths.slack > 0 {
            let _ = write!(head, " {}", right("SLK", widths.slack, cut));
        }
        if widths.why > 0 {
            head.push_str(" WHY");
        }
        if widths.bar > 0 {
            let _ = write!(head, " {}", axis.labels(console.look.zone, pen.look.glyphs.now_head));
        }
        let y = list.y.saturating_sub(1);
        pen.put(list.x, y, list.width, &head, pen.style(Role::Dim));
    }
    if console.table.is_empty() {
        empty(pen, list, console);
        return;
    }
    let offset = console.table.offset();
    for (line, id) in console.table.visible(usize::from(list.height)).enumerate() {
        let selected = offset + line == console.table.cursor();
        let in_range = console.range_from.is_some_and(|from| {
            let (a, b) = (from.min(console.table.cursor()), from.max(console.table.cursor()));
            (a..=b).contains(&(offset + line))
        });
        draw_row(pen, list, line as u16, console, id, &widths, &axis, selected, in_range);
    }
    if plan.framed {
        below(pen, plan, list, console);
    }
}

#[expect(clippy::too_many_arguments, reason = "one row needs all it shows, and is drawn from one place")]
fn draw_row(
    pen: &mut Pen<'_>,
    list: Rect,
    line: u16,
    console: &Console,
    id: &BeadId,
    widths: &Widths,
    axis: &Axis,
    selected: bool,
    in_range: bool,
) {
    let cut = pen.look.glyphs.ellipsis;
    let row = row(console, id);
    let marked = console.marks.contains(id) || in_range;
    let mut spans = vec![
        Span::raw(if selected { pen.look.glyphs.cursor } else { " " }),
        pen.span(if marked { pen.look.glyphs.mark } else { " " }, Role::Mark),
        pen.span(row.glyph, row.role),
        Span::raw(" "),
        Span::raw(column(&row.id, widths.id, cut)),
        Span::raw(" "),
        pen.span(column(&row.title, widths.title, cut), Role::Text),
        Span::raw(" "),
        pen.span(right(&row.wave, widths.wave, cut), Role::Dim),
        Span::raw(" "),
        pen.span(column(row.state, widths.state, cut), row.role),
        Span::raw(" "),
        pen.span(right(&row.age, widths.age, cut), Role::Dim),
    ];
    if widths.slack > 0 {
        spans.push(pen.span(format!(" {}", right(&row.slack, widths.slack, cut)), Role::Dim));
    }
    if widths.why > 0 {
        spans.push(pen.span(format!(" {}", fit(&row.why, widths.why, cut)), row.role));
    }
    if widths.bar > 0 {
        spans.push(Span::raw(" "));
        spans.extend(bars(console, axis, id).into_iter().map(|(glyph, role)| pen.span(glyph, role)));
    }
    pen.line(list, line, &Line::from(spans));
    if selected {
        // Only the words: bars keep their own colours.
        let width = list.width.saturating_sub(widths.bar as u16);
        pen.tint(Rect { y: list.y + line, height: 1, width, ..list }, pen.style(Role::Selection));
    }
}

/// What to do when there are no rows.
fn empty(pen: &mut Pen<'_>, list: Rect, console: &Console) {
    let loading = matches!(console.town.link, crate::town::Link::Loading { .. });
    let words: &[&str] = if !console.table.filter().is_empty() {
        &["No bead matches the filter.", "Esc takes it off; / changes it."]
    } else if loading {
        &["Reading the town…"]
    } else {
        &[
            "No beads yet.",
            ":add -- COMMAND           runs a command",
            ":bead add TITLE           makes a bead",
            ":rig add NAME --path DIR  brings a beads workspace in",
            "s                         stages a file of beads",
        ]
    };
    for (row, text) in words.iter().enumerate() {
        let place = Rect { x: list.x + 1, width: list.width.saturating_sub(1), ..list };
        pen.line(place, row as u16, &Line::from(pen.span(*text, Role::Dim)));
    }
}

/// Below the rows: a rule, and why the selected bead is as it is.
fn below(pen: &mut Pen<'_>, plan: &Plan, list: Rect, console: &Console) {
    let inner = inside(plan.main);
    if inner.bottom() <= list.bottom() {
        return;
    }
    let rule = pen.look.glyphs.rule.repeat(usize::from(inner.width));
    pen.put(inner.x, list.bottom(), inner.width, &rule, pen.style(Role::Border));
    if let Some(id) = console.table.selected() {
        let text = format!(" {}", sentence(console, id));
        pen.put(
            inner.x,
            list.bottom() + 1,
            inner.width,
            &fit(&text, usize::from(inner.width), pen.look.glyphs.ellipsis),
            pen.style(Role::Text),
        );
    }
}

/// One sentence about a bead.
pub(crate) fn sentence(console: &Console, id: &BeadId) -> String {
    let state = console.state();
    let waiting = state.dependents_of(id).count();
    let unblocks = match waiting {
        0 => String::new(),
        1 => "; 1 bead waits for it".to_owned(),
        more => format!("; {more} beads wait for it"),
    };
    let reasons = state.reasons(id);
    match state.standing(id) {
        Some(yard_engine::Standing::Running) => {
            let planned = console.shown_forecasts().planned(id);
            let left = planned.map(|p| span(p.end.as_millis() - console.shown_now().as_millis()));
            let guess = planned.is_some_and(|planned| planned.runs_measured == 0);
            let guess = if guess { " (a guess: nothing like it was measured)" } else { "" };
            let left = left.map(|left| format!(", about {left} left{guess}")).unwrap_or_default();
            format!("{id}: running{left}{unblocks}")
        }
        Some(yard_engine::Standing::Closed) => format!("{id}: closed"),
        Some(yard_engine::Standing::Open) => {
            if state.bead(id).is_some_and(|entry| entry.bead.is_epic()) {
                return epic_sentence(console, id);
            }
            format!("{id}: nobody asked for it; x, then s slings it{unblocks}")
        }
        _ => match reasons.first() {
            Some(reason) => {
                format!("why {id}: {}{unblocks}", crate::ways::words_of(reason, console.shown_now()))
            }
            None => format!("{id}: starts in a moment{unblocks}"),
        },
    }
}

/// One sentence about an epic: how far what it contains is, and what to do next.
fn epic_sentence(console: &Console, id: &BeadId) -> String {
    let state = console.state();
    let below: Vec<&BeadId> = state.children_of(id).collect();
    let closed = |id: &&&BeadId| state.bead(id).is_some_and(|entry| entry.bead.is_closed());
    let done = below.iter().filter(closed).count();
    let of = format!("{id}: an epic, {done} of {} below it closed", below.len());
    let convoy =
        below.iter().find_map(|child| console.waves().convoy_of(child)).and_then(|id| state.convoy(id));
    match convoy.map(|convoy| (&convoy.id, convoy.status())) {
        Some((convoy, "open" | "closed")) => format!("{of}, in {convoy}"),
        Some((convoy, _)) => format!("{of}; staged as {convoy}: L launches it"),
        None if done == below.len() => of,
        None => format!("{of}; s stages it"),
    }
}

/// The timeline beside the list, row by row.
fn timeline_beside(pen: &mut Pen<'_>, side: Rect, list: Rect, console: &Console) {
    let inner = inside(side);
    let axis = axis(console, usize::from(inner.width));
    let zone = console.look.zone;
    let title = format!("timeline  {}", axis.ends(zone));
    pen.frame(side, pen.title(&title), &axis.scale(), false);
    pen.put(
        inner.x,
        inner.y,
        inner.width,
        &axis.labels(zone, pen.look.glyphs.now_head),
        pen.style(Role::Dim),
    );
    for (line, id) in console.table.visible(usize::from(list.height)).enumerate() {
        let cells = bars(console, &axis, id);
        let spans: Vec<Span<'_>> = cells.into_iter().map(|(glyph, role)| pen.span(glyph, role)).collect();
        let place = Rect { y: list.y + line as u16, height: 1, ..inner };
        pen.line(place, 0, &Line::from(spans));
    }
    if inner.bottom() > list.bottom() {
        load_strip(
            pen,
            Rect { y: list.bottom(), height: inner.bottom() - list.bottom(), ..inner },
            console,
            &axis,
        );
    }
}

/// How busy it was and will be, and what the end hangs on.
pub(crate) fn load_strip(pen: &mut Pen<'_>, area: Rect, console: &Console, axis: &Axis) {
    let busy = load(console, axis);
    let most = console.state().room(&yard_engine::capacity::Limit::Town).max.unwrap_or(0);
    let text = pen.look.glyphs.sparkline(&busy, u32::try_from(most).unwrap_or(u32::MAX).min(1_000));
    pen.put(area.x, area.y, area.width, &text, pen.style(Role::Past));
    let path = console.shown_forecasts().town.as_ref().map(|forecast| &forecast.critical_path);
    if let Some(path) = path.filter(|path| !path.is_empty() && area.height > 1) {
        let names: Vec<String> = path
            .iter()
            .take(12)
            .map(|id| {
                console.state().bead(id).map_or_else(|| id.to_string(), |entry| shown(&entry.bead.title))
            })
            .collect();
        let text = format!("critical: {}", names.join(&format!(" {} ", pen.look.glyphs.arrow)));
        let text = fit(&text, usize::from(area.width), pen.look.glyphs.ellipsis);
        pen.put(area.x, area.y + 1, area.width, &text, pen.style(Role::PlanCritical));
    }
}
