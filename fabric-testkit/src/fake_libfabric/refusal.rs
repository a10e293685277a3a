//! Error results of functions, and functions that always return an error, for the unsupported slots of a
//! table.
//!
//! Invariant: no slot of a table is null, because callers do not check the pointers.

use libc::{c_char, c_int};
use pelago_fabric::ofi::sys::*;

/// Converts a count or an error to the result of a data transfer function.
pub(crate) fn answer(result: Result<usize, c_int>) -> isize {
    result.map_or_else(|code| -(code as isize), |count| count as isize)
}

/// A table of functions.
pub(crate) trait Table {
    /// The table whose functions all return an error, as a base for tables with some functions.
    const EMPTY: Self;
}

/// A type of functions that has a refusing function.
trait Refusal: Copy {
    /// The function that always returns an error.
    const REFUSAL: Self;
}

/// A type of results with a value for "not supported".
trait Refused {
    fn refused() -> Self;
}

impl Refused for c_int {
    fn refused() -> c_int {
        -FI_ENOSYS
    }
}

impl Refused for isize {
    fn refused() -> isize {
        answer(Err(FI_ENOSYS))
    }
}

impl Refused for u64 {
    fn refused() -> u64 {
        0
    }
}

impl Refused for *const c_char {
    fn refused() -> *const c_char {
        c"".as_ptr()
    }
}

/// Implements `Refusal` for functions of this number of arguments and of fewer, by the letters of their
/// types.
macro_rules! refusals {
    () => {};
    ($first:ident $($other:ident)*) => {
        impl<$first, $($other,)* R: Refused> Refusal for unsafe extern "C" fn($first, $($other),*) -> R {
            const REFUSAL: Self = {
                unsafe extern "C" fn refuse<$first, $($other,)* R: Refused>(_: $first, $(_: $other),*) -> R {
                    R::refused()
                }
                refuse::<$first, $($other,)* R>
            };
        }
        refusals! { $($other)* }
    };
}

refusals! { A B C D E F G H I J K L M N O P }

/// Implements `Table` for the tables with these slots.
macro_rules! tables {
    ($($table:ident: $($slot:ident)*;)*) => {$(
        impl Table for $table {
            const EMPTY: $table =
                $table { size: size_of::<$table>(), $($slot: Some(Refusal::REFUSAL)),* };
        }
    )*};
}

tables! {
    fi_ops: close bind control ops_open tostr ops_set;
    fi_ops_fabric: domain passive_ep eq_open wait_open trywait domain2;
    fi_ops_domain: av_open cq_open endpoint scalable_ep cntr_open poll_open stx_ctx srx_ctx query_atomic
        query_collective endpoint2;
    fi_ops_mr: reg regv regattr;
    fi_ops_av: insert insertsvc insertsym remove lookup straddr av_set;
    fi_ops_cq: read readfrom readerr sread sreadfrom signal strerror;
    fi_ops_cntr: read readerr add set wait adderr seterr;
    fi_ops_ep: cancel getopt setopt tx_ctx rx_ctx rx_size_left tx_size_left;
    fi_ops_cm: setname getname getpeer connect listen accept reject shutdown join;
    fi_ops_msg: recv recvv recvmsg send sendv sendmsg inject senddata injectdata;
    fi_ops_rma: read readv readmsg write writev writemsg inject writedata injectdata;
    fi_ops_atomic: write writev writemsg inject readwrite readwritev readwritemsg compwrite compwritev
        compwritemsg writevalid readwritevalid compwritevalid;
}
