//! A failed wait is reported with the line of the program that waits, not with one of the library.

use pelago::am::Handlers;
use pelago::prelude::*;
use pelago::upc::SemaphoreKind;
use pelago::{Collective, Comparison, ReduceOp, event, try_processes};
use pelago_boot::JobReport;

/// PE 1 fails soon when it waits for PE 0, which makes no call and is ended with the job.
const LIMIT: (&str, &str) = ("PELAGO_WAIT_LIMIT", "0.2");

fn stay_away() -> ! {
    loop {
        std::thread::park();
    }
}

/// Fails unless PE 1 has failed in a wait that began at one of the lines from this on, in this file.
#[track_caller]
fn assert_place(report: &JobReport, awaited: &str) {
    let [failure] = &report.failures[..] else { panic!("not one failure: {report:#?}") };
    assert_eq!(failure.pe, Some(1), "{report:#?}");
    let is_of_program = failure.text.contains("tests/jobs/places.rs:");
    assert!(is_of_program && failure.text.contains(awaited), "not a wait for {awaited}: {}", failure.text);
}

/// Runs a wait on PE 1 of two, on both routes, after some code that both execute.
macro_rules! place {
    ($name:ident, $awaited:literal, |$world:ident| { $($before:stmt;)* } $wait:expr) => {
        #[test]
        fn $name() {
            for route in ["auto", "net"] {
                let report = try_processes!(2, [LIMIT, ("PELAGO_ROUTE", route)], |$world: &World| {
                    $($before)*
                    $world.barrier();
                    match $world.my_pe() {
                        0 => stay_away(),
                        _ => drop($wait),
                    }
                });
                assert_place(&report, $awaited);
            }
        }
    };
}

place!(barrier, "in barrier", |world| {} world.barrier());
place!(allocation, "in barrier", |world| {} world.alloc::<u64>(1));
place!(element, "element 0", |world| {
    let words = world.alloc_zeroed::<u64>(1).unwrap();
} words.local().wait_until(0, |value| value == 1));
place!(comparison, "element 0", |world| {
    let words = world.alloc_zeroed::<u64>(1).unwrap();
} words.local().wait(0, Comparison::Eq, 1));
place!(watched_elements, "element", |world| {
    let words = world.alloc_zeroed::<u64>(2).unwrap();
} words.local().watch(0..2).wait_all(Comparison::Eq, 1));
place!(team_barrier, "of a team", |world| {
    let team = world.team();
} team.barrier());
place!(reduction, "all_reduce", |world| {
    let words = world.alloc_zeroed::<u64>(2).unwrap();
    let own = world.alloc_zeroed::<u64>(2).unwrap();
} world.team().all_reduce(ReduceOp::Sum, &words, &own));
place!(broadcast, "broadcast", |world| {
    let words = world.alloc_zeroed::<u64>(1000).unwrap();
    let own = world.alloc_zeroed::<u64>(1000).unwrap();
} world.team().broadcast(0, &words, &own));
place!(event_of_a_collective, "event", |world| {
    let words = world.alloc_zeroed::<u64>(2).unwrap();
    let own = world.alloc_zeroed::<u64>(2).unwrap();
    let team = world.team();
} event::wait_all(&[&team.nonblocking().all_reduce(ReduceOp::Sum, &words, &own).unwrap()]));
place!(lock, "element", |world| {
    let lock = world.lock().unwrap();
    let _held = (world.my_pe() == 0).then(|| lock.acquire().unwrap());
} lock.acquire());
place!(semaphore, "element", |world| {
    let semaphores = world.semaphores(1, SemaphoreKind::integer()).unwrap();
} semaphores.at(1, 0).unwrap().wait());
place!(split_barrier, "", |world| {
    let barrier = world.split_barrier().unwrap();
} {
    barrier.notify().unwrap();
    barrier.wait()
});
place!(active_messages, "", |world| {
    let team = world.team();
} team.serve(Handlers::new(), |_| ()));

#[test]
fn an_element_that_does_not_exist() {
    let report = try_processes!(2, [LIMIT], |world: &World| {
        let words = world.alloc_zeroed::<u64>(2).unwrap();
        world.barrier();
        match world.my_pe() {
            0 => stay_away(),
            _ => drop(words.local().get(2)),
        }
    });
    assert_place(&report, "at index 2");
}

#[test]
fn procedure() {
    for route in ["auto", "net"] {
        let report = try_processes!(2, [LIMIT, ("PELAGO_ROUTE", route)], |world: &World| {
            let mut handlers = Handlers::new();
            let double = handlers.add_procedure("double", |_, x: u64| 2 * x);
            let served = world.team().serve(handlers, |am| match world.my_pe() {
                0 => stay_away(),
                _ => am.call(0, double, &1).unwrap().wait(),
            });
            served.unwrap();
        });
        assert_place(&report, "");
    }
}
