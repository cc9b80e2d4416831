//! Agents as real processes: each call is a `ym` of its own, as an agent's shell would make it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use yard_client::{Ask, Connection, Request};
use yard_engine::Command;
use yard_engine::command::ClaimEnd;

use super::{Figures, Job, Span, Way};
use crate::town::Town;

/// What all agents note together.
struct Notes {
    began: Instant,
    done_at: Mutex<Vec<Option<Duration>>>,
    claimed: Mutex<Vec<usize>>,
    waits: Mutex<Vec<Span>>,
    idle: Mutex<Vec<Vec<Span>>>,
    refused: Mutex<usize>,
}

fn all<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Has the backlog done by so many agents, each with real calls of `ym`, against a real daemon.
pub fn in_processes(jobs: &[Job], agents: usize, way: Way) -> Figures {
    let mut town = Town::new();
    let lines: Vec<String> = jobs
        .iter()
        .map(|job| {
            let edges: Vec<Value> = job
                .needs
                .iter()
                .map(|need| serde_json::json!({"issue_id": job.id, "depends_on_id": jobs[*need].id, "type": "blocks"}))
                .collect();
            serde_json::json!({"id": job.id, "title": job.id, "status": "open", "priority": job.priority,
                "issue_type": "task", "dependencies": edges})
            .to_string()
        })
        .collect();
    town.run_with_input(["bead", "import", "-"], lines.join("\n").as_bytes()).ok();
    let names: Vec<String> = (0..agents).map(|number| format!("agent-{number:02}")).collect();
    for name in &names {
        town.run(["agent", "register", name, "--program", "bench"]).ok();
    }
    if way == Way::Push {
        town.set("rig.yard.assign", "ready");
    }
    town.start_daemon();
    let notes = Notes {
        began: Instant::now(),
        done_at: Mutex::new(vec![None; jobs.len()]),
        claimed: Mutex::new(vec![0; jobs.len()]),
        waits: Mutex::default(),
        idle: Mutex::new(vec![Vec::new(); agents]),
        refused: Mutex::new(0),
    };
    std::thread::scope(|scope| {
        for (number, name) in names.iter().enumerate() {
            let (town, notes) = (&town, &notes);
            scope.spawn(move || Worker { town, notes, jobs, number, name, way }.work());
        }
    });
    let finish = all(&notes.done_at).iter().copied().max().flatten().unwrap_or_default();
    let idle = all(&notes.idle).clone();
    let doubled = all(&notes.claimed).iter().filter(|claims| **claims > 1).count();
    let (waits, refused) = (all(&notes.waits).clone(), *all(&notes.refused));
    Figures { finish, idle, waits, refused, doubled }
}

struct Worker<'a> {
    town: &'a Town,
    notes: &'a Notes,
    jobs: &'a [Job],
    number: usize,
    name: &'a str,
    way: Way,
}

