//! Collective buffering: some processes, the aggregators, access the file for all in large windows (two-phase
//! I/O: del Rosario, Bordawekar and Choudhary 1993; Thakur, Gropp and Lusk 1999).
//!
//! A collective access is buffered if the view of a process lies in the file in pieces, and if some process
//! accesses small pieces in it. The part of the file that all processes access is cut into windows, which the
//! aggregators take in turn. In each round every process sends each aggregator the pieces of its window; the
//! aggregator writes them, or reads them and sends them back.
//!
//! Invariants: only bytes of the access are written, so that what others write between them is kept. All
//! processes decide from the same words, so that all of them buffer an access or none does. A process that
//! fails goes on with its messages, and says so at the end.

use super::File;
use super::access::{Moved, Plan};
use super::agree::agree;
use super::coverage::Coverage;
use super::data::Data;
use super::inquiry::buffering;
use super::pieces::{GAP_BYTES, Piece, Pieces};
use super::run::{Run, fill, merged, push, split};
use super::system::{failed, read_at, write_at};
use super::windows::{Part, Use, Windows, is_worth};
use crate::chapters::comm::{exchange, exchange_known};
use crate::chapters::error::{Error, Result};
use crate::chapters::library::Mpi;
use pelago_fabric::sync::Ordering;
use std::ops::Range;

/// The pieces of an access whose average is taken.
const SAMPLE: usize = 64;

/// The data of a process in one window: where they begin among all its data, their bytes, and their pieces.
#[derive(Default)]
struct Share {
    first: usize,
    bytes: usize,
    runs: Vec<Run>,
}

/// The part of a process while it is moved. Its maker promises that the buffer has the data.
struct Walk<'a, I> {
    pieces: Pieces<I>,
    data: Data<'a>,
    /// Bytes of data that were moved.
    done: usize,
}

impl<I: Iterator<Item = Piece>> Walk<'_, I> {
    /// The pieces in the next window.
    fn share(&mut self, window: &Range<i64>) -> Share {
        let (first, mut runs) = (self.done, Vec::new());
        while let Some((position, bytes)) = self.pieces.next_before(window.end) {
            push(&mut runs, (position - window.start) as u32, bytes as u32);
            self.done += bytes;
        }
        Share { first, bytes: self.done - first, runs }
    }

    /// The shares of a round, by rank.
    fn shares(&mut self, windows: &Windows, round: i64) -> Vec<Share> {
        let mut shares: Vec<Share> = (0..windows.n).map(|_| Share::default()).collect();
        for aggregator in 0..windows.aggregators {
            shares[windows.rank(aggregator)] = self.share(&windows.window(round, aggregator));
        }
        shares
    }

    /// Fills a block with the pieces of a share and their data.
    fn fill(&self, block: &mut Vec<u8>, share: &Share) {
        fill(block, &share.runs, share.bytes);
        let start = block.len() - share.bytes;
        // SAFETY: the bytes are data of the access, and the maker promises the buffer.
        unsafe { self.data.copy_out(share.first, &mut block[start..]) };
    }

    /// Takes the data of a share that have arrived.
    fn take(&mut self, share: &Share, data: &[u8]) {
        // SAFETY: the bytes are data of the access, and the maker promises room for them.
        unsafe { self.data.copy_in(share.first, data) };
    }
}

/// The memory of buffered accesses. A file keeps it from one access to the next, because new pages cost more
/// than the copies.
#[derive(Default)]
pub struct Buffers {
    window: Window,
    /// The blocks to each process and from each, by rank.
    sent: Vec<Vec<u8>>,
    arrived: Vec<Vec<u8>>,
    /// In a read: the lists of pieces that others ask for, and their data.
    asked: Vec<Vec<u8>>,
    replies: Vec<Vec<u8>>,
}

/// The bytes of a window, at its aggregator.
#[derive(Default)]
struct Window {
    start: i64,
    bytes: Vec<u8>,
    given: Coverage,
}

