//! Virtual topologies: which members of a communicator are neighbours.
//!
//! Invariant: a communicator gets its topology when it is made, and keeps it. Ranks are not reordered.

mod array;
mod cart;
mod dims;
mod dist_graph;
mod graph;

pub use cart::*;
pub use dims::dims_create;
pub use dist_graph::*;
pub use graph::*;

use crate::abi::*;
use crate::chapters::comm::{Agreed, Comm, give};
use crate::chapters::error::{Error, Result};
use crate::chapters::group::Group;
use crate::chapters::library::{Mpi, output};

/// The topology of a communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    Cart(Cart),
    Graph(Graph),
    DistGraph(DistGraph),
}

impl Topology {
    /// The sources and the destinations of a rank, in the order in which operations with neighbours take
    /// them. `MPI_PROC_NULL` stands for the missing neighbours at the border of a grid. Of a distributed
    /// graph a process knows only its own.
    pub fn neighbours(&self, rank: usize) -> (Vec<c_int>, Vec<c_int>) {
        match self {
            Topology::Cart(cart) => {
                let near = cart.neighbours(rank);
                (near.clone(), near)
            }
            Topology::Graph(graph) => {
                let near = graph.neighbours(rank).to_vec();
                (near.clone(), near)
            }
            Topology::DistGraph(graph) => (graph.sources.clone(), graph.destinations.clone()),
        }
    }
}

/// The error of a call for another topology than that of the communicator.
#[cold]
fn other_topology(comm: &Comm, needed: &str) -> Error {
    let has = match comm.topology.get() {
        None => "no topology",
        Some(Topology::Cart(_)) => "a Cartesian topology",
        Some(Topology::Graph(_)) => "a graph topology",
        Some(Topology::DistGraph(_)) => "a distributed graph topology",
    };
    Error::new(MPI_ERR_TOPOLOGY, format!("the communicator has {has}; the call needs {needed}"))
}

/// Gives the first `n` members a communicator with this topology, and the others none.
///
/// # Safety
/// The place is valid for one value.
unsafe fn give_first(
    mpi: &Mpi,
    comm: &Comm,
    agreed: &Agreed,
    (n, topology): (usize, Topology),
    place: *mut MPI_Comm,
) -> Result {
    let made = (comm.my_rank() < n).then(|| {
        let group = Group::of(&comm.group.pes()[..n], mpi.core.my_pe());
        with_topology(comm.child(mpi, agreed.context(), group, None), topology)
    });
    // SAFETY: the caller passes places and arrays that are valid, or null.
    unsafe { give(made, place) }
}

/// A new communicator, with this topology.
fn with_topology(comm: Comm, topology: Topology) -> Comm {
    comm.topology.get_or_init(|| topology);
    comm
}

/// `MPI_Topo_test`.
pub unsafe fn topo_test(mpi: &Mpi, comm: MPI_Comm, status: *mut c_int) -> Result {
    let kind = match mpi.comm(comm)?.topology.get() {
        None => MPI_UNDEFINED,
        Some(Topology::Cart(_)) => MPI_CART,
        Some(Topology::Graph(_)) => MPI_GRAPH,
        Some(Topology::DistGraph(_)) => MPI_DIST_GRAPH,
    };
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("status", status)?.write(kind) };
    Ok(())
}
