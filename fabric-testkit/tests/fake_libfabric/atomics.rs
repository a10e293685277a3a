//! Atomics: which ones are supported, and that their results are those of the processor.

use super::side::{Context, Side, Told};
use libc::c_void;
use pelago_fabric::ofi::sys::*;
use pelago_fabric::{Atomic, AtomicKind, AtomicOp};
use proptest::prelude::*;
use std::ptr::null_mut;

const INTEGERS: [fi_datatype; 8] =
    [FI_INT8, FI_UINT8, FI_INT16, FI_UINT16, FI_INT32, FI_UINT32, FI_INT64, FI_UINT64];
const COMPARING: [(fi_op, AtomicOp); 7] = [
    (FI_CSWAP, AtomicOp::CompareSwap),
    (FI_CSWAP_NE, AtomicOp::CompareSwapNe),
    (FI_CSWAP_LE, AtomicOp::CompareSwapLe),
    (FI_CSWAP_LT, AtomicOp::CompareSwapLt),
    (FI_CSWAP_GE, AtomicOp::CompareSwapGe),
    (FI_CSWAP_GT, AtomicOp::CompareSwapGt),
    (FI_MSWAP, AtomicOp::MaskedSwap),
];
const OTHERS: [(fi_op, AtomicOp); 12] = [
    (FI_MIN, AtomicOp::Min),
    (FI_MAX, AtomicOp::Max),
    (FI_SUM, AtomicOp::Add),
    (FI_PROD, AtomicOp::Product),
    (FI_LOR, AtomicOp::LogicalOr),
    (FI_LAND, AtomicOp::LogicalAnd),
    (FI_BOR, AtomicOp::Or),
    (FI_BAND, AtomicOp::And),
    (FI_LXOR, AtomicOp::LogicalXor),
    (FI_BXOR, AtomicOp::Xor),
    (FI_ATOMIC_WRITE, AtomicOp::Set),
    (FI_ATOMIC_READ, AtomicOp::Fetch),
];

/// The results of the three validity functions for an atomic, and of the query of the domain.
fn validity(side: &Side, datatype: fi_datatype, op: fi_op) -> [bool; 3] {
    let (mut counts, ep) = ([0; 3], side.ep);
    // SAFETY: the endpoint is open, and the pointers are valid for the results.
    let codes = unsafe {
        [
            fi_atomicvalid(ep, datatype, op, &mut counts[0]),
            fi_fetch_atomicvalid(ep, datatype, op, &mut counts[1]),
            fi_compare_atomicvalid(ep, datatype, op, &mut counts[2]),
        ]
    };
    let asked = [0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC].map(|flags| {
        let mut answer = Padded::<fi_atomic_attr>::zeroed();
        // SAFETY: the domain is open, and the pointer is valid for the result.
        let code = unsafe { fi_query_atomic(side.domain, datatype, op, answer.as_mut_ptr(), flags) };
        (code, answer.known.count)
    });
    assert_eq!(asked, std::array::from_fn(|form| (codes[form], counts[form])));
    codes.map(|code| {
        assert!(code == 0 || code == -FI_EOPNOTSUPP, "{code}");
        code == 0
    })
}

#[test]
fn each_provider_has_its_atomics_and_each_atomic_its_forms() {
    for (provider, sizes) in
        [("plain", &[1, 2, 4, 8][..]), ("like-verbs", &[]), ("like-cxi", &[4, 8]), ("null", &[1, 2, 4, 8])]
    {
        let [side, _] = Side::pair(provider);
        for (index, datatype) in INTEGERS.into_iter().enumerate() {
            let has = sizes.contains(&(1 << (index / 2)));
            for (op, meaning) in OTHERS {
                let base = has && meaning != AtomicOp::Fetch;
                assert_eq!(validity(&side, datatype, op), [base, has, false], "{provider} {datatype} {op}");
            }
            for (op, _) in COMPARING {
                assert_eq!(validity(&side, datatype, op), [false, false, has], "{provider} {datatype} {op}");
            }
        }
        for datatype in [FI_FLOAT, FI_DOUBLE, FI_FLOAT_COMPLEX, FI_INT128, FI_VOID, 999] {
            assert_eq!(validity(&side, datatype, FI_SUM), [false; 3]);
        }
        assert_eq!(validity(&side, FI_UINT64, 999), [false; 3]);
    }
}

/// An atomic call in one of the three forms.
struct Call {
    datatype: fi_datatype,
    op: fi_op,
    address: u64,
    key: u64,
    operand: [u64; 2],
    result: u64,
    context: Context,
}

impl Call {
    fn start(&mut self, side: &Side, form: usize) -> isize {
        let place = |word: &mut u64| fi_ioc { addr: std::ptr::from_mut(word).cast(), count: 1 };
        let [operand, compare] = &mut self.operand;
        let (operand, compare, mut result) = (place(operand), place(compare), place(&mut self.result));
        let target = fi_rma_ioc { addr: self.address, count: 1, key: self.key };
        let message = fi_msg_atomic {
            msg_iov: &operand,
            desc: null_mut(),
            iov_count: usize::from(self.op != FI_ATOMIC_READ),
            addr: 1,
            rma_iov: &target,
            rma_iov_count: 1,
            datatype: self.datatype,
            op: self.op,
            context: self.context.place(),
            data: 0,
        };
        let (flags, null) = (FI_COMPLETION | FI_DELIVERY_COMPLETE, null_mut::<*mut c_void>());
        // SAFETY: the endpoint is open; the words live until the operation is complete.
        unsafe {
            match form {
                0 => fi_atomicmsg(side.ep, &message, flags),
                1 => fi_fetch_atomicmsg(side.ep, &message, &mut result, null, 1, flags),
                _ => fi_compare_atomicmsg(side.ep, &message, &compare, null, 1, &mut result, null, 1, flags),
            }
        }
    }
}

