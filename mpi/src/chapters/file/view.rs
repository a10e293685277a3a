//! Views: which bytes of a file a process sees, and in what order (MPI 5.0, section 14.3).
//!
//! Invariant: the displacements of a filetype are not negative and do not decrease, so that the data of a
//! view lie in the file in their order.

use super::agree::agree_on_same;
use super::datarep::{Representation, name_of};
use super::inquiry::HINTS;
use super::{File, find};
use crate::abi::*;
use crate::chapters::comm::{barrier, digest};
use crate::chapters::datatype::{self, Datatype};
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::info;
use crate::chapters::library::{Mpi, output};
use pelago_fabric::sync::Ordering;
use std::sync::{Arc, PoisonError};

/// The data of a view lie in several pieces.
const IN_PIECES: u64 = 1;
/// Some of its data do not lie behind those before.
const NOT_ASCENDING: u64 = 2;

/// A view.
pub struct View {
    /// Where it begins, in bytes.
    pub disp: i64,
    etype: Arc<Datatype>,
    filetype: Arc<Datatype>,
    pub representation: Representation,
    /// The filetype as it lies in the file.
    tile: Arc<Datatype>,
    /// Bytes of the data of an etype in the file.
    pub etype_bytes: usize,
}

impl View {
    /// That of a file that was just opened: its bytes.
    pub fn first() -> Result<View> {
        let byte = datatype::share(MPI_BYTE)?;
        Ok(View {
            disp: 0,
            etype: Arc::clone(&byte),
            filetype: Arc::clone(&byte),
            representation: Representation::NATIVE,
            tile: byte,
            etype_bytes: 1,
        })
    }

    /// Whether its data lie in the file in several pieces.
    fn is_in_pieces(&self) -> bool {
        self.tile.run(2).is_none()
    }

    /// Whether each byte of its data lies behind the one before, also those of the next filetype.
    fn is_ascending(&self) -> bool {
        let mut end = 0;
        let mut blocks = self.tile.blocks(2);
        blocks.all(|(start, bytes)| {
            let is_behind = start >= end;
            end = start + bytes as isize;
            is_behind
        })
    }

    /// The bits [`IN_PIECES`] and [`NOT_ASCENDING`].
    fn kind(&self) -> u64 {
        let in_pieces = if self.is_in_pieces() { IN_PIECES } else { 0 };
        let not_ascending = if self.is_ascending() { 0 } else { NOT_ASCENDING };
        in_pieces | not_ascending
    }

    /// The byte of the view's data that an offset in etypes means.
    pub fn first_byte(&self, offset: i64) -> Result<usize> {
        ensure!(offset >= 0, MPI_ERR_ARG, "the offset is {offset}, which is negative");
        (offset as usize).checked_mul(self.etype_bytes).ok_or_else(|| beyond(offset))
    }

    /// The etypes that these bytes of data in the file are.
    pub fn etypes_in(&self, bytes: usize) -> Result<i64> {
        if bytes == 0 {
            return Ok(0);
        }
        ensure!(
            self.etype_bytes > 0 && bytes.is_multiple_of(self.etype_bytes),
            MPI_ERR_IO,
            "the access has {bytes} bytes in the file, which is no multiple of the {} bytes of an etype",
            self.etype_bytes
        );
        Ok((bytes / self.etype_bytes) as i64)
    }

