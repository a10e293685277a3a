//! The shared library `libfabric.so.1`, opened at run time, or a library in its place that is part of the
//! program.
//!
//! Invariant: a library is opened once a process and never closed, since its providers keep threads and
//! handlers of their own; so a reference to it lives for ever. Functions are taken in the default version of
//! their symbols, the newest that the library has: its structures are those of version 1.17 with more behind
//! them, and `fi_getinfo` answers as the API version that it is asked for. A library older than that is
//! refused.

use super::handlers::keeping_handlers;
use super::sys::{FI_VERSION, fi_fabric_attr, fi_info, fi_type, fid_fabric};
use crate::types::{FabricError, Pe};
use libc::{c_char, c_int, c_void};
use std::ffi::{CStr, CString};
use std::sync::{Mutex, PoisonError};
use thiserror::Error;

/// The version of the interface that is spoken here.
pub const API_VERSION: u32 = FI_VERSION(1, 17);

/// The name that is looked for unless a path is given.
const DEFAULT_NAME: &str = "libfabric.so.1";

/// The libraries of this process.
static OPEN: Mutex<Vec<&Library>> = Mutex::new(Vec::new());

/// What libfabric refused, outside of any PE.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{operation} failed: {reason}. {remedy}")]
pub struct OfiError {
    /// What was attempted.
    pub operation: String,
    /// Why it failed.
    pub reason: String,
    /// What the user can do.
    pub remedy: &'static str,
}

impl OfiError {
    /// The same as the error of a PE.
    pub fn at(self, pe: Pe) -> FabricError {
        FabricError::System { pe, operation: self.operation, reason: self.reason, remedy: self.remedy }
    }
}

/// The functions that libfabric exports; all others hang in tables of its objects (`sys`).
#[derive(Clone, Copy)]
pub struct Functions {
    /// The version of the library: `fi_version(3)`.
    pub fi_version: unsafe extern "C" fn() -> u32,
    /// Lists what providers offer: `fi_getinfo(3)`.
    pub fi_getinfo: unsafe extern "C" fn(
        version: u32,
        node: *const c_char,
        service: *const c_char,
        flags: u64,
        hints: *const fi_info,
        info: *mut *mut fi_info,
    ) -> c_int,
    /// Frees a list.
    pub fi_freeinfo: unsafe extern "C" fn(info: *mut fi_info),
    /// Copies an entry of a list, without its successors; null gives an empty one.
    pub fi_dupinfo: unsafe extern "C" fn(info: *const fi_info) -> *mut fi_info,
    /// Opens a fabric: `fi_fabric(3)`.
    pub fi_fabric: unsafe extern "C" fn(
        attr: *mut fi_fabric_attr,
        fabric: *mut *mut fid_fabric,
        context: *mut c_void,
    ) -> c_int,
    /// What an error number means: `fi_strerror(3)`.
    pub fi_strerror: unsafe extern "C" fn(error: c_int) -> *const c_char,
    /// Writes a value as text: `fi_tostr_r(3)`.
    pub fi_tostr_r: unsafe extern "C" fn(
        buffer: *mut c_char,
        bytes: usize,
        data: *const c_void,
        kind: fi_type,
    ) -> *mut c_char,
}

/// A library that is open: libfabric, or what is used in its place.
pub struct Library {
    path: String,
    version: u32,
    /// What it exports.
    pub functions: Functions,
}

impl Library {
    /// Opens the library at `path`, or wherever the system finds `libfabric.so.1`; the same one again if this
    /// process has it already.
    ///
    /// # Errors
    /// If it is not there, cannot be loaded, is another library or an old one. The error says which and what
    /// to do.
    pub fn open(path: Option<&str>) -> Result<&'static Library, OfiError> {
        let path = path.unwrap_or(DEFAULT_NAME);
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = open.iter().find(|library| library.path == path) {
            return Ok(library);
        }
        let library: &Library = Box::leak(Box::new(keeping_handlers(|| load(path))?));
        open.push(library);
        Ok(library)
    }

    /// Makes a library that is part of this program known by a name. [`Library::open`] takes the name from
    /// then on in place of a path, and so does `PELAGO_OFI_LIBRARY`. The first library of a name stays.
    ///
    /// # Safety
    /// The functions keep what libfabric's manual pages promise.
    pub unsafe fn built_in(name: &str, functions: Functions) -> &'static Library {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = open.iter().find(|library| library.path == name) {
            return library;
        }
        // SAFETY: the caller promises the function, which has no arguments and no preconditions.
        let version = unsafe { (functions.fi_version)() };
        assert!(version >= API_VERSION, "a library for tests speaks version 1.17 or newer");
        let library: &Library = Box::leak(Box::new(Library { path: name.to_owned(), version, functions }));
        open.push(library);
        library
    }

    /// Where it was looked for: the path given, or the name.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The version of the library: major and minor number.
    pub fn version(&self) -> (u32, u32) {
        parts(self.version)
    }

    /// What an error number means; the sign does not matter.
    pub fn strerror(&self, code: i64) -> String {
        let code = c_int::try_from(code.unsigned_abs()).unwrap_or(c_int::MAX);
        // SAFETY: libfabric answers any number with a string that lives as long as the library, which is for
        // ever.
        unsafe { text_at((self.functions.fi_strerror)(code)) }
    }

    /// How libfabric writes a value, a set of bits for instance.
    ///
    /// # Safety
    /// `data` is valid for reads of what `kind` says (`FI_TYPE_*`).
    pub unsafe fn text(&self, data: *const c_void, kind: fi_type) -> String {
        let mut buffer = vec![0; 16 * 1024];
        // SAFETY: the caller promises the data; the buffer is ours and as long as said, and libfabric ends
        // what it writes there with a zero, which is also at the end of the buffer from the start.
        unsafe {
            (self.functions.fi_tostr_r)(buffer.as_mut_ptr(), buffer.len() - 1, data, kind);
            text_at(buffer.as_ptr())
        }
    }

    /// The error of an operation that answered `code`.
    pub fn error(&self, operation: impl Into<String>, code: i64, remedy: &'static str) -> OfiError {
        let reason = format!("{} (libfabric error {})", self.strerror(code), code.unsigned_abs());
        OfiError { operation: operation.into(), reason, remedy }
    }
}

