//! A thread that makes the calls of the library, so that the caller can stop waiting for one.
//!
//! Invariant: the thread makes one call at a time, in the order of the requests. A call that exceeds the
//! limit continues in the thread; later calls queue behind it, and each fails after its own limit.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use super::client::PmixError;
use super::library::Library;

type Task = Box<dyn FnOnce(&Library) + Send>;

/// The queue of the thread's tasks; the thread ends when this is dropped and its task is done.
#[derive(Debug)]
pub(super) struct Worker {
    tasks: Sender<Task>,
    limit: Duration,
    grace: Duration,
}

impl Worker {
    /// Starts the thread. No call may take longer than `limit` plus `grace`, in which the server may report
    /// the time-out itself.
    pub(super) fn start(library: Library, limit: Duration, grace: Duration) -> Result<Self, PmixError> {
        let (tasks, queue): (_, Receiver<Task>) = channel();
        let run = move || queue.iter().for_each(|task| task(&library));
        thread::Builder::new().name("pelago-pmix".to_owned()).spawn(run).map_err(PmixError::Thread)?;
        Ok(Self { tasks, limit, grace })
    }

    /// Makes a call in the thread; returns its result, or fails after the limit.
    pub(super) fn call<R: Send + 'static>(
        &self,
        awaited: &'static str,
        call: impl FnOnce(&Library) -> Result<R, PmixError> + Send + 'static,
    ) -> Result<R, PmixError> {
        let (result, results) = sync_channel(1);
        // If the limit has passed, the receiver is gone and the result is dropped.
        let task: Task = Box::new(move |library| drop(result.send(call(library))));
        self.tasks.send(task).map_err(|_| PmixError::Dead(awaited))?;
        match results.recv_timeout(self.limit + self.grace) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => Err(PmixError::Timeout { awaited, limit: self.limit }),
            Err(RecvTimeoutError::Disconnected) => Err(PmixError::Dead(awaited)),
        }
    }
}
