//! Links that carry one thing at a time: whole messages, or packets.
//!
//! Invariant: a link is never idle while something waits for it. A packet comes to a link when it has passed
//! the one before. A whole message counts as waiting for all links of its route from the time at which it
//! comes to its card, which sends packets of all its messages in turn: that is the approximation of
//! [`Contention::Queue`](crate::machine::Contention::Queue), and saves an event a link. The time of a message
//! is then that of its slowest link, as in a fluid model. Links that began with a message only after the link
//! before would stand idle in front of it, because they are not asked again: that was up to 113 % slower than
//! packets.

use crate::time::{Time, moving};
use crate::topology::Topology;

/// The links of a machine.
#[derive(Debug)]
pub(crate) struct Links {
    topology: Topology,
    hop_latency: Time,
    states: Vec<State>,
}

#[derive(Clone, Debug)]
struct State {
    free: Time,
    busy: Time,
    per_byte: f64,
}

/// The times of the first and the last byte at the end of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) head: Time,
    pub(crate) tail: Time,
}

impl Links {
    pub(crate) fn new(topology: Topology, hop_latency: Time) -> Links {
        let states = topology.links().into_iter().map(|per_byte| State { free: 0, busy: 0, per_byte });
        Links { states: states.collect(), topology, hop_latency }
    }

    /// The time of the hops of a route without other messages.
    pub(crate) fn hops(&self, from: usize, to: usize) -> Time {
        let mut hops = 0;
        self.topology.route(from, to, |_| hops += self.hop_latency);
        hops
    }

    /// The route between two nodes.
    pub(crate) fn route(&self, from: usize, to: usize, route: &mut Vec<u32>) {
        route.clear();
        self.topology.route(from, to, |link| route.push(link));
    }

    /// The picoseconds of a byte on every link.
    pub(crate) fn per_byte(&self) -> impl Iterator<Item = f64> {
        self.states.iter().map(|state| state.per_byte)
    }

    /// The number of links.
    pub(crate) fn count_all(&self) -> u32 {
        self.states.len() as u32
    }

    /// Carries a whole message that comes to its card at `start`: every link of its route serves it after
    /// the messages that were carried before.
    #[inline]
    pub(crate) fn carry(&mut self, from: usize, to: usize, bytes: u64, start: Time) -> Passage {
        let Links { topology, hop_latency, states } = self;
        let mut passage = Passage { head: start, tail: start };
        topology.route(from, to, |link| {
            let state = &mut states[link as usize];
            let time = moving(bytes, state.per_byte);
            state.free = state.free.max(start) + time;
            state.busy += time;
            passage.tail = passage.tail.max(state.free) + *hop_latency;
            passage.head += *hop_latency;
        });
        passage
    }

    /// Carries a packet over one link.
    #[inline]
    pub(crate) fn pass(&mut self, link: u32, bytes: u64, now: Time) -> Passage {
        let state = &mut self.states[link as usize];
        let begin = state.free.max(now);
        let time = moving(bytes, state.per_byte);
        state.free = begin + time;
        state.busy += time;
        Passage { head: begin + self.hop_latency, tail: state.free + self.hop_latency }
    }

    /// The longest time that a link has carried something.
    pub(crate) fn busiest(&self) -> Time {
        self.states.iter().map(|state| state.busy).max().unwrap_or(0)
    }

    /// Counts bytes that have passed a link in another model.
    pub(crate) fn count(&mut self, link: u32, bytes: u64) {
        let state = &mut self.states[link as usize];
        state.busy += moving(bytes, state.per_byte);
    }
}
