//! Atomics work on numbers of 32 and 64 bits, not on bytes.

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc_zeroed::<u8>(4).unwrap();
        array.atomic_set(0, 0, 1).unwrap();
    })
    .unwrap();
}
