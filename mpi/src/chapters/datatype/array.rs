//! Parts of arrays: `MPI_Type_create_subarray` and `MPI_Type_create_darray` (MPI 5.0, sections 5.1.3 and
//! 5.1.4).
//!
//! Invariant: the datatype has the bounds of the whole array. The part is built from the dimension whose
//! neighbours are adjacent in memory to the one that varies slowest.

use super::construct::{give, numbers};
use super::contents::Arguments;
use super::layout::Layout;
use super::shape::{Shape, too_large};
use super::share;
use crate::abi::*;
use crate::chapters::error::{Result, ensure};
use crate::chapters::library::{Mpi, output};
use crate::convert::Integers;

/// The dimensions, from the one that varies fastest on.
fn dimensions(n: usize, order: c_int) -> Result<Vec<usize>> {
    match order {
        MPI_ORDER_C => Ok((0..n).rev().collect()),
        MPI_ORDER_FORTRAN => Ok((0..n).collect()),
        _ => Err(crate::chapters::error::Error::new(
            MPI_ERR_ARG,
            format!("order {order} is none. Give MPI_ORDER_C or MPI_ORDER_FORTRAN"),
        )),
    }
}

/// The elements of an array of these sizes.
fn elements(shape: &Shape, sizes: &[i64]) -> Result<i128> {
    let product = sizes.iter().try_fold(1i128, |product, &size| product.checked_mul(size.into()));
    let product = product.ok_or_else(too_large)?;
    shape.check_array(product)?;
    Ok(product)
}

/// The shape of a part of an array: in each dimension, this number of indices from a start on.
pub(super) fn subarray(
    old: &Shape,
    sizes: &[i64],
    parts: &[i64],
    starts: &[i64],
    order: c_int,
) -> Result<Shape> {
    let all = elements(old, sizes)?;
    let (mut layout, mut stride, mut chosen) = (old.layout.clone(), old.extent, 1);
    for i in dimensions(sizes.len(), order)? {
        layout = layout.repeated(parts[i] as usize, stride).shifted(stride.wrapping_mul(starts[i] as isize));
        stride = stride.wrapping_mul(sizes[i] as isize);
        chosen *= parts[i] as usize;
    }
    old.of_array(all, chosen, layout)
}

/// The shape of the part of a process in an array that is distributed over a grid.
pub(super) fn distributed(old: &Shape, grid: &[Dimension], order: c_int) -> Result<Shape> {
    grid.iter().try_for_each(|dimension| dimension.block().map(|_| ()))?;
    let sizes: Vec<i64> = grid.iter().map(|dimension| dimension.size).collect();
    let all = elements(old, &sizes)?;
    let (mut layout, mut stride, mut chosen) = (old.layout.clone(), old.extent, 1);
    for i in dimensions(grid.len(), order)? {
        let (part, count) = grid[i].part(&layout, stride)?;
        (layout, chosen) = (part, chosen * count);
        stride = stride.wrapping_mul(sizes[i] as isize);
    }
    old.of_array(all, chosen, layout)
}

/// `MPI_Type_create_subarray`.
pub unsafe fn type_create_subarray(
    _mpi: &Mpi,
    ndims: c_int,
    array_of_sizes: Integers,
    array_of_subsizes: Integers,
    array_of_starts: Integers,
    order: c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Result {
    let (place, old) = (output("newtype", newtype)?, share(oldtype)?);
    ensure!(ndims > 0, MPI_ERR_ARG, "ndims is {ndims}. An array has one dimension at least");
    // SAFETY: the caller's arrays have `ndims` numbers.
    let (sizes, parts, starts) = unsafe {
        let sizes = numbers("array_of_sizes", array_of_sizes, ndims.into())?;
        let parts = numbers("array_of_subsizes", array_of_subsizes, ndims.into())?;
        (sizes, parts, numbers("array_of_starts", array_of_starts, ndims.into())?)
    };
    for (i, ((&size, &part), &start)) in sizes.iter().zip(&parts).zip(&starts).enumerate() {
        let is_inside = size > 0 && (1..=size).contains(&part) && (0..=size - part).contains(&start);
        ensure!(
            is_inside,
            MPI_ERR_ARG,
            "dimension {i}: elements {start} to {start} + {part} are not a part of an array of {size}"
        );
    }
    let shape = subarray(&old.shape, &sizes, &parts, &starts, order)?;
    let mut arguments = Arguments::new(array_of_sizes.is_wide());
    arguments.integer(ndims).counts(&sizes).counts(&parts).counts(&starts).integer(order);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(place, shape, arguments.of(MPI_COMBINER_SUBARRAY, vec![old])) }
}

/// The distribution of one dimension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dimension {
    pub size: i64,
    pub distribution: c_int,
    pub argument: c_int,
    pub processes: c_int,
    /// The process of this dimension whose part is wanted.
    pub process: c_int,
}

