//! Atomics: `fi_atomic(3)`.
//!
//! Invariant: one word at a time. An operation has one form in which it is called: those that compare do so
//! always, a read only fetches, the others fetch or not.

use crate::object::enter;
use crate::operation::{Action, Flags, Local, Remote, Request, start};
use crate::profile::Profile;
use crate::refusal::Table;
use crate::world::at;
use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;
use pelago_fabric::{AtomicKind, AtomicOp};

/// The table.
pub(crate) static OPS: fi_ops_atomic = fi_ops_atomic {
    write: Some(write),
    writemsg: Some(write_message),
    inject: Some(inject),
    readwrite: Some(fetch),
    readwritemsg: Some(fetch_message),
    compwrite: Some(compare),
    compwritemsg: Some(compare_message),
    writevalid: Some(is_valid),
    readwritevalid: Some(is_fetch_valid),
    compwritevalid: Some(is_compare_valid),
    ..fi_ops_atomic::EMPTY
};

/// How an atomic is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Base,
    Fetch,
    Compare,
}

/// The kind of integers of that number.
fn kind(datatype: fi_datatype) -> Option<AtomicKind> {
    Some(match datatype {
        FI_INT8 => AtomicKind::I8,
        FI_UINT8 => AtomicKind::U8,
        FI_INT16 => AtomicKind::I16,
        FI_UINT16 => AtomicKind::U16,
        FI_INT32 => AtomicKind::I32,
        FI_UINT32 => AtomicKind::U32,
        FI_INT64 => AtomicKind::I64,
        FI_UINT64 => AtomicKind::U64,
        _ => return None,
    })
}

/// The operation of that number.
fn operation(op: fi_op) -> Option<AtomicOp> {
    Some(match op {
        FI_MIN => AtomicOp::Min,
        FI_MAX => AtomicOp::Max,
        FI_SUM => AtomicOp::Add,
        FI_PROD => AtomicOp::Product,
        FI_LOR => AtomicOp::LogicalOr,
        FI_LAND => AtomicOp::LogicalAnd,
        FI_BOR => AtomicOp::Or,
        FI_BAND => AtomicOp::And,
        FI_LXOR => AtomicOp::LogicalXor,
        FI_BXOR => AtomicOp::Xor,
        FI_ATOMIC_READ => AtomicOp::Fetch,
        FI_ATOMIC_WRITE => AtomicOp::Set,
        FI_CSWAP => AtomicOp::CompareSwap,
        FI_CSWAP_NE => AtomicOp::CompareSwapNe,
        FI_CSWAP_LE => AtomicOp::CompareSwapLe,
        FI_CSWAP_LT => AtomicOp::CompareSwapLt,
        FI_CSWAP_GE => AtomicOp::CompareSwapGe,
        FI_CSWAP_GT => AtomicOp::CompareSwapGt,
        FI_MSWAP => AtomicOp::MaskedSwap,
        _ => return None,
    })
}

/// The atomic that a call means, if the provider has it in that form.
fn known(profile: &Profile, form: Form, datatype: fi_datatype, op: fi_op) -> Option<(AtomicKind, AtomicOp)> {
    let (kind, op) = (kind(datatype)?, operation(op)?);
    let has_form = match form {
        Form::Base => !op.takes_comparison() && op != AtomicOp::Fetch,
        Form::Fetch => !op.takes_comparison(),
        Form::Compare => op.takes_comparison(),
    };
    (has_form && profile.atomic_bytes.contains(&kind.bytes())).then_some((kind, op))
}

/// What a call names.
struct Call {
    form: Form,
    datatype: fi_datatype,
    op: fi_op,
    source: Place,
    compare: Place,
    result: Place,
    address: u64,
    key: u64,
}

/// A local word: address, count, descriptor.
type Place = (*const c_void, usize, *mut c_void);

const NOWHERE: Place = (std::ptr::null(), 0, std::ptr::null_mut());

/// The provider of an endpoint.
///
/// # Safety
/// The endpoint is an object of this library.
unsafe fn profile_of(ep: *mut fid_ep) -> &'static Profile {
    // SAFETY: the caller vouches for the endpoint.
    let (mut world, id) = unsafe { enter(ep) };
    at(&mut world.endpoints, id).profile
}

