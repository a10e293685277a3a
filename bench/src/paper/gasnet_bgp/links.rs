//! Latency and bandwidth of one-sided and two-sided messages, on one link and several.

use std::rc::Rc;

use anyhow::{Context, Result};
use pelago_report::chart::Chart;

use super::LINK;
use crate::base::across::{BANDWIDTH, TIME, size};
use crate::base::record::{Operation, Record};
use crate::paper::claim::{Evidence, Value, value, verdict};
use crate::paper::lab::{Between, Lab, Network};
use crate::paper::shapes::{Across, Curve, chart, dashed, mean, solid, span};
use crate::topics::links::LINKS;
use crate::topics::{links, ping};

/// The size up to which the deck's factor is almost two.
const SMALL_BYTES: usize = 32;
/// The largest size of the deck's figure of latency.
const LATENCY_BYTES_MAX: usize = 512;
/// The sizes of FT's messages: slabs, packed slabs.
const FT_BYTES: [usize; 2] = [8 << 10, 128 << 10];

pub fn latency_simulated(lab: &Lab) -> Result<Evidence> {
    let records = round_trips(lab, LINK)?;
    latency(&records, format!("2 PEs, {}", LINK.name()))
}

pub fn latency_in_memory(lab: &Lab) -> Result<Evidence> {
    latency_between(lab, Between::Memory)
}

pub fn latency_over_tcp(lab: &Lab) -> Result<Evidence> {
    latency_between(lab, Between::Tcp)
}

fn latency_between(lab: &Lab, between: Between) -> Result<Evidence> {
    latency(&lab.perf(between, 2, &["ping"])?, between.place(2))
}

/// The round trips of `bench ping` between two PEs of a simulated network.
pub fn round_trips(lab: &Lab, network: Network) -> Result<Rc<Vec<Record>>> {
    lab.suite("ping", 2, &network.params(2, 2), |world, effort, sink| {
        ping::all(world, &ping::BYTES, effort, sink)
    })
}

/// The time of a message divided by that of a put or a get.
fn slowdown(records: &[Record], bytes: usize, operation: Operation) -> Option<f64> {
    let median = |operation| Some(ping::trip(records, operation, bytes)?.summary.median);
    Some(median(Operation::Send)? / median(operation)?)
}

fn latency(records: &[Record], place: String) -> Result<Evidence> {
    let sizes = || ping::BYTES.into_iter().filter(|bytes| *bytes <= LATENCY_BYTES_MAX);
    let curve = |(operation, name): (Operation, &str)| {
        let median = |bytes| Some((bytes as f64, ping::trip(records, operation, bytes)?.summary.median));
        solid(name, sizes().filter_map(median))
    };
    let ratios = |operation| -> Vec<f64> {
        let small = sizes().filter(|bytes| *bytes <= SMALL_BYTES);
        small.filter_map(|bytes| slowdown(records, bytes, operation)).collect()
    };
    let [put, get] = [Operation::Put, Operation::Get].map(ratios);
    let is_ahead = |ratios: &[f64]| ratios.iter().all(|ratio| *ratio > 1.0);
    let values = [("put", &put), ("get", &get)];
    Ok(Evidence {
        place,
        charts: vec![chart("Round trip by size", Across::Bytes, TIME, ping::WAYS.map(curve).into())],
        values: values
            .map(|(name, ratios)| {
                let what = format!("message / {name}, 1 to {SMALL_BYTES} B, time");
                value(what, span(ratios), "almost 2")
            })
            .into(),
        verdict: verdict(
            &[is_ahead(&put), is_ahead(&get), mean(&put) >= 1.4],
            format!(
                "a message takes {} times a put and {} times a get; \"almost a factor of two\" is taken to \
                 be 1.4 or more",
                span(&put),
                span(&get)
            ),
        ),
    })
}

/// The floods to these numbers of PEs over a card as fast as that number of links.
pub fn floods(lab: &Lab, network: Network, numbers: &[usize]) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    for &number in numbers {
        let card = Network { bandwidth: network.bandwidth * number as f64, ..network };
        let (pes, name) = (number + 1, format!("links {number}"));
        let found = lab.suite(&name, pes, &card.params(pes, pes), |world, effort, sink| {
            links::all(world, &[number], &links::BYTES, effort, sink)
        })?;
        records.extend_from_slice(&found);
    }
    Ok(records)
}

pub fn bandwidth_simulated(lab: &Lab) -> Result<Evidence> {
    let records = floods(lab, LINK, &LINKS)?;
    Ok(bandwidth(&records, format!("up to 7 PEs, {}, times the number of links", LINK.name())))
}

