//! The bitwise atomics work on integers; floats are changed by `amo`.

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc_zeroed::<f64>(4).unwrap();
        array.and(0, 0, 1.0).unwrap();
    })
    .unwrap();
}
