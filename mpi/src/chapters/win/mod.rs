//! Windows: one-sided communication.
//!
//! A window has a *part* at each process of its group (`part.rs`). The place of the part of a target decides
//! how operations reach it:
//!
//! | the part lies | puts and gets | accumulates |
//! |---|---|---|
//! | in symmetric memory that is mapped here, or here | loads and stores | the origin's processor |
//! | in private memory of a process of this node | system calls, or a request | the same |
//! | in symmetric memory of another node | puts and gets of the network | a request to the target |
//! | in other private memory | a request to the target | a request to the target |
//!
//! A system call takes about 1 us for each block. Therefore a put, a get or an accumulate of many small
//! blocks in private memory of a process of this node is a request, but only between fences and after
//! `MPI_Win_post`, where the target makes progress soon. In an epoch of a lock the target may compute. Gets
//! of many small blocks over the network are parcels, which need no call of the target.
//!
//! `MPI_Win_allocate` and `MPI_Win_allocate_shared` take the memory from the pool of a PE, which belongs to
//! its symmetric region, while the pool has room. `MPI_Win_create` looks whether the memory lies there.
//!
//! Each process has a *control block* in its pool for each window (`control.rs`): the word of the window's
//! lock, those of the lock of accumulates, and the memory that is attached to a dynamic window. Lock and
//! unlock are atomics on the first, by the processor on mapped memory and by the runtime's atomics on that of
//! other nodes, so that a target takes no part in them. Accumulates of few elements on symmetric memory are
//! atomics of the processor where an element is a word of 4 or 8 bytes and no logical. Other accumulates have
//! the part alone (`exclude.rs`, `apply.rs`). A request to the target is executed in the same way by its
//! processor.
//!
//! Requests are messages in the context of the window (`service.rs`). The target executes those of an origin
//! in their order, in every wait, which keeps the order of accumulates. A flush sends one more request and
//! waits for its reply.
//!
//! Post, start, complete and wait are messages between the processes of the groups. A fence completes all
//! operations of this process, and is a barrier. The memory model is `MPI_WIN_UNIFIED`.
//!
//! Invariant: an operation is started only within an epoch for its target, after all arguments were checked.

mod accumulate;
mod api;
mod apply;
mod arguments;
mod attached;
mod control;
mod create;
mod epoch;
mod exclude;
mod fast;
mod hot;
mod inquiry;
mod lock;
mod part;
mod request;
mod service;
mod shared;
mod synchronize;
mod transfer;
mod way;

pub use accumulate::*;
pub use api::*;
pub use create::*;
pub use inquiry::*;
pub use shared::*;
pub use synchronize::*;

use crate::abi::*;
use crate::chapters::attribute::Attributes;
use crate::chapters::comm::Comm;
use crate::chapters::errhandler::{Handler, HandlerCell};
use crate::chapters::error::{Error, Result};
use crate::chapters::info::Hints;
use crate::chapters::library::Mpi;
use crate::table::{Kind, Table};
use attached::Attached;
use control::{Control, Known};
use epoch::Epoch;
use exclude::Accumulators;
use hot::Record;
use part::Part;
use pelago_fabric::sync::{AtomicBool, AtomicUsize, Ordering};
use service::Service;
use std::sync::{Arc, Mutex, PoisonError};
use transfer::Outstanding;

static WINDOWS: Table<Window> = Table::new(Kind::Win);

/// The values of the predefined attributes, at places that do not move.
struct Predefined {
    base: *mut c_void,
    size: MPI_Aint,
    disp_unit: c_int,
    flavor: c_int,
    model: c_int,
}

/// A window.
pub struct Window {
    /// The part of each process, by rank.
    parts: Box<[Part]>,
    /// The data that its hot calls read.
    record: &'static Record,
    outstanding: Outstanding,
    /// The memory that this process has attached.
    attached: Mutex<Attached>,
    /// The attached memory of each process, as far as it is known here; of a dynamic window.
    known: Box<[Known]>,
    control: Control,
    accumulators: Accumulators,
    epoch: Mutex<Epoch>,
    comm: Comm,
    predefined: Predefined,
    /// Whether parts of shared memory need not follow each other.
    has_gaps: bool,
    /// The block of this PE's pool that belongs to the window: offset and length.
    memory: Option<(usize, usize)>,
    /// Private memory that belongs to the window.
    _private: Option<Private>,
    /// The service of requests to this process, if any process of the window may send some.
    service: Option<Arc<Service>>,
    /// Whether requests may be sent at any time, not only in epochs of fences and posts.
    is_asked: bool,
    /// Whether the service has begun.
    serves: AtomicBool,
    handle: AtomicUsize,
    errhandler: HandlerCell,
    attributes: Arc<Attributes>,
    hints: Hints,
    name: Mutex<String>,
}

// SAFETY: the addresses are those of memory that the standard lets processes share; accesses go through
// `fabric::copy`, atomics and system calls.
unsafe impl Send for Window {}
// SAFETY: as for `Send`, for references as well.
unsafe impl Sync for Window {}

impl Window {
    /// The number of processes.
    fn len(&self) -> usize {
        self.parts.len()
    }

    fn handle(&self) -> MPI_Win {
        MPI_Win(self.handle.load(Ordering::Relaxed))
    }

    fn epoch(&self) -> std::sync::MutexGuard<'_, Epoch> {
        self.epoch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes progress: always if other processes may have sent requests, else now and then. A loop of calls
    /// that are complete at once must serve the requests and messages of others.
    #[inline]
    fn serve(&self, mpi: &Mpi) {
        if self.is_asked || self.record.is_round_due() {
            mpi.core.progress();
        }
    }

    /// Whether targets that system calls reach execute requests soon: not in an epoch of a lock.
    fn may_ask(&self) -> bool {
        self.service.is_some() && !self.record.is_passive.load(Ordering::Relaxed)
    }

    fn is_dynamic(&self) -> bool {
        self.predefined.flavor == MPI_WIN_FLAVOR_DYNAMIC
    }

    /// The rank, if the window has it.
    #[inline]
    fn rank(&self, rank: c_int) -> Result<usize> {
        let n = self.len();
        match usize::try_from(rank) {
            Ok(rank) if rank < n => Ok(rank),
            _ => Err(Error::new(
                MPI_ERR_RANK,
                format!("there is no rank {rank} in the window; ranks are 0 to {}", n - 1),
            )),
        }
    }
}

/// The window with a handle.
#[inline(always)]
fn find(handle: MPI_Win) -> Result<&'static Window> {
    match WINDOWS.get(handle.0) {
        Some(window) => Ok(window),
        None => Err(no_window(handle)),
    }
}

#[cold]
fn no_window(handle: MPI_Win) -> Error {
    let text = match handle {
        MPI_WIN_NULL => "the window is MPI_WIN_NULL",
        _ => "the window was freed, or never was one",
    };
    Error::new(MPI_ERR_WIN, text)
}

/// The error handler of a window.
pub fn handler(handle: MPI_Win) -> Option<Handler> {
    WINDOWS.get(handle.0).map(|window| window.errhandler.get())
}
