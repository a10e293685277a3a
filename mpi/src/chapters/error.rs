//! Errors: their classes, the texts that name rank, call and argument, and the handlers that get them.
//!
//! Invariant: an error code is its class, so that a program may compare either. The text of the last error of
//! each class that this thread has raised is part of `MPI_Error_string`.

use crate::abi::*;
use crate::chapters::errhandler::Handler;
use crate::chapters::{comm, file, group, library, session, win};
use std::cell::RefCell;
use std::collections::HashMap;

/// The outcome of an implementation.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// An error of a call.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    code: c_int,
    text: String,
    on: Option<On>,
    /// The handler that gets it, rather than that of an object.
    handler: Option<Handler>,
}

/// The object whose error handler an error is passed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Comm(MPI_Comm),
    Win(MPI_Win),
    File(MPI_File),
    Session(MPI_Session),
}

impl Error {
    /// An error of this class. The text says what is wrong, and the remedy.
    #[cold]
    pub fn new(class: c_int, text: impl Into<String>) -> Error {
        Error(Box::new(Inner { code: class, text: text.into(), on: None, handler: None }))
    }

    /// Its code and text again, for the other members of an agreement.
    pub fn copy(&self) -> Error {
        Error::new(self.code(), self.text())
    }

    /// Another error, which goes to the same handler.
    pub fn in_place_of(self, code: c_int, text: String) -> Error {
        let Inner { on, handler, .. } = *self.0;
        Error(Box::new(Inner { code, text, on, handler }))
    }

    /// The same, for the handler of this object rather than that of the call's argument.
    pub fn on(mut self, on: On) -> Error {
        self.0.on = Some(on);
        self
    }

    /// The same, for this handler: the call was given it for an object that does not exist yet.
    pub fn with_handler(mut self, handler: Handler) -> Error {
        self.0.handler = Some(handler);
        self
    }

    /// Its class, or the code that the program has added.
    pub fn code(&self) -> c_int {
        self.0.code
    }

    pub fn text(&self) -> &str {
        &self.0.text
    }
}

impl From<pelago_core::Error> for Error {
    fn from(error: pelago_core::Error) -> Error {
        Error::new(MPI_ERR_OTHER, error.to_string())
    }
}

/// Fails with an error of a class unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $class:expr, $($text:tt)+) => {
        if !$condition {
            return Err($crate::chapters::error::Error::new($class, format!($($text)+)));
        }
    };
}
pub(crate) use ensure;

/// The object that an argument names, if errors of it go to a handler.
pub trait Blame {
    fn of(&self) -> Option<On> {
        None
    }
}

impl Blame for MPI_Comm {
    fn of(&self) -> Option<On> {
        Some(On::Comm(*self))
    }
}

impl Blame for MPI_Win {
    fn of(&self) -> Option<On> {
        Some(On::Win(*self))
    }
}

impl Blame for MPI_File {
    fn of(&self) -> Option<On> {
        Some(On::File(*self))
    }
}

impl Blame for MPI_Session {
    fn of(&self) -> Option<On> {
        Some(On::Session(*self))
    }
}

/// Errors of calls on groups go to the session that the group comes from.
impl Blame for MPI_Group {
    fn of(&self) -> Option<On> {
        let session = group::find(*self).map_or(MPI_SESSION_NULL, |group| group.session);
        (session != MPI_SESSION_NULL).then_some(On::Session(session))
    }
}

macro_rules! blameless {
    ($($type:ty)*) => {$(impl Blame for $type {})*};
}

blameless! {
    c_int MPI_Aint MPI_Count MPI_Message MPI_Info MPI_Errhandler MPI_Request MPI_Datatype MPI_Op
    MPI_T_enum MPI_T_cvar_handle MPI_T_pvar_handle MPI_T_pvar_session MPI_T_event_registration
    MPI_T_event_instance
    crate::convert::small::Count crate::convert::small::Aint crate::convert::small::DispUnit
    crate::convert::small::Counts crate::convert::small::Displs crate::convert::small::Aints
    crate::convert::small::CountOut crate::convert::small::AintOut crate::convert::small::DispUnitOut
    crate::convert::large::Count crate::convert::large::DispUnit
    crate::convert::large::Counts crate::convert::large::Displs crate::convert::large::Aints
    crate::convert::large::CountOut crate::convert::large::AintOut crate::convert::large::DispUnitOut
    crate::convert::large::Aint
    crate::convert::small::UserFunction crate::convert::large::UserFunction
    crate::convert::small::ConversionFunction crate::convert::large::ConversionFunction
}

