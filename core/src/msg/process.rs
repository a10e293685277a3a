//! Reads and writes of another process's memory, by one system call and one copy.

use pelago_boot::parent_of;
use pelago_fabric::copy;
use std::sync::Once;

/// The pieces of a transfer through a buffer, in bytes, and the size of a page.
const PIECE_BYTES: usize = 16 << 10;
const PAGE_BYTES: usize = 4096;
/// One system call moves at most this number of blocks (`IOV_MAX`).
const LIST_MAX: usize = 1024;
/// Blocks from this length on are moved one by one.
const LARGE_BYTES: usize = 16 << 10;
/// The most bytes that small blocks are read from together.
const BATCH_BYTES: usize = 64 << 10;
/// The most bytes between two blocks that are read as well: less than a page, so that all of them lie in the
/// pages of the blocks.
pub const GAP_BYTES: usize = 1024;

/// Lets the other processes of this job read and write this one's memory, where the system lets only the
/// ancestors of a process do that (Yama's `ptrace_scope` 1): all descendants of the launcher may. Between the
/// launcher and this process there may be a script, which is the leader of the process group then.
pub fn permit_access() {
    // Other threads wait for the permission: a message that they announce is read at once.
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
        if scope.trim() == "1" {
            // SAFETY: the call has no precondition. It returns 0 if the leader is outside the PID namespace.
            let leader = unsafe { libc::getpgrp() } as u32;
            let launcher = parent_of(leader).filter(|&launcher| launcher > 1);
            let launcher = launcher.unwrap_or_else(std::os::unix::process::parent_id);
            // SAFETY: the call changes who may trace this process, and accesses no memory. If it is refused,
            // the data are sent in pieces.
            unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::from(launcher)) };
        }
    });
}

/// Reads `bytes` bytes from an address in the process `pid`. `false` if the system refuses it, or the process
/// has no such memory.
///
/// # Safety
/// `target` is valid for writes of that many bytes.
pub unsafe fn read(pid: u32, address: u64, target: *mut u8, bytes: usize) -> bool {
    if copy::is_slow_distance(target as usize, address as usize) {
        // SAFETY: the caller guarantees the local range; `at` is a piece of it.
        return in_pieces(address, bytes, |address, at, buffer, piece| unsafe {
            let is_read = transfer(pid, &mut [block(address, piece)], buffer, piece, libc::process_vm_readv);
            if is_read {
                copy::copy(target.add(at), buffer, piece);
            }
            is_read
        });
    }
    // SAFETY: the caller guarantees the local range, and the system checks the remote one.
    unsafe { transfer(pid, &mut [block(address, bytes)], target, bytes, libc::process_vm_readv) }
}

