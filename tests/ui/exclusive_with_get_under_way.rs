//! An exclusive phase does not begin while a handle to the array is alive.

fn main() {
    pelago::spmd(1, |world| {
        let mut array = world.alloc_zeroed::<u64>(4).unwrap();
        let get = array.get_nb(0, 0, vec![0; 4]).unwrap();
        array.exclusive(|part| part.fill(1)).unwrap();
        get.wait();
    })
    .unwrap();
}
