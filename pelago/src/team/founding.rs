//! Founding: a team made by its members alone. No other PE takes part, and no team has to be there before
//! (OpenSHMEM's active sets).
//!
//! Each member sends the place of its block to each other member, through a mailbox: a symmetric array of
//! three words for each PE. Sender S and receiver R of one message use
//!
//! ```text
//! at R: | place: S's block | key: of the team, written last; 0 once R has taken it |      at index of S
//! at S: | busy: from before S writes until R has taken the message |                      at index of R
//! ```
//!
//! Invariant: a message is written only while the sender holds its `busy` word for that receiver. A thread
//! that takes a message for another thread puts it aside, so threads of one PE may found different teams at
//! once, in any order.

use crate::array::symmetric::Symmetric;
use crate::team::Team;
use crate::world::World;
use crate::{Comparison, Pe};
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::base::kind::ObjectKind;
use pelago_core::base::locked::locked;
use pelago_core::coll::team::TeamCore;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// Words of a mailbox for each PE.
const WORDS: usize = 3;
const PLACE: usize = 0;
const KEY: usize = 1;
const BUSY: usize = 2;

/// Where members found teams: see [`World::foundry`].
pub struct Foundry<'w> {
    boxes: Symmetric<'w, u64>,
    /// Messages that were taken for another thread of this PE, by sender and key.
    aside: Mutex<HashMap<(Pe, u64), u64>>,
}

impl World {
    /// Makes a foundry. Collective, a barrier.
    ///
    /// # Errors
    /// If the heap has no room for it.
    pub fn foundry(&self) -> Result<Foundry<'_>> {
        let boxes = self.alloc_zeroed_as(ObjectKind::Foundry, WORDS * self.n_pes())?;
        Ok(Foundry { boxes, aside: Mutex::default() })
    }
}

impl<'w> Foundry<'w> {
    /// Makes the team of these PEs, this one among them. Only they make the call, with the same list. `key`
    /// tells the team from all others that this foundry has made, and is not 0. The team's memory is given
    /// back with the world.
    ///
    /// # Errors
    /// If the pool has no room.
    ///
    /// # Panics
    /// If this PE is not in the list, or a member cannot come any more.
    #[track_caller]
    pub fn found(&self, pes: &[Pe], key: u64) -> Result<Team<'w>> {
        let world = self.boxes.world();
        let (me, bytes) = (world.my_pe(), Team::founded_block_bytes(world, pes.len()));
        assert!(
            pes.contains(&me) && key != 0,
            "PE {me} founds a team that it is not in, or one without a key"
        );
        let place = world.core().pool_alloc(bytes).ok_or(ErrorKind::PoolExhausted {
            me,
            operation: "found",
            pe: me,
            asked_bytes: bytes,
        })?;
        for &pe in pes.iter().filter(|&&pe| pe != me) {
            self.send(pe, key, place as u64)?;
        }
        let place_of = |pe: Pe| if pe == me { Ok(place as u64) } else { self.receive(pe, key) };
        let places = pes.iter().map(|&pe| Ok((pe, place_of(pe)?))).collect::<Result<Vec<_>>>()?;
        let bases = world.core().checked_blocks(places.into_iter(), bytes);
        Ok(Team { world, core: TeamCore::founded(world.core(), pes, bases) })
    }

    fn send(&self, pe: Pe, key: u64, place: u64) -> Result<()> {
        let world = self.boxes.world();
        let (me, busy) = (world.my_pe(), pe * WORDS + BUSY);
        while self.boxes.compare_swap(me, busy, 0, 1)? != 0 {
            self.boxes.local().wait(busy, Comparison::Eq, 0);
        }
        self.boxes.atomic_set(pe, me * WORDS + PLACE, place)?;
        world.fence();
        self.boxes.atomic_set(pe, me * WORDS + KEY, key)
    }

    fn receive(&self, pe: Pe, key: u64) -> Result<u64> {
        let at = pe * WORDS + KEY;
        loop {
            self.boxes.local().wait_until(at, |found| found != 0 || self.aside().contains_key(&(pe, key)));
            let mut aside = self.aside();
            if let Some(place) = aside.remove(&(pe, key)) {
                return Ok(place);
            }
            self.take(pe, &mut aside)?;
        }
    }

    /// Takes the message of a PE, if it is still there, and lets the PE send the next one.
    fn take(&self, pe: Pe, aside: &mut HashMap<(Pe, u64), u64>) -> Result<()> {
        let world = self.boxes.world();
        let (me, first) = (world.my_pe(), pe * WORDS);
        let key = self.boxes.atomic_fetch(me, first + KEY)?;
        if key != 0 {
            aside.insert((pe, key), self.boxes.atomic_fetch(me, first + PLACE)?);
            self.boxes.atomic_set(me, first + KEY, 0)?;
            world.fence();
            self.boxes.atomic_set(pe, me * WORDS + BUSY, 0)?;
        }
        Ok(())
    }

    fn aside(&self) -> MutexGuard<'_, HashMap<(Pe, u64), u64>> {
        locked(&self.aside)
    }
}

impl std::fmt::Debug for Foundry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Foundry").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Collective, ReduceOp, Result, spmd};

    #[test]
    fn members_alone_found_teams_that_overlap() {
        let sums = spmd(5, |world| -> Result<Vec<u64>> {
            let foundry = world.foundry()?;
            let (sum, mine) = (world.alloc_zeroed::<u64>(1)?, world.alloc_zeroed::<u64>(1)?);
            mine.local().set(0, 1 << world.my_pe());
            let sets: [&[usize]; 4] = [&[0, 2, 4], &[4, 3, 2, 1, 0], &[1], &[2, 3]];
            let mut sums = Vec::new();
            for (set, key) in sets.iter().zip(1..).filter(|(set, _)| set.contains(&world.my_pe())) {
                let team = foundry.found(set, key)?;
                assert_eq!(team.my_rank(), set.iter().position(|&pe| pe == world.my_pe()).unwrap());
                team.all_reduce(ReduceOp::Sum, &sum, &mine)?;
                sums.push(sum.local().get(0));
            }
            Ok(sums)
        });
        let sums: Vec<_> = sums.unwrap().into_iter().map(Result::unwrap).collect();
        assert_eq!(sums, [vec![21, 31], vec![31, 2], vec![21, 31, 12], vec![31, 12], vec![21, 31]]);
    }

    #[test]
    fn threads_found_teams_in_any_order() {
        spmd(2, |world| -> Result<()> {
            let foundry = world.foundry()?;
            let found = |key: u64| foundry.found(&[0, 1], key).map(|team| team.sync());
            match world.my_pe() {
                0 => std::thread::scope(|scope| {
                    let threads = [1, 2, 3].map(|key| scope.spawn(move || found(key)));
                    threads.into_iter().try_for_each(|thread| thread.join().unwrap())
                }),
                _ => [3, 1, 2].into_iter().try_for_each(found),
            }
        })
        .unwrap()
        .into_iter()
        .collect::<Result<()>>()
        .unwrap();
    }
}
