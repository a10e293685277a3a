//! The operands of a collective operation: the memory that it reads and writes.

use super::schedule::Rank;
use super::symmetric_region::{Bases, SymmetricRegion};
use super::team::TeamCore;
use super::teams::Teams;
use crate::Pe;
use crate::memory::usage::Usage;
use std::sync::Arc;

/// Elements of a symmetric array that a collective operation works on, of any type.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    pub world: &'a Teams,
    pub region: &'a SymmetricRegion,
    pub usage: &'a Arc<Usage>,
    pub offset_bytes: usize,
    pub len: usize,
    pub element_bytes: usize,
    pub is_closed: bool,
    pub own: *mut u8,
}

impl Operand<'_> {
    /// Where a member of a team has these elements, if it is mapped.
    #[inline]
    pub fn place(&self, world: &Teams, team: &TeamCore, rank: Rank) -> *mut u8 {
        if rank == team.my_rank() {
            return self.own;
        }
        let pe = team.pe(rank);
        world.memory.heap(pe).wrapping_add(self.region_offset(pe))
    }

    /// Where the members of a team have these elements in their regions.
    pub fn bases(&self, team: &TeamCore) -> Bases {
        match self.region.is_world() {
            true => Bases::Same(self.offset_bytes),
            false => Bases::of(team.members().iter().map(|pe| self.region_offset(pe)).collect()),
        }
    }

    /// Where a PE has these elements, from the start of its region.
    pub fn region_offset(&self, pe: Pe) -> usize {
        let rank = self.region.rank_of(pe).expect("all members of the team have a part of the array");
        self.region.region_offset(rank, self.offset_bytes)
    }
}
