//! Endpoints: how operations reach PEs that are not mapped, and the counts of what was started there.

pub(crate) mod channel;
pub(crate) mod completion_counter;
pub(crate) mod contexts;
pub(crate) mod parcel;
