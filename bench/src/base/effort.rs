//! The effort of a measurement: blocks of operations, each long enough for the clock and short enough to fit
//! between two interruptions. Invariant: the number of operations of a block is calibrated, never assumed.

use std::time::{Duration, Instant};

use clap::Args;

/// The minimum number of blocks of a long operation, if options set the effort.
const BLOCKS_MIN: usize = 5;
/// The maximum number of operations of a block.
const COUNT_MAX: u64 = 1 << 20;

/// The length and the number of blocks.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The approximate time of a block.
    pub block: Duration,
    /// The minimum number of blocks.
    pub blocks_min: usize,
    /// The maximum number of blocks.
    pub blocks_max: usize,
    /// The time for the blocks of each part, which determines their number between the two limits.
    pub budget: Duration,
}

/// The options of the effort.
#[derive(Clone, Debug, Default, Args)]
pub struct EffortOptions {
    /// Approximate time of a block, in microseconds
    #[arg(long)]
    pub block_us: Option<u64>,
    /// Maximum number of blocks of a measurement
    #[arg(long)]
    pub blocks: Option<usize>,
    /// Time for the blocks of a measurement, in milliseconds
    #[arg(long)]
    pub budget_ms: Option<u64>,
}

impl EffortOptions {
    /// The effort of the options, with the defaults of `usual`.
    pub fn effort(&self, usual: Effort) -> Effort {
        Effort {
            block: self.block_us.map_or(usual.block, Duration::from_micros),
            blocks_min: usual.blocks_min.min(BLOCKS_MIN),
            blocks_max: self.blocks.unwrap_or(usual.blocks_max).max(BLOCKS_MIN),
            budget: self.budget_ms.map_or(usual.budget, Duration::from_millis),
        }
    }
}

impl Effort {
    /// The effort for this number of members and cores: if members share cores, a block must last for many
    /// time slices of the scheduler.
    pub fn among(members: usize, cores: usize) -> Self {
        let (block_us, blocks_min) = if members > cores { (5_000, 11) } else { (100, 21) };
        Effort {
            block: Duration::from_micros(block_us),
            blocks_min,
            blocks_max: 1001,
            budget: Duration::from_millis(150),
        }
    }

    /// The minimum effort, for tests.
    pub fn quick() -> Self {
        Effort { block: Duration::from_micros(20), blocks_min: 2, blocks_max: 2, budget: Duration::ZERO }
    }

    /// The time of a count of a crowd: each of its members gets a core for at least the time of a block.
    pub fn crowd_window(self, members: usize, cores: usize) -> Duration {
        self.block * 2 * members.div_ceil(cores) as u32
    }

    /// The operations that fill a block, given how long `run` takes for a number of them.
    ///
    /// # Errors
    /// Errors of `run`.
    pub fn calibrate<E>(self, mut run: impl FnMut(u64) -> Result<Duration, E>) -> Result<u64, E> {
        // Warms up code and memory.
        run(1)?;
        let mut count = 1;
        loop {
            // The minimum of two, so that one interruption does not make all blocks too short.
            let elapsed = run(count)?.min(run(count)?);
            // In virtual time an access to mapped memory takes none.
            if elapsed * 2 >= self.block || count >= COUNT_MAX {
                return Ok(count);
            }
            let factor = self.block.as_nanos() / elapsed.as_nanos().max(1);
            count = count.saturating_mul(u64::try_from(factor).unwrap_or(u64::MAX).clamp(2, 16));
        }
    }

    /// Calls `measure` for each round of blocks, of `parts` parts each, that the effort allows.
    ///
    /// # Errors
    /// Errors of `measure`.
    pub fn repeat<E>(self, parts: usize, mut measure: impl FnMut() -> Result<(), E>) -> Result<(), E> {
        let end = Instant::now() + self.budget * parts as u32;
        for block in 0..self.blocks_max {
            if block >= self.blocks_min && Instant::now() >= end {
                break;
            }
            measure()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const EFFORT: Effort =
        Effort { block: Duration::from_micros(100), blocks_min: 3, blocks_max: 5, budget: Duration::ZERO };

    /// The time of a block of calibrated length if an operation takes `operation_ns`, and the first run
    /// `cold_ns` more; by a simulated clock that only the operations advance.
    fn block_ns(operation_ns: u64, cold_ns: u64) -> u64 {
        let mut cold_ns = cold_ns;
        let Ok(count) = EFFORT.calibrate(|count| {
            let elapsed_ns = operation_ns * count + std::mem::take(&mut cold_ns);
            Ok::<_, Infallible>(Duration::from_nanos(elapsed_ns))
        });
        operation_ns * count
    }

    #[test]
    fn blocks_come_out_at_the_length_asked_for() {
        for operation_ns in [1, 2, 7, 60, 999, 12_345] {
            let block_ns = block_ns(operation_ns, 0);
            assert!((50_000..=200_000).contains(&block_ns), "{operation_ns} ns make blocks of {block_ns} ns");
        }
    }

    #[test]
    fn long_operations_stand_alone_and_a_cold_start_does_not_count() {
        assert_eq!(block_ns(3_000_000, 0), 3_000_000);
        assert!(block_ns(1, 5_000_000) >= 50_000);
    }

    #[test]
    fn one_interruption_does_not_shorten_the_blocks() {
        let mut runs = 0;
        let count = EFFORT.calibrate(|count| {
            runs += 1;
            let interruption_ns = if runs == 2 { 1_000_000 } else { 0 };
            Ok::<_, Infallible>(Duration::from_nanos(10 * count + interruption_ns))
        });
        assert!(count.is_ok_and(|count| count * 10 >= 50_000));
    }

    #[test]
    fn a_clock_that_stands_still_at_first_does_no_harm() {
        let count = EFFORT.calibrate(|count| Ok::<_, Infallible>(Duration::from_nanos(count / 1000 * 1000)));
        assert!(count.is_ok_and(|count| count >= 50_000));
    }

    #[test]
    fn repetitions_stay_within_their_bounds() {
        let count = |effort: Effort| {
            let mut count = 0;
            let Ok(()) = effort.repeat(2, || {
                count += 1;
                Ok::<_, Infallible>(())
            });
            count
        };
        assert_eq!(count(EFFORT), 3);
        assert_eq!(count(Effort { budget: Duration::from_secs(3600), ..EFFORT }), 5);
    }
}
