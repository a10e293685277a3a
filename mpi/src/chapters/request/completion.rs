//! Waits and tests.
//!
//! Invariant: a handle that a call completes becomes `MPI_REQUEST_NULL`, or an inactive request if it is
//! persistent. Null and inactive requests count as complete, with the empty status.

use super::{
    Active, COMPLETE, EMPTY_STATUS, Outcome, find_generalized, forget, request_of, state, store, store_empty,
    take_received,
};
use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::generalized::Generalized;
use crate::chapters::library::{Mpi, output};
use pelago_core::base::awaited::Awaited;
use std::sync::Arc;

/// Reads a handle of an array.
unsafe fn read(requests: *mut MPI_Request, i: usize) -> MPI_Request {
    // SAFETY: the caller's array has this element.
    unsafe { requests.add(i).read() }
}

/// Whether a request takes part in waits: it is neither null nor inactive.
pub(super) unsafe fn is_active(handle: MPI_Request) -> Result<bool> {
    if handle == MPI_REQUEST_NULL || handle == COMPLETE {
        return Ok(handle == COMPLETE);
    }
    // SAFETY: the program uses a request in one thread at a time.
    Ok(!matches!(unsafe { state(handle)? }.active, Active::Inactive))
}

/// Completes a request whose operation is over: stores its status, and frees it or makes it inactive. Returns
/// the error of the operation. An inactive request gets the empty status.
unsafe fn retire(
    place: *mut MPI_Request,
    outcome: &Outcome,
    status: *mut MPI_Status,
) -> Result<Option<Error>> {
    // SAFETY: the program uses a request in one thread at a time; its places are valid for one value.
    unsafe {
        let handle = place.read();
        if handle == COMPLETE {
            store(status, &outcome.status);
            place.write(MPI_REQUEST_NULL);
            return Ok(None);
        }
        let request = request_of(handle)?;
        let state = &mut *request.state.get();
        let on = state.on;
        if let Some(generalized) = &request.generalized {
            return Ok(retire_generalized(place, &Arc::clone(generalized), status).map(|error| error.on(on)));
        }
        if matches!(state.active, Active::Inactive) {
            store_empty(status);
            return Ok(None);
        }
        store(status, &outcome.status);
        match state.persistent.is_some() {
            true => state.active = Active::Inactive,
            false => {
                forget(handle);
                place.write(MPI_REQUEST_NULL);
            }
        }
        Ok((outcome.error != MPI_SUCCESS).then(|| failure(outcome).on(on)))
    }
}

/// The same for a generalised request: the program determines the status, and frees what it has.
#[cold]
unsafe fn retire_generalized(
    place: *mut MPI_Request,
    generalized: &Generalized,
    status: *mut MPI_Status,
) -> Option<Error> {
    let outcome = generalized.query();
    // SAFETY: the caller's places are valid for one value each, if they are not null.
    unsafe {
        store(status, &outcome.status);
        let freed = generalized.free(place.read());
        place.write(MPI_REQUEST_NULL);
        freed.err().or_else(|| (outcome.error != MPI_SUCCESS).then(|| failure(&outcome)))
    }
}

/// Stores the status of an operation that is over. The program determines it if the request is a generalised
/// one: an error of its function is that of the call.
pub(super) unsafe fn report(handle: MPI_Request, outcome: &Outcome, status: *mut MPI_Status) -> Result {
    // SAFETY: the caller's place is null, or valid for one status, and it uses the request in one thread.
    if !unsafe { is_active(handle)? } {
        // SAFETY: the caller's place is null, or valid for one status.
        unsafe { store_empty(status) };
        return Ok(());
    }
    let queried = find_generalized(handle).map(|generalized| generalized.query());
    // SAFETY: the caller's place is null, or valid for one status.
    unsafe { store(status, &queried.as_ref().unwrap_or(outcome).status) };
    queried.filter(|outcome| outcome.error != MPI_SUCCESS).map_or(Ok(()), |outcome| Err(failure(&outcome)))
}