/// Whether the process `pid` has memory: not one that has ended, even if its parent has not noticed. It
/// reads a byte at an address, which need not be valid.
pub fn exists(pid: u32, address: u64) -> bool {
    let mut byte = 0_u8;
    let mut list = [block(address, 1)];
    // SAFETY: the byte is valid for writes, and the system checks the remote range.
    let is_read = unsafe { transfer(pid, &mut list, &raw mut byte, 1, libc::process_vm_readv) };
    is_read || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Writes `bytes` bytes to an address in the process `pid`. `false` if the system refuses it, or the process
/// has no such memory; a part may have been written then.
///
/// # Safety
/// `source` is valid for reads of that many bytes.
pub unsafe fn write(pid: u32, address: u64, source: *const u8, bytes: usize) -> bool {
    if copy::is_slow_distance(address as usize, source as usize) {
        // SAFETY: the caller guarantees the local range; `at` is a piece of it.
        return in_pieces(address, bytes, |address, at, buffer, piece| unsafe {
            copy::copy(buffer, source.add(at), piece);
            transfer(pid, &mut [block(address, piece)], buffer, piece, libc::process_vm_writev)
        });
    }
    // SAFETY: the caller guarantees the local range, and the system checks the remote one.
    unsafe { transfer(pid, &mut [block(address, bytes)], source.cast_mut(), bytes, libc::process_vm_writev) }
}

/// Reads blocks, which are addresses and lengths in the process `pid`, to one place. `false` as for [`read`].
/// The bytes between blocks that are near each other are read as well, as a call takes longer for each block.
///
/// # Safety
/// `target` is valid for writes of the length of all blocks.
pub unsafe fn read_blocks(pid: u32, blocks: impl Iterator<Item = (u64, usize)>, target: *mut u8) -> bool {
    let (mut batch, mut own) = (Batch::default(), target);
    for (address, bytes) in blocks.filter(|&(_, bytes)| bytes > 0) {
        if bytes >= LARGE_BYTES || !batch.has_room(address, bytes) {
            // SAFETY: the caller guarantees the local range, which has these bytes.
            let Some(read_bytes) = (unsafe { batch.read(pid, own) }) else { return false };
            own = own.wrapping_add(read_bytes);
        }
        if bytes < LARGE_BYTES {
            batch.add(address, bytes);
            continue;
        }
        // SAFETY: the caller guarantees the local range, which has these bytes.
        if !unsafe { read(pid, address, own, bytes) } {
            return false;
        }
        own = own.wrapping_add(bytes);
    }
    // SAFETY: the caller guarantees the local range, which has these bytes.
    unsafe { batch.read(pid, own) }.is_some()
}

/// Blocks that are read together.
#[derive(Default)]
struct Batch {
    /// Addresses and lengths of the ranges that have the blocks.
    ranges: Vec<libc::iovec>,
    /// The length of all ranges.
    bytes: usize,
    /// Where each block lies in the data of the ranges, and its length.
    pieces: Vec<(usize, usize)>,
    room: Vec<u8>,
}

impl Batch {
    /// By how much the last range grows if it takes a block in; `None` if that is not near.
    fn growth(&self, address: u64, bytes: usize) -> Option<usize> {
        let last = self.ranges.last()?;
        let distance = (address as usize).checked_sub(last.iov_base as usize)?;
        (distance <= last.iov_len + GAP_BYTES).then(|| (distance + bytes).saturating_sub(last.iov_len))
    }

    fn has_room(&self, address: u64, bytes: usize) -> bool {
        match self.growth(address, bytes) {
            Some(growth) => self.bytes + growth <= BATCH_BYTES,
            None => self.ranges.len() < LIST_MAX && self.bytes + bytes <= BATCH_BYTES,
        }
    }

    fn add(&mut self, address: u64, bytes: usize) {
        let growth = self.growth(address, bytes);
        let at = match (growth, self.ranges.last_mut()) {
            (Some(growth), Some(last)) => {
                let begin = self.bytes - last.iov_len;
                last.iov_len += growth;
                begin + (address as usize - last.iov_base as usize)
            }
            _ => {
                self.ranges.push(block(address, bytes));
                self.bytes
            }
        };
        self.bytes += growth.unwrap_or(bytes);
        self.pieces.push((at, bytes));
    }

    /// Reads the blocks to one place, and forgets them: the length of all. `None` if the system refuses it.
    ///
    /// # Safety
    /// The place is valid for writes of that length.
    unsafe fn read(&mut self, pid: u32, target: *mut u8) -> Option<usize> {
        self.room.resize(BATCH_BYTES.max(self.room.len()), 0);
        let room = self.room.as_mut_ptr();
        // SAFETY: the room has the length of the ranges.
        if !unsafe { transfer(pid, &mut self.ranges, room, self.bytes, libc::process_vm_readv) } {
            return None;
        }
        self.ranges.clear();
        let mut done = 0;
        for (at, bytes) in self.pieces.drain(..) {
            // SAFETY: the piece lies in the room; the caller guarantees the target.
            unsafe { copy::copy(target.wrapping_add(done), room.wrapping_add(at), bytes) };
            done += bytes;
        }
        self.bytes = 0;
        Some(done)
    }
}

/// Writes from one place to blocks, which are addresses and lengths in the process `pid`. `false` as for
/// [`write()`].
///
/// # Safety
/// `source` is valid for reads of the length of all blocks.
pub unsafe fn write_blocks(pid: u32, blocks: impl Iterator<Item = (u64, usize)>, source: *const u8) -> bool {
    let (mut list, mut listed, mut own) = (Vec::with_capacity(LIST_MAX), 0, source.cast_mut());
    for (address, bytes) in blocks.filter(|&(_, bytes)| bytes > 0) {
        if bytes >= LARGE_BYTES || list.len() == LIST_MAX {
            // SAFETY: the caller guarantees the local range, which has these bytes. They are only read.
            if !unsafe { transfer(pid, &mut list, own, listed, libc::process_vm_writev) } {
                return false;
            }
            list.clear();
            own = own.wrapping_add(std::mem::take(&mut listed));
        }
        if bytes >= LARGE_BYTES {
            // SAFETY: the caller guarantees the local range, which has these bytes. They are only read.
            if !unsafe { write(pid, address, own, bytes) } {
                return false;
            }
            own = own.wrapping_add(bytes);
            continue;
        }
        list.push(block(address, bytes));
        listed += bytes;
    }
    // SAFETY: the caller guarantees the local range, which has these bytes. They are only read.
    unsafe { transfer(pid, &mut list, own, listed, libc::process_vm_writev) }
}

/// A block of another process.
fn block(address: u64, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: address as usize as *mut libc::c_void, iov_len: bytes }
}

