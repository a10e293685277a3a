//! The running jobs of a user on a machine: each launcher has a record of its job in one folder, and a socket
//! next to it at which it answers questions.
//!
//! ```text
//! /tmp/pelago-UID/JOB.job     the record: what was started, by whom, and when
//! /tmp/pelago-UID/JOB.socket  one question a connection: `state` or `pes`
//! ```
//! Invariant: a question does not touch the memory of a PE, and takes the launcher no longer than a stall
//! report. A socket that refuses connections belongs to a launcher that has died: the kernel knows that, and
//! process ids that are used again do not matter. Nobody but the user can open the folder (decision 0058).

mod folder;
mod record;
mod reply;

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use self::folder::about;
pub(crate) use self::folder::{Files, folder};
pub(crate) use self::record::Part;
pub use self::record::{JobRecord, LeftProcess};
pub use self::reply::{JobState, PeRow, PeState};
pub(crate) use self::reply::{PES, STATE};
use crate::env::{SettingError, Settings};

/// The jobs of this user that have a record on this machine, the oldest first.
///
/// # Errors
/// If a setting is not valid, or if the folder cannot be used (`io::Error`); without a folder there are no
/// jobs.
pub fn jobs() -> Result<Vec<JobRecord>, JobsError> {
    let path = Settings::from_env()?.jobs_folder;
    let Some(folder) = folder(path.as_deref(), false)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(|error| about(&folder, &error))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "job")
            // A job may end while its record is read.
            && let Ok(text) = std::fs::read_to_string(&path)
            && let Some(record) = JobRecord::parse(&path, &text)
        {
            found.push(record);
        }
    }
    found.sort_by(|a, b| (a.started, &a.id).cmp(&(b.started, &b.id)));
    Ok(found)
}

/// Why the jobs cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum JobsError {
    /// A setting is not valid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The folder of the jobs cannot be used.
    #[error(transparent)]
    Folder(#[from] io::Error),
}

impl JobRecord {
    /// The state of the job, by its launcher; waits for the launcher at most for `limit`.
    pub fn state(&self, limit: Duration) -> JobState {
        match self.ask(STATE, limit) {
            // The connection closes without an answer at the end of a job.
            Ok(text) => text.lines().find_map(JobState::of_line).unwrap_or(JobState::Ended),
            Err(error) => JobState::without_answer(&error),
        }
    }

    /// The activity of each PE, by the launcher, which asks those PEs that wait; it takes up to two seconds
    /// if others compute. Waits for the launcher at most for `limit`.
    ///
    /// # Errors
    /// The state of the job, if its launcher does not answer or the job has ended.
    pub fn pes(&self, limit: Duration) -> Result<Vec<PeRow>, JobState> {
        let text = self.ask(PES, limit).map_err(|error| JobState::without_answer(&error))?;
        let rows: Vec<_> = text.lines().filter_map(PeRow::parse).collect();
        if rows.is_empty() { Err(JobState::Ended) } else { Ok(rows) }
    }

    /// Removes the record and the socket of a launcher that has died.
    pub fn forget(&self) {
        // Another command may have removed them.
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(self.socket());
    }

    fn socket(&self) -> PathBuf {
        self.path.with_extension("socket")
    }

    fn ask(&self, question: &str, limit: Duration) -> io::Result<String> {
        ask(&self.socket(), question, limit)
    }
}

/// Sends a question to a launcher and reads the whole answer.
fn ask(socket: &Path, question: &str, limit: Duration) -> io::Result<String> {
    let deadline = Instant::now() + limit;
    let mut stream = UnixStream::connect(socket)?;
    stream.set_write_timeout(Some(limit))?;
    stream.write_all(format!("{question}\n").as_bytes())?;
    let (mut answer, mut bytes) = (Vec::new(), [0_u8; 4096]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(String::from_utf8_lossy(&answer).into_owned()),
            Ok(count) => answer.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The time since `then`; zero if the clock was set back.
pub(crate) fn age(then: SystemTime) -> Duration {
    SystemTime::now().duration_since(then).unwrap_or_default()
}
