//! Buffered sends, and the buffers that programs attach for them.
//!
//! Data of a buffered send are copied to memory of the library. The attached buffer bounds how much of it the
//! program may use: a message takes its length and `MPI_BSEND_OVERHEAD` of it until it has left.
//!
//! Invariant: the messages of a buffer are kept in their order until they have left. Detaching and flushing
//! wait for those that were there at the call.

use super::buffer::{bytes_of, given, packed};
use super::send::{Send, address};
use crate::abi::*;
use crate::chapters::comm::Comm;
use crate::chapters::data::Data;
use crate::chapters::datatype;
use crate::chapters::error::{Error, On, Result, ensure};
use crate::chapters::library::{self, Mpi, output};
use crate::chapters::request::{self, Active, Operation, Outcome};
use crate::chapters::session;
use crate::convert::IntegerOut;
use pelago_core::Pe;
use pelago_core::base::awaited::Awaited;
use pelago_core::msg::operation::Mode;
use pelago_core::msg::request::RequestId;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The place for the buffer of a communicator, of a session, or of the process.
#[derive(Default)]
pub struct Place(Arc<Mutex<Attached>>);

/// The buffer of the process: `MPI_Buffer_attach`.
static PROCESS: Mutex<Option<Place>> = Mutex::new(None);

/// Everything that a buffer was attached to, for the end of the process's use of MPI.
static PLACES: Mutex<Vec<Weak<Mutex<Attached>>>> = Mutex::new(Vec::new());

#[derive(Default)]
struct Attached {
    /// Address and size, as the program gave them.
    buffer: Option<(usize, usize)>,
    /// The oldest is the first.
    messages: VecDeque<Message>,
    /// The number of the next message.
    next: u64,
    /// Bytes of the buffer that the messages take.
    used: usize,
    /// How many messages were left when all were looked at.
    left: usize,
}

/// A message that had not left when it was last looked at.
struct Message {
    number: u64,
    id: RequestId,
    to: Pe,
    bytes: usize,
    data: Data,
}

/// A buffered send looks at no messages while there are fewer than this, and room for its own.
const LOOK_MIN: usize = 64;

impl Attached {
    /// Keeps a message until it has left.
    fn keep(&mut self, id: RequestId, to: Pe, bytes: usize, data: Data) {
        self.messages.push_back(Message { number: self.next, id, to, bytes, data });
        self.next += 1;
        self.used += bytes;
    }

    /// Lets the messages go on without the buffer.
    fn let_go(&mut self, mpi: &Mpi, comm: MPI_Comm) {
        self.used = 0;
        for Message { id, data, .. } in self.messages.drain(..) {
            let message = request::Message { id, receive: None, kept: Some(data) };
            request::detach(mpi, Active::Message(message), On::Comm(comm));
        }
    }

    /// The size of the buffer; `None` if it has no limit.
    fn size(&self) -> Option<usize> {
        match self.buffer {
            None => Some(0),
            Some((start, size)) => (start != MPI_BUFFER_AUTOMATIC.addr()).then_some(size),
        }
    }

    fn has_room(&self, needs: usize) -> bool {
        self.size().is_none_or(|size| self.used + needs <= size)
    }

    /// Whether a message that needs this much room waits for a look at the others: there is no room, or they
    /// are twice as many as at the last look.
    fn needs_look(&self, needs: usize) -> bool {
        !self.has_room(needs) || self.messages.len() >= LOOK_MIN.max(2 * self.left)
    }

    /// Drops messages that have left, if they are many, or if `needs` bytes have no room without that.
    fn look(&mut self, needs: usize, mut has_left: impl FnMut(RequestId) -> bool) {
        self.first_below(u64::MAX, &mut has_left);
        if self.needs_look(needs) {
            self.messages.retain(|message| !has_left(message.id));
            self.used = self.messages.iter().map(|message| message.bytes).sum();
            self.left = self.messages.len();
        }
    }

    /// The oldest message whose number is below `end` and that has not left. Older ones are dropped.
    fn first_below(&mut self, end: u64, mut has_left: impl FnMut(RequestId) -> bool) -> Option<&Message> {
        while let Some(first) = self.messages.front()
            && first.number < end
            && has_left(first.id)
        {
            self.used -= first.bytes;
            self.messages.pop_front();
        }
        self.messages.front().filter(|message| message.number < end)
    }
}

