//! A set of semaphores keeps the counts of this PE's posts and waits: one thread at a time uses it.

use pelago::upc::SemaphoreKind;

fn main() {
    pelago::spmd(1, |world| {
        let semaphores = world.semaphores(1, SemaphoreKind::integer()).unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| semaphores.at(0, 0).unwrap().post().unwrap());
        });
    })
    .unwrap();
}
