//! The fast path of puts and gets of predefined types on memory that is mapped here.
//!
//! Invariant: whatever it does not do is left to the general path, which makes all checks.

use super::Window;
use crate::abi::*;
use pelago_fabric::copy;
use pelago_fabric::sync::Ordering;

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
    window: &Window,
    (count, datatype): (i64, MPI_Datatype),
    rank: c_int,
    disp: isize,
    there: (i64, MPI_Datatype),
) -> Option<(*mut u8, usize)> {
    let part = window.parts.get(rank as usize)?;
    let size = *SIZES.get(datatype.0.wrapping_sub(FIRST))? as usize;
    if (count, datatype) != there || size == 0 || count as u64 >= COUNT_MAX {
        return None;
    }
    if !window.is_open.load(Ordering::Relaxed) && !part.is_open.load(Ordering::Relaxed) {
        return None;
    }
    let bytes = count as usize * size;
    let offset = (disp as usize).checked_mul(part.disp_unit)?;
    if part.base.is_null() || offset > part.bytes || bytes > part.bytes - offset {
        return None;
    }
    Some((part.base.wrapping_add(offset), bytes))
}

/// Copies data to or from a place.
///
/// # Safety
/// Both have as many bytes.
#[inline(always)]
pub unsafe fn copy(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the caller's promise; words are aligned, as is checked.
    unsafe {
        if bytes == size_of::<u64>() && (target as usize | source as usize).is_multiple_of(size_of::<u64>()) {
            return copy::store(target.cast::<u64>(), copy::load(source.cast::<u64>()));
        }
        copy::transfer(target, source, bytes);
    }
}
