//! Progress: which calls execute which operations, which operations wait, and which are refused because a
//! queue is full.

use super::side::{Context, Options, Side, There, Told, descriptor, number};
use libc::c_int;
use pelago_fabric::copy;
use pelago_fabric::ofi::sys::*;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

const ALL: u64 = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
const MANUAL: [&str; 2] = ["like-verbs", "like-cxi"];

/// Reads memory that other endpoints write concurrently.
fn load(memory: &[u64]) -> u64 {
    // SAFETY: the word is aligned, and all other accesses use the same module.
    unsafe { copy::load(memory.as_ptr()) }
}

fn bytes_of(memory: &[u64]) -> &[u8] {
    // SAFETY: the bytes of integers; tests read them while no operation is in progress.
    unsafe { std::slice::from_raw_parts(memory.as_ptr().cast(), size_of_val(memory)) }
}

#[test]
fn with_manual_progress_each_side_moves_its_own_part_only() {
    for provider in MANUAL {
        let (memory, mut contexts) = (vec![5_u64; 8], [Context::default(), Context::default()]);
        let (source, mut target) = ([7_u64; 8], [0_u8; 64]);
        let [near, far] = Side::pair(provider);
        let there = far.there(far.register(bytes_of(&memory), ALL, 1), bytes_of(&memory), 0);
        let own = [bytes_of(&source), &target]
            .map(|memory| descriptor(near.register(memory, ALL, memory[0].into())));
        let [first, second] = &mut contexts;
        assert_eq!(near.read(&mut target, own[1], 1, there, first.place()), 0);
        // First no endpoint makes progress, then only the initiator.
        for _ in 0..100 {
            assert_eq!(near.poll(), Told::Nothing, "a read that the target did not serve");
            assert_eq!(near.counts(), (0, 0));
        }
        assert_eq!(far.poll(), Told::Nothing);
        assert_eq!(target, [0; 64], "a result before its initiator has called");
        assert!(matches!(near.poll(), Told::Done { bytes: 0, .. }));
        assert_eq!((target[0], target[8], near.counts()), (5, 5, (0, 1)));
        assert_eq!(near.write(bytes_of(&source), own[0], 1, there, second.place(), 0), 0);
        // Only the target makes progress: the write has not left.
        assert_eq!(far.poll(), Told::Nothing);
        assert_eq!(load(&memory), 5);
        (0..100).for_each(|_| assert_eq!(near.poll(), Told::Nothing));
        assert_eq!((near.counts(), load(&memory)), ((0, 1), 5), "a write that the target did not serve");
        assert_eq!(far.counts(), (0, 0), "a counter makes progress as a queue does");
        assert_eq!((load(&memory), near.counts()), (7, (1, 1)));
    }
}

#[test]
fn with_automatic_progress_it_moves_although_nobody_calls() {
    let memory = vec![0_u64; 8];
    let [near, far] = Side::pair("plain");
    let there = far.there(far.register(bytes_of(&memory), ALL, 1), bytes_of(&memory), 8);
    let source = 7_u64.to_ne_bytes();
    assert_eq!(near.write(&source, null_mut(), 1, there, null_mut(), 0), 0);
    let deadline = Instant::now() + Duration::from_secs(60);
    while load(&memory[1..]) != 7 {
        assert!(Instant::now() < deadline, "waited in vain for a write to arrive by itself");
        std::thread::yield_now();
    }
}

#[test]
fn so_much_may_be_under_way_and_no_more() {
    for provider in ["plain", "like-verbs", "like-cxi"] {
        let memory = vec![0_u64; 200];
        let [near, far] = Side::pair(provider);
        let there = far.there(far.register(bytes_of(&memory), ALL, 1), bytes_of(&memory), 0);
        let write = |index: u64| {
            let there = There { address: there.address + 8 * index, ..there };
            near.write(&(index + 1).to_ne_bytes(), null_mut(), 1, there, null_mut(), FI_INJECT)
        };
        let mut started = 0;
        let mut refusals = 0;
        while started < 200 {
            match write(started) {
                0 => started += 1,
                code => {
                    assert_eq!(code, -(FI_EAGAIN as isize));
                    refusals += 1;
                    if started == 64 && MANUAL.contains(&provider) {
                        (0..10).for_each(|_| assert!(near.counts() == (0, 0) && write(64) != 0));
                    }
                    let _ = (near.counts(), far.counts(), near.counts());
                }
            }
        }
        // With automatic progress a thread may execute the writes as quickly as they start.
        let is_full = refusals >= 1 || !MANUAL.contains(&provider);
        assert!(is_full, "{provider} accepted 200 writes, and has room for 64");
        assert!((0..1000).any(|_| far.counts() == (0, 0) && near.counts() == (200, 0)), "{provider}");
        assert!((0..200).all(|index| load(&memory[index..]) == index as u64 + 1), "{provider}");
    }
}

