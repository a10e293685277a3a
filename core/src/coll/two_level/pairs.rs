//! All-to-all and all-gather of small blocks, with one message between each pair of nodes: a leader sends all
//! blocks of its node that are for another one together (node-aware all-to-all: Träff and Rougier 2014,
//! MPI Collectives and Datatypes for Hierarchical All-to-all Communication).

use super::TwoLevel;
use crate::coll::call::Call;
use crate::coll::direct::Places;
use crate::coll::hierarchy::Hierarchy;
use crate::coll::operand::Operand;
use crate::coll::shape::Operation;
use crate::coll::staging::HAND_BYTES;
use pelago_fabric::copy;

/// The most bytes of a message between two nodes, in an all-to-all with blocks of `bytes` bytes.
pub fn message_bytes(levels: &Hierarchy, bytes: usize) -> usize {
    levels.most.saturating_mul(levels.most).saturating_mul(bytes)
}

/// Whether the source and the target of a member of a team of `n` fit into its hand-over areas.
pub fn fit_hand_over(n: usize, call: &Call<'_>) -> bool {
    (call.count * call.element_bytes).checked_mul(n).is_some_and(|bytes| bytes <= HAND_BYTES)
}

impl TwoLevel<'_> {
    /// An operation by pairs whose operands are symmetric: a leader accesses those of its mates in place.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    pub unsafe fn by_pairs(&self, call: &Call<'_>, target: Operand<'_>, source: Operand<'_>) {
        let node = &self.levels.node;
        let from: &Places<'_> = &|place| source.place(self.world, node, place);
        let into: &Places<'_> = &|place| target.place(self.world, node, place);
        // SAFETY: the caller has promised all places.
        unsafe { self.pairs(call, target.own, into, from) };
    }

    /// The same for memory of the members' own, through their hand-over areas.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    pub unsafe fn by_pairs_handed_over(&self, call: &Call<'_>, source: *const u8, target: *mut u8) {
        if !self.has_mates() {
            // SAFETY: the caller has promised both, and no other member accesses them.
            return unsafe { self.pairs(call, target, &|_| target, &|_| source.cast_mut()) };
        }
        let (n, bytes) = (self.team.len(), call.count * call.element_bytes);
        let [from, into] = [0, 1].map(|area| move |place| self.hand_over_area(place, area));
        let me = self.levels.node.my_rank();
        // SAFETY: the caller has promised source and target, and an area has room for either. The leader has
        // ended its accesses to both areas in the operation before, and begins when this member has entered.
        unsafe {
            match call.operation {
                Operation::AllToAll => {
                    copy::copy(from(me), source, n * bytes);
                    self.pairs(call, target, &into, &from);
                    copy::copy(target, into(me).cast_const(), n * bytes);
                }
                _ => {
                    copy::copy(from(me), source, bytes);
                    self.pairs(call, target, &into, &from);
                }
            }
        }
    }

    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    unsafe fn pairs(&self, call: &Call<'_>, target: *mut u8, into: &Places<'_>, from: &Places<'_>) {
        // SAFETY: the caller has promised all places.
        unsafe {
            match call.operation {
                Operation::AllToAll => self.all_to_all_by_pairs(call, into, from),
                _ => self.all_gather_by_pairs(call, target, into, from),
            }
        }
    }

    /// An all-to-all: each leader sends the blocks of its node to each other node together.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    unsafe fn all_to_all_by_pairs(&self, call: &Call<'_>, into: &Places<'_>, from: &Places<'_>) {
        let (groups, own) = (&self.levels.groups, self.levels.own);
        let bytes = call.count * call.element_bytes;
        if self.has_mates() {
            self.node().finish_at(0);
        }
        if self.levels.is_leader() {
            let from = |place| from(place).cast_const();
            let mates = groups.ranks(own);
            let length = |group: usize| mates.len() * groups.ranks(group).len() * bytes;
            // SAFETY: the caller has promised all places. All members of the node have entered, so their
            // sources hold their data, and no PE reads their targets.
            unsafe {
                self.staging().exchange_pairs(
                    message_bytes(self.levels, bytes),
                    |group, page| {
                        let mut block = page.start();
                        for place in 0..mates.len() {
                            for rank in groups.ranks(group).iter() {
                                copy::copy(block, from(place).add(rank * bytes), bytes);
                                block = block.add(bytes);
                            }
                        }
                        length(group)
                    },
                    || {
                        for (to, me) in mates.iter().enumerate() {
                            for (place, rank) in mates.iter().enumerate() {
                                copy::copy(into(to).add(rank * bytes), from(place).add(me * bytes), bytes);
                            }
                        }
                    },
                    length,
                    |group, mut block| {
                        for rank in groups.ranks(group).iter() {
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

    /// An all-gather: each leader sends the blocks of its node to all other nodes. Members take the result
    /// from the leader's place `into`, to `target`.
    ///
    /// # Safety
    /// As [`staged`](TwoLevel::staged).
    #[track_caller]
    unsafe fn all_gather_by_pairs(
        &self,
        call: &Call<'_>,
        target: *mut u8,
        into: &Places<'_>,
        from: &Places<'_>,
    ) {
        let (node, groups, own) = (&self.levels.node, &self.levels.groups, self.levels.own);
        let bytes = call.count * call.element_bytes;
        if self.has_mates() {
            self.node().finish_at(0);
        }
        if self.levels.is_leader() {
            let (from, result) = (|place| from(place).cast_const(), into(0));
            // SAFETY: the caller has promised all places. All members of the node have entered, so their
            // sources hold their data, and no PE reads this target.
            unsafe {
                self.staging().exchange_pairs(
                    self.levels.most * bytes,
                    |_, page| {
                        for place in 0..node.len() {
                            copy::copy(page.start().add(place * bytes), from(place), bytes);
                        }
                        node.len() * bytes
                    },
                    || {
                        for (place, rank) in groups.ranks(own).iter().enumerate() {
                            let block = result.add(rank * bytes);
                            if block.cast_const() != from(place) {
                                copy::copy(block, from(place), bytes);
                            }
                        }
                    },
                    |group| groups.ranks(group).len() * bytes,
                    |group, blocks| {
                        for (place, rank) in groups.ranks(group).iter().enumerate() {
                            copy::copy(result.add(rank * bytes), blocks.add(place * bytes), bytes);
                        }
                    },
                );
            }
        }
        let all = bytes * self.team.len();
        if self.has_mates() {
            // SAFETY: the caller has promised all places.
            unsafe { self.node().broadcast(0, into, &|_| target, all) };
        } else if into(0) != target {
            // SAFETY: the caller has promised the target, and its area is other memory.
            unsafe { copy::copy(target, into(0).cast_const(), all) };
        }
        self.levels.have_met();
    }
}
