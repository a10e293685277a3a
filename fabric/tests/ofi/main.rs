//! libfabric: opening it, and its binding against the headers (full tier). The crate `pelago-fabric-testkit`
//! tests the provider over a fake libfabric.

#[cfg(feature = "full")]
mod layout;
mod library;
