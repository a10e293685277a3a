//! Opening, closing and deleting files.
//!
//! Invariant: only the first process creates a file, and the others open it then. All processes learn
//! whether all could open it.

use super::agree::{agree, agree_on_same};
use super::inquiry::{HINTS, permissions};
use super::view::View;
use super::{DEFAULT, FILES, File, find, mode, system};
use crate::abi::*;
use crate::chapters::comm::Comm;
use crate::chapters::errhandler::HandlerCell;
use crate::chapters::error::{Error, On, Result, ensure};
use crate::chapters::info::{self, Hints};
use crate::chapters::library::{Mpi, output};
use crate::chapters::pool_word::PoolWord;
use pelago_fabric::sync::AtomicBool;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of the shared file pointer in the pool.
const POINTER_BYTES: usize = 8;

/// Errors of calls without a file go to the handler of `MPI_FILE_NULL`.
fn on_null(error: Error) -> Error {
    error.on(On::File(MPI_FILE_NULL))
}

/// The name of a file.
unsafe fn path_of<'a>(filename: *const c_char) -> Result<&'a Path> {
    ensure!(!filename.is_null(), MPI_ERR_BAD_FILE, "filename is null. Give the name of a file");
    // SAFETY: the caller's pointer is that of a string.
    let name = unsafe { CStr::from_ptr(filename) };
    ensure!(!name.is_empty(), MPI_ERR_BAD_FILE, "filename is empty. Give the name of a file");
    Ok(Path::new(OsStr::from_bytes(name.to_bytes())))
}

/// `MPI_File_open`.
pub unsafe fn file_open(
    mpi: &Mpi,
    comm: MPI_Comm,
    filename: *const c_char,
    amode: c_int,
    info: MPI_Info,
    fh: *mut MPI_File,
) -> Result {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { open_collectively(mpi, comm, filename, amode, info, fh) }.map_err(on_null)
}

unsafe fn open_collectively(
    mpi: &Mpi,
    comm: MPI_Comm,
    filename: *const c_char,
    amode: c_int,
    info: MPI_Info,
    fh: *mut MPI_File,
) -> Result {
    let comm = mpi.comm(comm)?;
    comm.check_intra()?;
    let hints = Hints::default();
    let arguments = || {
        output("fh", fh)?;
        mode::check(amode)?;
        info::given(info)?;
        hints.accept(info, &HINTS)?;
        // SAFETY: the caller's pointer is null, or that of a string.
        unsafe { path_of(filename) }
    };
    let path = arguments();
    let told = match &path {
        Ok(_) => Ok([amode as u64, 0]),
        Err(error) => Err(error.copy()),
    };
    agree_on_same(mpi, comm, told, "amode")?;
    let path = path?;
    let everywhere = open_everywhere(mpi, comm, path, (amode, permissions(&hints)))?;
    let own = Comm::new(everywhere.context, comm.group.clone(), None, |pe| mpi.core.node(pe));
    let file = opened(own, path.to_owned(), amode, everywhere, hints)?;
    let handle = FILES.insert(Arc::new(file));
    let handle = handle.ok_or_else(|| Error::new(MPI_ERR_NO_MEM, "there are too many files. Close some"))?;
    // SAFETY: the caller's pointer is valid for one value; it is not null.
    unsafe { fh.write(MPI_File(handle)) };
    Ok(())
}

/// The results of opening a file.
struct Everywhere {
    system: std::fs::File,
    /// The shared file pointer.
    shared: PoolWord,
    /// The context of a communicator for the file.
    context: u64,
    /// The first position of the file pointers.
    start: i64,
}

