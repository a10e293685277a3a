//! The state of a simulation: its PEs, their endpoints, and the operations under way.
//!
//! Invariant: one lock protects everything, and nothing here waits. Times are picoseconds since the start.

use super::faults::loss_of;
use super::params::SimParams;
use super::pending::Pending;
use super::random::Random;
use crate::amo::Atomic;
use crate::types::{FabricError, Key, Pe, Remote, Token};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ptr::NonNull;
use std::thread::Thread;
use std::time::Duration;

pub(super) type PortId = u64;
pub(super) type OpId = u64;

pub(super) struct State {
    pub(super) params: SimParams,
    pub(super) times: Times,
    pub(super) random: Random,
    pub(super) members: Vec<Member>,
    pub(super) nodes: Nodes,
    pub(super) ports: BTreeMap<PortId, Port>,
    pub(super) ops: BTreeMap<OpId, Op>,
    pub(super) channels: BTreeMap<(Pe, Pe), Channel>,
    pub(super) pending: Pending<Step>,
    /// The latest time at which a PE was given the turn.
    pub(super) now: u64,
    /// The PE that runs; `None` before the start, and if one thread drives all endpoints.
    pub(super) turn: Option<Pe>,
    /// Whether one thread drives all endpoints. Then no PE waits for its turn.
    pub(super) driven: bool,
    /// The number of times in a row that a PE was resumed although all PEs check in vain and nothing is under
    /// way.
    pub(super) hopeless_steps: usize,
    /// The same as a weighted sum, in which rests count more than polls.
    pub(super) hopeless_weight: usize,
    /// The idle PE that was resumed last.
    pub(super) last_resumed: Pe,
    /// The number of accepted operations and messages.
    pub(super) operations: u64,
    pub(super) lost: Option<Pe>,
    pub(super) next_id: u64,
}

/// The parameters in picoseconds.
#[derive(Clone, Copy)]
pub(super) struct Times {
    pub(super) latency: u64,
    pub(super) overhead: u64,
    pub(super) gap: u64,
    pub(super) poll: u64,
    pub(super) local_latency: u64,
    per_byte: f64,
    local_per_byte: f64,
}

/// The nodes of the PEs.
pub(super) struct Nodes {
    /// The node of each PE, from 0 in the order of their lowest PEs.
    of: Vec<usize>,
    /// The network card of each node.
    pub(super) cards: Vec<Card>,
    /// Whether PEs of one node reach each other without its card.
    has_local_routes: bool,
}

/// The network card of a node.
#[derive(Clone, Default)]
pub(super) struct Card {
    /// The times when it has sent, and received, all packets that it was given.
    pub(super) send_free: u64,
    pub(super) receive_free: u64,
}

/// The state of a PE for the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not connected yet.
    Absent,
    /// It can run.
    Ready,
    /// It runs: its number is the turn.
    Running,
    /// It rests until it is touched.
    Idle,
    /// Its endpoint was dropped.
    Gone,
}

/// A PE.
pub(super) struct Member {
    pub(super) standing: Standing,
    pub(super) clock: u64,
    /// The time when it has moved all data to PEs of its node.
    pub(super) move_free: u64,
    /// The number of events from outside that concern it.
    pub(super) touches: u64,
    /// Whether its last call found no event.
    pub(super) vain: bool,
    /// The message of the panic with which its present call ends.
    pub(super) doom: Option<String>,
    pub(super) waiters: Vec<Thread>,
    pub(super) regions: HashMap<Key, Region>,
    /// How often memory was registered for a time.
    pub(super) exposures: u64,
    pub(super) inbox: VecDeque<Letter>,
}

/// Memory that its PE has registered.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub(super) start: NonNull<u8>,
    pub(super) bytes: usize,
}

// SAFETY: the PE that registers has promised that the memory outlives its endpoint. The region is removed
// with the endpoint. Until then any thread may access it, through `copy` and atomics only.
unsafe impl Send for Region {}