/// Moves blocks, which have this number of bytes together, to or from one place. The system may move fewer
/// in a call; the list has what is left then.
///
/// # Safety
/// The local range is valid for what the call does with it.
unsafe fn transfer(pid: u32, mut list: &mut [libc::iovec], own: *mut u8, bytes: usize, call: Move) -> bool {
    let mut done = 0;
    while done < bytes {
        let local = libc::iovec { iov_base: own.wrapping_add(done).cast(), iov_len: bytes - done };
        let (remote, n) = (list.as_ptr(), list.len() as libc::c_ulong);
        // SAFETY: the caller guarantees the local range; the system checks the remote ones.
        let moved = unsafe { call(pid as libc::pid_t, &local, 1, remote, n, 0) };
        let Some(moved) = usize::try_from(moved).ok().filter(|&moved| moved > 0) else { return false };
        done += moved;
        list = without_front(list, moved);
    }
    true
}

/// A list without its first bytes.
fn without_front(list: &mut [libc::iovec], mut bytes: usize) -> &mut [libc::iovec] {
    let is_whole = |block: &&libc::iovec| {
        let is_whole = block.iov_len <= bytes;
        bytes -= if is_whole { block.iov_len } else { 0 };
        is_whole
    };
    let whole = list.iter().take_while(is_whole).count();
    let rest = &mut list[whole..];
    if let Some(block) = rest.first_mut() {
        block.iov_base = block.iov_base.wrapping_byte_add(bytes);
        block.iov_len -= bytes;
    }
    rest
}

/// Moves data through a buffer, where the system's call would copy slowly: it copies by the processor's
/// string instruction. The buffer lies like the remote data in its pages, so that only this process copies at
/// the slow distance, by vectors. `step` has the remote address of a piece, its place, the buffer and its
/// length, and returns whether it was moved.
fn in_pieces(address: u64, bytes: usize, mut step: impl FnMut(u64, usize, *mut u8, usize) -> bool) -> bool {
    let mut room = vec![0_u8; PIECE_BYTES + PAGE_BYTES];
    let offset = (address as usize).wrapping_sub(room.as_ptr() as usize) % PAGE_BYTES;
    let buffer = &mut room[offset..];
    (0..bytes)
        .step_by(PIECE_BYTES)
        .all(|at| step(address.wrapping_add(at as u64), at, buffer.as_mut_ptr(), PIECE_BYTES.min(bytes - at)))
}

