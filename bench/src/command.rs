//! `pelago bench`: measures this machine and this runtime, and checks bounds.
//!
//! Invariant: all measurements come from jobs of the application `perf`, which this command starts; this file
//! only arranges them. A gate is a comparison within one run, never an absolute time.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::base::gate::{self, Gate};
use crate::base::topic::{Between, Unbound, UpTo};
use crate::topics::{
    am, atomics, barrier, coll, compute, links, messages, ping, rate, rma, semaphores, signals, start,
    sync_memory, threads, vis,
};

/// Measure the runtime on this machine
///
/// With --gate it checks for regressions instead. Each gate compares two times or rates, such as those of a
/// put and of memcpy, in eleven pairs of alternating runs; the exit status is 1 if a median misses its bound.
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true, args_conflicts_with_subcommands = true)]
pub struct Bench {
    #[command(subcommand)]
    suite: Option<Suite>,
    /// Check these gates, or all if none is named
    #[arg(long, value_name = "NAME", num_args = 0..)]
    gate: Option<Vec<String>>,
    /// Print one JSON object per gate instead of a table
    #[arg(long, requires = "gate")]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pelago bench rma                        latencies, bandwidths, barriers, as tables
  pelago bench rma --html curves.html     the same as a page of curves
  pelago bench rma -n 16 --json           barriers of up to 16 PEs too; for programs
  pelago bench atomics -n 8               atomics alone, and of up to 8 PEs on one word
  pelago bench am                         active messages: round trips, floods, polls
  pelago bench --gate                     is everything within its bounds?
  pelago bench --gate barrier-2 put-4k    only these";

#[derive(Subcommand)]
enum Suite {
    /// Put, get, memcpy for comparison, and the barrier
    ///
    /// Two PEs for put and get; for the barrier one job for each number of PEs up to 8, and fewer in between
    /// above that.
    #[command(after_help = rma::EXAMPLES)]
    Rma(UpTo),
    /// Atomics of one PE alone, and of several PEs at once on one word
    ///
    /// PE 0 alone with its own memory and another PE's; then fetch_add of 1, 2, 4 PEs and so on at the same
    /// time, on one word, and for comparison on one word per PE. If PEs share cores, a latency includes the
    /// time without a core.
    #[command(after_help = atomics::EXAMPLES)]
    Atomics(UpTo),
    /// Puts with a signal, compared with put, fence and flag
    ///
    /// PEs 0 and 1 send each other the same bytes in turn; the result is half a round trip.
    #[command(after_help = signals::EXAMPLES)]
    Signals(Between),
    /// Semaphores: posts, waits, and puts that post
    ///
    /// PEs 0 and 1 post and wait in turn, for four kinds of semaphores; PE 0 posts and PE 1 waits; and
    /// memput_signal is compared with put_signal and with put, fence and flag.
    #[command(after_help = semaphores::EXAMPLES)]
    Semaphore(Between),
    /// Active messages: round trips, floods, several senders, polls
    ///
    /// PE 0 sends PE 1 short, medium and long requests: round trips with a reply of the same size; floods
    /// without replies and with replies. Then 1, 2, 4 PEs and so on send to one more PE at the same time: the
    /// rate of all senders, and the ratio of the slowest to the fastest sender.
    #[command(after_help = am::EXAMPLES)]
    Am(UpTo),
    /// Two-sided messages: half a round trip, and windows
    ///
    /// PEs 0 and 1 send each other a message in turn; PE 0 sends PE 1 windows of 64 messages, or of 16 from
    /// 64 KiB on. All buffers are private memory.
    #[command(after_help = messages::EXAMPLES)]
    Messages(Between),
    /// One-sided and two-sided round trips
    ///
    /// PE 0 puts to PE 1 and waits until the data are there; gets from it; sends it a message and waits for
    /// an empty one: 1 B to 512 KiB.
    #[command(after_help = ping::EXAMPLES)]
    Ping(Between),
    /// Message rate of non-blocking puts
    ///
    /// PE 0 puts to PE 1 in windows, each completed before the next: in a scope, with handles that own their
    /// buffers, through one context, and through four contexts in turn.
    #[command(after_help = rate::EXAMPLES)]
    Rate(Between),
    /// Bandwidth of one PE to several PEs, which may be on separate links
    ///
    /// PE 0 puts to PE 1, and to 2, 4 and 6 other PEs in turn, 512 B to 2 MiB at a time, in windows of eight
    /// puts to each; and sends them messages in the same way.
    #[command(after_help = links::EXAMPLES)]
    Links(UpTo),
    /// Scattered transfers: strided, indexed and vector puts and gets
    ///
    /// PE 0 moves blocks with gaps between its memory and PE 1's. For comparison: one contiguous transfer of
    /// the same bytes, and one transfer per block.
    #[command(after_help = vis::EXAMPLES)]
    Vis(Between),
    /// Collective operations of all PEs
    ///
    /// For 2, 4, 8 PEs and so on, blocks of 8 B to 4 MiB: the contribution of a PE, or the data for each PE.
    /// Every PE is the root in turn; the time of an operation is that of the slowest PE.
    #[command(after_help = coll::EXAMPLES)]
    Coll(UpTo),
    /// Threads of one PE that put and add at the same time
    ///
    /// Threads of PE 0 access PE 1's memory, through the world or through one context per thread, while all
    /// other PEs sleep. The threads are bound to cores in turn.
    #[command(after_help = threads::EXAMPLES)]
    Threads(Unbound),
    /// Synchronisation memory of collectives, and the messages for its reuse, by strategy
    ///
    /// Counted from the schedules of barrier, broadcast and all-reduce, for 2, 4, 8 PEs and so on; up to 8
    /// PEs also measured, on threads. The tables also show the asymptotic orders from the paper of the
    /// strategies: a arrays, c collectives between barriers, n PEs.
    #[command(after_help = sync_memory::EXAMPLES)]
    SyncMemory(sync_memory::Options),
}

/// The gates of all topics.
fn gates() -> Vec<&'static Gate> {
    [rma::GATES, barrier::GATES, coll::GATES, start::GATES, compute::GATES].into_iter().flatten().collect()
}

