//! The network card of a PE on a machine that has several equal ones: one of those that are nearest to the
//! processors of its process, by turns.
//!
//! Invariant: two cards are equal only if they lead to the same network by the same protocol, as libfabric
//! and the system describe it; of others the first one is taken. A card may have several domains (`mlx5_0`
//! and `mlx5_0-xrc` of verbs), and counts once. Sources: `fi_nic(3)`; the kernel's `sysfs-devices-node` and
//! `sysfs-bus-pci`.

use super::query::Offer;
use super::sys::*;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::cmp::Reverse;
use std::fs::read_to_string;
use std::net::IpAddr;
use std::path::Path;

/// The network card of an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its PCI address, as the system writes it.
    pub pci: String,
    /// Its network and its speed in bits per second.
    pub link: (String, usize),
}

impl Card {
    /// The card of an entry, if the entry describes one on the PCI bus whose link is not down.
    pub(super) fn of(entry: &fi_info) -> Option<Card> {
        // SAFETY: the description of a card is null or a structure of the library that lives as long as the
        // entry, and so are its parts.
        let (bus, link) = unsafe {
            let nic = entry.nic.as_ref()?;
            (nic.bus_attr.as_ref()?, nic.link_attr.as_ref()?)
        };
        let fi_pci_attr { domain_id, bus_id, device_id, function_id } = bus.attr;
        // SAFETY: the name of a network is null or a string that the library has ended with a zero.
        let network = unsafe { super::library::text_at(link.network_type) };
        let is_there = bus.bus_type == FI_BUS_PCI && link.state != FI_LINK_DOWN;
        is_there.then(|| Card {
            pci: format!("{domain_id:04x}:{bus_id:02x}:{device_id:02x}.{function_id:x}"),
            link: (network, link.speed),
        })
    }
}

/// The place of a card in the order of the cards of a provider: InfiniBand before Ethernet, fast before slow,
/// and last those that are not described or whose link is down.
pub(super) fn place_of(card: Option<&Card>) -> (usize, Reverse<usize>) {
    let Some(Card { link: (network, speed), .. }) = card else { return (3, Reverse(0)) };
    let place = match &**network {
        "InfiniBand" => 0,
        "Ethernet" => 2,
        _ => 1,
    };
    (place, Reverse(*speed))
}

/// The index of the offer to take, where `turn` is the number of the PE on its node.
pub(super) fn choose(offers: &[Offer], turn: usize) -> usize {
    let equal = equal(offers);
    let cards: Vec<&str> = equal.iter().map(|(_, card)| card.pci.as_str()).collect();
    let own = sched_getaffinity(None);
    let own = own.map(|set| (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect::<Vec<_>>());
    let place = place(Path::new("/sys"), &cards, &own.unwrap_or_default(), turn);
    place.map_or(0, |place| equal[place].0)
}

/// The offers that may stand for the first one, one for each card.
pub(super) fn equal(offers: &[Offer]) -> Vec<(usize, &Card)> {
    let mut equal: Vec<(usize, &Card)> = Vec::new();
    for (index, offer) in offers.iter().enumerate() {
        let Some(card) = &offer.card else { continue };
        let is_other =
            |(other, taken): &(usize, &Card)| offers[*other].domain != offer.domain && taken.pci != card.pci;
        if equal.iter().all(is_other) && are_equal(&offers[0], offer) {
            equal.push((index, card));
        }
    }
    equal
}

/// Whether one offer may stand for another one: PEs reach each other from both.
fn are_equal(one: &Offer, other: &Offer) -> bool {
    let terms = |offer: &Offer| {
        let Offer { protocol, caps, mode, mr_mode, address_format, data_progress, .. } = *offer;
        (protocol, caps, mode, mr_mode, address_format, data_progress)
    };
    let link = |offer: &Offer| offer.card.as_ref().map(|card| card.link.clone());
    let addresses = [one, other].map(|offer| offer.source.map(|source| source.ip()));
    (&one.provider, &one.fabric, terms(one), link(one))
        == (&other.provider, &other.fabric, terms(other), link(other))
        && match addresses {
            [None, None] => true,
            [Some(one), Some(other)] => one == other || are_in_one_network(one, other),
            _ => false,
        }
}

/// Whether both addresses of this machine are in the same network.
fn are_in_one_network(one: IpAddr, other: IpAddr) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 0),
        IpAddr::V6(address) => (address.to_bits(), 1),
    };
    let network = |address: IpAddr| {
        let found = if_addrs::get_if_addrs().ok()?.into_iter().find(|found| found.ip() == address)?;
        let mask = match found.addr {
            if_addrs::IfAddr::V4(v4) => v4.netmask.into(),
            if_addrs::IfAddr::V6(v6) => v6.netmask.into(),
        };
        let ((address, family), (mask, _)) = (bits(address), bits(mask));
        Some((address & mask, mask, family))
    };
    network(one).is_some_and(|network_of_one| network(other) == Some(network_of_one))
}

