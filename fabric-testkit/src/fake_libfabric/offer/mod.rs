//! What the library offers: its providers, and how they fit what a caller asks for.

pub(super) mod info;
pub(super) mod matching;
pub(super) mod profile;
pub(super) mod text;
