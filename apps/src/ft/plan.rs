//! The plan of a 3-D FFT, as data: its stages, each a local FFT along one axis and a transposition within a
//! team, and then the FFT along the axis that is whole at last. With one transposition (1-D decomposition)
//! the rows that are sent are whole lines of the middle axis, and are transformed before; with two (2-D)
//! they are parts, and the second stage transforms the middle axis. Invariant: a plan follows from layout
//! and variant alone, so that its messages can be counted without a run.

use num_complex::Complex64;

use super::transposition::{Message, Pieces, Transposition};

/// One direction of the 3-D FFT, as one PE sees it.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// One transposition, or two.
    pub(super) transpositions: Vec<Transposition>,
    /// In the source: the place of this PE's first plane in the grid, and of the first line of its planes.
    pub(super) first_plane: usize,
    pub(super) first_line: usize,
}

/// A number of transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl Tally {
    /// The sum of both.
    pub(super) fn plus(self, other: Tally) -> Tally {
        Tally { messages: self.messages + other.messages, bytes: self.bytes + other.bytes }
    }

    /// The sum of all.
    pub(super) fn sum(all: &[Tally]) -> Tally {
        all.iter().fold(Tally::default(), |sum, one| sum.plus(*one))
    }

    /// `times` times as many.
    pub(super) fn times(self, times: u64) -> Tally {
        Tally { messages: self.messages * times, bytes: self.bytes * times }
    }
}

impl Plan {
    /// The last transposition, whose rows are lines of the outer axis' planes.
    pub(super) fn last(&self) -> &Transposition {
        &self.transpositions[self.transpositions.len() - 1]
    }

    /// Whether the rows that are sent are whole lines of the middle axis.
    pub(super) fn has_whole_rows(&self) -> bool {
        self.transpositions.len() == 1
    }

    /// Length of the axis that is transformed last.
    pub(super) fn outer_len(&self) -> usize {
        self.last().team.count * self.last().planes
    }

    /// The index in the target at which the line of the outer axis begins that comes from element `column`
    /// of row `row`. The target's planes are those of the inner axis, its lines those of the middle axis.
    pub(super) fn target(&self, row: usize, column: usize) -> usize {
        let Transposition { rows, row_len, .. } = *self.last();
        let line = if self.has_whole_rows() { row * row_len + column } else { column * rows + row };
        line * self.outer_len()
    }

    /// All messages of this PE, round by round.
    pub(super) fn messages(&self) -> impl Iterator<Item = Message> {
        self.transpositions.iter().flat_map(Transposition::messages)
    }

    /// The number of these messages, and their bytes.
    pub(super) fn tally(&self) -> Tally {
        self.messages().fold(Tally::default(), |sum, message| {
            sum.plus(Tally { messages: 1, bytes: (message.len * size_of::<Complex64>()) as u64 })
        })
    }

    /// Whether anything is computed while messages are under way.
    pub(super) fn overlaps(&self) -> bool {
        self.last().pieces != Pieces::Blocks
    }

    /// The part of the communication that can be hidden behind computation according to table 1 of Bell et
    /// al.: all but the first and the last of the messages of a round, nothing of a bulk exchange.
    pub(super) fn overlap_efficiency(&self) -> f64 {
        let rounds = self.transpositions.iter().map(|round| match round.pieces {
            Pieces::Blocks => 0.0,
            Pieces::Slabs | Pieces::Pencils => {
                let messages = (round.steps() * round.team.count) as f64;
                (1.0 - 2.0 / messages).max(0.0)
            }
        });
        rounds.sum::<f64>() / self.transpositions.len() as f64
    }
}

#[cfg(test)]
mod tests {
    //! The tables of the papers, from the plan alone.

    use super::super::classes::{Class, Problem};
    use super::super::grid::Grid;
    use super::super::layout::Layout;
    use super::super::variant::Variant;
    use super::*;

    const KIB: usize = 1 << 10;

    fn class_d() -> Problem {
        Class::from_name("D").unwrap().problem
    }

    /// Number of messages of a round, and the bytes of each, which are all equal.
    fn round(transposition: &Transposition) -> (usize, usize) {
        let lens: Vec<_> = transposition.messages().map(|message| message.len).collect();
        assert!(lens.iter().all(|len| *len == lens[0]));
        (lens.len(), 16 * lens[0])
    }

    fn rounds(layout: Layout, variant: Variant) -> Vec<(usize, usize)> {
        layout.forward(variant).transpositions.iter().map(round).collect()
    }

