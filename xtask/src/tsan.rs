//! `cargo xtask tsan`: the thread mode under ThreadSanitizer.
//!
//! Invariant: what it runs are the tests of PEs as threads over mapped memory, where two threads really
//! access the same words. It needs a nightly compiler with the source of the standard library, so it is part
//! of neither tier of tests. Fences, which the sanitizer does not model, are stood in for by the order of the
//! words themselves (`cfg(tsan)` in `fabric/src/copy.rs`): that the fences are there is for the litmus tests
//! and the loom models to show.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The test programs whose jobs of threads run.
const PROGRAMS: [&str; 3] = ["operations", "teams", "jobs"];
/// The modules of those whose jobs of threads run.
const MODULES: [&str; 15] = [
    "alloc::",
    "am::",
    "amo::",
    "barrier::",
    "context::",
    "lock::",
    "p2p::",
    "rma::",
    "scattered::",
    "semaphore::",
    "shared_array::",
    "signal::",
    "split_barrier::",
    "threads::",
    "vis::",
];
/// The kinds of jobs that are not run: processes, and simulations, whose threads take turns.
const OTHER_KINDS: [&str; 7] =
    ["::sim", "::hybrid", "::net", "::processes", "::threads_of_processes", "::stand_in", "litmus::"];
/// What is not run: in the first all PEs put the same bytes to one place, on purpose; the second puts its
/// flags as slices, which move by memcpy.
const RACES_ON_PURPOSE: [&str; 2] = ["any_is_fair", "sees_what_was_fenced"];
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Runs the tests; a finding of the sanitizer is a failure.
pub fn run() -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "test", "-Zbuild-std", "--target", TARGET, "-p", "pelago"]);
    for program in PROGRAMS {
        command.args(["--test", program]);
    }
    command.args(["--", "--test-threads=1"]).args(MODULES);
    for name in RACES_ON_PURPOSE.iter().chain(&OTHER_KINDS) {
        command.args(["--skip", name]);
    }
    command
        .env("RUSTFLAGS", "-Zsanitizer=thread --cfg tsan")
        .env("TSAN_OPTIONS", "halt_on_error=1 exitcode=66")
        .env("PELAGO_WAIT_LIMIT", "300");
    // The compiler that runs this command must not stand in for the nightly one.
    for variable in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTDOC"] {
        command.env_remove(variable);
    }
    let status = command.status().context("cannot run cargo")?;
    ensure!(
        status.success(),
        "the sanitizer has found something, see above, or could not be built: it needs `rustup component add \
         rust-src --toolchain nightly`"
    );
    Ok(())
}
