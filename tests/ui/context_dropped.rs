//! An array cannot be seen through a context that was dropped.

fn main() {
    pelago::spmd(1, |world| {
        let array = world.alloc_zeroed::<u64>(4).unwrap();
        let context = world.context(Default::default()).unwrap();
        let through = array.via(&context);
        drop(context);
        through.p(0, 0, 1).unwrap();
    })
    .unwrap();
}
