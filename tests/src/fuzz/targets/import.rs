//! `ym bead import`: whatever the records say, they are refused or become beads of a town that keeps its invariants.

use yard_engine::Command;
use yard_sources::Record;

use super::commands::Town;

pub(super) fn run(input: &[u8]) {
    let records = super::lines(input).filter_map(|line| Record::parse(line.as_bytes()).ok().flatten());
    let beads = records.filter_map(|record| record.into_new_bead().ok()).take(200).collect::<Vec<_>>();
    if !beads.is_empty() {
        Town::with_work().decide(&Command::BeadImport { beads });
    }
}
