//! Endpoints: opened, bound, enabled, named and closed: `fi_endpoint(3)`, `fi_cm(3)`.
//!
//! Invariant: an enabled endpoint is bound to an address vector and to a queue for each direction, and cannot
//! be bound to other objects afterwards. Closing an endpoint discards its operations; operations of others on
//! it return to them with an error.

use super::counter::Value;
use super::engine::give_back;
use super::fault::Fault;
use super::object::{self, Head, closable, enter, id_of, of, table};
use super::operation::{Action, Operation};
use super::profile::{Profile, QUEUE_COUNT};
use super::receive::{Letter, Receive};
use super::refusal::Table;
use super::world::{Id, World, at};
use super::{address, atomic, message, receive, rma};
use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;
use pelago_fabric::sync::{AtomicPtr, Ordering};
use std::collections::VecDeque;
use std::ptr::null_mut;

/// The default of `FI_OPT_MIN_MULTI_RECV`, in bytes: a multi-receive buffer with less space is returned.
const LEAST_ROOM_DEFAULT: usize = 64;
/// The level and the name of the option that changes it.
const LEAST_ROOM: (c_int, c_int) = (FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV);

/// The state of an open endpoint.
pub(crate) struct Endpoint {
    pub(crate) domain: Id,
    pub(crate) profile: &'static Profile,
    /// The context in errors of operations that have none.
    pub(crate) context: usize,
    /// The default flags of operations.
    pub(crate) op_flags: u64,
    pub(crate) vector: Option<Id>,
    /// The queue of each direction, and whether only operations that request an entry write one
    /// (`FI_SELECTIVE_COMPLETION`).
    pub(crate) transmits: Option<(Id, bool)>,
    pub(crate) receives_at: Option<(Id, bool)>,
    pub(crate) counters: Counters,
    pub(crate) is_enabled: bool,
    pub(crate) least_room: usize,
    /// The number of outstanding operations, and of those among them that will write an entry.
    pub(crate) in_flight: usize,
    pub(crate) reserved: usize,
    /// Its operations that have not been sent.
    pub(crate) outgoing: VecDeque<Operation>,
    /// Its operations that have returned.
    pub(crate) returned: VecDeque<Operation>,
    /// Operations of other endpoints on its memory.
    pub(crate) incoming: VecDeque<Operation>,
    /// Messages that have arrived.
    pub(crate) mail: VecDeque<Letter>,
    /// Posted receive buffers.
    pub(crate) receives: VecDeque<Receive>,
}

/// The counters of an endpoint.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) reads: Option<Id>,
    pub(crate) writes: Option<Id>,
    pub(crate) sends: Option<Id>,
    pub(crate) receives: Option<Id>,
}

/// The counters that a null endpoint increments.
#[derive(Default)]
pub(crate) struct Counts {
    writes: AtomicPtr<Value>,
    reads: AtomicPtr<Value>,
}

impl Counts {
    /// The counter of operations that fetch, or of those that do not.
    pub(crate) fn place(&self, fetches: bool) -> &AtomicPtr<Value> {
        if fetches { &self.reads } else { &self.writes }
    }
}

impl Endpoint {
    /// The queues that the endpoint is bound to.
    pub(crate) fn queues(&self) -> Vec<Id> {
        let both = [self.transmits, self.receives_at].into_iter().flatten();
        let mut queues: Vec<Id> = both.map(|(queue, _)| queue).collect();
        queues.dedup();
        queues
    }

    /// Whether the endpoint is bound to this queue.
    pub(crate) fn has_queue(&self, id: Id) -> bool {
        self.queues().contains(&id)
    }

    /// Whether there is room for another incoming operation of this kind.
    pub(crate) fn has_room(&self, action: Action) -> bool {
        let waiting = if action == Action::Message { self.mail.len() } else { self.incoming.len() };
        waiting < QUEUE_COUNT
    }

    /// Whether the endpoint is bound to this counter.
    pub(crate) fn has_counter(&self, id: Id) -> bool {
        let Counters { reads, writes, sends, receives } = self.counters;
        [reads, writes, sends, receives].contains(&Some(id))
    }
}

/// The object that an enabled endpoint is bound to.
pub(crate) fn bound<T>(binding: Option<T>) -> T {
    binding.expect("it is bound before it is enabled")
}

