//! Accumulates on memory: by atomics of this processor, or alone on the part (`exclude.rs`).
//!
//! Invariant: accumulates that are not atomics have the part alone. So all accumulates on an element exclude
//! each other, whichever process executes them.

use super::arguments::Blocks;
use super::exclude::{Access, Entry};
use super::way::{gather, scatter};
use crate::abi::*;
use crate::chapters::datatype::{self, Basic};
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::op;
use pelago_core::coll::reduction::Combiner;
use pelago_fabric::copy;
use pelago_fabric::sync::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use pelago_fabric::{Atomic, AtomicKind, AtomicOp};
use std::ptr::null;

/// An operation on elements of one type.
pub struct Update {
    pub op: MPI_Op,
    /// The predefined type.
    pub element: MPI_Datatype,
    /// The size of an element.
    bytes: usize,
    /// As an atomic, if the elements are words.
    word: Option<(AtomicKind, AtomicOp)>,
    /// Combines elements; none for `MPI_REPLACE` and `MPI_NO_OP`, and where only the atomic is defined.
    combiner: Option<Combiner>,
}

/// The least bytes of an element that is accumulated by atomics. Smaller ones come in large numbers.
const WORD_BYTES_MIN: usize = 4;
/// The most elements that are accumulated by atomics. More are faster as vectors, alone on the part.
pub const WORDS_MAX: usize = 8;

/// The kind of the words of a type. Logicals are none: programs may name the values of Fortran's, which the
/// combiners know, and all operations on a location must exclude each other.
fn kind_of(basic: Basic) -> Option<AtomicKind> {
    Some(match basic {
        Basic::Signed(1) => AtomicKind::I8,
        Basic::Signed(2) => AtomicKind::I16,
        Basic::Signed(4) => AtomicKind::I32,
        Basic::Signed(8) => AtomicKind::I64,
        Basic::Char | Basic::Bytes(1) => AtomicKind::I8,
        Basic::Unsigned(1) => AtomicKind::U8,
        Basic::Unsigned(2) | Basic::Bytes(2) => AtomicKind::U16,
        Basic::Unsigned(4) | Basic::Bytes(4) => AtomicKind::U32,
        Basic::Unsigned(8) | Basic::Bytes(8) => AtomicKind::U64,
        Basic::Float32 => AtomicKind::F32,
        Basic::Float64 => AtomicKind::F64,
        _ => return None,
    })
}

/// The atomic for an operation of the standard, if it is defined for elements of this type, which are words.
fn atomic_of(op: MPI_Op, basic: Basic) -> Option<AtomicOp> {
    let is_float = matches!(basic, Basic::Float32 | Basic::Float64);
    // Characters and bytes count as integers here, as in other libraries, beyond the standard. Bytes of wide
    // characters do not.
    let is_number = !matches!(basic, Basic::Bytes(2..));
    let is_integer = is_number && !is_float;
    let (atomic, is_defined) = match op {
        MPI_REPLACE => (AtomicOp::Set, true),
        MPI_NO_OP => (AtomicOp::Fetch, true),
        MPI_SUM => (AtomicOp::Add, is_number),
        MPI_PROD => (AtomicOp::Product, is_number),
        MPI_MIN => (AtomicOp::Min, is_number),
        MPI_MAX => (AtomicOp::Max, is_number),
        MPI_BAND => (AtomicOp::And, is_integer),
        MPI_BOR => (AtomicOp::Or, is_integer),
        MPI_BXOR => (AtomicOp::Xor, is_integer),
        MPI_LAND => (AtomicOp::LogicalAnd, is_integer),
        MPI_LOR => (AtomicOp::LogicalOr, is_integer),
        MPI_LXOR => (AtomicOp::LogicalXor, is_integer),
        _ => return None,
    };
    is_defined.then_some(atomic)
}

