//! Operations that can be started.
//!
//! Invariant: all arguments were checked when an operation is prepared; starting it checks nothing.

use super::buffers::{Pack, Unpack};
use crate::abi::*;
use crate::chapters::comm::Comm;
use crate::chapters::data::Data;
use crate::chapters::error::{Error, On, Result, ensure, no_algorithm};
use crate::chapters::library::{Mpi, output};
use crate::chapters::request::{self, Active, Collective};
use pelago_core::message_coll::{
    Exchange, Memory, MessageCall, MessageGroup, Outcome, Shorter, SizeMismatch, Stage, Started, Task,
};
use std::borrow::Borrow;
use std::sync::Arc;

/// An operation that can be started.
#[derive(Default)]
pub struct Prepared {
    pub work: Work,
    /// Memory that lives as long as the operation.
    pub kept: Vec<Data>,
    pub packs: Vec<Pack>,
    pub unpacks: Vec<Unpack>,
}

// SAFETY: it does not change once it is prepared, and the program leaves its buffers to the thread that has
// the operation.
unsafe impl Send for Prepared {}
// SAFETY: what holds for `Send` above holds for `Sync` as well.
unsafe impl Sync for Prepared {}

/// The work of an operation.
#[derive(Default)]
pub enum Work {
    /// Nothing: it is over.
    #[default]
    Nothing,
    /// One call of the local group.
    Call(MessageCall, Memory),
    /// Messages of the local group, under this name.
    Exchange(&'static str, Box<Exchange>),
    /// Calls and exchanges, one after the other.
    Stages(Vec<Stage>),
}

impl Prepared {
    /// Adds a stage.
    pub fn push(&mut self, group: &Arc<MessageGroup>, task: Task) {
        let stage = Stage { group: Arc::clone(group), task, number: None };
        match &mut self.work {
            Work::Stages(stages) => stages.push(stage),
            _ => self.work = Work::Stages(vec![stage]),
        }
    }

    /// Makes an exchange of the local group the whole work.
    pub fn set_exchange(&mut self, name: &'static str, mut exchange: Box<Exchange>) {
        exchange.shorter = self.shorter();
        self.work = Work::Exchange(name, exchange);
    }

    /// Adds an exchange as a stage.
    pub fn push_exchange(&mut self, group: &Arc<MessageGroup>, name: &'static str, mut exchange: Exchange) {
        exchange.shorter = self.shorter();
        self.push(group, Task::Exchange(name, Arc::new(exchange)));
    }

    /// Where an exchange notes messages that are shorter than their receives, if data are unpacked.
    fn shorter(&self) -> Option<Arc<Shorter>> {
        (!self.unpacks.is_empty()).then(Arc::default)
    }

    /// The exchanges of the operation.
    fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        let stages = match &self.work {
            Work::Stages(stages) => &stages[..],
            _ => &[],
        };
        let alone = match &self.work {
            Work::Exchange(_, exchange) => Some(&**exchange),
            _ => None,
        };
        fn of_stage(stage: &Stage) -> Option<&Exchange> {
            match &stage.task {
                Task::Exchange(_, exchange) => Some(exchange),
                Task::Call(..) => None,
            }
        }
        alone.into_iter().chain(stages.iter().filter_map(of_stage))
    }

    /// Gives the operation numbers of its own, so that it can be started in any order with others.
    fn keep_numbers(&mut self, comm: &Comm) {
        self.make_stages(comm);
        if let Work::Stages(stages) = &mut self.work {
            for stage in stages {
                stage.number = Some(stage.group.keep_number());
            }
        }
    }

    /// Makes stages of other work.
    fn make_stages(&mut self, comm: &Comm) {
        match std::mem::take(&mut self.work) {
            Work::Call(call, memory) => self.push(&comm.members, Task::Call(call, memory)),
            Work::Exchange(name, exchange) => {
                self.push(&comm.members, Task::Exchange(name, Arc::from(exchange)));
            }
            work => self.work = work,
        }
    }

    fn pack(&self) {
        for Pack { layout, from, count, into } in &self.packs {
            // SAFETY: who prepared the operation has promised the elements, and there is room for them.
            unsafe { layout.pack(*from, *count, *into) };
        }
        self.exchanges().filter_map(|exchange| exchange.shorter.as_ref()).for_each(|shorter| shorter.clear());
    }

    fn unpack(&self) {
        for Unpack { layout, from, bytes, into } in &self.unpacks {
            let shorter = self.exchanges().filter_map(|exchange| exchange.shorter.as_ref());
            let bytes = shorter.fold(*bytes, |bytes, shorter| shorter.found(*from, bytes));
            // SAFETY: the data live as long as the operation, and who prepared it has promised room for them.
            unsafe { layout.unpack(*from, bytes, *into) };
        }
    }

