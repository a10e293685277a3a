//! Communicators of some of the members of another one, and of groups.
//!
//! The context of a new communicator is chosen by its rank 0, from numbers that only this PE gives, and told
//! to the others in the exchange that the call makes anyway.

use super::agree::{Agreed, Told, agree};
use super::link::{Found, Link};
use super::{COMMS, Comm};
use crate::abi::*;
use crate::chapters::errhandler::{Handler, Takes};
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::group::{self, Group};
use crate::chapters::info::{self, OF_COMMUNICATORS};
use crate::chapters::library::{BY_GROUP, Mpi, output};
use pelago_core::Pe;
use std::ffi::CStr;
use std::sync::Arc;

/// A handle of a communicator.
pub fn insert(comm: Comm) -> Result<MPI_Comm> {
    let handle = COMMS.insert(Arc::new(comm)).map(MPI_Comm);
    handle.ok_or_else(|| Error::new(MPI_ERR_NO_MEM, "there are too many communicators. Free some"))
}

/// The most communicators of a process at a time.
const COMMS_MAX: usize = 1 << 16;

/// Fails if there is no room for one more communicator. The members find out before they make one.
pub fn check_room() -> Result {
    ensure!(
        COMMS.len() < COMMS_MAX,
        MPI_ERR_NO_MEM,
        "there are {COMMS_MAX} communicators, which is the most that a process can have. Free some"
    );
    Ok(())
}

/// Sets the place of a new communicator to none, in case the call fails.
///
/// # Safety
/// The place is null, or valid for one value.
pub unsafe fn clear(place: *mut MPI_Comm) {
    if !place.is_null() {
        // SAFETY: the caller passes places and arrays that are valid, or null.
        unsafe { place.write(MPI_COMM_NULL) };
    }
}

/// Gives the program a new communicator, or none.
///
/// # Safety
/// The place is valid for one value.
pub unsafe fn give(comm: Option<Comm>, place: *mut MPI_Comm) -> Result {
    let handle = comm.map_or(Ok(MPI_COMM_NULL), insert)?;
    // SAFETY: the caller passes places and arrays that are valid, or null.
    unsafe { place.write(handle) };
    Ok(())
}

/// The word of a member that joins the part of this color, at a position by this key.
pub fn part(color: c_int, key: c_int) -> u64 {
    u64::from(color as u32) | u64::from(key as u32) << 32
}

/// The members of a part, in the order of their keys, and the context that the first of them gives.
fn members_of(group: &Group, all: &[Told], part: c_int) -> Option<(Vec<Pe>, u64)> {
    let key = |rank: usize| ((all[rank].words[0] >> 32) as u32 as c_int, rank);
    let mut ranks: Vec<usize> = (0..all.len()).filter(|&rank| all[rank].color() == part).collect();
    ranks.sort_unstable_by_key(|&rank| key(rank));
    let context = all[*ranks.first()?].context;
    Some((ranks.iter().filter_map(|&rank| group.pe(rank as c_int)).collect(), context))
}

/// The communicator of those members that have told the same color as this one. `None` if it has told none,
/// or if a group of an inter-communicator would be empty.
pub fn divide(mpi: &Mpi, comm: &Comm, agreed: &Agreed) -> Option<Comm> {
    let mine = agreed.local[comm.my_rank()].color();
    if mine == MPI_UNDEFINED {
        return None;
    }
    let group = |pes: &[Pe]| Group::of(pes, mpi.core.my_pe());
    let (local, context) = members_of(&comm.group, &agreed.local, mine)?;
    let Some(remote) = &comm.remote else {
        return Some(comm.child(mpi, context, group(&local), None));
    };
    let (remote, other) = members_of(remote, &agreed.remote, mine)?;
    let context = if local[0] < remote[0] { context } else { other };
    Some(comm.child(mpi, context, group(&local), Some(group(&remote))))
}

