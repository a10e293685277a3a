//! Error handlers.

use crate::abi::*;
use crate::chapters::error::{Error, On, Result};
use crate::chapters::library::{self, Mpi, output};
use crate::table::{Kind, Table};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The effect of an error of a call on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// None was set: the job ends, unless another handler takes the error (`error::handler_of`).
    First,
    /// The job ends.
    Fatal,
    /// The processes of the communicator end; as nothing can go on without them, the job.
    Abort,
    /// The call returns the code.
    Return,
    /// The program's function gets the code; an address, and the type of object that it is for.
    Function(Takes, usize),
}

/// The type of object that a program's handler is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Takes {
    Comm,
    Win,
    File,
    Session,
}

/// Handlers that the program has made.
static HANDLERS: Table<Handler> = Table::new(Kind::Errhandler);

/// The handler of an object, which the program may replace.
pub struct HandlerCell(Mutex<Handler>);

impl HandlerCell {
    pub fn new(handler: Handler) -> HandlerCell {
        HandlerCell(Mutex::new(handler))
    }

    pub fn get(&self) -> Handler {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, handler: Handler) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = handler;
    }
}

impl Handler {
    /// Handles an error: the code that the call returns.
    pub fn handle(self, on: On, code: c_int, text: &str) -> c_int {
        let mut code = code;
        match self {
            Handler::First | Handler::Fatal | Handler::Abort => library::abort(code, text),
            Handler::Return => code,
            Handler::Function(_, address) => {
                // SAFETY: the program has passed a function of the type that belongs to the object's.
                unsafe {
                    match on {
                        On::Comm(mut comm) => {
                            let function = std::ptr::with_exposed_provenance_mut(address);
                            MPI_Comm_errhandler_function::at(function)(&raw mut comm, &raw mut code);
                        }
                        On::Win(mut win) => {
                            let function = std::ptr::with_exposed_provenance_mut(address);
                            MPI_Win_errhandler_function::at(function)(&raw mut win, &raw mut code);
                        }
                        On::File(mut file) => {
                            let function = std::ptr::with_exposed_provenance_mut(address);
                            MPI_File_errhandler_function::at(function)(&raw mut file, &raw mut code);
                        }
                        On::Session(mut session) => {
                            let function = std::ptr::with_exposed_provenance_mut(address);
                            MPI_Session_errhandler_function::at(function)(&raw mut session, &raw mut code);
                        }
                    }
                }
                code
            }
        }
    }

    /// The handler with a handle, for objects of this type.
    pub fn find(handle: MPI_Errhandler, takes: Takes) -> Result<Handler> {
        let handler = match handle {
            MPI_ERRORS_ARE_FATAL => Handler::Fatal,
            MPI_ERRORS_ABORT => Handler::Abort,
            MPI_ERRORS_RETURN => Handler::Return,
            _ => *HANDLERS.get(handle.0).ok_or_else(|| {
                Error::new(MPI_ERR_ERRHANDLER, "the error handler is null, was freed or never was one")
            })?,
        };
        match handler {
            Handler::Function(of, _) if of != takes => Err(Error::new(
                MPI_ERR_ERRHANDLER,
                format!("the error handler is one for {of:?}. Create one for {takes:?}"),
            )),
            _ => Ok(handler),
        }
    }

    /// A handle of this handler.
    pub fn handle_of(self) -> Result<MPI_Errhandler> {
        match self {
            Handler::First | Handler::Fatal => Ok(MPI_ERRORS_ARE_FATAL),
            Handler::Abort => Ok(MPI_ERRORS_ABORT),
            Handler::Return => Ok(MPI_ERRORS_RETURN),
            Handler::Function(takes, function) => shared_handle(takes, function),
        }
    }
}

/// The handles of functions, and how often the program has got each. A function has one handle, so that
/// programs can compare what they get with what they have set.
static SHARED: Mutex<BTreeMap<(Takes, usize), (usize, usize)>> = Mutex::new(BTreeMap::new());

