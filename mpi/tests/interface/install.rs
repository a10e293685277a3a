//! The installed wrappers and launchers, as users find them. Those of OpenSHMEM, from the same templates, are
//! tested in `shmem/tests/library/interface/install.rs`.

use super::{mpi_program, mpi_program_cxx};
use crate::common::{Ended, end_of, folder, installed, run};
use std::process::Command;

fn tool(name: &str) -> Command {
    Command::new(installed().join("bin").join(name))
}

fn said_by(name: &str, arguments: &[&str]) -> Ended {
    let mut command = tool(name);
    command.args(arguments).env_remove("CC").env_remove("CXX");
    end_of(command)
}

/// Prints the number of PEs, a variable and an argument.
const HELLO: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *colour = getenv("COLOUR");
    if (rank == 0)
        printf("%d %s %s\n", size, colour ? colour : "-", argc > 1 ? argv[1] : "-");
    MPI_Finalize();
    return 0;
}
"#;

#[test]
fn what_the_wrappers_would_run() {
    let prefix = installed().to_str().unwrap();
    let link = format!("-L{prefix}/lib -Wl,-rpath,{prefix}/lib -lmpi_abi");
    for option in ["-show", "--show", "--showme", "-showme"] {
        assert_eq!(
            said_by("mpicc", &[option, "a.c"]).output(),
            format!("gcc -I{prefix}/include a.c {link}\n")
        );
    }
    assert_eq!(said_by("mpicc", &["-show"]).output(), format!("gcc -I{prefix}/include {link}\n"));
    assert_eq!(
        said_by("mpic++", &["-show", "-c", "a.cc"]).output(),
        format!("g++ -I{prefix}/include -c a.cc\n")
    );
    for (part, expected) in [
        ("command", "gcc".to_owned()),
        ("compile", format!("-I{prefix}/include")),
        ("link", link),
        ("incdirs", format!("{prefix}/include")),
        ("libdirs", format!("{prefix}/lib")),
        ("libs", "mpi_abi".to_owned()),
    ] {
        assert_eq!(said_by("mpicc", &[&format!("-showme:{part}")]).output(), expected + "\n");
    }
    said_by("mpicc", &["--showme:colour"]).assert_refused(2, &["--showme knows command, compile"]);
    let mut command = tool("mpicc");
    command.args(["-show", "-c", "a.c"]).env("MPICC_CC", "clang -O3").env("CC", "mpicc");
    assert!(end_of(command).output().starts_with("clang -O3 -I"));
}

#[test]
fn programs_in_cxx_and_with_the_archive() {
    for flags in [&[][..], &["--static"]] {
        assert_eq!(run(&mpi_program(HELLO, flags), 2, &[]).output(), "2 - -\n");
        assert_eq!(run(&mpi_program_cxx(HELLO, flags), 2, &[]).output(), "2 - -\n");
    }
}

