//! Inquiries about requests, which stay as they are.
//!
//! Invariant: no request is freed or made inactive. Null and inactive requests count as complete.

use super::completion::{self, checked, is_active, nth, report};
use super::{Outcome, store_empty};
use crate::abi::*;
use crate::chapters::error::{Result, ensure};
use crate::chapters::library::{Mpi, output};
use std::sync::{Mutex, PoisonError};

/// Several threads may inquire about a request at once. Each notes in the request what it sees.
static INQUIRY: Mutex<()> = Mutex::new(());

/// As [`poll`](completion::poll), by one thread at a time.
unsafe fn poll(mpi: &Mpi, request: MPI_Request) -> Result<Option<Outcome>> {
    let _alone = INQUIRY.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: no thread completes the request meanwhile, and no other one inquires.
    unsafe { completion::poll(mpi, request) }
}

/// The outcome of a request, if its operation is over.
unsafe fn look(mpi: &Mpi, request: MPI_Request) -> Result<Option<Outcome>> {
    if request == MPI_REQUEST_NULL {
        return Ok(Some(Outcome::EMPTY));
    }
    // SAFETY: the program uses a request in one thread at a time.
    unsafe { poll(mpi, request) }
}

/// `MPI_Request_get_status`.
pub unsafe fn request_get_status(
    mpi: &Mpi,
    request: MPI_Request,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Result {
    let flag = output("flag", flag)?;
    // SAFETY: the caller's pointers are valid, and it uses the request in one thread at a time.
    unsafe {
        if request == MPI_REQUEST_NULL {
            flag.write(1);
            store_empty(status);
            return Ok(());
        }
        let outcome = look(mpi, request)?;
        flag.write(outcome.is_some().into());
        outcome.map_or(Ok(()), |outcome| report(request, &outcome, status))
    }
}

/// `MPI_Request_get_status_all`: statuses only if all operations are over.
pub unsafe fn request_get_status_all(
    mpi: &Mpi,
    count: c_int,
    requests: *const MPI_Request,
    flag: *mut c_int,
    statuses: *mut MPI_Status,
) -> Result {
    let (n, mut first) = (checked(count, requests.cast_mut())?, Ok(()));
    let flag = output("flag", flag)?;
    // SAFETY: the caller's arrays have n elements, and it uses a request in one thread at a time.
    unsafe {
        let mut outcomes = Vec::new();
        for i in 0..n {
            outcomes.extend(look(mpi, requests.add(i).read())?);
        }
        flag.write((outcomes.len() == n).into());
        if outcomes.len() == n {
            for (i, outcome) in outcomes.iter().enumerate() {
                first = first.and(report(requests.add(i).read(), outcome, nth(statuses, i)));
            }
        }
    }
    first
}

/// `MPI_Request_get_status_any`: one whose operation is over; `MPI_UNDEFINED` if none is active.
pub unsafe fn request_get_status_any(
    mpi: &Mpi,
    count: c_int,
    requests: *const MPI_Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Result {
    let n = checked(count, requests.cast_mut())?;
    let (index, flag) = (output("index", index)?, output("flag", flag)?);
    // SAFETY: the caller's array has n elements, and it uses a request in one thread at a time.
    unsafe {
        index.write(MPI_UNDEFINED);
        let mut is_any_active = false;
        for i in 0..n {
            let request = requests.add(i).read();
            if !is_active(request)? {
                continue;
            }
            is_any_active = true;
            if let Some(outcome) = poll(mpi, request)? {
                index.write(i as c_int);
                flag.write(1);
                return report(request, &outcome, status);
            }
        }
        flag.write((!is_any_active).into());
        if !is_any_active {
            store_empty(status);
        }
    }
    Ok(())
}

/// `MPI_Request_get_status_some`: all whose operations are over; `MPI_UNDEFINED` if none is active.
pub unsafe fn request_get_status_some(
    mpi: &Mpi,
    incount: c_int,
    requests: *const MPI_Request,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MPI_Status,
) -> Result {
    let n = checked(incount, requests.cast_mut())?;
    let outcount = output("outcount", outcount)?;
    ensure!(n == 0 || !indices.is_null(), MPI_ERR_ARG, "the array of indices is null");
    let (mut found, mut is_any_active, mut first) = (0, false, Ok(()));
    // SAFETY: the caller's arrays have n elements, and it uses a request in one thread at a time.
    unsafe {
        for i in 0..n {
            let request = requests.add(i).read();
            if !is_active(request)? {
                continue;
            }
            is_any_active = true;
            if let Some(outcome) = poll(mpi, request)? {
                indices.add(found).write(i as c_int);
                first = first.and(report(request, &outcome, nth(statuses, found)));
                found += 1;
            }
        }
        outcount.write(if is_any_active { found as c_int } else { MPI_UNDEFINED });
    }
    first
}
