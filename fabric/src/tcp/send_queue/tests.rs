//! The send queue alone.

use super::*;
use crate::types::Event;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixStream};

#[test]
fn padding_avoids_places_between_which_copies_are_slow() {
    for kind in [Kind::Put, Kind::PutSignal, Kind::Reply, Kind::Message] {
        for (source, offset) in (0..8192).step_by(8).flat_map(|s| (0..512).step_by(8).map(move |o| (s, o))) {
            let mut queue = SendQueue { batch: vec![0; source % 4 * 32], ..SendQueue::default() };
            // Frames that wait lie in front of some.
            for bytes in (0..offset as usize % 3).map(|n| 40 * n + 24) {
                queue.pieces.push_back(Piece::Copied { bytes: vec![0; bytes + 8], sent: 8 });
            }
            // Half of the targets lie in memory that is exposed, from the byte 16 of a page on.
            let is_exposed = source % 16 == 8;
            let (word, start) = if is_exposed { (1 << 63 | 5 << 12 | 16, 16) } else { (7, 0) };
            let header = Header { word, offset, ..Header::control(kind, 0) };
            let before_bytes = HEADER_BYTES + kind.operand_bytes();
            let padding = queue.padding(&header, before_bytes, source as *const u8);
            let header = Header { padding, ..header };
            let waiting_bytes: usize = queue.pieces.iter().map(|piece| piece.unsent().1).sum();
            let place = waiting_bytes + queue.batch.len() + HEADER_BYTES + header.before_data_bytes();
            assert!(!copy::is_slow_distance(place, source), "{kind:?} from {source}");
            let is_put = kind.is_put();
            assert!(
                !is_put || !copy::is_slow_distance(start + offset as usize, place),
                "{kind:?} to {offset}"
            );
        }
    }
    let first_of_a_heap = Header { offset: 64, ..Header::control(Kind::PutSignal, 0) };
    assert_eq!(
        SendQueue::default().padding(&first_of_a_heap, HEADER_BYTES + 24, 128 as *const u8),
        u8::from(cfg!(target_arch = "x86_64"))
    );
    let array = Header { offset: 128, ..Header::control(Kind::Put, 0) };
    assert_eq!(SendQueue::default().padding(&array, HEADER_BYTES, 64 as *const u8), 0);
}

/// The words of a message lie in front of its other data, behind the padding.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_payload_of_a_message_is_in_one_piece() {
    let bytes = GATHERED_BYTES + 1;
    let memory: Vec<u8> = (0..4 * 4096).map(|i| (i / 3) as u8).collect();
    // The place of the data in the batch would be 8 bytes behind their source.
    let start = memory.as_ptr().align_offset(4096) + HEADER_BYTES;
    let rest = &memory[start..start + bytes];
    let mut queue = SendQueue::default();
    let header = Header { bytes: bytes as u32 + 8, ..Header::control(Kind::Message, 0) };
    let data = Data { start: rest.as_ptr(), bytes };
    // SAFETY: the data are valid, and are copied.
    unsafe { queue.push(header, &[!7], data, Source::Copied) }.unwrap();
    let mut sent = header;
    sent.read(queue.batch.first_chunk().unwrap()).unwrap();
    let payload = HEADER_BYTES + 8 * usize::from(sent.padding);
    assert!(sent.padding > 0 && queue.batch[HEADER_BYTES..payload].iter().all(|&byte| byte == 0));
    assert_eq!(queue.batch[payload..payload + 8], (!7_u64).to_ne_bytes());
    assert!(queue.batch[payload + 8..] == *rest);
}

