//! Operations as they are recorded.

use crate::Pe;

/// The kinds of operations, in the order of their numbers in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Category {
    /// A call of MPI.
    Mpi = 1,
    /// A one-sided operation: put, get or atomic.
    Rma = 2,
    /// A collective operation of a team.
    Collective = 3,
    /// A wait, named after its condition.
    Wait = 4,
    /// A two-sided message.
    Message = 5,
    /// An active message.
    Active = 6,
    /// An operation that was given to the provider of the network.
    Network = 7,
    /// A step of a collective operation that a schedule carries out; not in statistics.
    Step = 8,
}

impl Category {
    /// All categories.
    pub const ALL: [Category; 8] = [
        Category::Mpi,
        Category::Rma,
        Category::Collective,
        Category::Wait,
        Category::Message,
        Category::Active,
        Category::Network,
        Category::Step,
    ];

    /// The name that files and tables have.
    pub fn name(self) -> &'static str {
        match self {
            Category::Mpi => "mpi",
            Category::Rma => "rma",
            Category::Collective => "collective",
            Category::Wait => "wait",
            Category::Message => "message",
            Category::Active => "active message",
            Category::Network => "network",
            Category::Step => "step",
        }
    }

    /// Whether bytes of this category are traffic between two PEs, for the communication matrix.
    pub(super) fn is_traffic(self) -> bool {
        matches!(self, Category::Rma | Category::Message | Category::Active)
    }
}

/// An operation: what it is, with whom, and how many bytes it moves.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub category: Category,
    pub name: &'static str,
    /// More about it: the algorithm of a collective operation, the operation that a wait is for.
    pub detail: &'static str,
    pub peer: Option<Pe>,
    pub bytes: usize,
    /// The number of the message that leaves or arrives here, the same at both PEs.
    pub message: Option<u64>,
    /// Whether the bytes leave this PE or are fetched by it, so that they count as its traffic.
    pub is_traffic: bool,
}

impl Event {
    /// An operation without a peer.
    pub fn new(category: Category, name: &'static str) -> Event {
        let is_traffic = category.is_traffic();
        Event { category, name, detail: "", peer: None, bytes: 0, message: None, is_traffic }
    }

    /// With a peer, to or from which this many bytes go.
    pub fn with(self, peer: Pe, bytes: usize) -> Event {
        Event { peer: Some(peer), bytes, ..self }
    }

    /// With this number of bytes.
    pub fn of_bytes(self, bytes: usize) -> Event {
        Event { bytes, ..self }
    }

    /// With more about it.
    pub fn detailed(self, detail: &'static str) -> Event {
        Event { detail, ..self }
    }

    /// The execution of a handler of active messages for a message of PE `from`.
    pub fn handler(name: &'static str, from: Pe, bytes: usize) -> Event {
        Event {
            is_traffic: false,
            ..Event::new(Category::Active, "handler").detailed(name).with(from, bytes)
        }
    }

    /// The departure of message number `number` from PE `from` to PE `to`. Messages of a pair are numbered in
    /// the order in which they are sent, which is that of their arrival.
    pub fn departure(name: &'static str, (from, to): (Pe, Pe), number: u64, bytes: usize) -> Event {
        let message = Some(message_id(from, to, number));
        Event { message, ..Event::new(Category::Message, name).with(to, bytes) }
    }

    /// The arrival of such a message.
    pub fn arrival(name: &'static str, (from, to): (Pe, Pe), number: u64, bytes: usize) -> Event {
        let message = Some(message_id(from, to, number));
        Event { message, is_traffic: false, ..Event::new(Category::Message, name).with(from, bytes) }
    }
}

/// The number by which departure and arrival of a message find each other, the same at both PEs. Two messages
/// of a trace of 10^7 have the same number with a probability of 10^-5.
fn message_id(from: Pe, to: Pe, number: u64) -> u64 {
    mix(mix((from as u64) << 32 | to as u64).wrapping_add(number))
}

/// A bijection that spreads the bits of a word (the finaliser of SplitMix64).
fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