impl Dimension {
    /// The length of blocks.
    fn block(&self) -> Result<i64> {
        let (size, processes) = (self.size, i64::from(self.processes));
        ensure!(size > 0, MPI_ERR_ARG, "a size of the array is {size}. Sizes are positive");
        let is_default = self.argument == MPI_DISTRIBUTE_DFLT_DARG;
        let argument = i64::from(self.argument);
        ensure!(
            is_default || argument > 0 || self.distribution == MPI_DISTRIBUTE_NONE,
            MPI_ERR_ARG,
            "the argument of a distribution is {argument}. Give a positive one or MPI_DISTRIBUTE_DFLT_DARG"
        );
        match self.distribution {
            MPI_DISTRIBUTE_NONE => {
                ensure!(
                    processes == 1,
                    MPI_ERR_ARG,
                    "a dimension that is not distributed has {processes} processes. Give it 1"
                );
                Ok(size)
            }
            MPI_DISTRIBUTE_BLOCK if is_default => Ok((size + processes - 1) / processes),
            MPI_DISTRIBUTE_BLOCK => {
                ensure!(
                    argument * processes >= size,
                    MPI_ERR_ARG,
                    "{processes} blocks of {argument} do not cover a dimension of {size}"
                );
                Ok(argument)
            }
            MPI_DISTRIBUTE_CYCLIC => Ok(if is_default { 1 } else { argument }),
            other => Err(crate::chapters::error::Error::new(
                MPI_ERR_ARG,
                format!("there is no distribution {other}"),
            )),
        }
    }

    /// The part of the process: its data and the number of indices.
    fn part(&self, layout: &Layout, stride: isize) -> Result<(Layout, usize)> {
        let block = self.block()?;
        let (first, step) = (i64::from(self.process) * block, i64::from(self.processes) * block);
        if first >= self.size {
            return Ok((Layout::EMPTY, 0));
        }
        let blocks = (self.size - first + step - 1) / step;
        let last_first = first + (blocks - 1) * step;
        let last = block.min(self.size - last_first);
        let whole = if last == block { blocks } else { blocks - 1 };
        let rest = if last == block { 0 } else { last as usize };
        let place = |index: i64| stride.wrapping_mul(index as isize);
        let one = layout.clone().repeated(block as usize, stride);
        let all = one.repeated(whole as usize, place(step)).shifted(place(first));
        let tail = layout.clone().repeated(rest, stride).shifted(place(last_first));
        Ok((Layout::sequence([all, tail]), (whole * block) as usize + rest))
    }
}

/// `MPI_Type_create_darray`: the grid of processes is in row-major order, whatever the order of the array.
pub unsafe fn type_create_darray(
    _mpi: &Mpi,
    size: c_int,
    rank: c_int,
    ndims: c_int,
    array_of_gsizes: Integers,
    array_of_distribs: *const c_int,
    array_of_dargs: *const c_int,
    array_of_psizes: *const c_int,
    order: c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Result {
    let (place, old) = (output("newtype", newtype)?, share(oldtype)?);
    ensure!(ndims > 0, MPI_ERR_ARG, "ndims is {ndims}. An array has one dimension at least");
    ensure!(rank >= 0 && rank < size, MPI_ERR_ARG, "rank {rank} is not one of {size} processes");
    let list = |name: &str, array: *const c_int| {
        let array = output(name, array.cast_mut())?;
        // SAFETY: the caller's array has `ndims` numbers.
        Ok::<_, crate::chapters::error::Error>(unsafe { std::slice::from_raw_parts(array, ndims as usize) })
    };
    let distributions = list("array_of_distribs", array_of_distribs)?;
    let block_arguments = list("array_of_dargs", array_of_dargs)?;
    let processes = list("array_of_psizes", array_of_psizes)?;
    // SAFETY: as above, the caller promises it.
    let sizes = unsafe { numbers("array_of_gsizes", array_of_gsizes, ndims.into())? };
    let grid = processes.iter().try_fold(1i64, |product, &n| product.checked_mul(n.into()));
    ensure!(
        processes.iter().all(|&n| n > 0) && grid == Some(size.into()),
        MPI_ERR_ARG,
        "the grid of processes {processes:?} does not have {size} processes"
    );
    let (mut rest, mut slower) = (rank, size);
    let dimension = |i: usize| {
        slower /= processes[i];
        let process = rest / slower;
        rest %= slower;
        let (distribution, argument) = (distributions[i], block_arguments[i]);
        Dimension { size: sizes[i], distribution, argument, processes: processes[i], process }
    };
    let grid: Vec<Dimension> = (0..sizes.len()).map(dimension).collect();
    let shape = distributed(&old.shape, &grid, order)?;
    let mut arguments = Arguments::new(array_of_gsizes.is_wide());
    arguments.integer(size).integer(rank).integer(ndims).counts(&sizes);
    for &number in distributions.iter().chain(block_arguments).chain(processes) {
        arguments.integer(number);
    }
    arguments.integer(order);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(place, shape, arguments.of(MPI_COMBINER_DARRAY, vec![old])) }
}
