//! The fake libfabric, called through its function tables. Its providers refuse calls that do not meet their
//! requirements, and delay everything whose time is not specified. Also the fake libfabric as a shared
//! library, and endpoints that belong to no job or to another one.

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
const PROVIDERS: [&str; 5] = ["plain", "like-verbs", "like-cxi", "null", "like-efa"];