#[test]
fn mpiexec_takes_what_other_launchers_take() {
    let program = mpi_program(HELLO, &[]);
    let path = program.to_str().unwrap();
    let (parent, name) = path.rsplit_once('/').unwrap();
    // In place of ssh: the host is left out, and the command runs here.
    let agent = folder().join("agent.sh");
    std::fs::write(&agent, "shift\nexec sh -c \"$*\"\n").unwrap();
    let agent = format!("sh {}", agent.display());
    let file = |name: &str, text: &str| {
        let place = folder().join(name);
        std::fs::write(&place, text).unwrap();
        place.display().to_string()
    };
    let programs = format!("# two\n-n 1 -env COLOUR red \\\n{path} *\n\n-env COLOUR blue -n 2 \\\r\n {path}");
    let programs = file("programs.txt", &programs);
    let apart = file("apart.txt", &format!("-n 1 {path} :\n-n 2 {path}"));
    let hosts = file("hosts.txt", "localhost\n");
    let cases: [(&[&str], &str); 25] = [
        (&["-n", "2", path], "2 - -\n"),
        (&["-np", "3", path, "-np"], "3 - -np\n"),
        (&["-n", "1", path, ":", "-np", "2", path], "3 - -\n"),
        (&["-n", "1", path, "-x", ":", "-env", "COLOUR", "red", "-x", "A=1", "-np", "2", path], "3 - -x\n"),
        (&["-n", "2", path, "yes-np"], "2 - yes-np\n"),
        (&["-configfile", &programs], "3 red *\n"),
        (&["--separator", "/", "-configfile", &apart], "3 - :\n"),
        (&["-f", &hosts, "-n", "2", "--launch-agent", &agent, path], "2 - -\n"),
        (&["-hosts", "localhost", "-n", "2", "--launch-agent", &agent, path], "2 - -\n"),
        (&["-H", "localhost", "--oversubscribe", "-n", "3", "--launch-agent", &agent, path], "3 - -\n"),
        (&["-x", "COLOUR=light blue", "-np", "1", path], "1 light blue -\n"),
        (&["-genv", "COLOUR", "red", "-n", "1", path, "x y"], "1 red x y\n"),
        (&["-n", "2", "-env", "COLOUR", "blue", path], "2 blue -\n"),
        (&["--bind-to", "none", "-n", "2", path], "2 - -\n"),
        (&["--bind-to", "core", "-n", "1", path], "1 - -\n"),
        (&["-host", "localhost:2", "--launch-agent", &agent, path], "2 - -\n"),
        (&["--oversubscribe", "-c", "2", path], "2 - -\n"),
        (&["-l", "-n", "1", path], "[0] 1 - -\n"),
        (&["-n", "2", "--stdin", "none", path], "2 - -\n"),
        (&["-n", "1", "-wdir", parent, &format!("./{name}")], "1 - -\n"),
        (&["-path", parent, "-n", "1", name], "1 - -\n"),
        (&["-n", "2", "-ppn", "2", "-genvall", path], "2 - -\n"),
        (&["-npernode", "2", path], "2 - -\n"),
        (&["--mca", "btl", "self", "--map-by", "core", "-n", "1", path], "1 - -\n"),
        (&["-host", "localhost", "-ppn", "3", "--launch-agent", &agent, path], "3 - -\n"),
    ];
    for (arguments, expected) in cases {
        for launcher in ["mpiexec", "mpirun"] {
            let said = said_by(launcher, arguments);
            assert_eq!(said.output(), expected, "{arguments:?}");
        }
    }
    for option in ["-V", "--version"] {
        let version = format!("mpiexec (Pelago) {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(said_by("mpiexec", &[option]).output(), version);
    }
    assert!(said_by("mpirun", &["--help"]).output().starts_with("Usage: mpirun"));
    said_by("mpiexec", &["-np"]).assert_refused(2, &["-np lacks its value"]);
    said_by("mpiexec", &["-ppn", "two", path]).assert_refused(2, &["a number of PEs, not two"]);
    said_by("mpiexec", &["-f", "h", "-ppn", "2", path])
        .assert_refused(2, &["the numbers of PEs in the file"]);
    said_by("mpiexec", &["-wdir", "/no/such", path]).assert_refused(2, &["/no/such"]);
    said_by("mpiexec", &["-env", "COLOUR"]).assert_refused(2, &["-env lacks its value"]);
    said_by("mpiexec", &["-n", "1", path, ":", "-n"]).assert_refused(2, &["-n lacks its value"]);
    said_by("mpiexec", &["-configfile", "/no/such"]).assert_refused(2, &["/no/such"]);
    said_by("mpiexec", &["-configfile", &programs, path]).assert_refused(2, &["nothing follows"]);
    said_by("mpiexec", &["-configfile", &file("none.txt", "# none\n")])
        .assert_refused(2, &["names no program"]);
    said_by("mpiexec", &["-H", "localhost", "-n", "2", path])
        .assert_refused(2, &["do not fit into the 1 slot"]);
    said_by("mpiexec", &["--bind-to", "moon", path]).assert_refused(2, &["not moon"]);
}

/// Names that a script for the shell would use for itself, and a function of bash.
#[test]
fn mpiexec_passes_the_environment_on() {
    let mut command = tool("mpiexec");
    let names = ["bin", "count", "file", "hosts", "list", "name", "number", "word", "BASH_FUNC_f%%"];
    command.envs(names.iter().map(|name| (name, format!("my {name}"))));
    command.args(["-n", "1", "env"]);
    let ended = end_of(command);
    let said = ended.output();
    for name in names {
        assert!(said.contains(&format!("\n{name}=my {name}\n")), "{name}: {said}");
    }
}

#[test]
fn mpiexec_and_mpicc_take_many_arguments() {
    let many: Vec<_> = (1..=20_000).map(|number| format!("-D{number}")).collect();
    let mut command = tool("mpiexec");
    let print = "eval last=\\${$#}; echo $# $last";
    command.args(["-n", "1", "sh", "-c", print, "-"]).args(&many).args([":", "-n", "1", "true", "a\nb"]);
    assert_eq!(end_of(command).output(), "20000 -D20000\n");
    let mut command = tool("mpicc");
    command.args(["-show", "-c"]).args(&many).arg("--static").env_remove("CC").env_remove("MPICC_CC");
    assert!(end_of(command).output().ends_with(" -D19999 -D20000\n"));
}

#[test]
fn mpiexec_does_not_count_pes_of_the_hosts_of_slurm() {
    for (nodes, is_refused) in [("n[1-2]", true), ("n1,m1", true), ("n1", false)] {
        let mut command = tool("mpiexec");
        command.args(["-ppn", "2", "no-such-program"]).env("SLURM_JOB_NODELIST", nodes);
        command.env("SLURM_TASKS_PER_NODE", "x").env_remove("SLURMD_NODENAME");
        let why = if is_refused { "by --host too" } else { "SLURM_TASKS_PER_NODE" };
        end_of(command).assert_refused(2, &[why]);
    }
}

#[test]
fn names_of_files_do_not_depend_on_the_working_directory_of_the_pes() {
    let folder = folder().join("names of files");
    let folders = ["here/there", "there", "bin", "other"].map(|name| folder.join(name));
    folders.iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
    std::fs::write(folder.join("here/hosts"), "localhost\n").unwrap();
    let started = |options: &[&str], words: &[&str]| {
        let mut command = tool("mpiexec");
        // The shell would look for the working directory there, and say which one it is.
        command.env("CDPATH", &folder).env_remove("OLDPWD").current_dir(folder.join("here"));
        command.args(["-n", "1", "-wdir", "there"]).args(options).args(words);
        end_of(command)
    };
    let here = folder.canonicalize().unwrap().join("here");
    let there = format!("{}\n", here.join("there").display());
    assert_eq!(started(&[], &["pwd", "-P"]).output(), there);
    assert_eq!(started(&["--hostfile=hosts"], &["pwd", "-P"]).output(), there);
    assert_eq!(started(&["--output-dir=out"], &["pwd", "-P"]).output(), "");
    assert_eq!(std::fs::read_to_string(here.join("out/rank.0.out")).unwrap(), there);
    let path = started(&["-path", "a:b:/c"], &["sh", "-c", "echo $PATH"]);
    let expected = format!("{0}/a:{0}/b:/c:", here.display());
    assert!(path.output().starts_with(&expected), "{}", path.output());
    let program = mpi_program(HELLO, &[]);
    let ended = started(&["--trace=t", "--stats=s.json"], &[program.to_str().unwrap()]);
    assert_eq!(ended.output(), "1 - -\n");
    assert!(here.join("t").exists() && here.join("s.json").exists());
}

#[test]
fn the_pkg_config_file_finds_its_own_prefix() {
    for name in ["pelago-mpi", "mpi"] {
        let path = installed().join("lib/pkgconfig").join(name).with_extension("pc");
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.starts_with("prefix=${pcfiledir}/../..\n"), "{text}");
        for words in ["Cflags: -I${includedir}\n", "-lmpi_abi\n", "Libs.private: -lpthread -ldl -lm\n"] {
            assert!(text.contains(words), "{words}");
        }
    }
}

#[test]
fn the_manual_pages_name_what_they_are_of() {
    for name in ["mpicc", "mpicxx", "mpic++", "mpiCC", "mpiexec", "mpirun"] {
        let page = installed().join("share/man/man1").join(format!("{name}.1"));
        let text = std::fs::read_to_string(page).unwrap();
        let heading = text.split(".SH NAME\n").nth(1).unwrap().lines().next().unwrap().to_owned();
        assert!(text.starts_with(".TH ") && heading.contains(name), "{name}: {heading}");
    }
}