/// The last one that uses the buffer of a communicator is gone: a persistent send, after the communicator.
impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(mpi) = library::get() {
            self.let_go(mpi, MPI_COMM_NULL);
        }
    }
}

impl Place {
    fn lock(&self) -> MutexGuard<'_, Attached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another reference to the same place.
    fn share(&self) -> Place {
        Place(Arc::clone(&self.0))
    }

    /// The place of the process.
    fn of_process() -> Place {
        PROCESS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Place::default).share()
    }

    /// The place that buffered sends of a communicator use.
    fn of(comm: &Comm) -> Place {
        let has_buffer = |place: &Place| place.lock().buffer.is_some();
        if has_buffer(&comm.attached) {
            return comm.attached.share();
        }
        let session = session::find(comm.group.session).ok();
        let of_session = session.map(|session| session.attached.share()).filter(has_buffer);
        of_session.unwrap_or_else(Place::of_process)
    }

    /// Attaches a buffer.
    pub fn attach(&self, buffer: *mut c_void, size: i64) -> Result {
        let is_automatic = buffer.addr() == MPI_BUFFER_AUTOMATIC.addr();
        ensure!(size >= 0 || is_automatic, MPI_ERR_ARG, "the size is {size}, which is negative");
        let size = size.max(0);
        ensure!(!buffer.is_null() || size == 0, MPI_ERR_BUFFER, "the buffer is null");
        let mut attached = self.lock();
        ensure!(attached.buffer.is_none(), MPI_ERR_BUFFER, "a buffer is attached already. Detach it first");
        attached.buffer = Some((buffer.expose_provenance(), size as usize));
        drop(attached);
        let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|place| place.upgrade().is_some_and(|place| !Arc::ptr_eq(&place, &self.0)));
        places.push(Arc::downgrade(&self.0));
        Ok(())
    }

    /// Detaches the buffer when its messages have left: its address and size.
    ///
    /// # Safety
    /// The places are valid for one value each.
    pub unsafe fn detach(&self, mpi: &Mpi, address: *mut c_void, size: IntegerOut) -> Result {
        let place = output("the place of the address", address.cast::<*mut c_void>())?;
        let found = self.lock().buffer;
        let Some((start, bytes)) = found else {
            return Err(Error::new(MPI_ERR_BUFFER, "no buffer is attached"));
        };
        self.flush(mpi);
        self.lock().buffer = None;
        // SAFETY: the program keeps the conditions that the standard has for this call.
        unsafe {
            place.write(std::ptr::with_exposed_provenance_mut(start));
            size.set(bytes as i64);
        }
        Ok(())
    }

    /// Waits until all messages that are there now have left.
    pub fn flush(&self, mpi: &Mpi) {
        let end = self.lock().next;
        while let Some((first, to)) = self.first_below(mpi, end) {
            let awaited = Awaited::Message { is_send: true, pe: Some(to) };
            mpi.core.wait(awaited, || self.have_left(mpi, first + 1));
        }
    }

    /// Number and destination of the oldest message below `end` that has not left.
    fn first_below(&self, mpi: &Mpi, end: u64) -> Option<(u64, Pe)> {
        let mut attached = self.lock();
        let first = attached.first_below(end, |id| mpi.core.take_if_done(id).is_some())?;
        Some((first.number, first.to))
    }

    /// Lets the messages go on without the place, whose communicator is freed.
    pub fn release(&self, mpi: &Mpi, comm: MPI_Comm) {
        self.lock().let_go(mpi, comm);
    }

    /// Makes progress; whether all messages whose numbers are below `end` have left.
    fn have_left(&self, mpi: &Mpi, end: u64) -> bool {
        if self.first_below(mpi, end).is_none() {
            return true;
        }
        mpi.core.progress();
        self.first_below(mpi, end).is_none()
    }

    /// Starts a wait for all messages that are there now.
    ///
    /// # Safety
    /// The place is null or valid for one value.
    pub unsafe fn start_flush(&self, on: On, request: *mut MPI_Request) -> Result {
        let place = output("request", request)?;
        let end = self.lock().next;
        let flush = Active::Other(Box::new(Flush { place: self.share(), end }));
        // SAFETY: the program keeps the conditions that the standard has for this call.
        unsafe { place.write(request::started(flush, on)?) };
        Ok(())
    }
}

