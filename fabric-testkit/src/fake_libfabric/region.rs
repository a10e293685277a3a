//! Memory regions, and the checks of accesses to them: `fi_mr(3)`.
//!
//! Invariant: a descriptor is a number, never a pointer, so that any value can be looked up. The requirements
//! of a provider on a registration are checked at the registration; those on a transfer, each time that data
//! move.

use super::buffer::{Local, Remote};
use super::fault::Fault;
use super::object::{self, Head, closable, enter, id_of};
use super::profile::{ACCESS, DIRECTIONS};
use super::world::{Id, World, at};
use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ptr::null_mut;

/// A registered region.
pub(crate) struct Region {
    pub(crate) domain: Id,
    start: usize,
    bytes: usize,
    access: u64,
    key: u64,
    is_enabled: bool,
    /// The only endpoint through which the region can be accessed, if it is bound to one.
    pub(crate) endpoint: Option<Id>,
    /// The address of the object, into which key and descriptor are written when the region is enabled.
    object: usize,
}

impl Head for fid_mr {
    const OPS: &'static fi_ops = &fi_ops { bind: Some(bind), control: Some(control), ..closable::<Self>() };
    type Shared = ();

    fn is_in_use(world: &World, id: Id) -> bool {
        let bound = world.regions[&id].endpoint;
        bound.is_some_and(|endpoint| world.endpoints.contains_key(&endpoint))
    }
}

impl Region {
    /// Whether it covers this number of bytes from `start`.
    fn covers(&self, start: usize, bytes: usize) -> bool {
        let end = start.checked_add(bytes);
        start >= self.start && end.is_some_and(|end| end <= self.start + self.bytes)
    }

    /// Enables the region for transfers, and publishes its key and descriptor.
    fn enable(&mut self, id: Id) {
        self.is_enabled = true;
        let object = std::ptr::with_exposed_provenance_mut::<fid_mr>(self.object);
        // SAFETY: objects are never freed, and callers do not write to them.
        unsafe {
            (*object).key = self.key;
            (*object).mem_desc = std::ptr::without_provenance_mut(descriptor(id));
        }
    }
}

/// The descriptor of a region: an odd number, which is not the address of any object.
fn descriptor(id: Id) -> usize {
    (id as usize) << 4 | 0xd
}

fn of_descriptor(descriptor: usize) -> Option<Id> {
    (descriptor & 0xf == 0xd).then_some((descriptor >> 4) as Id)
}

/// Whether a local buffer may be used in an operation.
pub(crate) fn check_local(world: &World, domain: Id, local: &Local, access: u64) -> Result<(), Fault> {
    if local.kept.is_some() || local.bytes == 0 {
        return Ok(());
    }
    if local.descriptor == 0 {
        let demands = demands(world, domain, FI_MR_LOCAL);
        return if demands { Err(Fault::NoDescriptor) } else { Ok(()) };
    }
    let region = of_descriptor(local.descriptor).and_then(|id| world.regions.get(&id));
    let region = region.filter(|region| region.domain == domain && region.is_enabled);
    let region = region.ok_or(Fault::DeadDescriptor)?;
    if !region.covers(local.address, local.bytes) {
        return Err(Fault::NotCovered);
    }
    if region.access & access != access { Err(Fault::LocalAccess) } else { Ok(()) }
}

/// The address of a remote range, if it may be accessed through the endpoint.
pub(crate) fn find_remote(
    world: &World,
    endpoint: Id,
    domain: Id,
    remote: &Remote,
    access: u64,
) -> Result<usize, Fault> {
    let mut regions = world.regions.values();
    let region = regions.find(|region| region.domain == domain && region.key == remote.key);
    let region = region.ok_or(Fault::WrongKey)?;
    if !region.is_enabled {
        return Err(Fault::Disabled);
    }
    if region.endpoint.is_some_and(|bound| bound != endpoint) {
        return Err(Fault::OtherEndpoint);
    }
    let is_virtual = demands(world, domain, FI_MR_VIRT_ADDR);
    let base = if is_virtual { 0 } else { region.start };
    let start = base.checked_add(remote.address as usize).ok_or(Fault::OutsideRegion)?;
    if !region.covers(start, remote.bytes) {
        return Err(Fault::OutsideRegion);
    }
    if region.access & access != access { Err(Fault::RemoteAccess) } else { Ok(start) }
}

/// The access of all regions that have this byte.
pub(crate) fn access_to(world: &World, place: usize) -> u64 {
    let regions = world.regions.values().filter(|region| region.covers(place, 1));
    regions.fold(0, |access, region| access | region.access)
}

/// Whether an open domain has this requirement.
fn demands(world: &World, domain: Id, mr_mode: c_int) -> bool {
    world.domains.get(&domain).is_some_and(|domain| domain.profile.demands(mr_mode))
}

