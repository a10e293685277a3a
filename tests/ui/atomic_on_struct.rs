//! Atomics work on numbers, not on structs, even where these have the size of a word.

use pelago::Element;

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Pair {
    first: u32,
    second: u32,
}

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc_zeroed::<Pair>(4).unwrap();
        array.swap(0, 0, Pair { first: 1, second: 2 }).unwrap();
    })
    .unwrap();
}
