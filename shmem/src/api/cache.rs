//! Caches: functions that OpenSHMEM 1.5 removed, for programs that still call them.

use super::*;

api! {
    /// Deprecated.
    only plain "clear_cache_inv": crate::cache::nothing, ();
    /// Deprecated.
    only plain "set_cache_inv": crate::cache::nothing, ();
    /// Deprecated.
    only plain "udcflush": crate::cache::nothing, ();
    /// Deprecated.
    only plain "clear_cache_line_inv": crate::cache::nothing_at, (dest: *mut c_void);
    /// Deprecated.
    only plain "set_cache_line_inv": crate::cache::nothing_at, (dest: *mut c_void);
    /// Deprecated.
    only plain "udcflush_line": crate::cache::nothing_at, (dest: *mut c_void);
}
