//! Jobs under gdb, valgrind and perf, which these tests need, output in files, and input for several PEs.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::super::process::{Ended, Started, pelago, run, run_with};
use super::NEARBY;

/// A folder that is deleted after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("pelago-tools-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A line of shell code in which PE 1 crashes.
const CRASH: [&str; 3] = ["sh", "-c", "echo $PMI_RANK runs; test $PMI_RANK != 1 || kill -SEGV $$"];

/// The command with standard input from a file of two lines.
fn with_input(args: &[&str], is_regular: bool) -> Ended {
    let folder = Folder::new(&format!("input-{}", args.join("-").replace('/', "_")));
    let path = folder.at("data");
    fs::write(&path, "one\ntwo\n").unwrap();
    let input = if is_regular {
        Stdio::from(File::open(&path).unwrap())
    } else {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"one\ntwo\n").unwrap();
        Stdio::from(reader)
    };
    Started::with_input(pelago(args), input).end()
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn gdb_prints_the_stacks_of_a_pe_that_crashes() {
    let folder = Folder::new("gdb");
    let out = folder.at("out");
    let words = [&["run", "-n", "3", "--gdb", "--output-dir", &out], &CRASH[..]].concat();
    let ended = run(&words);
    assert_eq!((ended.status, ended.stdout.as_str()), (139, ""), "{}", ended.stderr);
    assert_eq!(ended.stderr, "pelago run: PE 1 exited with status 139\n");
    let text = folder.read("out/rank.1.out");
    for part in ["1 runs\n", "received signal SIGSEGV", "\nThread 1 ", "\n#0 "] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let ended = run(&["run", "-n", "2", "--gdb", "hello"]);
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    assert_eq!(ended.stdout.matches("Hello from PE ").count(), 2, "{}", ended.stdout);
    let ended = run(&["run", "-n", "2", "--gdb", "sh", "-c", "exit 7"]);
    assert_eq!(ended.status, 7, "{}", ended.stderr);
}

#[test]
fn one_pe_runs_in_gdb_with_commands_from_standard_input() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"info program\nrun\nprint $_exitcode + 41\nquit\n").unwrap();
    drop(writer);
    let job = Started::with_input(pelago(&["run", "-n", "3", "--gdb=2", "app:hello"]), reader.into());
    let ended = job.end();
    assert_eq!(ended.status, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("$1 = 41") && ended.stdout.contains("from PE 2 of 3"), "{}", ended.stdout);
    assert_eq!(ended.stdout.matches("Starting program").count(), 1, "{}", ended.stdout);
}

/// The script that types at a terminal.
const TERMINAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/looking/terminal.py");

#[test]
fn gdb_gets_the_terminal_and_the_launcher_gets_it_back() {
    let mut command = Command::new("python3");
    let line = "test $PMI_RANK = 1 || exec sleep 1000";
    command.args([TERMINAL, env!("CARGO_BIN_EXE_pelago"), "run", "-n", "2", "--gdb=1", "sh", "-c", line]);
    // In the foreground gdb can read, and stop the program by Ctrl-C; later Ctrl-C is for the launcher.
    command.args(["--", "(gdb) ", "print 6 * 7", "$1 = 42", "run", "exited normally", "quit"]);
    command.args(["FOREGROUND", "^C"]);
    let ended = Started::new(command).end();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    let told = "the job was ended by signal 2 (SIGINT) to the launcher";
    assert!(ended.stdout.contains(told) && ended.stdout.ends_with("status 130\n"), "{}", ended.stdout);
}

