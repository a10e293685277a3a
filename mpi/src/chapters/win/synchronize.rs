//! Synchronisation: fences, post and start, locks, flushes.

use super::epoch::{Access, Token, expect};
use super::lock::{self, Hold};
use super::request::{COMPLETE, POST, tell};
use super::{Window, find, hot};
use crate::abi::*;
use crate::chapters::comm::barrier;
use crate::chapters::error::{self, Error, On, Result, ensure};
use crate::chapters::group;
use crate::chapters::library::{self, Mpi, output};
use pelago_fabric::sync::{Ordering, fence};

fn check_assert(assert: c_int, allowed: &[c_int], call: &str) -> Result {
    let all = allowed.iter().fold(0, |all, one| all | one);
    ensure!(
        assert & !all == 0,
        MPI_ERR_ASSERT,
        "assert is {assert}, but {call} knows only the bits {all} of it"
    );
    Ok(())
}

/// `MPI_Win_fence`: completes everything, and is a barrier, whatever the assertions are.
pub unsafe fn win_fence(mpi: &Mpi, assert: c_int, win: MPI_Win) -> Result {
    let window = find(win)?;
    let allowed = [MPI_MODE_NOSTORE, MPI_MODE_NOPUT, MPI_MODE_NOPRECEDE, MPI_MODE_NOSUCCEED];
    check_assert(assert, &allowed, "MPI_Win_fence")?;
    {
        let epoch = window.epoch();
        epoch.check_may_begin("MPI_Win_fence")?;
        ensure!(
            epoch.exposure.is_none(),
            MPI_ERR_RMA_SYNC,
            "MPI_Win_fence between MPI_Win_post and MPI_Win_wait. Wait first"
        );
    }
    // Others may send requests when they have passed the barrier.
    window.begin_service(mpi);
    let completed = window.complete_all(mpi);
    barrier(mpi, &window.comm)?;
    let opens = assert & MPI_MODE_NOSUCCEED == 0;
    window.epoch().access = if opens { Access::Fence } else { Access::None };
    window.record.is_open.store(opens, Ordering::Relaxed);
    completed
}

/// The ranks in the window of the members of a group.
fn ranks_of(window: &Window, group: MPI_Group) -> Result<Vec<usize>> {
    let group = group::find(group)?;
    let rank = |&pe: &usize| window.comm.group.rank_of(pe);
    let ranks: Option<Vec<usize>> = group.pes().iter().map(rank).collect();
    ranks.ok_or_else(|| {
        Error::new(MPI_ERR_GROUP, "the group has a process that the window does not have. Take a subset")
    })
}

/// `MPI_Win_start`: does not wait. The first access to a part waits for its process to post.
pub unsafe fn win_start(mpi: &Mpi, group: MPI_Group, assert: c_int, win: MPI_Win) -> Result {
    let window = find(win)?;
    check_assert(assert, &[MPI_MODE_NOCHECK], "MPI_Win_start")?;
    let ranks = ranks_of(window, group)?;
    window.epoch().check_may_begin("MPI_Win_start")?;
    window.close_access();
    let is_awaited = assert & MPI_MODE_NOCHECK == 0;
    let token = |rank| match is_awaited {
        true => expect(mpi, window, rank, POST),
        false => Token { rank, receive: None },
    };
    let tokens: Vec<Token> = ranks.into_iter().map(token).collect();
    for token in tokens.iter().filter(|token| token.receive.is_none()) {
        window.parts[token.rank].is_open.store(true, Ordering::Relaxed);
    }
    window.epoch().access = Access::Start(tokens);
    Ok(())
}

/// `MPI_Win_complete`.
pub unsafe fn win_complete(mpi: &Mpi, win: MPI_Win) -> Result {
    let window = find(win)?;
    let mut tokens = {
        let mut epoch = window.epoch();
        let Access::Start(tokens) = &mut epoch.access else {
            return Err(Error::new(
                MPI_ERR_RMA_SYNC,
                format!("MPI_Win_complete within {}. Call MPI_Win_start first", epoch.access.name()),
            ));
        };
        let tokens = std::mem::take(tokens);
        epoch.access = Access::None;
        tokens
    };
    let completed = window.complete_all(mpi);
    window.close_access();
    for token in &mut tokens {
        token.wait(mpi);
        tell(mpi, window, token.rank, COMPLETE);
    }
    completed
}

