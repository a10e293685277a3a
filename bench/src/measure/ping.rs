//! Ping and acknowledgement between PEs 0 and 1. Invariant: a flag counts the rounds, so that no message is
//! taken for the next one. After the ping-ack benchmark of Bell, Bonachea, Nishtala and Yelick (2006), with
//! the difference that the target also reads the bytes, as without it they would not travel at all.

use std::cell::{Cell, RefCell};

use pelago::Result;
use pelago::prelude::*;

use super::ensemble::{Part, rest};

/// The memory that the two PEs write to each other.
pub(super) struct PingAck<'w> {
    data: Symmetric<'w, u64>,
    flag: Symmetric<'w, u64>,
    private: RefCell<Vec<u64>>,
    round: Cell<u64>,
}

impl<'w> PingAck<'w> {
    /// Collective: memory for messages of up to `bytes_max`.
    ///
    /// # Errors
    /// If the symmetric heap has no room for it.
    pub(super) fn new(world: &'w World, bytes_max: usize) -> Result<Self> {
        let words = (bytes_max / size_of::<u64>()).max(1);
        Ok(PingAck {
            data: world.alloc_zeroed(words)?,
            flag: world.alloc_zeroed(1)?,
            private: RefCell::new(vec![1; words]),
            round: Cell::new(0),
        })
    }

    /// Rounds of: PE 0 puts `bytes`, fences, raises PE 1's flag; PE 1 waits for it, reads the bytes and
    /// raises PE 0's; PE 0 waits for that. With 0 bytes the flags alone travel.
    pub(super) fn rounds<'a>(&'a self, bytes: usize) -> Part<'a> {
        let words = bytes / size_of::<u64>();
        match self.flag.world().my_pe() {
            0 => Box::new(move |count| (0..count).try_for_each(|_| self.ping(words))),
            1 => Box::new(move |count| (0..count).try_for_each(|_| self.acknowledge(words))),
            _ => rest(),
        }
    }

    #[inline]
    fn ping(&self, words: usize) -> Result<()> {
        let round = self.next_round();
        if words > 0 {
            self.data.put(1, 0, &self.private.borrow()[..words])?;
            self.flag.world().fence();
        }
        self.flag.p(1, 0, round)?;
        self.flag.local().wait_until(0, |value| value >= round);
        Ok(())
    }

    #[inline]
    fn acknowledge(&self, words: usize) -> Result<()> {
        let round = self.next_round();
        self.flag.local().wait_until(0, |value| value >= round);
        self.data.local().read(0, &mut self.private.borrow_mut()[..words]);
        self.flag.p(0, 0, round)
    }

    fn next_round(&self) -> u64 {
        let round = self.round.get() + 1;
        self.round.set(round);
        round
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::ensemble::conduct;

    #[test]
    fn rounds_are_counted_on_both_sides_and_carry_the_bytes() {
        let seen = spmd(3, |world| {
            let ping = PingAck::new(world, 512).unwrap();
            if world.my_pe() == 1 {
                ping.private.borrow_mut().fill(0);
            }
            conduct(world, &mut [ping.rounds(0), ping.rounds(512)], |leader| {
                leader.play(0, 10)?;
                leader.play(1, 3)
            })
            .unwrap();
            (ping.round.get(), ping.private.borrow().iter().sum::<u64>())
        });
        assert_eq!(seen.unwrap(), [(13, 64), (13, 64), (0, 64)]);
    }
}
