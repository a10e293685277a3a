//! The stand-in for libfabric (`fabric/examples/ofi_stand_in`), driven through its own tables: what its
//! providers demand they refuse to do without, and what they leave open they do late.

mod atomics;
mod demands;
mod messages;
mod objects;
mod offers;
mod progress;
pub mod side;

/// All providers.
const PROVIDERS: [&str; 4] = ["plain", "like-verbs", "like-cxi", "hollow"];
