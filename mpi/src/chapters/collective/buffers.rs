//! The data of an operation, in one piece each.
//!
//! Invariant: data that have gaps in the program's buffer are packed when the operation starts, and unpacked
//! when it is over.

use super::prepare::Prepared;
use crate::abi::*;
use crate::chapters::data::Data;
use crate::chapters::datatype::{self, Datatype};
use crate::chapters::error::{Result, ensure};
use crate::chapters::library::Mpi;
use crate::chapters::p2p::{bytes_of, given};
use crate::convert::Integers;
use std::sync::Arc;

/// Elements of a buffer.
#[derive(Clone, Copy)]
pub struct Elements {
    pub buffer: *const c_void,
    pub count: i64,
    pub datatype: MPI_Datatype,
}

impl Elements {
    /// `n` times as many.
    pub fn times(self, n: usize) -> Elements {
        Elements { count: self.count.saturating_mul(n as i64), ..self }
    }

    /// Those of block `number`, where each block has this many.
    pub fn block(self, mpi: &Mpi, number: usize) -> Result<Elements> {
        let datatype = mpi.datatype(self.datatype)?;
        let extent = datatype.extent();
        // These are told as they are.
        if self.is_in_place() || (self.buffer.is_null() && datatype.basic().is_some()) {
            return Ok(self);
        }
        let distance = (number as isize).wrapping_mul(self.count as isize).wrapping_mul(extent);
        Ok(self.behind(distance))
    }

    /// The same number at an address that is this many bytes further on.
    pub fn behind(self, bytes: isize) -> Elements {
        Elements { buffer: self.buffer.wrapping_byte_offset(bytes), ..self }
    }

    pub fn is_in_place(&self) -> bool {
        self.buffer == MPI_IN_PLACE.cast_const()
    }

    /// The length of the data in bytes, of elements that were checked.
    pub fn bytes(&self, mpi: &Mpi) -> Result<usize> {
        bytes_of(self.count, mpi.datatype(self.datatype)?)
    }

    /// Checks the count and the buffer: the length of the data in bytes.
    #[inline]
    pub fn check(&self, mpi: &Mpi) -> Result<usize> {
        Ok(self.checked(mpi)?.1)
    }

    /// The same, and the datatype.
    #[inline]
    fn checked<'a>(&self, mpi: &'a Mpi) -> Result<(&'a Datatype, usize)> {
        let datatype = mpi.datatype(self.datatype)?;
        let bytes = bytes_of(self.count, datatype)?;
        let buffer = self.buffer;
        ensure!(
            !self.is_in_place(),
            MPI_ERR_BUFFER,
            "the buffer is MPI_IN_PLACE, which is not possible here"
        );
        ensure!(
            !buffer.is_null() || bytes == 0 || datatype.basic().is_none(),
            MPI_ERR_BUFFER,
            "the buffer of {} elements is null. Give their address",
            self.count
        );
        Ok((datatype, bytes))
    }
}

/// Blocks of a buffer, one for each rank.
#[derive(Clone, Copy, PartialEq)]
pub struct Blocks {
    pub buffer: *const c_void,
    pub counts: Integers,
    pub places: Places,
    pub types: Types,
}

/// Where the blocks lie.
#[derive(Clone, Copy, PartialEq)]
pub enum Places {
    /// At displacements in elements.
    Elements(Integers),
    /// At displacements in bytes.
    Bytes(Integers),
}

/// The datatypes of the blocks.
#[derive(Clone, Copy, PartialEq)]
pub enum Types {
    One(MPI_Datatype),
    Each(*const MPI_Datatype),
}

impl Blocks {
    pub fn is_in_place(&self) -> bool {
        self.buffer == MPI_IN_PLACE.cast_const()
    }

    /// Checks the arrays of `n` blocks.
    pub fn check_arrays(&self, n: usize) -> Result {
        let places = match self.places {
            Places::Elements(places) | Places::Bytes(places) => places,
        };
        let types_are_null = matches!(self.types, Types::Each(types) if types.is_null());
        ensure!(n == 0 || !self.counts.is_null(), MPI_ERR_ARG, "the array of counts is null");
        ensure!(n == 0 || !places.is_null(), MPI_ERR_ARG, "the array of displacements is null");
        ensure!(n == 0 || !types_are_null, MPI_ERR_ARG, "the array of datatypes is null");
        Ok(())
    }

