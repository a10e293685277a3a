//! The installed OpenSHMEM library: its C programs on every kind of job, its headers, symbols and wrappers.

mod common;

mod chapters;
mod checks;
mod examples;
mod extensions;
mod interface;
mod lenient;
mod outputs;
mod programs;
#[cfg(feature = "full")]
mod shmem4py;
mod stall;
mod statics;
