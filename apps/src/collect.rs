//! Exchanges of values among all PEs. Invariant: all PEs get the same values.

use pelago::Result;
use pelago::prelude::*;

/// Collective: every PE's `own`, in the order of the PEs. All have the same length.
pub(crate) fn collect<T: Element>(world: &World, own: &[T]) -> Result<Vec<Vec<T>>> {
    let shared = world.alloc::<T>(own.len())?;
    shared.local().write(0, own);
    world.barrier();
    let mut all = vec![own.to_vec(); world.n_pes()];
    for (pe, part) in all.iter_mut().enumerate() {
        shared.get(pe, 0, part)?;
    }
    world.barrier();
    Ok(all)
}

/// Collective: the sum of every PE's `own`, wrapping around.
pub(crate) fn sum(world: &World, own: u64) -> Result<u64> {
    Ok(collect(world, &[own])?.iter().fold(0, |sum, words| sum.wrapping_add(words[0])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_learn_the_words_of_all() {
        let told = spmd(3, |world| {
            let me = world.my_pe() as u64;
            (collect(world, &[me, 10 * me]).unwrap(), sum(world, me + 1).unwrap())
        });
        let all = vec![vec![0, 0], vec![1, 10], vec![2, 20]];
        assert_eq!(told.unwrap(), [(all.clone(), 6), (all.clone(), 6), (all, 6)]);
    }
}
