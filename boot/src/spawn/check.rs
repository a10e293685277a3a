//! Checks before a start: whether the program can be run, and whether the machine supports this number of
//! PEs.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{InputTo, JobSpec, LaunchError};

/// More PEs than this on one machine are refused as a typing error.
const PES_MAX: usize = 4096;
/// The number of descriptors that the launcher needs besides those of the PEs: 3 streams, 6 of the
/// supervising loop, 9 that are open while a process starts, and 6 for files of `/proc` and for commands that
/// ask.
const FDS_BESIDES: u64 = 24;
/// The number of further descriptors that it gets where the hard limit permits, for commands that ask about
/// the job, and for descriptors that it has inherited.
const FDS_SPARE: u64 = 40;

/// Finds the executable file: `program` itself if it has a slash, else the first match in `PATH`.
///
/// # Errors
/// [`LaunchError::NotFound`] and [`LaunchError::NotRunnable`].
pub fn resolve(program: &Path) -> Result<PathBuf, LaunchError> {
    resolve_in(program, &env::var_os("PATH").unwrap_or_default())
}

/// As [`resolve`], with another `PATH`.
pub(super) fn resolve_in(program: &Path, folders: &OsStr) -> Result<PathBuf, LaunchError> {
    if program.as_os_str().as_bytes().contains(&b'/') {
        return runnable(program).map(|()| program.to_owned());
    }
    let mut found = LaunchError::NotFound { program: program.to_owned(), searched: true };
    if program.as_os_str().is_empty() {
        return Err(found);
    }
    for candidate in env::split_paths(folders).map(|folder| folder.join(program)) {
        match runnable(&candidate) {
            Ok(()) => return Ok(candidate),
            // A later folder may contain an executable file; if none does, this error says more than "not
            // found".
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
        Ok(data) if access(program, Access::EXEC_OK).is_err() => {
            let flags = statvfs(program).map(|system| system.f_flag);
            let is_noexec = flags.is_ok_and(|flags| flags.contains(StatVfsMountFlags::NOEXEC));
            refuse(obstacle(data.mode(), is_noexec))
        }
        Ok(_) => Ok(()),
    }
}

/// Why a file of this mode may not be executed.
fn obstacle(mode: u32, is_noexec: bool) -> &'static str {
    match (mode & 0o111, is_noexec) {
        (0, _) => "it is not executable (chmod +x makes it so)",
        (_, true) => "its file system is mounted with noexec; move it to another one",
        (_, false) => "it is not executable for this user (chmod +x makes it so)",
    }
}

/// Refuses a number of PEs that exceeds a limit, and raises the limit of descriptors if needed.
pub(super) fn limits(spec: &JobSpec, pes_per_process: usize) -> Result<(), LaunchError> {
    let numbers = || std::iter::once(spec.n).chain(spec.then.iter().map(|program| program.n));
    if numbers().any(|n| n == 0) {
        return Err(LaunchError::NoPes);
    }
    let n = numbers().fold(0_usize, usize::saturating_add);
    let (hosts, is_here) = (spec.machines.as_ref().map_or(0, |it| it.hosts.len()), spec.machines.is_none());
    let too_many = |why| Err(LaunchError::TooManyPes { n, why });
    let most = if is_here { PES_MAX } else { PES_MAX.saturating_mul(hosts) };
    if n > most {
        return too_many(format!("the most is {most}"));
    }
    if let Some(n) = numbers().find(|n| !n.is_multiple_of(pes_per_process)) {
        return Err(LaunchError::Uneven { n, each: pes_per_process });
    }
    if let (Some(limit), false) = (getrlimit(Resource::Nproc).current, rustix::process::geteuid().is_root())
        && is_here
        && n as u64 > limit
    {
        return too_many(format!("you may have {limit} processes (ulimit -u)"));
    }
    let has_pipes = spec.capture || spec.tag_output || spec.input == InputTo::All;
    let processes = n / pes_per_process;
    let wanted = if is_here { descriptors(processes, has_pipes) } else { descriptors(hosts, true) };
    // Files of the output that comes from other hosts, and pipes of the input.
    let files = if is_here || spec.output_folder.is_none() { 0 } else { 2 * processes as u64 };
    let inputs = if is_here && spec.input == InputTo::All { processes as u64 } else { 0 };
    let wanted = wanted + files + inputs;
    make_room(wanted).map_err(|error| match error {
        NoRoom::Limit(limit) => LaunchError::TooManyPes {
            n,
            why: format!("{wanted} open files are needed and {limit} allowed (ulimit -Hn)"),
        },
        NoRoom::Refused(reason) => LaunchError::System { what: "raising the limit of open files", reason },
    })
}

/// The descriptors for a number of processes: a socket and a handle for each, and pipes for forwarded output.
pub(super) fn descriptors(processes: usize, has_pipes: bool) -> u64 {
    processes as u64 * if has_pipes { 4 } else { 2 } + FDS_BESIDES
}

/// Why there is no room for descriptors.
pub(super) enum NoRoom {
    /// The hard limit is lower than the number needed.
    Limit(u64),
    /// The system has refused to raise the limit.
    Refused(std::io::Error),
}

/// Raises the limit of open files of this process to this number, as far as the system permits it.
pub fn raise_open_files(wanted: u64) {
    // Without room, the file that cannot be opened says so.
    let _ = make_room(wanted);
}

/// Raises the limit of open descriptors to this number, and to some more if the hard limit permits.
pub(super) fn make_room(wanted: u64) -> Result<(), NoRoom> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if let Some(limit) = maximum.filter(|limit| *limit < wanted) {
        return Err(NoRoom::Limit(limit));
    }
    let ample = maximum.unwrap_or(u64::MAX).min(wanted + FDS_SPARE);
    if current.is_none_or(|limit| limit >= ample) {
        return Ok(());
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(ample), maximum }) {
        Err(error) if current.is_some_and(|limit| limit < wanted) => Err(NoRoom::Refused(error.into())),
        _ => Ok(()),
    }
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
    fn a_file_system_without_programs_is_told_from_a_mode() {
        assert!(obstacle(0o644, true).contains("chmod +x"));
        assert!(obstacle(0o755, true).contains("mounted with noexec"));
        assert!(obstacle(0o750, false).contains("for this user"));
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
