//! A plan of a convoy: its tree, its waves, what speaks against it, and what to do next. Each part ends with an empty line.

use std::io;

use yard_client::safe_line;
use yard_client::views::{GatedView, LaunchView, StageView, WaveView};
use yard_engine::BeadId;
use yard_engine::stage::Finding;

use super::tree::{some_of, tree_lines};
use super::wrap::hanging;
use super::{Table, sling_results};
use crate::output::{Out, Tone};
use crate::words::count;

/// Lines of a tree or a table; the rest is in the document.
const MOST: usize = 200;
/// Findings shown.
const FINDINGS: usize = 50;
/// Beads named in one sentence.
const NAMED: usize = 12;
/// An id takes no more than this in a table.
const ID: usize = 24;
/// A rig's name takes no more than this in a table.
const RIG: usize = 12;
/// Blockers get at least this much.
const BLOCKERS: usize = 14;

/// What staging came to.
pub(crate) fn staged(out: &mut Out, view: &StageView) -> io::Result<()> {
    if out.quiet() {
        return view.convoy_id.iter().try_for_each(|id| out.line(id));
    }
    let (lines, left_out) = tree_lines(view, out.width(), MOST);
    lines.iter().try_for_each(|line| out.line(line))?;
    more(out, left_out)?;
    if !lines.is_empty() {
        out.line("")?;
    }
    if !view.waves.is_empty() {
        let (table, left_out) = wave_table(&view.waves, out.width());
        table.print(out)?;
        more(out, left_out)?;
        out.line("")?;
        out.line(summary(&view.waves))?;
        critical_path(out, &view.critical_path)?;
        out.line("")?;
    }
    if !view.gated.is_empty() {
        let heading = format!("Gated ({}): no wave reaches these", view.gated.len());
        out.line(out.paint(Tone::Bold, &heading))?;
        let (table, left_out) = gated_table(&view.gated);
        table.print(out)?;
        more(out, left_out)?;
        out.line("")?;
    }
    findings(out, Tone::Warn, "Warnings", &view.warnings)?;
    findings(out, Tone::Bad, "Errors", &view.errors)?;
    verdict(out, view)
}

/// What a launch did.
pub(crate) fn launched(out: &mut Out, view: &LaunchView) -> io::Result<()> {
    if out.quiet() {
        return out.line(&view.convoy_id);
    }
    let line = format!("Convoy {} is launched", view.convoy_id);
    out.line(out.paint(Tone::Good, &line))?;
    sling_results(out, &view.wave1, false)?;
    out.line(format!("Further beads follow as they become ready: ym convoy status {}", view.convoy_id))
}

fn more(out: &mut Out, left_out: usize) -> io::Result<()> {
    match left_out {
        0 => Ok(()),
        more => out.line(format!("… and {more} more (--json has all)")),
    }
}

fn verdict(out: &mut Out, view: &StageView) -> io::Result<()> {
    let Some(id) = &view.convoy_id else {
        let line = format!("Nothing was staged: {}", count(view.errors.len(), "error"));
        return out.line(out.paint(Tone::Bad, &line));
    };
    if let (true, Some(results)) = (view.launched, &view.wave1) {
        let line = format!("Convoy {id} is launched");
        out.line(out.paint(Tone::Good, &line))?;
        return sling_results(out, results, false);
    }
    let again = if view.restaged { " anew" } else { "" };
    if view.warnings.is_empty() {
        let line = format!("Convoy {id} is staged{again}, and ready");
        out.line(out.paint(Tone::Good, &line))?;
        return out.line(format!("Next: ym convoy launch {id}"));
    }
    let line = format!("Convoy {id} is staged{again}, with {}", count(view.warnings.len(), "warning"));
    out.line(out.paint(Tone::Warn, &line))?;
    out.line(format!("Next: mend them, and ym convoy stage {id}"))?;
    out.line(format!("  or: ym convoy launch {id} --force"))
}

/// One line per bead, and how many beads are left out.
fn wave_table(waves: &[WaveView], width: usize) -> (Table, usize) {
    let all = || waves.iter().flat_map(|wave| wave.tasks.iter().map(move |task| (wave.number, task)));
    let longest = all().take(MOST).map(|(_, task)| task.id.as_str().len()).max().unwrap_or(0).clamp(2, ID);
    let taken = ["WAVE".len(), longest, RIG, BLOCKERS].iter().sum::<usize>() + 4 * 2;
    let room = width.saturating_sub(taken).clamp(10, 30);
    let mut table = Table::new(&["WAVE", "ID", "TITLE", "RIG", "BLOCKED BY"]);
    for (wave, task) in all().take(MOST) {
        let rig = task.rig.as_ref().map_or_else(|| "?".to_owned(), |rig| safe_line(rig.as_str(), RIG));
        let blockers =
            if task.blocked_by.is_empty() { "—".to_owned() } else { some_of(&task.blocked_by, NAMED) };
        let (id, title) = (safe_line(task.id.as_str(), ID), safe_line(&task.title, room));
        table.row(vec![wave.to_string(), id, title, rig, blockers]);
    }
    (table, all().count().saturating_sub(MOST))
}

