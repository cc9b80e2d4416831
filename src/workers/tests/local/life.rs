//! The ordinary life of a dispatch.

use std::collections::BTreeMap;

use yard_engine::FormulaName;
use yard_workers::{CookInput, ExitCause, Formula, StartOrder, WorkerReport, cook};

use crate::yard::{Yard, eventually, id, surface};

pub(crate) fn steps_run_in_order_and_are_reported() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["echo one", "echo two >&2", "echo three"]);
    yard.running("gt-a@1");
    let exit = yard.ended("gt-a@1");
    assert_eq!((exit.code, exit.signal, exit.cause), (Some(0), None, ExitCause::Exit));
    assert_eq!(exit.step.as_deref(), Some("s3"));
    assert_eq!(yard.log("gt-a@1"), "one\ntwo\nthree\n");
    let steps: Vec<String> = yard
        .rest()
        .into_iter()
        .map(|report| match report {
            WorkerReport::StepDone { step, .. } => step,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(steps, ["s1", "s2"]);
    assert_eq!(yard.pool().finished_steps(&id("gt-a@1")).expect("readable"), ["s1", "s2"]);
    yard.pool().forget(&id("gt-a@1"));
    eventually("its claim is removed", || !yard.claim("gt-a@1").exists());
}

pub(crate) fn exit_codes_and_signals_are_reported() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["exit 37"]);
    yard.start("gt-b@1", &["kill -9 $$"]);
    yard.start("gt-c@1", &["kill -s RTMIN $$ || kill -34 $$"]);
    assert_eq!(yard.ended("gt-a@1").code, Some(37));
    assert_eq!(yard.ended("gt-b@1").signal, Some(9));
    assert!(yard.ended("gt-c@1").signal.is_some_and(|signal| signal >= 32));
}

pub(crate) fn a_failing_step_ends_the_dispatch() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["true", "exit 3", "touch never"]);
    let exit = yard.ended("gt-a@1");
    assert_eq!((exit.code, exit.step.as_deref()), (Some(3), Some("s2")));
    assert!(!yard.file("never").exists());
}

pub(crate) fn a_resumed_dispatch_skips_finished_steps() {
    let mut yard = Yard::new();
    let mut spec = yard.spec("gt-a@2", &["touch never", "echo here"]);
    spec.first_step = 1;
    yard.start_spec("gt-a@2", spec);
    assert_eq!(yard.ended("gt-a@2").code, Some(0));
    assert_eq!(yard.log("gt-a@2"), "here\n");
    assert!(!yard.file("never").exists());
}

pub(crate) fn input_reaches_the_program_however_long() {
    let mut yard = Yard::new();
    for (dispatch, size) in [("gt-a@1", 10), ("gt-a@2", 3_000_000)] {
        let mut spec = yard.spec(dispatch, &["wc -c"]);
        spec.steps[0].stdin = Some("x".repeat(size));
        yard.start_spec(dispatch, spec);
        assert_eq!(yard.ended(dispatch).code, Some(0));
        assert_eq!(yard.log(dispatch).trim(), size.to_string());
    }
    // An order that went by file leaves none behind.
    assert!(!yard.run.join("gt-a@2.spec").exists());
    // Nobody reads it: nobody waits for it.
    let mut spec = yard.spec("gt-b@1", &["true"]);
    spec.steps[0].stdin = Some("x".repeat(1_000_000));
    yard.start_spec("gt-b@1", spec);
    assert_eq!(yard.ended("gt-b@1").code, Some(0));
}

