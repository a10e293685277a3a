//! Bell et al. on bandwidth-limited problems: overlap of FT in one dimension, one-sided beside two-sided.
//! Invariant: all speedups of a figure are of the same runs.

use std::rc::Rc;

use anyhow::{Context, Result, anyhow};
use pelago_apps::{FtLines, FtMessages, FtSplit, ft_class, ft_lines};

use super::claim::{Claim, Evidence, Experiment, How, Paper, Rest, value, verdict};
use super::ft_runs::{FtRun, best, of};
use super::gasnet_bgp::links::{bandwidth_chart, floods, lead, round_trips};
use super::lab::{Between, Lab, Network};
use super::shapes::{Across, chart, percent, solid, span};
use crate::base::across::{TIME, size};
use crate::base::record::{Operation, Record};
use crate::topics::ping;

/// A network on which messages take about a third of the time of the exchange: the bandwidth of a card of the
/// paper's years. Its numbers are not those of the paper, whose values are in figures.
const CLUSTER: Network = Network { latency_ns: 2000, overhead_ns: 500, bandwidth: 267e6 };

/// The number of PEs of the simulated runs.
const PES: usize = 8;

/// The variants of the paper, its exchange first.
const VARIANTS: [&str; 3] = ["exchange", "slabs", "pencils"];

