//! A world and its handles belong to one thread.

fn main() {
    let world = pelago::World::init().unwrap();
    let array = world.alloc::<u64>(1).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| array.p(0, 0, 1).unwrap());
    });
}
