//! Job: the processes that were started together, and the data that they exchange through the launcher before
//! their processing elements (PEs) share memory. A process has one PE, or as many as the settings say
//! (`PELAGO_PES_PER_PROCESS`).
//!
//! Invariant: a process joins once, its lowest PE acts for all of them, and every wait for the launcher ends
//! within `PELAGO_INIT_TIMEOUT` (a little later under `pelago run` and launchers that speak PMIx, which apply
//! that limit themselves). A barrier of a launcher takes milliseconds, so callers use one put, one barrier
//! and a few gets, and exchange everything else over shared memory or the fabric.

use std::collections::HashMap;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, fstat};
use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionread};
use rustix::net::sockopt::socket_type;

use crate::at_exit::leave_at_exit;
use crate::detect::{Found, detect, from_environment, is_socket};
use crate::env::Settings;
use crate::error::BootError;
use crate::pmi::client::{Client, Link, PmiError};
use crate::pmix::client::{self as pmix, PmixError};
use crate::print::print_stderr;

/// The longest key of a job without a launcher, in characters; the same as with the usual launchers.
const KEY_MAX_CHARS: usize = 56;
/// How long a process that aborts the job waits for one of its threads that holds the lock of standard
/// output, and for its launcher to read the last output.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// The launcher that started the PEs of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// No launcher: a job of one process.
    Alone,
    /// `pelago run`.
    Pelago,
    /// Another launcher that speaks PMI-1, such as hydra or Slurm.
    Pmi1,
    /// A launcher that speaks PMIx, such as Open MPI's `mpirun` or Slurm.
    Pmix,
}

/// This process as a member of its job.
#[derive(Debug)]
pub struct Job {
    rank: usize,
    size: usize,
    pes_per_process: usize,
    launcher: Launcher,
    means: Means,
    /// Whether PEs that continue wait in vain for a PE of this process, which has left.
    missed: OnceLock<()>,
}

/// The means by which a process exchanges data with the others.
#[derive(Debug)]
enum Means {
    /// There are no other processes.
    Own(Mutex<HashMap<String, Vec<u8>>>),
    /// Through a launcher that speaks PMI-1.
    Pmi { client: Mutex<Client>, link: Arc<Link>, key_max: usize },
    /// Through a launcher that speaks PMIx.
    Pmix(Box<pmix::Client>),
}

/// A handle that tells the launcher why this process is about to die; usable from any thread, and from a
/// panic hook.
#[derive(Clone, Debug, Default)]
pub struct Notifier(Option<Arc<Link>>);

impl Notifier {
    /// Sends `pelago run` a reason, such as `panicked: index out of range`. `pelago run` prints the last
    /// reason if this process then dies. Truncates the text to 1024 bytes, does not wait, and does nothing
    /// under another launcher.
    pub fn note(&self, text: &str) {
        if let Some(link) = &self.0 {
            link.note(text);
        }
    }
}

impl Job {
    /// Joins the job that this process was started for, or a job of one process if no launcher is seen.
    ///
    /// # Errors
    /// If the process has joined before; if the launcher speaks another protocol (the error says what to do);
    /// if variables of the launcher are not valid; if the launcher does not respond within
    /// `settings.init_timeout`.
    pub fn join(settings: &Settings) -> Result<Self, BootError> {
        static JOINED: OnceLock<()> = OnceLock::new();
        JOINED.set(()).map_err(|()| BootError::Twice)?;
        let pes_per_process = settings.pes_per_process;
        let (rank, size, launcher, means) = match detect(from_environment, is_socket)? {
            Found::Alone => (0, 1, Launcher::Alone, Means::Own(Mutex::default())),
            Found::Pmi { descriptor, rank, size } => {
                let failed = |reason| exchange(rank * pes_per_process, "joining the job".to_owned(), reason);
                let socket = take_socket(descriptor)?;
                let client = Client::join(socket, settings.init_timeout).map_err(failed)?;
                let launcher = if client.launcher_is_ours() { Launcher::Pelago } else { Launcher::Pmi1 };
                let (link, key_max) = (client.link(), client.key_max());
                (rank, size, launcher, Means::Pmi { client: Mutex::new(client), link, key_max })
            }
            Found::Pmix { rank } => {
                let failed =
                    |reason| pmix_failed(rank * pes_per_process, "joining the job".to_owned(), reason);
                let path = settings.pmix_library.as_deref();
                let client = pmix::Client::join(path, settings.init_timeout).map_err(failed)?;
                let size = client.size().map_err(failed)?;
                (client.rank(), size, Launcher::Pmix, Means::Pmix(Box::new(client)))
            }
        };
        Ok(Self { rank, size, pes_per_process, launcher, means, missed: OnceLock::new() })
    }