impl Head for fid_ep {
    const OPS: &'static fi_ops = &fi_ops { bind: Some(bind), control: Some(control), ..closable::<Self>() };
    type Shared = Counts;

    fn is_in_use(_: &World, _: Id) -> bool {
        false
    }

    fn leave(world: &mut World, id: Id, endpoint: Endpoint) {
        if let Some((queue, _)) = endpoint.transmits {
            at(&mut world.queues, queue).release(endpoint.reserved);
        }
        for other in world.endpoints.values_mut() {
            other.incoming.retain(|operation| operation.from != id);
        }
        for operation in endpoint.incoming {
            give_back(world, operation, Err(Fault::Gone));
        }
    }
}

static OPS: fi_ops_ep = fi_ops_ep {
    cancel: Some(receive::cancel),
    getopt: Some(get_option),
    setopt: Some(set_option),
    ..fi_ops_ep::EMPTY
};

static CM: fi_ops_cm = fi_ops_cm { getname: Some(name), ..fi_ops_cm::EMPTY };

/// Opens an endpoint.
pub(crate) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    info: *mut fi_info,
    ep: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller passes an open domain, whose table contains this function.
    let (mut world, domain) = unsafe { enter(domain) };
    world.ignore(2);
    let profile = at(&mut world.domains, domain).profile;
    // SAFETY: the caller passes an entry that this library has made.
    let op_flags = unsafe {
        if !super::info::is_of(info, profile) {
            return -FI_EINVAL;
        }
        (*(*info).tx_attr).op_flags
    };
    let endpoint = Endpoint {
        domain,
        profile,
        context: context.expose_provenance(),
        op_flags,
        vector: None,
        transmits: None,
        receives_at: None,
        counters: Counters::default(),
        is_enabled: false,
        least_room: LEAST_ROOM_DEFAULT,
        in_flight: 0,
        reserved: 0,
        outgoing: VecDeque::new(),
        returned: VecDeque::new(),
        incoming: VecDeque::new(),
        mail: VecDeque::new(),
        receives: VecDeque::new(),
    };
    let (rma, atomic) = match profile.is_null {
        true => (table(&rma::NULL), table(&atomic::NULL)),
        false => (table(&rma::OPS), table(&atomic::OPS)),
    };
    let head = |fid| fid_ep {
        fid,
        ops: table(&OPS),
        cm: table(&CM),
        msg: table(&message::OPS),
        rma,
        tagged: null_mut(),
        atomic,
        collective: null_mut(),
    };
    // SAFETY: the caller passes a pointer that is valid for the result.
    unsafe { object::open(&mut world, ep, context, head, |_, _| endpoint) }
}

unsafe extern "C" fn bind(fid: *mut fid, object: *mut fid, flags: u64) -> c_int {
    let endpoint = fid.cast::<fid_ep>();
    // SAFETY: only the table of endpoints contains this function.
    let ((mut world, id), counts) = unsafe { (enter(endpoint), &of(endpoint).shared) };
    if at(&mut world.endpoints, id).is_enabled {
        return -FI_EOPBADSTATE;
    }
    // SAFETY: the caller passes an open object.
    match unsafe { (id_of::<fid_av>(object), id_of::<fid_cq>(object), id_of::<fid_cntr>(object)) } {
        (Some(vector), ..) => bind_vector(&mut world, id, vector),
        (_, Some(queue), _) => bind_queue(&mut world, id, queue, flags),
        (.., Some(counter)) => bind_counter(&mut world, id, counter, flags, counts),
        _ => -FI_EINVAL,
    }
}

fn bind_vector(world: &mut World, id: Id, vector: Id) -> c_int {
    let domain = at(&mut world.vectors, vector).domain;
    let endpoint = at(&mut world.endpoints, id);
    if endpoint.vector.is_some() || endpoint.domain != domain {
        return -FI_EINVAL;
    }
    endpoint.vector = Some(vector);
    0
}

fn bind_queue(world: &mut World, id: Id, queue: Id, flags: u64) -> c_int {
    let domain = at(&mut world.queues, queue).domain;
    let endpoint = at(&mut world.endpoints, id);
    let (transmits, receives) = (flags & FI_TRANSMIT != 0, flags & FI_RECV != 0);
    if flags & !(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) != 0 {
        return -FI_EBADFLAGS;
    }
    let is_taken = transmits && endpoint.transmits.is_some() || receives && endpoint.receives_at.is_some();
    if is_taken || !(transmits || receives) || endpoint.domain != domain {
        return -FI_EINVAL;
    }
    let binding = Some((queue, flags & FI_SELECTIVE_COMPLETION != 0));
    if transmits {
        endpoint.transmits = binding;
    }
    if receives {
        endpoint.receives_at = binding;
    }
    0
}

