//! Readiness as `br` and `bd` see it. What `br` really answered is in `tests/data`; nobody could run `bd`, so its
//! answers there come from the generator of those files.

use std::collections::BTreeMap;

use serde_json::Value;
use yard_engine::bead::{BeadStatus, DepKind, Dependency};
use yard_engine::command::NewBead;
use yard_engine::like::{self, BD, BR, Rules};
use yard_engine::{Millis, Timestamp};

use crate::town::{Town, new_bead, rig_name};

// The workspaces in `tests/data`.

fn data(name: &str) -> String {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("a data file")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str().map(|text| Timestamp::parse_rfc3339(text).expect("a time"))
}

fn dependency(value: &Value) -> Dependency {
    let kind = DepKind::from(text(&value["type"]));
    let gate = value["metadata"].as_str().is_some_and(|m| m.contains("any-children"));
    let edge = Dependency::from_tracker(&text(&value["depends_on_id"]), kind).expect("an id");
    Dependency { any_children: gate, ..edge }
}

fn bead(line: &str) -> NewBead {
    let row: Value = serde_json::from_str(line).expect("one object a line");
    NewBead {
        id: Some(text(&row["id"])),
        title: text(&row["title"]),
        kind: text(&row["issue_type"]),
        status: BeadStatus::from(text(&row["status"])),
        priority: row["priority"].as_u64().map(|p| p as u8),
        created_at: time(&row["created_at"]),
        defer_until: time(&row["defer_until"]),
        pinned: row["pinned"] == true,
        ephemeral: row["ephemeral"] == true,
        is_template: row["is_template"] == true,
        dependencies: row["dependencies"].as_array().into_iter().flatten().map(dependency).collect(),
        ..NewBead::default()
    }
}

/// A town whose rig has the beads of this file.
fn workspace(name: &str) -> Town {
    let mut town = Town::new();
    town.rig("shop", "shop");
    town.rig("syn", "syn");
    town.import(data(&format!("{name}.jsonl")).lines().map(bead).collect());
    town.now = Timestamp::parse_rfc3339("2026-11-17T00:00:00Z").expect("a time");
    town
}

/// The ids in an answer: of a tool, an array of records or of ids.
fn answer(value: &Value) -> Vec<String> {
    let ids = value.as_array().into_iter().flatten();
    ids.map(|row| if row.is_string() { text(row) } else { text(&row["id"]) }).collect()
}