impl Bench {
    /// Measures, or checks gates; returns the exit status.
    ///
    /// # Errors
    /// If a job fails, or if the results cannot be written.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        let Some(suite) = self.suite else {
            return gate::judge(&gates(), &self.gate.unwrap_or_default(), self.json);
        };
        match suite {
            Suite::Rma(options) => options.measure(&rma::TOPIC)?,
            Suite::Atomics(options) => options.measure(&atomics::TOPIC)?,
            Suite::Signals(options) => options.measure(&signals::TOPIC)?,
            Suite::Semaphore(options) => options.measure(&semaphores::TOPIC)?,
            Suite::Am(options) => options.measure(&am::TOPIC)?,
            Suite::Messages(options) => options.measure(&messages::TOPIC)?,
            Suite::Ping(options) => options.measure(&ping::TOPIC)?,
            Suite::Rate(options) => options.measure(&rate::TOPIC)?,
            Suite::Links(options) => options.measure(&links::TOPIC)?,
            Suite::Vis(options) => options.measure(&vis::TOPIC)?,
            Suite::Coll(options) => options.measure(&coll::TOPIC)?,
            Suite::Threads(options) => options.measure(&threads::TOPIC)?,
            Suite::SyncMemory(options) => options.execute()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_found_by_name() {
        let gates = gates();
        let choose = |names: &[String]| gate::choose(&gates, names);
        assert_eq!(choose(&[]).unwrap().len(), gates.len());
        for gate in &gates {
            let found = choose(&[gate.name.to_owned()]).unwrap();
            assert!(
                found.len() == 1 && std::ptr::eq(found[0], *gate),
                "the name {} is not unique",
                gate.name
            );
        }
        let error = choose(&["barier-2".to_owned()]).err().unwrap().to_string();
        assert!(error.contains("did you mean barrier-2?"), "{error}");
    }
}