/// Waits until all messages of all buffers have left, before the end.
pub fn flush_attached(mpi: &Mpi) {
    let places = PLACES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    places.iter().filter_map(Weak::upgrade).for_each(|place| Place(place).flush(mpi));
}

/// The same for the buffer of the process and those of the communicators of the world.
pub fn flush_world(mpi: &Mpi) {
    Place::of_process().flush(mpi);
    for comm in [MPI_COMM_WORLD, MPI_COMM_SELF] {
        mpi.share_comm(comm).iter().for_each(|comm| comm.attached.flush(mpi));
    }
}

/// The wait for the messages of a buffer whose numbers are below `end`.
struct Flush {
    place: Place,
    end: u64,
}

impl Operation for Flush {
    fn poll(&mut self, mpi: &Mpi) -> Option<Outcome> {
        self.place.have_left(mpi, self.end).then_some(Outcome::EMPTY)
    }
}

/// Sends with buffering.
unsafe fn send_buffered(mpi: &Mpi, comm: &Comm, send: Send) -> Result {
    let to = address(comm, send.dest, send.tag)?;
    let datatype = mpi.datatype(send.datatype)?;
    let bytes = bytes_of(send.count, datatype)?;
    let Some(to) = to else { return Ok(()) };
    if let Some(offset) = datatype.run(send.count as usize) {
        given(send.buffer.cast::<u8>().wrapping_offset(offset), bytes)?;
    }
    let place = Place::of(comm);
    let needs = bytes + MPI_BSEND_OVERHEAD as usize;
    let mut attached = place.lock();
    if attached.needs_look(needs) {
        drop(attached);
        mpi.core.progress();
        attached = place.lock();
        attached.look(needs, |id| mpi.core.take_if_done(id).is_some());
    }
    ensure!(
        attached.has_room(needs),
        MPI_ERR_BUFFER,
        "the message needs {needs} bytes of the attached buffer, of whose {} bytes {} are in use. \
         Attach a larger one (MPI_Buffer_attach)",
        attached.size().unwrap_or(0),
        attached.used
    );
    // SAFETY: the caller promises the elements; the copy lives until the message has left.
    unsafe {
        let data = packed(send.buffer.cast(), send.count as usize, datatype);
        if let Some(id) = mpi.core.start_send(to, (data.as_ptr(), bytes), Mode::Standard)? {
            attached.keep(id, to.pe, needs, data);
        }
    }
    Ok(())
}

