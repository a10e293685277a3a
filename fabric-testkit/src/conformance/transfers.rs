//! Rules of puts and gets, and of the memory that they access.

use super::group::pattern;
use super::{Harness, KEY, REGION_BYTES};
use pelago_fabric::{Completion, FabricResult, Get, Provider, Put, Remote, Status};
use proptest::prelude::*;
use std::ptr::NonNull;

/// Puts from 0 bytes to 1 MiB arrive, and write only their target range.
pub fn puts_of_all_sizes_arrive_and_touch_nothing_else<H: Harness>() {
    let group = H::open(2);
    let mut model = vec![0u8; REGION_BYTES];
    let sizes = [0, 1, 2, 3, 4, 7, 8, 9, 63, 64, 65, 4095, 4096, 65537, 1 << 20];
    for (i, bytes) in sizes.into_iter().enumerate() {
        let offset = 1 + i * 100_003 % (REGION_BYTES - (1 << 20) - 1);
        let source = pattern(bytes, i as u8 + 1);
        group.put(0, 1, &source, offset);
        model[offset..offset + bytes].copy_from_slice(&source);
        assert!(group.region(1) == model, "after {bytes} bytes at {offset}");
    }
    assert!(group.region(0).iter().all(|&byte| byte == 0), "the sender's own region was written");
}

/// Gets of several lengths return the data at their target.
pub fn gets_bring_what_is_there<H: Harness>() {
    let group = H::open(3);
    let data = pattern(200_000, 9);
    group.put(0, 2, &data, 77);
    for (bytes, at) in [(0, 77), (1, 78), (8, 80), (4096, 100), (200_000, 77)] {
        assert_eq!(group.get(1, 2, bytes, at), data[at - 77..at - 77 + bytes]);
    }
}

/// A PE puts to its own region and gets from it.
pub fn a_pe_reaches_itself<H: Harness>() {
    let group = H::open(1);
    group.put(0, 0, b"to myself", 1000);
    assert_eq!(group.get(0, 0, 9, 1000), b"to myself");
}

/// The source of a put of up to `Limits::inject_bytes` may change as soon as the call returns.
pub fn injected_sources_are_free_at_return<H: Harness>() {
    let group = H::open(2);
    let bytes = group.endpoints[0].limits().inject_bytes.min(4096);
    let mut source = pattern(bytes, 3);
    let remote = Remote { key: KEY, offset_bytes: 8 };
    let before = group.endpoints[0].completions().puts;
    // SAFETY: up to the inject size the source need only live until return.
    group.accepted(|| unsafe {
        group.endpoints[0].put(Put {
            pe: 1,
            source: source.as_ptr(),
            bytes,
            target: remote,
            completion: Completion::Counted,
        })
    });
    source.fill(0);
    group.until(|| group.endpoints[0].completions().puts == before + 1, "the put to complete");
    assert_eq!(group.get(0, 1, bytes, 8), pattern(bytes, 3));
}

/// Each of many operations is counted once as complete, at the PE that started it.
pub fn every_operation_completes_exactly_once<H: Harness>() {
    let group = H::open(2);
    let (source, mut target) = (pattern(100_000, 1), vec![0; 1000]);
    let endpoint = &group.endpoints[0];
    let address = target.as_mut_ptr();
    for i in 0..50 {
        let remote = Remote { key: KEY, offset_bytes: i * 16 };
        // SAFETY: source and target outlive the loop that waits for completion; both ranges lie in the
        // region.
        group.accepted(|| unsafe {
            endpoint.put(Put {
                pe: 1,
                source: source.as_ptr(),
                bytes: 100_000,
                target: remote,
                completion: Completion::Counted,
            })
        });
        // SAFETY: source and target outlive the loop that waits for completion; the range lies in the region.
        group.accepted(|| unsafe {
            endpoint.get(Get {
                pe: 1,
                target: address,
                bytes: 1000,
                source: remote,
                completion: Completion::Counted,
            })
        });
    }
    group.until(|| endpoint.completions().puts >= 50 && endpoint.completions().gets >= 50, "100 completions");
    group.progress_all();
    let done = endpoint.completions();
    assert_eq!((done.puts, done.gets), (50, 50));
    assert_eq!(group.endpoints[1].completions().puts, 0, "completions belong to the initiator");
}

