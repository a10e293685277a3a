//! A process that has joined a job by PMIx.
//!
//! Invariant: no wait is longer than the limit, whatever the server does: a separate thread makes the calls
//! of the library, which may wait for ever. A key belongs to the process that has put it.

use std::ffi::{CString, c_int};
use std::io;
use std::time::Duration;

use thiserror::Error;

use super::library::{Got, Library};
use super::sys::{self, Proc};
use super::worker::Worker;

/// The longest key that [`Client::put`] takes, in characters, because the library adds a 0 at the end.
pub(crate) const KEY_MAX_CHARS: usize = sys::KEY_BYTES - 1;
/// How long the server may take to respond to an abort.
const ABORT_LIMIT: Duration = Duration::from_secs(5);
/// The additional wait for the server, which is asked to apply the limit itself, in whole seconds.
const SERVER_FIRST: Duration = Duration::from_secs(1);

/// Why an exchange with a launcher that speaks PMIx failed.
#[derive(Debug, Error)]
pub enum PmixError {
    /// The library was not found, or is not a suitable one.
    #[error(
        "this process was started by a launcher that speaks PMIx (PMIX_NAMESPACE is set), but its library \
         {looked_for} cannot be used: {reason}; install it (Debian: libpmix2), name it by \
         PELAGO_PMIX_LIBRARY, or start the program by pelago run, mpiexec.hydra or srun --mpi=pmi2"
    )]
    Library {
        /// The name or path of the library.
        looked_for: String,
        /// The error of the dynamic linker.
        reason: String,
    },
    /// The program is statically linked, and libpmix would load a second C library.
    #[error(
        "this process was started by a launcher that speaks PMIx (PMIX_NAMESPACE is set), whose library \
         {looked_for} works in no program that is linked with -static; link the C library dynamically, or \
         start the program by pelago run, mpiexec.hydra or srun --mpi=pmi2"
    )]
    SelfContained {
        /// The name or path of the library.
        looked_for: String,
    },
    /// The thread for the calls of the library could not be started.
    #[error(
        "a thread for the calls of libpmix cannot be started: {0}; raise the limit of processes (ulimit -u)"
    )]
    Thread(io::Error),
    /// The thread for the calls of the library has ended.
    #[error("the thread for the calls of libpmix has ended, in which {0} was to come")]
    Dead(&'static str),
    /// The launcher did not respond in time.
    #[error(
        "no {awaited} from the launcher (PMIx) within {} s; see whether every PE has started, \
         or raise PELAGO_INIT_TIMEOUT", limit.as_secs_f64()
    )]
    Timeout {
        /// The response that was expected.
        awaited: &'static str,
        /// The time limit.
        limit: Duration,
    },
    /// The library or its server returned an error.
    #[error(
        "{call} of libpmix failed by {status} ({text}); see whether the launcher still runs, and whether its \
         PMIx fits this one (PELAGO_PMIX_LIBRARY names another)"
    )]
    Status {
        /// The function of the library.
        call: &'static str,
        /// The status that it returned.
        status: i32,
        /// The library's text for this status.
        text: String,
    },
    /// A value has another type than expected.
    #[error(
        "the launcher (PMIx) keeps a value of type {kind} under the key {key:?}, which is not {expected}"
    )]
    Foreign {
        /// The key.
        key: String,
        /// The type, as PMIx numbers them.
        kind: u16,
        /// The expected type.
        expected: &'static str,
    },
}

/// A process that has joined a job by PMIx.
#[derive(Debug)]
pub(crate) struct Client {
    library: Library,
    worker: Worker,
    /// The identity of this process at the server.
    me: Proc,
    limit: Duration,
}

impl Client {
    /// Joins the job that the environment names, through the library at `path` or the system's; no response
    /// may take longer than `limit`.
    pub(crate) fn join(path: Option<&str>, limit: Duration) -> Result<Self, PmixError> {
        let library = Library::open(path)?;
        let worker = Worker::start(library, limit, SERVER_FIRST)?;
        let me = worker.call("answer to PMIx_Init", Library::init)?;
        Ok(Self { library, worker, me, limit })
    }

    /// The number of this process in its job.
    pub(crate) fn rank(&self) -> usize {
        self.me.rank as usize
    }

