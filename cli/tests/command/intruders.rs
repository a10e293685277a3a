//! Another user of the machine attacks a job over tcp: with keys that are easily guessed, with all numbers
//! that the system reveals about the job's processes, and with messages. The job is not affected. Needs root,
//! to become that user.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pelago::World;
use rustix::process::Pid;

use super::hosts::{ADDRESSES, Hosts, REMOTE};
use super::process::{Ended, Started, pelago, wait_until};

/// The variable by which a copy of this program knows what to do.
const BODY: &str = "PELAGO_TEST_BODY";
/// The variable with the path of the files by which it reports that it is ready, and learns that the attack
/// is over.
const MARK: &str = "TEST_MARK";
const PATTERN: u64 = 0x0123_4567_89ab_cdef;
const WORDS: usize = 1 << 20;
/// The id of a user and a group without files.
const NOBODY: &str = "65534";

/// The body of a PE that is attacked, in a copy of this test program.
#[test]
fn pe_that_is_attacked() {
    if std::env::var_os(BODY).is_none_or(|body| body != "attacked") {
        return;
    }
    let world = World::init().unwrap();
    let (me, n) = (world.my_pe(), world.n_pes());
    let array = world.alloc::<u64>(WORDS).unwrap();
    (0..WORDS).for_each(|i| array.local().set(i, PATTERN));
    world.barrier();
    let mark = std::env::var(MARK).unwrap();
    std::fs::write(format!("{mark}-{me}"), "").unwrap();
    // PE 0 decides in which round the attack is over, because PEs may check for the file at different times.
    let last = world.alloc_zeroed::<u64>(1).unwrap();
    for round in 1.. {
        if me == 0 && Path::new(&format!("{mark}-over")).is_file() {
            (0..n).for_each(|pe| last.p(pe, 0, round).unwrap());
        }
        world.barrier();
        if last.local().get(0) == round {
            break;
        }
    }
    // After the attack, members can still exchange messages, more than there are receive buffers.
    let sum = world.alloc_zeroed::<u64>(1).unwrap();
    for _ in 0..1000 {
        sum.fetch_add((me + 1) % n, 0, 1).unwrap();
        world.barrier();
    }
    assert_eq!(sum.local().get(0), 1000);
    assert!((0..WORDS).all(|i| array.local().get(i) == PATTERN), "PE {me}: somebody has written to the heap");
}

/// A job of two nodes under attack.
struct Victim {
    job: Started,
    folder: PathBuf,
}

impl Victim {
    fn start(name: &str) -> Victim {
        Victim::over("ofi", name)
    }

    /// A job over this fabric.
    fn over(fabric: &str, name: &str) -> Victim {
        let mut launcher = pelago(&["run", "-n", "2"]);
        launcher.env("PELAGO_SIM_NODES", "2").env("PELAGO_FABRIC", fabric);
        Victim::of(launcher, name)
    }

