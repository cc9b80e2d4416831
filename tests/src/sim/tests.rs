//! The simulation itself: it keeps its promises, tells the same story twice, and notices every mutant.

use super::{Failure, Mutant, Play, Scenario, Told};

fn play(seed: u64, mutant: Option<Mutant>) -> Result<Told, Failure> {
    Play { seed, mutant, scenario: None }.play()
}

fn play_telling(seed: u64, mutant: Option<Mutant>) -> Result<Told, Failure> {
    Play { seed, mutant, scenario: None }.play_telling()
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

#[test]
fn no_race_of_the_seed_dispatches_twice_in_a_thousand_runs() {
    for scenario in Scenario::ALL {
        for seed in 0..1_000 {
            if let Err(failure) = (Play { seed, scenario: Some(scenario), mutant: None }).play() {
                let (name, broken) = (scenario.name(), failure.broken.0);
                panic!("{name}: {broken}; tell it again with: simulate --scenario {name} --seed {seed}");
            }
        }
    }
}

#[test]
fn every_race_notices_a_second_feeder_and_a_recovery_by_force() {
    for scenario in Scenario::ALL {
        for mutant in [Mutant::FeedsTwice, Mutant::RecoversByForce] {
            let play = |seed: &u64| {
                Play { seed: *seed, scenario: Some(scenario), mutant: Some(mutant) }.play().is_err()
            };
            assert!((0..1_000).any(|seed| play(&seed)), "{} in {}", mutant.name(), scenario.name());
        }
    }
}