    /// The elements of block `number`, which are checked when they become data of an operation. An empty one
    /// needs no datatype.
    ///
    /// # Safety
    /// The arrays have it.
    pub unsafe fn get(&self, mpi: &Mpi, number: usize) -> Result<Elements> {
        ensure!(
            !self.is_in_place(),
            MPI_ERR_BUFFER,
            "the buffer is MPI_IN_PLACE, which is not possible here"
        );
        // SAFETY: the caller promises what this function requires.
        unsafe {
            let count = self.counts.get(number);
            if count == 0 {
                return Ok(Elements { buffer: self.buffer, count, datatype: MPI_BYTE });
            }
            let datatype = match self.types {
                Types::One(datatype) => datatype,
                Types::Each(types) => types.add(number).read(),
            };
            let distance = match self.places {
                Places::Bytes(places) => places.get(number) as isize,
                Places::Elements(places) => {
                    let layout = mpi.datatype(datatype)?;
                    let is_null = self.buffer.is_null() && layout.basic().is_some();
                    // A null buffer is told as it is.
                    if is_null { 0 } else { (places.get(number) as isize).wrapping_mul(layout.extent()) }
                }
            };
            Ok(Elements { buffer: self.buffer, count, datatype }.behind(distance))
        }
    }
}

/// Data that are packed when an operation starts.
pub struct Pack {
    pub layout: Arc<Datatype>,
    pub from: *const u8,
    pub count: usize,
    pub into: *mut u8,
}

/// Data that are unpacked when an operation is over.
pub struct Unpack {
    pub layout: Arc<Datatype>,
    pub from: *const u8,
    pub bytes: usize,
    pub into: *mut u8,
}

impl Prepared {
    /// Memory of this many bytes that lives as long as the operation.
    pub fn room(&mut self, bytes: usize) -> *mut u8 {
        let mut memory = Data::new(bytes);
        let start = memory.as_mut_ptr();
        self.kept.push(memory);
        start
    }

    /// Data that the operation sends: their address and length.
    ///
    /// # Safety
    /// The buffer has the elements, until the operation is over.
    pub unsafe fn outgoing(&mut self, mpi: &Mpi, elements: Elements) -> Result<(*const u8, usize)> {
        let (layout, bytes) = elements.checked(mpi)?;
        match layout.run(elements.count as usize) {
            Some(offset) => {
                let start = elements.buffer.cast::<u8>().wrapping_offset(offset);
                given(start, bytes)?;
                Ok((start, bytes))
            }
            // SAFETY: the caller promises what this function requires.
            None => Ok((unsafe { self.packed(elements, bytes)? }, bytes)),
        }
    }

    /// The same, where the operation overwrites the buffer: the data are copied.
    ///
    /// # Safety
    /// As [`outgoing`](Prepared::outgoing).
    pub unsafe fn copied(&mut self, mpi: &Mpi, elements: Elements) -> Result<(*const u8, usize)> {
        let bytes = elements.check(mpi)?;
        // SAFETY: the caller promises what this function requires.
        Ok((unsafe { self.packed(elements, bytes)? }, bytes))
    }

    /// # Safety
    /// As [`outgoing`](Prepared::outgoing).
    unsafe fn packed(&mut self, elements: Elements, bytes: usize) -> Result<*const u8> {
        let layout = datatype::share(elements.datatype)?;
        let into = self.room(bytes);
        let (from, count) = (elements.buffer.cast(), elements.count as usize);
        self.packs.push(Pack { layout, from, count, into });
        Ok(into)
    }

    /// A place for data that the operation receives: its address and length.
    ///
    /// # Safety
    /// The buffer has room for the elements, until the operation is over.
    pub unsafe fn incoming(&mut self, mpi: &Mpi, elements: Elements) -> Result<(*mut u8, usize)> {
        let (layout, bytes) = elements.checked(mpi)?;
        let buffer = elements.buffer.cast::<u8>().cast_mut();
        if let Some(offset) = layout.run(elements.count as usize) {
            let start = buffer.wrapping_offset(offset);
            given(start, bytes)?;
            return Ok((start, bytes));
        }
        let room = self.room(bytes);
        // SAFETY: the caller promises what this function requires.
        unsafe { self.unpack_at_end(elements, room, bytes)? };
        Ok((room, bytes))
    }

    /// Unpacks data at the end.
    ///
    /// # Safety
    /// The buffer has room for the elements, until the operation is over, and the data are there then.
    pub unsafe fn unpack_at_end(&mut self, elements: Elements, from: *const u8, bytes: usize) -> Result {
        let layout = datatype::share(elements.datatype)?;
        let into = elements.buffer.cast::<u8>().cast_mut();
        self.unpacks.push(Unpack { layout, from, bytes, into });
        Ok(())
    }
}

/// Refuses a buffer that is both source and target.
pub fn check_apart(source: *const u8, target: *mut u8, bytes: usize) -> Result {
    ensure!(
        source != target.cast_const() || bytes == 0 || source.is_null(),
        MPI_ERR_BUFFER,
        "the data to send lie where the result goes. Use MPI_IN_PLACE, or another buffer"
    );
    Ok(())
}

/// Refuses blocks whose lengths at the sending and the receiving end differ.
pub fn check_same(sent: usize, received: usize) -> Result {
    ensure!(
        sent == received,
        MPI_ERR_TRUNCATE,
        "a block of {sent} bytes is sent where {received} are received. Both must have one type signature"
    );
    Ok(())
}
