//! Recovery: what dead workers and lost events leave behind is found, released or reported, and goes on through the
//! same readiness as everything else. Nothing is ever started by force.

use yard_engine::alert::AlertKind;
use yard_engine::bead::BeadStatus;
use yard_engine::command::RecoveryKind;
use yard_engine::readiness::ReasonCode;
use yard_engine::rig::RigSwitch;
use yard_engine::{Command, Millis, Standing};

use crate::town::{Town, bead_id, new_bead};
use crate::workspace::Workspace;

const STALE: Millis = Millis::minutes(60);

fn town_with(ids: &[&str]) -> Town {
    let mut town = Town::deferred(5);
    town.beads(ids);
    town
}

/// What the findings are, and what was done about each.
fn done(findings: &[yard_engine::command::Recovery]) -> Vec<(RecoveryKind, &str, &str)> {
    findings.iter().map(|f| (f.kind, f.id.as_str(), f.action.as_str())).collect()
}

// Dead workers.

#[test]
fn a_worker_that_died_is_tried_again_as_the_policy_says_and_then_a_person_is_told_once() {
    let mut town = town_with(&["gt-a"]);
    town.configure(|s| s.retry_crash.max_attempts = 3);
    town.convoy(&["gt-a"]);
    for wait in [1, 5] {
        assert_eq!(town.start(), ["gt-a"]);
        town.lost("gt-a");
        assert_eq!(town.codes("gt-a"), [ReasonCode::NotBefore]);
        assert_eq!(town.recover(false), [], "the policy looks after it");
        town.advance(Millis::minutes(wait));
    }
    assert_eq!(town.start(), ["gt-a"]);
    town.lost("gt-a");
    assert_eq!(
        (town.standing("gt-a"), town.codes("gt-a")),
        (Standing::Failed, vec![ReasonCode::RetriesExhausted])
    );
    town.scan();
    town.recover(false);
    let [alert] = town.alerts_of(AlertKind::BeadFailed)[..] else { panic!("one alert") };
    assert!(alert.message.contains("ym scheduler retry gt-a"), "{}", alert.message);
    town.does(&Command::Retry { bead: "gt-a".to_owned() });
    assert_eq!((town.alert_kinds(), town.start()), (Vec::new(), vec!["gt-a".to_owned()]));
}

// Stale hooks.

#[test]
fn a_native_bead_left_in_progress_by_our_worker_or_by_nobody_is_released_by_the_scan() {
    for (status, who) in [
        (BeadStatus::InProgress, Some("ym/gt-a@1")),
        (BeadStatus::Hooked, Some("ym/gt-a@1")),
        (BeadStatus::InProgress, None),
        (BeadStatus::Hooked, None),
    ] {
        let mut town = town_with(&["gt-a"]);
        town.status("gt-a", status.clone(), who);
        town.advance(Millis(STALE.0 - 1));
        town.scan();
        assert_eq!(town.state.bead(&bead_id("gt-a")).expect("known").bead.status, status);
        town.advance(Millis(1));
        town.scan();
        let bead = &town.state.bead(&bead_id("gt-a")).expect("known").bead;
        assert_eq!((&bead.status, &bead.assignee), (&BeadStatus::Open, &None));
        assert_eq!(town.alert_kinds(), [], "there is nothing left for a person to do");
    }
}

#[test]
fn a_released_bead_goes_on_through_its_convoy() {
    let mut town = town_with(&["gt-a"]);
    town.status("gt-a", BeadStatus::InProgress, None);
    town.convoy(&["gt-a"]);
    assert_eq!(town.pass().started, [""; 0]);
    town.advance(STALE);
    let started = town.turn(|tx| {
        tx.scan(None, usize::MAX);
    });
    assert_eq!(started, ["gt-a"]);
    town.runs("gt-a");
    assert!(!town.last_closed("gt-a").0.forced);
}

#[test]
fn a_bead_somebody_else_is_said_to_be_on_is_reported_and_released_by_a_persons_word_only() {
    let mut town = town_with(&["gt-a"]);
    town.status("gt-a", BeadStatus::InProgress, Some("bob"));
    town.convoy(&["gt-a"]);
    town.advance(STALE);
    town.scan();
    town.scan();
    let [alert] = town.alerts_of(AlertKind::StaleHook)[..] else { panic!("one alert") };
    assert!(
        alert.message.contains("by bob") && alert.message.contains("scheduler recover"),
        "{}",
        alert.message
    );
    assert_eq!((town.pass().started, town.codes("gt-a")), (Vec::new(), vec![ReasonCode::ClaimedElsewhere]));
    let findings = town.recover(false);
    assert_eq!(done(&findings)[0], (RecoveryKind::StaleHook, "gt-a", "released"));
    assert_eq!((town.alert_kinds(), town.pass().started), (Vec::new(), vec!["gt-a".to_owned()]));
}

