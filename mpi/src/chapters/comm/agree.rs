//! The words that all members of a communicator tell each other before they make another one.
//!
//! Invariant: a member whose arguments are wrong takes part and says so. Then the call fails at all members,
//! and no one waits for a member that has given up.

use super::{Comm, check_room};
use crate::abi::*;
use crate::chapters::error::{Error, Result, no_algorithm};
use crate::chapters::library::Mpi;
use pelago_core::coll::shape::Operation;
use pelago_core::message_coll::{Memory, MessageCall, Outcome, Pending, Stage, Started, Task};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The words of one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Told {
    /// The code of its error, or 0.
    error: u64,
    /// A context that it has to give.
    pub context: u64,
    /// The rest that the call needs.
    pub words: [u64; 2],
}

impl Told {
    /// The color in the first word.
    pub fn color(&self) -> c_int {
        self.words[0] as u32 as c_int
    }
}

/// The words of all members, by rank in their group.
pub struct Agreed {
    pub local: Vec<Told>,
    pub remote: Vec<Told>,
    is_first: bool,
}

impl Agreed {
    /// The context for a communicator of the same members.
    pub fn context(&self) -> u64 {
        if self.is_first { self.local[0].context } else { self.remote[0].context }
    }

    /// Fails unless all members have told the same second word.
    pub fn check_same(&self, what: &str) -> Result {
        let all = || self.local.iter().chain(&self.remote);
        let first = self.local[0].words[1];
        match all().all(|told| told.words[1] == first) {
            true => Ok(()),
            false => Err(Error::new(MPI_ERR_ARG, format!("not all members have given the same {what}"))),
        }
    }
}

/// An agreement, and the memory that it needs while it is under way.
pub struct Agreement {
    mine: Box<Told>,
    all: Vec<Told>,
    error: Option<Error>,
}

impl Agreement {
    /// That of these words, or of an error.
    pub fn new(mpi: &Mpi, comm: &Comm, mine: Result<[u64; 2]>) -> Agreement {
        let mine = mine.and_then(|words| check_room().map(|()| words));
        let mine = mine.and_then(|words| Ok((mpi.new_context()?, words)));
        let n = comm.everyone(|pe| mpi.core.node(pe)).len();
        let (told, error) = match mine {
            Ok((context, words)) => (Told { error: 0, context, words }, None),
            Err(error) => (Told { error: u64::from(error.code() as u32), ..Told::default() }, Some(error)),
        };
        Agreement { mine: Box::new(told), all: vec![Told::default(); n], error }
    }

    /// The error of this member.
    pub fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    fn memory(&mut self) -> Memory {
        let source = (&raw const *self.mine).cast();
        Memory { source, target: self.all.as_mut_ptr().cast(), combiner: None }
    }

    /// Starts it. It stays in memory until the operation is over.
    pub fn start(&mut self, mpi: &Mpi, comm: &Comm) -> Result<Arc<Pending>> {
        let (group, memory) = (comm.everyone(|pe| mpi.core.node(pe)), self.memory());
        let call = MessageCall::of_bytes(Operation::AllGather, 0, size_of::<Told>());
        let stage = Stage { group: Arc::clone(group), task: Task::Call(call, memory), number: None };
        // SAFETY: the memory has the bytes of the call, and the caller keeps it.
        let started = unsafe { mpi.core.message_coll.start_stages(&mpi.core, &[stage]) };
        started.map(Started::pending).ok_or_else(no_algorithm)
    }

    /// The words of all, after the end.
    pub fn outcome(self, comm: &Comm) -> Result<Agreed> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let (n, is_first) = (comm.len(), comm.is_first());
        let (local, remote) = match is_first {
            true => self.all.split_at(n),
            false => {
                let (remote, local) = self.all.split_at(self.all.len() - n);
                (local, remote)
            }
        };
        for (whose, all) in [("", local), (" of the remote group", remote)] {
            if let Some(rank) = all.iter().position(|told| told.error != 0) {
                let code = all[rank].error as u32 as c_int;
                let text = format!("rank {rank}{whose} has failed in it, so that all members fail");
                return Err(Error::new(code, text));
            }
        }
        Ok(Agreed { local: local.to_vec(), remote: remote.to_vec(), is_first })
    }
}

/// Tells all members these words, or that this one fails: what they have told. The call fails at all members
/// if it fails at one.
pub fn agree(mpi: &Mpi, comm: &Comm, mine: Result<[u64; 2]>) -> Result<Agreed> {
    let mut agreement = Agreement::new(mpi, comm, mine);
    let (group, memory) = (comm.everyone(|pe| mpi.core.node(pe)), agreement.memory());
    let call = MessageCall::of_bytes(Operation::AllGather, 0, size_of::<Told>());
    // SAFETY: the memory has the bytes of the call, and the operation is over at return.
    let outcome = unsafe { mpi.core.message_coll.run_call(&mpi.core, group, &call, &memory) };
    checked(outcome)?;
    agreement.outcome(comm)
}

/// The result of an operation that all members must call.
pub(super) fn checked(outcome: Option<Outcome>) -> Result {
    outcome.ok_or_else(no_algorithm)?.map_err(|_| {
        Error::new(MPI_ERR_OTHER, "the members have called different collective operations at the same time")
    })
}

/// A number that follows from the arguments that all members must give alike.
pub fn digest(arguments: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    arguments.hash(&mut hasher);
    hasher.finish()
}
