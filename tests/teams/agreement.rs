//! Agreement on collective constructors: the kind of the object is part of it.

use pelago::Space;
use pelago::distributed::BlockSize;
use pelago::prelude::*;
use pelago::upc::SemaphoreKind;

everywhere! {
    kinds_of_objects(3): kinds_of_objects;
    kinds_of_objects_in_spaces(3): kinds_of_objects_in_spaces;
}

/// The elements of a shared or distributed array of three PEs, of which each has 64 bytes.
const LEN: usize = 24;

/// A call that creates an object on `Of`: its name in messages, and its code.
type Maker<Of> = (&'static str, fn(&Of) -> pelago::Result<()>);

/// Calls that make objects, of the same size where that can be.
const MAKERS: [Maker<World>; 10] = [
    ("distributed_array(24 elements", |w| w.distributed_array::<u64>(LEN, BlockSize::Even).map(drop)),
    ("shared_array(24 elements", |w| w.shared_array::<u64>(LEN, BlockSize::Even).map(drop)),
    ("alloc_zeroed(64 bytes", |w| w.alloc_zeroed::<u64>(8).map(drop)),
    ("alloc(64 bytes", |w| w.alloc::<u64>(8).map(drop)),
    ("semaphores(1 a PE", |w| w.semaphores(1, SemaphoreKind::integer()).map(drop)),
    ("lock(8 bytes", |w| w.lock().map(drop)),
    ("alloc_zeroed(8 bytes", |w| w.alloc_zeroed::<u32>(2).map(drop)),
    ("foundry(72 bytes", |w| w.foundry().map(drop)),
    ("split_barrier(40 bytes", |w| w.split_barrier().map(drop)),
    ("alloc_zeroed(40 bytes", |w| w.alloc_zeroed::<u64>(5).map(drop)),
];

/// The error of every PE names both kinds, and the next common call succeeds.
fn tell_kinds_apart<Of>(world: &World, of: &Of, makers: &[Maker<Of>]) {
    for (i, (mine, make)) in makers.iter().enumerate() {
        for (theirs, make_other) in &makers[i + 1..] {
            let outcome = if world.my_pe() == 0 { make(of) } else { make_other(of) };
            let text = outcome.expect_err(&format!("{mine} agrees with {theirs}")).to_string();
            assert!(text.contains(mine) && text.contains(theirs), "{text}, not {mine} and {theirs}");
        }
        make(of).unwrap();
    }
}

fn kinds_of_objects(world: &World) {
    tell_kinds_apart(world, world, &MAKERS);
}

/// The same in a space.
fn kinds_of_objects_in_spaces(world: &World) {
    let makers: [Maker<Space<'_>>; 6] = [
        ("distributed_array(24 elements", |s| s.distributed_array::<u64>(LEN, BlockSize::Even).map(drop)),
        ("shared_array(24 elements", |s| s.shared_array::<u64>(LEN, BlockSize::Even).map(drop)),
        ("alloc_zeroed(64 bytes", |s| s.alloc_zeroed::<u64>(8).map(drop)),
        ("semaphores(1 a PE", |s| s.semaphores(1, SemaphoreKind::integer()).map(drop)),
        ("split_barrier(40 bytes", |s| s.split_barrier().map(drop)),
        ("alloc_zeroed(40 bytes", |s| s.alloc_zeroed::<u64>(5).map(drop)),
    ];
    let space = world.team().space(1 << 16).unwrap();
    tell_kinds_apart(world, &space, &makers);
}
