//! Registered memory, which a provider may read and write, and the requirements of providers on it.
//!
//! Invariant: a region is open as long as any transfer may use it, and holds its domain open. The
//! requirements are those that the offer names. A provider without requirements gets no descriptors, the keys
//! that Pelago has chosen, and offsets. Source: `fi_mr(3)`.

use super::domain::{Domain, REGIONS_MAX, close, opened};
use super::endpoint::Endpoint;
use super::library::OfiError;
use super::query::Offer;
use super::registration::{Register, Registrations};
use super::sys::*;
use crate::types::{FabricError, FabricResult, Key};
use libc::{c_int, c_void};
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// The memory registration modes (`FI_MR_*`) that are supported here, if a provider requires them.
pub(super) const DUTIES: c_int =
    FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;

impl Offer {
    /// Whether transfers need descriptors of this PE's memory as well.
    pub(super) fn wants_descriptors(&self) -> bool {
        self.mr_mode & FI_MR_LOCAL != 0
    }

    /// Whether the keys and addresses of registered memory must be exchanged with the peers.
    pub(super) fn wants_telling(&self) -> bool {
        self.mr_mode & (FI_MR_PROV_KEY | FI_MR_VIRT_ADDR) != 0
    }
}

/// A registered memory region.
pub(super) struct Region {
    mr: NonNull<fid_mr>,
    pub(super) start: usize,
    pub(super) bytes: usize,
    /// Whether this PE's gets may write there.
    is_target: bool,
    domain: Arc<Domain>,
}

// SAFETY: the object is used by any thread, as `FI_THREAD_SAFE` was asked for.
unsafe impl Send for Region {}
// SAFETY: as for `Send`; nothing here changes while it is open.
unsafe impl Sync for Region {}

/// Access of this PE's own puts, gets and atomics.
pub(super) const TRANSFERS: u64 = FI_READ | FI_WRITE;
/// Access of its messages. `ofi_rxm` lets peers read memory that may be sent.
const MESSAGES: u64 = FI_SEND | FI_RECV;

impl Region {
    /// Registers memory for this access of this PE's own operations.
    ///
    /// # Errors
    /// If the provider refuses.
    pub(super) fn own(
        domain: &Arc<Domain>,
        start: usize,
        bytes: usize,
        access: u64,
    ) -> Result<Region, OfiError> {
        Region::open(domain, start, bytes, (access, domain.next_key()))
    }

    /// Registers memory that the peers of an endpoint may read and write under a key.
    ///
    /// # Errors
    /// If the provider refuses.
    pub(super) fn exposed(
        endpoint: &Endpoint,
        start: usize,
        bytes: usize,
        key: u64,
    ) -> Result<Region, OfiError> {
        let access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
        let (domain, ep) = (&endpoint.domain, endpoint.ep.as_ptr());
        let region = Region::open(domain, start, bytes, (access, domain.wire_key(key)))?;
        if domain.offer.mr_mode & FI_MR_ENDPOINT != 0 {
            // SAFETY: region and endpoint are open.
            let code = unsafe { fi_mr_bind(region.mr.as_ptr(), ep.cast(), 0) };
            region.check("binding memory to an endpoint", code)?;
            // SAFETY: the region is open, and was registered to be enabled now.
            region.check("enabling memory", unsafe { fi_mr_enable(region.mr.as_ptr()) })?;
        }
        Ok(region)
    }

    fn open(
        domain: &Arc<Domain>,
        start: usize,
        bytes: usize,
        (access, key): (u64, u64),
    ) -> Result<Region, OfiError> {
        let (mut mr, null) = (null_mut(), null_mut());
        // SAFETY: the domain is open; the caller that registers the memory guarantees that it stays mapped as
        // long as the region is open.
        let code = unsafe {
            let (domain, buffer) = (domain.domain.as_ptr(), start as *const c_void);
            fi_mr_reg(domain, buffer, bytes, access, 0, key, 0, &mut mr, null)
        };
        let operation = format!("registering {bytes} bytes of memory");
        let mr = opened(domain.library(), &operation, code, mr)?;
        Ok(Region { mr, start, bytes, is_target: true, domain: Arc::clone(domain) })
    }

