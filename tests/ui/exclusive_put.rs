//! In an exclusive phase no PE can access the array remotely.

fn main() {
    pelago::spmd(2, |world| {
        let mut array = world.alloc_zeroed::<u64>(1).unwrap();
        array.exclusive(|part| {
            part[0] = 1;
            array.p(1, 0, 2).unwrap();
        })
    })
    .unwrap();
}