/// Starts an atomic.
///
/// # Safety
/// The endpoint is an object of this library, and the caller keeps what `fi_atomic(3)` asks.
unsafe fn begin(ep: *mut fid_ep, peer: fi_addr_t, flags: Flags, context: *mut c_void, call: Call) -> isize {
    // SAFETY: the caller vouches for the endpoint.
    let profile = unsafe { profile_of(ep) };
    let Some((kind, op)) = known(profile, call.form, call.datatype, call.op) else {
        return -(FI_EOPNOTSUPP as isize);
    };
    let counts = [
        (call.source.1, op != AtomicOp::Fetch),
        (call.compare.1, call.form == Form::Compare),
        (call.result.1, call.form != Form::Base),
    ];
    // Who reads may name an operand, which is ignored.
    let is_odd = |&(count, is_needed): &(usize, bool)| count > 1 || is_needed && count == 0;
    if counts.iter().any(is_odd) {
        return -(FI_EINVAL as isize);
    }
    let local = |(address, count, descriptor): Place, is_needed| match (count, is_needed) {
        (1, true) => Local::new(address, kind.bytes(), descriptor),
        _ => Local::default(),
    };
    let request = Request {
        action: Action::Atomic { kind, op, fetches: call.form != Form::Base },
        source: local(call.source, counts[0].1),
        compare: local(call.compare, counts[1].1),
        result: local(call.result, counts[2].1),
        remote: Remote { address: call.address, bytes: kind.bytes(), key: call.key },
    };
    // SAFETY: the caller vouches for endpoint and buffers.
    unsafe { start(ep, peer, flags, context, request) }
}

