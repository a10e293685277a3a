//! What is particular to shared memory and to the simulated network. The rules that all providers keep are
//! tested by the crate `pelago-fabric-testkit`.

mod shm;
mod sim;
