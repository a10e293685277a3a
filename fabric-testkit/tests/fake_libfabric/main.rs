//! The fake libfabric, driven through its own tables: what its providers demand they refuse to do without,
//! and what they leave open they do late. Also the fake libfabric as a shared library, and endpoints that
//! belong to no job or to another one.

mod atomics;
mod demands;
mod messages;
mod objects;
mod offers;
mod progress;
mod shared_library;
mod side;
mod strangers;

/// All providers.
const PROVIDERS: [&str; 4] = ["plain", "like-verbs", "like-cxi", "null"];
