//! Operations of several PEs together: barriers, teams, collectives, locks, messages, events, and the arrays
//! built on them.

#[macro_use]
extern crate pelago_tests as common;

mod agreement;
mod am;
mod am_mistakes;
mod am_routes;
mod barrier;
mod coll;
mod dice;
mod distributed;
mod events;
mod failed_messages;
mod lock;
mod model;
mod online;
mod parts_of_exchanges;
mod procedures;
mod semaphore;
mod shared_array;
mod shared_copies;
mod shared_slots;
mod split_barrier;
mod team;
mod two_levels;
mod two_sided;
mod values;
