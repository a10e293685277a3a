//! Collective operations on memory that only its own PE can access: they go through symmetric buffers.
//!
//! Invariant: all members cut an operation into the same pieces, which follow from its arguments and the size
//! of the buffers.

use crate::base::error::{ErrorKind, Result};
use crate::coll::call::Call;
use crate::coll::operand::Operand;
use crate::coll::reduction::Combiner;
use crate::coll::schedule::Rank;
use crate::coll::shape::Operation;
use crate::coll::symmetric_region::{SPACE_ALIGN_BYTES, SymmetricRegion};
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;
use crate::memory::segment::ArrayLayout;
use crate::memory::usage::Usage;
use std::sync::Arc;

/// How the buffers are aligned: as elements at most are.
const ALIGN_BYTES: usize = 64;

/// The symmetric buffers of a team, for its operations on private memory.
pub struct PrivateBuffers {
    team: Arc<TeamCore>,
    region: SymmetricRegion,
    usage: Arc<Usage>,
    /// The source, and behind it the target.
    layout: ArrayLayout<u8>,
}

/// The elements that an operation on private memory works on.
#[derive(Clone, Copy, Debug)]
pub struct Elements {
    /// Elements of a block: of what one member sends to one other, or of the whole operand of an operation
    /// without blocks.
    pub count: usize,
    /// Bytes of an element.
    pub bytes: usize,
}

impl PrivateBuffers {
    /// Buffers of `bytes` bytes each for source and target. The larger they are, the fewer pieces has a large
    /// operation. Collective on the team.
    ///
    /// # Errors
    /// If a pool has no room, or the members do not make the same call.
    #[track_caller]
    pub fn new(world: &Teams, team: &Arc<TeamCore>, bytes: usize) -> Result<PrivateBuffers> {
        let bytes = bytes.next_multiple_of(ALIGN_BYTES);
        let region = team.space(world, 2 * bytes + SPACE_ALIGN_BYTES)?;
        let ((_, usage), layout) = region.alloc_agreed::<u8>(world, 2 * bytes, ALIGN_BYTES)?;
        Ok(PrivateBuffers { team: Arc::clone(team), region, usage, layout })
    }

    /// Carries out an operation whose source and target are private memory. Source and target have one block,
    /// or one for each member, as the operation needs ([`Operation::source_blocks`],
    /// [`Operation::target_blocks`]); of rooted operations the side that only the root has is ignored at the
    /// others. Collective on the team; complete at return.
    ///
    /// # Errors
    /// If there is no such root, an element of each member does not fit into the buffers, or, with checks
    /// on, the members do not make the same call.
    ///
    /// # Safety
    /// The source is valid for reads and the target for writes; they do not overlap, or are the same in an
    /// operation that allows it.
    #[track_caller]
    pub unsafe fn perform(
        &self,
        world: &Teams,
        (operation, root): (Operation, Rank),
        combiner: Option<&Combiner>,
        Elements { count, bytes }: Elements,
        (target, source): (*mut u8, *const u8),
    ) -> Result<()> {
        let n = self.team.len();
        let (sends, receives) = (operation.source_blocks(n), operation.target_blocks(n));
        let most = self.layout.len / 2 / (sends.max(receives).max(1) * bytes.max(1));
        if most == 0 {
            let (me, has) = (world.my_pe(), self.layout.len / 2);
            let reason = format!("an element of {bytes} bytes for each of {n} members exceeds {has} bytes");
            return Err(ErrorKind::BadCollective { me, operation: operation.name(), reason }.into());
        }
        let me = self.team.my_rank();
        let (gives, takes) = (has_source(operation, root == me), has_target(operation, root == me));
        for start in (0..count).step_by(most) {
            // A member that begins an operation may write to the others' targets: these must be free.
            self.team.sync(world);
            let piece = most.min(count - start);
            let (from, into) = (
                self.operand(world, 0, sends, (piece, bytes)),
                self.operand(world, 1, receives, (piece, bytes)),
            );
            let blocks = |blocks: usize| {
                (0..blocks).map(|block| (block * piece * bytes, (block * count + start) * bytes))
            };
            for (here, there) in blocks(sends).filter(|_| gives) {
                // SAFETY: the piece lies in the source and in the buffer, which no other member writes.
                unsafe { from.own.add(here).copy_from_nonoverlapping(source.add(there), piece * bytes) };
            }
            let call = Call::new(operation, root, piece, into, from);
            let call = match combiner {
                Some(combiner) => call.with(combiner.clone()),
                None => call,
            };
            self.team.do_call(world, &call)?;
            for (here, there) in blocks(receives).filter(|_| takes) {
                // SAFETY: the piece lies in the target and in the buffer, which no member writes before all
                // have met.
                unsafe { target.add(there).copy_from_nonoverlapping(into.own.add(here), piece * bytes) };
            }
        }
        Ok(())
    }

    /// One of the buffers, as the operand of a call on `blocks` blocks of `count` elements.
    fn operand<'a>(
        &'a self,
        world: &'a Teams,
        which: usize,
        blocks: usize,
        (count, element_bytes): (usize, usize),
    ) -> Operand<'a> {
        let skipped = which * (self.layout.len / 2);
        Operand {
            world,
            region: &self.region,
            usage: &self.usage,
            offset_bytes: self.layout.offset_bytes() + skipped,
            len: blocks * count,
            element_bytes,
            is_closed: false,
            own: self.layout.own().as_ptr().wrapping_add(skipped),
        }
    }
}

/// Whether a rank's source is read.
fn has_source(operation: Operation, is_root: bool) -> bool {
    is_root || !matches!(operation, Operation::Broadcast | Operation::Scatter)
}

/// Whether a rank's target is written.
fn has_target(operation: Operation, is_root: bool) -> bool {
    is_root || !matches!(operation, Operation::Gather | Operation::Reduce)
}