/// `MPI_Bsend`.
pub unsafe fn bsend(
    mpi: &Mpi,
    buffer: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> Result {
    let send = Send { buffer, count, datatype, dest, tag, comm, mode: Mode::Buffered };
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { send_buffered(mpi, mpi.comm(comm)?, send) }
}

/// `MPI_Ibsend`: complete at once.
pub unsafe fn ibsend(
    mpi: &Mpi,
    buffer: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Result {
    let place = output("request", request)?;
    let send = Send { buffer, count, datatype, dest, tag, comm, mode: Mode::Buffered };
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe {
        send_buffered(mpi, mpi.comm(comm)?, send)?;
        place.write(request::started(Active::Done(Outcome::EMPTY), On::Comm(comm))?);
    }
    Ok(())
}

/// `MPI_Bsend_init`.
pub unsafe fn bsend_init(
    mpi: &Mpi,
    buffer: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Result {
    let place = output("request", request)?;
    // The program may free its handle.
    let kept = mpi.keep_comm(comm)?;
    address(&kept, dest, tag)?;
    bytes_of(count, mpi.datatype(datatype)?)?;
    let retained = datatype::retain(datatype)?;
    let start = move |mpi: &Mpi| {
        let datatype = retained.handle();
        let send = Send { buffer, count, datatype, dest, tag, comm, mode: Mode::Buffered };
        // SAFETY: the caller's promise, for every start.
        unsafe { send_buffered(mpi, &kept, send) }.map(|()| Active::Done(Outcome::EMPTY))
    };
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(request::persistent(On::Comm(comm), start)?) };
    Ok(())
}

/// `MPI_Buffer_attach`.
pub unsafe fn buffer_attach(_mpi: &Mpi, buffer: *mut c_void, size: i64) -> Result {
    Place::of_process().attach(buffer, size)
}

/// `MPI_Buffer_detach`.
pub unsafe fn buffer_detach(mpi: &Mpi, buffer_addr: *mut c_void, size: IntegerOut) -> Result {
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { Place::of_process().detach(mpi, buffer_addr, size) }
}

/// `MPI_Buffer_flush`.
pub unsafe fn buffer_flush(mpi: &Mpi) -> Result {
    Place::of_process().flush(mpi);
    Ok(())
}

/// `MPI_Buffer_iflush`.
pub unsafe fn buffer_iflush(_mpi: &Mpi, request: *mut MPI_Request) -> Result {
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { Place::of_process().start_flush(On::Comm(MPI_COMM_SELF), request) }
}

/// `MPI_Comm_attach_buffer`.
pub unsafe fn comm_attach_buffer(mpi: &Mpi, comm: MPI_Comm, buffer: *mut c_void, size: i64) -> Result {
    mpi.comm(comm)?.attached.attach(buffer, size)
}

/// `MPI_Comm_detach_buffer`.
pub unsafe fn comm_detach_buffer(
    mpi: &Mpi,
    comm: MPI_Comm,
    buffer_addr: *mut c_void,
    size: IntegerOut,
) -> Result {
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { mpi.comm(comm)?.attached.detach(mpi, buffer_addr, size) }
}

/// `MPI_Comm_flush_buffer`.
pub unsafe fn comm_flush_buffer(mpi: &Mpi, comm: MPI_Comm) -> Result {
    mpi.comm(comm)?.attached.flush(mpi);
    Ok(())
}

/// `MPI_Comm_iflush_buffer`.
pub unsafe fn comm_iflush_buffer(mpi: &Mpi, comm: MPI_Comm, request: *mut MPI_Request) -> Result {
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { mpi.comm(comm)?.attached.start_flush(On::Comm(comm), request) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place with messages whose identifiers have the codes 0, 1 and so on, in a buffer of this size.
    fn with_messages(count: u64, size: usize) -> Attached {
        let mut attached = Attached::default();
        attached.buffer = Some((64, size));
        (0..count).for_each(|code| attached.keep(RequestId::from_code(code), 0, 10, Data::new(0)));
        attached
    }

    #[test]
    fn buffered_sends_seldom_look_at_messages_that_stay() {
        let mut attached = with_messages(0, usize::MAX);
        let mut looks = 0;
        for code in 0..10_000 {
            if attached.needs_look(10) {
                attached.look(10, |_| {
                    looks += 1;
                    false
                });
            }
            assert!(attached.has_room(10));
            attached.keep(RequestId::from_code(code), 0, 10, Data::new(0));
        }
        assert!(looks < 30_000, "{looks} looks");
        assert_eq!((attached.messages.len(), attached.used), (10_000, 100_000));
    }

    #[test]
    fn messages_that_have_left_make_room_in_any_order() {
        let mut attached = with_messages(4, 40);
        assert!(attached.needs_look(1));
        attached.look(1, |_| false);
        assert!(!attached.has_room(1));
        attached.look(10, |id| id.code() == 2);
        assert!(attached.has_room(10) && !attached.has_room(11));
        attached.look(20, |id| id.code() == 0);
        assert!(attached.has_room(20) && !attached.has_room(21));
        let left: Vec<u64> = attached.messages.iter().map(|message| message.id.code()).collect();
        assert_eq!(left, [1, 3]);
    }

    #[test]
    fn a_flush_ends_without_the_messages_after_it() {
        let mut attached = with_messages(2, 100);
        let end = attached.next;
        attached.keep(RequestId::from_code(7), 0, 10, Data::new(0));
        assert_eq!(attached.first_below(end, |id| id.code() == 0).map(|message| message.number), Some(1));
        assert!(attached.first_below(end, |_| true).is_none());
        assert_eq!((attached.messages.len(), attached.used), (1, 10));
    }
}
