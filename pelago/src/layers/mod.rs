//! Tests of the layers of `pelago-core` that need PEs and arrays.

mod affinity;
mod block;
mod messages;
mod nodes;
mod parcels;
mod plans;
mod progress;
