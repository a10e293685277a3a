//! Completion queues: `fi_cq(3)`.
//!
//! Invariant: an operation reserves room for its entry before it is accepted, so a queue never overruns;
//! errors always have room. The descriptor is readable while there are entries, or work on an endpoint that
//! the queue is bound to, unless `calm` has been called since.

use super::completion::Entry;
use super::engine::{advance_all, is_movable};
use super::fault::Fault;
use super::object::{self, Head, closable, enter, table};
use super::refusal::{Table, answer};
use super::wait::Deadline;
use super::world::{CHANGED, Id, World, at};
use libc::{c_char, c_int, c_void};
use pelago_fabric::ofi::sys::*;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};

/// The state of an open queue.
pub(crate) struct Queue {
    pub(crate) domain: Id,
    format: fi_cq_format,
    capacity: usize,
    reserved: usize,
    entries: VecDeque<Entry>,
    wait_obj: fi_wait_obj,
    descriptor: Option<OwnedFd>,
    /// Waits return although there is no entry (`fi_cq_signal`).
    is_signalled: bool,
}

/// The default capacity of a queue.
const CAPACITY_DEFAULT: usize = 256;

impl Head for fid_cq {
    const OPS: &'static fi_ops = &fi_ops { control: Some(control), ..closable::<Self>() };
    type Shared = ();

    fn is_in_use(world: &World, id: Id) -> bool {
        world.endpoints.values().any(|endpoint| endpoint.has_queue(id))
    }
}

static OPS: fi_ops_cq = fi_ops_cq {
    read: Some(read),
    readfrom: Some(read_from),
    readerr: Some(read_error),
    sread: Some(sread),
    signal: Some(signal),
    strerror: Some(strerror),
    ..fi_ops_cq::EMPTY
};

impl Queue {
    /// Reserves room for an entry; `false` if there is none.
    pub(crate) fn reserve(&mut self) -> bool {
        let has_room = self.has_room(1);
        self.reserved += usize::from(has_room);
        has_room
    }

    /// Releases reserved room.
    pub(crate) fn release(&mut self, count: usize) {
        self.reserved -= count;
    }

    /// Whether there is room for this number of entries.
    pub(crate) fn has_room(&self, count: usize) -> bool {
        self.entries.len() + self.reserved + count <= self.capacity
    }

    /// Adds an entry.
    pub(crate) fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry);
    }

    /// Makes the descriptor readable.
    pub(crate) fn wake(&self) {
        if let Some(descriptor) = &self.descriptor {
            // The call fails only if the counter of the descriptor overflows.
            let _ = rustix::io::write(descriptor, &1_u64.to_ne_bytes());
        }
    }

    /// Makes the descriptor unreadable until `wake`.
    pub(crate) fn calm(&self) -> c_int {
        let Some(descriptor) = &self.descriptor else { return -FI_EINVAL };
        // The call fails if the descriptor is not readable, which is the desired state.
        let _ = rustix::io::read(descriptor, &mut [0_u8; 8]);
        0
    }
}

/// Whether a queue has entries, or its endpoints have work.
pub(crate) fn has_work(world: &mut World, id: Id) -> bool {
    if !at(&mut world.queues, id).entries.is_empty() {
        return true;
    }
    let endpoints = world.endpoints_where(|endpoint| endpoint.has_queue(id));
    endpoints.into_iter().any(|endpoint| is_movable(world, endpoint))
}

/// Opens a queue.
pub(crate) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attributes: *mut fi_cq_attr,
    cq: *mut *mut fid_cq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller passes attributes and an open domain, whose table contains this function.
    let ((mut world, domain), given) = unsafe { (enter(domain), &*attributes) };
    let format = if given.format == FI_CQ_FORMAT_UNSPEC { FI_CQ_FORMAT_CONTEXT } else { given.format };
    let descriptor = match given.wait_obj {
        FI_WAIT_NONE => None,
        FI_WAIT_UNSPEC | FI_WAIT_FD => match eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC) {
            Ok(descriptor) => Some(descriptor),
            Err(error) => return -error.raw_os_error(),
        },
        _ => return -FI_ENOSYS,
    };
    if format > FI_CQ_FORMAT_TAGGED || given.flags != 0 {
        return -FI_EINVAL;
    }
    let queue = Queue {
        domain,
        format,
        capacity: if given.size == 0 { CAPACITY_DEFAULT } else { given.size },
        reserved: 0,
        entries: VecDeque::new(),
        wait_obj: given.wait_obj,
        descriptor,
        is_signalled: false,
    };
    let head = |fid| fid_cq { fid, ops: table(&OPS) };
    // SAFETY: the caller passes a pointer that is valid for the result.
    unsafe { object::open(&mut world, cq, context, head, |_, _| queue) }
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: only the table of completion queues contains this function.
    let (mut world, id) = unsafe { enter(fid.cast::<fid_cq>()) };
    let queue = at(&mut world.queues, id);
    match (command, &queue.descriptor) {
        (FI_GETWAIT, Some(descriptor)) if queue.wait_obj == FI_WAIT_FD => {
            // SAFETY: the caller passes a pointer to a descriptor, as the command requires.
            unsafe { argument.cast::<c_int>().write(descriptor.as_raw_fd()) };
            0
        }
        (FI_GETWAIT, _) => -FI_ENODATA,
        (FI_GETWAITOBJ, _) => {
            // SAFETY: the caller passes a pointer to a wait object type, as the command requires.
            unsafe { argument.cast::<fi_wait_obj>().write(queue.wait_obj) };
            0
        }
        _ => -FI_ENOSYS,
    }
}