#[test]
fn a_bead_of_a_workspace_is_reported_once_and_never_touched() {
    let mut town = Town::deferred(5);
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a"]);
    tracker.claims("ox-a", "ym/ox-a@1");
    town.reads(&mut tracker);
    let before = town.state.bead(&bead_id("ox-a")).expect("known").bead.clone();
    town.advance(STALE);
    town.scan();
    town.recover(false);
    town.scan();
    let [alert] = town.alerts_of(AlertKind::StaleHook)[..] else { panic!("one alert") };
    assert!(alert.message.contains("br update ox-a --status open"), "{}", alert.message);
    assert_eq!(town.state.bead(&bead_id("ox-a")).expect("known").bead, before);
    tracker.releases("ox-a");
    town.reads(&mut tracker);
    town.scan();
    assert_eq!(town.alert_kinds(), []);
}

#[test]
fn the_alert_about_a_stale_hook_ends_with_its_bead() {
    let ends: [fn(&mut Workspace); 2] =
        [|tracker| tracker.closes("ox-a"), |tracker| drop(tracker.loses("ox-a"))];
    for end in ends {
        let mut town = Town::deferred(5);
        let mut tracker = town.workspace("ox", "ox");
        tracker.has(&["ox-a"]);
        tracker.claims("ox-a", "bob");
        town.reads(&mut tracker);
        town.advance(STALE);
        town.scan();
        assert_eq!(town.alert_kinds(), [AlertKind::StaleHook]);
        end(&mut tracker);
        town.reads(&mut tracker);
        town.scan();
        assert_eq!(town.alert_kinds(), []);
    }
}

#[test]
fn a_bead_whose_worker_lives_is_never_released() {
    let mut town = town_with(&["gt-a"]);
    town.convoy(&["gt-a"]);
    town.start();
    town.status("gt-a", BeadStatus::InProgress, Some("ym/gt-a@1"));
    town.advance(Millis::minutes(600));
    town.scan();
    assert_eq!(town.recover(false), []);
    let bead = &town.state.bead(&bead_id("gt-a")).expect("known").bead;
    assert_eq!((&bead.status, town.count("dispatch.started")), (&BeadStatus::InProgress, 1));
}

#[test]
fn a_hook_is_stale_from_the_end_of_the_worker_and_not_while_its_retry_or_its_close_is_awaited() {
    let mut town = Town::deferred(5);
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-crash", "ox-done"]);
    town.reads(&mut tracker);
    town.configure(|s| {
        s.retry_crash.max_attempts = 2;
        s.retry_crash.backoff = vec![Millis::minutes(120)];
    });
    town.convoy(&["ox-crash", "ox-done"]);
    town.start();
    tracker.claims("ox-crash", "ym/ox-crash@1");
    tracker.claims("ox-done", "ym/ox-done@1");
    town.reads(&mut tracker);
    town.advance(Millis::minutes(300));
    town.crashes("ox-crash");
    town.exits_ok("ox-done");
    town.scan();
    assert_eq!(town.recover(false), []);
    tracker.closes("ox-done");
    town.reads(&mut tracker);
    town.advance(Millis::minutes(120));
    town.start();
    town.crashes("ox-crash");
    town.scan();
    assert_eq!(town.alerts_of(AlertKind::StaleHook).len(), 0, "it failed only just now");
    town.advance(STALE);
    town.scan();
    assert_eq!(town.alerts_of(AlertKind::StaleHook).len(), 1);
}

// The scan on request.

#[test]
fn a_dry_run_says_the_same_and_changes_nothing() {
    let mut town = town_with(&["gt-ours", "gt-theirs", "gt-blocked", "gt-fed"]);
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a"]);
    tracker.claims("ox-a", "bob");
    town.reads(&mut tracker);
    town.status("gt-ours", BeadStatus::InProgress, Some("ym/gt-ours@1"));
    town.status("gt-theirs", BeadStatus::Hooked, Some("bob"));
    town.status("gt-blocked", BeadStatus::Blocked, None);
    let stuck = town.convoy(&["gt-blocked"]);
    town.convoy(&["gt-fed"]);
    town.advance(STALE);
    let before = town.log.len();
    let foretold = town.recover(true);
    assert_eq!(town.kinds_since(before), [""; 0]);
    assert_eq!(
        done(&foretold)[..4],
        [
            (RecoveryKind::StaleHook, "gt-ours", "released"),
            (RecoveryKind::StaleHook, "gt-theirs", "released"),
            (RecoveryKind::StaleHook, "ox-a", "reported"),
            (RecoveryKind::MissedBead, "gt-fed", "scheduled"),
        ]
    );
    let stuck = (RecoveryKind::StrandedConvoy, stuck.as_str(), "reported; see ym convoy stranded");
    assert_eq!(done(&foretold)[4..], [stuck]);
    assert_eq!(town.recover(false), foretold);
    assert_eq!(town.recover(false).len(), 2, "what can only be reported is found again");
}

