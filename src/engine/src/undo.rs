//! Taking commands back, and doing them again. Each entry of the two lists holds the commands that lead back, not the
//! state as it was: whatever else happened meanwhile stays, and a command that no longer applies is refused like any
//! other. Undoing finds out by itself how to redo, because what leads back has a way back of its own.

use serde::{Deserialize, Serialize};

use crate::command::Command;
use crate::state::State;

/// How many operator commands can be taken back.
const DEPTH: usize = 50;

/// An operator's command, and how to take it back; in the list of what was taken back, how to do it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Undoable {
    /// The command as a person would type it.
    pub did: String,
    /// What takes it back.
    pub inverse: Vec<Command>,
    /// Why nothing can, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cannot: Option<String>,
}

/// One key of the config file from one entry to another. An entry is written as in the file, comments included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigEdit {
    /// The dotted key.
    pub key: String,
    /// What stands in the file; none if nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// What is to stand there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl ConfigEdit {
    /// The way back.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self { key: self.key.clone(), before: self.after.clone(), after: self.before.clone() }
    }
}

impl State {
    /// The operator command that `undo` would take back, or say of why it cannot.
    pub fn undoable(&self) -> Option<&Undoable> {
        self.undo.last()
    }

    /// The command that was taken back and that `redo` would do again.
    pub fn redoable(&self) -> Option<&Undoable> {
        self.redo.last()
    }

    /// Something new was done: what was taken back before it is out of reach, as in any editor.
    pub(crate) fn apply_did(&mut self, undoable: &Undoable) {
        self.redo.clear();
        self.put_on_undo(undoable.clone());
    }

    pub(crate) fn apply_undid(&mut self, did: &str, again: &[Command]) {
        self.undo.pop();
        if !again.is_empty() {
            self.redo.push(Undoable { did: did.to_owned(), inverse: again.to_vec(), cannot: None });
        }
    }

    pub(crate) fn apply_redid(&mut self, did: &str, inverse: &[Command]) {
        self.redo.pop();
        if !inverse.is_empty() {
            self.put_on_undo(Undoable { did: did.to_owned(), inverse: inverse.to_vec(), cannot: None });
        }
    }

    fn put_on_undo(&mut self, undoable: Undoable) {
        self.undo.push(undoable);
        if self.undo.len() > DEPTH {
            self.undo.remove(0);
        }
    }
}
