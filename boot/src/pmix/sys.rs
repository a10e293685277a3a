//! The C interface of PMIx: the few types, keys and numbers that a client needs.
//!
//! Invariant: sizes, offsets and numbers are those of `pmix_common.h`, which are the same since version 3 of
//! the library added the largest member of a value. A test of the full tier compares them with the C
//! compiler's. Source: PMIx standard 4.1, chapter 3 (data structures), and the header itself.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;

/// `pmix_status_t`: 0, or a negative error number.
pub(super) type Status = c_int;

pub(super) const SUCCESS: Status = 0;
pub(super) const ERR_TIMEOUT: Status = -24;
pub(super) const ERR_NOT_FOUND: Status = -46;
pub(super) const ERR_LOST_CONNECTION: Status = -61;
/// The result of an event handler: no other handler needs to be called.
pub(super) const EVENT_ACTION_COMPLETE: Status = -334;

/// All processes of a job, in place of one rank.
pub(super) const RANK_WILDCARD: u32 = u32::MAX - 1;
/// `PMIX_GLOBAL`: for the processes of all nodes.
pub(super) const SCOPE_GLOBAL: u8 = 3;

pub(super) const BOOL: u16 = 1;
pub(super) const STRING: u16 = 3;
pub(super) const INT: u16 = 6;
pub(super) const UINT32: u16 = 14;
pub(super) const BYTE_OBJECT: u16 = 27;

/// `PMIX_JOB_SIZE`: the number of processes of a job.
pub(super) const JOB_SIZE: &CStr = c"pmix.job.size";
/// `PMIX_COLLECT_DATA`: a fence distributes all values to every node.
pub(super) const COLLECT_DATA: &CStr = c"pmix.collect";
/// `PMIX_TIMEOUT`: the number of seconds after which the server gives up.
pub(super) const TIMEOUT: &CStr = c"pmix.timeout";
/// `PMIX_IMMEDIATE`: the server returns the values that it has, and does not wait for others.
pub(super) const IMMEDIATE: &CStr = c"pmix.immediate";

/// Bytes of a namespace, with the 0 at its end.
pub(super) const NSPACE_BYTES: usize = 256;
/// Bytes of a key, with the 0 at its end.
pub(super) const KEY_BYTES: usize = 512;

/// `pmix_proc_t`: a process, as the name of its job and its rank there.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Proc {
    pub(super) nspace: [c_char; NSPACE_BYTES],
    pub(super) rank: u32,
}

/// `pmix_byte_object_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ByteObject {
    pub(super) bytes: *mut c_char,
    pub(super) size: usize,
}

/// The union of `pmix_value_t`, by the members that are used here.
#[repr(C)]
pub(super) union Data {
    pub(super) flag: bool,
    pub(super) integer: c_int,
    pub(super) uint32: u32,
    pub(super) string: *mut c_char,
    pub(super) object: ByteObject,
    /// The largest member, `pmix_envar_t`: two pointers and a character.
    envar: (*mut c_char, *mut c_char, c_char),
    /// The member that determines the alignment on all targets.
    int64: i64,
}

/// `pmix_value_t`.
#[repr(C)]
pub(super) struct Value {
    pub(super) kind: u16,
    pub(super) data: Data,
}

/// `pmix_info_t`: an attribute of a call.
#[repr(C)]
pub(super) struct Info {
    pub(super) key: [c_char; KEY_BYTES],
    pub(super) flags: u32,
    pub(super) value: Value,
}

impl Proc {
    pub(super) fn zeroed() -> Self {
        Self { nspace: [0; NSPACE_BYTES], rank: 0 }
    }
}

impl Value {
    /// A value with its type set and all other bytes 0.
    fn of(kind: u16) -> Self {
        // SAFETY: every member of the union is an integer, a pointer or `false` when all its bytes are 0.
        Self { kind, data: unsafe { mem::zeroed() } }
    }

    /// A value that points to `bytes`, which the library copies when the value is put.
    pub(super) fn bytes(bytes: &[u8]) -> Self {
        let mut value = Self::of(BYTE_OBJECT);
        value.data.object = ByteObject { bytes: bytes.as_ptr().cast_mut().cast(), size: bytes.len() };
        value
    }
}

impl Info {
    fn new(key: &CStr, value: Value) -> Self {
        let mut info = Self { key: [0; KEY_BYTES], flags: 0, value };
        // One byte is left for the 0 at the end.
        for (to, from) in info.key[..KEY_BYTES - 1].iter_mut().zip(key.to_bytes()) {
            *to = *from as c_char;
        }
        info
    }