/// Without a guarantee there is no order: the last write to a place is not the last one to be executed.
#[test]
fn writes_overtake_each_other() {
    let memory = vec![0_u64; 1];
    let [near, far] = Side::pair("like-cxi");
    let there = far.there(far.register(bytes_of(&memory), ALL, 1), bytes_of(&memory), 0);
    for value in [1_u64, 2] {
        assert_eq!(near.write(&value.to_ne_bytes(), null_mut(), 1, there, null_mut(), FI_INJECT), 0);
    }
    let _ = (near.counts(), far.counts());
    assert_eq!((load(&memory), near.counts()), (1, (2, 0)));
}

/// A source is read as late as possible, an injected one at the call.
#[test]
fn a_source_is_the_providers_until_the_write_is_complete() {
    let (memory, mut source) = (vec![0_u64; 2], 1_u64.to_ne_bytes());
    let [near, far] = Side::pair("like-cxi");
    let there = far.there(far.register(bytes_of(&memory), ALL, 1), bytes_of(&memory), 0);
    let next = There { address: 8, ..there };
    let start = source.as_mut_ptr();
    // SAFETY: the source stays alive, and is written only through its address.
    unsafe {
        let bytes = std::slice::from_raw_parts(start, 8);
        assert_eq!(near.write(bytes, null_mut(), 1, there, null_mut(), 0), 0);
        assert_eq!(near.write(bytes, null_mut(), 1, next, null_mut(), FI_INJECT), 0);
        start.cast::<u64>().write_unaligned(2);
    }
    let _ = (near.counts(), far.counts());
    assert_eq!((near.counts(), load(&memory), load(&memory[1..])), ((2, 0), 2, 1));
}

#[test]
fn an_operation_that_leaves_an_entry_keeps_room_for_it() {
    let memory = vec![0_u64; 1];
    let [near, far] = Side::pair_with("plain", Options { entries: 3, ..Options::default() });
    let there = far.there(far.register(bytes_of(&memory), ALL, 1), bytes_of(&memory), 0);
    let write = |flags| near.write(&[1; 8], null_mut(), 1, there, number(0x10), flags | FI_INJECT);
    assert_eq!([(); 3].map(|()| write(FI_COMPLETION)), [0; 3]);
    (0..3).for_each(|_| assert_eq!(write(FI_COMPLETION), -(FI_EAGAIN as isize)));
    assert_eq!(write(0), 0, "one that leaves none");
    assert!((0..1000).any(|_| near.counts() == (4, 0)));
    assert_eq!(write(FI_COMPLETION), -(FI_EAGAIN as isize), "the entries are there");
    let entry = Told::Done { context: 0x10, flags: FI_RMA | FI_WRITE, bytes: 0, buffer: 0 };
    assert_eq!(near.poll(), entry);
    assert_eq!(write(FI_COMPLETION), 0);
    (0..3).for_each(|_| assert_eq!(near.until_told(None), entry));
    assert_eq!(near.poll(), Told::Nothing);
}

#[test]
fn entries_are_left_where_they_are_asked_for_and_by_errors_always() {
    let memory = vec![0_u64; 1];
    for selects in [false, true] {
        let [near, far] = Side::pair_with("plain", Options { selects, ..Options::default() });
        let there = far.there(far.register(bytes_of(&memory), ALL, 1), bytes_of(&memory), 0);
        assert_eq!(near.write(&[1; 8], null_mut(), 1, there, number(0x10), 0), 0);
        assert!((0..1000).any(|_| near.counts() == (1, 0)));
        assert_eq!(matches!(near.poll(), Told::Done { context: 0x10, .. }), !selects);
        let wrong = There { key: 2, ..there };
        assert_eq!(near.write(&[1; 8], null_mut(), 1, wrong, number(0x20), 0), 0);
        let told = near.until_told(None);
        // Without an entry there is no context: errors name the context of the endpoint.
        let expected = if selects { 0 } else { 0x20 };
        assert!(matches!(&told, Told::Failed { context, .. } if *context == expected), "{told:?}");
        assert_eq!((near.counts(), near.failed_writes()), ((1, 0), 1));
    }
}

