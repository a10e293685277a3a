//! The functions whose instructions `cargo xtask budget` counts over a net: one PE, which reaches its own
//! memory through a library that looks like libfabric and does next to nothing.

use pelago::{ContextKind, Symmetric, View, World};
use pelago_budget::{probe, run};
use std::hint::black_box;

#[inline(never)]
fn put_net(array: &Symmetric<'_, u64>, pe: usize, index: usize, value: u64) -> pelago::Result<()> {
    array.p(pe, index, value)
}

#[inline(never)]
fn put_context_net(view: &View<'_, u64>, pe: usize, index: usize, value: u64) -> pelago::Result<()> {
    view.p(pe, index, value)
}

#[inline(never)]
fn put_slice_net(array: &Symmetric<'_, u64>, pe: usize, source: &[u64]) -> pelago::Result<()> {
    array.put(pe, 0, source)
}

#[inline(never)]
fn get_net(array: &Symmetric<'_, u64>, pe: usize, index: usize) -> pelago::Result<u64> {
    array.g(pe, index)
}

#[inline(never)]
fn third_get_net(array: &Symmetric<'_, u64>, pe: usize, index: usize) -> pelago::Result<u64> {
    array.g(pe, index)
}

#[inline(never)]
fn quiet_net(world: &World) {
    world.quiet();
}

fn main() -> pelago::Result<()> {
    let world = World::init()?;
    let fabric = world.fabric();
    assert!(fabric.as_ref().is_some_and(|name| name.contains("null")), "counted over {fabric:?}");
    let array = world.alloc::<u64>(64)?;
    let context = world.context(ContextKind::Private)?;
    let through = array.via(&context);
    let after_a_put = || {
        array.p(0, 6, 1)?;
        // The first one sees nothing but gets from here on, the second one that all is quiet.
        array.g(0, 5)?;
        array.g(0, 5)?;
        black_box(third_get_net)(&array, 0, 5)
    };
    run(&[
        probe("put_net", put_net as _, Box::new(|| drop(black_box(put_net)(&array, 0, 5, 42)))),
        probe(
            "put_context_net",
            put_context_net as _,
            Box::new(|| drop(black_box(put_context_net)(&through, 0, 5, 42))),
        ),
        probe(
            "put_slice_net",
            put_slice_net as _,
            Box::new(|| drop(black_box(put_slice_net)(&array, 0, &[1; 3]))),
        ),
        // The first call, which is not counted, completes the puts before it.
        probe("quiet_net", quiet_net as _, Box::new(|| black_box(quiet_net)(&world))),
        // Alone, as all is quiet.
        probe("get_net", get_net as _, Box::new(|| drop(black_box(get_net)(&array, 0, 5)))),
        probe("third_get_net", third_get_net as _, Box::new(|| drop(after_a_put()))),
    ]);
    Ok(())
}
