//! The constructors of datatypes (MPI 5.0, section 5.1.2), except those of arrays and of Fortran's types.

use super::contents::{Arguments, Contents};
use super::shape::{Placed, Shape};
use super::{Datatype, share};
use crate::abi::*;
use crate::chapters::attribute::Object;
use crate::chapters::error::{Result, ensure};
use crate::chapters::library::{Mpi, output};
use crate::convert::{Integers, Number};
use std::sync::Arc;

/// Gives the program a new datatype.
///
/// # Safety
/// The place is valid for one value.
pub(super) unsafe fn give(newtype: *mut MPI_Datatype, shape: Shape, contents: Contents) -> Result {
    let handle = Arc::new(Datatype::new(shape, contents)).handle()?;
    // SAFETY: the caller promises what this function requires.
    unsafe { newtype.write(handle) };
    Ok(())
}

fn check_count(count: i64) -> Result {
    ensure!(count >= 0, MPI_ERR_COUNT, "count is {count}, which is negative");
    Ok(())
}

fn check_length(length: i64) -> Result {
    ensure!(length >= 0, MPI_ERR_ARG, "the length of blocks is {length}, which is negative");
    Ok(())
}

/// An array of `count` numbers of the program.
///
/// # Safety
/// The array is null or has them.
pub(super) unsafe fn numbers(name: &str, array: Integers, count: i64) -> Result<Vec<i64>> {
    ensure!(count == 0 || !array.is_null(), MPI_ERR_ARG, "{name} is null, but it has {count} numbers");
    // SAFETY: the caller promises what this function requires.
    Ok(unsafe { array.list(count as usize) })
}

/// `MPI_Type_contiguous`.
pub unsafe fn type_contiguous(
    _mpi: &Mpi,
    count: Number,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Result {
    let (place, old) = (output("newtype", newtype)?, share(oldtype)?);
    check_count(count.value)?;
    let shape = old.shape.vector(1, count.value, 0)?;
    let mut arguments = Arguments::new(count.is_large);
    arguments.count(count.value);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(place, shape, arguments.of(MPI_COMBINER_CONTIGUOUS, vec![old])) }
}

/// `MPI_Type_vector`.
pub unsafe fn type_vector(
    _mpi: &Mpi,
    count: Number,
    blocklength: i64,
    stride: i64,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Result {
    let (place, old) = (output("newtype", newtype)?, share(oldtype)?);
    check_count(count.value)?;
    check_length(blocklength)?;
    let shape = old.shape.vector(count.value, blocklength, stride as i128 * old.extent() as i128)?;
    let mut arguments = Arguments::new(count.is_large);
    arguments.count(count.value).count(blocklength).count(stride);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(place, shape, arguments.of(MPI_COMBINER_VECTOR, vec![old])) }
}

/// `MPI_Type_create_hvector`.
pub unsafe fn type_create_hvector(
    _mpi: &Mpi,
    count: Number,
    blocklength: i64,
    stride: i64,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Result {
    let (place, old) = (output("newtype", newtype)?, share(oldtype)?);
    check_count(count.value)?;
    check_length(blocklength)?;
    let shape = old.shape.vector(count.value, blocklength, stride.into())?;
    let mut arguments = Arguments::new(count.is_large);
    arguments.count(count.value).count(blocklength).address(stride);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(place, shape, arguments.of(MPI_COMBINER_HVECTOR, vec![old])) }
}

/// Blocks of a datatype at displacements.
struct Blocks {
    old: Arc<Datatype>,
    lengths: Vec<i64>,
    displacements: Vec<i64>,
}

impl Blocks {
    /// The arguments of a constructor with an array of lengths.
    ///
    /// # Safety
    /// The arrays have `count` numbers.
    unsafe fn of(
        count: i64,
        lengths: Integers,
        displacements: Integers,
        oldtype: MPI_Datatype,
    ) -> Result<Blocks> {
        let old = share(oldtype)?;
        check_count(count)?;
        // SAFETY: the caller promises what this function requires.
        let (lengths, displacements) = unsafe {
            let lengths = numbers("array_of_blocklengths", lengths, count)?;
            (lengths, numbers("array_of_displacements", displacements, count)?)
        };
        lengths.iter().try_for_each(|&length| check_length(length))?;
        Ok(Blocks { old, lengths, displacements })
    }

    /// The arguments of a constructor with one length.
    ///
    /// # Safety
    /// The array has `count` numbers.
    unsafe fn equal(
        count: i64,
        length: i64,
        displacements: Integers,
        oldtype: MPI_Datatype,
    ) -> Result<Blocks> {
        let old = share(oldtype)?;
        check_count(count)?;
        check_length(length)?;
        // SAFETY: the caller promises what this function requires.
        let displacements = unsafe { numbers("array_of_displacements", displacements, count)? };
        Ok(Blocks { old, lengths: vec![length; displacements.len()], displacements })
    }

    /// The shape, where displacements are in units of bytes.
    fn shape(&self, unit: isize) -> Result<Shape> {
        // An empty block has no place.
        let displacement = |(&d, &length): (&i64, &i64)| match length {
            0 => Ok(0),
            _ => d.checked_mul(unit as i64).ok_or_else(super::shape::too_large),
        };
        let blocks = self.displacements.iter().zip(&self.lengths);
        let displacements: Vec<i64> = blocks.map(displacement).collect::<Result<_>>()?;
        let parts = displacements.iter().zip(&self.lengths);
        Shape::structure(parts.map(|(&displacement, &length)| (displacement, length, &self.old.shape)))
    }
}

