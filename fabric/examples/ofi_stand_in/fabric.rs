//! The fabric: what holds all other objects of a provider.
//!
//! Invariant: it is not closed while a domain of it is open.

use crate::object::{CLASS_CQ, CLASS_FABRIC, head, id, id_of_fid, make, table};
use crate::profile::{PROFILES, Profile};
use crate::refusal::none;
use crate::world::{World, at, world};
use crate::{domain, queue};
use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;
use std::ffi::CStr;

/// An open fabric.
pub(crate) struct Fabric {
    pub(crate) profile: &'static Profile,
}

static FID: fi_ops = fi_ops {
    size: size_of::<fi_ops>(),
    close: Some(close),
    bind: none(),
    control: none(),
    ops_open: none(),
    tostr: none(),
    ops_set: none(),
};

static OPS: fi_ops_fabric = fi_ops_fabric {
    size: size_of::<fi_ops_fabric>(),
    domain: Some(domain::open),
    passive_ep: none(),
    eq_open: none(),
    wait_open: none(),
    trywait: Some(try_wait),
    domain2: none(),
};

/// Opens a fabric: `fi_fabric(3)`.
///
/// # Safety
/// The attributes are of an entry of this library; the place is valid for a write.
pub(crate) unsafe fn open(
    attributes: *mut fi_fabric_attr,
    fabric: *mut *mut fid_fabric,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller gives attributes whose name is null or a string.
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
    let mut world = world();
    let id = world.new_id();
    world.fabrics.insert(id, Fabric { profile });
    let object =
        make(id, fid_fabric { fid: head(CLASS_FABRIC, context, &FID), ops: table(&OPS), api_version });
    // SAFETY: the caller gives the place.
    unsafe { fabric.write(object) };
    0
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: the table is that of fabrics.
    let id = unsafe { id_of_fid::<fid_fabric>(fid) };
    let mut world = world();
    at(&mut world.fabrics, id);
    if world.domains.values().any(|domain| domain.fabric == id) {
        return -FI_EBUSY;
    }
    world.fabrics.remove(&id);
    0
}

/// Says whether it is safe to sleep until the descriptors of these queues become readable: `fi_trywait(3)`.
unsafe extern "C" fn try_wait(fabric: *mut fid_fabric, fids: *mut *mut fid, count: c_int) -> c_int {
    // SAFETY: the table is that of fabrics.
    let fabric = unsafe { id(fabric) };
    let mut world = world();
    at(&mut world.fabrics, fabric);
    let mut answer = 0;
    for index in 0..count {
        // SAFETY: the caller gives an array of so many open objects.
        let queue = unsafe {
            let fid = *fids.add(index as usize);
            if (*fid).fclass != CLASS_CQ {
                return -FI_EINVAL;
            }
            id_of_fid::<fid_cq>(fid)
        };
        match try_wait_for(&mut world, queue) {
            0 => {}
            code => answer = code,
        }
    }
    answer
}

fn try_wait_for(world: &mut World, id: u64) -> c_int {
    if queue::has_work(world, id) {
        return -FI_EAGAIN;
    }
    at(&mut world.queues, id).calm()
}
