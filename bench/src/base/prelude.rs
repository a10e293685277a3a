//! Imports that nearly every topic uses.

pub use anyhow::Result;
pub use pelago::prelude::*;

pub use super::buffers::largest;
pub use super::chart::{Axis, Line, Scale};
pub use super::effort::Effort;
pub use super::ensemble::{Part, only_first, rest};
pub use super::page::{Across, BANDWIDTH, BLUE, Figure, GREEN, GREY, ORANGE, PURPLE, TIME, TIME_FROM_ZERO};
pub use super::record::{Bench, Label, Operation, Pair, Place, Record, Unit, Way, find, of, values};
pub use super::suite::{Progress, Sink, Suite, pairs};
pub use super::table::{Table, ratio, size};
pub use super::topic::{Job, Topic, doublings};