/// The paper.
pub static PAPER: Paper = Paper {
    id: "bandwidth",
    number: "002",
    authors: "Bell, Bonachea, Nishtala, Yelick, IPDPS 2006",
    title: "Optimizing Bandwidth Limited Problems Using One-Sided Communication and Overlap",
    about: "NAS FT in one dimension: what overlap gains with small messages, one-sided and two-sided",
    claims: &[
        Claim {
            row: "2.1",
            statement: "Overlap makes FT up to 1.9 times as fast one-sided and 1.75 times two-sided; the \
                        best one-sided variant is 15 % faster than the best two-sided one on average",
            condition: "class D on five clusters, against the Fortran and MPI of NAS, which exchanges all \
                        at once",
            experiments: &[
                Experiment {
                    figure: "speedups",
                    title: "Speedups over the two-sided exchange",
                    how: How::Simulated,
                    run: |lab| speedups(&simulated(lab)?, simulated_place()),
                },
                Experiment {
                    figure: "speedups",
                    title: "Speedups over the two-sided exchange in mapped memory",
                    how: How::Measured,
                    run: |lab| speedups(&measured(lab, Between::Memory)?, place(lab, Between::Memory)),
                },
                Experiment {
                    figure: "speedups",
                    title: "Speedups over the two-sided exchange over TCP",
                    how: How::Measured,
                    run: |lab| speedups(&measured(lab, Between::Tcp)?, place(lab, Between::Tcp)),
                },
            ],
            rest: Some(Rest::NeedsModel("the five clusters with 64 to 512 processors")),
        },
        Claim {
            row: "2.2",
            statement: "A thread sends T messages (exchange), n (slabs), n^2/T (pencils); 0, 1 - 2/n and 1 \
                        - 2T/n^2 of them can be hidden",
            condition: "table 1: a cube of n^3, T threads",
            experiments: &[Experiment {
                figure: "table-1",
                title: "Messages and overlap efficiency of cubes",
                how: How::Counted,
                run: table_1,
            }],
            rest: None,
        },
        Claim {
            row: "2.3",
            statement: "A process sends 1024 messages of 128 KB (slabs), 8192 of 16 KB (pencils), and \
                        handles 2048 sends and receives for each plane",
            condition: "class D on 256 processes",
            experiments: &[Experiment {
                figure: "class-d",
                title: "Messages of class D",
                how: How::Counted,
                run: class_d,
            }],
            rest: None,
        },
        Claim {
            row: "2.4",
            statement: "Pencils are faster than slabs everywhere, never by more than 10 %",
            condition: "UPC on five clusters",
            experiments: &[
                Experiment {
                    figure: "pencils",
                    title: "Slabs beside pencils, one-sided",
                    how: How::Simulated,
                    run: |lab| pencils(&simulated(lab)?, simulated_place()),
                },
                Experiment {
                    figure: "pencils",
                    title: "Slabs beside pencils, one-sided, in mapped memory",
                    how: How::Measured,
                    run: |lab| pencils(&measured(lab, Between::Memory)?, place(lab, Between::Memory)),
                },
            ],
            rest: None,
        },
        Claim {
            row: "2.5",
            statement: "One-sided round trips are shorter at small sizes, and floods of puts have more \
                        bandwidth from about 1 KB to 100 KB; at 512 KB both are equal",
            condition: "Elan4 (latency), InfiniBand and four other clusters (floods at 4 KB and 512 KB)",
            experiments: &[
                Experiment {
                    figure: "latency",
                    title: "Round trips of put, get and message",
                    how: How::Simulated,
                    run: |lab| latency(&round_trips(lab, CLUSTER)?, simulated_pair()),
                },
                Experiment {
                    figure: "latency",
                    title: "Round trips of put, get and message over TCP",
                    how: How::Measured,
                    run: |lab| latency(&lab.perf(Between::Tcp, 2, &["ping"])?, pair(Between::Tcp)),
                },
                Experiment {
                    figure: "floods",
                    title: "Bandwidth of floods",
                    how: How::Simulated,
                    run: |lab| flood(&floods(lab, CLUSTER, &[1])?, simulated_pair()),
                },
                Experiment {
                    figure: "floods",
                    title: "Bandwidth of floods in mapped memory",
                    how: How::Measured,
                    run: |lab| flood(&lab.perf(Between::Memory, 2, &["links"])?, pair(Between::Memory)),
                },
                Experiment {
                    figure: "floods",
                    title: "Bandwidth of floods over TCP",
                    how: How::Measured,
                    run: |lab| flood(&lab.perf(Between::Tcp, 2, &["links"])?, pair(Between::Tcp)),
                },
            ],
            rest: Some(Rest::NeedsModel(
                "the five clusters; the drop beyond 256 KB is a defect of one network card",
            )),
        },
        Claim {
            row: "2.6",
            statement: "The best MPI variant is always slabs, the best UPC variant always pencils; \
                        computation takes the same time within 10 % in all variants",
            condition: "five clusters; pencils of MPI crashed on InfiniBand",
            experiments: &[
                Experiment {
                    figure: "best",
                    title: "Time in communication, and the best variant of each side",
                    how: How::Simulated,
                    run: |lab| best_variants(&simulated(lab)?, simulated_place()),
                },
                Experiment {
                    figure: "best",
                    title: "Time in communication, and the best variant of each side, over TCP",
                    how: How::Measured,
                    run: |lab| best_variants(&measured(lab, Between::Tcp)?, place(lab, Between::Tcp)),
                },
            ],
            rest: None,
        },
        Claim {
            row: "2.7",
            statement: "The variants share 90 % of their code; slabs and pencils differ in about 10 lines",
            condition: "UPC and C with MPI, without the Fortran of NAS",
            experiments: &[Experiment {
                figure: "lines",
                title: "Lines of code of FT",
                how: How::Counted,
                run: lines,
            }],
            rest: None,
        },
        Claim {
            row: "2.8",
            statement: "The platforms are Opteron with InfiniBand, Alpha with Elan3, Itanium2 with Elan4, \
                        Pentium 4 with Myrinet, G5 with InfiniBand",
            condition: "appendix",
            experiments: &[],
            rest: Some(Rest::NotReproducible("these machines are gone")),
        },
    ],
};

fn simulated_place() -> String {
    format!("class W on {PES} PEs, a PE a node, {}; 1 Gflop/s a PE", CLUSTER.name())
}

fn simulated_pair() -> String {
    format!("2 PEs, {}", CLUSTER.name())
}

fn pair(between: Between) -> String {
    between.place(2)
}

/// The number of PEs of the measured runs: a power of two with a core for each.
fn measured_pes(lab: &Lab) -> usize {
    1 << lab.pes_with_cores().ilog2()
}

/// The class of the measured runs.
fn measured_class(lab: &Lab) -> &'static str {
    if lab.is_quick { "S" } else { "A" }
}