/// `MPI_Type_indexed`.
pub unsafe fn type_indexed(
    _mpi: &Mpi,
    count: Number,
    blocklengths: Integers,
    displacements: Integers,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Result {
    let place = output("newtype", newtype)?;
    // SAFETY: the caller's arrays have `count` numbers.
    let blocks = unsafe { Blocks::of(count.value, blocklengths, displacements, oldtype)? };
    let mut arguments = Arguments::new(count.is_large);
    arguments.count(count.value).counts(&blocks.lengths).counts(&blocks.displacements);
    let shape = blocks.shape(blocks.old.extent())?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(place, shape, arguments.of(MPI_COMBINER_INDEXED, vec![blocks.old])) }
}

/// `MPI_Type_create_hindexed`.
pub unsafe fn type_create_hindexed(
    _mpi: &Mpi,
    count: Number,
    blocklengths: Integers,
    displacements: Integers,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Result {
    let place = output("newtype", newtype)?;
    // SAFETY: the caller's arrays have `count` numbers.
    let blocks = unsafe { Blocks::of(count.value, blocklengths, displacements, oldtype)? };
    let mut arguments = Arguments::new(count.is_large);
    arguments.count(count.value).counts(&blocks.lengths).addresses(&blocks.displacements);
    let shape = blocks.shape(1)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(place, shape, arguments.of(MPI_COMBINER_HINDEXED, vec![blocks.old])) }
}

/// `MPI_Type_create_indexed_block`.
pub unsafe fn type_create_indexed_block(
    _mpi: &Mpi,
    count: Number,
    blocklength: i64,
    displacements: Integers,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Result {
    let place = output("newtype", newtype)?;
    // SAFETY: the caller's array has `count` numbers.
    let blocks = unsafe { Blocks::equal(count.value, blocklength, displacements, oldtype)? };
    let mut arguments = Arguments::new(count.is_large);
    arguments.count(count.value).count(blocklength).counts(&blocks.displacements);
    let shape = blocks.shape(blocks.old.extent())?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(place, shape, arguments.of(MPI_COMBINER_INDEXED_BLOCK, vec![blocks.old])) }
}

/// `MPI_Type_create_hindexed_block`.
pub unsafe fn type_create_hindexed_block(
    _mpi: &Mpi,
    count: Number,
    blocklength: i64,
    displacements: Integers,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Result {
    let place = output("newtype", newtype)?;
    // SAFETY: the caller's array has `count` numbers.
    let blocks = unsafe { Blocks::equal(count.value, blocklength, displacements, oldtype)? };
    let mut arguments = Arguments::new(count.is_large);
    arguments.count(count.value).count(blocklength).addresses(&blocks.displacements);
    let shape = blocks.shape(1)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(place, shape, arguments.of(MPI_COMBINER_HINDEXED_BLOCK, vec![blocks.old])) }
}

/// `MPI_Type_create_struct`.
pub unsafe fn type_create_struct(
    _mpi: &Mpi,
    count: Number,
    blocklengths: Integers,
    displacements: Integers,
    types: *const MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Result {
    let place = output("newtype", newtype)?;
    check_count(count.value)?;
    ensure!(count.value == 0 || !types.is_null(), MPI_ERR_ARG, "array_of_types is null");
    // SAFETY: the caller's arrays have `count` elements.
    let (lengths, displacements, types) = unsafe {
        let lengths = numbers("array_of_blocklengths", blocklengths, count.value)?;
        let displacements = numbers("array_of_displacements", displacements, count.value)?;
        let types = (0..count.value as usize).map(|i| share(types.add(i).read()));
        (lengths, displacements, types.collect::<Result<Vec<_>>>()?)
    };
    lengths.iter().try_for_each(|&length| check_length(length))?;
    let parts = displacements.iter().zip(&lengths).zip(&types);
    let placed = |((&displacement, &length), old): ((&i64, &i64), _)| -> Placed {
        let old: &Arc<Datatype> = old;
        (displacement, length, &old.shape)
    };
    let shape = Shape::structure(parts.map(placed))?;
    let mut arguments = Arguments::new(count.is_large);
    arguments.count(count.value).counts(&lengths).addresses(&displacements);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(place, shape, arguments.of(MPI_COMBINER_STRUCT, types)) }
}

/// `MPI_Type_create_resized`.
pub unsafe fn type_create_resized(
    _mpi: &Mpi,
    oldtype: MPI_Datatype,
    lb: Number,
    extent: i64,
    newtype: *mut MPI_Datatype,
) -> Result {
    let (place, old) = (output("newtype", newtype)?, share(oldtype)?);
    let shape = old.shape.resized(lb.value, extent)?;
    let mut arguments = Arguments::new(lb.is_large);
    arguments.address(lb.value).address(extent);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(place, shape, arguments.of(MPI_COMBINER_RESIZED, vec![old])) }
}

/// `MPI_Type_dup`: the duplicate is committed if the datatype is. If there is none, its handle is null, as
/// that of a communicator.
pub unsafe fn type_dup(_mpi: &Mpi, oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> Result {
    let place = output("newtype", newtype)?;
    // SAFETY: the caller's pointer is valid for one value. The old handle was passed by value.
    unsafe { place.write(MPI_DATATYPE_NULL) };
    let old = share(oldtype)?;
    let contents = Arguments::new(false).of(MPI_COMBINER_DUP, vec![Arc::clone(&old)]);
    let new = Arc::new(old.duplicate(Some(Arc::new(contents))));
    old.attributes.copy_to(Object::Type(oldtype), &new.attributes)?;
    let handle = new.handle().inspect_err(|_| new.attributes.give_up(Object::Type(oldtype)))?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(handle) };
    Ok(())
}
