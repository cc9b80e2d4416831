//! What the journal stores and gives back, without any meaning.

use yard_engine::{Seq, Timestamp};

use crate::JournalError;
use crate::chain::Sealer;

/// One event as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its place in the log.
    pub seq: Seq,
    /// When it happened.
    pub at: Timestamp,
    /// What kind of event it is, for example `bead.closed`.
    pub kind: String,
    /// The event as JSON text.
    pub body: String,
}

/// One entity of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityRow {
    /// What kind of thing it is.
    pub kind: String,
    /// Its id, unique within the kind.
    pub id: String,
    /// The entity as JSON text; `None` means that it is gone.
    pub body: Option<String>,
}

/// Everything needed to rebuild the state: the last checkpoint, and the events after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The last event the checkpoint contains.
    pub checkpoint_seq: Seq,
    /// The entities of the checkpoint, in no particular order, all with a body.
    pub entities: Vec<EntityRow>,
    /// The events after the checkpoint, contiguous and verified.
    pub tail: Vec<Row>,
}

/// A part of [`Loaded`], as it is read: all entities come before the tail, which comes even if it is empty.
#[derive(Debug)]
pub enum Piece {
    /// Some entities of the checkpoint.
    Entities(Vec<EntityRow>),
    /// Some of the events after it, in their order.
    Tail {
        /// The last event the checkpoint contains.
        checkpoint: Seq,
        /// The events.
        events: Vec<Row>,
    },
}

/// The columns of an event as they are stored, not yet believed.
pub(crate) struct RawEvent<'a> {
    pub(crate) seq: Seq,
    pub(crate) at: i64,
    pub(crate) kind: &'a [u8],
    pub(crate) body: &'a [u8],
    pub(crate) sum: u64,
}

impl RawEvent<'_> {
    /// Whether it follows an event with the sum `before`; none: there is no such event.
    pub(crate) fn verify(&self, before: Option<u64>, sealer: &mut Sealer) -> Result<(), JournalError> {
        let Some(before) = before else {
            return Err(JournalError::Corrupt {
                seq: Seq(self.seq.0.wrapping_sub(1)),
                what: "the event is missing",
            });
        };
        if sealer.event(before, self.seq, self.at, self.kind, self.body) == self.sum {
            return Ok(());
        }
        let what = "its checksum does not match its content and predecessor";
        Err(JournalError::Corrupt { seq: self.seq, what })
    }

    /// The event as its own value.
    pub(crate) fn to_row(&self) -> Result<Row, JournalError> {
        let text = |bytes: &[u8]| {
            std::str::from_utf8(bytes)
                .map(str::to_owned)
                .map_err(|_| JournalError::Corrupt { seq: self.seq, what: "the row is not valid text" })
        };
        Ok(Row {
            seq: self.seq,
            at: Timestamp::from_millis(self.at),
            kind: text(self.kind)?,
            body: text(self.body)?,
        })
    }
}
