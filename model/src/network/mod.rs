//! The links between nodes while a simulation runs: the three models of contention.

pub(crate) mod fluid;
pub(crate) mod links;
