//! The run of one PE: it passes its member's requests to its group. Invariant: a PE that is not in the next
//! smaller group makes no further call of the group.

use pelago::Result;
use pelago::coll::sync_memory::SyncCounts;

use super::clustering::Clustering;
use super::group::{Group, Meeting};
use super::member::{Member, Request, Shrink};
use super::usage::Usage;

/// Collective among the group: runs to the end, or until the group shrinks and excludes this PE. Returns how
/// the group shrank until then, and the use of synchronisation memory of this PE in all its groups.
/// `progress` gets the number of free points after every round.
pub(super) fn drive<G: Group>(
    group: G,
    clustering: &mut Clustering,
    progress: &mut dyn FnMut(u32),
) -> Result<(Vec<Shrink>, SyncCounts)> {
    let mut group = group;
    let mut member = Member::new(clustering, group.rank(), group.size());
    let mut request = member.first();
    let mut usage = Usage::default();
    loop {
        usage.take(group.sync_counts());
        request = match request {
            Request::Shrink(pes) => match group.shrink(pes)? {
                Some(smaller) => {
                    group = smaller;
                    member.next(0)
                }
                None => return Ok((member.shrinks, usage.total())),
            },
            Request::Done => return Ok((member.shrinks, usage.total())),
            first => group.meet(|meeting| go_on(meeting, &mut member, first, progress))?,
        };
    }
}

/// Passes requests to the meeting, from `request` on. Returns the first one that a meeting cannot perform.
fn go_on(
    meeting: &mut dyn Meeting,
    member: &mut Member<'_>,
    mut request: Request,
    progress: &mut dyn FnMut(u32),
) -> Result<Request> {
    loop {
        request = match request {
            Request::Barrier => {
                meeting.barrier()?;
                member.next(0)
            }
            Request::Max(value) => member.next(meeting.max(value)?),
            Request::Min(value) => {
                let seed = meeting.min(value)?;
                let next = member.next(seed);
                progress(member.clustering.free_count());
                next
            }
            Request::Shrink(_) | Request::Done => return Ok(request),
        };
    }
}
