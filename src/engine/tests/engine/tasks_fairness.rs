//! Fairness between the agents of the HTTP API, the limits on what runs, and the true position of what waits.

use yard_engine::command::NewTask;
use yard_engine::{Command, Millis};

use crate::tasks::{start, submit, submit_one, task_of};
use crate::town::{Town, bead_id};

fn agent_of(town: &Town, id: &str) -> String {
    town.state.task(&bead_id(id)).expect("remembered").agent.clone()
}

fn agents_started(town: &mut Town) -> Vec<String> {
    let started = start(town);
    started.iter().map(|id| agent_of(town, id)).collect()
}

fn with_limits(inflight: u64, per_agent: u64) -> Town {
    let mut town = Town::new();
    town.configure(|settings| {
        (settings.http.max_inflight, settings.http.max_per_agent_inflight) = (inflight, per_agent);
        (settings.http.max_queue, settings.http.max_per_agent) = (100_000, 100_000);
    });
    town
}

#[test]
fn lower_numbers_go_first_inside_a_lane_and_mean_nothing_between_lanes() {
    let mut town = with_limits(1, 1);
    let late = submit_one(&mut town, NewTask { priority: 5, ..task_of("a") });
    let early = submit_one(&mut town, NewTask { priority: 1, ..task_of("a") });
    let first = submit_one(&mut town, NewTask { priority: i64::MIN, ..task_of("a") });
    let last = submit_one(&mut town, NewTask { priority: i64::MAX, ..task_of("a") });
    let mut order = Vec::new();
    for _ in 0..4 {
        let started = start(&mut town);
        order.extend(started.clone());
        town.exits_ok(&started[0]);
    }
    assert_eq!(order, [first, early, late, last]);
    let urgent_number = submit_one(&mut town, NewTask { priority: -100, ..task_of("a") });
    let other_agent = submit_one(&mut town, task_of("b"));
    assert_eq!(start(&mut town), [other_agent], "{urgent_number} is of an agent that was served already");
}

#[test]
fn whoever_has_fewest_running_goes_first_and_then_whoever_was_served_longest_ago() {
    let mut town = with_limits(3, 10);
    submit(&mut town, vec![task_of("a"); 6]);
    submit(&mut town, vec![task_of("b"); 6]);
    submit(&mut town, vec![task_of("c"); 6]);
    assert_eq!(agents_started(&mut town), ["a", "b", "c"]);
    for _ in 0..3 {
        for id in town.running() {
            town.exits_ok(&id);
        }
        assert_eq!(agents_started(&mut town), ["a", "b", "c"], "in turn, for ever");
    }
}

#[test]
fn a_full_agent_does_not_keep_the_others_back() {
    let mut town = with_limits(20, 2);
    submit(&mut town, vec![task_of("a"); 10]);
    submit(&mut town, vec![task_of("b"); 1]);
    let started = agents_started(&mut town);
    assert_eq!(started.iter().filter(|agent| *agent == "a").count(), 2);
    assert_eq!(started.len(), 3);
}

// D8: limits that change count from then on, wake what waits, and are never zero.
#[test]
fn limits_that_are_raised_let_more_start_at_once() {
    let mut town = with_limits(1, 1);
    submit(&mut town, vec![task_of("a"); 5]);
    assert_eq!(start(&mut town).len(), 1);
    town.configure(|settings| {
        (settings.http.max_inflight, settings.http.max_per_agent_inflight) = (4, 3);
    });
    assert_eq!(start(&mut town).len(), 2);
}

// D9: a burst is run by as many as there is room for.
#[test]
fn a_burst_fills_all_the_room_there_is_in_one_pass() {
    let mut town = with_limits(20, 10);
    submit(&mut town, (0..50).map(|nth| task_of(&format!("agent-{}", nth % 5))).collect());
    assert_eq!(start(&mut town).len(), 20);
}

// D6: ageing, where it is wanted, lets nobody starve behind his own urgent tasks.
#[test]
fn ageing_lets_an_old_task_overtake_newer_ones() {
    let mut town = with_limits(1, 1);
    town.configure(|settings| settings.aging = Some(Millis::minutes(1)));
    let far = Some(town.in_time(Millis::minutes(600)));
    let old = submit_one(&mut town, NewTask { priority: 5, deadline: far, ..task_of("a") });
    town.pause();
    town.advance(Millis::minutes(6));
    town.resume();
    let new = submit_one(&mut town, NewTask { priority: 0, deadline: far, ..task_of("a") });
    assert_eq!(start(&mut town), [old], "{new} has waited less than five minutes less");
}

// D16: the position is the one in which tasks really start, and follows what happens.
#[test]
fn positions_are_the_order_in_which_tasks_start() {
    let mut town = with_limits(1, 1);
    town.pause();
    for (agent, count) in [("a", 5), ("b", 2), ("c", 3)] {
        for nth in 0..count {
            submit_one(&mut town, NewTask { priority: -nth, ..task_of(agent) });
        }
    }
    // Lanes that were served before, and that run something, stand further back.
    town.configure(|settings| (settings.http.max_inflight, settings.http.max_per_agent_inflight) = (4, 9));
    town.resume();
    start(&mut town);
    town.pause();
    let ended = town.running()[0].clone();
    town.exits_ok(&ended);
    town.configure(|settings| (settings.http.max_inflight, settings.http.max_per_agent_inflight) = (99, 99));
    let foretold = in_order_of_position(&town);
    assert_eq!(foretold.len(), 6);
    town.does(&Command::TaskCancel { id: foretold[2].clone(), agent: None });
    let foretold = in_order_of_position(&town);
    town.resume();
    assert_eq!(start(&mut town), foretold);
}

/// Everything that waits, by its position, of which there is one each.
fn in_order_of_position(town: &Town) -> Vec<String> {
    let positions = town.state.tasks().filter_map(|task| {
        let position = town.state.task_position(&task.id)?;
        Some((position, task.id.to_string()))
    });
    let by_position: std::collections::BTreeMap<u64, String> = positions.collect();
    let count = by_position.len() as u64;
    assert_eq!(by_position.keys().copied().collect::<Vec<_>>(), (1..=count).collect::<Vec<_>>());
    by_position.into_values().collect()
}

#[test]
fn a_hundred_agents_get_even_shares_at_every_moment() {
    let mut town = with_limits(20, 10);
    for agent in 0..100 {
        submit(&mut town, vec![task_of(&format!("agent-{agent}")); 3]);
    }
    let mut served = std::collections::BTreeMap::<String, u64>::new();
    let mut under_way = std::collections::VecDeque::new();
    let mut left = 300;
    while left > 0 {
        for id in start(&mut town) {
            *served.entry(agent_of(&town, &id)).or_default() += 1;
            under_way.push_back(id);
            left -= 1;
        }
        let most = served.values().max().copied().unwrap_or(0);
        let least = if served.len() == 100 { served.values().min().copied().unwrap_or(0) } else { 0 };
        assert!(most - least <= 1, "{most} and {least}");
        assert!(town.state.live_count() <= 20);
        for id in under_way.drain(..under_way.len().min(7)) {
            town.exits_ok(&id);
        }
    }
}
