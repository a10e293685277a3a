//! `pelago attach`: starts gdb on a PE of a running job.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;

use crate::ps::{find, stacks};

/// How long the launcher may take to tell the processes of the PEs.
const LIMIT: Duration = Duration::from_secs(5);

/// Start gdb on a PE of a running job
///
/// The PE is stopped while gdb has it; `detach` or `quit` lets it go on. The other PEs wait for it, and no
/// stall report ends the job meanwhile. But in a job of several nodes, PEs of other nodes take it for lost
/// after PELAGO_PEER_TIMEOUT (30 s), and the job ends: start it with PELAGO_PEER_TIMEOUT=none to debug it.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Attach {
    /// The job, if there are several (see `pelago ps`), and the PE
    #[arg(value_name = "JOB PE", required = true, num_args = 1..=2)]
    words: Vec<String>,
    /// Commands of gdb to run before it asks for more; may be repeated
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    ex: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  pelago attach 2                      PE 2 of the only job
  pelago attach 4711 2                 PE 2 of the job 4711
  pelago attach 2 --ex backtrace       with a first command";

impl Attach {
    /// Becomes gdb.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        let (job, pe) = match &self.words[..] {
            [job, pe] => (Some(job.as_str()), pe),
            words => (None, words.last().context("no PE was named")?),
        };
        let pe: usize = pe.parse().map_err(|_| anyhow!("{pe:?} is not the number of a PE"))?;
        let record = find(job)?;
        if pe >= record.n_pes {
            bail!("there is no PE {pe} in job {}, which has {} PEs", record.id, record.n_pes);
        }
        let gdb = stacks::gdb()?;
        let rows = record.pes(LIMIT).map_err(|state| anyhow!("job {}: {}", record.id, state.name()))?;
        let row = rows.iter().find(|row| row.pe == pe);
        let row = row.with_context(|| format!("the launcher of job {} does not know PE {pe}", record.id))?;
        if let Some(why) = stacks::obstacle(row) {
            bail!("PE {pe}: {why}");
        }
        let pid = stacks::program_of(&record, row.pid).to_string();
        let first = self.ex.iter().flat_map(|command| ["-ex", command]);
        Err(Command::new(&gdb).args(["-q", "-p", &pid]).args(first).exec()).context(gdb.display().to_string())
    }
}
