//! The hand-out of the node's memory to the other processes. The process that has created it listens on an
//! abstract Unix socket with a random name, checks each process that connects, and sends the descriptor.
//!
//! Invariant: only a process of the same user that knows the random name and nonce gets the descriptor.
//! Nothing is inherited from the launcher, so it works the same under every launcher. If the socket cannot be
//! reached (another network namespace), `/proc/PID/fd` is the fallback: it may give the descriptor before the
//! memory is made, so the process waits for its identity.

use super::segment::{Nonce, Segment};
use crate::sync::{Ordering, fence};
use crate::types::{FabricError, FabricResult, Pe};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

const NAME_BYTES: usize = 16;
const NONCE_BYTES: usize = 16;
/// Name, nonce, process id and descriptor number.
const ADDRESS_BYTES: usize = NAME_BYTES + NONCE_BYTES + 4 + 4;
/// The time that the maker waits for a connection before it checks which PEs have attached.
const ATTACH_POLL: Duration = Duration::from_millis(10);
/// The time between two looks whether memory that was found by `/proc` is made.
const MADE_POLL: Duration = Duration::from_millis(1);
/// The time limit for the request of a peer that has connected.
const PEER_LIMIT: Duration = Duration::from_secs(1);
const REMEDY: &str = "Are all PEs of this node run by the same user, in one PID namespace?";

/// The maker's side.
#[derive(Debug)]
pub struct Handout {
    listener: OwnedFd,
    segment: OwnedFd,
    address: [u8; ADDRESS_BYTES],
}

impl Handout {
    /// Opens the socket for the descriptor of a segment that is made later.
    ///
    /// # Errors
    /// If the system refuses memory, random bytes or the socket.
    pub fn open(pe: Pe) -> FabricResult<Handout> {
        let segment = Segment::descriptor(pe)?;
        let fail = |operation: &str, e: Errno| system(pe, operation, e.to_string());
        let mut address = [0; ADDRESS_BYTES];
        rustix::rand::getrandom(
            &mut address[..NAME_BYTES + NONCE_BYTES],
            rustix::rand::GetRandomFlags::empty(),
        )
        .map_err(|e| fail("drawing a random socket name", e))?;
        address[32..36].copy_from_slice(&std::process::id().to_ne_bytes());
        address[36..40].copy_from_slice(&segment.as_raw_fd().to_ne_bytes());
        let listener = stream_socket().map_err(|e| fail("opening a Unix socket", e))?;
        let name = SocketAddrUnix::new_abstract_name(&address[..NAME_BYTES])
            .map_err(|e| fail("naming a Unix socket", e))?;
        rustix::net::bind(&listener, &name).map_err(|e| fail("binding a Unix socket", e))?;
        rustix::net::listen(&listener, 1024).map_err(|e| fail("listening on a Unix socket", e))?;
        Ok(Handout { listener, segment, address })
    }

    /// The descriptor of the memory.
    pub fn memory(&self) -> impl AsFd + '_ {
        self.segment.as_fd()
    }

    /// The address by which the others fetch the descriptor.
    pub fn address(&self) -> &[u8] {
        &self.address
    }

    /// Serves the processes that connect, until all have been served or have attached to `segment` another
    /// way, within the time limit. `process` are the maker's own PEs; all processes have the same number of
    /// PEs. A process that has no right to the memory is refused.
    ///
    /// # Errors
    /// If PEs have not attached in time, which the error lists, or if the system refuses connections.
    pub fn serve(&self, process: Range<Pe>, segment: &Segment, limit: Duration) -> FabricResult<()> {
        let (pe, processes) = (process.start, segment.layout().n_pes / process.len());
        let deadline = Instant::now() + limit;
        let mut served = 0;
        let is_missing = |&other: &Pe| segment.block(other).attached.load(Ordering::Acquire) == 0;
        loop {
            // SYNC POINT attached: acquires that the PE has mapped the memory.
            let missing: Vec<Pe> = (0..segment.layout().n_pes).filter(is_missing).collect();
            if missing.is_empty() || served + 1 == processes {
                return Ok(());
            }
            if Instant::now() > deadline {
                let remedy = "Have they started? PELAGO_INIT_TIMEOUT sets the limit";
                return Err(FabricError::Missing { pe, seconds: limit.as_secs(), missing, remedy });
            }
            if readable(&self.listener, Instant::now() + ATTACH_POLL) {
                match rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC) {
                    Ok(peer) => served += usize::from(self.serve_one(&peer, Instant::now() + PEER_LIMIT)),
                    Err(Errno::INTR | Errno::CONNABORTED | Errno::AGAIN) => {}
                    Err(e) => return Err(system(pe, "accepting a connection", e.to_string())),
                }
            }
        }
    }

    /// Checks one connection and sends the descriptor. Returns whether the peer had a right to it.
    fn serve_one(&self, peer: &OwnedFd, deadline: Instant) -> bool {
        let is_same_user = user_of(peer) == Some(rustix::process::geteuid().as_raw());
        let mut nonce = [0; NONCE_BYTES];
        if !is_same_user
            || receive_exactly(peer, &mut nonce, deadline).is_none()
            || nonce != self.address[NAME_BYTES..NAME_BYTES + NONCE_BYTES]
        {
            return false;
        }
        let fds = [self.segment.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        rustix::net::sendmsg(peer, &[IoSlice::new(&[1])], &mut ancillary, SendFlags::NOSIGNAL).is_ok()
    }
}