/// Compares random atomics in each of their forms with the model.
#[test]
fn atomics_do_what_the_model_says() {
    let memory = Box::new([0_u64; 4]);
    // SAFETY: the bytes of integers, which the test reads while no operation is in progress.
    let bytes = unsafe { std::slice::from_raw_parts(memory.as_ptr().cast::<u8>(), 32) };
    let all = FI_REMOTE_READ | FI_REMOTE_WRITE;
    let pairs = ["plain", "like-cxi"].map(Side::pair);
    let keys = pairs.each_ref().map(|[_, far]| {
        let region = far.register(bytes, all, 3);
        far.there(region, bytes, 0).key
    });
    let word = prop_oneof![0_u64..4, any::<u64>(), any::<u8>().prop_map(|byte| u64::MAX - u64::from(byte))];
    let words = [word.clone(), word.clone(), word];
    let case = (0..2_usize, 0..8_usize, 0..19_usize, any::<bool>(), any::<bool>(), words);
    proptest!(ProptestConfig::with_cases(1000), |((net, kind, op, fetches, is_equal, words) in case)| {
        let [old, operand, compare] = words;
        let compare = if is_equal { old } else { compare };
        let kind_index = if net == 1 { 4 + kind % 4 } else { kind };
        let kind = AtomicKind::ALL[kind_index];
        let (op, meaning, form) = match op {
            0..7 => (COMPARING[op].0, COMPARING[op].1, 2),
            _ => {
                let (op, meaning) = OTHERS[op - 7];
                (op, meaning, usize::from(fetches || meaning == AtomicOp::Fetch))
            }
        };
        let mask = u64::MAX >> (64 - 8 * kind.bytes());
        let place = memory.as_ptr().cast_mut();
        // SAFETY: the words stay alive, and no operation is in progress.
        unsafe {
            place.write(7);
            place.add(1).write(old);
            place.add(2).write(7);
        }
        let (key, result, context) = (keys[net], 0, Context::default());
        let datatype = INTEGERS[kind_index];
        let mut call = Call { datatype, op, address: 8, key, operand: [operand, compare], result, context };
        let [near, far] = &pairs[net];
        prop_assert_eq!(call.start(near, form), 0);
        let told = near.until_told(Some(far));
        prop_assert!(matches!(told, Told::Done { .. }), "{:?}", told);
        let next = Atomic { kind, op: meaning, operand, compare }.next(old & mask).unwrap_or(old) & mask;
        // SAFETY: the words stay alive, and no operation is in progress.
        let after = unsafe { [place.read(), place.add(1).read(), place.add(2).read()] };
        prop_assert_eq!(after, [7, old & !mask | next, 7], "{:?} of {:?} in form {}", meaning, kind, form);
        prop_assert_eq!(call.result, if form == 0 { 0 } else { old & mask });
    });
}

#[test]
fn atomics_that_are_not_there_are_refused() {
    let memory = [0_u64; 4];
    // SAFETY: the bytes of integers, which are not written to.
    let bytes = unsafe { std::slice::from_raw_parts(memory.as_ptr().cast::<u8>(), 32) };
    let call = |datatype, op, key| {
        let context = Context::default();
        Call { datatype, op, address: 0, key, operand: [1, 1], result: 0, context }
    };
    let refused = -(FI_EOPNOTSUPP as isize);
    let [near, _far] = Side::pair("like-verbs");
    assert_eq!(call(FI_UINT64, FI_SUM, 0).start(&near, 0), refused);
    let [near, far] = Side::pair("like-cxi");
    let key = far.there(far.register(bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 3), bytes, 0).key;
    assert_eq!(call(FI_UINT16, FI_SUM, key).start(&near, 0), refused, "too small");
    assert_eq!(call(FI_UINT64, FI_CSWAP, key).start(&near, 1), refused, "it compares");
    assert_eq!(call(FI_UINT64, FI_SUM, key).start(&near, 2), refused, "it compares nothing");
    let mut odd = call(FI_UINT64, FI_SUM, key);
    odd.address = 4;
    assert_eq!(odd.start(&near, 0), 0);
    let told = near.until_told(Some(&far));
    assert!(
        matches!(&told, Told::Failed { words, .. } if words.contains("multiple of its size")),
        "{told:?}"
    );
    // An atomic that fetches needs read access too.
    let writable = far.register(bytes, FI_REMOTE_WRITE, 4);
    let mut fetching = call(FI_UINT64, FI_SUM, far.there(writable, bytes, 0).key);
    assert_eq!(fetching.start(&near, 1), 0);
    let told = near.until_told(Some(&far));
    assert!(matches!(told, Told::Failed { error: FI_EACCES, .. }), "{told:?}");
    assert_eq!(memory, [0; 4]);
}
