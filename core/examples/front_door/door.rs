//! A small front door: functions as a C library would export them, on `pelago-core` alone.
//!
//! Invariant: handles are addresses of boxes that the function which frees them takes back. Everything ends
//! before [`fd_finalize`] drops the core.
//!
//! `main.rs` uses the functions as a C program would.

use pelago_boot::Settings;
use pelago_core::coll::reduction::{Combiner, ReduceOp};
use pelago_core::coll::shape::Operation;
use pelago_core::coll::team::TeamCore;
use pelago_core::endpoint::completion_counter::CompletionCounter;
use pelago_core::messages::endpoint::AmEndpoint;
use pelago_core::messages::{Handler, Handlers, Message};
use pelago_core::region::Allocation;
use pelago_core::region::private::{Elements, PrivateBuffers};
use pelago_core::{Core, join};
use pelago_fabric::sync::{AtomicU64, Ordering};
use pelago_fabric::{Atomic, AtomicKind, AtomicOp};
use std::ffi::c_int;
use std::ptr::null_mut;
use std::slice;
use std::sync::{Arc, OnceLock};

/// The PE of this process.
static CORE: OnceLock<&'static Core> = OnceLock::new();
/// Its endpoint of active messages.
static ENDPOINT: OnceLock<Box<AmEndpoint<'static>>> = OnceLock::new();

fn core() -> &'static Core {
    CORE.get().expect("fd_init was called")
}

/// An error ends the job: a C function of this front door returns no error.
fn sound<T>(outcome: pelago_core::Result<T>) -> T {
    outcome.unwrap_or_else(|error| core().abort(1, &error.to_string()))
}

// Joining, leaving, progress, liveness.

/// Joins the job. 0, or 1 after a message.
pub extern "C" fn fd_init() -> c_int {
    let joined = Settings::from_env().map_err(Into::into).and_then(|settings| join::one_pe(&settings));
    match joined {
        Ok(core) => CORE.set(Box::leak(Box::new(core))).is_err().into(),
        Err(error) => {
            eprintln!("fd_init: {error}");
            1
        }
    }
}

/// Leaves the job.
///
/// # Safety
/// Nothing that the other functions have returned is used any more.
pub unsafe extern "C" fn fd_finalize() {
    // SAFETY: the core was leaked by `fd_init`, and the caller guarantees that nothing uses it.
    drop(unsafe { Box::from_raw(std::ptr::from_ref(core()).cast_mut()) });
}

pub extern "C" fn fd_my_pe() -> usize {
    core().my_pe()
}

pub extern "C" fn fd_n_pes() -> usize {
    core().n_pes()
}

/// Makes progress; every function that waits does so by itself.
pub extern "C" fn fd_progress() {
    core().progress();
}

/// Whether a PE has left the job.
pub extern "C" fn fd_has_left(pe: usize) -> bool {
    core().has_left(pe)
}

/// Whether the job has failed.
pub extern "C" fn fd_has_failed() -> bool {
    core().has_failed().is_some()
}

/// Ends the job.
pub extern "C" fn fd_abort(status: c_int) -> ! {
    core().abort(status, "fd_abort")
}

// Symmetric memory.

pub type Memory = Allocation<'static>;

/// Allocates symmetric memory. Collective.
pub extern "C" fn fd_alloc(bytes: usize) -> *mut Memory {
    Box::into_raw(Box::new(sound(Allocation::alloc(core(), &core().region, bytes, 64))))
}

/// Frees symmetric memory. Collective.
///
/// # Safety
/// It comes from `fd_alloc`, and is not used any more.
pub unsafe extern "C" fn fd_free(memory: *mut Memory) {
    // SAFETY: the caller guarantees that the box is `fd_alloc`'s.
    sound(unsafe { Box::from_raw(memory) }.free());
}

/// This PE's part.
pub extern "C" fn fd_own(memory: &Memory) -> *mut u8 {
    memory.own()
}

/// Where the part of a PE is mapped; null if it is on another node.
pub extern "C" fn fd_address(memory: &Memory, pe: usize) -> *mut u8 {
    memory.address(pe).unwrap_or(null_mut())
}

pub extern "C" fn fd_bytes(memory: &Memory) -> usize {
    memory.bytes()
}

// Puts, gets, atomics.

/// # Safety
/// The source has these bytes.
pub unsafe extern "C" fn fd_put(to: &Memory, pe: usize, offset: usize, source: *const u8, bytes: usize) {
    // SAFETY: the caller guarantees the source, which is free when this returns.
    sound(unsafe { to.put((pe, offset), source, bytes, None) });
}

