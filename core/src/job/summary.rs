//! The business cards of many processes, summed up: the nodes, and on which all agree. One process reads the
//! cards and publishes the digest; all others read that, which is short, and no card of a process with which
//! they have nothing to do.
//!
//! Invariant: a digest is that of all cards in the order of their processes, however they were grouped.

use super::business_card::BusinessCard;
use super::wire::{Reader, Writer};
use std::collections::HashMap;

/// The cards of processes that follow one another.
#[derive(Debug, PartialEq, Eq)]
pub struct Summary {
    /// The card of the first of them, without the addresses of its endpoints.
    first: BusinessCard,
    /// The nodes, in the order of their lowest processes.
    nodes: Vec<Node>,
    /// The number of each node, by its name.
    numbers: HashMap<String, u32>,
    /// The node of each process.
    places: Vec<u32>,
    is_one_machine: bool,
    /// The number of each process; empty if they are not all of one PID namespace. They may be of several
    /// network namespaces.
    pids: Vec<u32>,
    /// The terms of the fabrics that all have opened, in the order of preference of the first process.
    terms: Vec<String>,
    /// The first process with another number of PEs than the first one, and this number.
    odd: Option<(usize, usize)>,
}

/// A node, as far as it has some of the processes.
#[derive(Debug, PartialEq, Eq)]
struct Node {
    name: String,
    processes: u32,
    /// The smallest memory size, in bytes, among these processes.
    memory: u64,
}

/// All cards of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// The card of process 0, without the addresses of its endpoints.
    pub first: BusinessCard,
    /// The node of each process. Nodes are numbered from 0, in the order of their lowest processes.
    pub nodes: Vec<u32>,
    /// Whether all processes reach each other by the loopback interface.
    pub is_one_machine: bool,
    /// The number of each process in the PID namespace that all of them share; empty if they share none.
    pub pids: Vec<u32>,
    /// The terms of the fabric that all processes use; empty if they have none in common.
    pub terms: String,
    /// A PE's share of the memory of its node in bytes, the least of all; 0 if a node does not report it.
    pub share: u64,
    /// A process with another number of PEs than process 0, and this number.
    pub odd: Option<(usize, usize)>,
}

impl Summary {
    /// The summary of one card.
    pub fn of(mut card: BusinessCard) -> Summary {
        let open = card.fabrics.iter().filter(|offer| offer.is_open());
        let terms = open.map(|offer| offer.terms.clone()).collect();
        card.fabrics.iter_mut().for_each(|offer| offer.addresses.clear());
        Summary {
            nodes: vec![Node { name: card.node.clone(), processes: 1, memory: card.wishes.node_memory }],
            numbers: HashMap::from([(card.node.clone(), 0)]),
            places: vec![0],
            is_one_machine: !card.machine.is_empty(),
            pids: if card.pid_space.is_empty() { Vec::new() } else { vec![card.pid] },
            terms,
            odd: None,
            first: card,
        }
    }

    /// Adds the processes that follow.
    pub fn add(&mut self, next: Summary) {
        let before = self.places.len();
        let mut number = |node: Node| {
            let next = self.nodes.len() as u32;
            let number = *self.numbers.entry(node.name.clone()).or_insert(next);
            if number == next {
                self.nodes.push(node);
            } else {
                let known = &mut self.nodes[number as usize];
                known.processes += node.processes;
                known.memory = known.memory.min(node.memory);
            }
            number
        };
        let numbers: Vec<u32> = next.nodes.into_iter().map(&mut number).collect();
        self.places.extend(next.places.iter().map(|&place| numbers[place as usize]));
        self.is_one_machine &= next.is_one_machine && next.first.machine == self.first.machine;
        let is_one_space = next.first.pid_space == self.first.pid_space;
        if is_one_space && self.pids.len() == before && !next.pids.is_empty() {
            self.pids.extend(next.pids);
        } else {
            self.pids.clear();
        }
        self.terms.retain(|terms| next.terms.contains(terms));
        let differs = (next.first.pes != self.first.pes).then_some((before, next.first.pes));
        let odd = differs.or(next.odd.map(|(process, pes)| (before + process, pes)));
        self.odd = self.odd.or(odd);
    }

