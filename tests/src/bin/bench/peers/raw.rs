//! The raw limit: see `tests/src/bin/yardstick/graph.rs`.

use std::process::Stdio;

use super::{Runner, Spent};
use crate::Fallible;
use crate::graph::Graph;
use crate::machine::yardstick;
use crate::site::Site;

pub(super) struct Raw;

impl Runner for Raw {
    fn run(&mut self, site: &Site, graph: &Graph) -> Fallible<Spent> {
        let line = |task: &crate::graph::Task| {
            let after: Vec<String> = task.after.iter().map(ToString::to_string).collect();
            let after = if after.is_empty() { "-".to_owned() } else { after.join(",") };
            format!("{after}\t{}\n", task.argv.join("\t"))
        };
        std::fs::write(site.path("graph"), graph.tasks.iter().map(line).collect::<String>())?;
        let (yardstick, slots) = (yardstick()?.display().to_string(), site.slots.to_string());
        let took = site.foreground(&[&yardstick, "graph", "graph", &slots], Stdio::null())?;
        Ok(Spent::at_once(took))
    }
}
