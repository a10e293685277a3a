//! Names of built-in applications beside programs in PATH, and the log of the start.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::super::process::{Started, pelago, run, run_with};
use super::NEARBY;

#[test]
fn a_program_in_path_is_not_shadowed_and_the_application_can_be_named() {
    let folder = std::env::temp_dir().join(format!("pelago-names-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("hello");
    fs::write(&program, "#!/bin/sh\necho this is another hello\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let with = |word: &str| run_with(&["run", "-n", "2", word], &[("PATH", &path)]);
    let plain = with("hello");
    assert_eq!((plain.status, plain.stdout.as_str()), (0, "this is another hello\n".repeat(2).as_str()));
    let told =
        format!("pelago run: hello is {} here; app:hello is the built-in application\n", program.display());
    assert_eq!(plain.stderr, told);
    let built_in = with("app:hello");
    assert_eq!((built_in.status, built_in.stderr.as_str()), (0, ""));
    assert_eq!(built_in.stdout.matches("Hello from PE ").count(), 2, "{}", built_in.stdout);
    let two = ["run", "-n", "1", "app:hello", ":", "-np", "1", "hello"];
    let ended = run(&two);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "PATH has no hello here");
    let mut command = pelago(&["run", "-n", "1", "hello"]);
    command.current_dir(&folder);
    let ended = Started::new(command).end();
    let refused = "pelago run: hello is a built-in application and a file here: write ./hello or app:hello\n";
    assert!(ended.status == 2 && ended.stderr.ends_with(&refused[12..]), "{}", ended.stderr);
    fs::remove_dir_all(&folder).unwrap();
    let ended = run(&["run", "-n", "2", "app:helo"]);
    assert!(ended.status == 2 && ended.stderr.contains("did you mean hello?"), "{}", ended.stderr);
}

#[test]
fn the_log_tells_the_decisions_of_the_start() {
    let ended = run_with(&["run", "-n", "2", "app:hello"], &[("PELAGO_LOG", "info")]);
    assert_eq!(ended.status, 0);
    let host = rustix::system::uname();
    let host = host.nodename().to_str().unwrap();
    let has =
        |line: &str| assert!(ended.stderr.lines().any(|found| found.contains(line)), "{}", ended.stderr);
    has(": info launcher: starting 2 PEs: ");
    for pe in 0..2 {
        has(&format!("PE {pe} on {host}: info job: joined 2 processes of 1 PEs each, launcher Pelago"));
        has(&format!("PE {pe} on {host}: info nodes: 1 nodes; PEs 0-1 are on this one ("));
        has(&format!("PE {pe} on {host}: info memory: each PE has a heap of "));
        has(&format!(
            "PE {pe} on {host}: info fabric: all PEs map each other's memory; no network is opened"
        ));
    }
    assert!(!ended.stderr.contains(": debug "), "{}", ended.stderr);
    assert_eq!(run(&["run", "-n", "2", "app:hello"]).stderr, "", "nothing is logged by default");
}

#[test]
fn a_target_has_a_level_of_its_own() {
    let words = ["run", "--hosts", "a,b", "--launch-agent", NEARBY, "--env", "PELAGO_NODE_ID=x", "app:hello"];
    let ended = run_with(&words, &[("PELAGO_LOG", "coll=debug,fabric=info")]);
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    let targets: Vec<_> = ended.stderr.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
    assert_eq!(targets.iter().filter(|target| **target == "debug coll").count(), 2, "{}", ended.stderr);
    assert_eq!(targets.iter().filter(|target| **target == "info fabric").count(), 2, "{}", ended.stderr);
    assert_eq!(targets.len(), 4, "{}", ended.stderr);
    let net = [("PELAGO_LOG", "debug"), ("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "tcp")];
    let ended = run_with(&["run", "-n", "2", "app:hello"], &net);
    for part in [
        "congestion control: ",
        "debug fabric: opened tcp",
        "info fabric: tcp between all PEs",
        "PELAGO_FABRIC=tcp",
    ] {
        assert_eq!(ended.stderr.matches(part).count(), 2, "{part}: {}", ended.stderr);
    }
}
