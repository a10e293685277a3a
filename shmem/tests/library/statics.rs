//! Global and static variables of the program as symmetric memory, in all forms in which a program is linked.

use crate::common::{
    ROUTES, c_file, cxx_program, end_of, folder, installed, job, run, run_everywhere, run_with, uses_network,
};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a program on 2 PEs by each route; it must end well and say nothing.
#[track_caller]
fn run_pairs(program: &Path) {
    for variables in ROUTES {
        run(program, 2, variables).assert_silent();
    }
}

/// Ways to link that leave the library outside the program.
const SHARED_FORMS: [&[&str]; 6] = [
    &["-fPIE", "-pie", "-Wl,-z,lazy"],
    &["-fPIE", "-pie", "-Wl,-z,now"],
    &["-fno-pie", "-no-pie", "-Wl,-z,lazy"],
    &["-fno-pie", "-no-pie", "-Wl,-z,now"],
    &["-Wl,-z,norelro"],
    &["-Wl,--build-id=none", "-s"],
];

/// Ways to link that put the library, and in the last two the C library, into the program.
const STATIC_FORMS: [&[&str]; 4] = [
    &["--static"],
    &["--static", "-fno-pie", "-no-pie"],
    &["--static", "-static"],
    &["--static", "-static-pie", "-fPIE"],
];

#[test]
fn variables_are_symmetric() {
    run_everywhere(&c_file("statics", &[]));
}

#[test]
fn from_one_initialisation_to_the_next() {
    run_everywhere(&c_file("statics_again", &[]));
    run_pairs(&c_file("statics_again", &["--static"]));
}

#[test]
fn however_the_program_is_linked() {
    for flags in SHARED_FORMS {
        run_pairs(&c_file("statics", flags));
    }
}

#[test]
fn constants_are_sources() {
    let separate = "-Wl,-z,noseparate-code";
    for flags in [&[][..], &["-fno-pie", "-no-pie"], &[separate], STATIC_FORMS[0], STATIC_FORMS[2]] {
        run_pairs(&c_file("statics_constant", flags));
    }
    let program = c_file("statics_constant", &[]);
    run(&program, 2, &[("PELAGO_CHECK", "on")]).assert_silent();
    run_with(&program, &["target"], 2, &[]).assert_refused(1, &["shmem_long_p: dest", "not symmetric"]);
}

#[test]
fn with_the_library_in_the_program() {
    for flags in STATIC_FORMS {
        run_pairs(&c_file("statics", flags));
    }
}

#[test]
fn in_cxx() {
    let text = "#include <iostream>\n#define main c_main\n#include \"statics.c\"\n#undef main\n\
        int main(int n, char **words) { std::cout << \"\"; return c_main(n, words); }\n";
    // The further requirements of C++ are not tested here.
    run_pairs(&cxx_program(text, &["-Wno-pedantic"]));
}

#[test]
fn standard_output_works() {
    for flags in [SHARED_FORMS[0], SHARED_FORMS[2], STATIC_FORMS[0], STATIC_FORMS[2]] {
        let ended = run_with(&c_file("statics", flags), &["words"], 2, &[]);
        assert_eq!(ended.output(), "standard output\n", "{}", ended.line);
    }
}

#[test]
fn a_child_of_fork_has_its_own() {
    run_everywhere(&c_file("statics_fork", &[]));
    for flags in [SHARED_FORMS[2], SHARED_FORMS[4], STATIC_FORMS[0]] {
        run_pairs(&c_file("statics_fork", flags));
    }
}

/// Libpmix would bring a second C library along.
#[test]
fn no_pmix_where_the_program_has_the_c_library() {
    for flags in [STATIC_FORMS[2], STATIC_FORMS[3]] {
        let mut command = Command::new(c_file("statics", flags));
        command.envs([("PMIX_NAMESPACE", "job"), ("PMIX_RANK", "0")]);
        end_of(command).assert_refused(1, &["PMIx", "linked with -static", "srun --mpi=pmi2"]);
    }
}

/// Over libfabric the runtime has a thread, which is one too many where the C library is in the program.
#[test]
fn a_child_of_a_program_with_the_c_library() {
    for flags in [STATIC_FORMS[2], STATIC_FORMS[3]] {
        let program = c_file("statics_fork", flags);
        for variables in ROUTES {
            let ended = run(&program, 2, variables);
            match uses_network(variables) {
                false => ended.assert_silent(),
                true => ended.assert_refused(1, &["fork", "-static", "threads", "posix_spawn"]),
            }
        }
    }
}

