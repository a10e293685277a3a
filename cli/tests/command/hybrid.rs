//! Jobs of several simulated nodes on one machine: the processes of `pelago run` are divided into two nodes,
//! share memory within a node and communicate over libfabric between nodes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::hosts::Hosts;
use super::jobs::{VARIANTS, assert_ft_json_of, assert_hello};
use super::process::{Started, run_with};

const TWO_NODES: (&str, &str) = ("PELAGO_SIM_NODES", "2");

/// The output of an application on four PEs of two nodes, one object per line.
fn lines(words: &[&str]) -> Vec<Value> {
    let ended = run_with(&[&["run", "-n", "4"], words, &["--json"]].concat(), &[TWO_NODES]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{words:?}");
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_variant_of_ft_is_verified() {
    for class in ["S", "W"] {
        let options = ["run", "-n", "4", "ft", "--class", class, "--variant", "all", "--json"];
        let ended = run_with(&options, &[TWO_NODES]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "class {class}");
        assert_eq!(ended.stdout.lines().count(), VARIANTS.len(), "{}", ended.stdout);
        let rows = ended.stdout.lines().zip(VARIANTS);
        rows.for_each(|(line, variant)| assert_ft_json_of(line, class, 4, variant));
    }
}

#[test]
fn every_application_is_verified() {
    let cases: [(&[&str], usize); 5] = [
        (&["gups", "--method", "all", "--table-log2", "12", "--updates", "8000"], 3),
        (&["qtc", "--points", "2048"], 1),
        (&["histogram", "--table", "1000", "--indices", "2000"], 1),
        (&["index-gather", "--table", "1000", "--indices", "2000"], 1),
        (&["hash-table", "--keys", "50000"], 1),
    ];
    for (words, count) in cases {
        let found = lines(words);
        assert_eq!(found.len(), count, "{words:?}: {found:?}");
        for line in found {
            assert_eq!((&line["verified"], &line["pes"]), (&true.into(), &4.into()), "{line}");
        }
    }
}

/// Two processes of two PEs, one on each node, and four, two on each.
#[test]
fn every_variant_of_ft_is_verified_by_threads_of_processes() {
    for (class, pes) in [("S", 4), ("W", 4), ("S", 8)] {
        let n = pes.to_string();
        let options = ["run", "-n", &n, "--pes-per-process", "2", "ft", "--class", class, "--variant", "all"];
        let ended = run_with(&[&options[..], &["--json"]].concat(), &[TWO_NODES]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "class {class}");
        assert_eq!(ended.stdout.lines().count(), VARIANTS.len(), "{}", ended.stdout);
        let rows = ended.stdout.lines().zip(VARIANTS);
        rows.for_each(|(line, variant)| assert_ft_json_of(line, class, pes, variant));
    }
}

/// A machine without traces of other programs: empty folders for temporary files, and a separate network
/// namespace.
struct Bare {
    holder: Child,
    hosts: Hosts,
}

impl Bare {
    fn new() -> Self {
        let hosts = Hosts::new();
        let script = "mount -t tmpfs none /mnt && cp \"$THIS\" /mnt/pelago && \
                      mount -t tmpfs none /dev/shm && mount -t tmpfs none /var/tmp && \
                      mount -t tmpfs none /tmp && echo ready && exec cat";
        let mut command = hosts.command("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
        command.env("THIS", env!("CARGO_BIN_EXE_pelago")).env_remove("TMPDIR");
        let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let bare = Self { holder, hosts };
        assert_eq!(line, "ready\n", "the folders of a bare machine cannot be mounted (as root?)");
        bare
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.holder.id().to_string(), "--mount", "--net"]).args(words);
        command.env_remove("TMPDIR");
        command
    }

    /// All temporary files and all listening sockets, including those with abstract names.
    fn traces(&self) -> String {
        let script = "find /tmp /var/tmp /dev/shm -mindepth 1; \
                      awk '$4 == \"0A\" { print FILENAME, $0 }' /proc/self/net/tcp /proc/self/net/tcp6; \
                      tail -n +2 /proc/self/net/udp; tail -n +2 /proc/self/net/unix";
        let output = self.command(&["sh", "-c", script]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[test]
fn a_hundred_jobs_in_a_row_leave_nothing_behind() {
    let bare = Bare::new();
    let before = bare.traces();
    for _ in 0..100 {
        let mut command = bare.command(&["/mnt/pelago", "run", "-n", "4", "hello"]);
        command.env(TWO_NODES.0, TWO_NODES.1);
        let ended = Started::new(command).end();
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
        assert_hello(&ended.stdout, 4);
    }
    assert_eq!(bare.traces(), before, "files and sockets that were not there before 100 jobs");
    assert_eq!(bare.hosts.processes(), [bare.holder.id().to_string()]);
}
