//! The requests that other PEs' processors execute for this PE, until their replies arrive.

use crate::endpoint::Endpoint;
use crate::endpoint::parcel::Home;
use pelago_fabric::{AtomicKind, Token};
use std::sync::Arc;

/// A request that another PE's processor executes for this PE.
pub struct Request {
    pub what: Asked,
    pub endpoint: Arc<Endpoint>,
    pub token: Option<Token>,
}

/// The operation requested, which decides what happens with the reply.
pub enum Asked {
    /// An atomic; its old value is written to `fetched`, unless that is null.
    Atomic { kind: AtomicKind, fetched: *mut u8 },
    /// A parcel; gathered data are written to these ranges, one after the other. There are none for a
    /// scatter.
    Parcel(Vec<Home>),
}

// SAFETY: `fetched` is written once, when the reply arrives; the caller that made the request keeps it valid
// until then.
unsafe impl Send for Request {}

impl Request {
    fn is_for_parcel(&self) -> bool {
        matches!(self.what, Asked::Parcel(_))
    }
}

/// The requests that wait for their replies, by number.
#[derive(Default)]
pub struct Requests {
    slots: Vec<Option<Request>>,
    free: Vec<u32>,
    /// The number of parcels among them.
    pub parcels: usize,
}

impl Requests {
    pub fn add(&mut self, request: Request) -> u32 {
        self.parcels += usize::from(request.is_for_parcel());
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[number as usize] = Some(request);
        number
    }

    /// Removes and returns the request with a number, if there is one.
    pub fn take(&mut self, number: u32) -> Option<Request> {
        let request = self.slots.get_mut(number as usize)?.take()?;
        self.parcels -= usize::from(request.is_for_parcel());
        self.free.push(number);
        Some(request)
    }
}
