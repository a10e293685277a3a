//! The timeline of a PE as a file of words, which another program reads while or after it is written.
//!
//! The file is written through a window of mapped memory, so that a PE that is killed leaves everything that
//! it has recorded, and a long record needs no more memory than a short one. All words are little-endian.
//!
//! ```text
//! header   MAGIC, version, PE, PEs of the job, process number, node, nanoseconds since 1970, 0
//! record   word 0: nanoseconds since the header << 16 | thread << 8 | kind
//!   text       number of bytes; the bytes, filled up to words. Texts are numbered from 1 in their order
//!   begin      peer + 1 or 0 (24 bits) | category (8) | text of the name (16) | of the detail (16); bytes
//!   end        nothing: the end of the last operation of the thread that has not ended
//!   instant    as begin, but it takes no time
//!   departure  as begin, then the number of the message; it takes no time
//!   arrival    the same
//! ```
//! A word 0 that is 0 says that the rest of its window is empty. A file that was not closed ends with such a
//! window, or where the file ends.

use super::event::Event;
use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::{NonNull, null_mut};

/// The first word of a file: its bytes are `PELTRACE`.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"PELTRACE");
pub(super) const VERSION: u64 = 1;
/// Bytes of a window; every window begins at a multiple of them.
pub(super) const WINDOW_BYTES: usize = 1 << 20;
/// Words of the longest text; longer ones are cut.
const TEXT_WORDS: usize = 32;

/// The kinds of records.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum Kind {
    Text = 1,
    Begin = 2,
    End = 3,
    Instant = 4,
    Departure = 5,
    Arrival = 6,
}

impl Kind {
    pub fn of(number: u8) -> Option<Kind> {
        use Kind::*;
        [Text, Begin, End, Instant, Departure, Arrival].into_iter().find(|kind| *kind as u8 == number)
    }
}

/// Where and when a record is made.
#[derive(Clone, Copy)]
pub(super) struct Stamp {
    pub nanos: u64,
    pub thread: u8,
}

impl Stamp {
    /// Bits of the nanoseconds in a word.
    pub const BITS: u32 = 48;

    fn word(self, kind: Kind) -> u64 {
        self.nanos << 16 | u64::from(self.thread) << 8 | kind as u64
    }
}

/// A timeline that is being written.
pub(super) struct TraceFile {
    file: File,
    window: Option<Window>,
    /// The number of the window.
    number: u64,
}

/// The part of the file that is mapped.
struct Window {
    words: NonNull<u64>,
    /// Words that were written.
    used: usize,
}

// SAFETY: the memory belongs to the window alone.
unsafe impl Send for Window {}

impl TraceFile {
    /// Makes a file; `header` is what follows magic word and version.
    ///
    /// # Errors
    /// If the file cannot be made, or there is no space for it.
    pub fn create(path: &Path, header: [u64; 6]) -> io::Result<TraceFile> {
        // A file of this name that another job has left, or still writes to, keeps its contents.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        let window = Window::open(&file, 0)?;
        let mut this = TraceFile { file, window: Some(window), number: 0 };
        let [a, b, c, d, e, f] = header;
        this.write(&[MAGIC, VERSION, a, b, c, d, e, f])?;
        Ok(this)
    }

    pub fn text(&mut self, stamp: Stamp, text: &str) -> io::Result<()> {
        let mut words = [0; 2 + TEXT_WORDS];
        let bytes = &text.as_bytes()[..text.len().min(8 * TEXT_WORDS)];
        (words[0], words[1]) = (stamp.word(Kind::Text), bytes.len() as u64);
        for (word, chunk) in words[2..].iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_le_bytes(whole);
        }
        self.write(&words[..2 + bytes.len().div_ceil(8)])
    }

    /// Writes an operation, with the numbers of the texts of its name and its detail.
    pub fn event(&mut self, stamp: Stamp, kind: Kind, event: &Event, texts: [u16; 2]) -> io::Result<()> {
        let peer = event.peer.map_or(0, |pe| pe as u64 + 1) & 0xff_ffff;
        let [name, detail] = texts.map(u64::from);
        let what = peer | (event.category as u64) << 24 | name << 32 | detail << 48;
        let words = [stamp.word(kind), what, event.bytes as u64, event.message.unwrap_or(0)];
        self.write(&words[..3 + usize::from(event.message.is_some())])
    }

    pub fn end(&mut self, stamp: Stamp) -> io::Result<()> {
        self.write(&[stamp.word(Kind::End)])
    }

    /// Gives back the space that was not used. Nothing is written after it.
    pub fn close(&mut self) -> io::Result<()> {
        let Some(window) = self.window.take() else { return Ok(()) };
        Ok(ftruncate(&self.file, self.number * WINDOW_BYTES as u64 + 8 * window.used as u64)?)
    }

    fn write(&mut self, words: &[u64]) -> io::Result<()> {
        let Some(window) = &mut self.window else { return Ok(()) };
        if window.write(words) {
            return Ok(());
        }
        self.window = None;
        self.number += 1;
        let window = self.window.insert(Window::open(&self.file, self.number)?);
        let is_written = window.write(words);
        debug_assert!(is_written, "a record is shorter than a window");
        Ok(())
    }
}

