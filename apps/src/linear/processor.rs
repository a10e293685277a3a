//! The computation of a PE on its blocks: the local kernel, the time that it takes where time is virtual, and
//! progress meanwhile. Invariant: of a symmetric or a lower triangular block only the lower triangle is read;
//! what stands above the diagonal is unspecified afterwards.

use std::time::Duration;

use pelago::prelude::*;

use super::block::{Block, BlockMut};
use super::kernel::Kernel;

/// The columns of a multiplication between two calls for progress.
const COLUMNS_A_STEP: usize = 512;

/// A PE's processor: the kernel, and where time is virtual its speed.
pub(crate) struct Processor<'w> {
    world: &'w World,
    kernel: Kernel,
    /// Operations a second of the simulated processor; none where computing itself takes the time.
    simulated_flops: Option<f64>,
}

impl<'w> Processor<'w> {
    /// The processor of this PE; if time is virtual, it computes `simulated_gflops`.
    pub(crate) fn new(world: &'w World, kernel: Kernel, simulated_gflops: f64) -> Self {
        let simulated_flops = world.is_simulated().then_some(1e9 * simulated_gflops);
        Processor { world, kernel, simulated_flops }
    }

    /// Adds `factor` times the product of `a` and `b` to `c`, and makes progress with the communication of
    /// this PE on the way.
    pub(crate) fn multiply(&self, factor: f64, a: Block<'_>, b: Block<'_>, c: &mut BlockMut<'_>) {
        let (rows, inner, columns) = (a.shape().rows, a.shape().columns, b.shape().columns);
        for first in (0..columns).step_by(COLUMNS_A_STEP) {
            let some = first..columns.min(first + COLUMNS_A_STEP);
            let (count, part) = (some.len(), b.part(0..inner, some.clone()));
            self.kernel.multiply(factor, a, part, 1.0, &mut c.part(0..rows, some));
            self.computed(2.0 * rows as f64 * inner as f64 * count as f64);
            self.world.progress();
        }
    }

    /// Subtracts the product of `a` and its transpose from the lower triangle of `c`.
    pub(crate) fn subtract_square(&self, a: Block<'_>, c: &mut BlockMut<'_>) {
        self.kernel.subtract_square(a, c);
        let (order, inner) = (a.shape().rows as f64, a.shape().columns as f64);
        self.computed(order * order * inner);
    }

    /// Solves X L^T = B, where `x` is B before and X afterwards.
    pub(crate) fn solve(&self, lower: Block<'_>, x: &mut BlockMut<'_>) {
        self.kernel.solve(lower, x);
        let (rows, order) = (x.shape().rows as f64, x.shape().columns as f64);
        self.computed(rows * order * order);
    }

    /// Factors a symmetric positive definite block into L L^T. If it is not positive definite, returns the
    /// first column whose leading block is not.
    pub(crate) fn factor(&self, a: &mut BlockMut<'_>) -> Result<(), usize> {
        let order = a.shape().rows as f64;
        let factored = self.kernel.factor(a);
        self.computed(order * order * order / 3.0);
        factored
    }

    /// Lets the time of a number of operations pass where time is virtual.
    fn computed(&self, operations: f64) {
        if let Some(flops) = self.simulated_flops {
            self.world.simulate_compute(Duration::from_secs_f64(operations / flops));
        }
    }
}
