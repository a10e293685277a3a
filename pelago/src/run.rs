//! The PEs of a process: one, or several as threads of it (`PELAGO_PES_PER_PROCESS`).
//!
//! Invariant: a process joins and leaves once for all its PEs, and they end together. A failure after which
//! one of several PEs cannot go on ends the process, and with it the job, without a wait for the others,
//! which may compute for ever.

use crate::Pe;
use crate::spmd::stay_on;
use crate::world::World;
use pelago_boot::{Job, Settings, cpus, print_stderr};
use pelago_core::base::error::Result;
use pelago_core::base::panic_message;
use pelago_core::join::own_settings;
use pelago_core::join::{self, PendingPe};
use pelago_core::wait::stall;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

/// The exit status of a process that ends by a panic.
const PANIC_STATUS: i32 = 101;

/// Joins the job that this process was started in, with `PELAGO_PES_PER_PROCESS` PEs; runs `body` once on
/// each, and returns their results, in their order, when all PEs of the job have left it. PE `i` of the
/// process with number `p` is PE `p * PELAGO_PES_PER_PROCESS + i` of the job. Collective.
///
/// If the process has one PE, which is the default, the body runs on the calling thread. If it has several,
/// each runs on a thread of its own, with a world of its own. These threads share the static variables, the
/// heap and the standard output of the process. A program whose PEs must not share them calls [`World::init`]
/// in place of `run`: it returns an error if the process has to have several PEs.
///
/// ```
/// fn main() -> pelago::Result<()> {
///     pelago::run(|world| -> pelago::Result<()> {
///         let (me, n) = (world.my_pe(), world.n_pes());
///         let inbox = world.alloc::<u64>(1)?;
///         inbox.p((me + 1) % n, 0, me as u64)?;
///         world.barrier();
///         assert_eq!(inbox.local().get(0), ((me + n - 1) % n) as u64);
///         Ok(())
///     })?
///     .into_iter()
///     .collect()
/// }
/// ```
/// `pelago run -n 8 --pes-per-process 4 ./program` starts two processes with four PEs each, and so does
/// `PELAGO_PES_PER_PROCESS=4 mpiexec.hydra -n 2 ./program`.
///
/// # Errors
/// As [`World::init`]. An error that keeps only one of several PEs from joining ends the job instead, with
/// status 1.
///
/// # Panics
/// As [`World::init`], and if the body of the only PE panics. A panic of one of several PEs ends the job,
/// with its words and status 101.
pub fn run<R: Send>(body: impl Fn(&World) -> R + Sync) -> Result<Vec<R>> {
    run_with(&[], body)
}

/// As [`run`], for a body that can fail: returns the first error of a PE of this process.
///
/// # Errors
/// As [`run`], and if the body returns an error.
///
/// # Panics
/// As [`run`].
pub fn try_run<R: Send>(body: impl Fn(&World) -> Result<R> + Sync) -> Result<Vec<R>> {
    run(body)?.into_iter().collect()
}

/// As [`run`], with settings that hold in place of the environment's.
///
/// # Errors
/// As [`run`], and for settings that are none.
#[doc(hidden)]
pub fn run_with<R: Send>(settings: &[(&str, &str)], body: impl Fn(&World) -> R + Sync) -> Result<Vec<R>> {
    let settings = own_settings(settings)?;
    let membership = join::process(&settings)?;
    if settings.pes_per_process == 1 {
        let world = World::from(join::of_job(membership, &settings)?);
        return Ok(vec![body(&world)]);
    }
    let job = Arc::clone(&membership.job);
    let pending_pes = join::pending_pes(membership, &settings)?;
    let _resting = stall::Resting::begin();
    let outcomes = run_threads(pending_pes, &job, &settings, &body);
    if let Some(job) = Arc::into_inner(job) {
        let first = job.first_pe();
        if let Err(error) = job.finalize() {
            print_stderr(&format!("PE {first}: leaving the job: {error}\n"));
        }
    }
    Ok(outcomes)
}

fn run_threads<R: Send>(
    pending_pes: Vec<PendingPe>,
    job: &Job,
    settings: &Settings,
    body: &(dyn Fn(&World) -> R + Sync),
) -> Vec<R> {
    let cpus = if settings.bind { cpus() } else { Vec::new() };
    thread::scope(|scope| {
        let start = |pending_pe: PendingPe| {
            let pe = pending_pe.pe();
            let cpu = cpus.get(pe % cpus.len().max(1)).copied();
            let work = move || {
                cpu.into_iter().for_each(stay_on);
                run_pe(pe, pending_pe, job, settings, body)
            };
            let thread = thread::Builder::new().name(format!("PE {pe}")).stack_size(stack_bytes());
            let thread = thread.spawn_scoped(scope, work);
            // Those that run already wait for it.
            thread.unwrap_or_else(|error| {
                let remedy = "Lower PELAGO_PES_PER_PROCESS, or raise the limit of threads";
                job.abort(pe, 1, &format!("the system refused a thread for it: {error}. {remedy}"))
            })
        };
        let threads: Vec<_> = pending_pes.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a PE that panics ends the job")).collect()
    })
}

/// One of several PEs of this process: its whole life.
fn run_pe<R>(
    pe: Pe,
    pending_pe: PendingPe,
    job: &Job,
    settings: &Settings,
    body: &(dyn Fn(&World) -> R + Sync),
) -> R {
    // The world lives until the job has been told of the failure: unwinding would cut its links first, which
    // other PEs might see.
    let world = World::from(told(pe, job, || {
        pending_pe.take(settings).unwrap_or_else(|error| job.abort(pe, 1, &error.to_string()))
    }));
    let outcome = told(pe, job, || body(&world));
    // A body that has caught a failure of the runtime returns, but the world is closed: the job has failed.
    if world.core().is_closed() {
        let reason = world.core().has_failed();
        job.abort(
            pe,
            1,
            reason.as_deref().unwrap_or("it caught a failure and cannot leave the job in order"),
        );
    }
    told(pe, job, || drop(world));
    outcome
}

/// Does a part of a PE's life; a panic ends the job, with its words.
fn told<R>(pe: Pe, job: &Job, part: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(part)).unwrap_or_else(|payload| {
        job.abort(pe, PANIC_STATUS, &panic_message::of_panic(payload.as_ref()));
    })
}

/// Bytes of a PE's stack: as many as the first thread of a process has, within reason.
fn stack_bytes() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Stack).current;
    limit.map_or(STACK_BYTES_MIN, |bytes| (bytes as usize).clamp(STACK_BYTES_MIN, STACK_BYTES_MAX))
}

/// Bounds of that.
const STACK_BYTES_MIN: usize = 8 << 20;
const STACK_BYTES_MAX: usize = 1 << 30;
