//! Generalised requests: operations of the program, which it completes itself.
//!
//! Invariant: the program's functions are called without a lock. The free function is called once: when a
//! wait or test has completed the request, or when it is both freed and complete.

use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::{Mpi, output};
use crate::chapters::request::{self, EMPTY_STATUS, Operation, Outcome};
use pelago_fabric::sync::{AtomicU8, Ordering};
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;

/// A generalised request.
pub struct Generalized {
    query: usize,
    free: usize,
    cancel: usize,
    extra_state: usize,
    state: AtomicU8,
}

/// The program has completed the operation.
const COMPLETE: u8 = 1;
/// The program needs the request no more.
const FREED: u8 = 2;

impl Generalized {
    fn is_complete(&self) -> bool {
        // SYNC POINT generalized: acquires what the completing thread has done.
        self.state.load(Ordering::Acquire) & COMPLETE != 0
    }

    fn extra_state(&self) -> *mut c_void {
        with_exposed_provenance_mut(self.extra_state)
    }

    /// Asks the program for the status of the operation, which is over.
    pub fn query(&self) -> Outcome {
        let mut status = EMPTY_STATUS;
        let (at, state) = (MPI_Grequest_query_function::at, self.extra_state());
        let query = with_exposed_provenance_mut(self.query);
        // SAFETY: the program has passed a function of this type.
        let error = unsafe { at(query)(state, &raw mut status) };
        Outcome { status, error }
    }

    /// Frees the request, or leaves this to its completion.
    pub fn free(&self, handle: MPI_Request) -> Result {
        let before = self.state.fetch_or(FREED, Ordering::AcqRel);
        if before & COMPLETE != 0 { self.end(handle) } else { Ok(()) }
    }

    /// Calls the free function, and forgets the request.
    fn end(&self, handle: MPI_Request) -> Result {
        request::forget(handle);
        let function = MPI_Grequest_free_function::at;
        // SAFETY: the program has passed a function of this type.
        let code = unsafe { function(with_exposed_provenance_mut(self.free))(self.extra_state()) };
        check("free", code)
    }

    /// Asks the program to cancel the operation, and says whether it is over.
    pub fn cancel(&self) -> Result {
        let function = MPI_Grequest_cancel_function::at;
        // SAFETY: the program has passed a function of this type.
        let code = unsafe {
            function(with_exposed_provenance_mut(self.cancel))(self.extra_state(), self.is_complete().into())
        };
        check("cancel", code)
    }
}

fn check(what: &str, code: c_int) -> Result {
    ensure!(
        code == MPI_SUCCESS,
        code,
        "the {what} function of the generalised request has returned the error code {code}"
    );
    Ok(())
}

impl Operation for Arc<Generalized> {
    fn poll(&mut self, _mpi: &Mpi) -> Option<Outcome> {
        self.is_complete().then_some(Outcome::EMPTY)
    }
}

/// `MPI_Grequest_start`.
pub unsafe fn grequest_start(
    _mpi: &Mpi,
    query: *mut MPI_Grequest_query_function,
    free: *mut MPI_Grequest_free_function,
    cancel: *mut MPI_Grequest_cancel_function,
    extra_state: *mut c_void,
    request: *mut MPI_Request,
) -> Result {
    let place = output("request", request)?;
    ensure!(
        !query.is_null() && !free.is_null() && !cancel.is_null(),
        MPI_ERR_ARG,
        "a function is null. Give all three"
    );
    let generalized = Generalized {
        query: query.expose_provenance(),
        free: free.expose_provenance(),
        cancel: cancel.expose_provenance(),
        extra_state: extra_state.expose_provenance(),
        state: AtomicU8::new(0),
    };
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(request::generalized(Arc::new(generalized))?) };
    Ok(())
}

/// `MPI_Grequest_complete`: also from another thread than that which waits.
pub unsafe fn grequest_complete(mpi: &Mpi, request: MPI_Request) -> Result {
    let generalized = request::find_generalized(request).ok_or_else(|| {
        Error::new(MPI_ERR_REQUEST, "the request is null, was freed, or is no generalised request")
    })?;
    // SYNC POINT generalized: releases what this thread has done to the thread that waits.
    let before = generalized.state.fetch_or(COMPLETE, Ordering::AcqRel);
    if before & COMPLETE != 0 {
        return Err(Error::new(MPI_ERR_REQUEST, "the request is complete already"));
    }
    if before & FREED != 0 {
        return generalized.end(request);
    }
    mpi.core.ring_own_sleepers();
    Ok(())
}
