//! The shared library `libfabric.so.1`, opened at run time, or a library in its place that is part of the
//! program.
//!
//! Invariant: a process opens a library once and never closes it, because its providers keep threads and
//! signal handlers. So a reference to it lives for ever. Functions are looked up in the default version of
//! their symbols, the newest that the library has. Its structures are those of version 1.17 with more fields
//! at the end, and `fi_getinfo` returns what the requested API version defines. An older library is refused.

use super::handlers::keeping_handlers;
use super::sys::{FI_PROV_ATTR_ONLY, FI_VERSION, fi_fabric_attr, fi_info, fi_type, fid_fabric};
use crate::types::{FabricError, Pe};
use libc::{c_char, c_int, c_void};
use std::ffi::{CStr, CString};
use std::sync::{Mutex, PoisonError};
use thiserror::Error;

/// The version of the interface that is used here.
pub const API_VERSION: u32 = FI_VERSION(1, 17);

/// The name that is looked for unless a path is given.
const DEFAULT_NAME: &str = "libfabric.so.1";

/// The libraries of this process.
static OPEN: Mutex<Vec<&Library>> = Mutex::new(Vec::new());

/// An error of libfabric that belongs to no PE.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{operation} failed: {reason}. {remedy}")]
pub struct OfiError {
    /// The operation that was attempted.
    pub operation: String,
    /// The reason why it failed.
    pub reason: String,
    /// The remedy for the user.
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
    /// The description of an error number: `fi_strerror(3)`.
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
    /// The functions that it exports.
    pub functions: Functions,
}

impl Library {
    /// Opens the library at `path`, or the `libfabric.so.1` that the system finds. Returns the same library
    /// again if this process has opened it already.
    ///
    /// # Errors
    /// If the library does not exist, cannot be loaded, is not libfabric, or is too old. The error names the
    /// reason and the remedy.
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

    /// The description of an error number, whose sign does not matter.
    pub fn strerror(&self, code: i64) -> String {
        let code = c_int::try_from(code.unsigned_abs()).unwrap_or(c_int::MAX);
        // SAFETY: for any number libfabric returns a string that lives as long as the library, which is never
        // closed.
        unsafe { text_at((self.functions.fi_strerror)(code)) }
    }

    /// How libfabric writes a value, a set of bits for instance.
    ///
    /// # Safety
    /// `data` is valid for reads of the type that `kind` names (`FI_TYPE_*`).
    pub unsafe fn text(&self, data: *const c_void, kind: fi_type) -> String {
        let mut buffer = vec![0; 16 * 1024];
        // SAFETY: the caller promises the data. The buffer is a local variable and has the given length.
        // libfabric ends its text with a zero, and the last byte of the buffer is zero from the start.
        unsafe {
            (self.functions.fi_tostr_r)(buffer.as_mut_ptr(), buffer.len() - 1, data, kind);
            text_at(buffer.as_ptr())
        }
    }

    /// The error of an operation that returned `code`.
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
    // SAFETY: the name ends with a zero. Loading runs the library's constructors. The user guarantees the
    // library by giving its path; otherwise the administrator of the system does.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        let remedy = if path == DEFAULT_NAME { REMEDY_INSTALL } else { REMEDY_PATH };
        return Err(failed(last_error(), remedy));
    }
    // SAFETY: the handle is open and is never closed. The types are those that the headers give these
    // functions: `fi_version` in every version, the others since 1.17, and the version is checked first.
    // `fi_getinfo` takes no node, service and hints, and the list that it returns is this function's.
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
        // The first call of `fi_getinfo` starts all providers. It lists their names here; if there are none,
        // or it fails, later calls say so.
        let mut list = std::ptr::null_mut();
        let none = std::ptr::null();
        (functions.fi_getinfo)(API_VERSION, none, none, FI_PROV_ATTR_ONLY, std::ptr::null(), &mut list);
        if !list.is_null() {
            (functions.fi_freeinfo)(list);
        }
        Ok(Library { path: path.to_owned(), version, functions })
    }
}

const REMEDY_INSTALL: &str =
    "Install it (Debian: libfabric1), or set PELAGO_OFI_LIBRARY to the path of the libfabric.so.1 to use";
const REMEDY_PATH: &str =
    "Set PELAGO_OFI_LIBRARY to the path of a libfabric.so.1, or leave it unset for the system's";
const REMEDY_OLD: &str = "Install libfabric 1.17 or newer, or set PELAGO_OFI_LIBRARY to the path of one";

/// The function of this name, or the error of the dynamic linker.
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

/// The dynamic linker's description of its last failure on this thread.
fn last_error() -> String {
    // SAFETY: dlerror returns null or a string that stays valid until this thread's next call of the linker.
    let text = unsafe { text_at(libc::dlerror()) };
    if text.is_empty() { "the dynamic linker gives no reason".into() } else { text }
}