    /// The number of this process, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of processes in the job.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The number of PEs of each process.
    pub fn pes_per_process(&self) -> usize {
        self.pes_per_process
    }

    /// The lowest PE of this process.
    pub fn first_pe(&self) -> usize {
        self.rank * self.pes_per_process
    }

    /// The launcher that started the job.
    pub fn launcher(&self) -> Launcher {
        self.launcher
    }

    /// Publishes bytes of any length and content under `key`; other processes can get them after the next
    /// barrier.
    ///
    /// # Errors
    /// If the key is empty or too long, or contains other characters than letters, digits, `-` and `_`; if
    /// the launcher refuses, is gone, or does not respond in time.
    pub fn put(&self, key: &str, value: &[u8]) -> Result<(), BootError> {
        self.check_key(key)?;
        match &self.means {
            Means::Own(values) => {
                values
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(key.to_owned(), value.to_owned());
                Ok(())
            }
            Means::Pmi { client, .. } => {
                lock(client).put(key, value).map_err(|e| self.failed(format!("putting the key {key:?}"), e))
            }
            Means::Pmix(client) => {
                client.put(key, value).map_err(|e| self.pmix_failed(format!("putting the key {key:?}"), e))
            }
        }
    }

    /// Returns when every process of the job has called it.
    ///
    /// # Errors
    /// If the launcher is gone, or does not respond in time because a process is missing.
    pub fn barrier(&self) -> Result<(), BootError> {
        match &self.means {
            Means::Own(_) => Ok(()),
            Means::Pmi { client, .. } => lock(client)
                .barrier()
                .map_err(|e| self.failed("waiting in the launcher's barrier".to_owned(), e)),
            Means::Pmix(client) => client
                .barrier()
                .map_err(|e| self.pmix_failed("waiting in the launcher's barrier".to_owned(), e)),
        }
    }

    /// The bytes that process `rank` put under `key` before the last barrier, or `None` if it did not. A
    /// launcher that speaks PMI-1 has one table for all processes, so keys must be unique in the job: a key
    /// contains the number of its process, or only one process puts it.
    ///
    /// # Errors
    /// As [`Job::put`], and if the value was not written by [`Job::put`].
    pub fn get(&self, rank: usize, key: &str) -> Result<Option<Vec<u8>>, BootError> {
        self.check_key(key)?;
        if rank >= self.size {
            return Ok(None);
        }
        match &self.means {
            Means::Own(values) => Ok(values.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()),
            Means::Pmi { client, .. } => {
                lock(client).get(key).map_err(|e| self.failed(format!("getting the key {key:?}"), e))
            }
            Means::Pmix(client) => client
                .get(rank, key)
                .map_err(|e| self.pmix_failed(format!("getting the key {key:?} of process {rank}"), e)),
        }
    }