/// How much there is, and how much of it at once.
fn summary(waves: &[WaveView]) -> String {
    let tasks: usize = waves.iter().map(|wave| wave.tasks.len()).sum();
    let largest = waves.iter().map(|wave| wave.tasks.len()).max().unwrap_or(0);
    let first = waves.iter().find(|wave| wave.tasks.len() == largest).map_or(0, |wave| wave.number);
    format!(
        "{} across {} (max parallelism: {largest} in wave {first})",
        count(tasks, "task"),
        count(waves.len(), "wave")
    )
}

/// A path of one bead says nothing.
fn critical_path(out: &mut Out, path: &[BeadId]) -> io::Result<()> {
    if path.len() < 2 {
        return Ok(());
    }
    let lead = format!("Critical path ({}): ", path.len());
    let beads = some_of(path, NAMED).replace(", ", " → ");
    hanging(&lead, &beads, out.width()).iter().try_for_each(|line| out.line(line))
}

fn gated_table(gated: &[GatedView]) -> (Table, usize) {
    let mut table = Table::plain();
    for bead in gated.iter().take(MOST) {
        let id = safe_line(bead.id.as_str(), ID);
        let by = format!("waits for {}", some_of(&bead.gated_by, NAMED));
        table.row(vec![id, safe_line(&bead.title, 24), by]);
    }
    (table, gated.len().saturating_sub(MOST))
}

fn findings(out: &mut Out, tone: Tone, heading: &str, findings: &[Finding]) -> io::Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    out.line(out.paint(tone, &format!("{heading} ({})", findings.len())))?;
    for (n, finding) in findings.iter().take(FINDINGS).enumerate() {
        finding_lines(n + 1, finding, out.width()).iter().try_for_each(|line| out.line(line))?;
    }
    more(out, findings.len().saturating_sub(FINDINGS))?;
    out.line("")
}

fn finding_lines(number: usize, finding: &Finding, width: usize) -> Vec<String> {
    let lead = format!("{number:>3}. ");
    let mut lines = hanging(&lead, &format!("[{}] {}", finding.category.as_str(), finding.message), width);
    if !finding.bead_ids.is_empty() {
        lines.extend(hanging("     Affected: ", &some_of(&finding.bead_ids, NAMED), width));
    }
    if let Some(fix) = &finding.suggested_fix {
        lines.extend(hanging("     Fix: ", fix, width));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn waves(sizes: &[usize], title: &str, id: &str) -> Vec<WaveView> {
        let task = |wave: usize, n: usize| {
            let blockers = if wave == 1 { json!([]) } else { json!([format!("{id}-1-0"), "other-x"]) };
            json!({"id": format!("{id}-{wave}-{n}"), "title": title, "type": "task", "rig": "shop",
                "status": "open", "blocked_by": blockers})
        };
        let wave = |(number, size): (usize, &usize)| {
            let tasks: Vec<_> = (0..*size).map(|n| task(number, n)).collect();
            json!({"number": number, "tasks": tasks})
        };
        let all: Vec<_> = (1..).zip(sizes).map(wave).collect();
        serde_json::from_value(json!(all)).expect("waves")
    }

    #[test]
    fn the_table_says_wave_bead_rig_and_blockers() {
        let (table, left_out) = wave_table(&waves(&[1, 1], "Card form", "shop"), 80);
        assert_eq!(
            table.shown(80),
            ["1     shop-1-0  Card form  shop  —", "2     shop-2-0  Card form  shop  shop-1-0, other-x",]
        );
        assert_eq!(left_out, 0);
    }

    #[test]
    fn the_first_of_the_largest_waves_is_named() {
        assert_eq!(
            summary(&waves(&[2, 3, 3], "T", "shop")),
            "8 tasks across 3 waves (max parallelism: 3 in wave 2)"
        );
        assert_eq!(summary(&waves(&[1], "T", "shop")), "1 task across 1 wave (max parallelism: 1 in wave 1)");
    }

    #[test]
    fn long_ids_and_hostile_titles_stay_within_eighty_columns() {
        for title in ["日本語".repeat(40), "\u{1b}[2Jx\ny".repeat(100)] {
            let (table, _) = wave_table(&waves(&[1, 3], &title, &"i".repeat(100)), 80);
            for line in table.shown(80) {
                assert!(line.width() <= 80 && !line.contains('\u{1b}'), "{line:?}");
            }
        }
    }

    #[test]
    fn a_large_plan_is_cut_and_counted() {
        let (table, left_out) = wave_table(&waves(&[150, 150], "T", "shop"), 80);
        assert_eq!((table.shown(80).len(), left_out), (200, 100));
    }

    #[test]
    fn a_finding_names_what_is_affected_and_how_to_mend_it() {
        let finding = json!({"category": "cycle", "bead_ids": ["a-1", "a-2", "a-1"],
            "message": "waits for itself:\u{1b}[31m a-1 -> a-2 -> a-1", "suggested_fix": "ym bead dep remove a-1 a-2"});
        let finding: Finding = serde_json::from_value(finding).expect("a finding");
        assert_eq!(
            finding_lines(2, &finding, 80),
            [
                "  2. [cycle] waits for itself: a-1 -> a-2 -> a-1",
                "     Affected: a-1, a-2, a-1",
                "     Fix: ym bead dep remove a-1 a-2",
            ]
        );
        for line in finding_lines(1, &Finding { message: "w ".repeat(400), ..finding }, 80) {
            assert!(line.width() <= 80, "{line}");
        }
    }
}
