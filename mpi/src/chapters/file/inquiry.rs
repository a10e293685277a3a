//! Inquiries about files: group, access mode, info, error handlers.

use super::windows::{Buffering, Use};
use super::{DEFAULT, find, handler};
use crate::abi::*;
use crate::chapters::comm::barrier;
use crate::chapters::errhandler::{Handler, Takes};
use crate::chapters::error::{Error, On, Result};
use crate::chapters::info::{self, Hint, Hints, MEMORY_KINDS};
use crate::chapters::library::{Mpi, output};
use std::sync::PoisonError;

/// The room for the name of a data representation, with its end.
pub const MAX_DATAREP: usize = MPI_MAX_DATAREP_STRING as usize;

/// The permissions of a file that is created, less those that the process masks.
const PERMISSIONS: u32 = 0o666;

/// Whether a text is a number of permissions.
fn is_permissions(text: &str) -> bool {
    u32::from_str_radix(text, 8).is_ok_and(|bits| bits <= 0o7777)
}

/// The least and the most bytes of a window of collective buffering.
const WINDOW_BYTES: [u64; 2] = [4096, 1 << 30];
/// The most aggregators of a file that has no hint.
const AGGREGATORS: u64 = 8;

/// Whether a text is a number of things of which there is at least one.
fn is_positive(text: &str) -> bool {
    text.parse::<u64>().is_ok_and(|number| number > 0)
}

/// The hints of files. Of those of the standard, the library follows `file_perm` and those of collective
/// buffering; the others are for systems with striped files.
pub(super) static HINTS: [Hint; 7] = [
    Hint { key: "file_perm", default: None, accepts: is_permissions },
    Hint { key: "collective_buffering", default: None, accepts: |text| matches!(text, "true" | "false") },
    Hint { key: "cb_buffer_size", default: Some("1048576"), accepts: is_positive },
    Hint { key: "cb_nodes", default: None, accepts: is_positive },
    Hint::text("access_style", None),
    Hint::text("nb_proc", None),
    MEMORY_KINDS,
];

/// Collective buffering of a file of `n` processes.
pub fn buffering(hints: &Hints, n: usize) -> Buffering {
    let given = hints.entries(&HINTS);
    let number = |key| given.get(key).and_then(|text| text.parse::<u64>().ok());
    let [least, most] = WINDOW_BYTES;
    Buffering {
        use_of: match given.get("collective_buffering").as_deref() {
            Some("true") => Use::Always,
            Some(_) => Use::Never,
            None => Use::Automatic,
        },
        aggregators: number("cb_nodes").unwrap_or(AGGREGATORS).min(n as u64),
        window_bytes: number("cb_buffer_size").unwrap_or(least).clamp(least, most),
    }
}

/// The permissions of a file with these hints that is created.
pub fn permissions(hints: &Hints) -> u32 {
    let given = hints.entries(&HINTS).get("file_perm");
    given.and_then(|text| u32::from_str_radix(&text, 8).ok()).unwrap_or(PERMISSIONS)
}

/// `MPI_File_get_group`.
pub unsafe fn file_get_group(_mpi: &Mpi, fh: MPI_File, group: *mut MPI_Group) -> Result {
    let place = output("group", group)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(find(fh)?.comm.group.clone().handle()?) };
    Ok(())
}

/// `MPI_File_get_amode`.
pub unsafe fn file_get_amode(_mpi: &Mpi, fh: MPI_File, amode: *mut c_int) -> Result {
    let (file, place) = (find(fh)?, output("amode", amode)?);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(file.amode) };
    Ok(())
}

/// `MPI_File_set_info`: hints that the library does not know are ignored.
pub unsafe fn file_set_info(mpi: &Mpi, fh: MPI_File, given: MPI_Info) -> Result {
    let file = find(fh)?;
    let accepted = info::find(given).and_then(|_| file.hints.accept(given, &HINTS));
    barrier(mpi, &file.comm)?;
    accepted
}

/// `MPI_File_get_info`.
pub unsafe fn file_get_info(_mpi: &Mpi, fh: MPI_File, info_used: *mut MPI_Info) -> Result {
    // SAFETY: the caller's pointer is null, or valid for one value.
    unsafe { find(fh)?.hints.give(&HINTS, info_used) }
}

/// `MPI_File_set_errhandler`: that of `MPI_FILE_NULL` is the one that files are opened with.
pub unsafe fn file_set_errhandler(_mpi: &Mpi, file: MPI_File, errhandler: MPI_Errhandler) -> Result {
    let handler = Handler::find(errhandler, Takes::File)?;
    match file {
        MPI_FILE_NULL => *DEFAULT.lock().unwrap_or_else(PoisonError::into_inner) = handler,
        _ => find(file)?.errhandler.set(handler),
    }
    Ok(())
}

/// The handler of a file or of `MPI_FILE_NULL`.
fn handler_of(file: MPI_File) -> Result<Handler> {
    if file != MPI_FILE_NULL {
        find(file)?;
    }
    handler(file).ok_or_else(|| Error::new(MPI_ERR_FILE, "the file has no error handler"))
}

/// `MPI_File_get_errhandler`.
pub unsafe fn file_get_errhandler(_mpi: &Mpi, file: MPI_File, errhandler: *mut MPI_Errhandler) -> Result {
    let place = output("errhandler", errhandler)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(handler_of(file)?.handle_of()?) };
    Ok(())
}

/// `MPI_File_call_errhandler`.
pub unsafe fn file_call_errhandler(_mpi: &Mpi, fh: MPI_File, errorcode: c_int) -> Result {
    let text = format!("MPI_File_call_errhandler: code {errorcode}");
    handler_of(fh)?.handle(On::File(fh), errorcode, &text);
    Ok(())
}