    /// The contiguous pieces of the file that hold these bytes of the view's data: position and bytes.
    pub fn pieces(&self, first: usize, bytes: usize) -> Result<impl Iterator<Item = (i64, usize)> + '_> {
        let size = self.tile.size();
        ensure!(bytes == 0 || size > 0, MPI_ERR_IO, "the filetype of the view has no data");
        let end = first.checked_add(bytes).ok_or_else(|| beyond(self.disp))?;
        let tiles = end.checked_div(size).unwrap_or(0) + 1;
        let last = self.tile.extent() as i128 * tiles as i128 + self.tile.true_lb() as i128;
        let last = last + self.tile.true_extent() as i128 + i128::from(self.disp);
        ensure!(last <= i128::from(i64::MAX), MPI_ERR_ARG, "the access ends beyond 2^63 bytes");
        let mut rest = bytes;
        let cut = move |(offset, bytes): (isize, usize)| {
            let taken = bytes.min(rest);
            rest -= taken;
            (taken > 0).then_some((self.disp + offset as i64, taken))
        };
        let blocks = if bytes > 0 { Some(self.tile.blocks_from(tiles, first)) } else { None };
        Ok(blocks.into_iter().flatten().map_while(cut))
    }

    /// The position in the file of a byte of the view's data.
    pub fn place(&self, byte: usize) -> Result<i64> {
        if self.tile.size() == 0 {
            return Ok(self.disp);
        }
        Ok(self.pieces(byte, 1)?.next().map_or(self.disp, |(position, _)| position))
    }

    /// The etypes of the view that have a byte before this position in the file.
    pub fn etypes_before(&self, position: i64) -> i64 {
        let (size, extent) = (self.tile.size(), self.tile.extent() as i64);
        let beyond = position - self.disp - self.tile.true_lb() as i64;
        if beyond <= 0 || size == 0 {
            return 0;
        }
        let tiles = if extent > 0 { beyond / extent } else { 0 };
        // The tile that the position is within.
        let limit = position - self.disp - tiles * extent;
        let inner = self.tile.blocks(1).map(|(offset, bytes)| (limit - offset as i64).clamp(0, bytes as i64));
        let bytes = tiles * size as i64 + inner.sum::<i64>();
        (bytes as u64).div_ceil(self.etype_bytes.max(1) as u64) as i64
    }
}

#[cold]
fn beyond(offset: i64) -> Error {
    Error::new(MPI_ERR_ARG, format!("the offset {offset} is beyond 2^63 bytes"))
}

/// Checks that the data of a filetype or an etype lie in their order; those of a writer do not overlap.
fn check_order(what: &str, of: &Datatype, is_writer: bool) -> Result {
    let (mut last_start, mut last_end) = (0, 0);
    for (offset, bytes) in of.blocks(1) {
        ensure!(offset >= 0, MPI_ERR_IO, "the {what} has data at {offset}. Displacements are not negative");
        ensure!(
            offset >= last_start,
            MPI_ERR_IO,
            "the {what} has data at {offset} after data at {last_start}. Displacements do not decrease"
        );
        ensure!(
            !is_writer || offset as usize >= last_end,
            MPI_ERR_IO,
            "the {what} has data at {offset} twice, which only a file that is not written may have"
        );
        (last_start, last_end) = (offset, offset as usize + bytes);
    }
    Ok(())
}

impl File {
    /// The displacement of a new view.
    fn displacement(&self, mpi: &Mpi, disp: i64) -> Result<i64> {
        let is_sequential = self.amode & MPI_MODE_SEQUENTIAL != 0;
        if disp == MPI_DISPLACEMENT_CURRENT {
            ensure!(
                is_sequential,
                MPI_ERR_ARG,
                "the displacement disp is MPI_DISPLACEMENT_CURRENT, which is for files opened with \
                 MPI_MODE_SEQUENTIAL"
            );
            let view = self.view();
            return view.place(view.first_byte(self.shared_position(mpi))?);
        }
        ensure!(
            !is_sequential,
            MPI_ERR_ARG,
            "the file was opened with MPI_MODE_SEQUENTIAL. Give MPI_DISPLACEMENT_CURRENT as the displacement \
             disp"
        );
        ensure!(disp >= 0, MPI_ERR_ARG, "the displacement disp is {disp}, which is negative");
        Ok(disp)
    }

