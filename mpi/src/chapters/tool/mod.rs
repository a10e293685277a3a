//! The tools interface: variables that control the runtime or measure it, in categories.
//!
//! Invariant: calls return codes, and no error handler gets them. They work at any time between
//! initialisation and end of the tools interface, also before `MPI_Init` and after `MPI_Finalize`.

mod category;
mod control;
mod event;
mod performance;

pub use category::*;
pub use control::*;
pub use event::*;
pub use performance::*;

use crate::abi::*;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

/// The outcome of a call: a value, or an error code.
pub type Reply<T = ()> = Result<T, c_int>;

/// The number of initialisations minus ends.
static COUNT: Mutex<usize> = Mutex::new(0);

/// Fails unless the interface is initialised.
pub fn initialized() -> Reply {
    let count = *COUNT.lock().unwrap_or_else(PoisonError::into_inner);
    if count > 0 { Ok(()) } else { Err(MPI_T_ERR_NOT_INITIALIZED) }
}

/// `MPI_T_init_thread`: every level is provided.
pub unsafe fn t_init_thread(required: c_int, provided: *mut c_int) -> Reply {
    let levels = [MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE];
    if !levels.contains(&required) || provided.is_null() {
        return Err(MPI_T_ERR_INVALID);
    }
    *COUNT.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { provided.write(required) };
    Ok(())
}

/// `MPI_T_finalize`: the last one ends the interface.
pub unsafe fn t_finalize() -> Reply {
    let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
    *count = count.checked_sub(1).ok_or(MPI_T_ERR_NOT_INITIALIZED)?;
    Ok(())
}

/// Tells the program a value, unless it is not interested.
///
/// # Safety
/// The place is null, or valid for one value.
unsafe fn tell<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller promises that it is valid.
        unsafe { place.write(value) };
    }
}

/// The place of a result that the program must give.
fn wanted<T>(place: *mut T) -> Reply<*mut T> {
    if place.is_null() { Err(MPI_T_ERR_INVALID) } else { Ok(place) }
}

/// Tells the program the part of a text that there is room for, and the length of the whole text with its
/// end.
///
/// # Safety
/// The length is null, or says how many characters there is room for at the place, unless this is null.
unsafe fn tell_text(text: &str, place: *mut c_char, length: *mut c_int) {
    if length.is_null() {
        return;
    }
    // SAFETY: the caller promises the room.
    unsafe {
        let room = length.read();
        if room > 0 && !place.is_null() {
            let bytes = text.len().min(room as usize - 1);
            place.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), bytes);
            place.add(bytes).write(0);
        }
        length.write(text.len() as c_int + 1);
    }
}

/// The position of the name that a program passes.
///
/// # Safety
/// The name is null, or a string; the place is null, or valid for one value.
unsafe fn look_up<'a>(
    name: *const c_char,
    mut names: impl Iterator<Item = &'a str>,
    place: *mut c_int,
) -> Reply {
    if name.is_null() || place.is_null() {
        return Err(MPI_T_ERR_INVALID);
    }
    // SAFETY: the caller promises a string.
    let name = unsafe { CStr::from_ptr(name) };
    let position = names.position(|known| known.as_bytes() == name.to_bytes());
    let position = position.ok_or(MPI_T_ERR_INVALID_NAME)?;
    // SAFETY: the caller promises a valid place.
    unsafe { place.write(position as c_int) };
    Ok(())
}

/// The element with an index that the program passes.
fn at<T>(all: &[T], index: c_int) -> Reply<&T> {
    usize::try_from(index).ok().and_then(|index| all.get(index)).ok_or(MPI_T_ERR_INVALID_INDEX)
}

/// Objects that the program knows by numbers. No number is used twice.
struct Handles<T>(Mutex<(usize, BTreeMap<usize, T>)>);

impl<T> Handles<T> {
    const fn new() -> Handles<T> {
        Handles(Mutex::new((0x10, BTreeMap::new())))
    }

    fn insert(&self, value: T) -> usize {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.0 += 1;
        let number = all.0;
        all.1.insert(number, value);
        number
    }

    fn remove(&self, number: usize) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&number)
    }

    fn with<R>(&self, number: usize, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.get_mut(&number).map(work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    #[test]
    fn texts_are_cut_off_and_their_whole_length_is_told() {
        let tell = |room: c_int| {
            let (mut place, mut length) = ([b'#' as c_char; 8], room);
            // SAFETY: the place has more room than it says.
            unsafe { tell_text("abcdef", place.as_mut_ptr(), &raw mut length) };
            let text: String = place.iter().map(|&c| if c == 0 { '.' } else { c as u8 as char }).collect();
            (text, length)
        };
        assert_eq!(tell(0), ("########".to_owned(), 7));
        assert_eq!(tell(1), (".#######".to_owned(), 7));
        assert_eq!(tell(4), ("abc.####".to_owned(), 7));
        assert_eq!(tell(7), ("abcdef.#".to_owned(), 7));
        let mut length = 5;
        // SAFETY: there is no place, and no length.
        unsafe {
            tell_text("ab", null_mut(), &raw mut length);
            tell_text("ab", null_mut(), null_mut());
        }
        assert_eq!(length, 3);
    }

    #[test]
    fn initialisations_are_counted() {
        let mut provided = 0;
        // SAFETY: the place is valid, or null.
        unsafe {
            assert_eq!((initialized(), t_finalize()), (Err(MPI_T_ERR_NOT_INITIALIZED), initialized()));
            t_init_thread(MPI_THREAD_MULTIPLE, &raw mut provided).unwrap();
            t_init_thread(MPI_THREAD_SINGLE, &raw mut provided).unwrap();
            t_finalize().unwrap();
            assert_eq!((initialized(), provided), (Ok(()), MPI_THREAD_SINGLE));
            t_finalize().unwrap();
            assert_eq!(t_init_thread(7, &raw mut provided), Err(MPI_T_ERR_INVALID));
        }
        assert!(initialized().is_err());
    }
}
