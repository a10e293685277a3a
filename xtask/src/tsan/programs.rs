//! OpenSHMEM programs with `SHMEM_THREAD_MULTIPLE` under ThreadSanitizer: those of `shmem/tests/c` whose
//! threads call the library concurrently. The programs and the library are instrumented. The sanitizer is
//! gcc's, because it is a shared library: Rust's sanitizer would be part of the program, whose static data
//! become symmetric memory.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::TARGET;
use crate::install::library::{c_files, write_headers};
use crate::workspace::{self, metadata};

/// The programs. Each runs without settings and once with each of these settings.
const PROGRAMS: [&str; 2] = ["threads", "extension_threads"];
const SETTINGS: [(&str, &str); 3] =
    [("PELAGO_CHECK", "off"), ("PELAGO_CHECK", "on"), ("PELAGO_ROUTE", "net")];
const PES: &str = "2";
/// Functions that Rust's compiler calls and gcc's sanitizer does not define.
const MOVES: &str = "#include <string.h>
void *__tsan_memcpy(void *to, const void *from, size_t bytes) { return memcpy(to, from, bytes); }
void *__tsan_memmove(void *to, const void *from, size_t bytes) { return memmove(to, from, bytes); }
void *__tsan_memset(void *to, int value, size_t bytes) { return memset(to, value, bytes); }
";

/// Compiles, links and runs the programs.
pub fn run(folder: &Path, wraps: &[String], options: &str) -> Result<()> {
    let mut build = super::cargo(folder, wraps);
    build.args(["build", "--target", TARGET, "-p", "pelago-library"]);
    succeed("building the library", &mut build)?;
    let mut launcher = workspace::cargo(&["build", "-p", "pelago-cli"]);
    succeed("building the launcher", &mut launcher)?;
    let launcher = metadata()?.target_directory.join("debug/pelago");
    let library = folder.join(TARGET).join("debug/libpelago.a");
    let (include, sources) = (write_headers(folder)?, c_files()?);
    let moves = folder.join("moves.c");
    std::fs::write(&moves, MOVES)?;
    for program in PROGRAMS {
        let source = workspace::root().join(format!("shmem/tests/c/{program}.c"));
        let binary = folder.join(program);
        let mut link = Command::new("gcc");
        link.args(["-std=gnu11", "-g", "-O1", "-fsanitize=thread", "-I"]).arg(&include);
        link.arg("-o").arg(&binary).args([&source, &moves]).args(&sources).arg(&library);
        link.args(wraps.iter().filter_map(|argument| argument.strip_prefix("-Clink-arg=")));
        link.args(["-lpthread", "-ldl", "-lm", "-lrt"]);
        succeed(&format!("linking {program}"), &mut link)?;
        for (name, value) in SETTINGS {
            let mut job = Command::new(&launcher);
            job.args(["run", "-n", PES]).arg(&binary).env(name, value).env("TSAN_OPTIONS", options);
            succeed(&format!("{program}.c under ThreadSanitizer with {name}={value}"), &mut job)?;
        }
    }
    Ok(())
}

fn succeed(what: &str, command: &mut Command) -> Result<()> {
    eprintln!("{what}");
    let status = command.status().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    ensure!(status.success(), "{what}: {status}");
    Ok(())
}
