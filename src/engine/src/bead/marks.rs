//! A set of beads by their numbers, small and without any order.

/// Beads that are marked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks {
    numbers: Vec<u32>,
    /// By number; shorter than the list of beads if none of the last is marked.
    marked: Vec<bool>,
}

impl Marks {
    pub(crate) fn insert(&mut self, number: u32) {
        let at = number as usize;
        if at >= self.marked.len() {
            self.marked.resize(at + 1, false);
        }
        if !std::mem::replace(&mut self.marked[at], true) {
            self.numbers.push(number);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The numbers, each once, in any order.
    pub(crate) fn into_iter(self) -> impl Iterator<Item = u32> {
        self.numbers.into_iter()
    }
}

impl Extend<u32> for Marks {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, numbers: I) {
        numbers.into_iter().for_each(|number| self.insert(number));
    }
}
