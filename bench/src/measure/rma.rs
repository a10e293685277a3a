//! One-sided operations of PE 0 on PE 1's memory: the parts of latency and bandwidth measurements. Invariant:
//! PE 1 touches nothing meanwhile, so both sides of a comparison find their buffers in the same state.

use std::hint::black_box;
use std::rc::Rc;
use std::slice;

use pelago::prelude::*;

use super::buffers::{Buffers, Rotation};
use super::ensemble::{Part, only_first};

/// The PE that is written and read.
const TARGET: Pe = 1;

/// `p`, one after the other, without waiting for completion.
pub(super) fn put_issue<'a>(word: &'a Symmetric<'_, u64>) -> Part<'a> {
    only_first(word.world(), move |count| {
        (0..count).try_for_each(|value| word.p(TARGET, 0, black_box(value)))
    })
}

/// `put` of one word and `quiet`.
pub(super) fn put_quiet<'a>(word: &'a Symmetric<'_, u64>) -> Part<'a> {
    only_first(word.world(), move |count| {
        (0..count).try_for_each(|value| {
            word.put(TARGET, 0, slice::from_ref(black_box(&value)))?;
            word.world().quiet();
            Ok(())
        })
    })
}

/// `get` of one word, which says which word is next: itself, as it holds 0.
pub(super) fn get<'a>(zero: &'a Symmetric<'_, u64>) -> Part<'a> {
    only_first(zero.world(), move |count| {
        let mut value = 0;
        (0..count).try_for_each(|_| zero.get(TARGET, value as usize, slice::from_mut(&mut value)))
    })
}

/// Transfers of one size between the two regions. All parts made here go through the regions together, so
/// that none finds what another has just brought into the cache.
pub(super) struct Transfers<'a, 'w> {
    buffers: &'a Buffers<'w>,
    words: usize,
    rotation: Rc<Rotation>,
}

impl<'a, 'w> Transfers<'a, 'w> {
    /// Transfers of `bytes`, moving on through the first `region_bytes` of the buffers.
    pub(super) fn new(buffers: &'a Buffers<'w>, bytes: usize, region_bytes: usize) -> Self {
        let [words, region] = [bytes, region_bytes].map(|bytes| bytes / size_of::<u64>());
        Transfers { buffers, words, rotation: Rc::new(Rotation::new(words, region)) }
    }

    /// Whether PE 0 maps the target's part, so that memcpy can do what puts and gets do.
    pub(super) fn are_mapped(&self) -> bool {
        self.buffers.symmetric.ptr(TARGET).is_some()
    }

    /// Blocking puts.
    pub(super) fn put(&self) -> Part<'a> {
        self.part(|buffers, at, words| {
            buffers.symmetric.put(TARGET, at, &buffers.private.borrow().words()[at..at + words])
        })
    }

    /// Blocking gets.
    pub(super) fn get(&self) -> Part<'a> {
        self.part(|buffers, at, words| {
            buffers.symmetric.get(TARGET, at, &mut buffers.private.borrow_mut().words_mut()[at..at + words])
        })
    }

    /// What the puts do, by the C library's memcpy.
    pub(super) fn put_memcpy(&self) -> Part<'a> {
        self.part(|buffers, at, words| {
            let private = buffers.private.borrow();
            let source = &private.words()[at..at + words];
            let target = mapped(&buffers.symmetric, at, words);
            // SAFETY: `mapped` gives room for `words` words, which no other PE touches in this block; the
            // source is a slice of as many, in private memory.
            unsafe { libc::memcpy(target.cast(), source.as_ptr().cast(), size_of_val(source)) };
            Ok(())
        })
    }

    /// What the gets do, by the C library's memcpy.
    pub(super) fn get_memcpy(&self) -> Part<'a> {
        self.part(|buffers, at, words| {
            let mut private = buffers.private.borrow_mut();
            let target = &mut private.words_mut()[at..at + words];
            let source = mapped(&buffers.symmetric, at, words);
            // SAFETY: `mapped` gives `words` words, which no other PE touches in this block; the target is a
            // slice of as many, in private memory.
            unsafe { libc::memcpy(target.as_mut_ptr().cast(), source.cast(), size_of_val(target)) };
            Ok(())
        })
    }

    /// Windows of puts to one place, each window a scope.
    pub(super) fn flood(&self, window: usize) -> Part<'a> {
        let (buffers, words) = (self.buffers, self.words);
        let world = buffers.symmetric.world();
        only_first(world, move |count| {
            let private = buffers.private.borrow();
            let source = &private.words()[..words];
            (0..count).try_for_each(|_| {
                world.scope(|scope| {
                    (0..window).try_for_each(|_| scope.put(&buffers.symmetric, TARGET, 0, source))
                })
            })
        })
    }

    fn part(
        &self,
        transfer: impl Fn(&Buffers<'_>, usize, usize) -> pelago::Result<()> + 'static,
    ) -> Part<'a> {
        let (buffers, words, rotation) = (self.buffers, self.words, Rc::clone(&self.rotation));
        only_first(buffers.symmetric.world(), move |count| {
            (0..count).try_for_each(|_| transfer(buffers, rotation.next(), words))
        })
    }
}

/// Where PE 0 maps words `at..at + words` of the target's part.
fn mapped(symmetric: &Symmetric<'_, u64>, at: usize, words: usize) -> *mut u64 {
    let start = symmetric.ptr(TARGET).expect("the PEs of a node map each other");
    assert!(at + words <= symmetric.len(), "a transfer stays in its region");
    // SAFETY: the array has that many elements, as just checked, and the pointer is good for all of them.
    unsafe { start.add(at) }
}

#[cfg(test)]
mod tests {
    use anyhow::Result;

    use super::*;
    use crate::measure::ensemble::{Leader, conduct};

    const BYTES: usize = 8192;

    /// Puts `value` by `part` from a private region of it, or gets it from PE 1's part by `part`; whether
    /// both regions hold nothing else afterwards.
    fn moves(
        leader: &mut Leader<'_, '_, '_>,
        buffers: &Buffers<'_>,
        part: usize,
        value: u64,
    ) -> Result<bool> {
        let is_get = part >= FIRST_GET;
        let far = &buffers.symmetric;
        let mut there = vec![if is_get { value } else { 0 }; far.len()];
        far.put(TARGET, 0, &there)?;
        buffers.private.borrow_mut().words_mut().fill(if is_get { 0 } else { value });
        leader.play(part, 2)?;
        far.get(TARGET, 0, &mut there)?;
        let private = buffers.private.borrow();
        Ok(private.words().iter().chain(&there).all(|word| *word == value))
    }

    const FIRST_GET: usize = 3;

    #[test]
    fn transfers_move_what_they_say() {
        let moved = spmd(2, |world| {
            let buffers = Buffers::new(world, BYTES).unwrap();
            let transfers = Transfers::new(&buffers, BYTES, BYTES);
            let puts = [transfers.put(), transfers.put_memcpy(), transfers.flood(3)];
            let gets = [transfers.get(), transfers.get_memcpy()];
            let mut parts: Vec<_> = puts.into_iter().chain(gets).collect();
            let led = conduct(world, &mut parts, |leader| {
                (0..5).map(|part| moves(leader, &buffers, part, part as u64 + 2)).collect::<Result<Vec<_>>>()
            });
            led.unwrap()
        });
        assert_eq!(moved.unwrap()[0], Some(vec![true; 5]));
    }
}
