//! A readers-writer lock whose readers each announce themselves in a word of their own (a *big-reader lock*),
//! so that readers of one processor do not take the cache line of another.
//!
//! There is one word of the writers, and one of each reader, which may be in memory that processes share. A
//! reader announces itself, and then looks for a writer. A writer takes the word of the writers, and then
//! looks at the words of all readers. Each executes a full fence between its two steps, so that at least one
//! of them sees the other. A reader that sees a writer takes its announcement back. It may become a writer
//! itself.
//!
//! States of the word of the writers: free, taken, and taken and awaited. A thread that finds it taken says
//! that it is awaited, and the writer learns that when it leaves.
//!
//! Invariant: threads that share a reader's word have it one after the other.
//! Source: the Linux kernel's former brlock; E. W. Dijkstra, Cooperating sequential processes, 1965.

use crate::sync::{AtomicU64, Ordering, fence_after_update, spin_or_yield};

const FREE: u64 = 0;
const TAKEN: u64 = 1;
const AWAITED: u64 = 2;
/// The states of the word of a reader.
const AWAY: u64 = 0;
const READING: u64 = 1;
/// How often a writer looks at a reader before it gives up. A reader is there for some nanoseconds, unless
/// its thread has lost its processor.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 1000 };

/// A reader, until it is dropped.
#[derive(Debug)]
pub struct Reading<'a> {
    own: &'a AtomicU64,
}

/// Begins to read, if there is no writer. Waits for other threads that read with the same word.
#[inline(always)]
pub fn try_read<'a>(own: &'a AtomicU64, writers: &AtomicU64) -> Option<Reading<'a>> {
    // SYNC POINT big-reader-own: acquires what the last thread with this word has done.
    if own.compare_exchange(AWAY, READING, Ordering::Acquire, Ordering::Relaxed).is_err() {
        announce_slowly(own);
    }
    // SYNC POINT big-reader: orders the announcement before the look for a writer.
    fence_after_update();
    let reading = Reading { own };
    // SYNC POINT big-reader-data: acquires what the last writer has written.
    (writers.load(Ordering::Acquire) == FREE).then_some(reading)
}

#[cold]
fn announce_slowly(own: &AtomicU64) {
    let mut turns = 0;
    // SYNC POINT big-reader-own: as above.
    while own.compare_exchange(AWAY, READING, Ordering::Acquire, Ordering::Relaxed).is_err() {
        spin_or_yield(&mut turns);
    }
}

impl Drop for Reading<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SYNC POINT big-reader-own, big-reader-data: releases what this reader has done.
        self.own.store(AWAY, Ordering::Release);
    }
}

/// Why a thread has not become the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Another thread is the writer. It learns from `leave` that a thread waits.
    Taken,
    /// A reader has not left.
    HasReader {
        /// Whether another thread waits to become the writer, and must be woken.
        is_awaited: bool,
    },
}

/// Becomes the writer, if there is none and no reader stays.
pub fn try_write<'a>(
    writers: &AtomicU64,
    readers: impl IntoIterator<Item = &'a AtomicU64>,
) -> Result<(), Refused> {
    if !try_take(writers) {
        return Err(Refused::Taken);
    }
    // SYNC POINT big-reader: orders the writer's word before the look at the readers.
    fence_after_update();
    match readers.into_iter().all(has_left) {
        true => Ok(()),
        false => Err(Refused::HasReader { is_awaited: leave(writers) }),
    }
}

/// Whether a reader leaves within a number of looks.
fn has_left(reader: &AtomicU64) -> bool {
    let mut turns = 0;
    // SYNC POINT big-reader-data: acquires what the reader has done.
    while reader.load(Ordering::Acquire) != AWAY {
        if turns == LOOKS {
            return false;
        }
        spin_or_yield(&mut turns);
    }
    true
}

/// Takes the word of the writers if it is free. Else it is awaited from now on.
fn try_take(writers: &AtomicU64) -> bool {
    // SYNC POINT big-reader-data: acquires what the last writer has written.
    match writers.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => true,
        Err(AWAITED) => false,
        // SYNC POINT big-reader-data: as above. A word that is taken in this way counts as awaited.
        Err(_) => writers.swap(AWAITED, Ordering::Acquire) == FREE,
    }
}

