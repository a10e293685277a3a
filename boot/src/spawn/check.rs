//! Checks before a start: can the program be run, and can the machine take so many PEs.

use std::env;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{JobSpec, LaunchError};

/// More PEs than this on one machine are taken for a slip of the finger.
const PES_MAX: usize = 4096;
/// Descriptors that the launcher needs besides those of the PEs.
const FDS_BESIDES: u64 = 64;

/// Finds the file that runs: `program` itself if it has a slash, else the first match in `PATH`.
///
/// # Errors
/// [`LaunchError::NotFound`] and [`LaunchError::NotRunnable`].
pub fn resolve(program: &Path) -> Result<PathBuf, LaunchError> {
    if program.as_os_str().as_bytes().contains(&b'/') {
        return runnable(program).map(|()| program.to_owned());
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let mut found = LaunchError::NotFound { program: program.to_owned(), searched: true };
    if program.as_os_str().is_empty() {
        return Err(found);
    }
    for candidate in env::split_paths(&folders).map(|folder| folder.join(program)) {
        match runnable(&candidate) {
            Ok(()) => return Ok(candidate),
            // A later folder may hold one that runs; if none does, this says more than "not found".
            Err(error @ LaunchError::NotRunnable { .. }) if !candidate.is_dir() => found = error,
            Err(_) => {}
        }
    }
    Err(found)
}

fn runnable(program: &Path) -> Result<(), LaunchError> {
    let refuse = |why| Err(LaunchError::NotRunnable { program: program.to_owned(), why });
    match program.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            refuse("a folder on the way to it may not be entered")
        }
        Err(_) => Err(LaunchError::NotFound { program: program.to_owned(), searched: false }),
        Ok(data) if data.is_dir() => refuse("it is a directory"),
        Ok(data) if !data.is_file() => refuse("it is not a regular file"),
        Ok(_) if access(program, Access::EXEC_OK).is_err() => {
            refuse("it is not executable (chmod +x makes it so)")
        }
        Ok(_) => Ok(()),
    }
}

/// Refuses a number of PEs that cannot work, and makes room for their descriptors.
pub(super) fn limits(spec: &JobSpec, pes_per_process: usize) -> Result<(), LaunchError> {
    let n = spec.n;
    let too_many = |why| Err(LaunchError::TooManyPes { n, why });
    if n == 0 {
        return Err(LaunchError::NoPes);
    }
    if n > PES_MAX {
        return too_many(format!("the most is {PES_MAX}"));
    }
    if !n.is_multiple_of(pes_per_process) {
        return Err(LaunchError::Uneven { n, each: pes_per_process });
    }
    if let (Some(limit), false) = (getrlimit(Resource::Nproc).current, rustix::process::geteuid().is_root())
        && n as u64 > limit
    {
        return too_many(format!("you may have {limit} processes (ulimit -u)"));
    }
    // A socket and a handle for each process, and two pipes where output passes through the launcher.
    let each = if spec.capture || spec.tag_output { 4 } else { 2 };
    let wanted = (n / pes_per_process) as u64 * each + FDS_BESIDES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|limit| limit >= wanted) {
        return Ok(());
    }
    if maximum.is_some_and(|limit| limit < wanted) {
        let limit = maximum.unwrap_or(0);
        return too_many(format!("{wanted} open files are needed and {limit} allowed (ulimit -Hn)"));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
        .map_err(LaunchError::system("raising the limit of open files"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_run() {
        assert_eq!(resolve(Path::new("/bin/sh")).unwrap(), Path::new("/bin/sh"));
        let found = resolve(Path::new("sh")).unwrap();
        assert!(found.is_absolute() && found.ends_with("sh"), "{found:?}");
    }

    #[test]
    fn programs_that_do_not_run() {
        let text = |program: &str| resolve(Path::new(program)).unwrap_err().to_string();
        assert_eq!(text("/no/such/program"), "/no/such/program was not found");
        assert_eq!(text("no-such-program"), "no-such-program was not found in PATH");
        assert_eq!(text(""), " was not found in PATH");
        assert_eq!(text("/"), "/ cannot be run: it is a directory");
        assert_eq!(text("/dev/null"), "/dev/null cannot be run: it is not a regular file");
        assert!(text("/proc/self/maps").contains("not executable"), "{}", text("/proc/self/maps"));
    }

    #[test]
    fn numbers_of_pes() {
        let check = |n| limits(&JobSpec::new(n, "/bin/true"), 1);
        assert!(matches!(check(0), Err(LaunchError::NoPes)));
        assert!(matches!(check(4097), Err(LaunchError::TooManyPes { n: 4097, .. })));
        assert!(matches!(check(usize::MAX), Err(LaunchError::TooManyPes { .. })));
        check(1).unwrap();
        let check = |n, each| limits(&JobSpec::new(n, "/bin/true"), each);
        for (n, each) in [(1, 2), (5, 2), (7, 4), (2, 4096)] {
            let found = check(n, each);
            assert!(matches!(found, Err(LaunchError::Uneven { .. })), "{n}, {each}: {found:?}");
        }
        check(6, 3).unwrap();
    }
}
