//! What few records of a kind have. It takes no memory in those that do not have it, and reads as if they had it empty.

use std::ops::{Deref, DerefMut};

use serde::{Serialize, Serializer};

/// Fields that few records fill in.
pub trait Unfilled: Default + PartialEq + 'static {
    /// All of them empty.
    fn unfilled() -> &'static Self;
}

/// Those of one record.
#[derive(Debug, Clone)]
pub struct Seldom<T>(Option<Box<T>>);

impl<T> Default for Seldom<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Unfilled> From<T> for Seldom<T> {
    #[inline]
    fn from(fields: T) -> Self {
        Self((fields != *T::unfilled()).then(|| Box::new(fields)))
    }
}

impl<T: Unfilled> Deref for Seldom<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or_else(|| T::unfilled())
    }
}

impl<T: Unfilled> DerefMut for Seldom<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: Unfilled> PartialEq for Seldom<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Unfilled + Eq> Eq for Seldom<T> {}

impl<T: Unfilled + Serialize> Serialize for Seldom<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}