    /// The processes that the launcher placed on the node of this one, ascending and with this one; `None` if
    /// the launcher does not say, or speaks PMIx, whose information was wrong in jobs of two nodes. The
    /// result is a hint: only mapping the memory shows whether two processes can share it.
    ///
    /// # Errors
    /// If the launcher is gone, or does not respond in time.
    pub fn local_ranks(&self) -> Result<Option<Vec<usize>>, BootError> {
        let client = match &self.means {
            Means::Own(_) => return Ok(Some(vec![0])),
            Means::Pmi { client, .. } => client,
            Means::Pmix(_) => return Ok(None),
        };
        let nodes = lock(client).nodes(self.size);
        let nodes = nodes.map_err(|e| self.failed("asking for the process mapping".to_owned(), e))?;
        Ok(nodes.map(|nodes| (0..self.size).filter(|rank| nodes[*rank] == nodes[self.rank]).collect()))
    }

    /// Sends `pelago run` a reason, in case this process dies; see [`Notifier::note`].
    pub fn note(&self, text: &str) {
        self.notifier().note(text);
    }

    /// Records that PEs of other processes wait in vain for a PE of this process, which leaves now. If this
    /// process then exits with a status other than 0, `pelago run` reports that as the failure of the job,
    /// with the first text that was recorded. If the status is 0, `pelago run` reports nothing about this
    /// process, because the waiting PEs report their own failure.
    pub fn note_missed(&self, words: &str) {
        if self.missed.set(()).is_ok() {
            self.note(words);
        }
    }

    /// A handle by which any thread can call [`Notifier::note`].
    pub fn notifier(&self) -> Notifier {
        match &self.means {
            Means::Pmi { link, .. } if self.launcher == Launcher::Pelago => Notifier(Some(Arc::clone(link))),
            _ => Notifier(None),
        }
    }

    /// Whether the launcher has died or closed its end. Does not wait. With PMIx, the library learns of it by
    /// an event, slightly later.
    pub fn launcher_gone(&self) -> bool {
        match &self.means {
            Means::Own(_) => false,
            Means::Pmi { link, .. } => link.peer_gone(),
            Means::Pmix(client) => client.is_launcher_gone(),
        }
    }

    /// Whether `pelago run` has asked what the PEs of this process wait for; [`Job::tell_waits`] sends the
    /// reply. Does not wait. No other launcher asks.
    pub fn is_asked(&self) -> bool {
        match &self.means {
            // If another thread holds the client for a request, that thread replies to the question.
            Means::Pmi { client, .. } if self.launcher == Launcher::Pelago => {
                client.try_lock().is_ok_and(|mut client| client.is_asked())
            }
            _ => false,
        }
    }

    /// Tells `pelago run` what the PEs of this process wait for, a line for each PE or group of PEs, and how
    /// long each PE has waited, in their order. Does not wait.
    pub fn tell_waits(&self, text: &str, waited: &[Option<Duration>]) {
        if let (Launcher::Pelago, Means::Pmi { link, .. }) = (self.launcher, &self.means) {
            link.tell_waits(text, waited);
        }
    }

    /// Tells `pelago run` that this process may exit without leaving the job, until it makes another call.
    /// Does nothing under another launcher.
    pub fn rest(&self) {
        if let (Launcher::Pelago, Means::Pmi { link, .. }) = (self.launcher, &self.means) {
            link.rest(self.missed.get().is_some());
        }
    }

    /// Leaves the job (finalize). A process that exits without this call ends the job for all. If PEs wait in
    /// vain for a PE of this process ([`Job::note_missed`]) and the launcher speaks PMI-1 but is not `pelago
    /// run`, the process leaves only when it exits with status 0; with another status the launcher ends the
    /// job.
    ///
    /// # Errors
    /// If the launcher is gone, or does not respond in time.
    pub fn finalize(self) -> Result<(), BootError> {
        if self.missed.get().is_some() && self.launcher == Launcher::Pmi1 {
            // The error is ignored: a launcher that cannot be told is gone.
            leave_at_exit(move || drop(self.finalize_now()));
            return Ok(());
        }
        self.finalize_now()
    }

