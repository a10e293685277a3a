//! The tables of types: the string for `<type>` in the names of functions, the type in Rust and the type in
//! C. A type with several names has several rows. Source: OpenSHMEM 1.6, tables 3 to 10.

/// Standard RMA types.
macro_rules! RMA {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("float", f32, "float"), ("double", f64, "double"), ("longdouble", LongDouble, "long double"),
        ("char", c_char, "char"), ("schar", i8, "signed char"), ("short", i16, "short"), ("int", i32, "int"),
        ("long", i64, "long"), ("longlong", i64, "long long"), ("uchar", u8, "unsigned char"),
        ("ushort", u16, "unsigned short"), ("uint", u32, "unsigned int"), ("ulong", u64, "unsigned long"),
        ("ulonglong", u64, "unsigned long long"), ("int8", i8, "int8_t"), ("int16", i16, "int16_t"),
        ("int32", i32, "int32_t"), ("int64", i64, "int64_t"), ("uint8", u8, "uint8_t"),
        ("uint16", u16, "uint16_t"), ("uint32", u32, "uint32_t"), ("uint64", u64, "uint64_t"),
        ("size", u64, "size_t"), ("ptrdiff", i64, "ptrdiff_t"),
    ] $($rest)* } };
}

/// The same without `long double`, which Rust cannot pass by value.
macro_rules! RMA_VALUE {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("float", f32, "float"), ("double", f64, "double"),
        ("char", c_char, "char"), ("schar", i8, "signed char"), ("short", i16, "short"), ("int", i32, "int"),
        ("long", i64, "long"), ("longlong", i64, "long long"), ("uchar", u8, "unsigned char"),
        ("ushort", u16, "unsigned short"), ("uint", u32, "unsigned int"), ("ulong", u64, "unsigned long"),
        ("ulonglong", u64, "unsigned long long"), ("int8", i8, "int8_t"), ("int16", i16, "int16_t"),
        ("int32", i32, "int32_t"), ("int64", i64, "int64_t"), ("uint8", u8, "uint8_t"),
        ("uint16", u16, "uint16_t"), ("uint32", u32, "uint32_t"), ("uint64", u64, "uint64_t"),
        ("size", u64, "size_t"), ("ptrdiff", i64, "ptrdiff_t"),
    ] $($rest)* } };
}

/// `long double` alone.
#[allow(unused_macros, reason = "its functions are defined in C; xtask reads the table")]
macro_rules! LONG_DOUBLE {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("longdouble", LongDouble, "long double"),
    ] $($rest)* } };
}

/// Extended AMO types.
macro_rules! AMO_EXTENDED {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("float", f32, "float"), ("double", f64, "double"), ("int", i32, "int"), ("long", i64, "long"),
        ("longlong", i64, "long long"), ("uint", u32, "unsigned int"), ("ulong", u64, "unsigned long"),
        ("ulonglong", u64, "unsigned long long"), ("int32", i32, "int32_t"), ("int64", i64, "int64_t"),
        ("uint32", u32, "uint32_t"), ("uint64", u64, "uint64_t"), ("size", u64, "size_t"),
        ("ptrdiff", i64, "ptrdiff_t"),
    ] $($rest)* } };
}

/// Standard AMO types, which are those of point-to-point synchronisation as well.
macro_rules! AMO {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("int", i32, "int"), ("long", i64, "long"), ("longlong", i64, "long long"),
        ("uint", u32, "unsigned int"), ("ulong", u64, "unsigned long"),
        ("ulonglong", u64, "unsigned long long"), ("int32", i32, "int32_t"), ("int64", i64, "int64_t"),
        ("uint32", u32, "uint32_t"), ("uint64", u64, "uint64_t"), ("size", u64, "size_t"),
        ("ptrdiff", i64, "ptrdiff_t"),
    ] $($rest)* } };
}

/// Bitwise AMO types.
macro_rules! AMO_BITWISE {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("uint", u32, "unsigned int"), ("ulong", u64, "unsigned long"),
        ("ulonglong", u64, "unsigned long long"), ("int32", i32, "int32_t"), ("int64", i64, "int64_t"),
        ("uint32", u32, "uint32_t"), ("uint64", u64, "uint64_t"),
    ] $($rest)* } };
}

/// Types of the extended atomics with names from before version 1.4.
macro_rules! AMO_EXTENDED_DEPRECATED {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("float", f32, "float"), ("double", f64, "double"), ("int", i32, "int"), ("long", i64, "long"),
        ("longlong", i64, "long long"),
    ] $($rest)* } };
}

