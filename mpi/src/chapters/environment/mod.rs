//! Error classes and codes, and what else is asked of the environment.
//!
//! Invariant: an error code of the standard is its class. Classes and codes that the program adds have
//! numbers above `MPI_ERR_LASTCODE`, and `LAST_USED_CODE` is the highest number in use.

mod binary;
mod classes;
mod hardware;

pub use binary::*;
pub use hardware::*;

use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure, last_text};
use crate::chapters::library::output;
use crate::chapters::setup::write_text;
use classes::meaning;
use pelago_fabric::sync::{AtomicI32, Ordering};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The value of the attribute `MPI_LASTUSEDCODE`.
pub static LAST_USED_CODE: AtomicI32 = AtomicI32::new(MPI_ERR_LASTCODE);

/// A class or code that the program has added.
struct Added {
    /// Its class; itself if it is one.
    class: c_int,
    text: Option<String>,
}

static ADDED: Mutex<BTreeMap<c_int, Added>> = Mutex::new(BTreeMap::new());

fn added() -> MutexGuard<'static, BTreeMap<c_int, Added>> {
    ADDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The class of a code.
fn class_of(code: c_int) -> Result<c_int> {
    if meaning(code).is_some() {
        return Ok(code);
    }
    added().get(&code).map(|of| of.class).ok_or_else(|| unknown(code))
}

fn unknown(code: c_int) -> Error {
    let text = format!("{code} is no error code of the standard, and the program has added none with it");
    Error::new(MPI_ERR_ARG, text)
}

/// `MPI_Error_class`.
pub unsafe fn error_class(errorcode: c_int, errorclass: *mut c_int) -> Result {
    let class = class_of(errorcode)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("errorclass", errorclass)?.write(class) };
    Ok(())
}

/// `MPI_Error_string`: the meaning of the class, and the last error with this code that this thread has seen,
/// if it fits in.
pub unsafe fn error_string(errorcode: c_int, string: *mut c_char, resultlen: *mut c_int) -> Result {
    let text = match meaning(errorcode) {
        Some(meaning) => with_detail(meaning, last_text(errorcode)),
        None => added().get(&errorcode).ok_or_else(|| unknown(errorcode))?.text.clone().unwrap_or_default(),
    };
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { write_text(&text, MPI_MAX_ERROR_STRING, string, resultlen) }
}

fn with_detail(meaning: &str, detail: Option<String>) -> String {
    let whole = detail.map(|detail| format!("{meaning}. {detail}"));
    whole.filter(|whole| whole.len() < MPI_MAX_ERROR_STRING as usize).unwrap_or_else(|| meaning.to_owned())
}

/// Adds a code of a class, or a class of its own.
fn add(class: Option<c_int>) -> Result<c_int> {
    let mut added = added();
    let number = added.last_key_value().map_or(MPI_ERR_LASTCODE, |(&last, _)| last).checked_add(1);
    let number = number.ok_or_else(|| Error::new(MPI_ERR_OTHER, "there are too many error codes"))?;
    added.insert(number, Added { class: class.unwrap_or(number), text: None });
    LAST_USED_CODE.store(number, Ordering::Relaxed);
    Ok(number)
}

/// `MPI_Add_error_class`.
pub unsafe fn add_error_class(errorclass: *mut c_int) -> Result {
    let place = output("errorclass", errorclass)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(add(None)?) };
    Ok(())
}

/// `MPI_Add_error_code`: also for classes of the standard.
pub unsafe fn add_error_code(errorclass: c_int, errorcode: *mut c_int) -> Result {
    let place = output("errorcode", errorcode)?;
    ensure!(
        class_of(errorclass).is_ok_and(|class| class == errorclass),
        MPI_ERR_ARG,
        "{errorclass} is no error class. Add one, or use one of the standard"
    );
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(add(Some(errorclass))?) };
    Ok(())
}

/// `MPI_Add_error_string`: replaces an earlier one.
pub unsafe fn add_error_string(errorcode: c_int, string: *const c_char) -> Result {
    ensure!(!string.is_null(), MPI_ERR_ARG, "the string is null");
    // SAFETY: the caller's pointer is that of a string.
    let text = unsafe { CStr::from_ptr(string) }.to_string_lossy();
    ensure!(
        text.len() < MPI_MAX_ERROR_STRING as usize,
        MPI_ERR_ARG,
        "the string has {} bytes. It may have {}",
        text.len(),
        MPI_MAX_ERROR_STRING - 1
    );
    change(errorcode, |of| of.text = Some(text.into_owned()))
}

