//! Uses a small front door as a C program would: `pelago run -n 4 target/debug/examples/front_door`.
//!
//! Invariant: what is checked here is what the functions of `door.rs` promise.

mod door;

use door::*;
use pelago_core::messages::Message;
use pelago_fabric::sync::{AtomicU64, Ordering};

/// Adds the argument to the first word of the PE's memory, and replies with 1.
extern "C" fn on_add(
    message: &Message<'_>,
    _: usize,
    args: *const u32,
    _: usize,
    _: *const u8,
    bytes: usize,
) {
    // SAFETY: requests to this handler have an argument.
    COUNT.fetch_add(u64::from(unsafe { *args }) + bytes as u64, Ordering::Relaxed);
    fd_reply(message, 1, 1);
}

extern "C" fn on_reply(_: &Message<'_>, _: usize, _: *const u32, _: usize, _: *const u8, _: usize) {
    REPLIES.fetch_add(1, Ordering::Relaxed);
}

static COUNT: AtomicU64 = AtomicU64::new(0);
static REPLIES: AtomicU64 = AtomicU64::new(0);

fn main() {
    assert_eq!(fd_init(), 0);
    let (me, all) = (fd_my_pe(), fd_team_all());
    let memory = fd_alloc(64);
    // SAFETY: the handles come from the functions above, and are freed once.
    unsafe {
        one_sided(&*memory, &*all);
        messages();
        collective(&*all);
        fd_progress();
        assert!(!fd_has_left(me) && !fd_has_failed());
        println!("PE {me} of {}: passed", fd_n_pes());
        fd_team_free(all);
        fd_free(memory);
        fd_finalize();
    }
}

/// Puts, gets and atomics.
fn one_sided(memory: &Memory, all: &FdTeam) {
    let (me, n) = (fd_my_pe(), fd_n_pes());
    let right = (me + 1) % n;
    // SAFETY: every buffer has as many bytes as its call says.
    unsafe {
        fd_own(memory).write_bytes(0, fd_bytes(memory));
        fd_barrier(all);
        let number = (me as u64 + 1).to_ne_bytes();
        fd_put(memory, right, 8, number.as_ptr(), 4);
        fd_wait(fd_put_nb(memory, right, 12, number[4..].as_ptr(), 4));
        fd_add(memory, right, 0, 1);
        fd_wait_until(memory, 0, 1);
        fd_quiet();
        fd_barrier(all);
        let mut got = 0u64;
        fd_get((&raw mut got).cast(), memory, right, 8, 8);
        if got != me as u64 + 1 {
            fd_abort(3);
        }
        fd_fetch_add(memory, 0, 16, 2);
        fd_barrier(all);
        assert_eq!(fd_compare_swap(memory, me, 24, 0, 9), 0);
        assert_eq!((fd_swap(memory, me, 24, 7), fd_fetch_add(memory, 0, 16, 0)), (9, 2 * n as u64));
        assert!(fd_address(memory, me).is_null() || fd_address(memory, me) == fd_own(memory));
    }
}

/// A request to the right, and its reply.
fn messages() {
    let right = (fd_my_pe() + 1) % fd_n_pes();
    // SAFETY: every buffer has as many bytes as its call says.
    unsafe {
        let handlers: [FdHandler; 2] = [on_add, on_reply];
        fd_handlers(handlers.as_ptr(), 2);
        fd_request(right, 0, 5, [1u8; 3].as_ptr(), 3.min(fd_medium_max()));
        fd_poll();
        fd_messages_done();
        assert_eq!((COUNT.load(Ordering::Relaxed), REPLIES.load(Ordering::Relaxed)), (8, 1));
    }
}

/// Teams, and collective operations on private memory.
fn collective(all: &FdTeam) {
    let (me, n) = (fd_my_pe(), fd_n_pes());
    // SAFETY: every buffer has as many bytes as its call says; the teams are freed once.
    unsafe {
        let half = fd_team_split(all, me as u64 % 2, 0);
        let mut numbers = vec![me as f64; 20_000];
        let mut sums = vec![0.0; numbers.len()];
        fd_sum(&*half, sums.as_mut_ptr(), numbers.as_ptr(), numbers.len());
        let expected: usize = (me % 2..n).step_by(2).sum();
        assert!(sums.iter().all(|&sum| sum == expected as f64));
        let mine = [me as u8; 3000];
        let mut theirs = vec![0; 3000 * n];
        fd_all_gather(all, theirs.as_mut_ptr(), mine.as_ptr(), 3000);
        assert!((0..n).all(|pe| theirs[3000 * pe..][..3000].iter().all(|&byte| byte == pe as u8)));
        let blocks = theirs.clone();
        fd_all_to_all(all, theirs.as_mut_ptr(), blocks.as_ptr(), 3000);
        assert!(theirs.iter().all(|&byte| byte == me as u8));
        fd_broadcast(all, n - 1, numbers.as_mut_ptr().cast(), 8 * 20_000);
        assert!(numbers.iter().all(|&number| number == (n - 1) as f64));
        let first = fd_team_strided(all, 0, 1, 1);
        assert_eq!(first.is_null(), me != 0);
        if !first.is_null() {
            assert_eq!((fd_team_rank(&*first), fd_team_size(&*first)), (0, 1));
            fd_team_free(first);
        }
        fd_team_free(half);
    }
}