/// An endpoint or a context: a sending side of a PE.
pub(super) struct Port {
    pub(super) pe: Pe,
    pub(super) outstanding: usize,
    /// The events that the next `progress` reports.
    pub(super) finished: VecDeque<Finished>,
    pub(super) errors: VecDeque<FabricError>,
    /// The number of touches of its PE that it has seen.
    pub(super) seen: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finished {
    Sent(Token),
    Put(Option<Token>),
    Get(Option<Token>),
}

/// An operation under way.
pub(super) struct Op {
    pub(super) port: PortId,
    pub(super) from: Pe,
    pub(super) to: Pe,
    pub(super) action: Action,
    /// Source of a put, target of a get or a fetch; null if there is none, or if it was read.
    pub(super) local: Local,
    /// The bytes of it inside the network.
    pub(super) kept: Option<Vec<u8>>,
    pub(super) bytes: usize,
    pub(super) remote: Remote,
    pub(super) token: Option<Token>,
    pub(super) pieces_left: usize,
    /// Whether [`Event::Sent`](crate::types::Event::Sent) has still to be delivered.
    pub(super) owes_sent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Put,
    Get,
    Atomic(Atomic),
}

/// Memory of the origin.
#[derive(Clone, Copy)]
pub(super) struct Local(pub(super) *mut u8);

// SAFETY: the caller that starts an operation guarantees its memory until completion. If the endpoint is
// dropped before, the operation is removed with it.
unsafe impl Send for Local {}

/// Messages from one PE to another.
#[derive(Default)]
pub(super) struct Channel {
    pub(super) in_flight: VecDeque<Letter>,
    /// Messages that were sent and not yet passed to the receiver's handler.
    pub(super) load: usize,
}

/// A message.
pub(super) struct Letter {
    pub(super) from: Pe,
    pub(super) header: u64,
    pub(super) payload: Vec<u8>,
}

/// A step of the network.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A packet is given to the sender's network card, or, inside a node, to the sender's processor.
    Enter { from: Pe, to: Pe, bytes: usize, packet: Packet },
    /// The last byte of a put leaves its source.
    Leave(OpId),
    /// The first byte reaches the receiver's network card. The packet occupies the card for `occupancy`.
    Arrive { to: Pe, occupancy: u64, packet: Packet },
    /// The last byte is received.
    Deliver(Packet),
    /// The origin learns that its operation is complete.
    Complete(OpId),
}

/// The contents of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Packet {
    /// An operation's request, or a piece of it.
    Request { op: OpId, start: usize, bytes: usize },
    /// The data of a get or a fetch.
    Reply(OpId),
    /// The next message from a PE to another.
    Message { from: Pe, to: Pe },
}

impl State {
    pub(super) fn new(n_pes: usize, params: SimParams, driven: bool) -> State {
        assert!(params.credits > 0, "a simulation with 0 credits accepts no operation");
        let bound = |p: f32| p > 0.0 && p < 1.0;
        let lively = params.stay < 1.0 && params.hand_over <= 1.0 && params.again < 1.0;
        assert!(lively && bound(params.delivery), "these probabilities let nothing happen: {params:?}");
        State {
            times: Times::new(&params),
            random: Random::new(params.seed),
            members: (0..n_pes).map(|_| Member::new()).collect(),
            nodes: Nodes::new(n_pes, &params.nodes),
            ports: BTreeMap::new(),
            ops: BTreeMap::new(),
            channels: BTreeMap::new(),
            pending: Pending::new(params.chaos),
            now: 0,
            turn: None,
            driven,
            hopeless_steps: 0,
            hopeless_weight: 0,
            last_resumed: n_pes - 1,
            operations: 0,
            lost: None,
            next_id: 0,
            params,
        }
    }

    pub(super) fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub(super) fn open_port(&mut self, pe: Pe) -> PortId {
        let id = self.new_id();
        let errors = self.lost.filter(|lost| *lost != pe).map(|lost| loss_of(lost, pe));
        let port = Port {
            pe,
            outstanding: 0,
            finished: VecDeque::new(),
            errors: errors.into_iter().collect(),
            seen: self.members[pe].touches,
        };
        self.ports.insert(id, port);
        id
    }

