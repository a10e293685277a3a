//! The ground of all other modules, which it does not know: the types and constants of C, the data of the
//! fast path, and the messages about mistakes.

pub(crate) mod abi;
pub(crate) mod fault;
pub(crate) mod hot;
pub(crate) mod say;