/// `MPI_Win_post`.
pub unsafe fn win_post(mpi: &Mpi, group: MPI_Group, assert: c_int, win: MPI_Win) -> Result {
    let window = find(win)?;
    check_assert(assert, &[MPI_MODE_NOCHECK, MPI_MODE_NOSTORE, MPI_MODE_NOPUT], "MPI_Win_post")?;
    let ranks = ranks_of(window, group)?;
    ensure!(
        window.epoch().exposure.is_none(),
        MPI_ERR_RMA_SYNC,
        "MPI_Win_post within an epoch of MPI_Win_post. Call MPI_Win_wait first"
    );
    window.begin_service(mpi);
    if assert & MPI_MODE_NOCHECK == 0 {
        ranks.iter().for_each(|&rank| tell(mpi, window, rank, POST));
    }
    let tokens = ranks.into_iter().map(|rank| expect(mpi, window, rank, COMPLETE)).collect();
    window.epoch().exposure = Some(tokens);
    Ok(())
}

fn take_exposure(window: &Window, call: &str) -> Result<Vec<Token>> {
    let tokens = window.epoch().exposure.take();
    tokens.ok_or_else(|| {
        Error::new(MPI_ERR_RMA_SYNC, format!("{call} without MPI_Win_post. Call MPI_Win_post first"))
    })
}

/// `MPI_Win_wait`.
pub unsafe fn win_wait(mpi: &Mpi, win: MPI_Win) -> Result {
    let window = find(win)?;
    let mut tokens = take_exposure(window, "MPI_Win_wait")?;
    tokens.iter_mut().for_each(|token| token.wait(mpi));
    fence(Ordering::SeqCst);
    Ok(())
}

/// `MPI_Win_test`.
pub unsafe fn win_test(mpi: &Mpi, win: MPI_Win, flag: *mut c_int) -> Result {
    let (window, flag) = (find(win)?, output("flag", flag)?);
    let mut tokens = take_exposure(window, "MPI_Win_test")?;
    mpi.core.progress();
    tokens.retain_mut(|token| !token.test(mpi));
    let is_over = mpi.core.note_test(tokens.is_empty());
    match is_over {
        true => fence(Ordering::SeqCst),
        false => window.epoch().exposure = Some(tokens),
    }
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { flag.write(is_over.into()) };
    Ok(())
}

/// `MPI_Win_lock`.
pub unsafe fn win_lock(mpi: &Mpi, lock_type: c_int, rank: c_int, assert: c_int, win: MPI_Win) -> Result {
    let window = find(win)?;
    let hold = match lock_type {
        MPI_LOCK_EXCLUSIVE => Hold::Exclusive,
        MPI_LOCK_SHARED => Hold::Shared,
        _ => {
            return Err(Error::new(
                MPI_ERR_LOCKTYPE,
                format!("lock_type is {lock_type}. Give MPI_LOCK_EXCLUSIVE or MPI_LOCK_SHARED"),
            ));
        }
    };
    check_assert(assert, &[MPI_MODE_NOCHECK], "MPI_Win_lock")?;
    if rank == MPI_PROC_NULL {
        let mut epoch = window.epoch();
        window.open_locks(&mut epoch)?;
        epoch.proc_null_locks += 1;
        window.record.is_passive.store(true, Ordering::Relaxed);
        return Ok(());
    }
    let rank = window.rank(rank)?;
    let hold = if assert & MPI_MODE_NOCHECK != 0 { Hold::Unchecked } else { hold };
    let has_others = {
        let mut epoch = window.epoch();
        window.open_locks(&mut epoch)?;
        ensure!(
            !epoch.locks.contains_key(&rank),
            MPI_ERR_RMA_SYNC,
            "MPI_Win_lock of rank {rank}, whose lock this process holds. Unlock it first"
        );
        epoch.locks.insert(rank, hold);
        epoch.locks.len() > 1
    };
    let part = &window.parts[rank];
    lock::acquire(mpi, &part.peer, hold, has_others);
    window.record.is_passive.store(true, Ordering::Relaxed);
    part.is_open.store(true, Ordering::Relaxed);
    Ok(())
}

