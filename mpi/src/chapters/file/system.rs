//! The system calls on files.
//!
//! Invariant: a call that a signal interrupts is made again, and one that moves a part of the data goes on
//! with the rest.

use crate::abi::*;
use crate::chapters::error::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The error class of an error of the system.
pub fn class_of(error: &io::Error) -> c_int {
    match error.raw_os_error().unwrap_or(0) {
        libc::ENOENT => MPI_ERR_NO_SUCH_FILE,
        libc::EEXIST => MPI_ERR_FILE_EXISTS,
        libc::EACCES | libc::EPERM => MPI_ERR_ACCESS,
        libc::EROFS => MPI_ERR_READ_ONLY,
        libc::ENOSPC | libc::EFBIG => MPI_ERR_NO_SPACE,
        libc::EDQUOT => MPI_ERR_QUOTA,
        libc::ENAMETOOLONG | libc::EISDIR | libc::ENOTDIR | libc::ELOOP => MPI_ERR_BAD_FILE,
        libc::ETXTBSY | libc::EBUSY => MPI_ERR_FILE_IN_USE,
        libc::EFAULT => MPI_ERR_BUFFER,
        libc::ENOMEM => MPI_ERR_NO_MEM,
        libc::ESPIPE | libc::EOPNOTSUPP | libc::ENOSYS => MPI_ERR_UNSUPPORTED_OPERATION,
        _ => MPI_ERR_IO,
    }
}

/// The error of a system call on a file, with a remedy.
#[cold]
pub fn failed(what: &str, path: &Path, error: &io::Error) -> Error {
    let remedy = match error.raw_os_error().unwrap_or(0) {
        libc::ENOENT => ". MPI_MODE_CREATE creates a file; the folder must exist",
        libc::EEXIST => ". Without MPI_MODE_EXCL the file that is there is opened",
        libc::EISDIR => ". Give the name of a file",
        libc::ESPIPE => ". It has no positions, which MPI's files need",
        libc::EFAULT => ". The buffer is not memory of the program",
        _ => "",
    };
    Error::new(class_of(error), format!("{what} {path:?}: {error}{remedy}"))
}

/// Opens a file by an access mode of MPI. Only the process that creates it says so.
pub fn open(path: &Path, amode: c_int, may_create: bool, permissions: u32) -> Result<File> {
    let is_writer = amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR) != 0;
    let mut options = OpenOptions::new();
    options.read(amode & MPI_MODE_WRONLY == 0).write(is_writer).mode(permissions);
    if may_create && amode & MPI_MODE_CREATE != 0 {
        options.create(true).create_new(amode & MPI_MODE_EXCL != 0);
    }
    let opened = retried(|| options.open(path)).and_then(|file| {
        let is_folder = file.metadata()?.is_dir();
        if is_folder { Err(io::Error::from_raw_os_error(libc::EISDIR)) } else { Ok(file) }
    });
    opened.map_err(|error| failed("opening", path, &error))
}

/// Makes a call again while a signal interrupts it.
pub fn retried<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn checked(moved: isize) -> io::Result<usize> {
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// Reads until the end of the range or of the file: the bytes that were read.
///
/// # Safety
/// There is room for as many bytes.
pub unsafe fn read_at(file: &File, position: i64, into: *mut u8, bytes: usize) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes {
        let at = position + done as i64;
        // SAFETY: the caller promises room for the rest of the bytes.
        let read = || unsafe {
            let into = into.wrapping_add(done).cast();
            checked(libc::pread(file.as_raw_fd(), into, bytes - done, at))
        };
        match retried(read)? {
            0 => break,
            n => done += n,
        }
    }
    Ok(done)
}

/// Writes all bytes.
///
/// # Safety
/// There are as many.
pub unsafe fn write_at(file: &File, position: i64, from: *const u8, bytes: usize) -> io::Result<()> {
    let mut done = 0;
    while done < bytes {
        let at = position + done as i64;
        // SAFETY: the caller promises the rest of the bytes.
        let write = || unsafe {
            let from = from.wrapping_add(done).cast();
            checked(libc::pwrite(file.as_raw_fd(), from, bytes - done, at))
        };
        match retried(write)? {
            0 => return Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            n => done += n,
        }
    }
    Ok(())
}

/// Reserves the space for the first bytes of a file, which becomes no shorter.
pub fn reserve(file: &File, bytes: i64) -> io::Result<()> {
    retried(|| {
        // SAFETY: the call takes numbers alone. It returns the number of the error.
        let error = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes) };
        if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
    })
}

/// A lock on a range of a file, until it is dropped.
///
/// It belongs to the open file rather than to the process, so that two handles of one process exclude each
/// other as well.
pub struct RangeLock<'a> {
    file: &'a File,
    range: (i64, i64),
}

impl RangeLock<'_> {
    /// Waits for the lock: a shared one for reads, an exclusive one for writes.
    pub fn take(file: &File, range: (i64, i64), is_exclusive: bool) -> io::Result<RangeLock<'_>> {
        let kind = if is_exclusive { libc::F_WRLCK } else { libc::F_RDLCK };
        retried(|| set_lock(file, range, kind))?;
        Ok(RangeLock { file, range })
    }
}

impl Drop for RangeLock<'_> {
    fn drop(&mut self) {
        let released = retried(|| set_lock(self.file, self.range, libc::F_UNLCK));
        debug_assert!(released.is_ok(), "a lock that was taken can be released");
    }
}

fn set_lock(file: &File, (start, bytes): (i64, i64), kind: c_int) -> io::Result<()> {
    let lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: bytes,
        l_pid: 0,
    };
    // SAFETY: the struct is valid for the duration of the call.
    let outcome = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLKW, &raw const lock) };
    if outcome == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