fn place(lab: &Lab, between: Between) -> String {
    format!("class {} on {}", measured_class(lab), between.place(measured_pes(lab)))
}

const RUNS: [&str; 4] = ["--variant", "all", "--transport", "all"];

fn simulated(lab: &Lab) -> Result<Rc<Vec<FtRun>>> {
    let words = [&["ft", "--class", "W"], &RUNS[..]].concat();
    Ok(Rc::new(FtRun::read(&lab.simulated_app(CLUSTER, PES, &words)?)?))
}

fn measured(lab: &Lab, between: Between) -> Result<Rc<Vec<FtRun>>> {
    let words = [&["ft", "--class", measured_class(lab)], &RUNS[..]].concat();
    Ok(Rc::new(FtRun::read(&lab.app(between, measured_pes(lab), &words)?)?))
}

fn speedups(runs: &[FtRun], place: String) -> Result<Evidence> {
    let base = of(runs, "exchange", "two-sided")?.seconds;
    let mut values = Vec::new();
    for transport in ["one-sided", "two-sided"] {
        for variant in VARIANTS {
            let speedup = base / of(runs, variant, transport)?.seconds;
            let what = format!("{variant}, {transport} / exchange, two-sided, speed");
            let paper = match (variant, transport) {
                ("exchange", "two-sided") => "1 (with Fortran)",
                ("slabs", "two-sided") => "up to 1.75",
                ("pencils", "one-sided") => "1.8 on average, up to 1.9",
                _ => "",
            };
            values.push(value(what, format!("{speedup:.2}"), paper));
        }
    }
    let (one, two) = (best(runs, "one-sided")?, best(runs, "two-sided")?);
    let (gain, one_speedup, two_speedup) =
        (two.seconds / one.seconds, base / one.seconds, base / two.seconds);
    values.push(value("best one-sided / best two-sided, speed", format!("{gain:.2}"), "1.15 on average"));
    Ok(Evidence {
        place,
        charts: Vec::new(),
        values,
        verdict: verdict(
            &[one_speedup > 1.1, two_speedup > 1.05, gain > 1.0],
            format!(
                "one-sided {} is {one_speedup:.2}, two-sided {} {two_speedup:.2} times as fast as the \
                 exchange; one-sided is ahead by {}",
                one.variant,
                two.variant,
                percent(gain - 1.0)
            ),
        ),
    })
}

fn messages(size: [usize; 3], pes: usize, variant: &str) -> Result<FtMessages> {
    FtMessages::new(size, FtSplit::Planes(pes), variant, pes - 1).map_err(|error| anyhow!(error))
}

fn table_1(_: &Lab) -> Result<Evidence> {
    let (mut equal, mut all, mut values) = (0, 0, Vec::new());
    for (n, pes) in [(64, 8), (512, 64), (1024, 256)] {
        let (side, threads) = (n as f64, pes as f64);
        let paper = [(pes, 0.0), (n, 1.0 - 2.0 / side), (n * n / pes, 1.0 - 2.0 * threads / (side * side))];
        for (variant, (count, efficiency)) in VARIANTS.into_iter().zip(paper) {
            let plan = messages([n; 3], pes, variant)?;
            let found = (plan.rounds[0].targets.len(), plan.overlap_efficiency);
            all += 1;
            equal += usize::from(found.0 == count && (found.1 - efficiency).abs() < 1e-12);
            let words = |(count, efficiency): (usize, f64)| format!("{count}, {efficiency:.6}");
            values.push(value(
                format!("{variant}, n = {n}, T = {pes}: messages, efficiency"),
                words(found),
                words((count, efficiency)),
            ));
        }
    }
    Ok(Evidence {
        place: "plans of cubes".to_owned(),
        charts: Vec::new(),
        values,
        verdict: verdict(&[equal == all], format!("{equal} of {all} rows are those of the table's formulas")),
    })
}

