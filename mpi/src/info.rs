//! Info objects.

/// The hints of an object.
#[derive(Default)]
pub struct Hints;
