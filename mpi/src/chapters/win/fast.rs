//! The fast path of operations with elements of predefined types on memory that is mapped here.
//!
//! Invariant: whatever it does not do is left to the general path, which makes all checks.

use super::Window;
use super::apply::{Update, WORDS_MAX, read_word, update_word, write_word};
use super::hot::Record;
use super::part::Part;
use crate::abi::*;
use crate::chapters::library::Mpi;
use pelago_fabric::copy;
use pelago_fabric::sync::{AtomicU64, Ordering};
use pelago_fabric::{Atomic, AtomicKind, AtomicOp};
use std::sync::OnceLock;

/// The first handle of a predefined datatype, and the number of handles.
const FIRST: usize = 0x200;
const NAMED: usize = 0x100;
/// The largest count of elements that the path takes.
const COUNT_MAX: u64 = 1 << 40;

/// The size in bytes of the elements of predefined datatypes that have no gaps; 0 for all others.
static SIZES: [u8; NAMED] = {
    let mut sizes = [0; NAMED];
    let mut i = 0;
    while i < PLAIN.len() {
        let (datatype, size) = PLAIN[i];
        sizes[datatype.0 - FIRST] = size;
        i += 1;
    }
    sizes
};

const PLAIN: [(MPI_Datatype, u8); 34] = [
    (MPI_CHAR, 1),
    (MPI_SIGNED_CHAR, 1),
    (MPI_UNSIGNED_CHAR, 1),
    (MPI_BYTE, 1),
    (MPI_INT8_T, 1),
    (MPI_UINT8_T, 1),
    (MPI_CHARACTER, 1),
    (MPI_SHORT, 2),
    (MPI_UNSIGNED_SHORT, 2),
    (MPI_INT16_T, 2),
    (MPI_UINT16_T, 2),
    (MPI_INT, 4),
    (MPI_UNSIGNED, 4),
    (MPI_FLOAT, 4),
    (MPI_INT32_T, 4),
    (MPI_UINT32_T, 4),
    (MPI_INTEGER, 4),
    (MPI_REAL, 4),
    (MPI_LOGICAL, 4),
    (MPI_LONG, 8),
    (MPI_UNSIGNED_LONG, 8),
    (MPI_LONG_LONG, 8),
    (MPI_UNSIGNED_LONG_LONG, 8),
    (MPI_DOUBLE, 8),
    (MPI_INT64_T, 8),
    (MPI_UINT64_T, 8),
    (MPI_AINT, 8),
    (MPI_COUNT, 8),
    (MPI_OFFSET, 8),
    (MPI_DOUBLE_PRECISION, 8),
    (MPI_INTEGER8, 8),
    (MPI_REAL8, 8),
    (MPI_C_FLOAT_COMPLEX, 8),
    (MPI_C_DOUBLE_COMPLEX, 16),
];

/// The address of a place here and its length in bytes, if loads and stores may go there.
#[inline(always)]
pub fn place(
    record: &Record,
    (count, datatype): (i64, MPI_Datatype),
    rank: c_int,
    disp: isize,
    there: (i64, MPI_Datatype),
) -> Option<(*mut u8, usize)> {
    let part = record.part(rank)?;
    let size = *SIZES.get(datatype.0.wrapping_sub(FIRST))? as usize;
    if (count, datatype) != there || size == 0 || count as u64 >= COUNT_MAX || !record.gives_access(part) {
        return None;
    }
    let bytes = count as usize * size;
    let offset = (disp as usize).checked_mul(part.disp_unit)?;
    let rest = part.direct_bytes.checked_sub(offset)?;
    (bytes <= rest).then(|| (part.base.wrapping_add(offset), bytes))
}

/// The bytes of a word that hot calls move by themselves.
const WORD_BYTES: usize = size_of::<u64>();

/// The address of a place of 8 bytes, if loads and stores may go there.
#[inline(always)]
pub fn word(
    record: &Record,
    (count, datatype): (i64, MPI_Datatype),
    rank: c_int,
    disp: isize,
    there: (i64, MPI_Datatype),
) -> Option<*mut u8> {
    let part = record.part(rank)?;
    let size = *SIZES.get(datatype.0.wrapping_sub(FIRST))?;
    let is_word = count.checked_mul(size.into()) == Some(WORD_BYTES as i64);
    if !is_word || (count, datatype) != there || !record.gives_access(part) {
        return None;
    }
    let offset = (disp as usize).checked_mul(part.disp_unit)?;
    let rest = part.direct_bytes.checked_sub(offset)?;
    (rest >= WORD_BYTES).then(|| part.base.wrapping_add(offset))
}

