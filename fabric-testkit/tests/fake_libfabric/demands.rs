//! Requirements on memory regions: descriptors, keys, addresses, pages, endpoints.

use super::side::{Context, Options, Side, There, Told, descriptor, number};
use libc::c_int;
use pelago_fabric::ofi::sys::*;
use std::ptr::null_mut;

const ALL: u64 = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
const BYTES: usize = 4096;

/// The message of the next entry, which must be a failure with this context.
#[track_caller]
fn failure(side: &Side, other: Option<&Side>, context: &mut Context, expected: c_int) -> String {
    match side.until_told(other) {
        Told::Failed { context: of, error, words } => {
            assert_eq!((of, error), (context.place().addr(), expected), "{words}");
            words
        }
        other => panic!("{other:?} instead of a failure"),
    }
}

#[track_caller]
fn success(side: &Side, other: &Side, context: &mut Context) {
    match side.until_told(Some(other)) {
        Told::Done { context: of, .. } => assert_eq!(of, context.place().addr()),
        other => panic!("{other:?} instead of a success"),
    }
}

#[test]
fn a_local_buffer_needs_the_descriptor_of_an_open_region_that_covers_it() {
    let (local, remote, mut context) = (vec![7; BYTES], vec![0; BYTES], Context::default());
    let [near, far] = Side::pair("like-verbs");
    let region = far.register(&remote, ALL, 0);
    let there = far.there(region, &remote, 0);
    let whole = descriptor(near.register(&local, ALL, 0));
    let half = descriptor(near.register(&local[..BYTES / 2], ALL, 0));
    let readable = descriptor(near.register(&local, FI_READ | FI_SEND, 0));
    let closed = near.register(&local, ALL, 0);
    let dead = descriptor(closed);
    assert_eq!(near.unregister(closed), 0);
    for (descriptor, error, words) in [
        (null_mut(), FI_EINVAL, "FI_MR_LOCAL"),
        (half, FI_EINVAL, "cover"),
        (readable, FI_EACCES, "not registered for"),
        (dead, FI_EACCES, "open region"),
        (number(0x1234), FI_EACCES, "open region"),
    ] {
        assert_eq!(near.write(&local, descriptor, 1, there, context.place(), FI_COMPLETION), 0);
        let said = failure(&near, Some(&far), &mut context, error);
        assert!(said.contains(words), "{said}");
    }
    assert!(remote.iter().all(|byte| *byte == 0), "a refused write has arrived");
    assert_eq!((near.counts(), near.failed_writes()), ((0, 0), 5));
    assert_eq!(near.write(&local, whole, 1, there, context.place(), FI_COMPLETION), 0);
    success(&near, &far, &mut context);
    // An injected write needs no descriptor.
    assert_eq!(near.write(&local[..64], null_mut(), 1, there, null_mut(), FI_INJECT), 0);
    assert!((0..1000).any(|_| far.poll() == Told::Nothing && near.counts() == (2, 0)), "an injected write");
}

#[test]
fn so_do_the_targets_of_reads_and_messages_and_the_buffers_for_them() {
    let (mut local, remote, mut context) = (vec![0; BYTES], vec![7; BYTES], Context::default());
    let [near, far] = Side::pair("like-verbs");
    let region = far.register(&remote, ALL, 0);
    let there = far.there(region, &remote, 0);
    let memory = local.clone();
    let elsewhere = descriptor(near.register(&memory, ALL, 0));
    for descriptor in [null_mut(), elsewhere] {
        assert_eq!(near.read(&mut local, descriptor, 1, there, context.place()), 0);
        failure(&near, Some(&far), &mut context, FI_EINVAL);
        assert_eq!(near.send(&local, descriptor, 1, context.place(), FI_COMPLETION), 0);
        failure(&near, Some(&far), &mut context, FI_EINVAL);
        assert_eq!(near.post(&mut local, descriptor, context.place(), FI_MULTI_RECV), 0);
        failure(&near, None, &mut context, FI_EINVAL);
    }
    assert!(local.iter().all(|byte| *byte == 0), "a refused read has arrived");
    let own = descriptor(near.register(&local, ALL, 0));
    assert_eq!(near.read(&mut local, own, 1, there, context.place()), 0);
    success(&near, &far, &mut context);
    assert!(local == remote);
}

