//! Messages and receive buffers.

use super::side::{Context, Options, Side, Told, descriptor};
use pelago_fabric::ofi::sys::*;
use std::ptr::null_mut;

const NETS: [&str; 3] = ["plain", "like-verbs", "like-cxi"];
const LEAST_ROOM: usize = 16;

fn set_least_room(side: &Side) {
    let bytes = LEAST_ROOM;
    // SAFETY: the endpoint is open, and the option is a size.
    let code = unsafe {
        let value = std::ptr::from_ref(&bytes).cast();
        fi_setopt(side.ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, value, size_of::<usize>())
    };
    assert_eq!(code, 0);
}

fn send(near: &Side, payload: &[u8]) {
    assert_eq!(near.send(payload, null_mut(), 1, null_mut(), FI_INJECT), 0);
    assert_eq!(near.poll(), Told::Nothing);
}

#[test]
fn a_buffer_takes_several_messages_and_comes_back_when_little_is_left() {
    for provider in NETS {
        let (mut buffer, mut context) = (vec![0; 64], Context::default());
        let [near, far] = Side::pair(provider);
        set_least_room(&far);
        let region = far.register(&buffer, FI_RECV, 1);
        let start = buffer.as_ptr().addr();
        let own = descriptor(region);
        assert_eq!(far.post(&mut buffer, own, context.place(), FI_MULTI_RECV), 0);
        let messages: [&[u8]; 4] = [b"first", b"", &[3; 43], b"afterwards"];
        messages.iter().for_each(|message| send(&near, message));
        let (context, flags) = (context.place().addr(), FI_MSG | FI_RECV);
        let entry = |at: usize, bytes| Told::Done { context, flags, bytes, buffer: start + at };
        assert_eq!([(); 2].map(|()| far.until_told(None)), [entry(0, 5), entry(5, 0)], "{provider}");
        // The first message leaves exactly the required space; the next one leaves less.
        assert_eq!(far.until_told(None), entry(5, 43), "{provider}");
        let last = Told::Done { context, flags: flags | FI_MULTI_RECV, bytes: 10, buffer: start + 48 };
        let release = Told::Done { context, flags: FI_MULTI_RECV, bytes: 0, buffer: 0 };
        match provider {
            "like-cxi" => {
                assert_eq!([(); 2].map(|()| far.until_told(None)), [entry(48, 10), release]);
            }
            _ => assert_eq!(far.until_told(None), last, "{provider}"),
        }
        let text: Vec<u8> = messages.concat();
        assert_eq!(buffer[..text.len()], text, "{provider}");
        assert_eq!(far.poll(), Told::Nothing);
    }
}

#[test]
fn messages_wait_for_buffers_and_stay_in_order() {
    for provider in NETS {
        let mut buffers = vec![vec![0_u8; 8]; 100];
        let mut contexts: Vec<_> = buffers.iter().map(|_| Context::default()).collect();
        let [near, far] = Side::pair(provider);
        let (mut sent, mut received) = (0_u64, 0_u64);
        for _ in 0..10_000 {
            match near.send(&sent.to_ne_bytes(), null_mut(), 1, null_mut(), FI_INJECT) {
                0 => sent += 1,
                code => assert_eq!(code, -(FI_EAGAIN as isize)),
            }
            assert_eq!((near.poll(), far.poll()), (Told::Nothing, Told::Nothing));
        }
        // The maximum number of messages that have left, and of those that have not.
        assert_eq!(sent, 128, "{provider}");
        for (buffer, context) in buffers.iter_mut().zip(&mut contexts) {
            let own = descriptor(far.register(buffer, FI_RECV, received));
            let own = if provider == "like-verbs" { own } else { null_mut() };
            assert_eq!(far.post(buffer, own, context.place(), 0), 0);
            let told = far.until_told(Some(&near));
            assert!(matches!(told, Told::Done { bytes: 8, .. }), "{told:?}");
            assert_eq!(buffer[..], received.to_ne_bytes(), "{provider}");
            received += 1;
        }
    }
}

#[test]
fn a_message_is_complete_when_it_has_left() {
    let mut context = Context::default();
    let [near, far] = Side::pair("like-cxi");
    assert_eq!(near.send(&[7; 100], null_mut(), 1, context.place(), FI_COMPLETION), 0);
    // The target has not made progress.
    let told = near.until_told(None);
    assert!(matches!(told, Told::Done { flags, .. } if flags == FI_MSG | FI_SEND), "{told:?}");
    let (mut buffer, mut posted) = (vec![0; 100], Context::default());
    assert_eq!(far.post(&mut buffer, null_mut(), posted.place(), 0), 0);
    assert!(matches!(far.until_told(None), Told::Done { bytes: 100, .. }));
    assert_eq!(buffer, [7; 100]);
}

#[test]
fn a_message_that_is_too_long_is_an_error_of_its_buffer() {
    let (mut buffer, mut context) = (vec![0; 8], Context::default());
    let [near, far] = Side::pair("like-cxi");
    assert_eq!(far.post(&mut buffer, null_mut(), context.place(), 0), 0);
    send(&near, &[1; 9]);
    let told = far.until_told(None);
    assert!(matches!(told, Told::Failed { error: FI_ETRUNC, .. }), "{told:?}");
    assert_eq!(buffer, [0; 8]);
}

#[test]
fn a_buffer_can_be_taken_back() {
    let (mut buffer, mut context) = (vec![0; 8], Context::default());
    let [near, far] = Side::pair("like-verbs");
    let own = descriptor(far.register(&buffer, FI_RECV, 0));
    assert_eq!(far.post(&mut buffer, own, context.place(), 0), 0);
    // SAFETY: the endpoint is open as long as its side.
    assert_eq!(unsafe { fi_cancel(far.ep, context.place()) }, 0);
    // SAFETY: the endpoint is open as long as its side.
    assert_eq!(unsafe { fi_cancel(far.ep, context.place()) }, -(FI_ENOENT as isize));
    let told = far.until_told(None);
    let (place, of_it) = (context.place().addr(), &told);
    assert!(
        matches!(of_it, Told::Failed { context, error: FI_ECANCELED, .. } if *context == place),
        "{told:?}"
    );
    send(&near, &[1; 8]);
    assert_eq!(far.poll(), Told::Nothing);
    assert_eq!(buffer, [0; 8]);
}

/// Messages do not overrun the queue either: they wait until entries are read.
#[test]
fn messages_wait_for_room_in_the_queue() {
    let (mut buffer, mut context) = (vec![0; 4096], Context::default());
    let [near, far] = Side::pair_with("plain", Options { entries: 4, ..Options::default() });
    set_least_room(&far);
    assert_eq!(far.post(&mut buffer, null_mut(), context.place(), FI_MULTI_RECV), 0);
    for number in 0..20 {
        send(&near, &[number; 4]);
    }
    let mut room = [0; 20].map(|_: u8| Padded::<fi_cq_data_entry>::zeroed().known);
    let mut taken = 0;
    for _ in 0..1000 {
        // SAFETY: the queue is open, and the array has this number of entries.
        let count = unsafe { fi_cq_read(far.cq, room.as_mut_ptr().cast(), 20) };
        assert!(count <= 4, "{count} entries in a queue of 4");
        taken += usize::try_from(count).unwrap_or(0);
    }
    assert_eq!(taken, 20);
    assert!((0..80).all(|at| buffer[at] == (at / 4) as u8));
}
