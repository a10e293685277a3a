//! The node's memory: its layout, its creation and its mapping.
//!
//! ```text
//! | header | one block a PE | two rings a PE | contacts of each PE | two FIFOs a pair of PEs |
//! | heap, pool of PE 0 | heap, pool of PE 1 | ...
//! ```
//! The part of a PE's memory that peers access is its region: the symmetric heap, in which all PEs make the
//! same allocations, and behind it the pool, in which each PE allocates for itself.
//!
//! Invariant: all zero bytes are a valid start of everything but the header's identity. So pages are
//! allocated when they are first accessed, and a large heap costs nothing until it is used. Heaps start at
//! multiples of at least 2 MiB, so that they can have huge pages.

use super::cooperative::SharedCopy;
use super::doorbell::{Doorbell, Sleepers};
use super::fifo::{Fifo, Shared};
use super::flags::{Arrival, Meeting};
use super::home;
use super::readers::Readers;
use super::ring::{CELL_BYTES, Cell, Positions, Ring};
use crate::sync::{AtomicU8, AtomicU32, AtomicU64, CacheLine, Ordering, differs};
use crate::types::{FabricError, FabricResult, Pe};
use rustix::fs::{FileType, MemfdFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::mem::offset_of;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;

/// Identifies a node's memory of this layout.
const MAGIC: u64 = u64::from_be_bytes(*b"pelago01");
/// Heaps are multiples of this, and start at multiples of it if there are no pools.
const HEAP_ALIGN_BYTES: usize = 2 << 20;
/// If there are pools, heaps start at multiples of this, so that blocks in them can be aligned to it.
pub const REGION_ALIGN_BYTES: usize = 16 << 20;
/// Larger heaps are limited to this size. No process can map it, so they are refused, and sizes do not
/// overflow before.
const HEAP_BYTES_MAX: usize = 1 << 47;
/// Larger rings are limited to this size, so that lengths in a ring fit in 32 bits.
const RING_BYTES_MAX: usize = 64 << 20;

/// Rings of a PE.
const RINGS: usize = 2;

/// FIFOs from one PE to another.
const FIFOS: usize = 2;
/// Bytes of the data areas of all FIFOs to one PE, as long as each of them has a least size.
const FIFO_DATA_BYTES: usize = 2 << 20;

/// Words in a PE's agreement record, which it shows to the others when all PEs must agree.
pub const AGREEMENT_WORDS: usize = 72;
/// Words of the bit set of CPUs.
const CPU_WORDS: usize = 16;
/// Room for the text of a failure.
const FAILURE_BYTES: usize = 1024;

/// The sizes that determine the layout; the same at every PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// PEs on this node.
    pub n_pes: usize,
    /// The symmetric heap of one PE, in bytes; a multiple of 2 MiB.
    pub heap_bytes: usize,
    /// The pool of one PE, in bytes. Unless there are no pools, heap and pool together are a multiple of 16
    /// MiB.
    pub pool_bytes: usize,
    /// Each of a PE's two message rings, in bytes; a power of two.
    pub ring_bytes: usize,
}

impl Layout {
    /// A layout for `n_pes` PEs, without pools. The heap is rounded up to a multiple of 2 MiB, the ring to a
    /// power of two and limited to 64 MiB.
    pub fn new(n_pes: usize, heap_bytes: usize, ring_bytes: usize) -> Layout {
        Layout {
            n_pes,
            heap_bytes: heap_bytes.clamp(1, HEAP_BYTES_MAX).next_multiple_of(HEAP_ALIGN_BYTES),
            pool_bytes: 0,
            ring_bytes: ring_bytes.clamp(16 * CELL_BYTES, RING_BYTES_MAX).next_power_of_two(),
        }
    }

    /// This layout with pools of `pool_bytes` bytes, rounded up so that heap and pool together are a multiple
    /// of 16 MiB.
    pub fn with_pool(self, pool_bytes: usize) -> Layout {
        let region_bytes = self.heap_bytes + pool_bytes.min(HEAP_BYTES_MAX);
        let pool_bytes = region_bytes.next_multiple_of(REGION_ALIGN_BYTES) - self.heap_bytes;
        Layout { pool_bytes, ..self }
    }

