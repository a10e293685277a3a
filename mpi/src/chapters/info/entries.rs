//! Keys and values in the order in which the program has set them.
//!
//! Invariant: no key occurs twice, and keys and values keep within the limits of the standard.

use crate::abi::*;
use crate::chapters::error::{Result, ensure};
use std::ffi::{CStr, CString};

/// Keys and their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries(Vec<(CString, CString)>);

impl Entries {
    /// Entries with these keys and values, of which none has a zero byte.
    pub fn of(pairs: &[(&str, &str)]) -> Entries {
        let mut entries = Entries::default();
        pairs.iter().for_each(|(key, value)| entries.put(key, value));
        entries
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn key(&self, position: usize) -> Option<&CStr> {
        self.0.get(position).map(|(key, _)| key.as_c_str())
    }

    /// The value of a key, byte by byte.
    pub fn find(&self, key: &CStr) -> Option<&CStr> {
        self.0.iter().find(|(of, _)| of.as_c_str() == key).map(|(_, value)| value.as_c_str())
    }

    /// The value of a key as text.
    pub fn get(&self, key: &str) -> Option<String> {
        let (_, value) = self.0.iter().find(|(of, _)| of.as_bytes() == key.as_bytes())?;
        Some(value.to_string_lossy().into_owned())
    }

    /// Sets the value of a key. A key that exists keeps its place.
    pub fn set(&mut self, key: &CStr, value: &CStr) {
        match self.0.iter_mut().find(|(of, _)| of.as_c_str() == key) {
            Some((_, old)) => *old = value.to_owned(),
            None => self.0.push((key.to_owned(), value.to_owned())),
        }
    }

    /// Sets the value of a key as text, cut off at a zero byte and at the limit of the standard.
    pub fn put(&mut self, key: &str, value: &str) {
        let room = value.len().min(MPI_MAX_INFO_VAL as usize - 1);
        let end = (0..=room).rev().find(|&end| value.is_char_boundary(end)).unwrap_or(0);
        let text = |text: &str| CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default();
        self.set(&text(key), &text(&value[..end]));
    }

    /// Whether there was such a key.
    pub fn remove(&mut self, key: &CStr) -> bool {
        let position = self.0.iter().position(|(of, _)| of.as_c_str() == key);
        position.map(|position| self.0.remove(position)).is_some()
    }
}

/// The key that a program passes.
///
/// # Safety
/// It is null, or a string.
pub unsafe fn key_of<'a>(key: *const c_char) -> Result<&'a CStr> {
    ensure!(!key.is_null(), MPI_ERR_INFO_KEY, "the key is null");
    // SAFETY: the caller promises that it is a string.
    let key = unsafe { CStr::from_ptr(key) };
    let bytes = key.count_bytes();
    ensure!(bytes > 0, MPI_ERR_INFO_KEY, "the key is empty");
    ensure!(
        bytes < MPI_MAX_INFO_KEY as usize,
        MPI_ERR_INFO_KEY,
        "the key has {bytes} bytes. It may have {}, as MPI_MAX_INFO_KEY counts the end as well",
        MPI_MAX_INFO_KEY - 1
    );
    Ok(key)
}

/// The value that a program passes.
///
/// # Safety
/// It is null, or a string.
pub unsafe fn value_of<'a>(value: *const c_char) -> Result<&'a CStr> {
    ensure!(!value.is_null(), MPI_ERR_INFO_VALUE, "the value is null");
    // SAFETY: the caller promises that it is a string.
    let value = unsafe { CStr::from_ptr(value) };
    let bytes = value.count_bytes();
    ensure!(
        bytes < MPI_MAX_INFO_VAL as usize,
        MPI_ERR_INFO_VALUE,
        "the value has {bytes} bytes. It may have {}, as MPI_MAX_INFO_VAL counts the end as well",
        MPI_MAX_INFO_VAL - 1
    );
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A list of pairs is the model.
        #[test]
        fn entries_keep_their_order_and_their_last_values(
            changes in prop::collection::vec((0u8..6, prop::option::of("[a-z]{0,4}")), 0..40)
        ) {
            let (mut entries, mut model) = (Entries::default(), Vec::<(String, String)>::new());
            for (key, value) in changes {
                let key = format!("key {key}");
                let name = CString::new(key.clone()).unwrap();
                let place = model.iter().position(|(of, _)| *of == key);
                match (value, place) {
                    (Some(value), None) => {
                        entries.put(&key, &value);
                        model.push((key, value));
                    }
                    (Some(value), Some(place)) => {
                        entries.put(&key, &value);
                        model[place].1 = value;
                    }
                    (None, place) => {
                        prop_assert_eq!(entries.remove(&name), place.is_some());
                        model.retain(|(of, _)| *of != key);
                    }
                }
            }
            prop_assert_eq!(entries.len(), model.len());
            for (i, (key, value)) in model.iter().enumerate() {
                prop_assert_eq!(entries.key(i).unwrap().to_str().unwrap(), key);
                let found = entries.get(key);
                prop_assert_eq!(found.as_ref(), Some(value));
            }
            prop_assert_eq!(entries.key(model.len()), None);
        }
    }

    #[test]
    fn values_are_cut_off_at_the_limit_and_at_a_zero_byte() {
        let mut entries = Entries::default();
        entries.put("long", &"x".repeat(5000));
        entries.put("zero", "a\0b");
        assert_eq!(entries.get("long").map(|value| value.len()), Some(MPI_MAX_INFO_VAL as usize - 1));
        assert_eq!(entries.get("zero").as_deref(), Some("a"));
    }

    #[test]
    fn keys_and_values_have_limits() {
        let text = |n: usize| CString::new("k".repeat(n)).unwrap();
        // SAFETY: the strings live through the calls, or the pointers are null.
        unsafe {
            let key = |n: usize| key_of(text(n).as_ptr()).map(CStr::count_bytes).map_err(|e| e.code());
            assert_eq!((key(0), key(255), key(256)), (Err(MPI_ERR_INFO_KEY), Ok(255), Err(MPI_ERR_INFO_KEY)));
            let value = |n: usize| value_of(text(n).as_ptr()).map(CStr::count_bytes).map_err(|e| e.code());
            assert_eq!((value(0), value(1023)), (Ok(0), Ok(1023)));
            assert_eq!(value(1024), Err(MPI_ERR_INFO_VALUE));
            assert!(key_of(std::ptr::null()).is_err() && value_of(std::ptr::null()).is_err());
        }
    }
}