    /// An attribute that is true.
    pub(super) fn flag(key: &CStr) -> Self {
        let mut value = Value::of(BOOL);
        value.data.flag = true;
        Self::new(key, value)
    }

    /// An attribute that is a number.
    pub(super) fn integer(key: &CStr, number: c_int) -> Self {
        let mut value = Value::of(INT);
        value.data.integer = number;
        Self::new(key, value)
    }
}

/// `pmix_op_cbfunc_t`.
pub(super) type OpCallback = Option<unsafe extern "C" fn(Status, *mut c_void)>;
/// `pmix_event_notification_cbfunc_fn_t`: the function by which an event handler reports that it is done.
pub(super) type EventDone =
    Option<unsafe extern "C" fn(Status, *mut Info, usize, OpCallback, *mut c_void, *mut c_void)>;
/// `pmix_notification_fn_t`: an event handler.
pub(super) type EventHandler = unsafe extern "C" fn(
    usize,
    Status,
    *const Proc,
    *mut Info,
    usize,
    *mut Info,
    usize,
    EventDone,
    *mut c_void,
);

pub(super) type InitFn = unsafe extern "C" fn(*mut Proc, *mut Info, usize) -> Status;
pub(super) type FinalizeFn = unsafe extern "C" fn(*const Info, usize) -> Status;
pub(super) type GetFn =
    unsafe extern "C" fn(*const Proc, *const c_char, *const Info, usize, *mut *mut Value) -> Status;
pub(super) type PutFn = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> Status;
pub(super) type CommitFn = unsafe extern "C" fn() -> Status;
pub(super) type FenceFn = unsafe extern "C" fn(*const Proc, usize, *const Info, usize) -> Status;
pub(super) type AbortFn = unsafe extern "C" fn(c_int, *const c_char, *mut Proc, usize) -> Status;
pub(super) type ErrorStringFn = unsafe extern "C" fn(Status) -> *const c_char;
pub(super) type ValueDestructFn = unsafe extern "C" fn(*mut Value);
/// The last but one is `pmix_hdlr_reg_cbfunc_t`; without it the call waits until the handler is registered.
pub(super) type RegisterFn = unsafe extern "C" fn(
    *mut Status,
    usize,
    *mut Info,
    usize,
    EventHandler,
    Option<unsafe extern "C" fn(Status, usize, *mut c_void)>,
    *mut c_void,
) -> Status;

#[cfg(all(test, feature = "full"))]
mod tests {
    use std::fs;
    use std::mem::{align_of, offset_of, size_of};
    use std::process::Command;

    use super::*;

    /// Expressions of C, with the values that are used here.
    fn pairs() -> Vec<(&'static str, i64)> {
        let size = |bytes: usize| i64::try_from(bytes).unwrap();
        vec![
            ("sizeof(pmix_proc_t)", size(size_of::<Proc>())),
            ("offsetof(pmix_proc_t, rank)", size(offset_of!(Proc, rank))),
            ("sizeof(pmix_byte_object_t)", size(size_of::<ByteObject>())),
            ("offsetof(pmix_byte_object_t, size)", size(offset_of!(ByteObject, size))),
            ("sizeof(pmix_value_t)", size(size_of::<Value>())),
            ("_Alignof(pmix_value_t)", size(align_of::<Value>())),
            ("sizeof(((pmix_value_t *)0)->type)", size(size_of::<u16>())),
            ("offsetof(pmix_value_t, data)", size(offset_of!(Value, data))),
            ("sizeof(pmix_info_t)", size(size_of::<Info>())),
            ("offsetof(pmix_info_t, flags)", size(offset_of!(Info, flags))),
            ("offsetof(pmix_info_t, value)", size(offset_of!(Info, value))),
            ("sizeof(pmix_nspace_t)", size(NSPACE_BYTES)),
            ("sizeof(pmix_key_t)", size(KEY_BYTES)),
            ("sizeof(pmix_status_t)", size(size_of::<Status>())),
            ("sizeof(pmix_scope_t)", size(size_of::<u8>())),
            ("PMIX_SUCCESS", SUCCESS.into()),
            ("PMIX_ERR_TIMEOUT", ERR_TIMEOUT.into()),
            ("PMIX_ERR_NOT_FOUND", ERR_NOT_FOUND.into()),
            ("PMIX_ERR_LOST_CONNECTION", ERR_LOST_CONNECTION.into()),
            ("PMIX_EVENT_ACTION_COMPLETE", EVENT_ACTION_COMPLETE.into()),
            ("PMIX_RANK_WILDCARD", RANK_WILDCARD.into()),
            ("PMIX_GLOBAL", SCOPE_GLOBAL.into()),
            ("PMIX_BOOL", BOOL.into()),
            ("PMIX_STRING", STRING.into()),
            ("PMIX_INT", INT.into()),
            ("PMIX_UINT32", UINT32.into()),
            ("PMIX_BYTE_OBJECT", BYTE_OBJECT.into()),
        ]
    }

