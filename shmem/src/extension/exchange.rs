//! All-to-all with blocks of any length at any place, in bytes (Cray OpenSHMEMX has `shmemx_alltoallv` over
//! active sets, which writes the received sizes).
//!
//! Invariant: no data move before it is known that every block has the same length at its source and at its
//! target. Each member adds up a number for each block that it sends, and a number for each block that it
//! receives; the number depends on the two members and the length. The members exchange their sums. If every
//! block has equal lengths, the two totals over all members are equal; otherwise they differ almost surely.

use crate::base::abi::{TeamHandle, c_int, c_void, size_t};
use crate::base::fault::{Call, OrFail, fail};
use crate::library;
use crate::symmetric::spans::Operand;
use crate::team;
use pelago::{Collective, Team};

/// `shmemx_alltoallvmem`: `s_size[j]` bytes from `source + s_offset[j]` of member i go to `dest +
/// t_offset[i]` of member j, whose `t_size[i]` must be equal.
#[expect(clippy::too_many_arguments, reason = "those of the C function")]
pub(crate) unsafe fn alltoallv(
    call: Call,
    team: TeamHandle,
    dest: *mut c_void,
    t_offset: *const size_t,
    t_size: *const size_t,
    source: *const c_void,
    s_offset: *const size_t,
    s_size: *const size_t,
) -> c_int {
    let (library, team) = (library::of(call), &team::find(call, team).team);
    // SAFETY: the caller's arrays have an entry for each member of the team.
    let (receives, sends) = unsafe {
        let list =
            |what, [offsets, sizes]: [*const size_t; 2]| blocks(call, what, offsets, sizes, team.n_pes());
        (list("t", [t_offset, t_size]), list("s", [s_offset, s_size]))
    };
    refuse_overlap(call, &receives);
    refuse_other_lengths(call, team, &receives, &sends);
    let (receives, sends) = (Extent::new(receives), Extent::new(sends));
    let dest = dest.cast::<u8>().wrapping_add(receives.start);
    let source = source.cast::<u8>().wrapping_add(sends.start);
    let target = library.span(call, Operand::Dest, dest, receives.bytes);
    let source = library.span(call, Operand::Source, source, sends.bytes);
    team.all_to_all_varying(target, source, &receives.blocks, &sends.blocks).or_fail(call);
    0
}

/// The offsets and lengths of blocks, in bytes.
type Blocks = Vec<(usize, usize)>;

/// # Safety
/// Unless they are null, the arrays have `n` entries.
unsafe fn blocks(call: Call, side: &str, offsets: *const size_t, sizes: *const size_t, n: usize) -> Blocks {
    if offsets.is_null() || sizes.is_null() {
        let name = if offsets.is_null() { "offset" } else { "size" };
        fail(call, format_args!("{side}_{name} is null: give an entry for each of the {n} PEs of the team"));
    }
    let block = |i: usize| {
        // SAFETY: the caller guarantees that the arrays have `n` entries.
        let (offset, bytes) = unsafe { (*offsets.add(i), *sizes.add(i)) };
        match offset.checked_add(bytes) {
            _ if bytes == 0 => (0, 0),
            Some(_) => (offset, bytes),
            None => fail(
                call,
                format_args!(
                    "{side}_offset[{i}] is {offset}, and {side}_size[{i}] is {bytes}: that ends behind the \
                     address space"
                ),
            ),
        }
    };
    (0..n).map(block).collect()
}

/// The extent of blocks: from the start of the first to the end of the last.
struct Extent {
    start: usize,
    bytes: usize,
    /// The blocks, with offsets from the start of the extent.
    blocks: Blocks,
}

impl Extent {
    fn new(mut blocks: Blocks) -> Extent {
        let is_used = |block: &&mut (usize, usize)| block.1 > 0;
        let start = blocks.iter_mut().filter(is_used).map(|block| block.0).min().unwrap_or(0);
        blocks.iter_mut().filter(is_used).for_each(|block| block.0 -= start);
        let bytes = blocks.iter().map(|(offset, bytes)| offset + bytes).max().unwrap_or(0);
        Extent { start, bytes, blocks }
    }
}

fn refuse_overlap(call: Call, receives: &[(usize, usize)]) {
    let mut order: Vec<_> = (0..receives.len()).filter(|&i| receives[i].1 > 0).collect();
    order.sort_unstable_by_key(|&i| receives[i]);
    for pair in order.windows(2) {
        let [(offset, bytes), (next, _)] = [receives[pair[0]], receives[pair[1]]];
        if offset + bytes > next {
            let (i, j) = (pair[0], pair[1]);
            fail(
                call,
                format_args!(
                    "t_offset[{i}] is {offset} for {bytes} bytes, and t_offset[{j}] is {next}: the blocks of \
                     two PEs overlap"
                ),
            );
        }
    }
}

fn refuse_other_lengths(call: Call, team: &Team<'_>, receives: &[(usize, usize)], sends: &[(usize, usize)]) {
    let me = team.my_rank();
    let add = |sum: u64, number: u64| sum.wrapping_add(number);
    let sent = sends.iter().enumerate().map(|(to, block)| number(me, to, block.1)).fold(0, add);
    let received = receives.iter().enumerate().map(|(from, block)| number(from, me, block.1)).fold(0, add);
    let told = team.exchange_words("an exchange of lengths", [sent, received]).or_fail(call);
    let total = |side: usize| told.iter().map(|sums| sums[side]).fold(0, add);
    if total(0) != total(1) {
        fail(
            call,
            "the lengths do not fit together: t_size[i] of PE j must be s_size[j] of PE i, for all i and j \
             of the team",
        );
    }
}

/// A number for a block between two members; another length has another number, almost surely. Source of the
/// constants: SplitMix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators).
fn number(from: usize, to: usize, bytes: usize) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    const FACTOR: u64 = 0xbf58_476d_1ce4_e5b9;
    [from, to, bytes].into_iter().fold(0, |hash: u64, word| {
        let mixed = (hash ^ word as u64).wrapping_add(STEP).wrapping_mul(FACTOR);
        mixed ^ (mixed >> 29)
    })
}
