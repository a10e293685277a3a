//! An array cannot be freed in the scope of its operations.

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc_zeroed::<u64>(4).unwrap();
        world.scope(|scope| {
            scope.put(&array, 0, 0, &[1]).unwrap();
            array.free().unwrap();
        });
    })
    .unwrap();
}
