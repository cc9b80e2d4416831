//! The simulation itself: it keeps its promises, tells the same story twice, and notices every mutant.

use super::{Failure, Mutant, Play, Scenario, Told};

fn play(seed: u64, mutant: Option<Mutant>) -> Result<Told, Failure> {
    Play { seed, mutant, ..Play::FIRST }.play()
}

fn play_telling(seed: u64, mutant: Option<Mutant>) -> Result<Told, Failure> {
    Play { seed, mutant, ..Play::FIRST }.play_telling()
}

#[test]
fn histories_keep_every_promise() {
    for seed in 0..200 {
        if let Err(failure) = play(seed, None) {
            panic!("seed {seed}: {}; tell it again with: simulate --seed {seed}", failure.broken.0);
        }
    }
}

#[test]
fn the_same_seed_tells_the_same_history() {
    let seed = 7;
    assert_eq!(play(seed, None), play(seed, None));
    let caught = (0..1_000).find_map(|seed| play(seed, Some(Mutant::NoFence)).err()).expect("it is noticed");
    let told = || play_telling(caught.seed, Some(Mutant::NoFence)).expect_err("it is noticed again");
    assert_eq!((told().broken, told().story.is_empty()), (caught.broken, false));
    assert_eq!(told().story, told().story);
}

#[test]
fn every_mutant_is_noticed_within_ten_thousand_histories() {
    for mutant in Mutant::ALL {
        let noticed = (0..10_000).find(|seed| play(*seed, Some(mutant)).is_err());
        assert!(noticed.is_some(), "{} went unnoticed", mutant.name());
    }
}

#[test]
fn mutants_are_known_by_name() {
    for mutant in Mutant::ALL {
        assert_eq!(mutant.name().parse(), Ok(mutant));
    }
    assert!("honest".parse::<Mutant>().is_err());
}

fn race_a_thousand_times(scenario: Scenario) {
    for seed in 0..1_000 {
        if let Err(failure) = (Play { seed, scenario: Some(scenario), mutant: None, ..Play::FIRST }).play() {
            let (name, broken) = (scenario.name(), failure.broken.0);
            panic!("{name}: {broken}; tell it again with: simulate --scenario {name} --seed {seed}");
        }
    }
}

#[test]
fn two_feeders_of_one_convoy_never_dispatch_a_bead_twice() {
    race_a_thousand_times(Scenario::DualFeed);
}

#[test]
fn a_recovered_bead_is_never_dispatched_twice() {
    race_a_thousand_times(Scenario::RecoveredBead);
}

#[test]
fn feeding_and_scheduling_never_make_two_contexts_of_a_bead() {
    race_a_thousand_times(Scenario::DuplicateContexts);
}

#[test]
fn a_cancel_and_an_end_have_one_outcome() {
    race_a_thousand_times(Scenario::CancelAgainstEnd);
}

#[test]
fn a_preemption_and_an_end_have_one_outcome() {
    race_a_thousand_times(Scenario::PreemptAgainstEnd);
}

#[test]
fn a_retry_and_a_cancel_have_one_outcome() {
    race_a_thousand_times(Scenario::RetryAgainstCancel);
}

#[test]
fn every_race_notices_a_worker_that_is_not_fenced() {
    for scenario in [Scenario::CancelAgainstEnd, Scenario::PreemptAgainstEnd, Scenario::RetryAgainstCancel] {
        for mutant in [Mutant::FencingTokenIgnored, Mutant::ExitOverlooked] {
            let play = |seed| Play { seed, scenario: Some(scenario), mutant: Some(mutant), ..Play::FIRST };
            let noticed = (0..1_000).any(|seed| play(seed).play().is_err());
            assert!(noticed, "{} went unnoticed in {}", mutant.name(), scenario.name());
        }
    }
}

#[test]
fn every_race_for_beads_notices_a_second_feeder_and_a_recovery_of_the_living() {
    for scenario in [Scenario::DualFeed, Scenario::RecoveredBead, Scenario::DuplicateContexts] {
        for mutant in [Mutant::FeedsTwice, Mutant::RecoversTheLiving] {
            let play = |seed| Play { seed, scenario: Some(scenario), mutant: Some(mutant), ..Play::FIRST };
            let noticed = (0..1_000).any(|seed| play(seed).play().is_err());
            assert!(noticed, "{} went unnoticed in {}", mutant.name(), scenario.name());
        }
    }
}

#[test]
fn races_are_known_by_name() {
    for scenario in Scenario::ALL {
        assert_eq!(scenario.name().parse(), Ok(scenario));
    }
    assert!("peace".parse::<Scenario>().is_err());
}

#[test]
fn a_stream_of_urgent_work_starves_nobody() {
    let mut preemptions = 0;
    for seed in 0..30 {
        match super::stream(seed) {
            Ok(told) => preemptions += told.preemptions,
            Err(broken) => panic!("{}; again with: simulate --stream --seed {seed}", broken.0),
        }
    }
    assert!(preemptions > 50, "only {preemptions} preemptions: this proves nothing");
}

#[test]
fn deep_histories_keep_every_promise() {
    for seed in 0..40 {
        if let Err(failure) = (Play { seed, deep: true, ..Play::FIRST }).play() {
            let broken = failure.broken.0;
            panic!("seed {seed}: {broken}; tell it again with: simulate --deep --seed {seed} --tell");
        }
    }
}

/// Histories that broke a promise once, as they were shortened then.
#[test]
fn whoever_was_next_does_not_begin_if_it_was_closed_while_nobody_served() {
    let found = Play { seed: 6245, deep: true, steps: 0x50e7, ..Play::FIRST };
    found.play().unwrap_or_else(|failure| panic!("{}", failure.broken.0));
}

#[test]
fn the_same_seed_tells_the_same_deep_history() {
    for seed in 3..6 {
        let play = Play { seed, deep: true, ..Play::FIRST };
        assert_eq!(play.story(), play.story());
    }
}

#[test]
fn deep_histories_notice_a_shim_that_is_not_fenced() {
    let play = |seed| Play { seed, deep: true, mutant: Some(Mutant::NoFence), ..Play::FIRST };
    assert!((0..2_000).any(|seed| play(seed).play().is_err()), "it went unnoticed");
}

#[test]
fn a_failing_history_is_told_in_fewer_steps() {
    let play = |seed| Play { seed, mutant: Some(Mutant::NoFence), ..Play::FIRST };
    let failing = (0..1_000).map(play).find(|play| play.play().is_err()).expect("it is noticed");
    let (shortest, failure) = failing.shrink();
    assert!(failure.is_some() && shortest.play().is_err());
    assert!(shortest.steps.count_ones() < 12, "{:x} is not short", shortest.steps);
}

#[test]
fn every_refusal_in_the_source_is_to_be_met_or_accounted_for() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut missing = Vec::new();
    for folder in ["src/engine/src", "src/daemon/src/core"] {
        for file in sources_in(&root.join(folder)) {
            let text = std::fs::read_to_string(&file).expect("a file of ours");
            for (at, found) in text.match_indices("Refusal::new(") {
                let argument = text[at + found.len()..].trim_start();
                let Some(code) = argument.strip_prefix('"').and_then(|rest| rest.split('"').next()) else {
                    continue;
                };
                if !super::Coverage::is_known(code) {
                    missing.push(format!("{code} in {}", file.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "add these to sim/deep/coverage.rs: {missing:?}");
}

fn sources_in(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of ours").flatten().map(|entry| entry.path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| sources_in(folder))).collect()
}