impl<T> Blame for *const T {}
impl<T> Blame for *mut T {}

thread_local! {
    /// The text of the last error of each class.
    static LAST: RefCell<HashMap<c_int, String>> = RefCell::default();
}

/// The text of the last error with a code that this thread has raised.
pub fn last_text(code: c_int) -> Option<String> {
    LAST.with_borrow(|last| last.get(&code).cloned())
}

/// No algorithm of a collective operation does what the settings demand.
#[cold]
pub fn no_algorithm() -> Error {
    Error::new(
        MPI_ERR_UNSUPPORTED_OPERATION,
        "no algorithm can do this (`pelago coll list`); unset PELAGO_DETERMINISTIC",
    )
}

/// A call before the library is initialised, or after its end.
#[cold]
pub fn not_initialized(call: &str) -> c_int {
    let when = if library::is_finalized() { "after MPI_Finalize" } else { "before MPI_Init" };
    let error = Error::new(MPI_ERR_OTHER, format!("it is called {when}. Call it between the two"));
    raise(call, error, &[])
}

/// Passes an error to the handler of its object: the code that the call returns.
#[cold]
pub fn raise(call: &str, error: Error, arguments: &[Option<On>]) -> c_int {
    let Inner { code, text, on, handler } = *error.0;
    let whose = library::get().map_or_else(String::new, |mpi| format!("PE {}: ", mpi.core.my_pe()));
    let text = format!("{whose}{call}: {text}");
    LAST.with_borrow_mut(|last| last.insert(code, text.clone()));
    let (on, handler) = match handler {
        Some(handler) => (on.unwrap_or(On::Comm(MPI_COMM_SELF)), handler),
        None => handler_of(on.or_else(|| object_of(arguments))),
    };
    handler.handle(on, code, &text)
}

/// The object of a call: the first of its arguments. That of a group is only its session.
fn object_of(arguments: &[Option<On>]) -> Option<On> {
    let mut objects = arguments.iter().flatten().copied();
    let first = objects.next()?;
    let is_session = |on: &On| matches!(on, On::Session(_));
    Some(if is_session(&first) { objects.find(|on| !is_session(on)).unwrap_or(first) } else { first })
}

/// The handler for errors of an object. Errors of no object, or of one that does not exist, go to the handler
/// of `MPI_COMM_SELF`; if the program has set none there, to that of `MPI_COMM_WORLD`, as until MPI 3.1.
/// The same two take the errors of a communicator that was made before the program has set any handler, so
/// that a program need not begin with it.
fn handler_of(on: Option<On>) -> (On, Handler) {
    let own = on.and_then(|on| {
        let handler = match on {
            On::Comm(comm) => comm::handler(comm),
            On::Win(win) => win::handler(win),
            On::File(file) => file::handler(file),
            On::Session(session) => session::handler(session),
        };
        Some((on, handler?))
    });
    let general = || {
        let handlers = [MPI_COMM_SELF, MPI_COMM_WORLD].map(|comm| (On::Comm(comm), comm::handler(comm)));
        let set = handlers.into_iter().filter_map(|(on, handler)| Some((on, handler?)));
        set.into_iter().find(|(_, handler)| *handler != Handler::First)
    };
    match own {
        None => general().unwrap_or((On::Comm(MPI_COMM_SELF), library::first_handler())),
        Some((On::Comm(comm), Handler::First)) if !matches!(comm, MPI_COMM_WORLD | MPI_COMM_SELF) => {
            (On::Comm(comm), general().map_or(Handler::First, |(_, handler)| handler))
        }
        Some(own) => own,
    }
}