/// Copies a word of 8 bytes; `false`, with nothing done, if it is not aligned at both places.
///
/// # Safety
/// Both places have as many bytes.
#[inline(always)]
pub unsafe fn copy_word(target: *mut u8, source: *const u8) -> bool {
    let is_aligned = (target as usize | source as usize).is_multiple_of(WORD_BYTES);
    if is_aligned {
        // SAFETY: the caller guarantees both, which are aligned.
        unsafe { copy::store(target.cast::<u64>(), copy::load(source.cast::<u64>())) };
    }
    is_aligned
}

/// The kind of the words of predefined datatypes that are numbers, of 4 bytes and more.
static KINDS: [Option<AtomicKind>; NAMED] = {
    use AtomicKind::*;
    let mut kinds = [None; NAMED];
    let all = [
        (MPI_INT, I32),
        (MPI_UNSIGNED, U32),
        (MPI_INT32_T, I32),
        (MPI_UINT32_T, U32),
        (MPI_INTEGER, I32),
        (MPI_LONG, I64),
        (MPI_UNSIGNED_LONG, U64),
        (MPI_LONG_LONG, I64),
        (MPI_UNSIGNED_LONG_LONG, U64),
        (MPI_INT64_T, I64),
        (MPI_UINT64_T, U64),
        (MPI_AINT, I64),
        (MPI_COUNT, I64),
        (MPI_OFFSET, I64),
        (MPI_FLOAT, F32),
        (MPI_REAL, F32),
        (MPI_DOUBLE, F64),
        (MPI_DOUBLE_PRECISION, F64),
    ];
    let mut i = 0;
    while i < all.len() {
        kinds[all[i].0.0 - FIRST] = Some(all[i].1);
        i += 1;
    }
    kinds
};

/// Words here that an accumulate works on, and what it does.
pub struct Words<'a> {
    part: &'a Part,
    at: *mut u8,
    bytes: usize,
    kind: AtomicKind,
    op: AtomicOp,
    /// The same as the program names them.
    named: (MPI_Op, MPI_Datatype),
}

/// One more than the last operation that [`atomic_of`] returns.
const OPS: usize = AtomicOp::Xor as usize + 1;

/// The atomic of an operation, if it is defined for words of a kind.
#[inline]
fn atomic_of(op: MPI_Op, kind: AtomicKind) -> Option<AtomicOp> {
    let is_integer = kind.is_integer();
    let (atomic, is_defined) = match op {
        MPI_SUM => (AtomicOp::Add, true),
        MPI_REPLACE => (AtomicOp::Set, true),
        MPI_NO_OP => (AtomicOp::Fetch, true),
        MPI_MIN => (AtomicOp::Min, true),
        MPI_MAX => (AtomicOp::Max, true),
        MPI_BAND => (AtomicOp::And, is_integer),
        MPI_BOR => (AtomicOp::Or, is_integer),
        MPI_BXOR => (AtomicOp::Xor, is_integer),
        _ => return None,
    };
    is_defined.then_some(atomic)
}

/// The words of an accumulate, if atomics of this processor are right for them.
#[inline(always)]
pub fn words(
    window: &Window,
    here: (i64, MPI_Datatype),
    rank: c_int,
    disp: isize,
    there: (i64, MPI_Datatype),
    op: MPI_Op,
) -> Option<Words<'_>> {
    let (at, bytes) = place(window.record, here, rank, disp, there)?;
    let kind = KINDS[here.1.0 - FIRST]?;
    let (named, op) = ((op, here.1), atomic_of(op, kind)?);
    let part = &window.parts[rank as usize];
    let is_right = part.has_atomics && !window.is_asked && (at as usize).is_multiple_of(kind.bytes());
    is_right.then_some(Words { part, at, bytes, kind, op, named })
}

/// A long accumulate lets others in after as many bytes.
const TURN_BYTES: usize = 64 << 10;

