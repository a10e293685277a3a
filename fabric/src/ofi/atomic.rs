//! The atomics of the contract in libfabric's terms. Source: `fi_atomic(3)`.
//!
//! Invariant: a kind counts as executed only if the provider has every operation on it in all forms. Then the
//! provider executes every atomic on words of that kind. Processors execute atomics on floats: providers
//! compare floats by value, and the contract compares their bits.

use super::endpoint::Endpoint;
use super::sys::*;
use crate::amo::{AtomicKind, AtomicOp};

/// The type of a word, as libfabric names it.
pub(super) const fn datatype(kind: AtomicKind) -> fi_datatype {
    match kind {
        AtomicKind::I8 => FI_INT8,
        AtomicKind::U8 => FI_UINT8,
        AtomicKind::I16 => FI_INT16,
        AtomicKind::U16 => FI_UINT16,
        AtomicKind::I32 => FI_INT32,
        AtomicKind::U32 => FI_UINT32,
        AtomicKind::I64 => FI_INT64,
        AtomicKind::U64 => FI_UINT64,
        AtomicKind::F32 => FI_FLOAT,
        AtomicKind::F64 => FI_DOUBLE,
        AtomicKind::ComplexF32 => FI_FLOAT_COMPLEX,
    }
}

/// An operation, as libfabric names it.
pub(super) const fn operation(op: AtomicOp) -> fi_op {
    match op {
        AtomicOp::Fetch => FI_ATOMIC_READ,
        AtomicOp::Set => FI_ATOMIC_WRITE,
        AtomicOp::Add => FI_SUM,
        AtomicOp::Product => FI_PROD,
        AtomicOp::Min => FI_MIN,
        AtomicOp::Max => FI_MAX,
        AtomicOp::And => FI_BAND,
        AtomicOp::Or => FI_BOR,
        AtomicOp::Xor => FI_BXOR,
        AtomicOp::LogicalAnd => FI_LAND,
        AtomicOp::LogicalOr => FI_LOR,
        AtomicOp::LogicalXor => FI_LXOR,
        AtomicOp::CompareSwap => FI_CSWAP,
        AtomicOp::CompareSwapNe => FI_CSWAP_NE,
        AtomicOp::CompareSwapLe => FI_CSWAP_LE,
        AtomicOp::CompareSwapLt => FI_CSWAP_LT,
        AtomicOp::CompareSwapGe => FI_CSWAP_GE,
        AtomicOp::CompareSwapGt => FI_CSWAP_GT,
        AtomicOp::MaskedSwap => FI_MSWAP,
    }
}

impl Endpoint {
    /// The kinds that the provider executes, a bit each.
    pub(super) fn executed_kinds(&self) -> u32 {
        if self.domain.offer.caps & FI_ATOMIC == 0 {
            return 0;
        }
        let kinds = AtomicKind::ALL.into_iter().filter(|kind| kind.is_integer());
        let executed = kinds.filter(|kind| AtomicOp::ALL.iter().all(|op| self.has_atomic(*kind, *op)));
        executed.fold(0, |bits, kind| bits | 1 << kind as u32)
    }

    fn has_atomic(&self, kind: AtomicKind, op: AtomicOp) -> bool {
        let (ep, datatype, op_code, mut count) = (self.ep.as_ptr(), datatype(kind), operation(op), 0);
        let fetches_only = op == AtomicOp::Fetch;
        // SAFETY: the endpoint is enabled, and was opened with atomics, so that it has their table.
        let codes = unsafe {
            match op.takes_comparison() {
                true => [fi_compare_atomicvalid(ep, datatype, op_code, &mut count), 0],
                false if fetches_only => [fi_fetch_atomicvalid(ep, datatype, op_code, &mut count), 0],
                false => [
                    fi_atomicvalid(ep, datatype, op_code, &mut count),
                    fi_fetch_atomicvalid(ep, datatype, op_code, &mut count),
                ],
            }
        };
        codes == [0, 0] && count > 0
    }
}