#[test]
fn a_child_of_a_program_with_threads() {
    for flags in [SHARED_FORMS[0], STATIC_FORMS[0]] {
        run_pairs(&c_file("statics_threads", flags));
    }
    // There the child would change the C library's list of threads of its parent.
    let ended = run(&c_file("statics_threads", STATIC_FORMS[2]), 1, &[]);
    ended.assert_refused(1, &["fork", "-static", "threads", "posix_spawn"]);
}

#[test]
fn a_large_array_takes_no_memory() {
    for flags in [SHARED_FORMS[0], STATIC_FORMS[2]] {
        let program = c_file("statics_large", flags);
        run_pairs(&program);
        // The size is that of what the program allocates, and not of its variables.
        run(&program, 2, &[("SHMEM_SYMMETRIC_SIZE", "1m")]).assert_silent();
    }
}

#[test]
fn no_room_for_them_in_the_heap() {
    let ended = run(&c_file("statics_large", &[]), 2, &[("PELAGO_HEAP_SIZE", "16m")]);
    ended.assert_refused(1, &["shmem_char_p: dest", "static data are not symmetric", "SHMEM_SYMMETRIC_SIZE"]);
}

/// A job in which the C file `statics_refused` cannot share its data: it works as long as it uses none, and
/// then is told why.
#[track_caller]
fn is_refused(how: &str, words: &[&str]) {
    let program = c_file("statics_refused", &[]);
    for variables in ROUTES {
        run_with(&program, &[how], 2, variables).assert_silent();
        let ended = run_with(&program, &[how, "use"], 2, variables);
        ended.assert_refused(1, &["shmem_long_p: dest", "static data are not symmetric"]);
        ended.assert_refused(1, words);
    }
}

#[test]
fn not_in_a_program_with_threads() {
    is_refused("threads", &["2 threads", "before the program starts threads"]);
}

#[test]
fn not_if_the_program_has_protected_them() {
    is_refused("protected", &["protected"]);
}

/// A script that starts another program as PE 1.
fn two_programs(name: &str, others: &Path, first: &Path) -> PathBuf {
    let script = folder().join(name);
    let (others, first) = (others.display(), first.display());
    let text = format!("#!/bin/sh\n[ \"$PMI_RANK\" = 1 ] && exec {first} \"$@\"\nexec {others} \"$@\"\n");
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    script
}

#[test]
fn not_if_the_programs_differ() {
    let one = c_file("statics_refused", &["-Ddata=data_of_one"]);
    let other = c_file("statics_refused", &["-Ddata=data_of_other", "-fno-pie", "-no-pie"]);
    let script = two_programs("differ", &one, &other);
    for variables in ROUTES {
        run_with(&script, &["differ"], 3, variables).assert_silent();
        let ended = run_with(&script, &["differ", "use"], 3, variables);
        let (one, other) = (format!("PE 0 runs {}", one.display()), format!("PE 1 runs {}", other.display()));
        ended.assert_refused(1, &["shmem_long_p: dest", &one, &other, "one program"]);
    }
}

#[test]
fn not_if_one_pe_cannot() {
    let program = c_file("statics_refused", &[]);
    let script = folder().join("one-cannot");
    let path = program.display();
    let text = format!("#!/bin/sh\n[ \"$PMI_RANK\" = 1 ] && exec {path} threads $1\nexec {path} fine $1\n");
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    run_with(&script, &[], 3, &[]).assert_silent();
    run_with(&script, &["use"], 3, &[]).assert_refused(1, &["on PE 1 the process has 2 threads"]);
}

/// The program that is not linked with the library.
fn loader() -> PathBuf {
    let program = folder().join("statics_loaded");
    let mut command = Command::new("gcc");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/statics_loaded.c");
    command.arg("-O1").arg(source).arg("-o").arg(&program);
    command.arg(format!("-Wl,-rpath,{}", installed().join("lib").display()));
    let ended = end_of(command);
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    program
}

#[test]
fn only_if_the_library_is_there_from_the_start() {
    let program = loader();
    run_with(&program, &["late"], 2, &[]).assert_silent();
    let ended = run_with(&program, &["late", "use"], 2, &[]);
    ended.assert_refused(1, &["shmem_long_p: dest", "dlopen"]);
    let preload = format!("LD_PRELOAD={}", installed().join("lib/libpelago_shmem.so.1").display());
    let mut command = job(Path::new("env"), &[&preload, program.to_str().unwrap(), "preloaded"], 2, &[]);
    command.env_remove("LD_PRELOAD");
    end_of(command).assert_silent();
}