fn failure(outcome: &Outcome) -> Error {
    let text = match outcome.error {
        MPI_ERR_TRUNCATE if outcome.status == EMPTY_STATUS => {
            "the members of a collective operation have given different sizes".to_owned()
        }
        MPI_ERR_TRUNCATE => format!(
            "the message of rank {} with tag {} is longer than the buffer of the receive. Give it more room",
            outcome.status.MPI_SOURCE, outcome.status.MPI_TAG
        ),
        _ => "the operation has failed".to_owned(),
    };
    Error::new(outcome.error, text)
}

/// Makes progress, and looks whether the operation of a request is over. An inactive request stays inactive.
pub(super) unsafe fn poll(mpi: &Mpi, handle: MPI_Request) -> Result<Option<Outcome>> {
    // SAFETY: the caller promises what this function requires.
    let outcome = unsafe { look(handle, |active| active.poll(mpi)) }?;
    mpi.core.note_test(outcome.is_some());
    Ok(outcome)
}

/// The same without progress, which the caller makes once for all requests that it looks at.
unsafe fn peek(mpi: &Mpi, handle: MPI_Request) -> Result<Option<Outcome>> {
    // SAFETY: the caller promises what this function requires.
    unsafe { look(handle, |active| active.peek(mpi)) }
}

#[inline]
unsafe fn look(
    handle: MPI_Request,
    ask: impl FnOnce(&mut Active) -> Option<Outcome>,
) -> Result<Option<Outcome>> {
    if handle == COMPLETE {
        return Ok(Some(Outcome::EMPTY));
    }
    // SAFETY: the program uses a request in one thread at a time.
    let state = unsafe { state(handle)? };
    let outcome = ask(&mut state.active);
    if let Some(outcome) = outcome
        && !matches!(state.active, Active::Inactive)
    {
        state.active = Active::Done(outcome);
    }
    Ok(outcome)
}

/// Waits until the operation of a request is over.
#[inline]
unsafe fn wait_for(mpi: &Mpi, handle: MPI_Request) -> Result<Outcome> {
    if handle == COMPLETE {
        return Ok(Outcome::EMPTY);
    }
    // SAFETY: the program uses a request in one thread at a time.
    Ok(unsafe { state(handle)? }.active.wait(mpi))
}

/// `MPI_Wait`.
pub unsafe fn wait(mpi: &Mpi, request: *mut MPI_Request, status: *mut MPI_Status) -> Result {
    // SAFETY: the caller's pointers are valid, and it uses the request in one thread at a time.
    unsafe {
        let handle = output("request", request)?.read();
        if handle == MPI_REQUEST_NULL {
            store_empty(status);
            return Ok(());
        }
        let outcome = wait_for(mpi, handle)?;
        retire(request, &outcome, status)?.map_or(Ok(()), Err)
    }
}

