//! Verification of a factorisation: A x is compared with L (L^T x) for a random x. Invariant: the check uses
//! its own loops, and no panel.

use pelago::Result;
use pelago::prelude::*;

use super::factorisation::{Factorisation, fill, shape};
use crate::buffer::Buffer;
use crate::linear::block::Block;
use crate::linear::elements::Matrix;
use crate::linear::layout::Layout;
use crate::linear::residual::{Part, Triangle, residual, sum};

/// The outcome of a check; the same on every PE.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    /// The largest difference, as a part of its bound.
    pub(super) residual: f64,
    /// The logarithm of the determinant of the matrix.
    pub(super) log_determinant: f64,
}

/// Collective: checks the factor of the random matrix that has `diagonal` on its diagonal.
pub(super) fn check(
    world: &World,
    layout: &Layout,
    factorisation: &Factorisation<'_>,
    diagonal: f64,
) -> Result<Check> {
    let (rows, columns) = (layout.row_indices(), layout.column_indices());
    let mut matrix = Buffer::new(rows.len() * columns.len());
    fill(&mut matrix, layout, diagonal);
    let part = |elements| Part { rows: &rows, columns: &columns, elements };
    let (a, factor) = (part(Block::of(&matrix, shape(layout))), part(factorisation.factor()));
    let both = |value, x: &[f64]| {
        let below = factor.transposed().apply(world, Triangle::Upper, value, x)?;
        factor.apply(world, Triangle::Lower, value, &below)
    };
    let x = Matrix::X.vector(layout.n);
    let absolute: Vec<_> = x.iter().map(|x| x.abs()).collect();
    let found = both(|l| l, &x)?;
    let expected = a.apply(world, Triangle::Both, |a| a, &x)?;
    let scale = both(f64::abs, &absolute)?;
    let mut logarithms = 0.0;
    for (column, j) in columns.iter().enumerate() {
        if let Some(row) = rows.iter().position(|i| i == j) {
            logarithms += 2.0 * factor.elements.get(row, column).ln();
        }
    }
    let log_determinant = sum(world, &[logarithms])?[0];
    Ok(Check { residual: residual(&found, &expected, &scale), log_determinant })
}

#[cfg(test)]
mod tests {
    use pelago::Spmd;
    use pelago::sim::SimParams;

    use super::*;
    use crate::choice::Named;
    use crate::cholesky::factorisation::element;
    use crate::cholesky::panel::Final;
    use crate::cholesky::transport::Transport;
    use crate::linear::grid::Grid;
    use crate::linear::kernel::Kernel;
    use crate::linear::naive;
    use crate::linear::processor::Processor;

    /// The whole matrix by columns.
    fn whole(n: usize, diagonal: f64) -> Vec<f64> {
        (0..n * n).map(|place| element(place % n, place / n, diagonal)).collect()
    }

    /// Whether the factor of this PE is the one by the definition.
    fn is_right(layout: &Layout, factor: Block<'_>, expected: &[f64]) -> bool {
        layout.column_indices().iter().enumerate().all(|(column, j)| {
            layout
                .row_indices()
                .iter()
                .enumerate()
                .all(|(row, i)| i < j || (factor.get(row, column) - expected[j * layout.n + i]).abs() < 1e-12)
        })
    }

    /// Factors two matrices in turn on each PE; returns the outcome and the seconds of the second time.
    fn run(
        spmd: &Spmd,
        grid: &str,
        (n, block): (usize, usize),
        (transport, diagonal): (Transport, f64),
    ) -> (Final<()>, f64) {
        let grid = Grid::from_name(grid).unwrap();
        let expected = naive::factor(&whole(n, diagonal), n);
        let outcomes = spmd.run(|world| {
            let layout = Layout::new(n, block, grid, world.my_pe());
            let processor = Processor::new(world, Kernel::Rust, 1.0);
            let mut factorisation = Factorisation::new(world, layout, transport).unwrap();
            let mut last = (Ok(()), 0.0);
            for diagonal in [n as f64 + 1.0, diagonal] {
                factorisation.fill(diagonal);
                world.barrier();
                let start = world.wtime();
                last.0 = factorisation.run(&processor).unwrap();
                world.barrier();
                last.1 = (world.wtime() - start).as_secs_f64();
            }
            assert_eq!(last.0, expected.as_ref().map(|_| ()).map_err(|column| *column));
            if let Ok(expected) = &expected {
                assert!(is_right(&layout, factorisation.factor(), expected), "PE {}", world.my_pe());
                let check = check(world, &layout, &factorisation, diagonal).unwrap();
                let logarithms: f64 = (0..n).map(|i| 2.0 * expected[i * n + i].ln()).sum();
                assert!(check.residual < 1.0, "{check:?}");
                assert!((check.log_determinant - logarithms).abs() < 1e-9, "{check:?} {logarithms}");
            }
            last
        });
        outcomes.unwrap_or_else(|error| panic!("{grid}, {n} by {block}, {transport:?}: {error}"))[0]
    }

