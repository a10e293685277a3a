//! Requests whose payload is written in place (GASNet: negotiated payload).

use super::{Am, Handler};
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::coll::schedule::Rank;
use pelago_core::job::callback;
use pelago_core::messages::peer_ring::PeerRing;
use pelago_core::messages::wire::{ARG_WORDS_MAX, Head, Words};
use pelago_fabric::shm::ring::Claim;
use pelago_fabric::sync::Ordering;
use std::marker::PhantomData;

/// Room for a request; see [`Am::prepare`]. Dropping it gives the request up.
///
/// ```
/// use pelago::am::{HandlerLock, Handlers};
/// # pelago::spmd(2, |world| -> pelago::Result<()> {
/// let seen = HandlerLock::new(Vec::new());
/// let mut handlers = Handlers::new();
/// let note = handlers.add("note", |message| seen.lock().extend_from_slice(message.payload()));
/// world.team().serve(handlers, |am| {
///     let mut request = am.prepare(1 - am.my_rank(), 100)?;
///     request.payload()[..3].copy_from_slice(b"abc");
///     request.send(note, &[], 3)
/// })??;
/// assert_eq!(seen.into_inner(), b"abc");
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
#[must_use = "the request is given up when this is dropped"]
pub struct Prepared<'a> {
    am: &'a Am<'a>,
    to: Rank,
    most: usize,
    place: Option<Place<'a>>,
    /// It is counted by the thread that prepares it.
    thread: PhantomData<*const ()>,
}

/// Where the payload is written.
enum Place<'a> {
    /// In the target's ring.
    Ring(&'a PeerRing, Claim),
    /// In a buffer, for the network.
    Buffer(Vec<u8>),
}

/// Bytes of arguments before the payload, whose number is not known when the room is claimed.
const WIDE_BYTES: usize = 8 * ARG_WORDS_MAX;

impl<'a> Prepared<'a> {
    /// Waits for room for a request of at most `most` bytes, which fit.
    pub(super) fn new(am: &'a Am<'_>, to: Rank, most: usize) -> Prepared<'a> {
        let place = match am.inner.peer(to).peer_ring() {
            None => Place::Buffer(vec![0; most]),
            Some(peer_ring) => {
                let mut claim = peer_ring.try_claim(WIDE_BYTES + most);
                if claim.is_none() {
                    am.world.core().wait(am.inner.room(to), || {
                        if claim.is_none() {
                            claim = peer_ring.try_claim(WIDE_BYTES + most);
                        }
                        claim.is_some()
                    });
                }
                Place::Ring(peer_ring, claim.expect("a wait ends when there is room"))
            }
        };
        callback::prepare(true);
        Prepared { am, to, most, place: Some(place), thread: PhantomData }
    }

    /// The place where the payload is written; its earlier contents have no meaning.
    pub fn payload(&mut self) -> &mut [u8] {
        match &mut self.place {
            Some(Place::Ring(peer_ring, claim)) => {
                let start = peer_ring.place(claim, WIDE_BYTES);
                // SAFETY: the claimed cells belong to this PE alone until they are sent, and have room for
                // this many bytes; shared memory is initialised.
                unsafe { std::slice::from_raw_parts_mut(start, self.most) }
            }
            Some(Place::Buffer(buffer)) => buffer,
            None => &mut [],
        }
    }

    /// Sends the request with the first `bytes` bytes of the payload.
    ///
    /// # Errors
    /// If there is no such handler, there are more than 16 arguments, or more bytes than were asked for; the
    /// request is given up then.
    #[track_caller]
    pub fn send(mut self, handler: Handler, args: &[u32], bytes: usize) -> Result<()> {
        let (am, to, operation) = (self.am, self.to, "a prepared active message");
        am.inner.check(operation, to, handler, args)?;
        if bytes > self.most {
            let (me, max_bytes) = (am.world.my_pe(), self.most);
            return Err(ErrorKind::MessageTooLong { me, operation, bytes, max_bytes }.into());
        }
        let place = self.place.take();
        // No request is prepared any more, so the calls that follow may wait.
        drop(self);
        match place {
            Some(Place::Ring(peer_ring, claim)) => {
                let head = Head { is_wide: true, ..am.inner.head(to, handler, args, false) };
                let words = Words::new(args, None);
                am.inner.table.sent.fetch_add(1, Ordering::Relaxed);
                let bytes = WIDE_BYTES + bytes;
                peer_ring.send_claimed(claim, am.world.my_pe(), head.pack(), words.as_slice(), bytes);
                am.inner.look();
                Ok(())
            }
            Some(Place::Buffer(buffer)) => am.medium(to, handler, args, &buffer[..bytes]),
            None => Ok(()),
        }
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        callback::prepare(false);
        if let Some(Place::Ring(peer_ring, claim)) = self.place.take() {
            peer_ring.give_up(claim);
        }
    }
}
