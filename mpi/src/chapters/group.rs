//! Groups: ordered sets of processes.
//!
//! Invariant: the members are PEs of the job, no one twice. The empty group has no members.

use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::output;
use crate::table::{Kind, Table};
use pelago_core::Pe;
use pelago_core::memory::members::Members;
use std::collections::HashSet;
use std::sync::Arc;

static GROUPS: Table<Group> = Table::new(Kind::Group);

/// An ordered set of PEs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    members: Option<Members>,
    /// The rank of this PE.
    me: Option<usize>,
    /// The session that it comes from; `MPI_SESSION_NULL` for those of the world.
    pub session: MPI_Session,
}

impl Group {
    /// All PEs of a job.
    pub fn all(n: usize, me: Pe) -> Group {
        Group { members: Some(Members::all(n)), me: Some(me), session: MPI_SESSION_NULL }
    }

    /// These PEs, where this PE is `me`.
    pub fn of(pes: &[Pe], me: Pe) -> Group {
        let members = (!pes.is_empty()).then(|| Members::of(pes));
        let rank = members.as_ref().and_then(|members| members.rank_of(me));
        Group { members, me: rank, session: MPI_SESSION_NULL }
    }

    /// The same group, of a session.
    pub fn of_session(self, session: MPI_Session) -> Group {
        Group { session, ..self }
    }

    pub fn len(&self) -> usize {
        self.members.as_ref().map_or(0, Members::len)
    }

    /// The rank of this PE.
    #[inline]
    pub fn my_rank(&self) -> Option<usize> {
        self.me
    }

    /// The PE of a rank, if there is one.
    #[inline]
    pub fn pe(&self, rank: c_int) -> Option<Pe> {
        let members = self.members.as_ref()?;
        let rank = usize::try_from(rank).ok().filter(|&rank| rank < members.len())?;
        Some(members.pe(rank))
    }

    #[inline]
    pub fn rank_of(&self, pe: Pe) -> Option<usize> {
        self.members.as_ref()?.rank_of(pe)
    }

    pub fn pes(&self) -> Vec<Pe> {
        self.members.as_ref().map_or_else(Vec::new, |members| members.iter().collect())
    }

    pub fn members(&self) -> Option<&Members> {
        self.members.as_ref()
    }

    /// How two groups relate: `MPI_IDENT`, `MPI_SIMILAR` or `MPI_UNEQUAL`.
    pub fn compare(&self, other: &Group) -> c_int {
        let (one, two) = (self.pes(), other.pes());
        if one == two {
            return MPI_IDENT;
        }
        let same = one.iter().collect::<HashSet<_>>() == two.iter().collect::<HashSet<_>>();
        if same { MPI_SIMILAR } else { MPI_UNEQUAL }
    }

    /// A handle of the group.
    pub fn handle(self) -> Result<MPI_Group> {
        if self.len() == 0 {
            return Ok(MPI_GROUP_EMPTY);
        }
        let handle = GROUPS.insert(Arc::new(self)).map(MPI_Group);
        handle.ok_or_else(|| Error::new(MPI_ERR_NO_MEM, "there are too many groups. Free some"))
    }
}

/// The group with a handle.
pub fn find(handle: MPI_Group) -> Result<Arc<Group>> {
    match handle {
        MPI_GROUP_EMPTY => Ok(Arc::new(Group { members: None, me: None, session: MPI_SESSION_NULL })),
        MPI_GROUP_NULL => Err(Error::new(MPI_ERR_GROUP, "the group is MPI_GROUP_NULL")),
        _ => GROUPS
            .share(handle.0)
            .ok_or_else(|| Error::new(MPI_ERR_GROUP, "the group was freed, or never was one")),
    }
}

/// Groups that the program has not freed.
pub fn count() -> usize {
    GROUPS.len()
}

unsafe fn give(group: Group, newgroup: *mut MPI_Group) -> Result {
    let place = output("newgroup", newgroup)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(group.handle()?) };
    Ok(())
}

fn own_pe() -> Pe {
    crate::chapters::library::get().map_or(0, |mpi| mpi.core.my_pe())
}

