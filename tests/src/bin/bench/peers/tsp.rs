//! task-spooler: a server that starts with the first call, one task a call, one dependency at most.

use std::time::Instant;

use super::{Runner, Spent, words};
use crate::Fallible;
use crate::graph::{Graph, TRUE};
use crate::site::Site;

/// Every queued task keeps a client and a connection; more would run out of descriptors.
const MOST_QUEUED: usize = 900;

pub(super) struct Tsp;

impl Runner for Tsp {
    fn start(&mut self, site: &mut Site) -> Fallible<()> {
        site.set("TS_SOCKET", site.path("tsp.socket"));
        site.set("TS_MAXFINISHED", "20000");
        site.set("TS_MAXCONN", "1000");
        site.call(&["tsp", "-S", &site.slots.to_string()]).map(drop)
    }

    fn run(&mut self, site: &Site, graph: &Graph) -> Fallible<Spent> {
        let began = Instant::now();
        let mut ids: Vec<String> = Vec::new();
        for task in &graph.tasks {
            let mut argv = words(["tsp", "-n"]);
            match task.after[..] {
                [] => {}
                [on] => argv.extend(["-D".to_owned(), ids[on].clone()]),
                _ => return Err("a task of task-spooler waits for one other at most".into()),
            }
            argv.extend(task.argv.iter().cloned());
            ids.push(site.call(&argv)?.trim().to_owned());
        }
        let submit = began.elapsed();
        for id in ids.iter().rev().take(site.slots) {
            // Answers with the task's own exit code.
            drop(site.call(&["tsp", "-w", id]));
        }
        site.until(&["tsp"], |list| !list.contains(" queued ") && !list.contains(" running "))?;
        Ok(Spent::since(began, submit))
    }

    fn submission(&self, _site: &Site) -> Fallible<Vec<String>> {
        Ok(words(["tsp", "-n", TRUE]))
    }

    fn status(&self, _site: &Site) -> Fallible<Vec<String>> {
        Ok(words(["tsp"]))
    }

    fn queue_up(&mut self, site: &Site, tasks: usize) -> Fallible<usize> {
        let tasks = tasks.min(MOST_QUEUED);
        site.call(&["tsp", "-S", "1"])?;
        site.call(&["tsp", "-n", "sleep", "600"])?;
        for _ in 0..tasks {
            site.call(&self.submission(site)?)?;
        }
        Ok(tasks)
    }

    fn stop(&mut self, site: &Site) -> Fallible<()> {
        site.call(&["tsp", "-K"]).map(drop)
    }
}
