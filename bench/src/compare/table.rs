//! The comparison as text. Invariant: columns stand in line, numbers right; every figure has its unit in the
//! heading, and a ratio stands beside what it is a ratio to.

use super::coll::Root;
use super::programs::Side;
use super::rows::{Gate, Row, size};

/// What was measured and how.
pub fn heading(pes: usize, cores: usize, root: Root, one_way_ns: Option<f64>) -> String {
    let (binding, figure) = match pes <= cores {
        true => ("bound to cores", "shortest"),
        false => ("not bound, Open MPI yielding (mpi_yield_when_idle)", "middle"),
    };
    let root = match root {
        Root::Turn => "Every PE is the root in turn",
        Root::Fixed => "PE 0 is always the root, and may run ahead",
    };
    let one_way = match one_way_ns {
        Some(ns) => format!(" One way of 8 bytes: {} us.", microseconds(ns)),
        None => String::new(),
    };
    format!(
        "{pes} PEs on {cores} cores, {binding}. {root}.\n\
         Microseconds an operation: the {figure} of many short blocks, the median over the rounds;\n\
         in brackets the median of the ratios (ours to theirs). Size: bytes of a block. Copies: what an\n\
         operation must write at a PE, copied from where it lies, by all PEs at once.{one_way}\n\n"
    )
}

/// The rows; a blank line after them.
pub fn rows(rows: &[Row]) -> String {
    let mut sides: Vec<_> = rows.iter().flat_map(|row| row.sides.keys().copied()).collect();
    sides.sort_unstable();
    sides.dedup();
    let names = sides.iter().map(|side| match side {
        Side::Pelago => side.name().to_owned(),
        _ => format!("{} (ratio)", side.name()),
    });
    let mut lines = vec![["operation", "size"].map(str::to_owned).into_iter().chain(names).collect()];
    for row in rows {
        let cells = sides.iter().map(|side| match row.sides.get(side) {
            None => "-".to_owned(),
            Some(figures) => match figures.ratio {
                None => microseconds(figures.ns),
                Some(ratio) => format!("{} ({ratio:.2})", microseconds(figures.ns)),
            },
        });
        lines.push([row.operation.clone(), size(row.bytes)].into_iter().chain(cells).collect());
    }
    aligned(&lines, 1)
}

/// The gates with their verdicts.
pub fn gates(gates: &[Gate]) -> String {
    let names = ["gate", "ratio", "bound", "verdict"].map(str::to_owned).to_vec();
    let line = |gate: &Gate| {
        let verdict = if gate.is_kept() { "PASS" } else { "FAIL" };
        vec![
            gate.name.clone(),
            format!("{:.3}", gate.ratio),
            format!("{:.3}", gate.bound),
            verdict.to_owned(),
        ]
    };
    let lines: Vec<_> = [names].into_iter().chain(gates.iter().map(line)).collect();
    aligned(&lines, 1)
}

/// With three digits, or all that stand before the point.
fn microseconds(ns: f64) -> String {
    let us = ns / 1e3;
    let decimals = match us {
        ..0.9995 => 3,
        0.9995..9.995 => 2,
        9.995..99.95 => 1,
        _ => 0,
    };
    format!("{us:.decimals$}")
}

/// Lines of cells in columns; the first `words` stand left.
fn aligned(lines: &[Vec<String>], words: usize) -> String {
    let width = |column: usize| lines.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..lines[0].len()).map(width).collect();
    let mut text = String::new();
    for cells in lines {
        let cells = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < words { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text += cells.collect::<Vec<_>>().join("   ").trim_end();
        text.push('\n');
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::rows::tests::examples;

    #[test]
    fn rows_stand_in_columns_with_their_ratios() {
        let text = rows(&examples()[..4]);
        let cells = |line: usize| text.lines().nth(line).unwrap().split_whitespace().collect::<Vec<_>>();
        let names = "operation size Pelago Open MPI (ratio) OSHMEM (ratio) copies (ratio)";
        assert_eq!(cells(0).join(" "), names);
        assert_eq!(cells(2), ["all-reduce", "8", "B", "0.100", "0.150", "(0.67)", "0.300", "(0.33)", "-"]);
        assert_eq!(cells(4), ["gather", "8", "B", "0.100", "0.150", "(0.67)", "-", "0.050", "(2.00)"]);
        let widths: Vec<_> = text.lines().take(5).map(str::len).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    }

    #[test]
    fn gates_say_pass_or_fail() {
        let gate = |ratio| Gate { name: "2 PEs, barrier, best".to_owned(), ratio, bound: 0.9 };
        let text = gates(&[gate(0.5), gate(1.0)]);
        let ends: Vec<_> = text.lines().map(|line| line.split_whitespace().last()).collect();
        assert_eq!(ends, [Some("verdict"), Some("PASS"), Some("FAIL"), None]);
    }

    #[test]
    fn headings_tell_how_and_what() {
        let crowded = heading(4, 2, Root::Fixed, None);
        assert!(crowded.contains("not bound") && crowded.contains("middle") && crowded.contains("run ahead"));
        let bound = heading(2, 2, Root::Turn, Some(56.0));
        assert!(bound.contains("bound to cores") && bound.contains("shortest") && bound.contains("0.056 us"));
    }
}
