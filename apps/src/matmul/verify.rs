//! Verification of a product: C x is compared with A (B x) for a random x. Invariant: the check uses its own
//! loops, and no panel.

use pelago::Result;
use pelago::prelude::*;

use super::summa::Multiplication;
use crate::linear::block::Block;
use crate::linear::elements::Matrix;
use crate::linear::layout::Layout;
use crate::linear::residual::{Part, Triangle, residual};

/// The outcome of a check; the same on every PE.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    /// The largest difference, as a part of its bound.
    pub(super) residual: f64,
    /// The sum of the absolute values of C x.
    pub(super) checksum: f64,
}

/// Collective: checks the product.
pub(super) fn check(world: &World, layout: &Layout, multiplication: &Multiplication<'_>) -> Result<Check> {
    let (rows, columns) = (layout.row_indices(), layout.column_indices());
    let (x, operands) = (Matrix::X.vector(layout.n), multiplication.operands());
    let part = |elements| Part { rows: &rows, columns: &columns, elements };
    let [a, b] = [0, 1].map(|side: usize| part(Block::of(&operands[side].0, operands[side].1)));
    let apply = |part: Part<'_>, value, vector: &[f64]| part.apply(world, Triangle::Both, value, vector);
    let found = apply(part(multiplication.product()), |c| c, &x)?;
    let expected = apply(a, |a| a, &apply(b, |b| b, &x)?)?;
    let absolute: Vec<_> = x.iter().map(|x| x.abs()).collect();
    let scale = apply(a, f64::abs, &apply(b, f64::abs, &absolute)?)?;
    let checksum = found.iter().map(|sum| sum.abs()).sum();
    Ok(Check { residual: residual(&found, &expected, &scale), checksum })
}

#[cfg(test)]
mod tests {
    use pelago::Spmd;
    use pelago::sim::SimParams;

    use super::*;
    use crate::choice::Named;
    use crate::linear::grid::Grid;
    use crate::linear::kernel::Kernel;
    use crate::linear::naive;
    use crate::linear::processor::Processor;
    use crate::matmul::variant::Variant;

    /// Whether the product of this PE is the one by the definition.
    fn is_right(layout: &Layout, multiplication: &Multiplication<'_>) -> bool {
        let n = layout.n;
        let whole = |of: Matrix| (0..n * n).map(|place| of.element(place % n, place / n)).collect::<Vec<_>>();
        let expected = naive::product(&whole(Matrix::A), &whole(Matrix::B), n);
        let product = multiplication.product();
        layout.column_indices().iter().enumerate().all(|(column, j)| {
            let near =
                |(row, i): (usize, &usize)| (product.get(row, column) - expected[j * n + i]).abs() < 1e-12;
            layout.row_indices().iter().enumerate().all(near)
        })
    }

    /// Runs a variant twice on each PE; returns the seconds of the second time.
    fn run(spmd: &Spmd, grid: &str, (n, block): (usize, usize), variant: Variant) -> f64 {
        let grid = Grid::from_name(grid).unwrap();
        let outcomes = spmd.run(|world| {
            let layout = Layout::new(n, block, grid, world.my_pe());
            let processor = Processor::new(world, Kernel::Rust, 1.0);
            let mut multiplication = Multiplication::new(world, layout).unwrap();
            multiplication.run(&processor, variant).unwrap();
            world.barrier();
            let start = world.wtime();
            multiplication.run(&processor, variant).unwrap();
            world.barrier();
            let seconds = (world.wtime() - start).as_secs_f64();
            let check = check(world, &layout, &multiplication).unwrap();
            assert!(check.residual < 1.0 && check.checksum > 0.0, "{check:?}");
            assert!(is_right(&layout, &multiplication), "PE {} of {grid}: {variant:?}", world.my_pe());
            seconds
        });
        outcomes.unwrap_or_else(|error| panic!("{grid}, {n} by {block}, {variant:?}: {error}"))[0]
    }

    const SIZES: [(usize, usize); 4] = [(1, 1), (12, 4), (29, 5), (16, 40)];

    #[test]
    fn products_are_those_of_the_definition_on_all_grids() {
        for (pes, grid) in
            [(1, "1x1"), (2, "1x2"), (2, "2x1"), (3, "3x1"), (4, "2x2"), (4, "1x4"), (6, "2x3"), (6, "3x2")]
        {
            for (size, variant) in SIZES.iter().flat_map(|size| Variant::ALL.iter().map(move |of| (size, of)))
            {
                run(&Spmd::new(pes), grid, *size, *variant);
            }
        }
    }

    #[test]
    fn a_network_that_reorders_changes_no_product() {
        for (seed, variant) in (0..4).flat_map(|seed| Variant::ALL.iter().map(move |of| (seed, of))) {
            run(&Spmd::new(6).sim(SimParams::chaos(seed)), "2x3", (17, 3), *variant);
        }
        let nodes = SimParams::chaos(7).on_nodes(4, 2);
        Variant::ALL.iter().for_each(|variant| {
            run(&Spmd::new(4).sim(nodes.clone()), "2x2", (10, 3), *variant);
        });
    }

    /// Where a panel takes about as long as its multiplication.
    #[test]
    fn panels_that_come_early_hide_the_network() {
        let network = SimParams { bandwidth_bytes_per_second: 4e8, ..SimParams::default() };
        let [blocking, prefetch, one_sided] = [Variant::Blocking, Variant::Prefetch, Variant::OneSided]
            .map(|variant| run(&Spmd::new(4).sim(network.clone()), "2x2", (64, 8), variant));
        let compute = 2.0 * 64.0_f64.powi(3) / 4.0 / 1e9;
        assert!(prefetch < 0.8 * blocking && one_sided < 0.8 * blocking, "{blocking} {prefetch} {one_sided}");
        assert!(prefetch > compute && one_sided > compute, "{compute}: {prefetch} {one_sided}");
    }

    #[test]
    fn one_wrong_element_is_found() {
        let residuals = spmd(3, |world| {
            let layout = Layout::new(40, 7, Grid { rows: 1, columns: 3 }, world.my_pe());
            let mut multiplication = Multiplication::new(world, layout).unwrap();
            multiplication.run(&Processor::new(world, Kernel::Rust, 1.0), Variant::Blocking).unwrap();
            if world.my_pe() == 1 {
                multiplication.product_mut()[11] += 1e-9;
            }
            check(world, &layout, &multiplication).unwrap().residual
        });
        assert!(residuals.unwrap().iter().all(|residual| *residual > 1.0));
    }
}
