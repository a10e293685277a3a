//! The protocol of the programs whose functions `cargo xtask budget` counts.
//!
//! Invariant: the protocol is that of the xtask's tracer: print the probes, then run each once to warm up and
//! once between two breakpoints. A program that is one PE of a job leaves them in a file, and waits until it
//! is traced.

use std::path::Path;
use std::time::{Duration, Instant};

/// A probe: its name, the address of the function that is counted, and a call of it.
pub struct Probe<'a> {
    name: &'static str,
    address: usize,
    call: Box<dyn Fn() + 'a>,
}

/// A probe of the function at `address`, which `call` calls.
pub fn probe<'a>(name: &'static str, address: *const (), call: Box<dyn Fn() + 'a>) -> Probe<'a> {
    Probe { name, address: address as usize, call }
}

/// Prints the probes and runs them.
pub fn run(probes: &[Probe<'_>]) {
    let lines = probes.iter().map(|probe| format!("probe {} {:x}\n", probe.name, probe.address));
    let lines: String = lines.collect();
    match std::env::var_os("BUDGET_FILE") {
        Some(path) => wait_for_tracer(Path::new(&path), &lines),
        None => print!("{lines}"),
    }
    for probe in probes {
        (probe.call)();
        breakpoint();
        (probe.call)();
        breakpoint();
    }
}

/// Leaves the number of this process and the probes in a file, and waits for the tracer that reads it.
fn wait_for_tracer(path: &Path, lines: &str) {
    let unfinished = path.with_extension("new");
    std::fs::write(&unfinished, format!("process {}\n{lines}", std::process::id()))
        .expect("a file for the tracer");
    std::fs::rename(&unfinished, path).expect("the file is in its place");
    let since = Instant::now();
    let is_traced = || {
        let status = std::fs::read_to_string("/proc/self/status").expect("the state of this process");
        status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
    };
    while !is_traced() {
        assert!(since.elapsed() < Duration::from_secs(60), "no tracer has come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Stops for the tracer.
fn breakpoint() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction changes no register and no memory; the tracer that asked for it handles the
    // trap.
    unsafe {
        std::arch::asm!("int3");
    }
}
