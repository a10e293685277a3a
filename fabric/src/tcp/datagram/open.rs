//! How the UDP sockets of two processes find each other.
//!
//! ```text
//! one process                                     the other
//!   opens a socket at the connection's address      does the same
//!   Datagrams: its port, its token      <-- connection -->
//!   connects its socket to the other's address and port
//!   a datagram without frames           <-- datagrams -->
//!   a datagram that says: yours arrive  <-- datagrams -->
//! ```
//! A process sends frames in datagrams when it has learned that they arrive. If a firewall drops them, or the
//! socket cannot be opened, all frames travel over the connection.

use super::super::domain::{Domain, Tag};
use super::super::frame::{Header, Kind};
use super::super::handshake;
use super::super::peer::Peer;
use super::super::receiver::Receiver;
use super::super::send_queue::{Data, SendQueue, Source};
use super::super::socket::{Interest, Watched};
use super::{DatagramReceiver, DatagramSender, PEERS_MAX, Reports, socket};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// The socket for the datagrams of a peer, and what its two directions share.
pub(in super::super) struct DatagramSocket {
    socket: Watched,
    reports: Arc<Reports>,
}

impl DatagramSocket {
    pub(in super::super) fn as_raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Domain {
    /// Opens the socket for the datagrams of a peer whose first connection is up, and tells the peer of it.
    pub(in super::super) fn open_datagrams(
        &self,
        peer: &Peer,
        connection: RawFd,
        receiver: &mut Receiver,
        queue: &mut SendQueue,
    ) {
        if let Err(error) = self.try_open_datagrams(peer, connection, receiver, queue) {
            log::debug!(target: "fabric", "no datagrams from process {}: {error}", peer.process);
        }
    }

    fn try_open_datagrams(
        &self,
        peer: &Peer,
        connection: RawFd,
        receiver: &mut Receiver,
        queue: &mut SendQueue,
    ) -> io::Result<()> {
        let Some(ticker) = &self.ticker else { return Ok(()) };
        let mut peers = self.datagram_peers.lock();
        if peers.len() >= PEERS_MAX {
            return Ok(());
        }
        let address = socket::own_address(connection)?;
        let (socket, port) = socket::open(address, self.datagram_port(address.ip()))?;
        let nonce = handshake::nonce()?;
        let token = u64::from_ne_bytes(std::array::from_fn(|i| nonce[i]));
        let socket =
            Watched::new(socket, &self.poller, Tag::Datagrams(peer.process).code(), Interest::Input)?;
        let reports = Arc::new(Reports::default());
        let raw = socket.as_raw_fd();
        let opened = DatagramSocket { socket, reports: Arc::clone(&reports) };
        if peer.datagrams.set(opened).is_err() {
            return Ok(());
        }
        peers.push(peer.process);
        receiver.datagrams = Some(Box::new(DatagramReceiver::new(raw, token, reports, Arc::clone(ticker))));
        let header = Header::control(Kind::Datagrams, peer.acks_to_send());
        let header = Header { word: token, offset: port.into(), ..header };
        // SAFETY: a frame without data reads nothing of the caller.
        unsafe { queue.push(header, &[], Data::NONE, Source::Copied) }
    }

    /// A peer has told of its socket for datagrams.
    #[cold]
    pub(in super::super) fn connect_datagrams(&self, peer: &Peer, told: &Header) -> Result<(), String> {
        let port = u16::try_from(told.offset).map_err(|_| format!("the port {}", told.offset))?;
        let (Some(ticker), Some(opened), Some(connection)) =
            (&self.ticker, peer.datagrams.get(), peer.socket())
        else {
            return Ok(());
        };
        let connected = socket::peer_address(connection).and_then(|mut address| {
            address.set_port(port);
            socket::connect(&opened.socket, address)
        });
        if let Err(error) = connected {
            log::debug!(target: "fabric", "no datagrams to process {}: {error}", peer.process);
            return Ok(());
        }
        let (reports, ticker) = (Arc::clone(&opened.reports), Arc::clone(ticker));
        let sockets = (opened.as_raw(), socket::segment_bytes(connection));
        let sender = DatagramSender::new(sockets, told.word, reports, ticker);
        peer.send_queue().begin_datagrams(sender);
        Ok(())
    }
}