    /// Whether [`Layout::new`] and [`Layout::with_pool`] can have made it.
    fn is_possible(&self) -> bool {
        let rings = 16 * CELL_BYTES..=RING_BYTES_MAX;
        let has_regions = self.pool_bytes == 0
            || self
                .heap_bytes
                .checked_add(self.pool_bytes)
                .is_some_and(|b| b.is_multiple_of(REGION_ALIGN_BYTES));
        self.ring_bytes.is_power_of_two()
            && rings.contains(&self.ring_bytes)
            && self.heap_bytes != 0
            && self.heap_bytes.is_multiple_of(HEAP_ALIGN_BYTES)
            && has_regions
    }

    /// Memory of one PE that peers access, in bytes: its heap and its pool.
    pub fn region_bytes(&self) -> usize {
        self.heap_bytes + self.pool_bytes
    }

    /// Memory of one PE besides its heap and its pool: its block, its rings, and its share of all FIFOs.
    pub fn own_bytes(&self) -> usize {
        self.heaps_offset() / self.n_pes.max(1)
    }

    fn blocks_offset(&self) -> usize {
        size_of::<Header>().next_multiple_of(64)
    }

    fn rings_offset(&self) -> usize {
        (self.blocks_offset() + self.n_pes * size_of::<Block>()).next_multiple_of(4096)
    }

    fn contacts_offset(&self) -> usize {
        (self.rings_offset() + RINGS * self.n_pes * self.ring_bytes).next_multiple_of(4096)
    }

    /// Bytes of a PE's set of the PEs that have sent it something through a FIFO.
    fn contacts_bytes(&self) -> usize {
        self.n_pes.div_ceil(64 * 8) * 64
    }

    /// Bytes of the data area of a FIFO: less where there are many PEs.
    pub fn fifo_data_bytes(&self) -> usize {
        (FIFO_DATA_BYTES / FIFOS / self.n_pes.max(1)).next_power_of_two().clamp(8 << 10, 256 << 10)
    }

    fn fifos_offset(&self) -> usize {
        (self.contacts_offset() + self.n_pes * self.contacts_bytes()).next_multiple_of(4096)
    }

    fn heaps_offset(&self) -> usize {
        let fifos_bytes = FIFOS * self.n_pes * self.n_pes * Fifo::bytes(self.fifo_data_bytes());
        (self.fifos_offset() + fifos_bytes).next_multiple_of(REGION_ALIGN_BYTES)
    }

    /// Size of the whole in bytes; `None` if it exceeds the address space. The offsets above are correct for
    /// a layout that has a size.
    fn total_bytes(&self) -> Option<usize> {
        let region_bytes = self.heap_bytes.checked_add(self.pool_bytes)?;
        let rings_bytes = self.ring_bytes.checked_mul(RINGS)?;
        let fifos_bytes = self.n_pes.checked_mul(FIFOS * Fifo::bytes(self.fifo_data_bytes()))?;
        let pe_bytes = size_of::<Block>().checked_add(rings_bytes)?.checked_add(region_bytes)?;
        let pe_bytes = pe_bytes.checked_add(fifos_bytes)?.checked_add(self.contacts_bytes())?;
        let bound = self.n_pes.checked_mul(pe_bytes)?.checked_add(2 * REGION_ALIGN_BYTES)?;
        (bound <= isize::MAX as usize).then(|| self.heaps_offset() + self.n_pes * self.region_bytes())
    }
}

/// A job's secret.
pub type Nonce = [u64; 2];

/// The state that all PEs of the node share.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    identity: CacheLine<Identity>,
    /// The number of PEs that sleep, or are about to.
    pub sleepers: CacheLine<Sleepers>,
    /// The number of PEs that access the others over the network although they share this memory.
    pub over_net: CacheLine<AtomicU32>,
    /// The number of PEs that have mapped this memory and filled in their part.
    pub joined: CacheLine<AtomicU32>,
    /// The CPUs that the node's PEs may run on: one bit each, set by every PE when it joins.
    pub cpus: CacheLine<[AtomicU64; CPU_WORDS]>,
    /// The lowest CPU limit of the control groups of a PE, in processors, as `u32::MAX` less that number: 0
    /// if no PE has a limit.
    pub quota: CacheLine<AtomicU32>,
    /// The number of PEs that have begun to leave the job.
    pub leaving: CacheLine<AtomicU32>,
    /// The barrier of a node with more PEs than cores.
    pub meeting: Meeting,
    /// The first failure of a PE, if there was one.
    pub failure: Failure,
}

