//! Completion counters: `fi_cntr(3)`.
//!
//! Invariant: the value is in the object, where a null endpoint increments it without the mutex; with manual
//! progress it changes only in calls on an endpoint that is bound to the counter.

use super::engine::advance_all;
use super::object::{self, Head, enter, of, table};
use super::refusal::Table;
use super::wait::Deadline;
use super::world::{CHANGED, Id, World, at};
use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;
use pelago_fabric::sync::{AtomicU64, Ordering};

/// The value of a counter, which a null endpoint increments without the mutex.
#[derive(Default)]
pub(crate) struct Value {
    pub(crate) count: AtomicU64,
    pub(crate) errors: AtomicU64,
}

/// The state of an open counter.
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

    /// The address of the value, for a null endpoint.
    pub(crate) fn value(&self) -> *mut Value {
        std::ptr::from_ref(self.value).cast_mut()
    }
}

impl Head for fid_cntr {
    type Shared = Value;

    fn is_in_use(world: &World, id: Id) -> bool {
        world.endpoints.values().any(|endpoint| endpoint.has_counter(id))
    }
}

const OPS: fi_ops_cntr = fi_ops_cntr {
    read: Some(read),
    readerr: Some(read_errors),
    add: Some(add),
    set: Some(set),
    wait: Some(wait),
    ..fi_ops_cntr::EMPTY
};

const NULL: fi_ops_cntr = fi_ops_cntr { read: Some(super::null::read_counter), ..OPS };

/// Opens a counter.
pub(crate) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attributes: *mut fi_cntr_attr,
    cntr: *mut *mut fid_cntr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller passes attributes or null, and an open domain, whose table contains this function.
    let ((mut world, domain), attributes) = unsafe { (enter(domain), attributes.as_ref()) };
    let (events, wait_obj) = attributes.map_or((0, 0), |given| (given.events, given.wait_obj));
    if events != FI_CNTR_EVENTS_COMP || !matches!(wait_obj, FI_WAIT_NONE | FI_WAIT_UNSPEC) {
        return -FI_ENOSYS;
    }
    let is_null = at(&mut world.domains, domain).profile.is_null;
    let head = |fid| fid_cntr { fid, ops: table(if is_null { &NULL } else { &OPS }) };
    let state = |_, object| {
        // SAFETY: the object was just made.
        let value = unsafe { &of(object).shared };
        Counter { domain, waits: wait_obj != FI_WAIT_NONE, value }
    };
    // SAFETY: the caller passes a pointer that is valid for the result.
    unsafe { object::open(&mut world, cntr, context, head, state) }
}

/// Makes progress on the endpoints of a counter.
fn advance(world: &mut World, counter: Id) {
    at(&mut world.counters, counter);
    advance_all(world, |endpoint| endpoint.has_counter(counter));
}

/// Makes progress and returns the value of a counter.
///
/// # Safety
/// The counter is an object of this library.
unsafe fn advanced<'a>(cntr: *mut fid_cntr) -> &'a Value {
    // SAFETY: the caller guarantees that the counter is valid.
    let ((mut world, id), object) = unsafe { (enter(cntr), of(cntr)) };
    advance(&mut world, id);
    &object.shared
}

unsafe extern "C" fn read(cntr: *mut fid_cntr) -> u64 {
    // SAFETY: only the table of counters contains this function.
    unsafe { advanced(cntr) }.count.load(Ordering::Relaxed)
}

unsafe extern "C" fn read_errors(cntr: *mut fid_cntr) -> u64 {
    // SAFETY: only the table of counters contains this function.
    unsafe { advanced(cntr) }.errors.load(Ordering::Relaxed)
}

unsafe extern "C" fn add(cntr: *mut fid_cntr, count: u64) -> c_int {
    // SAFETY: only the table of counters contains this function.
    unsafe { of(cntr) }.shared.count.fetch_add(count, Ordering::Relaxed);
    CHANGED.notify_all();
    0
}

unsafe extern "C" fn set(cntr: *mut fid_cntr, count: u64) -> c_int {
    // SAFETY: only the table of counters contains this function.
    unsafe { of(cntr) }.shared.count.store(count, Ordering::Relaxed);
    CHANGED.notify_all();
    0
}

unsafe extern "C" fn wait(cntr: *mut fid_cntr, threshold: u64, timeout: c_int) -> c_int {
    // SAFETY: only the table of counters contains this function.
    let ((mut world, id), value) = unsafe { (enter(cntr), &of(cntr).shared) };
    if !at(&mut world.counters, id).waits {
        return -FI_EINVAL;
    }
    let deadline = Deadline::after(timeout);
    let errors = value.errors.load(Ordering::Relaxed);
    loop {
        advance(&mut world, id);
        if value.count.load(Ordering::Relaxed) >= threshold {
            return 0;
        }
        if value.errors.load(Ordering::Relaxed) != errors {
            return -FI_EAVAIL;
        }
        let Some((later, _)) = deadline.sleep(world) else { return -FI_ETIMEDOUT };
        world = later;
    }
}
