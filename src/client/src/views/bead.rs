//! Beads and rigs as documents.

use serde::{Deserialize, Serialize};
use yard_engine::bead::Dependency;
use yard_engine::readiness::{Reason, ReasonCode};
use yard_engine::rig::BeadSource;
use yard_engine::{BeadId, Refusal, RigName, Standing, State, Timestamp};

use super::like::beads_like;
use crate::protocol::BeadFilter;

/// A bead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeadView {
    /// Its id.
    pub id: BeadId,
    /// One line.
    pub title: String,
    /// More.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its status in the tracker.
    pub status: String,
    /// 0 to 4.
    pub priority: u8,
    /// The rig that owns it.
    pub rig: Option<RigName>,
    /// The rig whose beads workspace shows it; none for native beads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<RigName>,
    /// Who has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// Labels.
    pub labels: Vec<String>,
    /// What it depends on.
    pub dependencies: Vec<DependencyView>,
    /// The command it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// Put off until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defer_until: Option<Timestamp>,
    /// Kept in view for ever.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// A passing record of its tracker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ephemeral: bool,
    /// A pattern for other beads.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_template: bool,
    /// When it came to be.
    pub created_at: Timestamp,
    /// When it closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
    /// Why it closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close_reason: Option<String>,
    /// Where it stands; none if it is gone from its workspace, and this is how it was last seen.
    pub state: Option<Standing>,
    /// Why it does not run.
    pub reasons: Vec<Reason>,
    /// With `blocked --like`: what it waits for, as that tool says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<Vec<String>>,
    /// With `blocked --like`: how many those are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by_count: Option<usize>,
}

/// One dependency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DependencyView {
    /// The other bead.
    pub id: BeadId,
    /// The kind of edge.
    #[serde(rename = "type")]
    pub kind: String,
    /// How its tracker writes the other bead, when that is not its id: `external:PROJECT:ID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
}

/// Beads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeadList {
    /// By id, or in the order of the tool that was asked for.
    pub beads: Vec<BeadView>,
}

/// A rig.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RigView {
    /// Its name.
    pub name: RigName,
    /// Its bead prefix.
    pub prefix: String,
    /// Its directory.
    pub path: String,
    /// Parked.
    pub parked: bool,
    /// Docked.
    pub docked: bool,
    /// Its cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_polecats: Option<u64>,
    /// Live workers in it.
    pub active: u64,
    /// Where its beads come from; none when they are native.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<BeadSource>,
}

/// Rigs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RigList {
    /// By name.
    pub rigs: Vec<RigView>,
}

/// Renders one bead; one that is gone, as it was last seen.
pub fn bead(state: &State, id: &BeadId) -> Option<BeadView> {
    let bead = match state.bead(id) {
        Some(entry) => &entry.bead,
        None => state.vanished_bead(id)?,
    };
    let standing = state.standing(id);
    let edge = |d: &Dependency| DependencyView {
        id: d.on.clone(),
        kind: d.kind.as_str().to_owned(),
        written: d.written.as_deref().map(str::to_owned),
    };
    Some(BeadView {
        id: bead.id.clone(),
        title: bead.title.clone(),
        description: bead.description.clone(),
        kind: bead.kind.to_string(),
        status: bead.status.as_str().to_owned(),
        priority: bead.priority,
        rig: state.rig_of(id).map(|r| r.name.clone()),
        source: bead.source.clone(),
        assignee: bead.assignee.clone(),
        labels: bead.labels.clone(),
        dependencies: bead.dependencies.iter().map(edge).collect(),
        argv: bead.argv.as_deref().map(<[String]>::to_vec),
        defer_until: bead.defer_until,
        pinned: bead.pinned,
        ephemeral: bead.ephemeral,
        is_template: bead.is_template,
        created_at: bead.created_at,
        closed_at: bead.closed_at,
        close_reason: bead.close_reason.clone(),
        state: standing,
        reasons: if standing.is_some() { state.reasons(id) } else { vec![absent(state, id)] },
        blocked_by: None,
        blocked_by_count: None,
    })
}

