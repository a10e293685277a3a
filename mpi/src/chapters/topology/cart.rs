//! Cartesian grids.
//!
//! Invariant: the product of the dimensions is the size of the communicator, and ranks are numbered with the
//! last coordinate running fastest. A grid without dimensions has one process.

use super::{Topology, array, give_first, other_topology, with_topology};
use crate::abi::*;
use crate::chapters::comm::{Comm, agree, clear, digest, divide, give, part};
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::{Mpi, output};

/// A grid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cart {
    dims: Vec<c_int>,
    is_periodic: Vec<bool>,
}

impl Cart {
    /// The number of processes.
    fn len(&self) -> usize {
        self.dims.iter().map(|&dim| dim as usize).product()
    }

    /// The coordinates of a rank.
    fn coords(&self, rank: usize) -> Vec<c_int> {
        let (mut rest, mut coords) = (rank, vec![0; self.dims.len()]);
        for (coord, &dim) in coords.iter_mut().zip(&self.dims).rev() {
            *coord = (rest % dim as usize) as c_int;
            rest /= dim as usize;
        }
        coords
    }

    /// The rank at these coordinates; the first dimension in which there is none, as an error.
    fn rank(&self, coords: &[i64]) -> std::result::Result<usize, usize> {
        let mut rank = 0;
        for (i, (&coord, &dim)) in coords.iter().zip(&self.dims).enumerate() {
            let dim = i64::from(dim);
            let coord = if self.is_periodic[i] { coord.rem_euclid(dim) } else { coord };
            if coord < 0 || coord >= dim {
                return Err(i);
            }
            rank = rank * dim as usize + coord as usize;
        }
        Ok(rank)
    }

    /// The rank that is `distance` further on in a dimension, or `MPI_PROC_NULL`.
    fn shifted(&self, rank: usize, dimension: usize, distance: i64) -> c_int {
        let mut coords: Vec<i64> = self.coords(rank).into_iter().map(i64::from).collect();
        coords[dimension] += distance;
        self.rank(&coords).map_or(MPI_PROC_NULL, |rank| rank as c_int)
    }

    /// The neighbours below and above in each dimension.
    pub(super) fn neighbours(&self, rank: usize) -> Vec<c_int> {
        let both = |dimension| [-1, 1].map(|distance| self.shifted(rank, dimension, distance));
        (0..self.dims.len()).flat_map(both).collect()
    }

    /// The grid that the program describes, if `n` processes are enough for it.
    unsafe fn read(ndims: c_int, dims: *const c_int, periods: *const c_int, n: usize) -> Result<Cart> {
        ensure!(ndims >= 0, MPI_ERR_DIMS, "ndims is {ndims}, which is negative");
        // SAFETY: the caller's arrays have this many numbers.
        let (dims, periods) = unsafe {
            (array::read("dims", dims, ndims as usize)?, array::read("periods", periods, ndims as usize)?)
        };
        let bad = dims.iter().find(|&&dim| dim <= 0);
        ensure!(bad.is_none(), MPI_ERR_DIMS, "dims has {}; dimensions are positive", bad.unwrap_or(&0));
        let needed = dims.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim as usize));
        ensure!(
            needed.is_some_and(|needed| needed <= n),
            MPI_ERR_DIMS,
            "a grid of {dims:?} needs more than the {n} processes of the communicator"
        );
        Ok(Cart { dims, is_periodic: periods.iter().map(|&period| period != 0).collect() })
    }

    /// The grid of a communicator.
    fn of(comm: &Comm) -> Result<&Cart> {
        match comm.topology.get() {
            Some(Topology::Cart(cart)) => Ok(cart),
            _ => Err(other_topology(comm, "a Cartesian topology")),
        }
    }
}

