//! A plan before its launch: findings, waves, forecast, tree. Nothing has started.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use yard_client::views::{StageView, TreeNode};

use crate::console::Console;
use crate::layers::Text;
use crate::paint::Pen;
use crate::text::{column, count, shown, span};
use crate::theme::Role;

/// Draws it.
pub(crate) fn draw(pen: &mut Pen<'_>, screen: Rect, console: &Console, text: Text, plan: &StageView) {
    let title = match &plan.convoy_id {
        Some(id) => format!("{id} is staged: nothing has started"),
        None => "this cannot be staged".to_owned(),
    };
    let keys = if plan.convoy_id.is_some() { "L launch  y copy  Esc leaves it staged" } else { "Esc back" };
    let lines = lines(pen, console, plan);
    super::text::draw(pen, screen, &title, &lines, text, keys);
}

fn lines<'t>(pen: &Pen<'_>, console: &Console, plan: &StageView) -> Vec<Line<'t>> {
    let mut lines = Vec::new();
    for (findings, word, role) in
        [(&plan.errors, "ERROR", Role::Bad), (&plan.warnings, "warning", Role::Warning)]
    {
        for finding in findings {
            let category = serde_json::to_value(finding.category).ok();
            let category = category.as_ref().and_then(|value| value.as_str()).unwrap_or_default().to_owned();
            lines.push(Line::from(vec![
                pen.span(format!("{word} {category}: "), role),
                Span::raw(shown(&finding.message)),
            ]));
            if let Some(fix) = &finding.suggested_fix {
                lines.push(Line::from(
                    pen.span(format!("  {} {}", pen.look.glyphs.arrow, shown(fix)), Role::Accent),
                ));
            }
        }
    }
    if plan.errors.is_empty() && plan.warnings.is_empty() {
        lines.push(Line::from(pen.span("no findings: it can go", Role::Good)));
    }
    forecast(pen, console, plan, &mut lines);
    lines.push(Line::default());
    for wave in &plan.waves {
        lines.push(Line::from(vec![
            pen.span(format!("wave {:<3}", wave.number), Role::Title),
            pen.span(count(wave.tasks.len(), "bead"), Role::Dim),
        ]));
        for task in &wave.tasks {
            let rig = task.rig.as_ref().map(ToString::to_string).unwrap_or_default();
            let after: Vec<String> = task.blocked_by.iter().map(ToString::to_string).collect();
            let after = if after.is_empty() { String::new() } else { format!("after {}", after.join(", ")) };
            lines.push(Line::from(vec![
                Span::raw(format!("  {} ", column(task.id.as_str(), 12, pen.look.glyphs.ellipsis))),
                Span::raw(format!("{}  ", shown(&task.title))),
                pen.span(format!("{rig}  {after}"), Role::Dim),
            ]));
        }
    }
    if !plan.gated.is_empty() {
        lines.push(Line::from(pen.span("without a wave", Role::Warning)));
        for gated in &plan.gated {
            let by: Vec<String> = gated.gated_by.iter().map(ToString::to_string).collect();
            lines.push(Line::from(format!(
                "  {} {}  waits for {}",
                gated.id,
                shown(&gated.title),
                by.join(", ")
            )));
        }
    }
    lines.push(Line::default());
    lines.push(Line::from(pen.span("tree", Role::Title)));
    tree(pen, &plan.tree, &mut lines);
    lines
}

fn forecast(pen: &Pen<'_>, console: &Console, plan: &StageView, lines: &mut Vec<Line<'_>>) {
    let path: Vec<String> = plan.critical_path.iter().map(ToString::to_string).collect();
    if !path.is_empty() {
        let arrow = format!(" {} ", pen.look.glyphs.arrow);
        lines.push(Line::from(format!("longest chain: {}", path.join(&arrow))));
    }
    let ours = plan.convoy_id.as_ref().and_then(|id| console.forecasts.convoys.get(id));
    let Some(forecast) = ours else { return };
    if let Some(band) = forecast.finish {
        let zone = console.look.zone;
        let left = span(band.p50.as_millis() - console.now.as_millis());
        let guessed = match forecast.unmeasured {
            0 => String::new(),
            some => format!(" ({} of {} never measured, so guessed)", some, forecast.left),
        };
        lines.push(Line::from(format!(
            "launched now it would be done at {} (p50, in {left}) or {} (p90){guessed}",
            zone.minute_on(band.p50, console.now),
            zone.minute_on(band.p90, console.now),
        )));
    }
}

/// The tree, without recursion: a document may be deep.
fn tree(pen: &Pen<'_>, roots: &[TreeNode], lines: &mut Vec<Line<'_>>) {
    let glyphs = pen.look.glyphs;
    let mut pending: Vec<(String, bool, &TreeNode)> = roots
        .iter()
        .enumerate()
        .rev()
        .map(|(at, node)| (String::new(), at + 1 == roots.len(), node))
        .collect();
    while let Some((before, last, node)) = pending.pop() {
        let branch = if last { glyphs.last_branch } else { glyphs.branch };
        let kind = if node.kind.is_empty() || node.kind == "task" {
            String::new()
        } else {
            format!("  {}", shown(&node.kind))
        };
        lines.push(Line::from(vec![
            pen.span(format!("{before}{branch} "), Role::Dim),
            Span::raw(format!("{} {}", node.id, shown(&node.title))),
            pen.span(format!("{kind}  {}", shown(&node.status)), Role::Dim),
        ]));
        let further = format!("{before}{} ", if last { "  " } else { glyphs.trunk });
        let children = node.children.iter().enumerate().rev();
        pending.extend(children.map(|(at, child)| (further.clone(), at + 1 == node.children.len(), child)));
    }
}
