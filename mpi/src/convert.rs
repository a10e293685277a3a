//! The arguments that differ between the two forms of a function, and the numbers that implementations get.

use crate::abi::*;

/// Integers that the program passes as an array; the implementation reads them as 64-bit numbers.
#[derive(Clone, Copy, PartialEq)]
pub struct Integers {
    start: *const c_void,
    is_wide: bool,
}

impl Integers {
    pub fn is_null(&self) -> bool {
        self.start.is_null()
    }

    /// Whether the program passes 64-bit numbers.
    pub fn is_wide(&self) -> bool {
        self.is_wide
    }

    /// The number at a position.
    ///
    /// # Safety
    /// The array has it.
    #[inline]
    pub unsafe fn get(&self, position: usize) -> i64 {
        // SAFETY: the caller promises that the array has the element, of the type that it was made with.
        unsafe {
            match self.is_wide {
                true => self.start.cast::<i64>().add(position).read(),
                false => self.start.cast::<c_int>().add(position).read().into(),
            }
        }
    }

    /// The first `n` numbers.
    ///
    /// # Safety
    /// The array has them.
    pub unsafe fn list(&self, n: usize) -> Vec<i64> {
        // SAFETY: the caller promises that the array has the elements.
        (0..n).map(|position| unsafe { self.get(position) }).collect()
    }
}

/// A number of an implementation that must know in which form it was called.
#[derive(Clone, Copy)]
pub struct Number {
    pub value: i64,
    /// Whether the call is the form with larger integers.
    pub is_large: bool,
}

impl From<*const MPI_Aint> for Integers {
    fn from(array: *const MPI_Aint) -> Integers {
        Integers { start: array.cast(), is_wide: true }
    }
}

/// The place of an integer that the implementation returns.
#[derive(Clone, Copy)]
pub struct IntegerOut {
    place: *mut c_void,
    is_wide: bool,
}

impl IntegerOut {
    pub fn is_null(&self) -> bool {
        self.place.is_null()
    }

    /// Stores a number: `MPI_UNDEFINED` if the place is too narrow for it.
    ///
    /// # Safety
    /// The place is valid for writes.
    pub unsafe fn set(&self, value: i64) {
        // SAFETY: the caller promises that the place is valid, of the type that it was made with.
        unsafe {
            match self.is_wide {
                true => self.place.cast::<i64>().write(value),
                false => self.place.cast::<c_int>().write(c_int::try_from(value).unwrap_or(MPI_UNDEFINED)),
            }
        }
    }

    /// The number that is there now.
    ///
    /// # Safety
    /// The place is valid for reads.
    pub unsafe fn get(&self) -> i64 {
        // SAFETY: the caller promises that the place is valid, of the type that it was made with.
        unsafe {
            match self.is_wide {
                true => self.place.cast::<i64>().read(),
                false => self.place.cast::<c_int>().read().into(),
            }
        }
    }
}

impl From<*mut MPI_Count> for IntegerOut {
    fn from(place: *mut MPI_Count) -> IntegerOut {
        IntegerOut { place: place.cast(), is_wide: true }
    }
}

impl From<*mut c_int> for IntegerOut {
    fn from(place: *mut c_int) -> IntegerOut {
        IntegerOut { place: place.cast(), is_wide: false }
    }
}

/// A function of the program that combines elements, in either form.
#[derive(Clone, Copy)]
pub struct UserCombine {
    address: *mut c_void,
    is_wide: bool,
}

// SAFETY: it is the address of a function.
unsafe impl Send for UserCombine {}
// SAFETY: what holds for `Send` above holds for `Sync` as well.
unsafe impl Sync for UserCombine {}

impl UserCombine {
    pub fn is_null(&self) -> bool {
        self.address.is_null()
    }

    /// Whether its count has 64 bits.
    pub fn is_wide(&self) -> bool {
        self.is_wide
    }

    /// The function with the narrow count.
    ///
    /// # Safety
    /// The program has passed it in that form.
    pub unsafe fn narrow(
        &self,
    ) -> unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut c_int, *mut MPI_Datatype) {
        debug_assert!(!self.is_wide, "the form in which it was passed");
        // SAFETY: the caller promises what this function requires.
        unsafe { MPI_User_function::at(self.address.cast()) }
    }

    /// The function with the wide count.
    ///
    /// # Safety
    /// The program has passed it in that form.
    pub unsafe fn wide(
        &self,
    ) -> unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut MPI_Count, *mut MPI_Datatype) {
        debug_assert!(self.is_wide, "the form in which it was passed");
        // SAFETY: the caller promises what this function requires.
        unsafe { MPI_User_function_c::at(self.address.cast()) }
    }
}

/// A function of the program that converts data between two representations, in either form.
#[derive(Clone, Copy)]
pub struct Conversion {
    address: *mut c_void,
    is_wide: bool,
}

