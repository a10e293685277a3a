//! The deck on GASNet and NAS FT on BlueGene/P, and its collective operations. Invariant: one-sided is put
//! and get, two-sided is a message whose receive is posted; both are measured in turn.

mod collectives;
mod ft;
pub mod links;
mod machine;

use super::claim::{Claim, Experiment, How, Paper, Rest};
use super::lab::Network;

/// The part of the machine that a simulated network has: the bandwidth of a link, as the deck's achievable
/// peak, in one direction. Latency and overhead are not in the text; these are of the order of such machines.
const LINK: Network = Network { latency_ns: 1000, overhead_ns: 500, bandwidth: 374e6 };

/// The paper.
pub static PAPER: Paper = Paper {
    id: "gasnet-bgp",
    number: "000",
    authors: "Nishtala, Hargrove, Bonachea, Yelick (slides)",
    title: "Scaling Communication-Intensive Applications on BlueGene/P Using One-Sided Communication and \
            Overlap",
    about: "One-sided beside two-sided messages, NAS FT in two dimensions, collective operations of the \
            hardware",
    claims: &[
        Claim {
            row: "0.1",
            statement: "A node has 4 cores of 850 MHz and 13.6 GB/s of memory bandwidth; the torus has 5.1 \
                        GB/s a node, the barrier network 1.3 us for 72 racks, the collective network 0.85 \
                        GB/s a link",
            condition: "BlueGene/P hardware",
            experiments: &[],
            rest: Some(Rest::NeedsModel("these are its inputs")),
        },
        Claim {
            row: "0.2",
            statement: "A node has six links of 850 MB/s in both directions together; 748 MB/s can be \
                        achieved",
            condition: "BlueGene/P hardware; Kumar et al. 2008",
            experiments: &[],
            rest: Some(Rest::NeedsModel("the torus of these links; other figures take 374 MB/s a link")),
        },
        Claim {
            row: "0.3",
            statement: "Put and get take almost half of the time of a message with an acknowledgement of 0 \
                        bytes, up to 32 bytes",
            condition: "put + sync, get + sync beside MPI send and receive; 1 to 512 bytes",
            experiments: &[
                Experiment {
                    figure: "latency",
                    title: "Round trips of put, get and message",
                    how: How::Simulated,
                    run: links::latency_simulated,
                },
                Experiment {
                    figure: "latency",
                    title: "Round trips of put, get and message in mapped memory",
                    how: How::Measured,
                    run: links::latency_in_memory,
                },
                Experiment {
                    figure: "latency",
                    title: "Round trips of put, get and message over TCP",
                    how: How::Measured,
                    run: links::latency_over_tcp,
                },
            ],
            rest: Some(Rest::NeedsModel("the values in microseconds")),
        },
        Claim {
            row: "0.4",
            statement: "On 1, 2, 4 and 6 links both sides reach the same bandwidth; one-sided is ahead at \
                        sizes in the middle",
            condition: "non-blocking puts on the links in turn; 512 B to 2 MiB",
            experiments: &[
                Experiment {
                    figure: "links",
                    title: "Bandwidth to several nodes, over a card as fast as that number of links",
                    how: How::Simulated,
                    run: links::bandwidth_simulated,
                },
                Experiment {
                    figure: "links",
                    title: "Bandwidth to several PEs in mapped memory",
                    how: How::Measured,
                    run: links::bandwidth_in_memory,
                },
                Experiment {
                    figure: "links",
                    title: "Bandwidth to several PEs over TCP",
                    how: How::Measured,
                    run: links::bandwidth_over_tcp,
                },
                Experiment {
                    figure: "links",
                    title: "Bandwidth to several nodes of the torus",
                    how: How::Modelled,
                    run: machine::links,
                },
            ],
            rest: None,
        },
        Claim {
            row: "0.5",
            statement: "At 8 KiB one-sided has 24 % more bandwidth on two links and 39 % more on four; at \
                        128 KiB both are equal",
            condition: "the sizes of FT on 4096 x 2048 x 2048, 128 x 128 processes",
            experiments: &[
                Experiment {
                    figure: "links-8k",
                    title: "Lead of one-sided at 8 KiB and 128 KiB",
                    how: How::Simulated,
                    run: links::lead_simulated,
                },
                Experiment {
                    figure: "links-8k",
                    title: "Lead of one-sided at 8 KiB and 128 KiB over TCP",
                    how: How::Measured,
                    run: links::lead_over_tcp,
                },
            ],
            rest: None,
        },
        Claim {
            row: "0.6",
            statement: "Packed slabs send TY, then TZ messages of (NZ/TZ)(NY/TY)(NX/TY) and \
                        (NZ/TZ)(NX/TY)(NY/TZ) elements; slabs send one message a plane to each",
            condition: "a process grid of TY x TZ",
            experiments: &[Experiment {
                figure: "messages",
                title: "Messages of both rounds on all process grids of the deck",
                how: How::Counted,
                run: ft::messages,
            }],
            rest: None,
        },
        Claim {
            row: "0.7",
            statement: "Packed slabs send 128 KiB a message, slabs 8 KiB",
            condition: "4096 x 2048 x 2048 on 128 x 128 processes",
            experiments: &[Experiment {
                figure: "message-sizes",
                title: "Size of a message on the deck's largest grid",
                how: How::Counted,
                run: ft::message_sizes,
            }],
            rest: None,
        },
        Claim {
            row: "0.8",
            statement: "Strong scaling: MPI packed slabs are faster than MPI slabs; UPC slabs beat them by \
                        37 % and 63 % on average",
            condition: "2048 x 1024 x 1024 on 256 to 16384 cores",
            experiments: &[
                Experiment {
                    figure: "strong-scaling",
                    title: "A fixed problem on more and more nodes",
                    how: How::Simulated,
                    run: ft::strong_scaling,
                },
                Experiment {
                    figure: "strong-scaling",
                    title: "A fixed problem on the modelled machine",
                    how: How::Modelled,
                    run: machine::strong_scaling,
                },
            ],
            rest: None,
        },
        Claim {
            row: "0.9",
            statement: "Weak scaling: UPC slabs reach 1.93 Tflop/s, the best MPI 1.37: 40 % more",
            condition: "D/8 on 256 cores to 8D on 16384, D = 2048 x 1024 x 1024",
            experiments: &[
                Experiment {
                    figure: "weak-scaling",
                    title: "A problem that grows with the nodes",
                    how: How::Simulated,
                    run: ft::weak_scaling,
                },
                Experiment {
                    figure: "weak-scaling",
                    title: "A problem that grows with the modelled machine",
                    how: How::Modelled,
                    run: machine::weak_scaling,
                },
            ],
            rest: None,
        },
        Claim {
            row: "0.10",
            statement: "UPC beats MPI by up to 66 %, by 32 % on average, on up to 16384 cores",
            condition: "abstract of the paper",
            experiments: &[],
            rest: Some(Rest::NeedsModel("16384 cores and their torus; strong-scaling has the small ones")),
        },
        Claim {
            row: "0.11",
            statement: "The main difference between MPI packed slabs and UPC slabs is the time of \
                        synchronous communication",
            condition: "weak scaling, 16384 cores; the lengths of the bars are not in the text",
            experiments: &[Experiment {
                figure: "breakdown",
                title: "Time by phase of packed two-sided and of one-sided slabs",
                how: How::Simulated,
                run: ft::breakdown,
            }],
            rest: Some(Rest::NeedsModel("16384 cores")),
        },
        Claim {
            row: "0.12",
            statement: "The process grids are 16x16, 16x32, 32x32, 64x32, 64x64, 64x128, 128x128",
            condition: "256 to 16384 cores",
            experiments: &[Experiment {
                figure: "grids",
                title: "Process grids that --grid auto takes",
                how: How::Counted,
                run: ft::grids,
            }],
            rest: None,
        },
        Claim {
            row: "0.13",
            statement: "Broadcast, exchange and barrier of the hardware are faster than by messages from \
                        point to point: broadcast 3 to 4 times, exchange 2 to 3 times",
            condition: "256 cores; broadcast by tree, torus and point to point, exchange 4 B to 32 KiB",
            experiments: &[
                Experiment {
                    figure: "barrier",
                    title: "Barrier of a node, native and by messages",
                    how: How::Measured,
                    run: collectives::barrier,
                },
                Experiment {
                    figure: "barrier",
                    title: "Barrier on the modelled machine",
                    how: How::Modelled,
                    run: machine::barrier,
                },
                Experiment {
                    figure: "broadcast",
                    title: "Broadcast of a node, native and by messages",
                    how: How::Measured,
                    run: collectives::broadcast,
                },
                Experiment {
                    figure: "broadcast",
                    title: "Broadcast on the modelled machine",
                    how: How::Modelled,
                    run: machine::broadcast,
                },
                Experiment {
                    figure: "all-to-all",
                    title: "All-to-all of a node, native and by messages",
                    how: How::Measured,
                    run: collectives::all_to_all,
                },
                Experiment {
                    figure: "all-to-all",
                    title: "All-to-all on the modelled machine",
                    how: How::Modelled,
                    run: machine::all_to_all,
                },
            ],
            rest: None,
        },
        Claim {
            row: "0.14",
            statement: "With collectives of UPC a matrix product takes 36 % less than PBLAS, a Cholesky \
                        factorisation 9 % less than ScaLAPACK",
            condition: "256 cores",
            experiments: &[
                Experiment {
                    figure: "matmul",
                    title: "Matrix product: broadcasts in front of the computation, beside it, and gets",
                    how: How::Simulated,
                    run: collectives::matmul,
                },
                Experiment {
                    figure: "cholesky",
                    title: "Cholesky factorisation: collective operations and one-sided ones",
                    how: How::Simulated,
                    run: collectives::cholesky,
                },
            ],
            rest: Some(Rest::NotReproducible(
                "ScaLAPACK is not in this command; `cargo xtask compare linear` runs it on this machine",
            )),
        },
        Claim {
            row: "0.15",
            statement: "FFT with collective operations is 38 % faster than MPI in weak scaling, 20 % in \
                        strong scaling",
            condition: "16384 cores",
            experiments: &[Experiment {
                figure: "fft-collectives",
                title: "FT over collective operations beside packed two-sided messages",
                how: How::Simulated,
                run: ft::collectives,
            }],
            rest: Some(Rest::NeedsModel("16384 cores")),
        },
        Claim {
            row: "0.16",
            statement: "In algorithm 2 thread ME sends to myPlane TY + (t + myRow) mod TY, then to ((t + \
                        myPlane) mod TZ) TY + myRow, t = 1, 2, ...",
            condition: "appendix; one slide has NTY in place of TY",
            experiments: &[Experiment {
                figure: "order",
                title: "Order of the receivers, for threads of every process grid",
                how: How::Counted,
                run: ft::order,
            }],
            rest: None,
        },
        Claim {
            row: "0.17",
            statement: "Semaphores have post, postN, wait, waitN, try, tryN; memput_signal and \
                        memput_signal_async put and post in one",
            condition: "the interface of the slides",
            experiments: &[Experiment {
                figure: "semaphores",
                title: "Posts and waits, and puts that post beside a put, a fence and a flag",
                how: How::Measured,
                run: collectives::semaphores,
            }],
            rest: None,
        },
    ],
};
