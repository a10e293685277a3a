//! A child of `fork` is not a PE: in a child the library is not initialised, and the program's static data
//! are the child's own (`symmetric/statics/fork.rs`).
//!
//! Invariant: the functions are registered before any of the program's: so they run last before the fork and
//! first after it (see `pthread_atfork(3)`).

use crate::symmetric::statics::fork::{before, give_own_data, in_parent};
use pelago::sync::{AtomicBool, Ordering};

static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

/// Runs when the library is loaded, before the constructors of the program.
#[used]
#[unsafe(link_section = ".init_array.00101")]
static AT_LOAD: extern "C" fn() = register;

/// Makes sure that the functions are registered.
pub(super) fn ensure_registered() {
    // Referred to here, so that the linker takes it out of an archive.
    std::hint::black_box(AT_LOAD)();
}

extern "C" fn register() {
    if !IS_REGISTERED.swap(true, Ordering::Relaxed) {
        // SAFETY: the functions live as long as the library, and the C library unregisters them when the
        // library is unloaded.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    }
}

unsafe extern "C" fn in_child() {
    // SAFETY: this is the child, and no other code of the program has run in it.
    unsafe { give_own_data() };
    // Only now, as the library's state is among the data where the library is linked into the program.
    super::abandon();
}
