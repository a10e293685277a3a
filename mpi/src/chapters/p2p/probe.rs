//! Probes, and messages that a probe has taken.

use super::receive::{Receive, pattern, truncated};
use crate::abi::*;
use crate::chapters::comm::{Comm, KeptComm};
use crate::chapters::error::{Error, On, Result};
use crate::chapters::library::{Mpi, output};
use crate::chapters::request::{self, Active, NO_PROCESS, Outcome, received, store};
use crate::table::{Kind, Table};
use pelago_core::msg::operation::Matched;
use pelago_core::msg::request::Status;
use std::sync::{Arc, Mutex, PoisonError};

static MESSAGES: Table<Message> = Table::new(Kind::Message);

/// A message that only its holder can receive.
struct Message {
    comm: KeptComm,
    handle: MPI_Comm,
    matched: Mutex<Option<Matched>>,
}

/// The rank, tag and length of a message that a probe has found.
fn found(comm: &Comm, status: &Status) -> MPI_Status {
    received(comm, status, usize::MAX)
}

/// `MPI_Probe`.
pub unsafe fn probe(mpi: &Mpi, source: c_int, tag: c_int, comm: MPI_Comm, status: *mut MPI_Status) -> Result {
    let comm = mpi.comm(comm)?;
    let seen = match pattern(comm, source, tag)? {
        None => NO_PROCESS,
        Some(pattern) => found(comm, &mpi.core.probe(&pattern)),
    };
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { store(status, &seen) };
    Ok(())
}

/// `MPI_Iprobe`.
pub unsafe fn iprobe(
    mpi: &Mpi,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Result {
    let flag = output("flag", flag)?;
    let comm = mpi.comm(comm)?;
    let seen = match pattern(comm, source, tag)? {
        None => Some(NO_PROCESS),
        Some(pattern) => mpi.core.probe_once(&pattern).map(|status| found(comm, &status)),
    };
    // SAFETY: the caller's pointers are valid for one value each; the status may be null.
    unsafe {
        flag.write(mpi.core.note_test(seen.is_some()).into());
        if let Some(seen) = seen {
            store(status, &seen);
        }
    }
    Ok(())
}

/// A handle for a message that was taken.
fn keep(comm: KeptComm, handle: MPI_Comm, matched: Matched) -> Result<MPI_Message> {
    let message = Message { comm, handle, matched: Mutex::new(Some(matched)) };
    let kept = MESSAGES.insert(Arc::new(message)).map(MPI_Message);
    kept.ok_or_else(|| Error::new(MPI_ERR_NO_MEM, "there are too many matched messages. Receive some"))
}

/// `MPI_Mprobe`.
pub unsafe fn mprobe(
    mpi: &Mpi,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> Result {
    let place = output("message", message)?;
    let shared = mpi.keep_comm(comm)?;
    let (kept, seen) = match pattern(&shared, source, tag)? {
        None => (MPI_MESSAGE_NO_PROC, NO_PROCESS),
        Some(pattern) => {
            let matched = mpi.core.match_message(&pattern);
            let seen = found(&shared, &matched.status());
            (keep(shared, comm, matched)?, seen)
        }
    };
    // SAFETY: the caller's pointers are valid for one value each; the status may be null.
    unsafe {
        place.write(kept);
        store(status, &seen);
    }
    Ok(())
}

/// `MPI_Improbe`.
pub unsafe fn improbe(
    mpi: &Mpi,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: *mut c_int,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> Result {
    let (flag, place) = (output("flag", flag)?, output("message", message)?);
    let shared = mpi.keep_comm(comm)?;
    let taken = match pattern(&shared, source, tag)? {
        None => Some((MPI_MESSAGE_NO_PROC, NO_PROCESS)),
        Some(pattern) => match mpi.core.match_once(&pattern) {
            None => None,
            Some(matched) => {
                let seen = found(&shared, &matched.status());
                Some((keep(shared, comm, matched)?, seen))
            }
        },
    };
    // SAFETY: the caller's pointers are valid for one value each; the status may be null.
    unsafe {
        flag.write(mpi.core.note_test(taken.is_some()).into());
        if let Some((kept, seen)) = taken {
            place.write(kept);
            store(status, &seen);
        }
    }
    Ok(())
}

/// Starts the receive of a message that was taken, and where errors of it go; its handle becomes null. If an
/// argument is wrong, the message can still be received.
unsafe fn start_matched(
    mpi: &Mpi,
    (buffer, count, datatype): (*mut c_void, i64, MPI_Datatype),
    place: *mut MPI_Message,
) -> Result<(Active, On)> {
    let place = output("message", place)?;
    // SAFETY: the caller's pointer is valid for one value.
    let handle = unsafe { place.read() };
    if handle == MPI_MESSAGE_NO_PROC {
        // SAFETY: the program's place is valid, as said above.
        unsafe { place.write(MPI_MESSAGE_NULL) };
        let outcome = Outcome { status: NO_PROCESS, error: MPI_SUCCESS };
        return Ok((Active::Done(outcome), On::Comm(MPI_COMM_SELF)));
    }
    let receive =
        Receive { buffer, count, datatype, source: MPI_ANY_SOURCE, tag: MPI_ANY_TAG, comm: MPI_COMM_NULL };
    let no_message = || Error::new(MPI_ERR_REQUEST, "the message is null, or was received before");
    let comm = MESSAGES.get(handle.0).ok_or_else(no_message)?.handle;
    receive.check(mpi).map_err(|error| error.on(On::Comm(comm)))?;
    let message = MESSAGES.remove(handle.0).ok_or_else(no_message)?;
    let matched = message.matched.lock().unwrap_or_else(PoisonError::into_inner).take();
    let matched = matched.ok_or_else(no_message)?;
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe {
        let active = Receive { comm, ..receive }.start_matched(mpi, message.comm.clone(), matched)?;
        place.write(MPI_MESSAGE_NULL);
        Ok((active, On::Comm(comm)))
    }
}

/// `MPI_Mrecv`.
pub unsafe fn mrecv(
    mpi: &Mpi,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> Result {
    // SAFETY: the caller's promise; the receive is complete at return.
    unsafe {
        let (mut active, on) = start_matched(mpi, (buffer, count, datatype), message)?;
        let outcome = request::complete(mpi, &mut active);
        store(status, &outcome.status);
        if outcome.error != MPI_SUCCESS {
            return Err(truncated(&outcome.status, count).on(on));
        }
    }
    Ok(())
}

/// `MPI_Imrecv`.
pub unsafe fn imrecv(
    mpi: &Mpi,
    buffer: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    message: *mut MPI_Message,
    request: *mut MPI_Request,
) -> Result {
    let place = output("request", request)?;
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe {
        let (active, on) = start_matched(mpi, (buffer, count, datatype), message)?;
        place.write(request::started(active, on)?);
    }
    Ok(())
}