#[derive(Debug)]
#[repr(C)]
struct Identity {
    magic: AtomicU64,
    n_pes: AtomicU64,
    heap_bytes: AtomicU64,
    pool_bytes: AtomicU64,
    ring_bytes: AtomicU64,
    /// Proves that a descriptor found by its number is this job's memory.
    nonce: [AtomicU64; 2],
}

/// The state that one PE shares with the others, besides its heap.
#[derive(Debug)]
#[repr(C)]
pub struct Block {
    /// Its arrivals at barriers.
    pub arrival: Arrival,
    /// The doorbell on which it sleeps.
    pub doorbell: Doorbell,
    /// 1 once it has mapped the memory, 2 once it has joined the job.
    pub attached: CacheLine<AtomicU32>,
    /// Its departure from the job.
    pub departure: CacheLine<Departure>,
    /// Its process: its number, and the namespace in which it has that number; 0 before it has joined.
    pub process: CacheLine<[AtomicU64; 2]>,
    /// The number of the thread that has joined, in that namespace; 0 if it is not published.
    pub thread: AtomicU64,
    /// The two ends of its inbox.
    pub inbox: Positions,
    /// The two ends of its inbox for replies.
    pub answers: Positions,
    /// The copies of long messages to it, on which their senders help.
    pub copy: CacheLine<SharedCopy>,
    /// The PEs of its process that copy from its private memory.
    pub readers: CacheLine<Readers>,
    /// Its agreement records: two, used in turn.
    pub records: [CacheLine<[AtomicU64; AGREEMENT_WORDS]>; 2],
    /// Its last error before it left, if there was one: written before `departure` says that it has left.
    pub last_error: Failure,
}

/// The departure of a PE from the job.
#[derive(Debug)]
#[repr(C)]
pub struct Departure {
    /// 0 while it takes part. Once it has begun to leave: its place in the order in which the PEs of the node
    /// leave, from 1.
    pub left: AtomicU32,
    /// 1 if it has receives when it leaves, for which messages may still come: written before `left`.
    pub receives: AtomicU32,
    /// 0, or 1 plus the number of a PE that waits in vain for this one, which has left.
    pub missed: AtomicU32,
}

/// The record of the first failure of the node: the PE and its error message. It is written once.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Failure {
    /// 0 if there is none, 1 while it is being written, 2 when it is complete.
    state: AtomicU32,
    pe: AtomicU32,
    length: AtomicU32,
    text: [AtomicU8; FAILURE_BYTES],
}

impl Failure {
    /// Records a failure, unless one is recorded already. The text is cut to 1 KiB.
    pub fn record(&self, pe: Pe, text: &str) {
        if self.state.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        self.pe.store(pe as u32, Ordering::Relaxed);
        let length = text.len().min(FAILURE_BYTES);
        for (cell, byte) in self.text.iter().zip(text.bytes()) {
            cell.store(byte, Ordering::Relaxed);
        }
        self.length.store(length as u32, Ordering::Relaxed);
        // SYNC POINT failure: releases the PE and the text.
        self.state.store(2, Ordering::Release);
    }

    /// Whether a failure is recorded.
    #[inline(always)]
    pub fn is_recorded(&self) -> bool {
        !differs::<2>(&self.state)
    }

    /// The first failure, if one is recorded: the PE and its text.
    pub fn read(&self) -> Option<(Pe, String)> {
        // SYNC POINT failure: acquires the PE and the text.
        if self.state.load(Ordering::Acquire) != 2 {
            return None;
        }
        // Any PE can write any number here.
        let length = (self.length.load(Ordering::Relaxed) as usize).min(FAILURE_BYTES);
        let text: Vec<u8> = self.text[..length].iter().map(|b| b.load(Ordering::Relaxed)).collect();
        Some((self.pe.load(Ordering::Relaxed) as Pe, String::from_utf8_lossy(&text).into_owned()))
    }
}