#[test]
fn bad_calls_are_refused_at_once() {
    let memory = vec![0_u64; 20];
    let [near, far] = Side::pair("plain");
    let there = far.there(far.register(bytes_of(&memory), ALL, 1), bytes_of(&memory), 0);
    let null = null_mut();
    let refused = |code: c_int| -(code as isize);
    assert_eq!(near.write(&[1; 65], null, 1, there, null, FI_INJECT), refused(FI_EMSGSIZE));
    assert_eq!(near.write(&[1; 8], null, 2, there, null, 0), refused(FI_EINVAL), "nobody");
    assert_eq!(near.write(&[1; 8], null, FI_ADDR_UNSPEC, there, null, 0), refused(FI_EINVAL));
    assert_eq!(near.write(&[1; 8], null, 1, there, null, FI_COMMIT_COMPLETE), refused(FI_EBADFLAGS));
    assert_eq!(near.counts(), (0, 0));
}

#[test]
fn what_was_sent_to_one_that_closes_comes_back_as_an_error() {
    let (memory, mut context) = (vec![0_u64; 1], Context::default());
    let [near, far] = Side::pair("like-cxi");
    let there = far.there(far.register(bytes_of(&memory), ALL, 1), bytes_of(&memory), 0);
    let flags = FI_COMPLETION | FI_INJECT;
    assert_eq!(near.write(&[1; 8], null_mut(), 1, there, context.place(), flags), 0);
    assert_eq!(near.poll(), Told::Nothing);
    drop(far);
    assert!(matches!(near.until_told(None), Told::Failed { error: FI_ECONNRESET, .. }));
    assert_eq!(near.write(&[1; 8], null_mut(), 1, there, context.place(), flags), 0);
    assert!(matches!(near.until_told(None), Told::Failed { error: FI_ECONNRESET, .. }));
}

fn wait_descriptor(side: &Side) -> Result<c_int, c_int> {
    let mut descriptor: c_int = -1;
    // SAFETY: the queue is open, and there is room for a descriptor.
    match unsafe { fi_control(side.cq.cast(), FI_GETWAIT, (&raw mut descriptor).cast()) } {
        0 => Ok(descriptor),
        code => Err(code),
    }
}

fn try_wait(side: &Side) -> c_int {
    let mut fids = [side.cq.cast::<fid>()];
    // SAFETY: fabric and queue are open.
    unsafe { fi_trywait(side.fabric, fids.as_mut_ptr(), 1) }
}

/// Whether a descriptor becomes readable within `timeout` milliseconds.
fn is_readable(descriptor: c_int, timeout: c_int) -> bool {
    let mut asked = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: the array has one descriptor, which is open as long as its queue.
    unsafe { libc::poll(&mut asked, 1, timeout) == 1 }
}

#[test]
fn a_descriptor_is_readable_when_there_is_something_to_move_or_to_take() {
    for provider in MANUAL {
        let (memory, mut context) = (vec![0_u64; 1], Context::default());
        let options = Options { wait_obj: FI_WAIT_FD, ..Options::default() };
        let [near, far] = Side::pair_with(provider, options);
        let there = far.there(far.register(bytes_of(&memory), ALL, 1), bytes_of(&memory), 0);
        let [at_near, at_far] = [&near, &far].map(|side| wait_descriptor(side).unwrap());
        assert_eq!([try_wait(&near), try_wait(&far)], [0, 0]);
        assert!(!is_readable(at_near, 0) && !is_readable(at_far, 0));
        let flags = FI_COMPLETION | FI_INJECT;
        assert_eq!(near.write(&[1; 8], null_mut(), 1, there, context.place(), flags), 0);
        // The operation has to be sent, executed, returned and completed.
        assert!(is_readable(at_near, 0) && !is_readable(at_far, 0));
        assert_eq!([try_wait(&near), try_wait(&far)], [-FI_EAGAIN, 0]);
        assert_eq!(near.poll(), Told::Nothing);
        assert_eq!([try_wait(&near), try_wait(&far)], [0, -FI_EAGAIN]);
        assert!(!is_readable(at_near, 0) && is_readable(at_far, 0));
        assert_eq!(far.poll(), Told::Nothing);
        assert_eq!([try_wait(&near), try_wait(&far)], [-FI_EAGAIN, 0]);
        assert!(is_readable(at_near, 0) && !is_readable(at_far, 0));
        assert_eq!(near.counts(), (1, 0), "a counter moves it, and the entry is left");
        assert_eq!(try_wait(&near), -FI_EAGAIN);
        assert!(matches!(near.poll(), Told::Done { .. }));
        assert_eq!(try_wait(&near), 0);
        assert!(!is_readable(at_near, 0));
    }
}