#[test]
fn a_bead_that_is_waiting_for_a_pass_is_put_on_the_schedule_by_recover() {
    let mut town = town_with(&["gt-a"]);
    town.convoy(&["gt-a"]);
    assert_eq!(done(&town.recover(false)), [(RecoveryKind::MissedBead, "gt-a", "scheduled")]);
    assert_eq!(
        (town.running(), town.is_scheduled("gt-a")),
        (Vec::new(), true),
        "starting is the plan's business"
    );
    assert_eq!(town.recover(false), []);
    assert_eq!((town.pass().started, town.count("context.opened")), (vec!["gt-a".to_owned()], 1));
}

// Stranded convoys.

#[test]
fn only_convoys_in_which_nothing_can_go_on_are_stranded() {
    let mut town = town_with(&["gt-run", "gt-wait", "gt-put-off"]);
    town.bead_needing("gt-next", &["gt-run"]);
    let until = town.in_time(Millis::minutes(5));
    let later = |id: &str| yard_engine::command::NewBead { defer_until: Some(until), ..new_bead(id, &[]) };
    town.import(vec![later("gt-later")]);
    town.convoy(&["gt-run", "gt-next"]);
    town.convoy(&["gt-next"]);
    town.convoy(&["gt-later"]);
    town.start();
    assert_eq!(town.stranded(), [], "running, waiting for what runs, waiting for time");
    let taken = town.convoy(&["gt-put-off"]);
    town.pass();
    assert_eq!(town.stranded(), [], "running");
    town.runs("gt-put-off");
    town.crashes("gt-put-off");
    assert_eq!(town.stranded(), [], "it is tried again by itself");
    town.does(&Command::Hold { id: "gt-put-off".to_owned(), held: true });
    assert_eq!(town.stranded(), [(taken, vec!["gt-put-off".to_owned()])]);
}

#[test]
fn a_stranded_convoy_says_what_is_the_matter_with_each_of_its_beads() {
    use ReasonCode as C;
    let mut town = Town::deferred(5);
    town.rig("web", "w");
    town.bead("gt-hot");
    town.switch("web", RigSwitch::Park);
    town.import(vec![
        new_bead("gt-missing", &["gt-nobody"]),
        new_bead("gt-x", &["gt-y"]),
        new_bead("gt-y", &["gt-x"]),
        new_bead("gt-behind", &["gt-missing"]),
        new_bead("w-parked", &[]),
        new_bead("zz-homeless", &[]),
    ]);
    town.status("gt-hot", BeadStatus::InProgress, Some("bob"));
    let beads = ["gt-missing", "gt-x", "gt-behind", "w-parked", "zz-homeless", "gt-hot"];
    town.convoy(&beads);
    town.pass();
    let [stranded] = &town.state.stranded(true)[..] else { panic!("one convoy") };
    let codes: Vec<(&str, Vec<ReasonCode>)> = stranded
        .stuck
        .iter()
        .map(|(id, reasons)| (id.as_str(), reasons.iter().map(|reason| reason.code).collect()))
        .collect();
    assert_eq!(
        codes,
        [
            ("gt-missing", vec![C::MissingDependency]),
            ("gt-x", vec![C::BlockedBy, C::Cycle]),
            ("gt-behind", vec![C::BlockedBy]),
            ("w-parked", vec![C::RigParked]),
            ("zz-homeless", vec![C::NoRig]),
            ("gt-hot", vec![C::ClaimedElsewhere]),
        ]
    );
    assert!(stranded.ready.is_empty());
    // One bead that can go on is enough.
    town.status("gt-hot", BeadStatus::Open, Some(""));
    assert_eq!(town.stranded(), []);
}

#[test]
fn without_anybody_to_start_it_ready_work_is_stranded_too() {
    let mut town = town_with(&["gt-a"]);
    town.bead_needing("gt-b", &["gt-a"]);
    town.convoy(&["gt-a", "gt-b"]);
    let [stranded] = &town.state.stranded(false)[..] else { panic!("one convoy") };
    assert_eq!(stranded.ready.iter().map(yard_engine::BeadId::as_str).collect::<Vec<_>>(), ["gt-a"]);
    assert_eq!(town.stranded(), []);
    town.pause();
    assert_eq!(town.stranded().len(), 1, "nothing starts before somebody resumes");
}

#[test]
fn empty_staged_and_landed_convoys_are_not_stranded() {
    let mut town = town_with(&["gt-a", "gt-b"]);
    town.convoy(&[]);
    town.staged(&["gt-a"]);
    let owned = town.owned_convoy(&["gt-b"]);
    assert_eq!(town.stranded(), [(owned, vec!["gt-b".to_owned()])], "its owner has not asked for gt-b");
    town.close("gt-b");
    assert_eq!(town.stranded(), []);
}
