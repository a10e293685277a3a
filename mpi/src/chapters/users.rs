//! The users of the library, which keep this process in its job: the world of `MPI_Init`, and sessions.
//!
//! Invariant: the library is open while it has users. A process joins its job once. If it has only ever used
//! `MPI_Init`, it leaves at `MPI_Finalize`. If it has used sessions, which may come and go, the library rests
//! after the end of its last user, so that another session can open it without the other PEs; the process
//! then leaves when it exits.

use crate::abi::*;
use crate::chapters::error::{Result, ensure};
use crate::chapters::leaks;
use crate::chapters::library::{self, Mpi};
use crate::chapters::p2p;
use crate::chapters::request;
use crate::chapters::tool;
use pelago_boot::print_stderr;
use pelago_core::base::label::name_calls_by;
use pelago_core::process;
use pelago_fabric::sync::Ordering;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Settings that the library has unless the program or the environment sets them. Windows lie in the pool,
/// and programs expect that these may be as large as the memory, and that what they send is kept.
const DEFAULTS: [(&str, &str); 2] = [("PELAGO_POOL_SIZE", "share"), ("PELAGO_UNEXPECTED_MEMORY", "1g")];

struct Users {
    count: usize,
    has_sessions: bool,
    has_left: bool,
    /// The library without users.
    resting: Option<&'static Mpi>,
    /// The process that joined; a child of it has a copy of this state, but is not in the job.
    process: u32,
}

/// Only calls that open or close the library take this lock, so that it may be held while they wait for
/// other PEs.
static USERS: Mutex<Users> =
    Mutex::new(Users { count: 0, has_sessions: false, has_left: false, resting: None, process: 0 });

fn users() -> MutexGuard<'static, Users> {
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A user of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    World,
    Session,
}

/// Adds a user, which needs a level of threads. The first joins the job.
pub fn enter(user: User, level: c_int) -> Result<&'static Mpi> {
    let mut users = users();
    let mpi = match (library::get(), users.resting.take()) {
        (Some(mpi), _) => mpi,
        (None, Some(mpi)) => {
            library::reopen(mpi);
            mpi
        }
        (None, None) => {
            ensure!(
                !users.has_left,
                MPI_ERR_OTHER,
                "the process has left its job at MPI_Finalize. Begin a session before, if others follow"
            );
            let mut settings = tool::changed_settings();
            for (name, default) in DEFAULTS {
                let is_set = settings.iter().any(|(set, _)| *set == name);
                if !is_set && std::env::var_os(name).is_none_or(|value| value.is_empty()) {
                    settings.push((name, default.to_owned()));
                }
            }
            name_calls_by(library::current_call);
            let core = process::acquire_with(settings)?.core;
            users.process = std::process::id();
            let mpi = library::open(core);
            leaks::begin(mpi);
            mpi
        }
    };
    if level > MPI_THREAD_SINGLE {
        mpi.core.bears_threads.store(true, Ordering::Relaxed);
    }
    if user == User::Session && !users.has_sessions {
        users.has_sessions = true;
        // SAFETY: the function needs no argument, and lives as long as the process.
        unsafe { on_exit(at_exit, std::ptr::null_mut()) };
    }
    users.count += 1;
    Ok(mpi)
}

/// Removes a user. The last one closes the library.
pub fn leave(mpi: &'static Mpi) -> Result {
    let mut users = users();
    debug_assert!(users.count > 0, "a user has entered before it leaves");
    users.count -= 1;
    if users.count > 0 {
        return Ok(());
    }
    p2p::flush_attached(mpi);
    request::finish_detached(mpi);
    if users.has_sessions {
        library::close();
        users.resting = Some(mpi);
        return Ok(());
    }
    users.has_left = true;
    end(mpi)
}

/// Leaves the job, unless another interface is in use.
fn end(mpi: &Mpi) -> Result {
    if request::has_receives(mpi) {
        mpi.core.receive_while_leaving();
    }
    // The end waits for all PEs, and completes everything. The process leaves its launcher when it exits.
    let left = process::release(|| request::finish_receives(mpi))?;
    library::close();
    // The others see that this PE has left, and not that it is lost.
    drop(left);
    Ok(())
}

// SAFETY: the prototype is that of the C library.
unsafe extern "C" {
    /// The C library's function: like `atexit`, but the handler gets the status.
    fn on_exit(work: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// The end of a process that has used sessions: it leaves the job, if all have ended. If its status says that
/// it has failed, the launcher ends the job.
extern "C" fn at_exit(status: c_int, _argument: *mut c_void) {
    // Another thread that opens the library meanwhile is part of a program that ends in disorder.
    let Ok(mut users) = USERS.try_lock() else { return };
    let is_orderly = users.process == std::process::id() && status == 0;
    if let Some(mpi) = library::get().filter(|_| is_orderly && users.count > 0) {
        let me = mpi.core.my_pe();
        let remedy = "Call MPI_Session_finalize for each session, and MPI_Finalize after MPI_Init";
        print_stderr(&format!("PE {me}: the program ends while MPI is in use. {remedy}\n"));
    }
    let resting = users.resting.take().filter(|_| is_orderly);
    drop(users);
    if let Some(Err(error)) = resting.map(end) {
        print_stderr(&format!("leaving the job: {}\n", error.text()));
    }
}