/// # Safety
/// The target has room for these bytes.
pub unsafe extern "C" fn fd_get(target: *mut u8, from: &Memory, pe: usize, offset: usize, bytes: usize) {
    // SAFETY: the caller guarantees the target; the get is complete when this returns.
    sound(unsafe { from.get((pe, offset), target, bytes, None) });
}

/// Starts a put; [`fd_wait`] completes it.
///
/// # Safety
/// The source has these bytes, and stays unchanged until then.
pub unsafe extern "C" fn fd_put_nb(
    to: &Memory,
    pe: usize,
    offset: usize,
    source: *const u8,
    bytes: usize,
) -> *mut CompletionCounter {
    let counter = core().completions.open();
    // SAFETY: the caller guarantees the source until the counter has counted the put.
    sound(unsafe { to.put((pe, offset), source, bytes, Some(&counter)) });
    Box::into_raw(Box::new(counter))
}

/// Waits until an operation is complete.
///
/// # Safety
/// It comes from a function that starts one, and is not used any more.
pub unsafe extern "C" fn fd_wait(operation: *mut CompletionCounter) {
    // SAFETY: the caller guarantees the box.
    let counter = *unsafe { Box::from_raw(operation) };
    core().wait_for(&counter);
    core().completions.release(counter);
}

/// Completes all puts and atomics of this PE.
pub extern "C" fn fd_quiet() {
    core().quiet();
}

fn word(op: AtomicOp, operand: u64, compare: u64) -> Atomic {
    Atomic { kind: AtomicKind::U64, op, operand, compare }
}

pub extern "C" fn fd_fetch_add(memory: &Memory, pe: usize, offset: usize, value: u64) -> u64 {
    sound(memory.fetch_atomic((pe, offset), &word(AtomicOp::Add, value, 0)))
}

pub extern "C" fn fd_add(memory: &Memory, pe: usize, offset: usize, value: u64) {
    sound(memory.atomic((pe, offset), &word(AtomicOp::Add, value, 0), None));
}

pub extern "C" fn fd_swap(memory: &Memory, pe: usize, offset: usize, value: u64) -> u64 {
    sound(memory.fetch_atomic((pe, offset), &word(AtomicOp::Set, value, 0)))
}

pub extern "C" fn fd_compare_swap(memory: &Memory, pe: usize, offset: usize, old: u64, new: u64) -> u64 {
    sound(memory.fetch_atomic((pe, offset), &word(AtomicOp::CompareSwap, new, old)))
}

/// Waits until a word of this PE's part is at least a value.
pub extern "C" fn fd_wait_until(memory: &Memory, offset: usize, least: u64) {
    assert!(offset.is_multiple_of(8) && offset + 8 <= memory.bytes());
    // SAFETY: the word lies in the part, aligned, and is accessed as an atomic.
    let word = unsafe { AtomicU64::from_ptr(memory.own().add(offset).cast()) };
    memory.wait_to_find(|| (word.load(Ordering::Relaxed) >= least).then_some(()));
}

// Active messages: handlers by number.