    fn check(&self, operation: &str, code: i32) -> Result<(), OfiError> {
        let remedy = "Choose another fabric by PELAGO_OFI_PROVIDER";
        (code == 0).then_some(()).ok_or_else(|| self.domain.library().error(operation, code.into(), remedy))
    }

    /// The descriptor for transfers from or to this memory.
    pub(super) fn descriptor(&self) -> *mut c_void {
        // SAFETY: the region is open as long as this value, which closes it.
        unsafe { fi_mr_desc(self.mr.as_ptr()) }
    }

    /// The key and the address by which peers access its first byte.
    pub(super) fn reach(&self) -> [u64; 2] {
        // SAFETY: the region is open as long as this value, which closes it.
        let key = unsafe { fi_mr_key(self.mr.as_ptr()) };
        [key, if self.domain.offer.mr_mode & FI_MR_VIRT_ADDR != 0 { self.start as u64 } else { 0 }]
    }

    /// Whether all of a range lies in it.
    pub(super) fn covers(&self, start: usize, bytes: usize) -> bool {
        start >= self.start && start - self.start <= self.bytes && bytes <= self.bytes - (start - self.start)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        close(self.mr);
    }
}

/// Memory of this library for the provider's use. It is zeroed, and registered if the provider requires it.
/// Otherwise its pages are allocated when they are first accessed.
pub(super) struct Arena {
    /// Closed before the memory is freed.
    region: Option<Region>,
    memory: NonNull<u8>,
    bytes: usize,
}

// SAFETY: memory with no tie to a thread, which the provider writes.
unsafe impl Send for Arena {}

impl Arena {
    /// # Errors
    /// If the provider refuses to register it.
    pub(super) fn open(domain: &Arc<Domain>, bytes: usize) -> Result<Arena, OfiError> {
        let mut arena = Arena::unregistered(bytes);
        if domain.offer.wants_descriptors() {
            let start = arena.memory.as_ptr() as usize;
            arena.region = Some(Region::own(domain, start, bytes, TRANSFERS | MESSAGES)?);
        }
        Ok(arena)
    }

    pub(super) fn unregistered(bytes: usize) -> Arena {
        let memory: Box<[u8]> = vec![0; bytes].into();
        Arena { region: None, memory: NonNull::from(Box::leak(memory)).cast(), bytes }
    }

    /// All pieces of `bytes` bytes.
    pub(super) fn pieces(&self, bytes: usize) -> impl Iterator<Item = NonNull<u8>> + use<> {
        let (start, count) = (self.memory, self.bytes / bytes);
        // SAFETY: all pieces lie in the memory.
        (0..count).map(move |i| unsafe { start.add(i * bytes) })
    }

    /// The descriptor for transfers from or to it; null if none is needed.
    pub(super) fn descriptor(&self) -> *mut c_void {
        self.region.as_ref().map_or(null_mut(), Region::descriptor)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.region.take();
        let memory = std::ptr::slice_from_raw_parts_mut(self.memory.as_ptr(), self.bytes);
        // SAFETY: it came from a box of this length, and its pieces are not used any more: the endpoint is
        // closed.
        drop(unsafe { Box::from_raw(memory) });
    }
}

/// The cache's way to register memory at any address.
pub(super) struct Anywhere(pub(super) Arc<Domain>);

impl Register for Anywhere {
    type Region = Region;
    type Error = OfiError;

    fn register(&self, range: Range<usize>) -> Result<Region, OfiError> {
        Region::own(&self.0, range.start, range.len(), TRANSFERS)
    }

    /// A provider that pins the pages for writing would be refused them by the system.
    fn register_source(&self, range: Range<usize>) -> Result<Region, OfiError> {
        let mut region = Region::own(&self.0, range.start, range.len(), FI_WRITE)?;
        region.is_target = false;
        Ok(region)
    }

