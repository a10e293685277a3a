//! Texts of numbers: `fi_strerror`, `fi_tostr_r`.
//!
//! Invariant: names are those of the constants of libfabric's headers.

use crate::fake_libfabric::address::FORMAT;
use libc::{c_char, c_int, c_void};
use pelago_fabric::ofi::sys::*;
use std::ffi::CStr;

pub(crate) extern "C" fn fi_strerror(error: c_int) -> *const c_char {
    words(error).as_ptr()
}

pub(crate) unsafe extern "C" fn fi_tostr_r(
    buffer: *mut c_char,
    bytes: usize,
    data: *const c_void,
    kind: fi_type,
) -> *mut c_char {
    // SAFETY: the caller guarantees that the data have the type that it names, and that the buffer is valid.
    unsafe { write(buffer, bytes, &value(data, kind)) };
    buffer
}

/// Writes a text with a zero at its end, truncated to the length of the buffer.
///
/// # Safety
/// `buffer` has `bytes` bytes.
pub(crate) unsafe fn write(buffer: *mut c_char, bytes: usize, text: &str) {
    let Some(room) = bytes.checked_sub(1) else { return };
    let count = text.len().min(room);
    // SAFETY: the caller guarantees that the buffer is valid, and the text with a zero fits into it.
    unsafe {
        buffer.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), count);
        buffer.add(count).write(0);
    }
}

/// The texts of libfabric's errors, and of the system's errors that occur here.
fn words(code: c_int) -> &'static CStr {
    match code.checked_abs().unwrap_or(c_int::MAX) {
        FI_SUCCESS => c"Success",
        FI_EAGAIN => c"Resource temporarily unavailable",
        FI_EACCES => c"Permission denied",
        FI_EBUSY => c"Device or resource busy",
        FI_ENODEV => c"No such device",
        FI_EINVAL => c"Invalid argument",
        FI_EIO => c"Input/output error",
        FI_ENOSYS => c"Function not implemented",
        FI_ENODATA => c"No data available",
        FI_EMSGSIZE => c"Message too long",
        FI_ENOPROTOOPT => c"Protocol not available",
        FI_EOPNOTSUPP => c"Operation not supported",
        FI_ECONNRESET => c"Connection reset by peer",
        FI_ETIMEDOUT => c"Connection timed out",
        FI_EKEYREJECTED => c"Key was rejected by service",
        FI_ECANCELED => c"Operation canceled",
        libc::EFAULT => c"Bad address",
        FI_EOTHER => c"Unspecified error",
        FI_ETOOSMALL => c"Provided buffer is too small",
        FI_EOPBADSTATE => c"Operation not permitted in current state",
        FI_EAVAIL => c"Error available",
        FI_EBADFLAGS => c"Flags not supported",
        FI_ENOCQ => c"Missing or unavailable completion queue",
        FI_ETRUNC => c"Truncation error",
        FI_ENOKEY => c"Required key not available",
        FI_ENOAV => c"Missing or unavailable address vector",
        _ => c"Unknown error",
    }
}

macro_rules! names {
    ($($name:ident)+) => { [$((stringify!($name), $name as u64)),+] };
}

/// The text of a value.
///
/// # Safety
/// `data` points to a value of the type `kind` (`FI_TYPE_*`).
unsafe fn value(data: *const c_void, kind: fi_type) -> String {
    // SAFETY: the caller guarantees that the data have the type that `fi_tostr(3)` names for each kind.
    unsafe {
        match kind {
            FI_TYPE_INFO => entry(&*data.cast::<fi_info>()),
            FI_TYPE_CAPS => caps(*data.cast::<u64>()),
            FI_TYPE_MODE => mode(*data.cast::<u64>()),
            FI_TYPE_MR_MODE => mr_mode(*data.cast::<c_int>()),
            FI_TYPE_EP_TYPE => {
                let names = names!(FI_EP_UNSPEC FI_EP_MSG FI_EP_DGRAM FI_EP_RDM);
                one(&names, (*data.cast::<fi_ep_type>()).into())
            }
            FI_TYPE_ADDR_FORMAT => address_format(*data.cast::<u32>()).to_owned(),
            _ => "Unknown type".to_owned(),
        }
    }
}

fn one(names: &[(&str, u64)], number: u64) -> String {
    let found = names.iter().find(|(_, known)| *known == number);
    found.map_or_else(|| "Unknown".to_owned(), |(name, _)| (*name).to_owned())
}

fn bits(names: &[(&str, u64)], bits: u64) -> String {
    let set: Vec<_> = names.iter().filter(|(_, bit)| bits & bit != 0).map(|(name, _)| *name).collect();
    format!("[ {} ]", set.join(", "))
}

fn caps(caps: u64) -> String {
    let names = names!(
        FI_MSG FI_RMA FI_TAGGED FI_ATOMIC FI_MULTICAST FI_COLLECTIVE FI_READ FI_WRITE FI_RECV FI_SEND
        FI_REMOTE_READ FI_REMOTE_WRITE FI_MULTI_RECV FI_LOCAL_COMM FI_REMOTE_COMM
    );
    bits(&names, caps)
}

fn mode(mode: u64) -> String {
    bits(&names!(FI_CONTEXT FI_MSG_PREFIX FI_ASYNC_IOV FI_RX_CQ_DATA FI_LOCAL_MR FI_CONTEXT2), mode)
}

fn mr_mode(mode: c_int) -> String {
    let names = names!(
        FI_MR_BASIC FI_MR_SCALABLE FI_MR_LOCAL FI_MR_RAW FI_MR_VIRT_ADDR FI_MR_ALLOCATED FI_MR_PROV_KEY
        FI_MR_MMU_NOTIFY FI_MR_RMA_EVENT FI_MR_ENDPOINT FI_MR_HMEM FI_MR_COLLECTIVE
    );
    bits(&names, mode as u64)
}

fn address_format(format: u32) -> &'static str {
    match format {
        FI_FORMAT_UNSPEC => "FI_FORMAT_UNSPEC",
        FORMAT => "FI_ADDR_FAKE",
        _ => "Unknown",
    }
}

/// # Safety
/// The entry is of this library, and so has all attributes.
unsafe fn entry(info: &fi_info) -> String {
    // SAFETY: the caller guarantees that the attributes and their strings are valid.
    unsafe {
        let (domain, fabric) = (&*info.domain_attr, &*info.fabric_attr);
        let name =
            |text| super::info::text(text).map_or("".into(), |name| name.to_string_lossy().into_owned());
        format!(
            "fi_info:\n    caps: {}\n    mode: {}\n    addr_format: {}\n    domain: {}\n    mr_mode: {}\n    \
             fabric: {}\n    prov_name: {}\n",
            caps(info.caps),
            mode(info.mode),
            address_format(info.addr_format),
            name(domain.name),
            mr_mode(domain.mr_mode),
            name(fabric.name),
            name(fabric.prov_name),
        )
    }
}
