//! Non-blocking collective operations. Source of the request and of the names: OpenSHMEM specification, pull
//! request 456.
//!
//! Invariant: a request is in the table from the call that starts its operation until a call has found that
//! the operation is over; the last finalisation waits for the remaining requests.

use crate::base::abi::{Ctx, LongDouble, Request, TeamHandle, c_char, c_int, c_void, size_t};
use crate::base::fault::{Call, Mark, OrFail, fail};
use crate::base::hot::Hot;
use crate::collective::reduce::{CombineLongDouble, Make, Ready, combiner, long_double_combiner, name};
use crate::collective::root;
use crate::handles::{self, Handles};
use crate::library;
use crate::symmetric::check::User;
use crate::symmetric::spans::{Operand, Stored, Unit};
use crate::team;
use pelago::sync::Ordering;
use pelago::{Collective, Combiner, ReduceOp, Reducible, Team};

/// The operations in progress.
static REQUESTS: Handles<UnderWay> = Handles::new();

/// The maximum number of operations in progress on a PE.
const MOST: usize = handles::SLOTS;

/// An operation in progress; its team counts these operations.
struct UnderWay {
    request: pelago::Request<'static>,
    team: &'static handles::team::Team,
}

impl UnderWay {
    fn wait(self, call: Call) {
        let _mark = Mark::set(call);
        self.request.wait();
        self.team.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Address and size in bytes of a source that must not change while the operation is in progress.
type Source = (*const u8, usize);

/// The operation has no source, or does not read it.
const NO_SOURCE: Source = (std::ptr::null(), 0);

/// The source of an operation; an operation in place has none.
fn source_of<T>(dest: *mut T, source: *const T, count: usize) -> Source {
    if dest.cast_const() == source { NO_SOURCE } else { (source.cast(), count * size_of::<T>()) }
}

/// `shmemx_team_sync_nb`: as `shmem_team_sync`.
pub(crate) unsafe fn team_sync(call: Call, team: TeamHandle, request: *mut Request) -> c_int {
    start(call, team, request, NO_SOURCE, |team| team.nonblocking().sync())
}

/// `shmemx_team_barrier_nb`: the same, but all operations of the default context are completed first.
pub(crate) unsafe fn team_barrier(call: Call, team: TeamHandle, request: *mut Request) -> c_int {
    library::of(call).settle_sources(call, Some(User::Context(Ctx::DEFAULT)));
    start(call, team, request, NO_SOURCE, |team| team.nonblocking().barrier())
}

/// `shmemx_broadcastmem_nb`.
pub(crate) unsafe fn broadcastmem(
    call: Call,
    team: TeamHandle,
    dest: *mut c_void,
    source: *const c_void,
    nelems: size_t,
    pe_root: c_int,
    request: *mut Request,
) -> c_int {
    let library = library::of(call);
    // SAFETY: the function has no precondition; it checks its arguments itself.
    let is_root = unsafe { team::my_pe(call, team) } == pe_root;
    let in_use = if is_root { source_of(dest, source, nelems) } else { NO_SOURCE };
    start(call, team, request, in_use, |team| {
        let root = root(call, pe_root, team);
        let target = library.span(call, Operand::Dest, dest.cast::<u8>(), nelems);
        team.nonblocking().broadcast(
            root,
            target,
            library.span(call, Operand::Source, source.cast::<u8>(), nelems),
        )
    })
}

/// `shmemx_fcollectmem_nb`.
pub(crate) unsafe fn fcollectmem(
    call: Call,
    team: TeamHandle,
    dest: *mut c_void,
    source: *const c_void,
    nelems: size_t,
    request: *mut Request,
) -> c_int {
    let library = library::of(call);
    start(call, team, request, source_of(dest, source, nelems), |team| {
        let all = nelems.saturating_mul(team.n_pes());
        let target = library.span(call, Operand::Dest, dest.cast::<u8>(), all);
        team.nonblocking()
            .all_gather(target, library.span(call, Operand::Source, source.cast::<u8>(), nelems))
    })
}

/// `shmemx_alltoallmem_nb`.
pub(crate) unsafe fn alltoallmem(
    call: Call,
    team: TeamHandle,
    dest: *mut c_void,
    source: *const c_void,
    nelems: size_t,
    request: *mut Request,
) -> c_int {
    let library = library::of(call);
    // SAFETY: the function has no precondition; it checks its arguments itself.
    let n_pes = unsafe { team::n_pes(call, team) }.max(0) as usize;
    start(call, team, request, source_of(dest, source, nelems.saturating_mul(n_pes)), |team| {
        let all = nelems.saturating_mul(team.n_pes());
        let target = library.span(call, Operand::Dest, dest.cast::<u8>(), all);
        team.nonblocking().all_to_all(target, library.span(call, Operand::Source, source.cast::<u8>(), all))
    })
}

/// Declares the reductions.
macro_rules! reductions {
    ($($name:ident $op:ident;)+) => {$(
        /// `shmemx_<type>_<op>_reduce_nb`.
        #[inline(always)]
        pub(crate) unsafe fn $name<T: Stored + Reducible>(
            call: Call,
            team: TeamHandle,
            dest: *mut T,
            source: *const T,
            nreduce: size_t,
            request: *mut Request,
        ) -> c_int {
            let make: Make = combiner::<T, { ReduceOp::$op as u8 }>;
            reduce::<T::Unit>(team, dest.cast(), source.cast(), nreduce, request, make, call)
        }
    )+};
}

reductions! {
    and_reduce And;
    or_reduce Or;
    xor_reduce Xor;
    min_reduce Min;
    max_reduce Max;
    sum_reduce Sum;
    prod_reduce Product;
}

#[inline(never)]
fn reduce<U: Unit>(
    team: TeamHandle,
    dest: *mut U,
    source: *const U,
    nreduce: usize,
    request: *mut Request,
    make: Make,
    call: Call,
) -> c_int {
    reduce_with(team, dest, source, nreduce, request, make(), call)
}

fn reduce_with<U: Unit>(
    team: TeamHandle,
    dest: *mut U,
    source: *const U,
    nreduce: usize,
    request: *mut Request,
    combiner: Combiner,
    call: Call,
) -> c_int {
    let library = library::of(call);
    start(call, team, request, source_of(dest, source, nreduce), |team| {
        let target = library.span(call, Operand::Dest, dest, nreduce);
        let source = library.span(call, Operand::Source, source, nreduce);
        team.nonblocking().all_reduce(Ready(combiner), target, source)
    })
}

/// For `long_double.c`.
#[unsafe(export_name = "pelago_shmem_longdouble_reduce_nb")]
unsafe extern "C-unwind" fn longdouble_reduce(
    call: *const c_char,
    team: TeamHandle,
    dest: *mut LongDouble,
    source: *const LongDouble,
    nreduce: size_t,
    request: *mut Request,
    combine: CombineLongDouble,
) -> c_int {
    let call = name(call);
    let combiner = long_double_combiner(call, combine);
    reduce_with::<u128>(team, dest.cast(), source.cast(), nreduce, request, combiner, call)
}

/// Starts an operation on a team, and writes its request.
fn start(
    call: Call,
    team: TeamHandle,
    request: *mut Request,
    (source, bytes): Source,
    start: impl FnOnce(&'static Team<'static>) -> pelago::Result<pelago::Request<'static>>,
) -> c_int {
    let library = library::of(call);
    if request.is_null() {
        fail(call, "request is null: give the place of a request");
    }
    let team = team::find(call, team);
    let under_way = UnderWay { request: start(&team.team).or_fail(call), team };
    team.requests.fetch_add(1, Ordering::Relaxed);
    let handle = REQUESTS.insert(Hot::CLOSED, under_way).unwrap_or_else(|| {
        fail(call, format_args!("{MOST} requests are under way: wait for some before you start more"))
    });
    if bytes > 0 {
        // SAFETY: the operation reads the same bytes and has checked that they are symmetric memory.
        unsafe { library.watch_source(call, User::Request(handle), source, bytes) };
    }
    // SAFETY: the caller's pointer is valid for one request.
    unsafe { request.write(Request(handle)) };
    0
}

/// `shmemx_req_test`: 1 if the operation is over on this PE; the request is then set to `SHMEMX_REQ_INVALID`,
/// for which the result is 1 as well; else 0.
pub(crate) unsafe fn test(call: Call, request: *mut Request) -> c_int {
    let handle = read(call, request);
    if handle == Request::INVALID {
        return 1;
    }
    let is_over = REQUESTS.get(handle.0).unwrap_or_else(|why| stale(call, handle, why)).request.test();
    if is_over {
        // SAFETY: the caller's promises are the same.
        unsafe { finish(call, request, handle) };
    }
    c_int::from(is_over)
}

/// `shmemx_req_wait`: until the operation is over on this PE; for `SHMEMX_REQ_INVALID` it returns at once.
pub(crate) unsafe fn wait(call: Call, request: *mut Request) {
    let handle = read(call, request);
    if handle != Request::INVALID {
        // SAFETY: the caller's promises are the same.
        unsafe { finish(call, request, handle) };
    }
}

/// Waits for a request, and sets it to `SHMEMX_REQ_INVALID`.
///
/// # Safety
/// The pointer is valid for one request.
unsafe fn finish(call: Call, request: *mut Request, handle: Request) {
    REQUESTS.remove(handle.0).unwrap_or_else(|why| stale(call, handle, why)).wait(call);
    library::of(call).settle_sources(call, Some(User::Request(handle.0)));
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { request.write(Request::INVALID) };
}

fn read(call: Call, request: *mut Request) -> Request {
    library::of(call);
    if request.is_null() {
        fail(call, "request is null: give the place of a request");
    }
    // SAFETY: the caller's pointer is valid for one request.
    unsafe { request.read() }
}

fn stale(call: Call, request: Request, why: handles::Stale) -> ! {
    fail(call, format_args!("request is {:#x}, a request that {why}", request.0))
}

/// Waits for all requests that the program has not waited for. Called before the library is closed.
pub(crate) fn complete_all(call: Call) {
    REQUESTS.drain().for_each(|under_way| under_way.wait(call));
}
