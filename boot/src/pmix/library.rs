//! Bindings to `libpmix.so.2`, which is opened at run time.
//!
//! Invariant: the library is never closed, because its threads run until the process ends. Every function may
//! be called from any thread (PMIx standard 4.1, section 1.5), and may wait for ever; the caller of this
//! module bounds the wait.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem;
use std::ptr;
use std::slice;
use std::sync::OnceLock;

use super::client::PmixError;
use super::sys::{
    self, AbortFn, BYTE_OBJECT, CommitFn, ErrorStringFn, EventDone, FenceFn, FinalizeFn, GetFn, Info, InitFn,
    Proc, PutFn, RegisterFn, STRING, Status, UINT32, Value, ValueDestructFn,
};

/// The name under which the system's loader looks for the library.
pub(super) const NAME: &str = "libpmix.so.2";

/// A function that exists since version 3; in earlier versions, values were smaller.
const FROM_3_ON: &CStr = c"PMIx_Get_credential";

/// Set when the connection to the server is lost: an event handler is called in a thread of the library.
static CONNECTION_LOST: OnceLock<()> = OnceLock::new();

/// The functions of the library.
#[derive(Clone, Copy, Debug)]
pub(super) struct Library {
    init: InitFn,
    finalize: FinalizeFn,
    get: GetFn,
    put: PutFn,
    commit: CommitFn,
    fence: FenceFn,
    abort: AbortFn,
    error_string: ErrorStringFn,
    register: RegisterFn,
    /// Exists since version 4; before, it was a macro.
    value_destruct: Option<ValueDestructFn>,
}

/// A value of the library, by its type.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Got {
    Bytes(Vec<u8>),
    Number(u32),
    /// A value of another type, with the number of the type.
    Other(u16),
}

/// Whether this program is statically linked: libpmix would load a second C library, and crashes at its
/// initialisation then (seen with 4.2).
fn is_self_contained() -> bool {
    // SAFETY: the C library's function accepts any number.
    unsafe { libc::getauxval(libc::AT_BASE) == 0 }
}

