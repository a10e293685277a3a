//! The data representation `external32` (MPI 5.0, sections 5.3 and 14.5.2).
//!
//! Invariant: numbers are big-endian, two's complement or IEEE, and as long as the standard's table says.
//! Integers that are shorter there keep their least significant bytes.

use super::named::{Named, Number, Part};
use super::pack::{begin, check_packed};
use super::{Datatype, find};
use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::Mpi;
use crate::chapters::p2p::{bytes_of, packed};
use crate::convert::IntegerOut;
use std::ffi::CStr;

/// Whether `long double` is the extended format of x87: 64 bits of significand in 16 bytes.
const IS_X87: bool = cfg!(any(target_arch = "x86_64", target_arch = "x86"));

/// The bits of the fraction that `binary128` has and the extended format has not.
const FEWER_BITS: u32 = 112 - 63;

/// The bits of a number in extended format as those of the same number in `binary128`.
fn quad_of_extended(bits: u128) -> u128 {
    let significand = bits as u64;
    let sign = bits >> 79 & 1;
    let exponent = match bits >> 64 & 0x7fff {
        // A denormal number whose integer bit is set is one of the lowest exponent.
        0 if significand >> 63 == 1 => 1,
        exponent => exponent,
    };
    let fraction = u128::from(significand & (u64::MAX >> 1)) << FEWER_BITS;
    sign << 127 | exponent << 112 | fraction
}

/// The nearest number in extended format.
fn extended_of_quad(bits: u128) -> u128 {
    let sign = bits >> 127;
    let magnitude = bits & (u128::MAX >> 1);
    let lost = magnitude & ((1 << FEWER_BITS) - 1);
    let mut rounded = magnitude >> FEWER_BITS;
    let infinity = 0x7fff << 63;
    if rounded < infinity {
        let half = 1 << (FEWER_BITS - 1);
        let is_up = lost > half || lost == half && rounded & 1 == 1;
        rounded += u128::from(is_up);
    } else if rounded == infinity && lost != 0 {
        rounded |= 1 << 62;
    }
    let (exponent, fraction) = (rounded >> 63, rounded & ((1 << 63) - 1));
    let integer_bit = u128::from(exponent != 0) << 63;
    sign << 79 | exponent << 64 | integer_bit | fraction
}

/// Reads a number of the machine.
fn read_native(part: Part, bytes: &[u8]) -> u128 {
    let mut all = [0u8; 16];
    match cfg!(target_endian = "little") {
        true => all[..bytes.len()].copy_from_slice(bytes),
        false => all[16 - bytes.len()..].copy_from_slice(bytes),
    }
    let value = u128::from_ne_bytes(all);
    match part.number {
        Number::LongDouble if IS_X87 => quad_of_extended(value & (u128::MAX >> 48)),
        _ => value,
    }
}

/// Writes a number of the machine.
fn write_native(part: Part, value: u128, bytes: &mut [u8]) {
    let unused = 128 - 8 * part.external as u32;
    let value = match part.number {
        Number::Signed => ((value << unused) as i128 >> unused) as u128,
        Number::LongDouble if IS_X87 => extended_of_quad(value),
        _ => value,
    };
    let all = value.to_ne_bytes();
    match cfg!(target_endian = "little") {
        true => bytes.copy_from_slice(&all[..bytes.len()]),
        false => bytes.copy_from_slice(&all[16 - bytes.len()..]),
    }
}

/// Copies words with their bytes in the reverse order on a little-endian machine. It is its own reverse.
macro_rules! swap_words {
    ($word:ty, $from:expr, $to:expr) => {
        for (from, to) in $from.as_chunks().0.iter().zip($to.as_chunks_mut().0) {
            *to = <$word>::from_ne_bytes(*from).to_be_bytes();
        }
    };
}

/// Copies numbers of the usual sizes that are as long in both representations; whether it has.
fn swap(part: Part, from: &[u8], to: &mut [u8]) -> bool {
    if part.native != part.external || part.number == Number::LongDouble {
        return false;
    }
    match part.native {
        1 => to.copy_from_slice(from),
        2 => swap_words!(u16, from, to),
        4 => swap_words!(u32, from, to),
        8 => swap_words!(u64, from, to),
        _ => return false,
    }
    true
}

/// Copies numbers of one kind to `external32`.
fn encode(part: Part, native: &[u8], external: &mut [u8]) {
    if swap(part, native, external) {
        return;
    }
    for (from, to) in native.chunks_exact(part.native).zip(external.chunks_exact_mut(part.external)) {
        to.copy_from_slice(&read_native(part, from).to_be_bytes()[16 - part.external..]);
    }
}

