//! The business card of a process: its addresses and ports, as one line of text for the other processes.
//!
//! In a job of one machine a process listens at the loopback interface alone. In other jobs it listens at all
//! addresses of the machine, or at those of the interface that the user names. A process that connects tries
//! the addresses on its own networks first.

use super::congestion::Congestion;
use super::ports::Ports;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// The addresses of a process, by preference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BusinessCard(pub(super) Vec<SocketAddr>);

impl BusinessCard {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let addresses: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        addresses.join(" ").into_bytes()
    }

    /// Reads a business card; `None` if the bytes are not one.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<BusinessCard> {
        let text = std::str::from_utf8(bytes).ok()?;
        let addresses: Option<Vec<SocketAddr>> = text.split(' ').map(|word| word.parse().ok()).collect();
        addresses.filter(|addresses| !addresses.is_empty()).map(BusinessCard)
    }

    /// The addresses in the order in which this process is to try them.
    pub(super) fn by_nearness(&self, own: &[Interface]) -> Vec<SocketAddr> {
        let mut addresses = self.0.clone();
        addresses.sort_by_key(|address| !own.iter().any(|interface| interface.is_near(address.ip())));
        addresses
    }
}

/// An address of this machine and the network that it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    address: IpAddr,
    /// The length of the network's prefix, in bits.
    prefix: u32,
}

impl Interface {
    pub(super) fn address(&self) -> IpAddr {
        self.address
    }

    /// Whether an address is on this network.
    fn is_near(&self, other: IpAddr) -> bool {
        let differ = match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => u128::from(own.to_bits() ^ other.to_bits()) << 96,
            (IpAddr::V6(own), IpAddr::V6(other)) => own.to_bits() ^ other.to_bits(),
            _ => return false,
        };
        differ.leading_zeros() >= self.prefix
    }
}

/// How likely it is that other machines reach an address, the likeliest first; `None` if they do not.
fn rank(address: IpAddr) -> Option<u32> {
    match address {
        address if address.is_loopback() => None,
        // The name of a link means nothing on another machine.
        IpAddr::V6(address) if address.is_unicast_link_local() => None,
        IpAddr::V4(address) if address.is_link_local() => Some(2),
        IpAddr::V6(_) => Some(1),
        IpAddr::V4(_) => Some(0),
    }
}

/// The addresses of this machine that others may reach: of all interfaces, or of one, given by its name or
/// its address.
pub(super) fn interfaces(wanted: Option<&str>) -> io::Result<Vec<Interface>> {
    let is_wanted = |interface: &if_addrs::Interface| {
        wanted.is_none_or(|wanted| interface.name == wanted || interface.ip().to_string() == wanted)
    };
    let prefix = |interface: &if_addrs::Interface| match &interface.addr {
        if_addrs::IfAddr::V4(v4) => v4.netmask.to_bits().leading_ones(),
        if_addrs::IfAddr::V6(v6) => v6.netmask.to_bits().leading_ones(),
    };
    let mut found: Vec<(u32, Interface)> = if_addrs::get_if_addrs()?
        .iter()
        .filter(|interface| is_wanted(interface))
        .filter_map(|interface| {
            let address = interface.ip();
            // An interface that the user names is obeyed.
            let rank = rank(address).or(wanted.map(|_| 3))?;
            Some((rank, Interface { address, prefix: prefix(interface) }))
        })
        .collect();
    found.sort_by_key(|&(rank, _)| rank);
    Ok(found.into_iter().map(|(_, interface)| interface).collect())
}

/// The addresses at which a process of a job of several machines listens, the likeliest to be reached first.
///
/// # Errors
/// If the system does not list its interfaces.
pub fn addresses(interface: Option<&str>) -> io::Result<Vec<IpAddr>> {
    Ok(interfaces(interface)?.iter().map(Interface::address).collect())
}

