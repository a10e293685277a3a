//! Inter-communicators: how two groups meet, and how they become one.

use super::Comm;
use super::agree::agree;
use super::create::{check_info, check_room, clear, give, string_tag};
use super::link::{Found, Link};
use crate::abi::*;
use crate::chapters::errhandler::{Handler, Takes};
use crate::chapters::error::{Result, ensure};
use crate::chapters::group::{self, Group};
use crate::chapters::info::OF_COMMUNICATORS;
use crate::chapters::library::{BETWEEN, EVERYONE, Mpi, output};
use pelago_core::Pe;
use std::sync::Arc;

/// Two groups meet: the context of their inter-communicator, and the remote group. `within` links the
/// members of the local group. The local leader knows `other`: the link to the leader of the remote group,
/// and its PE. A leader that knows the other one always tells it something, so that it does not wait in vain.
pub(super) fn meet(
    mpi: &Mpi,
    (local, leader): (&Group, usize),
    within: Link,
    other: Option<(Link, Pe)>,
    mine: Result,
) -> Result<(u64, Group)> {
    let mine = mine.and_then(|()| check_room());
    let swap = |outcome: Result| {
        let own = outcome.and_then(|()| mpi.new_context()).map(|context| Found { context, pes: local.pes() });
        let Some((between, pe)) = other else { return own };
        let theirs = between.swap(mpi, pe, &own);
        let (own, theirs) = (own?, theirs?);
        let context = if mpi.core.my_pe() < pe { own.context } else { theirs.context };
        Ok(Found { context, ..theirs })
    };
    let found = within.meet(mpi, (local, leader), mine, swap)?;
    let shared = found.pes.iter().find(|&&pe| local.rank_of(pe).is_some());
    ensure!(
        shared.is_none() && !found.pes.is_empty(),
        MPI_ERR_COMM,
        "rank {} of the local group is in the remote group as well. The groups must be disjoint",
        shared.and_then(|&pe| local.rank_of(pe)).unwrap_or_default()
    );
    Ok((found.context, Group::of(&found.pes, mpi.core.my_pe()).of_session(local.session)))
}

/// The rank of a leader, if the group has it.
fn leader_of(group: &Group, leader: c_int, name: &str) -> Result<usize> {
    let n = group.len();
    ensure!(
        leader >= 0 && (leader as usize) < n,
        MPI_ERR_RANK,
        "{name} is {leader}, but its group has {n} processes, whose ranks begin with 0"
    );
    Ok(leader as usize)
}

/// `MPI_Intercomm_create`. The peer communicator matters at the leaders only, and may be an
/// inter-communicator.
pub unsafe fn intercomm_create(
    mpi: &Mpi,
    local_comm: MPI_Comm,
    local_leader: c_int,
    peer_comm: MPI_Comm,
    remote_leader: c_int,
    tag: c_int,
    newintercomm: *mut MPI_Comm,
) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(newintercomm) };
    let local = mpi.share_comm(local_comm)?;
    local.check_intra()?;
    // The same at all members, so that no one is left alone.
    let leader = leader_of(&local.group, local_leader, "local_leader")?;
    let route = || {
        ensure!(tag >= 0, MPI_ERR_TAG, "tag is {tag}; tags are 0 to {}", c_int::MAX);
        if local.my_rank() != leader {
            return Ok(None);
        }
        let peer = mpi.comm(peer_comm)?;
        let pe = peer.peer(remote_leader)?;
        ensure!(pe != mpi.core.my_pe(), MPI_ERR_RANK, "remote_leader is the local leader itself");
        Ok(Some((Link::new(peer.context | BETWEEN, tag), pe)))
    };
    let (place, route) = (output("newintercomm", newintercomm), route());
    // The other leader is told of an error, where it is known.
    let between = route.as_ref().ok().copied().flatten();
    let mine = place.and(route.map(drop));
    let within = Link::new(local.context | EVERYONE, 0);
    let (context, remote) = meet(mpi, (&local.group, leader), within, between, mine)?;
    let made = local.child(mpi, context, local.group.clone(), Some(remote));
    // SAFETY: the caller's pointer is valid for one value, and was not null.
    unsafe { give(Some(made), newintercomm) }
}

