//! The comparison as one HTML page: a chart for each operation and number of PEs, and the tables below them.
//!
//! Invariant: the page stands alone: no script, nothing from elsewhere, all text escaped.

use std::fmt::Write;

use super::programs::Side;
use super::rows::{Row, size};

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 300.0;
/// The field of the lines: left, right, top, bottom.
const FIELD: [f64; 4] = [56.0, 446.0, 34.0, 252.0];

const STYLE: &str = "\
body { font: 16px/1.5 system-ui, 'DejaVu Sans', sans-serif; color: #1b1f23; max-width: 980px;
  margin: 32px auto; padding: 0 20px }
h1 { font-size: 26px; margin: 0 0 12px }
div { display: grid; grid-template-columns: 1fr 1fr; gap: 16px; margin: 16px 0 }
p { margin: 0; color: #57606a }
p b { margin-right: 18px; font-weight: 600 }
pre { font: 13px/1.45 ui-monospace, 'DejaVu Sans Mono', monospace; overflow-x: auto; padding: 16px;
  background: #f6f8fa; border-radius: 8px }
svg { width: 100%; height: auto; font-size: 11px; fill: #57606a }
svg .title { font-size: 14px; font-weight: 600; fill: #1b1f23 }
svg .x { text-anchor: middle }
svg .y { text-anchor: end }
svg .grid { stroke: #e9ecef; fill: none }
svg .line { stroke-width: 2; fill: none; stroke-linejoin: round }";

/// The page: curves of all operations that have more than one size, then the text.
pub fn html(title: &str, rows: &[Row], text: &str) -> String {
    let mut charts = String::new();
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let is_same = |row: &&Row| (row.pes, &row.operation) == (first.pes, &first.operation);
        let (of_one, others) = rest.split_at(rest.iter().take_while(is_same).count());
        if of_one.len() > 1 {
            charts += &chart(of_one);
        }
        rest = others;
    }
    let name = |side: Side| format!("<b style=\"color:{}\">{}</b>", colour(side), side.name());
    let has = |side: &Side| rows.iter().any(|row| row.sides.contains_key(side));
    let legend: String = Side::ALL.into_iter().filter(has).map(name).collect();
    let text = escape(text.trim_end());
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n\
         <p>{legend}</p>\n<p>Microseconds an operation against the bytes of a block.</p>\n\
         <div>\n{charts}</div>\n<h1>Figures</h1>\n<pre>{text}</pre>\n</body>\n</html>\n"
    )
}

/// Colours that people with any sight tell apart.
fn colour(side: Side) -> &'static str {
    match side {
        Side::Pelago => "#0072b2",
        Side::OpenMpi => "#d55e00",
        Side::Mpich => "#009e73",
        Side::Oshmem => "#aa4499",
        Side::Libfabric => "#e69f00",
        Side::Copies => "#767676",
        Side::OverLibfabric => "#117733",
        Side::Socket => "#882255",
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn at(&self, value: f64) -> f64 {
        self.from + (value / self.low).ln() / (self.high / self.low).ln() * (self.to - self.from)
    }
}

/// One operation with one number of PEs: a line for each side.
fn chart(rows: &[Row]) -> String {
    let [left, right, top, bottom] = FIELD;
    let title = escape(&format!("{}, {} PEs", rows[0].operation, rows[0].pes));
    let times = || rows.iter().flat_map(|row| row.sides.values().map(|figures| figures.ns / 1e3));
    let decade = |us: f64, round: fn(f64) -> f64| 10_f64.powf(round(us.log10()));
    let low = decade(times().fold(f64::INFINITY, f64::min), f64::floor);
    let high = decade(times().fold(0.0, f64::max), f64::ceil).max(low * 10.0);
    let bytes = |row: &Row| row.bytes.max(1) as f64;
    let last = bytes(&rows[rows.len() - 1]).max(bytes(&rows[0]) * 2.0);
    let x = Axis { low: bytes(&rows[0]), high: last, from: left, to: right - 12.0 };
    let y = Axis { low, high, from: bottom, to: top };
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n");
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(svg, "<text class=\"title\" x=\"{left}\" y=\"20\">{title}</text>");
    let mut mark = low;
    while mark <= high * 1.001 {
        let (at, label) = (y.at(mark), format!("{}", (mark * 1e6).round() / 1e6));
        let _ = writeln!(svg, "<path class=\"grid\" d=\"M{left} {at:.1}H{right}\"/>");
        let _ = writeln!(svg, "<text class=\"y\" x=\"{}\" y=\"{:.1}\">{label}</text>", left - 6.0, at + 4.0);
        mark *= 10.0;
    }
    for row in rows {
        // Short, as the marks stand close together: `64K`.
        let label = size(row.bytes).replace("iB", "").replace([' ', 'B'], "");
        let at = x.at(bytes(row));
        let _ = writeln!(svg, "<path class=\"grid\" d=\"M{at:.1} {top}V{bottom}\"/>");
        let _ = writeln!(svg, "<text class=\"x\" x=\"{at:.1}\" y=\"{}\">{label}</text>", bottom + 16.0);
    }
    for side in Side::ALL.into_iter().rev() {
        svg += &line(rows, side, &x, &y);
    }
    svg + "</svg>\n"
}

/// The line of a side, if it has one.
fn line(rows: &[Row], side: Side, x: &Axis, y: &Axis) -> String {
    let (mut path, mut marks, colour) = (String::new(), String::new(), colour(side));
    for row in rows {
        let Some(figures) = row.sides.get(&side) else { continue };
        let us = figures.ns / 1e3;
        let (across, up) = (x.at(row.bytes.max(1) as f64), y.at(us));
        let _ = write!(path, "{}{across:.1} {up:.1}", if path.is_empty() { 'M' } else { 'L' });
        let note = escape(&format!("{}, {}: {us:.3} us", side.name(), size(row.bytes)));
        let _ = write!(marks, "<circle fill=\"{colour}\" cx=\"{across:.1}\" cy=\"{up:.1}\" r=\"3\">");
        let _ = writeln!(marks, "<title>{note}</title></circle>");
    }
    match path.is_empty() {
        true => path,
        false => format!("<path class=\"line\" stroke=\"{colour}\" d=\"{path}\"/>\n{marks}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::rows::tests::examples;

    #[test]
    fn the_page_stands_alone_and_shows_every_side() {
        let page = html("Collective operations", &examples(), "a < b & c\n");
        // Of 2 and of 4 PEs: all-reduce; barrier and gather have one size.
        assert_eq!((page.matches("<svg").count(), page.matches("</svg>").count()), (2, 2));
        assert_eq!(page.matches("class=\"line\"").count(), 2 * 3, "ours and two others");
        assert_eq!(page.matches("<circle").count(), 2 * 3 * 2, "two sizes of each");
        assert!(page.contains("a &lt; b &amp; c") && page.contains("Open MPI, 64 KiB: 0.150 us"));
        assert!(page.contains(">8</text>") && page.contains(">64K</text>"), "{page}");
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
        for outside in ["http", "src=", "href", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(outside), "the page refers to something else by {outside}");
        }
    }
}
