//! Datatypes as they lie in files with another data representation.
//!
//! The call that has made a datatype is made again with other elementary types: blocks of bytes, as long as
//! the file has them (MPI 5.0, section 14.5). Displacements in bytes stay as they are.

use super::contents::Contents;
use super::*;
use crate::chapters::library::Mpi;
use crate::convert::{Integers, Number};

/// The bytes of an elementary datatype in the file.
pub type BytesOf<'a> = &'a mut dyn FnMut(&Datatype) -> Result<usize>;

/// The form of a datatype in a file whose elementary types have other lengths.
pub fn in_file(mpi: &Mpi, datatype: &Datatype, bytes_of: BytesOf) -> Result<Arc<Datatype>> {
    let made = make(mpi, datatype, bytes_of)?;
    let shared = share(made.handle())?;
    shared.commit();
    Ok(shared)
}

fn make(mpi: &Mpi, datatype: &Datatype, bytes_of: BytesOf) -> Result<Retained> {
    let mut new = MPI_DATATYPE_NULL;
    match datatype.contents.as_deref().filter(|contents| !contents.types().is_empty()) {
        None => {
            // A structure without members has neither types nor data.
            let bytes = if datatype.size() == 0 { 0 } else { bytes_of(datatype)? };
            let bytes = Number { value: bytes as i64, is_large: true };
            // SAFETY: the place is valid for one value.
            unsafe { type_contiguous(mpi, bytes, MPI_BYTE, &raw mut new)? };
        }
        Some(contents) => {
            let mut parts = Vec::new();
            for part in contents.types() {
                parts.push(make(mpi, part, bytes_of)?);
            }
            let handles: Vec<MPI_Datatype> = parts.iter().map(Retained::handle).collect();
            // SAFETY: the numbers are those of an earlier call with as many datatypes.
            unsafe { repeat(mpi, contents, &handles, &raw mut new)? };
        }
    }
    Ok(Retained(new))
}

/// Makes the call again with other datatypes.
unsafe fn repeat(mpi: &Mpi, contents: &Contents, types: &[MPI_Datatype], new: *mut MPI_Datatype) -> Result {
    let (numbers, old) = (contents.numbers(), types[0]);
    let large = |value: i64| Number { value, is_large: true };
    let list = |first: usize| Integers::from(numbers[first..].as_ptr().cast::<MPI_Aint>());
    let first = numbers.first().copied().unwrap_or(0);
    let (count, n) = (large(first), first.max(0) as usize);
    // SAFETY: the lists are parts of the numbers, in the order of the call's arguments.
    unsafe {
        match contents.combiner() {
            MPI_COMBINER_DUP => type_contiguous(mpi, large(1), old, new),
            MPI_COMBINER_CONTIGUOUS => type_contiguous(mpi, count, old, new),
            MPI_COMBINER_VECTOR => type_vector(mpi, count, numbers[1], numbers[2], old, new),
            MPI_COMBINER_HVECTOR => type_create_hvector(mpi, count, numbers[1], numbers[2], old, new),
            MPI_COMBINER_INDEXED => type_indexed(mpi, count, list(1), list(1 + n), old, new),
            MPI_COMBINER_HINDEXED => type_create_hindexed(mpi, count, list(1), list(1 + n), old, new),
            MPI_COMBINER_INDEXED_BLOCK => {
                type_create_indexed_block(mpi, count, numbers[1], list(2), old, new)
            }
            MPI_COMBINER_HINDEXED_BLOCK => {
                type_create_hindexed_block(mpi, count, numbers[1], list(2), old, new)
            }
            MPI_COMBINER_STRUCT => type_create_struct(mpi, count, list(1), list(1 + n), types.as_ptr(), new),
            MPI_COMBINER_RESIZED => type_create_resized(mpi, old, count, numbers[1], new),
            MPI_COMBINER_SUBARRAY => {
                let order = numbers[1 + 3 * n] as c_int;
                let (sizes, parts, starts) = (list(1), list(1 + n), list(1 + 2 * n));
                type_create_subarray(mpi, n as c_int, sizes, parts, starts, order, old, new)
            }
            MPI_COMBINER_DARRAY => repeat_darray(mpi, &numbers, old, new),
            other => Err(Error::new(
                MPI_ERR_UNSUPPORTED_DATAREP,
                format!("the datatype, whose combiner is {other}, has no form in another representation"),
            )),
        }
    }
}

unsafe fn repeat_darray(mpi: &Mpi, numbers: &[i64], old: MPI_Datatype, new: *mut MPI_Datatype) -> Result {
    let short: Vec<c_int> = numbers.iter().map(|&number| number as c_int).collect();
    let n = short[2].max(0) as usize;
    let list = |which: usize| short[3 + which * n..].as_ptr();
    let sizes = Integers::from(numbers[3..].as_ptr().cast::<MPI_Aint>());
    let order = short[3 + 4 * n];
    // SAFETY: the lists are parts of the numbers, with `n` numbers each.
    unsafe {
        type_create_darray(
            mpi,
            short[0],
            short[1],
            short[2],
            sizes,
            list(1),
            list(2),
            list(3),
            order,
            old,
            new,
        )
    }
}
