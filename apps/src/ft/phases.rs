//! The division of the time of a run into phases. Invariant: every moment between the start and the last lap
//! belongs to exactly one phase, so that the phases of a PE add up to its time.

use std::cell::Cell;
use std::time::Duration;

use pelago::prelude::*;

/// An activity of a PE; the order is that of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    LocalFft,
    CommunicationStart,
    CommunicationWait,
    InMemoryTransfer,
    Barrier,
    Other,
}

impl Phase {
    pub(super) const ALL: [Phase; 6] = [
        Phase::LocalFft,
        Phase::CommunicationStart,
        Phase::CommunicationWait,
        Phase::InMemoryTransfer,
        Phase::Barrier,
        Phase::Other,
    ];

    /// The name of the phase for reports.
    pub(super) fn label(self) -> &'static str {
        match self {
            Phase::LocalFft => "local FFT",
            Phase::CommunicationStart => "communication start",
            Phase::CommunicationWait => "communication wait",
            Phase::InMemoryTransfer => "in-memory transfer",
            Phase::Barrier => "barrier",
            Phase::Other => "other",
        }
    }
}

/// A stopwatch that divides the time since its start among the phases. Where time is virtual it also advances
/// the time by the duration of the computation on the simulated machine.
pub(super) struct Clock<'w> {
    world: &'w World,
    last: Cell<Duration>,
    spent: Cell<[Duration; Phase::ALL.len()]>,
    /// Operations a second of the simulated processor; none where computing itself takes the time.
    simulated_flops: Option<f64>,
}

impl<'w> Clock<'w> {
    /// Starts at the present time of `world`. If that is virtual, a PE computes `simulated_gflops`.
    pub(super) fn start(world: &'w World, simulated_gflops: f64) -> Self {
        let simulated_flops = world.is_simulated().then_some(1e9 * simulated_gflops);
        let spent = Cell::new([Duration::ZERO; Phase::ALL.len()]);
        Clock { world, last: Cell::new(world.wtime()), spent, simulated_flops }
    }

    /// Starts again, with nothing booked.
    pub(super) fn restart(&self) {
        self.spent.set([Duration::ZERO; Phase::ALL.len()]);
        self.last.set(self.world.wtime());
    }

    /// Records that `count` FFTs of `len` elements were computed since the last lap.
    #[inline]
    pub(super) fn computed(&self, count: usize, len: usize) {
        if let Some(flops) = self.simulated_flops {
            self.world.simulate_compute(Duration::from_secs_f64(count as f64 * operations(len) / flops));
        }
    }

    /// Books the time since the start or the last lap on `phase`.
    pub(super) fn lap(&self, phase: Phase) {
        let now = self.world.wtime();
        let mut spent = self.spent.get();
        spent[phase as usize] += now - self.last.replace(now);
        self.spent.set(spent);
    }

    /// Seconds spent in each phase, in the order of `Phase::ALL`.
    pub(super) fn seconds(&self) -> [f64; Phase::ALL.len()] {
        self.spent.get().map(|spent| spent.as_secs_f64())
    }
}

/// The customary count of floating-point operations of an FFT of `len` elements.
pub(super) fn operations(len: usize) -> f64 {
    5.0 * len as f64 * (len as f64).log2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_index_the_table_in_report_order() {
        for (index, phase) in Phase::ALL.into_iter().enumerate() {
            assert_eq!(phase as usize, index);
        }
    }

    #[test]
    fn laps_add_up_and_go_to_their_phase() {
        spmd(1, |world| {
            let start = world.wtime();
            let clock = Clock::start(world, 1.0);
            let first = clock.last.get();
            clock.lap(Phase::Barrier);
            clock.lap(Phase::Other);
            clock.lap(Phase::Barrier);
            let seconds = clock.seconds();
            let total = (clock.last.get() - first).as_secs_f64();
            assert!((seconds.iter().sum::<f64>() - total).abs() < 1e-12);
            assert!(first >= start && seconds[Phase::LocalFft as usize] == 0.0);
            clock.restart();
            assert_eq!(clock.seconds(), [0.0; Phase::ALL.len()]);
        })
        .unwrap();
    }

    #[test]
    fn operations_are_counted_as_is_customary() {
        assert_eq!([1, 2, 256].map(operations), [0.0, 10.0, 10240.0]);
    }
}
