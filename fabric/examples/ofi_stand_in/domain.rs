//! The domain: what endpoints share, and the table by which all else is opened.
//!
//! Invariant: it is not closed while anything of it is open.

use crate::object::{CLASS_DOMAIN, head, id, id_of_fid, make, table};
use crate::profile::Profile;
use crate::refusal::none;
use crate::world::{Id, at, world};
use crate::{address, atomic, counter, endpoint, queue, region};
use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;

/// An open domain.
pub(crate) struct Domain {
    pub(crate) fabric: Id,
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

static OPS: fi_ops_domain = fi_ops_domain {
    size: size_of::<fi_ops_domain>(),
    av_open: Some(address::open),
    cq_open: Some(queue::open),
    endpoint: Some(endpoint::open),
    scalable_ep: none(),
    cntr_open: Some(counter::open),
    poll_open: none(),
    stx_ctx: none(),
    srx_ctx: none(),
    query_atomic: Some(atomic::query),
    query_collective: none(),
    endpoint2: none(),
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
    // SAFETY: the caller gives an open fabric, whose table this function stands in.
    let fabric = unsafe { id(fabric) };
    let mut world = world();
    let profile = at(&mut world.fabrics, fabric).profile;
    // SAFETY: the caller gives an entry that this library has made.
    if !unsafe { crate::info::is_of(info, profile) } {
        return -FI_EINVAL;
    }
    let id = world.new_id();
    world.domains.insert(id, Domain { fabric, profile });
    let fid = head(CLASS_DOMAIN, context, &FID);
    let object = make(id, fid_domain { fid, ops: table(&OPS), mr: table(&MR) });
    // SAFETY: the caller gives the place.
    unsafe { domain.write(object) };
    0
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: the table is that of domains.
    let id = unsafe { id_of_fid::<fid_domain>(fid) };
    let mut world = world();
    at(&mut world.domains, id);
    let is_in_use = world.vectors.values().any(|vector| vector.domain == id)
        || world.queues.values().any(|queue| queue.domain == id)
        || world.counters.values().any(|counter| counter.domain == id)
        || world.regions.values().any(|region| region.domain == id)
        || world.endpoints.values().any(|endpoint| endpoint.domain == id);
    if is_in_use {
        return -FI_EBUSY;
    }
    world.domains.remove(&id);
    0
}
