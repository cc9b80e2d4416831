//! Projects joining, leaving, and being taken out of service.

use super::Asker;
use super::bounds::{check_argv, check_executor, check_path};
use crate::RigName;
use crate::command::Answer;
use crate::refusal::Refusal;
use crate::rig::{BeadSource, Rig, RigEvent, RigSwitch, TOWN_PREFIX};
use crate::tx::Tx;

impl Tx<'_> {
    pub(super) fn rig_add(&mut self, asker: &Asker<'_>, rig: &Rig) -> Result<Answer, Refusal> {
        let name = &rig.name;
        if self.state().rigs.contains_key(name) {
            return Err(Refusal::new("exists", format!("rig {name} exists already"))
                .hint(format!("ym rig remove {name} first, or choose another name")));
        }
        check_executor(rig.executor.as_deref())?;
        check_path("path of the rig", &rig.path)?;
        match &rig.source {
            Some(BeadSource::Jsonl { path }) => check_path("file of beads", path)?,
            Some(BeadSource::Command { argv }) => check_argv(argv)?,
            None => {}
        }
        let prefix = rig.prefix.as_str();
        crate::BeadId::parse(prefix)?;
        if prefix.ends_with('-') {
            return Err(Refusal::new(
                "bad-prefix",
                format!("write the prefix {prefix:?} without its hyphen"),
            ));
        }
        if prefix == TOWN_PREFIX || prefix.starts_with("hq-") {
            return Err(Refusal::new("bad-prefix", "the prefix hq is kept for town-level beads"));
        }
        if let Some(other) = self.state().rigs.values().find(|r| r.prefix == prefix) {
            let message = format!("prefix {prefix} belongs to rig {} already", other.name);
            return Err(Refusal::new("exists", message));
        }
        self.emit(RigEvent::Added { rig: Box::new(rig.clone()), actor: asker.actor.to_owned() });
        Ok(Answer::Created { ids: vec![name.to_string()] })
    }

    pub(super) fn rig_remove(&mut self, asker: &Asker<'_>, name: &RigName) -> Result<Answer, Refusal> {
        self.state().known_rig(name)?;
        let scheduled = self.state().open_contexts().filter(|c| c.fields.target_rig == *name).count();
        let running = self.state().live_dispatches().filter(|d| d.rig == *name).count();
        if scheduled + running > 0 {
            let message = format!("rig {name} has {scheduled} scheduled and {running} running beads");
            return Err(Refusal::new("busy", message).hint("clear or cancel them first, or park the rig"));
        }
        let shown = self.state().beads().filter(|entry| entry.bead.source.as_ref() == Some(name));
        let shown: Vec<crate::BeadId> = shown.map(|entry| entry.bead.id.clone()).collect();
        self.emit(RigEvent::Removed { name: name.clone(), actor: asker.actor.to_owned() });
        // What its workspace showed has gone with it.
        for bead in &shown {
            self.close_stale_context(asker, bead);
            self.end_alerts_about(bead);
        }
        self.end_alert(&format!("source:{name}"));
        self.end_alert(&format!("source-conflict:{name}"));
        self.end_alert(&format!("vanished:{name}"));
        Ok(done(true, format!("rig {name} removed"), name))
    }

    pub(super) fn rig_switch(
        &mut self,
        asker: &Asker<'_>,
        name: &RigName,
        switch: RigSwitch,
    ) -> Result<Answer, Refusal> {
        let rig = self.state().known_rig(name)?;
        let (already, word, inverse) = match switch {
            RigSwitch::Park => (rig.parked, "parked", RigSwitch::Unpark),
            RigSwitch::Unpark => (!rig.parked, "not parked", RigSwitch::Park),
            RigSwitch::Dock => (rig.docked, "docked", RigSwitch::Undock),
            RigSwitch::Undock => (!rig.docked, "not docked", RigSwitch::Dock),
        };
        if already {
            return Ok(done(false, format!("rig {name} is {word} already"), name));
        }
        self.emit(RigEvent::Switched { name: name.clone(), switch, actor: asker.actor.to_owned() });
        let verb = match switch {
            RigSwitch::Park => "park",
            RigSwitch::Unpark => "unpark",
            RigSwitch::Dock => "dock",
            RigSwitch::Undock => "undock",
        };
        let inverse = crate::command::Command::RigSwitch { name: name.clone(), switch: inverse };
        self.can_be_undone(asker, format!("rig {verb} {name}"), vec![inverse]);
        Ok(done(true, format!("rig {name} is {word}"), name))
    }
}

fn done(changed: bool, message: String, name: &RigName) -> Answer {
    Answer::Done { changed, message, ids: vec![name.to_string()] }
}