unsafe extern "C" fn write(
    ep: *mut fid_ep,
    buffer: *const c_void,
    count: usize,
    descriptor: *mut c_void,
    peer: fi_addr_t,
    address: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> isize {
    let (form, source) = (Form::Base, (buffer, count, descriptor));
    let call = Call { form, datatype, op, source, compare: NOWHERE, result: NOWHERE, address, key };
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_atomic(3)` asks.
    unsafe { begin(ep, peer, Flags::Default, context, call) }
}

unsafe extern "C" fn inject(
    ep: *mut fid_ep,
    buffer: *const c_void,
    count: usize,
    peer: fi_addr_t,
    address: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
) -> isize {
    let null = std::ptr::null_mut();
    let (form, source) = (Form::Base, (buffer, count, null));
    let call = Call { form, datatype, op, source, compare: NOWHERE, result: NOWHERE, address, key };
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_atomic(3)` asks.
    unsafe { begin(ep, peer, Flags::Injected, null, call) }
}

unsafe extern "C" fn fetch(
    ep: *mut fid_ep,
    buffer: *const c_void,
    count: usize,
    descriptor: *mut c_void,
    result: *mut c_void,
    result_descriptor: *mut c_void,
    peer: fi_addr_t,
    address: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> isize {
    let (form, source) = (Form::Fetch, (buffer, count, descriptor));
    let result = (result.cast_const(), count, result_descriptor);
    let call = Call { form, datatype, op, source, compare: NOWHERE, result, address, key };
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_atomic(3)` asks.
    unsafe { begin(ep, peer, Flags::Default, context, call) }
}

unsafe extern "C" fn compare(
    ep: *mut fid_ep,
    buffer: *const c_void,
    count: usize,
    descriptor: *mut c_void,
    compare: *const c_void,
    compare_descriptor: *mut c_void,
    result: *mut c_void,
    result_descriptor: *mut c_void,
    peer: fi_addr_t,
    address: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> isize {
    let (form, source) = (Form::Compare, (buffer, count, descriptor));
    let compare = (compare, count, compare_descriptor);
    let result = (result.cast_const(), count, result_descriptor);
    let call = Call { form, datatype, op, source, compare, result, address, key };
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_atomic(3)` asks.
    unsafe { begin(ep, peer, Flags::Default, context, call) }
}

/// The words that a call names in arrays, and their descriptors.
#[derive(Clone, Copy)]
struct Words(*const fi_ioc, *mut *mut c_void, usize);

impl Words {
    const NONE: Words = Words(std::ptr::null(), std::ptr::null_mut(), 0);

    /// The only one of them; none if there are more.
    ///
    /// # Safety
    /// The arrays are as long as said; descriptors may be null.
    unsafe fn only(self) -> Option<Place> {
        let Words(words, descriptors, count) = self;
        match count {
            0 => Some(NOWHERE),
            // SAFETY: the caller vouches for the arrays.
            1 => unsafe {
                let null = std::ptr::null_mut();
                let descriptor = if descriptors.is_null() { null } else { *descriptors };
                Some(((*words).addr.cast_const(), (*words).count, descriptor))
            },
            _ => None,
        }
    }
}

/// Starts the atomic of a message.
///
/// # Safety
/// The endpoint is an object of this library, and the caller keeps what `fi_atomic(3)` asks.
unsafe fn begin_message(
    ep: *mut fid_ep,
    form: Form,
    message: *const fi_msg_atomic,
    [compare, result]: [Words; 2],
    flags: u64,
) -> isize {
    // SAFETY: the caller vouches for message and arrays.
    unsafe {
        let message = &*message;
        let source = Words(message.msg_iov, message.desc, message.iov_count);
        let (Some(source), Some(compare), Some(result)) = (source.only(), compare.only(), result.only())
        else {
            return -(FI_EINVAL as isize);
        };
        if message.rma_iov_count != 1 || (*message.rma_iov).count != 1 {
            return -(FI_EINVAL as isize);
        }
        let fi_rma_ioc { addr: address, key, .. } = *message.rma_iov;
        let (datatype, op) = (message.datatype, message.op);
        let call = Call { form, datatype, op, source, compare, result, address, key };
        begin(ep, message.addr, Flags::Given(flags), message.context, call)
    }
}

/// As the table has it; also for what the hollow provider does in earnest.
pub(crate) unsafe extern "C" fn write_message(
    ep: *mut fid_ep,
    message: *const fi_msg_atomic,
    flags: u64,
) -> isize {
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_atomic(3)` asks.
    unsafe { begin_message(ep, Form::Base, message, [Words::NONE; 2], flags) }
}

/// As the table has it; also for what the hollow provider does in earnest.
pub(crate) unsafe extern "C" fn fetch_message(
    ep: *mut fid_ep,
    message: *const fi_msg_atomic,
    results: *mut fi_ioc,
    result_descriptors: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    let result = Words(results, result_descriptors, result_count);
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_atomic(3)` asks.
    unsafe { begin_message(ep, Form::Fetch, message, [Words::NONE, result], flags) }
}

/// As the table has it; also for what the hollow provider does in earnest.
pub(crate) unsafe extern "C" fn compare_message(
    ep: *mut fid_ep,
    message: *const fi_msg_atomic,
    compares: *const fi_ioc,
    compare_descriptors: *mut *mut c_void,
    compare_count: usize,
    results: *mut fi_ioc,
    result_descriptors: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    let compare = Words(compares, compare_descriptors, compare_count);
    let result = Words(results, result_descriptors, result_count);
    // SAFETY: the table is that of endpoints; the caller keeps what `fi_atomic(3)` asks.
    unsafe { begin_message(ep, Form::Compare, message, [compare, result], flags) }
}

/// Whether an endpoint has an atomic in that form, and how many words it takes.
///
/// # Safety
/// The endpoint is an object of this library; the place is valid for a write.
pub(crate) unsafe fn validity(
    ep: *mut fid_ep,
    form: Form,
    datatype: fi_datatype,
    op: fi_op,
    count: *mut usize,
) -> c_int {
    // SAFETY: the caller vouches for the endpoint.
    let profile = unsafe { profile_of(ep) };
    if known(profile, form, datatype, op).is_none() {
        return -FI_EOPNOTSUPP;
    }
    // SAFETY: the caller gives the place.
    unsafe { count.write(1) };
    0
}

pub(crate) unsafe extern "C" fn is_valid(
    ep: *mut fid_ep,
    datatype: fi_datatype,
    op: fi_op,
    count: *mut usize,
) -> c_int {
    // SAFETY: the table is that of endpoints; the caller gives the place.
    unsafe { validity(ep, Form::Base, datatype, op, count) }
}

pub(crate) unsafe extern "C" fn is_fetch_valid(
    ep: *mut fid_ep,
    datatype: fi_datatype,
    op: fi_op,
    count: *mut usize,
) -> c_int {
    // SAFETY: the table is that of endpoints; the caller gives the place.
    unsafe { validity(ep, Form::Fetch, datatype, op, count) }
}

pub(crate) unsafe extern "C" fn is_compare_valid(
    ep: *mut fid_ep,
    datatype: fi_datatype,
    op: fi_op,
    count: *mut usize,
) -> c_int {
    // SAFETY: the table is that of endpoints; the caller gives the place.
    unsafe { validity(ep, Form::Compare, datatype, op, count) }
}

/// `fi_query_atomic`.
pub(crate) unsafe extern "C" fn query(
    domain: *mut fid_domain,
    datatype: fi_datatype,
    op: fi_op,
    attributes: *mut fi_atomic_attr,
    flags: u64,
) -> c_int {
    let form = match flags & (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC) {
        0 => Form::Base,
        FI_FETCH_ATOMIC => Form::Fetch,
        FI_COMPARE_ATOMIC => Form::Compare,
        _ => return -FI_EINVAL,
    };
    // SAFETY: the table is that of domains.
    let (mut world, id) = unsafe { enter(domain) };
    let profile = at(&mut world.domains, id).profile;
    let Some((kind, _)) = known(profile, form, datatype, op) else { return -FI_EOPNOTSUPP };
    // SAFETY: the caller gives room for the attributes.
    unsafe { attributes.write(fi_atomic_attr { count: 1, size: kind.bytes() }) };
    0
}