    const SIZES: [(usize, usize); 5] = [(1, 1), (12, 4), (29, 5), (16, 40), (70, 34)];
    const GRIDS: [(usize, &str); 8] =
        [(1, "1x1"), (2, "1x2"), (2, "2x1"), (3, "3x1"), (4, "2x2"), (4, "1x4"), (6, "2x3"), (6, "3x2")];

    #[test]
    fn factors_are_those_of_the_definition_on_all_grids() {
        for (pes, grid) in GRIDS {
            for (size, transport) in
                SIZES.iter().flat_map(|size| Transport::ALL.iter().map(move |of| (size, of)))
            {
                let _ = run(&Spmd::new(pes), grid, *size, (*transport, size.0 as f64));
            }
        }
    }

    #[test]
    fn the_first_column_that_is_not_definite_is_named_on_all_pes() {
        let mut columns = Vec::new();
        for ((pes, grid), transport) in
            GRIDS.iter().flat_map(|grid| Transport::ALL.iter().map(move |of| (grid, of)))
        {
            for diagonal in [-1.0, 0.5, 1.25, 1.5] {
                let (outcome, _) = run(&Spmd::new(*pes), grid, (29, 5), (*transport, diagonal));
                columns.push(outcome.unwrap_err());
            }
        }
        columns.sort_unstable();
        columns.dedup();
        assert!(columns.len() >= 3 && columns[0] == 0, "{columns:?}");
    }

    #[test]
    fn a_network_that_reorders_changes_no_factor() {
        for (seed, transport) in (0..4).flat_map(|seed| Transport::ALL.iter().map(move |of| (seed, of))) {
            let _ = run(&Spmd::new(6).sim(SimParams::chaos(seed)), "2x3", (17, 3), (*transport, 17.0));
            let _ = run(&Spmd::new(4).sim(SimParams::chaos(seed)), "2x2", (17, 3), (*transport, 1.0));
        }
        let nodes = SimParams::chaos(7).on_nodes(4, 2);
        for transport in Transport::ALL {
            let _ = run(&Spmd::new(4).sim(nodes.clone()), "2x2", (10, 3), (*transport, 10.0));
        }
    }

    /// With two PEs in a row of the grid, the time of the panels of one is hidden behind the other's.
    #[test]
    fn look_ahead_uses_both_pes() {
        for transport in Transport::ALL {
            let size = (96, 8);
            let seconds = |pes, grid| {
                let spmd = Spmd::new(pes).sim(SimParams::default());
                run(&spmd, grid, size, (*transport, 96.0)).1
            };
            let (alone, two) = (seconds(1, "1x1"), seconds(2, "1x2"));
            assert!(two < 0.7 * alone, "{transport:?}: {alone} {two}");
        }
    }

    #[test]
    fn one_wrong_element_is_found() {
        let residuals = spmd(3, |world| {
            let layout = Layout::new(40, 7, Grid { rows: 1, columns: 3 }, world.my_pe());
            let mut factorisation = Factorisation::new(world, layout, Transport::OneSided).unwrap();
            factorisation.fill(40.0);
            factorisation.run(&Processor::new(world, Kernel::Rust, 1.0)).unwrap().unwrap();
            if world.my_pe() == 1 {
                let mut part = factorisation.part_mut();
                let wrong = part.get(30, 2) + 1e-9;
                part.set(30, 2, wrong);
            }
            check(world, &layout, &factorisation, 40.0).unwrap().residual
        });
        assert!(residuals.unwrap().iter().all(|residual| *residual > 1.0));
    }
}
