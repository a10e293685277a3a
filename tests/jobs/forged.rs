//! Agreements of a team and collective calls of its users: neither is mistaken for the other, and the job
//! ends with an error message on all PEs.

use pelago::am::Handlers;
use pelago::sim::SimParams;
use pelago::sync::{AtomicUsize, Ordering};
use pelago::{Spmd, Symmetric, Team, World, prelude::*};
use std::time::{Duration, Instant};

/// No job takes longer, unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// The common part of the messages of such jobs.
const MEETS: &str = "of a team meets";

/// The message that ends a job of this kind; a job that hangs fails the test.
fn end_of(job: Spmd, what: &str, body: impl Fn(&World) + Send + Sync + 'static) -> String {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(job.wait_limit(LIMIT / 3).run(body).map(drop)));
    let outcome = told.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("{what}: the job hangs"));
    outcome.expect_err(what).to_string()
}

/// Jobs of three PEs, in each form of collective operations and with each kind of synchronisation memory.
fn jobs() -> Vec<Spmd> {
    let schedules = Spmd::new(3).setting("PELAGO_COLL_FORM", "schedule");
    let mut jobs = vec![Spmd::new(3), schedules];
    for (seed, memory) in (0..).zip(["additional", "barrier", "pairwise-edges", "pairwise-doubling"]) {
        jobs.push(Spmd::new(3).sim(SimParams::chaos(seed)).setting("PELAGO_SYNC_MEMORY", memory));
    }
    for (seed, nodes) in (7..).zip([[0, 0, 1], [0, 1, 0], [0, 1, 1]]) {
        let params = SimParams { nodes: nodes.into(), maps_nodes: true, ..SimParams::chaos(seed) };
        jobs.push(Spmd::new(3).sim(params));
    }
    jobs
}

/// PE 0 begins an exclusive phase, and the others send in an all-gather of their own the data of an agreement
/// on that phase. No PE gets a slice that others write to.
fn forge(world: &World) {
    let (me, n, team) = (world.my_pe(), world.n_pes(), world.team());
    let space = team.space(1 << 16).unwrap();
    let mut array = space.alloc_zeroed::<u64>(8).unwrap();
    let (all, mine) = (world.alloc_zeroed::<u64>(8 * n).unwrap(), world.alloc_zeroed::<u64>(8).unwrap());
    array.exclusive(|part| part.fill(1)).unwrap();
    let name = format!("{array:?}");
    let offset = name.trim_end_matches(')').rsplit(' ').next().unwrap().parse().unwrap();
    world.barrier();
    if me == 0 {
        let _ = array.exclusive(|_| panic!("PE 0 has a slice that others write to"));
    } else {
        mine.local().write(0, &[6, offset, 64, 1, 0, 0, 0, 0]);
        team.all_gather(&all, &mine).unwrap();
        array.put(0, 0, &[7; 8]).unwrap();
    }
    mine.local().wait_until(0, |word| word == u64::MAX);
}

#[test]
fn an_exclusive_phase_is_not_forged() {
    for (number, job) in jobs().into_iter().enumerate() {
        let text = end_of(job, "an agreement is forged", forge);
        assert!(text.contains(MEETS), "job {number}: {text}");
    }
}

#[test]
fn an_exclusive_phase_is_not_forged_among_processes() {
    for route in ["auto", "net"] {
        let report = pelago::try_processes!(3, [("PELAGO_ROUTE", route), ("PELAGO_WAIT_LIMIT", "20")], forge);
        let reasons = report.failures.iter().map(|failure| failure.text.as_str());
        let words: Vec<&str> = reasons.chain(report.output.iter().map(|o| o.stderr.as_str())).collect();
        assert!(report.status != 0 && words.concat().contains(MEETS), "{route}: {report:#?}");
    }
}

/// A call that makes an agreement: its name and its code.
type Agreement = (&'static str, fn(&Team<'_>));

const AGREEMENTS: [Agreement; 4] = [
    ("split_by", |team| drop(team.split_by(Some(0), 0).unwrap())),
    ("space", |team| drop(team.space(64).unwrap())),
    ("serve", |team| team.serve(Handlers::new(), |_| ()).unwrap()),
    ("atomic_domain", |team| {
        team.atomic_domain::<u64>(AtomicOp::Add).unwrap();
    }),
];

type Words<'a, 'w> = &'a Symmetric<'w, u64>;

/// Another collective call, on arrays of 300 words.
type Other = (&'static str, fn(&Team<'_>, Words<'_, '_>, Words<'_, '_>));

