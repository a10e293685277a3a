//! OpenSHMEM 1.6 for C and C++, on the Pelago runtime.
//!
//! `api/` is the table of the interface, chapter by chapter as the standard has them; `expand.rs` makes C
//! functions of its lines. Their implementations are in the modules named after the chapters. There is one
//! `library::Library` in a process: the world, the symmetric heap and the program's static data as two
//! symmetric arrays of bytes, and the teams. A put goes through `api/rma.rs` and `rma.rs`, where the fast
//! path (`hot.rs`) completes it; all other cases go through one cold function, `library.rs`, and the runtime.
//!
//! The standard's semantics are quoted above the functions that implement them.

#[macro_use]
mod expand;
#[macro_use]
mod types;

mod abi;
mod active_set;
mod amo;
mod blocks;
mod check;
mod collective;
mod context;
mod environment;
mod extension;
mod fault;
mod foreign;
mod handles;
mod hot;
mod library;
mod lock;
mod memory;
mod order;
mod p2p;
mod reduce;
mod rma;
mod say;
mod session;
mod setup;
mod signal;
mod spans;
mod statics;
mod strided;
mod team;

/// The table of the interface.
mod api {
    #[allow(unused_imports, reason = "not every chapter names every type")]
    use crate::abi::*;

    mod amo;
    mod collective;
    mod context;
    mod extension;
    mod lock;
    mod memory;
    mod order;
    mod p2p;
    mod rma;
    mod session;
    mod setup;
    mod signal;
    mod strided;
    mod team;
}
