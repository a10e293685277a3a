//! Team management (OpenSHMEM 1.6, 9.4).
//!
//! Invariant: the handles of the predefined teams are constants; the others are in a table
//! (`handles/team.rs`), where each handle belongs to one member. A call that creates teams has the same
//! result on all members of the parent.

use crate::base::abi::{TEAM_NUM_CONTEXTS, TeamConfig, TeamHandle, c_int, c_long, c_void};
use crate::base::fault::{Call, fail, output};
use crate::base::hot::Hot;
use crate::handles::team::{TEAMS, Team};
use crate::library;
use pelago::ErrorKind;
use pelago::sync::Ordering;
use std::ptr::null_mut;

/// The team of a handle, which is valid.
#[inline(always)]
pub(crate) fn find(call: Call, handle: TeamHandle) -> &'static Team {
    match handle {
        TeamHandle::WORLD => &library::of(call).teams.world,
        _ => find_other(call, "team", handle),
    }
}

#[inline(never)]
fn find_other(call: Call, what: &str, handle: TeamHandle) -> &'static Team {
    find_if_valid(call, what, handle)
        .unwrap_or_else(|| fail(call, format_args!("{what} is SHMEM_TEAM_INVALID")))
}

/// The team of a handle; `None` for `SHMEM_TEAM_INVALID`.
pub(crate) fn find_if_valid(call: Call, what: &str, handle: TeamHandle) -> Option<&'static Team> {
    let library = library::of(call);
    match handle {
        TeamHandle::INVALID => None,
        TeamHandle::WORLD => Some(&library.teams.world),
        TeamHandle::SHARED => Some(&library.teams.shared),
        TeamHandle::NODE => Some(library.teams.node.as_ref().unwrap_or(&library.teams.shared)),
        TeamHandle(address) => Some(TEAMS.get(address).unwrap_or_else(|why| {
            fail(call, format_args!("{what} is {address:#x}, a team that {why}"));
        })),
    }
}

/// `shmem_team_my_pe`: -1 for `SHMEM_TEAM_INVALID`.
pub(crate) unsafe fn my_pe(call: Call, team: TeamHandle) -> c_int {
    find_if_valid(call, "team", team).map_or(-1, |team| team.team.my_rank() as c_int)
}

/// `shmem_team_n_pes`: -1 for `SHMEM_TEAM_INVALID`.
pub(crate) unsafe fn n_pes(call: Call, team: TeamHandle) -> c_int {
    find_if_valid(call, "team", team).map_or(-1, |team| team.team.n_pes() as c_int)
}

/// `shmem_team_get_config`: "if config_mask is 0, no action is performed".
pub(crate) unsafe fn get_config(
    call: Call,
    team: TeamHandle,
    config_mask: c_long,
    config: *mut TeamConfig,
) -> c_int {
    let Some(team) = find_if_valid(call, "team", team) else { return 1 };
    if config_mask & TEAM_NUM_CONTEXTS != 0 {
        if config.is_null() {
            fail(call, "config is null, but config_mask asks for a member of it");
        }
        // SAFETY: the caller's pointer is valid for one configuration.
        unsafe { (*config).num_contexts = team.num_contexts };
    }
    0
}

/// `shmem_team_translate_pe`: -1 if the PE is not in both teams.
pub(crate) unsafe fn translate_pe(
    call: Call,
    src_team: TeamHandle,
    src_pe: c_int,
    dest_team: TeamHandle,
) -> c_int {
    let from = find_if_valid(call, "src_team", src_team);
    let into = find_if_valid(call, "dest_team", dest_team);
    let (Some(from), Some(into)) = (from, into) else { return -1 };
    let rank = usize::try_from(src_pe).ok().and_then(|rank| from.team.translate(rank, &into.team));
    rank.map_or(-1, |rank| rank as c_int)
}

/// `shmem_team_ptr`: as `shmem_ptr`, for the PE with a number in the team.
pub(crate) unsafe fn ptr(call: Call, team: TeamHandle, dest: *const c_void, pe: c_int) -> *mut c_void {
    let Some(team) = find_if_valid(call, "team", team) else { return null_mut() };
    match usize::try_from(pe) {
        Ok(rank) if rank < team.team.n_pes() => {
            library::of(call).mapped(dest, team.team.pe(rank)).unwrap_or(null_mut())
        }
        _ => null_mut(),
    }
}

/// The number of contexts that a configuration requests.
pub(crate) fn num_contexts(call: Call, config: *const TeamConfig, config_mask: c_long) -> c_int {
    if config_mask & TEAM_NUM_CONTEXTS == 0 {
        return 0;
    }
    if config.is_null() {
        fail(call, "the configuration is null, but its mask names a member of it");
    }
    // SAFETY: the caller's pointer is valid for one configuration.
    let count = unsafe { (*config).num_contexts };
    if count < 0 {
        fail(call, format_args!("num_contexts is {count}: give 0 or more"));
    }
    count
}

/// Ends the job if a split failed because of a mistake; otherwise the reason is lack of memory, on all
/// members alike.
pub(crate) fn refuse_mistakes(call: Call, error: &pelago::Error) {
    if !matches!(error.kind(), ErrorKind::PoolExhausted { .. } | ErrorKind::TooManyTeams { .. }) {
        fail(call, error);
    }
}

