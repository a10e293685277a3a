//! What all programs have in common whose functions `cargo xtask budget` counts.
//!
//! Invariant: the protocol is that of the xtask's tracer: print the probes, then run each once to warm up and
//! once between two breakpoints.

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
    for probe in probes {
        println!("probe {} {:x}", probe.name, probe.address);
    }
    for probe in probes {
        (probe.call)();
        breakpoint();
        (probe.call)();
        breakpoint();
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
