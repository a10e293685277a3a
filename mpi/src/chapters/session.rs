//! Sessions: a way to MPI without `MPI_Init`, for parts of a program that do not know each other.
//!
//! Invariant: a session is a user of the library from its beginning to its end. There are two process sets,
//! in every session.

use crate::abi::*;
use crate::chapters::errhandler::{Handler, HandlerCell, Takes};
use crate::chapters::error::{Error, On, Result, ensure};
use crate::chapters::group::Group;
use crate::chapters::info::{self, Entries, Hint, Hints, MEMORY_KINDS};
use crate::chapters::library::{Mpi, output};
use crate::chapters::p2p::Place;
use crate::chapters::request;
use crate::chapters::users::{self, User};
use crate::convert::IntegerOut;
use crate::table::{Kind, Table};
use std::ffi::CStr;
use std::sync::Arc;

static SESSIONS: Table<Session> = Table::new(Kind::Session);

/// A session.
pub struct Session {
    pub errhandler: HandlerCell,
    pub hints: Hints,
    /// The buffer for buffered sends on communicators that come from it.
    pub attached: Place,
}

/// The hints of sessions.
static HINTS: [Hint; 2] = [Hint::text("thread_level", Some("MPI_THREAD_MULTIPLE")), MEMORY_KINDS];

/// The names of process sets, whose case does not matter.
pub const WORLD: &str = "mpi://WORLD";
pub const OWN: &str = "mpi://SELF";
/// The names of the process sets, in the order of their numbers.
const SETS: [&str; 2] = [WORLD, OWN];

const LEVELS: [(&str, c_int); 4] = [
    ("MPI_THREAD_SINGLE", MPI_THREAD_SINGLE),
    ("MPI_THREAD_FUNNELED", MPI_THREAD_FUNNELED),
    ("MPI_THREAD_SERIALIZED", MPI_THREAD_SERIALIZED),
    ("MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE),
];

/// The session with a handle.
pub fn find(handle: MPI_Session) -> Result<Arc<Session>> {
    SESSIONS.share(handle.0).ok_or_else(|| {
        let text = match handle {
            MPI_SESSION_NULL => "the session is MPI_SESSION_NULL",
            _ => "the session has ended, or never was one",
        };
        Error::new(MPI_ERR_SESSION, text)
    })
}

/// The error handler of a session.
pub fn handler(session: MPI_Session) -> Option<Handler> {
    Some(SESSIONS.share(session.0)?.errhandler.get())
}

/// The level of threads that an info asks for. A session that asks for none gets the highest.
fn level_of(info: &Entries) -> Result<c_int> {
    let Some(asked) = info.get("thread_level") else { return Ok(MPI_THREAD_MULTIPLE) };
    let level = LEVELS.into_iter().find(|&(name, _)| name == asked).map(|(_, level)| level);
    level.ok_or_else(|| {
        let text = format!("thread_level is {asked:?}, which is not the name of a level of threads");
        Error::new(MPI_ERR_INFO_VALUE, text)
    })
}

/// `MPI_Session_init`. The error handler gets the errors of the call as well.
pub unsafe fn session_init(info: MPI_Info, errhandler: MPI_Errhandler, session: *mut MPI_Session) -> Result {
    let handler = Handler::find(errhandler, Takes::Session)?;
    // SAFETY: the caller passes places and texts that are valid, or null.
    let begun = unsafe { begin(info, handler, session) };
    begun.map_err(|error| error.on(On::Session(MPI_SESSION_NULL)).with_handler(handler))
}

unsafe fn begin(info: MPI_Info, handler: Handler, session: *mut MPI_Session) -> Result {
    let place = output("session", session)?;
    let level = level_of(&info::given(info)?)?;
    let own = Session {
        errhandler: HandlerCell::new(handler),
        hints: Hints::default(),
        attached: Place::default(),
    };
    own.hints.accept(info, &HINTS)?;
    let mpi = users::enter(User::Session, level)?;
    let Some(handle) = SESSIONS.insert(Arc::new(own)) else {
        users::leave(mpi)?;
        return Err(Error::new(MPI_ERR_NO_MEM, "there are too many sessions. End some"));
    };
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(MPI_Session(handle)) };
    Ok(())
}

/// `MPI_Session_finalize`.
pub unsafe fn session_finalize(mpi: &'static Mpi, session: *mut MPI_Session) -> Result {
    let place = output("session", session)?;
    // SAFETY: the caller's pointer is valid for one value.
    let handle = unsafe { place.read() };
    let own = find(handle).map_err(|error| error.on(On::Session(handle)))?;
    own.attached.flush(mpi);
    request::finish_detached_of(mpi, handle);
    SESSIONS.remove(handle.0);
    // SAFETY: the caller's pointer is valid, as for the read above.
    unsafe { place.write(MPI_SESSION_NULL) };
    users::leave(mpi)
}

/// `MPI_Session_get_info`.
pub unsafe fn session_get_info(_mpi: &Mpi, session: MPI_Session, info_used: *mut MPI_Info) -> Result {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { find(session)?.hints.give(&HINTS, info_used) }
}

/// `MPI_Session_get_num_psets`.
pub unsafe fn session_get_num_psets(
    _mpi: &Mpi,
    session: MPI_Session,
    info: MPI_Info,
    npset_names: *mut c_int,
) -> Result {
    find(session)?;
    info::given(info)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("npset_names", npset_names)?.write(SETS.len() as c_int) };
    Ok(())
}

