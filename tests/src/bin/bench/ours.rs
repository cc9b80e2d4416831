//! What staging a file costs us: the source reads it, the engine takes it over event by event, and plans.

use std::path::Path;

use yard_engine::bead::DepKind;
use yard_engine::rig::{BeadSource, Rig};
use yard_engine::stage::{Category, Finding, StageInput, StagePlan};
use yard_engine::{Asker, Command, Kitchen, RigName, SourceReading, State, Timestamp, Tx};
use yard_sources::Source;

use crate::Fallible;

/// The rig of the made-up workspace, and its prefix.
pub(crate) const RIG: &str = "syn";

fn rig(file: &Path) -> Fallible<Rig> {
    Ok(Rig {
        name: RigName::parse(RIG)?,
        prefix: RIG.to_owned(),
        path: "/".to_owned(),
        parked: false,
        docked: false,
        max_polecats: None,
        executor: None,
        formula: None,
        source: Some(BeadSource::Jsonl { path: file.display().to_string() }),
    })
}

/// The source of a file. A daemon keeps it, and with it what it remembers of every line.
pub(crate) fn source(file: &Path) -> Fallible<Source> {
    let rig = rig(file)?;
    let spec = rig.source.ok_or("the rig has a source")?;
    Ok(Source::open(rig.name, &spec, Path::new("/")))
}

/// The state of a town whose only rig shows this reading.
pub(crate) fn fold(file: &Path, reading: &SourceReading) -> Fallible<State> {
    let mut state = State::default();
    let mut tx = Tx::new(&mut state, Timestamp::from_millis(1_800_000_000_000));
    let kitchen = Kitchen::default();
    tx.decide(&Asker { actor: "bench", kitchen: &kitchen }, &Command::RigAdd { rig: rig(file)? })?;
    tx.source_read(reading);
    drop(tx.finish());
    Ok(state)
}

/// A request to stage everything there is.
pub(crate) fn everything(state: &State) -> StageInput {
    StageInput::Tasks(state.beads().map(|entry| entry.bead.id.clone()).collect())
}

/// What the plan says, in words, after checking that the path of every cycle is one.
pub(crate) fn describe(state: &State, plan: &StagePlan) -> Fallible<String> {
    for finding in &plan.errors {
        if finding.category == Category::Cycle {
            check_path(state, finding)?;
        }
    }
    let errors: Vec<String> =
        plan.errors.iter().map(|finding| format!("error: {}", finding.message)).collect();
    let errors = if errors.is_empty() { "no errors".to_owned() } else { errors.join("; ") };
    Ok(format!("{} waves, {errors}", plan.waves.len()))
}

fn check_path(state: &State, finding: &Finding) -> Fallible<()> {
    let path = &finding.bead_ids;
    let blocks =
        |on| move |edge: &yard_engine::bead::Dependency| edge.on == on && edge.kind == DepKind::Blocks;
    let is_edge = |pair: &[yard_engine::BeadId]| {
        let entry = state.bead(&pair[0]);
        entry.is_some_and(|entry| entry.bead.dependencies.iter().any(blocks(pair[1].clone())))
    };
    if path.len() < 2 || path.first() != path.last() || !path.windows(2).all(is_edge) {
        return Err(format!("the path of a cycle is none: {}", finding.message).into());
    }
    Ok(())
}
