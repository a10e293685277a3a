//! Receives.

use super::buffer::{Gaps, bytes_of, given};
use crate::abi::*;
use crate::chapters::comm::{Comm, KeptComm};
use crate::chapters::data::Data;
use crate::chapters::datatype;
use crate::chapters::error::{Error, On, Result, ensure};
use crate::chapters::library::{Mpi, output};
use crate::chapters::request::{self, Active, Message, NO_PROCESS, Outcome, Received};
use pelago_core::msg::envelope::{Context, Envelope};
use pelago_core::msg::operation::Started;
use pelago_core::msg::packing::Packing;
use pelago_core::msg::request::RequestId;
use std::ptr;

/// Data of at most this length are unpacked when all of them have come, if the call waits for them.
const UNPACKED_TOGETHER_MAX: usize = 16 << 10;

/// Where the data of a message go: in one piece, or with gaps.
enum Place {
    Buffer(*mut u8),
    Gaps(Box<Gaps>),
}

/// A receive of these elements.
#[derive(Clone, Copy)]
pub struct Receive {
    pub buffer: *mut c_void,
    pub count: i64,
    pub datatype: MPI_Datatype,
    pub source: c_int,
    pub tag: c_int,
    pub comm: MPI_Comm,
}

/// The pattern of a receive; `None` if it is from no process.
#[inline(always)]
pub fn pattern(comm: &Comm, source: c_int, tag: c_int) -> Result<Option<Envelope>> {
    ensure!(
        tag >= 0 || tag == MPI_ANY_TAG,
        MPI_ERR_TAG,
        "tag {tag} of a receive; tags are 0 to {}",
        c_int::MAX
    );
    let pe = match source {
        MPI_PROC_NULL => return Ok(None),
        MPI_ANY_SOURCE => None,
        _ => Some(comm.peer(source)?),
    };
    let tag = (tag != MPI_ANY_TAG).then_some(tag as u32);
    Ok(Some(Envelope::pattern(Context(comm.context), pe, tag)))
}

impl Receive {
    /// Receives: the outcome.
    ///
    /// # Safety
    /// The buffer has room for the elements.
    #[inline]
    pub unsafe fn run(self, mpi: &Mpi) -> Result<Outcome> {
        let comm = mpi.comm(self.comm)?;
        let datatype = mpi.layout(self.count, self.datatype)?;
        let room = bytes_of(self.count, datatype)?;
        let Some(pattern) = pattern(comm, self.source, self.tag)? else {
            return Ok(Outcome { status: NO_PROCESS, error: MPI_SUCCESS });
        };
        if let Some(offset) = datatype.run(self.count as usize) {
            let start = self.buffer.cast::<u8>().wrapping_offset(offset);
            given(start, room)?;
            // SAFETY: the caller promises the room, and this waits until the receive is complete.
            let status = unsafe { mpi.core.receive_message(pattern, (start, room)) };
            return Ok(Outcome::of_receive(comm, status, room));
        }
        if room > UNPACKED_TOGETHER_MAX {
            let gaps = Gaps::of(self.datatype, self.buffer)?;
            // SAFETY: the caller promises the room, and this waits until the receive is complete.
            let id = unsafe { mpi.core.start_receive_packed(pattern, gaps, room) };
            return Ok(Outcome::of_receive(comm, mpi.core.wait_for_message(id), room));
        }
        let mut data = Data::new(room);
        // SAFETY: the data live until the receive is complete; then the caller promises room for them.
        unsafe {
            let status = mpi.core.receive_message(pattern, (data.as_mut_ptr(), room));
            datatype.unpack(data.as_ptr(), status.bytes.min(room), self.buffer.cast());
            Ok(Outcome::of_receive(comm, status, room))
        }
    }

    /// Starts the receive.
    ///
    /// # Safety
    /// The buffer has room for the elements, and is left alone until the receive is complete.
    pub unsafe fn start(self, mpi: &Mpi) -> Result<Active> {
        // SAFETY: the caller promises what this function requires.
        unsafe { self.start_in(mpi, mpi.keep_comm(self.comm)?) }
    }

    unsafe fn start_in(self, mpi: &Mpi, comm: KeptComm) -> Result<Active> {
        let room = bytes_of(self.count, mpi.layout(self.count, self.datatype)?)?;
        let Some(pattern) = pattern(&comm, self.source, self.tag)? else {
            return Ok(Active::Done(Outcome { status: NO_PROCESS, error: MPI_SUCCESS }));
        };
        let id = match self.place(mpi, room)? {
            // SAFETY: the caller promises the room.
            Place::Buffer(into) => match unsafe { mpi.core.start_receive(pattern, (into, room)) } {
                Started::Done(status) => return Ok(Active::Done(Outcome::of_receive(&comm, status, room))),
                Started::Pending(id) => id,
            },
            // SAFETY: the caller promises the room.
            Place::Gaps(gaps) => unsafe { mpi.core.start_receive_packed(pattern, gaps, room) },
        };
        Ok(Active::Message(Message { id, receive: Some((comm, room)), kept: None }))
    }

