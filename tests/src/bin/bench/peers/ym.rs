//! Ours: a fresh town, its daemon, tasks from a file while dispatch is paused.

use std::io::{BufWriter, Write as _};
use std::process::Child;
use std::time::Instant;

use serde_json::json;
use yard_tests::town::ym_binary;

use super::{Runner, Spent};
use crate::Fallible;
use crate::graph::{Graph, TRUE};
use crate::site::{Site, end};

#[derive(Default)]
pub(crate) struct Ym {
    daemon: Option<Child>,
}

fn ym(words: &[&str]) -> Vec<String> {
    let program = ym_binary().display().to_string();
    std::iter::once(program).chain(words.iter().map(ToString::to_string)).collect()
}

impl Ym {
    fn add_all(site: &Site, graph: &Graph) -> Fallible<()> {
        let mut file = BufWriter::new(std::fs::File::create(site.path("tasks.jsonl"))?);
        for (number, task) in graph.tasks.iter().enumerate() {
            let after: Vec<String> = task.after.iter().map(|on| format!("b-{on}")).collect();
            writeln!(file, "{}", json!({"id": format!("b-{number}"), "argv": task.argv, "after": after}))?;
        }
        Ok(file.flush()?)
    }
}

impl Runner for Ym {
    fn start(&mut self, site: &mut Site) -> Fallible<()> {
        let town = site.text("town");
        site.set("YM_TOWN", &town);
        site.call(&ym(&["init", &town, "--prefix", "b"]))?;
        site.call(&ym(&["config", "set", "scheduler.max_polecats", &site.slots.to_string()]))?;
        self.daemon = Some(site.serve(&ym(&["--daemon"]))?);
        let serves = |status: &str| {
            let status: Option<serde_json::Value> = serde_json::from_str(status).ok();
            status.is_some_and(|status| status["daemon"]["running"] == true)
        };
        site.until(&ym(&["--json", "status"]), serves)
    }

    fn run(&mut self, site: &Site, graph: &Graph) -> Fallible<Spent> {
        site.call(&ym(&["scheduler", "pause"]))?;
        Self::add_all(site, graph)?;
        let began = Instant::now();
        site.call(&ym(&["add", "--file", &site.text("tasks.jsonl")]))?;
        let submit = began.elapsed();
        site.call(&ym(&["scheduler", "resume"]))?;
        site.call(&ym(&["wait", "--all"]))?;
        Ok(Spent::since(began, submit))
    }

    fn submission(&self, _site: &Site) -> Fallible<Vec<String>> {
        Ok(ym(&["-q", "add", "--", TRUE]))
    }

    fn status(&self, _site: &Site) -> Fallible<Vec<String>> {
        Ok(ym(&["scheduler", "status"]))
    }

    fn queue_up(&mut self, site: &Site, tasks: usize) -> Fallible<usize> {
        site.call(&ym(&["scheduler", "pause"]))?;
        Self::add_all(site, &Graph::bulk(tasks))?;
        site.call(&ym(&["add", "--file", &site.text("tasks.jsonl")]))?;
        Ok(tasks)
    }

    fn stop(&mut self, site: &Site) -> Fallible<()> {
        site.call(&ym(&["stop", "--timeout", "5s"]))?;
        self.daemon.as_mut().map_or(Ok(()), end)
    }
}
