//! What a worker sees and leaves behind: environment, logs, exit codes, process trees.

use serde_json::json;
use yard_tests::town::{Town, is_alive, wait_until};

by_both_executors!(
    a_worker_knows_who_it_is,
    exit_codes_decide_what_follows,
    cancelling_ends_the_whole_tree_even_if_it_ignores_sigterm,
    formulas_run_their_steps_in_order_with_values_from_the_bead,
    mol_polecat_work_gives_the_agent_title_description_and_args,
    output_is_capped,
);

fn a_worker_knows_who_it_is(executor: &str) {
    let town = Town::with_executor(executor);
    town.shell_bead("y-env", "env | grep ^YM_ | sort");
    town.run(["sling", "y-env"]).ok();
    town.run(["wait", "y-env"]).ok();
    let log = town.run(["logs", "y-env"]).ok().stdout;
    let town_path = town.root().canonicalize().expect("a path");
    for line in [
        "YM_DISPATCH=y-env@1".to_owned(),
        "YM_BEAD=y-env".to_owned(),
        "YM_ACTOR=ym/y-env@1".to_owned(),
        format!("YM_TOWN={}", town_path.display()),
    ] {
        assert!(log.contains(&line), "{line} in {log}");
    }
    assert!(log.contains("YM_SOCKET=") && log.contains("YM_RIG="), "{log}");
}

fn exit_codes_decide_what_follows(executor: &str) {
    let town = Town::with_executor(executor);
    town.set("retry.crash.max_attempts", "2");
    town.set("retry.crash.backoff", r#"["1h"]"#);
    town.shell_bead("y-fails", "exit 3");
    town.shell_bead("y-unavailable", "exit 69");
    town.run(["sling", "y-fails", "y-unavailable"]).ok();
    town.run(["wait", "--all"]);
    assert_eq!(
        (town.state_of("y-fails"), town.reasons_of("y-fails")),
        ("queued".into(), vec!["not-before".into()])
    );
    let fails = town.json(["show", "y-fails"]);
    assert_eq!((&fails["context"]["crashes"], &fails["context"]["unavailables"]), (&json!(1), &json!(0)));
    let away = town.json(["show", "y-unavailable"]);
    assert_eq!((&away["context"]["crashes"], &away["context"]["unavailables"]), (&json!(0), &json!(1)));
    town.run(["scheduler", "retry", "y-fails"]).ok();
    assert_eq!(town.json(["show", "y-fails"])["context"]["crashes"], 0, "fresh budgets");
}

fn cancelling_ends_the_whole_tree_even_if_it_ignores_sigterm(executor: &str) {
    let mut town = Town::with_executor(executor);
    town.set("scheduler.max_polecats", "2");
    town.set("limits.kill_grace", "100ms");
    town.start_daemon();
    let pids = town.root().join("pids");
    let script = format!(
        "trap '' TERM; (trap '' TERM; setsid sh -c 'echo $$ >> \"{0}\"; trap \"\" TERM; sleep 1000; sleep 1000') & \
         echo $$ >> '{0}'; sleep 1000; sleep 1000",
        pids.display()
    );
    let id = town.run(["-q", "add", "--", "sh", "-c", &script]).ok().stdout.trim().to_owned();
    let read = || -> Vec<u32> {
        std::fs::read_to_string(&pids).unwrap_or_default().lines().filter_map(|l| l.parse().ok()).collect()
    };
    wait_until("both to run", || read().len() == 2);
    town.run(["cancel", &id]).ok();
    town.await_state(&id, "cancelled");
    for pid in read() {
        assert!(!is_alive(pid), "{pid} is still there");
    }
}

#[test]
fn a_formula_is_cooked_when_scheduled_and_bad_ones_are_refused() {
    let town = Town::new();
    town.set("scheduler.max_polecats", "2");
    town.run(["bead", "add", "needs an agent", "--id", "y-a"]).ok();
    let sling = |args: &[&str]| town.run([&["--json", "sling", "y-a"], args].concat());
    let no_agent = sling(&[]);
    assert_eq!(no_agent.code, 1);
    assert!(no_agent.stdout.contains("worker.agent"), "{}", no_agent.stdout);
    let unknown = sling(&["--formula", "nonesuch"]);
    assert!(unknown.code == 1 && unknown.stdout.contains("nonesuch"), "{}", unknown.stdout);
    let formula = town.root().join(".yardmaster/formulas/broken.toml");
    std::fs::write(&formula, "name = 'broken'\n[[steps]]\nid = 'x'\nargvv = ['true']\n").expect("a file");
    let broken = sling(&["--formula", "broken"]);
    assert!(broken.code == 1 && broken.stdout.contains("argvv"), "{}", broken.stdout);
    std::fs::remove_file(&formula).expect("it is there");
    nix::unistd::mkfifo(&formula, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let pipe = sling(&["--formula", "broken"]);
    assert!(pipe.code == 1 && pipe.stdout.contains("not a file"), "{}", pipe.stdout);
    assert_eq!(town.events(Some("context.opened")).len(), 0, "nothing was scheduled");
}

fn formulas_run_their_steps_in_order_with_values_from_the_bead(executor: &str) {
    let mut town = Town::with_executor(executor);
    // Whether a step is done is only heard while somebody listens.
    town.start_daemon();
    let formula = r#"
name = "two"
[vars.word]
default = "plain"
[[steps]]
id = "first"
argv = ["printf", "%s|%s|%s\n", "{{title}}", "{{word}}", "{{args}}"]
[[steps]]
id = "second"
shell = 'printf "%s\n" "$YM_VAR_WORD"; cat'
stdin = "{{description}}"
"#;
    std::fs::write(town.root().join(".yardmaster/formulas/two.toml"), formula).expect("a file");
    town.run(["bead", "add", "a title", "--id", "y-two", "--description", "from stdin"]).ok();
    town.run(["sling", "y-two", "--formula", "two", "--var", "word={{title}}", "--args", "go"]).ok();
    town.run(["wait", "y-two"]).ok();
    let log = town.run(["logs", "y-two"]).ok().stdout;
    assert_eq!(log.trim(), "a title|{{title}}|go\n{{title}}\nfrom stdin");
    assert_eq!(town.events(Some("dispatch.step_done")).len(), 1);
}

fn mol_polecat_work_gives_the_agent_title_description_and_args(executor: &str) {
    let town = Town::with_executor(executor);
    town.set("worker.agent", r#"["cat"]"#);
    town.run(["bead", "add", "fix the bug", "--id", "y-w", "--description", "it is bad"]).ok();
    town.run(["sling", "y-w", "--args", "be quick"]).ok();
    town.run(["wait", "y-w"]).ok();
    let log = town.run(["logs", "y-w"]).ok().stdout;
    for part in ["fix the bug", "it is bad", "be quick"] {
        assert!(log.contains(part), "{part} in {log}");
    }
}

fn output_is_capped(executor: &str) {
    let town = Town::with_executor(executor);
    town.set("worker.log_cap", "64KiB");
    town.shell_bead("y-loud", "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done");
    town.run(["sling", "y-loud"]).ok();
    town.run(["wait", "y-loud"]).ok();
    let log = town.run(["logs", "y-loud"]).ok().stdout;
    assert!(log.len() <= 70 * 1024 && log.ends_with("line 19999\n"), "{} bytes", log.len());
}