/// The node's memory, mapped into this process.
#[derive(Debug)]
pub struct Segment {
    start: NonNull<u8>,
    /// The start of the whole mapping.
    range: NonNull<u8>,
    range_bytes: usize,
    layout: Layout,
}

// SAFETY: the segment is a range of shared memory; all its parts are atomics, or heaps that are only accessed
// by raw pointers.
unsafe impl Send for Segment {}
// SAFETY: as for `Send`: atomics, and heaps that are only accessed by raw pointers.
unsafe impl Sync for Segment {}

impl Segment {
    /// Creates the node's memory. The descriptor is for the other processes of the node.
    ///
    /// # Errors
    /// If the system refuses the memory or its mapping.
    pub fn create(pe: Pe, layout: Layout) -> FabricResult<(Segment, OwnedFd)> {
        let fd = Segment::descriptor(pe)?;
        Ok((Segment::create_in(pe, &fd, layout, None)?, fd))
    }

    /// A descriptor for a node's memory that is created later.
    ///
    /// # Errors
    /// If the system refuses it.
    pub fn descriptor(pe: Pe) -> FabricResult<OwnedFd> {
        unnamed_file(|flags| rustix::fs::memfd_create("pelago", flags)).map_err(|e| FabricError::System {
            pe,
            operation: "making shared memory (memfd_create, and a file in /dev/shm)".into(),
            reason: e.to_string(),
            remedy: "Permit one of them, for example in the container's filter of system calls",
        })
    }

    /// Creates the node's memory under a descriptor. If this process has one PE, `home` is its number in the
    /// node. Its heap is then mapped at the address that the other PEs' heaps have in their processes, if
    /// that range is free.
    ///
    /// # Errors
    /// If the system refuses the memory or its mapping.
    pub fn create_in(pe: Pe, fd: impl AsFd, layout: Layout, home: Option<Pe>) -> FabricResult<Segment> {
        let fail = |operation: String, reason: String| refused(pe, operation, reason);
        let total = layout.total_bytes().ok_or_else(|| {
            fail("laying out the node's memory".into(), "it exceeds the address space".into())
        })?;
        rustix::fs::ftruncate(&fd, total as u64)
            .map_err(|e| fail(format!("sizing the node's memory to {total} bytes"), e.to_string()))?;
        let segment = Segment::map(pe, &fd, layout, (total, home))?;
        let identity = &segment.header().identity;
        identity.n_pes.store(layout.n_pes as u64, Ordering::Relaxed);
        identity.heap_bytes.store(layout.heap_bytes as u64, Ordering::Relaxed);
        identity.pool_bytes.store(layout.pool_bytes as u64, Ordering::Relaxed);
        identity.ring_bytes.store(layout.ring_bytes as u64, Ordering::Relaxed);
        // SYNC POINT segment-identity: releases the sizes.
        identity.magic.store(MAGIC, Ordering::Release);
        Ok(segment)
    }

    /// Puts the job's secret into the memory, after all else that identifies it.
    pub(super) fn set_nonce(&self, nonce: Nonce) {
        for (word, value) in self.header().identity.nonce.iter().zip(nonce) {
            // SYNC POINT segment-nonce: releases the sizes, for those who read the nonce by its descriptor.
            word.store(value, Ordering::Release);
        }
    }

