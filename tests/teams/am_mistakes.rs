//! Mistakes with active messages that once made a job hang: it ends with an error message.

use pelago::am::{HandlerLock, Handlers, Message};
use pelago::sim::SimParams;
use pelago::testing::JobReport;
use pelago::{Spmd, World};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// No job takes longer, unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// The message that ends a job; a job that hangs fails the test.
fn end_of(job: Spmd, body: impl Fn(&World) + Send + Sync + 'static) -> String {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(job.run(body).map(drop)));
    let outcome = told.recv_timeout(LIMIT).expect("the job hangs");
    outcome.expect_err("the job ends well").to_string()
}

/// All output of a job of processes, which must have failed.
fn words_of(report: &JobReport) -> String {
    assert_ne!(report.status, 0, "{report:#?}");
    let reasons = report.failures.iter().map(|failure| failure.text.as_str());
    reasons.chain(report.output.iter().map(|output| output.stderr.as_str())).collect::<Vec<_>>().join("\n")
}

fn jobs() -> [Spmd; 3] {
    [Spmd::new(2), Spmd::new(3), Spmd::new(3).sim(SimParams::chaos(5))]
}

const PANIC: &str = "of serve has panicked: of no use";

/// Sends some messages and panics in `serve`, on the PEs for which `panics` is true; catches the panic and
/// continues.
fn panic_in_serve(world: &World, panics: impl Fn(usize) -> bool) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let mut handlers = Handlers::new();
    let old = handlers.add("old", |_| ());
    let serve = || {
        world.team().serve(handlers, |am| {
            for to in (0..5).map(|i| (me + i) % n) {
                am.short(to, old, &[]).unwrap();
            }
            if panics(me) {
                panic!("of no use");
            }
        })
    };
    assert_eq!(catch_unwind(AssertUnwindSafe(serve)).is_err(), panics(me));
}

/// Serves again, with a handler that receives no message.
fn serve_again(world: &World) {
    let mut handlers = Handlers::new();
    handlers.add("new", |_: &Message<'_>| panic!("an old message is executed by a new handler"));
    world.team().serve(handlers, |_| ()).unwrap();
}

#[test]
fn a_panic_in_serve_ends_the_job_even_if_all_catch_it() {
    for job in jobs() {
        let words = end_of(job, |world| {
            panic_in_serve(world, |_| true);
            serve_again(world);
        });
        assert!(words.contains(PANIC), "{words}");
    }
}

/// No matter what the PE does after it has caught the panic, the others do not wait for ever.
#[test]
fn a_panic_in_serve_of_one_pe_ends_the_job_even_if_it_is_caught() {
    let next: [fn(&World); 3] = [serve_again, World::barrier, |world| world.team().barrier()];
    for (job, next) in jobs().into_iter().flat_map(|job| next.map(|next| (job.clone(), next))) {
        let words = end_of(job, move |world| {
            panic_in_serve(world, |pe| pe == 1);
            next(world);
        });
        assert!(words.contains(PANIC), "{words}");
    }
}

#[test]
fn a_panic_in_serve_ends_a_job_of_processes() {
    for route in ["auto", "net"] {
        let report = pelago::try_processes!(2, [("PELAGO_ROUTE", route)], |world| {
            panic_in_serve(world, |_| true);
            serve_again(world);
        });
        let words = words_of(&report);
        assert!(words.contains(PANIC), "{words}");
    }
}

/// A handler on PE 1 that lets a thread do something and waits for its end.
fn wait_for_a_thread(world: &World, does: fn(&World)) {
    let mut handlers = Handlers::new();
    let sin = handlers.add("sinner", |_| {
        // A scope that joins by itself would hide the message of a panic.
        let outcome = std::thread::scope(|scope| scope.spawn(|| does(world)).join());
        outcome.unwrap_or_else(|payload| std::panic::resume_unwind(payload));
    });
    let _ = world.team().serve(handlers, |am| {
        if world.my_pe() == 0 {
            am.short(1, sin, &[]).unwrap();
        }
    });
}

/// A call of a handler's thread, and its name in the message.
type Deed = (&'static str, fn(&World));

const DEEDS: [Deed; 2] =
    [("serve", |world| drop(world.team().serve(Handlers::new(), |_| ()))), ("barrier", World::barrier)];

fn assert_told(words: &str, deed: &str) {
    let says = ["a handler of active messages", "has been blocked", deed];
    assert!(says.iter().all(|part| words.contains(part)), "{deed}: {words}");
}

#[test]
fn a_handler_that_waits_for_a_thread_that_waits_is_told() {
    for (deed, does) in &DEEDS {
        let words = end_of(Spmd::new(2), move |world| wait_for_a_thread(world, *does));
        assert_told(&words, deed);
    }
}

/// A simulated network detects by itself, and at once, that no PE can make progress.
#[test]
fn a_handler_that_waits_for_a_thread_is_told_on_a_simulated_network() {
    let words = end_of(Spmd::new(2).sim(SimParams::chaos(1)), |world| wait_for_a_thread(world, DEEDS[0].1));
    assert!(words.contains("deadlock in the simulation"), "{words}");
}

#[test]
fn a_handler_that_waits_for_a_thread_is_told_among_processes() {
    for route in ["auto", "net"] {
        let report = pelago::try_processes!(2, [("PELAGO_ROUTE", route)], |world| {
            wait_for_a_thread(world, DEEDS[0].1);
        });
        assert_told(&words_of(&report), "serve");
    }
}

/// A lock that a thread takes while it holds it: PE 1 in a handler, or PE 0 outside of handlers.
fn lock_twice(world: &World, in_handler: bool) {
    let lock = HandlerLock::new(());
    let twice = || {
        let _first = lock.lock();
        drop(lock.lock());
    };
    let mut handlers = Handlers::new();
    let sin = handlers.add("sinner", |_| twice());
    let _ = world.team().serve(handlers, |am| match (in_handler, world.my_pe()) {
        (true, 0) => am.short(1, sin, &[]).unwrap(),
        (false, 0) => twice(),
        _ => {}
    });
}

#[test]
fn a_lock_that_is_taken_twice_is_told() {
    for in_handler in [false, true] {
        let words = end_of(Spmd::new(2), move |world| lock_twice(world, in_handler));
        assert!(words.contains("this thread holds the HandlerLock already"), "{words}");
    }
}
