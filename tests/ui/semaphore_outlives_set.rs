//! A semaphore does not outlive its set.

use pelago::upc::SemaphoreKind;

fn main() {
    pelago::spmd(1, |world| {
        let semaphores = world.semaphores(1, SemaphoreKind::integer()).unwrap();
        let semaphore = semaphores.at(0, 0).unwrap();
        semaphores.free().unwrap();
        semaphore.post().unwrap();
    })
    .unwrap();
}