/// Gives up the word of the writers. Returns whether another thread waits for it.
pub fn leave(writers: &AtomicU64) -> bool {
    // SYNC POINT big-reader-data: releases what this writer has written.
    writers.swap(FREE, Ordering::Release) == AWAITED
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn words<const N: usize>() -> [AtomicU64; N] {
        std::array::from_fn(|_| AtomicU64::new(0))
    }

    #[test]
    fn readers_read_at_once_and_a_writer_is_alone() {
        let [writers, one, two] = words();
        let both = [&one, &two];
        let reading = (try_read(&one, &writers), try_read(&two, &writers));
        assert!(reading.0.is_some() && reading.1.is_some());
        drop(reading.0);
        assert_eq!(try_write(&writers, both), Err(Refused::HasReader { is_awaited: false }));
        drop(reading.1);
        assert_eq!(try_write(&writers, both), Ok(()));
        assert!(try_read(&one, &writers).is_none());
        assert!(!leave(&writers), "a reader that gives way does not wait");
        assert!(try_read(&one, &writers).is_some());
        assert_eq!(try_write(&writers, both), Ok(()), "a reader that has left, or given way, is away");
    }

    #[test]
    fn a_writer_learns_that_it_is_awaited() {
        let [writers] = words();
        let write = || try_write(&writers, []);
        assert!(write().is_ok() && !leave(&writers), "nobody waits");
        assert!(write().is_ok() && write().is_err() && write().is_err());
        assert!(leave(&writers), "two wait");
        assert!(write().is_ok() && write().is_err(), "the one that waits is awake, and says so again");
        assert!(leave(&writers) && write().is_ok() && !leave(&writers));
    }

    /// Threads of two processes add to a number, in pairs with the same word: by atomics, or as the writer.
    #[test]
    fn no_addition_is_lost() {
        const TURNS: u64 = if cfg!(miri) { 20 } else { 20_000 };
        let [writers, one, two, number] = words();
        let both = [&one, &two];
        let add = |own: &AtomicU64, i: u64| {
            if i.is_multiple_of(3)
                && let Some(_reading) = try_read(own, &writers)
            {
                number.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let mut turns = 0;
            while try_write(&writers, both).is_err() {
                spin_or_yield(&mut turns);
            }
            number.store(number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            leave(&writers);
        };
        std::thread::scope(|scope| {
            for own in [&one, &one, &two, &two] {
                scope.spawn(move || (0..TURNS).for_each(|i| add(own, i)));
            }
        });
        assert_eq!(number.load(Ordering::Relaxed), 4 * TURNS);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    #[derive(Default)]
    struct Shared {
        writers: AtomicU64,
        readers: [AtomicU64; 2],
        value: UnsafeCell<u32>,
    }

    impl Shared {
        /// Adds as the writer: whether it has become it.
        fn write(&self) -> bool {
            let is_writer = try_write(&self.writers, &self.readers).is_ok();
            if is_writer {
                // SAFETY: the cell checks that no other thread is here.
                self.value.with_mut(|value| unsafe { *value += 1 });
                leave(&self.writers);
            }
            is_writer
        }

        fn read(&self, reader: usize) -> Option<u32> {
            let _reading = try_read(&self.readers[reader], &self.writers)?;
            // SAFETY: the cell checks that no other thread writes.
            Some(self.value.with(|value| unsafe { *value }))
        }
    }

    #[test]
    fn loom_a_writer_is_alone_and_readers_see_what_it_wrote() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let shared = Arc::new(Shared::default());
            let (writer, reader) = (Arc::clone(&shared), Arc::clone(&shared));
            let writer = thread::spawn(move || writer.write());
            let reader = thread::spawn(move || (reader.read(0), reader.read(0)));
            let here = shared.read(1);
            let (is_written, read) = (writer.join().unwrap(), reader.join().unwrap());
            for value in [here, read.0, read.1].into_iter().flatten() {
                assert!(value == 0 || is_written);
            }
            assert!(read.0.zip(read.1).is_none_or(|(first, second)| first <= second));
            assert_eq!(shared.read(0), Some(is_written.into()));
        });
    }

    #[test]
    fn loom_of_two_writers_one_is_refused_or_follows_the_other() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let shared = Arc::new(Shared::default());
            let other = Arc::clone(&shared);
            let other = thread::spawn(move || u32::from(other.write()) + u32::from(other.write()));
            let here = u32::from(shared.write());
            let n = other.join().unwrap() + here;
            assert!(n >= 1);
            assert_eq!(shared.read(0), Some(n));
        });
    }
}
