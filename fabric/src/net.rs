//! The providers of this build, and the enum that dispatches to the one in use.
//!
//! Invariant: the table `providers!` is the only list of providers.

use crate::amo::{Atomic, AtomicKind};
use crate::contract::{Inject, Lookup, Provider, word_of};
use crate::opening::Opening;
use crate::operation::{Amo, Get, Put, Signal};
use crate::types::{Completions, Event, FabricResult, Key, Limits, Pe, Status};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::ptr::NonNull;
use std::time::Duration;

/// Opens an endpoint for each PE of a process.
pub type Open = fn(&Opening) -> FabricResult<Vec<Net>>;

/// A provider in this build.
pub struct ProviderInfo {
    /// Its name, as settings and reports write it.
    pub name: &'static str,
    /// How processes open it; none if the provider needs more than an [`Opening`] tells.
    pub open: Option<Open>,
}

impl ProviderInfo {
    /// The provider of this name.
    pub fn named(name: &str) -> Option<&'static ProviderInfo> {
        Net::PROVIDERS.iter().find(|provider| provider.name == name)
    }
}

/// Writes the enums of all providers, their dispatch and their list: one line a provider, one `match` a call.
/// `opened by` names the function that opens the endpoints of a process by an `Opening`.
macro_rules! providers {
    (@open $variant:ident) => {
        None
    };
    (@open $variant:ident $open:path) => {
        Some(|opening| Ok($open(opening)?.into_iter().map(Net::$variant).collect()))
    };
    ($($(#[$doc:meta])* $variant:ident($provider:ty) $(opened by $open:path)?),+ $(,)?) => {
        /// The provider in use, chosen at run time.
        #[expect(clippy::large_enum_variant, reason = "there is one a channel, which keeps it where it is")]
        pub enum Net { $($(#[$doc])* $variant($provider)),+ }

        impl Net {
            /// All providers in this build.
            pub const PROVIDERS: &'static [ProviderInfo] = &[$(ProviderInfo {
                name: <$provider>::NAME,
                open: providers!(@open $variant $($open)?),
            }),+];

            /// The name of the provider in use.
            pub fn name(&self) -> &'static str {
                match self { $(Net::$variant(_) => <$provider>::NAME),+ }
            }

            /// Whether what was started completes although nobody calls the provider in use.
            pub fn moves_by_itself(&self) -> bool {
                match self { $(Net::$variant(_) => <$provider>::MOVES_BY_ITSELF),+ }
            }
        }

        impl Provider for Net {
            const NAME: &'static str = "net";
            type Inject = NetInject;

            fn description(&self) -> String {
                match self { $(Net::$variant(net) => net.description()),+ }
            }

            fn terms(&self) -> String {
                match self { $(Net::$variant(net) => net.terms()),+ }
            }

            fn pins(&self) -> bool {
                match self { $(Net::$variant(net) => net.pins()),+ }
            }

            fn limits(&self) -> Limits {
                match self { $(Net::$variant(net) => net.limits()),+ }
            }

            fn address(&self) -> FabricResult<Vec<u8>> {
                match self { $(Net::$variant(net) => net.address()),+ }
            }

            fn connect(&mut self, lookup: &mut dyn FnMut(Pe) -> FabricResult<Vec<u8>>) -> FabricResult<()> {
                match self { $(Net::$variant(net) => net.connect(lookup)),+ }
            }

            fn connect_later(&mut self, lookup: &Lookup) -> FabricResult<()> {
                match self { $(Net::$variant(net) => net.connect_later(lookup)),+ }
            }

            fn register(&mut self, key: Key, start: NonNull<u8>, bytes: usize) -> FabricResult<()> {
                match self { $(Net::$variant(net) => net.register(key, start, bytes)),+ }
            }

            unsafe fn expose(&self, start: NonNull<u8>, bytes: usize) -> Option<Key> {
                // SAFETY: the caller keeps the contract, which is that of the provider in use.
                match self { $(Net::$variant(net) => unsafe { net.expose(start, bytes) }),+ }
            }

            fn conceal(&self, key: Key) {
                match self { $(Net::$variant(net) => net.conceal(key)),+ }
            }

            fn exposed(&self) -> Vec<u8> {
                match self { $(Net::$variant(net) => net.exposed()),+ }
            }

            fn reach(&mut self, lookup: &mut dyn FnMut(Pe) -> FabricResult<Vec<u8>>) -> FabricResult<()> {
                match self { $(Net::$variant(net) => net.reach(lookup)),+ }
            }

            fn context(&self) -> FabricResult<Net> {
                match self { $(Net::$variant(net) => net.context().map(Net::$variant)),+ }
            }

            fn contacts(&self) -> Option<usize> {
                match self { $(Net::$variant(net) => net.contacts()),+ }
            }

            fn executes(&self, kind: AtomicKind) -> bool {
                match self { $(Net::$variant(net) => net.executes(kind)),+ }
            }

            unsafe fn put(&self, put: Put) -> Status {
                // SAFETY: the caller keeps the contract, which is that of the provider in use.
                match self { $(Net::$variant(net) => unsafe { net.put(put) }),+ }
            }

            fn signal_bytes(&self) -> Option<usize> {
                match self { $(Net::$variant(net) => net.signal_bytes()),+ }
            }

            unsafe fn put_signal(&self, put: Put, signal: Signal) -> Status {
                // SAFETY: the caller keeps the contract, which is that of the provider in use.
                match self { $(Net::$variant(net) => unsafe { net.put_signal(put, signal) }),+ }
            }

            fn flush(&self) -> u64 {
                match self { $(Net::$variant(net) => net.flush()),+ }
            }

            unsafe fn get(&self, get: Get) -> Status {
                // SAFETY: the caller keeps the contract, which is that of the provider in use.
                match self { $(Net::$variant(net) => unsafe { net.get(get) }),+ }
            }

            unsafe fn atomic(&self, amo: Amo) -> Status {
                // SAFETY: the caller keeps the contract, which is that of the provider in use.
                match self { $(Net::$variant(net) => unsafe { net.atomic(amo) }),+ }
            }

            fn send(&self, pe: Pe, header: u64, payload: &[u8]) -> Status {
                match self { $(Net::$variant(net) => net.send(pe, header, payload)),+ }
            }

            fn send_with_word(
                &self,
                pe: Pe,
                header: u64,
                payload: (u64, &[u8]),
                scratch: &mut Vec<u8>,
            ) -> Status {
                match self { $(Net::$variant(net) => net.send_with_word(pe, header, payload, scratch)),+ }
            }

            fn progress(&self, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
                match self { $(Net::$variant(net) => net.progress(handle)),+ }
            }

            fn drain(&self, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
                match self { $(Net::$variant(net) => net.drain(handle)),+ }
            }

            fn rest(&self, bound: Duration) {
                match self { $(Net::$variant(net) => net.rest(bound)),+ }
            }

            fn completions(&self) -> Completions {
                match self { $(Net::$variant(net) => net.completions()),+ }
            }

            fn has_completed(&self, started: Completions) -> bool {
                match self { $(Net::$variant(net) => net.has_completed(started)),+ }
            }

            fn virtual_time(&self) -> Option<Duration> {
                match self { $(Net::$variant(net) => net.virtual_time()),+ }
            }

            fn wait_descriptor(&self) -> Option<OwnedFd> {
                match self { $(Net::$variant(net) => net.wait_descriptor()),+ }
            }

            fn is_urgent(&self) -> bool {
                match self { $(Net::$variant(net) => net.is_urgent()),+ }
            }

            fn may_sleep(&self) -> bool {
                match self { $(Net::$variant(net) => net.may_sleep()),+ }
            }

            fn owes(&self) -> bool {
                match self { $(Net::$variant(net) => net.owes()),+ }
            }

            fn inject(&self, key: Key) -> Option<NetInject> {
                match self { $(Net::$variant(net) => net.inject(key).map(NetInject::$variant)),+ }
            }

            fn keeps_messages_behind_puts(&self) -> bool {
                match self { $(Net::$variant(net) => net.keeps_messages_behind_puts()),+ }
            }

            fn compute(&self, time: Duration) {
                match self { $(Net::$variant(net) => net.compute(time)),+ }
            }
        }

        /// How the provider in use injects. Those that do not have no such value, so that nothing is left of
        /// the dispatch.
        #[expect(clippy::large_enum_variant, reason = "all but one of them are without values")]
        pub enum NetInject {
            $(#[doc = concat!("That of [`Net::", stringify!($variant), "`].")]
            $variant(<$provider as Provider>::Inject)),+
        }

        impl Inject for NetInject {
            fn put_bytes(&self) -> usize {
                match self { $(NetInject::$variant(own) => own.put_bytes()),+ }
            }

            fn get_bytes(&self) -> usize {
                match self { $(NetInject::$variant(own) => own.get_bytes()),+ }
            }

            fn settle(self: Pin<&mut Self>) {
                // SAFETY: nothing is moved out of it; its part stays where it is as long as it does.
                unsafe {
                    match self.get_unchecked_mut() {
                        $(NetInject::$variant(own) => Pin::new_unchecked(own).settle()),+
                    }
                }
            }

            #[inline(always)]
            unsafe fn put_word<T: Copy>(&mut self, pe: Pe, offset_bytes: usize, value: T) -> bool {
                // SAFETY: the caller's promises are the same.
                unsafe {
                    match self {
                        $(NetInject::$variant(own) if own.is_inlined() => {
                            own.put_word(pe, offset_bytes, value)
                        })+
                        own => own.put_outlined(pe, size_of::<T>(), word_of(value), offset_bytes),
                    }
                }
            }

            #[cold]
            #[inline(never)]
            unsafe fn put_outlined(&mut self, pe: Pe, bytes: usize, word: u64, offset_bytes: usize) -> bool {
                // SAFETY: the caller's promises are the same.
                unsafe {
                    match self {
                        $(NetInject::$variant(own) => own.put_outlined(pe, bytes, word, offset_bytes)),+
                    }
                }
            }

            fn refused(&self, bytes: usize) -> (Pe, usize, [u8; 8]) {
                match self { $(NetInject::$variant(own) => own.refused(bytes)),+ }
            }

            unsafe fn put(&mut self, pe: Pe, offset_bytes: usize, source: *const u8, bytes: usize) -> bool {
                // SAFETY: the caller's promises are the same.
                unsafe {
                    match self { $(NetInject::$variant(own) => own.put(pe, offset_bytes, source, bytes)),+ }
                }
            }

            fn signal_bytes(&self) -> usize {
                match self { $(NetInject::$variant(own) => own.signal_bytes()),+ }
            }

            unsafe fn put_signal(
                &mut self,
                pe: Pe,
                data: (usize, *const u8, usize),
                signal: (usize, Atomic),
            ) -> bool {
                // SAFETY: the caller's promises are the same.
                unsafe { match self { $(NetInject::$variant(own) => own.put_signal(pe, data, signal)),+ } }
            }

            unsafe fn put_message(&mut self, pe: Pe, place: usize, source: *const u8, bytes: usize) -> bool {
                // SAFETY: the caller's promises are the same.
                unsafe {
                    match self { $(NetInject::$variant(own) => own.put_message(pe, place, source, bytes)),+ }
                }
            }

            #[inline(always)]
            unsafe fn get(&mut self, pe: Pe, offset_bytes: usize, into: *mut u8, bytes: usize) -> bool {
                // SAFETY: the caller's promises are the same.
                unsafe {
                    match self { $(NetInject::$variant(own) => own.get(pe, offset_bytes, into, bytes)),+ }
                }
            }

            fn last_get(&self) -> (Pe, usize) {
                match self { $(NetInject::$variant(own) => own.last_get()),+ }
            }

            #[inline(always)]
            unsafe fn gets(&self) -> u64 {
                // SAFETY: the caller's promises are the same.
                unsafe { match self { $(NetInject::$variant(own) => own.gets()),+ } }
            }
        }
    };
}

providers! {
    /// Mapped memory of the PEs of one node.
    Shm(crate::shm::Shm),
    /// Libfabric.
    Ofi(crate::ofi::Ofi) opened by crate::ofi::Ofi::of_process,
    /// Connections over TCP.
    Tcp(crate::tcp::Tcp) opened by crate::tcp::Tcp::of_process,
    /// A simulated network inside one process, every run of which can be replayed.
    Sim(crate::sim::Sim),
}
