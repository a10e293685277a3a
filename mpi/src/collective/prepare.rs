//! Operations with their data in one piece.

use crate::abi::*;
use crate::comm::Comm;
use crate::datatype;
use crate::error::{Error, On, Result, ensure};
use crate::library::{Mpi, output};
use crate::p2p::{bytes_of, outgoing, packed};
use crate::request::{self, Active, Collective};
use pelago_core::coll::reduction::Combiner;
use pelago_core::message_coll::{Exchange, Memory, MessageCall, Pending, SizeMismatch};
use std::ptr::null_mut;
use std::sync::Arc;

/// An operation that can be started.
pub struct Prepared {
    pub work: Work,
    pub memory: Memory,
    target_bytes: usize,
    /// Memory that lives as long as the operation.
    pub kept: Vec<Box<[u8]>>,
    /// What is done with the result at the end.
    pub finish: Option<Box<dyn FnOnce() -> Result>>,
}

/// What an operation does.
pub enum Work {
    /// Nothing: it is over.
    Nothing,
    /// An operation whose blocks have one size.
    Call(MessageCall),
    /// Messages of any size.
    Exchange(&'static str, Exchange),
}

impl Prepared {
    /// An operation without data of its own.
    pub fn new(work: Work) -> Prepared {
        let memory = Memory { source: null_mut(), target: null_mut(), combiner: None };
        Prepared { work, memory, target_bytes: 0, kept: Vec::new(), finish: None }
    }

    /// With these elements as its source; returns their length in bytes.
    ///
    /// # Safety
    /// The buffer has the elements, until the operation is over.
    pub unsafe fn source(&mut self, mpi: &Mpi, elements: Elements) -> Result<usize> {
        let datatype = mpi.datatype(elements.datatype)?;
        // SAFETY: the caller's promise.
        let data = unsafe { outgoing(elements.buffer, elements.count, datatype)? };
        let (start, bytes) = data.data();
        self.memory.source = start;
        self.kept.extend(data.kept());
        Ok(bytes)
    }

    /// With room for these elements as its target; returns its length in bytes. The data that are there now
    /// are kept if `has_data`.
    ///
    /// # Safety
    /// The buffer has room for the elements, until the operation is over.
    pub unsafe fn target(&mut self, mpi: &Mpi, elements: Elements, has_data: bool) -> Result<usize> {
        let Elements { buffer, count, datatype: handle } = elements;
        let layout = mpi.datatype(handle)?;
        let bytes = bytes_of(count, layout)?;
        self.target_bytes = bytes;
        if let Some(offset) = layout.run(count as usize) {
            self.memory.target = buffer.cast::<u8>().cast_mut().wrapping_offset(offset);
            return Ok(bytes);
        }
        let (layout, buffer) = (datatype::share(handle)?, buffer.cast::<u8>().cast_mut());
        let mut data = match has_data {
            // SAFETY: the caller promises the elements.
            true => unsafe { packed(buffer, count as usize, &layout) },
            false => vec![0u8; bytes].into_boxed_slice(),
        };
        let start = data.as_mut_ptr();
        self.memory.target = start;
        self.kept.push(data);
        self.finish_with(move || {
            // SAFETY: the data live as long as the operation, and the caller promises room for them.
            unsafe { layout.unpack(start, bytes, buffer) };
            Ok(())
        });
        Ok(bytes)
    }

    /// The target is the source as well.
    pub fn set_in_place(&mut self) {
        self.memory.source = self.memory.target;
    }

    /// Copies the source if it overlaps the target: schedules write the target while they read the source.
    /// All members have the operation in the form that is not in place, whatever they pass, because the
    /// forms have different schedules.
    pub fn keep_source_apart(&mut self, bytes: usize) {
        let (source, target) = (self.memory.source, self.memory.target);
        if target.is_null() || bytes == 0 {
            return;
        }
        if self.target_bytes > 0
            && (source as usize) < target as usize + self.target_bytes
            && (target as usize) < source as usize + bytes
        {
            // SAFETY: the source has this many bytes.
            let copy: Box<[u8]> = unsafe { std::slice::from_raw_parts(source, bytes) }.into();
            self.memory.source = copy.as_ptr();
            self.kept.push(copy);
        }
    }

    /// With memory as its target whose contents nobody needs.
    pub fn discard_target(&mut self, bytes: usize) {
        let mut data = vec![0u8; bytes].into_boxed_slice();
        self.memory.target = data.as_mut_ptr();
        self.target_bytes = bytes;
        self.kept.push(data);
    }

    /// What is done at the end, after what was to be done before.
    pub fn finish_with(&mut self, finish: impl FnOnce() -> Result + 'static) {
        let before = self.finish.take();
        self.finish = Some(Box::new(move || {
            before.map_or(Ok(()), |before| before())?;
            finish()
        }));
    }

