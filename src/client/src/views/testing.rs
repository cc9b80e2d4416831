//! A small town for the tests of the views.

use std::sync::Arc;

use serde_json::json;
use yard_engine::bead::{BeadEvent, BeadStatus};
use yard_engine::rig::RigEvent;
use yard_engine::{BeadId, Event, State, Timestamp, Tx};

/// One rig, `shop`, and the beads it is given.
pub(super) struct Town(pub(super) State);

impl Town {
    pub(super) fn new() -> Self {
        let mut town = Self(State::default());
        let rig = json!({"name": "shop", "prefix": "shop", "path": "."});
        let rig = serde_json::from_value(rig).expect("a rig");
        town.emit(RigEvent::Added { rig, actor: "ann".to_owned() });
        town
    }

    pub(super) fn emit(&mut self, event: impl Into<Event>) {
        Tx::new(&mut self.0, Timestamp::from_millis(1000)).emit(event);
    }

    /// Adds a bead with edges, each the other bead and the kind.
    pub(super) fn bead(&mut self, id: &str, kind: &str, edges: &[(&str, &str)]) {
        let bead = Arc::new(record(id, kind, edges));
        self.emit(BeadEvent::Added { bead, actor: "ann".to_owned() });
    }

    pub(super) fn close(&mut self, id: &str) {
        let (reason, actor) = (String::new(), "ann".to_owned());
        self.emit(BeadEvent::Closed { id: bead_id(id), reason, actor, closed_at: None });
        assert_eq!(self.0.bead(&bead_id(id)).map(|e| &e.bead.status), Some(&BeadStatus::Closed));
    }
}

pub(super) fn record(id: &str, kind: &str, edges: &[(&str, &str)]) -> yard_engine::bead::Bead {
    let edge = |(on, kind): &(&str, &str)| json!({"depends_on_id": on, "type": kind});
    let edges: Vec<_> = edges.iter().map(edge).collect();
    let bead = json!({"id": id, "title": format!("Title of {id}"), "issue_type": kind, "dependencies": edges,
        "created_at": "2026-11-16T09:30:00.000Z"});
    serde_json::from_value(bead).expect("a bead")
}

pub(super) fn bead_id(text: &str) -> BeadId {
    BeadId::parse(text).expect("an id")
}
