//! The memory of a PE and of its node: heaps, the arrays in them, and the addresses where the parts of other
//! PEs are mapped.

pub mod arrays;
pub mod heap;
pub mod members;
pub mod route;
pub mod segment;
pub mod usage;
