use super::*;

fn ledger() -> Ledger {
    Ledger::new(RigName::parse("r").expect("valid"), Descriptions::of_output())
}

fn read(ledger: &mut Ledger, records: &[&str]) -> Vec<String> {
    let text = records.concat();
    let mut offset = 0;
    ledger.begin();
    for record in records {
        ledger.take(record.as_bytes(), offset).expect("a record");
        offset += record.len();
    }
    ledger
        .finish(text.as_bytes(), false)
        .into_iter()
        .map(|bead| format!("{}={}", bead.id, bead.title))
        .collect()
}

const OLD: &str = r#"{"id":"a-1","title":"old","updated_at":"2026-11-15T00:00:00.1Z"}"#;
const NEW: &str = r#"{"id":"a-1","title":"new","updated_at":"2026-11-15T00:00:00.2Z"}"#;
const TWIN: &str = r#"{"id":"a-1","title":"twin","updated_at":"2026-11-15T00:00:00.2Z"}"#;
const OTHER: &str = r#"{"id":"a-2","title":"other"}"#;

#[test]
fn of_several_records_the_newest_wins_and_of_equals_the_later() {
    assert_eq!(read(&mut ledger(), &[OLD, NEW]), ["a-1=new"]);
    assert_eq!(read(&mut ledger(), &[NEW, OLD]), ["a-1=new"]);
    assert_eq!(read(&mut ledger(), &[NEW, TWIN, OLD]), ["a-1=twin"]);
    assert_eq!(read(&mut ledger(), &[TWIN, NEW]), ["a-1=new"]);
}

#[test]
fn when_the_newer_record_goes_the_older_is_told() {
    let mut ledger = ledger();
    assert_eq!(read(&mut ledger, &[OLD, NEW, OTHER]), ["a-1=new", "a-2=other"]);
    assert_eq!(read(&mut ledger, &[OLD, OTHER]), ["a-1=old"]);
    assert_eq!(ledger.parses, 3, "known records are not counted again");
}

#[test]
fn a_bead_that_went_and_came_back_is_told_again() {
    let mut ledger = ledger();
    read(&mut ledger, &[OLD, OTHER]);
    assert!(read(&mut ledger, &[OTHER]).is_empty());
    assert!(ledger.lacks_some());
    assert_eq!(ledger.forget_missing(), [BeadId::parse("a-1").expect("valid")]);
    assert!(ledger.forget_missing().is_empty(), "a disappearance is told once");
    assert_eq!(read(&mut ledger, &[OTHER, OLD]), ["a-1=old"]);
}

#[test]
fn a_bead_that_was_only_out_of_sight_is_not_told_again() {
    let mut ledger = ledger();
    read(&mut ledger, &[OLD, OTHER]);
    assert!(read(&mut ledger, &[OTHER]).is_empty());
    assert!(read(&mut ledger, &[OLD, OTHER]).is_empty());
    assert!(!ledger.lacks_some());
}

#[test]
fn the_place_of_a_bead_that_is_gone_serves_another() {
    let mut ledger = ledger();
    read(&mut ledger, &[OLD, OTHER]);
    read(&mut ledger, &[OTHER]);
    ledger.forget_missing();
    let third = r#"{"id":"a-3","title":"third"}"#;
    assert_eq!(read(&mut ledger, &[OTHER, third]), ["a-3=third"]);
    assert_eq!(ledger.slots.len(), 2);
    assert_eq!(read(&mut ledger, &[OTHER, third, OLD]), ["a-1=old"]);
    assert_eq!(ledger.slots.len(), 3, "its old record does not lead to its old place");
}

#[test]
fn hashes_of_old_records_do_not_pile_up() {
    let mut ledger = ledger();
    for n in 0..5000 {
        let record = format!(r#"{{"id":"a-1","title":"{n}"}}"#);
        assert_eq!(read(&mut ledger, &[&record]), [format!("a-1={n}")]);
    }
    assert!(ledger.known.len() <= SLACK + 3);
}
