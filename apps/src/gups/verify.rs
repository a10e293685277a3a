//! Verification by the rules of HPC Challenge: all updates are repeated without races, which reverts each of
//! them.
//! Invariant: a PE goes through the whole stream and changes only its own part, so the result does not depend
//! on any communication.

use pelago::Result;
use pelago::prelude::*;

use super::problem::Problem;
use crate::collect;

/// Collective: gives each word of the table its index.
pub(super) fn fill(world: &World, table: &Symmetric<'_, u64>, problem: &Problem) {
    let part = table.local();
    for (index, word) in problem.table.range(world.my_pe()).enumerate() {
        part.set(index, word);
    }
    world.barrier();
}

/// Collective: the number of words of the table that the updates have not changed correctly. All other words
/// have their initial values afterwards. `progress` gets the number of reverted updates.
pub(super) fn errors(
    world: &World,
    table: &mut Symmetric<'_, u64>,
    problem: &Problem,
    progress: &mut dyn FnMut(u64),
) -> Result<u64> {
    let range = problem.table.range(world.my_pe());
    let wrong = table.exclusive(|part| {
        let own = &mut part[..(range.end - range.start) as usize];
        problem.each_update(0..problem.stream.len(), progress, |update| {
            if let Some(word) = own.get_mut(problem.word(update).wrapping_sub(range.start) as usize) {
                *word ^= update;
            }
            Ok(())
        })?;
        Ok::<_, pelago::Error>(range.zip(own).filter(|(index, word)| index != *word).count())
    })??;
    collect::sum(world, wrong as u64)
}

#[cfg(test)]
mod tests {
    use super::super::method::Method;
    use super::super::update;
    use super::*;

    /// The errors of a run, after which `spoil` changes the table.
    fn errors_of(
        (pes, words_log2, updates): (usize, u32, u64),
        method: Method,
        spoil: impl Fn(&World, &Symmetric<'_, u64>) + Sync,
    ) -> Vec<u64> {
        let problem = Problem::new(words_log2, Some(updates), pes);
        let errors = spmd(pes, |world| {
            let mut table = world.alloc::<u64>(problem.table.longest() as usize).unwrap();
            fill(world, &table, &problem);
            update::run(world, &table, (&problem, method), &mut |_| ()).unwrap();
            spoil(world, &table);
            world.barrier();
            errors(world, &mut table, &problem, &mut |_| ()).unwrap()
        });
        errors.unwrap()
    }

    #[test]
    fn updates_that_are_all_made_leave_no_error() {
        for pes in [1, 2, 3, 4, 8] {
            for method in [Method::Atomics, Method::Messages] {
                assert_eq!(errors_of((pes, 10, 20_000), method, |_, _| ()), vec![0; pes], "{method:?}");
            }
        }
        assert_eq!(errors_of((5, 2, 999), Method::Messages, |_, _| ()), [0; 5], "PEs without words");
        assert_eq!(errors_of((1, 12, 50_000), Method::PutGet, |_, _| ()), [0], "nobody to race with");
    }

    #[test]
    fn every_word_that_is_wrong_counts() {
        let spoil = |world: &World, table: &Symmetric<'_, u64>| {
            if world.my_pe() == 0 {
                for (pe, index) in [(0, 3), (1, 0), (2, 11)] {
                    table.p(pe, index, !table.g(pe, index).unwrap()).unwrap();
                }
            }
        };
        assert_eq!(errors_of((3, 10, 5000), Method::Messages, spoil), [3; 3]);
    }
}
