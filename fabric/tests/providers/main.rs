//! Tests that are specific to shared memory and to the simulated network. The crate `pelago-fabric-testkit`
//! tests the rules for all providers.

mod shm;
mod sim;