/// The reverse.
fn decode(part: Part, external: &[u8], native: &mut [u8]) {
    if swap(part, external, native) {
        return;
    }
    for (from, to) in external.chunks_exact(part.external).zip(native.chunks_exact_mut(part.native)) {
        let mut all = [0u8; 16];
        all[16 - part.external..].copy_from_slice(from);
        write_native(part, u128::from_be_bytes(all), to);
    }
}

/// Calls a function with the parts of a run of one named datatype: the part, and where its numbers are in
/// both representations, from the beginning of the run.
fn for_each_part(named: Named, count: usize, each: &mut impl FnMut(Part, (usize, usize), (usize, usize))) {
    let (first, second) = named.parts();
    let Some(second) = second else {
        return each(first, (0, count * first.native_bytes()), (0, count * first.external_bytes()));
    };
    let (mut native, mut external) = (0, 0);
    for part in std::iter::repeat_n([first, second], count).flatten() {
        let ends = (native + part.native_bytes(), external + part.external_bytes());
        each(part, (native, ends.0), (external, ends.1));
        (native, external) = ends;
    }
}

impl Datatype {
    /// Bytes of an element in `external32`.
    pub fn external_size(&self) -> usize {
        self.shape.signature.external_bytes()
    }

    /// Writes the packed data of `count` elements in `external32`.
    pub fn encode_external(&self, count: usize, native: &[u8], external: &mut [u8]) {
        let (mut at, mut to) = (0, 0);
        self.shape.signature.for_each_run(count, &mut |named, n| {
            for_each_part(named, n, &mut |part, source, target| {
                encode(
                    part,
                    &native[at + source.0..at + source.1],
                    &mut external[to + target.0..to + target.1],
                );
            });
            at += n * named.native_bytes();
            to += n * named.external_bytes();
        });
    }

    /// The reverse.
    pub fn decode_external(&self, count: usize, external: &[u8], native: &mut [u8]) {
        let (mut at, mut to) = (0, 0);
        self.shape.signature.for_each_run(count, &mut |named, n| {
            for_each_part(named, n, &mut |part, target, source| {
                decode(
                    part,
                    &external[at + source.0..at + source.1],
                    &mut native[to + target.0..to + target.1],
                );
            });
            at += n * named.external_bytes();
            to += n * named.native_bytes();
        });
    }

    /// The bytes that the first bytes of packed data in `external32` have in memory; `count` elements have
    /// more.
    pub fn native_bytes_of(&self, count: usize, external: usize) -> usize {
        let (mut rest, mut native) = (external, 0);
        self.shape.signature.for_each_run(count, &mut |named, n| {
            let whole = n.min(rest / named.external_bytes().max(1));
            native += whole * named.native_bytes();
            // Nothing follows an element that is not whole.
            rest = if whole < n { 0 } else { rest - whole * named.external_bytes() };
        });
        native
    }

    /// Bytes of `count` elements in `external32`.
    fn external_bytes(&self, count: i64) -> Result<usize> {
        bytes_of(count, self)?;
        let bytes = (count as usize).checked_mul(self.external_size());
        bytes.ok_or_else(|| {
            Error::new(MPI_ERR_COUNT, format!("{count} elements are more than memory can hold"))
        })
    }
}

/// The only representation is `external32`.
unsafe fn check_representation(datarep: *const c_char) -> Result {
    ensure!(!datarep.is_null(), MPI_ERR_ARG, "datarep is null. Give \"external32\"");
    // SAFETY: the caller's pointer is that of a string.
    let name = unsafe { CStr::from_ptr(datarep) };
    ensure!(
        name == c"external32",
        MPI_ERR_ARG,
        "the data representation {name:?} is not known here. Give \"external32\""
    );
    Ok(())
}

/// `MPI_Pack_external`.
pub unsafe fn pack_external(
    mpi: &Mpi,
    datarep: *const c_char,
    inbuf: *const c_void,
    incount: i64,
    datatype: MPI_Datatype,
    outbuf: *mut c_void,
    outsize: i64,
    position: IntegerOut,
) -> Result {
    let datatype: &Datatype = mpi.datatype(datatype)?;
    let bytes = datatype.external_bytes(incount)?;
    check_packed(outbuf, bytes)?;
    // SAFETY: the caller promises the string and the elements, and the buffer has room for their data.
    unsafe {
        check_representation(datarep)?;
        let start = begin(position, outsize, bytes)?;
        if bytes > 0 {
            let native = packed(inbuf.cast(), incount as usize, datatype);
            let into = std::slice::from_raw_parts_mut(outbuf.cast::<u8>().wrapping_add(start), bytes);
            datatype.encode_external(incount as usize, &native, into);
        }
        position.set((start + bytes) as i64);
    }
    Ok(())
}

