//! Performance variables: counts of operations, and of objects that the program has not freed.
//!
//! Invariant: a handle has a value of its own, so that tools do not disturb each other. All variables count
//! all the time. Operations are counted if `PELAGO_COUNTERS` is on; otherwise their counts are 0.

use super::{Reply, at, tell, tell_text, wanted};
use crate::abi::*;
use crate::chapters::{group, library, request};
use pelago_core::base::counters::Counters;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

/// A performance variable.
pub struct Variable {
    pub name: &'static str,
    about: &'static str,
    pub class: c_int,
    read: Read,
}

enum Read {
    /// A count of operations, which a tool may reset and write.
    Operations(fn(&Counters) -> u64),
    /// The number of objects.
    Objects(fn() -> usize),
}

macro_rules! operations {
    ($($name:literal $class:ident $field:ident $about:literal;)*) => {
        [$(Variable {
            name: $name,
            about: concat!($about, "; counted if PELAGO_COUNTERS is on"),
            class: $class,
            read: Read::Operations(|counters| counters.$field),
        },)*
        Variable {
            name: "pelago_requests",
            about: "requests that the program has not completed or freed",
            class: MPI_T_PVAR_CLASS_LEVEL,
            read: Read::Objects(request::count),
        },
        Variable {
            name: "pelago_groups",
            about: "groups that the program has not freed",
            class: MPI_T_PVAR_CLASS_LEVEL,
            read: Read::Objects(group::count),
        }]
    };
}

/// All variables: those of operations, then those of objects.
pub static VARIABLES: [Variable; 13] = operations! {
    "pelago_puts" MPI_T_PVAR_CLASS_COUNTER puts "puts";
    "pelago_put_bytes" MPI_T_PVAR_CLASS_AGGREGATE put_bytes "bytes of puts";
    "pelago_gets" MPI_T_PVAR_CLASS_COUNTER gets "gets";
    "pelago_get_bytes" MPI_T_PVAR_CLASS_AGGREGATE get_bytes "bytes of gets";
    "pelago_atomics" MPI_T_PVAR_CLASS_COUNTER atomics "atomic operations";
    "pelago_collectives" MPI_T_PVAR_CLASS_COUNTER collectives "collective operations on symmetric memory";
    "pelago_barriers" MPI_T_PVAR_CLASS_COUNTER barriers "barriers";
    "pelago_net_puts" MPI_T_PVAR_CLASS_COUNTER net_puts "puts over the network";
    "pelago_net_gets" MPI_T_PVAR_CLASS_COUNTER net_gets "gets over the network";
    "pelago_parcels" MPI_T_PVAR_CLASS_COUNTER parcels "messages of scattered data over the network";
    "pelago_net_messages" MPI_T_PVAR_CLASS_COUNTER net_messages "active messages over the network";
};

/// The counters as they were when the library was closed: tools may read them after `MPI_Finalize`.
static LAST: Mutex<Option<Counters>> = Mutex::new(None);

/// Keeps the counters of a library that is being closed.
pub fn keep_counters(counters: Counters) {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(counters);
}

impl Variable {
    /// Whether it counts operations.
    pub fn is_of_operations(&self) -> bool {
        matches!(self.read, Read::Operations(_))
    }

    fn value(&self) -> u64 {
        match self.read {
            Read::Operations(of) => match library::get() {
                Some(mpi) => of(&mpi.core.tally.read()),
                None => LAST.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, of),
            },
            Read::Objects(count) => count() as u64,
        }
    }
}

/// A handle: its variable, and the value of this that counts as 0.
struct Handle {
    variable: &'static Variable,
    base: u64,
}

impl Handle {
    fn value(&self) -> u64 {
        self.variable.value().wrapping_sub(self.base)
    }

    /// Makes the value this number.
    fn set(&mut self, value: u64) -> Reply {
        if !self.variable.is_of_operations() {
            return Err(MPI_T_ERR_PVAR_NO_WRITE);
        }
        self.base = self.variable.value().wrapping_sub(value);
        Ok(())
    }
}

/// Sessions by number, with their handles by number.
type Sessions = BTreeMap<usize, BTreeMap<usize, Handle>>;

