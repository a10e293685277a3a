//! Luo et al. on the Scalable Fabric Interface: instructions of the interface. Invariant: counts are those of
//! `cargo xtask budget`, whole functions from their first instruction to their return; shares and latencies
//! follow from them by the paper's formulas.

use anyhow::Result;
use pelago::{AtomicKind, AtomicOp};
use pelago_report::chart::{Axis, Scale};

use super::claim::{Claim, Evidence, Experiment, How, Paper, Rest, Value, value, verdict};
use super::counts::Counts;
use super::lab::Lab;
use super::shapes::{Across, chart, percent, solid};

/// The paper's cycles for an instruction.
const CYCLES_PER_INSTRUCTION: f64 = 1.1;

/// The paper.
pub static PAPER: Paper = Paper {
    id: "sfi",
    number: "004",
    authors: "Luo, Seager, Murthy, Archer, Sur, Hefty, PGAS 2014",
    title: "Early Evaluation of Scalable Fabric Interface for PGAS Programming Models",
    about: "How many instructions stand between a call of the program and the library of the network",
    claims: &[
        Claim {
            row: "4.1",
            statement: "shmem_int_p takes 16 instructions over SFI, 402 in MVAPICH2-X, 388 over GASNet on \
                        verbs; quiet takes 11 over SFI",
            condition: "Xeon X5570, from the interface to the call of the fabric's library; PIN traces, \
                        icc -O3",
            experiments: &[Experiment {
                figure: "6",
                title: "Instructions of put and quiet of OpenSHMEM",
                how: How::Counted,
                run: figure_6,
            }],
            rest: None,
        },
        Claim {
            row: "4.2",
            statement: "AMRequestShort falls from 345 instructions to 106, put_nbi by about 300, \
                        wait_syncnbi_put from 160 to 56",
            condition: "GASNet on verbs beside GASNet on SFI",
            experiments: &[Experiment {
                figure: "7",
                title: "Instructions of active messages, puts and their completion",
                how: How::Counted,
                run: figure_7,
            }],
            rest: None,
        },
        Claim {
            row: "4.3",
            statement: "GASNet has 69 to 82 % fewer instructions for RMA and 50 to 65 % fewer for \
                        synchronisation; a remote write of UPC 80 % fewer, a fence 50 % fewer",
            condition: "GASNet on verbs beside GASNet on SFI; OpenSHMEM 95 % fewer",
            experiments: &[Experiment {
                figure: "8",
                title: "Share of instructions that is saved against the paper's larger counts",
                how: How::Counted,
                run: figure_8,
            }],
            rest: None,
        },
        Claim {
            row: "4.4",
            statement: "Looking up the segment takes 25 % of a put over GASNet and SFI, pinning 90 % of \
                        one on verbs",
            condition: "profiles of GASNet 1.22 and Berkeley UPC",
            experiments: &[],
            rest: Some(Rest::NotReproducible(
                "these are profiles of other libraries, of which Pelago has no part",
            )),
        },
        Claim {
            row: "4.5",
            statement: "At 1.1 cycles an instruction the software takes more than 200 ns on cores of 1 to \
                        1.8 GHz",
            condition: "figure 5: instructions times cycles divided by frequency",
            experiments: &[Experiment {
                figure: "5",
                title: "Time of the software of a put, by frequency",
                how: How::Computed,
                run: figure_5,
            }],
            rest: None,
        },
        Claim {
            row: "4.6",
            statement: "Atomics have 14 data types and 19 operations; completion is counted for writes, \
                        reads and incoming operations",
            condition: "table 1 and section 5 of the paper",
            experiments: &[Experiment {
                figure: "table-1",
                title: "Data types and operations of atomics",
                how: How::Counted,
                run: table_1,
            }],
            rest: None,
        },
    ],
};