/// `MPI_Test`.
pub unsafe fn test(
    mpi: &Mpi,
    request: *mut MPI_Request,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Result {
    // SAFETY: the caller's pointers are valid, and it uses the request in one thread at a time.
    unsafe {
        let handle = output("request", request)?.read();
        let flag = output("flag", flag)?;
        if handle == MPI_REQUEST_NULL {
            flag.write(1);
            store_empty(status);
            return Ok(());
        }
        let outcome = poll(mpi, handle)?;
        flag.write(outcome.is_some().into());
        let Some(outcome) = outcome else { return Ok(()) };
        retire(request, &outcome, status)?.map_or(Ok(()), Err)
    }
}

pub(super) fn checked(count: c_int, requests: *mut MPI_Request) -> Result<usize> {
    ensure!(count >= 0, MPI_ERR_COUNT, "count is {count}, which is negative");
    ensure!(count == 0 || !requests.is_null(), MPI_ERR_REQUEST, "the array of requests is null");
    Ok(count as usize)
}

/// Stores the outcome of one request of several, and completes it: whether it has failed. If one has, the
/// statuses get the errors, and the call returns `MPI_ERR_IN_STATUS`.
unsafe fn finish_one(
    requests: *mut MPI_Request,
    i: usize,
    outcome: &Outcome,
    status: *mut MPI_Status,
) -> Result<Option<Error>> {
    // SAFETY: the caller's arrays have these elements.
    unsafe {
        let error = retire(requests.add(i), outcome, status)?;
        if let Some(error) = &error
            && !status.is_null()
        {
            (*status).MPI_ERROR = error.code();
        }
        Ok(error)
    }
}

fn in_status(error: Error) -> Error {
    let text = format!("one of the operations has failed: {}", error.text());
    error.in_place_of(MPI_ERR_IN_STATUS, text)
}

pub(super) fn nth(statuses: *mut MPI_Status, i: usize) -> *mut MPI_Status {
    if statuses.is_null() { statuses } else { statuses.wrapping_add(i) }
}

/// `MPI_Waitall`.
pub unsafe fn waitall(
    mpi: &Mpi,
    count: c_int,
    requests: *mut MPI_Request,
    statuses: *mut MPI_Status,
) -> Result {
    let n = checked(count, requests)?;
    let mut failed = None;
    for i in 0..n {
        // SAFETY: the caller's arrays have n elements.
        unsafe {
            let handle = read(requests, i);
            let status = nth(statuses, i);
            if handle == MPI_REQUEST_NULL {
                store_empty(status);
                note(&mut failed, None, statuses, i);
                continue;
            }
            if failed.is_none()
                && let Some(received) = take_received(handle)
            {
                store(status, &received.status());
                requests.add(i).write(MPI_REQUEST_NULL);
                continue;
            }
            let outcome = wait_for(mpi, handle)?;
            note(&mut failed, finish_one(requests, i, &outcome, status)?, statuses, i);
        }
    }
    failed.map_or(Ok(()), |error| Err(in_status(error)))
}

/// Notes the error of the request whose status is number `at`, if it has one. `MPI_ERROR` is written only in
/// empty statuses, and in calls that fail: from the first error on, in all statuses.
#[inline]
unsafe fn note(failed: &mut Option<Error>, error: Option<Error>, statuses: *mut MPI_Status, at: usize) {
    // SAFETY: the caller's array has more than `at` elements, or is null.
    unsafe {
        match (failed.is_some(), error) {
            (false, None) => {}
            (false, Some(error)) => {
                if !statuses.is_null() {
                    (0..at).for_each(|before| (*nth(statuses, before)).MPI_ERROR = MPI_SUCCESS);
                }
                *failed = Some(error);
            }
            (true, None) if !statuses.is_null() => (*nth(statuses, at)).MPI_ERROR = MPI_SUCCESS,
            (true, _) => {}
        }
    }
}

/// `MPI_Testall`.
pub unsafe fn testall(
    mpi: &Mpi,
    count: c_int,
    requests: *mut MPI_Request,
    flag: *mut c_int,
    statuses: *mut MPI_Status,
) -> Result {
    let n = checked(count, requests)?;
    let flag = output("flag", flag)?;
    let are_over = || -> Result<bool> {
        for i in 0..n {
            // SAFETY: the caller's arrays have n elements.
            unsafe {
                let handle = read(requests, i);
                if handle != MPI_REQUEST_NULL && peek(mpi, handle)?.is_none() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    };
    let mut all = are_over()?;
    if !all {
        mpi.core.progress();
        all = mpi.core.note_test(are_over()?);
    }
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { flag.write(all.into()) };
    // SAFETY: the caller's promise; all operations are over, so this does not wait.
    if all { unsafe { waitall(mpi, count, requests, statuses) } } else { Ok(()) }
}

/// The first request that is over, and its outcome; `Ok(None)` if none is active. Waits if `must_wait`.
unsafe fn any(
    mpi: &Mpi,
    n: usize,
    requests: *mut MPI_Request,
    must_wait: bool,
) -> Result<Option<Option<(usize, Outcome)>>> {
    // The number of active requests before the first that is over, and the latter.
    let look = || -> Result<(usize, Option<(usize, Outcome)>)> {
        let mut active = 0;
        for i in 0..n {
            // SAFETY: the caller's array has n elements, and it uses a request in one thread at a time.
            unsafe {
                let handle = read(requests, i);
                if !is_active(handle)? {
                    continue;
                }
                if let Some(outcome) = peek(mpi, handle)? {
                    return Ok((active, Some((i, outcome))));
                }
                active += 1;
            }
        }
        Ok((active, None))
    };
    // Progress costs more than a look, and is not needed if a request is over.
    let (active, mut found) = look()?;
    if found.is_none() && active == 0 {
        return Ok(None);
    }
    if found.is_none() {
        mpi.core.progress();
        (_, found) = look()?;
        mpi.core.note_test(found.is_some() || must_wait);
    }
    if found.is_none() && must_wait {
        // The wait makes progress.
        mpi.core.wait(Awaited::Events { count: active }, || {
            found = found.or_else(|| look().ok().and_then(|(_, found)| found));
            found.is_some()
        });
    }
    Ok(Some(found))
}

/// `MPI_Waitany`.
pub unsafe fn waitany(
    mpi: &Mpi,
    count: c_int,
    requests: *mut MPI_Request,
    index: *mut c_int,
    status: *mut MPI_Status,
) -> Result {
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { one_of(mpi, count, requests, (index, None), status) }
}

/// `MPI_Testany`.
pub unsafe fn testany(
    mpi: &Mpi,
    count: c_int,
    requests: *mut MPI_Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Result {
    let flag = output("flag", flag)?;
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { one_of(mpi, count, requests, (index, Some(flag)), status) }
}

unsafe fn one_of(
    mpi: &Mpi,
    count: c_int,
    requests: *mut MPI_Request,
    (index, flag): (*mut c_int, Option<*mut c_int>),
    status: *mut MPI_Status,
) -> Result {
    let n = checked(count, requests)?;
    let index = output("index", index)?;
    let set_flag = |value: bool| {
        if let Some(flag) = flag {
            // SAFETY: the caller's pointer is valid for one value.
            unsafe { flag.write(value.into()) };
        }
    };
    // SAFETY: the caller's arrays have n elements, and its pointers are valid for one value each.
    unsafe {
        match any(mpi, n, requests, flag.is_none())? {
            None => {
                index.write(MPI_UNDEFINED);
                set_flag(true);
                store_empty(status);
                Ok(())
            }
            Some(None) => {
                index.write(MPI_UNDEFINED);
                set_flag(false);
                Ok(())
            }
            Some(Some((i, outcome))) => {
                index.write(i as c_int);
                set_flag(true);
                retire(requests.add(i), &outcome, status)?.map_or(Ok(()), Err)
            }
        }
    }
}

/// `MPI_Waitsome`.
pub unsafe fn waitsome(
    mpi: &Mpi,
    incount: c_int,
    requests: *mut MPI_Request,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MPI_Status,
) -> Result {
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { some(mpi, incount, requests, (outcount, indices, statuses), true) }
}

/// `MPI_Testsome`.
pub unsafe fn testsome(
    mpi: &Mpi,
    incount: c_int,
    requests: *mut MPI_Request,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MPI_Status,
) -> Result {
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { some(mpi, incount, requests, (outcount, indices, statuses), false) }
}

unsafe fn some(
    mpi: &Mpi,
    incount: c_int,
    requests: *mut MPI_Request,
    (outcount, indices, statuses): (*mut c_int, *mut c_int, *mut MPI_Status),
    must_wait: bool,
) -> Result {
    let n = checked(incount, requests)?;
    let outcount = output("outcount", outcount)?;
    // SAFETY: the caller's arrays have n elements, and its pointers are valid.
    unsafe {
        // No request is completed if the call fails.
        (0..n).try_for_each(|i| is_active(read(requests, i)).map(drop))?;
        if any(mpi, n, requests, must_wait)?.is_none() {
            outcount.write(MPI_UNDEFINED);
            return Ok(());
        }
        let (mut found, mut failed) = (0, None);
        for i in 0..n {
            let handle = read(requests, i);
            if !is_active(handle)? {
                continue;
            }
            let Some(outcome) = peek(mpi, handle)? else { continue };
            indices.add(found).write(i as c_int);
            let status = nth(statuses, found);
            note(&mut failed, finish_one(requests, i, &outcome, status)?, statuses, found);
            found += 1;
        }
        outcount.write(found as c_int);
        failed.map_or(Ok(()), |error| Err(in_status(error)))
    }
}

/// `MPI_Request_free`. The operation goes on.
pub unsafe fn request_free(mpi: &Mpi, request: *mut MPI_Request) -> Result {
    // SAFETY: the caller's pointer is valid, and it uses the request in one thread at a time.
    unsafe {
        let handle = output("request", request)?.read();
        ensure!(handle != MPI_REQUEST_NULL, MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL");
        if handle == COMPLETE {
            request.write(MPI_REQUEST_NULL);
            return Ok(());
        }
        let state = state(handle)?;
        request.write(MPI_REQUEST_NULL);
        if let Some(generalized) = find_generalized(handle) {
            return generalized.free(handle);
        }
        let active = std::mem::replace(&mut state.active, Active::Inactive);
        super::detach(mpi, active, state.on);
        forget(handle);
    }
    Ok(())
}

/// `MPI_Cancel`: a receive that has no message yet is cancelled; a send is not.
pub unsafe fn cancel(mpi: &Mpi, request: *mut MPI_Request) -> Result {
    // SAFETY: the caller's pointer is valid, and it uses the request in one thread at a time.
    unsafe {
        let handle = output("request", request)?.read();
        ensure!(handle != MPI_REQUEST_NULL, MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL");
        if handle == COMPLETE {
            return Ok(());
        }
        if let Some(generalized) = find_generalized(handle) {
            return generalized.cancel();
        }
        let state = state(handle)?;
        match &mut state.active {
            Active::Message(message) if message.receive.is_some() => {
                mpi.core.cancel_receive(message.id);
                Ok(())
            }
            Active::Other(operation) => operation.cancel(mpi),
            Active::Collective(_) => {
                Err(Error::new(MPI_ERR_REQUEST, "a collective operation cannot be cancelled").on(state.on))
            }
            _ => Ok(()),
        }
    }
}

/// `MPI_Start`.
pub unsafe fn start(mpi: &Mpi, request: *mut MPI_Request) -> Result {
    // SAFETY: the caller's pointer is valid, and it uses the request in one thread at a time.
    unsafe {
        let handle = output("request", request)?.read();
        let state = state(handle)?;
        let on = state.on;
        let wrong = |text: &str| -> Result { Err(Error::new(MPI_ERR_REQUEST, text).on(on)) };
        if !matches!(state.active, Active::Inactive) {
            return wrong("the request is active. Complete it first");
        }
        let Some(start) = &state.persistent else { return wrong("the request is not a persistent one") };
        let active = start(mpi).map_err(|error| error.on(on))?;
        state.active = active;
    }
    Ok(())
}

/// `MPI_Startall`.
pub unsafe fn startall(mpi: &Mpi, count: c_int, requests: *mut MPI_Request) -> Result {
    for i in 0..checked(count, requests)? {
        // SAFETY: the caller's array has n elements.
        unsafe { start(mpi, requests.add(i))? };
    }
    Ok(())
}
