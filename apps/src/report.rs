//! How a run is reported: a page for people, or one JSON object for programs. Invariant: both forms are
//! written from the same report.

use std::fmt::Display;

use pelago::prelude::*;
use pelago_boot::{out, outln};
use serde::Serialize;

/// Prints a report on PE 0.
pub(crate) fn tell(world: &World, report: &(impl Serialize + Display), json: bool) -> anyhow::Result<()> {
    match (world.my_pe(), json) {
        (0, true) => outln!("{}", serde_json::to_string(report)?)?,
        (0, false) => out!("{report}")?,
        _ => (),
    }
    Ok(())
}

/// The verdict on a page.
pub(crate) fn verdict(verified: bool) -> &'static str {
    if verified { "VERIFIED" } else { "NOT VERIFIED" }
}
