//! Doors for the fuzz targets of `tests/`: what a hostile file can reach, without a file. Nobody else should use them.
//!
//! Each returns what is wrong, in words, if a promise of this crate does not hold.

use std::sync::Arc;

use yard_engine::RigName;
use yard_engine::bead::Bead;

use crate::details::Descriptions;
use crate::ledger::Ledger;
use crate::lines::Lines;
use crate::quick;
use crate::record::Fields;

/// Whether a line that the quick reader takes says the same to serde.
pub fn readers_agree(line: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(line) else { return Ok(()) };
    let mut quickly = Fields::default();
    if !text.trim_start().starts_with('{') || quick::read(text, &mut quickly).is_err() {
        return Ok(());
    }
    let slowly: Fields<'_> =
        serde_json::from_str(text).map_err(|error| format!("only the quick reader takes it: {error}"))?;
    let (quickly, slowly) = (format!("{quickly:?}"), format!("{slowly:?}"));
    if quickly == slowly { Ok(()) } else { Err(format!("quick: {quickly}\nserde: {slowly}")) }
}

/// Reads a text as a workspace's file. Whether it comes as a whole or line by line makes no difference, and what was
/// told once is not told again.
pub fn read_lines(text: &[u8]) -> Result<Vec<Arc<Bead>>, String> {
    let rig = RigName::parse("fuzz").map_err(|error| error.to_string())?;
    let mut whole = Ledger::new(rig.clone(), Descriptions::of_output());
    let (beads, bad) = take(&mut whole, std::iter::once(text), text);
    let mut pieces = Ledger::new(rig, Descriptions::of_output());
    let (same, same_bad) = take(&mut pieces, text.split_inclusive(|byte| *byte == b'\n'), text);
    if beads != same || bad != same_bad {
        return Err(format!("in pieces: {same:?} {same_bad:?}\nas a whole: {beads:?} {bad:?}"));
    }
    let (again, _) = take(&mut whole, std::iter::once(text), text);
    if !again.is_empty() {
        return Err(format!("told twice: {again:?}"));
    }
    whole.begin();
    if whole.forget_missing().len() != beads.len() {
        return Err("another number of beads is known than was told".to_owned());
    }
    Ok(beads)
}

fn take<'t>(
    ledger: &mut Ledger,
    pieces: impl Iterator<Item = &'t [u8]>,
    text: &[u8],
) -> (Vec<Arc<Bead>>, Option<String>) {
    let mut lines = Lines::default();
    ledger.begin();
    pieces.for_each(|piece| lines.take(ledger, piece));
    let beads = ledger.finish(text, false);
    ledger.publish(None);
    (beads, lines.bad.map(|bad| bad.describe("text", "line")))
}