/// `MPI_Win_unlock`.
pub unsafe fn win_unlock(mpi: &Mpi, rank: c_int, win: MPI_Win) -> Result {
    let window = find(win)?;
    if rank == MPI_PROC_NULL {
        let mut epoch = window.epoch();
        ensure!(epoch.proc_null_locks > 0, MPI_ERR_RMA_SYNC, "{}", not_locked("MPI_PROC_NULL"));
        epoch.proc_null_locks -= 1;
        window.close_locks(&mut epoch);
        return Ok(());
    }
    let rank = window.rank(rank)?;
    let hold = {
        let epoch = window.epoch();
        let held = epoch.locks.get(&rank).copied();
        let held = held.filter(|_| matches!(epoch.access, Access::Locks));
        held.ok_or_else(|| Error::new(MPI_ERR_RMA_SYNC, not_locked(&format!("rank {rank}"))))?
    };
    window.serve(mpi);
    let part = &window.parts[rank];
    let completed = complete(mpi, window, rank);
    part.is_open.store(false, Ordering::Relaxed);
    lock::release(mpi, &part.peer, hold);
    let mut epoch = window.epoch();
    epoch.locks.remove(&rank);
    window.close_locks(&mut epoch);
    completed
}

#[cold]
fn not_locked(target: &str) -> String {
    format!("MPI_Win_unlock of {target}, which MPI_Win_lock has not locked")
}

/// Completes the operations on a target.
fn complete(mpi: &Mpi, window: &Window, rank: usize) -> Result {
    mpi.core.quiet();
    if window.outstanding.is_any() { window.complete(mpi, rank) } else { Ok(()) }
}

/// `MPI_Win_lock_all`. Locks of parts that the program reaches by calls only are taken at the first of them.
pub unsafe fn win_lock_all(mpi: &Mpi, assert: c_int, win: MPI_Win) -> Result {
    let window = find(win)?;
    check_assert(assert, &[MPI_MODE_NOCHECK], "MPI_Win_lock_all")?;
    let hold = if assert & MPI_MODE_NOCHECK != 0 { Hold::Unchecked } else { Hold::Shared };
    window.epoch().check_may_begin("MPI_Win_lock_all")?;
    window.close_access();
    // Loads and stores take no locks. The own part of a dynamic window has no address, but is accessed by
    // them.
    let me = window.comm.my_rank();
    let near = (0..window.len()).filter(|&rank| rank == me || !window.parts[rank].mapped(mpi).is_null());
    if hold == Hold::Shared {
        lock::let_go_first(mpi, near.clone().map(|rank| &window.parts[rank].peer));
    }
    for rank in near {
        let part = &window.parts[rank];
        let has_others = !window.epoch().locks.is_empty();
        lock::acquire(mpi, &part.peer, hold, has_others);
        window.epoch().locks.insert(rank, hold);
        if part.base.is_null() {
            // Operations need not take it late.
            part.is_open.store(true, Ordering::Relaxed);
        }
    }
    window.epoch().access = Access::LockAll(hold);
    window.record.is_passive.store(true, Ordering::Relaxed);
    window.record.is_open.store(true, Ordering::Relaxed);
    Ok(())
}

/// `MPI_Win_unlock_all`.
pub unsafe fn win_unlock_all(mpi: &Mpi, win: MPI_Win) -> Result {
    let window = find(win)?;
    let name = window.epoch().access.name();
    let is_held = matches!(window.epoch().access, Access::LockAll(_));
    ensure!(is_held, MPI_ERR_RMA_SYNC, "MPI_Win_unlock_all within {name}. Call MPI_Win_lock_all first");
    window.serve(mpi);
    let completed = window.complete_all(mpi);
    window.close_access();
    let locks = std::mem::take(&mut window.epoch().locks);
    locks.iter().for_each(|(&rank, &hold)| lock::release(mpi, &window.parts[rank].peer, hold));
    window.epoch().access = Access::None;
    completed
}

