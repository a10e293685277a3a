//! OpenSHMEM 1.6 for C and C++, on the Pelago runtime.
//!
//! `api/` is the table of the interface, chapter by chapter as the standard has them; `expand.rs` makes C
//! functions of its lines. Their implementations are in the modules named after the chapters, which stand on
//! the layers `base`, `handles`, `symmetric` and `library`. There is one `library::Library` in a process: the
//! world, the symmetric heap and the program's static data as two symmetric arrays of bytes, and the teams. A
//! put goes through `api/rma.rs` and `rma.rs`, where the fast path (`base/hot.rs`) completes it; all other
//! cases go through one cold function, `library/operation.rs`, and the runtime.
//!
//! The standard's semantics are quoted above the functions that implement them.

#[macro_use]
mod expand;
#[macro_use]
mod types;

// The layers, from the ground up.
mod base;
mod handles;
mod library;
mod symmetric;

// The chapters of the standard, and extensions.
mod amo;
mod cache;
mod collective;
mod context;
mod extension;
mod foreign;
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

/// The table of the interface.
mod api {
    #[allow(unused_imports, reason = "not every chapter names every type")]
    use crate::base::abi::*;

    mod amo;
    mod cache;
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
