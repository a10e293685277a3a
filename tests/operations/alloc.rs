//! The symmetric heap: offsets, contents, exhaustion, reclaiming, agreement, exclusive phases.

use pelago::prelude::*;
use pelago::sync::{AtomicUsize, Ordering};
use pelago::{ErrorKind, Spmd};

everywhere! {
    contents_and_alignment(3): contents_and_alignment;
    resizing(3): resizing;
    dropping_in_any_order(4): dropping_in_any_order;
    exclusive_phases(4): exclusive_phases;
    random_sequences(3): random_sequences;
    calls_that_differ_are_told(4): calls_that_differ_are_told;
}

/// Bytes before each array that belong to the runtime.
const HEADER: usize = 64;

/// A small generator, so that all PEs of a test draw the same numbers.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn contents_and_alignment(world: &World) {
    let first = world.alloc::<u8>(1000).unwrap();
    first.local().write(0, &[0xFF; 1000]);
    first.free().unwrap();
    let zeroed = world.alloc_zeroed::<u8>(1000).unwrap();
    assert!(zeroed.local().to_vec().iter().all(|&byte| byte == 0), "the same block, zeroed");
    for align in [1, 2, 64, 4096, 1 << 20, 2 << 20] {
        let mut array = world.alloc_aligned::<u64>(3, align).unwrap();
        let address = array.exclusive(|part| part.as_ptr() as usize).unwrap();
        assert_eq!(address % align.max(64), 0);
    }
    for align in [0, 3, 48, 32 << 20] {
        let error = world.alloc_aligned::<u64>(3, align).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BadAlignment { .. }), "{error}");
    }
    let empty = world.alloc::<u64>(0).unwrap();
    assert_eq!((empty.len(), empty.put(0, 0, &[]).is_ok(), empty.p(0, 0, 1).is_err()), (0, true, true));
}

fn resizing(world: &World) {
    let me = world.my_pe() as u64;
    let array = world.alloc::<u64>(100).unwrap();
    let in_the_way = world.alloc::<u64>(100).unwrap();
    for index in 0..100 {
        array.local().set(index, me * 1000 + index as u64);
    }
    let free = world.heap_free_bytes();
    let array = array.resize(50).unwrap().resize(5000).unwrap();
    let next = (world.my_pe() + 1) % world.n_pes();
    let expected = |index: usize| next as u64 * 1000 + index as u64;
    assert!((0..50).all(|index| array.g(next, index).unwrap() == expected(index)), "what fits is kept");
    array.p(next, 4999, 7).unwrap();
    world.barrier();
    assert_eq!(array.local().get(4999), 7);
    drop(in_the_way);
    array.free().unwrap();
    assert_eq!(world.heap_free_bytes(), free + 2 * (832 + HEADER), "800 bytes are 13 granules of 64");
    let lost = world.alloc::<u8>(64).unwrap().resize(usize::MAX / 2);
    assert!(matches!(lost.unwrap_err().kind(), ErrorKind::HeapExhausted { .. }));
    world.reclaim().unwrap();
    assert_eq!(world.heap_free_bytes(), world.heap_total_bytes());
}

/// PEs drop at different times and in different orders; memory is reclaimed when all have dropped.
fn dropping_in_any_order(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let free = world.heap_free_bytes();
    let mut arrays: Vec<_> = (0..n).map(|_| Some(world.alloc::<u64>(1000).unwrap())).collect();
    for step in 0..n {
        arrays[(me + step) % n] = None;
        let probe = world.alloc::<u8>(64).unwrap();
        let held = if step + 1 < n { n * (8000 + HEADER) } else { 0 };
        let probe_bytes = 64 + HEADER;
        assert_eq!(
            world.heap_free_bytes(),
            free - probe_bytes - held,
            "step {step}: all PEs still hold or none"
        );
        probe.free().unwrap();
    }
    if me == 0 {
        std::mem::forget(world.alloc::<u64>(8).unwrap()); // never reclaimed, and that is all
    } else {
        drop(world.alloc::<u64>(8).unwrap());
    }
    world.reclaim().unwrap();
    assert_eq!(world.heap_free_bytes(), free - 64 - HEADER);
}

fn exclusive_phases(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let mut array = world.alloc_zeroed::<u64>(n).unwrap();
    let mut other = world.alloc_zeroed::<u64>(1).unwrap();
    for round in 1..=50u64 {
        (0..n).for_each(|pe| array.p(pe, me, round).unwrap());
        let sum: u64 = array.exclusive(|part| part.iter().sum()).unwrap();
        assert_eq!(sum, round * n as u64);
        let nested = array.exclusive(|part| {
            part.fill(0);
            other.exclusive(|cell| std::mem::replace(&mut cell[0], round)).unwrap()
        });
        assert_eq!(nested.unwrap(), round - 1);
        assert!((0..n).all(|pe| array.g(pe, me).unwrap() == 0));
        world.barrier();
    }
}

