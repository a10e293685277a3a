//! No thread waits for a change of an array that was freed.

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc_zeroed::<u64>(4).unwrap();
        let local = array.local();
        array.free().unwrap();
        local.wait_until(0, |value| value == 1);
    })
    .unwrap();
}
