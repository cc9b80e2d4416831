//! Beads and what they wait for as a Mermaid graph, to be pasted into an issue or a README.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use yard_engine::{BeadId, State};

use crate::text::shown;

/// Beads in one graph; larger ones are drawn by nobody.
const LARGEST: usize = 200;

/// The graph of these beads and everything they wait for.
pub(crate) fn graph(state: &State, beads: &[BeadId]) -> String {
    let mut out = String::from("graph TD\n");
    let mut seen: BTreeSet<BeadId> = BTreeSet::new();
    let mut pending: Vec<BeadId> = beads.to_vec();
    while let Some(id) = pending.pop() {
        if seen.len() >= LARGEST || !seen.insert(id.clone()) {
            continue;
        }
        let title = state.bead(&id).map(|entry| shown(&entry.bead.title)).unwrap_or_default();
        let standing = state.standing(&id).map_or("unknown", yard_engine::Standing::as_str);
        let name = node(&id);
        let _ = writeln!(out, "  {name}[\"{id} {}<br/>{standing}\"]", title.replace('"', "'"));
        let Some(entry) = state.bead(&id) else { continue };
        for edge in entry.bead.dependencies.iter().filter(|edge| edge.kind.blocks()) {
            let _ = writeln!(out, "  {} --> {name}", node(&edge.on));
            pending.push(edge.on.clone());
        }
    }
    out
}

/// An id as Mermaid takes it.
fn node(id: &BeadId) -> String {
    id.as_str().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
