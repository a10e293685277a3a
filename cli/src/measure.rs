//! The measurements, which only a program with the feature `bench` has: `pelago bench`, `pelago paper`,
//! `pelago tune` and the application `perf`. Invariant: without the feature the commands say how to get them.

use pelago_apps::App;

#[cfg(not(feature = "bench"))]
mod absent;
#[cfg(feature = "bench")]
mod machine;
#[cfg(feature = "bench")]
mod tune;

#[cfg(not(feature = "bench"))]
pub use absent::{Bench, Here, Measure, PaperCommand};
#[cfg(feature = "bench")]
pub use {
    machine::Measure,
    pelago_bench::{Bench, PaperCommand},
    tune::Here,
};

/// The applications of the measurements.
#[cfg(feature = "bench")]
pub const APPS: &[App] = &[pelago_bench::APP];
/// The applications of the measurements: none.
#[cfg(not(feature = "bench"))]
pub const APPS: &[App] = &[];

/// The signal that has interrupted a measurement.
#[cfg(feature = "bench")]
pub fn interrupted(error: &anyhow::Error) -> Option<i32> {
    error.downcast_ref::<pelago_bench::Interrupted>().map(|interrupted| interrupted.signal)
}

/// The signal that has interrupted a measurement; there are none.
#[cfg(not(feature = "bench"))]
pub fn interrupted(_: &anyhow::Error) -> Option<i32> {
    None
}
