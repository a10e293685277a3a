//! What functions answer when they do not do what they are asked; and those of them that never do, for what a
//! table leaves out.
//!
//! Invariant: no slot of a table is null, as users call through them without a look.

use libc::{c_char, c_int};
use pelago_fabric::ofi::sys::*;

/// A count, or an error, as functions answer that move data.
pub(crate) fn answer(result: Result<usize, c_int>) -> isize {
    result.map_or_else(|code| -(code as isize), |count| count as isize)
}

/// A table of functions.
pub(crate) trait Table {
    /// The one that refuses whatever it is asked, to be filled with what there is.
    const EMPTY: Self;
}

/// A type of functions that can refuse.
trait Refusal: Copy {
    /// The one that does.
    const REFUSAL: Self;
}

/// A type of results that has one for "there is no such function".
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

/// For functions of so many arguments and of less, by the letters of their types.
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

/// The tables with their slots.
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
