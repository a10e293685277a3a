//! Jobs of two hosts, two PEs on each, under MPICH's and Open MPI's launchers, and our own.

use std::process::Command;
use std::time::{Duration, Instant};

use pelago::prelude::*;
use rustix::process::{Pid, Signal, kill_process};

use crate::hosts::{ADDRESSES, Hosts, REMOTE};
use crate::jobs::{assert_ft_json, assert_hello};
use crate::process::{Ended, Started, wait_until};

/// The variable by which a copy of this program knows what to do.
const BODY: &str = "PELAGO_TEST_BODY";
/// The variable by which it knows where to say that all have met.
const MET: &str = "TEST_MET";
/// How long hydra may take to end when its processes have ended.
const HYDRA_LIMIT: Duration = Duration::from_secs(10);
/// A computation that is long enough to be interrupted.
const LONG: [&str; 3] = ["ft", "--class", "B"];

fn hydra(hosts: &Hosts) -> Command {
    let mut command = hosts.command("mpiexec.hydra");
    command.args(["-iface", "cable", "-launcher", "ssh", "-launcher-exec", REMOTE]);
    command.args(["-hosts", &ADDRESSES.join(","), "-ppn", "2", "-n", "4"]);
    command
}

fn mpirun(hosts: &Hosts) -> Command {
    let mut command = hosts.command("mpirun.openmpi");
    command.args(["--allow-run-as-root", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", REMOTE]);
    command.args(["--host", &ADDRESSES.map(|address| format!("{address}:2")).join(","), "-n", "4"]);
    command
}

/// `pelago run`, followed by the command.
fn pelago_run(hosts: &Hosts) -> Command {
    let mut command = hosts.command(env!("CARGO_BIN_EXE_pelago"));
    command.args(["run", "--launch-agent", REMOTE]);
    command.args(["--hosts", &hosts.list(2)]);
    command
}

fn app(mut launcher: Command, words: &[&str]) -> Started {
    launcher.args([env!("CARGO_BIN_EXE_pelago"), "app"]).args(words);
    Started::new(launcher)
}

fn assert_hello_and_ft(launcher: impl Fn() -> Command) {
    let ended = app(launcher(), &["hello"]).settle();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert_hello(&ended.stdout, 4);
    let ended = app(launcher(), &["ft", "--class", "A", "--json"]).settle();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert_ft_json(&ended.stdout, "A", 4);
}

/// Kills PE 2, which is on the second host; returns its process id and the output of the job.
fn with_a_killed_pe(launcher: Command) -> (i32, Ended) {
    let job = app(launcher, &LONG);
    let pid = job.pes_at_work(4)[2];
    kill_process(pid, Signal::KILL).unwrap();
    (pid.as_raw_nonzero().get(), job.settle())
}

/// Makes a launcher start this test program as PEs, one of which aborts the job.
fn aborting(mut launcher: Command) -> Ended {
    launcher.arg(std::env::current_exe().unwrap()).env(BODY, "abort");
    launcher.args(["--exact", "launchers::namespaces::pe_that_aborts", "--nocapture", "--test-threads=1"]);
    Started::new(launcher).settle()
}

/// The body of a PE that aborts the job, in a copy of this test program.
#[test]
fn pe_that_aborts() {
    if std::env::var_os(BODY).is_none_or(|body| body != "abort") {
        return;
    }
    let world = World::init().unwrap();
    assert_eq!(world.n_pes(), 4);
    world.barrier();
    if world.my_pe() == 2 {
        world.abort(7, "the input is missing");
    }
    world.barrier();
}

#[test]
fn hydra_starts_a_job_on_two_hosts() {
    let hosts = Hosts::new();
    assert_hello_and_ft(|| hydra(&hosts));
    assert_eq!(hosts.processes(), [""; 0]);
}

#[test]
fn mpirun_starts_a_job_on_two_hosts() {
    let hosts = Hosts::new();
    assert_hello_and_ft(|| mpirun(&hosts));
    assert_eq!(hosts.processes(), [""; 0]);
}

#[test]
fn pelago_run_starts_a_job_on_two_hosts() {
    let hosts = Hosts::new();
    assert_hello_and_ft(|| pelago_run(&hosts));
    // Two PEs per process, and each process on its own host.
    let mut threads = pelago_run(&hosts);
    threads.args(["--pes-per-process", "2", "--tag-output", "ft", "--class", "S", "--json"]);
    let ended = Started::new(threads).settle();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert_ft_json(ended.stdout.strip_prefix("[0-1] ").unwrap(), "S", 4);
    assert_eq!(hosts.processes(), [""; 0]);
}

/// PEs in PID namespaces of their own, as in containers, share memory if they have a network namespace in
/// common. In network namespaces of their own they share it if they have one PID namespace and one
/// `PELAGO_NODE_ID`.
#[test]
fn pes_in_namespaces_of_their_own_share_memory() {
    let pids = ["unshare", "--pid", "--fork"];
    let networks = ["--env", "PELAGO_NODE_ID=one", "unshare", "--net"];
    for namespaces in [&pids[..], &networks[..]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pelago"));
        command.args(["run", "-n", "2"]).args(namespaces).arg(env!("CARGO_BIN_EXE_pelago"));
        command.args(["app", "ft", "--class", "S", "--json"]);
        let ended = Started::new(command).settle();
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{namespaces:?}");
        assert_ft_json(&ended.stdout, "S", 2);
    }
}

/// Each PE is in the network namespace of its host, and has the settings of the launcher.
#[test]
fn pelago_run_places_pes_on_their_hosts() {
    let hosts = Hosts::new();
    let line = "echo $PMI_RANK $PELAGO_SPINS $(ip -o -4 address show dev cable | grep -o '10.77.0.[12]/')";
    let mut launcher = pelago_run(&hosts);
    launcher.args(["sh", "-c", line]).env("PELAGO_SPINS", "9");
    let ended = Started::new(launcher).settle();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let mut lines: Vec<_> = ended.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0 9 10.77.0.1/", "1 9 10.77.0.1/", "2 9 10.77.0.2/", "3 9 10.77.0.2/"]);
    hosts.assert_no_processes();
}

#[test]
fn the_end_of_a_pe_an_agent_or_pelago_run_ends_all_on_two_hosts() {
    let hosts = Hosts::new();
    let named = |part: &str, ended: &Ended| {
        assert!(ended.status != 0 && ended.stderr.contains(part), "{part}: {ended:?}");
        assert!(!ended.stdout.contains("Verification"), "{ended:?}");
        hosts.assert_no_processes();
    };
    let (pid, ended) = with_a_killed_pe(pelago_run(&hosts));
    named(&format!("PE 2 on host {} (pid {pid}) was killed by signal 9", ADDRESSES[1]), &ended);
    // The agent on the second host is the parent of PE 3.
    let job = app(pelago_run(&hosts), &LONG);
    let pe = job.pes_at_work(4)[3];
    let status = std::fs::read_to_string(format!("/proc/{}/status", pe.as_raw_nonzero())).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t")).unwrap().parse().unwrap();
    kill_process(Pid::from_raw(parent).unwrap(), Signal::KILL).unwrap();
    named(&format!("host {}: the connection to its agent was lost", ADDRESSES[1]), &job.settle());
    let job = app(pelago_run(&hosts), &LONG);
    job.pes_at_work(4);
    job.signal(Signal::INT);
    named("the job was ended by signal 2 (SIGINT) to the launcher", &job.settle());
    let job = app(pelago_run(&hosts), &LONG);
    job.pes_at_work(4);
    assert!(!job.kill().0.contains("Verification"));
    hosts.assert_no_processes();
}

#[test]
fn a_job_of_two_hosts_can_be_ended_by_a_pe() {
    let hosts = Hosts::new();
    let mut by_mpirun = mpirun(&hosts);
    by_mpirun.args(["-x", BODY]);
    for launcher in [hydra(&hosts), by_mpirun, pelago_run(&hosts)] {
        let name = format!("{launcher:?}");
        let Ended { status, stdout, stderr, .. } = aborting(launcher);
        let text = format!("{stdout}{stderr}");
        let named = [
            "PE 2: the input is missing".to_owned(),
            format!("PE 2 on host {} aborted the job with status 7: the input is missing", ADDRESSES[1]),
        ];
        assert!(status != 0 && named.iter().any(|it| text.contains(it)), "{name}: {status}: {text}");
    }
    assert_eq!(hosts.processes(), [""; 0]);
}

/// Hydra names the process and its host; whether other PEs name the PE before they are killed depends on
/// timing.
#[test]
fn a_killed_pe_ends_a_job_of_hydra() {
    let hosts = Hosts::new();
    let (pid, Ended { status, stdout, stderr, .. }) = with_a_killed_pe(hydra(&hosts));
    let named = format!("PID {pid} RUNNING AT {}", ADDRESSES[1]);
    assert!(status != 0 && stdout.contains(&named), "{status}: {stdout}{stderr}");
    assert!(!stdout.contains("Verification"), "{stdout}");
    hosts.assert_no_processes();
}

#[test]
fn a_killed_pe_ends_a_job_of_mpirun() {
    let hosts = Hosts::new();
    let (pid, Ended { status, stdout, stderr, .. }) = with_a_killed_pe(mpirun(&hosts));
    let text = format!("{stdout}{stderr}");
    let named = format!("process rank 2 with PID {pid} on node {} exited on signal 9", ADDRESSES[1]);
    let by_peers = "to or from PE 2";
    assert!(status != 0 && (text.contains(&named) || text.contains(by_peers)), "{status}: {text}");
    assert!(!text.contains("Verification"), "{text}");
    hosts.assert_no_processes();
}

/// The body of a PE that enters barriers for ever, in a copy of this test program.
#[test]
fn pe_that_meets() {
    if std::env::var_os(BODY).is_none_or(|body| body != "meet") {
        return;
    }
    let world = World::init().unwrap();
    world.barrier();
    std::fs::write(format!("{}-{}", std::env::var(MET).unwrap(), world.my_pe()), "").unwrap();
    loop {
        world.barrier();
    }
}

/// The PEs of each host detect by themselves that those of the other host are silent.
#[test]
fn a_cut_cable_ends_a_job_within_the_time_that_is_set() {
    let hosts = Hosts::new();
    let folder = std::env::temp_dir().join(format!("cut-cable-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let met = folder.join("met");
    let mut launcher = hydra(&hosts);
    launcher.arg(std::env::current_exe().unwrap()).env(BODY, "meet").env(MET, &met);
    launcher.args(["--exact", "launchers::namespaces::pe_that_meets", "--nocapture", "--test-threads=1"]);
    launcher.env("PELAGO_PEER_TIMEOUT", "4");
    let job = Started::new(launcher);
    let has_met = |pe: usize| folder.join(format!("met-{pe}")).is_file();
    wait_until("all PEs to have met", || (0..4).all(has_met));
    std::fs::remove_dir_all(&folder).unwrap();
    hosts.cut_cable();
    let since = Instant::now();
    wait_until("the PEs of both hosts to end", || job.pes().is_empty());
    println!("the PEs ended {:?} after the cable was cut", since.elapsed());
    // Hydra itself sometimes waits for ever for the host that it cannot reach.
    let text = match job.ends_within(HYDRA_LIMIT) {
        true => {
            let Ended { status, stdout, stderr, .. } = job.settle();
            assert!(status != 0, "{stdout}{stderr}");
            stdout + &stderr
        }
        false => {
            let (stdout, stderr) = job.kill();
            stdout + &stderr
        }
    };
    // The output of the second host is lost.
    let words = |pe| format!("PE {pe}, on node 1 of the job, has not answered for 4s");
    assert!((2..4).any(|pe| text.contains(&words(pe))), "{text}");
    hosts.assert_no_processes();
}

/// The body of a PE that exchanges blocks with all others, in a copy of this test program.
#[test]
fn pe_that_exchanges() {
    if std::env::var_os(BODY).is_none_or(|body| body != "exchange") {
        return;
    }
    let world = World::init().unwrap();
    let (me, n) = (world.my_pe(), world.n_pes());
    for count in [1, 16, 1024] {
        let (target, source) =
            (world.alloc_zeroed::<u64>(n * count).unwrap(), world.alloc_zeroed::<u64>(n * count).unwrap());
        let value = |from: usize, to: usize, i: usize| (from * n + to) as u64 * 10_000 + i as u64;
        let blocks = |value: &dyn Fn(usize, usize) -> u64| -> Vec<u64> {
            (0..n).flat_map(|pe| (0..count).map(move |i| (pe, i))).map(|(pe, i)| value(pe, i)).collect()
        };
        source.local().write(0, &blocks(&|to, i| value(me, to, i)));
        world.team().all_to_all(&target, &source).unwrap();
        assert!(target.local().to_vec() == blocks(&|from, i| value(from, me, i)), "blocks of {count}");
    }
    if me == 0 {
        println!("{n} PEs have exchanged");
    }
    world.barrier();
}

/// All processes of different hosts connect to each other.
#[test]
fn sixty_four_pes_on_four_hosts_exchange_with_each_other() {
    let hosts = Hosts::on_a_switch(4);
    let mut launcher = hosts.command(env!("CARGO_BIN_EXE_pelago"));
    launcher.args(["run", "--launch-agent", REMOTE, "--hosts", &hosts.list(16)]);
    launcher.arg(std::env::current_exe().unwrap()).env(BODY, "exchange");
    launcher.args(["--exact", "launchers::namespaces::pe_that_exchanges", "--nocapture", "--test-threads=1"]);
    let since = Instant::now();
    let Ended { status, stdout, stderr, .. } = Started::new(launcher).settle();
    println!("64 PEs on four hosts took {:?}", since.elapsed());
    assert!(status == 0 && stdout.contains("64 PEs have exchanged"), "{status}: {stdout}{stderr}");
    hosts.assert_no_processes();
}

/// Networks that lose some datagrams, or drop or refuse all of them, change no result. The connections carry
/// what is lost.
#[test]
fn jobs_go_on_where_datagrams_are_lost_or_refused() {
    for rule in [
        "meta l4proto udp numgen random mod 100 < 10 drop",
        "meta l4proto udp drop",
        "meta l4proto udp reject",
    ] {
        let hosts = Hosts::new();
        hosts.filter(1, rule);
        let run = || {
            let mut launcher = pelago_run(&hosts);
            launcher.args(["--env", "PELAGO_FABRIC=tcp"]);
            launcher
        };
        assert_hello_and_ft(run);
        let ended = app(run(), &["gups"]).settle();
        assert!(
            ended.status == 0 && ended.stdout.contains("VERIFIED"),
            "{rule}: {}{}",
            ended.stdout,
            ended.stderr
        );
        hosts.assert_no_processes();
    }
}
