//! The stand-in for libfabric (`fabric/examples/ofi_stand_in`), driven through its own tables: what its
//! providers demand they refuse to do without, and what they leave open they do late.

#[path = "ofi_stand_in/atomics.rs"]
mod atomics;
#[path = "ofi_stand_in/demands.rs"]
mod demands;
#[path = "ofi_stand_in/messages.rs"]
mod messages;
#[path = "ofi_stand_in/objects.rs"]
mod objects;
#[path = "ofi_stand_in/offers.rs"]
mod offers;
#[path = "ofi_stand_in/progress.rs"]
mod progress;
#[path = "ofi_stand_in/side.rs"]
mod side;
#[path = "common/stand_in.rs"]
mod stand_in;

/// All providers.
const PROVIDERS: [&str; 4] = ["plain", "like-verbs", "like-cxi", "hollow"];
