//! Two-sided messages: matching, the eager protocol and rendezvous.
//!
//! Invariant: receives and messages of one pair and tag match in their order. A short message is sent at
//! once, and is copied if its receive is not posted when it arrives. A long one is announced; the receiver
//! clears it to send when the receive is posted, and then its data come straight to their place.

use super::state::{Blocked, Kind, Message, State};
use crate::time::{Time, moving};
use std::collections::{BTreeMap, VecDeque};

/// The two-sided messages of a rank.
#[derive(Debug, Default)]
pub(super) struct TwoSided {
    /// Receives that no message has matched, by sender and tag.
    posted: BTreeMap<(u32, u64), u32>,
    /// Messages that no receive has matched.
    unexpected: BTreeMap<(u32, u64), VecDeque<Message>>,
    /// Receives that are not fulfilled.
    receiving: u32,
    /// Sends that are announced and not cleared.
    pub(super) announced: u32,
    /// Time of the processor for messages that have arrived outside calls.
    due: Time,
}

impl TwoSided {
    pub(super) fn waits_for(&self) -> String {
        let first = self.posted.iter().find(|(_, count)| **count > 0);
        match first {
            Some(((of, tag), _)) => format!("a message of rank {of} with tag {tag}"),
            None => "receives of the messages that it sends".to_owned(),
        }
    }
}

impl State<'_> {
    pub(super) fn send(&mut self, from: u32, to: u32, bytes: u64, tag: u32) {
        let key = u64::from(tag);
        if bytes <= self.machine.protocol.eager_bytes {
            return self.launch(Kind::Eager, (from, to), bytes, bytes, key);
        }
        self.ranks[from as usize].two_sided.announced += 1;
        self.launch(Kind::Announcement, (from, to), 0, bytes, key);
    }

    pub(super) fn receive(&mut self, number: u32, of: u32, tag: u32) {
        let key = (of, u64::from(tag));
        let two_sided = &mut self.ranks[number as usize].two_sided;
        two_sided.receiving += 1;
        let Some(message) = two_sided.unexpected.get_mut(&key).and_then(VecDeque::pop_front) else {
            *two_sided.posted.entry(key).or_insert(0) += 1;
            return;
        };
        if two_sided.unexpected.get(&key).is_some_and(VecDeque::is_empty) {
            two_sided.unexpected.remove(&key);
        }
        if message.kind == Kind::Announcement {
            return self.clear_to_send(&message);
        }
        self.ranks[number as usize].two_sided.due += moving(message.bytes, self.rates.copy);
        self.received(number);
    }

    /// Whether the receive of a message is posted.
    pub(super) fn is_posted(&self, id: u32) -> bool {
        let message = self.messages.get(id);
        self.ranks[message.to as usize].two_sided.posted.contains_key(&(message.from, message.key))
    }

    /// Takes the receive that a message matches.
    fn take_posted(&mut self, message: &Message) -> bool {
        let posted = &mut self.ranks[message.to as usize].two_sided.posted;
        let Some(count) = posted.get_mut(&(message.from, message.key)) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            posted.remove(&(message.from, message.key));
        }
        true
    }

    fn keep(&mut self, message: &Message) {
        let unexpected = &mut self.ranks[message.to as usize].two_sided.unexpected;
        unexpected.entry((message.from, message.key)).or_default().push_back(*message);
    }

    pub(super) fn eager_arrives(&mut self, message: &Message) {
        match self.take_posted(message) {
            true => self.received(message.to),
            false => self.keep(message),
        }
    }

    pub(super) fn announcement_arrives(&mut self, message: &Message) {
        match self.take_posted(message) {
            true => self.clear_to_send(message),
            false => self.keep(message),
        }
    }

    fn clear_to_send(&mut self, announced: &Message) {
        let back = (announced.to, announced.from);
        self.launch(Kind::ClearToSend, back, 0, announced.size, announced.key);
    }

    /// The data of a receive are there. The processor takes note of it in a call.
    pub(super) fn received(&mut self, number: u32) {
        let overhead = self.machine.protocol.message_receive_overhead;
        let rank = &mut self.ranks[number as usize];
        rank.two_sided.receiving -= 1;
        if rank.blocked != Blocked::Finish {
            rank.two_sided.due += overhead;
            return;
        }
        self.counts.blocked += u128::from(self.now.saturating_sub(rank.clock));
        rank.clock = rank.clock.max(self.now) + overhead;
        self.try_finish(number);
    }

    pub(super) fn finish(&mut self, number: u32) -> bool {
        let rank = &mut self.ranks[number as usize];
        rank.clock += std::mem::take(&mut rank.two_sided.due);
        if !self.has_finished(number) {
            self.block(number, Blocked::Finish);
            return false;
        }
        self.pass_until_settled(number);
        true
    }

    fn has_finished(&self, number: u32) -> bool {
        let rank = &self.ranks[number as usize];
        rank.unsent == 0 && rank.two_sided.receiving == 0 && rank.two_sided.announced == 0
    }

    /// Lets a rank that waits for its messages go on when they have all ended.
    pub(super) fn try_finish(&mut self, number: u32) {
        if self.has_finished(number) {
            let at = self.now.max(self.ranks[number as usize].settled);
            self.wake(number, at, 0);
        }
    }
}
