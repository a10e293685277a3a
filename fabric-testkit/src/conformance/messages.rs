//! Rules of messages.

use super::Harness;
use super::group::{Group, pattern};
use pelago_fabric::{Provider, Status};
use std::collections::VecDeque;

/// Messages of all lengths arrive once, unchanged, and in the order of their sender.
pub fn messages_arrive_once_in_order_and_whole<H: Harness>() {
    let group = H::open(3);
    let limit = group.endpoints[0].limits().message_bytes;
    assert!(limit >= 64, "a message of 64 bytes fits");
    let sizes =
        [0, 1, 7, 8, 40, 41, 64, 65, 200, 4104, 4112, 9000, limit - 1, limit].map(|size| size.min(limit));
    let mut scratch = vec![1; 3];
    let mut expected: Vec<VecDeque<(u64, Vec<u8>)>> = vec![VecDeque::new(); 2];
    let check = |group: &Group<H::Endpoint>, expected: &mut Vec<VecDeque<(u64, Vec<u8>)>>| {
        for (to, from, header, payload) in group.progress_all() {
            assert_eq!(to, 2);
            assert_eq!(
                expected[from].pop_front(),
                Some((header, payload)),
                "the next message from PE {from}"
            );
        }
    };
    for round in 0..200u64 {
        for from in 0..2 {
            let payload = pattern(sizes[(round as usize * 3 + from) % sizes.len()], round as u8);
            let header = u64::MAX - round;
            for attempt in 0.. {
                assert!(attempt < group.rounds, "no room for a message");
                let endpoint = &group.endpoints[from];
                let status = match payload.split_first_chunk() {
                    Some((word, rest)) if round % 2 == 1 => {
                        let word = u64::from_ne_bytes(*word);
                        endpoint.send_with_word(2, header, (word, rest), &mut scratch)
                    }
                    _ => endpoint.send(2, header, &payload),
                };
                match status {
                    Status::Done => break,
                    Status::Again => check(&group, &mut expected),
                    Status::Pending => panic!("a message's payload is reusable at return"),
                }
            }
            expected[from].push_back((header, payload));
        }
    }
    let all_arrived = |expected: &[VecDeque<_>]| expected.iter().all(VecDeque::is_empty);
    for round in 0.. {
        if all_arrived(&expected) {
            break;
        }
        assert!(round < group.rounds, "messages lost");
        check(&group, &mut expected);
    }
    group.stays_quiet();
}

/// Sends more messages than all receive buffers of a provider hold.
pub fn long_messages_arrive_without_end<H: Harness>() {
    let group = H::open(2);
    let bytes = group.endpoints[0].limits().message_bytes;
    let count = ((3 << 20) / bytes).min(600) as u64;
    let (mut sent, mut arrived, mut rounds) = (0, 0, 0);
    while arrived < count {
        let payload = pattern(bytes, sent as u8);
        match sent < count && group.endpoints[0].send(1, sent, &payload) == Status::Done {
            true => sent += 1,
            false => rounds += 1,
        }
        assert!(rounds < group.rounds, "{arrived} of {count} messages have arrived, {sent} were accepted");
        for (to, from, header, payload) in group.progress_all() {
            assert_eq!((to, from, header), (1, 0, arrived));
            assert!(payload == pattern(bytes, arrived as u8), "message {arrived}");
            arrived += 1;
        }
    }
    group.stays_quiet();
}

/// A sender that does not stop is refused at some point; all accepted messages arrive.
pub fn a_flood_of_messages_is_refused_but_not_lost<H: Harness>() {
    let group = H::open(2);
    // The first message may have to establish the connection.
    group.accepted(|| group.endpoints[0].send(1, 0, &[1, 2, 3]));
    let (mut sent, mut refused) = (1u64, 0);
    while refused < 100 {
        match group.endpoints[0].send(1, sent, &[1, 2, 3]) {
            Status::Done => (sent, refused) = (sent + 1, 0),
            _ => refused += 1,
        }
        assert!(sent < 1_000_000, "a flood must end in Again: memory is bounded");
    }
    let mut headers = Vec::new();
    for round in 0.. {
        if headers.len() as u64 >= sent {
            break;
        }
        assert!(round < group.rounds, "messages lost");
        headers.extend(group.progress_all().into_iter().map(|(_, _, header, _)| header));
    }
    group.stays_quiet();
    assert_eq!(headers, (0..sent).collect::<Vec<_>>());
    group.accepted(|| group.endpoints[0].send(1, 0, &[]));
}
