//! Atomics work on complex numbers that are one word, not on those of two.

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc_zeroed::<num_complex::Complex<f64>>(4).unwrap();
        array.atomic_fetch(0, 0).unwrap();
    })
    .unwrap();
}
