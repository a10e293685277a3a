//! Control variables: the settings of the runtime, as texts.
//!
//! Invariant: a program may change a setting until this process joins its job, which reads the settings.

use super::{Handles, Reply, at, look_up, tell, tell_text, wanted};
use crate::abi::*;
use crate::chapters::library;
use pelago_boot::{SettingInfo, Settings, user_settings};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The settings that are for users.
static SETTINGS: LazyLock<Vec<&SettingInfo>> = LazyLock::new(user_settings);

/// The settings that the program has changed, with their values.
static CHANGED: Mutex<BTreeMap<&'static str, String>> = Mutex::new(BTreeMap::new());

/// Handles with the index of their variables.
static HANDLES: Handles<usize> = Handles::new();

/// The number of characters that a variable has room for, its end included.
const ROOM: usize = 4096;

/// The settings that the program has changed.
pub fn changed_settings() -> Vec<(&'static str, String)> {
    let changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
    changed.iter().map(|(&name, value)| (name, value.clone())).collect()
}

/// The number of control variables.
pub fn control_variables() -> usize {
    SETTINGS.len()
}

fn value(row: &SettingInfo) -> String {
    let changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner).get(row.name).cloned();
    changed.or_else(|| std::env::var(row.name).ok()).unwrap_or_else(|| row.default.to_owned())
}

/// `MPI_T_cvar_get_num`.
pub unsafe fn t_cvar_get_num(num_cvar: *mut c_int) -> Reply {
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { wanted(num_cvar)?.write(SETTINGS.len() as c_int) };
    Ok(())
}

/// `MPI_T_cvar_get_index`.
pub unsafe fn t_cvar_get_index(name: *const c_char, cvar_index: *mut c_int) -> Reply {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { look_up(name, SETTINGS.iter().map(|row| row.name), cvar_index) }
}

/// `MPI_T_cvar_get_info`.
pub unsafe fn t_cvar_get_info(
    cvar_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity: *mut c_int,
    datatype: *mut MPI_Datatype,
    enumtype: *mut MPI_T_enum,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
    scope: *mut c_int,
) -> Reply {
    let row = at(&SETTINGS, cvar_index)?;
    // SAFETY: the caller's pointers are null or valid, and its texts have the room that it says.
    unsafe {
        tell_text(row.name, name, name_len);
        tell(verbosity, MPI_T_VERBOSITY_USER_BASIC);
        tell(datatype, MPI_CHAR);
        tell(enumtype, MPI_T_ENUM_NULL);
        tell_text(&format!("{} (accepts {})", row.help, row.accepts), desc, desc_len);
        tell(bind, MPI_T_BIND_NO_OBJECT);
        tell(scope, MPI_T_SCOPE_ALL_EQ);
    }
    Ok(())
}

/// `MPI_T_cvar_handle_alloc`. Settings belong to no object.
pub unsafe fn t_cvar_handle_alloc(
    cvar_index: c_int,
    _obj_handle: *mut c_void,
    handle: *mut MPI_T_cvar_handle,
    count: *mut c_int,
) -> Reply {
    at(&SETTINGS, cvar_index)?;
    let (handle, count) = (wanted(handle)?, wanted(count)?);
    // SAFETY: the caller's pointers are valid for one value each.
    unsafe {
        handle.write(MPI_T_cvar_handle(HANDLES.insert(cvar_index as usize)));
        count.write(ROOM as c_int);
    }
    Ok(())
}

/// `MPI_T_cvar_handle_free`.
pub unsafe fn t_cvar_handle_free(handle: *mut MPI_T_cvar_handle) -> Reply {
    let place = wanted(handle)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe {
        HANDLES.remove(place.read().0).ok_or(MPI_T_ERR_INVALID_HANDLE)?;
        place.write(MPI_T_CVAR_HANDLE_NULL);
    }
    Ok(())
}

fn row_of(handle: MPI_T_cvar_handle) -> Reply<&'static SettingInfo> {
    let index = HANDLES.with(handle.0, |index| *index).ok_or(MPI_T_ERR_INVALID_HANDLE)?;
    Ok(SETTINGS[index])
}

/// `MPI_T_cvar_read`.
pub unsafe fn t_cvar_read(handle: MPI_T_cvar_handle, buf: *mut c_void) -> Reply {
    let (row, place) = (row_of(handle)?, wanted(buf)?);
    let mut length = ROOM as c_int;
    // SAFETY: the caller's buffer has room for the characters that the handle has told.
    unsafe { tell_text(&value(row), place.cast(), &raw mut length) };
    Ok(())
}

/// `MPI_T_cvar_write`: before the process joins its job.
pub unsafe fn t_cvar_write(handle: MPI_T_cvar_handle, buf: *const c_void) -> Reply {
    let row = row_of(handle)?;
    if buf.is_null() {
        return Err(MPI_T_ERR_INVALID);
    }
    if library::has_opened() {
        return Err(MPI_T_ERR_CVAR_SET_NEVER);
    }
    // SAFETY: the caller's buffer is that of a string.
    let text = unsafe { CStr::from_ptr(buf.cast()) }.to_str().map_err(|_| MPI_T_ERR_INVALID)?;
    let mut changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
    if text.is_empty() {
        // A setting without a value reads as this text.
        changed.remove(row.name);
        return Ok(());
    }
    Settings::default().set(row.name, text).map_err(|_| MPI_T_ERR_INVALID)?;
    changed.insert(row.name, text.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    #[test]
    fn settings_can_be_read_and_changed_before_the_start() {
        let position = SETTINGS.iter().position(|row| row.name == "PELAGO_SPINS").unwrap();
        let (mut handle, mut count) = (MPI_T_CVAR_HANDLE_NULL, 0);
        let mut text = vec![0u8; ROOM];
        // SAFETY: the places are valid, and texts live through the calls.
        unsafe {
            t_cvar_handle_alloc(position as c_int, null_mut(), &raw mut handle, &raw mut count).unwrap();
            assert_eq!(count as usize, ROOM);
            let mut read = || {
                t_cvar_read(handle, text.as_mut_ptr().cast()).unwrap();
                CStr::from_bytes_until_nul(&text).unwrap().to_str().unwrap().to_owned()
            };
            assert_eq!(read(), "auto");
            t_cvar_write(handle, c"77".as_ptr().cast()).unwrap();
            assert_eq!(t_cvar_write(handle, c"many".as_ptr().cast()), Err(MPI_T_ERR_INVALID));
            assert_eq!((read(), changed_settings()), ("77".into(), vec![("PELAGO_SPINS", "77".into())]));
            t_cvar_write(handle, c"".as_ptr().cast()).unwrap();
            assert_eq!((read(), changed_settings()), ("auto".into(), vec![]));
            t_cvar_handle_free(&raw mut handle).unwrap();
            assert_eq!(handle, MPI_T_CVAR_HANDLE_NULL);
            assert_eq!(t_cvar_handle_free(&raw mut handle), Err(MPI_T_ERR_INVALID_HANDLE));
        }
    }
}
