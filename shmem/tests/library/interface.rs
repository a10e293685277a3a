//! The interface as it is installed: its files, its names and its prototypes.

mod headers;
mod install;
mod interpose;
mod symbols;
