//! `pelago bench`: what this machine and this runtime do, measured, and held against its bounds.
//!
//! Invariant: figures come from jobs that this command starts of itself (the application `perf`); here they
//! are only put in order. A gate is a comparison within one run, never an absolute time.

mod am;
mod atomics;
mod coll;
mod compute;
mod gate;
mod job;
mod links;
mod page;
mod rate;
mod rma;
mod semaphore;
mod signals;
mod start;
mod sync_memory;
pub mod table;
mod text;
mod threads;
mod topic;
mod vis;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use self::topic::{Binding, Output};

/// Measure the runtime on this machine
///
/// With --gate it compares instead: eleven pairs a gate, and exit status 1 if the median of one misses its
/// bound.
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true, args_conflicts_with_subcommands = true)]
pub struct Bench {
    #[command(subcommand)]
    suite: Option<Suite>,
    /// Judge these gates, or all if none is named
    #[arg(long, value_name = "NAME", num_args = 0..)]
    gate: Option<Vec<String>>,
    /// Print one JSON object a gate instead of a table
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

const RMA_EXAMPLES: &str = "\
Examples:
  pelago bench rma                       two PEs, or as many as there are cores
  pelago bench rma --fabric tcp          over TCP, as between nodes
  pelago bench rma --fabric ofi          over libfabric; the heading says over which provider and domain
  pelago bench rma -n 16 --html b.html   barriers of up to 16 PEs too, and a page of curves";

const ATOMICS_EXAMPLES: &str = "\
Examples:
  pelago bench atomics                   two PEs, or as many as there are cores
  pelago bench atomics -n 16             up to 16 PEs that add to one word
  pelago bench atomics --html a.html     the curve of latency against PEs as well";

const SIGNALS_EXAMPLES: &str = "\
Examples:
  pelago bench signals                   one-way times of 8 B to 64 KiB
  pelago bench signals --html s.html     the curves as well
  pelago bench signals --json            one JSON object a measurement";

const SEMAPHORE_EXAMPLES: &str = "\
Examples:
  pelago bench semaphore                 posts and waits, and puts that post, of 8 B to 64 KiB
  pelago bench semaphore --html s.html   the curves as well
  pelago bench semaphore --json          one JSON object a measurement";

const AM_EXAMPLES: &str = "\
Examples:
  pelago bench am                        round trips, floods, one sender, the poll
  pelago bench am -n 8 --html a.html     up to 7 senders to one PE too, and a page of curves
  pelago bench am --fabric shm           the same over the net, within this node
  pelago bench am --json                 one JSON object a measurement";

const RATE_EXAMPLES: &str = "\
Examples:
  pelago bench rate                      messages a second, for 8 B to 4 KiB
  pelago bench rate --html r.html        the curves as well";

const LINKS_EXAMPLES: &str = "\
Examples:
  pelago bench links -n 5 --fabric ofi   PE 0 to 1, 2 and 4 other PEs, over libfabric
  pelago bench links --html l.html       the curves as well";

const VIS_EXAMPLES: &str = "\
Examples:
  pelago bench vis                       blocks of 8 B to 512 B, 4 to 256 of them
  pelago bench vis --fabric shm          the same over the net, where short blocks are packed
  pelago bench vis --html v.html         the curves as well";

const COLL_EXAMPLES: &str = "\
Examples:
  pelago bench coll                      two PEs, or as many as there are cores
  pelago bench coll -n 8                 2, 4 and 8 PEs
  pelago bench coll --html c.html        the curves as well";

const THREADS_EXAMPLES: &str = "\
Examples:
  pelago bench threads                   1, 2 and 4 threads of a PE
  pelago bench threads --html t.html     the curves as well";

const SYNC_MEMORY_EXAMPLES: &str = "\
Examples:
  pelago bench sync-memory                      counted for 2 to 4096 PEs, measured up to 8
  pelago bench sync-memory --html m.html        curves, and graphs of who synchronises with whom
  pelago bench sync-memory --collectives 100    what strategies cost if barriers are rare";

#[derive(Subcommand)]
enum Suite {
    /// Put, get, memcpy beside them, and the barrier
    ///
    /// Two PEs for put and get; for the barrier one job for each number of PEs up to 8, and fewer in between
    /// above that.
    #[command(after_help = RMA_EXAMPLES)]
    Rma {
        #[command(flatten)]
        most: Most,
        #[command(flatten)]
        binding: Binding,
        #[command(flatten)]
        output: Output,
    },
    /// Atomics: alone, and of several PEs at once on one word
    ///
    /// PE 0 alone with its own memory and another PE's; then fetch_add of 1, 2, 4 PEs and so on at the same
    /// time, on one word and beside it on a word each. Where PEs share cores, a latency includes the time
    /// without a core.
    #[command(after_help = ATOMICS_EXAMPLES)]
    Atomics {
        #[command(flatten)]
        most: Most,
        #[command(flatten)]
        binding: Binding,
        #[command(flatten)]
        output: Output,
    },
    /// Puts with a signal, beside put, fence and flag
    ///
    /// PEs 0 and 1 send each other the same bytes in turn; shown is half a round trip.
    #[command(after_help = SIGNALS_EXAMPLES)]
    Signals {
        #[command(flatten)]
        job: Job,
        #[command(flatten)]
        binding: Binding,
        #[command(flatten)]
        output: Output,
    },
    /// Semaphores: posts, waits, and puts that post
    ///
    /// PEs 0 and 1 post and wait in turn, for four kinds of semaphores; PE 0 posts and PE 1 waits; and
    /// memput_signal stands beside put_signal and put, fence and flag.
    #[command(after_help = SEMAPHORE_EXAMPLES)]
    Semaphore {
        #[command(flatten)]
        job: Job,
        #[command(flatten)]
        binding: Binding,
        #[command(flatten)]
        output: Output,
    },
    /// Active messages: round trips, floods, several senders, polls
    ///
    /// PE 0 sends PE 1 short, medium and long requests: each answered before the next, with as much; one
    /// after the other without answers, and with. Then 1, 2, 4 PEs and so on send to one more PE at the same
    /// time: the rate of all, and the slowest sender's as a part of the fastest one's.
    #[command(after_help = AM_EXAMPLES)]
    Am {
        #[command(flatten)]
        most: Most,
        #[command(flatten)]
        binding: Binding,
        #[command(flatten)]
        output: Output,
    },
    /// Messages a second of non-blocking puts
    ///
    /// PE 0 puts to PE 1 in windows, each completed before the next: in a scope, by handles that own their
    /// buffers, through a context, through four contexts in turn.
    #[command(after_help = RATE_EXAMPLES)]
    Rate {
        #[command(flatten)]
        job: Job,
        #[command(flatten)]
        binding: Binding,
        #[command(flatten)]
        output: Output,
    },
    /// Bandwidth of one PE to several, which may each be behind a link of their own
    ///
    /// PE 0 puts to PE 1, and to 2, 4 and 6 other PEs in turn, 512 B to 2 MiB at a time, in windows of eight
    /// puts to each.
    #[command(after_help = LINKS_EXAMPLES)]
    Links {
        #[command(flatten)]
        most: Most,
        #[command(flatten)]
        binding: Binding,
        #[command(flatten)]
        output: Output,
    },
    /// Scattered transfers: strided, indexed and vector puts and gets
    ///
    /// PE 0 moves blocks with gaps between its memory and PE 1's; beside them stand one contiguous transfer
    /// of the same bytes, and a transfer for each block.
    #[command(after_help = VIS_EXAMPLES)]
    Vis {
        #[command(flatten)]
        job: Job,
        #[command(flatten)]
        binding: Binding,
        #[command(flatten)]
        output: Output,
    },
    /// Collective operations of all PEs
    ///
    /// For 2, 4, 8 PEs and so on, blocks of 8 B to 4 MiB: what each PE contributes, or sends to each one.
    /// Every PE is the root in turn; operations count with the time of the slowest PE.
    #[command(after_help = COLL_EXAMPLES)]
    Coll {
        #[command(flatten)]
        most: Most,
        #[command(flatten)]
        binding: Binding,
        #[command(flatten)]
        output: Output,
    },
    /// Threads of one PE that put and add at the same time
    ///
    /// Threads of PE 0 work in PE 1's memory, through the world or through a context each, while all other
    /// PEs sleep. The threads keep to cores in turn.
    #[command(after_help = THREADS_EXAMPLES)]
    Threads {
        #[command(flatten)]
        job: Job,
        #[command(flatten)]
        output: Output,
    },
    /// Memory that collectives synchronise on, and messages for its sake, by strategy
    ///
    /// Counted from the schedules of barrier, broadcast and all-reduce, for 2, 4, 8 PEs and so on; up to 8
    /// PEs also measured, on threads. Beside the figures stand the orders that the source of the strategies
    /// gives: a arrays, c collectives between barriers, n PEs.
    #[command(after_help = SYNC_MEMORY_EXAMPLES)]
    SyncMemory(sync_memory::Options),
}

#[derive(Args)]
struct Most {
    /// The most PEs; the cores that this command may use, and at least 2, unless given
    #[arg(short, value_name = "N", value_parser = two_or_more, allow_negative_numbers = true)]
    n: Option<usize>,
}

#[derive(Args)]
struct Job {
    /// PEs of the job; all but the first two wait
    #[arg(
        short,
        value_name = "N",
        default_value_t = 2,
        value_parser = two_or_more,
        allow_negative_numbers = true
    )]
    n: usize,
}

