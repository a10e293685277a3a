//! An array cannot be freed while an atomic on it is outstanding.

use pelago::AtomicOp;

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc_zeroed::<u64>(4).unwrap();
        let old = array.fetch_amo_nb(0, 0, AtomicOp::Add, 1).unwrap();
        array.free().unwrap();
        old.wait();
    })
    .unwrap();
}
