//! Attributes: values that programs attach to communicators, datatypes and windows.

/// The attributes of an object.
#[derive(Default)]
pub struct Attributes;
