//! `pelago ps`: lists the jobs of this user on this machine, and what each PE of a job does.

pub mod stacks;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use pelago_boot::{JobRecord, JobState, PeRow, jobs, out};
use pelago_report::Table;
use serde_json::{Value, json};

/// How long a launcher may take to tell the state of its job.
const STATE_LIMIT: Duration = Duration::from_secs(2);
/// How long a launcher may take to tell what the PEs do; it waits for replies of PEs for two seconds.
const PES_LIMIT: Duration = Duration::from_secs(5);

/// List the running jobs of `pelago run` on this machine, or what each PE of a job does
///
/// Jobs of OpenSHMEM and MPI programs are listed too (oshrun, mpiexec), those of other launchers are not. The
/// launcher of the job tells what each PE does, in the words of the report that SIGUSR2 prints; the PEs
/// themselves are not disturbed. With PEs that compute it takes two seconds. Jobs of other hosts are listed
/// there: `ssh HOST pelago ps`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Ps {
    /// The job, by its name in the list; it may be left out if there is one job
    #[arg(value_name = "JOB")]
    job: Option<String>,
    /// The same as an option
    #[arg(long = "job", value_name = "JOB", conflicts_with = "job")]
    named: Option<String>,
    /// Show what each PE does, also without the name of a job
    #[arg(long)]
    pes: bool,
    /// Print the call stacks of all threads of each PE on this machine, by gdb, which stops it for a moment
    #[arg(long)]
    stacks: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pelago ps                  the jobs, the oldest first
  pelago ps 4711             what each PE of the job 4711 does, and since when
  pelago ps --pes            the same, of the only job
  pelago ps --stacks         and where each of its PEs is in the program
  pelago ps --json 4711      for programs";

impl Ps {
    /// Prints the list.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        let name = self.job.as_deref().or(self.named.as_deref());
        if name.is_none() && !self.pes && !self.stacks {
            return self.list();
        }
        let record = find(name)?;
        let text = match record.pes(PES_LIMIT) {
            Ok(rows) if self.json => pretty(&self.json_of(&record, record.state(STATE_LIMIT), &rows)?)?,
            Ok(rows) => heading(&record) + &pes_text(&rows) + &self.stacks_of(&record, &rows)?,
            Err(state) if self.json => pretty(&self.json_of(&record, state, &[])?)?,
            Err(state) => heading(&record) + &without_rows(&record, state) + &self.left_stacks(&record)?,
        };
        out!("{text}")?;
        Ok(ExitCode::SUCCESS)
    }

    /// The list of the jobs. Afterwards a job whose launcher has died and of which no process is left is
    /// forgotten.
    fn list(&self) -> anyhow::Result<ExitCode> {
        let found = jobs()?.into_iter().map(|record| (record.state(STATE_LIMIT), record));
        let found: Vec<_> = found.filter(|(state, _)| *state != JobState::Ended).collect();
        if self.json {
            out!("{}", pretty(&found.iter().map(|(state, record)| json_of_job(record, *state)).collect())?)?;
        } else if found.is_empty() {
            out!("no job of pelago run is running on this machine\n")?;
        } else {
            let mut table = Table::new("", 5, ">JOB|>PES|AGE|STATE|PROGRAM").dense(0);
            for (state, record) in &found {
                let state = state_text(record, *state);
                table.row((record.id.as_str(), record.n_pes, [age(record.age()), state, programs(record)]));
            }
            out!("{table}")?;
        }
        let is_over = |(state, record): &&(JobState, JobRecord)| {
            *state == JobState::LauncherDied && record.left().is_empty()
        };
        found.iter().filter(is_over).for_each(|(_, record)| record.forget());
        Ok(ExitCode::SUCCESS)
    }

    fn stacks_of(&self, record: &JobRecord, rows: &[PeRow]) -> anyhow::Result<String> {
        if !self.stacks {
            return Ok(String::new());
        }
        stacks::of_rows(record, rows)
    }

    fn left_stacks(&self, record: &JobRecord) -> anyhow::Result<String> {
        if !self.stacks {
            return Ok(String::new());
        }
        stacks::of_left(record)
    }

    fn json_of(&self, record: &JobRecord, state: JobState, rows: &[PeRow]) -> anyhow::Result<Value> {
        let mut job = json_of_job(record, state);
        let row = |row: &PeRow| {
            json!({
                "pe": row.pe,
                "pid": row.pid,
                "host": row.host,
                "state": row.state.name(),
                "waits_seconds": row.seconds,
                "does": row.doing,
            })
        };
        job["pes"] = rows.iter().map(row).collect();
        if state == JobState::LauncherDied {
            let left = record.left().into_iter().map(|it| json!({ "process": it.process, "pid": it.pid }));
            job["left"] = left.collect();
        }
        if self.stacks {
            job["stacks"] = stacks::json(record, rows)?;
        }
        Ok(job)
    }
}

