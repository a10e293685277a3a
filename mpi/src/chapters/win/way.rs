//! The ways to a part, and the movement of data on them.

use super::Window;
use super::arguments::Blocks;
use super::part::Home;
use super::transfer::Transfer;
use crate::chapters::library::Mpi;
use pelago_core::Pe;
use pelago_core::endpoint::RemoteAddress;
use pelago_core::endpoint::parcel::Parcel;
use pelago_core::msg::process;
use pelago_fabric::copy;
use std::ptr::null_mut;
use std::sync::Arc;

/// From this number of blocks on, a request or a parcel with their list is faster than a transfer of each, if
/// they have at most these bytes on average.
const REQUEST_BLOCKS: usize = 16;
const REQUEST_BLOCK_BYTES: usize = 1024;
/// The least number of blocks that fit in a parcel. Longer ones are got apart.
const PARCEL_BLOCKS: usize = 4;
/// A get of more bytes is no request: the target copies the data, and keeps the copy until it was sent.
const GET_BYTES_MAX: usize = 1 << 20;

/// How this process reaches a part.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// By loads and stores, from this address on.
    Direct(*mut u8),
    /// By system calls, in the memory of this process, from this address on.
    Process { pid: u32, base: u64 },
    /// By the network, in the region of this PE, from this offset on.
    Net { pe: Pe, offset: usize },
    /// By requests to its process.
    Request,
}

impl Window {
    pub fn way(&self, mpi: &Mpi, rank: usize) -> Way {
        let part = &self.parts[rank];
        if !part.base.is_null() {
            return Way::Direct(part.base);
        }
        match (part.home, part.pid) {
            (Home::Dynamic, _) if part.pe == mpi.core.my_pe() => Way::Direct(null_mut()),
            (Home::Private(base), Some(pid)) => Way::Process { pid, base },
            (Home::Dynamic, Some(pid)) => Way::Process { pid, base: 0 },
            (Home::Region { pe, offset }, _) => Way::Net { pe, offset },
            (Home::Private(_) | Home::Dynamic, None) => Way::Request,
        }
    }
}

fn remote(operation: &'static str, pe: Pe, offset_bytes: usize) -> RemoteAddress {
    RemoteAddress { operation, pe, offset_bytes }
}

/// Copies data to blocks that are mapped here.
///
/// # Safety
/// The blocks lie in memory of the window from `base` on; the data have as many bytes.
pub unsafe fn scatter(base: *mut u8, blocks: &Blocks, data: *const u8) {
    let mut done = 0;
    for (offset, bytes) in blocks.iter() {
        // SAFETY: the caller guarantees the memory, as this function demands.
        unsafe { copy::transfer(base.wrapping_add(offset), data.wrapping_add(done), bytes) };
        done += bytes;
    }
}

/// Copies blocks that are mapped here to one place.
///
/// # Safety
/// The blocks lie in memory of the window from `base` on; there is room for their data.
pub unsafe fn gather(base: *const u8, blocks: &Blocks, into: *mut u8) {
    let mut done = 0;
    for (offset, bytes) in blocks.iter() {
        // SAFETY: the caller guarantees the memory, as this function demands.
        unsafe { copy::transfer(into.wrapping_add(done), base.wrapping_add(offset), bytes) };
        done += bytes;
    }
}

/// The blocks as addresses in a process, where they lie from `base` on.
fn addresses(base: u64, blocks: &Blocks) -> impl Iterator<Item = (u64, usize)> + '_ {
    blocks.iter().map(move |(offset, bytes)| (base.wrapping_add(offset as u64), bytes))
}

/// Writes data to blocks of another process; `false` if the system refuses it.
///
/// # Safety
/// The data have the bytes of the blocks.
pub unsafe fn write_process(pid: u32, base: u64, blocks: &Blocks, data: *const u8) -> bool {
    match *blocks {
        // SAFETY: the caller guarantees the memory, as this function demands.
        Blocks::One(at, bytes) => unsafe { process::write(pid, base.wrapping_add(at as u64), data, bytes) },
        // SAFETY: the caller guarantees the memory, as this function demands.
        Blocks::Many(_) => unsafe { process::write_blocks(pid, addresses(base, blocks), data) },
    }
}

