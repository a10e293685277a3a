//! Reductions and scans (OpenSHMEM 1.6, 9.10.7 to 9.10.10). Results are the same, bit for bit, on all PEs and
//! in every run.
//!
//! Rust cannot compute with `long double`: its calls come from `long_double.c`, which passes a C function
//! that combines two elements.

use super::active_set;
use crate::base::abi::{LongDouble, TeamHandle, c_char, c_int, c_long, size_t};
use crate::base::fault::{Call, OrFail};
use crate::library;
use crate::library::teams::Triplet;
use crate::symmetric::spans::{Operand, Stored, Unit};
use crate::team;
use pelago::{Collective, Combiner, IntoCombiner, ReduceOp, Reducible, Team};
use std::ffi::CStr;

/// A combiner that was chosen before, for elements that are treated as elements of another type of the same
/// size.
pub(crate) struct Ready(pub(crate) Combiner);

// SAFETY: the combiner was chosen for elements of the same size, and C has aligned them for their own type.
unsafe impl<U: Unit> IntoCombiner<U> for Ready {
    fn into_combiner(self) -> Result<Combiner, String> {
        Ok(self.0)
    }
}

/// Makes the combiner of an operation.
pub(crate) type Make = fn() -> Combiner;

/// Declares the operations: of teams, and of active sets.
macro_rules! operations {
    ($($of_team:ident $of_set:ident $op:ident;)+) => {$(
        /// `shmem_<type>_<op>_reduce`.
        #[inline(always)]
        pub(crate) unsafe fn $of_team<T: Stored + Reducible>(
            call: Call,
            team: TeamHandle,
            dest: *mut T,
            source: *const T,
            nreduce: size_t,
        ) -> c_int {
            let make: Make = combiner::<T, { ReduceOp::$op as u8 }>;
            let team = &team::find(call, team).team;
            reduce_units::<T::Unit>(team, dest.cast(), source.cast(), nreduce, make, call)
        }

        /// `shmem_<type>_<op>_to_all`.
        #[inline(always)]
        #[expect(clippy::too_many_arguments, reason = "those of the C function")]
        pub(crate) unsafe fn $of_set<T: Stored + Reducible>(
            call: Call,
            dest: *mut T,
            source: *const T,
            nreduce: c_int,
            pe_start: c_int,
            log_pe_stride: c_int,
            pe_size: c_int,
            _work: *mut T,
            psync: *mut c_long,
        ) {
            let make: Make = combiner::<T, { ReduceOp::$op as u8 }>;
            let set = (pe_start, log_pe_stride, pe_size);
            to_all_units::<T::Unit>(dest.cast(), source.cast(), nreduce, set, psync, make, call);
        }
    )+};
}

operations! {
    and_reduce and_to_all And;
    or_reduce or_to_all Or;
    xor_reduce xor_to_all Xor;
    min_reduce min_to_all Min;
    max_reduce max_to_all Max;
    sum_reduce sum_to_all Sum;
    prod_reduce prod_to_all Product;
}

/// `shmem_<type>_sum_inscan`: the sum of the sources of this PE and the PEs before it.
#[inline(always)]
pub(crate) unsafe fn sum_inscan<T: Stored + Reducible>(
    call: Call,
    team: TeamHandle,
    dest: *mut T,
    source: *const T,
    nelems: size_t,
) -> c_int {
    let make: Make = combiner::<T, { ReduceOp::Sum as u8 }>;
    let team = &team::find(call, team).team;
    scan_units::<T::Unit, true>(team, dest.cast(), source.cast(), nelems, make(), call)
}

/// `shmem_<type>_sum_exscan`: the sum of the sources of the PEs before this one; zeros on the first PE.
#[inline(always)]
pub(crate) unsafe fn sum_exscan<T: Stored + Reducible>(
    call: Call,
    team: TeamHandle,
    dest: *mut T,
    source: *const T,
    nelems: size_t,
) -> c_int {
    let make: Make = combiner::<T, { ReduceOp::Sum as u8 }>;
    let team = &team::find(call, team).team;
    scan_units::<T::Unit, false>(team, dest.cast(), source.cast(), nelems, make(), call)
}

/// The combiner of an operation, by its number.
pub(crate) fn combiner<T: Reducible, const OP: u8>() -> Combiner {
    let op = ReduceOp::ALL.into_iter().find(|&op| op as u8 == OP).expect("an operation");
    Combiner::of::<T>(op).expect("the table of the interface has operations that are defined")
}

#[inline(never)]
fn reduce_units<U: Unit>(
    team: &Team<'_>,
    dest: *mut U,
    source: *const U,
    nreduce: usize,
    make: Make,
    call: Call,
) -> c_int {
    reduce_with(team, dest, source, nreduce, make(), call);
    0
}

fn reduce_with<U: Unit>(
    team: &Team<'_>,
    dest: *mut U,
    source: *const U,
    nreduce: usize,
    combiner: Combiner,
    call: Call,
) {
    let library = library::of(call);
    let target = library.span(call, Operand::Dest, dest, nreduce);
    team.all_reduce(Ready(combiner), target, library.span(call, Operand::Source, source, nreduce))
        .or_fail(call);
}