#[test]
fn with_automatic_progress_a_descriptor_wakes_who_sleeps() {
    let memory = vec![0_u64; 1];
    let options = Options { wait_obj: FI_WAIT_FD, ..Options::default() };
    let [near, far] = Side::pair_with("plain", options);
    let there = far.there(far.register(bytes_of(&memory), ALL, 1), bytes_of(&memory), 0);
    let descriptor = wait_descriptor(&near).unwrap();
    assert_eq!(near.write(&[1; 8], null_mut(), 1, there, number(0x10), FI_COMPLETION | FI_INJECT), 0);
    // The write is complete only after automatic progress: at the first check, or later.
    while try_wait(&near) == 0 {
        assert!(is_readable(descriptor, 60_000), "waited in vain for a descriptor");
    }
    assert!(matches!(near.until_told(None), Told::Done { context: 0x10, .. }));
}

#[test]
fn wait_objects_are_there_where_they_were_asked_for() {
    let memory = vec![0_u64; 1];
    for (wait_obj, descriptor) in [(FI_WAIT_UNSPEC, Err(-FI_ENODATA)), (FI_WAIT_NONE, Err(-FI_ENODATA))] {
        let [near, far] = Side::pair_with("like-cxi", Options { wait_obj, ..Options::default() });
        far.register(bytes_of(&memory), ALL, 1);
        assert_eq!(wait_descriptor(&near), descriptor);
        // SAFETY: the queue is open as long as its side.
        let code = unsafe { fi_cq_signal(near.cq) };
        assert_eq!(code, if wait_obj == FI_WAIT_NONE { -FI_ENOSYS } else { 0 });
        let mut entry = Padded::<fi_cq_data_entry>::zeroed();
        let (room, null) = (entry.as_mut_ptr().cast(), std::ptr::null());
        for timeout in [60_000, 0, 1] {
            // SAFETY: the queue is open, and there is room for one entry. The first wait ends by the signal.
            let code = unsafe { fi_cq_sread(near.cq, room, 1, null, timeout) };
            let expected = if wait_obj == FI_WAIT_NONE { FI_ENOSYS } else { FI_EAGAIN };
            assert_eq!(code, -(expected as isize));
            if wait_obj == FI_WAIT_NONE {
                break;
            }
        }
    }
}

/// A thread that waits in the library executes incoming operations, and is woken by them.
#[test]
fn a_wait_serves_its_endpoint() {
    for provider in MANUAL {
        let (memory, mut context) = (vec![0_u64; 1], Context::default());
        let options = Options { wait_obj: FI_WAIT_UNSPEC, ..Options::default() };
        let [near, far] = Side::pair_with(provider, options);
        let there = far.there(far.register(bytes_of(&memory), ALL, 1), bytes_of(&memory), 0);
        std::thread::scope(|scope| {
            let served = scope.spawn(|| far.wait(60_000));
            let flags = FI_COMPLETION | FI_INJECT;
            assert_eq!(near.write(&[1; 8], null_mut(), 1, there, context.place(), flags), 0);
            let told = near.wait(60_000);
            assert!(matches!(told, Told::Done { .. }), "{told:?}");
            // SAFETY: the queue is open as long as its side.
            assert_eq!(unsafe { fi_cq_signal(far.cq) }, 0);
            assert_eq!(served.join().unwrap(), Told::Nothing);
        });
        assert_eq!(load(&memory), u64::from_ne_bytes([1; 8]));
    }
}

#[test]
fn a_null_endpoint_counts_what_asks_for_no_entry_and_moves_the_rest() {
    let memory = vec![3_u64; 1];
    let [near, far] = Side::pair("null");
    let there = far.there(far.register(bytes_of(&memory), ALL, 1), bytes_of(&memory), 0);
    assert_eq!(near.write(&[1; 8], null_mut(), 1, there, null_mut(), FI_INJECT), 0);
    assert_eq!((near.counts(), near.poll()), ((1, 0), Told::Nothing));
    assert_eq!((load(&memory), far.counts()), (3, (0, 0)));
    let (source, mut target) = ([2; 8], [0; 8]);
    assert_eq!(near.write(&source, null_mut(), 1, there, number(0x10), FI_COMPLETION), 0);
    let entry = |context, flags| Told::Done { context, flags: FI_RMA | flags, bytes: 0, buffer: 0 };
    assert_eq!(near.until_told(None), entry(0x10, FI_WRITE));
    assert_eq!(near.read(&mut target, null_mut(), 1, there, number(0x20)), 0);
    assert_eq!(near.until_told(None), entry(0x20, FI_READ));
    assert_eq!((target, near.counts()), ([2; 8], (2, 1)));
}
