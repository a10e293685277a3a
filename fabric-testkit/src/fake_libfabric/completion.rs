//! Completions: reports the outcome of operations to queues and counters of an endpoint.
//!
//! Invariant: an operation is counted before its entries can be read, and waiting threads are woken after
//! both.

use super::fault::Fault;
use super::world::{CHANGED, Id, World, at};

/// The outcome of an operation, as in an entry of a queue.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entry {
    pub(crate) context: usize,
    pub(crate) flags: u64,
    pub(crate) bytes: usize,
    /// The address of a received message.
    pub(crate) buffer: usize,
    pub(crate) fault: Option<Fault>,
}

/// Completes an operation of an endpoint with these entries; it has failed if one of them has a fault.
pub(crate) fn complete(
    world: &mut World,
    endpoint: Id,
    queue: Id,
    counter: Option<Id>,
    operation: &str,
    entries: &[Entry],
) {
    let fault = entries.iter().find_map(|entry| entry.fault);
    // Cancellations are not logged, because the caller has requested them.
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

/// Wakes the threads that wait for the queues of an endpoint.
pub(crate) fn wake(world: &World, id: Id) {
    if let Some(endpoint) = world.endpoints.get(&id) {
        for queue in endpoint.queues() {
            world.queues[&queue].wake();
        }
    }
    CHANGED.notify_all();
}