/// Frames of some KiB that are sent now leave from their source. Those that wait are copied, so that a
/// call of the system sends several.
#[test]
fn frames_that_wait_are_copied_up_to_a_length() {
    let (memory, completions) = (vec![7_u8; WAITING_BYTES + 1], Arc::new(CompletionQueue::default()));
    let mut queue = SendQueue::default();
    let push = |queue: &mut SendQueue, bytes: usize, token| {
        queue.count(Some(&completions), None);
        let header = Header { bytes: bytes as u32, ..Header::control(Kind::Put, 0) };
        let source = Source::Stays(Some((Arc::clone(&completions), token)));
        let before = (queue.batch.len(), queue.pieces.len());
        // SAFETY: the memory outlives the queue.
        unsafe { queue.push(header, &[], Data { start: memory.as_ptr(), bytes }, source) }.unwrap();
        (queue.batch.len() - before.0.min(queue.batch.len()), queue.pieces.len() - before.1)
    };
    let sent = || {
        let mut events = Vec::new();
        completions.drain(&mut |event| events.push(matches!(event, Event::Sent(_))));
        events
    };
    for token in 0..Token::from(AT_ONCE) {
        assert_eq!(push(&mut queue, WAITING_BYTES, token), (0, 2), "at its source, behind its header");
    }
    queue.pieces.clear();
    assert!(sent().is_empty());
    assert_eq!(push(&mut queue, WAITING_BYTES, 9), (HEADER_BYTES + WAITING_BYTES, 0));
    assert_eq!(sent(), [true], "its source may change");
    assert_eq!(push(&mut queue, WAITING_BYTES + 1, 9), (0, 2));
    assert!(sent().is_empty());
}

/// Starts a put, or adds a reply, of the first bytes of this memory, which outlives the queue.
fn push(queue: &mut SendQueue, kind: Kind, data: &[u8], completions: &Arc<CompletionQueue>, token: Token) {
    if kind == Kind::Put {
        queue.count(Some(completions), Some(token));
    }
    let header = Header { bytes: data.len() as u32, word: token.into(), ..Header::control(kind, 0) };
    let owner = (kind == Kind::Put).then(|| (Arc::clone(completions), token));
    // SAFETY: the memory outlives the queue.
    let pushed = unsafe {
        queue.push(header, &[], Data { start: data.as_ptr(), bytes: data.len() }, Source::Stays(owner))
    };
    pushed.unwrap();
    if kind == Kind::Put && queue.is_due(&header) {
        queue.flush().unwrap();
    }
}

/// Each datagram is what one call of the system has sent.
#[test]
fn long_frames_are_sent_together() {
    const BYTES: usize = WAITING_BYTES + 4096;
    let (theirs, ours) = UnixDatagram::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let (memory, completions) = (vec![7_u8; ALONE_BYTES], Arc::default());
    let mut queue = SendQueue { socket: Some(ours.as_raw_fd()), ..SendQueue::default() };
    let mut received = vec![0; 1 << 20];
    let mut calls = || {
        let next = || theirs.recv(&mut received).ok();
        // Headers and padding come on top.
        std::iter::from_fn(next).map(|bytes| bytes / BYTES).collect::<Vec<_>>()
    };
    for few in 0..AT_ONCE {
        push(&mut queue, Kind::Put, &memory[..BYTES], &completions, few);
        assert_eq!(calls(), [1], "a few are sent at once");
    }
    for waiting in 1..PIECES_AT_ONCE / 2 {
        push(&mut queue, Kind::Put, &memory[..BYTES], &completions, 0);
        assert!(calls().is_empty() && queue.pieces.len() == 2 * waiting);
    }
    push(&mut queue, Kind::Put, &memory[..BYTES], &completions, 0);
    assert_eq!(calls(), [PIECES_AT_ONCE / 2], "as many as do not wait for others");
    queue.forget_series();
    push(&mut queue, Kind::Put, &memory[..BYTES], &completions, 0);
    assert!(calls().is_empty() && queue.pieces.len() == 2);
    push(&mut queue, Kind::Put, &memory, &completions, 0);
    assert_eq!(calls(), [1, ALONE_BYTES / BYTES], "one that does not wait, behind those that do");
    for _ in 0..3 {
        push(&mut queue, Kind::Reply, &memory[..BYTES], &completions, 0);
    }
    assert!(calls().is_empty());
    assert!(queue.flush().unwrap());
    assert_eq!(calls(), [3], "replies to the gets that have come");
    if let Some(long_ago) = Instant::now().checked_sub(Duration::from_secs(1)) {
        assert!(queue.series.waits(long_ago));
        queue.series.end(Instant::now(), false);
        push(&mut queue, Kind::Put, &memory[..BYTES], &completions, 0);
        assert_eq!(calls(), [1], "the program computes after a series");
    }
}

