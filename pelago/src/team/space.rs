//! Spaces: symmetric memory of one team. No PE outside the team takes part in anything that is done with it.
//! Source: Welch and Venkata, On Synchronisation and Memory Reuse in OpenSHMEM.

use crate::array::symmetric::Symmetric;
use crate::world::World;
use pelago_core::base::call::Call;
use pelago_core::base::element::Element;
use pelago_core::base::error::Result;
use pelago_core::base::kind::ObjectKind;
use pelago_core::coll::symmetric_region::SymmetricRegion;

/// Symmetric memory of one team: see [`Team::space`](crate::Team::space).
///
/// In operations on its arrays PEs are named by their rank in the team. Dropping a space is local; its memory
/// is given back when every member has dropped it, in the next call that makes a team or a space from the
/// same team.
///
/// ```
/// # pelago::spmd(4, |world| -> pelago::Result<()> {
/// let pair = world.team().split_by(Some(world.my_pe() as u64 / 2), 0)?.unwrap();
/// let space = pair.space(1 << 16)?;
/// let inbox = space.alloc_zeroed::<u64>(4)?;
/// inbox.p(1 - pair.my_rank(), 0, world.my_pe() as u64)?; // to the other of the pair
/// pair.barrier();
/// assert_eq!(inbox.local().get(0), world.my_pe() as u64 ^ 1);
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
///
/// An array cannot outlive its space:
/// ```compile_fail,E0505
/// # pelago::spmd(1, |world| -> pelago::Result<()> {
/// let space = world.team().space(1 << 16)?;
/// let array = space.alloc::<u64>(1)?;
/// drop(space);
/// array.p(0, 0, 1)
/// # });
/// ```
pub struct Space<'w> {
    world: &'w World,
    region: SymmetricRegion,
}

impl<'w> Space<'w> {
    pub(crate) fn new(world: &'w World, region: SymmetricRegion) -> Space<'w> {
        Space { world, region }
    }

    pub(crate) fn world(&self) -> &'w World {
        self.world
    }

    /// The members and their memory.
    pub(crate) fn region(&self) -> &SymmetricRegion {
        &self.region
    }

    /// Allocates an array of `len` elements in every member's memory, the contents unspecified. Collective on
    /// the team; complete with a barrier of the team.
    ///
    /// # Errors
    /// If the space has no such block, there are 256 arrays in it already, or the members do not ask for the
    /// same; then no member has allocated.
    #[track_caller]
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Symmetric<'_, T>> {
        self.alloc_aligned(len, align_of::<T>())
    }

    /// As [`alloc`](Space::alloc), each member's part aligned to `align_bytes`: a power of two of at most
    /// 4096.
    ///
    /// # Errors
    /// As [`alloc`](Space::alloc), and for other alignments.
    #[track_caller]
    pub fn alloc_aligned<T: Element>(&self, len: usize, align_bytes: usize) -> Result<Symmetric<'_, T>> {
        self.alloc_as(ObjectKind::Array, len, align_bytes)
    }

    /// As [`alloc_aligned`](Space::alloc_aligned), for an object of this kind.
    #[track_caller]
    pub(crate) fn alloc_as<T: Element>(
        &self,
        kind: ObjectKind,
        len: usize,
        align_bytes: usize,
    ) -> Result<Symmetric<'_, T>> {
        let bytes = len.saturating_mul(size_of::<T>());
        let mut turn = self.region.turn(self.world.core());
        turn.agree(Call::Alloc { kind, bytes, align_bytes })?;
        Symmetric::alloc_agreed(self.world, &self.region, len, align_bytes)
    }

    /// As [`alloc`](Space::alloc), all elements zero.
    ///
    /// # Errors
    /// As [`alloc`](Space::alloc).
    #[track_caller]
    pub fn alloc_zeroed<T: Element>(&self, len: usize) -> Result<Symmetric<'_, T>> {
        self.alloc_zeroed_as(ObjectKind::Array, len)
    }

    /// As [`alloc_zeroed`](Space::alloc_zeroed), for an object of this kind.
    #[track_caller]
    pub(crate) fn alloc_zeroed_as<T: Element>(
        &self,
        kind: ObjectKind,
        len: usize,
    ) -> Result<Symmetric<'_, T>> {
        let (bytes, align_bytes) = (len.saturating_mul(size_of::<T>()), align_of::<T>());
        let mut turn = self.region.turn(self.world.core());
        turn.agree(Call::AllocZeroed { kind, bytes, align_bytes })?;
        let array = Symmetric::alloc_agreed(self.world, &self.region, len, align_bytes)?;
        drop(turn);
        array.zero_here();
        self.region.barrier(self.world.core());
        Ok(array)
    }

    /// Bytes of the space that are free at each member. Memory of dropped arrays counts once it is reclaimed.
    pub fn free_bytes(&self) -> usize {
        self.region.heap().free_bytes()
    }

    /// Size of the space at each member, in bytes.
    pub fn total_bytes(&self) -> usize {
        self.region.heap().total_bytes()
    }
}
