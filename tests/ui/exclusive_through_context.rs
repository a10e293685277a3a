//! In an exclusive phase the array cannot be reached through a context either.

fn main() {
    pelago::spmd(1, |world| {
        let mut array = world.alloc_zeroed::<u64>(4).unwrap();
        let context = world.context(Default::default()).unwrap();
        let through = array.via(&context);
        array.exclusive(|_| through.p(0, 0, 1).unwrap()).unwrap();
    })
    .unwrap();
}
