//! Parsing a large file with two hands: another thread parses some of its pieces while this one reads on, parses others
//! and takes them in, in their order. A person who takes a workspace over waits for this.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use yard_engine::RigName;

use crate::lines::ParsedPiece;

/// So many pieces may lie with the other thread. Fewer, and it waits for this one; more would only fill the memory.
const AHEAD: usize = 4;

/// Both hands.
pub(crate) struct Hands<'a> {
    rig: &'a RigName,
    /// None until the first piece comes: most files have no second.
    other: Option<Other>,
    start: &'a dyn Fn(Receiver<Vec<u8>>, Sender<ParsedPiece>) -> bool,
    /// The pieces that are not taken yet, in their order; none of one that lies with the other thread.
    waiting: VecDeque<Option<ParsedPiece>>,
}

/// The way to the other thread and back.
struct Other {
    pieces: Sender<Vec<u8>>,
    parsed: Receiver<ParsedPiece>,
    /// How many pieces lie there.
    busy: usize,
}

/// Lets `work` parse pieces with two hands.
pub(crate) fn parse_together<T>(rig: &RigName, work: impl FnOnce(&mut Hands<'_>) -> T) -> T {
    thread::scope(|scope| {
        let start = |pieces: Receiver<Vec<u8>>, parsed: Sender<ParsedPiece>| {
            let named = thread::Builder::new().name("ym-parse".to_owned());
            let other = move || {
                for piece in pieces {
                    if parsed.send(ParsedPiece::parse(&piece, rig)).is_err() {
                        break;
                    }
                }
            };
            named.spawn_scoped(scope, other).is_ok()
        };
        work(&mut Hands { rig, other: None, start: &start, waiting: VecDeque::new() })
    })
}

impl Hands<'_> {
    /// Parses a piece, here or there, and hands on what is parsed, in the order of the pieces.
    pub(crate) fn parse(&mut self, piece: &[u8], mut take: impl FnMut(ParsedPiece)) {
        if self.other.is_none() {
            let ((pieces, theirs), (ours, parsed)) = (channel(), channel());
            // Without another thread everything is parsed here.
            self.other = (self.start)(theirs, ours).then_some(Other { pieces, parsed, busy: 0 });
        }
        match &mut self.other {
            Some(other) if other.busy < AHEAD && other.pieces.send(piece.to_vec()).is_ok() => {
                other.busy += 1;
                self.waiting.push_back(None);
            }
            Some(_) | None => self.waiting.push_back(Some(ParsedPiece::parse(piece, self.rig))),
        }
        self.hand_on(false, &mut take);
    }

    /// Waits for what is left.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(ParsedPiece)) {
        self.hand_on(true, &mut take);
    }

    fn hand_on(&mut self, to_the_end: bool, take: &mut impl FnMut(ParsedPiece)) {
        while let Some(first) = self.waiting.front_mut() {
            let parsed = first.take().or_else(|| {
                let other = self.other.as_mut()?;
                let parsed = if to_the_end { other.parsed.recv().ok() } else { other.parsed.try_recv().ok() };
                other.busy -= usize::from(parsed.is_some());
                parsed
            });
            let Some(parsed) = parsed else { break };
            self.waiting.pop_front();
            take(parsed);
        }
    }
}
