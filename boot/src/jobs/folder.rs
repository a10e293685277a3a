//! The folder of the jobs of a user, and the files of one job in it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The number of names that are tried for a job.
const NAMES_MAX: u32 = 1000;

/// The folder of the jobs of this user: the given one, or one in `/tmp`. If it `is_wanted`, it is created;
/// else `None` if there is none. It must be a directory of this user that others cannot enter; root may read
/// that of another user.
///
/// # Errors
/// If it cannot be created, or is not such a directory.
pub(crate) fn folder(given: Option<&str>, is_wanted: bool) -> io::Result<Option<PathBuf>> {
    let path = given.map_or_else(default_folder, PathBuf::from);
    if is_wanted
        && let Err(error) = DirBuilder::new().mode(0o700).recursive(given.is_some()).create(&path)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    match check(&path, is_wanted) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        checked => checked.map(|()| Some(path)),
    }
}

/// Refuses what is not a directory that this user alone can enter.
fn check(path: &Path, is_wanted: bool) -> io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    let found = fs::symlink_metadata(path).map_err(|error| about(path, &error))?;
    let is_allowed = found.uid() == user || user == 0 && !is_wanted;
    if !found.is_dir() || !is_allowed || found.mode() & 0o077 != 0 {
        let text = format!(
            "{} is not a directory that only this user can open; remove it, or make it so by chmod 700, or \
             name another one by PELAGO_JOBS_FOLDER",
            path.display()
        );
        return Err(io::Error::other(text));
    }
    Ok(())
}

/// An error with the path that it is about.
pub(crate) fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The folder that is used unless another one is set.
fn default_folder() -> PathBuf {
    PathBuf::from(format!("/tmp/pelago-{}", rustix::process::geteuid().as_raw()))
}

/// The files of a job. Dropping removes them, and the default folder if it is empty then.
#[derive(Debug)]
pub(crate) struct Files {
    record: PathBuf,
    pub(crate) listener: UnixListener,
}

impl Files {
    /// Takes a name that no other job has, and listens there. The name is the process id of the launcher; a
    /// further job of the same process, or a process of the same number in another container, gets a suffix.
    ///
    /// # Errors
    /// If no socket can be created.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        static NEXT: Mutex<u32> = Mutex::new(0);
        let pid = std::process::id();
        for _ in 0..NAMES_MAX {
            let number = {
                let mut next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
                *next += 1;
                *next - 1
            };
            let id = if number == 0 { pid.to_string() } else { format!("{pid}.{number}") };
            let record = folder.join(format!("{id}.job"));
            let socket = record.with_extension("socket");
            // A socket without a listener was left by a launcher that has died.
            if socket.exists() && UnixStream::connect(&socket).is_err() {
                let _ = fs::remove_file(&socket);
            }
            match UnixListener::bind(&socket) {
                Ok(listener) => {
                    // Since the first check another launcher may have removed the empty folder, and another
                    // user have made one of this name. A folder with the socket in it stays.
                    check(folder, true).inspect_err(|_| drop(fs::remove_file(&socket)))?;
                    listener.set_nonblocking(true)?;
                    return Ok(Self { record, listener });
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                // Another launcher has removed the empty folder.
                Err(error) if error.kind() == io::ErrorKind::NotFound && folder == default_folder() => {
                    self::folder(None, true)?;
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    /// Writes the record, or another one in its place; a reader finds the old one or the new one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        let partial = self.record.with_extension("partial");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let mut file = options.open(&partial)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&partial, &self.record)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // The record first: a record without a socket would be that of a launcher that has died.
        let _ = fs::remove_file(&self.record);
        let _ = fs::remove_file(self.record.with_extension("socket"));
        let default = default_folder();
        if self.record.parent() == Some(&default) {
            // It stays if it has files of other jobs.
            let _ = fs::remove_dir(default);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_that_has_changed_since_the_check_gets_no_record() {
        let path = std::env::temp_dir().join(format!("pelago-jobs-of-all-{}", std::process::id()));
        let open_to = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        open_to(0o777);
        let text = Files::create(&path).unwrap_err().to_string();
        let left = fs::read_dir(&path).unwrap().count();
        open_to(0o700);
        let files = Files::create(&path).unwrap();
        let victim = path.join("victim");
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, files.record.with_extension("partial")).unwrap();
        let written = files.write("a record");
        let kept = fs::read_to_string(&victim).unwrap();
        fs::remove_dir_all(&path).unwrap();
        assert!(text.contains("only this user can open"), "{text}");
        assert!(left == 0 && written.is_err() && kept == "precious", "{left} {written:?} {kept}");
    }

    #[test]
    fn root_reads_the_folder_of_another_user_and_does_not_use_it() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let path = std::env::temp_dir().join(format!("pelago-jobs-of-another-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(4711), None).unwrap();
        let given = path.to_str();
        let (read, used) = (folder(given, false), folder(given, true));
        fs::remove_dir(&path).unwrap();
        assert_eq!(read.unwrap(), Some(path));
        assert!(used.unwrap_err().to_string().contains("only this user can open"));
    }
}