    /// A job of two PEs that this launcher starts.
    fn of(mut launcher: Command, name: &str) -> Victim {
        let folder = std::env::temp_dir().join(format!("pelago-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mark = folder.join("mark");
        launcher.arg(std::env::current_exe().unwrap());
        launcher.args(["--exact", "intruders::pe_that_is_attacked", "--nocapture", "--test-threads=1"]);
        launcher.env(BODY, "attacked").env(MARK, &mark);
        let job = Started::new(launcher);
        let is_ready = |pe: usize| folder.join(format!("mark-{pe}")).is_file();
        wait_until("the job to be ready", || (0..2).all(is_ready));
        Victim { job, folder }
    }

    fn pids(&self) -> Vec<Pid> {
        self.job.pes().into_values().collect()
    }

    /// Lets the job continue to its end.
    fn end(self) -> Ended {
        std::fs::write(self.folder.join("mark-over"), "").unwrap();
        let ended = self.job.end();
        std::fs::remove_dir_all(&self.folder).unwrap();
        ended
    }
}

/// A command of the user nobody.
fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(program);
    command
}

/// The text that the user nobody can read about a process and its sockets in /proc.
fn shown(pid: Pid) -> String {
    let mut text = String::new();
    for file in
        ["stat", "status", "cmdline", "environ", "maps", "auxv", "io", "limits", "net/tcp", "net/unix"]
    {
        let path = format!("/proc/{}/{file}", pid.as_raw_nonzero());
        let output = as_nobody(Path::new("cat")).arg(path).output().unwrap();
        text += &String::from_utf8_lossy(&output.stdout);
    }
    text
}

/// The addresses and ports at which a process listens on its host.
fn addresses(pid: Pid) -> Vec<(String, u16)> {
    let host = format!("--net=/proc/{}/ns/net", pid.as_raw_nonzero());
    let output = Command::new("nsenter").args([&host, "ss", "-tlnpH"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mark = format!("pid={},", pid.as_raw_nonzero());
    let found = text.lines().filter(|line| line.contains(&mark));
    let places = found.filter_map(|line| line.split_whitespace().nth(3)?.rsplit_once(':'));
    places.map(|(address, port)| (address.to_owned(), port.parse().unwrap())).collect()
}

/// The ports at which a process listens, and whether only this machine can reach them.
fn listening(pid: Pid) -> Vec<(u16, bool)> {
    let is_local = |address: &str| address == "127.0.0.1" || address == "[::1]";
    addresses(pid).into_iter().map(|(address, port)| (port, is_local(&address))).collect()
}

/// Compiles the intruder, in a folder where the user nobody may start it.
fn intruder(folder: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/intruder.c");
    let program = folder.join("intruder");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-Wall", "-Werror", source, "-lfabric", "-o"]).arg(&program);
    assert!(gcc.status().unwrap().success());
    program
}

/// Attacks with these keys; all must fail.
fn attack(victim: &Victim, ports: &[u16], keys: &BTreeSet<u64>) {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let mut command = as_nobody(&intruder(&victim.folder));
    let mut child =
        command.arg(ports.join(",")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines: String = keys.iter().map(|key| format!("{key}\n")).collect();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let none = format!("keys {} reads 0 writes 0 atomics 0 messages ", keys.len());
    assert!(output.status.success() && text.starts_with(&none), "{}: {text}", output.status);
}

#[test]
fn another_user_reaches_nothing_over_tcp() {
    let victim = Victim::start("intruder");
    let found: Vec<_> = victim.pids().into_iter().flat_map(listening).collect();
    assert!(found.len() >= 2 && found.iter().all(|(_, is_local)| *is_local), "{found:?}");
    let ports: Vec<u16> = found.iter().map(|(port, _)| *port).collect();
    attack(&victim, &ports, &[0, 1, 2, 7, 1 << 16, 1 << 63, u64::MAX].into());
    let Ended { status, stdout, stderr, .. } = victim.end();
    assert_eq!(status, 0, "{stdout}{stderr}");
}

/// The program of an intruder. At each address and port of a job over TCP it opens connections that send
/// nothing, and connections that send random bytes, more and fewer than a hello message has. It prints the
/// number of bytes that each connection received.
const STRANGER: &str = r#"
    for place in "$@"; do
        for i in $(seq 60); do exec {silent}<>/dev/tcp/$place; done
        for i in $(seq 40); do
            (exec 3<>/dev/tcp/$place
             head -c $((i * 7)) /dev/urandom >&3; timeout 20 cat <&3 | wc -c) &
        done
        wait
    done
"#;

#[test]
fn strangers_get_no_answer_over_connections_of_our_own() {
    let victim = Victim::over("tcp", "stranger");
    let found: Vec<_> = victim.pids().into_iter().flat_map(listening).collect();
    assert!(found.len() >= 2 && found.iter().all(|(_, is_local)| *is_local), "{found:?}");
    let places: Vec<_> = found.iter().map(|(port, _)| format!("127.0.0.1/{port}")).collect();
    knock(as_nobody(Path::new("bash")), &places);
    let Ended { status, stdout, stderr, .. } = victim.end();
    assert_eq!(status, 0, "{stdout}{stderr}");
}

/// Lets an intruder, with this shell, connect to these addresses: it must receive no reply.
fn knock(mut shell: Command, places: &[String]) {
    let output = shell.args(["-c", STRANGER, "bash"]).args(places).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.lines().collect::<Vec<_>>(), vec!["0"; 40 * places.len()]);
}

/// Root on a third host that can reach both hosts of a job.
#[test]
fn a_host_on_the_same_switch_gets_no_answer() {
    let hosts = Hosts::on_a_switch(3);
    let mut launcher = hosts.command(env!("CARGO_BIN_EXE_pelago"));
    launcher.args(["run", "--launch-agent", REMOTE, "--hosts"]);
    launcher.arg(ADDRESSES.map(|address| format!("{address}:1")).join(","));
    let victim = Victim::of(launcher, "switch");
    let found: Vec<_> = victim.pids().into_iter().flat_map(addresses).collect();
    let is_on_it = |(address, _): &&(String, u16)| ADDRESSES.contains(&&**address);
    let places: Vec<_> =
        found.iter().filter(is_on_it).map(|(address, port)| format!("{address}/{port}")).collect();
    assert_eq!(places.len(), 2, "{found:?}");
    knock(hosts.command_on(2, "bash"), &places);
    let Ended { status, stdout, stderr, .. } = victim.end();
    assert_eq!(status, 0, "{stdout}{stderr}");
    hosts.assert_no_processes();
}

#[test]
fn what_the_system_shows_does_not_help_to_guess() {
    let victim = Victim::start("guesser");
    let pids = victim.pids();
    let mut keys = BTreeSet::new();
    for pid in &pids {
        let text = shown(*pid);
        let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() > 3);
        for word in words {
            keys.extend(word.parse::<u64>().ok());
            keys.extend(u64::from_str_radix(word, 16).ok());
        }
    }
    // Each wrong key needs a new connection, so only a sample of the keys is tried.
    let step = keys.len().div_ceil(60).max(1);
    let sample: BTreeSet<u64> = keys.into_iter().step_by(step).collect();
    assert!(sample.len() > 20, "{sample:?}");
    let ports: Vec<u16> = listening(pids[0]).iter().map(|(port, _)| *port).collect();
    attack(&victim, &ports, &sample);
    let Ended { status, stdout, stderr, .. } = victim.end();
    assert_eq!(status, 0, "{stdout}{stderr}");
}

/// An intruder that is killed while it sends messages leaves nothing behind in the job.
#[test]
fn an_intruder_that_is_killed_does_no_harm() {
    let victim = Victim::start("killed-intruder");
    let program = intruder(&victim.folder);
    let port = listening(victim.pids()[0])[0].0.to_string();
    for _ in 0..20 {
        let mut command = as_nobody(&program);
        command.arg(&port).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let has_connected = || {
            let output = Command::new("ss").args(["-tnH", "state", "established"]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).contains(&format!(":{port} "))
        };
        wait_until("the intruder to connect, or to end", || {
            has_connected() || child.try_wait().unwrap().is_some()
        });
        let _ = child.kill();
        child.wait().unwrap();
    }
    let Ended { status, stdout, stderr, .. } = victim.end();
    assert_eq!(status, 0, "{stdout}{stderr}");
}
