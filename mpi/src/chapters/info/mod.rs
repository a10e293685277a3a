//! Info objects: keys and values, in the order in which they were set.
//!
//! Invariant: a lock is held only for a look at the entries or a change of them. Calls work at any time, also
//! before `MPI_Init` and after `MPI_Finalize`.

mod entries;
mod environment;
mod hints;

pub use entries::{Entries, key_of, value_of};
pub use hints::*;

use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::output;
use crate::table::{Kind, Table};
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

static INFOS: Table<Info> = Table::new(Kind::Info);

/// An info object.
#[derive(Debug, Default)]
pub struct Info(Mutex<Entries>);

impl Info {
    /// A copy of its entries.
    pub fn entries(&self) -> Entries {
        self.with(|entries| entries.clone())
    }

    fn with<T>(&self, work: impl FnOnce(&mut Entries) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The info object with a handle, to be read.
pub fn find(handle: MPI_Info) -> Result<Arc<Info>> {
    match handle {
        MPI_INFO_ENV => Ok(Arc::new(Info(Mutex::new(environment::entries(&environment::own_arguments()))))),
        _ => find_own(handle),
    }
}

/// The info object with a handle, to be changed.
fn find_own(handle: MPI_Info) -> Result<Arc<Info>> {
    INFOS.share(handle.0).ok_or_else(|| {
        let text = match handle {
            MPI_INFO_NULL => "the info is MPI_INFO_NULL",
            MPI_INFO_ENV => "MPI_INFO_ENV cannot be changed or freed. Change a duplicate of it",
            _ => "the info was freed, or never was one",
        };
        Error::new(MPI_ERR_INFO, text)
    })
}

/// The entries of an argument that may be `MPI_INFO_NULL`, which has none.
pub fn given(handle: MPI_Info) -> Result<Entries> {
    if handle == MPI_INFO_NULL { Ok(Entries::default()) } else { Ok(find(handle)?.entries()) }
}

/// Sets a value that a call returns in the program's info object.
pub fn put(handle: MPI_Info, key: &str, value: &str) -> Result {
    find_own(handle)?.with(|entries| entries.put(key, value));
    Ok(())
}

/// Gives the program a new info object.
///
/// # Safety
/// The place is null, or valid for one value.
pub unsafe fn give(entries: Entries, place: *mut MPI_Info) -> Result {
    let place = output("the place of the info", place)?;
    let handle = INFOS.insert(Arc::new(Info(Mutex::new(entries)))).map(MPI_Info);
    let handle =
        handle.ok_or_else(|| Error::new(MPI_ERR_NO_MEM, "there are too many info objects. Free some"))?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(handle) };
    Ok(())
}

/// `MPI_Info_create`.
pub unsafe fn info_create(info: *mut MPI_Info) -> Result {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { give(Entries::default(), info) }
}

/// `MPI_Info_create_env`: as `MPI_INFO_ENV`, with the command line of the arguments if there are any.
pub unsafe fn info_create_env(argc: c_int, argv: *mut *mut c_char, info: *mut MPI_Info) -> Result {
    ensure!(argc >= 0, MPI_ERR_ARG, "argc is {argc}, which is negative");
    let mut arguments = Vec::new();
    for i in 0..argc as usize {
        ensure!(!argv.is_null(), MPI_ERR_ARG, "argc is {argc}, and argv is null");
        // SAFETY: the caller's array has argc elements, which are strings.
        let argument = unsafe { argv.add(i).read() };
        if argument.is_null() {
            break;
        }
        // SAFETY: the caller's pointer is valid, as for the read above.
        arguments.push(unsafe { CStr::from_ptr(argument) }.to_string_lossy().into_owned());
    }
    if arguments.is_empty() {
        arguments = environment::own_arguments();
    }
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { give(environment::entries(&arguments), info) }
}

/// `MPI_Info_dup`.
pub unsafe fn info_dup(info: MPI_Info, newinfo: *mut MPI_Info) -> Result {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { give(find(info)?.entries(), newinfo) }
}

/// `MPI_Info_free`. Objects that were made with the info have copies of what they use.
pub unsafe fn info_free(info: *mut MPI_Info) -> Result {
    let place = output("info", info)?;
    // SAFETY: the caller's pointer is valid for one value.
    let handle = unsafe { place.read() };
    find_own(handle)?;
    INFOS.remove(handle.0);
    // SAFETY: the caller's pointer is valid, as for the read above.
    unsafe { place.write(MPI_INFO_NULL) };
    Ok(())
}

/// `MPI_Info_set`.
pub unsafe fn info_set(info: MPI_Info, key: *const c_char, value: *const c_char) -> Result {
    let info = find_own(info)?;
    // SAFETY: the caller's pointers are strings.
    let (key, value) = unsafe { (key_of(key)?, value_of(value)?) };
    info.with(|entries| entries.set(key, value));
    Ok(())
}

/// `MPI_Info_delete`.
pub unsafe fn info_delete(info: MPI_Info, key: *const c_char) -> Result {
    let info = find_own(info)?;
    // SAFETY: the caller's pointer is a string.
    let key = unsafe { key_of(key)? };
    let is_removed = info.with(|entries| entries.remove(key));
    ensure!(is_removed, MPI_ERR_INFO_NOKEY, "the info has no key {key:?}");
    Ok(())
}

/// The value of a key, which may be absent; tells the program whether it is there.
unsafe fn look_up(info: MPI_Info, key: *const c_char, flag: *mut c_int) -> Result<Option<Vec<u8>>> {
    let info = find(info)?;
    // SAFETY: the caller's pointer is a string.
    let key = unsafe { key_of(key)? };
    let value = info.with(|entries| entries.find(key).map(|value| value.to_bytes().to_vec()));
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("flag", flag)?.write(value.is_some().into()) };
    Ok(value)
}