    /// Starts the receive: its request.
    ///
    /// # Safety
    /// As [`start`](Receive::start).
    #[inline(always)]
    unsafe fn start_request(self, mpi: &Mpi) -> Result<MPI_Request> {
        let on = On::Comm(self.comm);
        let comm = mpi.comm(self.comm)?;
        let layout = mpi.layout(self.count, self.datatype)?;
        let room = bytes_of(self.count, layout)?;
        let Some(pattern) = pattern(comm, self.source, self.tag)? else {
            return request::started(Active::Done(Outcome { status: NO_PROCESS, error: MPI_SUCCESS }), on);
        };
        let Some(offset) = layout.run(self.count as usize) else {
            // SAFETY: the caller promises the room, and leaves the buffer alone.
            return unsafe { self.start_elsewhere(mpi) };
        };
        let into = self.buffer.cast::<u8>().wrapping_offset(offset);
        given(into, room)?;
        // The outcome of a message that has come is not moved through memory.
        // SAFETY: the caller promises the room.
        match unsafe { mpi.core.start_receive(pattern, (into, room)) } {
            Started::Done(status) if status.bytes <= room => {
                let (source, tag) = (comm.source_rank(status.source), status.tag as c_int);
                request::received_at_once(Received { source, tag, bytes: status.bytes as u64 }, on)
            }
            Started::Done(status) => {
                request::started(Active::Done(Outcome::of_receive(comm, status, room)), on)
            }
            Started::Pending(id) => self.pending(mpi, id, room),
        }
    }

    #[inline(never)]
    unsafe fn start_elsewhere(self, mpi: &Mpi) -> Result<MPI_Request> {
        // SAFETY: the caller promises the room, and leaves the buffer alone.
        request::started(unsafe { self.start(mpi)? }, On::Comm(self.comm))
    }

    #[inline(never)]
    fn pending(self, mpi: &Mpi, id: RequestId, room: usize) -> Result<MPI_Request> {
        let receive = Some((mpi.keep_comm(self.comm)?, room));
        let message = Message { id, receive, kept: None };
        request::started(Active::Message(message), On::Comm(self.comm))
    }

    /// Where the data go.
    fn place(&self, mpi: &Mpi, room: usize) -> Result<Place> {
        let layout = mpi.layout(self.count, self.datatype)?;
        let Some(offset) = layout.run(self.count as usize) else {
            return Ok(Place::Gaps(Gaps::of(self.datatype, self.buffer)?));
        };
        let into = self.buffer.cast::<u8>().wrapping_offset(offset);
        given(into, room)?;
        Ok(Place::Buffer(into))
    }

    /// Refuses arguments of a receive of a message that a probe has taken.
    pub fn check(&self, mpi: &Mpi) -> Result {
        let layout = mpi.datatype(self.datatype)?;
        let room = bytes_of(self.count, layout)?;
        match layout.run(self.count as usize) {
            Some(offset) => given(self.buffer.cast::<u8>().wrapping_offset(offset), room),
            None => Ok(()),
        }
    }

    /// Starts the receive of a message that a probe has taken.
    ///
    /// # Safety
    /// As [`start`](Receive::start).
    pub unsafe fn start_matched(
        self,
        mpi: &Mpi,
        comm: KeptComm,
        matched: pelago_core::msg::operation::Matched,
    ) -> Result<Active> {
        let room = bytes_of(self.count, mpi.layout(self.count, self.datatype)?)?;
        let (into, gaps): (_, Option<Box<dyn Packing>>) = match self.place(mpi, room)? {
            Place::Buffer(into) => (into, None),
            Place::Gaps(gaps) => (ptr::null_mut(), Some(gaps)),
        };
        // SAFETY: the caller promises the room.
        let id = unsafe { mpi.core.start_receive_matched(matched, (into, room), gaps) };
        Ok(Active::Message(Message { id, receive: Some((comm, room)), kept: None }))
    }
}

/// The error of a message that is longer than the room for it.
#[cold]
pub fn truncated(status: &MPI_Status, room: i64) -> Error {
    let (source, tag) = (status.MPI_SOURCE, status.MPI_TAG);
    Error::new(
        MPI_ERR_TRUNCATE,
        format!(
            "the message of rank {source} with tag {tag} is longer than {room} elements. Give it more room"
        ),
    )
}

/// `MPI_Recv`.
pub unsafe fn recv(
    mpi: &Mpi,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Result {
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe {
        let outcome = Receive { buffer, count, datatype, source, tag, comm }.run(mpi)?;
        request::store(status, &outcome.status);
        if outcome.error != MPI_SUCCESS {
            return Err(truncated(&outcome.status, count));
        }
    }
    Ok(())
}

/// `MPI_Irecv`.
pub unsafe fn irecv(
    mpi: &Mpi,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Result {
    let place = output("request", request)?;
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe {
        place.write(Receive { buffer, count, datatype, source, tag, comm }.start_request(mpi)?);
    }
    Ok(())
}

/// `MPI_Recv_init`.
pub unsafe fn recv_init(
    mpi: &Mpi,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Result {
    let place = output("request", request)?;
    // The program may free its handle.
    let kept = mpi.keep_comm(comm)?;
    pattern(&kept, source, tag)?;
    bytes_of(count, mpi.datatype(datatype)?)?;
    let retained = datatype::retain(datatype)?;
    let start = move |mpi: &Mpi| {
        let receive = Receive { buffer, count, datatype: retained.handle(), source, tag, comm };
        // SAFETY: the caller's promise, for every start.
        unsafe { receive.start_in(mpi, kept.clone()) }
    };
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(request::persistent(On::Comm(comm), start)?) };
    Ok(())
}