pub(crate) fn a_program_that_cannot_be_run_is_a_start_failure() {
    let mut yard = Yard::new();
    std::fs::write(yard.file("plain"), "no program").expect("written");
    let plain = yard.file("plain").display().to_string();
    let cases = [
        (
            "gt-a@1",
            vec!["no-such-program".to_owned()],
            None,
            "cannot run 'no-such-program': no such file or directory (looked in PATH)".to_owned(),
        ),
        (
            "gt-a@2",
            vec!["./nothing/here".to_owned()],
            None,
            "cannot run './nothing/here': no such file or directory".to_owned(),
        ),
        ("gt-a@3", vec![plain.clone()], None, format!("cannot run '{plain}': permission denied")),
        (
            "gt-a@4",
            vec!["true".to_owned()],
            Some("/no/such/place"),
            "cannot enter '/no/such/place': no such file or directory".to_owned(),
        ),
        ("gt-a@5", vec![], None, "step 's1' names no program".to_owned()),
    ];
    for (dispatch, argv, cwd, wanted) in cases {
        let mut spec = yard.spec(dispatch, &[""]);
        spec.steps[0].argv = argv;
        if let Some(cwd) = cwd {
            spec.cwd = cwd.into();
        }
        yard.start_spec(dispatch, spec);
        match yard.last(dispatch) {
            WorkerReport::StartFailed { error, .. } => assert_eq!(error, wanted),
            other => panic!("{other:?}"),
        }
    }
    assert!(yard.rest().is_empty());
}

pub(crate) fn a_later_program_that_cannot_be_run_is_exit_127() {
    let mut yard = Yard::new();
    let mut spec = yard.spec("gt-a@1", &["true", ""]);
    spec.steps[1].argv = vec!["no-such-program".into()];
    yard.start_spec("gt-a@1", spec);
    let exit = yard.ended("gt-a@1");
    assert_eq!((exit.code, exit.cause), (Some(127), ExitCause::ExecFailed));
    assert_eq!(exit.step.as_deref(), Some("s2"));
    assert!(exit.note.is_some_and(|note| note.contains("no-such-program")));
}

pub(crate) fn output_is_capped() {
    let mut yard = Yard::new();
    let mut spec = yard.spec("gt-a@1", &["i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done"]);
    spec.log_cap = 10_000;
    yard.start_spec("gt-a@1", spec);
    assert_eq!(yard.ended("gt-a@1").code, Some(0));
    let old = std::fs::read_to_string(yard.file("gt-a@1.log.1")).expect("the older half");
    let new = yard.log("gt-a@1");
    assert!(new.len() + old.len() <= 10_000 && old.len() == 5_000);
    assert!((old + &new).ends_with("line 19998\nline 19999\n"));
}

pub(crate) fn a_silent_dispatch_leaves_no_log() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["true"]);
    yard.ended("gt-a@1");
    assert!(!yard.file("gt-a@1.log").exists());
}

pub(crate) fn a_shim_is_used_again() {
    let mut yard = Yard::new();
    for n in 1..=5 {
        let dispatch = format!("gt-a@{n}");
        yard.start(&dispatch, &["echo $PPID"]);
        yard.ended(&dispatch);
        assert_eq!(yard.log(&dispatch), yard.log("gt-a@1"));
    }
}

pub(crate) fn a_payload_starts_with_a_clean_slate() {
    let mut yard = Yard::new();
    let script = "ls /proc/self/fd | tr '\\n' ' '; echo; env | grep '^YM_' | grep -v '^YM_BIN=' | sort; \
                  grep -E '^Sig(Blk|Ign)' /proc/self/status; pwd; cat; echo $A; ps -o pgid= -p $$; echo $$";
    let mut spec = yard.spec("gt-a@1", &[script]);
    spec.env.extend([("A".into(), "first".into()), ("A".into(), "last".into())]);
    yard.start_spec("gt-a@1", spec);
    assert_eq!(yard.ended("gt-a@1").code, Some(0));
    let log = yard.log("gt-a@1");
    let lines: Vec<&str> = log.lines().map(str::trim).collect();
    // The last one is the directory that `ls` itself has open.
    assert_eq!(lines[0], "0 1 2 3");
    assert_eq!(lines[1], "YM_DISPATCH=gt-a@1");
    assert!(lines[2].starts_with("YM_TOWN="));
    assert_eq!(lines[3], "SigBlk:\t0000000000000000");
    let ignored = lines[4].strip_prefix("SigIgn:\t").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    // The two signals that the C library keeps to itself are passed on as they come.
    assert_eq!(ignored.map(|bits| bits & !0x1_8000_0000), Some(0));
    assert_eq!(lines[6], "last");
    assert_eq!(lines[7], lines[8], "a process group of its own");
}