impl Bench {
    /// Measures or judges; gives the exit status.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        let most = |most: Most| most.n.unwrap_or(pelago_boot::cores().max(2));
        match self.suite {
            None => return gate::judge(&self.gate.unwrap_or_default(), self.json),
            Some(Suite::Rma { most: n, binding, output }) => {
                rma::TOPIC.measure(most(n), &binding, &output)?
            }
            Some(Suite::Atomics { most: n, binding, output }) => {
                atomics::TOPIC.measure(most(n), &binding, &output)?;
            }
            Some(Suite::Signals { job, binding, output }) => {
                signals::TOPIC.measure(job.n, &binding, &output)?;
            }
            Some(Suite::Semaphore { job, binding, output }) => {
                semaphore::TOPIC.measure(job.n, &binding, &output)?;
            }
            Some(Suite::Am { most: n, binding, output }) => am::TOPIC.measure(most(n), &binding, &output)?,
            Some(Suite::Rate { job, binding, output }) => rate::TOPIC.measure(job.n, &binding, &output)?,
            Some(Suite::Links { most: n, binding, output }) => {
                links::TOPIC.measure(most(n), &binding, &output)?;
            }
            Some(Suite::Vis { job, binding, output }) => vis::TOPIC.measure(job.n, &binding, &output)?,
            Some(Suite::Coll { most: n, binding, output }) => {
                coll::TOPIC.measure(most(n), &binding, &output)?;
            }
            Some(Suite::Threads { job, output }) => {
                threads::TOPIC.measure(job.n, &Binding::none(), &output)?;
            }
            Some(Suite::SyncMemory(options)) => options.execute()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn two_or_more(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|number| *number >= 2);
    number.ok_or_else(|| "this is not a number of PEs of 2 or more".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_than_two_pes_are_refused() {
        assert_eq!(two_or_more("2"), Ok(2));
        for text in ["1", "0", "-2", "two", ""] {
            assert!(two_or_more(text).is_err(), "{text}");
        }
    }
}
