//! Accumulates, and what fetches the old values.

use super::api::{Landing, target};
use super::apply::Update;
use super::arguments::{Blocks, Buffer, Place, element_of};
use super::exclude::Entry;
use super::request::{self, Action, Head};
use super::transfer::Transfer;
use super::way::{Way, is_asked_for, read_process, write_process};
use super::{Window, fast, find};
use crate::abi::*;
use crate::chapters::error::{Result, ensure};
use crate::chapters::library::{Mpi, output};
use crate::chapters::p2p::{given, outgoing};
use pelago_fabric::copy;
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// The operation of an accumulate, which is a predefined one.
fn check_op(op: MPI_Op, may_fetch: bool) -> Result {
    ensure!(
        op.0 >= MPI_SUM.0 && op.0 <= MPI_NO_OP.0,
        MPI_ERR_OP,
        "the operation is none of the predefined ones, which accumulates require"
    );
    ensure!(
        may_fetch || op != MPI_NO_OP,
        MPI_ERR_OP,
        "MPI_NO_OP is for calls that fetch: MPI_Get_accumulate, MPI_Rget_accumulate, MPI_Fetch_and_op"
    );
    Ok(())
}

/// `MPI_Accumulate`.
pub unsafe fn accumulate(
    mpi: &Mpi,
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: i64,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
) -> Result {
    let window = find(win)?;
    let (here, there) = ((origin_count, origin_datatype), (target_count, target_datatype));
    if op != MPI_NO_OP
        && !origin_addr.is_null()
        && let Some(words) = fast::words(window, here, target_rank, target_disp, there, op)
    {
        // SAFETY: the caller guarantees the origin.
        unsafe { words.update(mpi, window, origin_addr.cast(), null_mut()) };
        return Ok(());
    }
    check_op(op, false)?;
    let origin = Buffer { start: origin_addr, count: origin_count, datatype: origin_datatype };
    let place =
        Place { rank: target_rank, disp: target_disp, count: target_count, datatype: target_datatype };
    // SAFETY: the caller guarantees the memory, as this function demands.
    unsafe { update(mpi, window, (origin, None), place, op).map(drop) }
}

