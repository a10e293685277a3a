//! Incoming connections that fail at the end of their handshake.

use super::*;
use crate::sync::Ordering;

/// A connection to a process that has come as far as the challenge, and the proof that is due. The process
/// alone makes progress.
fn challenged(job: &Job, call: Call) -> (TcpStream, [u8; PROOF_BYTES]) {
    let mut stream = TcpStream::connect(job.address(call.to as usize)).unwrap();
    let (nonce, earlier) = (handshake::nonce().unwrap(), Earlier::default());
    stream.write_all(&handshake::hello((call, false, earlier, nonce))).unwrap();
    stream.set_nonblocking(true).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    let (mut challenge, mut count) = ([0; CHALLENGE_BYTES], 0);
    while count < CHALLENGE_BYTES {
        assert!(Instant::now() < until, "waited in vain for the challenge");
        job.endpoints[call.to as usize].progress(&mut |_| ()).unwrap();
        count += stream.read(&mut challenge[count..]).unwrap_or(0);
    }
    let (_, theirs, _) = handshake::read_challenge(&challenge);
    let terms = Terms { secret: job.secret, call, earlier, encrypts: [false; 2], nonces: [nonce, theirs] };
    (stream, terms.proof(Side::Connects))
}

#[test]
fn an_incoming_connection_that_fails_leaves_the_own_attempt() {
    let job = Job::open(2);
    let domain = &job.endpoints[1].domain;
    let n_connecting = || domain.n_connecting.load(Ordering::Relaxed);
    job.start_put(1, 0, 7);
    let (mut stream, proof) = challenged(&job, Call { from: 0, to: 1 });
    let socket = domain.incoming.lock()[0].socket.as_raw_fd();
    // The poller does not take it for the connection to a peer.
    domain.poller.remove(socket).unwrap();
    stream.write_all(&proof).unwrap();
    domain.advance_incoming(socket.unsigned_abs());
    assert!(domain.incoming.lock().is_empty() && n_connecting() == 1);
    job.until("a put", || job.endpoints[1].completions().puts == 1);
    assert_eq!(n_connecting(), 0);
}

/// The other process gives its attempt up after the same time.
#[test]
fn a_proof_that_comes_late_is_refused() {
    let job = Job::open(2);
    let domain = &job.endpoints[0].domain;
    let (mut stream, proof) = challenged(&job, Call { from: 1, to: 0 });
    domain.incoming.lock()[0].deadline = Instant::now();
    stream.write_all(&proof).unwrap();
    assert_eq!(job.answer::<1>(&mut stream), None);
    assert_eq!(domain.peer(1).connections.load(Ordering::Relaxed), 0);
    job.put(1, 0, 7);
}
