//! The arguments of operations: data at the origin, and the bytes at the target that they stand for.

use super::Window;
use super::part::Part;
use crate::abi::*;
use crate::chapters::datatype::{self, Basic, Datatype};
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::Mpi;
use crate::chapters::p2p::bytes_of;
use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A buffer of the program.
#[derive(Clone, Copy)]
pub struct Buffer {
    pub start: *const c_void,
    pub count: i64,
    pub datatype: MPI_Datatype,
}

impl Buffer {
    /// Its datatype and the length of its data.
    pub fn describe(&self, mpi: &Mpi, name: &str) -> Result<(&'static Datatype, usize)> {
        ensure!(self.count >= 0, MPI_ERR_COUNT, "{name}_count is {}, which is negative", self.count);
        let datatype = static_datatype(mpi, self.datatype)?;
        Ok((datatype, bytes_of(self.count, datatype)?))
    }

    /// A share of its datatype, for data that arrive later.
    pub fn share(&self) -> Result<Arc<Datatype>> {
        datatype::share(self.datatype)
    }
}

/// The datatype with a handle. The program does not free it during the call.
fn static_datatype(_mpi: &Mpi, handle: MPI_Datatype) -> Result<&'static Datatype> {
    let datatype = datatype::find(handle)?;
    ensure!(
        datatype.is_committed(),
        MPI_ERR_TYPE,
        "the datatype is not committed. Call MPI_Type_commit first"
    );
    Ok(datatype)
}

/// The place of an operation at its target.
#[derive(Clone, Copy)]
pub struct Place {
    pub rank: c_int,
    pub disp: isize,
    pub count: i64,
    pub datatype: MPI_Datatype,
}

/// Bytes at a target: from the start of its part, or addresses of a dynamic window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocks {
    One(usize, usize),
    Many(Vec<(usize, usize)>),
}

impl Blocks {
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (one, many) = match self {
            Blocks::One(offset, bytes) => (Some((*offset, *bytes)), &[][..]),
            Blocks::Many(blocks) => (None, &blocks[..]),
        };
        one.into_iter().chain(many.iter().copied())
    }

    pub fn len(&self) -> usize {
        match self {
            Blocks::One(..) => 1,
            Blocks::Many(blocks) => blocks.len(),
        }
    }

    /// The length of the data.
    pub fn bytes(&self) -> usize {
        self.iter().map(|(_, bytes)| bytes).sum()
    }

    /// The blocks of the first bytes of all.
    pub fn first(&self, bytes: usize, all: usize) -> Cow<'_, Blocks> {
        match bytes < all {
            true => Cow::Owned(self.split(bytes).0),
            false => Cow::Borrowed(self),
        }
    }

    /// The blocks of the first bytes, and those of the others.
    pub fn split(&self, bytes: usize) -> (Blocks, Blocks) {
        let (mut first, mut others, mut rest) = (Vec::new(), Vec::new(), bytes);
        for (offset, n) in self.iter() {
            let here = n.min(rest);
            rest -= here;
            if here > 0 {
                first.push((offset, here));
            }
            if here < n {
                others.push((offset.wrapping_add(here), n - here));
            }
        }
        (Blocks::Many(first), Blocks::Many(others))
    }
}

/// Refuses a target buffer whose bytes do not fit the buffers of the origin: those that give data have at
/// most as many, and those that receive data at least.
fn check_fit(there: usize, fitting: &RangeInclusive<usize>) -> Result {
    ensure!(
        there >= *fitting.start(),
        MPI_ERR_TRUNCATE,
        "the data of the origin have {} bytes, but the target buffer has room for {there}. Give a larger \
         target_count",
        fitting.start()
    );
    ensure!(
        there <= *fitting.end(),
        MPI_ERR_TRUNCATE,
        "the data of the target have {there} bytes, but the buffer that receives them has room for {}. Give \
         it more elements",
        fitting.end()
    );
    Ok(())
}

