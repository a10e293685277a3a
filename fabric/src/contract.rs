//! The contract of a provider, and the enum that dispatches to the one in use.

use crate::types::{Completions, FabricResult, Key, Limits, Pe, Remote, Status};
use std::ptr::NonNull;

/// An endpoint of a fabric: one PE's door to all others.
///
/// Control plane: open the endpoint (each provider its own way), carry [`address`](Provider::address) to the
/// others, [`connect`](Provider::connect), [`register`](Provider::register) the memory that peers may reach.
/// Data plane: the calls that answer a [`Status`], any number outstanding, complete in any order. `progress`
/// moves what is pending; a provider may also move it in any other call, or in hardware.
pub trait Provider {
    /// The provider's name, as settings and reports write it.
    const NAME: &'static str;

    /// What this endpoint can do.
    fn limits(&self) -> Limits;

    /// The endpoint's address, for the peers; meaningful to the same provider only.
    fn address(&self) -> Vec<u8>;

    /// Makes all peers reachable. `lookup` answers a PE's [`address`](Provider::address); a provider asks
    /// only for those that it needs. Every PE of the fabric calls this, and it may wait for the others.
    ///
    /// # Errors
    /// If a peer cannot be reached or does not come in time.
    fn connect(&mut self, lookup: &mut dyn FnMut(Pe) -> FabricResult<Vec<u8>>) -> FabricResult<()>;

    /// Lets peers reach `bytes` bytes from `start` under `key`. Every PE registers a region of the same
    /// length under the same key. The memory outlives the endpoint.
    ///
    /// # Errors
    /// If the provider cannot expose this memory, or the key is taken.
    fn register(&mut self, key: Key, start: NonNull<u8>, bytes: usize) -> FabricResult<()>;

    /// Writes `bytes` bytes from `source` to `target` in `pe`'s memory. Up to [`Limits::inject_bytes`] the
    /// source is reusable at return, whatever the status; beyond, when the put is complete.
    ///
    /// # Safety
    /// `source` is valid for reads for as long as said above; the target lies inside the region registered.
    unsafe fn put(&self, pe: Pe, source: *const u8, bytes: usize, target: Remote) -> Status;

    /// Reads `bytes` bytes from `source` in `pe`'s memory to `target`.
    ///
    /// # Safety
    /// `target` is valid for writes until the get is complete; the source lies inside the region registered.
    unsafe fn get(&self, pe: Pe, target: *mut u8, bytes: usize, source: Remote) -> Status;

    /// Sends a message: 64 bits and a payload of at most [`Limits::message_bytes`]. The payload is reusable
    /// at return. Messages between two PEs arrive in the order sent, once; messages and puts are not ordered.
    fn send(&self, pe: Pe, header: u64, payload: &[u8]) -> Status;

    /// Moves what is pending and hands arrived messages to `deliver` (sender, header, payload). Returns how
    /// many were delivered. `deliver` must not call back into this endpoint's `progress`.
    ///
    /// # Errors
    /// If the fabric has failed or a peer is lost; the error surfaces here, once.
    fn progress(&self, deliver: &mut dyn FnMut(Pe, u64, &[u8])) -> FabricResult<usize>;

    /// How many operations of this endpoint are complete.
    fn completions(&self) -> Completions;
}

/// Writes the enum of all providers and its dispatch: one line a provider, one `match` a call.
macro_rules! providers {
    ($($(#[$doc:meta])* $variant:ident($provider:ty)),+ $(,)?) => {
        /// The provider in use, chosen at run time.
        pub enum Net { $($(#[$doc])* $variant($provider)),+ }

        impl Net {
            /// The names of all providers in this build.
            pub const NAMES: &'static [&'static str] = &[$(<$provider>::NAME),+];

            /// The name of the provider in use.
            pub fn name(&self) -> &'static str {
                match self { $(Net::$variant(_) => <$provider>::NAME),+ }
            }
        }

        impl Provider for Net {
            const NAME: &'static str = "net";

            fn limits(&self) -> Limits {
                match self { $(Net::$variant(net) => net.limits()),+ }
            }

            fn address(&self) -> Vec<u8> {
                match self { $(Net::$variant(net) => net.address()),+ }
            }

            fn connect(&mut self, lookup: &mut dyn FnMut(Pe) -> FabricResult<Vec<u8>>) -> FabricResult<()> {
                match self { $(Net::$variant(net) => net.connect(lookup)),+ }
            }

            fn register(&mut self, key: Key, start: NonNull<u8>, bytes: usize) -> FabricResult<()> {
                match self { $(Net::$variant(net) => net.register(key, start, bytes)),+ }
            }

            unsafe fn put(&self, pe: Pe, source: *const u8, bytes: usize, target: Remote) -> Status {
                // SAFETY: the caller keeps the contract, which is that of the provider in use.
                match self { $(Net::$variant(net) => unsafe { net.put(pe, source, bytes, target) }),+ }
            }

            unsafe fn get(&self, pe: Pe, target: *mut u8, bytes: usize, source: Remote) -> Status {
                // SAFETY: the caller keeps the contract, which is that of the provider in use.
                match self { $(Net::$variant(net) => unsafe { net.get(pe, target, bytes, source) }),+ }
            }

            fn send(&self, pe: Pe, header: u64, payload: &[u8]) -> Status {
                match self { $(Net::$variant(net) => net.send(pe, header, payload)),+ }
            }

            fn progress(&self, deliver: &mut dyn FnMut(Pe, u64, &[u8])) -> FabricResult<usize> {
                match self { $(Net::$variant(net) => net.progress(deliver)),+ }
            }

            fn completions(&self) -> Completions {
                match self { $(Net::$variant(net) => net.completions()),+ }
            }
        }
    };
}

providers! {
    /// Mapped memory of the PEs of one node.
    Shm(crate::shm::Shm),
    /// The smallest provider that keeps the contract, inside one process.
    Template(crate::template::Template),
}
