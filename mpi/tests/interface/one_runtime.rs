//! MPI and OpenSHMEM in one process: one job, one heap and one set of threads, whatever is initialised or
//! finalised first.

use super::mpi_program;
use crate::common::{ROUTES, installed, run_with};

/// Does what its first argument says, letter by letter: M and m initialise and finalise MPI, S and s
/// OpenSHMEM; y and x use them. 1 remembers the number of threads, and = compares it.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
#include <mpi.h>
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long box[1024], threads_before;

static void expect(long found, long expected, const char *what)
{
    if (found != expected) {
        fprintf(stderr, "%s is %ld, expected %ld\n", what, found, expected);
        abort();
    }
}

static long threads(void)
{
    long n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) n += task->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* The mappings of the node's memory, each with a line: a second heap would have its own. */
static long heaps(void)
{
    char line[512], seen[16][64];
    long n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        char inode[64], *name = strstr(line, "memfd:pelago");
        if (!name || n == 16 || sscanf(line, "%*s %*s %*s %*s %63s", inode) != 1) continue;
        long i = 0;
        while (i < n && strcmp(seen[i], inode)) i++;
        if (i == n) strcpy(seen[n++], inode);
    }
    fclose(maps);
    return n;
}

static void use_shmem(void)
{
    int me = shmem_my_pe(), n = shmem_n_pes(), left = (me + n - 1) % n;
    long *block = shmem_malloc(sizeof *block);
    *block = box[3] = -1;
    shmem_barrier_all();
    shmem_long_p(block, me, (me + 1) % n);
    shmem_long_p(&box[3], me, (me + 1) % n);
    shmem_barrier_all();
    expect(*block, left, "a word of the heap");
    expect(box[3], left, "a static variable");
    shmem_free(block);
}