/// `fi_mr_reg`.
pub(crate) unsafe extern "C" fn register(
    fid: *mut fid,
    buffer: *const c_void,
    bytes: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    flags: u64,
    mr: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        return -FI_EBADFLAGS;
    }
    if offset != 0 || access == 0 || access & !(ACCESS | DIRECTIONS) != 0 {
        return -FI_EINVAL;
    }
    // SAFETY: only the table of domains contains this function.
    let (mut world, domain) = unsafe { enter(fid.cast::<fid_domain>()) };
    let profile = at(&mut world.domains, domain).profile;
    let start = buffer.addr();
    if start.checked_add(bytes).is_none() {
        return -FI_EINVAL;
    }
    if profile.demands(FI_MR_ALLOCATED) && !is_mapped(start, bytes) {
        return -libc::EFAULT;
    }
    let key = match profile.demands(FI_MR_PROV_KEY) {
        true => None,
        false if requested_key.checked_shr(8 * profile.mr_key_bytes as u32).is_some_and(|high| high != 0) => {
            return -FI_EKEYREJECTED;
        }
        false if world.regions.values().any(|other| other.domain == domain && other.key == requested_key) => {
            return -FI_ENOKEY;
        }
        false => Some(requested_key),
    };
    let head = |fid| fid_mr { fid, mem_desc: null_mut(), key: FI_KEY_NOTAVAIL };
    let state = |id, object: *mut fid_mr| {
        let (key, object) = (key.unwrap_or_else(|| chosen_key(id)), object.expose_provenance());
        let mut region =
            Region { domain, start, bytes, access, key, is_enabled: false, endpoint: None, object };
        if !profile.demands(FI_MR_ENDPOINT) {
            region.enable(id);
        }
        region
    };
    // SAFETY: the caller passes a pointer that is valid for the result.
    unsafe { object::open(&mut world, mr, context, head, state) }
}

/// `fi_mr_regv`, for one buffer.
pub(crate) unsafe extern "C" fn register_vector(
    fid: *mut fid,
    iov: *const iovec,
    count: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    flags: u64,
    mr: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    if count != 1 {
        return -FI_EINVAL;
    }
    // SAFETY: the caller passes one buffer, and guarantees that all other arguments are valid.
    unsafe {
        let iovec { iov_base, iov_len } = *iov;
        register(fid, iov_base, iov_len, access, offset, requested_key, flags, mr, context)
    }
}

/// `fi_mr_regattr`.
pub(crate) unsafe extern "C" fn register_attributes(
    fid: *mut fid,
    attributes: *const fi_mr_attr,
    flags: u64,
    mr: *mut *mut fid_mr,
) -> c_int {
    // SAFETY: the caller passes attributes, and guarantees that all other arguments are valid.
    unsafe {
        let given = &*attributes;
        let (access, key, context) = (given.access, given.requested_key, given.context);
        register_vector(fid, given.mr_iov, given.iov_count, access, given.offset, key, flags, mr, context)
    }
}

/// A key that is not 0, hard to guess and different for each region.
fn chosen_key(id: Id) -> u64 {
    static SEED: std::sync::LazyLock<RandomState> = std::sync::LazyLock::new(RandomState::new);
    let mut hasher = SEED.build_hasher();
    hasher.write_u64(id);
    hasher.finish() | 1 << 63
}

/// Whether every byte is mapped.
fn is_mapped(start: usize, bytes: usize) -> bool {
    // SAFETY: the call returns the size of a page and accesses no memory.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let first = start & !(page - 1);
    let length = start + bytes - first;
    let first = std::ptr::with_exposed_provenance_mut(first);
    // The call writes nothing back, and fails if a page is not mapped.
    // SAFETY: the call does not access the range.
    bytes == 0 || unsafe { libc::msync(first, length, libc::MS_ASYNC) } == 0
}

unsafe extern "C" fn bind(fid: *mut fid, object: *mut fid, flags: u64) -> c_int {
    // SAFETY: only the table of memory regions contains this function; the caller passes an open object.
    let ((mut world, id), endpoint) = unsafe { (enter(fid.cast::<fid_mr>()), id_of::<fid_ep>(object)) };
    let region = at(&mut world.regions, id);
    let (domain, is_enabled) = (region.domain, region.is_enabled);
    if !at(&mut world.domains, domain).profile.demands(FI_MR_ENDPOINT) {
        return -FI_ENOSYS;
    }
    let (Some(endpoint), 0) = (endpoint, flags) else { return -FI_EINVAL };
    if is_enabled {
        return -FI_EOPBADSTATE;
    }
    if at(&mut world.endpoints, endpoint).domain != domain {
        return -FI_EINVAL;
    }
    at(&mut world.regions, id).endpoint = Some(endpoint);
    0
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, _argument: *mut c_void) -> c_int {
    // SAFETY: only the table of memory regions contains this function.
    let (mut world, id) = unsafe { enter(fid.cast::<fid_mr>()) };
    if command != FI_ENABLE {
        return -FI_ENOSYS;
    }
    let region = at(&mut world.regions, id);
    if region.is_enabled || region.endpoint.is_none() {
        return -FI_EOPBADSTATE;
    }
    region.enable(id);
    0
}
