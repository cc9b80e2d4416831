//! make and ninja: a file says everything, and one run of the program does it.

use std::fmt::Write as _;
use std::process::Stdio;

use super::{Runner, Spent, shell_line};
use crate::Fallible;
use crate::graph::Graph;
use crate::site::Site;

fn names(after: &[usize]) -> String {
    let names: Vec<String> = after.iter().map(|on| format!(" n{on}")).collect();
    names.concat()
}

pub(super) struct Make;

impl Runner for Make {
    fn run(&mut self, site: &Site, graph: &Graph) -> Fallible<Spent> {
        let all: Vec<usize> = (0..graph.tasks.len()).collect();
        let mut text = format!("MAKEFLAGS += -r\nall:{}\n", names(&all));
        for (number, task) in graph.tasks.iter().enumerate() {
            writeln!(text, "n{number}:{}\n\t@{}", names(&task.after), shell_line(&task.argv))?;
        }
        std::fs::write(site.path("Makefile"), text)?;
        let took = site.foreground(&["make", "-r", "-j", &site.slots.to_string()], Stdio::null())?;
        Ok(Spent::at_once(took))
    }
}

pub(super) struct Ninja;

impl Runner for Ninja {
    fn run(&mut self, site: &Site, graph: &Graph) -> Fallible<Spent> {
        let mut text = "rule r\n  command = $cmd\n".to_owned();
        for (number, task) in graph.tasks.iter().enumerate() {
            let line = shell_line(&task.argv).replace('$', "$$");
            writeln!(text, "build n{number}: r{}\n  cmd = {line}", names(&task.after))?;
        }
        std::fs::write(site.path("build.ninja"), text)?;
        let took = site.foreground(&["ninja", "--quiet", "-j", &site.slots.to_string()], Stdio::null())?;
        Ok(Spent::at_once(took))
    }
}
