//! Pritchard et al. on the Message Passing Toolkit of the Cray XT3: protocols, limits, collective
//! operations. Invariant: limits of the XT3 are compared with what the runtime does at these sizes and
//! numbers, not copied.

mod collectives;
mod messages;

use super::claim::{Claim, Experiment, How, Paper, Rest};
use super::lab::Network;

/// A network of the XT3's years; the text has no latency and no bandwidth.
const XT3: Network = Network { latency_ns: 2000, overhead_ns: 1000, bandwidth: 1.1e9 };

/// The paper.
pub static PAPER: Paper = Paper {
    id: "mpt",
    number: "003",
    authors: "Pritchard, Gilmore, ten Bruggencate, Knaak, Pagel, CUG 2006",
    title: "Message Passing Toolkit (MPT) Software on XT3",
    about: "Protocols of messages, barrier, broadcast, all-reduce with knowledge of nodes, contended atomics",
    claims: &[
        Claim {
            row: "3.1",
            statement: "Messages of up to 128000 B are eager; the queue of unexpected messages has 20480 \
                        entries and 60 MB; more than 2048 posted receives abort the job",
            condition: "MPT 1.3 and 1.4 on Portals; table 1",
            experiments: &[Experiment {
                figure: "limits",
                title: "Numbers of posted receives and of unexpected messages beyond the XT3's limits",
                how: How::Simulated,
                run: messages::limits,
            }],
            rest: Some(Rest::NeedsModel("Portals' match entries and event queues, and what overflows them")),
        },
        Claim {
            row: "3.2",
            statement: "A longer message is announced by 8 bytes, and the receiver gets its data; before, \
                        it was sent at once",
            condition: "MPT 1.3; eager-long is an option",
            experiments: &[Experiment {
                figure: "rendezvous",
                title: "Round trip around an eager limit of 128000 B",
                how: How::Simulated,
                run: messages::rendezvous,
            }],
            rest: None,
        },
        Claim {
            row: "3.3",
            statement: "An unexpected message makes two events at the receiver; SHMEM has events at the \
                        initiator only",
            condition: "Portals: 6 memory descriptors, 3 for the data segment and 3 for the symmetric heap",
            experiments: &[Experiment {
                figure: "events",
                title: "Time of a put and of a message to a PE that computes",
                how: How::Simulated,
                run: messages::events,
            }],
            rest: Some(Rest::NeedsModel("Portals' events and memory descriptors")),
        },
        Claim {
            row: "3.4",
            statement: "Strided gets and puts are over two orders of magnitude slower than a block of the \
                        same bytes",
            condition: "SHMEM on Portals, which is made for blocks",
            experiments: &[
                Experiment {
                    figure: "strided",
                    title: "Strided transfers beside one block, in mapped memory",
                    how: How::Measured,
                    run: messages::strided_in_memory,
                },
                Experiment {
                    figure: "strided",
                    title: "Strided transfers beside one block, over TCP",
                    how: How::Measured,
                    run: messages::strided_over_tcp,
                },
            ],
            rest: None,
        },
        Claim {
            row: "3.5",
            statement: "All-to-all stores and forwards up to 512 B and is pairwise above 32 KB; reduce \
                        scatters from 64 KB on",
            condition: "environment variables of MPT 1.4; table 2",
            experiments: &[Experiment {
                figure: "thresholds",
                title: "Sizes at which the algorithm changes, 64 PEs",
                how: How::Counted,
                run: collectives::thresholds,
            }],
            rest: None,
        },
        Claim {
            row: "3.6",
            statement: "Curves of the barrier by PEs and processes a node, of broadcast and all-reduce by \
                        size, of int_sum_to_all of two releases, of fetch-and-add by contending PEs",
            condition: "figures 2 to 6; their values are not in the text",
            experiments: &[
                Experiment {
                    figure: "2",
                    title: "Barrier by PEs, one and two PEs a node",
                    how: How::Simulated,
                    run: collectives::barrier_simulated,
                },
                Experiment {
                    figure: "2",
                    title: "Barrier by PEs of this machine",
                    how: How::Measured,
                    run: collectives::barrier_measured,
                },
                Experiment {
                    figure: "3",
                    title: "Broadcast to 100 PEs: a binomial tree beside scatter and all-gather",
                    how: How::Simulated,
                    run: collectives::broadcast,
                },
                Experiment {
                    figure: "4",
                    title: "All-reduce with and without knowledge of nodes",
                    how: How::Simulated,
                    run: collectives::all_reduce,
                },
                Experiment {
                    figure: "5",
                    title: "Sum of integers to all PEs: through one PE, and by recursive doubling",
                    how: How::Simulated,
                    run: collectives::sum_to_all,
                },
                Experiment {
                    figure: "6",
                    title: "Latency of fetch-and-add by contending PEs, executed by the target's processor",
                    how: How::Simulated,
                    run: collectives::fetch_add_simulated,
                },
                Experiment {
                    figure: "6",
                    title: "Latency of fetch-and-add by contending PEs of this machine",
                    how: How::Measured,
                    run: collectives::fetch_add_measured,
                },
            ],
            rest: Some(Rest::NeedsModel("the values of the XT3")),
        },
    ],
};
