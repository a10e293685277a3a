//! Active messages over the network.
//!
//! Invariant: a PE has at most [`WINDOW`] requests under way to each other one, which stores them until it
//! has executed them, and each of them has at most one reply. The receiver reports from time to time how many
//! requests it has executed in all, so a later report makes up for one that was lost; a sender that waits in
//! vain asks for a report.

use super::message_state::{ANSWERS, REQUESTS};
use super::messaging::Messaging;
use super::window::Window;
use super::wire::Head;
use crate::Pe;
use crate::base::element::bytes_of;
use crate::base::locked::locked;
use crate::base::trace::{Category, Event};
use crate::progress::purpose::Purpose;
use pelago_fabric::copy;
use pelago_fabric::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::sync::Mutex;

/// Requests that a PE may have under way over the network to each other PE.
pub const WINDOW: u64 = 64;
/// A receiver tells the sender after this number of executed requests.
const TOLD_EVERY: u64 = WINDOW / 4;
/// Number of looks for room before a PE asks how many requests were executed.
const LOOKS_BEFORE_ASKING: u32 = 1000;

/// Requests between this PE and one that is reached over the network.
pub struct Far {
    /// Positions are numbers of requests.
    window: Window,
    sent: AtomicU64,
    /// The number of those sent that were executed, as far as is known.
    known: AtomicU64,
    /// Number of failed looks for room since the last question, and of questions since the last report.
    looks: AtomicU32,
    asks: AtomicU32,
    /// Of the messages that have come from that PE.
    executed: AtomicU64,
    told: AtomicU64,
}

/// Messages that have come over the network and are not executed yet, and a way to lose some for tests.
#[derive(Default)]
pub struct Arrivals {
    /// Requests and replies.
    queues: [Queue; 2],
    /// The number of reports of executed requests to lose; for tests.
    losses: AtomicU32,
}

#[derive(Default)]
struct Queue {
    messages: Mutex<VecDeque<Arrived>>,
    /// The count, for threads that only read it.
    count: AtomicUsize,
}

/// A message that is not executed yet.
pub struct Arrived {
    pub from: Pe,
    pub header: u64,
    pub words: Vec<u64>,
    pub bytes: usize,
}

impl Arrivals {
    /// The number of requests (kind 0) or replies (kind 1) that have arrived.
    #[inline]
    pub fn count(&self, kind: usize) -> usize {
        self.queues[kind].count.load(Ordering::Relaxed)
    }

    fn push(&self, kind: usize, message: Arrived) {
        let queue = &self.queues[kind];
        let mut messages = locked(&queue.messages);
        messages.push_back(message);
        queue.count.store(messages.len(), Ordering::Relaxed);
    }

    /// The oldest one.
    pub fn pop(&self, kind: usize) -> Option<Arrived> {
        let queue = &self.queues[kind];
        if self.count(kind) == 0 {
            return None;
        }
        let mut messages = locked(&queue.messages);
        let message = messages.pop_front();
        queue.count.store(messages.len(), Ordering::Relaxed);
        message
    }
}

impl Far {
    pub fn new() -> Far {
        let zero = || AtomicU64::new(0);
        Far {
            window: Window::new((WINDOW / 2) as u32),
            sent: zero(),
            known: zero(),
            looks: AtomicU32::new(0),
            asks: AtomicU32::new(0),
            executed: zero(),
            told: zero(),
        }
    }

    /// Sends a request; `false` if there is no room for it now.
    pub fn try_request(&self, world: &Messaging, pe: Pe, header: u64, words: &[u64], payload: &[u8]) -> bool {
        if !self.window.is_open(self.known.load(Ordering::Relaxed)) {
            self.ask_patiently(world, pe);
            return false;
        }
        if world.am.arrivals.count(REQUESTS) as u64 > WINDOW * world.n_pes() as u64 {
            // This PE stores more than others may have sent: it executes first.
            return false;
        }
        let position = self.sent.fetch_add(1, Ordering::Relaxed);
        let bytes = [bytes_of(words), payload].concat();
        world.begin_data(header, payload);
        let is_sent = world.net_endpoint().try_send(pe, Purpose::Active.over(header), &bytes);
        if is_sent {
            self.window.count(position, 1);
            let event = || Event::new(Category::Network, "message").with(pe, bytes.len());
            world.tally.add_net(|counts| counts.net_messages += 1, event);
        } else {
            self.sent.fetch_sub(1, Ordering::Relaxed);
            world.end_data(header, payload);
        }
        is_sent
    }

