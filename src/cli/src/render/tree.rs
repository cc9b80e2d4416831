//! Beads as they contain each other, drawn with lines.

use std::collections::BTreeMap;

use unicode_width::UnicodeWidthStr;
use yard_client::views::{StageView, TreeNode};
use yard_client::{Safe, safe_line};
use yard_engine::BeadId;

/// From this depth on a line says how deep it stands, instead of moving further to the right.
const DEEPEST: u32 = 8;
/// A title is never cut shorter than this for what stands behind it.
const TITLE: usize = 12;
/// Blockers named in a line.
const NAMED: usize = 3;

/// A bead that is still to be drawn.
struct Todo<'a> {
    node: &'a TreeNode,
    depth: u32,
    /// What stands before its line.
    lead: String,
    /// What stands before the lines of those below it.
    stem: String,
}

impl<'a> Todo<'a> {
    fn below(&self, node: &'a TreeNode, is_last: bool) -> Self {
        let depth = node.depth.unwrap_or(self.depth + 1);
        if depth > DEEPEST {
            let lead = format!("{}⋯ (level {depth}) ", self.stem);
            return Self { node, depth, lead, stem: self.stem.clone() };
        }
        let (branch, trunk) = if is_last { ("└── ", "    ") } else { ("├── ", "│   ") };
        Self { node, depth, lead: format!("{}{branch}", self.stem), stem: format!("{}{trunk}", self.stem) }
    }

    fn line(&self, waits_for: &[BeadId], width: usize) -> String {
        let node = self.node;
        let kind = if node.kind.is_empty() { "task" } else { &node.kind };
        let head = format!("{}{} [{}] ", self.lead, node.id, Safe(kind));
        let rig = node.rig.as_ref().map(|rig| format!(" (rig: {rig})")).unwrap_or_default();
        let tail = format!("{rig} [{}]", Safe(&node.status));
        // What it waits for matters more than the end of its title, and is named as far as there is room.
        let room = width.saturating_sub(head.width() + tail.width());
        let least = safe_line(&node.title, TITLE).width();
        let fits = |blocked: &String| blocked.width() + least <= room;
        let blocked = (0..=NAMED).rev().map(|named| blocked(waits_for, named)).find(fits).unwrap_or_default();
        let title = safe_line(&node.title, room.saturating_sub(blocked.width()).max(TITLE));
        safe_line(&format!("{head}{title}{tail}{blocked}"), width)
    }
}

/// The tree of a plan in at most so many lines, and how many beads are left out.
pub(super) fn tree_lines(view: &StageView, width: usize, most: usize) -> (Vec<String>, usize) {
    let waits = waits(view);
    // A list of tasks is no tree: it is set in a little.
    let margin = if view.tree.len() > 1 { "  " } else { "" };
    let roots = view.tree.iter().take(most).rev();
    let mut todo: Vec<Todo<'_>> = roots.map(|node| root(margin, node)).collect();
    let mut lines = Vec::new();
    while let Some(next) = todo.pop() {
        if lines.len() == most {
            break;
        }
        lines.push(next.line(waits.get(&next.node.id).copied().unwrap_or_default(), width));
        let children = &next.node.children;
        let from = todo.len();
        // More than can be shown need not wait.
        let shown = children.iter().enumerate().take(most);
        todo.extend(shown.map(|(n, node)| next.below(node, n + 1 == children.len())));
        todo[from..].reverse();
    }
    let left_out = size(&view.tree).saturating_sub(lines.len());
    (lines, left_out)
}

fn root<'a>(margin: &str, node: &'a TreeNode) -> Todo<'a> {
    Todo { node, depth: 0, lead: margin.to_owned(), stem: margin.to_owned() }
}

/// What each bead of a plan waits for.
fn waits(view: &StageView) -> BTreeMap<&BeadId, &[BeadId]> {
    let tasks = view.waves.iter().flat_map(|wave| &wave.tasks);
    let gated = view.gated.iter().map(|gated| (&gated.id, gated.gated_by.as_slice()));
    tasks.map(|task| (&task.id, task.blocked_by.as_slice())).chain(gated).collect()
}

/// What a bead waits for, with at most so many of them named.
fn blocked(by: &[BeadId], named: usize) -> String {
    match (by.len(), named) {
        (0, _) => String::new(),
        (all, 0) => format!(" ← blocked by {all}"),
        _ => format!(" ← blocked by: {}", some_of(by, named)),
    }
}

/// The first few of these, and how many more there are.
pub(super) fn some_of(ids: &[BeadId], most: usize) -> String {
    let shown: Vec<&str> = ids.iter().take(most).map(BeadId::as_str).collect();
    match ids.len().saturating_sub(most) {
        0 => shown.join(", "),
        more => format!("{} (+{more})", shown.join(", ")),
    }
}

