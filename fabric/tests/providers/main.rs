//! The providers: the conformance suite on each of them, and what is particular to shared memory and to
//! the simulated network.

#[path = "../common/stand_in.rs"]
mod stand_in;

mod conformance;
mod shm;
mod sim;
