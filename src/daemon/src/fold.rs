//! Folding a journal into the state it tells. Whoever opens a town with a long past waits for this, so one thread reads
//! and verifies rows while another makes a state of them.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, ScopedJoinHandle};

use yard_engine::{Restoring, Seq, State};
use yard_journal::{JournalError, Piece};

use crate::store::{StoreError, recorded};

/// So many pieces are folded by the thread that reads them: starting another would take longer.
const FEW: usize = 4;
/// So many pieces may wait to be folded.
const AHEAD: usize = 16;

/// The state that the pieces give which `load` hands out, and where its checkpoint stands.
pub(crate) fn fold(
    load: impl FnOnce(&mut dyn FnMut(Piece)) -> Result<(), JournalError>,
) -> Result<(State, Seq), StoreError> {
    thread::scope(|scope| {
        let mut kept: Vec<Piece> = Vec::new();
        let mut other: Option<Other<'_>> = None;
        load(&mut |piece| {
            kept.push(piece);
            if kept.len() > FEW && other.is_none() {
                let (pieces, theirs) = sync_channel(AHEAD);
                let named = thread::Builder::new().name("ym-fold".to_owned());
                let folding = named.spawn_scoped(scope, || fold_pieces(theirs.into_iter()));
                other = folding.ok().map(|folding| Other { pieces, folding });
            }
            if let Some(other) = &other {
                // One that has found something unreadable takes no more; its end says what.
                kept.drain(..).for_each(|piece| drop(other.pieces.send(piece)));
            }
        })?;
        match other {
            None => fold_pieces(kept.into_iter()),
            Some(Other { pieces, folding }) => {
                drop(pieces);
                folding.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
        }
    })
}

/// The thread that folds, and the way to it.
struct Other<'scope> {
    pieces: SyncSender<Piece>,
    folding: ScopedJoinHandle<'scope, Result<(State, Seq), StoreError>>,
}

fn fold_pieces(pieces: impl Iterator<Item = Piece>) -> Result<(State, Seq), StoreError> {
    let (mut restoring, mut checkpoint) = (Restoring::new(), Seq(0));
    let mut state: Option<State> = None;
    for piece in pieces {
        match piece {
            Piece::Entities(rows) => {
                for row in &rows {
                    restoring.take(&row.kind, &row.id, row.body.as_deref().unwrap_or_default())?;
                }
            }
            Piece::Tail { checkpoint: at, events } => {
                checkpoint = at;
                let state = state.get_or_insert_with(|| std::mem::take(&mut restoring).finish(at));
                for row in &events {
                    state.apply(&recorded(row)?);
                }
            }
        }
    }
    // A file without tables yet is an empty log.
    Ok((state.unwrap_or_else(|| restoring.finish(checkpoint)), checkpoint))
}
