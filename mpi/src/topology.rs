//! Virtual topologies.

/// The topology of a communicator.
pub enum Topology {}
