//! Atomics: `fi_atomic(3)`.
//!
//! Invariant: a call executes an atomic on one word. The forms of an operation are: compare for operations
//! that compare, fetch for a read, and with or without fetch for all others.

use super::buffer::{Local, NOWHERE, Place, Remote, only};
use super::null;
use super::object::enter;
use super::operation::{Action, Flags, Request, start};
use super::profile::Profile;
use super::refusal::Table;
use super::world::at;
use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;
use pelago_fabric::{AtomicKind, AtomicOp};
use std::ptr::null_mut;

/// The table of functions.
pub(crate) static OPS: fi_ops_atomic = fi_ops_atomic {
    write: Some(write),
    writemsg: Some(write_message::<false>),
    inject: Some(inject::<false>),
    readwrite: Some(fetch),
    readwritemsg: Some(fetch_message::<false>),
    compwrite: Some(compare),
    compwritemsg: Some(compare_message::<false>),
    ..VALIDITY
};

/// The table of the null provider.
pub(crate) static NULL: fi_ops_atomic = fi_ops_atomic {
    writemsg: Some(write_message::<true>),
    inject: Some(inject::<true>),
    readwritemsg: Some(fetch_message::<true>),
    compwritemsg: Some(compare_message::<true>),
    ..VALIDITY
};

/// The functions that both tables share.
const VALIDITY: fi_ops_atomic = fi_ops_atomic {
    writevalid: Some(is_valid::<0>),
    readwritevalid: Some(is_valid::<FI_FETCH_ATOMIC>),
    compwritevalid: Some(is_valid::<FI_COMPARE_ATOMIC>),
    ..fi_ops_atomic::EMPTY
};

/// The form of an atomic call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Base,
    Fetch,
    Compare,
}

impl Form {
    /// The form that the flags of `fi_query_atomic` denote.
    fn of(flags: u64) -> Option<Form> {
        match flags & (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC) {
            0 => Some(Form::Base),
            FI_FETCH_ATOMIC => Some(Form::Fetch),
            FI_COMPARE_ATOMIC => Some(Form::Compare),
            _ => None,
        }
    }
}

/// The kind of integers of a libfabric datatype.
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

/// The operation of a libfabric operation number.
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

/// The atomic of a call, if the provider supports it in this form.
fn known(profile: &Profile, form: Form, datatype: fi_datatype, op: fi_op) -> Option<(AtomicKind, AtomicOp)> {
    let (kind, op) = (kind(datatype)?, operation(op)?);
    let has_form = match form {
        Form::Base => !op.takes_comparison() && op != AtomicOp::Fetch,
        Form::Fetch => !op.takes_comparison(),
        Form::Compare => op.takes_comparison(),
    };
    (has_form && profile.atomic_bytes.contains(&kind.bytes())).then_some((kind, op))
}

/// The request of a call, from its form and its local words: operand, comparand, result.
///
/// # Safety
/// The endpoint is an object of this library.
unsafe fn request(
    ep: *mut fid_ep,
    form: Form,
    (datatype, op): (fi_datatype, fi_op),
    [source, compare, result]: [Place; 3],
    (address, key): (u64, u64),
) -> Result<Request, c_int> {
    // SAFETY: the caller guarantees that the endpoint is valid.
    let profile = unsafe { profile_of(ep) };
    let (kind, op) = known(profile, form, datatype, op).ok_or(FI_EOPNOTSUPP)?;
    let local = |(address, count, descriptor): Place, is_needed| match (count, is_needed) {
        (1, true) => Ok(Local::new((address, kind.bytes(), descriptor))),
        // A read may have an operand, which is ignored.
        (0 | 1, false) => Ok(Local::default()),
        _ => Err(FI_EINVAL),
    };
    Ok(Request {
        action: Action::Atomic { kind, op, fetches: form != Form::Base },
        source: local(source, op != AtomicOp::Fetch)?,
        compare: local(compare, form == Form::Compare)?,
        result: local(result, form != Form::Base)?,
        remote: Remote { address, bytes: kind.bytes(), key },
    })
}

/// The provider of an endpoint.
///
/// # Safety
/// The endpoint is an object of this library.
unsafe fn profile_of(ep: *mut fid_ep) -> &'static Profile {
    // SAFETY: the caller guarantees that the endpoint is valid.
    let (mut world, id) = unsafe { enter(ep) };
    at(&mut world.endpoints, id).profile
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
    let words = [(buffer, count, descriptor), NOWHERE, NOWHERE];
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_atomic(3)`.
    unsafe {
        let request = request(ep, Form::Base, (datatype, op), words, (address, key));
        start(ep, peer, Flags::Default, context, request)
    }
}

unsafe extern "C" fn inject<const NULL: bool>(
    ep: *mut fid_ep,
    buffer: *const c_void,
    count: usize,
    peer: fi_addr_t,
    address: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
) -> isize {
    let words = [(buffer, count, null_mut()), NOWHERE, NOWHERE];
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_atomic(3)`.
    unsafe {
        if NULL {
            return null::count(ep, false);
        }
        let request = request(ep, Form::Base, (datatype, op), words, (address, key));
        start(ep, peer, Flags::Injected, null_mut(), request)
    }
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
    let words = [(buffer, count, descriptor), NOWHERE, (result.cast_const(), count, result_descriptor)];
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_atomic(3)`.
    unsafe {
        let request = request(ep, Form::Fetch, (datatype, op), words, (address, key));
        start(ep, peer, Flags::Default, context, request)
    }
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
    let result = (result.cast_const(), count, result_descriptor);
    let words = [(buffer, count, descriptor), (compare, count, compare_descriptor), result];
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_atomic(3)`.
    unsafe {
        let request = request(ep, Form::Compare, (datatype, op), words, (address, key));
        start(ep, peer, Flags::Default, context, request)
    }
}

