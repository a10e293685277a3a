//! Completion counters: `fi_cntr(3)`.
//!
//! Invariant: the value lies in the object, where a hollow endpoint counts without the mutex; with manual
//! progress it changes only in calls that concern an endpoint which the counter is bound to.

use crate::engine::advance_all;
use crate::object::{CLASS_CNTR, Value, head, id, id_of_fid, make, of, table};
use crate::refusal::none;
use crate::world::{CHANGED, Id, World, at, world};
use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;
use pelago_fabric::sync::Ordering;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// An open counter.
pub(crate) struct Counter {
    pub(crate) domain: Id,
    waits: bool,
    value: &'static Value,
}

impl Counter {
    /// Counts an operation.
    pub(crate) fn count(&self, has_failed: bool) {
        let counted = if has_failed { &self.value.errors } else { &self.value.count };
        counted.fetch_add(1, Ordering::Relaxed);
    }

    /// Where it counts, for a hollow endpoint.
    pub(crate) fn value(&self) -> *mut Value {
        std::ptr::from_ref(self.value).cast_mut()
    }
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

static OPS: fi_ops_cntr = fi_ops_cntr {
    size: size_of::<fi_ops_cntr>(),
    read: Some(read),
    readerr: Some(read_errors),
    add: Some(add),
    set: Some(set),
    wait: Some(wait),
    adderr: none(),
    seterr: none(),
};

static HOLLOW: fi_ops_cntr = fi_ops_cntr {
    size: size_of::<fi_ops_cntr>(),
    read: Some(crate::hollow::read_counter),
    readerr: Some(read_errors),
    add: Some(add),
    set: Some(set),
    wait: Some(wait),
    adderr: none(),
    seterr: none(),
};

/// Opens a counter.
pub(crate) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attributes: *mut fi_cntr_attr,
    cntr: *mut *mut fid_cntr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller gives attributes or null, and an open domain, whose table this function stands in.
    let (domain, attributes) = unsafe { (id(domain), attributes.as_ref()) };
    let (events, wait_obj) = attributes.map_or((0, 0), |given| (given.events, given.wait_obj));
    if events != FI_CNTR_EVENTS_COMP || !matches!(wait_obj, FI_WAIT_NONE | FI_WAIT_UNSPEC) {
        return -FI_ENOSYS;
    }
    let mut world = world();
    let is_hollow = at(&mut world.domains, domain).profile.is_hollow;
    let id = world.new_id();
    let ops = table(if is_hollow { &HOLLOW } else { &OPS });
    let object = make(id, fid_cntr { fid: head(CLASS_CNTR, context, &FID), ops });
    // SAFETY: the object was just made.
    let value = unsafe { &of(object).more };
    world.counters.insert(id, Counter { domain, waits: wait_obj != FI_WAIT_NONE, value });
    // SAFETY: the caller gives the place.
    unsafe { cntr.write(object) };
    0
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: the table is that of counters.
    let id = unsafe { id_of_fid::<fid_cntr>(fid) };
    let mut world = world();
    at(&mut world.counters, id);
    if world.endpoints.values().any(|endpoint| endpoint.has_counter(id)) {
        return -FI_EBUSY;
    }
    world.counters.remove(&id);
    0
}

/// Makes progress on the endpoints of a counter.
fn advance(world: &mut World, counter: Id) {
    at(&mut world.counters, counter);
    advance_all(world, |endpoint| endpoint.has_counter(counter));
}

unsafe extern "C" fn read(cntr: *mut fid_cntr) -> u64 {
    // SAFETY: the table is that of counters.
    let (id, object) = unsafe { (id(cntr), of(cntr)) };
    advance(&mut world(), id);
    object.more.count.load(Ordering::Relaxed)
}

unsafe extern "C" fn read_errors(cntr: *mut fid_cntr) -> u64 {
    // SAFETY: the table is that of counters.
    let (id, object) = unsafe { (id(cntr), of(cntr)) };
    advance(&mut world(), id);
    object.more.errors.load(Ordering::Relaxed)
}

unsafe extern "C" fn add(cntr: *mut fid_cntr, count: u64) -> c_int {
    // SAFETY: the table is that of counters.
    unsafe { of(cntr) }.more.count.fetch_add(count, Ordering::Relaxed);
    CHANGED.notify_all();
    0
}

unsafe extern "C" fn set(cntr: *mut fid_cntr, count: u64) -> c_int {
    // SAFETY: the table is that of counters.
    unsafe { of(cntr) }.more.count.store(count, Ordering::Relaxed);
    CHANGED.notify_all();
    0
}

unsafe extern "C" fn wait(cntr: *mut fid_cntr, threshold: u64, timeout: c_int) -> c_int {
    // SAFETY: the table is that of counters.
    let (id, object) = unsafe { (id(cntr), of(cntr)) };
    let mut world = world();
    if !at(&mut world.counters, id).waits {
        return -FI_EINVAL;
    }
    let deadline = deadline(timeout);
    let errors = object.more.errors.load(Ordering::Relaxed);
    loop {
        advance(&mut world, id);
        if object.more.count.load(Ordering::Relaxed) >= threshold {
            return 0;
        }
        if object.more.errors.load(Ordering::Relaxed) != errors {
            return -FI_EAVAIL;
        }
        let Some(left) = left(deadline) else { return -FI_ETIMEDOUT };
        (world, _) = CHANGED.wait_timeout(world, left).unwrap_or_else(PoisonError::into_inner);
    }
}

/// When a wait of so many milliseconds is over; a negative number is for ever.
pub(crate) fn deadline(timeout: c_int) -> Option<Instant> {
    let timeout = u64::try_from(timeout).ok()?;
    Some(Instant::now() + Duration::from_millis(timeout))
}

/// How long a wait may still last; `None` if it is over.
pub(crate) fn left(deadline: Option<Instant>) -> Option<Duration> {
    match deadline {
        None => Some(Duration::from_secs(1)),
        Some(deadline) => {
            Some(deadline.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
        }
    }
}