/// `MPI_Intercomm_create_from_groups`. The remote group and its leader matter at the local leader only.
pub unsafe fn intercomm_create_from_groups(
    mpi: &Mpi,
    local_group: MPI_Group,
    local_leader: c_int,
    remote_group: MPI_Group,
    remote_leader: c_int,
    stringtag: *const c_char,
    info: MPI_Info,
    errhandler: MPI_Errhandler,
    newintercomm: *mut MPI_Comm,
) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(newintercomm) };
    let handler = Handler::find(errhandler, Takes::Comm)?;
    let make = || {
        let (local, place) = (group::find(local_group)?, output("newintercomm", newintercomm)?);
        // SAFETY: the caller passes places and arrays that are valid, or null.
        let tag = unsafe { string_tag(stringtag)? };
        check_info(info)?;
        let made = from_groups(mpi, (local, local_leader), (remote_group, remote_leader), tag)?;
        if let Some(made) = &made {
            made.errhandler.set(handler);
            made.hints.accept(info, &OF_COMMUNICATORS)?;
        }
        // SAFETY: the caller's pointer is valid for one value.
        unsafe { give(made, place) }
    };
    make().map_err(|error| error.with_handler(handler))
}

fn from_groups(
    mpi: &Mpi,
    (local, local_leader): (Arc<Group>, c_int),
    (remote_group, remote_leader): (MPI_Group, c_int),
    tag: &[u8],
) -> Result<Option<Comm>> {
    // With an empty group the call is local.
    if local.len() == 0 || remote_group == MPI_GROUP_EMPTY {
        return Ok(None);
    }
    ensure!(local.my_rank().is_some(), MPI_ERR_GROUP, "the local group does not have this process");
    let leader = leader_of(&local, local_leader, "local_leader")?;
    let mut other = None;
    let mut check = || {
        if local.my_rank() == Some(leader) {
            let remote = group::find(remote_group)?;
            let rank = leader_of(&remote, remote_leader, "remote_leader")?;
            let pe = remote.pe(rank as c_int).filter(|&pe| pe != mpi.core.my_pe());
            ensure!(pe.is_some(), MPI_ERR_RANK, "remote_leader is the local leader itself");
            other = pe;
        }
        Ok(())
    };
    let mine = check();
    let (within, between) = (Link::named(tag, &local.pes()), Link::named(tag, &[]));
    let other = other.map(|pe| (between, pe));
    let (context, remote) = meet(mpi, (&local, leader), within, other, mine)?;
    Ok(Some(Comm::new(context, (*local).clone(), Some(remote), |pe| mpi.core.node(pe))))
}

/// `MPI_Intercomm_merge`. If both groups say the same, the one that has the lower PE as its rank 0 comes
/// first.
pub unsafe fn intercomm_merge(
    mpi: &Mpi,
    intercomm: MPI_Comm,
    high: c_int,
    newintracomm: *mut MPI_Comm,
) -> Result {
    // SAFETY: the caller's pointer is null or valid for one value.
    unsafe { clear(newintracomm) };
    let comm = mpi.comm(intercomm)?;
    let remote = comm.check_inter()?;
    let is_high = u64::from(high != 0);
    let agreed = agree(mpi, comm, output("newintracomm", newintracomm).map(|_| [is_high, 0]))?;
    for (whose, all) in [("local", &agreed.local), ("remote", &agreed.remote)] {
        ensure!(
            all.iter().all(|told| told.words[0] == all[0].words[0]),
            MPI_ERR_ARG,
            "the members of the {whose} group have given different values of high"
        );
    }
    let (own, theirs) = (agreed.local[0], agreed.remote[0]);
    let is_first = if own.words == theirs.words { comm.is_first() } else { is_high == 0 };
    let (local, remote) = (comm.group.pes(), remote.pes());
    let (pes, context) = match is_first {
        true => ([local, remote].concat(), own.context),
        false => ([remote, local].concat(), theirs.context),
    };
    let merged = comm.child(mpi, context, Group::of(&pes, mpi.core.my_pe()), None);
    // SAFETY: the caller's pointer is valid for one value, and was not null.
    unsafe { give(Some(merged), newintracomm) }
}
