//! Comparisons of an operation with its yardstick, for gates: pairs of medians, measured in turn. Invariant:
//! within a pair the two take turns block by block, so that whatever slows the machine slows both.

use anyhow::Result;
use clap::Subcommand;
use pelago::prelude::*;

use super::barrier::{YieldBarrier, barriers};
use super::buffers::Buffers;
use super::effort::Effort;
use super::ensemble::{Leader, conduct};
use super::ping::PingAck;
use super::record::Pair;
use super::rma::Transfers;
use super::stats::Summary;
use super::sums::Sums;

/// What is compared with what.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(super) enum Comparison {
    /// Blocking puts with memcpy between the same buffers
    Put {
        /// Bytes of a put, a multiple of 8
        #[arg(long, value_parser = transfer_bytes)]
        bytes: usize,
    },
    /// Blocking gets with memcpy between the same buffers
    Get {
        /// Bytes of a get, a multiple of 8
        #[arg(long, value_parser = transfer_bytes)]
        bytes: usize,
    },
    /// The barrier with a one-way transfer: half a round trip of a flag of 8 bytes between PEs 0 and 1
    BarrierOneWay,
    /// The all-reduce, a sum of doubles, with a loop over the mapped sources and one barrier
    AllReduce {
        /// Bytes that a PE contributes, a multiple of 8
        #[arg(long, value_parser = transfer_bytes)]
        bytes: usize,
    },
    /// The barrier with one in which every PE only yields its core until all have come
    BarrierYield,
}

/// Collective, for two PEs or more: so many pairs, on PE 0; none elsewhere.
///
/// # Errors
/// If the symmetric heap has no room for what is needed.
pub(super) fn compare(
    world: &World,
    comparison: Comparison,
    pairs: usize,
    effort: Effort,
) -> Result<Vec<Pair>> {
    let (bytes, summed_bytes) = match comparison {
        Comparison::Put { bytes } | Comparison::Get { bytes } => (bytes, 0),
        Comparison::AllReduce { bytes } => (0, bytes),
        Comparison::BarrierOneWay | Comparison::BarrierYield => (0, 0),
    };
    let buffers = Buffers::new(world, bytes)?;
    let transfers = Transfers::new(&buffers, bytes, bytes);
    let ping = PingAck::new(world, 0)?;
    let yielding = YieldBarrier::new(world)?;
    let sums = Sums::new(world, summed_bytes / size_of::<f64>())?;
    let (mut parts, yardstick_share) = match comparison {
        Comparison::Put { .. } => ([transfers.put(), transfers.put_memcpy()], 1.0),
        Comparison::Get { .. } => ([transfers.get(), transfers.get_memcpy()], 1.0),
        Comparison::BarrierOneWay => ([barriers(world), ping.rounds(0)], 0.5),
        Comparison::BarrierYield => ([barriers(world), yielding.barriers()], 1.0),
        Comparison::AllReduce { .. } => ([sums.all_reduce(), sums.by_loop()], 1.0),
    };
    let led = conduct(world, &mut parts, |leader| {
        let mut counts = [0; 2];
        for (part, count) in counts.iter_mut().enumerate() {
            *count = effort.calibrate(|count| leader.play(part, count))?;
        }
        (0..pairs).map(|_| pair(leader, counts, effort.blocks_min, yardstick_share)).collect()
    });
    Ok(led?.unwrap_or_default())
}

fn pair(leader: &mut Leader<'_, '_, '_>, counts: [u64; 2], blocks: usize, share: f64) -> Result<Pair> {
    let mut samples = [const { Vec::new() }; 2];
    for _ in 0..blocks {
        for (part, samples) in samples.iter_mut().enumerate() {
            samples.push(leader.play_ns(part, counts[part])?);
        }
    }
    let [ours_ns, yardstick_ns] = samples.map(|samples| Summary::of(&samples).median);
    Ok(Pair { ours_ns, yardstick_ns: yardstick_ns * share })
}

/// Reads a size in bytes that is a number of words.
pub(super) fn transfer_bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse::<usize>().ok().filter(|bytes| *bytes > 0 && bytes.is_multiple_of(8));
    bytes.ok_or_else(|| "this is not a number of bytes that is a multiple of 8".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_comparison_gives_its_pairs_on_pe_0() {
        let effort =
            Effort { block: Duration::from_micros(1), blocks_min: 2, blocks_max: 2, budget: Duration::ZERO };
        for comparison in [
            Comparison::Put { bytes: 4096 },
            Comparison::Get { bytes: 8 },
            Comparison::BarrierOneWay,
            Comparison::BarrierYield,
            Comparison::AllReduce { bytes: 8192 },
        ] {
            let pairs = spmd(3, |world| compare(world, comparison, 4, effort).unwrap()).unwrap();
            assert_eq!(pairs.iter().map(Vec::len).collect::<Vec<_>>(), [4, 0, 0], "{comparison:?}");
            let is_time = |ns: f64| ns > 0.0 && ns.is_finite();
            assert!(pairs[0].iter().all(|pair| is_time(pair.ours_ns) && is_time(pair.yardstick_ns)));
        }
    }

    #[test]
    fn sizes_that_are_no_words_are_refused() {
        assert_eq!(transfer_bytes("4096"), Ok(4096));
        for text in ["0", "12", "-8", "4k", ""] {
            assert!(transfer_bytes(text).is_err(), "{text}");
        }
    }
}