fn answered(name: &str) -> Value {
    serde_json::from_str(&data(name)).expect("JSON")
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

fn ready(town: &Town, rules: &Rules) -> Vec<String> {
    like::ready(&town.state, rules, town.now, None).iter().map(ToString::to_string).collect()
}

fn blocked(town: &Town, rules: &Rules) -> Vec<String> {
    like::blocked(&town.state, rules, None).iter().map(|b| b.id.to_string()).collect()
}

#[test]
fn like_br_gives_the_ids_that_br_gave() {
    for name in ["beads-real", "layered-1000", "random-1000"] {
        let town = workspace(name);
        let [offered, listed] =
            ["ready", "blocked"].map(|what| answer(&answered(&format!("{name}.{what}.json"))));
        assert!(!offered.is_empty() && !listed.is_empty());
        assert_eq!(sorted(ready(&town, &BR)), sorted(offered), "{name}");
        assert_eq!(sorted(blocked(&town, &BR)), sorted(listed), "{name}");
    }
}

#[test]
fn like_br_keeps_the_order_and_the_blockers_that_br_gave() {
    let town = workspace("beads-real");
    assert_eq!(ready(&town, &BR), answer(&answered("beads-real.ready.json")));
    let listed = answered("beads-real.blocked.json");
    assert_eq!(blocked(&town, &BR), answer(&listed));
    let by: BTreeMap<String, Vec<String>> =
        like::blocked(&town.state, &BR, None).into_iter().map(|b| (b.id.to_string(), b.by)).collect();
    for row in listed.as_array().expect("an array") {
        assert_eq!(by[&text(&row["id"])], sorted(answer(&row["blocked_by"])));
    }
}

#[test]
fn like_bd_gives_what_the_generator_of_the_data_expects() {
    for name in ["beads-real", "layered-1000", "random-1000"] {
        let town = workspace(name);
        let expected = answered(&format!("{name}.bd.json"));
        assert_eq!(sorted(ready(&town, &BD)), answer(&expected["ready"]), "{name}");
        assert_eq!(blocked(&town, &BD), answer(&expected["blocked"]), "{name}");
    }
}

// One test per row of the table in research/beads.md §5.

/// What each tracker offers of these beads, by id.
fn both_offer(beads: Vec<NewBead>) -> [String; 2] {
    let mut town = Town::new();
    town.import(beads);
    [&BR, &BD].map(|rules| sorted(ready(&town, rules)).join(" "))
}

fn with(id: &str, change: impl FnOnce(&mut NewBead)) -> NewBead {
    let mut bead = new_bead(id, &[]);
    change(&mut bead);
    bead
}

fn in_status(word: &str, bead: NewBead) -> NewBead {
    NewBead { status: BeadStatus::from(word.to_owned()), ..bead }
}

fn depending(id: &str, on: &[(&str, &str)]) -> NewBead {
    let edge = |(kind, target): &(&str, &str)| {
        Dependency::from_tracker(target, DepKind::from((*kind).to_owned())).expect("an edge")
    };
    NewBead { dependencies: on.iter().map(edge).collect(), ..new_bead(id, &[]) }
}

#[test]
fn statuses_offered() {
    let words =
        ["open", "in_progress", "blocked", "deferred", "closed", "pinned", "hooked", "tombstone", "odd"];
    let beads = words.map(|word| in_status(word, new_bead(&format!("gt-{word}"), &[])));
    assert_eq!(both_offer(beads.into()), ["gt-in_progress gt-open", "gt-open"]);
}

#[test]
fn statuses_that_satisfy() {
    let words = ["closed", "tombstone", "pinned", "deferred"];
    let mut beads = Vec::from(words.map(|word| in_status(word, new_bead(&format!("gt-x-{word}"), &[]))));
    beads.extend(words.map(|word| new_bead(&format!("gt-after-{word}"), &[&format!("gt-x-{word}")])));
    assert_eq!(both_offer(beads), ["gt-after-closed gt-after-tombstone", "gt-after-closed gt-after-pinned"]);
}

#[test]
fn a_target_the_workspace_lacks() {
    assert_eq!(both_offer(vec![new_bead("gt-a", &["gt-gone"])]), ["", "gt-a"]);
}

#[test]
fn a_target_in_another_project() {
    let beads = || vec![depending("gt-a", &[("blocks", "external:pay:gt-b")]), new_bead("gt-b", &[])];
    assert_eq!(both_offer(beads()), ["gt-b", "gt-a gt-b"]);
    let mut town = Town::new();
    town.import(beads());
    assert_eq!(like::blocked(&town.state, &BR, None)[0].by, ["external:pay:gt-b"]);
}

#[test]
fn a_blocked_parent_blocks_its_children_and_an_open_one_does_not() {
    let beads = vec![
        new_bead("gt-x", &[]),
        depending("gt-p", &[("blocks", "gt-x")]),
        depending("gt-c", &[("parent-child", "gt-p")]),
        depending("gt-d", &[("parent-child", "gt-c")]),
        depending("gt-e", &[("parent-child", "gt-x")]),
    ];
    assert_eq!(both_offer(beads), ["gt-e gt-x", "gt-e gt-x"]);
}

#[test]
fn a_child_with_blockers_of_its_own_names_only_those() {
    let mut town = Town::new();
    town.import(vec![
        new_bead("gt-x", &[]),
        depending("gt-p", &[("blocks", "gt-x")]),
        depending("gt-c", &[("parent-child", "gt-p"), ("blocks", "gt-x")]),
        depending("gt-d", &[("parent-child", "gt-p")]),
    ]);
    for rules in [&BR, &BD] {
        let listed = like::blocked(&town.state, rules, None);
        let by = |id: &str| listed.iter().find(|b| b.id.as_str() == id).map(|b| b.by.join(" "));
        assert_eq!((by("gt-c").as_deref(), by("gt-d").as_deref()), (Some("gt-x"), Some("gt-p")));
    }
}

#[test]
fn a_done_parent_hands_its_blockers_down_only_in_br() {
    let beads = vec![
        new_bead("gt-x", &[]),
        in_status("closed", depending("gt-p", &[("blocks", "gt-x")])),
        depending("gt-c", &[("parent-child", "gt-p")]),
    ];
    assert_eq!(both_offer(beads), ["gt-x", "gt-c gt-x"]);
}

/// Beads below each other, the first with this dependency.
fn nested(levels: usize, first: (&str, &str)) -> Vec<NewBead> {
    let name = |n: usize| format!("gt-{n:02}");
    let child = |n: usize| depending(&name(n), &[("parent-child", &name(n - 1))]);
    std::iter::once(depending(&name(0), &[first])).chain((1..=levels).map(child)).collect()
}

#[test]
fn br_inherits_fifty_levels_deep_and_external_blockers_without_bound() {
    let mut beads = nested(52, ("blocks", "gt-x"));
    beads.push(new_bead("gt-x", &[]));
    assert_eq!(both_offer(beads), ["gt-51 gt-52 gt-x", "gt-x"]);
    assert_eq!(both_offer(nested(52, ("blocks", "external:a:b")))[0], "");
}

#[test]
fn an_epic_with_open_children_is_offered() {
    let epic = with("gt-e", |b| b.kind = "epic".to_owned());
    let beads = vec![epic, depending("gt-c", &[("parent-child", "gt-e")])];
    assert_eq!(both_offer(beads), ["gt-c gt-e", "gt-c gt-e"]);
}

#[test]
fn kinds_that_block() {
    let kinds = ["blocks", "conditional-blocks", "merge-blocks", "related", "tracks", "discovered-from"];
    let mut beads = vec![in_status("deferred", new_bead("gt-x", &[]))];
    beads.extend(kinds.map(|kind| depending(&format!("gt-{kind}"), &[(kind, "gt-x")])));
    let rest = "gt-discovered-from gt-merge-blocks gt-related gt-tracks";
    assert_eq!(both_offer(beads), [rest, rest]);
}

/// Somebody who waits for a bead in this status, with children in these.
fn waiting(target: &str, children: &[&str], any: bool) -> [bool; 2] {
    let mut waiter = depending("gt-w", &[("waits-for", "gt-t")]);
    waiter.dependencies[0].any_children = any;
    let mut beads = vec![waiter, in_status(target, new_bead("gt-t", &[]))];
    for (n, word) in children.iter().enumerate() {
        beads.push(in_status(word, depending(&format!("gt-c{n}"), &[("parent-child", "gt-t")])));
    }
    both_offer(beads).map(|offered| offered.split(' ').any(|id| id == "gt-w"))
}

#[test]
fn waits_for_is_a_plain_block_in_br_and_a_gate_over_children_in_bd() {
    assert_eq!(waiting("open", &[], false), [false, true], "no child, open gate");
    assert_eq!(waiting("closed", &["open"], false), [true, false]);
    assert_eq!(waiting("open", &["closed", "open"], false), [false, false], "all of them");
    assert_eq!(waiting("open", &["closed", "open"], true), [false, true], "the first is enough");
    assert_eq!(waiting("open", &["open", "deferred"], true), [false, false]);
    assert_eq!(waiting("open", &["closed", "pinned"], false), [false, true]);
    assert_eq!(waiting("open", &["pinned", "open"], true), [false, false], "pinned is not closed");
}

#[test]
fn beads_put_off_and_in_bd_their_children() {
    let mut town = Town::new();
    let later = town.in_time(Millis::minutes(10));
    let put_off = |id: &str, until| with(id, |b| b.defer_until = Some(until));
    town.import(vec![
        put_off("gt-later", later),
        depending("gt-child", &[("parent-child", "gt-later")]),
        depending("gt-grandchild", &[("parent-child", "gt-child")]),
        put_off("gt-now", town.now),
    ]);
    assert_eq!(sorted(ready(&town, &BR)), ["gt-child", "gt-grandchild", "gt-now"]);
    assert_eq!(sorted(ready(&town, &BD)), ["gt-grandchild", "gt-now"]);
    town.now = later;
    assert_eq!(ready(&town, &BR).len(), 4);
    assert_eq!(ready(&town, &BD).len(), 4);
}

#[test]
fn pinned_ephemeral_and_template_beads() {
    let beads = vec![
        with("gt-pinned", |b| b.pinned = true),
        with("gt-ephemeral", |b| b.ephemeral = true),
        with("gt-template", |b| b.is_template = true),
        new_bead("gt-wisp-1", &[]),
    ];
    assert_eq!(both_offer(beads), ["", "gt-template gt-wisp-1"]);
}

#[test]
fn what_br_drops_is_missing_for_those_that_wait_for_it() {
    let gone = with("gt-gone", |b| {
        b.ephemeral = true;
        b.status = BeadStatus::Closed;
    });
    let beads = vec![gone, new_bead("gt-a", &["gt-gone"])];
    assert_eq!(both_offer(beads), ["", "gt-a"]);
}

#[test]
fn types_that_bd_hides() {
    let kinds = ["merge-request", "gate", "molecule", "message", "agent", "role", "rig", "convoy", "epic"];
    let beads = || kinds.map(|kind| with(&format!("gt-{kind}"), |b| b.kind = kind.to_owned()));
    let [br, bd] = both_offer(beads().into());
    assert_eq!((br.split(' ').count(), bd.as_str()), (kinds.len(), "gt-convoy gt-epic"));
}

#[test]
fn both_sides_of_a_cycle_are_blocked() {
    let beads = vec![new_bead("gt-a", &["gt-b"]), new_bead("gt-b", &["gt-a"])];
    assert_eq!(both_offer(beads), ["", ""]);
}

#[test]
fn what_is_listed_as_blocked() {
    let mut town = Town::new();
    town.import(vec![
        new_bead("gt-x", &[]),
        in_status("in_progress", new_bead("gt-c", &["gt-x"])),
        in_status("deferred", new_bead("gt-b", &["gt-x"])),
        in_status("closed", new_bead("gt-a", &["gt-x"])),
    ]);
    assert_eq!(blocked(&town, &BR), ["gt-c"]);
    assert_eq!(blocked(&town, &BD), ["gt-b", "gt-c"]);
}

#[test]
fn the_order_of_what_is_ready() {
    let mut town = Town::new();
    let aged = |id: &str, priority, minutes| {
        let created_at = Some(town.in_time(Millis::minutes(minutes)));
        NewBead { priority: Some(priority), created_at, ..new_bead(id, &[]) }
    };
    let beads = vec![
        aged("gt-a", 4, 0),
        aged("gt-b", 1, 1),
        aged("gt-c", 0, 2),
        aged("gt-d", 2, 3),
        aged("gt-e", 2, 4),
    ];
    town.import(beads);
    assert_eq!(ready(&town, &BR), ["gt-b", "gt-c", "gt-a", "gt-d", "gt-e"]);
    assert_eq!(ready(&town, &BD), ["gt-c", "gt-b", "gt-e", "gt-d", "gt-a"]);
}

#[test]
fn each_rig_is_judged_by_itself() {
    let mut town = Town::new();
    town.rig("shop", "shop");
    town.import(vec![new_bead("gt-a", &[]), new_bead("shop-b", &["gt-a"]), new_bead("shop-c", &[])]);
    town.close("gt-a");
    let of = |rules, rig: &str| {
        let ids = like::ready(&town.state, rules, town.now, Some(&rig_name(rig)));
        ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of(&BR, "shop"), "shop-c", "the other rig's bead is missing here, closed or not");
    assert_eq!(of(&BD, "shop"), "shop-b shop-c");
    assert_eq!(of(&BR, "gastown"), "");
    assert_eq!(sorted(ready(&town, &BD)), ["shop-b", "shop-c"]);
    assert_eq!(blocked(&town, &BR), ["shop-b"]);
    assert!(like::blocked(&town.state, &BR, Some(&rig_name("gastown"))).is_empty());
}