    /// Whether a descriptor is that of a node's memory that its creator has not finished yet: one without a
    /// name in the file system that has no secret.
    pub(super) fn lacks_identity(fd: impl AsFd) -> bool {
        let is_memory = rustix::fs::fstat(&fd).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 0
        });
        let mut nonce = [0; size_of::<Nonce>()];
        let place = offset_of!(Identity, nonce) as u64;
        let read = rustix::io::pread(&fd, &mut nonce, place);
        let word_is_0 = |word: &[u8]| word.iter().all(|byte| *byte == 0);
        is_memory && read.is_ok_and(|read| read < nonce.len() || nonce.chunks(8).any(word_is_0))
    }

    /// Maps the node's memory that another process has created. The sizes are those that its creator has
    /// chosen. `home` is as in [`Segment::create_in`].
    ///
    /// # Errors
    /// If it is not of this version or not for `n_pes` PEs, or the mapping fails.
    pub fn attach(
        pe: Pe,
        fd: impl AsFd,
        n_pes: usize,
        nonce: Nonce,
        home: Option<Pe>,
    ) -> FabricResult<Segment> {
        let foreign = |what: String| FabricError::Foreign { pe, what };
        let first = Layout { n_pes: 0, heap_bytes: 0, pool_bytes: 0, ring_bytes: 0 };
        let found = rustix::fs::fstat(&fd).map_or(0, |stat| stat.st_size as usize);
        if found < first.heaps_offset() {
            return Err(foreign(format!("what was handed out has {found} bytes: it is no node's memory")));
        }
        let probe = Segment::map(pe, &fd, first, (first.heaps_offset(), None))?;
        let identity = &probe.header().identity;
        // SYNC POINT segment-identity: acquires the sizes.
        let magic = identity.magic.load(Ordering::Acquire);
        let layout = Layout {
            n_pes: identity.n_pes.load(Ordering::Relaxed) as usize,
            heap_bytes: identity.heap_bytes.load(Ordering::Relaxed) as usize,
            pool_bytes: identity.pool_bytes.load(Ordering::Relaxed) as usize,
            ring_bytes: identity.ring_bytes.load(Ordering::Relaxed) as usize,
        };
        if magic != MAGIC || layout.n_pes != n_pes {
            return Err(foreign(format!("the node's memory is for {} PEs, not {n_pes}", layout.n_pes)));
        }
        if std::array::from_fn(|i| identity.nonce[i].load(Ordering::Relaxed)) != nonce {
            return Err(foreign("the node's memory is that of another job".to_owned()));
        }
        if !layout.is_possible() {
            return Err(foreign(format!("the node's memory has {layout:?}, which is impossible")));
        }
        let total = layout.total_bytes().ok_or_else(|| foreign(format!("{layout:?} is too large")))?;
        if found != total {
            return Err(foreign(format!(
                "the node's memory has {found} bytes where {layout:?} takes {total}"
            )));
        }
        Segment::map(pe, &fd, layout, (total, home))
    }

    /// Maps the memory so that the heap of `home` has the common address of all PEs' heaps. If that fails, or
    /// there is no home, the heaps are aligned to a multiple of their alignment.
    fn map(
        pe: Pe,
        fd: impl AsFd,
        layout: Layout,
        (bytes, home): (usize, Option<Pe>),
    ) -> FabricResult<Segment> {
        let before = |home: Pe| layout.heaps_offset() + home * layout.region_bytes();
        let segment = match home.and_then(|home| home::map(&fd, before(home), bytes)) {
            Some(start) => Segment { start, range: start, range_bytes: bytes, layout },
            None => Segment::map_anywhere(pe, fd, layout, bytes)?,
        };
        segment.leave_out_of_core_files(bytes);
        Ok(segment)
    }

    /// A core file would have all memory of the node, and the system would first allocate the pages that
    /// nobody has used.
    fn leave_out_of_core_files(&self, bytes: usize) {
        let start = self.start.as_ptr().cast();
        // SAFETY: the memory of `bytes` bytes was mapped there, and the advice does not change it. If the
        // system refuses it, core files are larger.
        let _ = unsafe { rustix::mm::madvise(start, bytes, Advice::LinuxDontDump) };
    }

    /// Maps the memory at any aligned address. The system chooses a range that is too long by the alignment,
    /// and the memory replaces a part of it.
    fn map_anywhere(pe: Pe, fd: impl AsFd, layout: Layout, bytes: usize) -> FabricResult<Segment> {
        let failed = |e: Errno| FabricError::System {
            pe,
            operation: format!("mapping the node's memory of {bytes} bytes"),
            reason: e.to_string(),
            remedy: "Lower PELAGO_HEAP_SIZE, or raise the limit of virtual memory (ulimit -v)",
        };
        let range_bytes = bytes.checked_add(REGION_ALIGN_BYTES).ok_or_else(|| failed(Errno::NOMEM))?;
        let (null, private) = (std::ptr::null_mut(), MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new mapping at an address of the system's choice replaces no other mapping.
        let range = unsafe { rustix::mm::mmap_anonymous(null, range_bytes, ProtFlags::empty(), private) };
        let range = NonNull::new(range.map_err(failed)?).expect("the system maps nothing at address 0");
        let skipped = range.as_ptr().align_offset(REGION_ALIGN_BYTES);
        // SAFETY: `skipped` is less than the alignment, by which the range is longer than the memory.
        let start = unsafe { range.cast::<u8>().add(skipped) };
        let segment = Segment { start, range: range.cast(), range_bytes, layout };
        let (access, fixed) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        // SAFETY: the target lies inside the range that was mapped above, and no other code knows its
        // address.
        let mapped = unsafe {
            rustix::mm::mmap(start.as_ptr().cast(), bytes, access, fixed | MapFlags::NORESERVE, fd, 0)
        };
        mapped.map_err(failed)?;
        Ok(segment)
    }

    /// The sizes of this segment.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The state that all PEs of the node share.
    pub fn header(&self) -> &Header {
        // SAFETY: the mapping starts with a header, which is made of atomics, for which any bytes are valid.
        unsafe { self.start.cast().as_ref() }
    }

    /// The state that `pe` shares, besides its heap.
    pub fn block(&self, pe: Pe) -> &Block {
        &self.blocks()[pe]
    }

    /// The blocks of all PEs of the node.
    pub fn blocks(&self) -> &[Block] {
        // SAFETY: the layout has `n_pes` blocks at this offset, 64-byte aligned, made of atomics.
        unsafe {
            let first = self.start.add(self.layout.blocks_offset()).cast::<Block>();
            std::slice::from_raw_parts(first.as_ptr(), self.layout.n_pes)
        }
    }

    /// The inbox of `pe`.
    pub fn inbox(&self, pe: Pe) -> Ring<'_> {
        Ring::new(&self.block(pe).inbox, self.cells(pe, 0))
    }

    /// The inbox of `pe` for replies. A PE that waits for room for a reply empties it as well.
    pub fn answers(&self, pe: Pe) -> Ring<'_> {
        Ring::new(&self.block(pe).answers, self.cells(pe, 1))
    }

    /// The cells of one of a PE's rings. The PE exists.
    fn cells(&self, pe: Pe, ring: usize) -> &[Cell] {
        let offset_bytes = self.layout.rings_offset() + (RINGS * pe + ring) * self.layout.ring_bytes;
        // SAFETY: the layout has two rings of `ring_bytes` bytes for each PE at this offset, page-aligned,
        // made of atomics; the caller guarantees that the PE exists.
        unsafe {
            let first = self.start.add(offset_bytes).cast::<Cell>();
            std::slice::from_raw_parts(first.as_ptr(), self.layout.ring_bytes / CELL_BYTES)
        }
    }

    /// The set of the PEs that have sent something to `pe` through a FIFO: one bit each. The PE exists.
    pub fn contacts(&self, pe: Pe) -> &[AtomicU64] {
        let offset_bytes = self.layout.contacts_offset() + pe * self.layout.contacts_bytes();
        // SAFETY: the layout has this many bytes for each PE at this offset, 64-byte aligned, made of
        // atomics; the caller guarantees that the PE exists.
        unsafe {
            let first = self.start.add(offset_bytes).cast::<AtomicU64>();
            std::slice::from_raw_parts(first.as_ptr(), self.layout.n_pes.div_ceil(64))
        }
    }

    /// The FIFOs from one PE to another: of messages that nobody has asked for, and of those that the
    /// receiver expects.
    ///
    /// # Panics
    /// If the node has no such PEs.
    pub fn fifos(&self, from: Pe, to: Pe) -> [Fifo<'_>; FIFOS] {
        let n = self.layout.n_pes;
        assert!(from < n && to < n, "PEs {from} and {to} are not among the {n} PEs of this node");
        let data_bytes = self.layout.fifo_data_bytes();
        std::array::from_fn(|kind| {
            let number = (to * n + from) * FIFOS + kind;
            let offset_bytes = self.layout.fifos_offset() + number * Fifo::bytes(data_bytes);
            // SAFETY: the layout has two FIFOs for each pair of PEs at this offset, 64-byte aligned, each of
            // which is a shared state, made of atomics, and a data area that only its FIFO uses.
            unsafe {
                let shared = self.start.add(offset_bytes).cast::<Shared>();
                let data = shared.add(1).cast::<u8>();
                Fifo::new(shared.as_ref(), data.as_ptr(), data_bytes)
            }
        })
    }

    /// The start of `pe`'s region, which is the start of its heap.
    ///
    /// # Panics
    /// If the node has no such PE.
    pub fn heap(&self, pe: Pe) -> NonNull<u8> {
        assert!(pe < self.layout.n_pes, "PE {pe} is not among the {} PEs of this node", self.layout.n_pes);
        // SAFETY: the layout has `n_pes` regions of `region_bytes` bytes from this offset on.
        unsafe { self.start.add(self.layout.heaps_offset() + pe * self.layout.region_bytes()) }
    }
}