#[test]
fn valgrind_reports_into_the_folder() {
    let folder = Folder::new("valgrind");
    let out = folder.at("a/b");
    let words = ["run", "-np", "2", "--valgrind", "--output-dir", &out, "sh", "-c", "exit 0"];
    let ended = run(&words);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    for pe in 0..2 {
        let text = folder.read(&format!("a/b/rank.{pe}.valgrind"));
        assert!(text.contains("Memcheck") && text.contains("ERROR SUMMARY"), "{text}");
    }
    let ended = run(&["run", "-n2", "--valgrind=--quiet --tool=none", "hello"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert_eq!(ended.stdout.matches("Hello from PE ").count(), 2, "{}", ended.stdout);
}

#[test]
fn perf_writes_a_file_for_each_pe() {
    let folder = Folder::new("perf");
    let options = ["run", "--hosts", "a,b", "--launch-agent", NEARBY];
    for (words, name) in [(&["run", "-n", "2"][..], "here"), (&options, "hosts")] {
        let out = folder.at(name);
        let words = [words, &["--perf=-e cpu-clock", "--output-dir", &out, "app:hello"]].concat();
        let ended = run(&words);
        assert_eq!((ended.status, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
        for pe in 0..2 {
            let data = fs::read(folder.0.join(name).join(format!("rank.{pe}.perf.data"))).unwrap();
            assert!(data.starts_with(b"PERFILE2"), "{name}: the file of PE {pe} is none of perf");
            let text = folder.read(&format!("{name}/rank.{pe}.out"));
            assert!(text.starts_with(&format!("Hello from PE {pe} of 2 ")), "{text}");
        }
    }
}

#[test]
fn output_goes_to_files_by_process() {
    let folder = Folder::new("output");
    let out = folder.at("out");
    let line = "echo out $PMI_RANK; echo err $PMI_RANK >&2";
    let here = ["run", "-n", "4", "--pes-per-process", "2"];
    let hosts = ["run", "--hosts", "a:2,b:2", "--launch-agent", NEARBY, "--pes-per-process", "2"];
    for words in [&here[..], &hosts] {
        let ended = run(&[words, &["--output-dir", &out, "sh", "-c", line]].concat());
        assert_eq!((ended.status, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
        for (process, pes) in ["0-1", "2-3"].iter().enumerate() {
            assert_eq!(folder.read(&format!("out/rank.{pes}.out")), format!("out {process}\n"));
            assert_eq!(folder.read(&format!("out/rank.{pes}.err")), format!("err {process}\n"));
        }
    }
    fs::write(folder.at("file"), "").unwrap();
    let ended = run(&["run", "-n", "1", "--output-dir", &folder.at("file/x"), "hello"]);
    assert!(ended.status == 2 && ended.stderr.contains("--output-dir"), "{}", ended.stderr);
}

/// The device has no room for anything.
#[test]
fn a_file_that_cannot_be_written_ends_a_job_of_several_hosts() {
    let folder = Folder::new("full");
    fs::create_dir(folder.at("out")).unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.at("out/rank.1.out")).unwrap();
    let out = folder.at("out");
    let words = ["run", "--hosts", "a,b", "--launch-agent", NEARBY, "--output-dir", &out];
    let ended = run(&[&words[..], &["sh", "-c", "echo text; exec sleep 1000"]].concat());
    assert_eq!(ended.status, 1);
    let parts = ["cannot be written to", "rank.1.out", "No space left"];
    assert!(parts.iter().all(|part| ended.stderr.contains(part)), "{}", ended.stderr);
}

#[test]
fn the_pes_that_are_named_read_standard_input() {
    let hosts = ["--hosts", "a:2,b", "--launch-agent", NEARBY];
    let all = ["[0] one", "[0] two", "[1] one", "[1] two", "[2] one", "[2] two"];
    let cases = [("all", &all[..]), ("none", &[]), ("2", &all[4..]), ("0", &all[..2])];
    for place in [&["-n", "3"][..], &hosts] {
        for (which, expected) in cases {
            for is_regular in [false, true] {
                let words = [&["run"], place, &["--stdin", which, "--tag-output", "cat"]].concat();
                let ended = with_input(&words, is_regular);
                assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{words:?}");
                assert_eq!(sorted(&ended.stdout), expected, "{words:?} {is_regular}");
            }
        }
    }
}

#[test]
fn all_of_a_long_input_reaches_every_pe_that_reads() {
    let folder = Folder::new("long");
    let path = folder.at("data");
    fs::write(&path, "0123456789abcde\n".repeat(1 << 16)).unwrap();
    // PE 0 reads nothing and leaves, which does not keep the others from reading.
    let words = ["run", "-n", "3", "--stdin", "all", "sh", "-c", "test $PMI_RANK = 0 || wc -c"];
    let job = Started::with_input(pelago(&words), File::open(&path).unwrap().into());
    let ended = job.end();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let counts: Vec<_> = ended.stdout.split_whitespace().collect();
    assert_eq!(counts, ["1048576", "1048576"]);
}

#[test]
fn options_that_cannot_be_served_are_refused() {
    let refused = |words: &[&str], part: &str| {
        let ended = run(&[&["run", "-n", "2"], words, &["hello"]].concat());
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{words:?}");
        assert!(ended.stderr.contains(part), "{words:?}: {}", ended.stderr);
    };
    refused(&["--gdb=2"], "there is no PE 2 among the 2 PEs of the job, for a debugger");
    refused(&["--gdb=x"], "\"x\" is not the number of a PE");
    refused(&["--stdin", "2"], "for standard input");
    refused(&["--stdin", "some"], "all, none, or the number of a PE");
    refused(&["--gdb", "--perf"], "cannot be used with");
    refused(&["--gdb=1", "--stdin", "0"], "--stdin cannot be given");
    refused(&["--output-dir", "x", "--tag-output"], "cannot be used with");
    let hosts = ["run", "--hosts", "a,b", "--launch-agent", NEARBY];
    let ended = run(&[&hosts[..], &["--gdb=1", "hello"]].concat());
    assert!(ended.status == 2 && ended.stderr.contains("pelago attach"), "{}", ended.stderr);
    for (tool, name) in [("--gdb", "gdb"), ("--valgrind", "valgrind"), ("--perf", "perf")] {
        let this = env!("CARGO_BIN_EXE_pelago");
        let ended = run_with(&["run", "-n", "2", tool, this, "app", "hello"], &[("PATH", "/nowhere")]);
        let remedy = format!("{name} is not in PATH; install it, such as by `apt install {name}`");
        assert!(ended.status == 2 && ended.stderr.contains(&remedy), "{tool}: {}", ended.stderr);
        // The PATH of the job is what counts on other hosts.
        let words = [&hosts[..], &["--env", "PATH=/nowhere", tool, this, "app", "hello"]].concat();
        let ended = run(&words);
        assert!(ended.status == 1 && ended.stderr.contains("install it on all hosts"), "{}", ended.stderr);
    }
}