/// Refuses a flush outside an epoch of locks.
#[cold]
fn no_flush(window: &Window, call: &str) -> Error {
    let name = window.epoch().access.name();
    Error::new(
        MPI_ERR_RMA_SYNC,
        format!(
            "{call} within {name}. Flushes are for targets that are locked (MPI_Win_lock, MPI_Win_lock_all)"
        ),
    )
}

/// `MPI_Win_flush`: only a fence where operations are complete at return.
#[inline(always)]
pub unsafe fn win_flush(rank: c_int, win: MPI_Win) -> c_int {
    if let Some(record) = hot::last(win)
        && record.is_flushed_by_fence(rank)
    {
        // The full fence keeps later loads behind the stores of puts.
        fence(Ordering::SeqCst);
        return MPI_SUCCESS;
    }
    flush_slowly(rank, win)
}

#[cold]
#[inline(never)]
extern "C-unwind" fn flush_slowly(rank: c_int, win: MPI_Win) -> c_int {
    const NAME: &str = "MPI_Win_flush";
    let Some(mpi) = library::get() else { return error::not_initialized(NAME) };
    let flushed = find(win).and_then(|window| {
        window.record.note_used();
        window.serve(mpi);
        match locked_rank(window, rank, NAME)? {
            Some(rank) => complete(mpi, window, rank),
            None => Ok(()),
        }
    });
    flushed.map_or_else(|error| error::raise(NAME, error, &[Some(On::Win(win))]), |()| MPI_SUCCESS)
}

/// The rank of a target that is locked; `None` for no process.
fn locked_rank(window: &Window, rank: c_int, call: &str) -> Result<Option<usize>> {
    if rank == MPI_PROC_NULL {
        return Ok(None);
    }
    let rank = window.rank(rank)?;
    let is_open =
        window.parts[rank].is_open.load(Ordering::Relaxed) || window.record.is_open.load(Ordering::Relaxed);
    match window.record.is_passive.load(Ordering::Relaxed) && is_open {
        true => Ok(Some(rank)),
        false => Err(no_flush(window, call)),
    }
}

/// `MPI_Win_flush_all`.
pub unsafe fn win_flush_all(mpi: &Mpi, win: MPI_Win) -> Result {
    let window = find(win)?;
    if !window.record.is_passive.load(Ordering::Relaxed) {
        return Err(no_flush(window, "MPI_Win_flush_all"));
    }
    window.serve(mpi);
    window.complete_all(mpi)
}

/// `MPI_Win_flush_local`.
pub unsafe fn win_flush_local(mpi: &Mpi, rank: c_int, win: MPI_Win) -> Result {
    let window = find(win)?;
    window.serve(mpi);
    match locked_rank(window, rank, "MPI_Win_flush_local")? {
        Some(rank) => window.complete_locally(mpi, rank),
        None => Ok(()),
    }
}

/// `MPI_Win_flush_local_all`.
pub unsafe fn win_flush_local_all(mpi: &Mpi, win: MPI_Win) -> Result {
    let window = find(win)?;
    if !window.record.is_passive.load(Ordering::Relaxed) {
        return Err(no_flush(window, "MPI_Win_flush_local_all"));
    }
    window.serve(mpi);
    if !window.outstanding.is_any() {
        return Ok(());
    }
    (0..window.len()).map(|rank| window.complete_locally(mpi, rank)).fold(Ok(()), Result::and)
}

/// `MPI_Win_sync`: the two copies of the window are one, so that it orders loads and stores.
pub unsafe fn win_sync(mpi: &Mpi, win: MPI_Win) -> Result {
    find(win)?;
    fence(Ordering::SeqCst);
    // A loop of it and of loads makes progress, as other processes may need this one's.
    mpi.core.progress();
    Ok(())
}
