//! Writer: a thread that writes the launcher's output, so that the supervising loop never waits for the
//! reader of that output.
//!
//! Invariant: only the thread writes to the stream, and the reader can block only the thread. The buffer is
//! bounded: while [`Writer::is_full`], the supervising loop does not read the PEs' pipes, and the PEs wait. A
//! line of up to 4 KiB goes out in one write, so that lines of different processes do not mix (decision
//! 0035).

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

/// The limit of the buffer: a writer that holds this many bytes is full.
const BUFFER_BYTES: usize = 256 << 10;
/// The maximum size of one write: a pipe accepts such a write as a whole. So the count of bytes that the
/// reader has taken never lags by more than this.
const PIECE_BYTES: usize = 4 << 10;

/// One of the two streams that the launcher writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlet {
    Stdout,
    Stderr,
}

impl Outlet {
    fn with<T>(self, act: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
        match self {
            Self::Stdout => act(io::stdout().as_fd()),
            Self::Stderr => act(io::stderr().as_fd()),
        }
    }

    /// Whether the stream is a pipe or a similar file whose reader has closed its end.
    pub(crate) fn has_lost_its_reader(self) -> bool {
        self.with(|fd| {
            let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
            let found = poll(&mut fds, Some(&Timespec::default()));
            found.is_ok() && fds[0].revents().contains(PollFlags::ERR)
        })
    }

    /// The name of the stream in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stdout => "standard output",
            Self::Stderr => "standard error",
        }
    }
}

/// The launcher's side of the thread. Its event descriptor becomes readable when there is room again, when
/// all is written after [`Writer::notify_when_done`], and when the stream has failed.
#[derive(Debug)]
pub(crate) struct Writer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    outlet: Outlet,
    event: OwnedFd,
    state: Mutex<State>,
    /// Signals a change of the state to the thread.
    filled: Condvar,
}

#[derive(Debug, Default)]
struct State {
    held: VecDeque<u8>,
    /// Bytes that the thread has taken out of `held` and not yet written.
    in_flight_bytes: usize,
    written_bytes: u64,
    /// The thread signals the event descriptor when no more than this is left.
    notify_at: Option<usize>,
    failure: Option<Errno>,
    /// The thread ends when the buffer is empty.
    ending: bool,
}

impl Writer {
    /// Starts the thread. It gets the signal mask of the calling thread.
    pub(crate) fn start(outlet: Outlet) -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (state, filled) = Default::default();
        let shared = Arc::new(Shared { outlet, event, state, filled });
        let of_thread = Arc::clone(&shared);
        std::thread::Builder::new().name("pelago output".to_owned()).spawn(move || of_thread.write_all())?;
        Ok(Self { shared })
    }

    /// The stream that it writes to.
    pub(crate) fn outlet(&self) -> Outlet {
        self.shared.outlet
    }

    /// Adds bytes to the buffer, even if it is full; discards them if the stream has failed.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut state = self.shared.lock();
        if state.failure.is_none() {
            state.held.extend(bytes);
            self.shared.filled.notify_one();
        }
    }

    /// Whether the buffer is full, so that no more should be pushed. The descriptor then becomes readable
    /// when half of the buffer is written.
    pub(crate) fn is_full(&self) -> bool {
        let mut state = self.shared.lock();
        let full = state.failure.is_none() && state.pending_bytes() >= BUFFER_BYTES;
        if full {
            state.notify_at = Some(BUFFER_BYTES / 2);
        }
        full
    }

    /// Makes the descriptor readable when nothing is left to write.
    pub(crate) fn notify_when_done(&self) {
        self.shared.lock().notify_at = Some(0);
    }

    /// Waits until the descriptor is readable, at most for `limit`.
    pub(crate) fn wait(&self, limit: Duration) {
        let limit = Timespec::try_from(limit).ok();
        let _ = poll(&mut [PollFd::new(self, PollFlags::IN)], limit.as_ref());
    }

    /// Clears the event, so that the descriptor is not readable.
    pub(crate) fn clear_event(&self) {
        // The call fails only if the event is not set.
        let _ = rustix::io::read(&self.shared.event, &mut [0_u8; 8]);
    }

    /// Bytes that are not written yet; 0 after a failure, and after [`Writer::give_up`].
    pub(crate) fn pending_bytes(&self) -> usize {
        self.shared.lock().pending_bytes()
    }

    /// Bytes that were written since the start.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.shared.lock().written_bytes
    }

    /// Why the stream takes nothing more, if it does not.
    pub(crate) fn failure(&self) -> Option<Errno> {
        self.shared.lock().failure
    }

    /// Discards the data that is not written. A write in progress is not interrupted.
    pub(crate) fn give_up(&self) {
        let mut state = self.shared.lock();
        state.held.clear();
        state.in_flight_bytes = 0;
    }
}

impl AsFd for Writer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.event.as_fd()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.lock().ending = true;
        self.shared.filled.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The body of the thread.
    fn write_all(&self) {
        while let Some(piece) = self.take() {
            let result = write_piece(self.outlet, &piece);
            let mut state = self.lock();
            state.in_flight_bytes = 0;
            match result {
                Ok(()) => state.written_bytes += piece.len() as u64,
                Err(error) => {
                    state.failure = Some(error);
                    state.held.clear();
                    state.notify_at = Some(0);
                }
            }
            let left = state.pending_bytes();
            if state.notify_at.is_some_and(|at| left <= at) {
                state.notify_at = None;
                // The call fails only if the counter of the event overflows.
                let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
            }
            if state.failure.is_some() {
                return;
            }
        }
    }

    /// Waits for data to write; `None` at the end.
    fn take(&self) -> Option<Vec<u8>> {
        let mut state = self.lock();
        while state.held.is_empty() && !state.ending {
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let piece = take_piece(&mut state.held);
        state.in_flight_bytes = piece.len();
        (!piece.is_empty()).then_some(piece)
    }
}

impl State {
    fn pending_bytes(&self) -> usize {
        self.held.len() + self.in_flight_bytes
    }
}

/// Takes as many whole lines as fit in one write; a longer line is taken in pieces.
fn take_piece(held: &mut VecDeque<u8>) -> Vec<u8> {
    let most = held.len().min(PIECE_BYTES);
    let whole = held.range(..most).rposition(|byte| *byte == b'\n').map_or(most, |at| at + 1);
    held.drain(..whole).collect()
}

/// Writes a piece, however long the reader takes, even if another process has made the stream non-blocking.
fn write_piece(outlet: Outlet, mut piece: &[u8]) -> Result<(), Errno> {
    while !piece.is_empty() {
        match outlet.with(|fd| rustix::io::write(fd, piece)) {
            Ok(count) => piece = &piece[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = outlet.with(|fd| poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::OUT)], None));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_lines_where_these_fit() {
        let mut held = VecDeque::from(b"one\ntwo\nhalf".to_vec());
        assert_eq!(take_piece(&mut held), b"one\ntwo\n");
        assert_eq!(take_piece(&mut held), b"half");
        assert_eq!(take_piece(&mut held), b"");
        held.extend(vec![b'x'; PIECE_BYTES + 1]);
        assert_eq!((take_piece(&mut held).len(), held.len()), (PIECE_BYTES, 1));
    }
}