impl Words<'_> {
    /// Accumulates, and stores the old values unless `old` is null.
    ///
    /// # Safety
    /// The data, unless nothing is done with them, and `old` have as many elements.
    #[inline(always)]
    pub unsafe fn update(&self, mpi: &Mpi, window: &Window, data: *const u8, old: *mut u8) {
        // The counters of most programs.
        if let (WORD_BYTES, AtomicKind::I64 | AtomicKind::U64, AtomicOp::Add) =
            (self.bytes, self.kind, self.op)
            && let Some(_reading) = window.accumulators.try_share(&self.part.peer)
        {
            // SAFETY: the caller guarantees the element, and the word lies in the window, aligned.
            unsafe {
                let place = AtomicU64::from_ptr(self.at.cast());
                let before = place.fetch_add(read_word(data, WORD_BYTES), Ordering::AcqRel);
                if !old.is_null() {
                    write_word(old, before, WORD_BYTES);
                }
            }
            return;
        }
        // SAFETY: as the caller of this function guarantees.
        unsafe { self.update_any(mpi, window, (data, old)) };
    }

    /// The same for any words.
    #[inline(never)]
    unsafe fn update_any(&self, mpi: &Mpi, window: &Window, (data, old): (*const u8, *mut u8)) {
        let step = self.kind.bytes();
        let may_share = self.bytes <= WORDS_MAX * step;
        let Some(_reading) = may_share.then(|| window.accumulators.try_share(&self.part.peer)).flatten()
        else {
            // SAFETY: the caller guarantees the data and the room for the old values.
            return unsafe { self.update_alone(mpi, window, (data, old)) };
        };
        for at in (0..self.bytes).step_by(step) {
            // SAFETY: the caller guarantees the elements, and the words lie in the window, aligned.
            unsafe {
                let operand = match self.op {
                    AtomicOp::Fetch => 0,
                    _ => read_word(data.wrapping_add(at), step),
                };
                let atomic = Atomic { kind: self.kind, op: self.op, operand, compare: 0 };
                let before = update_word(&atomic, self.at.wrapping_add(at));
                if !old.is_null() {
                    write_word(old.wrapping_add(at), before, step);
                }
            }
        }
    }

    /// The operation, which is looked up once for each operation and kind of words.
    fn as_update(&self) -> &'static Update {
        const N: usize = AtomicKind::F64 as usize + 1;
        static ALL: [[OnceLock<Update>; N]; OPS] = [const { [const { OnceLock::new() }; N] }; OPS];
        let (op, datatype) = self.named;
        ALL[self.op as usize][self.kind as usize]
            .get_or_init(|| Update::of_request(op, datatype).expect("the operation is defined"))
    }

    /// The same, alone on the part.
    #[inline(never)]
    unsafe fn update_alone(&self, mpi: &Mpi, window: &Window, (data, old): (*const u8, *mut u8)) {
        let update = self.as_update();
        for done in (0..self.bytes).step_by(TURN_BYTES) {
            let bytes = (self.bytes - done).min(TURN_BYTES);
            let old = if old.is_null() { old } else { old.wrapping_add(done) };
            let _alone = window.accumulators.exclude(mpi, &self.part.peer);
            // SAFETY: the caller guarantees the elements, and the words lie in the window.
            unsafe { update.apply_here(self.at.wrapping_add(done), (data.wrapping_add(done), old), bytes) };
        }
    }

    /// Replaces the word if it equals another one, and stores its old value; `false`, with nothing done, if a
    /// long accumulate has the part.
    ///
    /// # Safety
    /// All are valid for an element; there is one word.
    #[inline]
    pub unsafe fn swap(&self, window: &Window, new: *const u8, compare: *const u8, old: *mut u8) -> bool {
        let bytes = self.kind.bytes();
        let Some(_reading) = window.accumulators.try_share(&self.part.peer) else { return false };
        // SAFETY: the caller guarantees the elements, and the word lies in the window, aligned.
        unsafe {
            let (operand, compare) = (read_word(new, bytes), read_word(compare, bytes));
            let atomic = Atomic { kind: self.kind, op: AtomicOp::CompareSwap, operand, compare };
            write_word(old, update_word(&atomic, self.at), bytes);
        }
        true
    }

    pub fn are_integers(&self) -> bool {
        self.kind.is_integer()
    }
}