fn parts(version: u32) -> (u32, u32) {
    (version >> 16, version & 0xffff)
}

/// A string of C, or nothing for null.
///
/// # Safety
/// `text` is null or ends with a zero.
pub(super) unsafe fn text_at(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller promises a string that ends with a zero.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn load(path: &str) -> Result<Library, OfiError> {
    let failed =
        |reason, remedy| OfiError { operation: format!("opening libfabric as `{path}`"), reason, remedy };
    let missing = |reason| failed(reason, REMEDY_PATH);
    let name = CString::new(path).map_err(|_| failed("the path has a zero in it".into(), REMEDY_PATH))?;
    // SAFETY: the name ends with a zero. Loading runs the library's constructors: the user vouches for the
    // library by the path, the administrator of the system otherwise.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        let remedy = if path == DEFAULT_NAME { REMEDY_INSTALL } else { REMEDY_PATH };
        return Err(failed(last_error(), remedy));
    }
    // SAFETY: the handle is open and nobody closes it, and the types are those that the headers give these
    // functions, `fi_version` in every version, the others since 1.17, which is asked for first. A copy of
    // nothing is an empty entry.
    unsafe {
        let fi_version: unsafe extern "C" fn() -> u32 = function(handle, c"fi_version").map_err(missing)?;
        let version = fi_version();
        if version < API_VERSION {
            let (major, minor) = parts(version);
            return Err(failed(format!("it is version {major}.{minor}, older than 1.17"), REMEDY_OLD));
        }
        let functions = Functions {
            fi_version,
            fi_getinfo: function(handle, c"fi_getinfo").map_err(missing)?,
            fi_freeinfo: function(handle, c"fi_freeinfo").map_err(missing)?,
            fi_dupinfo: function(handle, c"fi_dupinfo").map_err(missing)?,
            fi_fabric: function(handle, c"fi_fabric").map_err(missing)?,
            fi_strerror: function(handle, c"fi_strerror").map_err(missing)?,
            fi_tostr_r: function(handle, c"fi_tostr_r").map_err(missing)?,
        };
        // The first call of these looks for all providers.
        let info = (functions.fi_dupinfo)(std::ptr::null());
        if !info.is_null() {
            (functions.fi_freeinfo)(info);
        }
        Ok(Library { path: path.to_owned(), version, functions })
    }
}

const REMEDY_INSTALL: &str =
    "Install it (Debian: libfabric1), or set PELAGO_OFI_LIBRARY to the path of the libfabric.so.1 to use";
const REMEDY_PATH: &str =
    "Set PELAGO_OFI_LIBRARY to the path of a libfabric.so.1, or leave it unset for the system's";
const REMEDY_OLD: &str = "Install libfabric 1.17 or newer, or set PELAGO_OFI_LIBRARY to the path of one";

/// The function of this name, or what the dynamic linker says about it.
///
/// # Safety
/// The handle is open, and `F` is the type of the function.
unsafe fn function<F: Copy>(handle: *mut c_void, name: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the caller promises an open handle; the name ends with a zero.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if address.is_null() {
        return Err(last_error());
    }
    // SAFETY: the caller promises that the function of this name has this type, and its address is not null.
    Ok(unsafe { std::mem::transmute_copy(&address) })
}

/// What the dynamic linker says about its last failure on this thread.
fn last_error() -> String {
    // SAFETY: dlerror answers null or a string that stays until this thread's next call of the linker.
    let text = unsafe { text_at(libc::dlerror()) };
    if text.is_empty() { "the dynamic linker gives no reason".into() } else { text }
}