/// `MPI_Cart_create`.
pub unsafe fn cart_create(
    mpi: &Mpi,
    comm_old: MPI_Comm,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    _reorder: c_int,
    comm_cart: *mut MPI_Comm,
) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(comm_cart) };
    let comm = mpi.comm(comm_old)?;
    let mut cart = Cart::default();
    let mut check = || {
        comm.check_intra()?;
        output("comm_cart", comm_cart)?;
        // SAFETY: the caller passes places and arrays that are valid, or null.
        cart = unsafe { Cart::read(ndims, dims, periods, comm.len())? };
        Ok([0, digest(&cart)])
    };
    let agreed = agree(mpi, comm, check())?;
    agreed.check_same("dims and periods")?;
    let n = cart.len();
    // SAFETY: the caller's pointer is valid for one value, and was not null.
    unsafe { give_first(mpi, comm, &agreed, (n, Topology::Cart(cart)), comm_cart) }
}

/// `MPI_Cartdim_get`.
pub unsafe fn cartdim_get(mpi: &Mpi, comm: MPI_Comm, ndims: *mut c_int) -> Result {
    let n = Cart::of(mpi.comm(comm)?)?.dims.len();
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("ndims", ndims)?.write(n as c_int) };
    Ok(())
}

/// `MPI_Cart_get`.
pub unsafe fn cart_get(
    mpi: &Mpi,
    comm: MPI_Comm,
    maxdims: c_int,
    dims: *mut c_int,
    periods: *mut c_int,
    coords: *mut c_int,
) -> Result {
    let comm = mpi.comm(comm)?;
    let cart = Cart::of(comm)?;
    array::check_room("maxdims", maxdims, cart.dims.len())?;
    // SAFETY: the caller's arrays have room for the numbers of all dimensions.
    unsafe {
        array::write("dims", dims, cart.dims.iter().copied())?;
        array::write("periods", periods, cart.is_periodic.iter().map(|&is| is.into()))?;
        array::write("coords", coords, cart.coords(comm.my_rank()).into_iter())
    }
}

/// `MPI_Cart_rank`.
pub unsafe fn cart_rank(mpi: &Mpi, comm: MPI_Comm, coords: *const c_int, rank: *mut c_int) -> Result {
    let cart = Cart::of(mpi.comm(comm)?)?;
    // SAFETY: the caller's array has the numbers of all dimensions.
    let coords = unsafe { array::read("coords", coords, cart.dims.len())? };
    let wide: Vec<i64> = coords.iter().map(|&coord| coord.into()).collect();
    let found = cart.rank(&wide).map_err(|i| {
        let (coord, end) = (coords[i], cart.dims[i] - 1);
        let text = format!("coordinate {coord} of dimension {i}, which is not periodic; it has 0 to {end}");
        Error::new(MPI_ERR_ARG, text)
    })?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("rank", rank)?.write(found as c_int) };
    Ok(())
}

/// `MPI_Cart_coords`.
pub unsafe fn cart_coords(
    mpi: &Mpi,
    comm: MPI_Comm,
    rank: c_int,
    maxdims: c_int,
    coords: *mut c_int,
) -> Result {
    let comm = mpi.comm(comm)?;
    let cart = Cart::of(comm)?;
    comm.peer(rank)?;
    array::check_room("maxdims", maxdims, cart.dims.len())?;
    // SAFETY: the caller's array has room for the numbers of all dimensions.
    unsafe { array::write("coords", coords, cart.coords(rank as usize).into_iter()) }
}

/// `MPI_Cart_shift`.
pub unsafe fn cart_shift(
    mpi: &Mpi,
    comm: MPI_Comm,
    direction: c_int,
    disp: c_int,
    rank_source: *mut c_int,
    rank_dest: *mut c_int,
) -> Result {
    let comm = mpi.comm(comm)?;
    let cart = Cart::of(comm)?;
    let n = cart.dims.len();
    ensure!(
        direction >= 0 && (direction as usize) < n,
        MPI_ERR_ARG,
        "direction is {direction}, but the grid has {n} dimensions, which are numbered from 0"
    );
    let shifted = |distance| cart.shifted(comm.my_rank(), direction as usize, distance);
    let (source, dest) = (output("rank_source", rank_source)?, output("rank_dest", rank_dest)?);
    // SAFETY: the caller's pointers are valid for one value each.
    unsafe {
        source.write(shifted(-i64::from(disp)));
        dest.write(shifted(disp.into()));
    }
    Ok(())
}

