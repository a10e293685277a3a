//! A region does not take buffers that are freed before its own scope ends.

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc_zeroed::<u64>(4).unwrap();
        world.scope(|outer| {
            let region = outer.region();
            let source = vec![1];
            world.scope(|_inner| region.put(&array, 0, 0, &source).unwrap());
            drop(source);
        });
    })
    .unwrap();
}