/// A handle for a team that was created.
pub(crate) fn hand_out(call: Call, team: pelago::Team<'static>, num_contexts: c_int) -> TeamHandle {
    match TEAMS.insert(Hot::CLOSED, Team::new(team, num_contexts)) {
        Some(address) => TeamHandle(address),
        None => fail(call, "there are too many teams; destroy those that are not needed any more"),
    }
}

/// Whether `size` ranks from `start` on, `stride` apart, are different members of a team of `n`: no
/// wrap-around, and stride 0 for one rank only.
fn is_triplet(n: usize, start: c_int, stride: c_int, size: c_int) -> bool {
    let last = i64::from(start) + i64::from(stride) * (i64::from(size) - 1);
    let is_rank = |rank: i64| (0..n as i64).contains(&rank);
    size >= 1 && is_rank(start.into()) && is_rank(last) && (stride != 0 || size == 1)
}

/// `shmem_team_split_strided`: "if an invalid PE triplet is provided, the team is SHMEM_TEAM_INVALID and the
/// value is nonzero", on all PEs of the parent.
#[expect(clippy::too_many_arguments, reason = "those of the C function")]
pub(crate) unsafe fn split_strided(
    call: Call,
    parent_team: TeamHandle,
    start: c_int,
    stride: c_int,
    size: c_int,
    config: *const TeamConfig,
    config_mask: c_long,
    new_team: *mut TeamHandle,
) -> c_int {
    // SAFETY: the caller's pointer is valid for one handle.
    unsafe { output(call, "new_team", new_team).write(TeamHandle::INVALID) };
    let Some(parent) = find_if_valid(call, "parent_team", parent_team) else { return 1 };
    if !is_triplet(parent.team.n_pes(), start, stride, size) {
        return 1;
    }
    let contexts = num_contexts(call, config, config_mask);
    match parent.team.split_strided(start as usize, stride as isize, size as usize) {
        Ok(team) => {
            let handle = team.map_or(TeamHandle::INVALID, |team| hand_out(call, team, contexts));
            // SAFETY: the caller's pointer is valid for one handle.
            unsafe { new_team.write(handle) };
            0
        }
        Err(error) => {
            refuse_mistakes(call, &error);
            1
        }
    }
}

/// `shmem_team_split_2d`: "x is pe mod xrange, y is pe / xrange".
#[expect(clippy::too_many_arguments, reason = "those of the C function")]
pub(crate) unsafe fn split_2d(
    call: Call,
    parent_team: TeamHandle,
    xrange: c_int,
    xaxis_config: *const TeamConfig,
    xaxis_mask: c_long,
    xaxis_team: *mut TeamHandle,
    yaxis_config: *const TeamConfig,
    yaxis_mask: c_long,
    yaxis_team: *mut TeamHandle,
) -> c_int {
    // SAFETY: the caller's pointers are valid for one handle each.
    unsafe {
        output(call, "xaxis_team", xaxis_team).write(TeamHandle::INVALID);
        output(call, "yaxis_team", yaxis_team).write(TeamHandle::INVALID);
    }
    let Some(parent) = find_if_valid(call, "parent_team", parent_team) else { return 1 };
    if xrange < 1 {
        return 1;
    }
    let contexts =
        [num_contexts(call, xaxis_config, xaxis_mask), num_contexts(call, yaxis_config, yaxis_mask)];
    match parent.team.split_2d(xrange as usize) {
        Ok((row, column)) => {
            // SAFETY: the caller's pointers are valid for one handle each.
            unsafe {
                xaxis_team.write(hand_out(call, row, contexts[0]));
                yaxis_team.write(hand_out(call, column, contexts[1]));
            }
            0
        }
        Err(error) => {
            refuse_mistakes(call, &error);
            1
        }
    }
}

/// `shmem_team_destroy`: ends the team's shareable contexts as well. The memory is reused once all members
/// have made this call; no member waits for that.
pub(crate) unsafe fn destroy(call: Call, team: TeamHandle) {
    let predefined = |name| fail(call, format_args!("team is {name}, which cannot be destroyed"));
    match team {
        TeamHandle::INVALID => return,
        TeamHandle::WORLD => predefined("SHMEM_TEAM_WORLD"),
        TeamHandle::SHARED => predefined("SHMEM_TEAM_SHARED"),
        TeamHandle::NODE => predefined("SHMEMX_TEAM_NODE"),
        _ => (),
    }
    let under_way = find(call, team).requests.load(Ordering::Relaxed);
    if under_way != 0 {
        fail(
            call,
            format_args!("{under_way} collective operations of the team are under way: wait for them first"),
        );
    }
    let spaces = find(call, team).spaces.load(Ordering::Relaxed);
    if spaces != 0 {
        fail(
            call,
            format_args!("{spaces} spaces of the team are left: call shmemx_space_destroy for them first"),
        );
    }
    let library = library::of(call);
    let contexts = std::mem::take(&mut *find(call, team).contexts());
    contexts.into_iter().for_each(|ctx| library.end_context(call, ctx));
    drop(TEAMS.remove(team.0));
}
