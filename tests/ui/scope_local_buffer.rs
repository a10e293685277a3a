//! A buffer that ends before the scope cannot be the target of a non-blocking get.

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc::<u64>(4).unwrap();
        world.scope(|scope| {
            let mut target = [0; 4];
            scope.get(&array, 0, 0, &mut target).unwrap();
        });
    })
    .unwrap();
}