fn bind_counter(world: &mut World, id: Id, counter: Id, flags: u64, counts: &Counts) -> c_int {
    let domain = at(&mut world.counters, counter).domain;
    let endpoint = at(&mut world.endpoints, id);
    if flags & !(FI_READ | FI_WRITE | FI_SEND | FI_RECV) != 0 {
        return -FI_ENOSYS;
    }
    let Counters { reads, writes, sends, receives } = &mut endpoint.counters;
    let places = [(FI_READ, reads), (FI_WRITE, writes), (FI_SEND, sends), (FI_RECV, receives)];
    let mut asked: Vec<_> = places.into_iter().filter(|(flag, _)| flags & flag != 0).collect();
    if asked.is_empty() || asked.iter().any(|(_, place)| place.is_some()) || endpoint.domain != domain {
        return -FI_EINVAL;
    }
    asked.iter_mut().for_each(|(_, place)| **place = Some(counter));
    let value = world.counters[&counter].value();
    for (flag, fetches) in [(FI_WRITE, false), (FI_READ, true)] {
        if flags & flag != 0 {
            counts.place(fetches).store(value, Ordering::Relaxed);
        }
    }
    0
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, _argument: *mut c_void) -> c_int {
    // SAFETY: only the table of endpoints contains this function.
    let (mut world, id) = unsafe { enter(fid.cast::<fid_ep>()) };
    let endpoint = at(&mut world.endpoints, id);
    match command {
        FI_ENABLE if endpoint.is_enabled => -FI_EOPBADSTATE,
        FI_ENABLE if endpoint.vector.is_none() => -FI_ENOAV,
        FI_ENABLE if endpoint.transmits.is_none() || endpoint.receives_at.is_none() => -FI_ENOCQ,
        // A null endpoint increments its counter without checking that there is one.
        FI_ENABLE if endpoint.profile.is_null && endpoint.counters.writes.is_none() => -FI_EINVAL,
        FI_ENABLE if endpoint.profile.is_null && endpoint.counters.reads.is_none() => -FI_EINVAL,
        FI_ENABLE => {
            endpoint.is_enabled = true;
            0
        }
        _ => -FI_ENOSYS,
    }
}

unsafe extern "C" fn name(fid: *mut fid, address: *mut c_void, bytes: *mut usize) -> c_int {
    // SAFETY: only the table of endpoints contains this function.
    let (mut world, id) = unsafe { enter(fid.cast::<fid_ep>()) };
    let endpoint = at(&mut world.endpoints, id);
    if !endpoint.is_enabled {
        return -FI_EOPBADSTATE;
    }
    // SAFETY: the caller passes a buffer of the length that it states.
    unsafe { address::write(endpoint.profile, id, address, bytes) }
}

unsafe extern "C" fn set_option(
    fid: *mut fid,
    level: c_int,
    option: c_int,
    value: *const c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: only the table of endpoints contains this function.
    let (mut world, id) = unsafe { enter(fid.cast::<fid_ep>()) };
    if (level, option) != LEAST_ROOM {
        return -FI_ENOPROTOOPT;
    }
    if bytes != size_of::<usize>() {
        return -FI_EINVAL;
    }
    // SAFETY: the caller passes a value of that size.
    at(&mut world.endpoints, id).least_room = unsafe { value.cast::<usize>().read_unaligned() };
    0
}

unsafe extern "C" fn get_option(
    fid: *mut fid,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: only the table of endpoints contains this function.
    let (mut world, id) = unsafe { enter(fid.cast::<fid_ep>()) };
    if (level, option) != LEAST_ROOM {
        return -FI_ENOPROTOOPT;
    }
    // SAFETY: the caller passes a buffer of the length that it states.
    unsafe {
        if bytes.replace(size_of::<usize>()) < size_of::<usize>() {
            return -FI_ETOOSMALL;
        }
        value.cast::<usize>().write_unaligned(at(&mut world.endpoints, id).least_room);
    }
    0
}
