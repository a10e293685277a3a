//! Shared memory between real threads, and what it refuses.

use pelago_fabric::shm::{Layout, Segment, Shm};
use pelago_fabric::sync::{AtomicU64, Ordering};
use pelago_fabric::{Event, FabricError, Provider, Status};
use std::time::Duration;

/// All PEs flood PE 0 with messages of different lengths; it gets each once, in order, whole.
#[test]
fn a_ring_survives_many_senders_at_once() {
    const MESSAGES: u64 = 20_000;
    let mut endpoints = Shm::threads(Layout::new(4, 1, 4096)).unwrap();
    let receiver = endpoints.remove(0);
    std::thread::scope(|scope| {
        for endpoint in endpoints {
            scope.spawn(move || {
                for i in 0..MESSAGES {
                    let payload = vec![i as u8; (i % 200) as usize];
                    while endpoint.send(0, i, &payload) == Status::Again {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let mut next = [0u64; 4];
        while next.iter().sum::<u64>() < 3 * MESSAGES {
            let mut check = |event: Event<'_>| {
                let Event::Message { from, header, payload } = event else {
                    panic!("an event of an operation nobody started: {event:?}");
                };
                assert_eq!(header, next[from], "the next message of PE {from}");
                assert!(payload.len() as u64 == header % 200 && payload.iter().all(|&b| b == header as u8));
                next[from] += 1;
            };
            if receiver.progress(&mut check).unwrap() == 0 {
                std::thread::yield_now();
            }
        }
    });
}

#[test]
fn who_does_not_come_is_listed() {
    let layout = Layout::new(4, 1, 4096);
    let mut leader = Shm::open(0, layout, Duration::from_millis(300)).unwrap();
    let address = leader.address().unwrap();
    let mut two = Shm::open(2, layout, Duration::from_secs(60)).unwrap();
    let comes = std::thread::spawn(move || two.connect(&mut |_| Ok(address.clone())));
    let error = leader.connect(&mut |_| unreachable!()).unwrap_err();
    comes.join().unwrap().unwrap();
    assert!(matches!(&error, FabricError::Missing { missing, .. } if missing == &[1, 3]), "{error}");
    let text = error.to_string();
    assert!(text.contains("[1, 3]") && text.contains("PELAGO_INIT_TIMEOUT"), "{text}");
}

#[test]
fn who_does_not_know_the_nonce_gets_nothing() {
    let layout = Layout::new(2, 1, 4096);
    let mut leader = Shm::open(0, layout, Duration::from_millis(300)).unwrap();
    let mut address = leader.address().unwrap();
    // Another nonce, and a descriptor number that makes the fallback fail as well.
    address[20] ^= 0xFF;
    address[36..40].copy_from_slice(&9999u32.to_ne_bytes());
    let mut stranger = Shm::open(1, layout, Duration::from_secs(60)).unwrap();
    let tries = std::thread::spawn(move || stranger.connect(&mut |_| Ok(address.clone())));
    assert!(matches!(leader.connect(&mut |_| unreachable!()), Err(FabricError::Missing { .. })));
    let refused = tries.join().unwrap().unwrap_err().to_string();
    assert!(refused.contains("turned this process away"), "{refused}");
}

#[test]
fn where_the_socket_fails_proc_serves() {
    let layout = Layout::new(2, 1, 4096);
    let mut leader = Shm::open(0, layout, Duration::from_secs(60)).unwrap();
    let mut address = leader.address().unwrap();
    address[0] ^= 0xFF; // a name nobody listens at
    let mut other = Shm::open(1, layout, Duration::from_secs(60)).unwrap();
    other.connect(&mut |_| Ok(address.clone())).unwrap();
    leader.connect(&mut |_| unreachable!()).unwrap();
    let word = |shm: &Shm| shm.segment().block(1).departure.left.load(Ordering::Relaxed);
    leader.segment().block(1).departure.left.store(5, Ordering::Relaxed);
    assert_eq!(word(&other), 5, "both map the same memory");
}

#[test]
fn memory_that_proc_gives_before_it_is_made_is_waited_for() {
    let layout = Layout::new(2, 1, 4096);
    let mut leader = Shm::prepare(0, true, Duration::from_secs(60)).unwrap();
    let mut address = leader.address().unwrap();
    address[0] ^= 0xFF; // a name nobody listens at
    let connect = |limit| {
        let mut other = Shm::open(1, layout, limit).unwrap();
        other.connect(&mut |_| Ok(address.clone())).map(|()| other)
    };
    let error = connect(Duration::from_millis(20)).map(drop).unwrap_err().to_string();
    assert!(error.contains("the memory was not made in time"), "{error}");
    leader.place(0..1, layout).unwrap();
    let other = connect(Duration::from_secs(60)).unwrap();
    leader.connect(&mut |_| unreachable!()).unwrap();
    assert_eq!(other.segment().layout(), leader.segment().layout());
}

#[test]
fn the_memory_of_another_job_is_refused() {
    let (_segment, fd) = Segment::create(0, Layout::new(2, 1, 4096)).unwrap();
    let error = Segment::attach(1, fd, 2, [1, 2], None).map(drop).unwrap_err().to_string();
    assert!(error.contains("another job"), "{error}");
}

#[test]
fn foreign_memory_is_refused() {
    let wrong_count = |n_pes| {
        let (_segment, fd) = Segment::create(0, Layout::new(2, 1, 4096)).unwrap();
        Segment::attach(1, fd, n_pes, [0, 0], None).map(drop)
    };
    wrong_count(2).unwrap();
    let error = wrong_count(3).unwrap_err().to_string();
    assert!(error.contains("2 PEs, not 3"), "{error}");
    let empty = std::fs::File::open("/dev/null").unwrap();
    let error = Segment::attach(1, empty, 2, [0, 0], None).map(drop).unwrap_err().to_string();
    assert!(error.contains("0 bytes: it is no node's memory"), "{error}");
    let mut shm = Shm::open(1, Layout::new(2, 1, 4096), Duration::from_secs(1)).unwrap();
    let error = shm.connect(&mut |_| Ok(vec![1, 2, 3])).unwrap_err().to_string();
    assert!(error.contains("address of 3 bytes"), "{error}");
}

#[test]
fn a_heap_beyond_the_address_space_is_an_error() {
    for (n_pes, heap_bytes) in [
        (4, 1 << 47),
        (4, usize::MAX),
        (1 << 20, 1 << 46),
        (1, usize::MAX),
        (1, 1 << 47),
        (usize::MAX / 4096, 1),
    ] {
        let error =
            Segment::create(0, Layout::new(n_pes, heap_bytes, usize::MAX)).map(drop).unwrap_err().to_string();
        assert!(error.contains("PELAGO_HEAP_SIZE"), "{error}");
    }
}

#[test]
fn the_first_failure_is_kept() {
    let (segment, _fd) = Segment::create(0, Layout::new(1, 1, 4096)).unwrap();
    let failure = &segment.header().failure;
    assert_eq!(failure.read(), None);
    let long = "x".repeat(5000);
    failure.record(3, &long);
    failure.record(4, "later");
    assert_eq!(failure.read(), Some((3, long[..1024].to_owned())));
}

/// Heaps are apart and aligned, whatever their number and size.
#[test]
fn layouts_keep_heaps_apart() {
    for (n_pes, heap_bytes) in [(1, 1), (3, 5 << 20), (17, 2 << 20)] {
        let (segment, _fd) = Segment::create(0, Layout::new(n_pes, heap_bytes, 4096)).unwrap();
        let starts: Vec<usize> = (0..n_pes).map(|pe| segment.heap(pe).as_ptr() as usize).collect();
        let size = segment.layout().heap_bytes;
        assert!(size >= heap_bytes && size % (2 << 20) == 0);
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == size));
        let word = |pe: usize, at: usize| {
            // SAFETY: the first and last word of each heap, 8-byte aligned, touched by this thread alone.
            unsafe { AtomicU64::from_ptr(segment.heap(pe).add(at).cast().as_ptr()) }
        };
        for pe in 0..n_pes {
            word(pe, 0).store(pe as u64 + 1, Ordering::Relaxed);
            word(pe, size - 8).store(pe as u64 + 100, Ordering::Relaxed);
        }
        for pe in 0..n_pes {
            assert_eq!(word(pe, 0).load(Ordering::Relaxed), pe as u64 + 1);
            assert_eq!(word(pe, size - 8).load(Ordering::Relaxed), pe as u64 + 100);
        }
    }
}

/// Three processes with two PEs each: the memory is made once, handed out once a process, and each PE has an
/// endpoint of its own over its process's one mapping.
#[test]
fn the_pes_of_a_process_share_its_mapping() {
    let layout = Layout::new(6, 1 << 12, 4096);
    let limit = Duration::from_secs(60);
    let mut leader = Shm::prepare(0, true, limit).unwrap();
    leader.place(0..2, layout).unwrap();
    let address = leader.address().unwrap();
    let follower = |first: usize| {
        let mut shm = Shm::prepare(first, false, limit).unwrap();
        shm.place(first..first + 2, layout).unwrap();
        let address = address.clone();
        std::thread::spawn(move || shm.connect(&mut |_| Ok(address.clone())).map(|()| shm.split()).unwrap())
    };
    let followers = [2, 4].map(follower);
    leader.connect(&mut |_| unreachable!()).unwrap();
    let mut processes = vec![leader.split()];
    processes.extend(followers.map(|follower| follower.join().unwrap()));
    for process in &processes {
        let [low, high] = &process[..] else { panic!("{} endpoints of two PEs", process.len()) };
        assert!(std::ptr::eq(low.segment().header(), high.segment().header()), "one mapping a process");
    }
    assert!(!std::ptr::eq(processes[0][0].segment().header(), processes[1][0].segment().header()));
    let endpoints: Vec<&Shm> = processes.iter().flatten().collect();
    for pe in 0..6 {
        assert_eq!(endpoints[0].segment().block(pe).attached.0.load(Ordering::Relaxed), 1, "PE {pe}");
    }
    for (from, endpoint) in endpoints.iter().enumerate() {
        (0..6).for_each(|to| assert_eq!(endpoint.send(to, from as u64, &[]), Status::Done));
    }
    for (to, endpoint) in endpoints.iter().enumerate() {
        let mut senders = Vec::new();
        let mut take = |event: Event<'_>| {
            let Event::Message { from, header, .. } = event else { panic!("no message: {event:?}") };
            senders.push((from, header));
        };
        while endpoint.progress(&mut take).unwrap() > 0 {}
        assert_eq!(senders, (0..6).map(|from| (from, from as u64)).collect::<Vec<_>>(), "to PE {to}");
    }
}

/// A process that does not come is missed with all its PEs.
#[test]
fn all_pes_of_a_process_that_does_not_come_are_listed() {
    let mut leader = Shm::prepare(0, true, Duration::from_millis(300)).unwrap();
    leader.place(0..2, Layout::new(6, 1, 4096)).unwrap();
    let address = leader.address().unwrap();
    let mut two = Shm::prepare(2, false, Duration::from_secs(60)).unwrap();
    two.place(2..4, Layout::new(6, 1, 4096)).unwrap();
    let comes = std::thread::spawn(move || two.connect(&mut |_| Ok(address.clone())));
    let error = leader.connect(&mut |_| unreachable!()).unwrap_err();
    comes.join().unwrap().unwrap();
    assert!(matches!(&error, FabricError::Missing { missing, .. } if missing == &[4, 5]), "{error}");
}
