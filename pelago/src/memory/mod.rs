//! The memory of a PE and of its node: heaps, the arrays in them, and the addresses where the parts of other
//! PEs are mapped.

pub(crate) mod arrays;
pub(crate) mod heap;
pub(crate) mod members;
pub(crate) mod route;
pub(crate) mod segment;
pub(crate) mod usage;