/// The sessions, and the last number of a session or handle.
static SESSIONS: Mutex<(usize, Sessions)> = Mutex::new((0x10, BTreeMap::new()));

fn with_sessions<R>(work: impl FnOnce(&mut usize, &mut Sessions) -> R) -> R {
    let mut all = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let (last, sessions) = &mut *all;
    work(last, sessions)
}

fn with_handle<R>(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    work: impl FnOnce(&mut Handle) -> Reply<R>,
) -> Reply<R> {
    with_sessions(|_, sessions| {
        let handles = sessions.get_mut(&session.0).ok_or(MPI_T_ERR_INVALID_SESSION)?;
        work(handles.get_mut(&handle.0).ok_or(MPI_T_ERR_INVALID_HANDLE)?)
    })
}

/// `MPI_T_pvar_get_num`.
pub unsafe fn t_pvar_get_num(num_pvar: *mut c_int) -> Reply {
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { wanted(num_pvar)?.write(VARIABLES.len() as c_int) };
    Ok(())
}

/// `MPI_T_pvar_get_index`.
pub unsafe fn t_pvar_get_index(name: *const c_char, var_class: c_int, pvar_index: *mut c_int) -> Reply {
    if name.is_null() {
        return Err(MPI_T_ERR_INVALID);
    }
    let place = wanted(pvar_index)?;
    // SAFETY: the caller's pointer is that of a string.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let is_meant = |of: &Variable| of.name.as_bytes() == name && of.class == var_class;
    let position = VARIABLES.iter().position(is_meant).ok_or(MPI_T_ERR_INVALID_NAME)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(position as c_int) };
    Ok(())
}

/// `MPI_T_pvar_get_info`.
pub unsafe fn t_pvar_get_info(
    pvar_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity: *mut c_int,
    var_class: *mut c_int,
    datatype: *mut MPI_Datatype,
    enumtype: *mut MPI_T_enum,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
    readonly: *mut c_int,
    continuous: *mut c_int,
    atomic: *mut c_int,
) -> Reply {
    let variable = at(&VARIABLES, pvar_index)?;
    let is_of_operations = variable.is_of_operations();
    // SAFETY: the caller's pointers are null or valid, and its texts have the room that it says.
    unsafe {
        tell_text(variable.name, name, name_len);
        tell(verbosity, MPI_T_VERBOSITY_USER_BASIC);
        tell(var_class, variable.class);
        tell(datatype, MPI_UNSIGNED_LONG_LONG);
        tell(enumtype, MPI_T_ENUM_NULL);
        tell_text(variable.about, desc, desc_len);
        tell(bind, MPI_T_BIND_NO_OBJECT);
        tell(readonly, (!is_of_operations).into());
        tell(continuous, 1);
        tell(atomic, is_of_operations.into());
    }
    Ok(())
}

/// `MPI_T_pvar_session_create`.
pub unsafe fn t_pvar_session_create(session: *mut MPI_T_pvar_session) -> Reply {
    let place = wanted(session)?;
    let number = with_sessions(|last, sessions| {
        *last += 1;
        sessions.insert(*last, BTreeMap::new());
        *last
    });
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(MPI_T_pvar_session(number)) };
    Ok(())
}

/// `MPI_T_pvar_session_free`: with its handles.
pub unsafe fn t_pvar_session_free(session: *mut MPI_T_pvar_session) -> Reply {
    let place = wanted(session)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe {
        let number = place.read().0;
        with_sessions(|_, sessions| sessions.remove(&number)).ok_or(MPI_T_ERR_INVALID_SESSION)?;
        place.write(MPI_T_PVAR_SESSION_NULL);
    }
    Ok(())
}