/// `MPI_Session_get_nth_pset`: if `pset_len` is 0, only the length of the name, with its end.
pub unsafe fn session_get_nth_pset(
    _mpi: &Mpi,
    session: MPI_Session,
    info: MPI_Info,
    n: c_int,
    pset_len: *mut c_int,
    pset_name: *mut c_char,
) -> Result {
    find(session)?;
    info::given(info)?;
    let place = output("pset_len", pset_len)?;
    // SAFETY: the caller's pointer is valid for one value.
    let room = unsafe { place.read() };
    ensure!(room >= 0, MPI_ERR_ARG, "pset_len is {room}, which is negative");
    ensure!(room == 0 || !pset_name.is_null(), MPI_ERR_ARG, "pset_len is {room}, and pset_name is null");
    let Some(name) = usize::try_from(n).ok().and_then(|n| SETS.get(n)) else {
        let text = format!("n is {n}, and there are {} process sets. They are numbered from 0", SETS.len());
        return Err(Error::new(MPI_ERR_ARG, text));
    };
    // SAFETY: the caller's buffer has the room that it says.
    unsafe {
        if room > 0 {
            let bytes = name.len().min(room as usize - 1);
            pset_name.cast::<u8>().copy_from_nonoverlapping(name.as_ptr(), bytes);
            pset_name.add(bytes).write(0);
        }
        place.write(name.len() as c_int + 1);
    }
    Ok(())
}

/// The group of a process set. Names differ by more than the case of their letters.
unsafe fn set(mpi: &Mpi, pset_name: *const c_char) -> Result<Group> {
    ensure!(!pset_name.is_null(), MPI_ERR_ARG, "pset_name is null");
    // SAFETY: the caller's pointer is that of a string.
    let name = unsafe { CStr::from_ptr(pset_name) }.to_string_lossy();
    let (me, n) = (mpi.core.my_pe(), mpi.core.n_pes());
    if name.eq_ignore_ascii_case(WORLD) {
        Ok(Group::all(n, me))
    } else if name.eq_ignore_ascii_case(OWN) {
        Ok(Group::of(&[me], me))
    } else {
        let text = format!("there is no process set {name:?}. The sets are {WORLD} and {OWN}");
        Err(Error::new(MPI_ERR_ARG, text))
    }
}

/// `MPI_Session_get_pset_info`.
pub unsafe fn session_get_pset_info(
    mpi: &Mpi,
    session: MPI_Session,
    pset_name: *const c_char,
    info: *mut MPI_Info,
) -> Result {
    find(session)?;
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe {
        let size = set(mpi, pset_name)?.len().to_string();
        info::give(Entries::of(&[("mpi_size", &size)]), info)
    }
}

/// `MPI_Group_from_session_pset`.
pub unsafe fn group_from_session_pset(
    mpi: &Mpi,
    session: MPI_Session,
    pset_name: *const c_char,
    newgroup: *mut MPI_Group,
) -> Result {
    find(session)?;
    let place = output("newgroup", newgroup)?;
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe {
        place.write(MPI_GROUP_NULL);
        place.write(set(mpi, pset_name)?.of_session(session).handle()?);
    }
    Ok(())
}

/// `MPI_Session_set_errhandler`.
pub unsafe fn session_set_errhandler(_mpi: &Mpi, session: MPI_Session, errhandler: MPI_Errhandler) -> Result {
    let session = find(session)?;
    session.errhandler.set(Handler::find(errhandler, Takes::Session)?);
    Ok(())
}

/// `MPI_Session_get_errhandler`.
pub unsafe fn session_get_errhandler(
    _mpi: &Mpi,
    session: MPI_Session,
    errhandler: *mut MPI_Errhandler,
) -> Result {
    let (session, place) = (find(session)?, output("errhandler", errhandler)?);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(session.errhandler.get().handle_of()?) };
    Ok(())
}

/// `MPI_Session_call_errhandler`.
pub unsafe fn session_call_errhandler(_mpi: &Mpi, session: MPI_Session, errorcode: c_int) -> Result {
    let handler = find(session)?.errhandler.get();
    handler.handle(
        On::Session(session),
        errorcode,
        &format!("MPI_Session_call_errhandler: code {errorcode}"),
    );
    Ok(())
}

/// `MPI_Session_attach_buffer`.
pub unsafe fn session_attach_buffer(
    _mpi: &Mpi,
    session: MPI_Session,
    buffer: *mut c_void,
    size: i64,
) -> Result {
    find(session)?.attached.attach(buffer, size)
}

/// `MPI_Session_detach_buffer`.
pub unsafe fn session_detach_buffer(
    mpi: &Mpi,
    session: MPI_Session,
    buffer_addr: *mut c_void,
    size: IntegerOut,
) -> Result {
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { find(session)?.attached.detach(mpi, buffer_addr, size) }
}

/// `MPI_Session_flush_buffer`.
pub unsafe fn session_flush_buffer(mpi: &Mpi, session: MPI_Session) -> Result {
    find(session)?.attached.flush(mpi);
    Ok(())
}

/// `MPI_Session_iflush_buffer`.
pub unsafe fn session_iflush_buffer(_mpi: &Mpi, session: MPI_Session, request: *mut MPI_Request) -> Result {
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { find(session)?.attached.start_flush(On::Session(session), request) }
}
