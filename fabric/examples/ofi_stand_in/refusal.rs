//! Functions for the slots of tables that nothing here fills: they answer `-FI_ENOSYS`.
//!
//! Invariant: no slot of a table is null, as users call through them without a look.

use libc::{c_char, c_int};
use pelago_fabric::ofi::sys::FI_ENOSYS;

/// The function for a slot of this type.
pub(crate) const fn none<F: Refusal>() -> Option<F> {
    Some(F::REFUSAL)
}

/// A type of functions that can refuse.
pub(crate) trait Refusal: Copy {
    /// The one that does.
    const REFUSAL: Self;
}

/// A type of results that has one for "there is no such function".
pub(crate) trait Refused {
    fn refused() -> Self;
}

impl Refused for c_int {
    fn refused() -> c_int {
        -FI_ENOSYS
    }
}

impl Refused for isize {
    fn refused() -> isize {
        -(FI_ENOSYS as isize)
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
