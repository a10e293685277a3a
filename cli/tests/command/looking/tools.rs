//! Jobs under tools, which scripts stand in for, output in files, and input for several PEs.

use std::fs::{self, File};
use std::io::Write;
use std::process::Stdio;

use super::super::process::{Ended, Folder, Started, pelago, run, run_with};
use super::{Jobs, NEARBY, interrupt};

/// The command with standard input from a file of two lines.
fn with_input(args: &[&str], is_regular: bool) -> Ended {
    let folder = Folder::new(&format!("input-{}", args.join("-").replace('/', "_")));
    let path = folder.file("data");
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

/// Puts a script in the place of a tool; returns the PATH in which it comes first.
fn stand_in(folder: &Folder, tool: &str, script: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    fs::write(folder.file(tool), script).unwrap();
    fs::set_permissions(folder.file(tool), fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", folder.file(""), std::env::var("PATH").unwrap())
}

/// Scripts in the place of the tools print their arguments, and run the program, which comes last.
#[test]
fn tools_get_the_program_and_its_arguments() {
    let folder = Folder::new("scripts");
    let mut path = String::new();
    for tool in ["gdb", "valgrind", "perf"] {
        let script = format!(
            "#!/bin/sh\necho {tool} \"$@\"\nwhile test \"${{1##*/}}\" != sh; do shift; done\nexec \"$@\"\n"
        );
        path = stand_in(&folder, tool, &script);
    }
    let out = folder.file("out");
    for (option, has) in [
        ("--gdb", vec!["gdb ", "-batch", "--args ", "sh -c exit $PMI_RANK"]),
        ("--valgrind=--quiet", vec!["valgrind ", "--quiet", "/out/rank.1.valgrind", "sh -c exit $PMI_RANK"]),
        ("--perf=-g", vec!["perf record ", "-g", "/out/rank.1.perf.data", "sh -c exit $PMI_RANK"]),
    ] {
        let words = ["run", "-n", "2", option, "--output-dir", &out, "sh", "-c", "exit $PMI_RANK"];
        let ended = run_with(&words, &[("PATH", &path)]);
        assert_eq!((ended.status, ended.stdout.as_str()), (1, ""), "{ended:?}");
        let text = folder.read("out/rank.1.out");
        for part in has {
            assert!(text.contains(part), "{option}: no {part:?} in {text}");
        }
    }
}

/// The script cannot attach to processes that a variable names.
#[test]
fn gdb_may_fail_for_some_pes() {
    let (jobs, folder) = (Jobs::new("stacks"), Folder::new("stacks"));
    let script = "#!/bin/sh\nwhile test \"$1\" != -p; do shift; done\ncase \" $REFUSED \" in\n\
                  *\" $2 \"*) echo 'No such process.' >&2; exit 1;;\nesac\n\
                  printf '\\nThread 1 of %s\\n' $2\n";
    let path = stand_in(&folder, "gdb", script);
    let job = jobs.start(&["run", "-n", "2", "sh", "-c", "exec sleep 1000"]);
    let pids: Vec<_> = job.wait_for_pes(2).values().map(|pid| pid.as_raw_nonzero().to_string()).collect();
    let look = |words: &[&str], refused: &str| {
        run_with(words, &[jobs.variable(), ("PATH", &path), ("REFUSED", refused)])
    };
    let failure = format!("gdb cannot attach to process {}: No such process.", pids[0]);
    let ended = look(&["ps", "--stacks"], &pids[0]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let first = format!("PE 0 (pid {}):\n{failure}\n", pids[0]);
    for part in [first, format!("\nThread 1 of {}\n", pids[1])] {
        assert!(ended.stdout.contains(&part), "no {part:?} in {}", ended.stdout);
    }
    let ended = look(&["ps", "--stacks", "--json"], &pids[0]);
    let found: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let (stacks, stack) = (&found["stacks"], format!("Thread 1 of {}\n", pids[1]));
    assert_eq!((&stacks[0]["error"], &stacks[1]["stack"]), (&failure.as_str().into(), &stack.into()));
    assert!(stacks[0]["stack"].is_null() && stacks[1].get("error").is_none(), "{stacks}");
    let ended = look(&["ps", "--stacks"], &pids.join(" "));
    assert!(ended.status == 2 && ended.stderr.contains(&failure), "it has failed for all: {ended:?}");
    interrupt(job);
}

#[test]
fn output_goes_to_files_by_process() {
    let folder = Folder::new("output");
    let out = folder.file("out");
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
    fs::create_dir(folder.file("out/rank.0.err")).unwrap();
    let ended = run(&["run", "-n", "1", "--output-dir", &out, "hello"]);
    assert!(ended.status == 2 && ended.stderr.contains("out/rank.0.err: "), "{}", ended.stderr);
    fs::write(folder.file("file"), "").unwrap();
    let ended = run(&["run", "-n", "1", "--output-dir", &folder.file("file/x"), "hello"]);
    assert!(ended.status == 2 && ended.stderr.contains("--output-dir"), "{}", ended.stderr);
}

/// The device has no room for anything.
#[test]
fn a_file_that_cannot_be_written_ends_a_job_of_several_hosts() {
    let folder = Folder::new("full");
    fs::create_dir(folder.file("out")).unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.file("out/rank.1.out")).unwrap();
    let out = folder.file("out");
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
    let path = folder.file("data");
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
    assert!(ended.status == 2 && ended.stderr.contains("ssh -t HOST gdb"), "{}", ended.stderr);
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
