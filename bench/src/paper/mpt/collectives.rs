//! Collective operations by size and number of PEs, thresholds of algorithms, contended atomics.

use anyhow::{Context, Result, ensure};
use pelago::Spmd;
use pelago::coll::select::{Laws, Preferences};
use pelago::coll::shape::{Operation as Kind, Shape};
use pelago::prelude::*;
use pelago::sim::SimParams;

use super::XT3;
use crate::base::across::{TIME, TIME_FROM_ZERO, size};
use crate::base::record::{Bench, Operation, Place, Record, Unit, find, of};
use crate::base::topic::doublings;
use crate::paper::claim::{Evidence, value, verdict};
use crate::paper::lab::{Between, Lab};
use crate::paper::shapes::{Across, chart, dashed, grows_as, solid, span};
use crate::topics::contention;

/// Heap of a PE in simulations, in bytes: they have many PEs.
const HEAP_BYTES: usize = 4 << 20;

/// A job of `pes` PEs on `nodes` nodes.
fn job(pes: usize, nodes: usize) -> Spmd {
    Spmd::new(pes).sim(XT3.params(pes, nodes)).heap_bytes(HEAP_BYTES)
}

/// The algorithm of an operation for blocks of 64 PEs.
fn algorithm(operation: Kind, bytes: usize) -> Result<&'static str> {
    let shape = Shape::new(operation, 0, 64, bytes, 1);
    let laws = operation.combines().then_some(Laws { is_associative: true, is_commutative: true });
    let choice = Preferences::default().choose(&shape, laws);
    Ok(choice.with_context(|| format!("no algorithm for {operation:?} of {bytes} bytes"))?.algorithm.name)
}