fn place(counts: &Counts) -> String {
    format!(
        "whole functions, counted one instruction at a time by cargo xtask budget; {}; over the network: \
         with a fake libfabric, its own instructions (6 of a put, 8 of a get) left out",
        counts.compiler
    )
}

/// The instructions of the fake libfabric in a put.
const LIBRARY_OF_PUT: u64 = 6;
/// Those in a get.
const LIBRARY_OF_GET: u64 = 8;

fn instructions(what: &str, here: u64, paper: &str) -> Value {
    value(format!("{what}, instructions"), here.to_string(), paper)
}

fn figure_6(_: &Lab) -> Result<Evidence> {
    let counts = Counts::read()?;
    let put = counts.of("shmem_int_p (far PE)")? - LIBRARY_OF_PUT;
    let quiet = counts.of("shmem_quiet (far PE)")?;
    let near = counts.of("shmem_int_p")?;
    let get = counts.of("shmem_int_g (far PE)")? - LIBRARY_OF_GET;
    Ok(Evidence {
        place: place(&counts),
        charts: Vec::new(),
        values: vec![
            instructions(
                "shmem_int_p over libfabric",
                put,
                "16 (SFI), 402 (MVAPICH2-X), 388 (GASNet on verbs)",
            ),
            instructions("shmem_int_p to a PE of the node", near, ""),
            instructions("shmem_int_g over libfabric, complete", get, ""),
            instructions("shmem_quiet over libfabric, nothing outstanding", quiet, "11 (SFI)"),
            instructions("shmem_quiet of one node", counts.of("shmem_quiet")?, ""),
        ],
        verdict: verdict(
            &[put * 20 <= 402 * 2, quiet <= 11, put <= 16],
            format!(
                "a put takes {put} instructions, {} fewer than the 402 of MVAPICH2-X; the 16 of the \
                 prototype check neither the PE nor the range nor whether the fabric has room; quiet takes \
                 {quiet}",
                percent(1.0 - put as f64 / 402.0)
            ),
        ),
    })
}

fn figure_7(_: &Lab) -> Result<Evidence> {
    let counts = Counts::read()?;
    let message = counts.of("am_short")?;
    let put = counts.of("put_net")? - LIBRARY_OF_PUT;
    let quiet = counts.of("quiet_net")?;
    Ok(Evidence {
        place: place(&counts),
        charts: Vec::new(),
        values: vec![
            instructions("short active message and a poll, within a node", message, "345 (verbs), 106 (SFI)"),
            instructions("short active message, 8 arguments", counts.of("am_short_8")?, ""),
            instructions("put of a word over libfabric", put, "about 300 fewer than on verbs"),
            instructions("quiet, nothing outstanding", quiet, "160 (verbs), 56 (SFI)"),
        ],
        verdict: verdict(
            &[message <= 106, put <= 88, quiet <= 56],
            format!(
                "a short message takes {message} instructions, but within a node, where no library of a \
                 network is called; a put {put}; a quiet {quiet}"
            ),
        ),
    })
}

fn figure_8(_: &Lab) -> Result<Evidence> {
    let counts = Counts::read()?;
    let saved = |here: u64, there: u64| 1.0 - here as f64 / there as f64;
    let put = saved(counts.of("put_net")? - LIBRARY_OF_PUT, 388);
    let shmem = saved(counts.of("shmem_int_p (far PE)")? - LIBRARY_OF_PUT, 402);
    let synchronisation = saved(counts.of("quiet_net")?, 160);
    Ok(Evidence {
        place: place(&counts),
        charts: Vec::new(),
        values: vec![
            value("put of Rust against 388 (GASNet on verbs), saved", percent(put), "69 to 82 %"),
            value(
                "quiet of Rust against 160 (GASNet on verbs), saved",
                percent(synchronisation),
                "50 to 65 %",
            ),
            value("shmem_int_p against 402 (MVAPICH2-X), saved", percent(shmem), "above 95 %"),
            instructions(
                "fence of OpenSHMEM over libfabric",
                counts.of("shmem_fence (far PE)")?,
                "50 % fewer",
            ),
        ],
        verdict: verdict(
            &[put >= 0.69, synchronisation >= 0.5, shmem >= 0.95],
            format!(
                "{} of a put, {} of a quiet and {} of shmem_int_p are saved; the larger counts are the \
                 paper's, of its compiler and libraries",
                percent(put),
                percent(synchronisation),
                percent(shmem)
            ),
        ),
    })
}

