//! Looking inside running jobs: the lists of `pelago ps`, call stacks and debuggers.

#[cfg(feature = "full")]
mod installed;
mod names;
mod tools;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use super::process::{Ended, Started, pelago, run_with, wait_until};
use super::several_hosts::NEARBY;

/// A folder of jobs that no other test uses.
struct Jobs(PathBuf);

impl Jobs {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("pelago-jobs-{name}-{}", std::process::id())))
    }

    fn variable(&self) -> (&str, &str) {
        ("PELAGO_JOBS_FOLDER", self.0.to_str().unwrap())
    }

    fn start(&self, args: &[&str]) -> Started {
        let mut command = pelago(args);
        command.envs([self.variable()]);
        Started::new(command)
    }

    fn look(&self, args: &[&str]) -> Ended {
        run_with(args, &[self.variable()])
    }

    /// The standard output of a command that succeeds.
    fn text(&self, args: &[&str]) -> String {
        let ended = self.look(args);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{args:?}: {}", ended.stdout);
        ended.stdout
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.text(args)).unwrap()
    }

    /// The name of the only job.
    fn only(&self) -> String {
        let mut found = Value::Null;
        wait_until("one job to be listed", || {
            found = self.json(&["ps", "--json"]);
            found.as_array().unwrap().len() == 1
        });
        found[0]["job"].as_str().unwrap().to_owned()
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Ends a job by Ctrl-C.
fn interrupt(job: Started) {
    job.signal(Signal::INT);
    assert_eq!(job.end().status, 130);
}

const NONE: &str = "no job of pelago run is running on this machine\n";

#[test]
fn waiting_pes_and_a_stopped_one_are_told_apart() {
    let jobs = Jobs::new("stopped");
    assert_eq!(jobs.text(&["ps"]), NONE);
    let job = jobs.start(&["run", "-n", "4", "ft", "--class", "B"]);
    let pids = job.pes_at_work(4);
    kill_process(pids[1], Signal::STOP).unwrap();
    let name = jobs.only();
    let mut found = Value::Null;
    wait_until("the other PEs to wait for the stopped one", || {
        found = jobs.json(&["ps", "--json", &name]);
        let rows = found["pes"].as_array().unwrap();
        rows.len() == 4
            && rows[1]["state"] == "stopped"
            && [0, 2, 3]
                .iter()
                .all(|pe| rows[*pe]["state"] == "waiting" && rows[*pe]["waits_seconds"].is_f64())
    });
    assert_eq!(
        (&found["state"], &found["n_pes"], &found["hosts"]),
        (&"running".into(), &4.into(), &Value::Array(Vec::new()))
    );
    for (pe, pid) in pids.into_iter().enumerate() {
        assert_eq!(found["pes"][pe]["pid"], pid.as_raw_nonzero().get(), "{found}");
    }
    assert!(found["pes"][0]["does"].as_str().unwrap().starts_with("waits for "), "{found}");
    let text = jobs.text(&["ps", "--job", &name]);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with(&format!("job {name}: 4 PEs, started ")), "{text}");
    let heads: Vec<_> = lines[1].split_whitespace().collect();
    assert_eq!(heads, ["PE", "PID", "STATE", "FOR", "DOES"]);
    assert!(lines[2].contains(" s  waits for ") && lines[3].contains("kill -CONT"), "{text}");
    let list = jobs.text(&["ps"]);
    assert!(
        list.lines().nth(1).is_some_and(|line| line.contains(&name) && line.contains("running")),
        "{list}"
    );
    interrupt(job);
    assert_eq!(jobs.text(&["ps"]), NONE);
    assert_eq!(fs::read_dir(&jobs.0).unwrap().count(), 0, "files of the job are left");
}

#[test]
fn threads_of_a_process_have_a_row_each() {
    let jobs = Jobs::new("threads");
    let job = jobs.start(&["run", "-n", "4", "--pes-per-process", "2", "ft", "--class", "B"]);
    let stopped = job.pes_at_work(2)[1];
    kill_process(stopped, Signal::STOP).unwrap();
    let mut found = Value::Null;
    wait_until("the PEs of process 0 to wait", || {
        found = jobs.json(&["ps", "--pes", "--json"]);
        let state = |pe: usize| found["pes"][pe]["state"].as_str().unwrap_or_default();
        [state(0), state(1), state(2), state(3)] == ["waiting", "waiting", "stopped", "stopped"]
    });
    assert_eq!(found["pes"].as_array().unwrap().len(), 4);
    interrupt(job);
}

#[test]
fn pes_of_other_hosts_are_listed_with_them() {
    let jobs = Jobs::new("hosts");
    let words = ["run", "--hosts", "a,b", "--launch-agent", NEARBY, "sh", "-c", "exec sleep 1000"];
    let job = jobs.start(&words);
    job.wait_for_pes(2);
    let found = jobs.json(&["ps", "--pes", "--json"]);
    assert_eq!(found["state"], "forming", "no PE has joined");
    let hosts: Vec<_> = found["pes"].as_array().unwrap().iter().map(|row| &row["host"]).collect();
    assert_eq!(hosts, ["a", "b"]);
    let text = jobs.text(&["ps", "--stacks"]);
    assert!(text.contains("PE 1: on host b; there: `gdb -p "), "{text}");
    let ended = jobs.look(&["attach", "1"]);
    assert!(ended.status == 2 && ended.stderr.contains("ssh -t b gdb -p"), "{}", ended.stderr);
    interrupt(job);
}