    /// The digest of the cards of all processes.
    pub fn digest(self) -> Digest {
        let share = |node: &Node| {
            node.memory / u64::from(node.processes).saturating_mul(self.first.pes as u64).max(1)
        };
        Digest {
            share: self.nodes.iter().map(share).min().unwrap_or(0),
            nodes: self.places,
            is_one_machine: self.is_one_machine,
            pids: self.pids,
            terms: self.terms.into_iter().next().unwrap_or_default(),
            odd: self.odd,
            first: self.first,
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Writer::default();
        bytes.field(&self.first.to_bytes());
        bytes.word(self.nodes.len() as u64);
        for Node { name, processes, memory } in &self.nodes {
            bytes.field(name.as_bytes());
            bytes.word((*processes).into());
            bytes.word(*memory);
        }
        bytes.word(self.terms.len() as u64);
        self.terms.iter().for_each(|terms| bytes.field(terms.as_bytes()));
        write_common(&mut bytes, &self.places, (self.is_one_machine, &self.pids, self.odd));
        bytes.0
    }

    /// Reads a summary of `n` processes; `None` if the bytes are not one.
    pub fn from_bytes(bytes: &[u8], n: usize) -> Option<Summary> {
        let mut bytes = Reader(bytes);
        let first = BusinessCard::from_bytes(&bytes.field()?)?;
        let (mut nodes, mut numbers) = (Vec::new(), HashMap::new());
        for number in 0..bytes.size()?.min(n) {
            let (name, processes) = (bytes.text()?, bytes.word()?.try_into().ok()?);
            numbers.insert(name.clone(), number as u32);
            nodes.push(Node { name, processes, memory: bytes.word()? });
        }
        let terms = (0..bytes.size()?).map(|_| bytes.text()).collect::<Option<_>>()?;
        let (places, (is_one_machine, pids, odd)) = read_common(&mut bytes, n)?;
        let is_valid =
            numbers.len() == nodes.len() && places.iter().all(|&place| (place as usize) < nodes.len());
        let summary = Summary { first, nodes, numbers, places, is_one_machine, pids, terms, odd };
        bytes.end(summary).filter(|_| is_valid)
    }
}

impl Digest {
    /// Bytes of the digest of a job on several machines, and of the node of each PE, without the few of the
    /// card of process 0.
    pub const fn held_bytes(processes: usize, pes_per_process: usize) -> usize {
        processes * (1 + pes_per_process) * size_of::<u32>()
    }

    /// The digest of a job whose processes are all on the node of process 0. Only its card was read.
    pub fn of_one_node(first: BusinessCard, processes: usize) -> Digest {
        Digest { nodes: vec![0; processes], first, ..Digest::default() }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Writer::default();
        bytes.field(&self.first.to_bytes());
        bytes.field(self.terms.as_bytes());
        bytes.word(self.share);
        write_common(&mut bytes, &self.nodes, (self.is_one_machine, &self.pids, self.odd));
        bytes.0
    }