/// A put that returned `Status::Again` writes nothing and is not counted.
pub fn what_was_answered_again_has_not_happened<H: Harness>() {
    let group = H::open(2);
    let sources: Vec<Vec<u8>> = (0..64).map(|i| vec![i + 1; 512]).collect();
    let mut accepted = vec![false; sources.len()];
    for (i, source) in sources.iter().enumerate() {
        let remote = Remote { key: KEY, offset_bytes: i * 512 };
        // SAFETY: the sources outlive the wait below; the range lies in the region.
        let status = unsafe {
            group.endpoints[0].put(Put {
                pe: 1,
                source: source.as_ptr(),
                bytes: 512,
                target: remote,
                completion: Completion::Counted,
            })
        };
        accepted[i] = status != Status::Again;
    }
    let expected = accepted.iter().filter(|&&yes| yes).count() as u64;
    group.until(|| group.endpoints[0].completions().puts == expected, "the accepted puts to complete");
    let region = group.region(1);
    for (i, &was_accepted) in accepted.iter().enumerate() {
        let byte = if was_accepted { i as u8 + 1 } else { 0 };
        assert!(
            region[i * 512..(i + 1) * 512].iter().all(|&b| b == byte),
            "put {i}, accepted: {was_accepted}"
        );
    }
}

/// A key that is taken is refused; a second region is reached by its own key.
pub fn a_key_names_one_region<H: Harness>() {
    let mut group = H::open(1);
    let region = group.regions[0];
    assert!(group.endpoints[0].register(KEY, region, 64).is_err(), "the key is taken");
    // SAFETY: the region is longer than a MiB.
    let inside = unsafe { region.add(1 << 20) };
    let result: FabricResult<()> = group.endpoints[0].register(KEY + 1, inside, 4096);
    result.unwrap();
    group.exchange_keys();
    let before = group.endpoints[0].completions().puts;
    let remote = Remote { key: KEY + 1, offset_bytes: 5 };
    // SAFETY: a static source; the range lies in the second region.
    group.accepted(|| unsafe {
        group.endpoints[0].put(Put {
            pe: 0,
            source: b"second".as_ptr(),
            bytes: 6,
            target: remote,
            completion: Completion::Counted,
        })
    });
    group.until(|| group.endpoints[0].completions().puts == before + 1, "the put to complete");
    assert_eq!(group.get(0, 0, 6, (1 << 20) + 5), b"second");
}

/// Memory that is exposed takes puts of other PEs, under a key that nothing else has had.
pub fn exposed_memory_takes_puts_until_it_is_concealed<H: Harness>() {
    let group = H::open(2);
    let endpoint = &group.endpoints[1];
    let mut keys = vec![KEY];
    for round in 0..3_u8 {
        let (source, mut memory) = (pattern(100_000, round), vec![0_u8; 100_010]);
        let start = NonNull::new(memory.as_mut_ptr()).unwrap();
        // SAFETY: the memory is concealed before it is freed.
        let Some(key) = (unsafe { endpoint.expose(start, memory.len()) }) else { return };
        assert!(!keys.contains(&key), "key {key} was used before");
        keys.push(key);
        let before = group.endpoints[0].completions().puts;
        // SAFETY: the source lives until the put is complete; the range lies in the exposed memory.
        group.accepted(|| unsafe {
            group.endpoints[0].put(Put {
                pe: 1,
                source: source.as_ptr(),
                bytes: source.len(),
                target: Remote { key, offset_bytes: 5 },
                completion: Completion::Counted,
            })
        });
        group.until(|| group.endpoints[0].completions().puts == before + 1, "the put to complete");
        endpoint.conceal(key);
        assert!(memory[5..100_005] == source && memory[..5] == [0; 5] && memory[100_005..] == [0; 5]);
    }
}

/// An endpoint that is not used reports no event and no completion.
pub fn nothing_happens_without_traffic<H: Harness>() {
    let group = H::open(2);
    assert!(group.progress_all().is_empty());
    assert_eq!(group.endpoints[0].completions(), Default::default());
}

/// Compares random puts and gets of random PEs with a model of plain arrays.
pub fn random_transfers_equal_the_model<H: Harness>() {
    let transfer = (0usize..3, 0usize..3, 0usize..5000, 0usize..3000, any::<u8>(), any::<bool>());
    let transfers = prop::collection::vec(transfer, 1..40);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(H::CASES));
    let outcome = runner.run(&transfers, |transfers| {
        let group = H::open(3);
        let mut model = vec![vec![0u8; 8192]; 3];
        for (from, to, at, bytes, seed, is_put) in transfers {
            if is_put {
                let source = pattern(bytes, seed);
                group.put(from, to, &source, at);
                model[to][at..at + bytes].copy_from_slice(&source);
            } else {
                prop_assert_eq!(&group.get(from, to, bytes, at)[..], &model[to][at..at + bytes]);
            }
        }
        for (pe, model) in model.iter().enumerate() {
            prop_assert_eq!(&group.region(pe)[..8192], &model[..]);
        }
        Ok(())
    });
    outcome.unwrap();
}