/// The nonce in an address; zeros if the address is invalid.
pub fn nonce_of(address: &[u8]) -> Nonce {
    let bytes = address.get(NAME_BYTES..NAME_BYTES + NONCE_BYTES).unwrap_or(&[0; NONCE_BYTES]);
    let word = |half: &[u8]| u64::from_ne_bytes(half.try_into().unwrap_or_default());
    [word(&bytes[..8]), word(&bytes[8..])]
}

/// Fetches the descriptor from the maker's address.
///
/// # Errors
/// If the address is invalid, or neither the socket nor `/proc` gives the descriptor in time.
pub fn fetch(pe: Pe, address: &[u8], limit: Duration) -> FabricResult<OwnedFd> {
    let address: &[u8; ADDRESS_BYTES] = address.try_into().map_err(|_| FabricError::Foreign {
        pe,
        what: format!("the node's memory has an address of {} bytes, not {ADDRESS_BYTES}", address.len()),
    })?;
    let deadline = Instant::now() + limit;
    fetch_by_socket(address, deadline).or_else(|reason| {
        let number = |range: Range<usize>| i32::from_ne_bytes(address[range].try_into().unwrap_or_default());
        let path = format!("/proc/{}/fd/{}", number(32..36), number(36..40));
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
        let failed = |why: &str| {
            system(pe, "fetching the node's memory", format!("by socket: {reason}; by {path}: {why}"))
        };
        let fd = rustix::fs::open(&path, flags, rustix::fs::Mode::empty());
        let fd = fd.map_err(|e| failed(&e.to_string()))?;
        // The maker may not have made the memory yet, and nothing wakes this process when it has.
        while Segment::lacks_identity(&fd) {
            if Instant::now() > deadline {
                return Err(failed("the memory was not made in time"));
            }
            std::thread::sleep(MADE_POLL);
        }
        // SYNC POINT segment-nonce: acquires the sizes.
        fence(Ordering::Acquire);
        Ok(fd)
    })
}

fn fetch_by_socket(address: &[u8; ADDRESS_BYTES], deadline: Instant) -> Result<OwnedFd, String> {
    let text = |e: Errno| e.to_string();
    let name = SocketAddrUnix::new_abstract_name(&address[..NAME_BYTES]).map_err(text)?;
    let socket = stream_socket().map_err(text)?;
    rustix::net::connect(&socket, &name).map_err(text)?;
    rustix::net::send(&socket, &address[NAME_BYTES..NAME_BYTES + NONCE_BYTES], SendFlags::NOSIGNAL)
        .map_err(text)?;
    if !readable(&socket, deadline) {
        return Err("no reply in time".into());
    }
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags).map_err(text)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(mut fds) = message
            && let Some(fd) = fds.next()
        {
            return Ok(fd);
        }
    }
    Err("the maker turned this process away".into())
}

/// The user of the process at the other end of a Unix socket. The function of rustix is unsound where that
/// process is in another PID namespace: the process number is then 0, which the type of rustix cannot have.
fn user_of(peer: &OwnedFd) -> Option<u32> {
    let mut who = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut bytes = size_of_val(&who) as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    let place = (&raw mut who).cast();
    // SAFETY: the place has room for the number of bytes that is passed with it.
    let status = unsafe { libc::getsockopt(peer.as_raw_fd(), level, option, place, &raw mut bytes) };
    (status == 0).then_some(who.uid)
}

fn stream_socket() -> Result<OwnedFd, Errno> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// Waits until there is something to read, at most until the deadline.
fn readable(fd: impl AsFd, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return false,
            Err(Errno::INTR) => continue,
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
}

fn receive_exactly(fd: &OwnedFd, buffer: &mut [u8], deadline: Instant) -> Option<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        if !readable(fd, deadline) {
            return None;
        }
        match rustix::net::recv(fd, &mut buffer[filled..], RecvFlags::empty()) {
            Ok((_, 0)) => return None,
            Ok((_, count)) => filled += count,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(())
}

fn system(pe: Pe, operation: &str, reason: String) -> FabricError {
    FabricError::System { pe, operation: operation.to_owned(), reason, remedy: REMEDY }
}
