//! The replies that an endpoint waits for: the results of remote procedures.
//!
//! Invariant: a ticket is used for one call at a time. Its number alone does not name a call, as it is used
//! again; together with its generation it does, so a reply that no call waits for is detected.

use crate::base::locked::locked;
use pelago_fabric::sync::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The place of one reply.
#[derive(Default)]
pub struct Slot {
    has_come: AtomicBool,
    bytes: Mutex<Vec<u8>>,
}

impl Slot {
    /// Whether the reply has arrived.
    pub fn has_come(&self) -> bool {
        // SYNC POINT reply: acquires the reply, and the stores of the handler.
        self.has_come.load(Ordering::Acquire)
    }

    /// The bytes of the reply.
    pub fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        locked(&self.bytes)
    }
}

/// The call that a reply belongs to, as the reply names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub number: u32,
    pub generation: u32,
}

/// All places of an endpoint.
#[derive(Default)]
pub struct Replies(Mutex<Places>);

#[derive(Default)]
struct Places {
    places: Vec<Place>,
    free: Vec<u32>,
}

struct Place {
    slot: Arc<Slot>,
    generation: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// A call is under way.
    Awaited,
    /// A call is under way whose reply is no longer needed.
    Abandoned,
    /// The reply has arrived.
    Come,
}

impl Replies {
    fn places(&self) -> MutexGuard<'_, Places> {
        locked(&self.0)
    }

    /// A place for the reply to a new call.
    pub fn open(&self) -> (Ticket, Arc<Slot>) {
        let mut places = self.places();
        let number = places.free.pop().unwrap_or_else(|| {
            places.places.push(Place { slot: Arc::default(), generation: 0, state: State::Free });
            u32::try_from(places.places.len() - 1).expect("fewer calls than that are under way")
        });
        let place = &mut places.places[number as usize];
        place.generation = place.generation.wrapping_add(1);
        place.state = State::Awaited;
        place.slot.has_come.store(false, Ordering::Relaxed);
        (Ticket { number, generation: place.generation }, Arc::clone(&place.slot))
    }

    /// Stores a reply that has arrived. `None` if there is no such call.
    pub fn deliver(&self, ticket: Ticket, bytes: &[u8]) -> Option<()> {
        let mut places = self.places();
        let place = places.places.get_mut(ticket.number as usize)?;
        if place.generation != ticket.generation {
            return None;
        }
        match place.state {
            State::Awaited => {
                let mut room = place.slot.bytes();
                room.clear();
                room.extend_from_slice(bytes);
                place.state = State::Come;
                // SYNC POINT reply: releases the reply.
                place.slot.has_come.store(true, Ordering::Release);
            }
            State::Abandoned => {
                place.state = State::Free;
                places.free.push(ticket.number);
            }
            State::Free | State::Come => return None,
        }
        Some(())
    }

    /// The reply is no longer needed, or it was taken.
    pub fn close(&self, ticket: Ticket) {
        let mut places = self.places();
        let place = &mut places.places[ticket.number as usize];
        match place.state {
            State::Awaited => place.state = State::Abandoned,
            _ => {
                place.state = State::Free;
                places.free.push(ticket.number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_finds_its_call_and_no_other() {
        let replies = Replies::default();
        let (first, slot) = replies.open();
        let (second, _) = replies.open();
        assert_ne!(first.number, second.number);
        assert!(!slot.has_come());
        assert_eq!(replies.deliver(first, b"yes"), Some(()));
        assert!(slot.has_come());
        assert_eq!(*slot.bytes(), b"yes");
        assert_eq!(replies.deliver(first, b"twice"), None);
        replies.close(first);
        assert_eq!(replies.deliver(first, b"late"), None);
        let (again, slot) = replies.open();
        assert_eq!((again.number, again.generation), (first.number, first.generation + 1));
        assert!(!slot.has_come());
        assert_eq!(replies.deliver(first, b"old"), None);
        assert_eq!(replies.deliver(Ticket { number: 2, generation: 1 }, b"none"), None);
    }

    #[test]
    fn an_abandoned_place_is_free_when_its_answer_has_come() {
        let replies = Replies::default();
        let (first, _) = replies.open();
        replies.close(first);
        assert_eq!(replies.open().0.number, 1);
        assert_eq!(replies.deliver(first, b"unwanted"), Some(()));
        assert_eq!(replies.open().0.number, 0);
    }
}
