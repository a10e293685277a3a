//! A scope belongs to the thread that opened it.

fn main() {
    pelago::spmd(1, |world| {
        world.scope(|scope| {
            std::thread::scope(|threads| {
                threads.spawn(|| scope.quiet());
            });
        });
    })
    .unwrap();
}
