//! The system's calls on sockets, none of which waits. Those that every round of progress makes go straight
//! to the system: the C library's functions are points of cancellation, which costs a process with several
//! threads two atomic accesses in each call.

use super::congestion::Congestion;
use libc::{c_int, c_long, c_void};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::time::Duration;

/// Connections that the system keeps until they are accepted.
const BACKLOG: i32 = 1024;

/// The time without a byte after which the system asks whether the other side is there. It asks again as
/// often as the system's settings say: by default for 11 minutes, before it gives the connection up.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(60);

/// The state of a connection that was reset. A connection that the other side has closed is in
/// `TCP_CLOSE_WAIT`.
const TCP_CLOSE: u8 = 7;

/// The outcome of a call that moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// This number of bytes, at least one.
    Bytes(usize),
    /// No bytes now.
    Nothing,
    /// No more bytes: the other side has closed the connection.
    End,
}

/// An element of the vector that `sendmsg` and `recvmsg` take.
pub(super) fn part(start: *const u8, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: start.cast_mut().cast::<c_void>(), iov_len: bytes }
}

#[inline]
fn moved(result: c_long) -> io::Result<Moved> {
    match result {
        0 => Ok(Moved::End),
        1.. => Ok(Moved::Bytes(result.unsigned_abs() as usize)),
        _ => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => Ok(Moved::Nothing),
            error => Err(error),
        },
    }
}

/// Sends the parts, or their first bytes.
///
/// # Safety
/// The parts are valid for reads, and not all empty.
pub(super) unsafe fn send(socket: RawFd, parts: &[libc::iovec]) -> io::Result<Moved> {
    let (flags, nobody) = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL, null::<c_void>());
    // SAFETY: the caller has promised the parts; a message of zeros has neither a name nor control data.
    unsafe {
        if let [only] = parts {
            let (start, bytes) = (only.iov_base, only.iov_len);
            return moved(libc::syscall(libc::SYS_sendto, socket, start, bytes, flags, nobody, 0));
        }
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = parts.as_ptr().cast_mut();
        message.msg_iovlen = parts.len() as _;
        moved(libc::syscall(libc::SYS_sendmsg, socket, &raw const message, flags))
    }
}

/// Receives into the parts, in their order.
///
/// # Safety
/// The parts are valid for writes, and not all empty.
pub(super) unsafe fn receive(socket: RawFd, parts: &mut [libc::iovec]) -> io::Result<Moved> {
    let (flags, nobody) = (libc::MSG_DONTWAIT, null_mut::<c_void>());
    // SAFETY: the caller has promised the parts; a message of zeros has neither a name nor control data.
    unsafe {
        if let [only] = parts {
            let (start, bytes) = (only.iov_base, only.iov_len);
            return moved(libc::syscall(libc::SYS_recvfrom, socket, start, bytes, flags, nobody, nobody));
        }
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = parts.len() as _;
        moved(libc::syscall(libc::SYS_recvmsg, socket, &raw mut message, flags))
    }
}

fn open(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))
}

/// A socket as the system makes it.
#[cfg(test)]
pub(super) fn plain() -> io::Result<OwnedFd> {
    Ok(open(AddressFamily::INET)?)
}

fn family(address: &SocketAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
}

