//! Inquiries about the binary interface, and what it says of Fortran.
//!
//! Invariant: what a Fortran library says of its compiler is said once, and does not change.

use crate::abi::*;
use crate::chapters::errhandler::Handler;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::info::{self, Entries};
use crate::chapters::library::output;
use std::sync::OnceLock;

/// The Fortran types whose sizes the interface asks for, with the sizes that this library has.
const SIZES: [(&str, &str); 4] = [
    ("mpi_logical_size", "4"),
    ("mpi_integer_size", "4"),
    ("mpi_real_size", "4"),
    ("mpi_double_precision_size", "8"),
];

static FORTRAN: OnceLock<Entries> = OnceLock::new();
static BOOLEANS: OnceLock<Booleans> = OnceLock::new();

/// The Fortran logical values.
struct Booleans {
    is_true: Vec<u8>,
    is_false: Vec<u8>,
}

/// `MPI_Abi_get_version`.
pub unsafe fn abi_get_version(major: *mut c_int, minor: *mut c_int) -> Result {
    // SAFETY: the caller's pointers are valid for one value each.
    unsafe {
        output("abi_major", major)?.write(MPI_ABI_VERSION);
        output("abi_minor", minor)?.write(MPI_ABI_SUBVERSION);
    }
    Ok(())
}

/// `MPI_Abi_get_info`: the sizes of the integer types in bytes.
pub unsafe fn abi_get_info(info: *mut MPI_Info) -> Result {
    let size = |bytes: usize| bytes.to_string();
    let entries = Entries::of(&[
        ("mpi_aint_size", &size(size_of::<MPI_Aint>())),
        ("mpi_count_size", &size(size_of::<MPI_Count>())),
        ("mpi_offset_size", &size(size_of::<MPI_Offset>())),
    ]);
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { info::give(entries, info) }
}

/// `MPI_Abi_set_fortran_info`: of a Fortran library, once. The sizes must be those of the datatypes here.
pub unsafe fn abi_set_fortran_info(info: MPI_Info) -> Result {
    let entries = info::find(info)?.entries();
    for (key, expected) in SIZES {
        let Some(found) = entries.get(key) else {
            return Err(Error::new(MPI_ERR_ABI, format!("the info has no key {key}")));
        };
        ensure!(found == expected, MPI_ERR_ABI, "{key} is {found}. This library supports {expected}");
    }
    let is_new = FORTRAN.set(entries).is_ok();
    check_new(is_new, "the properties of Fortran")?;
    Ok(())
}

/// `MPI_Abi_get_fortran_info`: `MPI_INFO_NULL` if nothing was set.
pub unsafe fn abi_get_fortran_info(info: *mut MPI_Info) -> Result {
    let place = output("info", info)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe {
        match FORTRAN.get() {
            Some(entries) => info::give(entries.clone(), place),
            None => {
                place.write(MPI_INFO_NULL);
                Ok(())
            }
        }
    }
}

/// Fails if they were set before. The call returns this error whatever the handler, so that a library can
/// read, before `MPI_Init`, the values of another one.
fn check_new(is_new: bool, what: &str) -> Result {
    if is_new {
        return Ok(());
    }
    let text = format!("{what} are set already. They can be set once");
    Err(Error::new(MPI_ERR_ABI, text).with_handler(Handler::Return))
}

fn checked_size(logical_size: c_int) -> Result<usize> {
    ensure!(
        matches!(logical_size, 1 | 2 | 4 | 8 | 16),
        MPI_ERR_ABI,
        "logical_size is {logical_size}. It is 1, 2, 4, 8 or 16"
    );
    Ok(logical_size as usize)
}

/// `MPI_Abi_set_fortran_booleans`: once.
pub unsafe fn abi_set_fortran_booleans(
    logical_size: c_int,
    logical_true: *mut c_void,
    logical_false: *mut c_void,
) -> Result {
    let bytes = checked_size(logical_size)?;
    let (is_true, is_false) =
        (output("logical_true", logical_true)?, output("logical_false", logical_false)?);
    // SAFETY: the caller's pointers are valid for a logical value of this size.
    let read = |place: *mut c_void| unsafe { std::slice::from_raw_parts(place.cast::<u8>(), bytes) }.to_vec();
    let (is_true, is_false) = (read(is_true), read(is_false));
    ensure!(is_true != is_false, MPI_ERR_ABI, "the values of true and false are equal");
    let is_new = BOOLEANS.set(Booleans { is_true, is_false }).is_ok();
    check_new(is_new, "the logical values of Fortran")?;
    Ok(())
}

/// The values of false and true of a Fortran logical with this many bytes, if they were set. Those of a byte
/// are the values of C's `bool`.
pub fn fortran_booleans(bytes: usize) -> Option<[u128; 2]> {
    let Booleans { is_true, is_false } = BOOLEANS.get().filter(|known| known.is_true.len() == bytes)?;
    let value = |from: &[u8]| {
        let mut all = [0; size_of::<u128>()];
        all[..bytes].copy_from_slice(from);
        u128::from_le_bytes(all)
    };
    (bytes > 1).then(|| [value(is_false), value(is_true)])
}

/// `MPI_Abi_get_fortran_booleans`.
pub unsafe fn abi_get_fortran_booleans(
    logical_size: c_int,
    logical_true: *mut c_void,
    logical_false: *mut c_void,
    is_set: *mut c_int,
) -> Result {
    let (bytes, is_set) = (checked_size(logical_size)?, output("is_set", is_set)?);
    let Some(booleans) = BOOLEANS.get() else {
        // SAFETY: the caller's pointer is valid for one value.
        unsafe { is_set.write(0) };
        return Ok(());
    };
    let has = booleans.is_true.len();
    ensure!(bytes == has, MPI_ERR_ABI, "logical_size is {bytes}, and the logical values have {has} bytes");
    let (is_true, is_false) =
        (output("logical_true", logical_true)?, output("logical_false", logical_false)?);
    // SAFETY: the caller's pointers are valid: two of them for a logical value of this size.
    unsafe {
        is_true.cast::<u8>().copy_from_nonoverlapping(booleans.is_true.as_ptr(), bytes);
        is_false.cast::<u8>().copy_from_nonoverlapping(booleans.is_false.as_ptr(), bytes);
        is_set.write(1);
    }
    Ok(())
}
