//! The standard library under ThreadSanitizer, as rustup installs it: not instrumented.
//!
//! Invariant: where a lock, a condition variable or a `Once` of the standard library orders two threads in
//! code that is not instrumented, the sanitizer is notified. The linker (`--wrap`) wraps each of these
//! functions; the wrapper calls `__tsan_release` and `__tsan_acquire` with the address on which the threads
//! synchronise. All other code of these types is inlined and instrumented at its callers. The alternative, to
//! compile the standard library from source (`-Zbuild-std`), needs a component that rustup does not always
//! have.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// A function of the standard library: the first and the last part of its mangled name, and the annotations
/// before and after the call. `a` is its first argument, `b` its second.
struct Wrapped {
    parts: [&'static str; 2],
    before: &'static str,
    after: &'static str,
}

const WRAPPED: [Wrapped; 7] = [
    Wrapped { parts: ["5mutex5futex", "14lock_contended"], before: "", after: "acquire(a, 1);" },
    Wrapped { parts: ["6rwlock5futex", "14read_contended"], before: "", after: "acquire(a, 2);" },
    Wrapped { parts: ["6rwlock5futex", "15write_contended"], before: "", after: "acquire(a, 2);" },
    Wrapped { parts: ["4once5futex", "4Once4call"], before: CALL_AND_RELEASE, after: "acquire(a, 1);" },
    Wrapped { parts: ["7condvar5futex", "4wait"], before: "release(b, 1);", after: "acquire(b, 1);" },
    Wrapped {
        parts: ["7condvar5futex", "12wait_timeout"],
        before: "release(b, 1);",
        after: "acquire(b, 1);",
    },
    Wrapped { parts: ["ScopeData", "29decrement_num_running_threads"], before: "release(a, 6);", after: "" },
];

/// Reports to suppress, in code that is not instrumented: the completion message of the test harness, the
/// printing of messages, and the thread record that the standard library frees when a thread ends.
pub const SUPPRESSIONS: &str = "race:CompletedTest
race:alloc::sync::Arc<std::sync::poison::mutex::Mutex<core::option::Option<test
race:std::io::stdio
race:alloc::sync::Arc<std::thread
race:std::rt::thread_cleanup
race:std::sys::fd::unix::FileDesc
race:std::path::Component
";

/// A `Once` gets its closure as its third and fourth argument: the closure's data, and a table whose fifth
/// entry is its function. This code passes another closure, which calls the first one and then releases.
const CALL_AND_RELEASE: &str = "long *given = (long *)d;
    struct call call = { c, (function *)given[4], a };
    long table[] = { given[0], given[1], given[2], (long)called, (long)called };
    c = (long)&call; d = (long)table;";

const HEAD: &str = "typedef struct { long low, high; } pair;
void __tsan_acquire(void *);
void __tsan_release(void *);
static void acquire(long at, int words) { while (words--) __tsan_acquire((char *)at + 4 * words); }
static void release(long at, int words) { while (words--) __tsan_release((char *)at + 4 * words); }
typedef void function(long, long);
struct call { long data; function *function; long once; };
static void called(struct call *call, long state) {
    call->function(call->data, state);
    release(call->once, 1);
}
/* The end of an Arc is ordered by a release and a fence, and the sanitizer does not model fences. */
long __real___tsan_atomic64_fetch_sub(volatile long *, long, int);
long __wrap___tsan_atomic64_fetch_sub(volatile long *at, long value, int order) {
    return __real___tsan_atomic64_fetch_sub(at, value, order == __ATOMIC_RELEASE ? __ATOMIC_ACQ_REL : order);
}
";
const WRAPPED_ARC: &str = "-Clink-arg=-Wl,--wrap=__tsan_atomic64_fetch_sub";

/// Compiles the wrappers to `folder`; returns the arguments of rustc that link them.
pub fn wrap(folder: &Path) -> Result<Vec<String>> {
    let names = names()?;
    let (mut source, mut arguments) = (HEAD.to_owned(), vec![WRAPPED_ARC.to_owned()]);
    for Wrapped { parts: [module, function], before, after } in WRAPPED {
        let is_it = |name: &&String| name.contains(module) && name.ends_with(function);
        let name = names.iter().find(is_it).with_context(|| {
            format!("the standard library of this compiler has no function ..{module}..{function}")
        })?;
        source += &format!(
            "pair __real_{name}(long, long, long, long, long, long);\n\
             pair __wrap_{name}(long a, long b, long c, long d, long e, long f) {{ {before} pair result = \
             __real_{name}(a, b, c, d, e, f); {after} return result; }}\n"
        );
        arguments.push(format!("-Clink-arg=-Wl,--wrap={name}"));
    }
    std::fs::create_dir_all(folder)?;
    let (path, object) = (folder.join("wrap.c"), folder.join("wrap.o"));
    std::fs::write(&path, source)?;
    let status =
        Command::new("gcc").args(["-O2", "-fexceptions", "-c", "-o"]).arg(&object).arg(&path).status();
    ensure!(status.context("cannot run gcc")?.success(), "cannot compile {}", path.display());
    arguments.push(format!("-Clink-arg={}", object.display()));
    Ok(arguments)
}

/// The folder of the nightly compiler's libraries.
fn folder() -> Result<PathBuf> {
    let output = super::nightly("rustc").args(["--print", "target-libdir"]).output()?;
    ensure!(output.status.success(), "there is no nightly compiler: `rustup toolchain install nightly`");
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// The names that the shared standard library of the nightly compiler exports.
fn names() -> Result<Vec<String>> {
    let folder = folder()?;
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("libstd-") && name.ends_with(".so")
    };
    let library = entries.filter_map(|entry| Some(entry.ok()?.path())).find(is_library);
    let library = library.with_context(|| format!("{} has no libstd-*.so", folder.display()))?;
    let output = Command::new("nm").arg("-D").arg(&library).output().context("cannot run nm")?;
    ensure!(output.status.success(), "nm cannot read {}", library.display());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let name = |line: &str| Some(line.split_once(" T ")?.1.to_owned());
    Ok(text.lines().filter_map(name).collect())
}
