//! How much time a measurement may take, and who takes part.

use crate::peers::Program;

/// What the user asked for.
#[derive(Debug, Clone)]
pub(crate) struct Effort {
    /// Small sizes and one pass: to see that everything works.
    pub(crate) quick: bool,
    /// How often everything is measured.
    pub(crate) passes: usize,
    /// How many seconds one pass may take.
    pub(crate) timeout: u64,
    /// Only these, besides ours.
    pub(crate) only: Option<Vec<Program>>,
}

impl Effort {
    /// Whether a program takes part.
    pub(crate) fn wants(&self, program: Program) -> bool {
        let is_ours = matches!(program, Program::Ym | Program::YmTmpfs | Program::Raw);
        is_ours || self.only.as_ref().is_none_or(|only| only.contains(&program))
    }

    /// This many, or a tenth of it when it is to be quick.
    pub(crate) fn size(&self, usual: usize) -> usize {
        if self.quick { (usual / 10).max(1) } else { usual }
    }
}