/// Bytes that were sent in datagrams count once.
#[test]
fn a_call_of_the_system_may_end_in_any_piece() {
    let memory = [7_u8; 30];
    let pieces = [
        Piece::Repeated { bytes: vec![0; 12], sent: 2 },
        Piece::Copied { bytes: vec![0; 20], sent: 0 },
        Piece::AtSource { start: memory.as_ptr(), bytes: 30, owner: None },
    ];
    let mut queue = SendQueue { pieces: pieces.into(), copied_bytes: 20, ..SendQueue::default() };
    let mut left = |count| {
        queue.take_sent(count);
        (
            queue.pieces.len(),
            queue.sent_bytes,
            queue.copied_bytes,
            queue.pieces.front().map(|piece| piece.unsent().1),
        )
    };
    assert_eq!(left(3), (3, 0, 20, Some(7)));
    assert_eq!(left(8), (2, 1, 19, Some(19)));
    assert_eq!(left(24), (1, 25, 0, Some(25)));
    assert_eq!(left(25), (0, 50, 0, None));
}

/// The peer is slow, so that calls of the system take parts of what waits, and end anywhere.
#[test]
fn long_frames_that_are_sent_in_parts_arrive_in_order() {
    let (mut theirs, ours) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let memory: Vec<u8> = (0..1_u32 << 18).map(|i| (i / 5) as u8).collect();
    let completions = Arc::default();
    let mut queue = SendQueue { socket: Some(ours.as_raw_fd()), ..SendQueue::default() };
    let frame = |n: usize| {
        let kind = if n % 5 == 4 { Kind::Reply } else { Kind::Put };
        (kind, &memory[n..n + 1000 + n * 7919 % (ALONE_BYTES + 9000)])
    };
    const FRAMES: usize = 200;
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 50_000]);
    for n in 0..FRAMES {
        let (kind, data) = frame(n);
        push(&mut queue, kind, data, &completions, n as Token);
        let read = theirs.read(&mut chunk[..1 + n * 6007 % 50_000]).unwrap_or(0);
        bytes.extend(&chunk[..read]);
    }
    while !queue.flush().unwrap() {
        let read = theirs.read(&mut chunk).unwrap();
        bytes.extend(&chunk[..read]);
    }
    while let Ok(read) = theirs.read(&mut chunk) {
        bytes.extend(&chunk[..read]);
    }
    let (mut rest, mut header) = (&bytes[..], Header::control(Kind::Ack, 0));
    for n in 0..FRAMES {
        header.read(rest.first_chunk().unwrap()).unwrap();
        let (kind, data) = frame(n);
        assert_eq!((header.kind, header.word, header.data_bytes()), (kind, n as u64, data.len()));
        let start = HEADER_BYTES + header.before_data_bytes();
        assert!(rest[start..start + data.len()] == *data, "frame {n}");
        rest = &rest[start + data.len()..];
    }
    assert!(rest.is_empty() && queue.sent_bytes as usize == bytes.len() && queue.copied_bytes == 0);
    let mut sent = Vec::new();
    completions.drain(&mut |event| {
        if let Event::Sent(token) = event {
            sent.push(token);
        }
    });
    // Copies of short data are free before them.
    sent.sort();
    assert_eq!(sent, (0..FRAMES as Token).filter(|n| n % 5 != 4).collect::<Vec<_>>());
}

