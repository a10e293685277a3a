//! Completion queues: `fi_cq(3)`.
//!
//! Invariant: an operation that will leave an entry has reserved room for it before it is accepted, so a
//! queue never overruns; errors find room always. The descriptor is readable whenever there is something to
//! take, or to move on an endpoint that the queue is bound to, and `calm` has not been called since.

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

/// An open queue.
pub(crate) struct Queue {
    pub(crate) domain: Id,
    format: fi_cq_format,
    capacity: usize,
    reserved: usize,
    entries: VecDeque<Entry>,
    wait_obj: fi_wait_obj,
    descriptor: Option<OwnedFd>,
    /// Waits are to end although there is nothing.
    is_signalled: bool,
}

/// The most entries of a queue whose opener names no number.
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
    /// Keeps room for an entry; `false` if there is none.
    pub(crate) fn reserve(&mut self) -> bool {
        let has_room = self.has_room(1);
        self.reserved += usize::from(has_room);
        has_room
    }

    /// Gives up room that was kept.
    pub(crate) fn release(&mut self, count: usize) {
        self.reserved -= count;
    }

    /// Whether so many more entries find room.
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
            // It fails only when the descriptor is readable as often as it can be counted.
            let _ = rustix::io::write(descriptor, &1_u64.to_ne_bytes());
        }
    }

    /// Makes the descriptor unreadable until `wake`.
    pub(crate) fn calm(&self) -> c_int {
        let Some(descriptor) = &self.descriptor else { return -FI_EINVAL };
        // It fails if the descriptor is not readable, which is what is wanted.
        let _ = rustix::io::read(descriptor, &mut [0_u8; 8]);
        0
    }
}

/// Whether there is something to take from a queue, or to move on its endpoints.
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
    // SAFETY: the caller gives attributes and an open domain, whose table this function stands in.
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
    // SAFETY: the caller gives the place.
    unsafe { object::open(&mut world, cq, context, head, |_, _| queue) }
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the table is that of completion queues.
    let (mut world, id) = unsafe { enter(fid.cast::<fid_cq>()) };
    let queue = at(&mut world.queues, id);
    match (command, &queue.descriptor) {
        (FI_GETWAIT, Some(descriptor)) if queue.wait_obj == FI_WAIT_FD => {
            // SAFETY: the caller gives room for a descriptor, as the command asks.
            unsafe { argument.cast::<c_int>().write(descriptor.as_raw_fd()) };
            0
        }
        (FI_GETWAIT, _) => -FI_ENODATA,
        (FI_GETWAITOBJ, _) => {
            // SAFETY: the caller gives room for the kind of wait object, as the command asks.
            unsafe { argument.cast::<fi_wait_obj>().write(queue.wait_obj) };
            0
        }
        _ => -FI_ENOSYS,
    }
}

/// Makes progress, and takes up to `count` entries.
///
/// # Safety
/// There is room for so many entries of the queue's format.
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
        // Every format is the beginning of the longest one.
        let entry = fi_cq_tagged_entry {
            op_context: std::ptr::with_exposed_provenance_mut(entry.context),
            flags: entry.flags,
            len: entry.bytes,
            buf: std::ptr::with_exposed_provenance_mut(entry.buffer),
            data: 0,
            tag: 0,
        };
        // SAFETY: the caller gives room for so many entries of that size.
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
    // SAFETY: the table is that of completion queues; the caller gives the room.
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
    // SAFETY: the table is that of completion queues; the caller gives the room, also for so many sources.
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
    // SAFETY: the table is that of completion queues.
    let (mut world, id) = unsafe { enter(cq) };
    if at(&mut world.queues, id).wait_obj == FI_WAIT_NONE {
        return answer(Err(FI_ENOSYS));
    }
    let deadline = Deadline::after(timeout);
    loop {
        // SAFETY: the caller gives the room.
        match unsafe { take(&mut world, id, room, count) } {
            Err(FI_EAGAIN) => {}
            taken => return answer(taken),
        }
        if std::mem::take(&mut at(&mut world.queues, id).is_signalled) {
            return answer(Err(FI_EAGAIN));
        }
        // Not another look when the time is over: who was not woken although something came is to be found
        // out.
        match deadline.sleep(world) {
            Some((later, false)) => world = later,
            _ => return answer(Err(FI_EAGAIN)),
        }
    }
}

unsafe extern "C" fn signal(cq: *mut fid_cq) -> c_int {
    // SAFETY: the table is that of completion queues.
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
    // SAFETY: the table is that of completion queues.
    let (mut world, id) = unsafe { enter(cq) };
    let queue = at(&mut world.queues, id);
    let Some((fault, entry)) = queue.entries.front().and_then(|entry| Some((entry.fault?, *entry))) else {
        return answer(Err(FI_EAGAIN));
    };
    queue.entries.pop_front();
    // SAFETY: the caller gives room for an entry, whose buffer for more data it keeps.
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
        // SAFETY: the caller gives so much room.
        unsafe { super::text::write(buffer, bytes, &words.to_string_lossy()) };
    }
    words.as_ptr()
}
