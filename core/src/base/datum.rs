//! The arguments and results of remote procedures: values as bytes.

use super::element::{Element, bytes_of};

/// A value that travels as the argument or the result of a remote procedure: every [`Element`], `bool`,
/// vectors of elements, `String`, nothing, `Option` of these, and tuples of up to four of these; with the
/// feature `serde` of the crate `pelago` whatever serde can serialise, as `Serde`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent as an argument or a result of a remote procedure",
    note = "elements, `bool`, `String`, vectors of elements, and options and tuples of up to four of these \
            can; give the argument as an owned value (`&String`, not `&&str`), derive `pelago::Element` for \
            a `#[repr(C)]` struct, or wrap a type with serde's traits in `Serde` (feature `serde`)"
)]
pub trait Datum: Sized {
    /// Appends the bytes.
    fn encode(&self, bytes: &mut Vec<u8>);

    /// The value of these bytes; `None` if they make no sense.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

impl<T: Element> Datum for T {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(bytes_of(std::slice::from_ref(self)));
    }

    fn decode(bytes: &[u8]) -> Option<T> {
        // SAFETY: this many bytes are there, and any bytes are an element, as `Element` promises.
        (bytes.len() == size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
    }
}

impl Datum for () {
    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(bytes: &[u8]) -> Option<()> {
        bytes.is_empty().then_some(())
    }
}

impl Datum for bool {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self));
    }

    fn decode(bytes: &[u8]) -> Option<bool> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

/// The bytes of the elements; if these have none, their number.
impl<T: Element> Datum for Vec<T> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        match size_of::<T>() {
            0 => bytes.extend_from_slice(&(self.len() as u64).to_le_bytes()),
            _ => bytes.extend_from_slice(bytes_of(self)),
        }
    }

    fn decode(bytes: &[u8]) -> Option<Vec<T>> {
        let size = size_of::<T>();
        if size == 0 {
            let count = usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()?;
            let start = std::ptr::NonNull::<T>::dangling().as_ptr();
            // SAFETY: elements without bytes need no memory, and any bytes are one, as `Element` promises.
            return Some(unsafe { Vec::from_raw_parts(start, count, count) });
        }
        let is_whole = bytes.len().is_multiple_of(size);
        is_whole.then(|| bytes.chunks_exact(size).filter_map(T::decode).collect())
    }
}

impl Datum for String {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<String> {
        String::from_utf8(bytes.to_vec()).ok()
    }
}

/// A byte that says whether there is a value, and the value.
impl<T: Datum> Datum for Option<T> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.is_some().encode(bytes);
        if let Some(value) = self {
            value.encode(bytes);
        }
    }

    fn decode(bytes: &[u8]) -> Option<Option<T>> {
        match bytes {
            [0] => Some(None),
            [1, value @ ..] => T::decode(value).map(Some),
            _ => None,
        }
    }
}

macro_rules! tuples {
    ($($($name:ident)+;)+) => {
        $(impl<$($name: Datum),+> Datum for ($($name,)+) {
            #[allow(non_snake_case, reason = "the parts are called as their types")]
            fn encode(&self, bytes: &mut Vec<u8>) {
                let ($($name,)+) = self;
                $(encode_part($name, bytes);)+
            }

            fn decode(mut bytes: &[u8]) -> Option<Self> {
                let parts = ($(decode_part::<$name>(&mut bytes)?,)+);
                bytes.is_empty().then_some(parts)
            }
        })+
    };
}

tuples! {
    A B;
    A B C;
    A B C D;
}

/// Appends a part of a tuple, its length before it.
fn encode_part<T: Datum>(part: &T, bytes: &mut Vec<u8>) {
    let at = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    part.encode(bytes);
    // Data longer than a message are refused, long before this length is wrong.
    let length = (bytes.len() - at - 4) as u32;
    bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Takes a part of a tuple from the front.
fn decode_part<T: Datum>(bytes: &mut &[u8]) -> Option<T> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *bytes = rest;
    T::decode(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    fn goes_round<T: Datum + PartialEq + Debug>(value: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        assert_eq!(T::decode(&bytes).as_ref(), Some(value));
        bytes
    }

    #[test]
    fn every_kind_of_value_goes_there_and_back() {
        goes_round(&7u16);
        goes_round(&[1.5f64, -0.25]);
        goes_round(&());
        goes_round(&true);
        goes_round(&vec![3u32, 4]);
        goes_round(&Some(5u64));
        goes_round(&None::<String>);
        goes_round(&(Some(Some(1u8)), Some(None::<u8>)));
        goes_round(&Vec::<u64>::new());
        goes_round(&Vec::<[u8; 0]>::new());
        goes_round(&vec![[0u64; 0]; 5]);
        goes_round(&(vec![[0u8; 0]; 3], 1u8));
        goes_round(&"häuser".to_owned());
        goes_round(&(1u8, "two".to_owned()));
        goes_round(&(vec![1u16, 2], String::new(), 3u64, false));
    }

    #[test]
    fn bytes_that_make_no_sense_are_no_value() {
        assert!(u32::decode(&[1, 2, 3]).is_none());
        assert!(<()>::decode(&[0]).is_none());
        assert!(bool::decode(&[2]).is_none() && bool::decode(&[]).is_none());
        assert!(Vec::<u32>::decode(&[0; 6]).is_none());
        assert!(Vec::<[u32; 0]>::decode(&[]).is_none());
        for wrong in [&[][..], &[0, 0], &[1], &[1, 0, 0], &[2, 0]] {
            assert!(Option::<u8>::decode(wrong).is_none(), "{wrong:?}");
        }
        assert!(String::decode(&[0xFF, 0xFE]).is_none());
        let pair = goes_round(&(1u8, 2u32, vec![5u16]));
        for shorter in 0..pair.len() {
            assert!(<(u8, u32, Vec<u16>)>::decode(&pair[..shorter]).is_none(), "{shorter} bytes");
        }
        let longer = [&pair[..], &[0]].concat();
        assert!(<(u8, u32, Vec<u16>)>::decode(&longer).is_none());
        assert!(<(u8, u8)>::decode(&[0xFF, 0xFF, 0xFF, 0xFF, 0]).is_none());
    }
}