/// The named datatype of an elementary type.
pub fn named(basic: Basic) -> Option<MPI_Datatype> {
    use Basic::*;
    Some(match basic {
        Signed(1) => MPI_INT8_T,
        Signed(2) => MPI_INT16_T,
        Signed(4) => MPI_INT32_T,
        Signed(8) => MPI_INT64_T,
        Signed(16) => MPI_INTEGER16,
        Unsigned(1) => MPI_UINT8_T,
        Unsigned(2) => MPI_UINT16_T,
        Unsigned(4) => MPI_UINT32_T,
        Unsigned(8) => MPI_UINT64_T,
        Logical(1) => MPI_LOGICAL1,
        Logical(2) => MPI_LOGICAL2,
        Logical(4) => MPI_LOGICAL4,
        Logical(8) => MPI_LOGICAL8,
        Logical(16) => MPI_LOGICAL16,
        Char => MPI_CHAR,
        Bytes(1) => MPI_BYTE,
        Bytes(4) => MPI_WCHAR,
        Float16 => MPI_REAL2,
        Float32 => MPI_FLOAT,
        Float64 => MPI_DOUBLE,
        Float128 => MPI_REAL16,
        LongDouble => MPI_LONG_DOUBLE,
        Complex16 => MPI_COMPLEX4,
        Complex32 => MPI_C_FLOAT_COMPLEX,
        Complex64 => MPI_C_DOUBLE_COMPLEX,
        Complex128 => MPI_COMPLEX32,
        ComplexLongDouble => MPI_C_LONG_DOUBLE_COMPLEX,
        FloatInt => MPI_FLOAT_INT,
        DoubleInt => MPI_DOUBLE_INT,
        LongInt => MPI_LONG_INT,
        TwoInt => MPI_2INT,
        ShortInt => MPI_SHORT_INT,
        LongDoubleInt => MPI_LONG_DOUBLE_INT,
        TwoReal => MPI_2REAL,
        TwoDouble => MPI_2DOUBLE_PRECISION,
        _ => return None,
    })
}

impl Update {
    /// The operation on elements of this type.
    #[inline]
    pub fn new(op: MPI_Op, basic: Basic) -> Result<Update> {
        let element = named(basic)
            .ok_or_else(|| Error::new(MPI_ERR_TYPE, "accumulates are not defined for this datatype"))?;
        let word = kind_of(basic).and_then(|kind| Some((kind, atomic_of(op, basic)?)));
        let datatype = datatype::find(element)?;
        let is_atomic = word.is_some() && datatype.size() >= WORD_BYTES_MIN;
        let combiner = match (op, basic) {
            (MPI_REPLACE | MPI_NO_OP, _) => None,
            // The least and the greatest of a number and NaN are not those of reductions, for any count.
            (MPI_MIN | MPI_MAX, Basic::Float32 | Basic::Float64) => None,
            _ if is_atomic => op::combiner(op, datatype).ok(),
            (_, Basic::Bytes(1)) if word.is_some() => Some(op::combiner(op, datatype::find(MPI_INT8_T)?)?),
            _ => Some(op::combiner(op, datatype)?),
        };
        Ok(Update { op, element, bytes: datatype.size(), word, combiner })
    }

    /// The operation that a request names.
    pub fn of_request(op: MPI_Op, element: MPI_Datatype) -> Result<Update> {
        let basic = datatype::find(element)?.basic();
        Update::new(op, basic.ok_or_else(|| Error::new(MPI_ERR_TYPE, "no predefined type"))?)
    }

    /// The compare-and-swap of such elements.
    pub fn swap(datatype: MPI_Datatype) -> Result<Update> {
        let basic = datatype::find(datatype)?.basic();
        let is_defined = matches!(
            basic,
            Some(Basic::Signed(_) | Basic::Unsigned(_) | Basic::Logical(_) | Basic::Char | Basic::Bytes(1))
        ) && datatype != MPI_PACKED;
        ensure!(
            is_defined,
            MPI_ERR_TYPE,
            "compare-and-swap is for integers, logicals and bytes, not for this datatype"
        );
        Update::new(MPI_REPLACE, basic.unwrap_or(Basic::Bytes(1)))
    }

    /// Whether elements at an address are accumulated by atomics.
    fn is_atomic(&self, at: *const u8, has_atomics: bool) -> bool {
        has_atomics
            && self.word.is_some()
            && self.bytes >= WORD_BYTES_MIN
            && (at as usize).is_multiple_of(self.bytes)
    }

    /// Whether as many bytes are those of whole elements.
    pub fn are_whole(&self, bytes: usize) -> bool {
        bytes.is_multiple_of(self.bytes)
    }

    /// Accumulates data to the first bytes of blocks that are mapped here, and stores the old values of all;
    /// `false`, with nothing done, if others have the part and the entry does not wait.
    ///
    /// # Safety
    /// The blocks lie in memory of the window from `base` on, and have room for the data, which are whole
    /// elements; `MPI_NO_OP` has none. `old` is null or has room for all.
    pub unsafe fn apply(
        &self,
        (base, has_atomics): (*mut u8, bool),
        blocks: &Blocks,
        (data, bytes): (*const u8, usize),
        old: *mut u8,
        entry: Entry<'_>,
    ) -> bool {
        let all = blocks.bytes();
        let is_atomic = |(offset, _)| self.is_atomic(base.wrapping_add(offset), has_atomics);
        let may_share = all <= WORDS_MAX * self.bytes && blocks.iter().all(is_atomic);
        let Some(access) = entry.access(may_share) else { return false };
        // SAFETY: the caller guarantees the memory.
        unsafe {
            if bytes == all || self.op == MPI_NO_OP {
                self.apply_all(&access, base, blocks, (data, old));
                return true;
            }
            let (first, others) = blocks.split(bytes);
            self.apply_all(&access, base, &first, (data, old));
            if !old.is_null() {
                let word = self.word.map(|(kind, _)| (kind, AtomicOp::Fetch));
                let fetch = Update { op: MPI_NO_OP, word, combiner: None, ..*self };
                fetch.apply_all(&access, base, &others, (null(), old.wrapping_add(bytes)));
            }
        }
        true
    }

