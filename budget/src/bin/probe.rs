//! The functions whose instructions `cargo xtask budget` counts, between mapped PEs.

use pelago::am::{Am, Handler, HandlerLock, Handlers};
use pelago::{
    AtomicOp, Atomics, Collective, Dimension, Indexed, On, ReduceOp, Strided, Symmetric, Team, World,
};
use pelago_budget::{Probe, probe, run};
use std::hint::black_box;
use std::ops::Range;

#[inline(never)]
fn put_checked(array: &Symmetric<'_, u64>, pe: usize, index: usize, value: u64) -> pelago::Result<()> {
    array.p(pe, index, value)
}

#[inline(never)]
fn put_slice_checked(array: &Symmetric<'_, u64>, pe: usize, index: usize, value: u64) -> pelago::Result<()> {
    array.put(pe, index, &[value])
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
fn get_bound(on: &On<'_, u64>, index: usize, into: &mut u64) -> pelago::Result<()> {
    *into = on.g(index)?;
    Ok(())
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
fn fetch_add_domain(words: &Atomics<'_, u64>, pe: usize, index: usize, value: u64) -> pelago::Result<u64> {
    words.fetch_add(pe, index, value)
}

#[inline(never)]
fn add_checked(array: &Symmetric<'_, u64>, pe: usize, index: usize, value: u64) -> pelago::Result<()> {
    array.add(pe, index, value)
}

/// 16 words of 8 bytes, every second one, to every third place; the compiler knows none of this.
#[inline(never)]
fn put_strided_16(
    array: &Symmetric<'_, u64>,
    pe: usize,
    source: &[u64],
    shape: &Strided,
) -> pelago::Result<()> {
    array.put_strided(pe, 5, source, shape)
}

/// The same, of two dimensions.
#[inline(never)]
fn put_dimensions_16(
    array: &Symmetric<'_, u64>,
    pe: usize,
    source: &[u64],
    shape: &[Dimension],
) -> pelago::Result<()> {
    array.put_strided(pe, 5, source, shape)
}

/// 16 words of 8 bytes to a list of places.
#[inline(never)]
fn put_indexed_16(
    array: &Symmetric<'_, u64>,
    pe: usize,
    source: &[u64],
    indices: &[usize],
) -> pelago::Result<()> {
    array.put_indexed(pe, source, &Indexed::elements(indices))
}

#[inline(never)]
fn quiet(world: &World) {
    world.quiet();
}

#[inline(never)]
fn fence(world: &World) {
    world.fence();
}

#[inline(never)]
fn barrier_alone(world: &World) {
    world.barrier();
}

#[inline(never)]
fn team_barrier_alone(team: &Team<'_>) {
    team.barrier();
}

#[inline(never)]
fn broadcast_alone(
    team: &Team<'_>,
    target: &Symmetric<'_, u64>,
    source: &Symmetric<'_, u64>,
) -> pelago::Result<()> {
    team.broadcast(0, target, source)
}

#[inline(never)]
fn all_reduce_alone(
    team: &Team<'_>,
    target: &Symmetric<'_, u64>,
    source: &Symmetric<'_, u64>,
) -> pelago::Result<()> {
    team.all_reduce(ReduceOp::Sum, target, source)
}

#[inline(never)]
fn am_short(am: &Am<'_>, to: usize, handler: Handler) -> pelago::Result<()> {
    am.short(to, handler, &[])
}

#[inline(never)]
fn am_short_8(am: &Am<'_>, to: usize, handler: Handler, args: &[u32; 8]) -> pelago::Result<()> {
    am.short(to, handler, args)
}

#[inline(never)]
fn am_poll(am: &Am<'_>) {
    am.poll();
}

/// 16 ranges of one word of 8 bytes each, from one slice.
#[inline(never)]
fn put_vector_16(
    array: &Symmetric<'_, u64>,
    pe: usize,
    ranges: &[Range<usize>],
    sources: &[&[u64]],
) -> pelago::Result<()> {
    array.put_vector(pe, ranges, sources)
}

/// The probes of scattered transfers.
fn scattered<'a>(array: &'a Symmetric<'_, u64>) -> [Probe<'a>; 4] {
    let words = [7; 32];
    let column = Strided { array_stride: 3, slice_stride: 2, ..Strided::elements(16) };
    let rows = [(12, 8), (3, 2)];
    let rows = rows.map(|(array_stride, slice_stride)| Dimension { count: 4, array_stride, slice_stride });
    let indices: [usize; 16] = std::array::from_fn(|i| i * 23 % 64);
    let ranges = indices.map(|index| index..index + 1);
    [
        probe(
            "put_strided_16",
            put_strided_16 as _,
            Box::new(move || drop(black_box(put_strided_16)(array, 0, &words, &column))),
        ),
        probe(
            "put_dimensions_16",
            put_dimensions_16 as _,
            Box::new(move || drop(black_box(put_dimensions_16)(array, 0, &words, &rows))),
        ),
        probe(
            "put_indexed_16",
            put_indexed_16 as _,
            Box::new(move || drop(black_box(put_indexed_16)(array, 0, &words[..16], &indices))),
        ),
        probe(
            "put_vector_16",
            put_vector_16 as _,
            Box::new(move || drop(black_box(put_vector_16)(array, 0, &ranges, &[&words[..16]]))),
        ),
    ]
}

fn main() -> pelago::Result<()> {
    let world = World::init()?;
    let mut handlers = Handlers::new();
    let handler = handlers.add("nothing", |_| ());
    world.team().serve(handlers, |am| probes(&world, am, handler))?
}

/// The probes of active messages.
fn am_probes<'a>(am: &'a Am<'a>, handler: Handler) -> [Probe<'a>; 3] {
    // While the lock is held nothing is executed. The sender's own look finds the message, as it is for this
    // PE, and leaves it where it is: that is counted as well.
    [
        probe("am_poll", am_poll as _, Box::new(|| black_box(am_poll)(am))),
        probe(
            "am_short",
            am_short as _,
            Box::new(move || {
                let lock = HandlerLock::new(());
                let _held = lock.lock();
                drop(black_box(am_short)(am, 0, handler));
            }),
        ),
        probe(
            "am_short_8",
            am_short_8 as _,
            Box::new(move || {
                let lock = HandlerLock::new(());
                let _held = lock.lock();
                drop(black_box(am_short_8)(am, 0, handler, &[1; 8]));
            }),
        ),
    ]
}

