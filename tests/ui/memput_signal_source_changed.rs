//! The source of an asynchronous put that signals stays borrowed until its scope ends.

use pelago::upc::SemaphoreKind;

fn main() {
    pelago::spmd(1, |world| {
        let semaphores = world.semaphores(1, SemaphoreKind::integer()).unwrap();
        let array = world.alloc_zeroed::<u64>(4).unwrap();
        let mut source = [1; 4];
        world.scope(|scope| {
            semaphores.at(0, 0).unwrap().memput_signal_within(scope, &array, 0, &source, 1).unwrap();
            source[0] = 2;
        });
    })
    .unwrap();
}