impl Window {
    fn open(file: &File, number: u64) -> io::Result<Window> {
        let start = number * WINDOW_BYTES as u64;
        reserve(file, start)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses where the new mapping lies.
        let mapped = unsafe { mmap(null_mut(), WINDOW_BYTES, access, MapFlags::SHARED, file, start) }?;
        let words = NonNull::new(mapped.cast()).ok_or(Errno::NOMEM)?;
        Ok(Window { words, used: 0 })
    }

    /// Writes a record, if there is room for it.
    fn write(&mut self, words: &[u64]) -> bool {
        let free = WINDOW_BYTES / 8 - self.used;
        if words.len() > free {
            return false;
        }
        for (i, word) in words.iter().enumerate().rev() {
            // The first word is written last: another program that reads it finds the others.
            // SAFETY: the word lies in the window, as compared above, and nobody else writes to it.
            unsafe { self.words.add(self.used + i).write_volatile(word.to_le()) };
        }
        self.used += words.len();
        true
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` and nothing refers to it.
        let _ = unsafe { munmap(self.words.as_ptr().cast(), WINDOW_BYTES) };
    }
}

/// Takes space for a window: a store to mapped memory without space behind it would end the process.
fn reserve(file: &File, start: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), start, WINDOW_BYTES as u64) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.write_all_at(&vec![0; WINDOW_BYTES], start),
        outcome => Ok(outcome?),
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::Category;
    use super::*;

    /// The words of a file, without the empty ends of windows.
    fn words(path: &Path) -> Vec<u64> {
        let bytes = std::fs::read(path).expect("the file of the test");
        let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
        words.collect()
    }

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("pelago-trace-{name}-{}", std::process::id()))
    }

    #[test]
    fn records_are_written_as_described() {
        let path = path("records");
        let mut file = TraceFile::create(&path, [3, 4, 99, 0, 1000, 0]).unwrap();
        let stamp = Stamp { nanos: 7, thread: 2 };
        file.text(stamp, "put from here").unwrap();
        let put = Event::new(Category::Rma, "put").with(1, 80);
        file.event(stamp, Kind::Begin, &put, [1, 0]).unwrap();
        file.end(Stamp { nanos: 9, thread: 2 }).unwrap();
        let message = Event::departure("send", (3, 1), 0, 8);
        file.event(stamp, Kind::Departure, &message, [1, 1]).unwrap();
        // Before it is closed, the file has all records, as after the death of the process.
        let open = words(&path);
        file.close().unwrap();
        let closed = words(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(open[..closed.len()], closed);
        assert!(open[closed.len()..].iter().all(|&word| word == 0));
        assert_eq!(closed[..8], [MAGIC, VERSION, 3, 4, 99, 0, 1000, 0]);
        assert_eq!(closed[8..10], [7 << 16 | 2 << 8 | 1, 13]);
        assert_eq!(closed[10].to_le_bytes(), *b"put from");
        assert_eq!(closed[12..15], [7 << 16 | 2 << 8 | 2, 2 | 2 << 24 | 1 << 32, 80]);
        assert_eq!(closed[15], 9 << 16 | 2 << 8 | 3);
        assert_eq!(closed[16..19], [7 << 16 | 2 << 8 | 5, 2 | 5 << 24 | 1 << 32 | 1 << 48, 8]);
        assert_eq!(closed.len(), 20);
    }

    /// Two jobs with one folder: a file that was cut while the other job writes would end its PE by SIGBUS.
    #[test]
    fn a_file_that_another_job_makes_anew_stays_whole() {
        let path = path("anew");
        let event = Event::new(Category::Rma, "put");
        let stamp = Stamp { nanos: 1, thread: 0 };
        let mut old = TraceFile::create(&path, [0; 6]).unwrap();
        TraceFile::create(&path, [1; 6]).unwrap().close().unwrap();
        for _ in 0..WINDOW_BYTES / 64 {
            old.event(stamp, Kind::Begin, &event, [1, 0]).unwrap();
        }
        let new = words(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(new[..], [MAGIC, VERSION, 1, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn a_record_lies_in_one_window() {
        let path = path("windows");
        let mut file = TraceFile::create(&path, [0; 6]).unwrap();
        let (stamp, event) = (Stamp { nanos: 1, thread: 0 }, Event::new(Category::Rma, "put"));
        for _ in 0..2 * WINDOW_BYTES / 24 {
            file.event(stamp, Kind::Begin, &event, [1, 0]).unwrap();
        }
        file.close().unwrap();
        let words = words(&path);
        std::fs::remove_file(&path).unwrap();
        let first = stamp.word(Kind::Begin);
        let window = WINDOW_BYTES / 8;
        assert_eq!(words.iter().filter(|&&word| word == first).count(), 2 * WINDOW_BYTES / 24);
        assert_eq!((words[8], words[window], words[window - 1]), (first, first, 0));
    }
}
