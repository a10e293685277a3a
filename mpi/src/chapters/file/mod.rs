//! Files: MPI I/O on POSIX files.
//!
//! A file is opened by all processes of a communicator. Each has a descriptor of its own, a *view* (`view`)
//! that maps its data to bytes of the file, and a file pointer. The shared file pointer is a word in the
//! pool of the first process (`shared`), which all change by atomics of the runtime: no lock, no file beside
//! the file, and no process that must answer.
//!
//! Data are read and written during the call, at the places that the view gives (`access`). A blocking
//! collective access to small pieces is buffered (`buffering`): the processes send each other their data, so
//! that the file is accessed in large pieces. In other collective accesses each process does its own part.
//! Non-blocking accesses are complete when they return, and split ones when their first half returns. Nothing
//! is cached here, so that a write is seen by every later read on the same machine.
//!
//! Invariant: a collective call for which processes wait tells the others whether it fails (`agree`), so that
//! it fails at all of them with the same class. Those are all collective calls but accesses that are not
//! ordered and not buffered: the non-blocking ones, those in atomic mode, and those where the pieces of the
//! views are contiguous or too far apart. They may fail alone.

mod access;
mod agree;
mod atomicity;
mod buffering;
mod collective;
mod coverage;
mod data;
mod datarep;
mod independent;
mod inquiry;
mod mode;
mod open;
mod pieces;
mod pointer;
mod run;
mod shared;
mod size;
mod split;
mod system;
mod view;
mod windows;

pub use atomicity::*;
pub use collective::*;
pub use datarep::register_datarep;
pub use independent::*;
pub use inquiry::*;
pub use open::*;
pub use pointer::*;
pub use shared::*;
pub use size::*;
pub use split::*;
pub use view::{file_get_byte_offset, file_get_type_extent, file_get_view, file_set_view};

use crate::abi::*;
use crate::chapters::comm::Comm;
use crate::chapters::errhandler::{Handler, HandlerCell};
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::info::Hints;
use crate::chapters::pool_word::PoolWord;
use crate::table::{Kind, Table};
use buffering::Buffers;
use pelago_fabric::sync::{AtomicBool, Ordering};
use split::Split;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use view::View;

static FILES: Table<File> = Table::new(Kind::File);

/// The handler that files are opened with, and that gets the errors of calls without a file: that of
/// `MPI_FILE_NULL`.
static DEFAULT: Mutex<Handler> = Mutex::new(Handler::Return);

/// A file that is open.
pub struct File {
    system: std::fs::File,
    path: PathBuf,
    amode: c_int,
    comm: Comm,
    view: Mutex<Arc<View>>,
    /// The individual file pointer, in etypes. It is locked while an access moves it.
    position: Mutex<i64>,
    /// The shared file pointer, in etypes.
    shared: PoolWord,
    is_atomic: AtomicBool,
    /// Whether the view of some process lies in pieces, and all views are in order. It is the same at all.
    is_in_pieces: AtomicBool,
    /// Excludes the threads of this process from each other in atomic mode.
    atomic_access: Mutex<()>,
    /// The memory of buffered accesses.
    buffers: Mutex<Buffers>,
    /// Whether data were written that may not be on the device.
    is_dirty: AtomicBool,
    /// The split collective access that has begun.
    split: Mutex<Option<Split>>,
    errhandler: HandlerCell,
    hints: Hints,
}

impl File {
    fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn position(&self) -> MutexGuard<'_, i64> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn split(&self) -> MutexGuard<'_, Option<Split>> {
        self.split.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn buffers(&self) -> MutexGuard<'_, Buffers> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_atomic(&self) -> bool {
        self.is_atomic.load(Ordering::Relaxed)
    }

    /// Fails if the file was opened for sequential access, where there are no positions.
    fn check_positions(&self) -> Result {
        ensure!(
            self.amode & MPI_MODE_SEQUENTIAL == 0,
            MPI_ERR_UNSUPPORTED_OPERATION,
            "the file was opened with MPI_MODE_SEQUENTIAL, which permits accesses by the shared file pointer \
             alone"
        );
        Ok(())
    }

    /// Fails if the file is open for reading alone.
    fn check_writable(&self) -> Result {
        ensure!(
            self.amode & MPI_MODE_RDONLY == 0,
            MPI_ERR_READ_ONLY,
            "the file was opened with MPI_MODE_RDONLY. Open it with MPI_MODE_RDWR or MPI_MODE_WRONLY"
        );
        Ok(())
    }

    /// Fails while a split collective access is under way.
    fn check_no_split(&self) -> Result {
        match &*self.split() {
            None => Ok(()),
            Some(split) => Err(Error::new(
                MPI_ERR_OTHER,
                format!("{}_begin is under way on the file. Call {0}_end first", split.call()),
            )),
        }
    }
}

/// The file with a handle.
fn find(handle: MPI_File) -> Result<&'static File> {
    FILES.get(handle.0).ok_or_else(|| {
        let text = match handle {
            MPI_FILE_NULL => "the file is MPI_FILE_NULL",
            _ => "the file was closed, or never was one",
        };
        Error::new(MPI_ERR_FILE, text)
    })
}

/// The error handler of a file; that of `MPI_FILE_NULL` gets the errors of handles that are no files.
pub fn handler(handle: MPI_File) -> Option<Handler> {
    let own = FILES.get(handle.0).map(|file| file.errhandler.get());
    Some(own.unwrap_or_else(|| *DEFAULT.lock().unwrap_or_else(PoisonError::into_inner)))
}
