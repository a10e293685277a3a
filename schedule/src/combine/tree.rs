//! Trees along which operands go up to a root and results go down.
//!
//! In the halving tree every subtree is a range of ranks, so operands can be combined in the order of ranks
//! whatever the root; for the root 0 and a power of two it is the binomial tree. In the fixed tree rank r is
//! linked to (r - 1) / 2 whatever the root. The balanced tree is the same tree for the root 0; for another
//! root the ranks are counted from the root on.
//!
//! Invariant: both ends of a link compute it from n and the root alone, and agree on its slot.

use super::transfer::{Inbox, Incoming, Wire, give};
use crate::schedule::{Builder, Place, Rank, Remote, Slot};
use crate::tree;

/// A rank that another one is linked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The rank.
    pub rank: Rank,
    /// The slot, at the upper of the two ranks, for the operand that goes up.
    pub slot: Slot,
    /// For a child: whether its operand belongs to the left of the parent's operands.
    pub is_left: bool,
}

/// The links of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The neighbour towards the root.
    pub parent: Option<Neighbour>,
    /// The neighbours away from the root, in the order in which the parent combines their operands.
    pub children: Vec<Neighbour>,
}

/// The number of levels of the halving tree of `n` ranks, which is also the most slots that it needs for
/// operands that go up.
pub const fn levels(n: usize) -> usize {
    n.next_power_of_two().trailing_zeros() as usize
}

/// The links of `me` in the halving tree.
pub fn halving(n: usize, root: Rank, me: Rank) -> Node {
    let own = tree::halving(me, n, root);
    let link = |rank, slot| Neighbour { rank, slot, is_left: rank < me };
    Node {
        parent: own.parent.map(|parent| {
            let siblings = tree::halving(parent, n, root).children;
            let slot = siblings.iter().position(|&(child, _)| child == me).expect("a child of its parent");
            Neighbour { rank: parent, slot, is_left: me < parent }
        }),
        children: own
            .children
            .iter()
            .enumerate()
            .rev()
            .map(|(slot, &(child, _))| link(child, slot))
            .collect(),
    }
}

/// The number of slots of the fixed tree for operands that go up.
pub const FIXED_SLOTS: usize = 3;

/// The links of `me` in the fixed tree.
pub fn fixed(n: usize, root: Rank, me: Rank) -> Node {
    let links = tree::binary_from(me, n, root);
    // The operand from rank (r - 1) / 2 has slot 0, the operands from the two other neighbours have slots 1
    // and 2.
    let slot = |to: Rank, from: Rank| if to > from { 0 } else { 2 - from % 2 };
    let link = |rank, slot| Neighbour { rank, slot, is_left: false };
    Node {
        parent: links.parent.map(|parent| link(parent, slot(parent, me))),
        children: links.children.into_iter().map(|child| link(child, slot(me, child))).collect(),
    }
}

/// The number of slots of the balanced tree for operands that go up.
pub const BALANCED_SLOTS: usize = 2;

/// The links of `me` in the balanced tree.
pub fn balanced(n: usize, root: Rank, me: Rank) -> Node {
    let relative = (me + n - root) % n;
    let links = tree::binary(relative, n);
    let link = |other: usize, child: usize| Neighbour {
        rank: (other + root) % n,
        slot: (child + 1) % BALANCED_SLOTS,
        is_left: false,
    };
    Node {
        parent: links.parent.map(|parent| link(parent, relative)),
        children: links.children.into_iter().map(|child| link(child, child)).collect(),
    }
}

impl Node {
    /// The links of `me` in the halving tree over `ranks`, in this order; its slots begin at `first`.
    pub fn among(ranks: &[Rank], root: Rank, me: Rank, first: Slot) -> Node {
        let number = |rank| ranks.iter().position(|&other| other == rank).expect("one of these ranks");
        let mut node = halving(ranks.len(), number(root), number(me));
        for neighbour in node.parent.iter_mut().chain(&mut node.children) {
            neighbour.rank = ranks[neighbour.rank];
            neighbour.slot += first;
        }
        node
    }

    /// Combines this rank's operand with those of its children in `sum`, which may be the place `own` of its
    /// operand. Returns the place of the result: `sum`, or `own` if there are no children. A child receives
    /// in its slot `room` the announcement of the buffer for an operand that exceeds a mailbox.
    pub fn combine(
        &self,
        b: &mut Builder,
        own: Place,
        sum: impl FnOnce(&mut Builder) -> Place,
        bytes: usize,
        room: Slot,
    ) -> Place {
        if self.children.is_empty() {
            return own;
        }
        let incoming = |child: &Neighbour| Incoming {
            of: child.rank,
            wire: Wire { data: child.slot, room },
            into_target: false,
        };
        let mut inbox = Inbox::open(b, bytes, self.children.iter().map(incoming).collect());
        let sum = sum(b);
        let mut have = own;
        for child in &self.children {
            let got = inbox.receive(b);
            let (left, right) = if child.is_left { (got, have) } else { (have, got) };
            b.reduce(left, right, sum, bytes);
            have = sum;
            inbox.release(b);
        }
        have
    }

    /// Sends an operand to the parent, if there is one.
    pub fn give_up(&self, b: &mut Builder, from: Place, bytes: usize, room: Slot) {
        if let Some(parent) = self.parent {
            give(b, parent.rank, from, bytes, Wire { data: parent.slot, room }, false);
        }
    }

    /// Sends the contents of the root's target to the targets of all ranks, with slot `slot` of each rank.
    pub fn spread(&self, b: &mut Builder, bytes: usize, slot: Slot) {
        if let Some(parent) = self.parent {
            b.wait(parent.rank, slot);
        }
        for child in self.children.iter().rev() {
            b.put_signal(child.rank, Place::target(0), Remote::Target(0), bytes, slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tree: impl Fn(usize, Rank, Rank) -> Node, n: usize, root: Rank, slots: usize) {
        for me in 0..n {
            let node = tree(n, root, me);
            let mut used: Vec<Slot> = node.children.iter().map(|child| child.slot).collect();
            for child in &node.children {
                let up = tree(n, root, child.rank).parent.expect("a child has a parent");
                assert_eq!((up.rank, up.slot, up.is_left), (me, child.slot, child.is_left));
                assert!(child.slot < slots, "n {n}, root {root}: {child:?} of rank {me}");
            }
            used.sort_unstable();
            used.dedup();
            assert_eq!(used.len(), node.children.len(), "n {n}, root {root}: two in one slot of rank {me}");
        }
    }

    #[test]
    fn both_ends_of_each_link_agree() {
        for n in 1..=33 {
            for root in 0..n {
                check(halving, n, root, levels(n));
                check(fixed, n, root, FIXED_SLOTS);
                check(balanced, n, root, BALANCED_SLOTS);
            }
        }
    }

    #[test]
    fn what_stands_on_the_left_comes_from_lower_ranks() {
        let links = |node: Node| Vec::from_iter(node.children.iter().map(|link| (link.rank, link.is_left)));
        assert_eq!(links(halving(8, 5, 5)), [(4, true), (6, false), (0, true)]);
        assert_eq!(links(halving(8, 5, 0)), [(1, false), (2, false)]);
    }
}
