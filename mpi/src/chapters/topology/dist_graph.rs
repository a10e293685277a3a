//! Graphs of which each process knows its own edges.
//!
//! Invariant: there is a weight for each edge, or none for any edge of the whole graph.

use super::{Topology, array, other_topology, with_topology};
use crate::abi::*;
use crate::chapters::comm::{Agreed, Comm, agree, check_info, clear, exchange_lists, give};
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::{Mpi, output};

/// The edges of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistGraph {
    pub(super) sources: Vec<c_int>,
    pub(super) destinations: Vec<c_int>,
    /// The weights of the edges from sources and to destinations.
    weights: Option<[Vec<c_int>; 2]>,
}

/// A process says about weights one of these, as bits, so that the statements of many can be united.
const HAS_WEIGHTS: u64 = 1;
const HAS_NONE: u64 = 2;
/// The process has no edges, but has given an array of weights.
const WOULD_HAVE: u64 = 4;

/// The weights of `n` edges, and what the process says by them.
unsafe fn read_weights(name: &str, weights: *const c_int, n: usize) -> Result<(Vec<c_int>, u64)> {
    if weights == MPI_UNWEIGHTED.cast_const() {
        return Ok((vec![0; n], if n > 0 { HAS_NONE } else { 0 }));
    }
    if n == 0 {
        return Ok((Vec::new(), WOULD_HAVE));
    }
    ensure!(
        weights != MPI_WEIGHTS_EMPTY.cast_const(),
        MPI_ERR_ARG,
        "{name} is MPI_WEIGHTS_EMPTY, but there are {n} edges. Give their weights"
    );
    // SAFETY: the caller passes places and arrays that are valid, or null.
    let all = unsafe { array::read(name, weights, n)? };
    let bad = all.iter().find(|&&weight| weight < 0);
    ensure!(bad.is_none(), MPI_ERR_ARG, "{name} has {}, which is negative", bad.unwrap_or(&0));
    Ok((all, HAS_WEIGHTS))
}

/// Whether the graph has weights, by what its processes have said.
fn has_weights(agreed: &Agreed) -> Result<bool> {
    let said = agreed.local.iter().fold(0, |said, told| said | told.words[0]);
    ensure!(
        said & (HAS_WEIGHTS | HAS_NONE) != HAS_WEIGHTS | HAS_NONE,
        MPI_ERR_ARG,
        "some edges have weights, and others MPI_UNWEIGHTED. Give weights for all edges, or for none"
    );
    Ok(said & HAS_WEIGHTS != 0 || said & HAS_NONE == 0 && said & WOULD_HAVE != 0)
}

/// Ranks of an array, each of which the communicator has.
unsafe fn read_ranks(comm: &Comm, name: &str, ranks: *const c_int, n: usize) -> Result<Vec<c_int>> {
    // SAFETY: the caller passes places and arrays that are valid, or null.
    let ranks = unsafe { array::read(name, ranks, n)? };
    let bad = ranks.iter().find_map(|&rank| comm.peer(rank).err());
    bad.map_or(Ok(ranks), |error| Err(Error::new(error.code(), format!("{name}: {}", error.text()))))
}

/// A member of a list of edges that a process sends to one of their ends.
const TO_SOURCE: c_int = 0;
const TO_DESTINATION: c_int = 1;

/// Edges that this process contributes: source, destination and weight.
type Edge = (c_int, c_int, c_int);

/// The list about these edges for each process.
fn lists_of(edges: &[Edge], n: usize) -> Vec<Vec<c_int>> {
    let mut lists = vec![Vec::new(); n];
    for &(source, destination, weight) in edges {
        lists[source as usize].extend([TO_SOURCE, destination, weight]);
        lists[destination as usize].extend([TO_DESTINATION, source, weight]);
    }
    lists
}

