//! Atomics work on numbers that are one word, not on complex ones.

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc_zeroed::<num_complex::Complex<f32>>(4).unwrap();
        array.atomic_fetch(0, 0).unwrap();
    })
    .unwrap();
}
