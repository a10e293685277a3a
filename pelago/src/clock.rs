//! The time of the job: wall-clock time, or the virtual time of a simulated network.

use crate::world::World;
use std::time::Duration;

impl World {
    /// Time since this PE joined the job. In a simulation it is virtual: it passes by communication and by
    /// [`simulate_compute`](World::simulate_compute) only, and is the same on every run.
    pub fn wtime(&self) -> Duration {
        self.virtual_time().unwrap_or_else(|| self.core().joined_at.elapsed())
    }

    /// In a simulation, lets `time` pass on this PE's virtual clock, as if it had computed for so long.
    /// Elsewhere nothing happens: there, computing itself takes the time.
    pub fn simulate_compute(&self, time: Duration) {
        if let Some(net) = &self.core().net {
            net.compute(time);
        }
    }

    /// Whether time is virtual: the PEs run one at a time over a simulated network.
    pub fn is_simulated(&self) -> bool {
        self.virtual_time().is_some()
    }

    fn virtual_time(&self) -> Option<Duration> {
        self.core().net.as_ref().and_then(|net| net.virtual_time())
    }
}