    /// Reads the digest of a job of `n` processes; `None` if the bytes are not one.
    pub fn from_bytes(bytes: &[u8], n: usize) -> Option<Digest> {
        let mut bytes = Reader(bytes);
        let first = BusinessCard::from_bytes(&bytes.field()?)?;
        let (terms, share) = (bytes.text()?, bytes.word()?);
        let (nodes, (is_one_machine, pids, odd)) = read_common(&mut bytes, n)?;
        bytes.end(Digest { first, nodes, is_one_machine, pids, terms, share, odd })
    }
}

/// The part that a summary and a digest have in common, beside the nodes.
type Common<Pids> = (bool, Pids, Option<(usize, usize)>);

fn write_common(bytes: &mut Writer, places: &[u32], (is_one_machine, pids, odd): Common<&[u32]>) {
    let runs = runs(places);
    bytes.word(runs.len() as u64);
    runs.iter().flatten().for_each(|number| bytes.word((*number).into()));
    bytes.word(is_one_machine.into());
    bytes.numbers(pids.iter().copied());
    let (process, pes) = odd.unwrap_or((usize::MAX, 0));
    bytes.word(process as u64);
    bytes.word(pes as u64);
}

fn read_common(bytes: &mut Reader<'_>, n: usize) -> Option<(Vec<u32>, Common<Vec<u32>>)> {
    let mut places = Vec::new();
    for _ in 0..bytes.size()? {
        let [first, nodes, each] = [bytes.size()?, bytes.size()?, bytes.size()?];
        let last = first.checked_add(nodes).filter(|&last| last <= n)? as u32;
        if nodes.checked_mul(each)? > n - places.len() {
            return None;
        }
        places.extend((first as u32..last).flat_map(|node| std::iter::repeat_n(node, each)));
    }
    let (is_one_machine, pids) = (bytes.flag()?, bytes.numbers()?);
    let (process, pes) = (bytes.size()?, bytes.size()?);
    let odd = (process != usize::MAX).then_some((process, pes));
    let is_whole =
        places.len() == n && [0, n].contains(&pids.len()) && odd.is_none_or(|(process, _)| process < n);
    is_whole.then_some((places, (is_one_machine, pids, odd)))
}

/// The nodes of processes, shorter: a first node, the number of nodes that follow one another from it, and
/// the processes on each.
fn runs(places: &[u32]) -> Vec<[u32; 3]> {
    let mut runs: Vec<[u32; 3]> = Vec::new();
    for run in places.chunk_by(|one, other| one == other) {
        match runs.last_mut() {
            Some([first, nodes, each]) if *first + *nodes == run[0] && *each as usize == run.len() => {
                *nodes += 1
            }
            _ => runs.push([run[0], 1, run.len() as u32]),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing;
    use crate::job::business_card::{Offer, Wishes};

    /// The cards of processes with these nodes, machines, and terms.
    fn cards(processes: &[(&str, &str, &[&str])]) -> Vec<BusinessCard> {
        let offer = |terms: &&str| Offer {
            terms: (*terms).to_owned(),
            addresses: vec![vec![7; 20]],
            obstacle: String::new(),
        };
        let card = |(i, (node, machine, terms)): (usize, &(&str, &str, &[&str]))| BusinessCard {
            node: (*node).to_owned(),
            machine: (*machine).to_owned(),
            pid_space: "1".to_owned(),
            pid: 100 + i as u32,
            pes: 1,
            fabrics: terms.iter().map(offer).collect(),
            wishes: Wishes { node_memory: 1000 - i as u64, ..Wishes::default() },
            ..BusinessCard::default()
        };
        processes.iter().enumerate().map(card).collect()
    }

    fn sum(cards: &[BusinessCard]) -> Summary {
        let mut sums = cards.iter().cloned().map(Summary::of);
        let mut first = sums.next().unwrap();
        sums.for_each(|sum| first.add(sum));
        first
    }

    #[test]
    fn groups_make_no_difference() {
        let (both, tcp): (&[&str], &[&str]) = (&["verbs", "tcp"], &["tcp"]);
        let processes =
            [("b", "m", both), ("a", "m", both), ("b", "m", both), ("c", "m", tcp), ("a", "m", both)];
        let mut cards = cards(&processes);
        cards[3].pes = 2;
        let whole = sum(&cards).digest();
        assert_eq!(
            (&whole.nodes[..], &whole.pids[..]),
            (&[0, 1, 0, 2, 1][..], &[100, 101, 102, 103, 104][..])
        );
        assert_eq!((whole.terms.as_str(), whole.odd, whole.is_one_machine), ("tcp", Some((3, 2)), true));
        assert_eq!(whole.share, (1000 - 4) / 2, "two processes share the node of the last one");
        assert!(whole.first.fabrics.iter().all(|offer| offer.addresses.is_empty()));
        for at in 1..5 {
            let (mut left, right) = (sum(&cards[..at]), sum(&cards[at..]));
            let read = Summary::from_bytes(&right.to_bytes(), 5 - at);
            assert_eq!(read.as_ref(), Some(&right));
            left.add(read.unwrap());
            assert_eq!(left.digest(), whole, "{at}");
        }
        assert_eq!(Digest::from_bytes(&whole.to_bytes(), 5).as_ref(), Some(&whole));
        assert_eq!(Digest::from_bytes(&whole.to_bytes(), 6), None);
    }

    #[test]
    fn all_use_the_first_fabric_that_all_have() {
        let agreed = |offers: &[&[&str]]| {
            let processes: Vec<_> = offers.iter().map(|offers| ("n", "m", *offers)).collect();
            sum(&cards(&processes)).digest().terms
        };
        assert_eq!(agreed(&[&["verbs", "tcp"], &["verbs", "tcp"]]), "verbs");
        assert_eq!(agreed(&[&["verbs", "tcp"], &["tcp"]]), "tcp");
        assert_eq!(agreed(&[&["tcp"], &["verbs", "tcp"]]), "tcp");
        assert_eq!(agreed(&[&["tcp", "verbs"], &["verbs", "tcp"]]), "tcp");
        assert_eq!(agreed(&[&["verbs"], &["tcp"]]), "");
        assert_eq!(agreed(&[&["verbs"], &[]]), "");
    }

    #[test]
    fn processes_of_several_pid_namespaces_share_no_numbers() {
        let tcp: &[&str] = &["tcp"];
        let of = |cards: &[BusinessCard]| {
            let digest = sum(cards).digest();
            (digest.is_one_machine, digest.pids.len())
        };
        let one = cards(&[("a", "m", tcp), ("b", "m", tcp), ("b", "m", tcp)]);
        assert_eq!(of(&one), (true, 3));
        let apart = cards(&[("a", "m", tcp), ("b", "k", tcp), ("a", "m", tcp)]);
        assert_eq!(of(&apart), (false, 3), "two network namespaces");
        let unknown = cards(&[("a", "", tcp), ("b", "", tcp)]);
        assert_eq!(of(&unknown), (false, 2), "nothing is known of network namespaces");
        let mut spaces = one;
        spaces[1].pid_space = "2".to_owned();
        assert_eq!(of(&spaces), (true, 0), "two PID namespaces");
        spaces.iter_mut().for_each(|card| card.pid_space.clear());
        assert_eq!(of(&spaces), (true, 0), "no PID namespace is known");
    }

    #[test]
    fn a_digest_of_a_large_job_is_short() {
        const NODES: usize = 1000;
        let place = |process: usize| (process / 128) as u32;
        let digest = Digest { nodes: (0..128 * NODES).map(place).collect(), ..Digest::default() };
        assert!(digest.to_bytes().len() < 400, "{}", digest.to_bytes().len());
        let read = Digest::from_bytes(&digest.to_bytes(), 128 * NODES);
        assert_eq!(read, Some(digest));
        assert_eq!(runs(&[0, 1, 0, 1, 1]), [[0, 2, 1], [0, 1, 1], [1, 1, 2]]);
        assert_eq!(runs(&[]), [[0; 3]; 0]);
    }

    #[test]
    fn fuzz_digests() {
        let tcp: &[&str] = &["tcp"];
        let summary = sum(&cards(&[("a", "m", tcp), ("b", "m", tcp), ("a", "m", tcp)]));
        let bytes = summary.to_bytes();
        fuzzing::fuzz(&[bytes, summary.digest().to_bytes()], |input| {
            if let Some(summary) = Summary::from_bytes(input, 3) {
                assert_eq!(Summary::from_bytes(&summary.to_bytes(), 3).as_ref(), Some(&summary));
                assert_eq!(summary.digest().nodes.len(), 3);
            }
            if let Some(digest) = Digest::from_bytes(input, 3) {
                assert_eq!(Digest::from_bytes(&digest.to_bytes(), 3), Some(digest));
            }
        });
    }
}