/// Writes the part of a text that there is room for, and its end.
///
/// # Safety
/// The place has this room, and the room is not 0.
unsafe fn write_some(text: &[u8], room: usize, place: *mut c_char) {
    let bytes = text.len().min(room - 1);
    // SAFETY: the caller promises the room.
    unsafe {
        place.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), bytes);
        place.add(bytes).write(0);
    }
}

/// `MPI_Info_get`: `valuelen` does not count the end of the string.
pub unsafe fn info_get(
    info: MPI_Info,
    key: *const c_char,
    valuelen: c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> Result {
    ensure!(valuelen >= 0, MPI_ERR_ARG, "valuelen is {valuelen}, which is negative");
    let place = output("value", value)?;
    // SAFETY: the caller's pointers are valid, and the place has room for valuelen characters and the end.
    unsafe {
        if let Some(text) = look_up(info, key, flag)? {
            write_some(&text, valuelen as usize + 1, place);
        }
    }
    Ok(())
}

/// `MPI_Info_get_string`: `buflen` counts the end of the string.
pub unsafe fn info_get_string(
    info: MPI_Info,
    key: *const c_char,
    buflen: *mut c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> Result {
    let length = output("buflen", buflen)?;
    // SAFETY: the caller's pointers are valid, and the place has room for the characters that it says.
    unsafe {
        let room = length.read();
        ensure!(room >= 0, MPI_ERR_ARG, "buflen is {room}, which is negative");
        ensure!(room == 0 || !value.is_null(), MPI_ERR_ARG, "buflen is {room}, and value is null");
        if let Some(text) = look_up(info, key, flag)? {
            length.write(text.len() as c_int + 1);
            if room > 0 {
                write_some(&text, room as usize, value);
            }
        }
    }
    Ok(())
}

/// `MPI_Info_get_valuelen`.
pub unsafe fn info_get_valuelen(
    info: MPI_Info,
    key: *const c_char,
    valuelen: *mut c_int,
    flag: *mut c_int,
) -> Result {
    let place = output("valuelen", valuelen)?;
    // SAFETY: the caller's pointers are valid.
    unsafe {
        if let Some(text) = look_up(info, key, flag)? {
            place.write(text.len() as c_int);
        }
    }
    Ok(())
}

/// `MPI_Info_get_nkeys`.
pub unsafe fn info_get_nkeys(info: MPI_Info, nkeys: *mut c_int) -> Result {
    let n = find(info)?.with(|entries| entries.len());
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("nkeys", nkeys)?.write(n as c_int) };
    Ok(())
}

/// `MPI_Info_get_nthkey`.
pub unsafe fn info_get_nthkey(info: MPI_Info, n: c_int, key: *mut c_char) -> Result {
    let (info, place) = (find(info)?, output("key", key)?);
    let keys = info.entries();
    let Some(name) = usize::try_from(n).ok().and_then(|n| keys.key(n)) else {
        let text = format!("n is {n}, and the info has {} keys. They are numbered from 0", keys.len());
        return Err(Error::new(MPI_ERR_ARG, text));
    };
    // SAFETY: the caller's place has room for MPI_MAX_INFO_KEY characters, which a key keeps within.
    unsafe { write_some(name.to_bytes(), MPI_MAX_INFO_KEY as usize, place) };
    Ok(())
}
