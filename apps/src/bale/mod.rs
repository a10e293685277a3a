//! Two applications of bale, in which every PE has a list of random indices into a table over all PEs:
//! histogram counts them, index-gather gets the words with these indices. Invariant: each application runs in
//! three ways on the same lists, and each way is verified. Source: J. DeVinney and others, bale, which
//! compares such ways.

use std::process::ExitCode;

use pelago::Result;
use pelago::prelude::*;

use self::problem::{Place, Problem};
use self::report::{Outcome, Report};
use self::way::Way;
use crate::bar::bar;
use crate::entry;
use crate::report::tell;
use crate::room;

pub(crate) mod histogram;
pub(crate) mod index_gather;
mod problem;
mod report;
mod way;

/// Collective: runs an application with this PE's list, if it fits in memory, and reports. `work` reports the
/// progress of each way, and returns the results of all.
fn drive(
    world: &World,
    (app, problem, is_json): (&'static str, Problem, bool),
    work: impl FnOnce(&[Place], &mut dyn FnMut(Way, u64)) -> Result<Vec<Outcome>>,
) -> anyhow::Result<ExitCode> {
    if let Err(too_large) =
        room::check(world, problem.need(), |_| "take a smaller --table or --indices".to_owned())?
    {
        return Ok(entry::refuse(world, app, &too_large));
    }
    let indices = u64::from(problem.size.indices);
    let bar = bar(world, "indices", Way::ALL.len() as u64 * indices)?;
    let mut progress = |way: Way, done| bar.set_position(way as u64 * indices + done);
    let outcomes = work(&problem.places(world.my_pe()), &mut progress)?;
    bar.finish_and_clear();
    let report = Report::new(app, problem, &outcomes);
    tell(world, &report, is_json)?;
    Ok(if report.verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
