//! libfabric: opening it, its binding against the headers (full tier), and the stand-in that other
//! tests use in its place.

#[path = "../common/stand_in.rs"]
mod installed_stand_in;

#[cfg(feature = "full")]
mod layout;
mod library;
mod stand_in;
mod strangers;
