//! C and C++ programs under test: the libraries are installed as users have them, programs are compiled by
//! their `oshcc` or `mpicc` and started by their `pelago run`. The tests of MPI use this file as well.
//!
//! Invariant: whatever test asks first installs, once, under a lock that all test programs share; nothing is
//! built twice that has not changed. No wait is without bound, and each says what it waited for.

#![allow(dead_code, reason = "not every test program uses all of it")]

pub mod header;

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

/// The longest wait for the end of a program.
pub const LIMIT: Duration = Duration::from_secs(180);
/// The longest wait inside a program for another PE, in seconds, unless the environment says otherwise.
const WAIT_LIMIT_SECONDS: &str = "30";
/// The flags for C programs, which compile without a warning.
pub const C_FLAGS: [&str; 6] = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-g"];
/// The same for C++.
pub const CXX_FLAGS: [&str; 6] = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-O1", "-g"];

/// Settings of a job.
type Settings = &'static [(&'static str, &'static str)];

const MAPPED: Settings = &[];
const NET: Settings = &[("PELAGO_ROUTE", "net")];

/// Between two nodes over TCP.
const TCP: Settings = &[("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "tcp")];

/// The settings under which every program of a test should behave alike.
#[cfg(not(feature = "full"))]
pub const ROUTES: [Settings; 3] = [MAPPED, NET, TCP];
/// The same, over libfabric as well, between all PEs and between those of two nodes.
#[cfg(feature = "full")]
pub const ROUTES: [Settings; 5] = [
    MAPPED,
    NET,
    TCP,
    &[("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "ofi")],
    &[("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "ofi")],
];

/// Whether PEs reach each other over a network, some of them at least.
pub fn uses_network(variables: &[(&str, &str)]) -> bool {
    variables.iter().any(|(name, _)| ["PELAGO_FABRIC", "PELAGO_SIM_NODES"].contains(name))
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The command that was run, for messages.
    pub line: String,
    /// Its exit status.
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Fails unless it ended well and said nothing.
    #[track_caller]
    pub fn assert_silent(&self) {
        let said = (self.status, self.stdout.as_str(), self.stderr.as_str());
        assert_eq!(said, (0, "", ""), "{}", self.line);
    }

    /// Fails unless it ended well; gives what it wrote to standard output.
    #[track_caller]
    pub fn output(&self) -> &str {
        assert_eq!(self.status, 0, "{}: {}{}", self.line, self.stdout, self.stderr);
        &self.stdout
    }

    /// Fails unless it ended with this status and all these words on standard error.
    #[track_caller]
    pub fn assert_refused(&self, status: i32, words: &[&str]) {
        assert_eq!(self.status, status, "{}: {}{}", self.line, self.stdout, self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "{} does not say {word:?}: {}", self.line, self.stderr);
        }
    }
}

/// The prefix in which the library is installed.
pub fn installed() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let folder = folder();
        fs::create_dir_all(&folder).unwrap();
        let lock = File::create(folder.join("lock")).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        let prefix = folder.join("prefix");
        xtask(&["install", "--profile", "dev", "--prefix", prefix.to_str().unwrap()]);
        prefix
    })
}

/// The output of a command of `cargo xtask`, which is built where this test was.
pub fn xtask(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--package", "xtask", "--"]).args(arguments);
    command.current_dir(root()).env("CARGO_TARGET_DIR", folder().parent().unwrap());
    // Cargo has set these for this test; the programs that it builds now do not hang on them.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name == "DESTDIR") {
            command.env_remove(name);
        }
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo xtask {}: {said}", arguments.join(" "));
    String::from_utf8(output.stdout).unwrap()
}

/// The folder of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Where these tests keep what they build.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("shmem-test")
}

/// The program of a C file, `shmem/tests/c/<name>.c`, compiled with these flags besides the usual ones.
#[track_caller]
pub fn c_file(name: &str, flags: &[&str]) -> PathBuf {
    compiled("oshcc", &source(name, "c"), &[&C_FLAGS, flags].concat())
}

/// The program of a C++ file, `shmem/tests/c/<name>.cpp`.
#[track_caller]
pub fn cxx_file(name: &str, flags: &[&str]) -> PathBuf {
    compiled("oshc++", &source(name, "cpp"), &[&CXX_FLAGS, flags].concat())
}

/// The program of a text in C.
#[track_caller]
pub fn c_program(text: &str, flags: &[&str]) -> PathBuf {
    compiled("oshcc", &written(text, "c"), &[&C_FLAGS, flags].concat())
}

/// The program of a text in C++.
#[track_caller]
pub fn cxx_program(text: &str, flags: &[&str]) -> PathBuf {
    compiled("oshc++", &written(text, "cpp"), &[&CXX_FLAGS, flags].concat())
}