/// `MPI_Group_size`.
pub unsafe fn group_size(group: MPI_Group, size: *mut c_int) -> Result {
    let n = find(group)?.len();
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("size", size)?.write(n as c_int) };
    Ok(())
}

/// `MPI_Group_rank`.
pub unsafe fn group_rank(group: MPI_Group, rank: *mut c_int) -> Result {
    let me = find(group)?.my_rank().map_or(MPI_UNDEFINED, |rank| rank as c_int);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("rank", rank)?.write(me) };
    Ok(())
}

/// `MPI_Group_translate_ranks`.
pub unsafe fn group_translate_ranks(
    group1: MPI_Group,
    n: c_int,
    ranks1: *const c_int,
    group2: MPI_Group,
    ranks2: *mut c_int,
) -> Result {
    let (one, two) = (find(group1)?, find(group2)?);
    check_array("ranks1", n, ranks1)?;
    check_array("ranks2", n, ranks2)?;
    for i in 0..n as usize {
        // SAFETY: the caller's arrays have n elements.
        let rank = unsafe { ranks1.add(i).read() };
        let translated = match rank {
            MPI_PROC_NULL => MPI_PROC_NULL,
            _ => {
                let pe = one.pe(rank).ok_or_else(|| no_rank(rank, one.len()))?;
                two.rank_of(pe).map_or(MPI_UNDEFINED, |rank| rank as c_int)
            }
        };
        // SAFETY: the program's place is valid, as said above.
        unsafe { ranks2.add(i).write(translated) };
    }
    Ok(())
}

/// Checks an array of n elements.
fn check_array<T>(name: &str, n: c_int, place: *const T) -> Result {
    ensure!(n >= 0, MPI_ERR_ARG, "n is {n}, which is negative");
    ensure!(n == 0 || !place.is_null(), MPI_ERR_ARG, "n is {n}, and {name} is null");
    Ok(())
}

fn no_rank(rank: c_int, n: usize) -> Error {
    Error::new(MPI_ERR_RANK, format!("rank {rank} of a group of {n} processes. Ranks are below {n}"))
}

/// `MPI_Group_compare`.
pub unsafe fn group_compare(group1: MPI_Group, group2: MPI_Group, result: *mut c_int) -> Result {
    let relation = find(group1)?.compare(&*find(group2)?);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { output("result", result)?.write(relation) };
    Ok(())
}

/// `MPI_Group_union`: the first group, then what the second has beside it.
pub unsafe fn group_union(group1: MPI_Group, group2: MPI_Group, newgroup: *mut MPI_Group) -> Result {
    let (one, two) = (find(group1)?, find(group2)?);
    let mut pes = one.pes();
    pes.extend(two.pes().into_iter().filter(|&pe| one.rank_of(pe).is_none()));
    let session = if one.session == MPI_SESSION_NULL { two.session } else { one.session };
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { give(Group::of(&pes, own_pe()).of_session(session), newgroup) }
}

/// `MPI_Group_intersection`, in the order of the first group.
pub unsafe fn group_intersection(group1: MPI_Group, group2: MPI_Group, newgroup: *mut MPI_Group) -> Result {
    let (one, two) = (find(group1)?, find(group2)?);
    let pes: Vec<Pe> = one.pes().into_iter().filter(|&pe| two.rank_of(pe).is_some()).collect();
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { give(Group::of(&pes, own_pe()).of_session(one.session), newgroup) }
}

/// `MPI_Group_difference`, in the order of the first group.
pub unsafe fn group_difference(group1: MPI_Group, group2: MPI_Group, newgroup: *mut MPI_Group) -> Result {
    let (one, two) = (find(group1)?, find(group2)?);
    let pes: Vec<Pe> = one.pes().into_iter().filter(|&pe| two.rank_of(pe).is_none()).collect();
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { give(Group::of(&pes, own_pe()).of_session(one.session), newgroup) }
}

/// The ranks of an array, each of which the group has, no one twice.
unsafe fn ranks_of(group: &Group, n: c_int, ranks: *const c_int) -> Result<Vec<usize>> {
    check_array("ranks", n, ranks)?;
    // SAFETY: the caller's array has n elements.
    let ranks = (0..n as usize).map(|i| unsafe { ranks.add(i).read() }).collect::<Vec<_>>();
    checked_ranks(group, &ranks)
}

