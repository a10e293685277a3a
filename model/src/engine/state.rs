//! The state of a simulation.

use super::messages::TwoSided;
use super::{Error, Outcome};
use crate::action::{Action, Program, Workload};
use crate::machine::{Contention, Machine};
use crate::network::fluid::Flows;
use crate::network::links::Links;
use crate::queue::Queue;
use crate::time::{Time, per_byte};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Something that happens. Numbers are those of ranks, messages, cards and packets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A rank goes on.
    Resume(u32),
    /// A card can send the next message.
    Card(u32),
    /// The first byte of a message comes to the receiver's card.
    Arrive(u32),
    /// All of a message has arrived.
    Deliver(u32),
    /// A processor has executed a message.
    Effect(u32),
    /// A packet comes to its next link.
    Packet(u32),
    /// Flows have begun: all rates change.
    Share,
    /// A flow has ended, if the rates are still those of this version.
    Flows(u32),
}

pub(super) struct State<'a> {
    pub(super) machine: &'a Machine,
    pub(super) workload: &'a dyn Workload,
    pub(super) now: Time,
    pub(super) queue: Queue<Event>,
    pub(super) ranks: Vec<Rank<'a>>,
    pub(super) cards: Vec<Card>,
    /// The time until which the memory of each node is copying.
    pub(super) memories: Vec<Time>,
    pub(super) links: Links,
    pub(super) flows: Flows,
    pub(super) messages: Slab<Message>,
    pub(super) packets: Slab<Packet>,
    /// The route of each message, for packets.
    pub(super) routes: Vec<Vec<u32>>,
    pub(super) rates: Rates,
    pub(super) ended: usize,
    pub(super) counts: Counts,
    pub(super) error: Option<Error>,
    /// Whether some messages need the processor of their receiver.
    pub(super) needs_calls: bool,
}

/// The picoseconds of a byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    pub(super) card: f64,
    pub(super) node: f64,
    pub(super) memory: f64,
    pub(super) copy: f64,
    pub(super) reduce: f64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) computing: u128,
    pub(super) blocked: u128,
}

/// A rank. Its `clock` is the time up to which its processor is busy.
pub(super) struct Rank<'a> {
    pub(super) clock: Time,
    pub(super) blocked: Blocked,
    pub(super) held: Option<(Phase, Action)>,
    pub(super) program: Option<Program<'a>>,
    pub(super) schedule: Option<Running>,
    /// The number of operations of each team that this rank has begun.
    pub(super) operations: Vec<(u16, u64)>,
    /// The slots of the present operation that are signalled and not waited for, a bit each.
    pub(super) signalled: Vec<u64>,
    /// The signals of all others: of operations to come, and outside operations.
    pub(super) arrived: HashMap<u64, u32, BuildHasherDefault<KeyHasher>>,
    /// Messages that its card has not sent completely.
    pub(super) unsent: u32,
    /// Messages of this rank that have not arrived.
    pub(super) under_way: u32,
    /// Puts without a signal and gets that have not ended.
    pub(super) open: u32,
    /// The time at which everything that is no longer counted by the two has ended.
    pub(super) settled: Time,
    /// Messages that wait until this rank is in a call.
    pub(super) deferred: VecDeque<u32>,
    pub(super) two_sided: Box<TwoSided>,
}

/// How far an action has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The call begins.
    Call,
    /// Its overhead is over.
    Act,
}

/// The steps of a collective operation.
pub(super) struct Running {
    pub(super) steps: std::vec::IntoIter<Action>,
    /// The keys of its slots are the sums of this and the slot.
    pub(super) base: u64,
}

/// The reason why a rank does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    No,
    Slot(u64),
    Complete,
    Finish,
    Credit,
    Ended,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Card {
    pub(super) send_free: Time,
    pub(super) receive_free: Time,
    pub(super) queue: VecDeque<u32>,
    /// Whether an event will serve the queue.
    pub(super) is_awaited: bool,
}

/// The kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Put,
    /// A put whose signal follows when it is acknowledged.
    PutFirst,
    /// Its acknowledgement, which needs no card.
    Acknowledgement,
    /// The processor sends the signal that follows.
    Signal,
    Request,
    Reply,
    Eager,
    Announcement,
    ClearToSend,
    Data,
}

/// A message under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) from: u32,
    pub(super) to: u32,
    /// Bytes on the network.
    pub(super) bytes: u64,
    /// Bytes of the data that it announces or asks for.
    pub(super) size: u64,
    /// The slot that it signals, [`NO_SIGNAL`], or its tag.
    pub(super) key: u64,
    /// The time at which it came to the sender's card; later, its first byte to the receiver's.
    pub(super) head: Time,
    /// The earliest time at which all of it can have arrived.
    pub(super) tail: Time,
    /// Bytes that have not been sent, and not arrived, of packets.
    pub(super) to_send: u64,
    pub(super) to_arrive: u64,
}

/// The key of a put without a signal.
pub(super) const NO_SIGNAL: u64 = u64::MAX;
/// The base of the slots of a program, outside collective operations.
pub(super) const PROGRAM_SLOTS: u64 = 1 << 63;

