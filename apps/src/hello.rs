//! `hello`: every PE prints its number and its node. The smallest test that a job has started.

use std::process::ExitCode;

use clap::Parser;
use pelago::prelude::*;
use pelago_boot::outln;

/// Print one line from every PE: its number, the number of PEs, its node and its process.
#[derive(Parser)]
#[command(
    name = "hello",
    bin_name = "pelago run -n N hello",
    after_help = "Example:\n  pelago run -n 4 hello    four lines, in the order in which the PEs get to them"
)]
struct Args {}

pub(crate) fn run(world: &World, args: &[String]) -> anyhow::Result<ExitCode> {
    crate::entry::start(world, args, |world, _: Args| {
        let node = std::fs::read_to_string("/proc/sys/kernel/hostname")?;
        let pid = std::process::id();
        outln!("Hello from PE {} of {} on node {}, pid {pid}", world.my_pe(), world.n_pes(), node.trim())?;
        Ok(ExitCode::SUCCESS)
    })
}
