//! `pelago agent`: `pelago run --hosts` starts it on each host. It is not for users, so the help does not
//! list it.

use std::process::ExitCode;

use clap::Args;
use pelago_boot::agent;

/// The agent of a host, which `pelago run --hosts` starts by a remote shell
#[derive(Args)]
pub struct Agent {}

impl Agent {
    /// Serves the launcher at the other end of standard input and output.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        agent()?;
        Ok(ExitCode::SUCCESS)
    }
}