impl DistGraph {
    /// The edges of this process, by what all processes have sent to it.
    fn of_lists(lists: &[Vec<c_int>], has_weights: bool) -> DistGraph {
        let mut graph = DistGraph::default();
        let mut weights = [Vec::new(), Vec::new()];
        for entry in lists.iter().flat_map(|list| list.chunks_exact(3)) {
            let (kind, other, weight) = (entry[0], entry[1], entry[2]);
            match kind {
                TO_SOURCE => graph.destinations.push(other),
                _ => graph.sources.push(other),
            }
            weights[usize::from(kind == TO_SOURCE)].push(weight);
        }
        DistGraph { weights: has_weights.then_some(weights), ..graph }
    }

    /// The graph of a communicator.
    fn of(comm: &Comm) -> Result<&DistGraph> {
        match comm.topology.get() {
            Some(Topology::DistGraph(graph)) => Ok(graph),
            _ => Err(other_topology(comm, "a distributed graph topology")),
        }
    }
}

unsafe fn give_graph(
    mpi: &Mpi,
    comm: &Comm,
    (agreed, graph): (&Agreed, DistGraph),
    place: *mut MPI_Comm,
) -> Result {
    let made = comm.child(mpi, agreed.context(), comm.group.clone(), None);
    // SAFETY: the caller passes places and arrays that are valid, or null.
    unsafe { give(Some(with_topology(made, Topology::DistGraph(graph))), place) }
}

/// `MPI_Dist_graph_create`. Neighbours are in the order of the processes that have given the edges.
pub unsafe fn dist_graph_create(
    mpi: &Mpi,
    comm_old: MPI_Comm,
    n: c_int,
    sources: *const c_int,
    degrees: *const c_int,
    destinations: *const c_int,
    weights: *const c_int,
    info: MPI_Info,
    _reorder: c_int,
    comm_dist_graph: *mut MPI_Comm,
) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(comm_dist_graph) };
    let comm = mpi.comm(comm_old)?;
    let mut edges: Vec<Edge> = Vec::new();
    let mut check = || {
        comm.check_intra()?;
        output("comm_dist_graph", comm_dist_graph)?;
        check_info(info)?;
        let n = array::length("n", n)?;
        // SAFETY: the caller's arrays have as many numbers as the ones before say.
        unsafe {
            let sources = read_ranks(comm, "sources", sources, n)?;
            let degrees = array::read("degrees", degrees, n)?;
            let mut total = 0;
            for &degree in &degrees {
                total += array::length("a number in degrees", degree)?;
            }
            let destinations = read_ranks(comm, "destinations", destinations, total)?;
            let (weights, said) = read_weights("weights", weights, total)?;
            let repeated = sources.iter().zip(&degrees);
            let from = repeated.flat_map(|(&source, &degree)| std::iter::repeat_n(source, degree as usize));
            edges =
                from.zip(destinations).zip(weights).map(|((from, to), weight)| (from, to, weight)).collect();
            Ok([said, 0])
        }
    };
    let agreed = agree(mpi, comm, check())?;
    let has_weights = has_weights(&agreed)?;
    let lists = exchange_lists(mpi, comm, &lists_of(&edges, comm.len()))?;
    let graph = DistGraph::of_lists(&lists, has_weights);
    // SAFETY: the caller's pointer is valid for one value, and was not null.
    unsafe { give_graph(mpi, comm, (&agreed, graph), comm_dist_graph) }
}

/// `MPI_Dist_graph_create_adjacent`.
pub unsafe fn dist_graph_create_adjacent(
    mpi: &Mpi,
    comm_old: MPI_Comm,
    indegree: c_int,
    sources: *const c_int,
    sourceweights: *const c_int,
    outdegree: c_int,
    destinations: *const c_int,
    destweights: *const c_int,
    info: MPI_Info,
    _reorder: c_int,
    comm_dist_graph: *mut MPI_Comm,
) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(comm_dist_graph) };
    let comm = mpi.comm(comm_old)?;
    let (mut graph, mut weights) = (DistGraph::default(), [Vec::new(), Vec::new()]);
    let mut check = || {
        comm.check_intra()?;
        output("comm_dist_graph", comm_dist_graph)?;
        check_info(info)?;
        let (incoming, outgoing) =
            (array::length("indegree", indegree)?, array::length("outdegree", outdegree)?);
        // SAFETY: the caller's arrays have this many numbers.
        unsafe {
            graph.sources = read_ranks(comm, "sources", sources, incoming)?;
            graph.destinations = read_ranks(comm, "destinations", destinations, outgoing)?;
            let (from, one) = read_weights("sourceweights", sourceweights, incoming)?;
            let (to, two) = read_weights("destweights", destweights, outgoing)?;
            weights = [from, to];
            Ok([one | two, 0])
        }
    };
    let agreed = agree(mpi, comm, check())?;
    let has_weights = has_weights(&agreed)?;
    let graph = DistGraph { weights: has_weights.then_some(weights), ..graph };
    // SAFETY: the caller's pointer is valid for one value, and was not null.
    unsafe { give_graph(mpi, comm, (&agreed, graph), comm_dist_graph) }
}