/// `MPI_Unpack_external`.
pub unsafe fn unpack_external(
    mpi: &Mpi,
    datarep: *const c_char,
    inbuf: *const c_void,
    insize: i64,
    position: IntegerOut,
    outbuf: *mut c_void,
    outcount: i64,
    datatype: MPI_Datatype,
) -> Result {
    let datatype: &Datatype = mpi.datatype(datatype)?;
    let bytes = datatype.external_bytes(outcount)?;
    check_packed(inbuf, bytes)?;
    // SAFETY: the caller promises the string and room for the elements, and the buffer has their data.
    unsafe {
        check_representation(datarep)?;
        let start = begin(position, insize, bytes)?;
        if bytes > 0 {
            let from = std::slice::from_raw_parts(inbuf.cast::<u8>().wrapping_add(start), bytes);
            let mut native = vec![0u8; bytes_of(outcount, datatype)?];
            datatype.decode_external(outcount as usize, from, &mut native);
            datatype.unpack(native.as_ptr(), native.len(), outbuf.cast());
        }
        position.set((start + bytes) as i64);
    }
    Ok(())
}

/// `MPI_Pack_external_size`.
pub unsafe fn pack_external_size(
    _mpi: &Mpi,
    datarep: *const c_char,
    incount: i64,
    datatype: MPI_Datatype,
    size: IntegerOut,
) -> Result {
    // A datatype need not be committed for its size.
    let bytes = find(datatype)?.external_bytes(incount)?;
    ensure!(!size.is_null(), MPI_ERR_ARG, "size is null. Give the place of the result");
    // SAFETY: the caller promises the string, and a pointer that is valid for one value.
    unsafe {
        check_representation(datarep)?;
        size.set(bytes as i64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_numbers_are_the_same_in_binary128() {
        let one = 0x3fff_8000_0000_0000_0000;
        assert_eq!(quad_of_extended(one), 0x3fff << 112);
        let numbers = [
            0,
            one,
            1 << 79 | one,
            0x4000_c90f_daa2_2168_c235,
            0x0000_0000_0000_0000_0001,
            0x7fff_8000_0000_0000_0000,
            0x7ffe_ffff_ffff_ffff_ffff,
            0x0001_8000_0000_0000_0000,
        ];
        for bits in numbers {
            assert_eq!(extended_of_quad(quad_of_extended(bits)), bits, "{bits:#x}");
        }
    }

    #[test]
    fn numbers_of_binary128_are_rounded_to_the_nearest_even() {
        let one = 0x3fff << 112;
        let half = 1 << (FEWER_BITS - 1);
        let of = |bits: u128| extended_of_quad(bits) as u64;
        assert_eq!(of(one + half), 1 << 63);
        assert_eq!(of(one + half + 1), (1 << 63) + 1);
        assert_eq!(of(one + 3 * half), (1 << 63) + 2);
        let below_two = extended_of_quad((0x4000 << 112) - 1);
        assert_eq!(below_two, 0x4000_8000_0000_0000_0000, "the carry goes into the exponent");
        let nan = extended_of_quad((0x7fff << 112) + 1);
        assert_eq!(nan, 0x7fff_c000_0000_0000_0000, "it stays no number");
    }

    #[test]
    fn shorter_integers_keep_their_sign() {
        let long = Named::of(MPI_LONG).unwrap().parts().0;
        let mut external = [0; 8];
        let native: Vec<u8> = [-2i64, 0x1_0000_0005].iter().flat_map(|number| number.to_ne_bytes()).collect();
        encode(long, &native, &mut external);
        assert_eq!(external, [0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 5]);
        let mut again = [0; 16];
        decode(long, &external, &mut again);
        assert_eq!(again[..8], (-2i64).to_ne_bytes());
        assert_eq!(again[8..], 5i64.to_ne_bytes());
    }

    #[test]
    fn bytes_before_the_end_of_a_file_are_whole_elements() {
        let of = |handle, bytes| find(handle).unwrap().native_bytes_of(3, bytes);
        assert_eq!([0, 3, 4, 9, 12].map(|bytes| of(MPI_LONG, bytes)), [0, 0, 8, 16, 24]);
        assert_eq!([11, 12, 25, 36].map(|bytes| of(MPI_DOUBLE_INT, bytes)), [0, 12, 24, 36]);
    }
}
