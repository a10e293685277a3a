//! Completions: how an endpoint is told what became of its operations.
//!
//! Invariant: an operation is counted before its entries can be taken, and who waits is woken after both.

use super::fault::Fault;
use super::world::{CHANGED, Id, World, at};

/// What became of an operation, as a queue tells it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entry {
    pub(crate) context: usize,
    pub(crate) flags: u64,
    pub(crate) bytes: usize,
    /// Where a message lies.
    pub(crate) buffer: usize,
    pub(crate) fault: Option<Fault>,
}

/// Completes an operation of an endpoint, which leaves these entries, and has failed if one of them says so.
pub(crate) fn complete(
    world: &mut World,
    endpoint: Id,
    queue: Id,
    counter: Option<Id>,
    operation: &str,
    entries: &[Entry],
) {
    let fault = entries.iter().find_map(|entry| entry.fault);
    // Who cancels knows of it.
    if let Some(fault) = fault.filter(|fault| *fault != Fault::Cancelled) {
        fault.log(operation);
    }
    if let Some(counter) = counter {
        world.counters[&counter].count(fault.is_some());
    }
    let queue = at(&mut world.queues, queue);
    entries.iter().for_each(|entry| queue.push(*entry));
    wake(world, endpoint);
}

/// Tells who waits at the queues of an endpoint that something has happened.
pub(crate) fn wake(world: &World, id: Id) {
    if let Some(endpoint) = world.endpoints.get(&id) {
        for queue in endpoint.queues() {
            world.queues[&queue].wake();
        }
    }
    CHANGED.notify_all();
}
