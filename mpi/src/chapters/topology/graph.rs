//! Graphs that every process knows as a whole.
//!
//! Invariant: `index` does not decrease, its last number is that of the edges, and every edge leads to a
//! node.

use super::{Topology, array, give_first, other_topology};
use crate::abi::*;
use crate::chapters::comm::{Comm, agree, clear, digest};
use crate::chapters::error::{Result, ensure};
use crate::chapters::library::{Mpi, output};

/// A graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Graph {
    index: Vec<c_int>,
    edges: Vec<c_int>,
}

impl Graph {
    /// The neighbours of a rank.
    pub(super) fn neighbours(&self, rank: usize) -> &[c_int] {
        let start = if rank == 0 { 0 } else { self.index[rank - 1] };
        &self.edges[start as usize..self.index[rank] as usize]
    }

    /// The graph that the program describes, if `n` processes are enough for it.
    unsafe fn read(nnodes: c_int, index: *const c_int, edges: *const c_int, n: usize) -> Result<Graph> {
        let nodes = array::length("nnodes", nnodes)?;
        ensure!(nodes <= n, MPI_ERR_ARG, "nnodes is {nnodes}, but the communicator has {n} processes");
        // SAFETY: the caller's array has this many numbers.
        let index = unsafe { array::read("index", index, nodes)? };
        ensure!(
            index.first().is_none_or(|&first| first >= 0) && index.is_sorted(),
            MPI_ERR_ARG,
            "index is {index:?}; its numbers begin at 0 or above and do not decrease"
        );
        let n_edges = index.last().copied().unwrap_or(0) as usize;
        // SAFETY: the caller passes places and arrays that are valid, or null.
        let edges = unsafe { array::read("edges", edges, n_edges)? };
        let bad = edges.iter().find(|&&edge| edge < 0 || edge >= nnodes);
        ensure!(
            bad.is_none(),
            MPI_ERR_ARG,
            "edges has {}, but there are {nnodes} nodes, which are numbered from 0",
            bad.unwrap_or(&0)
        );
        Ok(Graph { index, edges })
    }

    /// The graph of a communicator.
    fn of(comm: &Comm) -> Result<&Graph> {
        match comm.topology.get() {
            Some(Topology::Graph(graph)) => Ok(graph),
            _ => Err(other_topology(comm, "a graph topology")),
        }
    }
}

/// `MPI_Graph_create`.
pub unsafe fn graph_create(
    mpi: &Mpi,
    comm_old: MPI_Comm,
    nnodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    _reorder: c_int,
    comm_graph: *mut MPI_Comm,
) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(comm_graph) };
    let comm = mpi.comm(comm_old)?;
    let mut graph = Graph::default();
    let mut check = || {
        comm.check_intra()?;
        output("comm_graph", comm_graph)?;
        // SAFETY: the caller passes places and arrays that are valid, or null.
        graph = unsafe { Graph::read(nnodes, index, edges, comm.len())? };
        Ok([0, digest(&graph)])
    };
    let agreed = agree(mpi, comm, check())?;
    agreed.check_same("graph")?;
    let n = graph.index.len();
    // SAFETY: the caller's pointer is valid for one value, and was not null.
    unsafe { give_first(mpi, comm, &agreed, (n, Topology::Graph(graph)), comm_graph) }
}

/// `MPI_Graphdims_get`.
pub unsafe fn graphdims_get(mpi: &Mpi, comm: MPI_Comm, nnodes: *mut c_int, nedges: *mut c_int) -> Result {
    let graph = Graph::of(mpi.comm(comm)?)?;
    // SAFETY: the caller's pointers are valid for one value each.
    unsafe {
        output("nnodes", nnodes)?.write(graph.index.len() as c_int);
        output("nedges", nedges)?.write(graph.edges.len() as c_int);
    }
    Ok(())
}

/// `MPI_Graph_get`.
pub unsafe fn graph_get(
    mpi: &Mpi,
    comm: MPI_Comm,
    maxindex: c_int,
    maxedges: c_int,
    index: *mut c_int,
    edges: *mut c_int,
) -> Result {
    let graph = Graph::of(mpi.comm(comm)?)?;
    array::check_room("maxindex", maxindex, graph.index.len())?;
    array::check_room("maxedges", maxedges, graph.edges.len())?;
    // SAFETY: the caller's arrays have room for the numbers.
    unsafe {
        array::write("index", index, graph.index.iter().copied())?;
        array::write("edges", edges, graph.edges.iter().copied())
    }
}

/// `MPI_Graph_neighbors_count`.
pub unsafe fn graph_neighbors_count(
    mpi: &Mpi,
    comm: MPI_Comm,
    rank: c_int,
    nneighbors: *mut c_int,
) -> Result {
    let comm = mpi.comm(comm)?;
    let graph = Graph::of(comm)?;
    comm.peer(rank)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("nneighbors", nneighbors)?.write(graph.neighbours(rank as usize).len() as c_int) };
    Ok(())
}

/// `MPI_Graph_neighbors`.
pub unsafe fn graph_neighbors(
    mpi: &Mpi,
    comm: MPI_Comm,
    rank: c_int,
    maxneighbors: c_int,
    neighbors: *mut c_int,
) -> Result {
    let comm = mpi.comm(comm)?;
    let graph = Graph::of(comm)?;
    comm.peer(rank)?;
    let near = graph.neighbours(rank as usize);
    array::check_room("maxneighbors", maxneighbors, near.len())?;
    // SAFETY: the caller's array has room for the numbers.
    unsafe { array::write("neighbors", neighbors, near.iter().copied()) }
}

/// `MPI_Graph_map`.
pub unsafe fn graph_map(
    mpi: &Mpi,
    comm: MPI_Comm,
    nnodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    newrank: *mut c_int,
) -> Result {
    let comm = mpi.comm(comm)?;
    comm.check_intra()?;
    // SAFETY: the caller passes places and arrays that are valid, or null.
    let graph = unsafe { Graph::read(nnodes, index, edges, comm.len())? };
    let me = comm.my_rank();
    let rank = if me < graph.index.len() { me as c_int } else { MPI_UNDEFINED };
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("newrank", newrank)?.write(rank) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(index: &[c_int], edges: &[c_int]) -> Result<Graph> {
        // SAFETY: the arrays have the numbers that the index says.
        unsafe { Graph::read(index.len() as c_int, index.as_ptr(), edges.as_ptr(), 4) }
    }

    #[test]
    fn neighbours_are_the_edges_of_a_node() {
        let graph = read(&[2, 3, 3, 5], &[1, 3, 0, 0, 3]).unwrap();
        let all: Vec<&[c_int]> = (0..4).map(|rank| graph.neighbours(rank)).collect();
        assert_eq!(all, [&[1, 3][..], &[0], &[], &[0, 3]]);
    }

    #[test]
    fn graphs_that_are_none_are_refused() {
        assert!(read(&[1, 0], &[0]).is_err(), "the index decreases");
        assert!(read(&[-1, 0], &[]).is_err(), "an index below 0");
        assert!(read(&[1, 2], &[1, 2]).is_err(), "an edge to no node");
        assert!(read(&[0; 5], &[]).is_err(), "more nodes than processes");
    }
}
