//! Simulated hosts on one machine: two network namespaces with a virtual cable between them, or several on a
//! virtual switch. Creating them needs root.
//!
//! Invariant: the names are unique to one test of one process, so that tests do not interfere; when hosts are
//! dropped, also after a failure, every process in them is killed and the namespaces are deleted.

use std::process::Command;
use std::sync::Mutex;

use super::process::{LIMIT, wait_until};

/// The addresses of a pair. Further hosts have the following addresses.
pub const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

/// The program that the launchers use in place of ssh.
pub const REMOTE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/remote.sh");
/// The network device of a host.
const DEVICE: &str = "cable";

/// Some hosts.
pub struct Hosts {
    names: Vec<String>,
    /// The namespace of their switch.
    switch: Option<String>,
}

impl Hosts {
    /// Two hosts with a cable between them.
    pub fn new() -> Self {
        let hosts = Self { names: names(2), switch: None };
        hosts.names.iter().for_each(|name| ip(&["netns", "add", name]));
        connect([&hosts.names[0], DEVICE], [&hosts.names[1], DEVICE]);
        hosts.start();
        hosts
    }

    /// `n` hosts on a switch.
    pub fn on_a_switch(n: usize) -> Self {
        let mut names = names(n + 1);
        let switch = names.pop().expect("one more was made");
        let hosts = Self { names, switch: Some(switch.clone()) };
        hosts.names.iter().chain([&switch]).for_each(|name| ip(&["netns", "add", name]));
        ip(&["-n", &switch, "link", "add", "name", "switch", "type", "bridge"]);
        ip(&["-n", &switch, "link", "set", "switch", "up"]);
        for (i, name) in hosts.names.iter().enumerate() {
            let port = format!("port{i}");
            connect([name, DEVICE], [&switch, &port]);
            ip(&["-n", &switch, "link", "set", &port, "master", "switch", "up"]);
        }
        hosts.start();
        hosts
    }

    /// Sets the addresses of the hosts, and waits until they can reach each other.
    fn start(&self) {
        for (i, name) in self.names.iter().enumerate() {
            ip(&["-n", name, "address", "add", &format!("{}/24", address(i)), "dev", DEVICE]);
            ["lo", DEVICE].into_iter().for_each(|link| ip(&["-n", name, "link", "set", link, "up"]));
        }
        // Before that, libfabric finds only the loopback interface.
        for name in &self.names {
            wait_until("the cable to carry", || {
                said(&["-n", name, "link", "show", DEVICE]).contains("state UP")
            });
        }
    }

    /// The value of `pelago run --hosts` for these hosts with `each` PEs.
    pub fn list(&self, each: usize) -> String {
        let host = |i| format!("{}:{each}", address(i));
        (0..self.names.len()).map(host).collect::<Vec<_>>().join(",")
    }

    /// A program on a host.
    pub fn command_on(&self, host: usize, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.names[host])).arg(program);
        let pair = |(i, name): (usize, &String)| format!("{}={name}", address(i));
        let pairs: Vec<_> = self.names.iter().enumerate().map(pair).collect();
        command.env("REMOTE_HOSTS", pairs.join(" "));
        command
    }

    /// A program on the first host.
    pub fn command(&self, program: &str) -> Command {
        self.command_on(0, program)
    }

    /// Cuts the cable, and discards all packets in flight.
    pub fn cut_cable(&self) {
        ip(&["-n", &self.names[0], "link", "set", DEVICE, "down"]);
    }

    /// Filters the packets that arrive at a host by a rule of `nft`.
    pub fn filter(&self, host: usize, rule: &str) {
        let chain = "add table inet test; add chain inet test in { type filter hook input priority 0; }";
        let rules = format!("{chain}; flush chain inet test in; add rule inet test in {rule}");
        let output =
            self.command_on(host, "nft").arg(rules).output().expect("nft is there (package nftables)");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "nft with the rule {rule}: {errors}");
    }

    /// Checks that no process is left on any host; a killed process may take a moment to disappear.
    pub fn assert_no_processes(&self) {
        let deadline = std::time::Instant::now() + LIMIT;
        while !self.processes().is_empty() {
            assert!(std::time::Instant::now() < deadline, "processes are left: {:?}", self.processes());
        }
    }

    /// The processes on all hosts.
    pub fn processes(&self) -> Vec<String> {
        let of = |name: &String| {
            let output = Command::new("ip").args(["netns", "pids", name]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
        };
        self.names.iter().flat_map(of).collect()
    }

    fn kill_all(&self) -> bool {
        let pids = self.processes();
        if !pids.is_empty() {
            let _ = Command::new("kill").arg("-9").args(&pids).output();
        }
        pids.is_empty()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let deadline = std::time::Instant::now() + LIMIT;
            while !self.kill_all() && std::time::Instant::now() < deadline {}
        } else {
            wait_until("the processes of the hosts to end", || self.kill_all());
        }
        for name in self.names.iter().chain(&self.switch) {
            let _ = Command::new("ip").args(["netns", "delete", name]).output();
        }
    }
}

/// The address of a host.
pub fn address(host: usize) -> String {
    format!("10.77.0.{}", host + 1)
}

/// Unique names.
fn names(n: usize) -> Vec<String> {
    static COUNT: Mutex<u32> = Mutex::new(0);
    let number = {
        let mut count = COUNT.lock().unwrap();
        *count += 1;
        *count
    };
    (0..n).map(|i| format!("pelago-{}-{number}-{i}", std::process::id())).collect()
}

/// Creates two network devices with a cable between them, each in its namespace.
fn connect([one, device]: [&str; 2], [other, other_device]: [&str; 2]) {
    let peer = ["type", "veth", "peer", "name", other_device, "netns", other];
    ip(&[&["link", "add", device, "netns", one], &peer[..]].concat());
}

fn ip(words: &[&str]) {
    said(words);
}

/// The output of `ip`.
fn said(words: &[&str]) -> String {
    let output = Command::new("ip").args(words).output().expect("ip is there (package iproute2)");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words:?} (as root?): {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