fn class_d(_: &Lab) -> Result<Evidence> {
    let size_of_box = ft_class("D").context("there is no class D")?;
    let paper = [("exchange", 256, 512 << 10), ("slabs", 1024, 128 << 10), ("pencils", 8192, 16 << 10)];
    let (mut equal, mut values) = (0, Vec::new());
    for (variant, count, bytes) in paper {
        let plan = messages(size_of_box, 256, variant)?;
        let found = (plan.rounds[0].targets.len(), plan.rounds[0].bytes);
        equal += usize::from(found == (count, bytes));
        let words = |(count, bytes): (usize, usize)| format!("{count} of {}", size(bytes));
        let there = if variant == "exchange" { String::new() } else { words((count, bytes)) };
        values.push(value(format!("messages of a process, {variant}"), words(found), there));
    }
    let pencils = messages(size_of_box, 256, "pencils")?.rounds[0].targets.len();
    let planes = size_of_box[2] / 256;
    let of_plane = pencils / planes;
    values.push(value("sends of a plane of pencils, and as many receives", of_plane.to_string(), "2048"));
    Ok(Evidence {
        place: "the plan of class D on 256 PEs".to_owned(),
        charts: Vec::new(),
        values,
        verdict: verdict(&[equal == 3, of_plane == 2048], "numbers and sizes are those of the paper"),
    })
}

fn pencils(runs: &[FtRun], place: String) -> Result<Evidence> {
    let [slabs, pencils] = ["slabs", "pencils"].map(|variant| of(runs, variant, "one-sided"));
    let gain = slabs?.seconds / pencils?.seconds;
    Ok(Evidence {
        place,
        charts: Vec::new(),
        values: vec![value("pencils / slabs, speed, one-sided", format!("{gain:.3}"), "1.00 to 1.10")],
        verdict: verdict(
            &[gain >= 1.0, gain <= 1.1],
            format!("pencils have {gain:.3} of the speed of slabs"),
        ),
    })
}

fn latency(records: &[Record], place: String) -> Result<Evidence> {
    let curve = |(operation, name): (Operation, &str)| {
        let point = |bytes| Some((bytes as f64, ping::trip(records, operation, bytes)?.summary.median));
        solid(name, ping::BYTES.into_iter().filter_map(point))
    };
    let ratios = |operation| -> Vec<f64> {
        let small = ping::BYTES.into_iter().filter(|bytes| *bytes <= 512);
        let ratio = |bytes| {
            let median = |operation| Some(ping::trip(records, operation, bytes)?.summary.median);
            Some(median(operation)? / median(Operation::Send)?)
        };
        small.filter_map(ratio).collect()
    };
    let [put, get] = [Operation::Put, Operation::Get].map(ratios);
    let is_shorter = |ratios: &[f64]| ratios.iter().all(|ratio| *ratio < 1.0);
    Ok(Evidence {
        place,
        charts: vec![chart("Round trip by size", Across::Bytes, TIME, ping::WAYS.map(curve).into())],
        values: vec![
            value("put / message, 1 to 512 B, time", span(&put), "below 1"),
            value("get / message, 1 to 512 B, time", span(&get), "below 1"),
        ],
        verdict: verdict(
            &[is_shorter(&put), is_shorter(&get)],
            format!("puts take {} and gets {} of the time of a message", span(&put), span(&get)),
        ),
    })
}

fn flood(records: &[Record], place: String) -> Result<Evidence> {
    let leads = [8 << 10, 32 << 10, 512 << 10].map(|bytes| lead(records, 1, bytes).context("no flood"));
    let [small, middle, large] = leads;
    let (small, middle, large) = (small?, middle?, large?);
    Ok(Evidence {
        place,
        charts: vec![bandwidth_chart(records, "Bandwidth of floods by size")],
        values: vec![
            value("puts / messages at 8 KiB, bandwidth", format!("{small:.2}"), "above 1"),
            value("puts / messages at 32 KiB, bandwidth", format!("{middle:.2}"), "above 1"),
            value("puts / messages at 512 KiB, bandwidth", format!("{large:.2}"), "1"),
        ],
        verdict: verdict(
            &[small > 1.05, middle > 1.05, (large - 1.0).abs() <= 0.1],
            format!("puts have {small:.2}, {middle:.2} and {large:.2} of the bandwidth of messages"),
        ),
    })
}

