//! The answers that an endpoint waits for: those of remote procedures.
//!
//! Invariant: a ticket is used for one call at a time. Its number alone does not name a call, as it is used
//! again; together with its generation it does, so an answer that nobody waits for is found out.

use crate::base::locked::locked;
use pelago_fabric::sync::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The place of one answer.
#[derive(Default)]
pub(crate) struct Slot {
    has_come: AtomicBool,
    bytes: Mutex<Vec<u8>>,
}

impl Slot {
    /// Whether the answer is there.
    pub(crate) fn has_come(&self) -> bool {
        // SYNC POINT reply: acquires the answer, and what the handler has done.
        self.has_come.load(Ordering::Acquire)
    }

    /// The bytes of the answer.
    pub(crate) fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        locked(&self.bytes)
    }
}

/// What an answer names: the call that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) number: u32,
    pub(crate) generation: u32,
}

/// All places of an endpoint.
#[derive(Default)]
pub(crate) struct Replies(Mutex<Places>);

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
    /// A call is under way whose answer nobody wants any more.
    Abandoned,
    /// The answer is there.
    Come,
}

impl Replies {
    fn places(&self) -> MutexGuard<'_, Places> {
        locked(&self.0)
    }

    /// A place for the answer to a new call.
    pub(crate) fn open(&self) -> (Ticket, Arc<Slot>) {
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

    /// An answer has come. `None` if there is no such call.
    pub(crate) fn deliver(&self, ticket: Ticket, bytes: &[u8]) -> Option<()> {
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
                // SYNC POINT reply: releases the answer.
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

    /// Nobody waits for the answer any more, or it was taken.
    pub(crate) fn close(&self, ticket: Ticket) {
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