/// Long random sequences of allocations and frees: arrays never overlap, on any PE.
fn random_sequences(world: &World) {
    let mut draw = Draw(0x9E37_79B9_7F4A_7C15);
    let mut live: Vec<(Symmetric<'_, u32>, u32)> = Vec::new();
    for stamp in 1..=400u32 {
        if draw.below(3) > 0 || live.is_empty() {
            let array = world.alloc::<u32>(draw.below(2000) as usize).unwrap();
            (0..array.len()).for_each(|index| array.local().set(index, stamp));
            live.push((array, stamp));
        } else {
            let (array, stamp) = live.swap_remove(draw.below(live.len() as u64) as usize);
            assert!(array.local().to_vec().iter().all(|&value| value == stamp), "overwritten by a neighbour");
        }
    }
    world.barrier();
    let next = (world.my_pe() + 1) % world.n_pes();
    for (array, stamp) in &live {
        let mut part = vec![0; array.len()];
        array.get(next, 0, &mut part).unwrap();
        assert!(part.iter().all(|value| value == stamp), "PE {next}'s part of the same array");
    }
}

#[test]
fn exhaustion_states_asked_free_total_and_the_setting() {
    let body = |world: &World| {
        let total = world.heap_total_bytes();
        let half = world.alloc::<u8>(total / 2).unwrap();
        let error = world.alloc::<u64>(total / 8).unwrap_err();
        let free = world.heap_free_bytes();
        let text = error.to_string();
        let words = [format!("alloc of {total} bytes"), format!("{free} of {total} bytes free")];
        assert!(words.iter().all(|word| text.contains(word)) && text.contains("PELAGO_HEAP_SIZE"), "{text}");
        drop(half);
        let all = total - HEADER;
        assert_eq!(world.alloc::<u8>(all).unwrap().len(), all, "all of it, after the half is reclaimed");
    };
    Spmd::new(2).heap_bytes(4 << 20).run(body).unwrap();
}

#[test]
fn absurd_sizes_are_errors() {
    spmd(2, |world| {
        for len in [usize::MAX, usize::MAX / 8, usize::MAX / 8 + 1, isize::MAX as usize / 8] {
            let error = world.alloc::<u64>(len).unwrap_err();
            let kind = error.kind();
            assert!(matches!(kind, ErrorKind::TooLarge { .. } | ErrorKind::HeapExhausted { .. }), "{error}");
        }
        world.barrier();
    })
    .unwrap();
}

#[test]
fn sizes_that_differ_between_pes_are_found() {
    let error = |world: &World| world.alloc::<u64>(10 + world.my_pe() / 2).map(drop).unwrap_err();
    let texts = spmd(3, |world| error(world).to_string()).unwrap();
    assert!(
        texts[0].contains("PE 2 calls alloc(88 bytes, aligned to 8), PE 0 calls alloc(80 bytes"),
        "{}",
        texts[0]
    );
    assert!(
        texts[2].contains("PE 0 calls alloc(80 bytes, aligned to 8), PE 2 calls alloc(88"),
        "{}",
        texts[2]
    );
}

#[test]
fn calls_that_differ_between_pes_are_found() {
    let texts = spmd(2, |world| {
        let mut first = world.alloc::<u64>(1).unwrap();
        let mut second = world.alloc::<u64>(1).unwrap();
        let mixed = if world.my_pe() == 0 { &mut first } else { &mut second };
        let phase = mixed.exclusive(|_| unreachable!("the phase must not begin")).unwrap_err();
        let kinds = if world.my_pe() == 0 { world.reclaim() } else { world.alloc::<u8>(1).map(drop) };
        world.alloc::<u8>(1).unwrap(); // and the PEs go on together
        (phase.to_string(), kinds.unwrap_err().to_string())
    });
    let (phase, kinds) = &texts.unwrap()[0];
    assert!(phase.contains("exclusive(array at heap offset"), "{phase}");
    assert!(kinds.contains("PE 1 calls alloc(1 bytes") && kinds.contains("PE 0 calls reclaim()"), "{kinds}");
}

/// A PE that leaves a phase early waits for the others before it can access their parts.
#[test]
fn nobody_reaches_a_part_while_its_owner_is_in_the_phase() {
    spmd(2, |world| {
        let mut array = world.alloc_zeroed::<u64>(1).unwrap();
        for round in 1..=200 {
            array
                .exclusive(|part| {
                    part[0] = round;
                    if world.my_pe() == 0 {
                        let unchanged = (0..50).all(|_| {
                            std::thread::yield_now();
                            std::hint::black_box(&mut *part)[0] == round
                        });
                        assert!(unchanged, "PE 1 has put into the part of PE 0 in round {round}");
                    }
                })
                .unwrap();
            array.p(0, 0, 7).unwrap();
        }
    })
    .unwrap();
}

/// A PE that unwinds out of an exclusive phase cannot reach parts that others hold as slices.
#[test]
fn after_a_panic_in_an_exclusive_phase_the_array_is_closed() {
    let refused = AtomicUsize::new(0);
    let outcome = spmd(2, |world| {
        let mut array = world.alloc_zeroed::<u64>(4).unwrap();
        if world.my_pe() == 0 {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                array.exclusive(|_| panic!("on purpose")).unwrap()
            }));
            assert!(caught.is_err());
            let tries = [
                array.put(1, 0, &[1, 2, 3, 4]),
                array.p(1, 0, 1),
                array.g(1, 0).map(drop),
                array.get(1, 0, &mut [0]),
                array.on(1).unwrap().p(0, 1),
            ];
            let is_refusal = |e: &pelago::Error| matches!(e.kind(), ErrorKind::ArrayClosed { .. });
            let count = tries.iter().filter(|outcome| outcome.as_ref().is_err_and(is_refusal)).count();
            refused.store(count, Ordering::Relaxed);
        } else {
            array.exclusive(|part| assert_eq!(part, [0; 4])).unwrap();
        }
    });
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains("PE 0 panicked: on purpose"), "{text}");
    assert_eq!(refused.load(Ordering::Relaxed), 5, "all five ways to PE 1 are closed");
}

