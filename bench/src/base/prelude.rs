//! Imports that nearly every topic uses.

pub use anyhow::Result;
pub use pelago::prelude::*;
pub use pelago_report::Table;
pub use pelago_report::chart::{Axis, Line, Scale};
pub use pelago_report::page::{BLUE, Figure, GREEN, GREY, ORANGE, PURPLE};

pub use super::across::{Across, BANDWIDTH, TIME, TIME_FROM_ZERO, size};
pub use super::buffers::largest;
pub use super::effort::Effort;
pub use super::ensemble::{Part, only_first, rest};
pub use super::record::{Bench, Label, Operation, Pair, Place, Record, Unit, Way, find, of, ratio, values};
pub use super::suite::{Progress, Sink, Suite, pairs};
pub use super::topic::{Job, Topic, doublings};
