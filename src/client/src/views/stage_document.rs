//! A plan as a [`StageView`](super::StageView), written from the plan as it goes: a plan of a million beads is never held
//! twice.
//!
//! Large plans wait for memory, not for the processor. So beads are looked at in the order of the tree, in which they
//! mostly lie in memory. The rows of the waves, which come in another order, are written on the way and put together
//! afterwards.

use serde::Serialize;
use yard_engine::bead::Bead;
use yard_engine::command::SlingResult;
use yard_engine::rig::RigsOfBeads;
use yard_engine::stage::{Gated, StagePlan, TreeRow};
use yard_engine::{BeadId, ConvoyId, State};

use super::blockers::Blockers;
use super::writer::Writer;
use crate::document::Document;

/// So deep is the tree nested and no deeper, because common JSON readers give up beyond 64 levels of children.
const DEEPEST: u32 = 50;

/// A plan on its way out.
#[derive(Debug, Clone, Copy)]
pub struct StageDocument<'a> {
    /// The town.
    pub state: &'a State,
    /// The convoy that was made or changed.
    pub convoy_id: Option<&'a ConvoyId>,
    /// Whether it was staged before.
    pub restaged: bool,
    /// What it would do.
    pub plan: &'a StagePlan,
    /// What its launch did, if there was one.
    pub wave1: Option<&'a [SlingResult]>,
}

impl StageDocument<'_> {
    /// Writes it.
    pub fn write(&self) -> serde_json::Result<Document> {
        let Self { state, convoy_id, restaged, plan, wave1 } = *self;
        let status = match (plan.errors.as_slice(), plan.warnings.as_slice()) {
            ([], []) => "staged:ready",
            ([], _) => "staged:warnings",
            _ => "error",
        };
        let tasks = Tasks::write(state, plan)?;
        let mut out = Writer::default();
        out.raw(r#"{"status":"#);
        out.text(status)?;
        out.raw(r#","convoy_id":"#);
        out.value(&convoy_id)?;
        out.raw(r#","restaged":"#);
        out.value(&restaged)?;
        out.raw(r#","errors":"#);
        out.value(&plan.errors)?;
        out.raw(r#","warnings":"#);
        out.value(&plan.warnings)?;
        out.raw(r#","waves":"#);
        out.list((1_u32..).zip(&plan.wave_rows), |out, (number, rows)| {
            out.raw(r#"{"number":"#);
            out.value(&number)?;
            out.raw(r#","tasks":"#);
            out.list(rows, |out, row| {
                out.written(tasks.of(*row));
                Ok(())
            })?;
            out.raw("}");
            Ok(())
        })?;
        drop(tasks);
        out.raw(r#","gated":"#);
        out.list(&plan.gated, |out, gated| out.value(&GatedRow::of(state, gated)))?;
        out.raw(r#","tree":"#);
        write_tree(&mut out, state, &plan.tree)?;
        out.raw(r#","critical_path":"#);
        out.value(&plan.critical_path)?;
        out.raw(r#","launched":"#);
        out.value(&wave1.is_some())?;
        if let Some(wave1) = wave1 {
            out.raw(r#","wave1":"#);
            out.value(wave1)?;
        }
        out.raw("}");
        out.into_text().map(Document::written)
    }
}

/// A [`TaskView`](super::TaskView) for each row of the tree that has a wave, in the order of the tree.
struct Tasks {
    text: Writer,
    /// Where each row ends.
    ends: Vec<usize>,
}

impl Tasks {
    fn write(state: &State, plan: &StagePlan) -> serde_json::Result<Self> {
        let mut has_wave = vec![false; plan.tree.len()];
        plan.wave_rows.iter().flatten().for_each(|row| has_wave[*row as usize] = true);
        let mut tasks = Self { text: Writer::default(), ends: Vec::with_capacity(plan.tree.len()) };
        let (mut rigs, mut blockers) = (state.rigs_of_beads(), Blockers::new(state));
        let mut blocked_by = Vec::new();
        for (row, has_wave) in plan.tree.iter().zip(has_wave) {
            if has_wave {
                blockers.find(&row.bead, row.open_blockers as usize, &mut blocked_by);
                write_task(&mut tasks.text, &mut rigs, &row.bead, &blocked_by)?;
            }
            tasks.ends.push(tasks.text.len());
        }
        Ok(tasks)
    }

    /// What is written of a row.
    fn of(&self, row: u32) -> &[u8] {
        let row = row as usize;
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text.as_bytes()[start..self.ends[row]]
    }
}

fn write_task<'a>(
    out: &mut Writer,
    rigs: &mut RigsOfBeads<'a>,
    bead: &'a Bead,
    blocked_by: &[&BeadId],
) -> serde_json::Result<()> {
    write_beginning(out, bead)?;
    out.raw(r#","rig":"#);
    match rigs.of(&bead.id) {
        Some(rig) => out.text(rig.name.as_str())?,
        None => out.raw("null"),
    }
    out.raw(r#","status":"#);
    out.text(bead.status.as_str())?;
    out.raw(r#","blocked_by":"#);
    out.list(blocked_by, |out, id| {
        out.id(id);
        Ok(())
    })?;
    out.raw("}");
    Ok(())
}

/// What rows of every kind begin with.
fn write_beginning(out: &mut Writer, bead: &Bead) -> serde_json::Result<()> {
    out.raw(r#"{"id":"#);
    out.id(&bead.id);
    out.raw(r#","title":"#);
    out.text(&bead.title)?;
    out.raw(r#","type":"#);
    out.text(&bead.kind)
}

/// Rows in reading order as nested [`TreeNode`](super::TreeNode)s, without recursion.
fn write_tree(out: &mut Writer, state: &State, rows: &[TreeRow]) -> serde_json::Result<()> {
    let mut rigs = state.rigs_of_beads();
    // How many nodes are begun and not ended.
    let mut open = 0;
    out.raw("[");
    for TreeRow { depth, bead, .. } in rows {
        let level = (*depth).min(DEEPEST).min(open);
        if level < open {
            end_nodes(out, open - level);
            out.raw(",");
        }
        write_beginning(out, bead)?;
        out.raw(r#","status":"#);
        out.text(bead.status.as_str())?;
        if let Some(rig) = rigs.of(&bead.id) {
            out.raw(r#","rig":"#);
            out.text(rig.name.as_str())?;
        }
        if *depth > DEEPEST {
            out.raw(r#","depth":"#);
            out.value(depth)?;
        }
        out.raw(r#","children":["#);
        open = level + 1;
    }
    end_nodes(out, open);
    out.raw("]");
    Ok(())
}

fn end_nodes(out: &mut Writer, count: u32) {
    (0..count).for_each(|_| out.raw("]}"));
}

/// A [`GatedView`](super::GatedView) on its way out.
#[derive(Serialize)]
struct GatedRow<'a> {
    id: &'a BeadId,
    title: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    gated_by: &'a [BeadId],
}

impl<'a> GatedRow<'a> {
    fn of(state: &'a State, Gated { id, gated_by }: &'a Gated) -> Self {
        let (title, kind) =
            state.bead(id).map(|entry| (&*entry.bead.title, &*entry.bead.kind)).unwrap_or_default();
        Self { id, title, kind, gated_by }
    }
}
