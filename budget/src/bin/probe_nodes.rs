//! The functions whose instructions `cargo xtask budget` counts in a job of two nodes, between PEs of the
//! same node: they are to cost what they cost in a job of one.

use pelago::message::Received;
use pelago::{On, Symmetric, Team, World};
use pelago_budget::{probe, run};
use std::hint::black_box;
use std::time::{Duration, Instant};

#[inline(never)]
fn put_checked(array: &Symmetric<'_, u64>, pe: usize, index: usize, value: u64) -> pelago::Result<()> {
    array.p(pe, index, value)
}

#[inline(never)]
fn get_checked(array: &Symmetric<'_, u64>, pe: usize, index: usize, into: &mut u64) -> pelago::Result<()> {
    *into = array.g(pe, index)?;
    Ok(())
}

#[inline(never)]
fn put_bound(on: &On<'_, u64>, index: usize, value: u64) -> pelago::Result<()> {
    on.p(index, value)
}

#[inline(never)]
fn fetch_add_checked(array: &Symmetric<'_, u64>, pe: usize, index: usize, value: u64) -> pelago::Result<u64> {
    array.fetch_add(pe, index, value)
}

#[inline(never)]
fn fetch_add_bound(on: &On<'_, u64>, index: usize, value: u64) -> pelago::Result<u64> {
    on.fetch_add(index, value)
}

#[inline(never)]
fn quiet(world: &World) {
    world.quiet();
}

#[inline(never)]
fn send(team: &Team<'_>, to: usize, data: &[u64]) -> pelago::Result<()> {
    team.send(to, 1, data)
}

#[inline(never)]
fn receive(team: &Team<'_>, from: usize, into: &mut [u64]) -> pelago::Result<Received> {
    team.receive(from, 1, into)
}

/// The element that PE 0 sets when all is counted, and how long the others look at it.
const END: usize = 63;
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> pelago::Result<()> {
    let world = World::init()?;
    let array = world.alloc_zeroed::<u64>(64)?;
    let me = world.my_pe();
    let team = world.team();
    if me != 0 {
        // Before the barrier, so that PE 0 finds them: one to warm up, one to be counted.
        let sends = if array.ptr(0).is_some() { 2 } else { 0 };
        (0..sends).try_for_each(|_| team.send(0, 1, &[7u64]))?;
        world.barrier();
        // A PE that sleeps would have to be woken by what is counted, so that this one looks until the end.
        let start = Instant::now();
        while array.g(me, END)? == 0 {
            assert!(start.elapsed() < PATIENCE, "PE {me}: PE 0 has not counted within {PATIENCE:?}");
            std::thread::yield_now();
        }
        return Ok(());
    }
    world.barrier();
    let is_near = |&pe: &usize| pe != me && array.ptr(pe).is_some();
    let near = (0..world.n_pes()).find(is_near).expect("another PE of this node is mapped");
    let is_far = |pe: usize| array.ptr(pe).is_none();
    assert!((0..world.n_pes()).any(is_far), "a PE of another node is not");
    let on = array.on(near)?;
    world.quiet();
    run(&[
        probe(
            "put_checked",
            put_checked as _,
            Box::new(|| drop(black_box(put_checked)(&array, near, 5, 42))),
        ),
        probe(
            "get_checked",
            get_checked as _,
            Box::new(|| drop(black_box(get_checked)(&array, near, 5, &mut 0))),
        ),
        probe("put_bound", put_bound as _, Box::new(|| drop(black_box(put_bound)(&on, 5, 42)))),
        probe(
            "fetch_add_checked",
            fetch_add_checked as _,
            Box::new(|| drop(black_box(fetch_add_checked)(&array, near, 5, 42))),
        ),
        probe(
            "fetch_add_bound",
            fetch_add_bound as _,
            Box::new(|| drop(black_box(fetch_add_bound)(&on, 5, 42))),
        ),
        probe("quiet", quiet as _, Box::new(|| black_box(quiet)(&world))),
        probe("send", send as _, Box::new(|| drop(black_box(send)(&team, near, &[7])))),
        probe("receive", receive as _, Box::new(|| drop(black_box(receive)(&team, near, &mut [0])))),
    ]);
    (1..world.n_pes()).try_for_each(|pe| array.p(pe, END, 1))?;
    world.quiet();
    Ok(())
}
