//! The installed files, wrappers and launchers, as users find them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{
    Ended, c_program, cxx_program, end_of, folder, installed, root, run, run_everywhere, xtask,
};

/// Every file below the prefix, and its mode.
const FILES: [(&str, u32); 46] = [
    ("bin/mpiCC", 0o755),
    ("bin/mpic++", 0o755),
    ("bin/mpicc", 0o755),
    ("bin/mpicxx", 0o755),
    ("bin/mpiexec", 0o755),
    ("bin/mpirun", 0o755),
    ("bin/oshCC", 0o755),
    ("bin/oshc++", 0o755),
    ("bin/oshcc", 0o755),
    ("bin/oshcxx", 0o755),
    ("bin/oshrun", 0o755),
    ("bin/pelago", 0o755),
    ("include/mpi.h", 0o644),
    ("include/mpp/shmem.h", 0o644),
    ("include/mpp/shmemx.h", 0o644),
    ("include/pshmem.h", 0o644),
    ("include/shmem.h", 0o644),
    ("include/shmemx.h", 0o644),
    ("lib/cmake/Pelago/PelagoConfig.cmake", 0o644),
    ("lib/cmake/Pelago/PelagoConfigVersion.cmake", 0o644),
    ("lib/libmpi_abi.a", 0o644),
    ("lib/libmpi_abi.so", 0o755),
    ("lib/libmpi_abi.so.1", 0o755),
    ("lib/libpelago.a", 0o644),
    ("lib/libpelago.so.0", 0o755),
    ("lib/libpelago_shmem.a", 0o644),
    ("lib/libpelago_shmem.so", 0o755),
    ("lib/libpelago_shmem.so.1", 0o755),
    ("lib/pkgconfig/mpi.pc", 0o644),
    ("lib/pkgconfig/pelago-mpi.pc", 0o644),
    ("lib/pkgconfig/pelago-shmem.pc", 0o644),
    ("share/bash-completion/completions/pelago", 0o644),
    ("share/fish/vendor_completions.d/pelago.fish", 0o644),
    ("share/man/man1/mpiCC.1", 0o644),
    ("share/man/man1/mpic++.1", 0o644),
    ("share/man/man1/mpicc.1", 0o644),
    ("share/man/man1/mpicxx.1", 0o644),
    ("share/man/man1/mpiexec.1", 0o644),
    ("share/man/man1/mpirun.1", 0o644),
    ("share/man/man1/oshCC.1", 0o644),
    ("share/man/man1/oshc++.1", 0o644),
    ("share/man/man1/oshcc.1", 0o644),
    ("share/man/man1/oshcxx.1", 0o644),
    ("share/man/man1/oshrun.1", 0o644),
    ("share/man/man7/pelago-settings.7", 0o644),
    ("share/zsh/site-functions/_pelago", 0o644),
];

/// Each PE writes to its right neighbour, also what C alone can pass by value.
const RING: &str = r#"
#include <shmem.h>

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    long *box = shmem_malloc(sizeof *box);
    *box = -1;
    shmem_barrier_all();
    shmem_long_p(box, me, (me + 1) % n);
    shmem_barrier_all();
    if (*box != (me + n - 1) % n) return __LINE__;
    long double *wide = shmem_calloc(2, sizeof *wide);
    shmem_p(wide + 1, 1.0L / (me + 3), (me + 1) % n);
    shmem_ctx_longdouble_p(SHMEM_CTX_DEFAULT, wide, 3.0L, (me + 1) % n);
    shmem_barrier_all();
    if (wide[1] != 1.0L / ((me + n - 1) % n + 3) || wide[0] != 3.0L) return __LINE__;
    if (shmem_g(wide + 1, (me + 1) % n) != 1.0L / (me + 3)) return __LINE__;
    if (shmem_g(SHMEM_CTX_DEFAULT, wide, me) != 3.0L) return __LINE__;
    shmem_pcontrol(0);
    shmem_pcontrol(2, "more", 3.0);
    shmem_finalize();
    return 0;
}
"#;

#[test]
fn a_program_of_the_shared_library() {
    run_everywhere(&c_program(RING, &[]));
}

#[test]
fn a_program_with_the_library_in_it() {
    run_everywhere(&c_program(RING, &["--static"]));
}

