//! Plans as documents.

use std::sync::Arc;

use serde_json::{Value, json};
use yard_engine::stage::{StageInput, StagePlan, TreeRow};

use super::super::testing::{Town, bead_id, record};
use super::*;

fn staged(town: &Town, input: &StageInput) -> StageView {
    stage(&town.0, None, false, &town.0.stage_plan(input), None)
}

fn epic(id: &str) -> StageInput {
    StageInput::Epic(bead_id(id))
}

#[test]
fn a_plan_names_waves_blockers_and_the_tree() {
    let mut town = Town::new();
    town.bead("shop-e1", "epic", &[]);
    town.bead("shop-a", "task", &[("shop-e1", "parent-child")]);
    town.bead("shop-e2", "epic", &[("shop-e1", "parent-child"), ("shop-a", "blocks")]);
    town.bead("shop-b", "bug", &[("shop-e2", "parent-child")]);
    let document = serde_json::to_value(staged(&town, &epic("shop-e1"))).expect("a document");
    assert_eq!(document["convoy_id"], Value::Null);
    assert_eq!(document["launched"], json!(false));
    assert_eq!(document.get("wave1"), None);
    let second = &document["waves"][1];
    assert_eq!(second["number"], 2);
    assert_eq!(
        second["tasks"][0],
        json!({"id": "shop-b", "title": "Title of shop-b", "type": "bug", "rig": "shop", "status": "open",
            "blocked_by": ["shop-a"]})
    );
    assert_eq!(document.pointer("/tree/0/children/1/children/0/id"), Some(&json!("shop-b")));
    assert_eq!(document["critical_path"], json!(["shop-a", "shop-b"]));
}

#[test]
fn the_status_follows_from_the_findings() {
    let mut town = Town::new();
    town.bead("shop-a", "task", &[]);
    town.bead("shop-b", "task", &[("shop-a", "blocks")]);
    let ready = staged(&town, &StageInput::Tasks(vec![bead_id("shop-a"), bead_id("shop-b")]));
    assert_eq!(ready.status, "staged:ready");
    let outside = staged(&town, &StageInput::Tasks(vec![bead_id("shop-b")]));
    assert_eq!(
        (outside.status.as_str(), outside.gated[0].gated_by[0].as_str()),
        ("staged:warnings", "shop-a")
    );
    town.bead("shop-c", "task", &[("nobody-x", "blocks")]);
    assert_eq!(staged(&town, &StageInput::Tasks(vec![bead_id("shop-c")])).status, "error");
}

#[test]
fn a_chain_of_ten_thousand_parents_can_be_written_and_read_back() {
    let row = |depth: u32| {
        let bead = Arc::new(record(&format!("shop-{depth}"), "epic", &[]));
        TreeRow { depth, open_blockers: 0, bead }
    };
    let plan = StagePlan { tree: (0..=10_000).map(row).collect(), ..StagePlan::default() };
    let view = stage(&Town::new().0, None, false, &plan, None);
    let text = serde_json::to_string(&view).expect("writable");
    let read: StageView = serde_json::from_str(&text).expect("readable within the limits of common readers");
    assert_eq!(read, view);
    let mut nodes = &read.tree;
    let mut level = 0;
    while nodes.len() == 1 {
        assert_eq!(nodes[0].depth, None);
        nodes = &nodes[0].children;
        level += 1;
    }
    assert_eq!(level, 50);
    let flat: Vec<u32> = nodes.iter().map(|node| node.depth.unwrap_or(50)).collect();
    assert_eq!(flat, (50..=10_000).collect::<Vec<_>>());
}

#[test]
fn rows_after_deep_ones_find_their_place_again() {
    let mut town = Town::new();
    town.bead("shop-0", "epic", &[]);
    for n in 1..60 {
        town.bead(&format!("shop-{n}"), "epic", &[(&format!("shop-{}", n - 1), "parent-child")]);
    }
    town.bead("shop-z", "task", &[("shop-0", "parent-child")]);
    let view = staged(&town, &epic("shop-0"));
    let children: Vec<&str> = view.tree[0].children.iter().map(|node| node.id.as_str()).collect();
    assert_eq!(children, ["shop-1", "shop-z"]);
}
