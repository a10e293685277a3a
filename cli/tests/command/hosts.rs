//! Two hosts on one machine: network namespaces with a cable between them. Making them takes root.
//!
//! Invariant: the names belong to one test of one process, so that tests do not meet; when a pair is dropped,
//! after a failure too, every process in it is killed and nothing of it remains.

use std::process::Command;
use std::sync::Mutex;

use super::process::{LIMIT, wait_until};

/// The addresses of the two, which are the same in every pair.
pub const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

/// A pair of hosts.
pub struct Hosts {
    names: [String; 2],
}

impl Hosts {
    pub fn new() -> Self {
        static COUNT: Mutex<u32> = Mutex::new(0);
        let number = {
            let mut count = COUNT.lock().unwrap();
            *count += 1;
            *count
        };
        let hosts =
            Self { names: [0, 1].map(|side| format!("pelago-{}-{number}-{side}", std::process::id())) };
        let [left, right] = &hosts.names;
        hosts.names.iter().for_each(|name| ip(&["netns", "add", name]));
        let peer = ["type", "veth", "peer", "name", "cable", "netns", right];
        ip(&[&["link", "add", "cable", "netns", left], &peer[..]].concat());
        for (name, address) in hosts.names.iter().zip(ADDRESSES) {
            ip(&["-n", name, "address", "add", &format!("{address}/24"), "dev", "cable"]);
            ["lo", "cable"].into_iter().for_each(|link| ip(&["-n", name, "link", "set", link, "up"]));
        }
        // Before that, libfabric sees nothing but the loopback.
        for name in &hosts.names {
            wait_until("the cable to carry", || {
                said(&["-n", name, "link", "show", "cable"]).contains("state UP")
            });
        }
        hosts
    }

    /// A program on the left host.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.names[0])).arg(program);
        let [left, right] = &self.names;
        command.env("REMOTE_HOSTS", format!("{}={left} {}={right}", ADDRESSES[0], ADDRESSES[1]));
        command
    }

    /// Takes the cable away, with all that is on its way.
    pub fn cut_cable(&self) {
        ip(&["-n", &self.names[0], "link", "set", "cable", "down"]);
    }

    /// Makes sure that no process is left on either host; one that was killed may take a while to be gone.
    pub fn assert_no_processes(&self) {
        let deadline = std::time::Instant::now() + LIMIT;
        while !self.processes().is_empty() {
            assert!(std::time::Instant::now() < deadline, "processes are left: {:?}", self.processes());
        }
    }

    /// The processes on either host.
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
            wait_until("the processes of two hosts to end", || self.kill_all());
        }
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).output();
        }
    }
}

fn ip(words: &[&str]) {
    said(words);
}

/// What `ip` says.
fn said(words: &[&str]) -> String {
    let output = Command::new("ip").args(words).output().expect("ip is there (package iproute2)");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words:?} (as root?): {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
