//! Standard error: libraries do not write to it by `eprint!` and `eprintln!`, which panic if it cannot be
//! written, for instance after a logout or on a full file system.
//!
//! Invariant: the rule concerns the sources of libraries. Tests may use these macros, whose output their
//! harness captures.

use super::Finding;
use super::module_cycle::end_of_test_module;
use super::source::Source;

/// The folders of the sources of libraries.
const LIBRARIES: [&str; 9] = [
    "boot/src/",
    "core/src/",
    "fabric/src/",
    "library/src/",
    "model/src/",
    "mpi/src/",
    "pelago/src/",
    "schedule/src/",
    "shmem/src/",
];
/// The file that runs jobs for tests, within their harness.
const FOR_TESTS: &str = "pelago/src/testing.rs";

/// Finds calls of the macros in a library, outside of its tests.
pub fn check(source: &Source) -> Vec<Finding> {
    let path = &source.path;
    let is_library = LIBRARIES.iter().any(|folder| path.starts_with(folder));
    if !is_library || path == FOR_TESTS || path.ends_with("/tests.rs") || path.contains("/tests/") {
        return Vec::new();
    }
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(token) = source.code.get(at) {
        if let Some(length) = end_of_test_module(&source.code[at..]) {
            at += length;
            continue;
        }
        at += 1;
        let is_macro = source.code.get(at).is_some_and(|next| next.is("!"));
        if is_macro && (token.is("eprint") || token.is("eprintln")) {
            let message = "it panics if standard error cannot be written; use `print_stderr` of pelago-boot";
            found.push(source.finding(token.line, "stderr", message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Source::new(path, text)).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn libraries_do_not_panic_when_they_write() {
        let text = "fn f() {\n    eprintln!(\"a\");\n    std::eprint!(\"b\");\n}\n";
        assert_eq!(lines("core/src/a.rs", text), [2, 3]);
        assert_eq!(lines("cli/src/a.rs", text), [0; 0], "a command may panic");
        assert_eq!(
            lines("core/src/a.rs", "// eprintln!(1)\nfn f() { print_stderr(\"eprintln!(1)\"); }"),
            [0; 0]
        );
    }

    #[test]
    fn tests_may() {
        let text = "#[cfg(test)]\nmod tests {\n    fn f() { eprintln!(); }\n}\nfn f() { eprintln!(); }";
        assert_eq!(lines("boot/src/a.rs", text), [5]);
        for path in ["fabric/src/tcp/tests.rs", "fabric/src/tests/a.rs", "boot/tests/a.rs", FOR_TESTS] {
            assert_eq!(lines(path, text), [0; 0], "{path}");
        }
    }
}