/// The system's calls that move data between processes.
type Move = unsafe extern "C" fn(
    libc::pid_t,
    *const libc::iovec,
    libc::c_ulong,
    *const libc::iovec,
    libc::c_ulong,
    libc::c_ulong,
) -> isize;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_moved_in_their_order() {
        let source: Vec<u8> = (0..=250).cycle().take(400_000).collect();
        // Lists that are full, large blocks between small ones, and empty ones.
        // Some overlap, some are far from each other, and some lie before others.
        let length = |i: usize| if i == 1500 { LARGE_BYTES } else { i % 7 };
        let place = |i: usize| if i % 100 < 50 { 70 * i } else { 70 * (i ^ 31) };
        let starts = (0..5000).map(|i| (place(i), length(i)));
        let (pid, start) = (std::process::id(), source.as_ptr() as u64);
        let blocks = starts.clone().map(|(at, bytes)| (start + at as u64, bytes));
        let total = starts.clone().map(|(_, bytes)| bytes).sum::<usize>();
        let mut data = vec![0; total + 1];
        // SAFETY: the data have one byte more.
        assert!(unsafe { read_blocks(pid, blocks, data.as_mut_ptr()) });
        let expected: Vec<u8> =
            starts.clone().flat_map(|(at, bytes)| source[at..at + bytes].to_vec()).collect();
        assert!(data[..total] == expected && data[total] == 0);
        let mut target = vec![0; source.len()];
        let start = target.as_mut_ptr() as u64;
        let blocks = starts.clone().map(|(at, bytes)| (start + at as u64, bytes));
        // SAFETY: the data have one byte more, and nothing else accesses the target.
        assert!(unsafe { write_blocks(pid, blocks, data.as_ptr()) });
        let mut expected = vec![0; source.len()];
        starts.for_each(|(at, bytes)| expected[at..at + bytes].copy_from_slice(&source[at..at + bytes]));
        assert!(target == expected);
        let wrong = [(start, 4), (8, 4)].into_iter();
        // SAFETY: the data have more bytes.
        assert!(!unsafe { read_blocks(pid, wrong, data.as_mut_ptr()) }, "nothing is mapped at address 8");
    }

    #[test]
    fn a_list_loses_its_first_bytes() {
        let rest = |bytes| {
            let mut list = [block(100, 4), block(200, 6), block(300, 1)];
            without_front(&mut list, bytes)
                .iter()
                .map(|block| (block.iov_base as usize, block.iov_len))
                .collect::<Vec<_>>()
        };
        assert_eq!(rest(3), [(103, 1), (200, 6), (300, 1)]);
        assert_eq!(rest(4), [(200, 6), (300, 1)]);
        assert_eq!(rest(9), [(205, 1), (300, 1)]);
        assert_eq!(rest(11), []);
    }

    #[test]
    fn own_memory_is_read_and_a_wrong_address_refused() {
        let source: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let mut target = vec![0; source.len()];
        let pid = std::process::id();
        // SAFETY: the target has as many bytes.
        let is_read = unsafe { read(pid, source.as_ptr() as u64, target.as_mut_ptr(), target.len()) };
        assert!(is_read && target == source);
        // SAFETY: the target has as many bytes, and nothing else accesses it.
        let is_written = unsafe { write(pid, target.as_mut_ptr() as u64, source[1..].as_ptr(), 99_999) };
        assert!(is_written && target[..99_999] == source[1..]);
        for distance in [8, 32] {
            let mut target = vec![0; 120_000];
            let start = (source.as_ptr() as usize).wrapping_sub(target.as_ptr() as usize) % 4096 + distance;
            let place = target[start..].as_mut_ptr();
            assert_eq!(
                copy::is_slow_distance(place as usize, source.as_ptr() as usize),
                cfg!(target_arch = "x86_64") && distance == 8
            );
            // SAFETY: the target has as many bytes from there on.
            assert!(unsafe { read(pid, source.as_ptr() as u64, place, source.len()) });
            assert!(target[start..][..source.len()] == source && target[start + source.len()..][0] == 0);
            target.fill(0);
            // SAFETY: the target has as many bytes from there on, and nothing else accesses it.
            assert!(unsafe { write(pid, place as u64, source.as_ptr(), source.len()) });
            assert!(
                target[start..][..source.len()] == source && target[..start].iter().all(|byte| *byte == 0)
            );
        }
        // SAFETY: the target has more than 8 bytes.
        assert!(!unsafe { read(pid, 8, target.as_mut_ptr(), 8) }, "nothing is mapped at address 8");
        // SAFETY: the target has more than 8 bytes.
        assert!(!unsafe { read(u32::MAX >> 1, 8, target.as_mut_ptr(), 8) }, "there is no such process");
    }
}
