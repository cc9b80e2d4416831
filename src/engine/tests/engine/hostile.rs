//! What must not get into the journal, whoever asks and however: the socket takes what the command line never sends.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use yard_engine::bead::BeadChange;
use yard_engine::command::{NewTask, SlingRequest};
use yard_engine::rig::BeadSource;
use yard_engine::{Answer, Asker, Command, Kitchen};

use crate::town::{Town, sling_of};

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inside, _| json!([inside]))
}

fn task(params: Map<String, Value>) -> Command {
    let task = json!({"agent": "a", "action": "click", "priority": 0, "max_attempts": 1, "params": params});
    let task: NewTask = serde_json::from_value(task).expect("a task");
    Command::TaskSubmit { tasks: vec![task] }
}

#[test]
fn what_is_nested_too_deeply_to_be_read_again_is_not_taken() {
    let mut town = Town::new();
    for (depth, fits) in [(10, true), (62, true), (64, false), (110, false)] {
        let params: Map<String, Value> = [("x".to_owned(), nested(depth))].into_iter().collect();
        let Answer::Tasks { receipts } = town.does(&task(params)) else { panic!("receipts") };
        assert_eq!(receipts[0].refusal.is_none(), fits, "{depth} levels: {receipts:?}");
    }
}

#[test]
fn whoever_asks_has_a_name_that_can_be_shown() {
    let mut town = Town::new();
    let kitchen = Kitchen::default();
    for actor in ["a\nb", "\u{1b}[31mred", "x\0", &"x".repeat(5000)] {
        let asker = Asker { actor, kitchen: &kitchen };
        let refusal = town.act(|tx| tx.decide(&asker, &Command::Resume)).expect_err("refused");
        assert_eq!(refusal.code, "bad-actor", "{actor:?}");
    }
}

#[test]
fn reasons_and_variables_have_an_end() {
    let mut town = Town::new();
    town.bead("gt-1");
    let long = "x".repeat(200 * 1024);
    let close =
        |reason: &str| Command::BeadClose { ids: vec!["gt-1".to_owned()], reason: Some(reason.to_owned()) };
    for reason in [long.as_str(), "a\0b"] {
        town.refuses(&close(reason));
        town.refuses(&Command::Pause { reason: Some(reason.to_owned()), until: None });
        let vars = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let sling = |vars| Command::Sling(Box::new(SlingRequest { vars, ..sling_of(&["gt-1"]) }));
        town.refuses(&sling(vars("k", reason)));
        town.refuses(&sling(vars(reason, "v")));
        town.refuses(&sling((0..2000).map(|n| (format!("v{n}"), String::new())).collect()));
    }
    town.does(&close("done"));
}

#[test]
fn a_bead_that_changes_is_checked_like_a_new_one() {
    let mut town = Town::new();
    town.bead("gt-1");
    let long = "x".repeat(5000);
    for text in ["-x", "two\nlines", "a\0b", &long] {
        let kind = BeadChange { kind: Some(text.to_owned()), ..BeadChange::default() };
        town.refuses(&Command::BeadUpdate { id: "gt-1".to_owned(), change: kind });
    }
    for text in ["a\0b", &long] {
        let assignee = BeadChange { assignee: Some(text.to_owned()), ..BeadChange::default() };
        let labels = BeadChange { labels: Some(vec![text.to_owned()]), ..BeadChange::default() };
        for change in [assignee, labels] {
            town.refuses(&Command::BeadUpdate { id: "gt-1".to_owned(), change });
        }
    }
    let many = BeadChange { labels: Some(vec!["l".to_owned(); 1001]), ..BeadChange::default() };
    town.refuses(&Command::BeadUpdate { id: "gt-1".to_owned(), change: many });
}

#[test]
fn a_rig_lies_somewhere() {
    let mut town = Town::new();
    let rig = |change: &dyn Fn(&mut Value)| {
        let mut rig = json!({"name": "api", "prefix": "api", "path": "api"});
        change(&mut rig);
        Command::RigAdd { rig: serde_json::from_value(rig).expect("a rig") }
    };
    for path in ["", "a\0b", &"x/".repeat(4000)] {
        town.refuses(&rig(&|rig| rig["path"] = json!(path)));
        let source = BeadSource::Jsonl { path: path.to_owned() };
        town.refuses(&rig(&|rig| rig["source"] = json!(source)));
        let source = BeadSource::Command { argv: vec![path.to_owned(), "a\0b".to_owned()] };
        town.refuses(&rig(&|rig| rig["source"] = json!(source)));
    }
    town.does(&rig(&|_| {}));
}
