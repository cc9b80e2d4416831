//! When it will be done: what is measured, what is guessed, what holds up the end, what never ends.
