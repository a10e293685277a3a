//! The runtime over a libfabric of version 2: the library that is part of the Python package mpich (full
//! tier).

use pelago::prelude::*;
use pelago::{Collective, ReduceOp, SignalOp, try_processes};
use pelago_fabric::ofi::Library;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The package, which has libfabric 2.
const PACKAGE: &str = "mpich==5.0.2";
const LIBRARY: &str = "mpich-5.0.2.data/data/lib/mpich/libfabric.so.1";

/// The path of the library, which is fetched by the first test that needs it.
fn library() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        // Other test programs may fetch it at the same time.
        let lock = File::create(folder.join("newer-libfabric.lock")).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        let path = folder.join("newer-libfabric").join(LIBRARY);
        if !path.is_file() {
            fetch(&folder.join("newer-libfabric"));
        }
        path.into_os_string().into_string().expect("the path of the target folder is UTF-8")
    })
}

fn fetch(home: &Path) {
    let _ = fs::remove_dir_all(home);
    fs::create_dir_all(home).unwrap();
    let python = home.join("venv/bin/python");
    succeed(home, Path::new("python3"), &["-m", "venv", "venv"]);
    let download = ["-m", "pip", "--quiet", "download", "--no-deps", "--only-binary", ":all:", PACKAGE];
    succeed(home, &python, &download);
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "whl");
    let wheel = fs::read_dir(home).unwrap().map(|entry| entry.unwrap().path()).find(is_wheel);
    let wheel = wheel.expect("pip has fetched a wheel");
    succeed(home, &python, &["-m", "zipfile", "-e", wheel.to_str().unwrap(), "."]);
}

fn succeed(folder: &Path, program: &Path, words: &[&str]) {
    let output = Command::new(program).args(words).current_dir(folder).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {words:?}: {errors}", program.display());
}

/// All forms of puts and gets, atomics, signals, collective operations and a lock.
fn a_bit_of_everything(world: &World) {
    const LONG: usize = 1 << 17;
    let (me, n) = (world.my_pe(), world.n_pes());
    assert!(world.fabric().unwrap().starts_with("ofi ("), "{:?}", world.fabric());
    let (right, left) = ((me + 1) % n, (me + n - 1) % n);
    let words = world.alloc_zeroed::<u64>(n).unwrap();
    let long = world.alloc_zeroed::<u64>(LONG).unwrap();
    let (signal, count) = (world.alloc_zeroed::<u64>(1).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    for pe in 0..n {
        words.p(pe, me, 100 + me as u64).unwrap();
        assert!(count.fetch_add(pe, 0, 1).unwrap() < n as u64);
    }
    for length in [1, 7, 100, 5000, LONG] {
        let source: Vec<u64> = (0..length).map(|i| (me * LONG + length + i) as u64).collect();
        long.put_signal(right, 0, &source, &signal, 0, SignalOp::Add(1)).unwrap();
        signal.local().wait_until(0, |arrived| arrived > 0);
        let expected =
            |from: usize| (0..length).map(|i| (from * LONG + length + i) as u64).collect::<Vec<_>>();
        let mut here = vec![0; length];
        long.local().read(0, &mut here);
        assert_eq!(here, expected(left));
        // No order without a call: the get might overtake the put, which the target executes.
        world.quiet();
        let mut there = vec![0; length];
        long.get(right, 0, &mut there).unwrap();
        assert_eq!(there, expected(me));
        world.barrier();
        signal.local().set(0, 0);
        world.barrier();
    }
    assert_eq!(words.local().to_vec(), (0..n).map(|pe| 100 + pe as u64).collect::<Vec<_>>());
    assert_eq!(count.local().get(0), n as u64);
    let (sum, own) = (world.alloc_zeroed::<u64>(1).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    own.local().set(0, me as u64);
    world.team().all_reduce(ReduceOp::Sum, &sum, &own).unwrap();
    assert_eq!(sum.local().get(0), (n * (n - 1) / 2) as u64);
    let lock = world.lock().unwrap();
    for _ in 0..5 {
        let _guard = lock.acquire().unwrap();
        let seen = own.g(0, 0).unwrap();
        own.p(0, 0, seen + 1).unwrap();
        world.quiet();
    }
    world.barrier();
    assert_eq!(own.g(0, 0).unwrap(), 5 * n as u64);
    world.barrier();
}

#[test]
fn it_is_of_version_2() {
    assert!(Library::open(Some(library())).unwrap().version() >= (2, 0));
}

#[test]
fn on_one_node() {
    let settings = [("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "ofi"), ("PELAGO_OFI_LIBRARY", library())];
    pelago::testing::expect_success(&try_processes!(3, settings, a_bit_of_everything));
}

#[test]
fn on_two_nodes() {
    let library = ("PELAGO_OFI_LIBRARY", library());
    let settings = [("PELAGO_SIM_NODES", "2"), ("PELAGO_FABRIC", "ofi"), library];
    pelago::testing::expect_success(&try_processes!(4, settings, a_bit_of_everything));
}

#[test]
fn as_threads_of_two_processes() {
    let all = [("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "ofi"), ("PELAGO_PES_PER_PROCESS", "2")];
    let settings = [all[0], all[1], all[2], ("PELAGO_OFI_LIBRARY", library())];
    pelago::testing::expect_success(&try_processes!(4, settings, a_bit_of_everything));
}
