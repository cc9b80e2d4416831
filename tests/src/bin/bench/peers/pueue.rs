//! pueue: a daemon on a Unix socket, one task a call.

use std::process::Child;
use std::time::Instant;

use super::{Runner, Spent, shell_line};
use crate::Fallible;
use crate::graph::{Graph, TRUE};
use crate::site::{Site, ask_to_end, end};

#[derive(Default)]
pub(super) struct Pueue {
    daemon: Option<Child>,
}

fn pueue(words: &[&str]) -> Vec<String> {
    ["pueue", "-c", "pueue.yml"].iter().chain(words).map(ToString::to_string).collect()
}

impl Pueue {
    fn serve(&mut self, site: &Site) -> Fallible<()> {
        self.daemon = Some(site.serve(&["pueued", "-c", "pueue.yml"])?);
        site.until(&pueue(&["status"]), |_| true)
    }

    fn shut_down(&mut self, site: &Site) -> Fallible<()> {
        drop(site.call(&pueue(&["shutdown"])));
        let Some(mut daemon) = self.daemon.take() else { return Ok(()) };
        ask_to_end(&daemon);
        end(&mut daemon)
    }
}

impl Runner for Pueue {
    fn start(&mut self, site: &mut Site) -> Fallible<()> {
        let dir = site.text("pueue");
        std::fs::create_dir_all(&dir)?;
        let places = format!("  pueue_directory: {dir}\n  runtime_directory: {dir}\n");
        let socket = format!("  use_unix_socket: true\n  unix_socket_path: {dir}/socket\n");
        std::fs::write(
            site.path("pueue.yml"),
            format!("client: {{}}\ndaemon: {{}}\nshared:\n{places}{socket}"),
        )?;
        self.serve(site)?;
        site.call(&pueue(&["parallel", &site.slots.to_string()])).map(drop)
    }

    fn run(&mut self, site: &Site, graph: &Graph) -> Fallible<Spent> {
        site.call(&pueue(&["pause", "--all"]))?;
        let began = Instant::now();
        for task in &graph.tasks {
            let mut argv = pueue(&["add"]);
            if !task.after.is_empty() {
                argv.push("--after".to_owned());
                argv.extend(task.after.iter().map(ToString::to_string));
            }
            argv.extend(["--".to_owned(), shell_line(&task.argv)]);
            site.call(&argv)?;
        }
        let submit = began.elapsed();
        site.call(&pueue(&["start", "--all"]))?;
        site.call(&pueue(&["wait", "--all", "--quiet"]))?;
        Ok(Spent::since(began, submit))
    }

    fn submission(&self, _site: &Site) -> Fallible<Vec<String>> {
        Ok(pueue(&["add", "--", TRUE]))
    }

    fn status(&self, _site: &Site) -> Fallible<Vec<String>> {
        Ok(pueue(&["status"]))
    }

    /// Adding thousands by its command takes hours, because each rewrites the whole state. So one real task is written
    /// many times into the state file.
    fn queue_up(&mut self, site: &Site, tasks: usize) -> Fallible<usize> {
        site.call(&pueue(&["pause", "--all"]))?;
        site.call(&self.submission(site)?)?;
        self.shut_down(site)?;
        let plain = site.path("pueue/state.json");
        let mut state: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&plain)?)?;
        let task = state["tasks"]["0"].clone();
        let copy = |id: usize| {
            let mut task = task.clone();
            task["id"] = id.into();
            (id.to_string(), task)
        };
        state["tasks"] = (0..tasks).map(copy).collect::<serde_json::Map<_, _>>().into();
        std::fs::write(&plain, state.to_string())?;
        self.serve(site)?;
        let shown = site.call(&pueue(&["status", "--json"]))?;
        let shown: serde_json::Value = serde_json::from_str(&shown)?;
        Ok(shown["tasks"].as_object().map_or(0, serde_json::Map::len))
    }

    fn stop(&mut self, site: &Site) -> Fallible<()> {
        self.shut_down(site)
    }
}
