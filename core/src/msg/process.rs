//! Reads and writes of another process's memory, by one system call and one copy.

use pelago_fabric::copy;
use pelago_fabric::sync::{AtomicBool, Ordering};

/// The pieces of a transfer through a buffer, in bytes, and the size of a page.
const PIECE_BYTES: usize = 16 << 10;
const PAGE_BYTES: usize = 4096;

/// Lets the other processes of this job read this one's memory, where the system lets only the ancestors of a
/// process do that (Yama's `ptrace_scope` 1): all descendants of the launcher may.
pub fn permit_reads() {
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    if IS_DONE.swap(true, Ordering::Relaxed) {
        return;
    }
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    if scope.trim() == "1" {
        // SAFETY: the call changes who may trace this process, and accesses no memory. If it is refused, the
        // data are sent in pieces.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::getppid()) };
    }
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
            let is_read = transfer(pid, address, buffer, piece, libc::process_vm_readv);
            if is_read {
                copy::copy(target.add(at), buffer, piece);
            }
            is_read
        });
    }
    // SAFETY: the caller guarantees the local range, and the system checks the remote one.
    unsafe { transfer(pid, address, target, bytes, libc::process_vm_readv) }
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
            transfer(pid, address, buffer, piece, libc::process_vm_writev)
        });
    }
    // SAFETY: the caller guarantees the local range, and the system checks the remote one.
    unsafe { transfer(pid, address, source.cast_mut(), bytes, libc::process_vm_writev) }
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

/// # Safety
/// The local range is valid for what the call does with it.
unsafe fn transfer(pid: u32, address: u64, own: *mut u8, bytes: usize, call: Move) -> bool {
    let mut done = 0;
    while done < bytes {
        let local = libc::iovec { iov_base: own.wrapping_add(done).cast(), iov_len: bytes - done };
        let address = (address as usize).wrapping_add(done) as *mut libc::c_void;
        let remote = libc::iovec { iov_base: address, iov_len: bytes - done };
        // SAFETY: the caller guarantees the local range; the system checks the remote one.
        let moved = unsafe { call(pid as libc::pid_t, &local, 1, &remote, 1, 0) };
        match usize::try_from(moved) {
            Ok(moved) if moved > 0 => done += moved,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for distance in [8, 16] {
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
