//! xargs and GNU parallel: lines in, processes out; nothing waits for anything else.

use std::fs::File;

use super::{Runner, Spent, shell_line};
use crate::Fallible;
use crate::graph::Graph;
use crate::site::Site;

pub(super) struct Xargs;

impl Runner for Xargs {
    fn run(&mut self, site: &Site, graph: &Graph) -> Fallible<Spent> {
        let first = graph.tasks.first().ok_or("nothing is to be run")?;
        // One line a task; the line itself appears nowhere.
        std::fs::write(site.path("lines"), "x\n".repeat(graph.tasks.len()))?;
        let slots = site.slots.to_string();
        let mut argv = vec!["xargs".to_owned(), "-P".to_owned(), slots];
        let bare = first.argv.len() == 1;
        argv.push(if bare { "-n1" } else { "-I{}" }.to_owned());
        argv.extend(first.argv.iter().cloned());
        Ok(Spent::at_once(site.foreground(&argv, File::open(site.path("lines"))?.into())?))
    }
}

pub(super) struct Parallel;

impl Runner for Parallel {
    fn run(&mut self, site: &Site, graph: &Graph) -> Fallible<Spent> {
        let lines: String = graph.tasks.iter().map(|task| shell_line(&task.argv) + "\n").collect();
        std::fs::write(site.path("lines"), lines)?;
        let argv = ["parallel", "--will-cite", "-j", &site.slots.to_string()];
        Ok(Spent::at_once(site.foreground(&argv, File::open(site.path("lines"))?.into())?))
    }
}
