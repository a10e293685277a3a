//! The source of a region's put is in use until the scope ends, even after the region has waited.

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc_zeroed::<u64>(4).unwrap();
        let mut source = [1; 4];
        world.scope(|scope| {
            let region = scope.region();
            region.put(&array, 0, 0, &source).unwrap();
            region.wait();
            source[0] = 2;
        });
    })
    .unwrap();
}
