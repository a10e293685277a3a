//! Tests of how much a receiver receives into its buffer.

use super::*;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// A frame with this number of bytes of data.
fn frame(kind: Kind, data_bytes: usize) -> Vec<u8> {
    let header = Header { bytes: data_bytes as u32, ..Header::control(kind, 0) };
    let mut bytes = header.to_bytes().to_vec();
    bytes.resize(HEADER_BYTES + data_bytes, 1);
    bytes
}

/// Takes all frames that the connection has. Returns the largest number of bytes that the buffer has had.
fn take_all(receiver: &mut Receiver, socket: RawFd, target: &mut [u8]) -> usize {
    let (mut most, mut frame) = (0, Frame::none());
    while let Received::All | Received::Full = receiver.receive(socket, Look::Everywhere).unwrap() {
        most = most.max(receiver.end - receiver.start);
        loop {
            match receiver.next(&mut frame).unwrap() {
                Next::Incomplete | Next::Skipped => break,
                Next::Complete | Next::InTarget => {}
                Next::WantsTarget => {
                    assert!(frame.header.data_bytes() <= target.len());
                    // SAFETY: the target is longer than the data, and outlives the receiver.
                    unsafe { receiver.set_target(frame.header, target.as_mut_ptr()) };
                }
            }
        }
    }
    most
}

#[test]
fn little_is_received_beside_long_data_until_short_data_fill_the_room() {
    const LONG: usize = 64 << 10;
    let mut target = vec![0; LONG];
    let (mut theirs, ours) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut receiver = Receiver::default();
    let mut most_of = |frames: &[u8]| {
        theirs.write_all(frames).unwrap();
        take_all(&mut receiver, ours.as_raw_fd(), &mut target)
    };
    let long = frame(Kind::Put, LONG);
    assert_eq!(most_of(&long), long.len(), "nothing is known of the first frame");
    assert!(most_of(&long) <= BYTES_BESIDE_LONG);
    // The announcement of the next long data comes alone, as its answer does.
    assert_eq!(most_of(&frame(Kind::Message, 40)), HEADER_BYTES + 40);
    assert!(most_of(&long) <= BYTES_BESIDE_LONG, "what is short between long data changes nothing");
    let many = frame(Kind::Message, 40).repeat(500);
    assert!(most_of(&many) > BYTES_BESIDE_LONG);
    assert_eq!(most_of(&many), many.len(), "short frames are received all at once");
    assert!(most_of(&long) > BYTES_BESIDE_LONG, "many short frames came last");
    assert!(most_of(&long) <= BYTES_BESIDE_LONG);
    let message = frame(Kind::Message, 8 << 10);
    most_of(&message);
    assert_eq!(most_of(&message), message.len(), "a message needs the buffer for all of its data");
}
