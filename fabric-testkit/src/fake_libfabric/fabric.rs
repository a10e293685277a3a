//! The fabric: the object to which all other objects of a provider belong.
//!
//! Invariant: a fabric cannot be closed while a domain of it is open.

use super::object::{Head, enter, id_of, table};
use super::profile::{PROFILES, Profile};
use super::refusal::Table;
use super::world::{Id, World, at, world};
use super::{domain, object, queue};
use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;
use std::ffi::CStr;

/// The state of an open fabric.
pub(crate) struct Fabric {
    pub(crate) profile: &'static Profile,
}

impl Head for fid_fabric {
    type Shared = ();

    fn is_in_use(world: &World, id: Id) -> bool {
        world.domains.values().any(|domain| domain.fabric == id)
    }
}

static OPS: fi_ops_fabric =
    fi_ops_fabric { domain: Some(domain::open), trywait: Some(try_wait), ..fi_ops_fabric::EMPTY };

/// Opens a fabric: `fi_fabric(3)`.
pub(crate) unsafe extern "C" fn fi_fabric(
    attributes: *mut fi_fabric_attr,
    fabric: *mut *mut fid_fabric,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller passes attributes of an entry that this library has made.
    let (name, api_version) = unsafe {
        let attributes = &*attributes;
        if attributes.prov_name.is_null() {
            return -FI_EINVAL;
        }
        (CStr::from_ptr(attributes.prov_name), attributes.api_version)
    };
    let Some(profile) = PROFILES.iter().find(|profile| profile.name.as_bytes() == name.to_bytes()) else {
        return -FI_ENODEV;
    };
    let head = |fid| fid_fabric { fid, ops: table(&OPS), api_version };
    // SAFETY: the caller passes a pointer that is valid for the result.
    unsafe {
        let mut world = world();
        world.ignore(1);
        object::open(&mut world, fabric, context, head, |_, _| Fabric { profile })
    }
}

/// Returns whether it is safe to sleep until the descriptors of these queues become readable:
/// `fi_trywait(3)`.
unsafe extern "C" fn try_wait(fabric: *mut fid_fabric, fids: *mut *mut fid, count: c_int) -> c_int {
    // SAFETY: only the table of fabrics contains this function.
    let (mut world, _) = unsafe { enter(fabric) };
    let mut answer = 0;
    for index in 0..count {
        // SAFETY: the caller passes an array of `count` open objects.
        let queue = unsafe { id_of::<fid_cq>(*fids.add(index as usize)) };
        let Some(queue) = queue else { return -FI_EINVAL };
        match try_wait_for(&mut world, queue) {
            0 => {}
            code => answer = code,
        }
    }
    answer
}

fn try_wait_for(world: &mut World, id: Id) -> c_int {
    if queue::has_work(world, id) {
        return -FI_EAGAIN;
    }
    at(&mut world.queues, id).calm()
}