fn shared_handle(takes: Takes, function: usize) -> Result<MPI_Errhandler> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((handle, count)) = shared.get_mut(&(takes, function)) {
        *count += 1;
        return Ok(MPI_Errhandler(*handle));
    }
    let handle = HANDLERS.insert(Arc::new(Handler::Function(takes, function)));
    let handle = handle.ok_or_else(|| Error::new(MPI_ERR_NO_MEM, "there are too many error handlers"))?;
    shared.insert((takes, function), (handle, 1));
    Ok(MPI_Errhandler(handle))
}

/// Takes back one of the handles that the program has got: whether it had one.
fn give_back(handle: MPI_Errhandler) -> bool {
    let Some(Handler::Function(takes, function)) = HANDLERS.share(handle.0).map(|handler| *handler) else {
        return false;
    };
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((_, count)) = shared.get_mut(&(takes, function)) else { return false };
    *count -= 1;
    if *count == 0 {
        shared.remove(&(takes, function));
        HANDLERS.remove(handle.0);
    }
    true
}

unsafe fn create<F>(takes: Takes, function: *mut F, errhandler: *mut MPI_Errhandler) -> Result {
    if function.is_null() || errhandler.is_null() {
        return Err(Error::new(MPI_ERR_ARG, "the function or the place of the handler is null"));
    }
    let handler = Handler::Function(takes, function.expose_provenance()).handle_of()?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { errhandler.write(handler) };
    Ok(())
}

/// `MPI_Comm_create_errhandler`.
pub unsafe fn comm_create_errhandler(
    function: *mut MPI_Comm_errhandler_function,
    errhandler: *mut MPI_Errhandler,
) -> Result {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { create(Takes::Comm, function, errhandler) }
}

/// `MPI_Win_create_errhandler`.
pub unsafe fn win_create_errhandler(
    function: *mut MPI_Win_errhandler_function,
    errhandler: *mut MPI_Errhandler,
) -> Result {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { create(Takes::Win, function, errhandler) }
}

/// `MPI_File_create_errhandler`.
pub unsafe fn file_create_errhandler(
    function: *mut MPI_File_errhandler_function,
    errhandler: *mut MPI_Errhandler,
) -> Result {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { create(Takes::File, function, errhandler) }
}

/// `MPI_Session_create_errhandler`.
pub unsafe fn session_create_errhandler(
    function: *mut MPI_Session_errhandler_function,
    errhandler: *mut MPI_Errhandler,
) -> Result {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { create(Takes::Session, function, errhandler) }
}

/// `MPI_Comm_set_errhandler`.
pub unsafe fn comm_set_errhandler(mpi: &Mpi, comm: MPI_Comm, errhandler: MPI_Errhandler) -> Result {
    mpi.comm(comm)?.errhandler.set(Handler::find(errhandler, Takes::Comm)?);
    Ok(())
}

/// `MPI_Comm_get_errhandler`.
pub unsafe fn comm_get_errhandler(mpi: &Mpi, comm: MPI_Comm, errhandler: *mut MPI_Errhandler) -> Result {
    let (comm, place) = (mpi.comm(comm)?, output("errhandler", errhandler)?);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(comm.errhandler.get().handle_of()?) };
    Ok(())
}

/// `MPI_Comm_call_errhandler`.
pub unsafe fn comm_call_errhandler(mpi: &Mpi, comm: MPI_Comm, errorcode: c_int) -> Result {
    let handler = mpi.comm(comm)?.errhandler.get();
    handler.handle(On::Comm(comm), errorcode, &format!("MPI_Comm_call_errhandler: code {errorcode}"));
    Ok(())
}

/// `MPI_Errhandler_free`. Objects that have the handler keep it.
pub unsafe fn errhandler_free(errhandler: *mut MPI_Errhandler) -> Result {
    // SAFETY: the caller's pointer is valid for one value.
    let handle = unsafe { errhandler.as_ref() }.copied().unwrap_or(MPI_ERRHANDLER_NULL);
    let is_constant = matches!(handle, MPI_ERRORS_ARE_FATAL | MPI_ERRORS_ABORT | MPI_ERRORS_RETURN);
    if !is_constant && !give_back(handle) {
        return Err(Error::new(MPI_ERR_ERRHANDLER, "the error handler is null, was freed or never was one"));
    }
    // SAFETY: the caller's pointer is valid, as for the read above.
    unsafe { errhandler.write(MPI_ERRHANDLER_NULL) };
    Ok(())
}