/// Reads blocks of another process; `false` if the system refuses it.
///
/// # Safety
/// There is room for the data of the blocks.
pub unsafe fn read_process(pid: u32, base: u64, blocks: &Blocks, into: *mut u8) -> bool {
    match *blocks {
        // SAFETY: the caller guarantees the memory, as this function demands.
        Blocks::One(at, bytes) => unsafe { process::read(pid, base.wrapping_add(at as u64), into, bytes) },
        // SAFETY: the caller guarantees the memory, as this function demands.
        Blocks::Many(_) => unsafe { process::read_blocks(pid, addresses(base, blocks), into) },
    }
}

/// Starts puts of data to blocks of a far region. The data may be reused at return; a quiet completes the
/// puts.
///
/// # Safety
/// The blocks lie in the region from the offset on, and the data have as many bytes.
pub unsafe fn put_net(mpi: &Mpi, (pe, start): (Pe, usize), blocks: &Blocks, data: *const u8) {
    let endpoint = mpi.core.net_endpoint();
    let mut done = 0;
    for (offset, bytes) in blocks.iter().filter(|&(_, bytes)| bytes > 0) {
        let target = remote("put", pe, start + offset);
        // SAFETY: the caller guarantees the memory, as this function demands.
        unsafe { endpoint.put(&mpi.core, target, data.wrapping_add(done), bytes, None) };
        done += bytes;
    }
}

/// Whether these are many small blocks.
pub fn are_small(blocks: &Blocks) -> bool {
    let n = blocks.len();
    n >= REQUEST_BLOCKS && blocks.bytes() / n <= REQUEST_BLOCK_BYTES
}

/// Whether blocks that system calls reach are put by one request to their process.
pub fn is_for_request(mpi: &Mpi, window: &Window, blocks: &Blocks) -> bool {
    window.may_ask() && are_small(blocks) && !window.outstanding.is_full(mpi)
}

/// Whether blocks that system calls reach are got by one request. Those with small gaps are read together.
pub fn is_for_get_request(window: &Window, blocks: &Blocks) -> bool {
    let gaps = || {
        let follows = |((at, bytes), (next, _)): &((usize, usize), (usize, usize))| {
            (at + bytes..=at + bytes + process::GAP_BYTES).contains(next)
        };
        blocks.iter().zip(blocks.iter().skip(1)).filter(|pair| !follows(pair)).count()
    };
    window.may_ask() && are_small(blocks) && blocks.bytes() <= GET_BYTES_MAX && gaps() >= REQUEST_BLOCKS
}

/// The same for accumulates, which keep their order: behind a request all are requests, until a flush.
pub fn is_asked_for(mpi: &Mpi, window: &Window, rank: usize, blocks: &Blocks) -> bool {
    window.outstanding.has_asked(rank) || is_for_request(mpi, window, blocks)
}

/// Starts gets of blocks of a far region. Many small ones are asked for together, by parcels, which the
/// service thread of the target executes as well.
///
/// # Safety
/// The blocks lie in the region from the offset on. There is room for their data, until the transfer is over.
pub unsafe fn get_net(
    mpi: &Mpi,
    rank: usize,
    (pe, start): (Pe, usize),
    blocks: &Blocks,
    into: *mut u8,
    finish: Box<dyn FnOnce() + Send>,
) -> Arc<Transfer> {
    let (endpoint, counter) = (mpi.core.net_endpoint(), mpi.core.completions.open());
    let message_bytes = endpoint.message_bytes();
    // A parcel to this PE itself would wait for its own progress.
    let is_packed = are_small(blocks) && pe != mpi.core.my_pe();
    let packed_bytes = if is_packed { REQUEST_BLOCK_BYTES.min(message_bytes / PARCEL_BLOCKS) } else { 0 };
    let (mut parcel, mut done) = (Parcel::to_gather(message_bytes), 0);
    for (offset, bytes) in blocks.iter().filter(|&(_, bytes)| bytes > 0) {
        let (source, into) = (remote("get", pe, start + offset), into.wrapping_add(done));
        done += bytes;
        // SAFETY: the caller guarantees the memory, as this function demands.
        unsafe {
            if bytes > packed_bytes {
                endpoint.get(&mpi.core, source, into, bytes, Some(&counter));
                continue;
            }
            if !parcel.has_room(bytes) {
                mpi.core.send_parcel(endpoint, source, parcel.take(), &counter);
            }
        }
        parcel.add_home(source.offset_bytes, into, bytes);
    }
    if !parcel.is_empty() {
        // SAFETY: the caller guarantees the memory, as this function demands.
        unsafe { mpi.core.send_parcel(endpoint, remote("get", pe, start), parcel, &counter) };
    }
    Transfer::of_counter(rank, counter, finish)
}
