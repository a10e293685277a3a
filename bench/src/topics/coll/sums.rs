//! Sums of doubles over all PEs: the all-reduce, and a loop over the mapped sources with one barrier, which
//! is the minimum for a program without all-reduce. Invariant: no source changes, so the loop may read them
//! as slices; the loop of each PE writes its own part of the target only.

use std::hint::black_box;
use std::slice;

use crate::base::prelude::*;
use pelago::Result;

/// Collective: measures `count` pairs of the all-reduce of `bytes` bytes and the loop.
///
/// # Errors
/// If the symmetric heap has no room for the sums.
pub fn all_reduce_pairs(
    world: &World,
    bytes: usize,
    count: usize,
    effort: Effort,
) -> anyhow::Result<Vec<Pair>> {
    let sums = Sums::new(world, bytes / size_of::<f64>())?;
    pairs(world, [sums.all_reduce(), sums.by_loop()], 1.0, count, effort)
}

/// Source and target of sums.
struct Sums<'w> {
    source: Symmetric<'w, f64>,
    target: Symmetric<'w, f64>,
}

impl<'w> Sums<'w> {
    /// Collective: allocates memory for sums of `doubles` doubles, with values whose sums are exact.
    fn new(world: &'w World, doubles: usize) -> Result<Self> {
        let (source, target) = (world.alloc(doubles)?, world.alloc_zeroed(doubles)?);
        let values: Vec<_> = (0..doubles).map(|index| (world.my_pe() * 1024 + index) as f64).collect();
        source.local().write(0, &values);
        world.barrier();
        Ok(Sums { source, target })
    }

    /// The all-reduce of the team of all PEs.
    fn all_reduce<'a>(&'a self) -> Part<'a> {
        let team = self.source.world().team();
        Box::new(move |count| {
            (0..count).try_for_each(|_| team.all_reduce(ReduceOp::Sum, &self.target, &self.source))
        })
    }

    /// The loop, and the barrier of all PEs.
    fn by_loop<'a>(&'a self) -> Part<'a> {
        Box::new(move |count| {
            for _ in 0..count {
                self.add();
                self.source.world().barrier();
            }
            Ok(())
        })
    }

    fn add(&self) {
        let (world, len) = (self.source.world(), self.source.len());
        let place = |array: &Symmetric<'_, f64>, pe| array.ptr(pe).expect("the PEs of a node map each other");
        // SAFETY: the arrays have `len` elements at each PE; no PE writes the sources, as the module
        // guarantees.
        let source = |pe| unsafe { slice::from_raw_parts(place(&self.source, pe), len) };
        // SAFETY: `Sums` keeps the array, and this is the only slice of this PE's part of the target.
        let target = unsafe { slice::from_raw_parts_mut(place(&self.target, world.my_pe()), len) };
        for ((sum, first), second) in target.iter_mut().zip(source(0)).zip(source(1)) {
            *sum = first + second;
        }
        for pe in 2..world.n_pes() {
            target.iter_mut().zip(source(pe)).for_each(|(sum, value)| *sum += value);
        }
        black_box(target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_give_the_same_sums() {
        let sums = spmd(3, |world| {
            let sums = Sums::new(world, 100).unwrap();
            let [one, other] = [sums.all_reduce(), sums.by_loop()].map(|mut part| {
                sums.target.local().write(0, &[-1.0; 100]);
                part(2).unwrap();
                sums.target.local().to_vec()
            });
            assert_eq!(one, other);
            one
        });
        let expected: Vec<_> = (0..100).map(|index| (3 * 1024 + 3 * index) as f64).collect();
        assert_eq!(sums.unwrap(), vec![expected; 3]);
    }
}