/// Nanoseconds of a number of instructions at a frequency.
fn nanoseconds(instructions: u64, megahertz: f64) -> f64 {
    instructions as f64 * CYCLES_PER_INSTRUCTION * 1e3 / megahertz
}

fn figure_5(_: &Lab) -> Result<Evidence> {
    let counts = Counts::read()?;
    let put = counts.of("shmem_int_p (far PE)")? - LIBRARY_OF_PUT;
    let sides = [
        ("MVAPICH2-X, 402 instructions".to_owned(), 402),
        ("GASNet on verbs, 388".to_owned(), 388),
        (format!("Pelago over libfabric, {put}"), put),
        ("OpenSHMEM on SFI, 16".to_owned(), 16),
    ];
    let frequencies = [1000.0, 1200.0, 1400.0, 1600.0, 1800.0];
    let y = Axis { label: "ns of software for a put", scale: Scale::Decades };
    let curve = |(name, count): (String, u64)| {
        solid(name, frequencies.map(|frequency| (frequency, nanoseconds(count, frequency))))
    };
    let there = [1000.0, 1800.0].map(|frequency| nanoseconds(402, frequency));
    let here = [1000.0, 1800.0].map(|frequency| nanoseconds(put, frequency));
    Ok(Evidence {
        place: "the paper's formula and cycles, the counts of figure 6".to_owned(),
        charts: vec![chart("Software of a put by frequency", Across::Megahertz, y, sides.map(curve).into())],
        values: vec![
            value(
                "402 instructions at 1 and 1.8 GHz, ns",
                format!("{:.0}, {:.0}", there[0], there[1]),
                "above 200",
            ),
            value(
                format!("{put} instructions at 1 and 1.8 GHz, ns"),
                format!("{:.0}, {:.0}", here[0], here[1]),
                "",
            ),
        ],
        verdict: verdict(
            &[there.iter().all(|ns| *ns > 200.0)],
            format!(
                "402 instructions take {:.0} to {:.0} ns, those of Pelago {:.0} to {:.0}",
                there[1], there[0], here[1], here[0]
            ),
        ),
    })
}

fn table_1(_: &Lab) -> Result<Evidence> {
    let (kinds, operations) = (AtomicKind::ALL.len(), AtomicOp::ALL.len());
    Ok(Evidence {
        place: "the interface of atomics in Rust (`AtomicKind`, `AtomicOp`)".to_owned(),
        charts: Vec::new(),
        values: vec![
            value("data types of atomics", kinds.to_string(), "14"),
            value("operations of atomics", operations.to_string(), "19"),
            value(
                "completion counters",
                "writes, reads; incoming operations by signals",
                "writes, reads, incoming",
            ),
        ],
        verdict: verdict(
            &[kinds >= 14, operations >= 19],
            format!(
                "{operations} operations; {kinds} data types, as those of more than 64 bits are left out"
            ),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_has_the_papers_values() {
        assert_eq!(nanoseconds(402, 1800.0).round(), 246.0);
        assert_eq!(nanoseconds(402, 1000.0).round(), 442.0);
    }

    #[test]
    fn every_figure_is_counted() {
        let lab = Lab::new(2, true);
        for figure in [figure_5, figure_6, figure_7, figure_8, table_1] {
            let seen = figure(&lab).unwrap();
            assert!(!seen.values.is_empty() && !seen.verdict.because.is_empty());
        }
    }
}