    pub(super) fn port(&mut self, id: PortId) -> &mut Port {
        self.ports.get_mut(&id).expect("an endpoint's port is open until it is dropped")
    }

    /// Something has happened to a PE at this time: its wait may be over.
    pub(super) fn touch(&mut self, pe: Pe, time: u64) {
        self.hopeless_steps = 0;
        self.hopeless_weight = 0;
        let unordered = self.params.chaos || self.driven;
        let member = &mut self.members[pe];
        member.touches += 1;
        member.vain = false;
        if member.standing == Standing::Idle {
            member.standing = Standing::Ready;
            member.clock = member.clock.max(time);
        } else if unordered {
            member.clock = member.clock.max(time);
        }
    }

    /// A PE has done something, so waits of other PEs may end.
    pub(super) fn stir(&mut self, pe: Pe) {
        self.hopeless_steps = 0;
        self.hopeless_weight = 0;
        self.members[pe].vain = false;
        self.members[pe].doom = None;
    }

    pub(super) fn spend(&mut self, pe: Pe, time: u64) {
        let clock = &mut self.members[pe].clock;
        *clock = clock.saturating_add(time);
    }
}

impl Member {
    fn new() -> Member {
        Member {
            standing: Standing::Absent,
            clock: 0,
            move_free: 0,
            touches: 0,
            vain: false,
            doom: None,
            waiters: Vec::new(),
            regions: HashMap::new(),
            exposures: 0,
            inbox: VecDeque::new(),
        }
    }
}

impl Times {
    fn new(params: &SimParams) -> Times {
        let bandwidths = [params.bandwidth_bytes_per_second, params.local_bandwidth_bytes_per_second];
        assert!(bandwidths.iter().all(|&bytes| bytes > 0.0), "a network without bandwidth moves nothing");
        let [per_byte, local_per_byte] = bandwidths.map(|bytes| 1e12 / bytes);
        Times {
            latency: picoseconds(params.latency),
            overhead: picoseconds(params.overhead),
            gap: picoseconds(params.gap),
            poll: picoseconds(params.poll).max(1000),
            local_latency: picoseconds(params.local_latency),
            per_byte,
            local_per_byte,
        }
    }

    /// The time for which `bytes` bytes occupy a network card.
    pub(super) fn occupancy(&self, bytes: usize) -> u64 {
        self.gap + (bytes as f64 * self.per_byte).round() as u64
    }

    /// The time that a PE takes to move `bytes` bytes to another PE of its node.
    pub(super) fn moving(&self, bytes: usize) -> u64 {
        (bytes as f64 * self.local_per_byte).round() as u64
    }
}

impl Nodes {
    fn new(n_pes: usize, named: &[u32]) -> Nodes {
        let has_local_routes = !named.is_empty();
        assert!(
            !has_local_routes || named.len() == n_pes,
            "the nodes of {} PEs are given for a simulation of {n_pes}. Give one for each PE, or none",
            named.len()
        );
        let lowest = |pe: Pe| named.iter().position(|node| *node == named[pe]).expect("its own at least");
        let mut of: Vec<usize> = Vec::with_capacity(n_pes);
        let mut count = 0;
        for pe in 0..n_pes {
            let node = match has_local_routes.then(|| lowest(pe)).filter(|&lowest| lowest < pe) {
                Some(lowest) => of[lowest],
                None => count,
            };
            count = count.max(node + 1);
            of.push(node);
        }
        Nodes { of, cards: vec![Card::default(); count], has_local_routes }
    }

    /// Whether a PE reaches another without a network card.
    pub(super) fn is_local(&self, from: Pe, to: Pe) -> bool {
        self.has_local_routes && self.of[from] == self.of[to]
    }

    /// The network card of a PE's node.
    pub(super) fn card(&mut self, pe: Pe) -> &mut Card {
        &mut self.cards[self.of[pe]]
    }
}

/// A time in picoseconds; the longest is 213 days.
pub(super) fn picoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().saturating_mul(1000)).unwrap_or(u64::MAX)
}
