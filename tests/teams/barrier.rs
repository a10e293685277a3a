//! The barrier's three forms: no PE leaves before all PEs have arrived, and all puts before it are complete.

use crate::common;
use pelago::prelude::*;
use pelago::sync::{AtomicUsize, Ordering};
use pelago::{BarrierKind, Spmd};

everywhere! {
    rounds_alone(1): rounds;
    rounds_of_two(2): rounds;
    rounds_of_seven(7): rounds;
}

const KINDS: [BarrierKind; 4] =
    [BarrierKind::Auto, BarrierKind::Flags, BarrierKind::Counter, BarrierKind::Dissemination];

/// Every PE writes its round to all PEs and, after a barrier, finds the rounds of all PEs.
fn rounds(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let array = world.alloc_zeroed::<u64>(n).unwrap();
    for round in 1..=common::rounds(world, 300, 10) {
        (0..n).for_each(|pe| array.p(pe, me, round).unwrap());
        world.barrier();
        for pe in 0..n {
            assert_eq!(array.local().get(pe), round, "PE {me} sees PE {pe} behind or ahead");
        }
        world.barrier();
    }
}

#[test]
fn every_form_and_number_of_pes() {
    for kind in KINDS {
        for n_pes in [1, 2, 3, 4, 5, 8, 13, 16, 17, 32] {
            Spmd::new(n_pes).barrier(kind).run(rounds).unwrap_or_else(|e| panic!("{kind:?} of {n_pes}: {e}"));
        }
    }
}

#[test]
fn every_form_between_processes() {
    let by_setting = |form: &str| {
        let report = pelago::try_processes!(3, [("PELAGO_BARRIER", form)], rounds);
        pelago::testing::expect_success(&report);
    };
    // In a copy of the test program the loop's first call runs the body and ends.
    ["flags", "counter", "dissemination"].into_iter().for_each(by_setting);
}

/// A barrier that a PE can never enter, because it has left, is an error and not a hang.
#[test]
fn a_pe_that_left_is_named() {
    for kind in KINDS {
        let outcome = Spmd::new(3).barrier(kind).run(|world| {
            if world.my_pe() != 1 {
                world.barrier();
            }
        });
        let text = outcome.unwrap_err().to_string();
        assert!(text.contains("PE 1 has left the job"), "{kind:?}: {text}");
    }
}

#[test]
fn a_wait_that_nobody_can_end_is_named() {
    let outcome = spmd(3, |world| {
        let flag = world.alloc_zeroed::<u32>(4).unwrap();
        if world.my_pe() == 2 {
            flag.local().wait_until(3, |value| value == 1);
        }
    });
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains("PE 2: waits for a change of element 3"), "{text}");
    assert!(text.contains("no other PE is left in the job"), "{text}");
}

/// A PE that waits for a PE that has panicked gives up because of the panic, not because of a time limit.
#[test]
fn a_failure_ends_the_waits_of_others() {
    let gave_up_quietly = AtomicUsize::new(0);
    let job = Spmd::new(3).wait_limit(std::time::Duration::from_secs(20));
    let outcome = job.run(|world| {
        let flag = world.alloc_zeroed::<u8>(1).unwrap();
        let wait = std::panic::AssertUnwindSafe(|| match world.my_pe() {
            0 => panic!("the first to fail"),
            1 => world.barrier(),
            _ => assert_eq!(flag.local().wait_until(0, |value| value == 1), 1),
        });
        let payload = std::panic::catch_unwind(wait).unwrap_err();
        if !payload.is::<String>() && !payload.is::<&str>() {
            gave_up_quietly.fetch_add(1, Ordering::Relaxed);
        }
        std::panic::resume_unwind(payload);
    });
    assert_eq!(outcome.unwrap_err().to_string(), "PE 0 panicked: the first to fail");
    assert_eq!(gave_up_quietly.load(Ordering::Relaxed), 2, "PEs 1 and 2");
}

/// A PE that has given up on a barrier cannot enter it a second time.
#[test]
fn a_caught_failure_does_not_arrive_twice() {
    for kind in KINDS {
        let passed = AtomicUsize::new(0);
        let outcome = Spmd::new(3).barrier(kind).run(|world| {
            if world.my_pe() != 1 {
                let barrier = || world.barrier();
                let first = std::panic::catch_unwind(std::panic::AssertUnwindSafe(barrier));
                let second = std::panic::catch_unwind(std::panic::AssertUnwindSafe(barrier));
                passed.fetch_add(usize::from(first.is_ok()) + usize::from(second.is_ok()), Ordering::Relaxed);
            }
        });
        assert!(outcome.unwrap_err().to_string().contains("PE 1 has left the job"), "{kind:?}");
        assert_eq!(passed.load(Ordering::Relaxed), 0, "{kind:?}");
    }
}

#[test]
fn waiting_alone_is_an_error() {
    let outcome = spmd(1, |world| {
        let flag = world.alloc_zeroed::<u8>(1).unwrap();
        flag.local().wait_until(0, |value| value == 1)
    });
    assert!(outcome.unwrap_err().to_string().contains("no other PE is left"));
}

/// PEs of other jobs in the process are no threads of this PE.
#[test]
fn jobs_that_wait_alone_do_not_wait_for_each_other() {
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(waiting_alone_is_an_error))));
}

/// Barriers that PEs choose differently would wait for each other for ever.
#[test]
fn different_barriers_are_found_when_joining() {
    fn here() {}
    let place = pelago::testing::Place { function: std::any::type_name_of_val(&here), line: line!() };
    let by_shell = |spec: &mut pelago::testing::JobSpec| {
        let setup = "[ $PMI_RANK = 0 ] && export PELAGO_BARRIER=counter";
        pelago::testing::through_shell(spec, setup);
    };
    let report = pelago::testing::run(&place, 2, by_shell, |_| unreachable!("init must fail"));
    let output: String = report.output.iter().map(|output| output.stderr.as_str()).collect();
    assert!(report.status != 0 && output.contains("PELAGO_BARRIER"), "{output}");
}

#[test]
fn a_wait_can_be_limited() {
    let limit = std::time::Duration::from_millis(20);
    let outcome = Spmd::new(2).wait_limit(limit).run(|world| {
        let flag = world.alloc_zeroed::<u8>(1).unwrap();
        flag.local().wait_until(0, |value| value == 1);
    });
    let text = outcome.unwrap_err().to_string();
    assert!(
        text.contains("has waited 20ms for a change of element 0") && text.contains("PELAGO_WAIT_LIMIT"),
        "{text}"
    );
}

/// A plain put rings no doorbell; the sleeper sees it nevertheless, while the PE that has put it computes.
#[test]
fn a_plain_put_wakes_a_sleeper() {
    spmd(2, |world| {
        let flag = world.alloc_zeroed::<u64>(1).unwrap();
        let done = world.alloc_zeroed::<u64>(1).unwrap();
        for round in 1..=20u64 {
            if world.my_pe() == 0 {
                // Long enough for the other PE to fall asleep; then no call of the runtime until it has
                // replied.
                let until = std::time::Instant::now() + std::time::Duration::from_millis(3);
                while std::time::Instant::now() < until {}
                flag.p(1, 0, round).unwrap();
                while done.local().get(0) != round {}
            } else {
                flag.local().wait_until(0, |value| value == round);
                done.p(0, 0, round).unwrap();
            }
        }
    })
    .unwrap();
}