#[inline(never)]
fn to_all_units<U: Unit>(
    dest: *mut U,
    source: *const U,
    nreduce: c_int,
    set: Triplet,
    psync: *const c_long,
    make: Make,
    call: Call,
) {
    to_all_with(dest, source, nreduce, set, psync, make(), call);
}

fn to_all_with<U: Unit>(
    dest: *mut U,
    source: *const U,
    nreduce: c_int,
    set: Triplet,
    psync: *const c_long,
    combiner: Combiner,
    call: Call,
) {
    let nreduce = active_set::count(call, "nreduce", nreduce);
    let Some(team) = active_set::find_for_reduction(call, set, psync) else { return };
    reduce_with(&team, dest, source, nreduce, combiner, call);
}

#[inline(never)]
fn scan_units<U: Unit, const INCLUSIVE: bool>(
    team: &Team<'_>,
    dest: *mut U,
    source: *const U,
    nelems: usize,
    combiner: Combiner,
    call: Call,
) -> c_int {
    let library = library::of(call);
    let target = library.span(call, Operand::Dest, dest, nelems);
    let source = library.span(call, Operand::Source, source, nelems);
    if INCLUSIVE {
        team.inclusive_scan(Ready(combiner), target, source).or_fail(call);
        return 0;
    }
    team.exclusive_scan(Ready(combiner), target, source).or_fail(call);
    if team.my_rank() == 0 && nelems > 0 {
        // SAFETY: the target was checked to have `nelems` elements; if it is the source, all PEs have read
        // it.
        unsafe { dest.write_bytes(0, nelems) };
    }
    0
}

/// The operations on `long double`, by their names in calls.
const LONG_DOUBLE_OPS: [(&str, ReduceOp); 4] = [
    ("_sum_", ReduceOp::Sum),
    ("_prod_", ReduceOp::Product),
    ("_min_", ReduceOp::Min),
    ("_max_", ReduceOp::Max),
];

/// A function of `long_double.c`: combines two elements in a third place.
pub(crate) type CombineLongDouble =
    unsafe extern "C" fn(*const LongDouble, *const LongDouble, *mut LongDouble);

/// The combiner of a call of `long double`; the name of the call contains the operation.
pub(crate) fn long_double_combiner(call: Call, combine: CombineLongDouble) -> Combiner {
    let combiner = Combiner::user::<LongDouble>(move |left, right| {
        let mut result = LongDouble::ZERO;
        // SAFETY: three locals, of the type that the function of the library's own C file works on.
        unsafe { combine(&raw const left, &raw const right, &raw mut result) };
        result
    });
    match LONG_DOUBLE_OPS.into_iter().find(|(part, _)| call.contains(part)) {
        Some((_, op)) => combiner.known_as(op, "long double"),
        None => combiner,
    }
}

/// The name of a function of the interface that is written in C.
pub(crate) fn name(call: *const c_char) -> Call {
    // SAFETY: the C file passes constants, which end with a zero byte.
    unsafe { CStr::from_ptr(call) }.to_str().unwrap_or("a function of long double")
}

/// For `long_double.c`.
#[unsafe(export_name = "pelago_shmem_longdouble_reduce")]
unsafe extern "C-unwind" fn longdouble_reduce(
    call: *const c_char,
    team: TeamHandle,
    dest: *mut LongDouble,
    source: *const LongDouble,
    nreduce: size_t,
    combine: CombineLongDouble,
) -> c_int {
    let call = name(call);
    let team = &team::find(call, team).team;
    let combiner = long_double_combiner(call, combine);
    reduce_with::<u128>(team, dest.cast(), source.cast(), nreduce, combiner, call);
    0
}

/// For `long_double.c`.
#[unsafe(export_name = "pelago_shmem_longdouble_scan")]
unsafe extern "C-unwind" fn longdouble_scan(
    call: *const c_char,
    team: TeamHandle,
    dest: *mut LongDouble,
    source: *const LongDouble,
    nelems: size_t,
    combine: CombineLongDouble,
    is_inclusive: c_int,
) -> c_int {
    let call = name(call);
    let combiner = long_double_combiner(call, combine);
    let (team, dest, source) = (&team::find(call, team).team, dest.cast(), source.cast());
    match is_inclusive {
        0 => scan_units::<u128, false>(team, dest, source, nelems, combiner, call),
        _ => scan_units::<u128, true>(team, dest, source, nelems, combiner, call),
    }
}

/// For `long_double.c`.
#[unsafe(export_name = "pelago_shmem_longdouble_to_all")]
unsafe extern "C-unwind" fn longdouble_to_all(
    call: *const c_char,
    dest: *mut LongDouble,
    source: *const LongDouble,
    nreduce: c_int,
    pe_start: c_int,
    log_pe_stride: c_int,
    pe_size: c_int,
    psync: *const c_long,
    combine: CombineLongDouble,
) {
    let (set, call) = ((pe_start, log_pe_stride, pe_size), name(call));
    let combiner = long_double_combiner(call, combine);
    to_all_with::<u128>(dest.cast(), source.cast(), nreduce, set, psync, combiner, call);
}
