//! A context does not outlive its world.

fn main() {
    let context = {
        let world = pelago::World::init().unwrap();
        world.context(Default::default()).unwrap()
    };
    context.quiet();
}
