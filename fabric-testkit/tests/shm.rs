//! The conformance suite on shared memory: between threads, and as between processes.

use pelago_fabric::Provider;
use pelago_fabric::shm::{Layout, Shm};
use pelago_fabric_testkit::conformance;
use pelago_fabric_testkit::conformance::{Group, Harness, REGION_BYTES};
use std::time::Duration;

struct ShmThreads;
struct ShmProcesses;

fn group(endpoints: Vec<Shm>) -> Group<Shm> {
    let regions = (0..endpoints.len()).map(|pe| endpoints[pe].segment().heap(pe)).collect();
    // SAFETY: the segments have heaps of this length, and keep them as long as the endpoints; only the rules
    // access them.
    unsafe { Group::with_regions(endpoints, regions) }
}

impl Harness for ShmThreads {
    type Endpoint = Shm;

    fn open(n_pes: usize) -> Group<Shm> {
        let mut endpoints = Shm::threads(Layout::new(n_pes, REGION_BYTES, 8192)).unwrap();
        endpoints
            .iter_mut()
            .for_each(|e| e.connect(&mut |_| unreachable!("threads need no address")).unwrap());
        group(endpoints)
    }
}

/// As between processes: one endpoint creates the memory and passes it over a socket, and the others map it.
impl Harness for ShmProcesses {
    type Endpoint = Shm;

    fn open(n_pes: usize) -> Group<Shm> {
        let open =
            |me| Shm::open(me, Layout::new(n_pes, REGION_BYTES, 8192), Duration::from_secs(60)).unwrap();
        let endpoints: Vec<Shm> = (0..n_pes).map(open).collect();
        let address = endpoints[0].address().unwrap();
        let connect = |mut endpoint: Shm| {
            let address = address.clone();
            std::thread::spawn(move || {
                endpoint.connect(&mut |_| Ok(address.clone())).unwrap();
                endpoint
            })
        };
        let threads: Vec<_> = endpoints.into_iter().map(connect).collect();
        group(threads.into_iter().map(|thread| thread.join().unwrap()).collect())
    }
}

conformance! {
    shm_threads: ShmThreads,
    shm_processes: ShmProcesses,
}
