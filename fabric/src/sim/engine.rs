//! The state of a simulation: its PEs, their endpoints, and what is under way.
//!
//! Invariant: everything lies behind one lock, and nothing here waits. Times are picoseconds since the start.

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
    /// The one PE that runs; nobody does before the start, nor when one thread drives all.
    pub(super) turn: Option<Pe>,
    /// One thread drives all endpoints: no PE has to wait for its turn.
    pub(super) driven: bool,
    /// How often in a row somebody was resumed although all look in vain and nothing is under way.
    pub(super) hopeless_steps: usize,
    /// The same, rests counting more than polls.
    pub(super) hopeless_weight: usize,
    /// Whom of the idle was resumed last.
    pub(super) last_resumed: Pe,
    /// Operations and messages accepted.
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

/// Where the PEs are.
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
    /// When it has sent, and received, all that it was given.
    pub(super) send_free: u64,
    pub(super) receive_free: u64,
}

/// What a PE is up to, as the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not connected yet.
    Absent,
    /// Could run.
    Ready,
    /// Runs: its number is the turn.
    Running,
    /// Rests until something touches it.
    Idle,
    /// Its endpoint was dropped.
    Gone,
}

/// A PE.
pub(super) struct Member {
    pub(super) standing: Standing,
    pub(super) clock: u64,
    /// When it has moved all that goes to PEs of its node.
    pub(super) move_free: u64,
    /// How many things have happened to it from outside.
    pub(super) touches: u64,
    /// Its last call found nothing.
    pub(super) vain: bool,
    /// Words of the panic with which its present call ends.
    pub(super) doom: Option<String>,
    pub(super) waiters: Vec<Thread>,
    pub(super) regions: HashMap<Key, Region>,
    pub(super) inbox: VecDeque<Letter>,
}

/// Memory that its PE has exposed.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub(super) start: NonNull<u8>,
    pub(super) bytes: usize,
}

// SAFETY: the PE that registers has promised that the memory outlives its endpoint, with which the region is
// forgotten; until then any thread may access it, through `copy` and atomics only.
unsafe impl Send for Region {}

/// An endpoint or a context: a sending side of a PE.
pub(super) struct Port {
    pub(super) pe: Pe,
    pub(super) outstanding: usize,
    /// What the next `progress` reports.
    pub(super) finished: VecDeque<Finished>,
    pub(super) errors: VecDeque<FabricError>,
    /// How many touches of its PE it has seen.
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
    /// Bytes inside the network.
    pub(super) kept: Option<Vec<u8>>,
    pub(super) bytes: usize,
    pub(super) remote: Remote,
    pub(super) token: Option<Token>,
    pub(super) pieces_left: usize,
    /// [`Event::Sent`](crate::types::Event::Sent) is still to come.
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

// SAFETY: whoever starts an operation vouches for its memory until completion; when the endpoint is dropped
// before, the operation is forgotten with it.
unsafe impl Send for Local {}

/// Messages from one PE to another.
#[derive(Default)]
pub(super) struct Channel {
    pub(super) in_flight: VecDeque<Letter>,
    /// Messages sent and not yet handed to the receiver's handler.
    pub(super) load: usize,
}

/// A message.
pub(super) struct Letter {
    pub(super) from: Pe,
    pub(super) header: u64,
    pub(super) payload: Vec<u8>,
}

/// What can happen next in the network.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A packet is given to the sender's network card, or, inside a node, to the sender's processor.
    Enter { from: Pe, to: Pe, bytes: usize, packet: Packet },
    /// The last byte of a put leaves its source.
    Leave(OpId),
    /// The first byte reaches the receiver's network card, which it occupies for so long.
    Arrive { to: Pe, occupancy: u64, packet: Packet },
    /// The last byte is received.
    Deliver(Packet),
    /// The origin hears that its operation is complete.
    Complete(OpId),
}

/// What travels.
#[derive(Clone, Copy, Debug)]
pub(super) enum Packet {
    /// An operation's request, or a piece of it.
    Request { op: OpId, start: usize, bytes: usize },
    /// What a get or a fetch brings back.
    Reply(OpId),
    /// The next message of a channel.
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

    /// Something has happened to a PE at that time: it may find what it waits for.
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

    /// A PE has done something: there is hope.
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

    /// How long so many bytes occupy a network card.
    pub(super) fn occupancy(&self, bytes: usize) -> u64 {
        self.gap + (bytes as f64 * self.per_byte).round() as u64
    }

    /// How long a PE moves so many bytes to another one of its node.
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