/// Why a bead that nobody has does not run.
pub(super) fn absent(state: &State, id: &BeadId) -> Reason {
    let message = match state.vanished_bead(id).and_then(|bead| bead.source.as_ref()) {
        Some(rig) => format!("{id} is gone: the beads workspace of rig {rig} shows it no longer"),
        None => format!("there is no bead {id}"),
    };
    Reason { code: ReasonCode::NotDispatchable, message, ids: Vec::new(), limit: None, until: None }
}

/// Renders the beads a filter lets through; `now` is what another tool's rules go by.
pub fn beads(state: &State, filter: &BeadFilter, now: Timestamp) -> Result<BeadList, Refusal> {
    if let Some(tool) = &filter.like {
        return Ok(BeadList { beads: beads_like(state, tool, filter, now)? });
    }
    let wanted = |id: &BeadId| {
        filter.rig.as_ref().is_none_or(|rig| state.rig_of(id).is_some_and(|r| r.name.as_str() == rig))
    };
    let room_only = |reason: &Reason| {
        matches!(reason.code, ReasonCode::Paused | ReasonCode::Capacity | ReasonCode::HostLoad)
    };
    let beads = state
        .beads()
        .filter(|e| filter.all || !e.bead.is_closed())
        .map(|e| &e.bead.id)
        .filter(|id| wanted(id))
        .filter_map(|id| bead(state, id))
        .filter(|b| !filter.ready || b.reasons.iter().all(room_only))
        .filter(|b| !filter.blocked || b.reasons.iter().any(|r| r.code.is_blocking()))
        .collect();
    Ok(BeadList { beads })
}

/// Renders the rigs.
pub fn rigs(state: &State) -> RigList {
    let view = |rig: &yard_engine::rig::Rig| {
        let room = state.room(&yard_engine::capacity::Limit::Rig(rig.name.clone()));
        RigView {
            name: rig.name.clone(),
            prefix: rig.prefix.clone(),
            path: rig.path.clone(),
            parked: rig.parked,
            docked: rig.docked,
            max_polecats: room.max,
            active: room.active,
            source: rig.source.clone(),
        }
    };
    RigList { rigs: state.rigs().map(view).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use yard_engine::bead::{BeadEvent, DepKind};

    use super::super::testing::{Town, bead_id, record};
    use super::*;

    fn shown(town: &Town, id: &str) -> Value {
        serde_json::to_value(bead(&town.0, &bead_id(id))).expect("a document")
    }

    #[test]
    fn a_workspace_bead_names_its_source_and_how_its_edges_are_written() {
        let mut town = Town::new();
        let mut external = record("shop-a", "task", &[]);
        external.source = Some("shop".parse().expect("a name"));
        external.dependencies =
            vec![Dependency::from_tracker("external:api:api-7", DepKind::Blocks).expect("an edge")];
        town.emit(BeadEvent::Observed { bead: std::sync::Arc::new(external) });
        let document = shown(&town, "shop-a");
        assert_eq!(document["source"], "shop");
        let edge = json!({"id": "api-7", "type": "blocks", "written": "external:api:api-7"});
        assert_eq!(document["dependencies"], json!([edge]));
        assert_eq!(document.get("pinned"), None);
        town.bead("shop-b", "task", &[]);
        assert_eq!(shown(&town, "shop-b").get("source"), None);
    }

    #[test]
    fn a_bead_that_is_gone_is_shown_as_it_was_without_a_state() {
        let mut town = Town::new();
        let mut seen = record("shop-a", "task", &[]);
        seen.source = Some("shop".parse().expect("a name"));
        town.emit(BeadEvent::Observed { bead: std::sync::Arc::new(seen) });
        town.emit(BeadEvent::Vanished { id: bead_id("shop-a") });
        let document = shown(&town, "shop-a");
        assert_eq!((&document["title"], &document["state"]), (&json!("Title of shop-a"), &Value::Null));
        assert!(document["reasons"][0]["message"].as_str().is_some_and(|text| text.contains("no longer")));
        assert_eq!(shown(&town, "shop-unknown"), Value::Null);
    }
}
