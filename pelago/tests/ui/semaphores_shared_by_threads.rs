//! A set of semaphores keeps what this PE has posted and taken: one thread at a time has it.

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