/// Listens at the addresses, with this congestion control. Returns the sockets, and the business card that
/// names their addresses.
///
/// # Errors
/// If no address can be listened at, or the range of ports has none left at one of them.
pub(super) fn listen(
    addresses: &[IpAddr],
    ports: &Ports,
    congestion: &Congestion,
) -> io::Result<(Vec<OwnedFd>, BusinessCard)> {
    let (mut sockets, mut card, mut refused) = (Vec::new(), BusinessCard::default(), None);
    for &address in addresses {
        match ports.listen(address, congestion) {
            Ok((socket, port)) => {
                sockets.push(socket);
                card.0.push(SocketAddr::new(address, port));
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            Err(error) => refused = Some(error),
        }
    }
    match (sockets.is_empty(), refused) {
        (true, Some(error)) => Err(error),
        (true, None) => Err(io::Error::new(io::ErrorKind::AddrNotAvailable, "no interface has an address")),
        (false, _) => Ok((sockets, card)),
    }
}

/// The addresses of a job of one machine, the preferred one first.
pub(super) const LOOPBACKS: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// Listens at the first near address that the system has, and without one at all others.
pub(super) fn listen_near(
    near: &[IpAddr],
    others: &[IpAddr],
    ports: &Ports,
    congestion: &Congestion,
) -> io::Result<(Vec<OwnedFd>, BusinessCard)> {
    let mut refused = None;
    for &address in near {
        match listen(&[address], ports, congestion) {
            Ok(found) => return Ok(found),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    match (listen(others, ports, congestion), refused) {
        (Err(_), Some(first)) => Err(first),
        (found, _) => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(text: &str) -> Option<BusinessCard> {
        BusinessCard::from_bytes(text.as_bytes())
    }

    #[test]
    fn cards_are_read_as_they_were_written_and_nothing_else_is() {
        let told = card("10.0.0.1:7 [2001:db8::1]:65535").unwrap();
        assert_eq!(BusinessCard::from_bytes(&told.to_bytes()), Some(told));
        for text in ["", " ", "10.0.0.1", "10.0.0.1:7 ", "10.0.0.1:70000", "host:7", "10.0.0.1:7\n"] {
            assert_eq!(card(text), None, "{text:?}");
        }
        assert_eq!(BusinessCard::from_bytes(&[0xFF, 0xFE]), None);
    }

    #[test]
    fn addresses_of_an_own_network_come_first() {
        let own = [
            Interface { address: "10.1.2.3".parse().unwrap(), prefix: 16 },
            Interface { address: "2001:db8::5".parse().unwrap(), prefix: 64 },
        ];
        let told = card("192.168.1.1:1 10.1.255.1:2 [2001:db8::1]:3 [2001:db9::1]:4 10.2.0.1:5").unwrap();
        let ports: Vec<u16> = told.by_nearness(&own).iter().map(SocketAddr::port).collect();
        assert_eq!(ports, [2, 3, 1, 4, 5]);
    }

    #[test]
    fn the_loopback_interface_is_listened_at_only_if_it_is_asked_for() {
        assert!(interfaces(None).unwrap().iter().all(|interface| !interface.address.is_loopback()));
        let by_address = interfaces(Some("127.0.0.1")).unwrap();
        assert_eq!(by_address, [Interface { address: LOOPBACKS[0], prefix: 8 }]);
        assert_eq!(interfaces(Some("no such interface")).unwrap(), []);
        let (ports, congestion) = (Ports::default(), Congestion::default());
        let (sockets, card) = listen(&LOOPBACKS[..1], &ports, &congestion).unwrap();
        assert!(sockets.len() == 1 && card.0[0].ip() == LOOPBACKS[0] && card.0[0].port() != 0);
        assert!(listen(&[], &ports, &congestion).is_err());
    }

    #[test]
    fn without_a_near_address_others_are_listened_at() {
        // An address for documents, which no machine has.
        let missing = "192.0.2.1".parse().unwrap();
        let (ports, congestion) = (Ports::default(), Congestion::default());
        let (_, card) = listen_near(&[missing], &LOOPBACKS[..1], &ports, &congestion).unwrap();
        assert_eq!(card.0[0].ip(), LOOPBACKS[0]);
        let error = listen_near(&[missing], &[], &ports, &congestion).unwrap_err();
        assert!(!error.to_string().contains("no interface"), "{error}");
    }
}
