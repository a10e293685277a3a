//! The measurements of `bench rma` as one HTML page: curves, and the tables below them. Invariant: the page
//! stands alone; it needs no script and nothing from anywhere else.

use pelago_apps::perf::{Bench, Operation, Place, Record};

use super::table::figure;
use super::text::{of, size, windows};
use crate::plot::{Axis, Chart, Line, Point, Scale, Series, escape};

const BLUE: &str = "#0072b2";
const ORANGE: &str = "#d55e00";
const GREEN: &str = "#009e73";
const GREY: &str = "#c4c8cc";

const STYLE: &str = "\
body { font: 16px/1.5 system-ui, 'DejaVu Sans', sans-serif; color: #1b1f23; background: #fff;
  max-width: 940px; margin: 32px auto; padding: 0 20px }
h1 { font-size: 26px; margin: 0 0 4px }
p { margin: 0 0 8px; color: #57606a; white-space: pre-line }
figure { margin: 28px 0; padding: 12px; border: 1px solid #e3e6e9; border-radius: 8px }
figcaption { font-size: 14px; color: #57606a; padding: 0 12px 4px }
pre { font: 13px/1.45 ui-monospace, 'DejaVu Sans Mono', monospace; overflow-x: auto; padding: 16px;
  background: #f6f8fa; border-radius: 8px }
svg { display: block; width: 100%; height: auto; font-size: 13px; fill: #1b1f23 }
svg .title { font-size: 17px; font-weight: 600 }
svg .label { fill: #57606a }
svg .x { text-anchor: middle }
svg .y { text-anchor: end }
svg .grid { stroke: #e9ecef; fill: none }
svg .axis { stroke: #8b949e; fill: none }
svg .line { stroke-width: 2; fill: none; stroke-linejoin: round }
svg .broad { stroke-width: 8; stroke-linecap: round }
svg .dashed { stroke-dasharray: 6 4 }
svg .broad.dashed { stroke-dasharray: 12 10; stroke-linecap: butt }";

/// The page: `heading` above, the curves of `records`, `tables` below.
pub fn html(heading: &str, tables: &str, records: &[Record]) -> String {
    let charts = [
        (latency(records), "PE 1 reads what came before it acknowledges. Medians."),
        (
            bandwidth(records),
            "Blocking transfers by PE 0 beside memcpy between the same two buffers, block by block. Cache: \
             the same buffers again and again; memory: moving on through regions of twice the last-level \
             cache or more. memcpy is that of the puts; the tables have that of the gets too. Medians.",
        ),
        (flood(records), "To one place, in the cache; each window is completed before the next. Medians."),
        (barrier(records), "One-way: half a round trip of a flag between PEs 0 and 1. Medians."),
    ];
    let figure = |(chart, caption): &(Chart, &str)| {
        format!("<figure>\n{chart}<figcaption>{}</figcaption>\n</figure>\n", escape(caption))
    };
    let has_lines = |(chart, _): &&(Chart, &str)| !chart.series.is_empty();
    let figures: String = charts.iter().filter(has_lines).map(figure).collect();
    let (heading, tables) = (escape(heading.trim_end()), escape(tables));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Pelago: remote memory access</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n\
         <h1>Remote memory access</h1>\n<p>{heading}</p>\n{figures}<h1>Figures</h1>\n\
         <pre>{tables}</pre>\n</body>\n</html>\n"
    )
}

/// A line through the medians of the records, if there are any.
fn series<'a>(
    name: &str,
    colour: &'static str,
    line: Line,
    records: impl Iterator<Item = &'a Record>,
    x: fn(&Record) -> usize,
) -> Option<Series> {
    let point = |record: &Record| {
        let [min, median, max] = [record.summary.min, record.summary.median, record.summary.max].map(figure);
        let place = if record.bench == Bench::Barrier || record.bytes == 0 {
            format!("{} PEs", record.pes)
        } else {
            size(record.bytes)
        };
        let note = format!("{name}, {place}: {median} (from {min} to {max})");
        Point { x: x(record) as f64, y: record.summary.median, note }
    };
    let points: Vec<_> = records.map(point).collect();
    (!points.is_empty()).then(|| Series { name: name.to_owned(), colour, line, points })
}

fn bytes_axis(label: &'static str) -> Axis {
    Axis { label, scale: Scale::Bytes }
}

fn latency(records: &[Record]) -> Chart {
    let line = |name, colour, operation| {
        let records = of(records, Bench::PingAck, operation).filter(|record| record.bytes > 0);
        series(name, colour, Line::Solid, records, |record| record.bytes)
    };
    let round_trip = line("round trip", BLUE, Operation::RoundTrip);
    Chart {
        title: "Latency of put, flag and acknowledgement between two PEs".to_owned(),
        x: bytes_axis("size of the put"),
        y: Axis { label: "ns", scale: Scale::FromZero },
        series: round_trip.into_iter().chain(line("half of it", ORANGE, Operation::OneWay)).collect(),
    }
}

fn bandwidth(records: &[Record]) -> Chart {
    let line = |name, colour, line, operation, place| {
        let records = of(records, Bench::Bandwidth, operation).filter(move |r| r.place == Some(place));
        series(name, colour, line, records, |record| record.bytes)
    };
    let (cache, memory) = (Place::Cache, Place::Memory);
    let lines = [
        line("memcpy, cache", GREY, Line::Broad, Operation::PutMemcpy, cache),
        line("memcpy, memory", GREY, Line::BroadDashed, Operation::PutMemcpy, memory),
        line("put, cache", BLUE, Line::Solid, Operation::Put, cache),
        line("put, memory", BLUE, Line::Dashed, Operation::Put, memory),
        line("get, cache", ORANGE, Line::Solid, Operation::Get, cache),
        line("get, memory", ORANGE, Line::Dashed, Operation::Get, memory),
    ];
    Chart {
        title: "Bandwidth of put, get and memcpy".to_owned(),
        x: bytes_axis("size of a transfer"),
        y: Axis { label: "GB/s (10^9 bytes a second)", scale: Scale::Decades },
        series: lines.into_iter().flatten().collect(),
    }
}

fn flood(records: &[Record]) -> Chart {
    let lines = windows(records).into_iter().zip([BLUE, GREEN, ORANGE]).map(|(window, colour)| {
        let of_window = of(records, Bench::Flood, Operation::Put).filter(move |r| r.window == Some(window));
        series(&format!("{window} outstanding"), colour, Line::Solid, of_window, |record| record.bytes)
    });
    Chart {
        title: "Flood bandwidth of puts".to_owned(),
        x: bytes_axis("size of a put"),
        y: Axis { label: "GB/s (10^9 bytes a second)", scale: Scale::Decades },
        series: lines.flatten().collect(),
    }
}

fn barrier(records: &[Record]) -> Chart {
    let barriers = of(records, Bench::Barrier, Operation::Barrier);
    let flags = of(records, Bench::PingAck, Operation::OneWay).filter(|record| record.bytes == 0);
    let barriers = series("barrier", BLUE, Line::Solid, barriers, |record| record.pes);
    Chart {
        title: "Barrier".to_owned(),
        x: Axis { label: "PEs", scale: Scale::Count },
        y: Axis { label: "ns", scale: Scale::Decades },
        series: barriers
            .into_iter()
            .chain(series("one-way transfer", ORANGE, Line::Dashed, flags, |record| record.pes))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::text::{self, tests::records};
    use crate::plot::tests::assert_balanced;

    #[test]
    fn the_page_is_well_formed_and_stands_alone() {
        let page = html("heading & <more>\n", &text::tables(&records()), &records());
        let names = assert_balanced(&page, &["meta"]);
        assert_eq!(names.iter().filter(|name| **name == "svg").count(), 4);
        for outside in ["http", "src=", "href", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(outside), "the page refers to something else by {outside}");
        }
        assert!(page.contains("heading &amp; &lt;more&gt;") && page.contains("put, memory, 1 MiB: 17.6"));
    }

    #[test]
    fn charts_without_records_are_left_out() {
        assert!(!html("", "", &[]).contains("<svg"));
    }
}
