//! Memory ordering.

use super::*;

api! {
    both plain "fence": crate::order::fence, ();
    both plain "quiet": crate::order::quiet, ();
    both plain "pe_quiet": crate::order::pe_quiet, (target_pes: *const c_int, npes: size_t);
}
