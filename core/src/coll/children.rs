//! The children of a team: the teams and spaces made from it, for as long as a member has not dropped them.
//!
//! Invariant: all members know the same children in the same order, as making one is a collective call; only
//! the set of children that a PE has dropped differs. The memory of children that all members have dropped
//! is given back at the next call of that kind, in which the members tell each other what they have
//! dropped.

use crate::base::locked::locked;
use crate::coll::agreement_record::{AGREEMENT_DROPPED_WORDS, Dropped};
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;
use crate::memory::usage::Space;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// The teams and spaces made from a team that are not yet dropped by all its members, in their order.
#[derive(Default)]
pub struct Children {
    /// The number of the first.
    first: u64,
    children: VecDeque<Child>,
}

/// A team or space, as the team knows it that it was made from.
#[derive(Default)]
struct Child {
    is_dropped: bool,
    is_gone: bool,
    /// The block of this PE's pool that is given back once all members have dropped the child: offset and
    /// size in bytes.
    blocks: Vec<(usize, usize)>,
}

/// Keeps the place of a team or a space among its parent's children for as long as anything of it is alive
/// here.
pub struct Tie {
    /// The block of this PE's pool that is given back when all members have dropped the child.
    blocks: Mutex<Vec<(usize, usize)>>,
    parent: Arc<TeamCore>,
    number: u64,
}

impl Tie {
    /// The place of a child of `parent`, with its block.
    pub fn new(parent: Arc<TeamCore>, number: u64, block: (usize, usize)) -> Tie {
        Tie { blocks: Mutex::new(vec![block]), parent, number }
    }

    /// One more block of this PE's pool that is given back with the others.
    pub fn keep_block(&self, block: (usize, usize)) {
        locked(&self.blocks).push(block);
    }

    /// The place among the parent's children, counted from 1.
    pub fn number(&self) -> u64 {
        self.number + 1
    }
}

impl Space for Tie {}

impl std::fmt::Debug for Tie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tie").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Drop for Tie {
    fn drop(&mut self) {
        let blocks = std::mem::take(&mut *locked(&self.blocks));
        self.parent.children().drop_here(self.number, blocks);
    }
}

impl Children {
    /// The number of children that not all members have dropped, as of their last exchange.
    pub fn len(&self) -> usize {
        self.children.iter().filter(|child| !child.is_gone).count()
    }

    /// The blocks of all of them.
    pub fn into_blocks(self) -> impl Iterator<Item = (usize, usize)> {
        self.children.into_iter().flat_map(|child| child.blocks)
    }

    /// Adds a child, which this PE may be in or not, and returns its number. The child takes the place of
    /// the first one that was given back, which is the same at all members.
    pub fn add(&mut self, is_member: bool) -> u64 {
        let child = Child { is_dropped: !is_member, is_gone: false, blocks: Vec::new() };
        let gone = self.children.iter().position(|child| child.is_gone);
        match gone {
            Some(place) => self.children[place] = child,
            None => self.children.push_back(child),
        }
        self.first + gone.unwrap_or(self.children.len() - 1) as u64
    }

    fn drop_here(&mut self, number: u64, blocks: Vec<(usize, usize)>) {
        let child = &mut self.children[(number - self.first) as usize];
        child.is_dropped = true;
        child.blocks.extend(blocks);
    }

    /// The children that this PE has dropped, as bits.
    pub fn dropped(&self) -> Dropped {
        let mut words = [0; AGREEMENT_DROPPED_WORDS];
        for (i, _) in self.children.iter().enumerate().filter(|(_, child)| child.is_dropped) {
            words[i / 64] |= 1 << (i % 64);
        }
        words
    }

    /// Whether some of these have memory of this PE, so that this PE may have operations under way in them.
    pub fn have_dropped_memory(&self) -> bool {
        self.children.iter().any(|child| child.is_dropped && !child.blocks.is_empty())
    }

    /// Gives back the memory of the children that all members have dropped.
    pub fn reclaim(&mut self, world: &Teams, dropped_by_all: &Dropped) {
        for (i, child) in self.children.iter_mut().enumerate() {
            if !child.is_gone && dropped_by_all[i / 64] & (1 << (i % 64)) != 0 {
                child.is_gone = true;
                child.blocks.drain(..).for_each(|(at, bytes)| world.pool_free(at, bytes));
            }
        }
        while self.children.front().is_some_and(|child| child.is_gone) {
            self.children.pop_front();
            self.first += 1;
        }
    }
}