impl Window {
    /// Makes room for this many bytes.
    fn reach(&mut self, bytes: usize) {
        if self.bytes.len() < bytes {
            self.bytes.resize(bytes, 0);
        }
    }

    /// Replaces `data` by the data of the pieces of a list.
    fn gather(&self, list: &[u8], data: &mut Vec<u8>) {
        data.clear();
        split(list).0.for_each(|run| run.gather(&self.bytes, data));
    }
}

impl File {
    /// The part of this process in an access of all processes, which are told if it fails.
    ///
    /// # Safety
    /// The buffer has the elements, or room for them.
    pub unsafe fn access_together(&self, mpi: &Mpi, plan: Result<Plan<'_>>, offset: i64) -> Result<Moved> {
        if !self.is_in_pieces.load(Ordering::Relaxed) || self.is_atomic() || self.comm.len() == 1 {
            // SAFETY: the caller promises what this function requires.
            return unsafe { self.access(&plan?, offset) };
        }
        let told = plan.as_ref().map_err(Error::copy).and_then(|plan| self.part(plan, offset));
        let parts: Vec<Part> =
            agree(mpi, &self.comm, told.map(Part::words))?.into_iter().map(Part::of).collect();
        let plan = plan?;
        let Some(windows) = Windows::of(&parts, plan.is_write()) else {
            // SAFETY: the caller promises what this function requires.
            return unsafe { self.access(&plan, offset) };
        };
        // SAFETY: the caller promises what this function requires.
        let data = unsafe { plan.data() };
        // A function of the program may fail before the data are written or after they are read.
        let is_converted = !plan.view.representation.is_memory();
        if is_converted && plan.is_write() {
            agree(mpi, &self.comm, data.as_ref().map(|_| []).map_err(Error::copy))?;
        }
        let first = plan.view.first_byte(offset)?;
        let pieces = Pieces::new(plan.view.pieces(first, plan.file_bytes)?);
        let mut walk = Walk { pieces, data: data?, done: 0 };
        let mut buffers = std::mem::take(&mut *self.buffers());
        for blocks in [&mut buffers.sent, &mut buffers.replies] {
            blocks.resize_with(windows.n, Vec::new);
        }
        match plan.is_write() {
            true => self.write_together(mpi, &windows, &mut walk, &mut buffers)?,
            false => self.read_together(mpi, &windows, &mut walk, &mut buffers)?,
        }
        *self.buffers() = buffers;
        // SAFETY: the caller promises what this function requires.
        let outcome = unsafe { plan.finished(walk.data, walk.done) };
        if is_converted && !plan.is_write() {
            agree(mpi, &self.comm, outcome.as_ref().map(|_| []).map_err(Error::copy))?;
        }
        outcome
    }

    /// The part of this process, as the others are told.
    fn part(&self, plan: &Plan<'_>, offset: i64) -> Result<Part> {
        let (view, bytes) = (&plan.view, plan.file_bytes);
        let first = view.first_byte(offset)?;
        let sample: Vec<Piece> = view.pieces(first, bytes)?.take(SAMPLE).collect();
        let range = match bytes {
            0 => [0; 2],
            _ => [view.place(first)? as u64, view.place(first + bytes - 1)? as u64 + 1],
        };
        let found = self.system.metadata().map_err(|error| failed("looking at", &self.path, &error))?;
        let mut hints = buffering(&self.hints, self.comm.len());
        if !found.is_file() {
            // The size of a device is not that of its data.
            hints.use_of = Use::Never;
        }
        let is_worth = is_worth(&sample, plan.is_write());
        Ok(Part { range, bytes: bytes as u64, is_worth, size: found.len(), hints })
    }