/// The algorithms of an operation by size, and the largest size of each in powers of two.
fn ranges(operation: Kind) -> Result<Vec<(&'static str, usize)>> {
    let mut ranges = Vec::<(&'static str, usize)>::new();
    for bytes in (0..=22).map(|power| 1 << power) {
        let name = algorithm(operation, bytes)?;
        match ranges.last_mut() {
            Some((last, most)) if *last == name => *most = bytes,
            _ => ranges.push((name, bytes)),
        }
    }
    Ok(ranges)
}

pub fn thresholds(_: &Lab) -> Result<Evidence> {
    let [all_to_all, reduce] = [ranges(Kind::AllToAll)?, ranges(Kind::Reduce)?];
    let words = |ranges: &[(&str, usize)]| {
        let parts = ranges.iter().map(|(name, most)| format!("{name} up to {}", size(*most)));
        parts.collect::<Vec<_>>().join(", ")
    };
    let forwards = all_to_all[0].0 == "bruck";
    let ends_pairwise = all_to_all.last().is_some_and(|(name, _)| *name == "pairwise");
    Ok(Evidence {
        place: "the choice of the runtime for 64 PEs, each a node; powers of two of the size".to_owned(),
        charts: Vec::new(),
        values: vec![
            value("all-to-all", words(&all_to_all), "store and forward up to 512 B, pairwise above 32 KB"),
            value("reduce", words(&reduce), "binomial up to 64 KB, then reduce-scatter"),
        ],
        verdict: verdict(
            &[forwards, ends_pairwise, reduce.len() > 1],
            "all-to-all changes from store-and-forward (bruck) to pairwise, at other sizes; reduce stays \
             binomial",
        ),
    })
}

pub fn barrier_simulated(lab: &Lab) -> Result<Evidence> {
    let most = if lab.is_quick { 32 } else { 128 };
    let mut curves = [const { Vec::new() }; 2];
    for pes in doublings(4, most) {
        for (curve, each) in curves.iter_mut().zip([1, 2]) {
            let ns = lab.virtual_ns(
                &job(pes, pes / each),
                4,
                |_| Ok(()),
                |world, (), _| {
                    world.barrier();
                    Ok(())
                },
            );
            curve.push((pes as f64, ns?));
        }
    }
    let [one, two] = curves;
    let is_log = grows_as(&one, f64::log2);
    let ratios: Vec<_> = one.iter().zip(&two).map(|(one, two)| two.1 / one.1).collect();
    let curves = vec![solid("one PE a node", one), dashed("two PEs a node", two)];
    Ok(Evidence {
        place: format!("4 to {most} PEs, {}", XT3.name()),
        charts: vec![chart("Barrier", Across::Pes, TIME_FROM_ZERO, curves)],
        values: vec![value("two PEs a node / one, time", span(&ratios), "")],
        verdict: verdict(
            &[is_log],
            format!(
                "the barrier {} with the logarithm of the PEs; with two PEs a node it takes {} of the time",
                if is_log { "grows" } else { "does not grow" },
                span(&ratios)
            ),
        ),
    })
}

pub fn barrier_measured(lab: &Lab) -> Result<Evidence> {
    let mut curve = Vec::new();
    for pes in doublings(2, lab.pes) {
        let records = lab.perf(Between::Memory, pes, &["barrier"])?;
        let found = find(&records, |label| label.operation == Operation::Barrier);
        curve.push((pes as f64, found.context("no barrier was measured")?.summary.median));
    }
    let is_rising = curve.len() > 1 && curve.windows(2).all(|pair| pair[0].1 < pair[1].1);
    let (first, last) = (curve[0], curve[curve.len() - 1]);
    let because = format!("{} PEs take {:.1} times the time of {}", last.0, last.1 / first.1, first.0);
    Ok(Evidence {
        place: Between::Memory.places(lab.pes),
        charts: vec![chart("Barrier", Across::Pes, TIME, vec![solid("mapped memory", curve)])],
        values: Vec::new(),
        verdict: verdict(&[is_rising], because),
    })
}

/// Nanoseconds of a collective operation of blocks of these bytes, by an algorithm that is set by hand.
fn collective_ns(
    job: Spmd,
    set: &str,
    bytes: usize,
    act: impl Fn(&Team<'_>, &Symmetric<'_, u32>, &Symmetric<'_, u32>) -> pelago::Result<()> + Sync,
) -> Result<f64> {
    let job = job.setting("PELAGO_COLL", set);
    let words = bytes / size_of::<u32>();
    let outcomes = job.run(|world| -> pelago::Result<_> {
        let (target, source) = (world.alloc_zeroed::<u32>(words)?, world.alloc_zeroed::<u32>(words)?);
        let team = world.team();
        act(&team, &target, &source)?;
        world.barrier();
        let start = world.wtime();
        act(&team, &target, &source)?;
        let elapsed = world.wtime() - start;
        world.barrier();
        Ok(elapsed)
    })?;
    let slowest = outcomes.into_iter().collect::<pelago::Result<Vec<_>>>()?.into_iter().max();
    Ok(slowest.unwrap_or_default().as_nanos() as f64)
}

/// The curves of algorithms of an operation, by size.
fn by_algorithm(
    job: impl Fn() -> Spmd,
    sets: [&str; 2],
    sizes: &[usize],
    act: impl Fn(&Team<'_>, &Symmetric<'_, u32>, &Symmetric<'_, u32>) -> pelago::Result<()> + Sync,
) -> Result<[Vec<(f64, f64)>; 2]> {
    let mut curves = [const { Vec::new() }; 2];
    for (curve, set) in curves.iter_mut().zip(sets) {
        for &bytes in sizes {
            curve.push((bytes as f64, collective_ns(job(), set, bytes, &act)?));
        }
    }
    Ok(curves)
}

pub fn broadcast(_: &Lab) -> Result<Evidence> {
    const PES: usize = 100;
    let sizes: Vec<_> = [8, 1 << 10, 8 << 10, 64 << 10, 512 << 10].into();
    let sets = ["broadcast=binomial", "broadcast=scatter_all_gather"];
    let [binomial, scatter] = by_algorithm(
        || job(PES, PES),
        sets,
        &sizes,
        |team, target, source| team.broadcast(0, target, source),
    )?;
    let ratios: Vec<_> = binomial.iter().zip(&scatter).map(|(tree, other)| tree.1 / other.1).collect();
    let (small, large) = (ratios[0], ratios[ratios.len() - 1]);
    let curves = vec![solid("scatter and all-gather", scatter), dashed("binomial tree", binomial)];
    Ok(Evidence {
        place: format!("{PES} PEs, a PE a node, {}", XT3.name()),
        charts: vec![chart("Broadcast", Across::Bytes, TIME, curves)],
        values: vec![
            value("binomial / scatter and all-gather at 8 B, time", format!("{small:.2}"), ""),
            value("binomial / scatter and all-gather at 512 KiB, time", format!("{large:.2}"), ""),
        ],
        verdict: verdict(
            &[small < 1.0, ratios.iter().any(|ratio| *ratio > 1.0)],
            format!(
                "the tree takes {small:.2} of the time at 8 B and {large:.2} at 512 KiB: one curve crosses \
                 the other"
            ),
        ),
    })
}

pub fn all_reduce(lab: &Lab) -> Result<Evidence> {
    let nodes = if lab.is_quick { 32 } else { 64 };
    let sizes = [8, 512, 4 << 10, 32 << 10, 256 << 10];
    let act = |team: &Team<'_>, target: &Symmetric<'_, u32>, source: &Symmetric<'_, u32>| {
        team.all_reduce(ReduceOp::Sum, target, source)
    };
    let sets = ["all_reduce=hierarchical", "all_reduce=recursive_doubling"];
    let [aware, flat] = by_algorithm(|| job(2 * nodes, nodes), sets, &sizes, act)?;
    let one = ["all_reduce=recursive_doubling"; 2];
    let [single, _] = by_algorithm(|| job(nodes, nodes), one, &sizes, act)?;
    let ratios: Vec<_> = aware.iter().zip(&flat).map(|(aware, flat)| aware.1 / flat.1).collect();
    let to_single: Vec<_> = aware.iter().zip(&single).map(|(aware, single)| aware.1 / single.1).collect();
    let curves = vec![
        solid("aware of nodes, 2 PEs a node", aware),
        dashed("not aware, 2 PEs a node", flat),
        solid("1 PE a node", single),
    ];
    Ok(Evidence {
        place: format!("{nodes} nodes, {}", XT3.name()),
        charts: vec![chart("All-reduce of integers", Across::Bytes, TIME, curves)],
        values: vec![
            value("aware / not aware, 2 PEs a node, time", span(&ratios), "below 1"),
            value("aware with 2 PEs a node / 1 PE a node, time", span(&to_single), "about 1"),
        ],
        verdict: verdict(
            &[ratios.iter().all(|ratio| *ratio < 1.0), to_single.iter().all(|ratio| *ratio < 1.3)],
            format!(
                "knowing the nodes takes {} of the time without, and {} of that with one PE a node",
                span(&ratios),
                span(&to_single)
            ),
        ),
    })
}

pub fn sum_to_all(lab: &Lab) -> Result<Evidence> {
    let most = if lab.is_quick { 32 } else { 64 };
    let sets = ["all_reduce=linear", "all_reduce=recursive_doubling"];
    let mut curves = [const { Vec::new() }; 2];
    for pes in doublings(2, most) {
        for (curve, set) in curves.iter_mut().zip(sets) {
            let ns = collective_ns(job(pes, pes), set, 8, |team, target, source| {
                team.all_reduce(ReduceOp::Sum, target, source)
            });
            curve.push((pes as f64, ns?));
        }
    }
    let [linear, doubling] = curves;
    let ratios: Vec<_> = doubling.iter().zip(&linear).map(|(new, old)| new.1 / old.1).collect();
    let last = ratios[ratios.len() - 1];
    let curves = vec![solid("recursive doubling", doubling), dashed("through one PE", linear)];
    Ok(Evidence {
        place: format!("2 to {most} PEs, a PE a node, 8 bytes, {}", XT3.name()),
        charts: vec![chart("Sum to all", Across::Pes, TIME, curves)],
        values: vec![value(format!("new / old, {most} PEs, time"), format!("{last:.2}"), "below 1")],
        verdict: verdict(
            &[last < 1.0],
            format!(
                "recursive doubling takes {last:.2} of the time of a sum through one PE; the algorithms of \
                 the two releases are not in the text"
            ),
        ),
    })
}

/// The latency that each PE sees while all add to one word.
fn contended(records: &[Record]) -> Option<(f64, f64)> {
    let one_word = of(records, Bench::Contention, Operation::FetchAdd)
        .filter(|record| (record.label.place, record.unit) == (Some(Place::OneWord), Unit::Nanoseconds));
    let record = one_word.last()?;
    Some((record.label.contenders? as f64, record.summary.median))
}

pub fn fetch_add_simulated(lab: &Lab) -> Result<Evidence> {
    let most = if lab.is_quick { 8 } else { 32 };
    let mut curve = Vec::new();
    for pes in doublings(2, most) {
        // As on the XT3, the processor of the target executes atomics.
        let params = SimParams { executes_atomics: false, ..XT3.params(pes, pes) };
        let records = lab.suite("contention", pes, &params, contention::all)?;
        curve.extend(contended(&records));
    }
    fetch_add(curve, format!("2 to {most} PEs, {}; the target's processor executes", XT3.name()))
}

pub fn fetch_add_measured(lab: &Lab) -> Result<Evidence> {
    let mut curve = Vec::new();
    for pes in doublings(2, lab.pes) {
        curve.extend(contended(&lab.perf(Between::Memory, pes, &["contention"])?));
    }
    fetch_add(curve, Between::Memory.places(lab.pes))
}

fn fetch_add(curve: Vec<(f64, f64)>, place: String) -> Result<Evidence> {
    ensure!(!curve.is_empty(), "no contended atomic was measured");
    let (first, last) = (curve[0], curve[curve.len() - 1]);
    let is_rising = curve.len() > 1 && curve.windows(2).all(|pair| pair[0].1 <= pair[1].1);
    Ok(Evidence {
        place,
        charts: vec![chart(
            "Latency of fetch-and-add on one word",
            Across::Pes,
            TIME_FROM_ZERO,
            vec![solid("each PE's latency", curve)],
        )],
        values: vec![value(
            format!("{} PEs / {} PEs, latency", last.0, first.0),
            format!("{:.1}", last.1 / first.1),
            "rises with the PEs",
        )],
        verdict: verdict(
            &[is_rising, last.1 > 1.2 * first.1],
            format!("{} PEs see {:.1} times the latency of {}", last.0, last.1 / first.1, first.0),
        ),
    })
}
