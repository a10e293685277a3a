//! Where the time of a run goes. Invariant: every moment between the start and the last lap belongs to
//! exactly one phase, so that the phases of a PE add up to its time.

use std::time::{Duration, Instant};

/// What a PE does with its time; the order is that of the report.
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

    /// The phase in words.
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

/// A stopwatch that shares out the time since its start among the phases.
pub(super) struct Clock {
    last: Instant,
    spent: [Duration; Phase::ALL.len()],
}

impl Clock {
    pub(super) fn start() -> Self {
        Clock { last: Instant::now(), spent: [Duration::ZERO; Phase::ALL.len()] }
    }

    /// Books the time since the start or the last lap on `phase`.
    pub(super) fn lap(&mut self, phase: Phase) {
        let now = Instant::now();
        self.spent[phase as usize] += now - self.last;
        self.last = now;
    }

    /// Seconds spent in each phase, in the order of `Phase::ALL`.
    pub(super) fn seconds(&self) -> [f64; Phase::ALL.len()] {
        self.spent.map(|spent| spent.as_secs_f64())
    }
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
        let start = Instant::now();
        let mut clock = Clock::start();
        let first = clock.last;
        clock.lap(Phase::Barrier);
        clock.lap(Phase::Other);
        clock.lap(Phase::Barrier);
        let seconds = clock.seconds();
        let total = (clock.last - first).as_secs_f64();
        assert!((seconds.iter().sum::<f64>() - total).abs() < 1e-12);
        assert!(first >= start && seconds[Phase::LocalFft as usize] == 0.0);
    }
}
