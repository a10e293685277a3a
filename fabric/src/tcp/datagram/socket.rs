//! The system's calls on UDP sockets, none of which waits.

use libc::{c_int, c_void};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::ptr::{null, null_mut};

/// Bytes of the headers of a packet: those of the Internet protocols, and that of UDP.
const HEADER_BYTES: [usize; 2] = [20 + 8, 40 + 8];

fn borrowed<'a>(socket: RawFd) -> BorrowedFd<'a> {
    // SAFETY: the caller holds the descriptor open during its call.
    unsafe { BorrowedFd::borrow_raw(socket) }
}

/// The address of this side of a connection.
pub(super) fn own_address(connection: RawFd) -> io::Result<SocketAddr> {
    Ok(rustix::net::getsockname(borrowed(connection))?.try_into()?)
}

/// The address of the other side of a connection.
pub(super) fn peer_address(connection: RawFd) -> io::Result<SocketAddr> {
    Ok(rustix::net::getpeername(borrowed(connection))?.ok_or(io::ErrorKind::NotConnected)?.try_into()?)
}

/// A socket at an address, and its port. With port 0 the system chooses one. A port that is given may be that
/// of other sockets of the same user.
pub(super) fn open(mut address: SocketAddr, port: u16) -> io::Result<(OwnedFd, u16)> {
    address.set_port(port);
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))?;
    if port != 0 {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    let bound: SocketAddr = rustix::net::getsockname(&socket)?.try_into()?;
    Ok((socket, bound.port()))
}

/// Lets a socket send to an address, and receive from there alone.
pub(super) fn connect(socket: &OwnedFd, address: SocketAddr) -> io::Result<()> {
    Ok(rustix::net::connect(socket, &address)?)
}

/// Bytes of a datagram that the network carries in one packet.
pub(super) fn packet_bytes(socket: RawFd) -> io::Result<usize> {
    let is_v4 = own_address(socket)?.is_ipv4();
    let (level, option) =
        if is_v4 { (libc::IPPROTO_IP, libc::IP_MTU) } else { (libc::IPPROTO_IPV6, libc::IPV6_MTU) };
    Ok(number(socket, level, option)?.saturating_sub(HEADER_BYTES[usize::from(!is_v4)]))
}

/// Bytes of the longest segment of a connection. Both machines and the path have agreed on it, so it may be
/// shorter than what this machine's own network carries.
pub(super) fn segment_bytes(connection: RawFd) -> Option<usize> {
    number(connection, libc::IPPROTO_TCP, libc::TCP_MAXSEG).ok().filter(|&bytes| bytes > 0)
}

/// An option of a socket that is a number, which is not negative.
fn number(socket: RawFd, level: c_int, option: c_int) -> io::Result<usize> {
    let (mut value, mut length): (c_int, _) = (0, size_of::<c_int>() as libc::socklen_t);
    let place = (&raw mut value).cast::<c_void>();
    // SAFETY: the number has room for as many bytes as the length says.
    let result = unsafe { libc::getsockopt(socket, level, option, place, &raw mut length) };
    if result == 0 { Ok(value.max(0) as usize) } else { Err(io::Error::last_os_error()) }
}

/// Sends a datagram over a connected socket. An error is a number of the system.
#[inline]
pub(super) fn send(socket: RawFd, datagram: &[u8]) -> Result<(), i32> {
    let (flags, nobody) = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL, null::<c_void>());
    let (start, bytes) = (datagram.as_ptr(), datagram.len());
    // SAFETY: the datagram is valid for reads.
    let sent = unsafe { libc::syscall(libc::SYS_sendto, socket, start, bytes, flags, nobody, 0) };
    if sent < 0 { Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)) } else { Ok(()) }
}

/// Receives the next datagram: its length, which is more than that of `room` if it does not fit. `None` if
/// there is none, or an error, which an earlier datagram to the other side has caused.
#[inline]
pub(super) fn receive(socket: RawFd, room: &mut [u8]) -> Option<usize> {
    let (flags, nobody) = (libc::MSG_DONTWAIT | libc::MSG_TRUNC, null_mut::<c_void>());
    let (start, bytes) = (room.as_mut_ptr(), room.len());
    // SAFETY: the room is valid for writes.
    let received = unsafe { libc::syscall(libc::SYS_recvfrom, socket, start, bytes, flags, nobody, nobody) };
    usize::try_from(received).ok()
}