/// Opens a file at the first process, which may create it, and then at the others.
fn open_everywhere(
    mpi: &Mpi,
    comm: &Comm,
    path: &Path,
    (amode, permissions): (c_int, u32),
) -> Result<Everywhere> {
    let is_first = comm.my_rank() == 0;
    let mut system: Result<Option<std::fs::File>> =
        is_first.then(|| system::open(path, amode, true, permissions)).transpose();
    let pointer = if is_first { mpi.core.pool_alloc(POINTER_BYTES) } else { None };
    let give_up = |error: Error| {
        pointer.iter().for_each(|&offset| mpi.core.pool_free(offset, POINTER_BYTES));
        // The error of another process does not name the file.
        let is_own = error.text().contains(&format!("{path:?}"));
        if is_own { error } else { Error::new(error.code(), format!("opening {path:?}: {}", error.text())) }
    };
    let mine = match &system {
        Err(error) => Err(error.copy()),
        Ok(_) if is_first && pointer.is_none() => Err(Error::new(
            MPI_ERR_NO_MEM,
            "there is no room for the shared file pointer. Set PELAGO_POOL_SIZE to a larger size",
        )),
        Ok(_) => mpi.new_context().map(|context| [context, pointer.unwrap_or(0) as u64]),
    };
    let [context, offset] = agree(mpi, comm, mine).map_err(give_up)?[0];
    if !is_first {
        system = system::open(path, amode, false, permissions).map(Some);
    }
    let shared =
        PoolWord { operation: "shared file pointer", pe: comm.group.pes()[0], offset: offset as usize };
    let mine = system.and_then(|system| {
        let system = system.ok_or_else(|| Error::new(MPI_ERR_INTERN, "the file was not opened"))?;
        let start = if amode & MPI_MODE_APPEND != 0 { size_of_file(&system, path)? } else { 0 };
        if is_first {
            shared.fetch_add(mpi, start as u64);
        }
        Ok((system, start))
    });
    let told = match &mine {
        Err(error) => Err(error.copy()),
        Ok((_, start)) => Ok([*start as u64, 0]),
    };
    let start = agree(mpi, comm, told).map_err(give_up)?[0][0] as i64;
    let (system, _) = mine?;
    Ok(Everywhere { system, shared, context, start })
}

/// The bytes of a file.
pub fn size_of_file(system: &std::fs::File, path: &Path) -> Result<i64> {
    let found = system.metadata().map_err(|error| system::failed("looking at", path, &error))?;
    Ok(found.len() as i64)
}

/// A file in its first state: in append mode the file pointers are at its end.
fn opened(
    comm: Comm,
    path: PathBuf,
    amode: c_int,
    Everywhere { system, shared, start, .. }: Everywhere,
    hints: Hints,
) -> Result<File> {
    hints.put("filename", &path.to_string_lossy());
    let handler = *DEFAULT.lock().unwrap_or_else(PoisonError::into_inner);
    let file = File {
        system,
        path,
        amode,
        comm,
        view: Mutex::new(Arc::new(View::first()?)),
        position: Mutex::new(start),
        shared,
        is_atomic: AtomicBool::new(false),
        is_in_pieces: AtomicBool::new(false),
        atomic_access: Mutex::default(),
        buffers: Mutex::default(),
        is_dirty: AtomicBool::new(false),
        split: Mutex::new(None),
        errhandler: HandlerCell::new(handler),
        hints,
    };
    Ok(file)
}

/// `MPI_File_close`: written data are on the device at its end.
pub unsafe fn file_close(mpi: &Mpi, fh: *mut MPI_File) -> Result {
    let place = output("fh", fh).map_err(on_null)?;
    // SAFETY: the caller's pointer is valid for one value.
    let handle = unsafe { place.read() };
    let closed = find(handle).and_then(|_| {
        let closed = close(mpi, handle);
        if find(handle).is_err() {
            // Also if the file could not be deleted.
            // SAFETY: the caller's pointer is valid, as for the read above.
            unsafe { place.write(MPI_FILE_NULL) };
        }
        closed
    });
    closed.map_err(|error| error.on(On::File(handle)))
}

fn close(mpi: &Mpi, handle: MPI_File) -> Result {
    let file = find(handle)?;
    let is_temporary = file.amode & MPI_MODE_DELETE_ON_CLOSE != 0;
    let mine = file.check_no_split().and_then(|()| if is_temporary { Ok(()) } else { file.to_device() });
    // Afterwards no process uses the shared file pointer any more.
    agree(mpi, &file.comm, mine.map(|()| [0; 2]))?;
    let is_first = file.comm.my_rank() == 0;
    let mut removed = Ok(());
    if is_first {
        mpi.core.pool_free(file.shared.offset, POINTER_BYTES);
        if is_temporary {
            removed = remove(&file.path);
        }
    }
    let outcome = match is_temporary {
        true => agree(mpi, &file.comm, removed.map(|()| [0; 2])).map(drop),
        false => Ok(()),
    };
    FILES.remove(handle.0);
    outcome
}

fn remove(path: &Path) -> Result {
    std::fs::remove_file(path).map_err(|error| system::failed("deleting", path, &error))
}

/// `MPI_File_delete`.
pub unsafe fn file_delete(_mpi: &Mpi, filename: *const c_char, info: MPI_Info) -> Result {
    let delete = || {
        info::given(info)?;
        // SAFETY: the caller's pointer is null, or that of a string.
        remove(unsafe { path_of(filename)? })
    };
    delete().map_err(on_null)
}