/// A registration that is closed too early is detected, whatever the progress of the operation.
#[test]
fn a_region_stays_open_until_its_operations_are_complete() {
    let (mut local, remote) = (vec![0; BYTES], vec![7; BYTES]);
    let mut contexts = [(); 3].map(|()| Context::default());
    let [near, far] = Side::pair("like-verbs");
    let region = far.register(&remote, ALL, 0);
    let there = far.there(region, &remote, 0);
    let source = vec![9; BYTES];
    let [put, got, posted] = [&source, &local, &local].map(|memory| near.register(memory, ALL, 0));
    assert_eq!(near.write(&source, descriptor(put), 1, there, contexts[0].place(), FI_COMPLETION), 0);
    assert_eq!(near.read(&mut local, descriptor(got), 1, there, contexts[1].place()), 0);
    assert_eq!(near.poll(), Told::Nothing);
    // The write is at its target, the read has been executed.
    assert_eq!(near.unregister(put), 0);
    assert_eq!(far.poll(), Told::Nothing);
    assert_eq!(near.unregister(got), 0);
    let mut told = [near.until_told(None), near.until_told(None)].map(|told| match told {
        Told::Failed { context, words, .. } => (context, words.contains("open region")),
        other => panic!("{other:?} instead of a failure"),
    });
    told.sort_by_key(|(context, _)| *context != contexts[0].place().addr());
    assert_eq!(told, [(contexts[0].place().addr(), true), (contexts[1].place().addr(), true)]);
    assert!(remote.iter().all(|byte| *byte == 7) && local.iter().all(|byte| *byte == 0));
    assert_eq!(near.post(&mut local, descriptor(posted), contexts[2].place(), FI_MULTI_RECV), 0);
    assert_eq!(near.unregister(posted), 0);
    assert_eq!(far.send(b"hello", null_mut(), 0, null_mut(), FI_INJECT), 0);
    assert_eq!(far.poll(), Told::Nothing);
    failure(&near, Some(&far), &mut contexts[2], FI_EACCES);
}

#[test]
fn a_provider_that_chooses_keys_takes_no_others() {
    let (memory, mut context) = (vec![0; BYTES], Context::default());
    let [near, far] = Side::pair("like-verbs");
    let regions = [(); 3].map(|()| far.register(&memory, ALL, 42));
    let keys = regions.map(|region| far.there(region, &memory, 0).key);
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
    assert!(keys.iter().all(|key| *key > u64::from(u32::MAX)), "{keys:?}");
    let own = descriptor(near.register(&memory, ALL, 0));
    let right = far.there(regions[0], &memory, 0);
    for key in [42, 0, keys[0] ^ 1, keys[0] + 1] {
        assert_eq!(
            near.write(&memory[..8], own, 1, There { key, ..right }, context.place(), FI_COMPLETION),
            0
        );
        failure(&near, Some(&far), &mut context, FI_EKEYREJECTED);
    }
    assert_eq!(far.unregister(regions[1]), 0);
    let closed = There { key: keys[1], ..right };
    assert_eq!(near.write(&memory[..8], own, 1, closed, context.place(), FI_COMPLETION), 0);
    failure(&near, Some(&far), &mut context, FI_EKEYREJECTED);
}

#[test]
fn addresses_are_virtual_or_offsets_and_lie_inside_the_region() {
    for provider in ["plain", "like-verbs", "like-cxi"] {
        let (memory, mut context) = (vec![0; BYTES], Context::default());
        let [near, far] = Side::pair(provider);
        let region = far.register(&memory[8..BYTES - 8], ALL, 1);
        let own = descriptor(near.register(&memory, ALL, 2));
        let own = if provider == "like-verbs" { own } else { null_mut() };
        let inside = far.there(region, &memory[8..], 0);
        let shifted = |by: i64| There { address: inside.address.wrapping_add_signed(by), ..inside };
        let room = (BYTES - 16) as i64;
        let other_way = match provider {
            "like-verbs" => There { address: 0, ..inside },
            _ => There { address: memory.as_ptr().addr() as u64 + 8, ..inside },
        };
        for there in [shifted(-1), shifted(room - 7), shifted(room), shifted(i64::MAX), other_way] {
            assert_eq!(near.write(&[9; 8], own, 1, there, context.place(), FI_COMPLETION | FI_INJECT), 0);
            failure(&near, Some(&far), &mut context, FI_EIO);
        }
        assert!(memory.iter().all(|byte| *byte == 0), "{provider}");
        assert_eq!(
            near.write(&[9; 8], own, 1, shifted(room - 8), context.place(), FI_COMPLETION | FI_INJECT),
            0
        );
        success(&near, &far, &mut context);
        assert_eq!(memory.iter().position(|byte| *byte == 9), Some(BYTES - 16), "{provider}");
    }
}