    fn new_view(
        &self,
        mpi: &Mpi,
        disp: i64,
        (etype, filetype): (MPI_Datatype, MPI_Datatype),
        datarep: *const c_char,
    ) -> Result<View> {
        self.check_no_split()?;
        let disp = self.displacement(mpi, disp)?;
        mpi.datatype(etype)?;
        mpi.datatype(filetype)?;
        let (etype, filetype) = (datatype::share(etype)?, datatype::share(filetype)?);
        // SAFETY: the caller's pointer is null, or that of a string.
        let representation = Representation::find(unsafe { name_of(datarep)? })?;
        ensure!(
            filetype.size() == 0 || filetype.size().checked_rem(etype.size()) == Some(0),
            MPI_ERR_ARG,
            "the filetype has {} bytes of data, which is no multiple of the {} of the etype",
            filetype.size(),
            etype.size()
        );
        let tile = representation.in_file(mpi, &filetype)?;
        let etype_tile = representation.in_file(mpi, &etype)?;
        // Data have the lengths of the file, not those of memory.
        let is_writer = self.amode & MPI_MODE_RDONLY == 0;
        check_order("etype", &etype_tile, is_writer)?;
        check_order("filetype", &tile, is_writer)?;
        let etype_bytes = etype_tile.size();
        Ok(View { disp, etype, filetype, representation, tile, etype_bytes })
    }
}

/// `MPI_File_set_view`: the file pointers are at the beginning of the view afterwards.
pub unsafe fn file_set_view(
    mpi: &Mpi,
    fh: MPI_File,
    disp: MPI_Offset,
    etype: MPI_Datatype,
    filetype: MPI_Datatype,
    datarep: *const c_char,
    given: MPI_Info,
) -> Result {
    let file = find(fh)?;
    if file.amode & MPI_MODE_SEQUENTIAL != 0 {
        // The current displacement is where the accesses of all processes before this call have ended.
        barrier(mpi, &file.comm)?;
    }
    let view = info::given(given).and_then(|_| file.new_view(mpi, disp, (etype, filetype), datarep));
    let told = match &view {
        // The extents of etypes are the same at all processes.
        Ok(view) => Ok([digest(&(view.representation.name(), view.etype.extent())), view.kind()]),
        Err(error) => Err(error.copy()),
    };
    let all = agree_on_same(mpi, &file.comm, told, "datarep or of the extent of the etype")?;
    let kinds = all.iter().fold(0, |kinds, kind| kinds | kind);
    file.is_in_pieces.store(kinds == IN_PIECES, Ordering::Relaxed);
    file.hints.accept(given, &HINTS)?;
    *file.view.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(view?);
    *file.position() = 0;
    file.set_shared_position(mpi, Ok(0))
}

/// `MPI_File_get_view`.
pub unsafe fn file_get_view(
    _mpi: &Mpi,
    fh: MPI_File,
    disp: *mut MPI_Offset,
    etype: *mut MPI_Datatype,
    filetype: *mut MPI_Datatype,
    datarep: *mut c_char,
) -> Result {
    let view = find(fh)?.view();
    let (disp, datarep) = (output("disp", disp)?, output("datarep", datarep)?);
    let (etype, filetype) = (output("etype", etype)?, output("filetype", filetype)?);
    let name = view.representation.name();
    // SAFETY: the caller's pointers are valid, and the text has room for MPI_MAX_DATAREP_STRING characters.
    unsafe {
        disp.write(view.disp);
        etype.write(datatype::handle_for_program(&view.etype)?);
        filetype.write(datatype::handle_for_program(&view.filetype)?);
        datarep.cast::<u8>().copy_from_nonoverlapping(name.as_ptr(), name.len());
        datarep.add(name.len()).write(0);
    }
    Ok(())
}

/// `MPI_File_get_byte_offset`.
pub unsafe fn file_get_byte_offset(
    _mpi: &Mpi,
    fh: MPI_File,
    offset: MPI_Offset,
    disp: *mut MPI_Offset,
) -> Result {
    let (file, place) = (find(fh)?, output("disp", disp)?);
    file.check_positions()?;
    let view = file.view();
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(view.place(view.first_byte(offset)?)?) };
    Ok(())
}

/// `MPI_File_get_type_extent`.
pub unsafe fn file_get_type_extent(
    mpi: &Mpi,
    fh: MPI_File,
    datatype: MPI_Datatype,
    extent: crate::convert::IntegerOut,
) -> Result {
    let file = find(fh)?;
    ensure!(!extent.is_null(), MPI_ERR_ARG, "extent is null. Give the place of the result");
    let of = datatype::share(datatype)?;
    let in_file = file.view().representation.in_file(mpi, &of)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { extent.set(in_file.extent() as i64) };
    Ok(())
}
