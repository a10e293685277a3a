//! libfabric: opening it, and its binding against the headers (full tier). What goes on over it is tested by
//! the crate `pelago-fabric-testkit`, over a fake libfabric.

#[cfg(feature = "full")]
mod layout;
mod library;
