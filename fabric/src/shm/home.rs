//! The address of a process's symmetric heap: the same in every process of a job, so that programs may send
//! pointers to symmetric memory to each other, as they do with other libraries.
//!
//! Nothing here depends on it, because other PEs' memory is found by offsets. A process in which the range is
//! taken uses any other range, and reports nothing. Processes with several PEs do not try, because one range
//! cannot be the home of all of them.

use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::AsFd;
use std::ptr::NonNull;

/// The start of the heap of the process's own PE. On x86-64 Linux loads programs that are
/// position-independent from 0x5555_5555_4000 on, and maps everything else from below 0x7fff_ffff_f000 down,
/// by at most 16 TiB of random distance. Other programs lie below 4 GiB. AddressSanitizer and MemorySanitizer
/// leave this range to programs. If addresses have fewer bits the system refuses it.
const HOME: usize = 0x5200_0000_0000;

/// Maps memory of `bytes` bytes, which begins `before` bytes before the heap, if that range is free.
pub(super) fn map(fd: &impl AsFd, before: usize, bytes: usize) -> Option<NonNull<u8>> {
    if cfg!(miri) || has_thread_sanitizer() {
        return None;
    }
    let start = HOME.checked_sub(before)?;
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::NORESERVE);
    let flags = flags | MapFlags::FIXED_NOREPLACE;
    let wanted = std::ptr::without_provenance_mut(start);
    // SAFETY: the flag lets the system refuse a range in which anything is mapped, so that no memory of the
    // program is touched.
    let mapped = unsafe { rustix::mm::mmap(wanted, bytes, access, flags, fd, 0) }.ok()?;
    if mapped != wanted {
        // A kernel before 4.17 does not know the flag, and takes the address for a hint. SAFETY: the range
        // was mapped just now, and no other code knows its address. An error leaves it mapped.
        let _ = unsafe { rustix::mm::munmap(mapped, bytes) };
        return None;
    }
    NonNull::new(mapped.cast())
}

/// Whether this program runs under ThreadSanitizer, which has no shadow for the range.
fn has_thread_sanitizer() -> bool {
    // SAFETY: the name ends in 0, and the address is only compared.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__tsan_init".as_ptr()) }.is_null()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::segment::{Layout, Segment};
    use super::*;

    #[test]
    fn heaps_are_at_home_and_elsewhere_where_that_is_taken() {
        let layout = Layout::new(3, 2 << 20, 4096).with_pool(1);
        let made = |home| {
            let fd = Segment::descriptor(0).unwrap();
            Segment::create_in(0, &fd, layout, Some(home)).unwrap()
        };
        for pe in 0..3 {
            let first = made(pe);
            assert_eq!(first.heap(pe).as_ptr() as usize, HOME, "the heap of PE {pe}");
            let second = made(pe);
            let elsewhere = second.heap(pe).as_ptr();
            assert_ne!(elsewhere as usize, HOME);
            // SAFETY: both heaps are longer than a byte, and no other thread accesses them.
            let bytes = unsafe {
                first.heap(pe).as_ptr().write(1);
                elsewhere.write(2);
                [first.heap(pe).as_ptr().read(), elsewhere.read()]
            };
            assert_eq!(bytes, [1, 2], "they are different memory");
        }
    }
}
