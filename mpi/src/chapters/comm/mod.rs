//! Communicators: a group, a context, and what programs attach to them.
//!
//! Invariant: no two communicators that are alive in the job have the same context. Messages of the program
//! use the context, collective operations the one with bit 0 set. The groups of an inter-communicator have no
//! member in common.

mod agree;
mod create;
mod duplicate;
mod exchange;
mod inquiry;
mod inter;
mod leave;
mod link;
mod meet;
mod port;
mod split_type;

pub use agree::{Agreed, agree, digest};
pub use create::*;
pub use duplicate::*;
pub use exchange::{exchange, exchange_known, exchange_lists};
pub use inquiry::*;
pub use inter::*;
pub use leave::*;
pub use meet::{Words, barrier, gather, gather_words};
pub use port::*;
pub use split_type::*;

use crate::abi::*;
use crate::chapters::attribute::{Attributes, Object};
use crate::chapters::errhandler::{Handler, HandlerCell};
use crate::chapters::error::{Error, Result};
use crate::chapters::group::Group;
use crate::chapters::info::Hints;
use crate::chapters::library::{COLLECTIVE, EVERYONE, Mpi};
use crate::chapters::p2p::Place;
use crate::chapters::topology::Topology;
use crate::table::{Kind, Table};
use pelago_core::Pe;
use pelago_core::memory::members::Members;
use pelago_core::message_coll::MessageGroup;
use pelago_core::msg::envelope::Context;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

static COMMS: Table<Comm> = Table::new(Kind::Comm);

/// A communicator.
pub struct Comm {
    /// Of messages of the program. Its lowest three bits are clear.
    pub context: u64,
    pub group: Group,
    /// The other group of an inter-communicator.
    pub remote: Option<Group>,
    /// The local group as the collective operations see it.
    pub members: Arc<MessageGroup>,
    pub errhandler: HandlerCell,
    pub attributes: Attributes,
    pub hints: Hints,
    /// The buffer for buffered sends.
    pub attached: Place,
    /// Of a communicator with a topology.
    pub topology: OnceLock<Topology>,
    /// All members of an inter-communicator.
    union: OnceLock<Arc<MessageGroup>>,
    name: Mutex<String>,
}

impl Comm {
    /// The communicator with this context. This PE is in the group.
    pub fn new(context: u64, group: Group, remote: Option<Group>, node: impl Fn(Pe) -> u32) -> Comm {
        let members = group.members().expect("the group of a communicator has members").clone();
        let me = group.my_rank().expect("this PE is in the group");
        let members = MessageGroup::new(Context(context | COLLECTIVE), members, me, node);
        Comm {
            context,
            group,
            remote,
            members: Arc::new(members),
            errhandler: HandlerCell::new(Handler::First),
            attributes: Attributes::default(),
            hints: Hints::default(),
            attached: Place::default(),
            topology: OnceLock::new(),
            union: OnceLock::new(),
            name: Mutex::default(),
        }
    }

    /// A communicator that members of this one make, with its error handler.
    pub fn child(&self, mpi: &Mpi, context: u64, group: Group, remote: Option<Group>) -> Comm {
        let group = group.of_session(self.group.session);
        let remote = remote.map(|remote| remote.of_session(self.group.session));
        let child = Comm::new(context, group, remote, |pe| mpi.core.node(pe));
        child.errhandler.set(self.errhandler.get());
        child
    }

    /// Fails if it is an inter-communicator.
    pub fn check_intra(&self) -> Result {
        match &self.remote {
            None => Ok(()),
            Some(_) => Err(Error::new(
                MPI_ERR_COMM,
                "the communicator is an inter-communicator. MPI_Intercomm_merge makes one of one group",
            )),
        }
    }

    /// Fails unless it is an inter-communicator; else its remote group.
    pub fn check_inter(&self) -> Result<&Group> {
        self.remote.as_ref().ok_or_else(|| {
            Error::new(MPI_ERR_COMM, "the communicator is no inter-communicator, which this call needs")
        })
    }

    /// Ranks of the local group.
    #[inline]
    pub fn len(&self) -> usize {
        self.group.len()
    }

    #[inline]
    pub fn my_rank(&self) -> usize {
        self.members.me
    }

