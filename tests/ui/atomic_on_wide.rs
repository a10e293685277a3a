//! Atomics work on numbers of up to 64 bits, not on wider ones.

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc_zeroed::<u128>(4).unwrap();
        array.atomic_set(0, 0, 1).unwrap();
    })
    .unwrap();
}
