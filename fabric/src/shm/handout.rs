//! How the node's memory reaches the other processes: its maker listens on an abstract Unix socket with a
//! random name, checks who connects, and sends the descriptor.
//!
//! Invariant: only a process of the same user that knows the random name and nonce gets the descriptor.
//! Nothing is inherited from the launcher, so it works alike under every one. Where the socket cannot be
//! reached (another network namespace), `/proc/PID/fd` is the fallback.

use crate::types::{FabricError, FabricResult, Pe};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

const NAME_BYTES: usize = 16;
const NONCE_BYTES: usize = 16;
/// Name, nonce, process id and descriptor number.
const ADDRESS_BYTES: usize = NAME_BYTES + NONCE_BYTES + 4 + 4;
/// Nonce and rank.
const REQUEST_BYTES: usize = NONCE_BYTES + 4;
const REMEDY: &str = "Are all PEs of this node run by the same user, in one PID namespace?";

/// The maker's side.
#[derive(Debug)]
pub struct Handout {
    listener: OwnedFd,
    segment: OwnedFd,
    address: [u8; ADDRESS_BYTES],
}

impl Handout {
    /// Opens the socket for the segment's descriptor.
    ///
    /// # Errors
    /// If the system refuses random bytes or the socket.
    pub fn open(pe: Pe, segment: OwnedFd) -> FabricResult<Handout> {
        let fail = |operation: &str, e: rustix::io::Errno| system(pe, operation, e.to_string());
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

    /// What the others need to fetch the descriptor.
    pub fn address(&self) -> &[u8] {
        &self.address
    }

    /// Serves every PE of `expected` once, within the time limit. Who has no right to it is turned away.
    ///
    /// # Errors
    /// If some have not come in time: the error lists them.
    pub fn serve(&self, pe: Pe, mut expected: Vec<Pe>, limit: Duration) -> FabricResult<()> {
        let deadline = Instant::now() + limit;
        while !expected.is_empty() {
            if !readable(&self.listener, deadline) {
                return Err(FabricError::Missing {
                    pe,
                    seconds: limit.as_secs(),
                    missing: expected,
                    remedy: "Have they started? PELAGO_INIT_TIMEOUT sets the limit",
                });
            }
            let Ok(peer) = rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC) else { continue };
            if let Some(rank) = self.serve_one(&peer, deadline) {
                expected.retain(|&waiting| waiting != rank);
            }
        }
        Ok(())
    }

    /// Checks one connection and sends the descriptor; answers the rank served.
    fn serve_one(&self, peer: &OwnedFd, deadline: Instant) -> Option<Pe> {
        let who = sockopt::socket_peercred(peer).ok()?;
        if who.uid != rustix::process::getuid() {
            return None;
        }
        let mut request = [0; REQUEST_BYTES];
        receive_exactly(peer, &mut request, deadline)?;
        let (nonce, rank) = request.split_at(NONCE_BYTES);
        if nonce != &self.address[NAME_BYTES..NAME_BYTES + NONCE_BYTES] {
            return None;
        }
        let fds = [self.segment.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        rustix::net::sendmsg(peer, &[IoSlice::new(&[1])], &mut ancillary, SendFlags::NOSIGNAL).ok()?;
        Some(u32::from_ne_bytes(rank.try_into().ok()?) as Pe)
    }
}

/// Fetches the descriptor from the maker's address.
///
/// # Errors
/// If the address makes no sense, or neither the socket nor `/proc` gives the descriptor in time.
pub fn fetch(pe: Pe, address: &[u8], limit: Duration) -> FabricResult<OwnedFd> {
    let address: &[u8; ADDRESS_BYTES] = address.try_into().map_err(|_| FabricError::Foreign {
        pe,
        what: format!("the node's memory has an address of {} bytes, not {ADDRESS_BYTES}", address.len()),
    })?;
    let by_socket = fetch_by_socket(pe, address, Instant::now() + limit);
    by_socket.or_else(|reason| {
        let number =
            |range: std::ops::Range<usize>| i32::from_ne_bytes(address[range].try_into().unwrap_or_default());
        let path = format!("/proc/{}/fd/{}", number(32..36), number(36..40));
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
        rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).map_err(|e| {
            system(pe, "fetching the node's memory", format!("by socket: {reason}; by {path}: {e}"))
        })
    })
}

fn fetch_by_socket(pe: Pe, address: &[u8; ADDRESS_BYTES], deadline: Instant) -> Result<OwnedFd, String> {
    let text = |e: rustix::io::Errno| e.to_string();
    let name = SocketAddrUnix::new_abstract_name(&address[..NAME_BYTES]).map_err(text)?;
    let socket = stream_socket().map_err(text)?;
    rustix::net::connect(&socket, &name).map_err(text)?;
    let mut request = [0; REQUEST_BYTES];
    request[..NONCE_BYTES].copy_from_slice(&address[NAME_BYTES..NAME_BYTES + NONCE_BYTES]);
    request[NONCE_BYTES..].copy_from_slice(&(pe as u32).to_ne_bytes());
    rustix::net::send(&socket, &request, SendFlags::NOSIGNAL).map_err(text)?;
    if !readable(&socket, deadline) {
        return Err("no answer in time".into());
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

fn stream_socket() -> Result<OwnedFd, rustix::io::Errno> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// Waits until there is something to read, at most until the deadline.
fn readable(fd: impl AsFd, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return false,
            Err(rustix::io::Errno::INTR) => continue,
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
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(())
}

fn system(pe: Pe, operation: &str, reason: String) -> FabricError {
    FabricError::System { pe, operation: operation.to_owned(), reason, remedy: REMEDY }
}
