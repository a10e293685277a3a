//! A reference is meaningless in another process.

fn main() {
    pelago::spmd(2, |world| drop(world.alloc::<&'static str>(1))).unwrap();
}