fn checked_ranks(group: &Group, ranks: &[c_int]) -> Result<Vec<usize>> {
    let mut seen = HashSet::new();
    for &rank in ranks {
        ensure!(group.pe(rank).is_some(), MPI_ERR_RANK, "{}", no_rank(rank, group.len()).text());
        ensure!(seen.insert(rank), MPI_ERR_RANK, "rank {rank} occurs twice");
    }
    Ok(ranks.iter().map(|&rank| rank as usize).collect())
}

fn including(group: &Group, ranks: &[usize]) -> Group {
    let pes: Vec<Pe> = ranks.iter().filter_map(|&rank| group.pe(rank as c_int)).collect();
    Group::of(&pes, own_pe()).of_session(group.session)
}

fn excluding(group: &Group, ranks: &[usize]) -> Group {
    let ranks: HashSet<_> = ranks.iter().collect();
    let rest: Vec<usize> = (0..group.len()).filter(|rank| !ranks.contains(rank)).collect();
    including(group, &rest)
}

/// `MPI_Group_incl`.
pub unsafe fn group_incl(
    group: MPI_Group,
    n: c_int,
    ranks: *const c_int,
    newgroup: *mut MPI_Group,
) -> Result {
    let group = find(group)?;
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { give(including(&group, &ranks_of(&group, n, ranks)?), newgroup) }
}

/// `MPI_Group_excl`.
pub unsafe fn group_excl(
    group: MPI_Group,
    n: c_int,
    ranks: *const c_int,
    newgroup: *mut MPI_Group,
) -> Result {
    let group = find(group)?;
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { give(excluding(&group, &ranks_of(&group, n, ranks)?), newgroup) }
}

/// The ranks of triples of first rank, last rank and stride.
unsafe fn ranks_of_ranges(group: &Group, n: c_int, ranges: *mut [c_int; 3]) -> Result<Vec<usize>> {
    check_array("ranges", n, ranges)?;
    let mut ranks = Vec::new();
    for i in 0..n as usize {
        // SAFETY: the caller's array has n triples.
        let [first, last, stride] = unsafe { ranges.add(i).read() };
        ensure!(stride != 0, MPI_ERR_ARG, "the stride of range {i} is 0");
        ensure!(
            first == last || (first < last) == (stride > 0),
            MPI_ERR_ARG,
            "the stride of range {i} is {stride}, which leads from {first} away from {last}"
        );
        let mut rank = first;
        while if stride > 0 { rank <= last } else { rank >= last } {
            ensure!(group.pe(rank).is_some(), MPI_ERR_RANK, "{}", no_rank(rank, group.len()).text());
            ranks.push(rank);
            let Some(next) = rank.checked_add(stride) else { break };
            rank = next;
        }
    }
    checked_ranks(group, &ranks)
}

/// `MPI_Group_range_incl`.
pub unsafe fn group_range_incl(
    group: MPI_Group,
    n: c_int,
    ranges: *mut [c_int; 3],
    newgroup: *mut MPI_Group,
) -> Result {
    let group = find(group)?;
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { give(including(&group, &ranks_of_ranges(&group, n, ranges)?), newgroup) }
}

/// `MPI_Group_range_excl`.
pub unsafe fn group_range_excl(
    group: MPI_Group,
    n: c_int,
    ranges: *mut [c_int; 3],
    newgroup: *mut MPI_Group,
) -> Result {
    let group = find(group)?;
    // SAFETY: the program keeps the conditions that the standard has for this call.
    unsafe { give(excluding(&group, &ranks_of_ranges(&group, n, ranges)?), newgroup) }
}

/// `MPI_Group_free`.
pub unsafe fn group_free(group: *mut MPI_Group) -> Result {
    let place = output("group", group)?;
    // SAFETY: the caller's pointer is valid for one value.
    let handle = unsafe { place.read() };
    let is_freed = handle == MPI_GROUP_EMPTY || GROUPS.remove(handle.0).is_some();
    ensure!(is_freed, MPI_ERR_GROUP, "the group is null, was freed or never was one");
    // SAFETY: the program's place is valid, as said above.
    unsafe { place.write(MPI_GROUP_NULL) };
    Ok(())
}
