//! Invalid input: the command prints one message with the mistake and the remedy, exits with a status other
//! than 0, has no output, and leaves nothing behind.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use pelago_boot::user_settings;

use super::process::{Ended, Started, run_with};

/// The exit status if the input is refused before a process starts, or by all PEs.
const USAGE: i32 = 2;
/// The possible starts of a message: each names its origin.
const SPEAKERS: [&str; 7] =
    ["pelago run: ", "pelago app: ", "pelago info: ", "ft: ", "ring: ", "hello: ", "error: "];

/// Checks that the command is refused with one message that contains all these parts.
fn refused(args: &[&str], variables: &[(&str, &str)], parts: &[&str]) {
    let ended = run_with(args, variables);
    assert_one_message(&ended, USAGE, &format!("{variables:?} {args:?}"), parts);
}

fn assert_one_message(ended: &Ended, status: i32, what: &str, parts: &[&str]) {
    let text = &ended.stderr;
    assert_eq!((ended.status, ended.stdout.as_str()), (status, ""), "{what}: {text}");
    for part in parts {
        assert!(text.contains(part), "{what} does not say {part:?}: {text}");
    }
    let begins = |line: &str| SPEAKERS.iter().any(|speaker| line.starts_with(speaker));
    assert!(text.lines().next().is_some_and(begins), "{what}: nobody speaks: {text}");
    assert_eq!(text.lines().filter(|line| begins(line)).count(), 1, "{what}: not one message: {text}");
    let usage_or_one_line = text.starts_with("error: ") || text.lines().count() == 1;
    assert!(usage_or_one_line && text.ends_with('\n'), "{what}: {text}");
}