/// `MPI_T_pvar_handle_alloc`: counts begin at 0.
pub unsafe fn t_pvar_handle_alloc(
    session: MPI_T_pvar_session,
    pvar_index: c_int,
    _obj_handle: *mut c_void,
    handle: *mut MPI_T_pvar_handle,
    count: *mut c_int,
) -> Reply {
    let variable = at(&VARIABLES, pvar_index)?;
    let (handle, count) = (wanted(handle)?, wanted(count)?);
    let base = if variable.is_of_operations() { variable.value() } else { 0 };
    let number = with_sessions(|last, sessions| {
        let handles = sessions.get_mut(&session.0).ok_or(MPI_T_ERR_INVALID_SESSION)?;
        *last += 1;
        handles.insert(*last, Handle { variable, base });
        Reply::Ok(*last)
    })?;
    // SAFETY: the caller's pointers are valid for one value each.
    unsafe {
        handle.write(MPI_T_pvar_handle(number));
        count.write(1);
    }
    Ok(())
}

/// `MPI_T_pvar_handle_free`.
pub unsafe fn t_pvar_handle_free(session: MPI_T_pvar_session, handle: *mut MPI_T_pvar_handle) -> Reply {
    let place = wanted(handle)?;
    // SAFETY: the caller's pointer is valid for one value.
    let number = unsafe { place.read().0 };
    with_sessions(|_, sessions| {
        let handles = sessions.get_mut(&session.0).ok_or(MPI_T_ERR_INVALID_SESSION)?;
        handles.remove(&number).map(drop).ok_or(MPI_T_ERR_INVALID_HANDLE)
    })?;
    // SAFETY: the caller's pointer is valid, as for the read above.
    unsafe { place.write(MPI_T_PVAR_HANDLE_NULL) };
    Ok(())
}

/// Variables that count all the time can be neither started nor stopped.
fn start_or_stop(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Reply {
    if handle == MPI_T_PVAR_ALL_HANDLES {
        return with_sessions(|_, sessions| {
            sessions.get(&session.0).map(|_| ()).ok_or(MPI_T_ERR_INVALID_SESSION)
        });
    }
    with_handle(session, handle, |_| Err(MPI_T_ERR_PVAR_NO_STARTSTOP))
}

/// `MPI_T_pvar_start`.
pub unsafe fn t_pvar_start(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Reply {
    start_or_stop(session, handle)
}

/// `MPI_T_pvar_stop`.
pub unsafe fn t_pvar_stop(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Reply {
    start_or_stop(session, handle)
}

/// `MPI_T_pvar_read`.
pub unsafe fn t_pvar_read(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle, buf: *mut c_void) -> Reply {
    let place = wanted(buf)?;
    let value = with_handle(session, handle, |handle| Ok(handle.value()))?;
    // SAFETY: the caller's buffer has room for the value.
    unsafe { place.cast::<u64>().write(value) };
    Ok(())
}

/// `MPI_T_pvar_write`.
pub unsafe fn t_pvar_write(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    buf: *const c_void,
) -> Reply {
    let place = wanted(buf.cast_mut())?;
    // SAFETY: the caller's buffer has a value.
    let value = unsafe { place.cast::<u64>().read() };
    with_handle(session, handle, |handle| handle.set(value))
}

/// `MPI_T_pvar_reset`: of all handles, those whose variables can be reset.
pub unsafe fn t_pvar_reset(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Reply {
    if handle != MPI_T_PVAR_ALL_HANDLES {
        return with_handle(session, handle, |handle| handle.set(0));
    }
    with_sessions(|_, sessions| {
        let handles = sessions.get_mut(&session.0).ok_or(MPI_T_ERR_INVALID_SESSION)?;
        let mut resettable = handles.values_mut().filter(|handle| handle.variable.is_of_operations());
        resettable.try_for_each(|handle| handle.set(0))
    })
}

/// `MPI_T_pvar_readreset`.
pub unsafe fn t_pvar_readreset(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    buf: *mut c_void,
) -> Reply {
    let place = wanted(buf)?;
    let value = with_handle(session, handle, |handle| {
        if !handle.variable.is_of_operations() {
            return Err(MPI_T_ERR_PVAR_NO_ATOMIC);
        }
        let value = handle.value();
        handle.base = handle.base.wrapping_add(value);
        Ok(value)
    })?;
    // SAFETY: the caller's buffer has room for the value.
    unsafe { place.cast::<u64>().write(value) };
    Ok(())
}