/// `MPI_Comm_split`, also of inter-communicators.
pub unsafe fn comm_split(
    mpi: &Mpi,
    comm: MPI_Comm,
    color: c_int,
    key: c_int,
    newcomm: *mut MPI_Comm,
) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(newcomm) };
    let comm = mpi.comm(comm)?;
    let check = || {
        ensure!(
            color >= 0 || color == MPI_UNDEFINED,
            MPI_ERR_ARG,
            "color is {color}, which is negative and not MPI_UNDEFINED"
        );
        output("newcomm", newcomm)?;
        Ok([part(color, key), 0])
    };
    let agreed = agree(mpi, comm, check())?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(divide(mpi, comm, &agreed), newcomm) }
}

fn check_members(comm: &Comm, group: &Group) -> Result {
    let outside = group.pes().into_iter().find(|&pe| comm.group.rank_of(pe).is_none());
    ensure!(
        outside.is_none(),
        MPI_ERR_GROUP,
        "rank {} of the group is no member of the communicator",
        outside.and_then(|pe| group.rank_of(pe)).unwrap_or_default()
    );
    Ok(())
}

/// `MPI_Comm_create`. Of an inter-communicator, each side gives a group of its own members.
pub unsafe fn comm_create(mpi: &Mpi, comm: MPI_Comm, group: MPI_Group, newcomm: *mut MPI_Comm) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(newcomm) };
    let comm = mpi.comm(comm)?;
    let check = || {
        let group = group::find(group)?;
        check_members(comm, &group)?;
        output("newcomm", newcomm)?;
        Ok(group)
    };
    let group: Result<Arc<Group>> = check();
    let word = |group: &Arc<Group>| match group.my_rank() {
        None => part(MPI_UNDEFINED, 0),
        // Parts are told apart by the first member of their group.
        Some(rank) => part(group.pe(0).unwrap_or_default() as c_int, rank as c_int),
    };
    let mine = match &group {
        Ok(group) => Ok([word(group), 0]),
        Err(error) => Err(error.copy()),
    };
    let agreed = agree(mpi, comm, mine)?;
    let group = group?;
    let child = match comm.remote.is_none() {
        true => divide(mpi, comm, &agreed),
        false => divide_both(mpi, comm, &agreed)?,
    };
    if let Some(child) = &child
        && child.group.pes() != group.pes()
    {
        return Err(groups_differ());
    }
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(child, newcomm) }
}

fn groups_differ() -> Error {
    Error::new(MPI_ERR_GROUP, "a member of the group has given another group. All must give the same")
}

/// As [`divide`], for an inter-communicator whose two groups have told colors that differ.
///
/// # Errors
/// If a member of the local group has told another color than this one.
fn divide_both(mpi: &Mpi, comm: &Comm, agreed: &Agreed) -> Result<Option<Comm>> {
    let chosen = |all: &[Told]| all.iter().map(Told::color).find(|&color| color != MPI_UNDEFINED);
    let mine = agreed.local[comm.my_rank()].color();
    let colors = chosen(&agreed.local).zip(chosen(&agreed.remote)).filter(|_| mine != MPI_UNDEFINED);
    let (Some((local, remote)), Some(others)) = (colors, &comm.remote) else { return Ok(None) };
    if mine != local {
        return Err(groups_differ());
    }
    let group = |pes: &[Pe]| Group::of(pes, mpi.core.my_pe());
    let both = members_of(&comm.group, &agreed.local, local).zip(members_of(others, &agreed.remote, remote));
    Ok(both.map(|((local, context), (remote, other))| {
        let context = if local[0] < remote[0] { context } else { other };
        comm.child(mpi, context, group(&local), Some(group(&remote)))
    }))
}

/// The members of a group agree on a context.
fn context_of_group(mpi: &Mpi, group: &Group, link: Link, mine: Result) -> Result<u64> {
    let found =
        |outcome: Result| Ok(Found { context: outcome.and_then(|()| mpi.new_context())?, pes: Vec::new() });
    Ok(link.meet(mpi, (group, 0), mine, found)?.context)
}