/// The compiler wrapper names the library of MPI, and a program depends on it if it calls MPI.
#[test]
fn a_program_that_calls_mpi_as_well() {
    let text = r#"
#include <mpi.h>
#include <shmem.h>

int main(void)
{
    MPI_Init(0, 0);
    shmem_init();
    int rank = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int is_same = rank == shmem_my_pe();
    shmem_finalize();
    MPI_Finalize();
    return !is_same;
}
"#;
    for flags in [&[][..], &["--static"]] {
        run(&c_program(text, flags), 2, &[]).assert_silent();
    }
    let needs_mpi = |text: &str| {
        let mut command = Command::new("readelf");
        command.arg("-d").arg(c_program(text, &[]));
        end_of(command).output().contains("[libmpi_abi.so")
    };
    assert_eq!([needs_mpi(text), needs_mpi(RING)], [true, false]);
}

#[test]
fn a_program_without_any_shared_library() {
    run(&c_program(RING, &["-static"]), 2, &[]).assert_silent();
}

#[test]
fn a_program_in_cxx() {
    let text = r#"
#pragma GCC diagnostic error "-Wold-style-cast"
#include <pshmem.h>
#include <complex>
#include <vector>

int main()
{
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    auto *box = static_cast<std::complex<double> *>(shmem_malloc(2 * sizeof(std::complex<double>)));
    box[0] = {1.0 * me, 1.0};
    shmem_barrier_all();
    if (shmem_sum_reduce(SHMEM_TEAM_WORLD, box + 1, box, 1)) return 1;
    if (pshmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, box + 1, box, 1)) return 1;
    const std::complex<double> sum(n * (n - 1) / 2.0, n);
    if (box[1] != sum) return 2;
    std::vector<float> some{1.5f, 2.5f};
    auto *there = static_cast<float *>(shmem_malloc(2 * sizeof(float)));
    shmem_put(there, some.data(), some.size(), (me + 1) % n);
    shmem_barrier_all();
    const bool is_right = there[0] == 1.5f && shmem_g(there + 1, me) == 2.5f;
    shmem_finalize();
    return is_right ? 0 : 3;
}
"#;
    run_everywhere(&cxx_program(text, &[]));
    run_everywhere(&cxx_program(text, &["--static"]));
}

fn tool(name: &str) -> Command {
    Command::new(installed().join("bin").join(name))
}

fn said_by(name: &str, arguments: &[&str]) -> Ended {
    let mut command = tool(name);
    command.args(arguments);
    end_of(command)
}

/// The files below a folder, relative to it.
fn files_below(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found
}

/// An empty folder of a test.
fn scratch(name: &str) -> PathBuf {
    let path = folder().join(format!("{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn the_prefix_has_these_files_and_no_others() {
    let expected: BTreeSet<_> = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
    let (pages, found): (BTreeSet<_>, BTreeSet<_>) =
        files_below(installed()).into_iter().partition(|path| path.starts_with("share/man/man1/pelago"));
    assert_eq!(found, expected);
    for name in ["pelago", "pelago-run", "pelago-bench-rma"] {
        assert!(pages.contains(&format!("share/man/man1/{name}.1")), "{pages:?}");
    }
    for (path, mode) in FILES {
        let found = fs::metadata(installed().join(path)).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "{path}");
    }
    let link = fs::read_link(installed().join("lib/libpelago_shmem.so")).unwrap();
    assert_eq!(link, Path::new("libpelago_shmem.so.1"));
    let link = fs::read_link(installed().join("lib/libpelago_shmem.a")).unwrap();
    assert_eq!(link, Path::new("libpelago.a"));
}

#[test]
fn a_second_installation_writes_nothing() {
    let prefix = installed();
    let output = xtask(&["install", "--profile", "dev", "--prefix", prefix.to_str().unwrap()]);
    let written: Vec<_> = output.lines().filter(|line| line.starts_with("  ")).collect();
    assert!(written.is_empty(), "{written:?}");
}

#[test]
fn the_shared_libraries_have_their_names_and_need_only_system_libraries() {
    let system = ["libc.", "libm.", "libgcc_s.", "ld-linux"];
    for (name, filtee) in [("libpelago_shmem.so.1", "libpelago.so.0"), ("libpelago.so.0", "")] {
        let mut command = Command::new("readelf");
        command.args(["-d", "-W"]).arg(installed().join("lib").join(name));
        let ended = end_of(command);
        let entries = |tag: &str| -> Vec<String> {
            let lines = ended.output().lines().filter(|line| line.contains(&format!("({tag})")));
            lines.filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned())).collect()
        };
        assert_eq!(entries("SONAME"), [name]);
        for needed in entries("NEEDED") {
            let is_known = system.iter().any(|known| needed.starts_with(known)) || needed == filtee;
            assert!(is_known, "{name} needs {needed}");
        }
        let (found, of_filter) = match filtee {
            "" => (vec![], vec![]),
            filtee => (vec![filtee.to_owned()], vec!["$ORIGIN".to_owned()]),
        };
        assert_eq!(entries("FILTER"), found, "{name}");
        assert_eq!([entries("RPATH"), entries("RUNPATH")].concat(), of_filter, "{name}");
    }
}