    /// Leaves the job at once.
    pub(crate) fn finalize_now(&self) -> Result<(), BootError> {
        let is_missed = self.missed.get().is_some();
        match &self.means {
            Means::Own(_) => Ok(()),
            Means::Pmi { client, .. } => {
                lock(client).finalize(is_missed).map_err(|e| self.failed("leaving the job".to_owned(), e))
            }
            Means::Pmix(client) => {
                client.finalize().map_err(|e| self.pmix_failed("leaving the job".to_owned(), e))
            }
        }
    }

    /// Aborts the job on behalf of PE `pe` of this process, with exit status `code` and a message for the
    /// user, and exits at once. Rust's standard output is flushed, unless another thread holds its lock. No
    /// destructor and no `atexit` handler runs, because one that waits for other PEs would wait for ever.
    pub fn abort(&self, pe: usize, code: i32, message: &str) -> ! {
        let ours = self.launcher == Launcher::Pelago;
        if !ours && !message.is_empty() {
            print_stderr(&format!("PE {pe}: {message}\n"));
            await_reader(std::io::stderr());
        }
        // Errors are ignored: a launcher that cannot be told is gone, and its job with it.
        match &self.means {
            Means::Own(_) => {}
            Means::Pmi { link, .. } => {
                // `pelago run` reports the code as it is.
                let status = if ours { code } else { exit_status(code) };
                let _ = link.abort(status, ours.then_some((pe, message)));
            }
            Means::Pmix(client) => {
                let _ = client.abort(exit_status(code), message);
            }
        }
        flush_stdout();
        // SAFETY: `_exit` has no precondition; it ends the process.
        unsafe { libc::_exit(exit_status(code)) }
    }

    fn check_key(&self, key: &str) -> Result<(), BootError> {
        let max_chars = match &self.means {
            Means::Own(_) => KEY_MAX_CHARS,
            Means::Pmi { key_max, .. } => *key_max,
            Means::Pmix(_) => pmix::KEY_MAX_CHARS,
        };
        let fits = (1..=max_chars).contains(&key.len());
        if fits && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_') {
            return Ok(());
        }
        Err(BootError::Key { pe: self.first_pe(), key: key.to_owned(), max_chars })
    }

    fn failed(&self, operation: String, reason: PmiError) -> BootError {
        exchange(self.first_pe(), operation, reason)
    }

    fn pmix_failed(&self, operation: String, reason: PmixError) -> BootError {
        pmix_failed(self.first_pe(), operation, reason)
    }
}

/// The exit status of a process that aborts its job with this code. The system keeps its lowest eight bits
/// only, and a failure must not become a success: where these are 0, the status is 1, except for the code 0.
pub fn exit_status(code: i32) -> i32 {
    if code != 0 && code & 0xff == 0 { 1 } else { code }
}

fn exchange(pe: usize, operation: String, reason: PmiError) -> BootError {
    BootError::Exchange { pe, operation, reason }
}

fn pmix_failed(pe: usize, operation: String, reason: PmixError) -> BootError {
    BootError::Pmix { pe, operation, reason }
}

fn lock(client: &Mutex<Client>) -> MutexGuard<'_, Client> {
    client.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes ownership of the descriptor that the launcher passed, and sets close-on-exec, so that programs
