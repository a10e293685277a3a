//! Buffered sends, and the buffers that programs attach for them.
//!
//! Data of a buffered send are copied to memory of the library. The attached buffer bounds how much of it the
//! program may use: a message takes its length and `MPI_BSEND_OVERHEAD` of it until it has left.
//!
//! Invariant: the messages of a buffer are kept until they have left; detaching and flushing wait for them.

use super::buffer::{bytes_of, given, packed};
use super::send::{Send, address};
use crate::abi::*;
use crate::chapters::comm::Comm;
use crate::chapters::datatype;
use crate::chapters::error::{Error, On, Result, ensure};
use crate::chapters::library::{Mpi, output};
use crate::chapters::request::{self, Active, Operation, Outcome};
use crate::chapters::session;
use crate::convert::IntegerOut;
use pelago_core::msg::operation::Mode;
use pelago_core::msg::request::RequestId;
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
    messages: Vec<Message>,
}

/// A message that has not left.
struct Message {
    id: RequestId,
    bytes: usize,
    data: Box<[u8]>,
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

    /// Waits until all messages have left.
    pub fn flush(&self, mpi: &Mpi) {
        loop {
            let Some(message) = self.lock().messages.pop() else { return };
            mpi.core.wait_for_message(message.id);
        }
    }

    /// Lets the messages go on without the place, whose communicator is freed.
    pub fn release(&self, mpi: &Mpi) {
        let messages = std::mem::take(&mut self.lock().messages);
        for Message { id, data, .. } in messages {
            let message = request::Message { id, receive: None, unpack: None, kept: Some(data) };
            request::detach(mpi, Active::Message(message));
        }
    }

    /// Whether all messages have left.
    fn have_left(&self, mpi: &Mpi) -> bool {
        if self.lock().messages.is_empty() {
            return true;
        }
        mpi.core.progress();
        let mut attached = self.lock();
        attached.messages.retain(|message| mpi.core.take_if_done(message.id).is_none());
        attached.messages.is_empty()
    }

    /// Starts a wait for all messages.
    ///
    /// # Safety
    /// The place is null or valid for one value.
    pub unsafe fn start_flush(&self, on: On, request: *mut MPI_Request) -> Result {
        let place = output("request", request)?;
        let flush = Active::Other(Box::new(Flush(self.share())));
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

/// The wait for the messages of a buffer.
struct Flush(Place);

impl Operation for Flush {
    fn poll(&mut self, mpi: &Mpi) -> Option<Outcome> {
        self.0.have_left(mpi).then_some(Outcome::EMPTY)
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
    place.have_left(mpi);
    let mut attached = place.lock();
    let used: usize = attached.messages.iter().map(|message| message.bytes).sum();
    let (size, is_automatic) = match attached.buffer {
        None => (0, false),
        Some((start, size)) => (size, start == MPI_BUFFER_AUTOMATIC.addr()),
    };
    let needs = bytes + MPI_BSEND_OVERHEAD as usize;
    ensure!(
        is_automatic || used + needs <= size,
        MPI_ERR_BUFFER,
        "the message needs {needs} bytes of the attached buffer, of whose {size} bytes {used} are in use. \
         Attach a larger one (MPI_Buffer_attach)"
    );
    // SAFETY: the caller promises the elements; the copy lives until the message has left.
    unsafe {
        let data = packed(send.buffer.cast(), send.count as usize, datatype);
        if let Some(id) = mpi.core.start_send(to, (data.as_ptr(), bytes), Mode::Standard)? {
            attached.messages.push(Message { id, bytes: needs, data });
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
