//! Jobs under Slurm: four simulated nodes on one machine, with the test's own daemons, keys and files.
//!
//! Invariant: the daemons run in a network namespace, where all ports are free, and end with it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::hosts::{ADDRESSES, Hosts};
use crate::jobs::{assert_ft_json, assert_hello};
use crate::process::{Ended, Started, wait_until};

const N_NODES: usize = 4;
/// The port of the controller; those of the nodes follow.
const PORT: usize = 17000;

struct Cluster {
    folder: PathBuf,
    daemons: Vec<Child>,
    hosts: Hosts,
}

impl Cluster {
    /// Starts the daemons and waits until all nodes accept jobs.
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("pelago-slurm-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let mut cluster = Self { folder, daemons: Vec::new(), hosts: Hosts::new() };
        // Munge requires that all users can enter the parent folders.
        fs::set_permissions(&cluster.folder, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(cluster.path("state")).unwrap();
        (1..=N_NODES).for_each(|node| fs::create_dir(cluster.path(&format!("tmp.n{node}"))).unwrap());
        fs::write(cluster.path("slurm.conf"), configuration(&cluster.folder)).unwrap();
        fs::write(cluster.path("cgroup.conf"), "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n").unwrap();
        let socket = cluster.start_munge();
        wait_until("munged to listen", || socket.exists());
        cluster.start("slurmctld", &["-D", "-i"]);
        (1..=N_NODES).for_each(|node| cluster.start("slurmd", &["-D", "-N", &format!("n{node}")]));
        wait_until("the nodes of Slurm to be idle", || cluster.idle_nodes() == N_NODES);
        cluster
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn start_munge(&mut self) -> PathBuf {
        let key = self.path("munge.key");
        let mut bytes = [0; 128];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).unwrap();
        fs::write(&key, bytes).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let options = [
            ("key-file", "munge.key"),
            ("socket", "munge.sock"),
            ("pid-file", "munged.pid"),
            ("log-file", "munged.log"),
            ("seed-file", "munged.seed"),
        ];
        let option = |(name, file): (&str, &str)| format!("--{name}={}", self.path(file).display());
        let options: Vec<_> = options.into_iter().map(option).collect();
        let words: Vec<_> =
            ["--foreground", "--force"].into_iter().chain(options.iter().map(|o| &**o)).collect();
        self.start("munged", &words);
        self.path("munge.sock")
    }

    /// A command of Slurm, or one under Slurm, on this cluster.
    fn command(&self, program: &str) -> Command {
        let mut command = self.hosts.command(program);
        command.env("SLURM_CONF", self.path("slurm.conf"));
        command
    }

    fn start(&mut self, program: &str, words: &[&str]) {
        let mut command = self.command(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.daemons.push(command.spawn().unwrap());
    }

    fn idle_nodes(&self) -> usize {
        let output =
            self.command("sinfo").args(["--noheader", "--states=idle", "--format=%D"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(0)
    }

    /// Runs an application on four PEs.
    fn app(&self, mpi: &str, nodes: usize, words: &[&str]) -> Ended {
        self.app_with(mpi, nodes, 1, words)
    }

    /// The same, with `each` PEs in each process.
    fn app_with(&self, mpi: &str, nodes: usize, each: usize, words: &[&str]) -> Ended {
        let mut command = self.command("srun");
        let processes = format!("-n{}", 4 / each);
        command.args([format!("--mpi={mpi}"), format!("-N{nodes}"), processes, "--quiet".to_owned()]);
        command.env("PELAGO_PES_PER_PROCESS", each.to_string());
        command.args([env!("CARGO_BIN_EXE_pelago"), "app"]).args(words);
        Started::new(command).settle()
    }
}

impl Cluster {
    /// `pelago run` within an allocation of four tasks.
    fn assert_pelago_run_finds_the_hosts(&self, options: &[&str], words: &[&str]) {
        let job = |words: &[&str], program: &[&str]| {
            let mut command = self.command("salloc");
            command.args(["--quiet"]).args(options).args([env!("CARGO_BIN_EXE_pelago"), "run"]);
            command.args(words).args(program);
            Started::new(command).settle()
        };
        let ended = job(words, &["hello"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{options:?}");
        assert_hello(&ended.stdout, 4);
        let line = "echo $SLURMD_NODENAME $PMI_RANK";
        let ended = job(words, &["sh", "-c", line]);
        // Slurm chooses the nodes: those of the job before may not be free yet.
        let lines = ended.stdout.lines().filter_map(|line| line.split_once(' '));
        let mut hosts: Vec<_> = lines.map(|(host, pe)| (pe.to_owned(), host.to_owned())).collect();
        hosts.sort_unstable();
        let each = if options.contains(&"-N2") { 2 } else { 1 };
        let pes: Vec<_> = hosts.iter().map(|(pe, _)| pe.as_str()).collect();
        assert_eq!((ended.status, pes), (0, vec!["0", "1", "2", "3"]), "{}", ended.stderr);
        let together: Vec<_> = hosts.chunk_by(|one, two| one.1 == two.1).map(<[_]>::len).collect();
        assert_eq!(together, vec![each; 4 / each], "{hosts:?}");
        let ended = job(words, &["sh", "-c", "test $PMI_RANK = 3 && exit 9; exec sleep 1000"]);
        let is_named =
            (1..=4).any(|n| ended.stderr.contains(&format!("PE 3 on host n{n} exited with status 9")));
        assert!(ended.status == 9 && is_named, "{ended:?}");
        let ended = job(&["-n", "5"], &["hello"]);
        assert!(ended.status == 2 && ended.stderr.contains("5 PEs do not fit into the 4 slots"), "{ended:?}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for log in ["munged.log", "slurmctld.log", "slurmd.n1.log"] {
                eprintln!("{log}:\n{}", fs::read_to_string(self.path(log)).unwrap_or_default());
            }
        }
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn configuration(folder: &Path) -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = name.split('.').next().unwrap().to_owned();
    let (folder, address) = (folder.display(), ADDRESSES[0]);
    let node = |node| {
        let port = PORT + node;
        format!(
            "NodeName=n{node} NodeHostname={name} NodeAddr={address} Port={port} CPUs=4 RealMemory=1000\n"
        )
    };
    let nodes: String = (1..=N_NODES).map(node).collect();
    format!(
        "ClusterName=pelago\nSlurmctldHost={name}({address})\nSlurmUser=root\nSlurmdUser=root\n\
         SlurmctldPort={PORT}\nAuthType=auth/munge\nAuthInfo=socket={folder}/munge.sock\n\
         CredType=cred/munge\nStateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool.%n\n\
         SlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd.%n.pid\n\
         SlurmctldLogFile={folder}/slurmctld.log\nSlurmdLogFile={folder}/slurmd.%n.log\n\
         TmpFS={folder}/tmp.%n\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
         SwitchType=switch/none\nJobAcctGatherType=jobacct_gather/none\n\
         AccountingStorageType=accounting_storage/none\nMpiDefault=none\nSelectType=select/cons_tres\n\
         SelectTypeParameters=CR_CPU\nSchedulerType=sched/builtin\nReturnToService=2\n\
         SlurmdParameters=config_overrides\n{nodes}\
         PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8\n"
    )
}

#[test]
fn srun_starts_jobs_of_several_nodes() {
    let cluster = Cluster::new();
    for (mpi, nodes) in [("pmi2", 4), ("pmix", 4), ("pmi2", 2), ("pmix", 2)] {
        let ended = cluster.app(mpi, nodes, &["hello"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{mpi}, {nodes} nodes");
        assert_hello(&ended.stdout, 4);
        let ended = cluster.app(mpi, nodes, &["ft", "--class", "A", "--json"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{mpi}, {nodes} nodes");
        assert_ft_json(&ended.stdout, "A", 4);
    }
    for mpi in ["pmi2", "pmix"] {
        let ended = cluster.app_with(mpi, 2, 2, &["ft", "--class", "S", "--json"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{mpi}, two PEs a process");
        assert_ft_json(&ended.stdout, "S", 4);
    }
    for (options, words) in [(&["-N2", "--ntasks-per-node=2"][..], &["-n", "4"][..]), (&["-N4", "-n4"], &[])]
    {
        cluster.assert_pelago_run_finds_the_hosts(options, words);
    }
    let Ended { status, stderr, .. } = cluster.app("none", 2, &["hello"]);
    assert!(status != 0 && stderr.contains("add --mpi=pmi2 or --mpi=pmix to srun"), "{status}: {stderr}");
}