/// The job of this name, or the only one.
pub fn find(name: Option<&str>) -> anyhow::Result<JobRecord> {
    let mut found = jobs()?;
    let Some(name) = name else {
        found.retain(|record| match record.state(STATE_LIMIT) {
            JobState::Ended => false,
            JobState::LauncherDied => !record.left().is_empty(),
            _ => true,
        });
        return match (found.pop(), &found[..]) {
            (Some(record), []) => Ok(record),
            (None, _) => bail!("no job of pelago run is running on this machine"),
            (Some(last), others) => {
                let names = others.iter().chain([&last]).map(|record| record.id.as_str());
                bail!("several jobs are running ({}); name one of them", names.collect::<Vec<_>>().join(", "))
            }
        };
    };
    found.into_iter().find(|record| record.id == name).with_context(|| {
        let of_others = match rustix::process::geteuid().is_root() {
            true => "; PELAGO_JOBS_FOLDER=/tmp/pelago-UID names the jobs of the user UID",
            false => "",
        };
        let folder = jobs_folder();
        format!("there is no job {name} in {folder} on this machine; `pelago ps` lists the jobs{of_others}")
    })
}

/// The folder of the jobs, for messages.
fn jobs_folder() -> String {
    let given = std::env::var("PELAGO_JOBS_FOLDER").ok().filter(|folder| folder != "auto");
    given.unwrap_or_else(|| format!("/tmp/pelago-{}", rustix::process::geteuid().as_raw()))
}

fn heading(record: &JobRecord) -> String {
    let hosts =
        if record.hosts.is_empty() { String::new() } else { format!(" on {}", record.hosts.join(", ")) };
    let (id, n) = (&record.id, record.n_pes);
    format!("job {id}: {n} PEs{hosts}, started {} ago: {}\n", age(record.age()), programs(record))
}

fn pes_text(rows: &[PeRow]) -> String {
    let has_hosts = rows.iter().any(|row| row.host.is_some());
    let names = if has_hosts { ">PE|>PID|HOST|STATE|FOR|DOES" } else { ">PE|>PID|STATE|FOR|DOES" };
    let mut table = Table::new("", 6, names).dense(0);
    for row in rows {
        let since = row.seconds.map_or_else(|| "-".to_owned(), |it| age(Duration::from_secs_f64(it)));
        let host = Vec::from_iter(has_hosts.then(|| row.host.as_deref().unwrap_or_default()));
        table.row((row.pe, row.pid as usize, host, [row.state.name(), &since, &row.doing]));
    }
    table.to_string()
}

/// The text about a job whose launcher does not tell what the PEs do.
fn without_rows(record: &JobRecord, state: JobState) -> String {
    let launcher = record.launcher;
    match state {
        JobState::LauncherDied => {
            let left = record.left();
            let pids = left.iter().map(|it| it.pid.to_string()).collect::<Vec<_>>().join(" ");
            let elsewhere = match record.hosts.is_empty() {
                true => "",
                false => "; processes on other hosts end by themselves",
            };
            let here = match left.is_empty() {
                true => "no process of the job is left on this machine".to_owned(),
                false => {
                    format!("these processes of the job are left on this machine: {pids} (`kill -9 {pids}`)")
                }
            };
            format!("the launcher (pid {launcher}) has died; {here}{elsewhere}\n")
        }
        JobState::Silent => format!(
            "the launcher (pid {launcher}) does not answer; it is stopped (`kill -CONT {launcher}`) or in a \
             debugger\n"
        ),
        _ => "the job has just ended\n".to_owned(),
    }
}

fn programs(record: &JobRecord) -> String {
    let text = record.programs.join(" : ");
    match &record.tool {
        Some(tool) => format!("{text} (under {tool})"),
        None => text,
    }
}

fn state_text(record: &JobRecord, state: JobState) -> String {
    match (state, record.left().len()) {
        (JobState::LauncherDied, left) if left > 0 => format!("{}, {left} processes left", state.name()),
        _ => state.name().to_owned(),
    }
}

fn json_of_job(record: &JobRecord, state: JobState) -> Value {
    json!({
        "job": record.id,
        "launcher": record.launcher,
        "programs": record.programs,
        "tool": record.tool,
        "n_pes": record.n_pes,
        "pes_per_process": record.pes_per_process,
        "hosts": record.hosts,
        "age_seconds": record.age().as_secs_f64(),
        "state": state.name(),
    })
}

fn pretty(value: &Value) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// A time for a reader: `1.5 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`.
pub fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let of = |seconds| age(Duration::from_secs_f64(seconds));
        assert_eq!([of(1.26), of(12.9), of(61.0)], ["1.3 s", "12 s", "1 min 1 s"]);
        assert_eq!([of(7800.0), of(270_000.0)], ["2 h 10 min", "3 d 3 h"]);
    }
}