    /// The same with data for all blocks, once this has access to the part.
    unsafe fn apply_all(
        &self,
        access: &Access<'_>,
        base: *mut u8,
        blocks: &Blocks,
        (data, old): (*const u8, *mut u8),
    ) {
        if self.word.is_none() && blocks.len() > 1 {
            // An element may have gaps, and so lie in several blocks.
            // SAFETY: the caller guarantees the memory, and this is alone on the part.
            return unsafe { self.apply_apart(base, blocks, (data, old)) };
        }
        let mut done = 0;
        for (offset, bytes) in blocks.iter() {
            let (at, data) = (base.wrapping_add(offset), data.wrapping_add(done));
            let old = if old.is_null() { old } else { old.wrapping_add(done) };
            // SAFETY: the caller guarantees the memory; what is not atomic is alone on the part.
            unsafe {
                match (access, self.word) {
                    (Access::Short { .. }, Some(word)) => self.apply_words(word, at, (data, old), bytes),
                    _ => self.apply_here(at, (data, old), bytes),
                }
            }
            done += bytes;
        }
    }

    /// Accumulates to a copy of the blocks in one piece, and writes it back.
    unsafe fn apply_apart(&self, base: *mut u8, blocks: &Blocks, (data, old): (*const u8, *mut u8)) {
        let bytes = blocks.bytes();
        let mut copy = vec![0u64; bytes.div_ceil(8)];
        let at = copy.as_mut_ptr().cast();
        // SAFETY: the caller guarantees the memory, and the copy has the bytes of the blocks.
        unsafe {
            gather(base, blocks, at);
            self.apply_here(at, (data, old), bytes);
            if self.op != MPI_NO_OP {
                scatter(base, blocks, at);
            }
        }
    }

    /// Accumulates to one run that no other thread accumulates to.
    ///
    /// # Safety
    /// The run lies in memory of the window. The data have as many bytes, unless the operation is
    /// `MPI_NO_OP`. `old` is null or has room for them.
    pub unsafe fn apply_here(&self, at: *mut u8, (data, old): (*const u8, *mut u8), bytes: usize) {
        // SAFETY: the caller guarantees the memory, as this function demands.
        unsafe {
            if !old.is_null() {
                copy::copy(old, at, bytes);
            }
            match (&self.combiner, self.word, self.op) {
                (_, _, MPI_NO_OP) => {}
                (_, _, MPI_REPLACE) => copy::copy(at, data, bytes),
                (Some(combiner), _, _) => combiner.combine(at, data, at, bytes),
                (None, Some((kind, op)), _) => self.combine_words(kind, op, at, data, bytes),
                (None, None, _) => unreachable!("an operation is an atomic or has a combiner"),
            }
        }
    }

    /// Combines words that may not be aligned.
    unsafe fn combine_words(
        &self,
        kind: AtomicKind,
        op: AtomicOp,
        at: *mut u8,
        data: *const u8,
        bytes: usize,
    ) {
        for done in (0..bytes).step_by(self.bytes) {
            let at = at.wrapping_add(done);
            // SAFETY: the caller promises both elements.
            unsafe {
                let operand = read_word(data.wrapping_add(done), self.bytes);
                let atomic = Atomic { kind, op, operand, compare: 0 };
                if let Some(next) = atomic.next(read_word(at, self.bytes)) {
                    write_word(at, next, self.bytes);
                }
            }
        }
    }

    unsafe fn apply_words(
        &self,
        (kind, op): (AtomicKind, AtomicOp),
        at: *mut u8,
        (data, old): (*const u8, *mut u8),
        bytes: usize,
    ) {
        for done in (0..bytes).step_by(self.bytes) {
            // SAFETY: the caller promises the elements; the word is aligned.
            unsafe {
                let operand =
                    if op == AtomicOp::Fetch { 0 } else { read_word(data.wrapping_add(done), self.bytes) };
                let before = update_word(&Atomic { kind, op, operand, compare: 0 }, at.wrapping_add(done));
                if !old.is_null() {
                    write_word(old.wrapping_add(done), before, self.bytes);
                }
            }
        }
    }