#[test]
fn programs_that_cannot_be_run() {
    let folder = std::env::temp_dir().join(format!("bad-input-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let file = |name: &str, text: &str, mode| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let plain = file("plain", "#!/bin/sh\n", 0o644);
    let stray = file("stray", "#!/no/such/interpreter\n", 0o755);
    let cases: [(&str, &[&str]); 9] = [
        ("/no/such/program", &["/no/such/program was not found"]),
        ("./no-such-program", &["./no-such-program was not found"]),
        (
            "no-such-program",
            &["\"no-such-program\" is neither", "nor a program in PATH", "there are cholesky, ft, gups"],
        ),
        ("helo", &["did you mean hello?"]),
        ("", &["no program was named"]),
        (folder.to_str().unwrap(), &["is a directory"]),
        (&plain, &["is not executable", "chmod +x"]),
        (&stray, &[&stray, "PE 0 of 2 could not be started", "interpreter"]),
        ("/dev/null", &["is not a regular file"]),
    ];
    for (program, parts) in cases {
        refused(&["run", "-n", "2", program], &[], parts);
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn numbers_of_pes_that_cannot_be_had() {
    let huge = "9".repeat(50);
    let cases = [
        ("0", "a job has 1 PE or more"),
        ("-1", "a job has 1 PE or more"),
        ("-99999999999999999999", "a job has 1 PE or more"),
        ("1000000", "1000000 PEs are too many for this machine: the most is 4096"),
        ("1000000000000000000000000000000", "1000000000000000000000000000000 PEs are too many"),
        (&huge, "9 PEs are too many"),
        ("four", "not a number of PEs"),
        ("1.5", "not a number of PEs"),
        ("1e3", "not a number of PEs"),
        ("", "not a number of PEs"),
        ("-", "not a number of PEs"),
        ("0x10", "not a number of PEs"),
    ];
    for (count, part) in cases {
        refused(&["run", "-n", count, "hello"], &[], &[part]);
    }
}

#[test]
fn numbers_of_pes_of_a_process_that_cannot_be_had() {
    let huge = "9".repeat(50);
    let cases: [(&str, &str, &[&str]); 9] = [
        ("4", "0", &["--pes-per-process", "a process has from 1 to 4096 PEs"]),
        ("4", "-2", &["--pes-per-process", "a process has from 1 to 4096 PEs"]),
        ("4", "two", &["--pes-per-process", "a process has from 1 to 4096 PEs"]),
        ("4", "5000", &["--pes-per-process", "a process has from 1 to 4096 PEs"]),
        ("4", &huge, &["--pes-per-process", "a process has from 1 to 4096 PEs"]),
        ("4", "", &["--pes-per-process", "a process has from 1 to 4096 PEs"]),
        ("5", "2", &["5 PEs cannot be shared out to processes of 2 PEs each", "a multiple of 2"]),
        ("2", "4", &["2 PEs cannot be shared out to processes of 4 PEs each", "a multiple of 4"]),
        ("6", "4", &["6 PEs cannot be shared out to processes of 4 PEs each", "--pes-per-process"]),
    ];
    for (n, each, parts) in cases {
        refused(&["run", "-n", n, "--pes-per-process", each, "hello"], &[], parts);
    }
    let variable = [("PELAGO_PES_PER_PROCESS", "3")];
    refused(&["run", "-n", "4", "hello"], &variable, &["processes of 3 PEs each", "PELAGO_PES_PER_PROCESS"]);
}

#[test]
fn options_and_names_that_do_not_exist() {
    let cases: [(&[&str], &[&str]); 20] = [
        (&["run", "hello"], &["required", "-n <N>"]),
        (&["run", "-n", "2"], &["required", "PROGRAM"]),
        (&["run", "-n", "2", "-n", "3", "hello"], &["-n <N>", "multiple times"]),
        (&["run", "-n", "2", "--bound", "hello"], &["no option --bound", "did you mean --bind?"]),
        (&["run", "-n", "2", "--timeout", "-1", "hello"], &["--timeout", "seconds above 0"]),
        (&["run", "-n", "2", "--timeout", "soon", "hello"], &["--timeout", "seconds above 0"]),
        (&["run", "-n", "2", "--env", "COLOUR", "hello"], &["KEY=VALUE"]),
        (&["rum", "-n", "2", "hello"], &["unrecognized subcommand 'rum'", "'run'"]),
        (&["frobnicate"], &["unrecognized subcommand 'frobnicate'", "Usage: pelago"]),
        (&["ft", "--class", "S"], &["ft is a built-in application", "pelago run -n 2 ft"]),
        (&["app", "helo"], &["\"helo\"", "did you mean hello?", "there are cholesky, ft, gups"]),
        (&["run", "-n", "2", "hello", "there"], &["'there'", "Usage: pelago run -n N hello"]),
        (&["run", "-n", "2", "ring", "--rounds", "0"], &["--rounds", "1..=1000000000"]),
        (&["run", "-n", "2", "ring", "--round", "3"], &["'--round'", "'--rounds'"]),
        (&["run", "-n", "2", "ft", "--class", "Q"], &["--class", "the classes are S, W, A, B, C, D, E, F"]),
        (&["run", "-n", "2", "ft", "--class", "SS"], &["--class", "did you mean S?"]),
        (&["run", "-n", "2", "ft", "--variant", "exchagne"], &["the variants are", "mean exchange?"]),
        (&["info", "--setting"], &["'--setting'", "'--settings'"]),
        (&["info", "--scale", "1"], &["'--scale <N>'", "2..=16777216"]),
        (&["info", "--scale", "10", "--ppn", "0"], &["'--ppn <N>'", "1..=4096"]),
    ];
    for (args, parts) in cases {
        refused(args, &[], parts);
    }
}

#[test]
fn numbers_of_pes_that_ft_cannot_take() {
    let possible = "possible numbers of PEs are 1, 2, 4, 8, 16, 32, 64";
    for (pes, class) in [("3", "S"), ("128", "S"), ("6", "S")] {
        let parts = [&*format!("among {pes} PEs"), "64 x 64 x 64", possible];
        refused(&["run", "-n", pes, "ft", "--class", class], &[], &parts);
        refused(&["run", "-n", pes, "ft", "--class", class, "--json"], &[], &parts);
    }
}

#[test]
fn memory_that_is_not_there() {
    for (class, need) in [("D", "96 GiB"), ("E", "768 GiB"), ("F", "6 TiB")] {
        let parts = [&*format!("class {class} needs"), need, "the largest class that fits is "];
        refused(&["run", "-n", "2", "ft", "--class", class], &[], &parts);
    }
    let small = [("PELAGO_HEAP_SIZE", "4m")];
    refused(&["run", "-n", "2", "ft", "--class", "W"], &small, &["class W needs", "set PELAGO_HEAP_SIZE=6m"]);
    refused(&["app", "ft", "--class", "W"], &small, &["class W needs", "set PELAGO_HEAP_SIZE=10m"]);
    let ended = run_with(&["run", "-n", "2", "ft", "--class", "W"], &[("PELAGO_HEAP_SIZE", "6m")]);
    assert_eq!(ended.status, 0, "the proposed size is enough: {}", ended.stderr);
}

#[test]
fn settings_that_do_not_exist() {
    let cases = [
        ("PELAGO_HEAPSIZE", "did you mean PELAGO_HEAP_SIZE?"),
        ("PELAGO_TIMEOUT_INIT", "did you mean PELAGO_INIT_TIMEOUT?"),
        ("PELAGO_BARIER", "did you mean PELAGO_BARRIER?"),
        ("PELAGO_ZZZZZZ", "unset it"),
        ("PELAGO_", "unset it"),
    ];
    for (name, part) in cases {
        let parts = [name, part, "pelago info --settings"];
        refused(&["run", "-n", "2", "hello"], &[(name, "1")], &parts);
        refused(&["run", "-n", "2", "--env", &format!("{name}=1"), "hello"], &[], &parts);
        refused(&["info"], &[(name, "1")], &parts);
        assert_one_message(&run_with(&["app", "hello"], &[(name, "1")]), 1, name, &parts);
    }
}

/// Values that a setting does not accept.
fn bad_values(setting: &str) -> &'static [&'static str] {
    match setting {
        "PELAGO_HEAP_SIZE" | "PELAGO_POOL_SIZE" => &[
            "0",
            "-1",
            "lots",
            "1.5",
            "1kb",
            "64 m",
            "0x10",
            "1e3",
            "inf",
            "99999999t",
            "autos",
            "+1",
            "k",
            "é",
        ],
        "PELAGO_SYNC_MEMORY" => {
            &["pairwise", "additionally", "barriers", "1", "strategy3", "tree", "pairwise-", "on", "auto"]
        }
        "PELAGO_COLL_FORM" => &["direct", "schedules", "1", "native", "on", "auto,schedule", " auto", "none"],
        "PELAGO_COLL" => &[
            "broadcast",
            "broadcast=",
            "=binomial",
            "broadcast=ring9",
            "bcast=binomial",
            "barrier:tree",
            "auto",
        ],
        "PELAGO_DETERMINISTIC" | "PELAGO_CHECK" | "PELAGO_SERVICE_THREAD" | "PELAGO_SPREAD" => {
            &["2", "yess", "of", "auto", "1.0", "maybe", "none", "-"]
        }
        "PELAGO_COLL_TUNING" | "PELAGO_TRACE" | "PELAGO_STATS" => &[],
        "PELAGO_INIT_TIMEOUT" => {
            &["0", "-1", "nan", "inf", "1e7", "10s", "soon", " 1", "1,5", "1e-30", "0x10", "auto"]
        }
        "PELAGO_COUNTERS" => {
            &["2", "-1", "enable", "of", " on", "onn", "y", "n", "t", "01", "on off", "auto"]
        }
        "PELAGO_BARRIER" => {
            &["tree", "flag", "flags ", "0", "dissem", "auto,flags", "counters", "none", "on"]
        }
        "PELAGO_ROUTE" => &["shm", "nets", "net ", "0", "mapped", "auto,net", "none", "on", "sim"],
        "PELAGO_SIM_SEED" => &["-1", "auto", "1.5", "0x10", "18446744073709551616", " 1", "seed", "on"],
        "PELAGO_SIM_NODES" => &["0", "-1", "auto", "2.0", "0x2", "4294967296", " 2", "two", "on", "1,2"],
        "PELAGO_PES_PER_PROCESS" => {
            &["0", "-1", "4097", "99999999999999999999", "2.0", "two", " 2", "auto", "none", "0x2"]
        }
        "PELAGO_BIND" => &["2", "core", "yess", "auto", "none", " on", "0-3"],
        "PELAGO_SPINS" | "PELAGO_YIELDS" => {
            &["-1", "4294967296", "1k", "many", "1.0", "++1", " 1", "0x1", "auto1", "1e3", "∞", "on"]
        }
        "PELAGO_RING_SIZE" => {
            &["2k", "5k", "65535", "128m", "1g", "auto", "0", "-4k", "64kb", "4095", "x", "1.5m"]
        }
        "PELAGO_WAIT_LIMIT" | "PELAGO_PEER_TIMEOUT" => {
            &["0", "-1", "nan", "inf", "1e7", "10s", "never", "None", "off", " 1", "auto"]
        }
        "PELAGO_STALL_REPORT" => {
            &["-1", "nan", "inf", "1e7", "10s", "never", "none", "Off", "on", " 1", "auto", "0.0"]
        }
        "PELAGO_FABRIC" => &["net", "libfabric", "ofi ", "tcp6", "0", "none", "on", "auto,ofi"],
        "PELAGO_NODE_ID" | "PELAGO_PMIX_LIBRARY" | "PELAGO_LAUNCH_AGENT" | "PELAGO_TCP_CONGESTION" => &[],
        "PELAGO_OFI_PROVIDER" | "PELAGO_OFI_INTERFACE" | "PELAGO_OFI_LIBRARY" | "PELAGO_TCP_INTERFACE" => &[],
        "PELAGO_TCP_ENCRYPT" => &["2", "tls", "onn", "auto", "none", " on", "noise"],
        other => bad_values_of_messages(other),
    }
}

/// The same of the settings of two-sided messages, and of later ones.
fn bad_values_of_messages(setting: &str) -> &'static [&'static str] {
    match setting {
        "PELAGO_EAGER_LIMIT" => &["-1", "2g", "16kb", "many", "1.5", " 1", "none", "on"],
        "PELAGO_UNEXPECTED_MEMORY" => &["0", "63k", "65g", "-1m", "auto", "none", "x", "on"],
        "PELAGO_JOBS_FOLDER" | "PELAGO_COLL_ONLINE_FOLDER" => &[],
        "PELAGO_COLL_ONLINE" => &["2", "onn", "auto", "none", " on", "any", "any order", "on,any-order", "-"],
        "PELAGO_OFI_CARDS" => &["1", "auto", "all", "nearest", " near", "on"],
        "PELAGO_LOG" => &["loud", "info,", "=info", "info,debug", "fabric=", "fabric=loud", "on", "1"],
        "PELAGO_SINGLE_COPY" => &["2", "cma", "onn", "none", " on"],
        "PELAGO_TCP_PORTS" => {
            &["0", "0-5", "5-", "-5", "9-5", "5:9", "65536", "1-65536", "5-9-10", "any", " 5", "+5", "on"]
        }
        "PELAGO_TCP_DATAGRAMS" => &["2", "udp", "onn", "auto", "none", " on"],
        other => panic!("bad values of the setting {other} are missing here"),
    }
}

#[test]
fn settings_that_make_no_sense() {
    for setting in user_settings() {
        for value in bad_values(setting.name).iter().chain(&[""]) {
            let parts = [&*format!("{}={value:?} is not valid", setting.name), setting.accepts];
            refused(&["run", "-n", "2", "hello"], &[(setting.name, value)], &parts);
        }
    }
}

#[test]
fn heaps_that_cannot_be_mapped() {
    let mut limited = Command::new("sh");
    let line = "ulimit -v 4000000 && exec \"$0\" app hello";
    limited.args(["-c", line, env!("CARGO_BIN_EXE_pelago")]).env("PELAGO_HEAP_SIZE", "16g");
    let parts = ["PE 0: mapping the node's memory", "Lower PELAGO_HEAP_SIZE", "ulimit -v"];
    assert_one_message(&Started::new(limited).end(), 1, "a heap above the limit of the shell", &parts);
}

/// Without a size, heaps leave space below the limit of the address space.
#[test]
fn heaps_fit_the_limit_of_the_shell() {
    for kib in ["1500000", "4000000"] {
        let mut limited = Command::new("sh");
        let line = format!("ulimit -v {kib} && exec \"$0\" run -n 2 hello");
        limited.args(["-c", &line, env!("CARGO_BIN_EXE_pelago")]);
        let ended = Started::new(limited).end();
        assert_eq!(ended.status, 0, "{kib} KiB: {}", ended.stderr);
    }
}

#[test]
fn launchers_that_are_not_there() {
    let pmi = |descriptor: &'static str| [("PMI_FD", descriptor), ("PMI_RANK", "0"), ("PMI_SIZE", "2")];
    let pmix: &[_] = &[("PMIX_NAMESPACE", "job"), ("PMIX_RANK", "0"), ("PELAGO_PMIX_LIBRARY", "/no/pmix")];
    let cases: [(&[(&str, &str)], &str); 7] = [
        (&pmi("899"), "PMI_FD=\"899\""),
        (&pmi("x"), "PMI_FD=\"x\""),
        (&[("PMI_FD", "899"), ("PMI_RANK", "2"), ("PMI_SIZE", "2")], "below PMI_SIZE"),
        (&[("PMIX_NAMESPACE", "job")], "PMIX_RANK=\"\""),
        (pmix, "PMIX_NAMESPACE is set"),
        (pmix, "/no/pmix cannot be used"),
        (&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "2")], "--mpi=pmi2"),
    ];
    for (variables, part) in cases {
        let ended = run_with(&["app", "hello"], variables);
        assert_one_message(&ended, 1, &format!("{variables:?}"), &[part, "hello: "]);
    }
}