/// Makes progress, and reads up to `count` entries.
///
/// # Safety
/// `room` has space for `count` entries of the queue's format.
unsafe fn take(world: &mut World, id: Id, room: *mut c_void, count: usize) -> Result<usize, c_int> {
    advance_all(world, |endpoint| endpoint.has_queue(id));
    let queue = at(&mut world.queues, id);
    let entry_bytes = match queue.format {
        FI_CQ_FORMAT_CONTEXT => size_of::<fi_cq_entry>(),
        FI_CQ_FORMAT_MSG => size_of::<fi_cq_msg_entry>(),
        FI_CQ_FORMAT_DATA => size_of::<fi_cq_data_entry>(),
        _ => size_of::<fi_cq_tagged_entry>(),
    };
    let mut taken = 0;
    while let Some(entry) = queue.entries.front().filter(|_| taken < count) {
        if entry.fault.is_some() {
            break;
        }
        // Every format is a prefix of the longest one.
        let entry = fi_cq_tagged_entry {
            op_context: std::ptr::with_exposed_provenance_mut(entry.context),
            flags: entry.flags,
            len: entry.bytes,
            buf: std::ptr::with_exposed_provenance_mut(entry.buffer),
            data: 0,
            tag: 0,
        };
        // SAFETY: the caller passes space for `count` entries of this size.
        unsafe {
            let place = room.cast::<u8>().add(taken * entry_bytes);
            place.copy_from_nonoverlapping((&raw const entry).cast(), entry_bytes);
        }
        queue.entries.pop_front();
        taken += 1;
    }
    match queue.entries.front() {
        _ if taken > 0 => Ok(taken),
        Some(entry) if entry.fault.is_some() => Err(FI_EAVAIL),
        _ => Err(FI_EAGAIN),
    }
}

unsafe extern "C" fn read(cq: *mut fid_cq, room: *mut c_void, count: usize) -> isize {
    // SAFETY: only the table of completion queues contains this function; the caller passes an array for the
    // entries.
    unsafe {
        let (mut world, id) = enter(cq);
        answer(take(&mut world, id, room, count))
    }
}

unsafe extern "C" fn read_from(
    cq: *mut fid_cq,
    room: *mut c_void,
    count: usize,
    sources: *mut fi_addr_t,
) -> isize {
    // SAFETY: only the table of completion queues contains this function; the caller passes arrays for the
    // entries and for their sources.
    unsafe {
        let (mut world, id) = enter(cq);
        let taken = take(&mut world, id, room, count);
        for index in 0..taken.unwrap_or(0) {
            sources.add(index).write(FI_ADDR_NOTAVAIL);
        }
        answer(taken)
    }
}

unsafe extern "C" fn sread(
    cq: *mut fid_cq,
    room: *mut c_void,
    count: usize,
    _condition: *const c_void,
    timeout: c_int,
) -> isize {
    // SAFETY: only the table of completion queues contains this function.
    let (mut world, id) = unsafe { enter(cq) };
    if at(&mut world.queues, id).wait_obj == FI_WAIT_NONE {
        return answer(Err(FI_ENOSYS));
    }
    let deadline = Deadline::after(timeout);
    loop {
        // SAFETY: the caller passes an array for the entries.
        match unsafe { take(&mut world, id, room, count) } {
            Err(FI_EAGAIN) => {}
            taken => return answer(taken),
        }
        if std::mem::take(&mut at(&mut world.queues, id).is_signalled) {
            return answer(Err(FI_EAGAIN));
        }
        // No further check after the time has expired: so that a missing wake-up is detected.
        match deadline.sleep(world) {
            Some((later, false)) => world = later,
            _ => return answer(Err(FI_EAGAIN)),
        }
    }
}

unsafe extern "C" fn signal(cq: *mut fid_cq) -> c_int {
    // SAFETY: only the table of completion queues contains this function.
    let (mut world, id) = unsafe { enter(cq) };
    let queue = at(&mut world.queues, id);
    if queue.wait_obj == FI_WAIT_NONE {
        return -FI_ENOSYS;
    }
    queue.is_signalled = true;
    queue.wake();
    CHANGED.notify_all();
    0
}

unsafe extern "C" fn read_error(cq: *mut fid_cq, room: *mut fi_cq_err_entry, _flags: u64) -> isize {
    // SAFETY: only the table of completion queues contains this function.
    let (mut world, id) = unsafe { enter(cq) };
    let queue = at(&mut world.queues, id);
    let Some((fault, entry)) = queue.entries.front().and_then(|entry| Some((entry.fault?, *entry))) else {
        return answer(Err(FI_EAGAIN));
    };
    queue.entries.pop_front();
    // SAFETY: the caller passes space for an entry, whose buffer for error data it keeps valid.
    unsafe {
        room.write(fi_cq_err_entry {
            op_context: std::ptr::with_exposed_provenance_mut(entry.context),
            flags: entry.flags,
            len: entry.bytes,
            buf: std::ptr::with_exposed_provenance_mut(entry.buffer),
            data: 0,
            tag: 0,
            olen: 0,
            err: fault.error(),
            prov_errno: fault.code(),
            err_data: (*room).err_data,
            err_data_size: 0,
        });
    }
    1
}

unsafe extern "C" fn strerror(
    _cq: *mut fid_cq,
    code: c_int,
    _data: *const c_void,
    buffer: *mut c_char,
    bytes: usize,
) -> *const c_char {
    let words = Fault::of_code(code).map_or(c"unknown fault", Fault::words);
    if !buffer.is_null() {
        // SAFETY: the caller passes a buffer of this length.
        unsafe { super::text::write(buffer, bytes, &words.to_string_lossy()) };
    }
    words.as_ptr()
}