/// A socket that listens at an address, and its port. With port 0 the system chooses one. A port that is
/// given may have connections of a process that has ended.
pub(super) fn listen(address: SocketAddr, congestion: &Congestion) -> io::Result<(OwnedFd, u16)> {
    let socket = open(family(&address))?;
    congestion.set(&socket)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    if address.port() != 0 {
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    let bound: SocketAddr = rustix::net::getsockname(&socket)?.try_into()?;
    Ok((socket, bound.port()))
}

/// The next connection, if there is one.
pub(super) fn accept(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    match rustix::net::accept_with(listener, flags) {
        Ok(socket) => Ok(Some(socket)),
        // The other side has closed it before it was accepted.
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a call has failed because the process, or the system, has no descriptor left.
pub(super) fn lacks_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Whether a connection waits at a listener.
pub(super) fn has_input(listener: &OwnedFd) -> bool {
    let mut descriptors = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut descriptors, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Begins to connect.
pub(super) fn connect(address: SocketAddr, congestion: &Congestion) -> io::Result<OwnedFd> {
    let socket = open(family(&address))?;
    congestion.set(&socket)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Why connecting has failed, if it has.
pub(super) fn error_of(socket: &OwnedFd) -> io::Result<()> {
    Ok(sockopt::socket_error(socket)??)
}

/// Sets the options of a new connection. Nagle's rule of the system is off: the send queue gathers frames
/// itself. An idle connection is kept alive, as a firewall may forget one in minutes and drop what comes
/// later.
pub(super) fn set_options(socket: &OwnedFd) -> io::Result<()> {
    // Without these options, connections work all the same.
    let _ = sockopt::set_tcp_keepidle(socket, KEEPALIVE)
        .and_then(|()| sockopt::set_socket_keepalive(socket, true));
    Ok(sockopt::set_tcp_nodelay(socket, true)?)
}

/// The events of a descriptor that a poller reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    Nothing,
    Input,
    /// Room to send as well.
    Both,
}

/// A set of descriptors, and which of them are ready.
pub(super) struct Poller(OwnedFd);

impl Poller {
    pub(super) fn open() -> io::Result<Poller> {
        Ok(Poller(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    pub(super) fn as_raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Readable when a descriptor of the set is ready.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    pub(super) fn add(&self, socket: RawFd, tag: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, tag, interest)
    }

    pub(super) fn change(&self, socket: RawFd, tag: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, tag, interest)
    }

    pub(super) fn remove(&self, socket: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, socket, 0, Interest::Input)
    }

    fn control(&self, operation: c_int, socket: RawFd, tag: u64, interest: Interest) -> io::Result<()> {
        let events = match interest {
            Interest::Nothing => 0,
            Interest::Input => libc::EPOLLIN,
            Interest::Both => libc::EPOLLIN | libc::EPOLLOUT,
        };
        let mut event = libc::epoll_event { events: events.cast_unsigned(), u64: tag };
        // SAFETY: the event is there; the system checks the descriptors.
        let result = unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, socket, &raw mut event) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The tags of descriptors that are ready now, at most as many as `room` holds.
    pub(super) fn ready<'a>(&self, room: &'a mut [u64; 32]) -> &'a [u64] {
        let mut events = [const { MaybeUninit::uninit() }; 32];
        // An error is an interruption, as the descriptor is one of a poller.
        let found =
            epoll::wait(&self.0, &mut events, Some(&Timespec::default())).map_or(&[][..], |(found, _)| found);
        for (tag, event) in room.iter_mut().zip(found) {
            *tag = event.data.u64();
        }
        &room[..found.len()]
    }
}

/// A socket that a poller watches, until it is dropped. To close it is not enough: a child that the program
/// has forked may hold a copy, and the poller would report the connection for ever.
pub(super) struct Watched {
    socket: OwnedFd,
    poller: Arc<Poller>,
}

impl Watched {
    pub(super) fn new(
        socket: OwnedFd,
        poller: &Arc<Poller>,
        tag: u64,
        interest: Interest,
    ) -> io::Result<Watched> {
        poller.add(socket.as_raw_fd(), tag, interest)?;
        Ok(Watched { socket, poller: Arc::clone(poller) })
    }
}

impl Deref for Watched {
    type Target = OwnedFd;

    fn deref(&self) -> &OwnedFd {
        &self.socket
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // A connection that was up has been removed before.
        let _ = self.poller.remove(self.socket.as_raw_fd());
    }
}

/// Shuts a connection down. The descriptor stays open.
pub(super) fn shut_down(socket: RawFd) {
    // SAFETY: the caller holds the descriptor open during this call.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
}

/// Whether a connection of which nothing more can be received was reset, and not closed by the other side.
pub(super) fn is_reset(socket: RawFd) -> bool {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut bytes = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the information has room for as many bytes as this says; zeros are a value of it as well.
    let info = unsafe {
        let place = info.as_mut_ptr().cast::<c_void>();
        libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, place, &raw mut bytes);
        info.assume_init()
    };
    info.tcpi_state == TCP_CLOSE
}