/// `MPI_Cart_sub`.
pub unsafe fn cart_sub(
    mpi: &Mpi,
    comm: MPI_Comm,
    remain_dims: *const c_int,
    newcomm: *mut MPI_Comm,
) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(newcomm) };
    let comm = mpi.comm(comm)?;
    let cart = Cart::of(comm)?;
    let mut remain = Vec::new();
    let mut check = || {
        output("newcomm", newcomm)?;
        // SAFETY: the caller's array has the numbers of all dimensions.
        let given = unsafe { array::read("remain_dims", remain_dims, cart.dims.len())? };
        remain = given.iter().map(|&remains| remains != 0).collect();
        let coords = cart.coords(comm.my_rank());
        // The number of this process among those that differ in the dimensions that remain, or in others.
        let number = |of: bool| {
            let dims = (0..coords.len()).filter(|&i| remain[i] == of);
            dims.fold(0, |number, i| number * cart.dims[i] + coords[i])
        };
        Ok([part(number(false), number(true)), digest(&remain)])
    };
    let agreed = agree(mpi, comm, check())?;
    agreed.check_same("remain_dims")?;
    let kept = |i: &usize| remain[*i];
    let sub = Cart {
        dims: (0..remain.len()).filter(kept).map(|i| cart.dims[i]).collect(),
        is_periodic: (0..remain.len()).filter(kept).map(|i| cart.is_periodic[i]).collect(),
    };
    let made = divide(mpi, comm, &agreed).map(|made| with_topology(made, Topology::Cart(sub)));
    // SAFETY: the caller's pointer is valid for one value, and was not null.
    unsafe { give(made, newcomm) }
}

/// `MPI_Cart_map`.
pub unsafe fn cart_map(
    mpi: &Mpi,
    comm: MPI_Comm,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    newrank: *mut c_int,
) -> Result {
    let comm = mpi.comm(comm)?;
    comm.check_intra()?;
    // SAFETY: the caller passes places and arrays that are valid, or null.
    let n = unsafe { Cart::read(ndims, dims, periods, comm.len())? }.len();
    let rank = if comm.my_rank() < n { comm.my_rank() as c_int } else { MPI_UNDEFINED };
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("newrank", newrank)?.write(rank) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grid() -> impl Strategy<Value = Cart> {
        prop::collection::vec((1..5, any::<bool>()), 0..5).prop_map(|both| {
            let (dims, is_periodic) = both.into_iter().unzip();
            Cart { dims, is_periodic }
        })
    }

    proptest! {
        #[test]
        fn ranks_and_coordinates_lead_to_each_other(cart in grid()) {
            for rank in 0..cart.len() {
                let coords: Vec<i64> = cart.coords(rank).into_iter().map(i64::from).collect();
                prop_assert_eq!(cart.rank(&coords), Ok(rank));
            }
        }

        #[test]
        fn a_process_is_the_neighbour_of_its_neighbours(cart in grid()) {
            for rank in 0..cart.len() {
                let near = cart.neighbours(rank);
                prop_assert_eq!(near.len(), 2 * cart.dims.len());
                for (i, &other) in near.iter().enumerate().filter(|&(_, &other)| other != MPI_PROC_NULL) {
                    prop_assert_eq!(cart.neighbours(other as usize)[i ^ 1], rank as c_int);
                }
            }
        }
    }

    #[test]
    fn coordinates_outside_are_those_of_periodic_dimensions_only() {
        let cart = Cart { dims: vec![3, 4], is_periodic: vec![true, false] };
        assert_eq!(cart.rank(&[-1, 3]), Ok(11));
        assert_eq!(cart.rank(&[i64::from(c_int::MIN), 0]), Ok(4));
        assert_eq!((cart.rank(&[0, 4]), cart.rank(&[5, -1])), (Err(1), Err(1)));
        assert_eq!(cart.neighbours(0), [8, 4, MPI_PROC_NULL, 1]);
    }
}