impl Place {
    /// The bytes of the place, which the part has, and their number, which is one of `fitting`.
    pub fn blocks(
        &self,
        mpi: &Mpi,
        window: &Window,
        part: &Part,
        fitting: RangeInclusive<usize>,
    ) -> Result<(Blocks, usize)> {
        ensure!(self.count >= 0, MPI_ERR_COUNT, "target_count is {}, which is negative", self.count);
        let datatype = static_datatype(mpi, self.datatype)?;
        let bytes = bytes_of(self.count, datatype)?;
        check_fit(bytes, &fitting)?;
        let is_address = window.is_dynamic();
        ensure!(
            is_address || self.disp >= 0,
            MPI_ERR_DISP,
            "target_disp is {}, which is negative",
            self.disp
        );
        // Nothing is moved, wherever the place is: a part without memory has place for it as well.
        if bytes == 0 {
            return Ok((Blocks::One(0, 0), 0));
        }
        let start = part.offset(self.disp).ok_or_else(|| self.outside(part))?;
        let blocks = blocks_of(datatype, self.count as usize, start);
        if !is_address {
            let has = |(offset, n): (usize, usize)| offset <= part.bytes && n <= part.bytes - offset;
            ensure!(blocks.iter().all(has), MPI_ERR_RMA_RANGE, "{}", self.outside(part).text());
        } else {
            // Where the ranges are not known here, the target checks.
            let known = &window.known[self.rank as usize];
            let has = |(at, n)| n == 0 || part.peer.has_attached(known, at, n) != Some(false);
            ensure!(blocks.iter().all(has), MPI_ERR_RMA_RANGE, "{}", self.detached(part));
        }
        Ok((blocks, bytes))
    }

    #[cold]
    fn outside(&self, part: &Part) -> Error {
        Error::new(
            MPI_ERR_RMA_RANGE,
            format!(
                "{} elements at displacement {} exceed the window of rank {}, which has {} bytes in units of \
                 {}",
                self.count, self.disp, self.rank, part.bytes, part.disp_unit
            ),
        )
    }

    #[cold]
    fn detached(&self, part: &Part) -> String {
        format!(
            "rank {} (PE {}) has not attached all of the {} elements at address {:#x}. Attach the memory \
             first",
            self.rank, part.pe, self.count, self.disp
        )
    }
}

/// The runs of bytes of `count` elements from an offset on, in the order of their data.
fn blocks_of(datatype: &Datatype, count: usize, start: usize) -> Blocks {
    let bytes = count * datatype.size();
    if let Some(first) = datatype.run(count) {
        return Blocks::One(start.wrapping_add_signed(first), bytes);
    }
    let place = |(offset, bytes): (isize, usize)| (start.wrapping_add_signed(offset), bytes);
    Blocks::Many(datatype.blocks(count).map(place).collect())
}

/// The elementary type of an element that accumulates work on.
pub fn element_of(datatype: &Datatype) -> Result<Basic> {
    datatype.only_basic().ok_or_else(|| {
        Error::new(MPI_ERR_TYPE, "the datatype is not made of one predefined type, which accumulates require")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_cut_where_the_data_end() {
        let blocks = Blocks::Many(vec![(10, 4), (30, 4), (20, 4)]);
        let many = |pairs: &[(usize, usize)]| Blocks::Many(pairs.to_vec());
        assert_eq!(blocks.split(0), (many(&[]), blocks.clone()));
        assert_eq!(blocks.split(4), (many(&[(10, 4)]), many(&[(30, 4), (20, 4)])));
        assert_eq!(blocks.split(6), (many(&[(10, 4), (30, 2)]), many(&[(32, 2), (20, 4)])));
        assert_eq!(blocks.split(12), (blocks.clone(), many(&[])));
        assert_eq!(Blocks::One(5, 9).first(3, 9).iter().collect::<Vec<_>>(), [(5, 3)]);
        assert_eq!(*blocks.first(12, 12), blocks);
    }

    #[test]
    fn the_target_buffer_has_room_for_the_data_and_fits_the_result() {
        let class = |there, fitting| check_fit(there, &fitting).map_err(|error| error.code());
        assert_eq!(class(8, 8..=usize::MAX), Ok(()));
        assert_eq!(class(8, 0..=8), Ok(()));
        assert_eq!(class(7, 8..=usize::MAX), Err(MPI_ERR_TRUNCATE));
        assert_eq!(class(9, 0..=8), Err(MPI_ERR_TRUNCATE));
    }
}