/// The program that `wrapper` makes of a file. It is made again only if one of its inputs has changed.
#[track_caller]
pub fn compiled(wrapper: &str, file: &Path, flags: &[&str]) -> PathBuf {
    let prefix = installed();
    let mut hasher = DefaultHasher::new();
    (wrapper, file, flags).hash(&mut hasher);
    let mut inputs = vec![file.to_owned(), prefix.join("bin").join(wrapper)];
    inputs.extend(["shmem.h", "pshmem.h", "shmemx.h", "mpi.h"].map(|name| prefix.join("include").join(name)));
    inputs.extend(headers());
    for input in inputs {
        fs::read(&input).unwrap().hash(&mut hasher);
    }
    if flags.iter().any(|flag| flag.contains("static")) {
        fs::metadata(prefix.join("lib/libpelago.a")).unwrap().modified().unwrap().hash(&mut hasher);
    }
    let programs = folder().join("programs");
    fs::create_dir_all(&programs).unwrap();
    let name = file.file_stem().unwrap().to_str().unwrap();
    let program = programs.join(format!("{name}-{:016x}", hasher.finish()));
    if program.exists() {
        return program;
    }
    let temporary = programs.join(format!("{:?}-{}.new", thread::current().id(), std::process::id()));
    let mut command = Command::new(prefix.join("bin").join(wrapper));
    command.args(flags).arg("-I").arg(c_folder()).arg(file).arg("-o").arg(&temporary);
    let ended = end_of(command);
    assert_eq!(ended.status, 0, "{}: {}{}", ended.line, ended.stdout, ended.stderr);
    fs::rename(&temporary, &program).unwrap();
    program
}

/// Runs a program on `n` PEs to its end, with variables in their environment.
#[track_caller]
pub fn run(program: &Path, n: usize, variables: &[(&str, &str)]) -> Ended {
    end_of(job(program, &[], n, variables))
}

/// As [`run`], with arguments for the program.
#[track_caller]
pub fn run_with(program: &Path, arguments: &[&str], n: usize, variables: &[(&str, &str)]) -> Ended {
    end_of(job(program, arguments, n, variables))
}

/// Runs each mistake of a program, named by its argument, on 2 PEs by each route; the job must end, and say
/// these words.
#[track_caller]
pub fn assert_mistakes(program: &Path, mistakes: &[(&str, &[&str])]) {
    for (which, words) in mistakes {
        for variables in ROUTES {
            run_with(program, &[which], 2, variables).assert_refused(1, words);
        }
    }
}

/// Runs a program on 1, 2, 3 and 4 PEs by each route; it must end well and say nothing.
#[track_caller]
pub fn run_everywhere(program: &Path) {
    for variables in ROUTES {
        for n in 1..=4 {
            run(program, n, variables).assert_silent();
        }
    }
}

/// The command that starts a job.
pub fn job(program: &Path, arguments: &[&str], n: usize, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(installed().join("bin/pelago"));
    command.args(["run", "-n", &n.to_string()]).arg(program).args(arguments);
    command.envs(variables.iter().copied());
    command
}

/// Runs a command to its end.
#[track_caller]
pub fn end_of(mut command: Command) -> Ended {
    if std::env::var_os("PELAGO_WAIT_LIMIT").is_none()
        && !command.get_envs().any(|(name, _)| name == "PELAGO_WAIT_LIMIT")
    {
        command.env("PELAGO_WAIT_LIMIT", WAIT_LIMIT_SECONDS);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let line = line_of(&command);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{line}: {error}"));
    let (stdout, stderr) = (read(child.stdout.take().unwrap()), read(child.stderr.take().unwrap()));
    let pid = Pid::from_child(&child);
    let end = watch(child);
    let status = end.recv_timeout(LIMIT).unwrap_or_else(|error| {
        assert_eq!(error, RecvTimeoutError::Timeout);
        let _ = kill_process(pid, Signal::KILL);
        let said = [stdout.recv_timeout(LIMIT), stderr.recv_timeout(LIMIT)].map(Result::unwrap_or_default);
        panic!("waited {LIMIT:?} for the end of {line}; it said: {}{}", said[0], said[1])
    });
    let text = |stream: &Receiver<String>| {
        let end = stream.recv_timeout(LIMIT);
        end.unwrap_or_else(|_| panic!("waited {LIMIT:?} for the output of {line} to end"))
    };
    Ended { status, stdout: text(&stdout), stderr: text(&stderr), line }
}

/// A command as one would type it, with the variables that it sets.
fn line_of(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), value?.to_string_lossy())));
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    variables.chain(words.map(|word| word.to_string_lossy().into_owned())).collect::<Vec<_>>().join(" ")
}

/// The exit status of a child, once it has ended: 128 and the number of its signal, if one killed it.
fn watch(mut child: Child) -> Receiver<i32> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let status = child.wait().expect("the child is ours");
        let signal = std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0);
        let _ = sender.send(status.code().unwrap_or(128 + signal));
    });
    receiver
}

/// All that comes from a stream, once it has ended.
fn read(mut stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// The folder of the C programs of this package's tests.
pub fn c_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c")
}

fn source(name: &str, extension: &str) -> PathBuf {
    c_folder().join(name).with_extension(extension)
}

/// The headers that programs of the folder `c` include.
fn headers() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(c_folder()) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut headers: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "h")).collect();
    headers.sort();
    headers
}

/// A file with this text, whose name says its contents.
pub fn written(text: &str, extension: &str) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let sources = folder().join("sources");
    fs::create_dir_all(&sources).unwrap();
    let path = sources.join(format!("{:016x}.{extension}", hasher.finish()));
    if !fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
        let temporary = sources.join(format!("{:?}-{}.new", thread::current().id(), std::process::id()));
        fs::write(&temporary, text).unwrap();
        fs::rename(&temporary, &path).unwrap();
    }
    path
}
