//! A peer could write a bool that is neither true nor false.

fn main() {
    pelago::spmd(2, |world| drop(world.alloc::<bool>(1))).unwrap();
}