/// A file of memory without a name, made by the system call `create`, or else in `/dev/shm`.
fn unnamed_file(create: impl Fn(MemfdFlags) -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    // A system may refuse memory that can hold programs; kernels before 6.3 do not know the flag.
    let made = match create(MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => create(MemfdFlags::CLOEXEC),
        made => made,
    };
    made.or_else(|error| match error {
        // A kernel before 3.17, or a filter of system calls.
        Errno::NOSYS | Errno::PERM | Errno::ACCESS => {
            let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
            rustix::fs::open("/dev/shm", flags, Mode::RUSR | Mode::WUSR).map_err(|_| error)
        }
        _ => Err(error),
    })
}

fn refused(pe: Pe, operation: String, reason: String) -> FabricError {
    let remedy = "Lower PELAGO_HEAP_SIZE or the number of PEs on this node";
    FabricError::System { pe, operation, reason, remedy }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `map` and nothing borrowed from this segment outlives it. An error
        // leaves the range mapped, which is harmless.
        let _ = unsafe { rustix::mm::munmap(self.range.as_ptr().cast(), self.range_bytes) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn memory_needs_no_memfd_create() {
        let layout = Layout::new(2, 1 << 20, 4096).with_pool(1);
        for (refusal, works) in [(Errno::NOSYS, true), (Errno::PERM, true), (Errno::NFILE, false)] {
            let fd = unnamed_file(|_| Err(refusal));
            assert_eq!(fd.is_ok(), works, "{fd:?}");
            let Ok(fd) = fd else { continue };
            assert!(Segment::lacks_identity(&fd));
            let [one, other] = [0, 1].map(|pe| match pe {
                0 => Segment::create_in(pe, &fd, layout, None).unwrap(),
                _ => Segment::attach(pe, &fd, 2, Nonce::default(), None).unwrap(),
            });
            // SAFETY: both are mapped, and no other thread accesses them.
            let read = unsafe {
                one.heap(1).as_ptr().write(7);
                other.heap(1).as_ptr().read()
            };
            assert_eq!(read, 7);
        }
    }

    #[test]
    fn a_flag_that_the_system_does_not_know_is_left_out() {
        let known = |flags: MemfdFlags| match flags.contains(MemfdFlags::NOEXEC_SEAL) {
            true => Err(Errno::INVAL),
            false => rustix::fs::memfd_create("test", flags),
        };
        assert!(unnamed_file(known).is_ok());
    }

    #[test]
    fn core_files_do_not_have_the_memory() {
        let fd = Segment::descriptor(0).unwrap();
        let layout = Layout::new(1, 1 << 20, 4096).with_pool(1);
        let segment = Segment::create_in(0, &fd, layout, None).unwrap();
        let start = format!("{:08x}-", segment.start.as_ptr() as usize);
        let mappings = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = mappings.lines().skip_while(|line| !line.starts_with(&start));
        let flags = lines.find(|line| line.starts_with("VmFlags:")).expect("the flags of the mapping");
        assert!(flags.split_whitespace().any(|flag| flag == "dd"), "{flags}");
    }
}
