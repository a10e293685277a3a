//! shmem4py, the Python package for OpenSHMEM: built by the installed `oshcc` as its users build it, and
//! tested by its own tests. Python loads the library when the package is imported.
//!
//! Invariant: the package is built once, and again only if what it is compiled from has changed; it is linked
//! with the shared library, so what is tested is always the library as it is. Needs Python 3.9 to 3.12 with
//! its headers and `venv`, and PyPI.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::{Ended, ROUTES, end_of, folder, installed};
use rustix::fs::{FlockOperation, flock};

/// The package, and what it is built with and runs with. It was written for the first version of NumPy.
const SHMEM4PY: &str = "shmem4py==1.0.0";
const NEEDS: [&str; 4] = ["cffi==1.17.1", "numpy==1.26.4", "pycparser==2.22", "setuptools==75.6.0"];

/// As many tests has its version 1.0.0; each PE runs all of them, and none is skipped here.
const TESTS: usize = 110;

/// Variables of a user that could lead the build astray, or do what the header should do.
const UNSET: [&str; 8] =
    ["CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LD_LIBRARY_PATH", "OSHCC_CC", "OSHLD", "PYTHONPATH"];

/// Where the package is built, and the folder of its source.
struct Place {
    python: PathBuf,
    source: PathBuf,
}

/// The package, built for the installed library.
fn built() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        installed();
        let home = folder().join("shmem4py");
        let lock = File::create(folder().join("shmem4py.lock")).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        let place =
            Place { python: home.join("venv/bin/python"), source: home.join(SHMEM4PY.replace("==", "-")) };
        let (inputs, mark) = (inputs().to_string(), home.join("built-of"));
        if !fs::read_to_string(&mark).is_ok_and(|before| before == inputs) {
            let _ = fs::remove_dir_all(&home);
            fs::create_dir_all(&home).unwrap();
            build(&home, &place);
            fs::write(mark, inputs).unwrap();
        }
        place
    })
}

/// A number that changes when what the package is built from does.
fn inputs() -> u64 {
    let mut hasher = DefaultHasher::new();
    (SHMEM4PY, NEEDS).hash(&mut hasher);
    for file in ["bin/oshcc", "include/shmem.h"] {
        fs::read(installed().join(file)).unwrap().hash(&mut hasher);
    }
    hasher.finish()
}

fn build(home: &Path, place: &Place) {
    let succeed = |program: &Path, words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).current_dir(home).env("OSHCC", installed().join("bin/oshcc"));
        for name in UNSET {
            command.env_remove(name);
        }
        end_of(command).output();
    };
    let pip = |words: &[&str]| {
        succeed(&place.python, &[&["-m", "pip", "--quiet", "--disable-pip-version-check"], words].concat());
    };
    succeed(Path::new("python3"), &["-m", "venv", "venv"]);
    pip(&[&["install", "--only-binary", ":all:"], NEEDS.as_slice()].concat());
    // Whatever a cache holds was built with some other library.
    let alone = ["--no-cache-dir", "--no-deps", "--no-build-isolation"];
    pip(&[&["download"], alone.as_slice(), &["--no-binary", "shmem4py", SHMEM4PY]].concat());
    let archive = place.source.with_extension("0.tar.gz");
    succeed(Path::new("tar"), &["-xzf", archive.to_str().unwrap()]);
    pip(&[&["install"], alone.as_slice(), &[place.source.to_str().unwrap()]].concat());
}

/// Python on `n` PEs, in the folder of the package's tests.
fn python(n: usize, words: &[&str], variables: &[(&str, &str)]) -> Ended {
    let place = built();
    let mut command = Command::new(installed().join("bin/pelago"));
    command.args(["run", "--tag-output", "-n", &n.to_string()]).arg(&place.python).args(words);
    command.current_dir(place.source.join("test")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env_remove("PYTHONPATH").envs(variables.iter().copied());
    end_of(command)
}

#[test]
fn it_is_our_library_that_python_loads() {
    let text = "from shmem4py import shmem; print(shmem.info_get_name(), shmem.info_get_version())";
    let ended = python(2, &["-c", text], &[]);
    let mut lines: Vec<_> = ended.output().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] Pelago (1, 6)", "[1] Pelago (1, 6)"]);
}

#[test]
fn the_example_prints_what_it_says() {
    let file = crate::common::root().join("shmem/examples/ring.py");
    let head = crate::examples::head(&file, "#");
    let mut command = Command::new(installed().join("bin/pelago"));
    command.args(["run", "-n", &head.pes.to_string()]).arg(&built().python).arg(&file);
    command.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("PYTHONPATH");
    assert_eq!(end_of(command).output(), head.output);
}

/// Tests of pointers: a file of which each PE waits for its neighbours only if they are mapped, which is no
/// program for PEs of which some are.
const OF_POINTERS: (&str, usize) = ("test_ptr", 2);

/// Its files of tests.
fn files() -> Vec<String> {
    let entries = fs::read_dir(built().source.join("test")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter_map(|name| Some(name.strip_suffix(".py")?.to_owned()))
        .filter(|name| name.starts_with("test_"))
        .collect()
}

/// All of its tests that are for such PEs pass on each of them, and none is skipped.
#[track_caller]
fn passes(n: usize, variables: &[(&str, &str)]) {
    let are_some_mapped = n > 2 && variables.iter().any(|(name, _)| *name == "PELAGO_SIM_NODES");
    let (of_pointers, count) = OF_POINTERS;
    let left_out = if are_some_mapped { count } else { 0 };
    let mut files = files();
    files.retain(|file| !are_some_mapped || file != of_pointers);
    let words: Vec<_> =
        ["-m", "unittest", "--verbose"].into_iter().chain(files.iter().map(|file| &**file)).collect();
    let ended = python(n, &words, variables);
    ended.output();
    for pe in 0..n {
        let tag = format!("[{pe}] ");
        let said: Vec<_> = ended.stderr.lines().filter_map(|line| line.strip_prefix(&tag)).collect();
        let run = said.iter().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next()?.parse().ok());
        assert!(
            run.is_some_and(|run: usize| run + left_out >= TESTS),
            "PE {pe} of {}: {run:?} tests",
            ended.line
        );
        // With tests that were skipped it is "OK (skipped=1)".
        assert_eq!(said.last(), Some(&"OK"), "PE {pe} of {}: {}", ended.line, ended.stderr);
    }
}

#[test]
fn its_tests_pass() {
    for variables in ROUTES {
        for n in [1, 2, 4] {
            passes(n, variables);
        }
    }
}

#[test]
fn its_tests_pass_with_checks() {
    passes(2, &[("PELAGO_CHECK", "on")]);
}
