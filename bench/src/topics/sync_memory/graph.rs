//! Graphs of the pairs of PEs that synchronise in teams of certain strides. Invariant: an edge is drawn
//! exactly if the schedule of some team's all-reduce by recursive doubling signals along it. Source: the
//! connectivity graphs of Welch and Venkata, "On Synchronisation and Memory Reuse in OpenSHMEM".

use std::f64::consts::TAU;
use std::fmt::Write;

use pelago::coll::MAILBOX_BYTES;
use pelago::coll::shape::{Operation, Shape};
use pelago::coll::table::find;
use pelago_report::page::{BLUE, GREEN, ORANGE, PURPLE};
use serde::Serialize;

use super::count::{Pairs, signalled};

/// The number of PEs of a graph.
pub const PES: usize = 32;
const COLOURS: [&str; 5] = ["#56606b", BLUE, GREEN, ORANGE, PURPLE];
/// The width and height of a graph, and the radius of its circle.
const SIDE: f64 = 440.0;
const HEIGHT: f64 = 484.0;
const RADIUS: f64 = 178.0;

/// A graph of neighbouring PEs.
pub struct Graph {
    /// The description of the teams.
    pub title: &'static str,
    /// The number of teams.
    pub teams: usize,
    /// The pairs of sender and receiver of signals.
    pairs: Pairs,
}

/// The size of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Size {
    /// The description of the teams.
    pub graph: &'static str,
    /// The number of PEs.
    pub pes: usize,
    /// Number of teams.
    pub teams: usize,
    /// The number of undirected pairs of neighbours.
    pub edges: usize,
    /// The maximum number of neighbours of a PE.
    pub neighbours_max: u64,
}

/// The graphs of the strides 2, 4 and 8, and of all these strides together.
pub fn graphs() -> Vec<Graph> {
    let strides: [(&str, Vec<usize>); 4] = [
        ("Stride 2", vec![2]),
        ("Stride 4", vec![4]),
        ("Stride 8", vec![8]),
        ("All strides", (1..=PES / 2).collect()),
    ];
    strides.into_iter().map(|(title, strides)| Graph::of(title, &strides)).collect()
}

impl Graph {
    /// The graph of the teams with these strides: for each stride, one maximal team from each start below the
    /// stride.
    fn of(title: &'static str, strides: &[usize]) -> Self {
        let mut graph = Graph { title, teams: 0, pairs: Pairs::new(PES) };
        for &stride in strides {
            for start in 0..stride {
                graph.add_team(&(start..PES).step_by(stride).collect::<Vec<_>>());
            }
        }
        graph
    }

    fn add_team(&mut self, members: &[usize]) {
        let doubling = find(Operation::AllReduce, "recursive_doubling").expect("the table has it");
        for (rank, &from) in members.iter().enumerate() {
            let shape = Shape::new(Operation::AllReduce, rank, members.len(), 1, size_of::<f64>());
            for to in signalled(&doubling.schedule(&shape, MAILBOX_BYTES)) {
                self.pairs.insert(from, members[to]);
                self.pairs.insert(members[to], from);
            }
        }
        self.teams += 1;
    }

    /// The size of the graph.
    pub fn size(&self) -> Size {
        let neighbours = self.pairs.out_degrees();
        Size {
            graph: self.title,
            pes: PES,
            teams: self.teams,
            edges: neighbours.iter().sum::<u64>() as usize / 2,
            neighbours_max: neighbours.iter().copied().max().unwrap_or(0),
        }
    }

    /// The edges from lower to higher PEs.
    fn edges(&self) -> impl Iterator<Item = (usize, usize)> {
        let all = (0..PES).flat_map(|a| (a + 1..PES).map(move |b| (a, b)));
        all.filter(|&(a, b)| self.pairs.contains(a, b))
    }