#[test]
fn what_the_wrappers_would_run() {
    let prefix = installed().to_str().unwrap();
    let shown = |name: &str, arguments: &[&str]| said_by(name, arguments).output().trim_end().to_owned();
    let mpi = "-Wl,--push-state,--as-needed -lmpi_abi -Wl,--pop-state";
    let library = format!("-L{prefix}/lib -Wl,-rpath,{prefix}/lib -lpelago_shmem {mpi}");
    assert_eq!(
        shown("oshcc", &["--show", "-O2", "a.c", "-o", "a"]),
        format!("gcc -I{prefix}/include -O2 a.c -o a {library}")
    );
    for option in ["-show", "--showme", "-showme"] {
        assert_eq!(shown("oshc++", &["a.cc", option]), format!("g++ -I{prefix}/include a.cc {library}"));
    }
    let archive = format!("-Wl,{prefix}/lib/libpelago_shmem.a -lpthread -ldl -lm");
    assert_eq!(
        shown("oshcc", &["--static", "--show", "a.o"]),
        format!("gcc -I{prefix}/include a.o {archive}")
    );
    for option in ["-c", "-E", "-S", "-M", "-MM", "-fsyntax-only"] {
        assert_eq!(
            shown("oshcc", &["--show", option, "a.c"]),
            format!("gcc -I{prefix}/include {option} a.c"),
            "{option}"
        );
    }
    let words = ["--show", "-c", "a b.c", "-DNAME=\"it's\"", ""];
    assert_eq!(shown("oshcc", &words), format!("gcc -I{prefix}/include -c 'a b.c' '-DNAME=\"it'\\''s\"' ''"));
}

#[test]
fn the_compiler_may_be_another() {
    let shown = |name: &str, variables: &[(&str, &str)]| {
        let mut command = tool(name);
        command.args(["--show", "-c", "a.c"]).env_remove("CC").env_remove("CXX");
        command.envs(variables.iter().copied());
        end_of(command).output().split(" -I").next().unwrap().to_owned()
    };
    assert_eq!(shown("oshcc", &[]), "gcc");
    assert_eq!(shown("oshcc", &[("CC", "ccache gcc")]), "ccache gcc");
    assert_eq!(shown("oshcc", &[("CC", "cc"), ("OSHCC_CC", "clang")]), "clang");
    assert_eq!(shown("oshcc", &[("CC", "oshcc")]), "gcc", "it does not call itself");
    assert_eq!(shown("oshcc", &[("CC", "/somewhere/bin/oshcc -L/usr/lib")]), "gcc");
    assert_eq!(shown("oshcc", &[("CC", "ccache oshcc"), ("PELAGO_WRAPPER", "1")]), "gcc");
    assert_eq!(shown("oshcc", &[("CC", "gcc -B/opt/oshcc")]), "gcc -B/opt/oshcc");
    assert_eq!(shown("oshc++", &[("CC", "cc"), ("CXX", "c++")]), "c++");
    assert_eq!(shown("oshc++", &[("CXX", "c++"), ("OSHCXX_CXX", "clang++")]), "clang++");
    let mut command = tool("oshcc");
    command.arg("a.c").env("CC", "/no/such/compiler");
    assert!(end_of(command).status != 0);
}

#[test]
fn wrappers_pass_on_what_has_no_file_and_what_fails() {
    assert!(said_by("oshcc", &["--version"]).output().to_lowercase().contains("gcc"));
    assert!(said_by("oshcc", &["-dumpversion"]).output().starts_with(|first: char| first.is_ascii_digit()));
    assert!(said_by("oshcc", &["--help"]).output().starts_with("Usage: oshcc"));
    assert!(said_by("oshc++", &["--help"]).output().starts_with("Usage: oshc++"));
    said_by("oshcc", &["/no/such/file.c"]).assert_refused(1, &["/no/such/file.c"]);
    assert!(said_by("oshcc", &[]).status != 0);
}

#[test]
fn objects_are_compiled_and_linked_in_two_steps() {
    let place = scratch("steps");
    let (source, object, program) = (place.join("a b.c"), place.join("a b.o"), place.join("a b"));
    fs::write(&source, RING).unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    said_by("oshcc", &["-c", &path(&source), "-o", &path(&object)]).assert_silent();
    said_by("oshcc", &[&path(&object), "-o", &path(&program)]).assert_silent();
    run(&program, 2, &[]).assert_silent();
    fs::remove_dir_all(place).unwrap();
}