/// `MPI_Raccumulate`: complete here when the origin may be used again.
pub unsafe fn raccumulate(
    mpi: &Mpi,
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: i64,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Result {
    let (window, request) = (find(win)?, output("request", request)?);
    check_op(op, false)?;
    let origin = Buffer { start: origin_addr, count: origin_count, datatype: origin_datatype };
    let place =
        Place { rank: target_rank, disp: target_disp, count: target_count, datatype: target_datatype };
    // SAFETY: the program keeps the conditions that the standard has for this call. The origin is free at
    // return.
    unsafe { update(mpi, window, (origin, None), place, op)? };
    window.give(None, request)
}

/// `MPI_Get_accumulate`.
pub unsafe fn get_accumulate(
    mpi: &Mpi,
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: MPI_Datatype,
    result_addr: *mut c_void,
    result_count: i64,
    result_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: i64,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
) -> Result {
    let window = find(win)?;
    let (here, there) = ((result_count, result_datatype), (target_count, target_datatype));
    if (op == MPI_NO_OP || (origin_count, origin_datatype) == here)
        && let Some(words) = fast::words(window, here, target_rank, target_disp, there, op)
    {
        // SAFETY: the caller guarantees origin and result.
        unsafe { words.update(mpi, window, origin_addr.cast(), result_addr.cast()) };
        return Ok(());
    }
    check_op(op, true)?;
    let origin = Buffer { start: origin_addr, count: origin_count, datatype: origin_datatype };
    let result = Buffer { start: result_addr, count: result_count, datatype: result_datatype };
    let place =
        Place { rank: target_rank, disp: target_disp, count: target_count, datatype: target_datatype };
    // SAFETY: the caller guarantees the memory, as this function demands.
    unsafe { update(mpi, window, (origin, Some(result)), place, op).map(drop) }
}

/// `MPI_Rget_accumulate`.
pub unsafe fn rget_accumulate(
    mpi: &Mpi,
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: MPI_Datatype,
    result_addr: *mut c_void,
    result_count: i64,
    result_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: i64,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Result {
    let (window, request) = (find(win)?, output("request", request)?);
    check_op(op, true)?;
    let origin = Buffer { start: origin_addr, count: origin_count, datatype: origin_datatype };
    let result = Buffer { start: result_addr, count: result_count, datatype: result_datatype };
    let place =
        Place { rank: target_rank, disp: target_disp, count: target_count, datatype: target_datatype };
    // SAFETY: the caller guarantees the memory, as this function demands.
    let transfer = unsafe { update(mpi, window, (origin, Some(result)), place, op)? };
    window.give(transfer, request)
}

/// `MPI_Fetch_and_op`.
pub unsafe fn fetch_and_op(
    mpi: &Mpi,
    origin_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    op: MPI_Op,
    win: MPI_Win,
) -> Result {
    let window = find(win)?;
    let one = (1, datatype);
    if let Some(words) = fast::words(window, one, target_rank, target_disp, one, op) {
        // SAFETY: the caller guarantees origin and result.
        unsafe { words.update(mpi, window, origin_addr.cast(), result_addr.cast()) };
        return Ok(());
    }
    check_op(op, true)?;
    ensure!(
        mpi.datatype(datatype)?.basic().is_some(),
        MPI_ERR_TYPE,
        "MPI_Fetch_and_op is for predefined datatypes, not for derived ones. Call MPI_Get_accumulate"
    );
    let origin = Buffer { start: origin_addr, count: 1, datatype };
    let result = Buffer { start: result_addr, count: 1, datatype };
    let place = Place { rank: target_rank, disp: target_disp, count: 1, datatype };
    // SAFETY: the caller guarantees the memory, as this function demands.
    unsafe { update(mpi, window, (origin, Some(result)), place, op).map(drop) }
}

/// Accumulates, and fetches the old values where there is a buffer for them, also of elements behind the data
/// of the origin: the transfer, if they arrive later.
unsafe fn update(
    mpi: &Mpi,
    window: &Window,
    (origin, result): (Buffer, Option<Buffer>),
    place: Place,
    op: MPI_Op,
) -> Result<Option<Arc<Transfer>>> {
    let layout = mpi.datatype(place.datatype)?;
    // With MPI_NO_OP the origin is ignored.
    let bytes = if op == MPI_NO_OP { 0 } else { origin.describe(mpi, "origin")?.1 };
    let room = match &result {
        Some(result) => result.describe(mpi, "result")?.1,
        None => usize::MAX,
    };
    window.serve(mpi);
    let has_task = result.is_some() || bytes > 0;
    if !has_task || room == 0 || layout.size() == 0 {
        // A type without data is made of no predefined type.
        return target(mpi, window, &place, bytes..=room).map(|_| None);
    }
    let element = element_of(layout)?;
    let op = if bytes > 0 { op } else { MPI_NO_OP };
    let update = Update::new(op, element)?;
    ensure!(
        update.are_whole(bytes),
        MPI_ERR_TYPE,
        "the {bytes} bytes of the origin end within an element of the target"
    );
    // Bytes are replaced without regard to their type.
    if !matches!(op, MPI_NO_OP | MPI_REPLACE) {
        let (operands, _) = origin.describe(mpi, "origin")?;
        ensure!(
            operands.only_basic() == Some(element),
            MPI_ERR_TYPE,
            "the datatypes of the origin and of the target are not made of the same predefined type"
        );
    }
    let Some((rank, blocks, there)) = target(mpi, window, &place, bytes..=room)? else { return Ok(None) };
    let packed = match op {
        MPI_NO_OP => None,
        // SAFETY: the caller promises the elements.
        _ => Some(unsafe { outgoing(origin.start, origin.count, mpi.datatype(origin.datatype)?)? }),
    };
    let data = packed.as_ref().map_or(null(), |packed| packed.data().0);
    if packed.is_some() {
        given(data, bytes)?;
    }
    let landing = result.map(|result| Landing::new(mpi, result, there)).transpose()?;
    // SAFETY: the blocks lie in the part and have room for the data, and the landing has their length.
    unsafe { execute(mpi, window, rank, (&update, &blocks), (data, bytes), landing) }
}

/// # Safety
/// The blocks lie in the part and have room for the data, which are null for `MPI_NO_OP`; the landing has
/// their length.
unsafe fn execute(
    mpi: &Mpi,
    window: &Window,
    rank: usize,
    (update, blocks): (&Update, &Blocks),
    (data, bytes): (*const u8, usize),
    landing: Option<Landing>,
) -> Result<Option<Arc<Transfer>>> {
    let part = &window.parts[rank];
    let old = landing.as_ref().map_or(null_mut(), |landing| landing.start);
    // SAFETY: the caller guarantees the memory, as this function demands.
    unsafe {
        match window.way(mpi, rank) {
            Way::Direct(base) => {
                let entry = Entry::Waiting(mpi, &window.accumulators, &part.peer);
                update.apply((base, part.has_atomics), blocks, (data, bytes), old, entry);
            }
            Way::Process { pid, base }
                if !is_asked_for(mpi, window, rank, blocks)
                    && process_update(
                        mpi,
                        window,
                        rank,
                        (pid, base),
                        (update, blocks),
                        (data, bytes),
                        old,
                    ) => {}
            Way::Process { .. } | Way::Net { .. } | Way::Request => {
                let action = if landing.is_some() { Action::Fetch } else { Action::Accumulate };
                let head = Head { op: update.op, element: update.element, ..Head::new(action, blocks) };
                let data = (data, bytes);
                let Some(landing) = landing else {
                    request::accumulate(mpi, window, rank, head, data)?;
                    return Ok(None);
                };
                let room = (landing.start, landing.bytes);
                let transfer = request::ask(mpi, window, rank, head, &[data], room, landing.finish())?;
                window.outstanding.add(&transfer);
                return Ok(Some(transfer));
            }
        }
        if let Some(landing) = landing {
            landing.unpack();
        }
    }
    Ok(None)
}

/// Accumulates in the memory of another process, alone on the part; `false` if the system refuses it.
///
/// # Safety
/// As [`execute`].
unsafe fn process_update(
    mpi: &Mpi,
    window: &Window,
    rank: usize,
    (pid, base): (u32, u64),
    (update, blocks): (&Update, &Blocks),
    (data, bytes): (*const u8, usize),
    old: *mut u8,
) -> bool {
    let _alone = window.accumulators.exclude(mpi, &window.parts[rank].peer);
    let all = blocks.bytes();
    let mut words = vec![0u64; all.div_ceil(8)];
    let at: *mut u8 = words.as_mut_ptr().cast();
    // SAFETY: the caller guarantees the memory, and the words have the length of the blocks.
    unsafe {
        if !read_process(pid, base, blocks, at) {
            return false;
        }
        if !old.is_null() {
            copy::copy(old, at, all);
        }
        update.apply_here(at, (data, null_mut()), bytes);
        update.op == MPI_NO_OP || write_process(pid, base, &blocks.first(bytes, all), at)
    }
}

/// `MPI_Compare_and_swap`.
pub unsafe fn compare_and_swap(
    mpi: &Mpi,
    origin_addr: *const c_void,
    compare_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    win: MPI_Win,
) -> Result {
    let window = find(win)?;
    let one = (1, datatype);
    if let Some(words) = fast::words(window, one, target_rank, target_disp, one, MPI_REPLACE)
        && words.are_integers()
    {
        // SAFETY: the caller guarantees all elements.
        if unsafe { words.swap(window, origin_addr.cast(), compare_addr.cast(), result_addr.cast()) } {
            return Ok(());
        }
    }
    window.serve(mpi);
    let update = Update::swap(datatype)?;
    let place = Place { rank: target_rank, disp: target_disp, count: 1, datatype };
    let bytes = mpi.datatype(datatype)?.size();
    let Some((rank, blocks, _)) = target(mpi, window, &place, bytes..=bytes)? else { return Ok(()) };
    let Blocks::One(offset, _) = blocks else { unreachable!("an element of a predefined type is one run") };
    let part = &window.parts[rank];
    let (operands, old) = ((origin_addr.cast(), compare_addr.cast()), result_addr.cast());
    // SAFETY: the element lies in the part, and the caller promises the others.
    unsafe {
        match window.way(mpi, rank) {
            Way::Direct(base) => {
                let at = (base.wrapping_add(offset), part.has_atomics);
                update.swap_at(at, operands, old, Entry::Waiting(mpi, &window.accumulators, &part.peer));
                return Ok(());
            }
            Way::Process { pid, base } if !is_asked_for(mpi, window, rank, &blocks) => {
                let _alone = window.accumulators.exclude(mpi, &part.peer);
                let mut word = [0u64; 4];
                let at = word.as_mut_ptr().cast();
                if read_process(pid, base, &blocks, at) {
                    update.swap_here(at, operands, old);
                    if write_process(pid, base, &blocks, at) {
                        return Ok(());
                    }
                }
            }
            Way::Process { .. } | Way::Net { .. } | Way::Request => {}
        }
        let head = Head { element: update.element, ..Head::new(Action::Swap, &blocks) };
        let (data, room) = ([(operands.0, bytes), (operands.1, bytes)], (old, bytes));
        let transfer = request::ask(mpi, window, rank, head, &data, room, Box::new(|| ()))?;
        window.outstanding.add(&transfer);
    }
    Ok(())
}