    /// The number of processes in the job.
    pub(crate) fn size(&self) -> Result<usize, PmixError> {
        let proc = self.proc(sys::RANK_WILDCARD);
        let got = self.worker.call("size of the job", move |library| library.get(&proc, sys::JOB_SIZE))?;
        let foreign = |kind| PmixError::Foreign {
            key: sys::JOB_SIZE.to_string_lossy().into_owned(),
            kind,
            expected: "the number of processes of the job",
        };
        match got {
            Some(Got::Number(size)) => Ok(size as usize),
            Some(Got::Bytes(_)) => Err(foreign(sys::BYTE_OBJECT)),
            Some(Got::Other(kind)) => Err(foreign(kind)),
            None => Err(foreign(0)),
        }
    }

    /// Publishes bytes under a key; other processes see them after the next barrier.
    pub(crate) fn put(&self, key: &str, value: &[u8]) -> Result<(), PmixError> {
        let (key, value) = (c_string(key), value.to_owned());
        self.worker.call("answer to PMIx_Put", move |library| library.put(&key, &value))
    }

    /// The bytes that a process has put under a key before the last barrier, or `None` if it has not.
    pub(crate) fn get(&self, pe: usize, key: &str) -> Result<Option<Vec<u8>>, PmixError> {
        let (proc, name) = (self.proc(pe as u32), c_string(key));
        match self.worker.call("answer to PMIx_Get", move |library| library.get(&proc, &name))? {
            Some(Got::Bytes(bytes)) => Ok(Some(bytes)),
            None => Ok(None),
            Some(other) => {
                let kind = if let Got::Other(kind) = other { kind } else { sys::UINT32 };
                Err(PmixError::Foreign { key: key.to_owned(), kind, expected: "a value that Pelago puts" })
            }
        }
    }

    /// Returns when every process of the job has called it.
    pub(crate) fn barrier(&self) -> Result<(), PmixError> {
        let (awaited, limit) = ("end of PMIx_Fence", self.limit);
        let seconds = c_int::try_from(limit.as_secs_f64().ceil() as u64).unwrap_or(c_int::MAX);
        self.worker.call(awaited, move |library| library.fence(seconds)).map_err(|error| match error {
            // The server applies the limit itself and returns this status.
            PmixError::Status { status: sys::ERR_TIMEOUT, .. } => PmixError::Timeout { awaited, limit },
            other => other,
        })
    }

    /// Whether the connection to the server was lost, as far as the library has noticed.
    pub(crate) fn is_launcher_gone(&self) -> bool {
        Library::is_connection_lost()
    }

    /// Aborts the job, even while another thread waits in a call.
    pub(crate) fn abort(&self, status: i32, words: &str) -> Result<(), PmixError> {
        let words = c_string(words);
        let worker = Worker::start(self.library, ABORT_LIMIT, Duration::ZERO)?;
        worker.call("answer to PMIx_Abort", move |library| library.abort(status, &words))
    }

    /// Leaves the job.
    pub(crate) fn finalize(&self) -> Result<(), PmixError> {
        self.worker.call("answer to PMIx_Finalize", Library::finalize)
    }

    fn proc(&self, rank: u32) -> Proc {
        Proc { rank, ..self.me }
    }
}

/// The text up to its first NUL, as a C string.
fn c_string(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().take_while(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_refused_with_a_remedy() {
        let error = Client::join(Some("/no/such/libpmix.so.2"), Duration::from_secs(20)).unwrap_err();
        let text = error.to_string();
        for part in ["/no/such/libpmix.so.2", "PMIX_NAMESPACE", "libpmix2", "PELAGO_PMIX_LIBRARY", "pmi2"] {
            assert!(text.contains(part), "{text} does not say {part}");
        }
    }

    #[test]
    fn a_library_of_another_kind_is_refused() {
        let error = Client::join(Some("libc.so.6"), Duration::from_secs(20)).unwrap_err().to_string();
        assert!(error.contains("libc.so.6") && error.contains("no PMIx of version 3"), "{error}");
    }

    #[test]
    fn texts_end_at_their_first_zero() {
        assert_eq!(c_string("a\0b").as_c_str(), c"a");
        assert_eq!(c_string("").as_c_str(), c"");
    }
}