/// The prefix may lie elsewhere than where it was installed, and the wrappers may be called by links.
#[test]
fn the_prefix_can_be_moved() {
    let place = scratch("moved here");
    let moved = place.join("new prefix");
    let mut copy = Command::new("cp");
    copy.arg("-rl").arg(installed()).arg(&moved);
    end_of(copy).assert_silent();
    symlink(moved.join("bin/oshcc"), place.join("oshcc")).unwrap();
    symlink(moved.join("bin/oshrun"), place.join("oshrun")).unwrap();
    let (source, program) = (place.join("ring.c"), place.join("ring"));
    fs::write(&source, RING).unwrap();
    let mut compile = Command::new(place.join("oshcc"));
    compile.arg(&source).arg("-o").arg(&program);
    end_of(compile).assert_silent();
    let mut listed = Command::new("ldd");
    listed.arg(&program);
    assert!(end_of(listed).output().contains(moved.to_str().unwrap()));
    let mut start = Command::new(place.join("oshrun"));
    start.args(["-n", "2"]).arg(&program);
    end_of(start).assert_silent();
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn destdir_is_honoured() {
    installed();
    let place = scratch("stage");
    let target = folder();
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--package", "xtask", "--", "install"]);
    command.args(["--profile", "dev", "--prefix", "/opt/of pelago"]).current_dir(root());
    command.env("DESTDIR", &place).env("CARGO_TARGET_DIR", target.parent().unwrap());
    end_of(command).output();
    assert_eq!(files_below(&place.join("opt/of pelago")), files_below(installed()));
    assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn oshrun_takes_what_other_launchers_take() {
    let program = c_program(
        r#"
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    shmem_init();
    const char *colour = getenv("COLOUR");
    if (shmem_my_pe() == 0)
        printf("%d %s %s\n", shmem_n_pes(), colour ? colour : "-", argc > 1 ? argv[1] : "-");
    shmem_finalize();
    return 0;
}
"#,
        &[],
    );
    let path = program.to_str().unwrap();
    let cases: [(&[&str], &str); 8] = [
        (&["-n", "2", path], "2 - -\n"),
        (&["-np", "3", path, "-np"], "3 - -np\n"),
        (&["--np", "1", path], "1 - -\n"),
        (&["-c", "2", "--oversubscribe", path, "--help"], "2 - --help\n"),
        (&["-x", "COLOUR=light blue", "-np", "1", path], "1 light blue -\n"),
        (&["-n", "2", "--timeout", "60", "-x", "HOME", path], "2 - -\n"),
        (&["-n2", "--env", "COLOUR=red", path, "x y"], "2 red x y\n"),
        (&["-n", "1", "--", path], "1 - -\n"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(said_by("oshrun", arguments).output(), expected, "{arguments:?}");
    }
    assert!(said_by("oshrun", &["--help"]).output().starts_with("Usage: oshrun"));
    said_by("oshrun", &["-np"]).assert_refused(2, &["-np lacks its value"]);
    said_by("oshrun", &["-np", "many", path]).assert_refused(2, &["not a number of PEs"]);
    said_by("oshrun", &["-np", "2", "--no-such-option", path]).assert_refused(2, &["--no-such-option"]);
    said_by("oshrun", &["-n", "2", "/no/such/program"])
        .assert_refused(2, &["/no/such/program was not found"]);
}

#[test]
fn the_pkg_config_file_finds_its_own_prefix() {
    let text = fs::read_to_string(installed().join("lib/pkgconfig/pelago-shmem.pc")).unwrap();
    assert!(text.starts_with("prefix=${pcfiledir}/../..\n"), "{text}");
    assert!(text.contains(&format!("\nVersion: {}\n", env!("CARGO_PKG_VERSION"))), "{text}");
    for words in ["Cflags: -I${includedir}\n", "-lpelago_shmem\n", "Libs.private: -lpthread -ldl -lm\n"] {
        assert!(text.contains(words), "{words}");
    }
}

#[test]
fn the_manual_pages_name_what_they_are_of() {
    for name in ["oshcc", "oshc++", "oshrun"] {
        let page = installed().join("share/man/man1").join(format!("{name}.1"));
        let text = fs::read_to_string(page).unwrap();
        assert!(text.starts_with(".TH ") && text.contains(&format!(".SH NAME\n{name} \\- ")), "{name}");
    }
}
