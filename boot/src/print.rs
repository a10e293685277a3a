//! Output of Pelago's commands: to standard output, where a failure is returned and does not panic, and to
//! standard error, where a reader that does not read blocks the command only for a bounded time.

use std::io::{self, ErrorKind, Write};
use std::mem::MaybeUninit;
use std::ptr;
use std::time::{Duration, Instant};

use crate::writer::{Outlet, Writer};

/// How long [`tell`] waits for a reader that takes nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Writes `text` to standard output, unbuffered. If the reader of a pipe has closed its end, SIGPIPE ends the
/// process, as with other commands.
///
/// # Errors
/// If the text cannot be written, for instance to a device that is full.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => end_by_signal(libc::SIGPIPE),
        Err(error) => Err(io::Error::new(error.kind(), format!("writing to standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Writes `text` to standard error by one call, so that lines of two processes do not mix. A failure is
/// ignored, because it cannot be reported anywhere else: after a logout the terminal takes nothing, and a
/// file system may be full. `eprint!` would panic.
pub fn print_stderr(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Writes `text` to standard error, and waits for the reader for a bounded time. Text that cannot be written
/// by then is discarded.
pub fn tell(text: &str) {
    let Ok(writer) = Writer::start(Outlet::Stderr) else {
        return print_stderr(text);
    };
    writer.push(text.as_bytes());
    writer.notify_when_done();
    let mut last = (writer.written_bytes(), Instant::now());
    while writer.pending_bytes() > 0 && last.1.elapsed() < PATIENCE {
        writer.wait(PATIENCE.saturating_sub(last.1.elapsed()));
        let written = writer.written_bytes();
        if written != last.0 {
            last = (written, Instant::now());
        }
    }
}

/// Ends the process by the default action of a signal. A shell that runs commands in a loop ends at Ctrl-C
/// only if SIGINT has ended the interrupted command. Rust's standard output is not flushed.
pub fn end_by_signal(signal: i32) -> ! {
    // SAFETY: the default action installs no handler; the set is initialised before it is used; unblocking
    // and raising a signal access no other memory.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set = MaybeUninit::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut());
        libc::raise(signal);
    }
    // Reached by the first process of a PID namespace, which signals do not end by default: exits with the
    // status that a shell would show for the signal.
    std::process::exit(128 + signal)
}

/// Formats and writes to standard output by [`print`](fn@print); returns its result.
#[macro_export]
macro_rules! out {
    ($($words:tt)*) => { $crate::print(&format!($($words)*)) };
}

/// As [`out`], with a newline at the end.
#[macro_export]
macro_rules! outln {
    ($($words:tt)*) => { $crate::print(&format!("{}\n", format_args!($($words)*))) };
}
