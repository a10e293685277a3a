//! The smallest launcher: starts a number of PEs of a program on this machine, and exits with the status of
//! the job.
//!
//! `launch N PROGRAM [ARGUMENTS]`

use pelago_boot::{JobSpec, launch};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let n = words.next().and_then(|n| n.to_str()?.parse().ok());
    let (Some(n), Some(program)) = (n, words.next()) else {
        eprintln!("usage: launch N PROGRAM [ARGUMENTS]");
        return ExitCode::FAILURE;
    };
    match launch(&JobSpec { args: words.collect(), ..JobSpec::new(n, program) }) {
        Ok(report) => {
            report.failures.iter().for_each(|failure| eprintln!("launch: {}", failure.text));
            ExitCode::from(u8::try_from(report.status).unwrap_or(1))
        }
        Err(error) => {
            eprintln!("launch: {error}");
            ExitCode::FAILURE
        }
    }
}
