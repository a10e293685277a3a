//! The source of a non-blocking put is in use until its scope ends.

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc::<u64>(4).unwrap();
        let mut source = [1; 4];
        world.scope(|scope| {
            scope.put(&array, 0, 0, &source).unwrap();
            source[0] = 2;
        });
    })
    .unwrap();
}