    #[test]
    fn class_d_on_256_pes_has_the_messages_of_bell_et_al() {
        for me in [0, 77, 255] {
            let layout = Layout::new(class_d(), 256, me).unwrap();
            assert_eq!(rounds(layout, Variant::Exchange), [(256, 512 * KIB)]);
            assert_eq!(rounds(layout, Variant::Slabs), [(1024, 128 * KIB)]);
            assert_eq!(rounds(layout, Variant::Pencils), [(8192, 16 * KIB)]);
            for variant in [Variant::Exchange, Variant::Slabs, Variant::Pencils] {
                assert_eq!(layout.forward(variant).tally().bytes, 128 << 20);
            }
        }
    }

    /// Table 1 of Bell et al.: messages of a thread, and overlap efficiency, of a cube of n^3.
    #[test]
    fn cubes_have_the_messages_and_the_overlap_efficiency_of_table_1() {
        for (n, pes) in [(8, 1), (8, 4), (64, 8), (512, 64)] {
            let problem = Problem { nx: n, ny: n, nz: n, iterations: 1 };
            let layout = Layout::new(problem, pes, pes - 1).unwrap();
            let rows = n * n / pes;
            for (variant, messages, efficiency) in [
                (Variant::Exchange, pes, 0.0),
                (Variant::Slabs, n, 1.0 - 2.0 / n as f64),
                (Variant::Pencils, rows, 1.0 - 2.0 * pes as f64 / (n * n) as f64),
            ] {
                for plan in [layout.forward(variant), layout.inverse(variant)] {
                    assert_eq!(plan.tally().messages as usize, messages, "{variant:?}");
                    assert!((plan.overlap_efficiency() - efficiency).abs() < 1e-12, "{variant:?}");
                }
            }
        }
    }

    /// 4096 x 2048 x 2048 on 128 x 128 threads: 128 KiB packed, 8 KiB as slabs.
    #[test]
    fn the_grid_of_the_deck_has_its_messages() {
        let problem = Class::from_name("E").unwrap().problem;
        for me in [0, 5000, 16383] {
            let layout = Layout::on_grid(problem, Grid { ty: 128, tz: 128 }, me).unwrap();
            assert_eq!(rounds(layout, Variant::PackedSlabs), [(128, 128 * KIB); 2]);
            assert_eq!(rounds(layout, Variant::Slabs), [(2048, 8 * KIB); 2]);
        }
    }

    /// The formulas of the deck for both rounds, on grids that are not square.
    #[test]
    fn every_grid_has_the_messages_of_the_formulas() {
        let Problem { nx, ny, nz, .. } = class_d();
        for (ty, tz) in [(16, 16), (16, 32), (64, 32), (64, 128), (1, 8), (8, 1)] {
            let layout = Layout::on_grid(class_d(), Grid { ty, tz }, ty * tz - 1).unwrap();
            let packed =
                [(ty, 16 * (nz / tz) * (ny / ty) * (nx / ty)), (tz, 16 * (nz / tz) * (nx / ty) * (ny / tz))];
            let slabs =
                [(nz / tz * ty, 16 * (ny / ty) * (nx / ty)), (nz / tz * tz, 16 * (nx / ty) * (ny / tz))];
            assert_eq!(rounds(layout, Variant::PackedSlabs), packed);
            assert_eq!(rounds(layout, Variant::Slabs), slabs);
        }
    }

    /// Algorithms 1 and 2 of the deck, written down once more: the threads of both rounds in their order.
    #[test]
    fn rounds_go_to_the_threads_of_the_deck() {
        let (grid, me) = (Grid { ty: 4, tz: 2 }, 6);
        let (plane, row) = (me / grid.ty, me % grid.ty);
        let problem = Problem { nx: 16, ny: 16, nz: 16, iterations: 1 };
        let plan = Layout::on_grid(problem, grid, me).unwrap().forward(Variant::Slabs);
        let peers = |round: &Transposition| round.messages().map(|message| message.pe).collect::<Vec<_>>();
        let first: Vec<_> = (1..=grid.ty).map(|t| plane * grid.ty + (t + row) % grid.ty).collect();
        let second: Vec<_> = (1..=grid.tz).map(|t| (t + plane) % grid.tz * grid.ty + row).collect();
        assert_eq!(peers(&plan.transpositions[0]), first.repeat(problem.nz / grid.tz));
        assert_eq!(peers(&plan.transpositions[1]), second.repeat(problem.nz / grid.tz));
    }
}
