use super::*;

fn rig() -> RigName {
    RigName::parse("shop").expect("valid")
}

fn bead(json: &str) -> Bead {
    Record::parse(json.as_bytes()).expect("readable").expect("an issue").into_bead(rig())
}

fn error(json: &[u8]) -> String {
    Record::parse(json).expect_err("not a record")
}

#[test]
fn a_record_of_br_becomes_a_bead() {
    let bead = bead(
        r#"{"id":"shop-1.1","title":"Cart","description":"long","status":"closed","priority":1,"issue_type":"task",
        "assignee":"ann","created_at":"2026-11-15T23:50:23.896207554Z","updated_at":"2026-11-15T23:50:47Z",
        "closed_at":"2026-11-15T23:50:47.5Z","close_reason":"done","labels":["infra","perf"],"pinned":true,
        "defer_until":"2026-12-01T00:00:00Z","comments":[{"id":1},{"id":"x"}],"unheard_of":{"a":[1]},
        "dependencies":[{"issue_id":"shop-1.1","depends_on_id":"shop-1","type":"parent-child","metadata":"{}"}]}"#,
    );
    let time = |text| Timestamp::parse_rfc3339(text).expect("a time");
    let parent = BeadId::parse("shop-1").expect("valid");
    assert_eq!(
        bead,
        Bead {
            id: BeadId::parse("shop-1.1").expect("valid"),
            title: "Cart".to_owned(),
            kind: "task".into(),
            status: BeadStatus::Closed,
            priority: 1,
            dependencies: vec![Dependency::new(parent, DepKind::ParentChild)],
            created_at: time("2026-11-15T23:50:23.896Z"),
            source: Some(rig()),
            pinned: true,
            ephemeral: false,
            is_template: false,
            argv: None,
            rare: RareFields {
                description: None,
                assignee: Some("ann".to_owned()),
                labels: vec!["infra".to_owned(), "perf".to_owned()],
                closed_at: Some(time("2026-11-15T23:50:47.5Z")),
                close_reason: Some("done".to_owned()),
                defer_until: Some(time("2026-12-01T00:00:00Z")),
            }
            .into(),
        }
    );
}