    /// Writes the parts of all processes.
    fn write_together(
        &self,
        mpi: &Mpi,
        windows: &Windows,
        walk: &mut Walk<'_, impl Iterator<Item = Piece>>,
        Buffers { window, sent, arrived, .. }: &mut Buffers,
    ) -> Result {
        let (mine, mut outcome) = (windows.aggregator(self.comm.my_rank()), Ok(()));
        for round in 0..windows.rounds() {
            let shares = walk.shares(windows, round);
            shares.iter().zip(&mut *sent).for_each(|(share, block)| walk.fill(block, share));
            exchange(mpi, &self.comm, sent, arrived)?;
            if let Some(aggregator) = mine {
                window.start = windows.window(round, aggregator).start;
                outcome = outcome.and(self.write_window(window, arrived));
            }
        }
        agree(mpi, &self.comm, outcome.map(|()| [])).map(drop)
    }

    /// Writes what has arrived for a window.
    fn write_window(&self, window: &mut Window, arrived: &[Vec<u8>]) -> Result {
        let end = arrived.iter().flat_map(|block| split(block).0).map(Run::end).max().unwrap_or(0);
        window.reach(end);
        window.given.clear(end);
        for block in arrived {
            let (runs, mut data) = split(block);
            for run in runs {
                data = run.scatter(data, &mut window.bytes);
                run.ranges(0).for_each(|range| window.given.add(range));
            }
        }
        self.is_dirty.store(true, Ordering::Relaxed);
        for range in window.given.ranges() {
            let (position, bytes) = (window.start + range.start as i64, &window.bytes[range]);
            // SAFETY: the slice has the bytes.
            let written = unsafe { write_at(&self.system, position, bytes.as_ptr(), bytes.len()) };
            written.map_err(|error| failed("writing", &self.path, &error))?;
        }
        Ok(())
    }

    /// Reads the parts of all processes.
    fn read_together(
        &self,
        mpi: &Mpi,
        windows: &Windows,
        walk: &mut Walk<'_, impl Iterator<Item = Piece>>,
        Buffers { window, sent, arrived, asked, replies }: &mut Buffers,
    ) -> Result {
        let (mine, mut outcome) = (windows.aggregator(self.comm.my_rank()), Ok(()));
        // An access before may have had other aggregators.
        replies.iter_mut().for_each(Vec::clear);
        for round in 0..windows.rounds() {
            let shares = walk.shares(windows, round);
            shares.iter().zip(&mut *sent).for_each(|(share, list)| fill(list, &share.runs, 0));
            exchange(mpi, &self.comm, sent, asked)?;
            if let Some(aggregator) = mine {
                window.start = windows.window(round, aggregator).start;
                outcome = outcome.and(self.read_window(window, asked));
                asked.iter().zip(&mut *replies).for_each(|(list, reply)| window.gather(list, reply));
            }
            let lengths: Vec<usize> = shares.iter().map(|share| share.bytes).collect();
            exchange_known(mpi, &self.comm, replies, (&lengths, arrived))?;
            shares.iter().zip(&*arrived).for_each(|(share, data)| walk.take(share, data));
        }
        agree(mpi, &self.comm, outcome.map(|()| [])).map(drop)
    }

    /// Reads the pieces of a window that processes have asked for. Bytes that are not there are 0.
    fn read_window(&self, window: &mut Window, asked: &[Vec<u8>]) -> Result {
        let ranges = merged(asked.iter().flat_map(|list| split(list).0), GAP_BYTES);
        window.reach(ranges.last().map_or(0, |range| range.end));
        let mut outcome = Ok(());
        for range in ranges {
            let (position, bytes) = (window.start + range.start as i64, &mut window.bytes[range]);
            // SAFETY: the slice has room for the bytes.
            let read = unsafe { read_at(&self.system, position, bytes.as_mut_ptr(), bytes.len()) };
            bytes[*read.as_ref().unwrap_or(&0)..].fill(0);
            let read = read.map_err(|error| failed("reading", &self.path, &error));
            outcome = outcome.and(read.map(drop));
        }
        outcome
    }
}