#[test]
fn sent_bytes_of_a_connection_that_is_never_idle_take_no_memory() {
    const FRAME_BYTES: usize = HEADER_BYTES + GATHERED_BYTES;
    let (mut theirs, ours) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let mut queue = SendQueue { socket: Some(ours.as_raw_fd()), ..SendQueue::default() };
    let memory = [7_u8; GATHERED_BYTES];
    let data = Data { start: memory.as_ptr(), bytes: GATHERED_BYTES };
    let header = Header { bytes: GATHERED_BYTES as u32, ..Header::control(Kind::Reply, 0) };
    let (mut pushed, mut received, mut most) = (0, 0, 0);
    let mut into = vec![0; 64 * FRAME_BYTES];
    for round in 0..300 {
        // About 1 MiB is unsent, or nothing in the end.
        while round < 299 && queue.batch.len() - queue.sent < 1 << 20 {
            // SAFETY: the data outlive the queue, and are copied.
            unsafe { queue.push(header, &[], data, Source::Copied) }.unwrap();
            pushed += FRAME_BYTES;
        }
        received += theirs.read(&mut into).unwrap_or(0);
        queue.flush().unwrap();
        most = queue.batch.capacity().max(most);
    }
    assert!(pushed > 16 << 20 && most <= 4 << 20, "{pushed} bytes take {most}");
    while received < pushed {
        received += theirs.read(&mut into).unwrap();
        queue.flush().unwrap();
    }
    assert!(queue.batch.capacity() <= KEPT_BYTES && queue.sent_bytes as usize == pushed);
}

#[test]
fn memory_of_an_empty_list_is_given_back_if_it_is_much() {
    let mut queue = SendQueue::default();
    let expect = |queue: &mut SendQueue, count| {
        for _ in 0..count {
            let (completions, target) = (Arc::default(), std::ptr::null_mut());
            queue.expect_reply(PendingReply { completions, token: None, target, bytes: 8, atomic: None });
        }
        (0..count).for_each(|_| assert!(queue.pop_reply().is_some()));
        (queue.reply_bytes, queue.replies.capacity() * size_of::<PendingReply>())
    };
    let few = expect(&mut queue, 16);
    assert!(few.0 == 0 && few.1 > 0, "{few:?}");
    let many = expect(&mut queue, 10_000);
    assert!(many.0 == 0 && many.1 <= KEPT_BYTES, "{many:?}");
}

#[test]
fn counts_reach_their_endpoints_in_order() {
    let (one, other) = (Arc::new(CompletionQueue::default()), Arc::new(CompletionQueue::default()));
    let mut queue = SendQueue { started: u32::MAX - 2, acknowledged: u32::MAX - 2, ..SendQueue::default() };
    queue.count(Some(&one), None);
    queue.count(Some(&one), None);
    queue.count(None, None);
    queue.count(Some(&other), Some(7));
    queue.count(Some(&one), None);
    assert_eq!(queue.runs.len(), 3, "puts that follow each other are one run");
    let first = u32::MAX - 2;
    assert!(queue.acknowledge(first.wrapping_add(1)));
    assert_eq!((one.completions().puts, other.completions().puts), (1, 0));
    assert!(queue.acknowledge(first.wrapping_add(3)));
    assert_eq!((one.completions().puts, other.has_entries()), (2, false));
    assert!(queue.acknowledge(first.wrapping_add(4)));
    assert_eq!((other.completions().puts, other.has_entries()), (1, true));
    assert!(!queue.acknowledge(first.wrapping_add(6)), "more than was started");
    assert!(!queue.acknowledge(first.wrapping_add(3)), "less than before");
    assert!(queue.acknowledge(first.wrapping_add(5)));
    assert!(
        !queue.is_awaited()
            && queue.started == queue.acknowledged
            && queue.runs.is_empty()
            && one.completions().puts == 3
    );
    queue.count(Some(&one), None);
    assert_eq!((queue.runs.len(), queue.newest.as_ref().map(|run| run.count)), (0, Some(1)));
}