impl Library {
    /// Opens the library at `path`, or lets the dynamic linker search for it.
    pub(super) fn open(path: Option<&str>) -> Result<Self, PmixError> {
        let looked_for = path.unwrap_or(NAME);
        if is_self_contained() {
            return Err(PmixError::SelfContained { looked_for: looked_for.to_owned() });
        }
        let failed = |reason| PmixError::Library { looked_for: looked_for.to_owned(), reason };
        let name = CString::new(looked_for).map_err(|_| failed("a path has no zero byte".to_owned()))?;
        // SAFETY: the name ends in 0. The library's initialisers are sound, as the user who installed it has
        // to guarantee.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(failed(linker_error()));
        }
        // SAFETY: the name ends in 0, and the address is only compared with null.
        let is_older_than_3 = unsafe { libc::dlsym(handle, FROM_3_ON.as_ptr()) }.is_null();
        if is_older_than_3 {
            return Err(failed("it is no PMIx of version 3 or later".to_owned()));
        }
        // SAFETY: each symbol is the function of that name in libpmix.so.2, whose C type the alias repeats.
        let library = unsafe {
            (|| {
                Some(Self {
                    init: symbol(handle, c"PMIx_Init")?,
                    finalize: symbol(handle, c"PMIx_Finalize")?,
                    get: symbol(handle, c"PMIx_Get")?,
                    put: symbol(handle, c"PMIx_Put")?,
                    commit: symbol(handle, c"PMIx_Commit")?,
                    fence: symbol(handle, c"PMIx_Fence")?,
                    abort: symbol(handle, c"PMIx_Abort")?,
                    error_string: symbol(handle, c"PMIx_Error_string")?,
                    register: symbol(handle, c"PMIx_Register_event_handler")?,
                    value_destruct: symbol(handle, c"PMIx_Value_destruct"),
                })
            })()
        };
        library.ok_or_else(|| failed("it lacks functions of PMIx".to_owned()))
    }

    /// Connects to the server that the environment names; returns the identity of this process.
    pub(super) fn init(&self) -> Result<Proc, PmixError> {
        let mut proc = Proc::zeroed();
        // SAFETY: the library fills the structure, which has its size; no attributes are given.
        let status = unsafe { (self.init)(&mut proc, ptr::null_mut(), 0) };
        self.check("PMIx_Init", status)?;
        let mut codes = [sys::ERR_LOST_CONNECTION];
        // SAFETY: the codes are read during the call, which is synchronous because no callback is given; the
        // handler has the required type and exists for ever.
        let _ = unsafe {
            (self.register)(codes.as_mut_ptr(), 1, ptr::null_mut(), 0, on_lost, None, ptr::null_mut())
        };
        Ok(proc)
    }

    /// Whether the connection to the server was lost.
    pub(super) fn is_connection_lost() -> bool {
        CONNECTION_LOST.get().is_some()
    }

    /// Leaves the job.
    pub(super) fn finalize(&self) -> Result<(), PmixError> {
        // SAFETY: no attributes are given, which the function allows; what it frees is its own.
        self.check("PMIx_Finalize", unsafe { (self.finalize)(ptr::null(), 0) })
    }

    /// Publishes bytes under a key, and sends them to the server.
    pub(super) fn put(&self, key: &CStr, bytes: &[u8]) -> Result<(), PmixError> {
        let mut value = Value::bytes(bytes);
        // SAFETY: the key ends in 0, and the value points to bytes that the library copies in this call.
        self.check("PMIx_Put", unsafe { (self.put)(sys::SCOPE_GLOBAL, key.as_ptr(), &mut value) })?;
        // SAFETY: the function has no arguments and reads nothing of ours.
        self.check("PMIx_Commit", unsafe { (self.commit)() })
    }

    /// Waits until every process of the job has called it, and collects the values that they have put. The
    /// server gives up after `limit_seconds`, if it supports time-outs.
    pub(super) fn fence(&self, limit_seconds: c_int) -> Result<(), PmixError> {
        let infos = [Info::flag(sys::COLLECT_DATA), Info::integer(sys::TIMEOUT, limit_seconds)];
        // SAFETY: no process named means all of the job; the attributes live until the call returns.
        let status = unsafe { (self.fence)(ptr::null(), 0, infos.as_ptr(), infos.len()) };
        self.check("PMIx_Fence", status)
    }

    /// The value that a process has put under a key before the last fence; information about the job, if the
    /// process is [`sys::RANK_WILDCARD`]. `None` if there is no value.
    pub(super) fn get(&self, proc: &Proc, key: &CStr) -> Result<Option<Got>, PmixError> {
        let infos = [Info::flag(sys::IMMEDIATE)];
        let mut value = ptr::null_mut();
        // SAFETY: process, key and attributes live until the call returns; it writes a pointer to `value`.
        let status = unsafe { (self.get)(proc, key.as_ptr(), infos.as_ptr(), infos.len(), &mut value) };
        if status == sys::ERR_NOT_FOUND {
            return Ok(None);
        }
        self.check("PMIx_Get", status)?;
        if value.is_null() {
            return Ok(None);
        }
        // SAFETY: after a success it is a value that the library has allocated and given to this caller.
        Ok(Some(unsafe { self.take(value) }))
    }

    /// Asks the server to end the job with a status.
    pub(super) fn abort(&self, status: i32, words: &CStr) -> Result<(), PmixError> {
        // SAFETY: the text ends in 0; no process named means all of the job.
        let status = unsafe { (self.abort)(status, words.as_ptr(), ptr::null_mut(), 0) };
        self.check("PMIx_Abort", status)
    }

    /// Copies a value and frees its memory.
    ///
    /// # Safety
    /// The library has allocated the value, and the caller owns it.
    unsafe fn take(&self, value: *mut Value) -> Got {
        // SAFETY: the caller promises that the pointer points to a value.
        let seen = unsafe { &*value };
        // SAFETY: `kind` tells which member of the union the library has set.
        let (got, memory) = unsafe {
            match seen.kind {
                BYTE_OBJECT if seen.data.object.bytes.is_null() => (Got::Bytes(Vec::new()), ptr::null_mut()),
                BYTE_OBJECT => {
                    let object = seen.data.object;
                    let bytes = slice::from_raw_parts(object.bytes.cast::<u8>(), object.size);
                    (Got::Bytes(bytes.to_vec()), object.bytes)
                }
                UINT32 => (Got::Number(seen.data.uint32), ptr::null_mut()),
                STRING => (Got::Other(STRING), seen.data.string),
                other => (Got::Other(other), ptr::null_mut()),
            }
        };
        // SAFETY: the library allocates values, and what they point to, by malloc: its header says so, and
        // frees them by `free` in versions without a function for it.
        unsafe {
            match self.value_destruct {
                Some(destruct) => destruct(value),
                None => libc::free(memory.cast()),
            }
            libc::free(value.cast());
        }
        got
    }

    fn check(&self, call: &'static str, status: Status) -> Result<(), PmixError> {
        if status == sys::SUCCESS {
            return Ok(());
        }
        // SAFETY: the function accepts every number, also unknown ones.
        let text = unsafe { (self.error_string)(status) };
        // SAFETY: a text that is not null ends in 0 and is a constant.
        let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
        let text = text.map_or_else(String::new, |text| text.to_string_lossy().into_owned());
        Err(PmixError::Status { call, status, text })
    }
}

/// The handler of the event that the connection to the server is lost.
unsafe extern "C" fn on_lost(
    _registration: usize,
    _status: Status,
    _source: *const Proc,
    _infos: *mut Info,
    _info_count: usize,
    _results: *mut Info,
    _result_count: usize,
    done: EventDone,
    data: *mut c_void,
) {
    let _ = CONNECTION_LOST.set(());
    if let Some(done) = done {
        // SAFETY: the library requires this call, with the data that it passed and no results.
        unsafe { done(sys::EVENT_ACTION_COMPLETE, ptr::null_mut(), 0, None, ptr::null_mut(), data) };
    }
}

/// A function of the library.
///
/// # Safety
/// `F` is the type of a pointer to the function of that name.
unsafe fn symbol<F: Copy>(handle: *mut c_void, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the handle comes from dlopen and is never closed, and the name ends in 0.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    // SAFETY: of the same size, as asserted, and a function of this type, as the caller promises.
    (!address.is_null()).then(|| unsafe { mem::transmute_copy(&address) })
}

/// The text of the dynamic linker for its last failure in this thread.
fn linker_error() -> String {
    // SAFETY: the call returns null or a text that lives until the next call of the linker in this thread.
    let words: *const c_char = unsafe { libc::dlerror() };
    if words.is_null() {
        return "the loader gives no reason".to_owned();
    }
    // SAFETY: not null, so it is a text that ends in 0.
    unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
}