impl Worker<'_> {
    fn is_over(&self) -> bool {
        all(&self.notes.done_at).iter().all(Option::is_some)
    }

    fn work(&self) {
        let mut free_since = self.notes.began.elapsed();
        while !self.is_over() {
            let Some(bead) = self.next() else { continue };
            let claim = self.town.run(["--json", "agent", "claim", &bead, "--as", self.name]);
            if claim.code != 0 {
                *all(&self.notes.refused) += 1;
                continue;
            }
            let Some(job) = self.jobs.iter().position(|job| job.id == bead) else { continue };
            self.note_claim(job, free_since);
            // The work itself: an agent's own time passes, nothing else.
            std::thread::sleep(self.jobs[job].takes);
            self.town.run(["agent", "done", &bead, "--as", self.name]).ok();
            free_since = self.notes.began.elapsed();
            all(&self.notes.done_at)[job] = Some(free_since);
            if let Way::Poll(every) = self.way {
                self.rest(every);
            }
        }
        let last = all(&self.notes.done_at).iter().copied().max().flatten().unwrap_or_default();
        all(&self.notes.idle)[self.number].push((free_since, last));
    }

    fn note_claim(&self, job: usize, free_since: Duration) {
        all(&self.notes.claimed)[job] += 1;
        let done_at = all(&self.notes.done_at);
        let ready = self.jobs[job].needs.iter().filter_map(|need| done_at[*need]).max().unwrap_or_default();
        drop(done_at);
        let now = self.notes.began.elapsed();
        all(&self.notes.waits).push((ready.min(now), now));
        all(&self.notes.idle)[self.number].push((free_since, now));
    }

    /// The next bead: as it is sent, or as somebody who looks finds it.
    fn next(&self) -> Option<String> {
        match self.way {
            Way::Push => {
                let inbox = self.town.run([
                    "--json",
                    "agent",
                    "inbox",
                    "--wait",
                    "--timeout",
                    "1s",
                    "--as",
                    self.name,
                ]);
                let inbox: Value = serde_json::from_str(&inbox.stdout).ok()?;
                let messages = inbox["messages"].as_array()?.iter();
                let mut orders = messages.filter(|message| message["body"]["type"] == "DISPATCH_ORDER");
                orders.next()?["body"]["bead_id"].as_str().map(str::to_owned)
            }
            Way::Poll(every) | Way::PollWhenDone(every) => {
                let ready = self.town.json(["bead", "ready"]);
                let beads = ready["beads"].as_array()?.iter();
                let open = beads.filter(|bead| bead["state"] == "open");
                let first = open.min_by_key(|bead| (bead["priority"].as_u64(), bead["id"].to_string()));
                let first = first.and_then(|bead| bead["id"].as_str()).map(str::to_owned);
                if first.is_none() {
                    self.rest(every);
                }
                first
            }
        }
    }

    /// Until the next look, which comes by the clock, unless everything is done before.
    fn rest(&self, every: Duration) {
        let looks = self.notes.began.elapsed().as_millis() / every.as_millis().max(1) + 1;
        let until = self.notes.began + every * u32::try_from(looks).unwrap_or(u32::MAX);
        while Instant::now() < until && !self.is_over() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// How long it takes from a bead's becoming ready until the order is in the hands of one of so many waiting processes.
pub fn deliveries(agents: usize, orders: usize) -> Vec<Duration> {
    let mut town = Town::new();
    town.start_daemon();
    let names: Vec<String> = (0..agents).map(|number| format!("agent-{number:03}")).collect();
    for name in &names {
        town.run(["agent", "register", name, "--program", "bench"]).ok();
    }
    for number in 0..orders {
        let (gate, bead) = (format!("y-gate{number}"), format!("y-{number}"));
        let line = |id: &str, edges: Value| {
            serde_json::json!({"id": id, "title": id, "issue_type": "task", "dependencies": edges})
                .to_string()
        };
        let edge = serde_json::json!([{"issue_id": bead, "depends_on_id": gate, "type": "blocks"}]);
        let both = [line(&gate, serde_json::json!([])), line(&bead, edge)].join("\n");
        town.run_with_input(["bead", "import", "-"], both.as_bytes()).ok();
        town.run(["sling", &bead, "--assign", "--no-convoy"]).ok();
    }
    let over = AtomicBool::new(false);
    let arrived: Mutex<Vec<(String, Instant)>> = Mutex::default();
    let mut latencies = Vec::new();
    std::thread::scope(|scope| {
        for name in &names {
            let (town, arrived, over) = (&town, &arrived, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    receive(town, name, arrived);
                }
            });
        }
        let mut connection = Connection::open(&town.root().join(".yardmaster")).expect("a daemon serves");
        let mut ask = |command: Command| {
            let request = Request { actor: "bench".to_owned(), ask: Ask::Command { command } };
            connection.ask(&request, &mut |_| true).expect("an answer").expect("it is accepted")
        };
        crate::town::wait_until("everybody waits", || {
            let waiting = town.processes().into_iter().map(crate::town::command_line);
            waiting.filter(|line| line.contains("inbox --wait")).count() >= agents
        });
        for number in 0..orders {
            let bead = format!("y-{number}");
            let began = Instant::now();
            ask(Command::BeadClose { ids: vec![format!("y-gate{number}")], reason: None });
            let mut found = None;
            crate::town::wait_until("the order arrives", || {
                found = all(&arrived).iter().find(|(id, _)| *id == bead).map(|(_, at)| *at);
                found.is_some()
            });
            latencies.extend(found.map(|at| at.duration_since(began)));
            let holder = town.json(["agent", "list"])["agents"].as_array().and_then(|agents| {
                let has = |agent: &&Value| agent["order"]["bead_id"] == bead.as_str();
                agents.iter().find(has)?["name"].as_str().map(str::to_owned)
            });
            let agent = holder.expect("somebody has the order");
            ask(Command::AgentClaim { agent: agent.clone(), bead: bead.clone() });
            ask(Command::AgentEnds { agent, bead, token: None, how: ClaimEnd::Done { reason: None } });
        }
        over.store(true, Ordering::Relaxed);
        town.run(["stop"]).ok();
    });
    latencies
}

/// One process that waits for mail, and what it prints.
fn receive(town: &Town, name: &str, arrived: &Mutex<Vec<(String, Instant)>>) {
    let inbox = town.run(["--json", "agent", "inbox", "--wait", "--as", name]);
    let at = Instant::now();
    let Ok(inbox) = serde_json::from_str::<Value>(&inbox.stdout) else { return };
    for message in inbox["messages"].as_array().into_iter().flatten() {
        if let Some(bead) = message["body"]["bead_id"].as_str() {
            let mut arrived = all(arrived);
            if !arrived.iter().any(|(id, _)| id == bead) {
                arrived.push((bead.to_owned(), at));
            }
        }
    }
}