static void use_mpi(void)
{
    int me, n;
    long got = -1, sum = 0;
    MPI_Request request;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    long mine = me;
    MPI_Irecv(&got, 1, MPI_LONG, (me + n - 1) % n, 7, MPI_COMM_WORLD, &request);
    MPI_Send(&mine, 1, MPI_LONG, (me + 1) % n, 7, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(got, (me + n - 1) % n, "a message");
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    expect(sum, (long)n * (n - 1) / 2, "a sum");
}

/* Both are initialised: they are the same PEs, and symmetric memory is a buffer of MPI. */
static void use_both(void)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    expect(shmem_my_pe(), rank, "shmem_my_pe");
    expect(shmem_n_pes(), size, "shmem_n_pes");
    long *symmetric = shmem_malloc(4 * sizeof *symmetric);
    symmetric[0] = rank + 1;
    MPI_Request request;
    MPI_Irecv(&symmetric[1], 1, MPI_LONG, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &request);
    MPI_Send(&symmetric[0], 1, MPI_LONG, (rank + 1) % size, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(symmetric[1], (rank + size - 1) % size + 1, "a message in symmetric memory");
    MPI_Allreduce(&symmetric[0], &box[5], 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    expect(box[5], size, "a maximum in a static variable");
    shmem_free(symmetric);
    expect(heaps() <= 1, 1, "one heap");
    expect(shmemx_query_interoperability(SHMEMX_PROGRESS_MPI), 1, "the progress of MPI");
    /* A message that needs answers moves while the receiver is in calls of OpenSHMEM alone. */
    static char large[1 << 20];
    long *flag = shmem_calloc(1, sizeof *flag);
    int peer = rank ^ 1;
    if (rank < 2 && size >= 2 && rank == 0) {
        MPI_Send(large, sizeof large, MPI_CHAR, peer, 2, MPI_COMM_WORLD);
        shmem_long_p(flag, 1, peer);
    } else if (rank == 1) {
        MPI_Irecv(large, sizeof large, MPI_CHAR, peer, 2, MPI_COMM_WORLD, &request);
        shmem_long_wait_until(flag, SHMEM_CMP_EQ, 1);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    shmem_free(flag);
}

int main(int argc, char **argv)
{
    int is_mpi = 0, is_shmem = 0, is_initialized;
    for (const char *step = argc > 1 ? argv[1] : ""; *step; step++) {
        switch (*step) {
        case 'M': MPI_Init(&argc, &argv); is_mpi = 1; break;
        case 'm': MPI_Finalize(); is_mpi = 0; break;
        case 'S': shmem_init(); is_shmem++; break;
        case 's': shmem_finalize(); is_shmem--; break;
        case 'x': use_shmem(); break;
        case 'y': use_mpi(); break;
        case 'z': use_both(); break;
        case '1': threads_before = threads(); break;
        case '=': expect(threads(), threads_before, "the number of threads"); break;
        }
        shmem_query_initialized(&is_initialized);
        expect(is_initialized, is_shmem > 0, "shmem_query_initialized");
        MPI_Finalized(&is_initialized);
        if (is_initialized) expect(is_mpi, 0, "MPI after MPI_Finalized");
    }
    return 0;
}
"#;

/// Links with OpenSHMEM as well, before the program's file is read.
const BOTH: [&str; 2] = ["-Wl,--no-as-needed", "-lpelago_shmem"];

/// Every nesting of both, and OpenSHMEM several times while MPI goes on, and after it.
const SEQUENCES: [&str; 16] = [
    "Mym",
    "Sxs",
    "M1S=yxzsym",
    "S1M=yxzmxs",
    "M1S=yxzmxs",
    "S1M=yxzsym",
    "MymSxs",
    "SxsMym",
    "SxsSxsMymSxs",
    "M1Sxs=SxzsymSxs",
    "MSxsSxzmxs",
    "SMsym",
    "MSmxs",
    "MSSxszsym",
    "SxsMSxsmSxs",
    // The exit of the process finalises OpenSHMEM.
    "MSyxzmx",
];

#[test]
fn both_interfaces_have_one_runtime_whatever_comes_first() {
    let program = mpi_program(PROGRAM, &BOTH);
    for variables in ROUTES {
        for sequence in SEQUENCES {
            run_with(&program, &[sequence], 3, variables).assert_silent();
        }
    }
}

#[test]
fn both_interfaces_in_a_program_with_the_archive() {
    let library = format!("-Wl,{}", installed().join("lib/libpelago_shmem.a").display());
    for flags in [&["--static", library.as_str()][..], &["-static", library.as_str()]] {
        let program = mpi_program(PROGRAM, flags);
        for sequence in ["M1S=yxzsym", "SxsMym", "MSxsSxzmxs"] {
            run_with(&program, &[sequence], 2, &[]).assert_silent();
        }
    }
}

/// The heap has the size that OpenSHMEM's settings ask for, also if MPI makes it.
#[test]
fn settings_of_openshmem_hold_if_mpi_comes_first() {
    let text = r#"
#include <mpi.h>
#include <shmem.h>

static char large[40 << 20];

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    shmem_init();
    int is_fit = shmem_malloc(24 << 20) != NULL, is_symmetric = shmem_addr_accessible(&large[5 << 20], 0);
    shmem_finalize();
    MPI_Finalize();
    return !is_fit + 2 * !is_symmetric;
}
"#;
    let program = mpi_program(text, &BOTH);
    run_with(&program, &[], 2, &[("SHMEM_SYMMETRIC_SIZE", "32m")]).assert_silent();
    let refused = run_with(&program, &[], 1, &[("SHMEM_SYMMETRIC_SIZE", "many")]);
    refused.assert_refused(1, &["shmem_init", "SHMEM_SYMMETRIC_SIZE is \"many\""]);
}

/// The second library comes by dlopen, into the runtime of the first.
#[test]
fn the_second_interface_may_come_by_dlopen() {
    let text = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    void *shmem = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!shmem) return fprintf(stderr, "%s\n", dlerror());
    void (*init)(void) = (void (*)(void))dlsym(shmem, "shmem_init");
    void (*finalize)(void) = (void (*)(void))dlsym(shmem, "shmem_finalize");
    void (*put)(long *, long, int) = (void (*)(long *, long, int))dlsym(shmem, "shmem_long_p");
    void (*barrier)(void) = (void (*)(void))dlsym(shmem, "shmem_barrier_all");
    void *(*alloc)(size_t) = (void *(*)(size_t))dlsym(shmem, "shmem_malloc");
    int rank, size, n_runtimes = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    init();
    long *word = alloc(sizeof *word);
    put(word, rank, (rank + 1) % size);
    barrier();
    int is_right = *word == (rank + size - 1) % size;
    MPI_Barrier(MPI_COMM_WORLD);
    finalize();
    MPI_Finalize();
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) n_runtimes += strstr(line, "libpelago.so") && strstr(line, "r-xp");
    fclose(maps);
    return !is_right + 2 * (n_runtimes != 1);
}
"#;
    let program = mpi_program(text, &["-ldl"]);
    let library = installed().join("lib/libpelago_shmem.so.1");
    for variables in ROUTES {
        run_with(&program, &[library.to_str().unwrap()], 2, variables).assert_silent();
    }
}
