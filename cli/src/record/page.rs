//! Pages of records, which need no other file: here that of the statistics of a job, with the communication
//! matrix as a picture.

use std::fmt::Write;

use pelago_report::{Bytes, escape, figure_of};

use super::statistics::JobStatistics;

/// The style of these pages, besides that of all.
const STYLE: &str = "\
:root { --cell: #0072b2 }
@media (prefers-color-scheme: dark) { :root { --cell: #4aa8e0 } }
body { max-width: 1280px }
svg { font-size: 11px }
svg.wide { min-width: 900px }
span { padding: 1px 8px; border-radius: 4px; color: #fff }
.mpi { fill: #6e7781; background: #6e7781 }
.rma { fill: #0072b2; background: #0072b2 }
.collective { fill: #009e73; background: #009e73 }
.wait { fill: #d55e00; background: #d55e00 }
.active { fill: #aa4499; background: #aa4499 }
.message { fill: #8c6d00; background: #8c6d00 }
.network { fill: #2b7a8c; background: #2b7a8c }
.step { fill: #7a5fb5; background: #7a5fb5 }
path.line { fill: none; stroke: var(--text); stroke-opacity: 0.35 }
svg .name { fill: #fff; font-size: 10px; pointer-events: none }
svg .cell { fill: var(--cell) }
svg .frame { fill: none; stroke: var(--grid) }
svg .row { text-anchor: end }
svg .column { text-anchor: middle }";

/// Pictures of more PEs have a cell for each of several PEs together.
const CELLS: usize = 128;
/// The longest side of the picture and of a cell, and the margin of its labels.
const SIDE: f64 = 560.0;
const CELL_SIDE: f64 = 64.0;
const MARGIN: f64 = 48.0;
/// The number of labels of a side.
const LABELS: usize = 16;

/// The page.
pub fn page(statistics: &JobStatistics) -> String {
    let tables: Vec<_> = statistics.tables().iter().map(ToString::to_string).collect();
    let title = format!("Statistics of a job of {} PEs", statistics.n_pes);
    let missing = match statistics.missing.is_empty() {
        true => String::new(),
        false => format!("<p>{}</p>\n", escape(&statistics.missing)),
    };
    let text = escape(&tables.join("\n"));
    document(&title, &format!("{missing}{}<pre>\n{text}</pre>\n", matrix(statistics)))
}

/// A page of a record with this title, and its body as markup.
pub fn document(title: &str, body: &str) -> String {
    pelago_report::document(title, "", STYLE, body)
}

/// The communication matrix as a picture: the darker a cell, the more bytes, on a logarithmic scale.
fn matrix(statistics: &JobStatistics) -> String {
    let n = statistics.n_pes;
    let each = n.div_ceil(CELLS);
    let cells = n.div_ceil(each.max(1));
    let mut bytes = vec![0u64; cells * cells];
    for pe in &statistics.pes {
        for &(peer, _, of_peer) in pe.peers.iter().filter(|peer| peer.0 < n && pe.pe < n) {
            bytes[pe.pe / each * cells + peer / each] += of_peer;
        }
    }
    let most = bytes.iter().copied().max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let side = (SIDE / cells as f64).min(CELL_SIDE);
    let inner = side * cells as f64;
    let whole = inner + MARGIN;
    let mut svg = format!(
        "<svg style=\"min-width: 0; max-width: {whole}px\" \
         viewBox=\"0 0 {whole} {whole}\" role=\"img\" aria-label=\"communication matrix\">\n\
         <rect class=\"frame\" x=\"{MARGIN}\" y=\"{MARGIN}\" width=\"{inner}\" height=\"{inner}\"/>\n"
    );
    let range = |cell: usize| match each {
        1 => format!("PE {cell}"),
        _ => format!("PEs {} to {}", cell * each, ((cell + 1) * each).min(n) - 1),
    };
    for (i, &of) in bytes.iter().enumerate().filter(|&(_, &of)| of > 0) {
        let (row, column) = (i / cells, i % cells);
        let strength = 0.08 + 0.92 * (1.0 + of as f64).ln() / (1.0 + most as f64).ln();
        let (x, y) = (MARGIN + side * column as f64, MARGIN + side * row as f64);
        let note = format!("{} with {}: {}", range(row), range(column), Bytes(of));
        let _ = writeln!(
            svg,
            "<rect class=\"cell\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{side:.2}\" height=\"{side:.2}\" \
             fill-opacity=\"{strength:.3}\"><title>{note}</title></rect>"
        );
    }
    for cell in (0..cells).step_by(cells.div_ceil(LABELS)) {
        let at = MARGIN + side * (cell as f64 + 0.5);
        let pe = cell * each;
        let _ = writeln!(svg, "<text class=\"row\" x=\"{}\" y=\"{:.1}\">{pe}</text>", MARGIN - 6.0, at + 4.0);
        let _ = writeln!(svg, "<text class=\"column\" x=\"{at:.1}\" y=\"{}\">{pe}</text>", MARGIN - 8.0);
    }
    let caption = "Communication matrix: bytes of the operations that a PE (row) started, by the other PE \
                   (column); logarithmic scale. Hover over a cell to see its bytes.";
    svg += "</svg>\n";
    figure_of(&svg, caption)
}