#[test]
fn null_is_as_good_as_absent() {
    let nulls = bead(
        r#"{"_type":null,"id":"a-1","title":null,"description":null,"status":null,"priority":null,"issue_type":null,
        "assignee":null,"labels":null,"dependencies":null,"created_at":null,"updated_at":null,"closed_at":null,
        "close_reason":null,"defer_until":null,"pinned":null,"ephemeral":null,"is_template":null}"#,
    );
    assert_eq!(nulls, bead(r#"{"id":"a-1"}"#));
    assert_eq!((nulls.priority, nulls.status, nulls.created_at.as_millis()), (2, BeadStatus::Open, 0));
}

#[test]
fn words_nobody_knows_are_kept() {
    let bead = bead(
        r#"{"id":"a-1","status":"simmering","issue_type":"spike","dependencies":[{"depends_on_id":"a-2","type":"haunts"}]}"#,
    );
    assert_eq!((bead.status.as_str(), &*bead.kind), ("simmering", "spike"));
    assert_eq!(bead.dependencies[0].kind.as_str(), "haunts");
}

#[test]
fn decoration_never_costs_a_bead() {
    for priority in ["9", "-1", "2.5", "\"high\"", "[1]", "{\"a\":1}", "true", "1e300"] {
        assert_eq!(bead(&format!(r#"{{"id":"a-1","priority":{priority}}}"#)).priority, 2, "{priority}");
    }
    for time in ["17", "\"yesterday\"", "\"\"", "[]", "false"] {
        let bead = bead(&format!(r#"{{"id":"a-1","created_at":{time},"defer_until":{time}}}"#));
        assert_eq!((bead.created_at.as_millis(), bead.defer_until), (0, None), "{time}");
    }
}

#[test]
fn why_it_was_closed_matters_only_while_it_is_closed() {
    let end = r#""closed_at":"2026-11-15T00:00:00Z","close_reason":"done""#;
    for (status, closed) in [("closed", true), ("tombstone", true), ("open", false)] {
        let bead = bead(&format!(r#"{{"id":"a-1","status":"{status}",{end}}}"#));
        assert_eq!((bead.closed_at.is_some(), bead.close_reason.is_some()), (closed, closed), "{status}");
    }
}

#[test]
fn dependencies_are_one_per_pair_and_a_bead_may_be_said_to_wait_for_itself() {
    let bead = bead(
        r#"{"id":"a-1","dependencies":[{"depends_on_id":"a-1","type":"blocks"},{"depends_on_id":"a-2","type":"related"},
        {"depends_on_id":"a-2"},{"depends_on_id":null},{"depends_on_id":"external:other:b-7","type":null},
        {"depends_on_id":"äöü"}]}"#,
    );
    let edges: Vec<_> =
        bead.dependencies.iter().map(|d| (d.on.as_str(), d.kind.as_str(), d.target())).collect();
    let expected = [
        ("a-1", "blocks", "a-1"),
        ("a-2", "blocks", "a-2"),
        ("b-7", "blocks", "external:other:b-7"),
        ("unnamed", "blocks", "äöü"),
    ];
    assert_eq!(edges, expected, "what cannot be named is waited for all the same");
}

#[test]
fn a_gate_may_open_with_the_first_child() {
    let any = |metadata: &str, kind: &str| {
        let json = format!(
            r#"{{"id":"a-1","dependencies":[{{"depends_on_id":"a-2","type":"{kind}","metadata":{metadata}}}]}}"#
        );
        bead(&json).dependencies[0].any_children
    };
    assert!(any(r#""{\"gate\":\"any-children\"}""#, "waits-for"));
    assert!(any(r#"{"gate":"any-children","spawner":"x"}"#, "waits-for"));
    assert!(!any(r#""{\"gate\":\"any-children\"}""#, "blocks"));
    for other in [r#""{\"gate\":\"all-children\"}""#, r#""{}""#, r#""""#, r#""no json""#, "7", "null", "[1]"]
    {
        assert!(!any(other, "waits-for"), "{other}");
    }
}

#[test]
fn long_texts_are_cut_between_characters_and_lose_their_nuls() {
    let bead = bead(&format!(r#"{{"id":"a-1","title":"\u0000{}"}}"#, "ä".repeat(10_000)));
    assert_eq!(bead.title.chars().count(), MAX_TEXT);
    assert!(bead.title.starts_with('\u{fffd}'));
}

#[test]
fn what_is_no_issue_is_no_error() {
    assert!(Record::parse(br#"{"_type":"memory","key":"k"}"#).expect("readable").is_none());
    assert!(Record::parse(br#"{"_type":"issue","id":"a-1"}"#).expect("readable").is_some());
}

#[test]
fn what_can_be_no_bead_says_why() {
    assert_eq!(error(b"{\"id\":\"a-1\",\"title\":\"\xff\"}"), "not valid UTF-8");
    assert_eq!(error(br#"["issue","a-1","T"]"#), "not a JSON object");
    assert_eq!(error(br#"{"title":"T"}"#), "the id is missing");
    assert_eq!(error(br#"{"id":"a-1","title":"T"#), "EOF while parsing a string");
    assert!(error(br#"{"id":"../x"}"#).contains("is not valid"));
    assert!(
        error(format!(r#"{{"id":"a-1","pinned":"{}"}}"#, "x".repeat(9999)).as_bytes()).len() <= MAX_REASON
    );
}

#[test]
fn an_import_takes_all_texts_and_is_strict() {
    let new = |json: &'static str| {
        Record::parse(json.as_bytes()).expect("readable").expect("an issue").into_new_bead()
    };
    let bead = new(
        r#"{"id":"a-1","title":"T","description":"D","priority":0,"created_at":"2026-11-15T00:00:00Z","ephemeral":true,
        "dependencies":[{"depends_on_id":"a-2"}]}"#,
    )
    .expect("importable");
    assert_eq!((bead.id.as_deref(), bead.description.as_deref()), (Some("a-1"), Some("D")));
    assert_eq!((bead.priority, bead.ephemeral, bead.dependencies.len()), (Some(0), true, 1));
    for (json, why) in [
        (r#"{"id":"a-1"}"#, "the title is missing"),
        (r#"{"id":"a-1","title":"T","priority":9}"#, "priority 9 is not known: use 0 to 4"),
        (r#"{"id":"a-1","title":"T","created_at":"soon"}"#, "created_at is not a time"),
        (r#"{"id":"a-1","title":"T","dependencies":[{"depends_on_id":""}]}"#, "bead id"),
    ] {
        let said = new(json).expect_err("refused");
        assert!(said.starts_with(why), "{said}");
    }
}

#[test]
fn a_bead_whose_dependencies_are_only_counted_is_not_taken_for_one_that_waits_for_nothing() {
    let counted = br#"{"id":"a-1","title":"T","dependency_count":2}"#;
    let error = Record::parse(counted).expect_err("it would start too early");
    assert!(error.contains("counted but not shown"), "{error}");
    let shown = br#"{"id":"a-1","title":"T","dependency_count":1,"dependencies":[{"depends_on_id":"a-2"}]}"#;
    assert!(Record::parse(shown).is_ok_and(|record| record.is_some()));
    let none = br#"{"id":"a-1","title":"T","dependency_count":0}"#;
    assert!(Record::parse(none).is_ok_and(|record| record.is_some()));
}