    /// Replaces the element at an address if it equals another one: stores its old value. `false`, with
    /// nothing done, if others have the part and the entry does not wait.
    ///
    /// # Safety
    /// The element lies in memory of the window; the others are valid.
    pub unsafe fn swap_at(
        &self,
        (at, has_atomics): (*mut u8, bool),
        (new, compare): (*const u8, *const u8),
        old: *mut u8,
        entry: Entry<'_>,
    ) -> bool {
        let Some(access) = entry.access(self.is_atomic(at, has_atomics)) else { return false };
        // SAFETY: the caller promises all elements.
        unsafe {
            if let (Access::Short { .. }, Some((kind, _))) = (&access, self.word) {
                let (operand, compare) = (read_word(new, self.bytes), read_word(compare, self.bytes));
                let atomic = Atomic { kind, op: AtomicOp::CompareSwap, operand, compare };
                write_word(old, atomic.execute(at), self.bytes);
                return true;
            }
            self.swap_here(at, (new, compare), old);
        }
        true
    }

    /// The same alone on the part, or on a copy.
    ///
    /// # Safety
    /// As [`swap_at`](Update::swap_at).
    pub unsafe fn swap_here(&self, at: *mut u8, (new, compare): (*const u8, *const u8), old: *mut u8) {
        let mut bytes = [[0u8; 32]; 2];
        let [is, expected] = &mut bytes;
        // SAFETY: the caller promises all elements, which have at most 16 bytes.
        unsafe {
            copy::copy(is.as_mut_ptr(), at, self.bytes);
            copy::copy(expected.as_mut_ptr(), compare, self.bytes);
            copy::copy(old, is.as_ptr(), self.bytes);
            if is == expected {
                copy::copy(at, new, self.bytes);
            }
        }
    }
}

/// Executes an atomic: the old value.
///
/// # Safety
/// The word lies in memory of a window, aligned.
#[inline]
pub unsafe fn update_word(atomic: &Atomic, word: *mut u8) -> u64 {
    macro_rules! direct {
        ($atomic:ty, $plain:ty) => {{
            // SAFETY: the caller promises the word, aligned.
            let place = unsafe { <$atomic>::from_ptr(word.cast()) };
            let operand = atomic.operand as $plain;
            match atomic.op {
                AtomicOp::Fetch => return place.load(Ordering::Acquire).into(),
                AtomicOp::Set => return place.swap(operand, Ordering::AcqRel).into(),
                AtomicOp::Add if atomic.kind.is_integer() => {
                    return place.fetch_add(operand, Ordering::AcqRel).into();
                }
                AtomicOp::CompareSwap => {
                    let compare = atomic.compare as $plain;
                    let swapped =
                        place.compare_exchange(compare, operand, Ordering::AcqRel, Ordering::Acquire);
                    return swapped.unwrap_or_else(|is| is).into();
                }
                AtomicOp::And => return place.fetch_and(operand, Ordering::AcqRel).into(),
                AtomicOp::Or => return place.fetch_or(operand, Ordering::AcqRel).into(),
                AtomicOp::Xor => return place.fetch_xor(operand, Ordering::AcqRel).into(),
                _ => {}
            }
        }};
    }
    match atomic.kind.bytes() {
        1 => direct!(AtomicU8, u8),
        2 => direct!(AtomicU16, u16),
        4 => direct!(AtomicU32, u32),
        _ => direct!(AtomicU64, u64),
    }
    // SAFETY: the caller promises the word, aligned.
    unsafe { atomic.execute(word) }
}

/// Reads the low bytes of a word.
///
/// # Safety
/// The place is valid for them.
#[inline]
pub unsafe fn read_word(at: *const u8, bytes: usize) -> u64 {
    // SAFETY: the caller promises as many bytes.
    unsafe {
        match bytes {
            1 => at.read().into(),
            2 => at.cast::<u16>().read_unaligned().into(),
            4 => at.cast::<u32>().read_unaligned().into(),
            _ => at.cast::<u64>().read_unaligned(),
        }
    }
}

/// Writes the low bytes of a word.
///
/// # Safety
/// The place is valid for them.
#[inline]
pub unsafe fn write_word(at: *mut u8, word: u64, bytes: usize) {
    // SAFETY: the caller promises as many bytes.
    unsafe {
        match bytes {
            1 => at.write(word as u8),
            2 => at.cast::<u16>().write_unaligned(word as u16),
            4 => at.cast::<u32>().write_unaligned(word as u32),
            _ => at.cast::<u64>().write_unaligned(word),
        }
    }
}
