//! The C programs of `mpi/tests/c`: each is compiled by the installed `mpicc` and runs in several kinds of
//! jobs.
//!
//! Invariant: a program checks itself: it ends with status 0, or it says what is wrong. Every program of
//! the folder is a test of each kind of job. It works with 1 to 8 PEs, unless a comment in it such as `/*
//! PEs: 4 */` or `/* PEs: 2 4 */` says otherwise. Files that other files include have no `main` and end in
//! `.h`.

#[path = "../../shmem/tests/library/common/mod.rs"]
mod common;

use common::{C_FLAGS, CXX_FLAGS, c_folder, compiled, run};
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock};

/// A kind of job: its name, its settings, and the numbers of PEs of programs that name none.
struct Kind {
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
    pes: &'static [usize],
}

const KINDS: [Kind; 3] = [
    Kind { name: "node", settings: &[], pes: &[1, 2, 3, 8] },
    Kind {
        name: "two_nodes",
        settings: &[("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "tcp")],
        pes: &[2, 5],
    },
    Kind { name: "tcp", settings: &[("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "tcp")], pes: &[1, 4] },
];

/// Callbacks of the standard have parameters that a program does not need; and gcc takes places that only
/// the library fills for variables that nobody sets.
const QUIET: [&str; 3] = ["-Wno-unused-parameter", "-Wno-stringop-overread", "-Wno-maybe-uninitialized"];

/// Programs are compiled once, by the first test that needs them.
type Programs = Mutex<HashMap<PathBuf, Arc<OnceLock<PathBuf>>>>;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    if arguments.test_threads.is_none() {
        // Each test is a job of several processes.
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        arguments.test_threads = Some(threads.clamp(2, 8));
    }
    let programs: Arc<Programs> = Arc::default();
    let mut trials = Vec::new();
    for source in sources() {
        for kind in &KINDS {
            let name = source.file_stem().unwrap_or_default().to_string_lossy();
            let (source, programs) = (source.clone(), Arc::clone(&programs));
            let trial = move || check(&source, kind, &programs);
            trials.push(Trial::test(format!("{name}::{}", kind.name), trial));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The programs, by name.
fn sources() -> Vec<PathBuf> {
    let files = fs::read_dir(c_folder()).expect("the folder of the programs");
    let mut files: Vec<_> = files.map(|entry| entry.expect("a file of the folder").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "c" || extension == "cpp"));
    files.sort();
    assert!(!files.is_empty(), "there is no program in {}", c_folder().display());
    files
}

/// Runs a program in jobs of a kind.
fn check(source: &Path, kind: &Kind, programs: &Programs) -> Result<(), Failed> {
    let program = program(source, programs);
    let text = fs::read_to_string(source)?;
    let pes = numbers_of_pes(&text)?.unwrap_or_else(|| kind.pes.to_vec());
    for n in pes {
        let ended = run(&program, n, kind.settings);
        if ended.status != 0 {
            let said = format!("{}{}", ended.stdout, ended.stderr);
            return Err(format!("{}: status {}\n{said}", ended.line, ended.status).into());
        }
    }
    Ok(())
}

/// The program of a source.
fn program(source: &Path, programs: &Programs) -> PathBuf {
    let place = Arc::clone(common_lock(programs).entry(source.to_owned()).or_default());
    let compile = || match source.extension().is_some_and(|extension| extension == "cpp") {
        true => compiled("mpicxx", source, &[&CXX_FLAGS[..], &["-pthread", "-lm"]].concat()),
        false => {
            let flags: Vec<_> =
                C_FLAGS.iter().map(|&flag| if flag == "-std=c11" { "-std=gnu11" } else { flag }).collect();
            compiled("mpicc", source, &[&flags[..], &QUIET, &["-pthread", "-lm"]].concat())
        }
    };
    place.get_or_init(compile).clone()
}

fn common_lock(programs: &Programs) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Arc<OnceLock<PathBuf>>>> {
    programs.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The numbers of PEs that a program names.
fn numbers_of_pes(text: &str) -> Result<Option<Vec<usize>>, Failed> {
    let Some((_, rest)) = text.split_once("/* PEs:") else { return Ok(None) };
    let numbers = rest.split("*/").next().unwrap_or_default();
    let numbers: Result<Vec<usize>, _> = numbers.split_whitespace().map(str::parse).collect();
    match numbers {
        Ok(numbers) if !numbers.is_empty() => Ok(Some(numbers)),
        _ => Err("the comment `/* PEs: ... */` has no numbers of PEs, such as `/* PEs: 2 4 */`".into()),
    }
}
