//! An array ends before its world.

fn main() {
    let array = {
        let world = pelago::World::init().unwrap();
        world.alloc::<u64>(1).unwrap()
    };
    array.p(0, 0, 1).unwrap();
}