    /// Combines elements by this operation.
    pub fn combines(&mut self, combiner: Combiner) {
        self.memory.combiner = Some(combiner);
    }

    /// Starts the operation; `None` if it is over already.
    fn start(&self, mpi: &Mpi, comm: &Comm) -> Result<Option<Arc<Pending>>> {
        let memory = self.memory.clone();
        // SAFETY: the memory has the bytes of the call, and the caller keeps it until the operation is over.
        unsafe {
            match &self.work {
                Work::Nothing => Ok(None),
                Work::Call(call) => {
                    let pending = mpi.core.message_coll.start_call(&mpi.core, &comm.members, call, memory);
                    pending.map(Some).ok_or_else(no_algorithm)
                }
                Work::Exchange(name, exchange) => Ok(Some(mpi.core.message_coll.start_exchange(
                    &mpi.core,
                    &comm.members,
                    (name, exchange),
                    memory,
                ))),
            }
        }
    }

    /// Does the operation.
    pub fn run(self, mpi: &Mpi, comm: &Comm) -> Result {
        let outcome = match &self.work {
            Work::Call(call) => {
                let (all, group, memory) = (&mpi.core.message_coll, &comm.members, self.memory.clone());
                // SAFETY: the memory has the bytes of the call, and the operation is over at return.
                unsafe { all.run_call(&mpi.core, group, call, memory) }.ok_or_else(no_algorithm)?
            }
            _ => self.start(mpi, comm)?.map_or(Ok(()), |pending| pending.wait(&mpi.core)),
        };
        outcome.map_err(|mismatch| mismatched(comm, mismatch))?;
        self.finish.map_or(Ok(()), |finish| finish())
    }

    /// Starts the operation for a request.
    pub fn begin(self, mpi: &Mpi, comm: &Comm) -> Result<Active> {
        let pending = self.start(mpi, comm)?;
        let Prepared { kept, finish, .. } = self;
        let Some(pending) = pending else {
            finish.map_or(Ok(()), |finish| finish())?;
            return Ok(Active::Done(request::Outcome::EMPTY));
        };
        let finish = move || {
            let done = finish.map_or(Ok(()), |finish| finish());
            drop(kept);
            done
        };
        Ok(Active::Collective(Box::new(Collective { pending, finish: Some(Box::new(finish)) })))
    }
}

#[cold]
fn no_algorithm() -> Error {
    Error::new(
        MPI_ERR_UNSUPPORTED_OPERATION,
        "no algorithm can do this (`pelago coll list`); unset PELAGO_DETERMINISTIC",
    )
}

#[cold]
fn mismatched(comm: &Comm, SizeMismatch { pe, expected, found }: SizeMismatch) -> Error {
    let rank = comm.group.rank_of(pe).map_or(-1, |rank| rank as c_int);
    Error::new(
        MPI_ERR_TRUNCATE,
        format!(
            "rank {rank} has sent {found} bytes where {expected} were expected. All members must give the same sizes"
        ),
    )
}

/// Elements of a buffer.
#[derive(Clone, Copy)]
pub struct Elements {
    pub buffer: *const c_void,
    pub count: i64,
    pub datatype: MPI_Datatype,
}

impl Elements {
    /// `n` times as many.
    pub fn times(self, n: usize) -> Elements {
        Elements { count: self.count.saturating_mul(n as i64), ..self }
    }

    /// Those of block `number`, where each block has this many.
    pub fn block(self, mpi: &Mpi, number: usize) -> Result<Elements> {
        let extent = mpi.datatype(self.datatype)?.extent();
        let distance = (number as isize).wrapping_mul(self.count as isize).wrapping_mul(extent);
        Ok(Elements { buffer: self.buffer.wrapping_byte_offset(distance), ..self })
    }

    pub fn is_in_place(&self) -> bool {
        self.buffer == MPI_IN_PLACE.cast_const()
    }
}

/// The root of an operation, if there is such a rank.
pub fn root_of(comm: &Comm, root: c_int) -> Result<usize> {
    let n = comm.len();
    ensure!(
        root >= 0 && (root as usize) < n,
        MPI_ERR_ROOT,
        "the root is rank {root}, but the communicator has ranks 0 to {}",
        n - 1
    );
    Ok(root as usize)
}

/// Starts an operation, and gives its request to the program.
///
/// # Safety
/// The place is null or valid for one value.
pub unsafe fn give(mpi: &Mpi, handle: MPI_Comm, prepared: Prepared, request: *mut MPI_Request) -> Result {
    let place = output("request", request)?;
    let comm = mpi.comm(handle)?;
    let active = prepared.begin(mpi, comm)?;
    // SAFETY: the caller's promise.
    unsafe { place.write(request::started(active, On::Comm(handle))?) };
    Ok(())
}