/// Types of the standard atomics with names from before version 1.4.
macro_rules! AMO_DEPRECATED {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("int", i32, "int"), ("long", i64, "long"), ("longlong", i64, "long long"),
    ] $($rest)* } };
}

/// Types of point-to-point synchronisation that are not types of atomics.
macro_rules! SYNC_DEPRECATED {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("short", i16, "short"), ("ushort", u16, "unsigned short"),
    ] $($rest)* } };
}

/// The same for calls on several words, which are extensions. Sandia OpenSHMEM 1.4 has functions with `short`
/// and `ushort` in their names that take other arguments.
macro_rules! SYNC_JOINED {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("signed_short", i16, "short"), ("unsigned_short", u16, "unsigned short"),
    ] $($rest)* } };
}

/// Types of `wait`.
macro_rules! WAIT_DEPRECATED {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("short", i16, "short"), ("int", i32, "int"), ("long", i64, "long"), ("longlong", i64, "long long"),
    ] $($rest)* } };
}

/// Sizes in bits.
macro_rules! SIZES {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("8", u8, "8"), ("16", u16, "16"), ("32", u32, "32"), ("64", u64, "64"), ("128", u128, "128"),
    ] $($rest)* } };
}

/// Types of bitwise reductions of teams.
macro_rules! REDUCE_BITS {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("uchar", u8, "unsigned char"), ("ushort", u16, "unsigned short"), ("uint", u32, "unsigned int"),
        ("ulong", u64, "unsigned long"), ("ulonglong", u64, "unsigned long long"),
        ("int8", i8, "int8_t"), ("int16", i16, "int16_t"), ("int32", i32, "int32_t"),
        ("int64", i64, "int64_t"), ("uint8", u8, "uint8_t"), ("uint16", u16, "uint16_t"),
        ("uint32", u32, "uint32_t"), ("uint64", u64, "uint64_t"), ("size", u64, "size_t"),
    ] $($rest)* } };
}

/// Types of sums, products and scans of teams, without `long double`.
macro_rules! REDUCE_SUM {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("char", c_char, "char"), ("schar", i8, "signed char"), ("short", i16, "short"),
        ("int", i32, "int"), ("long", i64, "long"), ("longlong", i64, "long long"),
        ("ptrdiff", i64, "ptrdiff_t"), ("uchar", u8, "unsigned char"), ("ushort", u16, "unsigned short"),
        ("uint", u32, "unsigned int"), ("ulong", u64, "unsigned long"),
        ("ulonglong", u64, "unsigned long long"), ("int8", i8, "int8_t"), ("int16", i16, "int16_t"),
        ("int32", i32, "int32_t"), ("int64", i64, "int64_t"), ("uint8", u8, "uint8_t"),
        ("uint16", u16, "uint16_t"), ("uint32", u32, "uint32_t"), ("uint64", u64, "uint64_t"),
        ("size", u64, "size_t"), ("float", f32, "float"), ("double", f64, "double"),
        ("complexd", Complex<f64>, "double _Complex"), ("complexf", Complex<f32>, "float _Complex"),
    ] $($rest)* } };
}

/// Types of bitwise reductions of active sets.
macro_rules! TO_ALL_BITS {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("short", i16, "short"), ("int", i32, "int"), ("long", i64, "long"),
        ("longlong", i64, "long long"),
    ] $($rest)* } };
}

/// Types of minimum and maximum of active sets, without `long double`.
macro_rules! TO_ALL_ORDER {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("short", i16, "short"), ("int", i32, "int"), ("long", i64, "long"),
        ("longlong", i64, "long long"), ("float", f32, "float"), ("double", f64, "double"),
    ] $($rest)* } };
}

/// Types of sums and products of active sets, without `long double`.
macro_rules! TO_ALL_SUM {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("short", i16, "short"), ("int", i32, "int"), ("long", i64, "long"),
        ("longlong", i64, "long long"), ("float", f32, "float"), ("double", f64, "double"),
        ("complexd", Complex<f64>, "double _Complex"), ("complexf", Complex<f32>, "float _Complex"),
    ] $($rest)* } };
}

/// Sizes in bits of the elements of active sets.
macro_rules! ACTIVE_SIZES {
    ($callback:ident, $($rest:tt)*) => { $callback! { [
        ("32", u32, "32"), ("64", u64, "64"),
    ] $($rest)* } };
}