/// A handler: the message, for a reply; the sender; arguments; payload.
pub type FdHandler = extern "C" fn(&Message<'_>, usize, *const u32, usize, *const u8, usize);

/// Registers the handlers: their numbers are their places in the list. Collective.
///
/// # Safety
/// The list has `n` handlers.
pub unsafe extern "C" fn fd_handlers(list: *const FdHandler, n: usize) {
    const NAMES: [&str; 4] = ["0", "1", "2", "3"];
    // SAFETY: the caller guarantees the list.
    let list = unsafe { slice::from_raw_parts(list, n) };
    let mut handlers = Handlers::new();
    for (&handler, name) in list.iter().zip(NAMES) {
        handlers.add(name, move |message| {
            let (args, payload) = (message.args(), message.payload());
            handler(message, message.from(), args.as_ptr(), args.len(), payload.as_ptr(), payload.len());
        });
    }
    // SAFETY: the handlers are functions; they borrow nothing.
    let endpoint = sound(unsafe { AmEndpoint::open(&core().messaging, &core().team, handlers) });
    assert!(ENDPOINT.set(Box::new(endpoint)).is_ok(), "fd_handlers is called once");
}

fn endpoint() -> &'static AmEndpoint<'static> {
    ENDPOINT.get().expect("fd_handlers was called")
}

/// # Safety
/// The payload has these bytes.
pub unsafe extern "C" fn fd_request(to: usize, handler: u16, arg: u32, payload: *const u8, bytes: usize) {
    // SAFETY: the caller guarantees the payload.
    let payload = unsafe { slice::from_raw_parts(payload, bytes) };
    sound(endpoint().medium(to, Handler(handler), &[arg], payload));
}

pub extern "C" fn fd_reply(message: &Message<'_>, handler: u16, arg: u32) {
    sound(message.answer_medium(Handler(handler), &[arg], &[]));
}

pub extern "C" fn fd_poll() {
    endpoint().poll();
}

/// Waits until all messages are executed. Collective.
pub extern "C" fn fd_messages_done() {
    sound(endpoint().barrier());
}

pub extern "C" fn fd_medium_max() -> usize {
    endpoint().medium_max()
}

// Teams.

/// A team, and the buffers for its operations on private memory.
pub struct FdTeam {
    team: Arc<TeamCore>,
    buffers: PrivateBuffers,
}

fn new_team(team: Arc<TeamCore>) -> *mut FdTeam {
    let buffers = sound(PrivateBuffers::new(core(), &team, 1 << 16));
    Box::into_raw(Box::new(FdTeam { team, buffers }))
}

/// The team of all PEs. Collective.
pub extern "C" fn fd_team_all() -> *mut FdTeam {
    new_team(Arc::clone(&core().team))
}

/// The team of the members with the same colour. Collective.
pub extern "C" fn fd_team_split(team: &FdTeam, colour: u64, key: i64) -> *mut FdTeam {
    sound(team.team.split_by(core(), Some(colour), key)).map_or(null_mut(), new_team)
}

/// The team of `n` members from `start` on, `stride` apart; null at others. Collective.
pub extern "C" fn fd_team_strided(team: &FdTeam, start: usize, stride: isize, n: usize) -> *mut FdTeam {
    sound(team.team.split_strided(core(), start, stride, n)).map_or(null_mut(), new_team)
}

pub extern "C" fn fd_team_rank(team: &FdTeam) -> usize {
    team.team.my_rank()
}

pub extern "C" fn fd_team_size(team: &FdTeam) -> usize {
    team.team.len()
}

/// # Safety
/// It comes from a function that makes a team, and is not used any more.
pub unsafe extern "C" fn fd_team_free(team: *mut FdTeam) {
    // SAFETY: the caller guarantees the box.
    drop(unsafe { Box::from_raw(team) });
}

// Collective operations on private memory.

pub extern "C" fn fd_barrier(team: &FdTeam) {
    team.team.barrier(core());
}

/// # Safety
/// Source and target have the blocks of `bytes` bytes that the operation needs.
unsafe fn moved(team: &FdTeam, what: (Operation, usize), target: *mut u8, source: *const u8, bytes: usize) {
    let elements = Elements { count: bytes, bytes: 1 };
    // SAFETY: the caller guarantees source and target.
    sound(unsafe { team.buffers.perform(core(), what, None, elements, (target, source)) });
}

/// # Safety
/// The buffer has these bytes.
pub unsafe extern "C" fn fd_broadcast(team: &FdTeam, root: usize, buffer: *mut u8, bytes: usize) {
    // SAFETY: the caller guarantees the buffer.
    unsafe { moved(team, (Operation::Broadcast, root), buffer, buffer, bytes) };
}

/// # Safety
/// The source has these bytes, the target as many for each member.
pub unsafe extern "C" fn fd_all_gather(team: &FdTeam, target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the caller guarantees source and target.
    unsafe { moved(team, (Operation::AllGather, 0), target, source, bytes) };
}

/// # Safety
/// Source and target have these bytes for each member.
pub unsafe extern "C" fn fd_all_to_all(team: &FdTeam, target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the caller guarantees source and target.
    unsafe { moved(team, (Operation::AllToAll, 0), target, source, bytes) };
}

/// # Safety
/// Source and target have `count` numbers.
pub unsafe extern "C" fn fd_sum(team: &FdTeam, target: *mut f64, source: *const f64, count: usize) {
    let combiner = Combiner::of::<f64>(ReduceOp::Sum).expect("numbers have sums");
    let (what, elements) = ((Operation::AllReduce, 0), Elements { count, bytes: 8 });
    let places = (target.cast(), source.cast());
    // SAFETY: the caller guarantees source and target.
    sound(unsafe { team.buffers.perform(core(), what, Some(&combiner), elements, places) });
}