/// started from here do not inherit it.
fn take_socket(descriptor: RawFd) -> Result<OwnedFd, BootError> {
    let closed = |_| BootError::Environment {
        variable: "PMI_FD",
        value: descriptor.to_string(),
        expected: "the number of an open socket",
    };
    // SAFETY: the borrowed descriptor is only passed to a call that fails if it is not open; `detect` refuses
    // -1.
    let seen = unsafe { BorrowedFd::borrow_raw(descriptor) };
    socket_type(seen).map_err(closed)?;
    fcntl_setfd(seen, FdFlags::CLOEXEC).map_err(closed)?;
    // SAFETY: it is an open socket, as the call above has shown, and the launcher passed it in PMI_FD to the
    // owner of the connection; a process joins once, so this code makes no second owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Flushes Rust's standard output, but waits no longer than a limit for a thread that holds its lock.
fn flush_stdout() {
    let (done, is_done) = mpsc::channel();
    let flush = move || {
        let _ = std::io::stdout().flush();
        let _ = done.send(());
    };
    if thread::Builder::new().spawn(flush).is_ok() {
        let _ = is_done.recv_timeout(FLUSH_LIMIT);
    }
}

/// Waits until all data in a pipe has been read, but no longer than a limit. A launcher that receives an
/// abort may kill this process and close the pipe before it has read its contents.
fn await_reader(end: impl AsFd) {
    let is_pipe = fstat(&end).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    let since = Instant::now();
    while is_pipe && since.elapsed() < FLUSH_LIMIT && ioctl_fionread(&end).is_ok_and(|bytes| bytes > 0) {
        thread::sleep(Duration::from_micros(100));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

    #[test]
    fn what_is_in_a_pipe_is_awaited_until_it_is_read() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        await_reader(&writer);
        // Byte by byte, so that the reader is still reading when the wait begins.
        const BYTES: usize = 60_000;
        writer.write_all(&[7; BYTES]).unwrap();
        let read = thread::spawn(move || (0..BYTES).for_each(|_| reader.read_exact(&mut [0]).unwrap()));
        await_reader(&writer);
        assert_eq!(ioctl_fionread(&writer).unwrap(), 0);
        read.join().unwrap();
        await_reader(File::open("/dev/null").unwrap());
    }

    fn alone() -> Job {
        let means = Means::Own(Mutex::default());
        let missed = OnceLock::new();
        Job { rank: 0, size: 1, pes_per_process: 1, launcher: Launcher::Alone, means, missed }
    }

    #[test]
    fn a_job_of_one_keeps_its_own_values() {
        let job = alone();
        job.put("address-0", &[1, 2, 3]).unwrap();
        job.barrier().unwrap();
        assert_eq!(job.get(0, "address-0").unwrap(), Some(vec![1, 2, 3]));
        assert_eq!(job.get(0, "address-1").unwrap(), None);
        assert_eq!(job.get(1, "address-0").unwrap(), None, "there is no process 1");
        assert_eq!(job.local_ranks().unwrap(), Some(vec![0]));
        assert_eq!((job.rank(), job.size(), job.launcher()), (0, 1, Launcher::Alone));
        assert!(!job.launcher_gone());
        job.note("no launcher reads this");
        job.finalize().unwrap();
    }

    #[test]
    fn keys_that_cannot_travel_are_refused() {
        let job = alone();
        for key in ["", "a.1", "a b", "a=b", "é", "a\n", &"k".repeat(KEY_MAX_CHARS + 1)] {
            let error = job.put(key, &[]).unwrap_err();
            assert!(matches!(error, BootError::Key { .. }), "{key:?}: {error}");
            assert!(matches!(job.get(0, key), Err(BootError::Key { .. })), "{key:?}");
        }
        job.put(&"k".repeat(KEY_MAX_CHARS), &[]).unwrap();
    }

    #[test]
    fn a_code_other_than_0_is_no_success() {
        assert_eq!([0, 1, 255, 257, -1].map(exit_status), [0, 1, 255, 257, -1]);
        assert_eq!([256, 512, -256, i32::MIN].map(exit_status), [1; 4]);
    }

    #[test]
    fn a_descriptor_that_is_no_socket_is_refused() {
        use std::os::fd::AsRawFd;
        let file = File::open("/dev/null").unwrap();
        assert!(take_socket(file.as_raw_fd()).unwrap_err().to_string().contains("PMI_FD"));
        assert!(take_socket(i32::MAX).unwrap_err().to_string().contains("PMI_FD"));
    }
}
