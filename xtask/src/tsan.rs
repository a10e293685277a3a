//! `cargo xtask tsan`: jobs of threads, and OpenSHMEM programs with threads, under ThreadSanitizer.
//!
//! Invariant: of `pelago`, it runs the tests with PEs as threads over mapped memory, where two threads access
//! the same words. The sanitizer needs a nightly compiler, so this command is part of neither tier of tests.
//! The sanitizer does not model fences; with `cfg(tsan)`, the accesses themselves are ordered instead
//! (`fabric/src/copy.rs`), and the litmus tests and the loom models check the fences.

mod programs;
mod standard_library;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace::{OPTIONAL, metadata};

/// The modules of the three test programs whose jobs of threads are run.
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
/// The kinds of jobs that are not run: processes; simulations, whose threads take turns; and jobs over the
/// fake libfabric.
const OTHER_KINDS: [&str; 8] = [
    "::sim",
    "::hybrid",
    "::net",
    "::processes",
    "::threads_of_processes",
    "::fake_libfabric",
    "litmus::",
    "what_is_quiet_has_arrived",
];
/// Tests that are not run: in all but the last, all PEs put the same bytes to one place on purpose; the last
/// puts its flags as slices, which are copied by memcpy.
const RACES_ON_PURPOSE: [&str; 6] = [
    "any_is_fair",
    "counters_count_when_they_are_on_and_only_then",
    "a_strided_transfer_counts_as_one",
    "a_put_with_a_signal_counts_as_both",
    "shared_array::what_is_wrong_is_said",
    "sees_what_was_fenced",
];
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Runs the tests and programs; a finding of the sanitizer is a failure.
pub fn run() -> Result<()> {
    let folder = metadata()?.target_directory.join("tsan");
    let wraps = standard_library::wrap(&folder)?;
    let suppressions = folder.join("suppressions");
    std::fs::write(&suppressions, standard_library::SUPPRESSIONS)?;
    let options = format!("halt_on_error=0 exitcode=66 suppressions={}", suppressions.display());
    run_tests(&folder, &wraps, &options)?;
    programs::run(&folder, &wraps, &options)
}

fn run_tests(folder: &Path, wraps: &[String], options: &str) -> Result<()> {
    let mut command = cargo(folder, wraps);
    command.args([
        "test",
        "--no-fail-fast",
        "--target",
        TARGET,
        "-p",
        "pelago-tests",
        "--features",
        OPTIONAL,
    ]);
    command.args(["--test", "operations", "--test", "teams", "--test", "jobs"]);
    // Captured output is written under a lock of the standard library that is not instrumented.
    command.args(["--", "--test-threads=1", "--nocapture"]).args(MODULES);
    for name in RACES_ON_PURPOSE.iter().chain(&OTHER_KINDS) {
        command.args(["--skip", name]);
    }
    command.env("TSAN_OPTIONS", options).env("PELAGO_WAIT_LIMIT", "300");
    let status = command.status().context("cannot run cargo")?;
    ensure!(status.success(), "the sanitizer has found something, see above, or a test has failed");
    Ok(())
}

/// Cargo of the nightly compiler, which instruments all code but the standard library. Generic functions of
/// the standard library are instantiated and instrumented in the crates that use them.
fn cargo(folder: &Path, wraps: &[String]) -> Command {
    let mut flags = vec![
        "-Zsanitizer=thread",
        "-Zshare-generics=no",
        "--cfg",
        "tsan",
        "-Cunsafe-allow-abi-mismatch=sanitizer",
    ];
    flags.extend(wraps.iter().map(String::as_str));
    let mut command = nightly("cargo");
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")).env("CARGO_TARGET_DIR", folder);
    command
}

/// A program of the nightly toolchain.
fn nightly(program: &str) -> Command {
    let mut command = Command::new(program);
    command.arg("+nightly");
    // Removes the variables that would select the compiler of this command instead of the nightly one.
    for variable in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTDOC"] {
        command.env_remove(variable);
    }
    command
}