/// Changes a class or code that the program has added.
fn change(code: c_int, change: impl FnOnce(&mut Added)) -> Result {
    ensure!(
        code > MPI_ERR_LASTCODE,
        MPI_ERR_ARG,
        "{code} is an error code of the standard, which cannot be changed"
    );
    added().get_mut(&code).map(change).ok_or_else(|| unknown(code))
}

/// `MPI_Remove_error_string`.
pub unsafe fn remove_error_string(errorcode: c_int) -> Result {
    let mut had_one = false;
    change(errorcode, |of| had_one = of.text.take().is_some())?;
    ensure!(had_one, MPI_ERR_ARG, "error code {errorcode} has no string");
    Ok(())
}

/// `MPI_Remove_error_code`.
pub unsafe fn remove_error_code(errorcode: c_int) -> Result {
    let mut is_class = false;
    change(errorcode, |of| is_class = of.class == errorcode)?;
    ensure!(!is_class, MPI_ERR_ARG, "{errorcode} is an error class. Remove it by MPI_Remove_error_class");
    ensure!(
        added().get(&errorcode).is_none_or(|of| of.text.is_none()),
        MPI_ERR_ARG,
        "error code {errorcode} has a string. Remove it first by MPI_Remove_error_string"
    );
    remove(errorcode);
    Ok(())
}

/// `MPI_Remove_error_class`: a class without codes.
pub unsafe fn remove_error_class(errorclass: c_int) -> Result {
    let mut is_class = false;
    change(errorclass, |of| is_class = of.class == errorclass)?;
    ensure!(is_class, MPI_ERR_ARG, "{errorclass} is an error code. Remove it by MPI_Remove_error_code");
    let code =
        added().iter().find(|(code, of)| of.class == errorclass && **code != errorclass).map(|(&c, _)| c);
    if let Some(code) = code {
        let text = format!("error class {errorclass} has the code {code}. Remove its codes first");
        return Err(Error::new(MPI_ERR_ARG, text));
    }
    remove(errorclass);
    Ok(())
}

/// Removes a class or code, with its string.
fn remove(code: c_int) {
    let mut added = added();
    added.remove(&code);
    let last = added.last_key_value().map_or(MPI_ERR_LASTCODE, |(&last, _)| last);
    LAST_USED_CODE.store(last, Ordering::Relaxed);
}

/// `MPI_Pcontrol`: a tool that stands before this library replaces it; here it does nothing. In C it has
/// more arguments, which a function that does not read them may leave out, by the calling conventions of
/// x86-64 and of Arm.
pub unsafe fn pcontrol(_level: c_int) -> Result {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_appended_where_they_fit() {
        let long = "x".repeat(MPI_MAX_ERROR_STRING as usize);
        assert_eq!(with_detail("a", None), "a");
        assert_eq!(with_detail("a", Some("b".into())), "a. b");
        assert_eq!(with_detail("a", Some(long)), "a");
    }

    /// All of them change the same table, so they are one test.
    #[test]
    fn classes_and_codes_can_be_added_and_removed() {
        let code = |result: Result| result.map_err(|error| error.code());
        let class = add(None).unwrap();
        let (mut of_class, mut of_standard) = (0, 0);
        // SAFETY: the places are valid, and the strings live through the calls.
        unsafe {
            add_error_code(class, &raw mut of_class).unwrap();
            add_error_code(MPI_ERR_RANK, &raw mut of_standard).unwrap();
            assert_eq!((class_of(of_class).unwrap(), class_of(of_standard).unwrap()), (class, MPI_ERR_RANK));
            assert_eq!(LAST_USED_CODE.load(Ordering::Relaxed), of_standard);
            assert_eq!(code(add_error_code(of_class, &raw mut of_class)), Err(MPI_ERR_ARG));
            assert_eq!(code(add_error_string(MPI_ERR_RANK, c"mine".as_ptr())), Err(MPI_ERR_ARG));
            add_error_string(of_class, c"mine".as_ptr()).unwrap();
            assert_eq!(code(remove_error_class(class)), Err(MPI_ERR_ARG), "it has a code");
            assert_eq!(code(remove_error_code(of_class)), Err(MPI_ERR_ARG), "it has a string");
            assert_eq!(code(remove_error_code(class)), Err(MPI_ERR_ARG), "it is a class");
            assert_eq!(code(remove_error_string(of_standard)), Err(MPI_ERR_ARG), "it has none");
            remove_error_string(of_class).unwrap();
            remove_error_code(of_class).unwrap();
            remove_error_class(class).unwrap();
            remove_error_code(of_standard).unwrap();
        }
        assert!(class_of(class).is_err() && class_of(of_class).is_err());
        assert_eq!(LAST_USED_CODE.load(Ordering::Relaxed), MPI_ERR_LASTCODE);
    }
}