/// A PE that gives up waiting for the end of a phase cannot reach a PE that is still in it.
#[test]
fn after_giving_up_in_an_exclusive_phase_the_array_is_closed() {
    let (refused, has_failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let outcome = spmd(3, |world| {
        let mut array = world.alloc_zeroed::<u64>(1).unwrap();
        let phase = std::panic::AssertUnwindSafe(|| {
            array.exclusive(|part| {
                if world.my_pe() == 0 {
                    panic!("on purpose");
                }
                while world.my_pe() == 2 && has_failed.load(Ordering::Acquire) == 0 {
                    std::hint::spin_loop();
                }
                assert_eq!(std::hint::black_box(part)[0], 0);
            })
        });
        let caught = std::panic::catch_unwind(phase);
        if world.my_pe() == 1 {
            refused.store(usize::from(array.p(2, 0, 77).is_err()), Ordering::Relaxed);
            has_failed.store(1, Ordering::Release);
        }
        caught.map(drop).unwrap_or_else(|payload| std::panic::resume_unwind(payload));
    });
    assert_eq!(outcome.unwrap_err().to_string(), "PE 0 panicked: on purpose");
    assert_eq!(refused.load(Ordering::Relaxed), 1, "PE 1 could reach PE 2 in its phase");
}

/// A barrier inside a phase does not pair with the end of the phase elsewhere.
#[test]
fn the_end_of_a_phase_is_no_anonymous_barrier() {
    let refused = AtomicUsize::new(0);
    let texts = spmd(2, |world| {
        let mut array = world.alloc_zeroed::<u64>(1).unwrap();
        let ended = array.exclusive(|part| {
            if world.my_pe() == 0 {
                world.barrier();
                assert_eq!(std::hint::black_box(part)[0], 0);
            }
        });
        if world.my_pe() == 1 {
            refused.store(usize::from(array.p(0, 0, 77).is_err()), Ordering::Relaxed);
            world.barrier(); // for the end of PE 0's phase
        }
        ended.unwrap_err().to_string()
    });
    let texts = texts.unwrap();
    assert!(texts[1].contains("PE 1 calls the end of exclusive"), "{}", texts[1]);
    assert_eq!(refused.load(Ordering::Relaxed), 1);
}

/// An agreement is between matching calls, not with the record of an earlier call.
#[test]
fn a_barrier_does_not_agree_with_an_allocation() {
    spmd(2, |world| {
        // Both distances: the agreement record that is left lies in the slot that the other PE reads, or in
        // the other one.
        for barriers in 1..=2 {
            let meet = || (0..barriers).for_each(|_| world.barrier());
            if world.my_pe() == 0 {
                world.alloc::<u8>(1).unwrap_err();
                meet();
            } else {
                meet();
                world.alloc::<u8>(1).unwrap_err();
            }
        }
        assert_eq!(world.heap_free_bytes(), world.heap_total_bytes());
        world.alloc::<u8>(1).unwrap();
    })
    .unwrap();
}

/// If one PE makes another call, at any position in its node, the errors of all others name the PE and the
/// call, and the job continues.
fn calls_that_differ_are_told(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    for culprit in 0..n {
        let is_it = me == culprit;
        let theirs = if is_it { (culprit == 0) as usize } else { culprit };
        let told = |text: String, theirs_calls: &str, mine_calls: &str| {
            let calls = if is_it { mine_calls } else { theirs_calls };
            assert!(text.contains(&format!("PE {theirs} calls {calls}")), "{text}");
        };
        let size = world.alloc::<u64>(if is_it { 2 } else { 1 }).map(drop).unwrap_err();
        told(size.to_string(), "alloc(16 bytes", "alloc(8 bytes");
        let kept = world.alloc_zeroed::<u64>(1).unwrap();
        let call = match is_it {
            true => world.reclaim().unwrap_err(),
            false => world.alloc::<u64>(1).map(drop).unwrap_err(),
        };
        told(call.to_string(), "reclaim()", "alloc(8 bytes");
        match is_it {
            true => world.barrier(),
            false => {
                let met = world.alloc::<u64>(1).map(drop).unwrap_err();
                told(met.to_string(), "something else (barrier?)", "");
            }
        }
        kept.local().write(0, &[7]);
        world.barrier();
        assert_eq!(kept.g((me + 1) % n, 0).unwrap(), 7);
        kept.free().unwrap();
    }
}

#[test]
fn zeroed_or_not_is_part_of_the_agreement() {
    let kinds = spmd(2, |world| match world.my_pe() {
        0 => world.alloc::<u64>(8).map(drop).unwrap_err().to_string(),
        _ => world.alloc_zeroed::<u64>(8).map(drop).unwrap_err().to_string(),
    });
    assert!(kinds.unwrap()[0].contains("PE 1 calls alloc_zeroed(64 bytes"));
}

/// Arguments that are impossible on one PE only are a difference like any other.
#[test]
fn impossible_arguments_of_one_pe_are_found_by_all() {
    let outcomes = spmd(2, |world| {
        let len = if world.my_pe() == 0 { usize::MAX } else { 8 };
        let size = world.alloc::<u64>(len).map(drop).unwrap_err().to_string();
        let align = if world.my_pe() == 0 { 3 } else { 8 };
        let alignment = world.alloc_aligned::<u64>(8, align).map(drop).unwrap_err().to_string();
        world.barrier();
        [size, alignment]
    });
    for text in outcomes.unwrap().concat() {
        assert!(text.contains("the PEs disagree"), "{text}");
    }
}

/// The alignment of a type may exceed a page: its arrays are aligned for it, also after they are moved.
#[test]
fn over_aligned_elements_and_arrays_stay_aligned() {
    #[derive(Clone, Copy, Element)]
    #[repr(C, align(65536))]
    struct Tile([u8; 65536]);
    spmd(2, |world| {
        let mut tiles = world.alloc_zeroed::<Tile>(2).unwrap();
        assert_eq!(tiles.exclusive(|part| part.as_ptr() as usize % 65536).unwrap(), 0);
        let array = world.alloc_aligned::<u8>(100, 1 << 20).unwrap();
        let _in_the_way = world.alloc::<u8>(1 << 20).unwrap(); // too large for the gap before the array
        let mut array = array.resize(3 << 20).unwrap();
        assert_eq!(array.exclusive(|part| part.as_ptr() as usize % (1 << 20)).unwrap(), 0);
    })
    .unwrap();
}

#[test]
fn absurd_heaps_and_rings_are_limited_or_refused() {
    Spmd::new(1).ring_bytes(usize::MAX).run(World::barrier).unwrap();
    let outcome = Spmd::new(64).heap_bytes(usize::MAX).run(World::barrier);
    assert!(outcome.unwrap_err().to_string().contains("PELAGO_HEAP_SIZE"));
}

#[test]
fn too_many_arrays_are_refused() {
    let body = |world: &World| {
        let mut arrays = Vec::new();
        let error = loop {
            match world.alloc::<u8>(1) {
                Ok(array) => arrays.push(array),
                Err(error) => break error,
            }
        };
        assert!(matches!(error.kind(), ErrorKind::TooManyArrays { count: 4352, .. }), "{error}");
        arrays.truncate(10);
        world.alloc::<u8>(1).unwrap();
    };
    Spmd::new(2).run(body).unwrap();
}