    /// Asks a PE how many requests it has executed: each time after twice as many looks as the last time.
    fn ask_patiently(&self, world: &Messaging, pe: Pe) {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed) + 1;
        let ask_at = LOOKS_BEFORE_ASKING << self.asks.load(Ordering::Relaxed).min(12);
        if looks >= ask_at {
            self.looks.store(0, Ordering::Relaxed);
            self.asks.fetch_add(1, Ordering::Relaxed);
            world.send_later(pe, Purpose::ActiveAsk, 0, Vec::new());
        }
    }

    /// Counts a request of this peer that was executed here: whether the peer is to hear of it.
    pub fn count_executed(&self) -> bool {
        let executed = self.executed.fetch_add(1, Ordering::Relaxed) + 1;
        executed - self.told.load(Ordering::Relaxed) >= TOLD_EVERY
    }
}

impl Messaging {
    /// Data that travel with a message are under way until the receiver reports that they are in their place:
    /// quiet waits for the report.
    fn begin_data(&self, header: u64, data: &[u8]) {
        if is_long(header) && !data.is_empty() {
            self.net_endpoint().add_follower();
        }
    }

    fn end_data(&self, header: u64, data: &[u8]) {
        if is_long(header) && !data.is_empty() {
            self.net_endpoint().remove_follower();
        }
    }

    /// Sends a reply over the network, now or later.
    pub fn answer_over_net(&self, pe: Pe, header: u64, words: &[u64], payload: &[u8]) {
        self.begin_data(header, payload);
        let event = || Event::new(Category::Network, "message").with(pe, 8 * words.len() + payload.len());
        self.tally.add_net(|counts| counts.net_messages += 1, event);
        self.send_later(pe, Purpose::Active, header, [bytes_of(words), payload].concat());
    }

    /// Puts the data that a long message brings with it where they belong. Nothing if they do not fit there.
    fn place_data(&self, offset_bytes: u64, data: &[u8]) -> Option<()> {
        let offset_bytes = usize::try_from(offset_bytes).ok()?;
        if offset_bytes.checked_add(data.len())? > self.memory.region_bytes() {
            return None;
        }
        // SAFETY: the range lies in this PE's region, as was checked; the data in private memory.
        unsafe {
            let target = self.memory.heap(self.my_pe()).add(offset_bytes);
            copy::transfer(target, data.as_ptr(), data.len());
        }
        Some(())
    }

    /// Takes a message that has come over the network: its data are put in their place now, it is executed
    /// later, when no lock of the network is held. `None` if it is not valid.
    pub fn note_active(&self, from: Pe, header: u64, payload: &[u8]) -> Option<()> {
        let mut words = vec![0u64; payload.len().div_ceil(8)];
        // SAFETY: the words have room for the bytes of the payload.
        unsafe {
            words.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(payload.as_ptr(), payload.len());
        }
        let head = Head::unpack(header)?;
        let data = payload.get(8 * head.words()..)?;
        // A peer whose messages come through rings sends none over the network.
        self.am.peers(self).of(self, from).far()?;
        if head.is_long && !data.is_empty() {
            self.place_data(words[head.words() - 1], data)?;
            self.send_later(from, Purpose::ActivePlaced, 0, Vec::new());
        }
        let kind = if head.is_answer { ANSWERS } else { REQUESTS };
        self.am.arrivals.push(kind, Arrived { from, header, words, bytes: payload.len() });
        self.am.peers(self).polls.hurry();
        Some(())
    }

    /// Takes the word of a PE that the data of a message are in their place. `None` if there are none.
    pub fn note_placed(&self) -> Option<()> {
        self.net_endpoint().try_remove_follower()
    }

    /// Takes note of how many requests of this PE another one has executed. `None` if it cannot have.
    pub fn note_executed(&self, from: Pe, executed: u64) -> Option<()> {
        let far = self.am.peers(self).of(self, from).far()?;
        if far.known.fetch_max(executed, Ordering::Relaxed) < executed {
            far.looks.store(0, Ordering::Relaxed);
            far.asks.store(0, Ordering::Relaxed);
        }
        Some(())
    }

    /// Tells a PE how many of its requests were executed. `None` if it sends none over the network.
    pub fn tell_executed(&self, pe: Pe) -> Option<()> {
        let far = self.am.peers(self).of(self, pe).far()?;
        let executed = far.executed.load(Ordering::Relaxed);
        far.told.store(executed, Ordering::Relaxed);
        let is_lost = |losses: u32| losses.checked_sub(1);
        let losses = &self.am.arrivals.losses;
        if losses.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_lost).is_err() {
            self.send_later(pe, Purpose::ActiveTold, 0, executed.to_le_bytes().to_vec());
        }
        Some(())
    }

    /// Loses the next `count` reports to other PEs of how many of their requests were executed. For tests.
    #[doc(hidden)]
    pub fn lose_window_reports(&self, count: u32) {
        self.am.arrivals.losses.store(count, Ordering::Relaxed);
    }
}

/// Whether this is a long message.
fn is_long(header: u64) -> bool {
    Head::unpack(header).is_some_and(|head| head.is_long)
}
