//! Fuzzing on stable Rust: every door that takes bytes from outside is a plain function `fn(&[u8])`, driven by saved inputs
//! and by what a seeded generator makes of them.
//!
//! Promises: a run with the same seed, count and corpus tries the same inputs. A target fails by panicking, by ending its
//! process (stack, memory) or by taking too long, and says nothing otherwise; the input that did it is saved, made as small
//! as a few hundred tries can make it. Inputs lie in `tests/data/fuzz/TARGET/`.

mod corpus;
mod mutate;
mod run;
mod targets;

pub use corpus::Corpus;
pub use run::{Failure, Limits, child, run, try_one};
pub use targets::TARGETS;

/// A door, and words that open more of it than chance would.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folder.
    pub name: &'static str,
    /// Takes anything; panics if a promise is broken.
    pub run: fn(&[u8]),
    /// Words of its language.
    pub words: &'static [&'static str],
}

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_saved_input_is_dealt_with() {
        for target in TARGETS {
            let corpus = Corpus::load(target.name);
            assert!(!corpus.inputs().is_empty(), "{} has no inputs to begin with", target.name);
            corpus.inputs().iter().for_each(|input| (target.run)(input));
        }
    }

    #[test]
    fn no_folder_is_without_its_target() {
        for folder in Corpus::folders() {
            assert!(target(&folder).is_some(), "tests/data/fuzz/{folder} belongs to no target");
        }
    }
}
