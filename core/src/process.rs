//! The one runtime of a process that several interfaces for C use, in any order: the first that is
//! initialised joins the job, and the last that is finalised leaves it.
//!
//! Invariant: there is at most one core of this kind at a time. A process joins its launcher once and
//! leaves it when it exits, so that an interface may be initialised again. The lock is held while the
//! process joins or leaves, which serialises two threads that initialise; a thread that ends the process only
//! tries it.

use crate::base::call::Call;
use crate::base::error::{ErrorKind, Result};
use crate::base::label;
use crate::base::locked::{locked, try_locked};
use crate::base::panic_message::panic_text;
use crate::job::membership::Membership;
use crate::join;
use crate::runtime::{Core, Runtime};
use pelago_boot::print_stderr;
use pelago_fabric::sync::{AtomicPtr, Ordering};
use pelago_fabric::threads;
use std::ptr::null_mut;
use std::sync::{Mutex, Once};

/// Returns settings that an interface needs in place of those of the environment.
pub type Wishes = fn() -> Vec<(&'static str, String)>;

/// The state of this process.
struct Process {
    /// The core of all interfaces, while one is initialised.
    core: Option<Core>,
    /// The number of interfaces that are initialised.
    users: usize,
    /// From the last release on, until the process joins again or exits.
    membership: Option<Membership>,
    /// The ID of the process that has joined; 0 before.
    id: u32,
    /// The number of threads that the runtime has started.
    own_threads: usize,
}

static PROCESS: Mutex<Process> =
    Mutex::new(Process { core: None, users: 0, membership: None, id: 0, own_threads: 0 });

static WISHES: Mutex<Option<Wishes>> = Mutex::new(None);

/// The runtime that a panic ends; null while there is none. It is alive while it is here.
static RUNNING: AtomicPtr<Runtime> = AtomicPtr::new(null_mut());

/// The core, as an interface gets it.
pub struct Joined {
    /// A share of the core. Dropping it has no effect on the job.
    pub core: Core,
    /// Whether this call has joined, so that nothing has used the core before.
    pub is_new: bool,
    /// The number of threads of the process without those of the runtime.
    pub program_threads: std::io::Result<usize>,
}

/// Sets the function that is asked for settings whichever interface is the first one.
pub fn ask_for_settings(wishes: Wishes) {
    *locked(&WISHES) = Some(wishes);
}

/// The core of this process, for one more interface; the first one joins the job. Collective.
///
/// # Errors
/// As [`join::one_pe`], and in the child of a fork of a process that has joined.
pub fn acquire() -> Result<Joined> {
    acquire_with(Vec::new())
}

/// As [`acquire`], with settings that replace those of the environment if this call joins the job.
///
/// # Errors
/// As [`acquire`], and if there is no such setting or value.
pub fn acquire_with(own: Vec<(&'static str, String)>) -> Result<Joined> {
    let mut process = locked(&PROCESS);
    let own_id = std::process::id();
    if process.id != 0 && process.id != own_id {
        return Err(ErrorKind::ForkedChild.into());
    }
    let before = threads::count();
    if let Some(core) = &process.core {
        let program_threads = before.map(|count| count.saturating_sub(process.own_threads));
        let joined = Joined { core: core.share(), is_new: false, program_threads };
        process.users += 1;
        return Ok(joined);
    }
    end_job_on_panic();
    let mut wishes = locked(&WISHES).map_or_else(Vec::new, |wishes| wishes());
    wishes.extend(own);
    let wishes: Vec<_> = wishes.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let settings = join::own_settings(&wishes)?;
    let core = match process.membership.take() {
        None => join::one_pe(&settings)?,
        Some(membership) => join::of_job(membership, &settings)?,
    };
    if let (Ok(before), Ok(after)) = (&before, threads::count()) {
        process.own_threads = after.saturating_sub(*before);
    }
    if process.id == 0 {
        leave_at_exit();
    }
    RUNNING.store(core.runtime_address(), Ordering::Release);
    let share = core.share();
    process.core = Some(core);
    (process.users, process.id) = (1, own_id);
    Ok(Joined { core: share, is_new: true, program_threads: before })
}

/// Gives the core back for one interface: completes its operations and waits for all PEs. If it was the
/// last one, this PE has left the job's world, and the core is returned: to be dropped when nothing uses
/// the memory of peers any more. `finish` is called when all PEs are there. Collective.
///
/// # Errors
/// If the PEs do not make the same call.
pub fn release(finish: impl FnOnce()) -> Result<Option<Core>> {
    let mut process = locked(&PROCESS);
    if process.users > 1 {
        let core = process.core.as_ref().expect("an interface is initialised");
        core.complete();
        core.agree(Call::Reclaim)?;
        finish();
        process.users -= 1;
        return Ok(None);
    }
    process.users = 0;
    let core = process.core.take();
    if let Some(core) = &core {
        process.membership = core.end(finish);
        RUNNING.store(null_mut(), Ordering::Release);
    }
    Ok(core)
}

/// The number of threads of this process without those of the runtime.
///
/// # Errors
/// If `/proc` is not mounted.
pub fn program_threads() -> std::io::Result<usize> {
    let own_threads = locked(&PROCESS).own_threads;
    threads::count().map(|count| count.saturating_sub(own_threads))
}

/// Forgets the core without leaving the job: in a child of a fork, which is not a PE.
pub fn abandon() {
    RUNNING.store(null_mut(), Ordering::Release);
    if let Some(mut process) = try_locked(&PROCESS) {
        // The memory and the links are those of the parent.
        std::mem::forget(process.core.take());
        std::mem::forget(process.membership.take());
        process.users = 0;
    }
}

/// Makes the exit of the process leave the job, once no interface is initialised. If one is, the launcher
/// reports a process that has ended without leaving.
fn leave_at_exit() {
    extern "C" fn leave() {
        let Some(mut process) = try_locked(&PROCESS) else { return };
        if process.id != std::process::id() {
            std::mem::forget(process.membership.take());
            return;
        }
        if let Some(membership) = process.membership.take()
            && let Err(error) = membership.finalize()
        {
            print_stderr(&format!("leaving the job: {error}\n"));
        }
    }
    // SAFETY: the function needs no argument, and lives as long as the process.
    unsafe { libc::atexit(leave) };
}

/// From now on a panic ends the job after its message is printed, so that no panic unwinds through frames
/// of C. A call that cannot continue, as it waits for a PE that has left, ends the job in the same way.
pub fn end_job_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let place = info.location().map(|place| format!(" [{place}]")).unwrap_or_default();
            print_stderr(&format!("{}{}{place}\n", panic_text(info.payload()), label::name()));
            if std::env::var_os("RUST_BACKTRACE").is_some() {
                before(info);
            }
            // SAFETY: the process holds the core of a runtime that stands here.
            match unsafe { RUNNING.load(Ordering::Acquire).as_ref() } {
                Some(runtime) => runtime.abort(101, ""),
                // SAFETY: it has no precondition; exit handlers might wait for what this thread holds.
                None => unsafe { libc::_exit(101) },
            }
        }));
    });
}