#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) message: u32,
    pub(super) bytes: u64,
    pub(super) hop: u32,
    pub(super) tail: Time,
}

/// Values with numbers that are used again.
#[derive(Debug)]
pub(super) struct Slab<T> {
    values: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    fn new() -> Slab<T> {
        Slab { values: Vec::new(), free: Vec::new() }
    }

    pub(super) fn add(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.values[number as usize] = value;
                number
            }
            None => {
                self.values.push(value);
                (self.values.len() - 1) as u32
            }
        }
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> T {
        self.values[number as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        &mut self.values[number as usize]
    }

    pub(super) fn take(&mut self, number: u32) -> T {
        self.free.push(number);
        self.values[number as usize]
    }
}

/// Hashes one number by a multiplication (Fibonacci hashing, Knuth 1973, 6.4).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        let product = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ (product >> 32);
    }
}

impl<'a> State<'a> {
    pub(super) fn new(machine: &'a Machine, workload: &'a dyn Workload) -> Result<State<'a>, Error> {
        let n = workload.ranks();
        let topology = machine.topology(n).map_err(Error::TooSmall)?;
        let links = Links::new(topology, machine.network.hop_latency);
        let (nodes, network, protocol) = (machine.nodes(n), &machine.network, &machine.protocol);
        let n_cards = nodes * machine.cards_per_node;
        let rates = Rates {
            card: per_byte(network.bytes_per_second),
            node: per_byte(machine.node.bytes_per_second),
            memory: per_byte(machine.node.memory_bytes_per_second),
            copy: per_byte(machine.compute.copy_bytes_per_second),
            reduce: per_byte(machine.compute.reduce_bytes_per_second),
        };
        let flows = match machine.contention {
            Contention::Fluid => {
                Flows::new(links.per_byte().chain(std::iter::repeat_n(rates.card, 2 * n_cards)))
            }
            _ => Flows::new(std::iter::empty()),
        };
        Ok(State {
            machine,
            workload,
            now: 0,
            queue: Queue::default(),
            ranks: (0..n).map(|_| Rank::new()).collect(),
            cards: vec![Card::default(); n_cards],
            memories: vec![0; nodes],
            links,
            flows,
            messages: Slab::new(),
            packets: Slab::new(),
            routes: Vec::new(),
            rates,
            ended: 0,
            counts: Counts::default(),
            error: None,
            needs_calls: !protocol.has_hardware_puts || !protocol.progresses_alone || protocol.signals_follow,
        })
    }

    #[inline]
    pub(super) fn node(&self, rank: u32) -> usize {
        rank as usize / self.machine.pes_per_node
    }

    #[inline]
    pub(super) fn card(&self, rank: u32) -> usize {
        let (pes, cards) = (self.machine.pes_per_node, self.machine.cards_per_node);
        rank as usize / pes * cards + rank as usize % pes % cards
    }

    pub(super) fn fail(&mut self, rank: u32, reason: String) {
        self.error.get_or_insert(Error::Invalid { rank: rank as usize, reason });
    }

    pub(super) fn outcome(&self, events: u64) -> Result<Outcome, Error> {
        if self.ended < self.ranks.len() {
            let waits = |rank: &Rank| rank.blocked != Blocked::Ended;
            let rank = self.ranks.iter().position(waits).unwrap_or(0);
            let waits_for = self.ranks[rank].waits_for();
            return Err(Error::Deadlock { unfinished: self.ranks.len() - self.ended, rank, waits_for });
        }
        let ends: Vec<Time> = self.ranks.iter().map(|rank| rank.clock).collect();
        let Counts { messages, bytes, computing, blocked } = self.counts;
        let time = ends.iter().copied().max().unwrap_or(0);
        let busiest_link = self.links.busiest();
        Ok(Outcome { ends, time, messages, bytes, events, computing, blocked, busiest_link })
    }
}

impl Rank<'_> {
    fn new() -> Self {
        Rank {
            clock: 0,
            blocked: Blocked::No,
            held: None,
            program: None,
            schedule: None,
            operations: Vec::new(),
            signalled: Vec::new(),
            arrived: HashMap::default(),
            unsent: 0,
            under_way: 0,
            open: 0,
            settled: 0,
            deferred: VecDeque::new(),
            two_sided: Box::default(),
        }
    }

    fn waits_for(&self) -> String {
        match self.blocked {
            Blocked::Slot(key) if key & PROGRAM_SLOTS != 0 => {
                format!("a signal in its slot {}", key & !PROGRAM_SLOTS)
            }
            Blocked::Slot(key) => {
                let (team, operation, slot) = (key >> 48, key >> 24 & 0xFF_FFFF, key & 0xFF_FFFF);
                format!("a signal in slot {slot} of operation {operation} of team {team}")
            }
            Blocked::Complete => "the end of its puts and gets".to_owned(),
            Blocked::Finish => self.two_sided.waits_for(),
            Blocked::Credit => "the arrival of its messages".to_owned(),
            Blocked::No | Blocked::Ended => "nothing".to_owned(),
        }
    }
}
