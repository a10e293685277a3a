//! Inquiries about windows, and the objects that programs attach to them.

use super::create::ALIGN_BYTES;
use super::{Window, find};
use crate::abi::*;
use crate::chapters::attribute::Attributes;
use crate::chapters::errhandler::{Handler, Takes};
use crate::chapters::error::{On, Result, ensure};
use crate::chapters::info::{self, Hint, MEMORY_KINDS};
use crate::chapters::library::{Mpi, output};
use crate::chapters::memory::ALIGNMENT_KEY;
use crate::chapters::setup::write_text;
use std::ffi::CStr;
use std::sync::{Arc, PoisonError};

/// `MPI_Win_get_group`.
pub unsafe fn win_get_group(_mpi: &Mpi, win: MPI_Win, group: *mut MPI_Group) -> Result {
    let place = output("group", group)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(find(win)?.comm.group.clone().handle()?) };
    Ok(())
}

/// `MPI_Win_set_name`.
pub unsafe fn win_set_name(_mpi: &Mpi, win: MPI_Win, win_name: *const c_char) -> Result {
    let window = find(win)?;
    ensure!(!win_name.is_null(), MPI_ERR_ARG, "win_name is null");
    // SAFETY: the caller's pointer is that of a string.
    let name = unsafe { CStr::from_ptr(win_name) }.to_string_lossy();
    let is_end = |&end: &usize| name.is_char_boundary(end);
    let end = (0..name.len().min(MPI_MAX_OBJECT_NAME as usize - 1) + 1).rev().find(is_end).unwrap_or(0);
    *window.name.lock().unwrap_or_else(PoisonError::into_inner) = name[..end].to_owned();
    Ok(())
}

/// `MPI_Win_get_name`: the null handle has a name as well.
pub unsafe fn win_get_name(_mpi: &Mpi, win: MPI_Win, win_name: *mut c_char, resultlen: *mut c_int) -> Result {
    let name = match win {
        MPI_WIN_NULL => "MPI_WIN_NULL".to_owned(),
        _ => find(win)?.name.lock().unwrap_or_else(PoisonError::into_inner).clone(),
    };
    // SAFETY: the caller guarantees the memory, as this function demands.
    unsafe { write_text(&name, MPI_MAX_OBJECT_NAME, win_name, resultlen) }
}

/// The attributes of a window.
pub fn attributes(win: MPI_Win) -> Result<Arc<Attributes>> {
    Ok(Arc::clone(&find(win)?.attributes))
}

/// The value of an attribute that every window has: `MPI_WIN_BASE` is an address, the others are places of
/// values.
pub fn predefined(win: MPI_Win, keyval: c_int) -> Option<*mut c_void> {
    let all = &find(win).ok()?.predefined;
    Some(match keyval {
        MPI_WIN_BASE => all.base,
        MPI_WIN_SIZE => (&raw const all.size).cast_mut().cast(),
        MPI_WIN_DISP_UNIT => (&raw const all.disp_unit).cast_mut().cast(),
        MPI_WIN_CREATE_FLAVOR => (&raw const all.flavor).cast_mut().cast(),
        MPI_WIN_MODEL => (&raw const all.model).cast_mut().cast(),
        _ => return None,
    })
}

/// The hint whether parts of shared memory need not follow each other.
pub(super) const GAPS_KEY: &str = "alloc_shared_noncontig";

/// Whether a value is `none` or a list of the orders that accumulates may keep: a read or write after a read
/// or write.
fn is_order(value: &str) -> bool {
    value == "none" || value.split(',').all(|order| matches!(order, "rar" | "raw" | "war" | "waw"))
}

/// Whether memory of windows has this alignment: it begins at pages of the pool or of private memory.
fn is_alignment(value: &str) -> bool {
    let bytes = value.parse::<usize>().ok();
    bytes.is_some_and(|bytes| bytes.is_power_of_two() && bytes <= ALIGN_BYTES)
}

impl Window {
    /// Takes the hints of an info object. An alignment that the part of this process has not is ignored:
    /// parts that follow each other in shared memory begin anywhere.
    pub(super) fn accept_hints(&self, info: MPI_Info) -> Result {
        let begin = self.predefined.base.addr();
        let is_aligned = |value: &str| value.parse().is_ok_and(|bytes: usize| begin.is_multiple_of(bytes));
        self.hints.accept_if(info, &HINTS, |hint, value| hint.key != ALIGNMENT_KEY || is_aligned(value))
    }
}

/// The hints of windows. None of them changes what the library does: it keeps more than they require.
pub(super) static HINTS: [Hint; 8] = [
    Hint::truth("no_locks", "false"),
    Hint { key: "accumulate_ordering", default: Some("rar,raw,war,waw"), accepts: is_order },
    Hint {
        key: "accumulate_ops",
        default: Some("same_op_no_op"),
        accepts: |value| matches!(value, "same_op" | "same_op_no_op"),
    },
    Hint::text("mpi_accumulate_granularity", Some("0")),
    Hint::truth("same_size", "false"),
    Hint::truth("same_disp_unit", "false"),
    Hint { key: ALIGNMENT_KEY, default: None, accepts: is_alignment },
    MEMORY_KINDS,
];

/// `MPI_Win_set_info`: hints that the library does not know are ignored.
pub unsafe fn win_set_info(_mpi: &Mpi, win: MPI_Win, info: MPI_Info) -> Result {
    let window = find(win)?;
    info::find(info)?;
    window.accept_hints(info)
}

/// `MPI_Win_get_info`.
pub unsafe fn win_get_info(_mpi: &Mpi, win: MPI_Win, info_used: *mut MPI_Info) -> Result {
    // SAFETY: the caller's pointer is null, or valid for one value.
    unsafe { find(win)?.hints.give(&HINTS, info_used) }
}

/// `MPI_Win_set_errhandler`.
pub unsafe fn win_set_errhandler(_mpi: &Mpi, win: MPI_Win, errhandler: MPI_Errhandler) -> Result {
    find(win)?.errhandler.set(Handler::find(errhandler, Takes::Win)?);
    Ok(())
}

/// `MPI_Win_get_errhandler`.
pub unsafe fn win_get_errhandler(_mpi: &Mpi, win: MPI_Win, errhandler: *mut MPI_Errhandler) -> Result {
    let place = output("errhandler", errhandler)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(find(win)?.errhandler.get().handle_of()?) };
    Ok(())
}

/// `MPI_Win_call_errhandler`.
pub unsafe fn win_call_errhandler(_mpi: &Mpi, win: MPI_Win, errorcode: c_int) -> Result {
    let handler = find(win)?.errhandler.get();
    handler.handle(On::Win(win), errorcode, &format!("MPI_Win_call_errhandler: code {errorcode}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_order;

    #[test]
    fn orders_are_none_or_a_list() {
        for value in ["none", "rar", "war,waw", "waw,raw,war,rar"] {
            assert!(is_order(value), "{value}");
        }
        for value in ["", "some", "rar,none", "raw,", "raw;war", "RAR"] {
            assert!(!is_order(value), "{value}");
        }
    }
}