/// `MPI_Dist_graph_neighbors_count`.
pub unsafe fn dist_graph_neighbors_count(
    mpi: &Mpi,
    comm: MPI_Comm,
    indegree: *mut c_int,
    outdegree: *mut c_int,
    weighted: *mut c_int,
) -> Result {
    let graph = DistGraph::of(mpi.comm(comm)?)?;
    // SAFETY: the caller's pointers are valid for one value each.
    unsafe {
        output("indegree", indegree)?.write(graph.sources.len() as c_int);
        output("outdegree", outdegree)?.write(graph.destinations.len() as c_int);
        output("weighted", weighted)?.write(graph.weights.is_some().into());
    }
    Ok(())
}

/// `MPI_Dist_graph_neighbors`: the first part of the neighbours, if there is no room for all of them.
pub unsafe fn dist_graph_neighbors(
    mpi: &Mpi,
    comm: MPI_Comm,
    maxindegree: c_int,
    sources: *mut c_int,
    sourceweights: *mut c_int,
    maxoutdegree: c_int,
    destinations: *mut c_int,
    destweights: *mut c_int,
) -> Result {
    let graph = DistGraph::of(mpi.comm(comm)?)?;
    let rooms = [array::length("maxindegree", maxindegree)?, array::length("maxoutdegree", maxoutdegree)?];
    let wanted = |weights: *mut c_int| weights != MPI_UNWEIGHTED && weights != MPI_WEIGHTS_EMPTY;
    // SAFETY: the caller's arrays have this much room.
    unsafe {
        array::write("sources", sources, graph.sources.iter().copied().take(rooms[0]))?;
        array::write("destinations", destinations, graph.destinations.iter().copied().take(rooms[1]))?;
        let Some([from, to]) = &graph.weights else { return Ok(()) };
        if wanted(sourceweights) {
            array::write("sourceweights", sourceweights, from.iter().copied().take(rooms[0]))?;
        }
        if wanted(destweights) {
            array::write("destweights", destweights, to.iter().copied().take(rooms[1]))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_edge_reaches_both_of_its_ends(
            given in prop::collection::vec(prop::collection::vec((0..5, 0..5, 0..9), 0..6), 5),
        ) {
            let sent: Vec<_> = given.iter().map(|edges| lists_of(edges, 5)).collect();
            let all: Vec<Edge> = given.concat();
            for rank in 0..5 {
                let arrived: Vec<_> = sent.iter().map(|lists| lists[rank].clone()).collect();
                let graph = DistGraph::of_lists(&arrived, true);
                let rank = rank as c_int;
                let into = all.iter().filter(|edge| edge.1 == rank).map(|edge| (edge.0, edge.2));
                let out = all.iter().filter(|edge| edge.0 == rank).map(|edge| (edge.1, edge.2));
                let [from, to] = graph.weights.unwrap();
                let pairs = |ranks: Vec<c_int>, weights: Vec<c_int>| -> Vec<_> {
                    ranks.into_iter().zip(weights).collect()
                };
                prop_assert_eq!(pairs(graph.sources, from), into.collect::<Vec<_>>());
                prop_assert_eq!(pairs(graph.destinations, to), out.collect::<Vec<_>>());
            }
        }
    }
}
