//! Virtual topologies.

use crate::abi::*;

api! {
    call MPI_Cart_create(
        comm_old: MPI_Comm, ndims: c_int, dims: *const c_int, periods: *const c_int, reorder: c_int,
        comm_cart: *mut MPI_Comm,
    ) => crate::chapters::topology::cart_create;
    call MPI_Cart_get(
        comm: MPI_Comm, maxdims: c_int, dims: *mut c_int, periods: *mut c_int, coords: *mut c_int,
    ) => crate::chapters::topology::cart_get;
    call MPI_Cartdim_get(comm: MPI_Comm, ndims: *mut c_int) => crate::chapters::topology::cartdim_get;
    call MPI_Cart_rank(
        comm: MPI_Comm, coords: *const c_int, rank: *mut c_int,
    ) => crate::chapters::topology::cart_rank;
    call MPI_Cart_coords(
        comm: MPI_Comm, rank: c_int, maxdims: c_int, coords: *mut c_int,
    ) => crate::chapters::topology::cart_coords;
    call MPI_Cart_shift(
        comm: MPI_Comm, direction: c_int, disp: c_int, rank_source: *mut c_int, rank_dest: *mut c_int,
    ) => crate::chapters::topology::cart_shift;
    call MPI_Cart_sub(
        comm: MPI_Comm, remain_dims: *const c_int, newcomm: *mut MPI_Comm,
    ) => crate::chapters::topology::cart_sub;
    call MPI_Cart_map(
        comm: MPI_Comm, ndims: c_int, dims: *const c_int, periods: *const c_int, newrank: *mut c_int,
    ) => crate::chapters::topology::cart_map;
    call MPI_Dims_create(
        nnodes: c_int, ndims: c_int, dims: *mut c_int,
    ) => crate::chapters::topology::dims_create;
    call MPI_Graph_create(
        comm_old: MPI_Comm, nnodes: c_int, indx: *const c_int, edges: *const c_int, reorder: c_int,
        comm_graph: *mut MPI_Comm,
    ) => crate::chapters::topology::graph_create;
    call MPI_Graph_get(
        comm: MPI_Comm, maxindex: c_int, maxedges: c_int, indx: *mut c_int, edges: *mut c_int,
    ) => crate::chapters::topology::graph_get;
    call MPI_Graphdims_get(
        comm: MPI_Comm, nnodes: *mut c_int, nedges: *mut c_int,
    ) => crate::chapters::topology::graphdims_get;
    call MPI_Graph_neighbors_count(
        comm: MPI_Comm, rank: c_int, nneighbors: *mut c_int,
    ) => crate::chapters::topology::graph_neighbors_count;
    call MPI_Graph_neighbors(
        comm: MPI_Comm, rank: c_int, maxneighbors: c_int, neighbors: *mut c_int,
    ) => crate::chapters::topology::graph_neighbors;
    call MPI_Graph_map(
        comm: MPI_Comm, nnodes: c_int, indx: *const c_int, edges: *const c_int, newrank: *mut c_int,
    ) => crate::chapters::topology::graph_map;
    call MPI_Dist_graph_create(
        comm_old: MPI_Comm, n: c_int, sources: *const c_int, degrees: *const c_int,
        destinations: *const c_int, weights: *const c_int, info: MPI_Info, reorder: c_int,
        comm_dist_graph: *mut MPI_Comm,
    ) => crate::chapters::topology::dist_graph_create;
    call MPI_Dist_graph_create_adjacent(
        comm_old: MPI_Comm, indegree: c_int, sources: *const c_int, sourceweights: *const c_int,
        outdegree: c_int, destinations: *const c_int, destweights: *const c_int, info: MPI_Info,
        reorder: c_int, comm_dist_graph: *mut MPI_Comm,
    ) => crate::chapters::topology::dist_graph_create_adjacent;
    call MPI_Dist_graph_neighbors_count(
        comm: MPI_Comm, indegree: *mut c_int, outdegree: *mut c_int, weighted: *mut c_int,
    ) => crate::chapters::topology::dist_graph_neighbors_count;
    call MPI_Dist_graph_neighbors(
        comm: MPI_Comm, maxindegree: c_int, sources: *mut c_int, sourceweights: *mut c_int,
        maxoutdegree: c_int, destinations: *mut c_int, destweights: *mut c_int,
    ) => crate::chapters::topology::dist_graph_neighbors;
    call MPI_Topo_test(comm: MPI_Comm, status: *mut c_int) => crate::chapters::topology::topo_test;
}