#[inline(never)]
unsafe extern "C" fn write_message<const NULL: bool>(
    ep: *mut fid_ep,
    message: *const fi_msg_atomic,
    flags: u64,
) -> isize {
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_atomic(3)`.
    unsafe {
        if NULL {
            return null::count_or(ep, flags, false, || write_message::<false>(ep, message, flags));
        }
        start_message(ep, Form::Base, message, flags, Ok(NOWHERE), Ok(NOWHERE))
    }
}

#[inline(never)]
unsafe extern "C" fn fetch_message<const NULL: bool>(
    ep: *mut fid_ep,
    message: *const fi_msg_atomic,
    results: *mut fi_ioc,
    result_descriptors: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_atomic(3)`.
    unsafe {
        if NULL {
            return null::count_or(ep, flags, true, || {
                fetch_message::<false>(ep, message, results, result_descriptors, result_count, flags)
            });
        }
        let result = only(results, result_descriptors, result_count);
        start_message(ep, Form::Fetch, message, flags, Ok(NOWHERE), result)
    }
}

#[inline(never)]
unsafe extern "C" fn compare_message<const NULL: bool>(
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
    // SAFETY: only the table of endpoints contains this function; the caller follows the rules of
    // `fi_atomic(3)`.
    unsafe {
        if NULL {
            return null::count_or(ep, flags, true, || {
                compare_message::<false>(
                    ep,
                    message,
                    compares,
                    compare_descriptors,
                    compare_count,
                    results,
                    result_descriptors,
                    result_count,
                    flags,
                )
            });
        }
        let compare = only(compares, compare_descriptors, compare_count);
        let result = only(results, result_descriptors, result_count);
        start_message(ep, Form::Compare, message, flags, compare, result)
    }
}

/// Starts an atomic that is described by a message structure.
///
/// # Safety
/// The endpoint is an object of this library, and the caller follows the rules of `fi_atomic(3)`.
unsafe fn start_message(
    ep: *mut fid_ep,
    form: Form,
    message: *const fi_msg_atomic,
    flags: u64,
    compare: Result<Place, c_int>,
    result: Result<Place, c_int>,
) -> isize {
    let request_of = |message: &fi_msg_atomic| {
        // SAFETY: the caller guarantees that endpoint, message and arrays are valid.
        unsafe {
            let source = only(message.msg_iov, message.desc, message.iov_count)?;
            if message.rma_iov_count != 1 || (*message.rma_iov).count != 1 {
                return Err(FI_EINVAL);
            }
            let fi_rma_ioc { addr, key, .. } = *message.rma_iov;
            request(ep, form, (message.datatype, message.op), [source, compare?, result?], (addr, key))
        }
    };
    // SAFETY: the caller guarantees that endpoint and message are valid.
    unsafe {
        let message = &*message;
        start(ep, message.addr, Flags::Given(flags), message.context, request_of(message))
    }
}

/// Whether an endpoint supports an atomic in the form of these flags (`FI_FETCH_ATOMIC`,
/// `FI_COMPARE_ATOMIC`), and the maximum number of words.
unsafe extern "C" fn is_valid<const FLAGS: u64>(
    ep: *mut fid_ep,
    datatype: fi_datatype,
    op: fi_op,
    count: *mut usize,
) -> c_int {
    // SAFETY: only the table of endpoints contains this function.
    let profile = unsafe { profile_of(ep) };
    if Form::of(FLAGS).and_then(|form| known(profile, form, datatype, op)).is_none() {
        return -FI_EOPNOTSUPP;
    }
    // SAFETY: the caller passes a pointer that is valid for the result.
    unsafe { count.write(1) };
    0
}

/// `fi_query_atomic`.
pub(crate) unsafe extern "C" fn query(
    domain: *mut fid_domain,
    datatype: fi_datatype,
    op: fi_op,
    attributes: *mut fi_atomic_attr,
    flags: u64,
) -> c_int {
    let Some(form) = Form::of(flags) else { return -FI_EINVAL };
    // SAFETY: only the table of domains contains this function.
    let (mut world, id) = unsafe { enter(domain) };
    let profile = at(&mut world.domains, id).profile;
    let Some((kind, _)) = known(profile, form, datatype, op) else { return -FI_EOPNOTSUPP };
    // SAFETY: the caller passes a pointer that is valid for the attributes.
    unsafe { attributes.write(fi_atomic_attr { count: 1, size: kind.bytes() }) };
    0
}
