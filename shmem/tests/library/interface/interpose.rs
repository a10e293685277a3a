//! Tools: who defines a function of the interface gets its calls, and reaches the library by its twin.

use std::process::Command;

use crate::common::{c_program, compiled, end_of, folder, installed, run, run_with};

/// A tool that counts puts and says how many there were.
const TOOL: &str = r#"
#define PELAGO_NO_GENERICS
#include <pshmem.h>
#include <stdio.h>

static int puts_seen, quiets_seen;

void shmem_putmem(void *dest, const void *source, size_t nelems, int pe)
{
    puts_seen++;
    pshmem_putmem(dest, source, nelems, pe);
}

void shmem_quiet(void)
{
    quiets_seen++;
    pshmem_quiet();
}

void shmem_finalize(void)
{
    printf("PE %d: %d puts, %d quiets\n", pshmem_my_pe(), puts_seen, quiets_seen);
    pshmem_finalize();
}
"#;

/// Two puts and one quiet; a barrier, which completes as well, but calls no function of the interface.
const PROGRAM: &str = r#"
#include <shmem.h>

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes();
    int *box = shmem_malloc(2 * sizeof *box), value[2] = {me, -me};
    shmem_putmem(box, value, sizeof *box, right);
    shmem_putmem(box + 1, value + 1, sizeof *box, right);
    shmem_putmem_nbi(box + 1, value + 1, sizeof *box, right);
    shmem_quiet();
    shmem_barrier_all();
    int left = (me + shmem_n_pes() - 1) % shmem_n_pes();
    int is_wrong = box[0] != left || box[1] != -left;
    shmem_finalize();
    return is_wrong;
}
"#;

fn assert_counted(output: &str, n: usize) {
    let mut lines: Vec<_> = output.lines().collect();
    lines.sort_unstable();
    let expected: Vec<_> = (0..n).map(|pe| format!("PE {pe}: 2 puts, 1 quiets")).collect();
    assert_eq!(lines, expected);
}

/// The tool and the program in one.
fn together() -> String {
    TOOL.replace("#define PELAGO_NO_GENERICS\n", "") + PROGRAM
}

#[test]
fn a_tool_linked_with_the_shared_library() {
    assert_counted(run(&c_program(&together(), &[]), 2, &[]).output(), 2);
}

#[test]
fn a_tool_linked_with_the_archive() {
    assert_counted(run(&c_program(&together(), &["--static"]), 2, &[]).output(), 2);
}

#[test]
fn a_tool_loaded_before_the_library() {
    let source = folder().join("tool.c");
    installed();
    std::fs::write(&source, TOOL).unwrap();
    let tool = compiled("oshcc", &source, &["-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]);
    let mut command = Command::new(installed().join("bin/oshrun"));
    command.args(["-np", "2", "-x", &format!("LD_PRELOAD={}", tool.display())]);
    command.arg(c_program(PROGRAM, &[]));
    assert_counted(end_of(command).output(), 2);
}

#[test]
fn without_a_tool_nothing_is_counted() {
    run(&c_program(PROGRAM, &[]), 2, &[]).assert_silent();
}

#[test]
fn every_level_of_profiling_is_accepted() {
    let text = r#"
#include <pshmem.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    shmem_pcontrol(0);
    shmem_init();
    shmem_pcontrol(2, "and more", 1.5);
    pshmem_pcontrol(argc > 1 ? atoi(argv[1]) : 1);
    shmem_finalize();
    return 0;
}
"#;
    let program = c_program(text, &[]);
    run(&program, 2, &[]).assert_silent();
    run_with(&program, &["-3"], 1, &[]).assert_silent();
}
