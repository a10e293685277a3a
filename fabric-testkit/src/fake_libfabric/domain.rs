//! The domain: endpoints share it, and its table opens all other objects.
//!
//! Invariant: a domain cannot be closed while an object of it is open.

use super::object::{Head, enter, table};
use super::profile::Profile;
use super::refusal::Table;
use super::world::{Id, World, at};
use super::{address, atomic, counter, endpoint, object, queue, region};
use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;

/// The state of an open domain.
pub(crate) struct Domain {
    pub(crate) fabric: Id,
    pub(crate) profile: &'static Profile,
}

impl Head for fid_domain {
    type Shared = ();

    fn is_in_use(world: &World, id: Id) -> bool {
        world.vectors.values().any(|vector| vector.domain == id)
            || world.queues.values().any(|queue| queue.domain == id)
            || world.counters.values().any(|counter| counter.domain == id)
            || world.regions.values().any(|region| region.domain == id)
            || world.endpoints.values().any(|endpoint| endpoint.domain == id)
    }
}

static OPS: fi_ops_domain = fi_ops_domain {
    av_open: Some(address::open),
    cq_open: Some(queue::open),
    endpoint: Some(endpoint::open),
    cntr_open: Some(counter::open),
    query_atomic: Some(atomic::query),
    ..fi_ops_domain::EMPTY
};

static MR: fi_ops_mr = fi_ops_mr {
    size: size_of::<fi_ops_mr>(),
    reg: Some(region::register),
    regv: Some(region::register_vector),
    regattr: Some(region::register_attributes),
};

/// Opens a domain.
pub(crate) unsafe extern "C" fn open(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    domain: *mut *mut fid_domain,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller passes an open fabric, whose table contains this function.
    let (mut world, fabric) = unsafe { enter(fabric) };
    let profile = at(&mut world.fabrics, fabric).profile;
    // SAFETY: the caller passes an entry that this library has made.
    if !unsafe { super::info::is_of(info, profile) } {
        return -FI_EINVAL;
    }
    let head = |fid| fid_domain { fid, ops: table(&OPS), mr: table(&MR) };
    // SAFETY: the caller passes a pointer that is valid for the result.
    unsafe { object::open(&mut world, domain, context, head, |_, _| Domain { fabric, profile }) }
}