/// Documents are nested only so deep, and so may this be.
fn size(nodes: &[TreeNode]) -> usize {
    nodes.iter().map(|node| 1 + size(&node.children)).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(id: &str, kind: &str, title: &str, children: Vec<TreeNode>) -> TreeNode {
        TreeNode {
            id: BeadId::parse(id).expect("an id"),
            title: title.to_owned(),
            kind: kind.to_owned(),
            status: "open".to_owned(),
            rig: Some("shop".parse().expect("a name")),
            depth: None,
            children,
        }
    }

    fn view(tree: Vec<TreeNode>) -> StageView {
        let task = json!({"id": "shop-b", "title": "Card form", "type": "task", "rig": "shop", "status": "open",
            "blocked_by": ["shop-a"]});
        let view = json!({"status": "staged:ready", "convoy_id": "hq-cv-abc12", "restaged": false, "errors": [],
            "warnings": [], "waves": [{"number": 2, "tasks": [task]}], "gated": [], "tree": [],
            "critical_path": [], "launched": false});
        let view: StageView = serde_json::from_value(view).expect("a document");
        StageView { tree, ..view }
    }

    #[test]
    fn an_epic_is_drawn_with_lines_and_says_what_waits_for_what() {
        let payments =
            vec![node("shop-b", "task", "Card form", vec![]), node("shop-c", "bug", "Rounding", vec![])];
        let below =
            vec![node("shop-a", "", "Cart schema", vec![]), node("shop-e2", "epic", "Payments", payments)];
        let view = view(vec![node("shop-e1", "epic", "Checkout rewrite", below)]);
        let (lines, left_out) = tree_lines(&view, 80, 200);
        assert_eq!(
            lines,
            [
                "shop-e1 [epic] Checkout rewrite (rig: shop) [open]",
                "├── shop-a [task] Cart schema (rig: shop) [open]",
                "└── shop-e2 [epic] Payments (rig: shop) [open]",
                "    ├── shop-b [task] Card form (rig: shop) [open] ← blocked by: shop-a",
                "    └── shop-c [bug] Rounding (rig: shop) [open]",
            ]
        );
        assert_eq!(left_out, 0);
    }

    #[test]
    fn tasks_are_set_in_and_what_is_too_much_is_counted() {
        let tasks = (0..500).map(|n| node(&format!("shop-{n}"), "task", "T", vec![])).collect();
        let (lines, left_out) = tree_lines(&view(tasks), 80, 3);
        assert_eq!(lines[0], "  shop-0 [task] T (rig: shop) [open]");
        assert_eq!((lines.len(), left_out), (3, 497));
    }

    #[test]
    fn whatever_stands_in_a_title_a_line_is_one_line_of_eighty_columns() {
        let hostile = ["x".repeat(5000), "日本語".repeat(50), "a\u{1b}[2J\nb\u{202e}c".to_owned()];
        for title in hostile {
            let mut bead = node("shop-b", "ta\u{1b}[31msk", &title, vec![]);
            bead.status = "st\nrange".to_owned();
            for _ in 0..30 {
                bead = node("shop-e", "epic", &title, vec![bead]);
            }
            let (lines, left_out) = tree_lines(&view(vec![bead]), 80, 200);
            assert_eq!((lines.len(), left_out), (31, 0));
            for line in lines {
                assert!(line.width() <= 80 && !line.contains(['\u{1b}', '\n', '\u{202e}']), "{line:?}");
            }
        }
    }

    #[test]
    fn blockers_are_named_as_far_as_there_is_room() {
        let by: Vec<BeadId> =
            ["shop-1", "shop-2", "shop-3", "shop-4"].map(|id| id.parse().expect("an id")).into();
        let line = |width| root("", &node("shop-b", "task", "Card form", vec![])).line(&by, width);
        assert!(line(90).ends_with("[open] ← blocked by: shop-1, shop-2, shop-3 (+1)"), "{}", line(90));
        assert!(line(75).ends_with("[open] ← blocked by: shop-1 (+3)"), "{}", line(75));
        assert!(line(60).ends_with("Card form (rig: shop) [open] ← blocked by 4"), "{}", line(60));
    }

    #[test]
    fn deep_beads_say_how_deep_they_are() {
        let mut bead = node("shop-z", "task", "T", vec![]);
        for _ in 0..10 {
            bead = node("shop-e", "epic", "E", vec![bead]);
        }
        let (lines, _) = tree_lines(&view(vec![bead]), 80, 200);
        assert!(lines[10].ends_with("⋯ (level 10) shop-z [task] T (rig: shop) [open]"), "{}", lines[10]);
    }
}
