//! Puts and gets.
//!
//! Their symbols first try a word in the window that was used last; whatever they do not do is left to the
//! general functions, which have the same arguments, so that a call of them is a jump.

use super::arguments::{Blocks, Buffer, Place};
use super::part::Part;
use super::request::{self, Action, Head};
use super::transfer::Transfer;
use super::way::{self, Way, get_net, put_net};
use super::{Window, fast, find, hot};
use crate::abi::*;
use crate::chapters::error::{self, On, Result};
use crate::chapters::library::{self, Mpi, output};
use crate::chapters::p2p::{given, outgoing};
use pelago_fabric::copy;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// `MPI_Put`.
#[inline]
unsafe fn put(
    mpi: &Mpi,
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: i64,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
) -> Result {
    let window = find(win)?;
    let (here, there) = ((origin_count, origin_datatype), (target_count, target_datatype));
    window.record.note_used();
    if !origin_addr.is_null()
        && let Some((target, bytes)) = fast::place(window.record, here, target_rank, target_disp, there)
    {
        // SAFETY: the place lies in the window; the caller guarantees the origin.
        unsafe { copy::transfer(target, origin_addr.cast(), bytes) };
        return Ok(());
    }
    let origin = Buffer { start: origin_addr, count: origin_count, datatype: origin_datatype };
    let place =
        Place { rank: target_rank, disp: target_disp, count: target_count, datatype: target_datatype };
    // SAFETY: the caller guarantees the memory, as this function demands.
    unsafe { put_slowly(mpi, window, origin, place) }
}

