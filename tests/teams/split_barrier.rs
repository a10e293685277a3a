//! The split-phase barrier: no PE's wait ends before all PEs have notified, earlier puts are complete, values
//! are compared at every PE, and calls in the wrong order are errors.

use crate::common;
use pelago::prelude::*;
use pelago::{ErrorKind, Spmd};

everywhere! {
    alone(1): phases;
    of_two(2): phases;
    of_five(5): phases;
    values_that_differ(4): values_that_differ;
    of_teams(4): of_teams;
    out_of_turn(2): out_of_turn;
}

/// Every PE writes its phase to all PEs and, when the phase is over, finds the phases of all PEs.
fn phases(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let array = world.alloc_zeroed::<u64>(2 * n).unwrap();
    let barrier = world.split_barrier().unwrap();
    for phase in 1..=common::rounds(world, 100, 6) {
        // Two rows in turn: a PE that is ahead writes the next phase to the other row.
        let row = n * (phase % 2) as usize;
        (0..n).for_each(|pe| array.p(pe, row + me, phase).unwrap());
        match phase % 3 {
            0 => barrier.notify().unwrap(),
            _ => barrier.notify_with(phase).unwrap(),
        }
        match phase % 4 {
            0 => barrier.wait().unwrap(),
            1 => barrier.wait_with(phase).unwrap(),
            2 => while !barrier.try_wait().unwrap() {},
            _ => while !barrier.try_wait_with(phase).unwrap() {},
        }
        for pe in 0..n {
            assert_eq!(array.local().get(row + pe), phase, "PE {me} sees PE {pe} behind");
        }
        // Between two phases other collective calls are permitted.
        if phase % 5 == 0 {
            world.barrier();
        }
    }
    drop(barrier);
    world.barrier();
}

fn mismatch(outcome: pelago::Result<()>) -> (u64, (usize, u64), (usize, u64)) {
    match outcome.unwrap_err().kind() {
        &ErrorKind::PhaseMismatch { phase, pe, value, other_pe, other_value, .. } => {
            (phase, (pe, value), (other_pe, other_value))
        }
        other => panic!("another error: {other}"),
    }
}

/// A mismatch is reported at every PE, with both values, and the next phase works.
fn values_that_differ(world: &World) {
    let me = world.my_pe();
    let barrier = world.split_barrier().unwrap();
    // PE 1 gives 9, PE 3 none, the others 4.
    match me {
        1 => barrier.notify_with(9).unwrap(),
        3 => barrier.notify().unwrap(),
        _ => barrier.notify_with(4).unwrap(),
    }
    assert_eq!(mismatch(barrier.wait()), (1, (0, 4), (1, 9)));
    // Only one gives a value at all.
    if me == 2 { barrier.notify_with(5) } else { barrier.notify() }.unwrap();
    barrier.wait_with(5).unwrap();
    // The wait of PE 3 expects another value.
    barrier.notify_with(6).unwrap();
    match me {
        3 => assert_eq!(mismatch(barrier.wait_with(7)), (3, (0, 6), (3, 7))),
        _ => barrier.wait_with(6).unwrap(),
    }
    // By try_wait as well, and with the greatest values.
    barrier.notify_with(if me == 0 { u64::MAX } else { 0 }).unwrap();
    let outcome = loop {
        match barrier.try_wait() {
            Ok(false) => continue,
            outcome => break outcome.map(drop),
        }
    };
    let text = outcome.as_ref().unwrap_err().to_string();
    assert_eq!(mismatch(outcome), (4, (1, 0), (0, u64::MAX)));
    assert!(text.starts_with(&format!("PE {me}: the PEs disagree in phase 4")), "{text}");
    barrier.notify().unwrap();
    barrier.wait().unwrap();
}

/// The barriers of two teams are independent; the world's barrier is open meanwhile.
fn of_teams(world: &World) {
    let me = world.my_pe();
    let team = world.team().split_by(Some(me as u64 % 2), 0).unwrap().unwrap();
    let space = team.space(1 << 14).unwrap();
    let barrier = space.split_barrier().unwrap();
    let data = space.alloc_zeroed::<u64>(1).unwrap();
    for round in 1..=common::rounds(world, 50, 3) {
        data.p(1 - team.my_rank(), 0, round).unwrap();
        barrier.notify_with(me as u64 % 2).unwrap();
        barrier.wait_with(me as u64 % 2).unwrap();
        assert_eq!(data.local().get(0), round);
        world.barrier();
    }
    barrier.notify_with(me as u64).unwrap();
    world.barrier();
    let (low, high) = (me % 2, me % 2 + 2);
    let told = mismatch(barrier.wait());
    assert_eq!((told.1, told.2), ((low, low as u64), (high, high as u64)), "PEs of the world are named");
}

/// Calls that do not follow each other are refused, and do no harm.
fn out_of_turn(world: &World) {
    let barrier = world.split_barrier().unwrap();
    let refused = |outcome: pelago::Result<()>, phase: u64, words: &str| {
        let error = outcome.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BadPhase { phase: p, .. } if *p == phase), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    };
    let has_not = "this PE has not notified";
    refused(barrier.wait(), 0, has_not);
    refused(barrier.wait_with(1), 0, has_not);
    refused(barrier.try_wait().map(drop), 0, has_not);
    barrier.notify().unwrap();
    refused(barrier.notify(), 1, "this PE has notified already");
    refused(barrier.notify_with(3), 1, "this PE has notified already");
    barrier.wait().unwrap();
    refused(barrier.wait(), 1, has_not);
    refused(barrier.try_wait_with(1).map(drop), 1, has_not);
    let another = world.split_barrier().unwrap();
    barrier.notify().unwrap();
    refused(another.notify(), 0, "another split-phase barrier is between notify and wait");
    barrier.wait().unwrap();
    another.notify().unwrap();
    another.wait().unwrap();
    // A barrier that is dropped between notify and wait does not block the world.
    another.notify().unwrap();
    drop(another);
    world.barrier();
}

/// A barrier of the world in between ends the job with an error message, and so does a call that contains
/// one.
#[test]
fn a_meeting_in_between_is_told() {
    let meetings: [fn(&World); 3] =
        [|world| world.barrier(), |world| drop(world.alloc::<u8>(1)), |world| drop(world.reclaim())];
    for meeting in meetings {
        for is_simulated in [false, true] {
            let job = Spmd::new(2);
            let job = if is_simulated { job.sim(Default::default()) } else { job };
            let outcome = job.run(|world| {
                let barrier = world.split_barrier().unwrap();
                barrier.notify().unwrap();
                meeting(world);
            });
            let text = outcome.unwrap_err().to_string();
            assert!(text.contains("between notify and wait of a split-phase barrier"), "{text}");
        }
    }
}

/// A PE that waits for a PE that never notifies gets the error that it has left.
#[test]
fn a_pe_that_leaves_is_named() {
    let outcome = spmd(3, |world| {
        let barrier = world.split_barrier().unwrap();
        if world.my_pe() != 1 {
            barrier.notify().unwrap();
            barrier.wait().unwrap();
        }
    });
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains("has left the job"), "{text}");
}
