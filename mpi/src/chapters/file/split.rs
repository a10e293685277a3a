//! Split collective accesses. The first half does the access, and the second reports it.
//!
//! Invariant: a file has at most one that has begun.

use super::access::{Buffer, Direction, Moved};
use super::{File, find};
use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::Mpi;
use crate::chapters::request::store;

/// A split collective access that has begun.
pub struct Split {
    call: &'static str,
    /// The address of the buffer.
    buffer: usize,
    moved: Moved,
}

impl Split {
    /// Its name, without `_begin`.
    pub fn call(&self) -> &'static str {
        self.call
    }
}

impl File {
    fn begin(&self, call: &'static str, buffer: *const c_void, moved: Moved) {
        *self.split() = Some(Split { call, buffer: buffer.addr(), moved });
    }

    fn end(&self, call: &'static str, buffer: *const c_void) -> Result<Moved> {
        let mut split = self.split();
        let Some(begun) = &*split else {
            let text = format!("no split collective access has begun. Call {call}_begin first");
            return Err(Error::new(MPI_ERR_OTHER, text));
        };
        ensure!(
            begun.call == call,
            MPI_ERR_OTHER,
            "{}_begin has begun the access that is under way. End it with {0}_end",
            begun.call
        );
        ensure!(
            begun.buffer == buffer.addr(),
            MPI_ERR_BUFFER,
            "the buffer is another one than at {call}_begin. Give the same"
        );
        let moved = begun.moved;
        *split = None;
        Ok(moved)
    }
}

/// Defines a second half.
macro_rules! ends {
    ($end:ident $call:literal $buffer:ty;) => {
        pub unsafe fn $end(_mpi: &Mpi, fh: MPI_File, buf: $buffer, status: *mut MPI_Status) -> Result {
            let moved = find(fh)?.end($call, buf)?;
            // SAFETY: the caller's pointer is null, or valid for one value.
            unsafe { store(status, &moved.status()) };
            Ok(())
        }
    };
}

/// Defines the halves of accesses at a file pointer.
macro_rules! split {
    ($($begin:ident $end:ident $call:literal $direction:ident $buffer:ty, $access:ident;)*) => {$(
        pub unsafe fn $begin(
            mpi: &Mpi,
            fh: MPI_File,
            buf: $buffer,
            count: i64,
            datatype: MPI_Datatype,
        ) -> Result {
            let file = find(fh)?;
            let buffer = Buffer { start: buf, count, datatype };
            // SAFETY: the caller promises the buffer.
            let moved = unsafe { file.$access(mpi, Direction::$direction, buffer)? };
            file.begin($call, buf, moved);
            Ok(())
        }

        ends! { $end $call $buffer; }
    )*};
}

/// Defines the halves of accesses at an offset.
macro_rules! split_at {
    ($($begin:ident $end:ident $call:literal $direction:ident $buffer:ty;)*) => {$(
        pub unsafe fn $begin(
            mpi: &Mpi,
            fh: MPI_File,
            offset: MPI_Offset,
            buf: $buffer,
            count: i64,
            datatype: MPI_Datatype,
        ) -> Result {
            let file = find(fh)?;
            let buffer = Buffer { start: buf, count, datatype };
            // SAFETY: the caller promises the buffer.
            let moved = unsafe { file.access_at_all(mpi, Direction::$direction, offset, buffer)? };
            file.begin($call, buf, moved);
            Ok(())
        }

        ends! { $end $call $buffer; }
    )*};
}

split! {
    file_read_all_begin file_read_all_end "MPI_File_read_all" Read *mut c_void, access_all;
    file_write_all_begin file_write_all_end "MPI_File_write_all" Write *const c_void, access_all;
    file_read_ordered_begin file_read_ordered_end "MPI_File_read_ordered" Read *mut c_void, access_ordered;
    file_write_ordered_begin file_write_ordered_end "MPI_File_write_ordered" Write *const c_void,
        access_ordered;
}

split_at! {
    file_read_at_all_begin file_read_at_all_end "MPI_File_read_at_all" Read *mut c_void;
    file_write_at_all_begin file_write_at_all_end "MPI_File_write_at_all" Write *const c_void;
}
