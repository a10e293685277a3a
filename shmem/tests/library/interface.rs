//! The interface as it is installed: its files, its names and its prototypes.

#[cfg(feature = "full")]
mod cmake;
mod headers;
mod install;
mod interpose;
#[cfg(feature = "full")]
mod packages;
mod symbols;