// SAFETY: it is the address of a function.
unsafe impl Send for Conversion {}
// SAFETY: what holds for `Send` above holds for `Sync` as well.
unsafe impl Sync for Conversion {}

impl Conversion {
    /// Whether data need no conversion: `MPI_CONVERSION_FN_NULL`.
    pub fn is_null(&self) -> bool {
        self.address.is_null()
    }

    /// Calls the function for the first items of a datatype: the error code that it returns.
    ///
    /// # Safety
    /// The program has passed the function in the form that this was made with, and it is not null. The
    /// buffers have the items.
    pub unsafe fn call(
        &self,
        buffer: *mut c_void,
        datatype: MPI_Datatype,
        count: i64,
        in_file: *mut c_void,
        extra_state: *mut c_void,
    ) -> c_int {
        // SAFETY: the caller promises what this function requires.
        unsafe {
            match self.is_wide {
                true => MPI_Datarep_conversion_function_c::at(self.address.cast())(
                    buffer,
                    datatype,
                    count,
                    in_file,
                    0,
                    extra_state,
                ),
                false => match c_int::try_from(count) {
                    Ok(count) => MPI_Datarep_conversion_function::at(self.address.cast())(
                        buffer,
                        datatype,
                        count,
                        in_file,
                        0,
                        extra_state,
                    ),
                    Err(_) => MPI_ERR_COUNT,
                },
            }
        }
    }
}

/// Defines the argument for a function of the program that converts data.
macro_rules! conversion_function {
    ($of:ty, $is_wide:literal) => {
        #[repr(transparent)]
        #[derive(Clone, Copy)]
        pub struct ConversionFunction(pub *mut $of);
        impl From<ConversionFunction> for Conversion {
            fn from(function: ConversionFunction) -> Conversion {
                Conversion { address: function.0.cast(), is_wide: $is_wide }
            }
        }
    };
}

/// Defines the argument for a function of the program that combines elements.
macro_rules! user_function {
    ($of:ty, $is_wide:literal) => {
        #[repr(transparent)]
        #[derive(Clone, Copy)]
        pub struct UserFunction(pub *mut $of);
        impl From<UserFunction> for UserCombine {
            fn from(function: UserFunction) -> UserCombine {
                UserCombine { address: function.0.cast(), is_wide: $is_wide }
            }
        }
    };
}

/// Defines the types of one form: numbers, arrays, and places of results.
macro_rules! integers {
    (
        numbers { $($number:ident = $of:ty,)* }
        arrays { $($array:ident = $element:ty,)* }
        results { $($out:ident = $result:ty,)* }
    ) => {
        $(
            #[repr(transparent)]
            #[derive(Clone, Copy)]
            pub struct $number(pub $of);
            impl From<$number> for i64 {
                #[inline]
                fn from(number: $number) -> i64 {
                    number.0 as i64
                }
            }
            impl From<$number> for Number {
                fn from(number: $number) -> Number {
                    Number { value: number.0 as i64, is_large: IS_LARGE }
                }
            }
        )*
        $(
            #[repr(transparent)]
            #[derive(Clone, Copy)]
            pub struct $array(pub *const $element);
            impl From<$array> for Integers {
                #[inline]
                fn from(array: $array) -> Integers {
                    Integers { start: array.0.cast(), is_wide: size_of::<$element>() == size_of::<i64>() }
                }
            }
        )*
        $(
            #[repr(transparent)]
            #[derive(Clone, Copy)]
            pub struct $out(pub *mut $result);
            impl From<$out> for IntegerOut {
                #[inline]
                fn from(out: $out) -> IntegerOut {
                    IntegerOut { place: out.0.cast(), is_wide: size_of::<$result>() == size_of::<i64>() }
                }
            }
        )*
    };
}

/// The types of the usual form.
pub mod small {
    use super::*;
    const IS_LARGE: bool = false;
    integers! {
        numbers { Count = c_int, Aint = MPI_Aint, DispUnit = c_int, }
        arrays { Counts = c_int, Displs = c_int, Aints = MPI_Aint, }
        results { CountOut = c_int, AintOut = MPI_Aint, DispUnitOut = c_int, }
    }
    user_function! { MPI_User_function, false }
    conversion_function! { MPI_Datarep_conversion_function, false }
}

/// The types of the form with larger integers.
pub mod large {
    use super::*;
    const IS_LARGE: bool = true;
    integers! {
        numbers { Count = MPI_Count, Aint = MPI_Count, DispUnit = MPI_Aint, }
        arrays { Counts = MPI_Count, Displs = MPI_Aint, Aints = MPI_Count, }
        results { CountOut = MPI_Count, AintOut = MPI_Count, DispUnitOut = MPI_Aint, }
    }
    user_function! { MPI_User_function_c, true }
    conversion_function! { MPI_Datarep_conversion_function_c, true }
}
