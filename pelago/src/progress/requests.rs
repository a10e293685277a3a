//! What other PEs' processors do for this one, until their answers come.

use crate::endpoint::Endpoint;
use crate::endpoint::parcel::Home;
use pelago_fabric::{AtomicKind, Token};
use std::sync::Arc;

/// What another PE's processor does for this one.
pub(super) struct Request {
    pub(super) what: Asked,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) token: Option<Token>,
}

/// What to do with the answer.
pub(super) enum Asked {
    /// An atomic; its old value goes there, unless that is null.
    Atomic { kind: AtomicKind, fetched: *mut u8 },
    /// A parcel; what was gathered goes to these places, one after the other. None for a scattered one.
    Parcel(Vec<Home>),
}

// SAFETY: `fetched` is written once, when the answer comes; whoever made the request keeps it valid till
// then.
unsafe impl Send for Request {}

impl Request {
    fn is_for_parcel(&self) -> bool {
        matches!(self.what, Asked::Parcel(_))
    }
}

/// The requests that wait for their answers, by number.
#[derive(Default)]
pub(super) struct Requests {
    slots: Vec<Option<Request>>,
    free: Vec<u32>,
    /// How many of them are for parcels.
    pub(super) parcels: usize,
}

impl Requests {
    pub(super) fn add(&mut self, request: Request) -> u32 {
        self.parcels += usize::from(request.is_for_parcel());
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[number as usize] = Some(request);
        number
    }

    /// The request of that number, if there is one.
    pub(super) fn take(&mut self, number: u32) -> Option<Request> {
        let request = self.slots.get_mut(number as usize)?.take()?;
        self.parcels -= usize::from(request.is_for_parcel());
        self.free.push(number);
        Some(request)
    }
}
