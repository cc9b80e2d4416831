//! A town with a running daemon whose workers say when they start, over native beads or over a beads workspace.

use std::time::SystemTime;

use crate::Fallible;
use crate::export::Export;
use crate::starts::{Started, Starts};
use yard_tests::town::{Town, wait_until};
use yard_tests::workspace;

/// Where the beads of a yard live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beads {
    /// In the town itself.
    Native,
    /// In a workspace that is rewritten as `br` does.
    Workspace,
}

impl Beads {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Workspace => "workspace",
        }
    }

    /// The rig of the beads, and their prefix.
    fn rig(self) -> &'static str {
        match self {
            Self::Native => "y",
            Self::Workspace => "shop",
        }
    }
}

/// A town under measurement.
pub(crate) struct Yard {
    pub(crate) town: Town,
    starts: Starts,
    beads: Beads,
    export: Export,
}

impl Yard {
    /// A town without beads, its daemon running.
    pub(crate) fn open(beads: Beads, max_polecats: &str) -> Fallible<Self> {
        Self::with(beads, max_polecats, |_| {})
    }

    /// A town whose workspace has beads from the beginning.
    pub(crate) fn with(beads: Beads, max_polecats: &str, fill: impl FnOnce(&mut Export)) -> Fallible<Self> {
        let mut town = Town::new();
        let starts = Starts::listen(town.root().join("starts.socket"))?;
        town.set("scheduler.max_polecats", max_polecats);
        let mut export = Export::create(&town.root().join(Beads::Workspace.rig()))?;
        fill(&mut export);
        export.publish()?;
        let (rig, dir) = (Beads::Workspace.rig(), export.dir().display().to_string());
        town.run(["rig", "add", rig, "--prefix", rig, "--path", &dir]).ok();
        let formula = format!("name = \"bench\"\n[[steps]]\nid = \"work\"\nargv = {:?}\n", starts.worker()?);
        let formulas = town.root().join(".yardmaster/formulas");
        std::fs::create_dir_all(&formulas)?;
        std::fs::write(formulas.join("bench.toml"), formula)?;
        town.set("worker.formula", "bench");
        town.start_daemon();
        Ok(Self { town, starts, beads, export })
    }

    /// The full id of a bead.
    pub(crate) fn id(&self, name: &str) -> String {
        format!("{}-{name}", self.beads.rig())
    }

    /// Adds tasks, each with those it waits for, and waits until the daemon knows them.
    pub(crate) fn add(&mut self, tasks: &[(String, Vec<String>)]) -> Fallible<()> {
        for (id, needs) in tasks {
            match self.beads {
                Beads::Native => {
                    let mut args = vec!["bead", "add", id, "--id", id];
                    for on in needs {
                        args.extend(["--needs", on]);
                    }
                    self.town.run(args).ok();
                }
                Beads::Workspace => {
                    let edges: Vec<(&str, &str)> = needs.iter().map(|on| (on.as_str(), "blocks")).collect();
                    self.export.put(id, workspace::bead(id, "task", &edges).to_string());
                }
            }
        }
        if self.beads == Beads::Workspace {
            self.export.publish()?;
            let known = |id: &String| self.town.run(["--json", "bead", "show", id]).code == 0;
            wait_until("the new beads are known", || tasks.last().is_none_or(|(id, _)| known(id)));
        }
        Ok(())
    }

    /// Runs a command that must succeed; returns the moment before it.
    pub(crate) fn tell<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> SystemTime {
        let moment = SystemTime::now();
        self.town.run(args).ok();
        moment
    }

    /// The next starts, in the order in which they happened.
    pub(crate) fn next_starts(&self, count: usize) -> Fallible<Vec<Started>> {
        self.starts.next(count)
    }

    /// Has workers finish their beads; returns the moment of the first: when it was let go, or of the rename.
    pub(crate) fn finish(&mut self, workers: Vec<Started>) -> Fallible<SystemTime> {
        let mut moment = SystemTime::now();
        if self.beads == Beads::Workspace {
            for worker in &workers {
                self.export.close(&worker.bead)?;
            }
            moment = self.export.publish()?;
        }
        drop(workers);
        Ok(moment)
    }

    /// Closes a bead of the workspace that nobody works on; returns the moment of the rename.
    pub(crate) fn close(&mut self, id: &str) -> Fallible<SystemTime> {
        self.export.close(id)?;
        Ok(self.export.publish()?)
    }

    /// Waits until every convoy has closed, so that one round leaves nothing to the next.
    pub(crate) fn come_to_rest(&self) {
        wait_until("every convoy is closed", || {
            self.town.json(["convoy", "list"])["convoys"].as_array().is_some_and(Vec::is_empty)
        });
    }

    /// How long the workspace's file is.
    pub(crate) fn file_bytes(&self) -> usize {
        self.export.bytes()
    }
}
