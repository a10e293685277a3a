//! The slice of an exclusive phase ends with it.

fn main() {
    pelago::spmd(2, |world| {
        let mut array = world.alloc_zeroed::<u64>(1).unwrap();
        let part: &mut [u64] = array.exclusive(|part| part).unwrap();
        part[0] = 1;
    })
    .unwrap();
}
