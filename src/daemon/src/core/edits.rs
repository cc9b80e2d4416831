//! Edits of the config file that commands ask for. The engine decides about them but writes no files, so each is made
//! right before its command is decided. A crash in between leaves an edited file and a list of commands that does not
//! know it yet; asking again finds the edit made and goes on from there.

use yard_engine::undo::ConfigEdit;
use yard_engine::{Command, Kitchen, Refusal};

use super::Core;
use crate::config::{self, Change, PutBack};

impl Core {
    /// Makes the edits that a command asks for, and notes in the kitchen what became of them.
    pub(super) fn edit_config(&mut self, command: &Command, kitchen: &mut Kitchen) -> Option<Change> {
        let path = self.town.config();
        let mut change = None;
        match command {
            // Whoever serves the town has its journal open, and the address may hold a password.
            Command::Configure { key, .. } if key == config::STORE => {
                let refusal =
                    Refusal::new("store-moves", "the journal cannot move while somebody serves the town")
                        .hint("ym stop, ym journal copy, then ym config set store");
                kitchen.edits.insert(key.clone(), Err(refusal));
            }
            Command::Configure { key, value } => {
                let made = match value {
                    Some(value) => config::set(&path, key, value),
                    None => config::unset(&path, key),
                };
                let made = made.map_err(Refusal::from).inspect(|made| change = Some(made.clone()));
                kitchen.edits.insert(key.clone(), made.map(|made| made.edit));
            }
            Command::ConfigPutBack { edit } => self.put_back(edit, kitchen),
            Command::Undo | Command::Redo => {
                let state = self.store.state();
                let entry =
                    if *command == Command::Undo { state.undoable() } else { state.redoable() }.cloned();
                for command in entry.iter().flat_map(|entry| &entry.inverse) {
                    if let Command::ConfigPutBack { edit } = command {
                        self.put_back(edit, kitchen);
                    }
                }
            }
            _ => return None,
        }
        if !kitchen.edits.is_empty() {
            // What was just changed holds from this turn on.
            self.follow_config();
        }
        change
    }

    fn put_back(&self, edit: &ConfigEdit, kitchen: &mut Kitchen) {
        let outcome = match config::put_back(&self.town.config(), edit) {
            Ok(PutBack::Done) => Ok(edit.clone()),
            Ok(PutBack::Otherwise(refusal)) => Err(refusal),
            Err(error) => Err(error.into()),
        };
        kitchen.edits.insert(edit.key.clone(), outcome);
    }
}