const OTHERS: [Other; 15] = [
    ("barrier", |team, _, _| team.barrier()),
    ("sync", |team, _, _| team.sync()),
    ("broadcast", |team, a, b| team.broadcast(0, a.span(0..1), b.span(0..1)).unwrap()),
    ("broadcast", |team, a, b| team.broadcast(2, a.span(0..1), b.span(0..1)).unwrap()),
    ("broadcast", |team, a, b| team.broadcast(1, a, b).unwrap()),
    ("all_reduce", |team, a, b| team.all_reduce(ReduceOp::Sum, a.span(0..1), b.span(0..1)).unwrap()),
    ("all_reduce", |team, a, b| team.all_reduce(ReduceOp::Sum, a, b).unwrap()),
    ("reduce", |team, a, b| team.reduce(ReduceOp::Sum, 1, a.span(0..8), b.span(0..8)).unwrap()),
    ("reduce", |team, a, b| team.reduce(ReduceOp::Sum, 0, a.span(0..8), b.span(0..8)).unwrap()),
    ("all_gather", |team, a, b| team.all_gather(a.span(0..24), b.span(0..8)).unwrap()),
    ("all_to_all", |team, a, b| team.all_to_all(a, b).unwrap()),
    ("gather", |team, a, b| team.gather(2, a.span(0..3), b.span(0..1)).unwrap()),
    ("scatter", |team, a, b| team.scatter(1, a.span(0..1), b.span(0..3)).unwrap()),
    ("inclusive_scan", |team, a, b| {
        team.inclusive_scan(ReduceOp::Sum, a.span(0..1), b.span(0..1)).unwrap();
    }),
    ("all_reduce", |team, a, b| team.nonblocking().all_reduce(ReduceOp::Max, a, b).unwrap().wait()),
];

/// A collective call that meets an agreement ends the job, no matter which PE makes which call, and no PE
/// hangs.
#[test]
fn an_agreement_that_meets_another_call_ends_the_job() {
    for (number, job) in jobs().into_iter().enumerate() {
        for ((agreement, agree), (other, call)) in AGREEMENTS.into_iter().flat_map(|a| OTHERS.map(|o| (a, o)))
        {
            for agrees in [0, 2] {
                let what = format!("job {number}: {agreement} of PE {agrees} and {other} of the others");
                let text = end_of(job.clone(), &what, move |world| {
                    let (a, b) = (world.alloc_zeroed(300).unwrap(), world.alloc_zeroed(300).unwrap());
                    let (word, team) = (world.alloc_zeroed::<u64>(1).unwrap(), world.team());
                    match world.my_pe() == agrees {
                        true => agree(&team),
                        false => call(&team, &a, &b),
                    }
                    word.local().wait_until(0, |word| word == 1);
                });
                assert!(text.contains(MEETS), "{what}: {text}");
            }
        }
    }
}

/// The word of a thread that was seen to sleep.
const HAS_SLEPT: usize = usize::MAX;

/// Waits until a thread of this process sleeps. It may wake, and end, as soon as one PE has seen it sleep.
fn wait_for_sleep(tid: &AtomicUsize) {
    let (start, futex) = (Instant::now(), format!("{} ", libc::SYS_futex));
    loop {
        let thread = tid.load(Ordering::Relaxed);
        let call = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall"));
        if thread == HAS_SLEPT || call.is_ok_and(|call| call.starts_with(&futex)) {
            return tid.store(HAS_SLEPT, Ordering::Relaxed);
        }
        assert!(start.elapsed() < LIMIT, "waited {LIMIT:?} for the sleep of PE 2");
        std::thread::yield_now();
    }
}

/// The member that agrees sleeps when the others make their call: they wake it.
#[test]
fn an_agreement_that_sleeps_is_woken_by_another_call() {
    for form in ["auto", "schedule"] {
        for (other, call) in OTHERS {
            let job = Spmd::new(3).setting("PELAGO_COLL_FORM", form).setting("PELAGO_TEST_SLEEPS", "on");
            let (what, tid) =
                (format!("space of PE 2 and {other} of the others, {form}"), AtomicUsize::new(0));
            let text = end_of(job, &what, move |world| {
                let (a, b) = (world.alloc_zeroed(300).unwrap(), world.alloc_zeroed(300).unwrap());
                let team = world.team();
                if world.my_pe() == 2 {
                    tid.store(rustix::thread::gettid().as_raw_nonzero().get() as usize, Ordering::Relaxed);
                    drop(team.space(64).unwrap());
                } else {
                    wait_for_sleep(&tid);
                    call(&team, &a, &b);
                }
            });
            assert!(text.contains(MEETS), "{what}: {text}");
        }
    }
}