fn best_variants(runs: &[FtRun], place: String) -> Result<Evidence> {
    let mut values = Vec::new();
    let mut computations = Vec::new();
    for transport in ["one-sided", "two-sided"] {
        for variant in VARIANTS {
            let run = of(runs, variant, transport)?;
            let what = format!("time in communication, {variant}, {transport}, ms (part of it hidden)");
            let (ms, hidden) = (1e3 * run.communication(), percent(run.overlap.share));
            values.push(value(what, format!("{ms:.3} ({hidden})"), ""));
            computations.push(run.phases.local_fft.mean);
        }
    }
    let [one, two] = ["one-sided", "two-sided"].map(|transport| best(runs, transport));
    let (one, two) = (&one?.variant, &two?.variant);
    let least = computations.iter().copied().fold(f64::INFINITY, f64::min);
    let most = computations.iter().copied().fold(0.0, f64::max);
    values.push(value("best one-sided variant", one, "pencils"));
    values.push(value("best two-sided variant", two, "slabs"));
    values.push(value("longest / shortest computation", format!("{:.2}", most / least), "at most 1.10"));
    Ok(Evidence {
        place,
        charts: Vec::new(),
        values,
        verdict: verdict(
            &[one == "pencils", two == "slabs", most / least <= 1.1],
            format!(
                "the best are {one} one-sided and {two} two-sided; computation differs by {}",
                percent(most / least - 1.0)
            ),
        ),
    })
}

fn lines(_: &Lab) -> Result<Evidence> {
    let FtLines { one_sided, two_sided, collectives, of_pieces, all } = ft_lines();
    let own = (one_sided + two_sided + collectives) as f64;
    let shared = 1.0 - own / all as f64;
    Ok(Evidence {
        place: "the source of this program, without tests and comments".to_owned(),
        charts: Vec::new(),
        values: vec![
            value("lines of all variants and transports", all.to_string(), ""),
            value(
                "lines of one transport alone: puts, messages, all-to-alls",
                format!("{one_sided}, {two_sided}, {collectives}"),
                "",
            ),
            value("share of the code that all have in common", percent(shared), "90 %"),
            value("lines in which slabs and pencils differ", of_pieces.to_string(), "about 10"),
        ],
        verdict: verdict(
            &[shared >= 0.9, of_pieces <= 10],
            format!("{} is shared, and {of_pieces} lines name slabs or pencils", percent(shared)),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::claim::Outcome;
    use super::super::ft_runs::tests::run;
    use super::*;

    #[test]
    fn the_counted_tables_hold() {
        let lab = Lab::new(2, true);
        for counted in [table_1, class_d] {
            assert_eq!(counted(&lab).unwrap().verdict.verdict, Outcome::Holds);
        }
        assert_eq!(lines(&lab).unwrap().values.len(), 4);
    }

    #[test]
    fn speedups_are_those_over_the_two_sided_exchange() {
        let mut runs = Vec::new();
        for (transport, seconds) in [("one-sided", [2.0, 1.25, 1.125]), ("two-sided", [2.25, 1.5, 1.6])] {
            runs.extend(VARIANTS.into_iter().zip(seconds).map(|(variant, s)| run(variant, transport, s)));
        }
        let seen = speedups(&runs, String::new()).unwrap();
        let here: Vec<_> = seen.values.iter().map(|value| value.here.as_str()).collect();
        assert_eq!(here, ["1.12", "1.80", "2.00", "1.00", "1.50", "1.41", "1.33"]);
        assert_eq!(seen.verdict.verdict, Outcome::Holds);
        assert_eq!(pencils(&runs, String::new()).unwrap().verdict.verdict, Outcome::InPart);
        let best = best_variants(&runs, String::new()).unwrap();
        assert!(best.verdict.because.contains("pencils one-sided and slabs two-sided"));
        assert_eq!(
            speedups(&runs[..2], String::new()).err().unwrap().to_string(),
            "FT did not run exchange over two-sided"
        );
    }
}