#[test]
fn a_job_whose_launcher_has_died_is_shown_once_more() {
    let jobs = Jobs::new("died");
    let job = jobs.start(&["run", "-n", "2", "sh", "-c", "exec sleep 1000"]);
    job.wait_for_pes(2);
    let name = jobs.only();
    job.kill();
    let text = jobs.text(&["ps", &name]);
    assert!(text.contains("has died; no process of the job is left on this machine"), "{text}");
    let list = jobs.text(&["ps"]);
    assert!(list.contains("launcher died") && list.contains(&name), "{list}");
    assert_eq!(jobs.text(&["ps"]), NONE);
}

#[test]
fn processes_that_a_dead_launcher_has_left_are_named() {
    let jobs = Jobs::new("left");
    // A process that is not killed with its launcher: its parent-death signal is cleared.
    let cleared = std::env::temp_dir().join(format!("pelago-cleared-{}", std::process::id()));
    // Without a process of its own, which would have the environment of the PE as well.
    let line = format!(": > {}; exec sleep 1000", cleared.display());
    let mut command = pelago(&["run", "-n", "1", "setpriv", "--pdeathsig", "clear", "sh", "-c", &line]);
    command.envs([jobs.variable()]);
    let job = Started::new(command);
    let pid = job.wait_for_pes(1)[&0];
    wait_until("the process to have cleared it", || cleared.exists());
    fs::remove_file(&cleared).unwrap();
    let name = jobs.only();
    job.signal(Signal::KILL);
    wait_until("the launcher to have died", || {
        jobs.text(&["ps"]).contains("launcher died, 1 processes left")
    });
    let text = jobs.text(&["ps", &name]);
    assert!(text.contains(&format!("are left on this machine: {}", pid.as_raw_nonzero())), "{text}");
    kill_process(pid, Signal::KILL).unwrap();
    wait_until("the job to be forgotten", || jobs.text(&["ps"]) == NONE);
    drop(job);
}

#[test]
fn a_launcher_that_is_stopped_is_silent() {
    let jobs = Jobs::new("silent");
    let job = jobs.start(&["run", "-n", "1", "sh", "-c", "exec sleep 1000"]);
    job.wait_for_pes(1);
    let name = jobs.only();
    job.signal(Signal::STOP);
    let text = jobs.text(&["ps", &name]);
    assert!(text.contains("does not answer") && text.contains("kill -CONT"), "{text}");
    assert!(jobs.text(&["ps"]).contains("launcher silent"));
    job.signal(Signal::CONT);
    interrupt(job);
}

#[test]
fn requests_that_cannot_be_served_are_refused() {
    let jobs = Jobs::new("refused");
    let refused = |args: &[&str], part: &str| {
        let ended = jobs.look(args);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{args:?}");
        assert!(ended.stderr.contains(part), "{args:?}: {}", ended.stderr);
    };
    refused(&["ps", "--pes"], "no job of pelago run is running");
    refused(&["ps", "4711"], "there is no job 4711");
    refused(&["ps", "1", "--job", "2"], "cannot be used with");
    refused(&["attach", "x"], "\"x\" is not the number of a PE");
    let (first, second) =
        (jobs.start(&["run", "-n", "1", "sleep", "1000"]), jobs.start(&["run", "-n", "1", "sleep", "1000"]));
    [&first, &second].iter().for_each(|job| drop(job.wait_for_pes(1)));
    wait_until("both jobs to be listed", || jobs.json(&["ps", "--json"]).as_array().unwrap().len() == 2);
    refused(&["ps", "--pes"], "several jobs are running (");
    let listed = &jobs.json(&["ps", "--json"])[0];
    let name = listed["job"].as_str().unwrap().to_owned();
    assert_eq!(
        (&listed["state"], &jobs.json(&["ps", "--json", &name])["state"]),
        (&"forming".into(), &"forming".into())
    );
    refused(&["attach", &name, "1"], "there is no PE 1 in job");
    let nowhere = [jobs.variable(), ("PATH", "/nowhere")];
    for words in [&["attach", &name, "0"][..], &["ps", &name, "--stacks"]] {
        let ended = run_with(words, &nowhere);
        assert!(ended.status == 2 && ended.stderr.contains("apt install gdb"), "{}", ended.stderr);
    }
    interrupt(first);
    interrupt(second);
}

#[test]
fn a_folder_that_others_can_open_is_not_used() {
    let jobs = Jobs::new("open");
    fs::create_dir(&jobs.0).unwrap();
    assert!(Command::new("chmod").arg("777").arg(&jobs.0).status().unwrap().success());
    let ended = jobs.look(&["run", "-n", "1", "sh", "-c", "echo runs"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "runs\n"), "the job runs all the same");
    assert_eq!(fs::read_dir(&jobs.0).unwrap().count(), 0);
    let ended = jobs.look(&["ps"]);
    assert!(ended.status == 2 && ended.stderr.contains("chmod 700"), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("only this user").count(), 1, "{}", ended.stderr);
}