/// Prints the probes and runs them.
fn probes(world: &World, am: &Am<'_>, handler: Handler) -> pelago::Result<()> {
    let team = world.team();
    let (target, source) = (world.alloc_zeroed::<u64>(1)?, world.alloc_zeroed::<u64>(1)?);
    let array = world.alloc_zeroed::<u64>(64)?;
    let on = array.on(0)?;
    let domain = team.atomic_domain::<u64>(AtomicOp::Add)?;
    let words = domain.on_shared(&array)?;
    let mut probes: Vec<Probe<'_>> = vec![
        probe("put_checked", put_checked as _, Box::new(|| drop(black_box(put_checked)(&array, 0, 5, 42)))),
        probe(
            "put_slice_checked",
            put_slice_checked as _,
            Box::new(|| drop(black_box(put_slice_checked)(&array, 0, 5, 42))),
        ),
        probe("put_bound", put_bound as _, Box::new(|| drop(black_box(put_bound)(&on, 5, 42)))),
        probe(
            "get_checked",
            get_checked as _,
            Box::new(|| drop(black_box(get_checked)(&array, 0, 5, &mut 0))),
        ),
        probe("get_bound", get_bound as _, Box::new(|| drop(black_box(get_bound)(&on, 5, &mut 0)))),
        probe(
            "fetch_add_checked",
            fetch_add_checked as _,
            Box::new(|| drop(black_box(fetch_add_checked)(&array, 0, 5, 42))),
        ),
        probe(
            "fetch_add_bound",
            fetch_add_bound as _,
            Box::new(|| drop(black_box(fetch_add_bound)(&on, 5, 42))),
        ),
        probe(
            "fetch_add_domain",
            fetch_add_domain as _,
            Box::new(|| drop(black_box(fetch_add_domain)(&words, 0, 5, 42))),
        ),
        probe("add_checked", add_checked as _, Box::new(|| drop(black_box(add_checked)(&array, 0, 5, 42)))),
        probe("quiet", quiet as _, Box::new(|| black_box(quiet)(world))),
        probe("fence", fence as _, Box::new(|| black_box(fence)(world))),
        probe("barrier_alone", barrier_alone as _, Box::new(|| black_box(barrier_alone)(world))),
        probe(
            "team_barrier_alone",
            team_barrier_alone as _,
            Box::new(|| black_box(team_barrier_alone)(&team)),
        ),
        probe(
            "broadcast_alone",
            broadcast_alone as _,
            Box::new(|| drop(black_box(broadcast_alone)(&team, &target, &source))),
        ),
        probe(
            "all_reduce_alone",
            all_reduce_alone as _,
            Box::new(|| drop(black_box(all_reduce_alone)(&team, &target, &source))),
        ),
    ];
    probes.extend(am_probes(am, handler));
    probes.extend(scattered(&array));
    run(&probes);
    Ok(())
}
