//! Sends combined with receives.

use super::buffer::packed;
use super::receive::{Receive, truncated};
use super::send::Send;
use crate::abi::*;
use crate::chapters::data::Data;
use crate::chapters::error::{On, Result};
use crate::chapters::library::{Mpi, output};
use crate::chapters::request::{self, Active, Operation, Outcome};
use pelago_core::msg::operation::Mode;

/// `MPI_Sendrecv`.
pub unsafe fn sendrecv(
    mpi: &Mpi,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: MPI_Datatype,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Result {
    let receive =
        Receive { buffer: recvbuf, count: recvcount, datatype: recvtype, source, tag: recvtag, comm };
    let send = Send {
        buffer: sendbuf,
        count: sendcount,
        datatype: sendtype,
        dest,
        tag: sendtag,
        comm,
        mode: Mode::Standard,
    };
    // SAFETY: the caller's promise; both are complete at return.
    unsafe {
        send.check(mpi)?;
        let mut arriving = receive.start(mpi)?;
        send.run(mpi)?;
        let outcome = request::complete(mpi, &mut arriving);
        request::store(status, &outcome.status);
        if outcome.error != MPI_SUCCESS {
            return Err(truncated(&outcome.status, recvcount));
        }
    }
    Ok(())
}

/// A send and a receive that are one operation.
struct Both {
    send: Option<Active>,
    receive: Option<Active>,
    outcome: Outcome,
}

impl Operation for Both {
    fn poll(&mut self, mpi: &Mpi) -> Option<Outcome> {
        if self.send.as_mut().is_some_and(|send| request::poll_active(mpi, send).is_some()) {
            self.send = None;
        }
        if let Some(outcome) = self.receive.as_mut().and_then(|active| request::poll_active(mpi, active)) {
            self.outcome = outcome;
            self.receive = None;
        }
        (self.send.is_none() && self.receive.is_none()).then_some(self.outcome)
    }

    /// The receive is cancelled if it has no message yet; the send goes on.
    fn cancel(&mut self, mpi: &Mpi) -> Result {
        if let Some(Active::Message(message)) = &self.receive {
            mpi.core.cancel_receive(message.id);
        }
        Ok(())
    }

    fn detach(self: Box<Self>, mpi: &Mpi, on: On) {
        [self.send, self.receive].into_iter().flatten().for_each(|part| request::detach(mpi, part, on));
    }
}

/// Starts both. `kept` are the data to send if the receive replaces those of the buffer.
unsafe fn start_both(
    mpi: &Mpi,
    send: Send,
    receive: Receive,
    kept: Option<Data>,
    request: *mut MPI_Request,
) -> Result {
    let place = output("request", request)?;
    // SAFETY: the caller's promise; the copy lives as long as the send.
    unsafe {
        send.check(mpi)?;
        let receive_active = receive.start(mpi)?;
        let mut send_active = send.start(mpi)?;
        if let Active::Message(message) = &mut send_active
            && kept.is_some()
        {
            message.kept = kept;
        }
        let both = Both { send: Some(send_active), receive: Some(receive_active), outcome: Outcome::EMPTY };
        place.write(request::started(Active::Other(Box::new(both)), On::Comm(send.comm))?);
    }
    Ok(())
}

/// `MPI_Isendrecv`.
pub unsafe fn isendrecv(
    mpi: &Mpi,
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: MPI_Datatype,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Result {
    let receive =
        Receive { buffer: recvbuf, count: recvcount, datatype: recvtype, source, tag: recvtag, comm };
    let send = Send {
        buffer: sendbuf,
        count: sendcount,
        datatype: sendtype,
        dest,
        tag: sendtag,
        comm,
        mode: Mode::Standard,
    };
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { start_both(mpi, send, receive, None, request) }
}

/// The send of a copy of a buffer's data, and the copy.
unsafe fn copied(
    mpi: &Mpi,
    (buffer, count, datatype): (*mut c_void, i64, MPI_Datatype),
    (dest, tag, comm): (c_int, c_int, MPI_Comm),
) -> Result<(Send, Data)> {
    let mode = Mode::Standard;
    Send { buffer, count, datatype, dest, tag, comm, mode }.check(mpi)?;
    let data = match dest {
        MPI_PROC_NULL => Data::new(0),
        // SAFETY: the caller promises the elements.
        _ => unsafe { packed(buffer.cast(), count as usize, mpi.layout(count, datatype)?) },
    };
    let (buffer, count) = (data.as_ptr().cast(), data.len() as i64);
    Ok((Send { buffer, count, datatype: MPI_BYTE, dest, tag, comm, mode }, data))
}

/// `MPI_Sendrecv_replace`.
pub unsafe fn sendrecv_replace(
    mpi: &Mpi,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Result {
    // SAFETY: the caller's promise; both are complete at return.
    unsafe {
        let (send, _data) = copied(mpi, (buffer, count, datatype), (dest, sendtag, comm))?;
        let mut arriving = Receive { buffer, count, datatype, source, tag: recvtag, comm }.start(mpi)?;
        send.run(mpi)?;
        let outcome = request::complete(mpi, &mut arriving);
        request::store(status, &outcome.status);
        if outcome.error != MPI_SUCCESS {
            return Err(truncated(&outcome.status, count));
        }
    }
    Ok(())
}

/// `MPI_Isendrecv_replace`.
pub unsafe fn isendrecv_replace(
    mpi: &Mpi,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Result {
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe {
        let (send, data) = copied(mpi, (buffer, count, datatype), (dest, sendtag, comm))?;
        let receive = Receive { buffer, count, datatype, source, tag: recvtag, comm };
        start_both(mpi, send, receive, Some(data), request)
    }
}