pub fn bandwidth_in_memory(lab: &Lab) -> Result<Evidence> {
    bandwidth_between(lab, Between::Memory)
}

pub fn bandwidth_over_tcp(lab: &Lab) -> Result<Evidence> {
    bandwidth_between(lab, Between::Tcp)
}

fn measured(lab: &Lab, between: Between) -> Result<(Rc<Vec<Record>>, String)> {
    let pes = lab.pes.min(LINKS[LINKS.len() - 1] + 1);
    Ok((lab.perf(between, pes, &["links"])?, between.place(pes)))
}

fn bandwidth_between(lab: &Lab, between: Between) -> Result<Evidence> {
    let (records, place) = measured(lab, between)?;
    Ok(bandwidth(&records, place))
}

/// The bandwidth of puts divided by that of messages.
pub fn lead(records: &[Record], number: usize, bytes: usize) -> Option<f64> {
    let median = |operation| Some(links::flood(records, operation, number, bytes)?.summary.median);
    Some(median(Operation::Put)? / median(Operation::Send)?)
}

/// The bandwidths of both sides by size, for each number of links.
pub fn bandwidth_chart(records: &[Record], title: &str) -> Chart {
    let curve = |number: usize, operation| -> Vec<(f64, f64)> {
        let point = |bytes| {
            let found = links::flood(records, operation, number, bytes)?;
            Some((bytes as f64, found.summary.median))
        };
        links::BYTES.into_iter().filter_map(point).collect()
    };
    let of = |number: usize| -> [Curve; 2] {
        let name = |side: &str| format!("{side}, {number} {}", if number == 1 { "link" } else { "links" });
        [
            solid(name("puts"), curve(number, Operation::Put)),
            dashed(name("messages"), curve(number, Operation::Send)),
        ]
    };
    chart(title, Across::Bytes, BANDWIDTH, LINKS.into_iter().flat_map(of).collect())
}

fn bandwidth(records: &[Record], place: String) -> Evidence {
    let leads = |bytes: usize| -> Vec<f64> {
        LINKS.into_iter().filter_map(|number| lead(records, number, bytes)).collect()
    };
    let largest = links::BYTES[links::BYTES.len() - 1];
    let (middle, end) = (leads(FT_BYTES[0]), leads(largest));
    let is_equal = end.iter().all(|ratio| (0.9..=1.1).contains(ratio));
    Evidence {
        place,
        charts: vec![bandwidth_chart(records, "Bandwidth by size and number of links")],
        values: vec![
            value("puts / messages at 2 MiB, bandwidth", span(&end), "1"),
            value("puts / messages at 8 KiB, bandwidth", span(&middle), "1.24 (2 links), 1.39 (4 links)"),
        ],
        verdict: verdict(
            &[is_equal, mean(&middle) > 1.05],
            format!(
                "puts have {} of the bandwidth of messages at 2 MiB, {} at 8 KiB",
                span(&end),
                span(&middle)
            ),
        ),
    }
}

pub fn lead_simulated(lab: &Lab) -> Result<Evidence> {
    lead_of(&floods(lab, LINK, &LINKS)?, format!("3 and 5 PEs, {}, times the number of links", LINK.name()))
}

pub fn lead_over_tcp(lab: &Lab) -> Result<Evidence> {
    let (records, place) = measured(lab, Between::Tcp)?;
    lead_of(&records, place)
}

fn lead_of(records: &[Record], place: String) -> Result<Evidence> {
    let paper =
        [(2, FT_BYTES[0], 1.24), (4, FT_BYTES[0], 1.39), (2, FT_BYTES[1], 1.0), (4, FT_BYTES[1], 1.0)];
    let found: Vec<_> = paper
        .into_iter()
        .filter_map(|(number, bytes, there)| Some((number, bytes, there, lead(records, number, bytes)?)))
        .collect();
    let row = |&(number, bytes, there, here): &(usize, usize, f64, f64)| -> Value {
        let what = format!("puts / messages at {}, {number} links, bandwidth", size(bytes));
        value(what, format!("{here:.2}"), format!("{there:.2}"))
    };
    let of = |bytes: usize| -> Vec<f64> {
        found.iter().filter(|found| found.1 == bytes).map(|found| found.3).collect()
    };
    let [small, large] = FT_BYTES.map(of);
    small.first().context("no number of links was measured; give -n 3 or more")?;
    Ok(Evidence {
        place,
        charts: Vec::new(),
        values: found.iter().map(row).collect(),
        verdict: verdict(
            &[mean(&small) > 1.1, (mean(&large) - 1.0).abs() <= 0.1],
            format!("the lead is {} at 8 KiB and {} at 128 KiB", span(&small), span(&large)),
        ),
    })
}