    /// Whether the local group comes before the remote one, where all members are in one order. The same
    /// at all of them.
    pub fn is_first(&self) -> bool {
        self.remote.as_ref().is_none_or(|remote| self.group.pe(0) < remote.pe(0))
    }

    /// All members: those of the local group, or of both groups in one order.
    pub fn everyone(&self, node: impl Fn(Pe) -> u32) -> &Arc<MessageGroup> {
        let Some(remote) = &self.remote else { return &self.members };
        self.union.get_or_init(|| {
            let (local, remote, me) = (self.group.pes(), remote.pes(), self.my_rank());
            let (pes, me) = match self.is_first() {
                true => ([local, remote].concat(), me),
                false => ([&remote[..], &local[..]].concat(), remote.len() + me),
            };
            let context = Context(self.context | EVERYONE | COLLECTIVE);
            Arc::new(MessageGroup::new(context, Members::of(&pes), me, node))
        })
    }

    /// The group that destinations and sources are ranks of.
    #[inline]
    pub fn peers(&self) -> &Group {
        self.remote.as_ref().unwrap_or(&self.group)
    }

    /// The PE of a destination or source.
    #[inline]
    pub fn peer(&self, rank: c_int) -> Result<Pe> {
        self.peers().pe(rank).ok_or_else(|| self.no_rank(rank))
    }

    #[cold]
    fn no_rank(&self, rank: c_int) -> Error {
        let n = self.peers().len();
        let ranks =
            if n == 1 { "the only rank is 0".to_owned() } else { format!("ranks are 0 to {}", n - 1) };
        Error::new(
            MPI_ERR_RANK,
            format!("there is no rank {rank} in a communicator of {n} processes; {ranks}"),
        )
    }

    /// The rank of the PE that a message comes from.
    #[inline]
    pub fn source_rank(&self, pe: Pe) -> c_int {
        self.peers().rank_of(pe).map_or(MPI_UNDEFINED, |rank| rank as c_int)
    }

    pub fn set_name(&self, name: &str) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name.to_owned();
    }

    pub fn name(&self) -> String {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The communicator with a handle that is not one of the constants.
#[inline]
pub fn find(handle: MPI_Comm) -> Result<&'static Comm> {
    COMMS.get(handle.0).ok_or_else(|| no_comm(handle))
}

/// A communicator that an operation keeps. The predefined ones live as long as the process: no share of them
/// is counted.
#[derive(Clone)]
pub enum KeptComm {
    Predefined(&'static Comm),
    Shared(Arc<Comm>),
}

impl Deref for KeptComm {
    type Target = Comm;

    #[inline]
    fn deref(&self) -> &Comm {
        match self {
            KeptComm::Predefined(comm) => comm,
            KeptComm::Shared(comm) => comm,
        }
    }
}

/// A share of it.
pub fn share(handle: MPI_Comm) -> Result<Arc<Comm>> {
    COMMS.share(handle.0).ok_or_else(|| no_comm(handle))
}

#[cold]
fn no_comm(handle: MPI_Comm) -> Error {
    let text = match handle {
        MPI_COMM_NULL => "the communicator is MPI_COMM_NULL",
        _ => "the communicator was freed, or never was one",
    };
    Error::new(MPI_ERR_COMM, text)
}

/// The handlers of communicators that were freed while operations on them were under way, by handle.
static FREED: Mutex<BTreeMap<usize, Handler>> = Mutex::new(BTreeMap::new());

fn freed() -> MutexGuard<'static, BTreeMap<usize, Handler>> {
    FREED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error handler of a communicator.
pub fn handler(handle: MPI_Comm) -> Option<Handler> {
    let mpi = crate::chapters::library::get()?;
    let handler = mpi.comm(handle).ok().map(|comm| comm.errhandler.get());
    handler.or_else(|| freed().get(&handle.0).copied())
}

/// Calls the delete functions of the attributes of `MPI_COMM_SELF`, before the end, and of `MPI_COMM_WORLD`.
pub fn delete_own_attributes(mpi: &Mpi) -> Result {
    mpi.own.attributes.delete_all(Object::Comm(MPI_COMM_SELF))?;
    mpi.world.attributes.delete_all(Object::Comm(MPI_COMM_WORLD))
}