#[test]
fn a_region_lets_peers_do_what_it_was_registered_for() {
    let (memory, mut context) = (vec![0; BYTES], Context::default());
    let [near, far] = Side::pair("plain");
    let readable = far.there(far.register(&memory, FI_REMOTE_READ, 1), &memory, 0);
    let writable = far.there(far.register(&memory, FI_REMOTE_WRITE, 2), &memory, 0);
    let flags = FI_COMPLETION | FI_INJECT;
    assert_eq!(near.write(&[9; 8], null_mut(), 1, readable, context.place(), flags), 0);
    failure(&near, Some(&far), &mut context, FI_EACCES);
    let mut target = [0; 8];
    assert_eq!(near.read(&mut target, null_mut(), 1, writable, context.place()), 0);
    failure(&near, Some(&far), &mut context, FI_EACCES);
    assert!(memory.iter().all(|byte| *byte == 0));
}

#[test]
fn pages_must_be_there_where_the_provider_asks_for_it() {
    // An address where nothing is mapped, so that wrong pointers are detected.
    let nowhere = std::ptr::without_provenance(4096);
    for (provider, expected) in [("plain", 0), ("like-verbs", -libc::EFAULT), ("like-cxi", -libc::EFAULT)] {
        let [side, _] = Side::pair(provider);
        let (mut region, null) = (null_mut(), null_mut());
        // SAFETY: the domain is open, and the range is not accessed.
        unsafe {
            let code = fi_mr_reg(side.domain, nowhere, BYTES, ALL, 0, 5, 0, &mut region, null);
            assert_eq!(code, expected, "{provider}");
            assert!(code != 0 || fi_close(region.cast()) == 0);
        }
    }
}

#[test]
fn chosen_keys_are_chosen_once_and_not_too_long() {
    let memory = vec![0; BYTES];
    for (provider, longest) in [("plain", u64::MAX - 1), ("like-cxi", u64::from(u32::MAX))] {
        let [side, other] = Side::pair(provider);
        let first = side.register(&memory, ALL, 3);
        assert_eq!(side.try_register(&memory[..8], ALL, 3), Err(-FI_ENOKEY), "{provider}");
        other.register(&memory, ALL, 3);
        side.register(&memory, ALL, longest);
        if longest < u64::from(u32::MAX) + 1 {
            assert_eq!(side.try_register(&memory, ALL, longest + 1), Err(-FI_EKEYREJECTED));
            continue;
        }
        assert_eq!(side.unregister(first), 0);
        side.register(&memory, ALL, 3);
    }
    let [side, _] = Side::pair("plain");
    assert_eq!(side.try_register(&memory, 0, 1), Err(-FI_EINVAL), "a region for nothing");
}

#[test]
fn regions_of_endpoints_are_bound_then_enabled_then_reached_there_alone() {
    let (memory, mut context) = (vec![0; BYTES], Context::default());
    let [near, far] = Side::pair("like-cxi");
    let sibling = far.sibling();
    let second = near.insert(&sibling.name()).unwrap();
    let region = far.try_register(&memory, ALL, 1).unwrap();
    let there = There { address: 0, key: 1 };
    let write = |to, context: &mut Context| {
        assert_eq!(near.write(&[9; 8], null_mut(), to, there, context.place(), FI_COMPLETION | FI_INJECT), 0);
    };
    // SAFETY: region and endpoints are open.
    unsafe {
        assert_eq!(fi_mr_key(region), FI_KEY_NOTAVAIL);
        write(1, &mut context);
        let words = failure(&near, Some(&far), &mut context, FI_EKEYREJECTED);
        assert!(words.contains("not enabled"), "{words}");
        assert_eq!(fi_mr_enable(region), -FI_EOPBADSTATE, "not bound yet");
        assert_eq!(fi_mr_bind(region, near.ep.cast(), 0), -FI_EINVAL, "another domain's endpoint");
        assert_eq!(fi_mr_bind(region, far.cq.cast(), 0), -FI_EINVAL, "not an endpoint");
        assert_eq!(fi_mr_bind(region, far.ep.cast(), 0), 0);
        assert_eq!(fi_mr_enable(region), 0);
        assert_eq!(fi_mr_key(region), 1);
        assert_eq!(fi_mr_bind(region, far.ep.cast(), 0), -FI_EOPBADSTATE, "enabled already");
        assert_eq!(fi_mr_enable(region), -FI_EOPBADSTATE);
    }
    write(second, &mut context);
    let words = failure(&near, Some(&sibling), &mut context, FI_EKEYREJECTED);
    assert!(words.contains("another endpoint"), "{words}");
    assert!(memory.iter().all(|byte| *byte == 0));
    write(1, &mut context);
    success(&near, &far, &mut context);
    assert_eq!(memory[..9], [9, 9, 9, 9, 9, 9, 9, 9, 0]);
    assert_eq!(far.unregister(region), -FI_EBUSY, "its endpoint is open");
    // SAFETY: the region is open, and of a provider that does not bind regions.
    unsafe {
        let [plain, _] = Side::pair("plain");
        let region = plain.register(&memory, ALL, 1);
        assert_eq!(fi_mr_bind(region, plain.ep.cast(), 0), -FI_ENOSYS);
    }
}