    fn is_target(region: &Region) -> bool {
        region.is_target
    }
}

/// The memory of this PE's program that transfers use: the regions that its peers may access, and, for
/// providers that require descriptors, all other memory by the cache.
#[derive(Clone)]
pub(super) struct Memory {
    exposed: Vec<(Key, Arc<Region>)>,
    cache: Option<Arc<Registrations<Anywhere>>>,
}

/// Memory that a transfer may use until this is dropped.
pub(super) struct Loan {
    pub(super) descriptor: *mut c_void,
    pub(super) lent: Option<Arc<Region>>,
}

impl Memory {
    pub(super) fn new(domain: &Arc<Domain>) -> Memory {
        let cache = domain.offer.wants_descriptors();
        let cache = cache.then(|| Arc::new(Registrations::new(Anywhere(Arc::clone(domain)))));
        Memory { exposed: Vec::new(), cache }
    }

    /// Lets the peers of an endpoint access memory under a key.
    ///
    /// # Errors
    /// If the key is taken, or the provider refuses.
    pub(super) fn expose(
        &mut self,
        endpoint: &Endpoint,
        (key, start, bytes): (Key, usize, usize),
    ) -> FabricResult<()> {
        let pe = endpoint.domain.me;
        if self.exposed.iter().any(|(taken, _)| *taken == key) || key >= REGIONS_MAX {
            return Err(FabricError::Foreign { pe, what: format!("key {key} is taken") });
        }
        let region = Region::exposed(endpoint, start, bytes, key).map_err(|error| error.at(pe))?;
        self.exposed.push((key, Arc::new(region)));
        Ok(())
    }

    /// Closes the regions that are bound to an endpoint, before the endpoint is closed.
    pub(super) fn conceal(&mut self, endpoint: &Endpoint) {
        if endpoint.domain.offer.mr_mode & FI_MR_ENDPOINT != 0 {
            self.exposed.clear();
        }
    }

    /// The keys and addresses that are exchanged with the peers.
    pub(super) fn told(&self) -> impl Iterator<Item = (Key, [u64; 2])> {
        self.exposed.iter().map(|(key, region)| (*key, region.reach()))
    }

    /// The address of a range of a region that the peers may access. `None` if there is no such range.
    pub(super) fn place(&self, key: Key, offset_bytes: u64, bytes: usize) -> Option<*mut u8> {
        let (_, region) = self.exposed.iter().find(|(taken, _)| *taken == key)?;
        let offset_bytes = usize::try_from(offset_bytes).ok()?;
        let is_inside = bytes <= region.bytes && offset_bytes <= region.bytes - bytes;
        is_inside.then(|| std::ptr::with_exposed_provenance_mut(region.start + offset_bytes))
    }

    /// Whether transfers need no descriptors.
    pub(super) fn is_free(&self) -> bool {
        self.cache.is_none()
    }

    /// The descriptor of a range that the peers may access as well.
    pub(super) fn exposed_descriptor(&self, start: usize, bytes: usize) -> Option<*mut c_void> {
        let found = self.exposed.iter().find(|(_, region)| region.covers(start, bytes));
        found.map(|(_, region)| region.descriptor())
    }

    /// Makes sure that a range may be used, to be written if it is a target.
    ///
    /// # Errors
    /// If it has to be registered, and the provider refuses.
    pub(super) fn lend(&self, start: usize, bytes: usize, is_target: bool) -> Result<Loan, OfiError> {
        let Some(cache) = &self.cache else { return Ok(Loan { descriptor: null_mut(), lent: None }) };
        if let Some(descriptor) = self.exposed_descriptor(start, bytes) {
            return Ok(Loan { descriptor, lent: None });
        }
        let region = cache.lend(start, bytes, is_target)?;
        Ok(Loan { descriptor: region.descriptor(), lent: Some(region) })
    }
}
