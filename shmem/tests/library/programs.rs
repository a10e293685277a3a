//! Programs of some size, as their authors would write them: C++, threads, several programs in one job, and
//! what watches over programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::common::{ROUTES, c_file, cxx_file, folder, run, run_everywhere, run_with};

#[test]
fn a_solver_in_cxx() {
    let program = cxx_file("solver", &[]);
    run_everywhere(&program);
    for variables in ROUTES {
        run(&program, 6, variables).assert_silent();
    }
    run(&cxx_file("solver", &["--static", "-O2"]), 4, &[]).assert_silent();
    run(&program, 4, &[("PELAGO_CHECK", "on")]).assert_silent();
}

#[test]
fn a_sort_in_cxx() {
    let program = cxx_file("sort", &[]);
    run_everywhere(&program);
    run(&cxx_file("sort", &["--static", "-O2"]), 4, &[]).assert_silent();
    run(&program, 4, &[("PELAGO_CHECK", "on")]).assert_silent();
}

#[test]
fn threads_do_everything_at_once() {
    run_everywhere(&c_file("threads", &[]));
    run(&c_file("threads", &["--static", "-O2"]), 2, &[]).assert_silent();
}

#[test]
fn threads_of_openmp() {
    run_everywhere(&c_file("threads", &["-fopenmp"]));
    run(&c_file("threads", &["-fopenmp", "--static", "-O2"]), 2, &[]).assert_silent();
}

/// The two programs of `two_programs.c`.
fn workers_and_clerks() -> [PathBuf; 2] {
    [c_file("two_programs", &[]), c_file("two_programs", &["-DCLERK"])]
}

/// A script that is one program as the PEs below `border`, and another one from there on.
fn parted(name: &str, border: usize, low: &Path, high: &Path) -> PathBuf {
    let script = folder().join(name);
    let (low, high) = (low.display(), high.display());
    let text =
        format!("#!/bin/sh\n[ \"$PMI_RANK\" -lt {border} ] && exec {low} \"$@\"\nexec {high} \"$@\"\n");
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    script
}

/// The size is that of what programs allocate, whichever of them is PE 0 and however large its variables are.
const SIZES: [&[(&str, &str)]; 2] = [&[], &[("SHMEM_SYMMETRIC_SIZE", "13m")]];

#[test]
fn two_programs_in_one_job() {
    let [worker, clerk] = workers_and_clerks();
    let workers_first = parted("workers-first", 2, &worker, &clerk);
    let clerk_first = parted("clerk-first", 1, &clerk, &worker);
    for variables in [&ROUTES[..], &SIZES].concat() {
        run_with(&workers_first, &["2"], 3, variables).assert_silent();
        run_with(&workers_first, &["2"], 4, variables).assert_silent();
        run_with(&clerk_first, &["0"], 2, variables).assert_silent();
        run_with(&clerk_first, &["0"], 4, variables).assert_silent();
    }
}

#[test]
fn variables_of_two_programs_are_refused() {
    let [worker, clerk] = workers_and_clerks();
    let script = parted("refused", 2, &worker, &clerk);
    let (worker, clerk) =
        (format!("PE 0 runs {}", worker.display()), format!("PE 2 runs {}", clerk.display()));
    for variables in ROUTES {
        let ended = run_with(&script, &["2", "use"], 4, variables);
        ended.assert_refused(1, &["shmem_char_p: dest", &worker, &clerk, "all PEs must run one program"]);
    }
}

#[test]
fn a_job_that_a_process_never_joins_ends() {
    let program = c_file("some_initialise", &[]);
    let run = |which: &str, how: &str| run_with(&program, &[which, how], 3, &[("PELAGO_INIT_TIMEOUT", "1")]);
    run("-1", "0").assert_silent();
    for which in ["0", "2"] {
        let pe = format!("PE {which}");
        run(which, "0").assert_refused(1, &[&pe, "without joining the job that other PEs have joined"]);
        run(which, "5").assert_refused(5, &[&pe, "exited with status 5"]);
        run(which, "stay").assert_refused(1, &[&pe, "did not join within 1 s", "PELAGO_INIT_TIMEOUT"]);
    }
}

#[cfg(feature = "full")]
mod full {
    use std::process::Command;

    use super::{Path, SIZES, c_file, run, run_with, workers_and_clerks};
    use crate::common::{Ended, end_of, job};

    #[test]
    fn two_programs_under_hydra() {
        let [worker, clerk] = workers_and_clerks().map(|path| path.to_str().unwrap().to_owned());
        for variables in SIZES {
            let mut command = Command::new("mpiexec.hydra");
            command.args(["-n", "2", &worker, "2", ":", "-n", "2", &clerk, "2"]);
            command.envs(variables.iter().copied());
            end_of(command).assert_silent();
        }
    }

    #[test]
    fn a_process_that_never_joins_under_hydra() {
        for how in ["0", "5"] {
            let mut command = Command::new("mpiexec.hydra");
            command.args(["-n", "3"]).arg(c_file("some_initialise", &[])).args(["2", how]);
            command.env("PELAGO_INIT_TIMEOUT", "1");
            let ended = end_of(command);
            assert!(ended.status != 0, "{ended:?}");
        }
    }

    #[test]
    fn under_address_sanitizer() {
        let address = "-fsanitize=address";
        let forms: [&[&str]; 6] = [
            &[address],
            &[address, "-static-libasan"],
            &[address, "--static"],
            &[address, "--static", "-static-libasan"],
            &[address, "-fno-pie", "-no-pie"],
            &[address, "-fsanitize=undefined"],
        ];
        for flags in forms {
            let program = c_file("sanitized", flags);
            run_with(&program, &["symmetric"], 2, &[]).assert_silent();
            run_with(&program, &["symmetric"], 3, &[("PELAGO_ROUTE", "net")]).assert_silent();
            run_with(&program, &["variable"], 2, &[]).assert_refused(1, &["global-buffer-overflow"]);
            run_with(&program, &["malloc"], 2, &[]).assert_refused(1, &["heap-buffer-overflow"]);
        }
    }

    /// It looks into a copy by the library, too.
    #[test]
    fn a_call_that_reads_too_far_under_address_sanitizer() {
        for linked in [&["-fsanitize=address"] as &[&str], &["-fsanitize=address", "--static"]] {
            let ended = run_with(&c_file("sanitized", linked), &["source"], 2, &[]);
            ended.assert_refused(1, &["heap-buffer-overflow", "READ of size 160", "sanitized.c"]);
        }
    }

    /// Two PEs of a program, each of which Valgrind watches.
    fn watched(program: &Path, arguments: &[&str]) -> Ended {
        let words = ["-q", "--error-exitcode=77", program.to_str().unwrap()];
        end_of(job(Path::new("valgrind"), &[&words, arguments].concat(), 2, &[]))
    }

    #[test]
    fn under_valgrind() {
        let program = c_file("sanitized", &[]);
        run(&program, 2, &[]).assert_silent();
        watched(&program, &[]).assert_silent();
        watched(&program, &["malloc"]).assert_refused(77, &["Invalid write of size 8"]);
        let words =
            ["shmem_long_p: dest", "static data are not symmetric", "the tool that the program runs under"];
        watched(&program, &["use"]).assert_refused(1, &words);
    }
}