pub(crate) fn many_dispatches_each_end_once() {
    let mut yard = Yard::new();
    let names: Vec<String> = (0..300).map(|n| format!("gt-{n}@1")).collect();
    for (n, name) in names.iter().enumerate() {
        yard.start(name, &[&format!("exit {}", n % 100)]);
        if n % 20 == 19 {
            let _ = yard.ended(name);
        }
    }
    let mut codes: BTreeMap<String, i32> = BTreeMap::new();
    for (n, name) in names.iter().enumerate().filter(|(n, _)| n % 20 != 19) {
        assert_eq!(yard.ended(name).code, Some((n % 100) as i32), "{name}");
        let claim = std::fs::File::open(yard.claim(name)).expect("a claim");
        assert!(claim.try_lock().is_ok(), "the lock is released before the end is told");
        assert!(codes.insert(name.clone(), 1).is_none());
    }
    let again = yard.rest().into_iter().filter(|r| !matches!(r, WorkerReport::Running { .. })).count();
    assert_eq!(again, 0);
}

pub(crate) fn an_order_that_cannot_be_handed_over_never_starts() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["sleep 60"]);
    yard.running("gt-a@1");
    let spec = yard.spec("gt-a@1", &["touch twice"]);
    let second = yard.pool().start(StartOrder { dispatch: id("gt-a@1"), spec, surface: surface() });
    assert!(second.is_err(), "a dispatch has one claim");
    yard.pool().request_stop(&id("gt-a@1"), yard_engine::Millis(0), "test").expect("asked");
    yard.ended("gt-a@1");
    assert!(!yard.file("twice").exists());
}

pub(crate) fn a_cooked_formula_runs_and_its_values_stay_text() {
    let mut yard = Yard::new();
    let cooked = |name: &str, vars: &[(&str, &str)]| {
        let vars = vars.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let input = CookInput {
            vars: &vars,
            bead: "gt-a",
            title: "$(touch pwned) `touch pwned` \"; touch pwned; '",
            description: "",
            labels: &[],
            rig: "yard",
            args: "",
            agent_command: Some(&["cat".to_owned()]),
            presets: &yard_workers::Presets::built_in(),
            workspace: false,
            isolation: yard_engine::settings::Isolation::None,
        };
        let name = FormulaName::parse(name).expect("a name");
        cook(&Formula::find("/nowhere".as_ref(), &name).expect("built in"), &input).expect("cooked")
    };
    for (dispatch, name, vars, code, text) in [
        (
            "gt-a@1",
            "shell",
            [("command", "echo \"$YM_TITLE\"; exit 7")].as_slice(),
            7,
            "$(touch pwned) `touch",
        ),
        ("gt-a@2", "demo", &[("seconds", "0"), ("exit", "4")], 4, "[100%] finished"),
        ("gt-a@3", "demo", &[("seconds", "soon")], 64, "whole number"),
        ("gt-a@4", "mol-polecat-work", &[], 0, "(gt-a)\n"),
    ] {
        let cooked = cooked(name, vars);
        let mut spec = yard.spec(dispatch, &[]);
        spec.steps = cooked.steps;
        spec.env.extend(cooked.env);
        yard.start_spec(dispatch, spec);
        assert_eq!(yard.ended(dispatch).code, Some(code), "{name}");
        assert!(yard.log(dispatch).contains(text), "{}", yard.log(dispatch));
    }
    assert!(!yard.file("pwned").exists());
}
