//! All-to-all and all-gather of small blocks, with one message between each pair of nodes: a leader sends all
//! blocks of its node that are for another one together (node-aware all-to-all: Träff and Rougier 2014,
//! MPI Collectives and Datatypes for Hierarchical All-to-all Communication).

use super::TwoLevel;
use crate::coll::call::Call;
use crate::coll::hierarchy::Hierarchy;
use crate::coll::operand::Operand;
use pelago_fabric::copy;

/// The most bytes of a message between two nodes, in an all-to-all with blocks of `bytes` bytes.
pub fn message_bytes(levels: &Hierarchy, bytes: usize) -> usize {
    levels.most.saturating_mul(levels.most).saturating_mul(bytes)
}

impl TwoLevel<'_> {
    /// An all-to-all: each leader sends the blocks of its node to each other node together.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    pub unsafe fn all_to_all_by_pairs(&self, call: &Call<'_>, target: Operand<'_>, source: Operand<'_>) {
        let (node, groups, own) = (&self.levels.node, &self.levels.groups, self.levels.own);
        let bytes = call.count * call.element_bytes;
        if self.has_mates() {
            self.node().finish_at(0);
        }
        if self.levels.is_leader() {
            let from = |place: usize| source.place(self.world, node, place).cast_const();
            let into = |place: usize| target.place(self.world, node, place);
            let mates = groups.ranks(own);
            let length = |group: usize| mates.len() * groups.ranks(group).len() * bytes;
            // SAFETY: the caller has promised all places. All members of the node have entered, so their
            // sources hold their data, and no PE reads their targets.
            unsafe {
                self.staging().exchange_pairs(
                    |group, page| {
                        let mut block = page.start();
                        for place in 0..mates.len() {
                            for &rank in groups.ranks(group) {
                                copy::copy(block, from(place).add(rank * bytes), bytes);
                                block = block.add(bytes);
                            }
                        }
                        length(group)
                    },
                    || {
                        for (to, &me) in mates.iter().enumerate() {
                            for (place, &rank) in mates.iter().enumerate() {
                                copy::copy(into(to).add(rank * bytes), from(place).add(me * bytes), bytes);
                            }
                        }
                    },
                    length,
                    |group, page| {
                        let mut block = page.start().cast_const();
                        for &rank in groups.ranks(group) {
                            for to in 0..mates.len() {
                                copy::copy(into(to).add(rank * bytes), block, bytes);
                                block = block.add(bytes);
                            }
                        }
                    },
                );
            }
        }
        if self.has_mates() {
            self.node().release_from(0);
        }
        self.levels.have_met();
    }

    /// An all-gather: each leader sends the blocks of its node to all other nodes.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    pub unsafe fn all_gather_by_pairs(&self, call: &Call<'_>, target: Operand<'_>, source: Operand<'_>) {
        let (node, groups, own) = (&self.levels.node, &self.levels.groups, self.levels.own);
        let bytes = call.count * call.element_bytes;
        let into = |place: usize| target.place(self.world, node, place);
        if self.has_mates() {
            self.node().finish_at(0);
        }
        if self.levels.is_leader() {
            let from = |place: usize| source.place(self.world, node, place).cast_const();
            // SAFETY: the caller has promised all places. All members of the node have entered, so their
            // sources hold their data, and no PE reads this target.
            unsafe {
                self.staging().exchange_pairs(
                    |_, page| {
                        for place in 0..node.len() {
                            copy::copy(page.start().add(place * bytes), from(place), bytes);
                        }
                        node.len() * bytes
                    },
                    || {
                        for (place, &rank) in groups.ranks(own).iter().enumerate() {
                            let block = target.own.add(rank * bytes);
                            if block.cast_const() != from(place) {
                                copy::copy(block, from(place), bytes);
                            }
                        }
                    },
                    |group| groups.ranks(group).len() * bytes,
                    |group, page| {
                        for (place, &rank) in groups.ranks(group).iter().enumerate() {
                            copy::copy(target.own.add(rank * bytes), page.start().add(place * bytes), bytes);
                        }
                    },
                );
            }
        }
        if self.has_mates() {
            // SAFETY: the caller has promised all places.
            unsafe { self.node().broadcast(0, &into, &into, bytes * self.team.len()) };
        }
        self.levels.have_met();
    }
}
