//! A probe program of functions whose instructions are known: the tests of the tracer count them, and this
//! program is an example for other probe programs.
//!
//! An argument makes it violate the protocol: `silent`, `waits`, `uncalled`, `ends`, `aborts` or `fails`.

fn main() {
    #[cfg(target_arch = "x86_64")]
    probes::run(std::env::args().nth(1).as_deref());
}

#[cfg(target_arch = "x86_64")]
mod probes {
    use std::arch::{asm, naked_asm};
    use std::hint::black_box;
    use std::io::Write;
    use std::process::{abort, exit};

    /// The type of all probes here: they may write to 64 bytes.
    type Probe = extern "C" fn(*mut u8);

    const PROBES: [(&str, Probe); 9] = [
        ("return_only", return_only),
        ("four", four),
        ("pushes", pushes),
        ("calls_four", calls_four),
        ("jumps_to_four", jumps_to_four),
        ("loops_ten_times", loops_ten_times),
        ("loops_on_itself", loops_on_itself),
        ("fills_64_bytes", fills_64_bytes),
        ("system_call", system_call),
    ];

    pub fn run(behaviour: Option<&str>) {
        match behaviour {
            Some("silent") => int3(),
            Some("waits") => loop {
                std::thread::park();
            },
            _ => {}
        }
        for (name, probe) in PROBES {
            println!("probe {name} {:#x}", probe as usize);
        }
        std::io::stdout().flush().expect("the tracer reads the output");
        let mut room = [0u8; 64];
        for (_, probe) in PROBES {
            let call = || black_box(probe)(room.as_mut_ptr());
            measure(call, behaviour);
        }
        if behaviour == Some("fails") {
            exit(3);
        }
    }

    /// Calls a probe as the protocol requires: once to warm up, once between two traps.
    fn measure(mut call: impl FnMut(), behaviour: Option<&str>) {
        call();
        int3();
        if behaviour != Some("uncalled") {
            call();
        }
        match behaviour {
            Some("ends") => exit(0),
            Some("aborts") => abort(),
            _ => int3(),
        }
    }

    /// Stops for the tracer.
    #[inline(always)]
    fn int3() {
        // SAFETY: the tracer resumes after the trap and leaves registers and memory as they are.
        unsafe { asm!("int3") }
    }

    #[unsafe(naked)]
    extern "C" fn return_only(_room: *mut u8) {
        naked_asm!("ret")
    }

    #[unsafe(naked)]
    extern "C" fn four(_room: *mut u8) {
        naked_asm!("nop", "nop", "nop", "ret")
    }

    #[unsafe(naked)]
    extern "C" fn pushes(_room: *mut u8) {
        naked_asm!("push rax", "pop rax", "ret")
    }

    #[unsafe(naked)]
    extern "C" fn calls_four(_room: *mut u8) {
        naked_asm!("call {}", "ret", sym four)
    }

    #[unsafe(naked)]
    extern "C" fn jumps_to_four(_room: *mut u8) {
        naked_asm!("jmp {}", sym four)
    }

    #[unsafe(naked)]
    extern "C" fn loops_ten_times(_room: *mut u8) {
        naked_asm!("mov ecx, 10", "2:", "dec ecx", "jnz 2b", "ret")
    }

    /// An instruction that jumps to itself counts every time that it is executed.
    #[unsafe(naked)]
    extern "C" fn loops_on_itself(_room: *mut u8) {
        naked_asm!("mov ecx, 5", "2:", "loop 2b", "ret")
    }

    /// A repeated string instruction counts once, however many bytes it writes.
    #[unsafe(naked)]
    extern "C" fn fills_64_bytes(_room: *mut u8) {
        naked_asm!("xor eax, eax", "mov ecx, 64", "rep stosb", "ret")
    }

    #[unsafe(naked)]
    extern "C" fn system_call(_room: *mut u8) {
        naked_asm!("mov eax, {}", "syscall", "ret", const 39)
    }
}
