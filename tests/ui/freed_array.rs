//! A freed array cannot be used.

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc::<u64>(4).unwrap();
        array.free().unwrap();
        array.p(0, 0, 1).unwrap();
    })
    .unwrap();
}
