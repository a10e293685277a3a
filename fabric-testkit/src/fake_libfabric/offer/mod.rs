//! Offers of the library: its providers, and their matching with the hints of a caller.

pub(super) mod info;
pub(super) mod matching;
pub(super) mod profile;
pub(super) mod text;