#[test]
fn a_context_is_the_providers_while_its_operation_is_under_way() {
    for provider in ["like-verbs", "like-cxi"] {
        let (memory, mut context) = (vec![0; BYTES], Context::default());
        let [near, far] = Side::pair(provider);
        let there = far.there(far.register(&memory, ALL, 1), &memory, 0);
        let flags = FI_COMPLETION | FI_INJECT;
        assert_eq!(near.write(&[1; 8], null_mut(), 1, there, null_mut(), flags), -(FI_EINVAL as isize));
        assert_eq!(near.write(&[1; 8], null_mut(), 1, there, context.place(), flags), 0);
        context.spoil();
        let words = failure(&near, Some(&far), &mut context, FI_EOTHER);
        assert!(words.contains("context"), "{words}");
    }
}

#[test]
fn a_call_names_one_buffer_at_the_most() {
    let mut memory = [0_u64; 2];
    let side = Side::open("plain", Options::default());
    assert_eq!(side.insert(&side.name()), Some(0));
    let start = memory.as_mut_ptr().cast();
    let (bytes, mut words) =
        ([iovec { iov_base: start, iov_len: 8 }; 2], [fi_ioc { addr: start, count: 1 }; 2]);
    let ranges = [fi_rma_iov { addr: 0, len: 8, key: 0 }; 2];
    let remote_words = [fi_rma_ioc { addr: 0, count: 1, key: 0 }; 2];
    let (addr, context, desc, data) = (0, null_mut(), null_mut(), 0);
    let mut codes = |iov_count, rma_iov_count, result_count| {
        let (msg_iov, rma_iov) = (bytes.as_ptr(), ranges.as_ptr());
        let message = fi_msg { msg_iov, desc, iov_count, addr, context, data };
        let transfer = fi_msg_rma { msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, context, data };
        let (msg_iov, rma_iov, datatype, op) = (words.as_ptr(), remote_words.as_ptr(), FI_UINT64, FI_SUM);
        let atomic = fi_msg_atomic {
            msg_iov,
            desc,
            iov_count,
            addr,
            rma_iov,
            rma_iov_count,
            datatype,
            op,
            context,
            data,
        };
        let results = words.as_mut_ptr();
        // SAFETY: the endpoint is open, and the arrays have two elements; the memory outlives the endpoint.
        unsafe {
            [
                fi_sendmsg(side.ep, &message, FI_COMPLETION),
                fi_recvmsg(side.ep, &message, 0),
                fi_writemsg(side.ep, &transfer, 0),
                fi_readmsg(side.ep, &transfer, 0),
                fi_atomicmsg(side.ep, &atomic, 0),
                fi_fetch_atomicmsg(side.ep, &atomic, results, null_mut(), result_count, 0),
            ]
        }
    };
    let no = -(FI_EINVAL as isize);
    assert_eq!(codes(2, 1, 1), [no; 6], "two buffers");
    assert_eq!(codes(1, 2, 1), [0, 0, no, no, no, no], "two ranges of the peer's");
    assert_eq!(codes(1, 0, 1), [0, 0, no, no, no, no], "no range of the peer's");
    assert_eq!(codes(1, 1, 2), [0, 0, 0, 0, 0, no], "two results");
}