/// The index of the card to take: among those that are nearest to the processors, that of the turn. `None` if
/// there are no cards. If the system does not know the distance of one, all are equally near.
fn place(system: &Path, cards: &[&str], processors: &[usize], turn: usize) -> Option<usize> {
    let nodes = nodes_of(system, processors);
    let distances: Vec<Option<u32>> = cards.iter().map(|card| distance(system, card, &nodes)).collect();
    let is_known = distances.iter().all(Option::is_some);
    let nearest = distances.iter().copied().min().filter(|_| is_known);
    let near: Vec<usize> =
        (0..cards.len()).filter(|card| nearest.is_none_or(|nearest| distances[*card] == nearest)).collect();
    // PEs that follow each other may be on different nodes of memory, so that those of one node have turns of
    // one parity.
    let turn = turn + turn.checked_div(cards.len())?;
    near.get(turn % near.len()).copied()
}

/// The NUMA nodes of these processors.
fn nodes_of(system: &Path, processors: &[usize]) -> Vec<usize> {
    let folder = system.join("devices/system/node");
    let online = read_to_string(folder.join("online")).unwrap_or_default();
    let has = |node: &usize| {
        let list = read_to_string(folder.join(format!("node{node}/cpulist"))).unwrap_or_default();
        numbers(&list).into_iter().any(|processor| processors.contains(&processor))
    };
    numbers(&online).into_iter().filter(has).collect()
}

/// The sum of the distances from a card to these NUMA nodes.
fn distance(system: &Path, card: &str, nodes: &[usize]) -> Option<u32> {
    let text = read_to_string(system.join(format!("bus/pci/devices/{card}/numa_node"))).ok()?;
    let node: usize = text.trim().parse().ok()?;
    let path = system.join(format!("devices/system/node/node{node}/distance"));
    // One number for each node that is online, in the order of the nodes.
    let online = numbers(&read_to_string(system.join("devices/system/node/online")).ok()?);
    let distances = read_to_string(path).ok()?;
    let distances: Vec<u32> = distances.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let to = |node: &usize| distances.get(online.iter().position(|other| other == node)?).copied();
    nodes.iter().map(to).sum()
}

/// The numbers of a list of the system: `0-3,8`.
fn numbers(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    /// A copy of the system's files: two sockets of two nodes with four processors each, and six cards, of
    /// which the last is at no node.
    struct System(PathBuf);

    impl System {
        fn new(name: &str) -> System {
            let system = System(std::env::temp_dir().join(format!("pelago-{name}-{}", std::process::id())));
            let write = |path: String, text: &str| {
                let path = system.0.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            write("devices/system/node/online".into(), "0-3\n");
            let distances = ["10 12 32 32", "12 10 32 32", "32 32 10 12", "32 32 12 10"];
            for (node, distances) in distances.iter().enumerate() {
                let processors = format!("{}-{}\n", 4 * node, 4 * node + 3);
                write(format!("devices/system/node/node{node}/cpulist"), &processors);
                write(format!("devices/system/node/node{node}/distance"), &format!("{distances}\n"));
            }
            for (card, node) in CARDS.iter().zip([0, 0, 1, 2, 3, -1]) {
                write(format!("bus/pci/devices/{card}/numa_node"), &format!("{node}\n"));
            }
            system
        }

        fn places(&self, cards: &[&str], processors: &[usize]) -> Vec<usize> {
            (0..6).map(|turn| place(&self.0, cards, processors, turn).unwrap()).collect()
        }
    }

    impl Drop for System {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const CARDS: [&str; 6] =
        ["0000:01:00.0", "0000:02:00.0", "0000:21:00.0", "0000:81:00.1", "0001:00:05.0", "0000:f1:00.0"];

    #[test]
    fn a_pe_takes_a_card_near_its_processors() {
        let system = System::new("near-cards");
        let known = &CARDS[..5];
        assert_eq!(system.places(known, &[9, 10]), [3; 6]);
        assert_eq!(system.places(known, &[2]), [0, 1, 0, 1, 0, 0], "two are as near");
        assert_eq!(system.places(known, &[4]), [2; 6]);
        assert_eq!(system.places(&[CARDS[0], CARDS[4]], &[8]), [1; 6], "the nearest one is at another node");
        assert_eq!(system.places(known, &[0, 4, 8]), [0, 1, 2, 0, 1, 0], "not the other socket");
    }

    #[test]
    fn cards_that_are_as_near_are_taken_by_turns() {
        let system = System::new("cards-by-turns");
        let by_turns = [0, 1, 2, 1, 2, 0];
        let three = [CARDS[0], CARDS[3], CARDS[5]];
        assert_eq!(system.places(&three, &[0]), by_turns, "the distance of one is not known");
        assert_eq!(system.places(&three, &[]), by_turns);
        assert_eq!(system.places(&["a", "b", "c"], &[0]), by_turns);
        assert_eq!(system.places(&CARDS[1..2], &[12]), [0; 6]);
        assert_eq!(place(&system.0, &[], &[0], 3), None);
    }

    #[test]
    fn lists_of_the_system() {
        assert_eq!(numbers("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(numbers("7"), [7]);
        assert_eq!(numbers(" \n"), [0; 0]);
        assert_eq!(numbers("x,1-,3"), [3]);
    }

    #[test]
    fn addresses_of_one_network() {
        let [one, other] = ["127.0.0.1", "192.0.2.1"].map(|text| text.parse().unwrap());
        assert!(are_in_one_network(one, one));
        assert!(!are_in_one_network(one, other) && !are_in_one_network(other, other));
    }
}