/// `MPI_Rput`: complete here when the origin may be used again.
pub unsafe fn rput(
    mpi: &Mpi,
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: i64,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Result {
    let (window, request) = (find(win)?, output("request", request)?);
    let origin = Buffer { start: origin_addr, count: origin_count, datatype: origin_datatype };
    let place =
        Place { rank: target_rank, disp: target_disp, count: target_count, datatype: target_datatype };
    // SAFETY: the program keeps the conditions that the standard has for this call. The origin is free at
    // return.
    unsafe { put_slowly(mpi, window, origin, place)? };
    window.give(None, request)
}

#[cold]
#[inline(never)]
unsafe fn put_slowly(mpi: &Mpi, window: &Window, origin: Buffer, place: Place) -> Result {
    let (datatype, bytes) = origin.describe(mpi, "origin")?;
    let target = target(mpi, window, &place, bytes..=usize::MAX)?;
    let Some((rank, blocks, room)) = target.filter(|_| bytes > 0) else { return Ok(()) };
    // SAFETY: the caller promises the elements.
    let data = unsafe { outgoing(origin.start, origin.count, datatype)? };
    let (data, _) = data.data();
    given(data, bytes)?;
    // SAFETY: the blocks lie in the part, and the first of them have the length of the data. Each way is done
    // with the data at return.
    unsafe {
        match window.way(mpi, rank) {
            Way::Direct(base) => way::scatter(base, &blocks.first(bytes, room), data),
            Way::Net { pe, offset } => put_net(mpi, (pe, offset), &blocks.first(bytes, room), data),
            Way::Process { pid, base }
                if !way::is_for_request(mpi, window, &blocks)
                    && way::write_process(pid, base, &blocks.first(bytes, room), data) => {}
            Way::Process { .. } | Way::Request => {
                request::send(mpi, window, rank, &Head::new(Action::Put, &blocks), &[(data, bytes)])?;
            }
        }
    }
    Ok(())
}

/// The rank and the bytes of a place, once this process has access to it, and their number, which is one of
/// `fitting`; `None` if there are none.
pub(super) fn target(
    mpi: &Mpi,
    window: &Window,
    place: &Place,
    fitting: RangeInclusive<usize>,
) -> Result<Option<(usize, Blocks, usize)>> {
    if place.rank == MPI_PROC_NULL {
        return Ok(None);
    }
    let rank = window.rank(place.rank)?;
    let part: &Part = window.admit(mpi, rank)?;
    let (blocks, bytes) = place.blocks(mpi, window, part, fitting)?;
    Ok((bytes > 0).then_some((rank, blocks, bytes)))
}

/// `MPI_Get`.
#[inline]
unsafe fn get(
    mpi: &Mpi,
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: i64,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
) -> Result {
    let window = find(win)?;
    let (here, there) = ((origin_count, origin_datatype), (target_count, target_datatype));
    window.record.note_used();
    if !origin_addr.is_null()
        && let Some((source, bytes)) = fast::place(window.record, here, target_rank, target_disp, there)
    {
        // SAFETY: the place lies in the window; the caller guarantees the origin.
        unsafe { copy::transfer(origin_addr.cast(), source, bytes) };
        return Ok(());
    }
    let origin = Buffer { start: origin_addr, count: origin_count, datatype: origin_datatype };
    let place =
        Place { rank: target_rank, disp: target_disp, count: target_count, datatype: target_datatype };
    // SAFETY: the caller guarantees the memory, as this function demands.
    unsafe { get_slowly(mpi, window, origin, place).map(drop) }
}

/// `MPI_Rget`.
pub unsafe fn rget(
    mpi: &Mpi,
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: i64,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Result {
    let (window, request) = (find(win)?, output("request", request)?);
    let origin = Buffer { start: origin_addr, count: origin_count, datatype: origin_datatype };
    let place =
        Place { rank: target_rank, disp: target_disp, count: target_count, datatype: target_datatype };
    // SAFETY: the caller guarantees the memory, as this function demands.
    let transfer = unsafe { get_slowly(mpi, window, origin, place)? };
    window.give(transfer, request)
}

/// Gets; the transfer, if the data arrive later.
#[cold]
#[inline(never)]
unsafe fn get_slowly(
    mpi: &Mpi,
    window: &Window,
    origin: Buffer,
    place: Place,
) -> Result<Option<Arc<Transfer>>> {
    let (_, room) = origin.describe(mpi, "origin")?;
    let Some((rank, blocks, bytes)) = target(mpi, window, &place, 0..=room)? else { return Ok(None) };
    let landing = Landing::new(mpi, origin, bytes)?;
    let into = landing.start;
    // SAFETY: the blocks lie in the part, and there is room for their data at the landing, which lives until
    // the transfer is over.
    unsafe {
        let transfer = match window.way(mpi, rank) {
            Way::Direct(base) => {
                way::gather(base, &blocks, into);
                landing.unpack();
                return Ok(None);
            }
            Way::Net { pe, offset } => get_net(mpi, rank, (pe, offset), &blocks, into, landing.finish()),
            Way::Process { pid, base }
                if !way::is_for_get_request(window, &blocks)
                    && way::read_process(pid, base, &blocks, into) =>
            {
                landing.unpack();
                return Ok(None);
            }
            Way::Process { .. } | Way::Request => {
                let (head, room) = (Head::new(Action::Get, &blocks), (into, bytes));
                request::ask(mpi, window, rank, head, &[], room, landing.finish())?
            }
        };
        window.outstanding.add(&transfer);
        Ok(Some(transfer))
    }
}

/// Where data for a buffer of the program arrive: in the buffer, or in memory from which they are unpacked.
pub(super) struct Landing {
    pub start: *mut u8,
    /// The length of the data.
    pub bytes: usize,
    apart: Option<(Box<[u64]>, Buffer)>,
}

// SAFETY: the program keeps the buffer and leaves it alone until the operation is complete.
unsafe impl Send for Landing {}

impl Landing {
    pub fn new(mpi: &Mpi, buffer: Buffer, bytes: usize) -> Result<Landing> {
        let datatype = mpi.datatype(buffer.datatype)?;
        if let Some(offset) = datatype.run(buffer.count as usize) {
            let start = buffer.start.cast::<u8>().cast_mut().wrapping_offset(offset);
            given(start, bytes)?;
            return Ok(Landing { start, bytes, apart: None });
        }
        let mut apart = vec![0u64; bytes.div_ceil(8)].into_boxed_slice();
        let start = apart.as_mut_ptr().cast();
        Ok(Landing { start, bytes, apart: Some((apart, buffer)) })
    }

    /// Brings the data, which have arrived, to the buffer.
    ///
    /// # Safety
    /// The buffer has room for them.
    pub unsafe fn unpack(self) {
        if let Some((_, buffer)) = &self.apart
            && let Ok(datatype) = buffer.share()
        {
            // SAFETY: the caller guarantees the memory, as this function demands.
            unsafe { datatype.unpack(self.start, self.bytes, buffer.start.cast::<u8>().cast_mut()) };
        }
    }

    /// The same, for later.
    pub fn finish(self) -> Box<dyn FnOnce() + Send> {
        let datatype = self.apart.as_ref().map(|(_, buffer)| buffer.share());
        Box::new(move || {
            let whole = self;
            if let (Some((_, buffer)), Some(Ok(datatype))) = (&whole.apart, datatype) {
                // SAFETY: the program keeps the buffer until the operation is complete, with room for the
                // data.
                unsafe { datatype.unpack(whole.start, whole.bytes, buffer.start.cast::<u8>().cast_mut()) };
            }
        })
    }
}

/// Makes the symbols of puts and gets in their two forms.
macro_rules! symbols {
    ($($quick:ident $general:ident $name:literal $body:ident $move:ident ($origin:ty, $count:ty);)*) => {$(
        #[inline(always)]
        pub unsafe fn $quick(
            origin_addr: $origin,
            origin_count: $count,
            origin_datatype: MPI_Datatype,
            target_rank: c_int,
            target_disp: MPI_Aint,
            target_count: $count,
            target_datatype: MPI_Datatype,
            win: MPI_Win,
        ) -> c_int {
            let (here, there) =
                ((origin_count.into(), origin_datatype), (target_count.into(), target_datatype));
            if let Some(record) = hot::last(win)
                && let Some(place) = fast::word(record, here, target_rank, target_disp, there)
            {
                // SAFETY: the place lies in the window; the caller guarantees the origin.
                if unsafe { $move(origin_addr, place) } {
                    return MPI_SUCCESS;
                }
            }
            // SAFETY: the caller keeps the promises that the standard requires.
            unsafe {
                $general(
                    origin_addr,
                    origin_count,
                    origin_datatype,
                    target_rank,
                    target_disp,
                    target_count,
                    target_datatype,
                    win,
                )
            }
        }

        #[cold]
        #[inline(never)]
        unsafe extern "C-unwind" fn $general(
            origin_addr: $origin,
            origin_count: $count,
            origin_datatype: MPI_Datatype,
            target_rank: c_int,
            target_disp: MPI_Aint,
            target_count: $count,
            target_datatype: MPI_Datatype,
            win: MPI_Win,
        ) -> c_int {
            let Some(mpi) = library::get() else { return error::not_initialized($name) };
            // SAFETY: the caller keeps the promises that the standard requires.
            let outcome = unsafe {
                $body(
                    mpi,
                    origin_addr,
                    origin_count.into(),
                    origin_datatype,
                    target_rank,
                    target_disp,
                    target_count.into(),
                    target_datatype,
                    win,
                )
            };
            outcome.map_or_else(|error| error::raise($name, error, &[Some(On::Win(win))]), |()| MPI_SUCCESS)
        }
    )*};
}

symbols! {
    quick_put general_put "MPI_Put" put put_word (*const c_void, c_int);
    quick_put_c general_put_c "MPI_Put_c" put put_word (*const c_void, MPI_Count);
    quick_get general_get "MPI_Get" get get_word (*mut c_void, c_int);
    quick_get_c general_get_c "MPI_Get_c" get get_word (*mut c_void, MPI_Count);
}

#[inline(always)]
unsafe fn put_word(origin: *const c_void, place: *mut u8) -> bool {
    // SAFETY: the caller guarantees both places.
    !origin.is_null() && unsafe { fast::copy_word(place, origin.cast()) }
}

#[inline(always)]
unsafe fn get_word(origin: *mut c_void, place: *mut u8) -> bool {
    // SAFETY: the caller guarantees both places.
    !origin.is_null() && unsafe { fast::copy_word(origin.cast(), place) }
}
