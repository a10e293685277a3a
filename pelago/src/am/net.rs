//! Active messages over the net.
//!
//! Invariant: a PE has at most [`WINDOW`] requests under way to each other one, whose owner stores them until
//! it has executed them, and each of them has at most one answer. What was executed is told from time to time
//! as a sum, so that a word that is lost is made good by the next; who waits in vain asks for it.

use super::hub::{WINDOW, try_lock};
use super::wire::Head;
use crate::Pe;
use crate::element::bytes_of;
use crate::progress::Purpose;
use crate::world::World;
use pelago_fabric::copy;
use pelago_fabric::sync::{AtomicU32, AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// So many are executed before the sender hears of it.
const TOLD_EVERY: u64 = WINDOW / 4;
/// Looks for room before a PE asks what was executed.
const LOOKS_BEFORE_ASKING: u32 = 1000;

/// What is kept of other PEs, and what has arrived from them.
#[derive(Default)]
pub(crate) struct Peers {
    peers: OnceLock<Box<[Peer]>>,
    arrived: Mutex<VecDeque<Arrived>>,
    /// So many words of what was executed are lost; for tests.
    losses: AtomicU32,
}

/// Requests between this PE and another.
#[derive(Default)]
struct Peer {
    sent: AtomicU64,
    /// Of those sent, so many were executed, as far as is known.
    known: AtomicU64,
    /// Looks for room in vain since the last question, and questions since the last answer.
    looks: AtomicU32,
    asks: AtomicU32,
    /// Of those that have come from there.
    executed: AtomicU64,
    told: AtomicU64,
}

/// A message that is not executed yet.
struct Arrived {
    from: Pe,
    header: u64,
    words: Vec<u64>,
    bytes: usize,
}

fn arrived(peers: &Peers) -> MutexGuard<'_, VecDeque<Arrived>> {
    peers.arrived.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peers {
    fn of(&self, world: &World, pe: Pe) -> &Peer {
        &self.peers.get_or_init(|| (0..world.n_pes()).map(|_| Peer::default()).collect())[pe]
    }
}

impl World {
    /// Sends a request over the net; `false` if there is no room now.
    pub(crate) fn request_over_net(&self, pe: Pe, header: u64, words: &[u64], payload: &[u8]) -> bool {
        let peer = self.am.peers.of(self, pe);
        let under_way = peer.sent.load(Ordering::Relaxed).saturating_sub(peer.known.load(Ordering::Relaxed));
        if under_way >= WINDOW {
            self.ask_patiently(peer, pe);
            return false;
        }
        if arrived(&self.am.peers).len() as u64 > WINDOW * self.n_pes() as u64 {
            // This PE stores more than others may have sent: it executes first.
            return false;
        }
        // Of several threads some may send a few more than the window.
        peer.sent.fetch_add(1, Ordering::Relaxed);
        let bytes = [bytes_of(words), payload].concat();
        self.begin_data(header, payload);
        let is_sent = self.net_channel().try_send(pe, Purpose::Active.over(header), &bytes);
        if !is_sent {
            peer.sent.fetch_sub(1, Ordering::Relaxed);
            self.end_data(header, payload);
        }
        is_sent
    }

    /// Asks a PE what it has executed: each time after twice as many looks as the last.
    fn ask_patiently(&self, peer: &Peer, pe: Pe) {
        let looks = peer.looks.fetch_add(1, Ordering::Relaxed) + 1;
        let ask_at = LOOKS_BEFORE_ASKING << peer.asks.load(Ordering::Relaxed).min(12);
        if looks >= ask_at {
            peer.looks.store(0, Ordering::Relaxed);
            peer.asks.fetch_add(1, Ordering::Relaxed);
            self.send_later(pe, Purpose::ActiveAsk, 0, Vec::new());
        }
    }

    /// Data that travel with a message are under way until the receiver says that they are in their place:
    /// quiet waits for that.
    fn begin_data(&self, header: u64, data: &[u8]) {
        if is_long(header) && !data.is_empty() {
            self.net_channel().add_follower();
        }
    }

    fn end_data(&self, header: u64, data: &[u8]) {
        if is_long(header) && !data.is_empty() {
            self.net_channel().remove_follower();
        }
    }

    /// Sends an answer over the net, now or later.
    pub(super) fn answer_over_net(&self, pe: Pe, header: u64, words: &[u64], payload: &[u8]) {
        self.begin_data(header, payload);
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

    /// Takes a message that has come over the net: its data are put in their place now, it is executed later,
    /// when nothing of the net is held. `None` if it makes no sense.
    pub(crate) fn note_active(&self, from: Pe, header: u64, payload: &[u8]) -> Option<()> {
        let mut words = vec![0u64; payload.len().div_ceil(8)];
        // SAFETY: the words have room for so many bytes.
        unsafe {
            words.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(payload.as_ptr(), payload.len());
        }
        let head = Head::unpack(header)?;
        let data = payload.get(8 * head.words()..)?;
        if head.is_long && !data.is_empty() {
            self.place_data(words[head.words() - 1], data)?;
            self.send_later(from, Purpose::ActivePlaced, 0, Vec::new());
        }
        arrived(&self.am.peers).push_back(Arrived { from, header, words, bytes: payload.len() });
        Some(())
    }

    /// Takes the word of a PE that the data of a message are in their place. `None` if there are none.
    pub(crate) fn note_placed(&self) -> Option<()> {
        self.net_channel().try_remove_follower()
    }

    /// Takes the word of a PE that it has executed so many requests of this one.
    pub(crate) fn note_executed(&self, from: Pe, executed: u64) {
        let peer = self.am.peers.of(self, from);
        if peer.known.fetch_max(executed, Ordering::Relaxed) < executed {
            peer.looks.store(0, Ordering::Relaxed);
            peer.asks.store(0, Ordering::Relaxed);
        }
    }

    /// Tells a PE how many of its requests were executed.
    pub(crate) fn tell_executed(&self, pe: Pe) {
        let peer = self.am.peers.of(self, pe);
        let executed = peer.executed.load(Ordering::Relaxed);
        peer.told.store(executed, Ordering::Relaxed);
        let is_lost = |losses: u32| losses.checked_sub(1);
        if self.am.peers.losses.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_lost).is_err() {
            self.send_later(pe, Purpose::ActiveTold, 0, executed.to_le_bytes().to_vec());
        }
    }

    /// Loses the next so many words that tell other PEs how many of their requests were executed. For tests.
    #[doc(hidden)]
    pub fn lose_words_of_progress(&self, count: u32) {
        self.am.peers.losses.store(count, Ordering::Relaxed);
    }

    /// Executes what has come over the net, up to so many messages, unless another thread does.
    pub(super) fn execute_arrived(&self, most: usize) {
        let Some(inbox) = try_lock(&self.am.requests) else { return };
        let _run = self.am.executors[0].run();
        let mut executed_some = false;
        for _ in 0..most {
            let Some(message) = arrived(&self.am.peers).pop_front() else { break };
            executed_some = true;
            let Arrived { from, header, words, bytes } = message;
            self.execute(&inbox.tables, from, header, &words, bytes);
            if Head::unpack(header).is_some_and(|head| !head.is_answer) {
                let peer = self.am.peers.of(self, from);
                let executed = peer.executed.fetch_add(1, Ordering::Relaxed) + 1;
                if executed - peer.told.load(Ordering::Relaxed) >= TOLD_EVERY {
                    self.tell_executed(from);
                }
            }
        }
        if executed_some {
            // Answers must not wait until this PE comes here again.
            self.flush_outbox(self.net_channel());
        }
    }
}

/// Whether this is a long message.
fn is_long(header: u64) -> bool {
    Head::unpack(header).is_some_and(|head| head.is_long)
}
