//! `noop`: joins the job, passes one barrier and leaves, to measure only the cost of a start.

use std::process::ExitCode;

use clap::Parser;
use pelago::prelude::*;

/// Join the job, meet all PEs in a barrier and leave. Prints nothing.
#[derive(Parser)]
#[command(
    name = "noop",
    bin_name = "pelago run -n N noop",
    after_help = "Example:\n  time pelago run -n 64 noop    what it costs to start 64 PEs"
)]
struct Args {}

pub(crate) fn run(world: &World, args: &[String]) -> anyhow::Result<ExitCode> {
    crate::entry::start(world, args, |world, _: Args| {
        world.barrier();
        Ok(ExitCode::SUCCESS)
    })
}