/// `MPI_Comm_create_group`: only the members of the group call it. Threads may call it at once with other
/// tags.
pub unsafe fn comm_create_group(
    mpi: &Mpi,
    comm: MPI_Comm,
    group: MPI_Group,
    tag: c_int,
    newcomm: *mut MPI_Comm,
) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(newcomm) };
    let comm = mpi.comm(comm)?;
    comm.check_intra()?;
    let group = group::find(group)?;
    check_members(comm, &group)?;
    ensure!(tag >= 0, MPI_ERR_TAG, "tag is {tag}; tags are 0 to {}", c_int::MAX);
    let place = output("newcomm", newcomm);
    if group.my_rank().is_none() {
        // SAFETY: the caller's pointer is valid for one value.
        return unsafe { give(None, place?) };
    }
    let link = Link::new(comm.context | BY_GROUP, tag);
    let context = context_of_group(mpi, &group, link, place.map(drop))?;
    let child = comm.child(mpi, context, (*group).clone(), None);
    // SAFETY: the caller's pointer is valid for one value, and was not null.
    unsafe { give(Some(child), newcomm) }
}

/// Fails unless it is an info object, or `MPI_INFO_NULL`.
pub fn check_info(info: MPI_Info) -> Result {
    info::given(info).map(drop)
}

/// The string by which processes find each other that have no communicator.
///
/// # Safety
/// The pointer is null or that of a string.
pub unsafe fn string_tag<'a>(stringtag: *const c_char) -> Result<&'a [u8]> {
    ensure!(!stringtag.is_null(), MPI_ERR_ARG, "stringtag is null");
    // SAFETY: the caller passes places and arrays that are valid, or null.
    let tag = unsafe { CStr::from_ptr(stringtag) }.to_bytes();
    let most = MPI_MAX_STRINGTAG_LEN as usize;
    ensure!(tag.len() < most, MPI_ERR_ARG, "stringtag has {} characters; at most {}", tag.len(), most - 1);
    Ok(tag)
}

/// `MPI_Comm_create_from_group`: errors go to the handler that it is given.
pub unsafe fn comm_create_from_group(
    mpi: &Mpi,
    group: MPI_Group,
    stringtag: *const c_char,
    info: MPI_Info,
    errhandler: MPI_Errhandler,
    newcomm: *mut MPI_Comm,
) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(newcomm) };
    let handler = Handler::find(errhandler, Takes::Comm)?;
    // SAFETY: the caller passes places and arrays that are valid, or null.
    let made = unsafe { from_group(mpi, group, stringtag, (info, handler), newcomm) };
    made.map_err(|error| error.with_handler(handler))
}

unsafe fn from_group(
    mpi: &Mpi,
    group: MPI_Group,
    stringtag: *const c_char,
    (info, handler): (MPI_Info, Handler),
    newcomm: *mut MPI_Comm,
) -> Result {
    let (group, place) = (group::find(group)?, output("newcomm", newcomm)?);
    // SAFETY: the caller passes places and arrays that are valid, or null.
    let tag = unsafe { string_tag(stringtag)? };
    if group.len() == 0 {
        // SAFETY: the caller's pointer is valid for one value.
        return unsafe { give(None, place) };
    }
    ensure!(group.my_rank().is_some(), MPI_ERR_GROUP, "the group does not have this process");
    check_info(info)?;
    let link = Link::named(tag, &group.pes());
    let context = context_of_group(mpi, &group, link, Ok(()))?;
    let comm = Comm::new(context, (*group).clone(), None, |pe| mpi.core.node(pe));
    comm.errhandler.set(handler);
    comm.hints.accept(info, &OF_COMMUNICATORS)?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { give(Some(comm), place) }
}
