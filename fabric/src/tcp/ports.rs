//! The ports at which a process listens: those that the system chooses, or some of a range that a firewall
//! lets through.

use super::congestion::Congestion;
use super::socket;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;

/// The ports that a process may take.
#[derive(Clone, Debug, Default)]
pub(super) struct Ports {
    /// `None` for a port that the system chooses.
    range: Option<RangeInclusive<u16>>,
    /// The index of the port that is tried first, so that the processes of a machine try different ones.
    first: usize,
}

impl Ports {
    pub(super) fn of(range: Option<RangeInclusive<u16>>, process: usize) -> Ports {
        Ports { range, first: process }
    }

    /// Listens at an address: the socket, and its port.
    ///
    /// # Errors
    /// Also if other sockets listen at all ports of the range.
    pub(super) fn listen(&self, address: IpAddr, congestion: &Congestion) -> io::Result<(OwnedFd, u16)> {
        let Some(range) = &self.range else {
            return socket::listen(SocketAddr::new(address, 0), congestion);
        };
        let first = self.first % range.len().max(1);
        for port in range.clone().skip(first).chain(range.clone().take(first)) {
            match socket::listen(SocketAddr::new(address, port), congestion) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                found => return found,
            }
        }
        let (start, end) = (range.start(), range.end());
        let text = format!("all ports from {start} to {end} are in use at {address}");
        Err(io::Error::new(io::ErrorKind::AddrInUse, text))
    }
}

#[cfg(test)]
mod tests {
    use super::super::business_card::LOOPBACKS;
    use super::*;

    /// A port that no other socket uses, below those that systems choose from.
    fn free_port(from: u16) -> (OwnedFd, u16) {
        let below = Ports::of(Some(from..=from + 1000), std::process::id() as usize);
        below.listen(LOOPBACKS[0], &Congestion::default()).unwrap()
    }

    #[test]
    fn processes_take_different_ports_of_a_range() {
        let congestion = Congestion::default();
        let ports = |process| Ports::of(Some(21000..=21999), process).listen(LOOPBACKS[0], &congestion);
        let taken: Vec<_> = (0..20).map(|process| ports(1000 * process + 990).unwrap()).collect();
        let mut numbers: Vec<_> = taken.iter().map(|&(_, port)| port).collect();
        assert!(numbers.iter().all(|port| (21000..=21999).contains(port)), "{numbers:?}");
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), taken.len());
    }

    #[test]
    fn a_range_without_a_free_port_is_an_error_that_names_it() {
        let (_taken, port) = free_port(22000);
        let full = Ports::of(Some(port..=port), 7).listen(LOOPBACKS[0], &Congestion::default());
        let error = full.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(error.to_string(), format!("all ports from {port} to {port} are in use at 127.0.0.1"));
    }

    /// The system keeps the port of a connection for a minute after its end.
    #[test]
    fn a_port_is_free_again_when_its_process_has_ended() {
        let congestion = Congestion::default();
        let (listener, port) = free_port(23000);
        let caller = socket::connect(SocketAddr::new(LOOPBACKS[0], port), &congestion).unwrap();
        let accepted = (0..1_000_000).find_map(|_| socket::accept(&listener).unwrap());
        drop(accepted.expect("the caller has connected"));
        drop((caller, listener));
        let (_again, number) = Ports::of(Some(port..=port), 0).listen(LOOPBACKS[0], &congestion).unwrap();
        assert_eq!(number, port);
    }
}
