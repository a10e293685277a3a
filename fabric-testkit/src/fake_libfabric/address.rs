//! Addresses of endpoints, and address vectors: `fi_av(3)`.
//!
//! Invariant: an address always denotes the same endpoint, and an address vector accepts only addresses of
//! its own provider.

use super::object::{self, Head, enter, table};
use super::profile::{PROFILES, Profile};
use super::refusal::Table;
use super::world::{Id, World, at};
use libc::{c_char, c_int, c_void};
use pelago_fabric::ofi::sys::*;

/// The format of addresses: a provider-specific one.
pub(crate) const FORMAT: u32 = 1 << 31 | 0x517;
/// The length of an address in bytes: a tag of its provider, a number, and zeros, so that it is longer than
/// callers may expect.
pub(crate) const ADDRESS_BYTES: usize = 96;
const MARK: u64 = 0x4641_4b45_5f4f_4649;

/// An open address vector.
pub(crate) struct Vector {
    pub(crate) domain: Id,
    addresses: Vec<Option<Id>>,
}

impl Vector {
    /// The endpoint of an `fi_addr_t`.
    pub(crate) fn endpoint(&self, number: fi_addr_t) -> Option<Id> {
        *self.addresses.get(usize::try_from(number).ok()?)?
    }
}

impl Head for fid_av {
    type Shared = ();

    fn is_in_use(world: &World, id: Id) -> bool {
        world.endpoints.values().any(|endpoint| endpoint.vector == Some(id))
    }
}

static OPS: fi_ops_av =
    fi_ops_av { insert: Some(insert), remove: Some(remove), lookup: Some(lookup), ..fi_ops_av::EMPTY };

fn mark(profile: &Profile) -> u64 {
    let index = PROFILES.iter().position(|other| std::ptr::eq(other, profile));
    MARK ^ index.map_or(0, |index| index as u64 + 1)
}

/// The address of an endpoint.
pub(crate) fn of(profile: &Profile, endpoint: Id) -> [u8; ADDRESS_BYTES] {
    let mut address = [0; ADDRESS_BYTES];
    address[..8].copy_from_slice(&mark(profile).to_ne_bytes());
    address[8..16].copy_from_slice(&endpoint.to_ne_bytes());
    address
}

/// The endpoint of an address of this provider.
fn read(profile: &Profile, address: [u8; ADDRESS_BYTES]) -> Option<Id> {
    let id = Id::from_ne_bytes(address[8..16].try_into().ok()?);
    (address == of(profile, id)).then_some(id)
}

/// Opens an address vector.
pub(crate) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attributes: *mut fi_av_attr,
    av: *mut *mut fid_av,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller passes attributes and an open domain, whose table contains this function.
    let ((mut world, domain), kind) = unsafe { (enter(domain), (*attributes).r#type) };
    if !matches!(kind, FI_AV_UNSPEC | FI_AV_MAP | FI_AV_TABLE) {
        return -FI_EINVAL;
    }
    let head = |fid| fid_av { fid, ops: table(&OPS) };
    let state = Vector { domain, addresses: Vec::new() };
    // SAFETY: the caller passes a pointer that is valid for the result.
    unsafe { object::open(&mut world, av, context, head, |_, _| state) }
}

unsafe extern "C" fn insert(
    av: *mut fid_av,
    addresses: *const c_void,
    count: usize,
    numbers: *mut fi_addr_t,
    flags: u64,
    _context: *mut c_void,
) -> c_int {
    if flags & !FI_MORE != 0 {
        return -FI_EBADFLAGS;
    }
    // SAFETY: only the table of address vectors contains this function.
    let (mut world, id) = unsafe { enter(av) };
    let profile = profile_of(&mut world, id);
    let vector = at(&mut world.vectors, id);
    let mut inserted = 0;
    for index in 0..count {
        // SAFETY: the caller passes `count` addresses.
        let address = unsafe { addresses.cast::<[u8; ADDRESS_BYTES]>().add(index).read_unaligned() };
        let number = match read(profile, address) {
            None => FI_ADDR_NOTAVAIL,
            Some(endpoint) => {
                vector.addresses.push(Some(endpoint));
                inserted += 1;
                vector.addresses.len() as fi_addr_t - 1
            }
        };
        if !numbers.is_null() {
            // SAFETY: the caller passes an array of `count` numbers.
            unsafe { numbers.add(index).write(number) };
        }
    }
    inserted
}

unsafe extern "C" fn remove(av: *mut fid_av, numbers: *mut fi_addr_t, count: usize, _flags: u64) -> c_int {
    // SAFETY: only the table of address vectors contains this function.
    let (mut world, id) = unsafe { enter(av) };
    let vector = at(&mut world.vectors, id);
    for index in 0..count {
        // SAFETY: the caller passes `count` numbers.
        let number = unsafe { *numbers.add(index) };
        match vector.addresses.get_mut(number as usize) {
            Some(place @ Some(_)) => *place = None,
            _ => return -FI_EINVAL,
        }
    }
    0
}

unsafe extern "C" fn lookup(
    av: *mut fid_av,
    number: fi_addr_t,
    address: *mut c_void,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: only the table of address vectors contains this function.
    let (mut world, id) = unsafe { enter(av) };
    let profile = profile_of(&mut world, id);
    match at(&mut world.vectors, id).endpoint(number) {
        // SAFETY: the caller passes a buffer of the length that it states.
        Some(endpoint) => unsafe { write(profile, endpoint, address, bytes) },
        None => -FI_EINVAL,
    }
}

/// Writes as much of an address as the buffer holds, and the length of the address.
///
/// # Safety
/// `address` points to a buffer of `bytes` bytes, and both are valid for writes.
pub(crate) unsafe fn write(
    profile: &Profile,
    endpoint: Id,
    address: *mut c_void,
    bytes: *mut usize,
) -> c_int {
    let text = of(profile, endpoint);
    // SAFETY: the caller guarantees that the buffer is valid, and no more is written than it holds.
    unsafe {
        let room = bytes.replace(ADDRESS_BYTES);
        address.cast::<c_char>().copy_from_nonoverlapping(text.as_ptr().cast(), room.min(ADDRESS_BYTES));
        if room < ADDRESS_BYTES { -FI_ETOOSMALL } else { 0 }
    }
}

fn profile_of(world: &mut World, vector: Id) -> &'static Profile {
    let domain = at(&mut world.vectors, vector).domain;
    at(&mut world.domains, domain).profile
}