    /// Does the operation.
    #[inline]
    pub fn run(&self, mpi: &Mpi, comm: &Comm) -> Result {
        self.pack();
        let all = &mpi.core.message_coll;
        // SAFETY: the memory has the bytes of the calls, and the operation is over at return.
        let outcome: Option<Outcome> = unsafe {
            match &self.work {
                Work::Nothing => Some(Ok(())),
                Work::Call(call, memory) => all.run_call(&mpi.core, &comm.members, call, memory),
                Work::Exchange(name, exchange) => {
                    Some(all.run_exchange(&mpi.core, &comm.members, name, exchange))
                }
                Work::Stages(stages) => all.run_stages(&mpi.core, stages),
            }
        };
        ended(comm, outcome)?;
        self.unpack();
        Ok(())
    }

    /// Starts the operation.
    fn start(&self, mpi: &Mpi, comm: &Comm) -> Result<Started> {
        self.pack();
        let all = &mpi.core.message_coll;
        // SAFETY: the memory has the bytes of the calls, and the program keeps it until the end.
        let started = unsafe {
            match &self.work {
                Work::Nothing => return Ok(Started::Over(Ok(()))),
                Work::Call(call, memory) => all.start_call(&mpi.core, &comm.members, call, memory.clone()),
                Work::Exchange(..) => unreachable!("an operation that starts has its exchange in a stage"),
                Work::Stages(stages) => all.start_stages(&mpi.core, stages),
            }
        };
        started.ok_or_else(no_algorithm)
    }
}

/// The result of an operation that is over.
#[inline]
pub fn ended(comm: &Comm, outcome: Option<Outcome>) -> Result {
    outcome.ok_or_else(no_algorithm)?.map_err(|mismatch| mismatched(comm, mismatch))
}

/// The operation of a request that was started. Its data live until the end, if they are unpacked then.
fn active(started: Started, prepared: impl Borrow<Prepared> + 'static) -> Active {
    match started {
        Started::Over(outcome) => {
            prepared.borrow().unpack();
            Active::Done(request::Outcome::of_collective(outcome.is_ok()))
        }
        Started::Pending(pending) => {
            let has_end = !prepared.borrow().kept.is_empty() || !prepared.borrow().unpacks.is_empty();
            let end = move || {
                prepared.borrow().unpack();
                Ok(())
            };
            let finish = has_end.then(|| Box::new(end) as Box<dyn FnOnce() -> Result>);
            Active::Collective(Box::new(Collective { pending, finish }))
        }
    }
}

/// Starts an operation, and gives its request to the program.
///
/// # Safety
/// The place is valid for one value.
pub unsafe fn give(mpi: &Mpi, handle: MPI_Comm, mut prepared: Prepared, place: *mut MPI_Request) -> Result {
    let comm = mpi.comm(handle)?;
    if let Work::Exchange(..) = prepared.work {
        prepared.make_stages(comm);
    }
    let started = prepared.start(mpi, comm)?;
    let active = active(started, prepared);
    // SAFETY: the caller promises what this function requires.
    unsafe { place.write(request::started(active, On::Comm(handle))?) };
    Ok(())
}

/// Gives the program a request by which it can start an operation again and again.
///
/// # Safety
/// The place is valid for one value.
pub unsafe fn give_persistent(
    mpi: &Mpi,
    handle: MPI_Comm,
    mut prepared: Prepared,
    place: *mut MPI_Request,
) -> Result {
    let comm = mpi.share_comm(handle)?;
    prepared.keep_numbers(&comm);
    let prepared = Arc::new(prepared);
    let start = move |mpi: &Mpi| {
        let started = prepared.start(mpi, &comm)?;
        Ok(active(started, Arc::clone(&prepared)))
    };
    // SAFETY: the caller promises what this function requires.
    unsafe { place.write(request::persistent(On::Comm(handle), start)?) };
    Ok(())
}

/// The place of a request.
pub fn request_place(request: *mut MPI_Request) -> Result<*mut MPI_Request> {
    output("request", request)
}

#[cold]
fn mismatched(comm: &Comm, SizeMismatch { pe, expected, found }: SizeMismatch) -> Error {
    let of = |group: &crate::chapters::group::Group| group.rank_of(pe);
    let remote = || comm.remote.as_ref().and_then(of).map(|rank| format!("rank {rank} of the remote group"));
    let whose = of(&comm.group).map(|rank| format!("rank {rank}")).or_else(remote);
    let whose = whose.unwrap_or_else(|| format!("PE {pe}"));
    Error::new(
        MPI_ERR_TRUNCATE,
        format!(
            "{whose} has sent {found} bytes where {expected} were expected. Give the same sizes at all \
             members"
        ),
    )
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
