//! What a bead says at length. The journal holds only what scheduling needs; the rest is read at dispatch time, from
//! the place where the last reading found it, and from a search if the text has changed since.

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memchr::{memchr, memmem, memrchr};
use yard_engine::{BeadId, Numbers, Timestamp};

use crate::file;
use crate::record::Record;

/// What only a dispatch needs to know of a bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    /// The long text.
    pub description: Option<String>,
}

/// Answers for one source what its beads say at length. A handle that any thread may keep; the source fills it.
#[derive(Debug, Clone)]
pub struct Descriptions {
    shelf: Arc<Mutex<Shelf>>,
}

/// The text that was read last, and where in it each bead stands.
#[derive(Debug)]
pub(crate) struct Shelf {
    text: Text,
    numbers: Numbers,
    /// By slot; of one that serves no bead, the last it served.
    ids: Vec<BeadId>,
    /// By slot.
    places: Vec<Place>,
}

/// Where a record stands in a text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    start: u64,
    /// Nothing stands nowhere.
    len: u32,
}

impl Place {
    pub(crate) fn new(start: usize, len: usize) -> Self {
        Self { start: start as u64, len: u32::try_from(len).unwrap_or(0) }
    }

    pub(crate) fn range(self) -> Option<Range<usize>> {
        let start = self.start as usize;
        (self.len > 0).then(|| start..start + self.len as usize)
    }
}

#[derive(Debug, Clone)]
enum Text {
    /// Too big to keep, and there to be read again.
    File(PathBuf),
    /// What a command printed.
    Kept(Arc<Vec<u8>>),
}

impl Descriptions {
    pub(crate) fn of_file(path: PathBuf) -> Self {
        Self::new(Text::File(path))
    }

    pub(crate) fn of_output() -> Self {
        Self::new(Text::Kept(Arc::default()))
    }

    fn new(text: Text) -> Self {
        let shelf = Shelf { text, numbers: Numbers::default(), ids: Vec::new(), places: Vec::new() };
        Self { shelf: Arc::new(Mutex::new(shelf)) }
    }

    /// What the source says about the bead now; none if it does not have it. Reads a file: not for hot loops.
    pub fn details(&self, id: &BeadId) -> Option<Details> {
        let (text, place) = {
            let shelf = self.shelf();
            let slot = shelf.numbers.find(id, |slot| &shelf.ids[slot as usize]);
            let place = slot.and_then(|slot| shelf.places.get(slot as usize)?.range());
            (shelf.text.clone(), place)
        };
        match text {
            Text::Kept(text) => in_record(text.get(place?)?, id).map(|(details, _)| details),
            Text::File(path) => {
                let line = place.and_then(|place| line_at(&path, place).ok());
                let found = line.and_then(|line| in_record(&line, id)).map(|(details, _)| details);
                found.or_else(|| anywhere(&path, id))
            }
        }
    }

    pub(crate) fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    /// The slot of a bead; `free` is taken if it has none yet.
    pub(crate) fn slot_of(&mut self, id: &BeadId, free: u32) -> u32 {
        let slot = self.numbers.find_or_give(id, free, |slot| &self.ids[slot as usize]);
        if slot == free {
            match self.ids.get_mut(slot as usize) {
                Some(place) => place.clone_from(id),
                None => self.ids.push(id.clone()),
            }
        }
        slot
    }

    /// Makes room for so many more beads.
    pub(crate) fn reserve(&mut self, beads: usize) {
        self.ids.reserve_exact(beads);
        self.numbers.reserve(beads, |slot| &self.ids[slot as usize]);
    }

    /// Takes a bead's slot away; says which bead it was.
    pub(crate) fn forget(&mut self, slot: u32) -> BeadId {
        let id = self.ids[slot as usize].clone();
        self.numbers.forget(&id, |slot| &self.ids[slot as usize]);
        id
    }

    /// Knows nothing any more but where the text is.
    pub(crate) fn clear(&mut self) {
        (self.numbers, self.ids, self.places) = (Numbers::default(), Vec::new(), Vec::new());
    }

    /// Where each bead stands in the text just read, by slot; and that text, if it cannot be read again.
    pub(crate) fn replace(&mut self, places: impl Iterator<Item = Place>, printed: Option<Arc<Vec<u8>>>) {
        self.places.clear();
        self.places.extend(places);
        if let Some(printed) = printed {
            self.text = Text::Kept(printed);
        }
    }
}

/// The details in a record, if it is about that bead, and how new they are.
fn in_record(json: &[u8], id: &BeadId) -> Option<(Details, Option<Timestamp>)> {
    let record = Record::parse(json).ok()??;
    (record.id() == id).then(|| (Details { description: record.description() }, record.updated_at()))
}

fn line_at(path: &Path, place: Range<usize>) -> io::Result<Vec<u8>> {
    let file = file::open(path)?;
    let mut line = vec![0; place.len()];
    file.read_exact_at(&mut line, place.start as u64)?;
    Ok(line)
}

/// Searches the whole file for the newest record of a bead.
fn anywhere(path: &Path, id: &BeadId) -> Option<Details> {
    let text = file::read(path).ok()?.text;
    let quoted = format!("\"{id}\"");
    let mut newest: Option<(Details, Option<Timestamp>)> = None;
    let mut searched = 0;
    for hit in memmem::find_iter(&text, quoted.as_bytes()) {
        if hit < searched {
            continue;
        }
        let start = memrchr(b'\n', &text[..hit]).map_or(0, |newline| newline + 1);
        let end = memchr(b'\n', &text[hit..]).map_or(text.len(), |newline| hit + newline);
        searched = end;
        if let Some(found) = in_record(&text[start..end], id)
            && newest.as_ref().is_none_or(|(_, updated)| found.1 >= *updated)
        {
            newest = Some(found);
        }
    }
    newest.map(|(details, _)| details)
}
