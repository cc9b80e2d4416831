//! The local and the tmux executor with real processes: fork server, shims, payloads, windows, kills.
//!
//! This program is its own fork server, shim and (to be killed) daemon, so it brings its own small test runner, which
//! understands what `cargo test` and `cargo nextest` ask.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a test runner talks to its caller")]

mod deaths;
mod life;
mod line;
mod recovery;
mod stops;
mod windows;
mod yard;

use std::process::ExitCode;

use yard_workers::Surface;

type Test = (&'static str, fn());

macro_rules! tests {
    ($($module:ident: $($name:ident),+ $(,)?;)+) => {
        const TESTS: &[Test] = &[$($((concat!(stringify!($module), "::", stringify!($name)), $module::$name),)+)+];
    };
}

tests! {
    life:
        steps_run_in_order_and_are_reported,
        exit_codes_and_signals_are_reported,
        a_failing_step_ends_the_dispatch,
        a_resumed_dispatch_skips_finished_steps,
        input_reaches_the_program_however_long,
        a_program_that_cannot_be_run_is_a_start_failure,
        a_later_program_that_cannot_be_run_is_exit_127,
        output_is_capped,
        a_silent_dispatch_leaves_no_log,
        a_shim_is_used_again,
        a_payload_starts_with_a_clean_slate,
        many_dispatches_each_end_once,
        an_order_that_cannot_be_handed_over_never_starts,
        a_cooked_formula_runs_and_its_values_stay_text;
    line:
        who_is_in_line_begins_in_the_same_shim_when_the_one_before_has_ended,
        two_in_line_begin_one_after_the_other_in_the_same_shim,
        who_is_called_back_never_starts_and_the_shim_goes_on_with_others,
        who_cannot_be_called_back_any_more_tells_how_the_one_before_ended,
        who_is_in_line_behind_a_dead_shim_never_runs;
    stops:
        a_payload_that_ignores_sigterm_is_gone_after_the_grace,
        a_stop_reaches_the_whole_tree,
        double_forked_children_end_with_their_dispatch,
        a_late_stop_for_an_old_dispatch_is_ignored,
        a_shim_obeys_only_stops_that_name_its_dispatch,
        a_step_ends_at_its_timeout,
        a_dispatch_ends_at_its_hard_cap,
        sigterm_to_the_shim_is_a_stop,
        a_stopped_payload_can_still_be_ended,
        a_shim_that_hangs_is_killed_after_the_grace;
    deaths:
        a_killed_shim_takes_its_worker_with_it,
        a_process_that_hides_ends_with_its_killed_shim_where_there_are_control_groups,
        the_death_of_the_fork_server_harms_nobody,
        a_dead_idle_shim_is_replaced,
        a_revoked_claim_is_never_started,
        a_standalone_shim_runs_its_order_once,
        every_order_gets_one_true_end_under_random_kills;
    recovery:
        claims_that_a_dead_daemon_had_no_time_to_forget_are_removed,
        exit_codes_survive_the_death_of_the_daemon,
        a_running_dispatch_is_adopted_and_its_end_reported,
        an_adopted_dispatch_can_be_stopped,
        the_death_of_an_adopted_shim_is_noticed,
        what_nobody_claimed_is_revoked,
        a_start_failure_survives_the_death_of_the_daemon,
        nothing_is_lost_or_doubled_when_the_daemon_is_killed,
        a_very_long_run_directory_works;
    windows:
        a_session_is_there_as_long_as_its_worker,
        a_program_has_a_terminal_that_is_not_tmuxs,
        text_given_to_a_step_is_its_input_also_on_a_terminal,
        a_window_shows_what_the_log_has_and_takes_keys,
        a_program_learns_how_large_its_window_is,
        a_killed_tmux_server_takes_only_the_window_along,
        a_closed_window_harms_nobody,
        a_shim_that_hangs_without_its_window_is_killed_after_the_grace,
        a_window_that_is_not_served_holds_nobody_up,
        a_shim_that_never_claims_is_noticed_at_once,
        a_start_that_is_on_its_way_is_left_alone,
        the_environment_is_ours_whoever_started_the_server,
        words_reach_the_program_as_they_are,
        windows_of_what_may_not_run_are_closed;
}

/// What only Linux can promise: processes that leave their group are found, and payloads die with their shims.
const LINUX_ONLY: [&str; 8] = [
    "line::who_is_in_line_behind_a_dead_shim_never_runs",
    "deaths::every_order_gets_one_true_end_under_random_kills",
    "deaths::a_killed_shim_takes_its_worker_with_it",
    "deaths::a_process_that_hides_ends_with_its_killed_shim_where_there_are_control_groups",
    "recovery::the_death_of_an_adopted_shim_is_noticed",
    "stops::a_shim_that_hangs_is_killed_after_the_grace",
    "stops::a_stop_reaches_the_whole_tree",
    "stops::double_forked_children_end_with_their_dispatch",
];

/// What is about pooled shims, their connections and their empty input, and one that `windows` has its own way of.
const LOCAL_ONLY: [&str; 12] = [
    "line::two_in_line_begin_one_after_the_other_in_the_same_shim",
    "line::who_is_in_line_begins_in_the_same_shim_when_the_one_before_has_ended",
    "line::who_is_called_back_never_starts_and_the_shim_goes_on_with_others",
    "line::who_cannot_be_called_back_any_more_tells_how_the_one_before_ended",
    "line::who_is_in_line_behind_a_dead_shim_never_runs",
    "life::a_shim_is_used_again",
    "life::a_payload_starts_with_a_clean_slate",
    "stops::a_late_stop_for_an_old_dispatch_is_ignored",
    "stops::a_shim_obeys_only_stops_that_name_its_dispatch",
    "stops::a_shim_that_hangs_is_killed_after_the_grace",
    "deaths::the_death_of_the_fork_server_harms_nobody",
    "deaths::a_dead_idle_shim_is_replaced",
];

/// The mark of a test whose workers run in tmux.
const IN_TMUX: &str = "tmux::";

/// Every test under the name by which it is asked for: most of them twice, without and with tmux.
fn all() -> Vec<(String, Surface, fn())> {
    let mut all = Vec::new();
    for &(name, test) in TESTS.iter().filter(|(name, _)| possible(name)) {
        if !name.starts_with("windows::") {
            all.push((name.to_owned(), Surface::None, test));
        }
        if !LOCAL_ONLY.contains(&name) {
            all.push((format!("{IN_TMUX}{name}"), Surface::Tmux, test));
        }
    }
    all
}

/// Whether this system layer can pass the test.
fn possible(name: &str) -> bool {
    cfg!(all(target_os = "linux", not(feature = "portable-sys"))) || !LINUX_ONLY.contains(&name)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("__forkserver") => return yard_workers::forkserver_main(),
        Some("__shim") => return yard::standalone_shim(&args[1..]),
        Some("__daemon") => return yard::mortal_daemon(&args[1..]),
        Some("__tmux_daemon") => {
            yard::run_on(Surface::Tmux);
            return yard::mortal_daemon(&args[1..]);
        }
        _ => {}
    }
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if has("--list") {
        let listed = if has("--ignored") { Vec::new() } else { all() };
        for (name, ..) in listed {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| {
        filters.is_empty()
            || filters.iter().any(|f| if has("--exact") { *f == name } else { name.contains(f.as_str()) })
    };
    let mut failed = 0;
    for (name, surface, test) in all().into_iter().filter(|(name, ..)| wanted(name) && !has("--ignored")) {
        yard::run_on(surface);
        let well = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if well { "ok" } else { "FAILED" });
        failed += u32::from(!well);
    }
    if failed > 0 {
        eprintln!("{failed} tests failed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