    /// Pointers to the functions with the types that are used here: a difference is a compile error.
    const FUNCTIONS: &str = "
        pmix_status_t (*init)(pmix_proc_t *, pmix_info_t *, size_t) = PMIx_Init;
        pmix_status_t (*finalize)(const pmix_info_t *, size_t) = PMIx_Finalize;
        pmix_status_t (*get)(const pmix_proc_t *, const char *, const pmix_info_t *, size_t,
            pmix_value_t **) = PMIx_Get;
        pmix_status_t (*put)(unsigned char, const char *, pmix_value_t *) = PMIx_Put;
        pmix_status_t (*commit)(void) = PMIx_Commit;
        pmix_status_t (*fence)(const pmix_proc_t *, size_t, const pmix_info_t *, size_t) = PMIx_Fence;
        pmix_status_t (*stop)(int, const char *, pmix_proc_t *, size_t) = PMIx_Abort;
        const char *(*error_string)(pmix_status_t) = PMIx_Error_string;
        void done(pmix_status_t, pmix_info_t *, size_t, void (*)(pmix_status_t, void *), void *, void *);
        pmix_event_notification_cbfunc_fn_t event_done = done;
        void handler(size_t, pmix_status_t, const pmix_proc_t *, pmix_info_t *, size_t, pmix_info_t *,
            size_t, pmix_event_notification_cbfunc_fn_t, void *);
        pmix_notification_fn_t event_handler = handler;
        void registered(pmix_status_t, size_t, void *);
        pmix_hdlr_reg_cbfunc_t on_registered = registered;";

    /// Debian's folder of the headers, which gcc does not search by default.
    fn debian_folder() -> String {
        let output = Command::new("gcc").arg("-print-multiarch").output().expect("gcc runs");
        format!("/usr/lib/{}/pmix2/include", String::from_utf8_lossy(&output.stdout).trim())
    }

    /// Compiles a program, or an object file with `-c`.
    fn compile(text: &str, name: &str, options: &[&str]) -> std::path::PathBuf {
        let base = std::env::temp_dir().join(format!("pelago-pmix-{name}-{}", std::process::id()));
        let (source, out) = (base.with_extension("c"), base.with_extension("out"));
        fs::write(&source, text).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.args(["-Wall", "-Werror", "-Wno-unused", "-I", &debian_folder()]).args(options);
        let output = gcc.arg("-o").arg(&out).arg(&source).output().expect("gcc runs");
        fs::remove_file(&source).unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "no pmix.h? apt-get install libpmix-dev; gcc says:\n{words}");
        out
    }

    #[test]
    fn layouts_and_numbers_are_those_of_the_header() {
        let lines = pairs().into_iter().map(|(c, _)| format!("printf(\"%lld\\n\", (long long)({c}));\n"));
        let keys = ["JOB_SIZE", "COLLECT_DATA", "TIMEOUT", "IMMEDIATE"];
        let keys = keys.map(|key| format!("puts(PMIX_{key});\n")).concat();
        let body: String = lines.collect();
        let head = "#include <pmix.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n";
        let program = compile(&format!("{head}{body}{keys}return 0; }}\n"), "layouts", &[]);
        let output = Command::new(&program).output().unwrap();
        fs::remove_file(&program).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let ours = pairs().into_iter().map(|(c, value)| (c, value.to_string()));
        let keys = [JOB_SIZE, COLLECT_DATA, TIMEOUT, IMMEDIATE];
        let keys = keys.into_iter().map(|key| ("key", key.to_str().unwrap().to_owned()));
        let ours: Vec<_> = ours.chain(keys).collect();
        assert_eq!(text.lines().count(), ours.len(), "{text}");
        let theirs = text.lines().zip(&ours).map(|(line, (c, _))| (*c, line.to_owned())).collect::<Vec<_>>();
        assert_eq!(theirs, ours);
    }

    #[test]
    fn functions_have_the_types_of_the_header() {
        let part = compile(&format!("#include <pmix.h>\n{FUNCTIONS}\n"), "functions", &["-c"]);
        fs::remove_file(part).unwrap();
    }
}