    /// Draws the graph as SVG elements, with its upper left corner at (`left`, `top`).
    fn draw(&self, svg: &mut String, (left, top): (f64, f64)) -> std::fmt::Result {
        let (centre, middle) = (left + SIDE / 2.0, top + 58.0 + RADIUS + 14.0);
        let place = |pe: usize, radius: f64| {
            let angle = TAU * (pe as f64 / PES as f64 - 0.25);
            (centre + radius * angle.cos(), middle + radius * angle.sin())
        };
        let Size { edges, neighbours_max, teams, .. } = self.size();
        writeln!(svg, r#"<text class="title x" x="{centre}" y="{}">{}</text>"#, top + 20.0, self.title)?;
        let text = format!("{teams} teams, {edges} edges, {neighbours_max} neighbours of a PE at most");
        writeln!(svg, r#"<text class="label x" x="{centre}" y="{}">{text}</text>"#, top + 40.0)?;
        let is_dense = edges > 4 * PES;
        for (a, b) in self.edges() {
            let ((x1, y1), (x2, y2)) = (place(a, RADIUS), place(b, RADIUS));
            // Chords are bent toward the centre, so that those on one side of the circle do not overlap.
            let pull = |from: f64, to: f64, origin: f64| origin + ((from + to) / 2.0 - origin) * 0.45;
            let (x, y) = (pull(x1, x2, centre), pull(y1, y2, middle));
            let (colour, width) = (colour_of(b - a), if is_dense { 0.9 } else { 1.5 });
            let style = format!("stroke-width:{width};stroke-opacity:0.75");
            let d = format!("M{x1:.1} {y1:.1}Q{x:.1} {y:.1} {x2:.1} {y2:.1}");
            let note = format!("<title>PE {a} and PE {b}</title>");
            writeln!(svg, r#"<path class="line" style="{style}" stroke="{colour}" d="{d}">{note}</path>"#)?;
        }
        let neighbours = self.pairs.out_degrees();
        for (pe, neighbours) in neighbours.iter().enumerate() {
            let ((x, y), (at, line)) = (place(pe, RADIUS), place(pe, RADIUS + 15.0));
            let note = format!("PE {pe}: {neighbours} neighbours");
            writeln!(
                svg,
                r##"<circle fill="#1b1f23" cx="{x:.1}" cy="{y:.1}" r="3.5"><title>{note}</title></circle>"##
            )?;
            writeln!(
                svg,
                r#"<text class="x label" font-size="11" x="{at:.1}" y="{:.1}">{pe}</text>"#,
                line + 4.0
            )?;
        }
        Ok(())
    }
}

/// The colour of an edge by the distance of its PEs: up to 1, 2, 4, 8, or more.
fn colour_of(distance: usize) -> &'static str {
    let around = distance.min(PES - distance);
    COLOURS[(around.ilog2() as usize).min(COLOURS.len() - 1)]
}

/// All graphs as one drawing, two in a row, with a legend of the colours.
pub fn svg(graphs: &[Graph]) -> String {
    let height = HEIGHT * graphs.len().div_ceil(2) as f64 + 34.0;
    let mut svg = String::new();
    let drawn = (|| {
        writeln!(svg, r#"<svg viewBox="0 0 940 {height}" role="img" aria-label="Connectivity of PEs">"#)?;
        for (index, graph) in graphs.iter().enumerate() {
            let (column, row) = (index % 2, index / 2);
            graph.draw(&mut svg, (20.0 + (SIDE + 20.0) * column as f64, HEIGHT * row as f64))?;
        }
        let (y, words) = (height - 14.0, ["1", "2, 3", "4 to 7", "8 to 15", "16"]);
        writeln!(svg, r#"<text class="label" x="150" y="{y}">PEs apart, round the circle:</text>"#)?;
        for (index, (word, colour)) in words.into_iter().zip(COLOURS).enumerate() {
            let x = 350.0 + 90.0 * index as f64;
            writeln!(svg, r#"<path class="line" stroke="{colour}" d="M{x} {}h24"/>"#, y - 4.0)?;
            writeln!(svg, r#"<text x="{}" y="{y}">{word}</text>"#, x + 30.0)?;
        }
        writeln!(svg, "</svg>")
    })();
    drawn.expect("a string takes all that is written to it");
    svg
}

#[cfg(test)]
mod tests {
    use pelago_report::check::assert_balanced;

    use super::*;

    #[test]
    fn a_stride_gives_each_pe_the_edges_of_its_team() {
        let sizes: Vec<_> = graphs().iter().map(Graph::size).collect();
        for (size, (teams, log)) in sizes.iter().zip([(2, 4), (4, 3), (8, 2)]) {
            assert_eq!((size.teams, size.edges, size.neighbours_max), (teams, PES * log / 2, log as u64));
        }
        let all = &sizes[3];
        assert_eq!(all.teams, (1..=16).sum::<usize>());
        assert!(sizes.iter().take(3).all(|size| size.edges < all.edges), "{sizes:?}");
    }

    #[test]
    fn every_edge_is_drawn_once() {
        let graphs = graphs();
        let svg = svg(&graphs);
        let names = assert_balanced(&svg, &[]);
        let edges: usize = graphs.iter().map(|graph| graph.size().edges).sum();
        assert_eq!(names.iter().filter(|name| **name == "path").count(), edges + COLOURS.len());
        assert_eq!(names.iter().filter(|name| **name == "circle").count(), 4 * PES);
    }
}
