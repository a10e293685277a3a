//! A message, as its handler sees it.

use super::Handler;
use super::messaging::Messaging;
use super::table::Table;
use super::wire::Head;
use crate::Pe;
use crate::coll::schedule::Rank;
use std::cell::Cell;
use std::ops::Range;

/// A message on its arrival: its sender, its arguments and its payload. It is valid until the handler
/// returns.
pub struct Message<'m> {
    pub world: &'m Messaging,
    pub table: &'m Table,
    pub head: Head,
    pub from: Pe,
    /// Arguments, where a long message's data are, and bytes.
    pub words: &'m [u64],
    pub bytes: usize,
    pub is_answered: Cell<bool>,
}

impl Message<'_> {
    /// The rank of the sender in the endpoint's team.
    pub fn from(&self) -> Rank {
        let rank = self.table.team.members().rank_of(self.from);
        rank.unwrap_or_else(|| self.refuse("names a sender that is no member of the team"))
    }

    /// The arguments.
    #[inline]
    pub fn args(&self) -> &[u32] {
        // SAFETY: this many arguments were checked to be there, two in each of the first words.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.head.args.into()) }
    }

    /// The payload; empty unless the message is a medium one.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        if self.head.is_long { &[] } else { self.data() }
    }

    /// The bytes behind the words.
    #[inline]
    pub fn data(&self) -> &[u8] {
        let skipped = self.head.words();
        // SAFETY: all words were received, and this many bytes of them hold the payload.
        unsafe {
            std::slice::from_raw_parts(self.words.as_ptr().add(skipped).cast(), self.bytes - 8 * skipped)
        }
    }

    /// The elements that a long message has put to this PE's part of the array that sender and handler have
    /// agreed on; `None` if it is no long message.
    pub fn elements(&self) -> Option<Range<usize>> {
        let at = self.head.arg_words();
        self.head.is_long.then(|| {
            let (index, count) = (self.words[at] as usize, self.words[at + 1] as usize);
            index..index.saturating_add(count)
        })
    }

    /// Whether this is a reply, which cannot be answered.
    pub fn is_answer(&self) -> bool {
        self.head.is_answer
    }

    /// The handler that the message names.
    pub fn handler(&self) -> Handler {
        self.head.handler
    }

    /// Ends the job, because this message is not valid.
    pub fn refuse(&self, why: &str) -> ! {
        self.world.refuse(self.from, &format!("for {:?} {why}", self.handler_name()))
    }

    pub fn handler_name(&self) -> &'static str {
        self.table.entry(self.head.handler).map_or("", |entry| entry.name)
    }
}
