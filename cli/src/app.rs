//! `pelago app`: runs this process as one or several PEs of a built-in application, in the surrounding job.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use pelago_apps::{App as Application, nearest};
use pelago_boot::{print, tell};

use crate::measure;

/// Run a built-in application as a PE of the surrounding job
///
/// Without a launcher the job has one process. A process has one PE, or PELAGO_PES_PER_PROCESS PEs as
/// threads. Without a name, lists the applications.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct App {
    /// Name of the application, and its arguments
    #[arg(value_name = "NAME ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// The setting for the size of the symmetric heap.
const HEAP_SIZE: &str = "PELAGO_HEAP_SIZE";

const EXAMPLES: &str = "\
Examples:
  pelago app                                   the list
  pelago app ft --help                         what an application takes
  pelago app ft --class S                      a job of one PE
  mpiexec.hydra -n 4 pelago app ft --class W   four PEs, started by hydra
  PELAGO_PES_PER_PROCESS=2 mpiexec.hydra -n 2 pelago app ft   four PEs, two in each process
  mpirun -n 4 pelago app ft --class W          four PEs, started by Open MPI
  srun --mpi=pmi2 -n 4 pelago app ft           four PEs, started by Slurm";

impl App {
    /// Runs the application; returns its exit status.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        let Some((name, args)) = self.words.split_first() else {
            print(&listing())?;
            return Ok(ExitCode::SUCCESS);
        };
        let Some(app) = find(name) else {
            bail!("there is no built-in application {name:?}; {}", suggestion(name));
        };
        let failed = |error: &anyhow::Error| {
            // Written in one call, so that the messages of two PEs do not mix.
            let line = format!("{}: {error:#}\n", app.name);
            tell(&line);
            ExitCode::FAILURE
        };
        // The memory that an application needs depends on its arguments, so by default its PEs may use their
        // whole share.
        let is_set = std::env::var_os(HEAP_SIZE).is_some();
        let settings: &[_] = if is_set { &[] } else { &[(HEAP_SIZE, "share")] };
        let outcomes = pelago::binding::run_with(settings, |world| {
            (app.run)(world, args).unwrap_or_else(|error| {
                // The other PEs may wait for this one, so it aborts the job; only its message is printed.
                if world.n_pes() > 1 {
                    world.abort(1, &format!("{}: {error:#}", app.name));
                }
                failed(&error)
            })
        });
        Ok(match outcomes {
            Ok(codes) => codes.into_iter().find(|code| *code != ExitCode::SUCCESS).unwrap_or_default(),
            Err(error) => failed(&error.into()),
        })
    }
}

/// All built-in applications, by name: those of the library, and those of the benchmarks.
fn apps() -> Vec<&'static Application> {
    let mut apps: Vec<_> = pelago_apps::apps().iter().chain(measure::APPS).collect();
    apps.sort_unstable_by_key(|app| app.name);
    apps
}

/// The application of this name.
pub fn find(name: &str) -> Option<&'static Application> {
    apps().into_iter().find(|app| app.name == name)
}

/// The hint for a name that does not exist.
pub fn suggestion(name: &str) -> String {
    let names = || apps().into_iter().map(|app| app.name);
    let list = names().collect::<Vec<_>>().join(", ");
    match nearest(name, names()) {
        Some(nearest) => format!("did you mean {nearest}? (there are {list})"),
        None => "there are none".to_owned(),
    }
}

fn listing() -> String {
    let width = apps().iter().map(|app| app.name.len()).max().unwrap_or(0);
    apps().iter().fold(String::new(), |mut text, app| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:width$}  {}", app.name, app.about);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_application_is_listed_and_found() {
        for app in apps() {
            assert!(find(app.name).is_some() && listing().contains(app.about), "{}", app.name);
        }
        assert!(find("no-such-app").is_none());
        assert!(suggestion("helo").starts_with("did you mean hello?"));
    }
}
