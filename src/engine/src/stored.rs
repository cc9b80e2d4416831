//! How records are written: what says nothing is left out.

/// Whether a field holds what it would have if it were not written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
