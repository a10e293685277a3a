//! Collective calls that do not match: with checks on they are detected and reported on every PE, instead of
//! hanging. And calls from functions of reductions, and panics there, which always end the job.

use pelago::prelude::*;
use pelago::{Spmd, sim::SimParams};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Makes PE 0 and the other PEs make two different calls; returns the error of each PE.
fn told(
    job: &Spmd,
    mine: impl Fn(&Team<'_>, &Symmetric<'_, u64>, &Symmetric<'_, u64>) -> pelago::Result<()> + Sync,
    theirs: impl Fn(&Team<'_>, &Symmetric<'_, u64>, &Symmetric<'_, u64>) -> pelago::Result<()> + Sync,
) -> Vec<String> {
    let texts = job.clone().setting("PELAGO_CHECK", "on").run(|world| {
        let (a, b) = (world.alloc_zeroed::<u64>(8).unwrap(), world.alloc_zeroed::<u64>(8).unwrap());
        let team = world.team();
        let outcome = if world.my_pe() == 0 { mine(&team, &a, &b) } else { theirs(&team, &a, &b) };
        let text = outcome.unwrap_err().to_string();
        // The team can be used for further calls.
        team.all_gather(a.span(0..world.n_pes()), b.span(0..1)).unwrap();
        text
    });
    texts.unwrap()
}

fn everywhere(check: impl Fn(&Spmd)) {
    check(&Spmd::new(3));
    check(&Spmd::new(3).setting("PELAGO_COLL_FORM", "schedule"));
    for seed in 0..4 {
        check(&Spmd::new(3).sim(SimParams::chaos(seed)));
    }
}

/// Each PE's error names its own call and a call that differs.
fn assert_told(texts: &[String], mine: &str, theirs: &str) {
    for text in texts {
        assert!(text.contains("disagree") && text.contains(mine) && text.contains(theirs), "{text}");
    }
    for text in &texts[..2] {
        assert!(text.contains(&format!("PE 0 calls {mine}")), "{text}");
        assert!(text.contains(&format!("PE 1 calls {theirs}")), "{text}");
    }
}

#[test]
fn other_operations_are_told() {
    everywhere(|job| {
        let texts = told(
            job,
            |team, a, b| team.broadcast(0, a, b),
            |team, a, b| team.all_reduce(ReduceOp::Sum, a, b),
        );
        let (mine, theirs) = (
            "broadcast(root 0, blocks of 8 elements of 8 bytes)",
            "all_reduce(sum of u64, blocks of 8 elements of 8 bytes)",
        );
        assert_told(&texts, mine, theirs);
    });
}

#[test]
fn other_roots_are_told() {
    everywhere(|job| {
        let texts = told(job, |team, a, b| team.broadcast(0, a, b), |team, a, b| team.broadcast(2, a, b));
        assert_told(&texts, "broadcast(root 0,", "broadcast(root 2,");
    });
}

type Words<'a, 'w> = &'a Symmetric<'w, u64>;

/// A reduction by an operation, to the first words from the second.
type Reduction = fn(&Team<'_>, ReduceOp, Words<'_, '_>, Words<'_, '_>) -> pelago::Result<()>;

#[test]
fn other_operations_of_reductions_are_told() {
    const REDUCTIONS: [Reduction; 6] = [
        |team, op, a, b| team.all_reduce(op, a, b),
        |team, op, a, b| team.all_reduce(op, a.span(0..1), b.span(0..1)),
        |team, op, a, b| team.reduce(op, 0, a, b),
        |team, op, a, b| team.inclusive_scan(op, a, b),
        |team, op, a, b| team.nonblocking().all_reduce(op, a, b).map(pelago::Request::wait),
        |team, op, a, b| team.persistent().all_reduce(op, a, b)?.start().map(pelago::Request::wait),
    ];
    everywhere(|job| {
        for reduce in REDUCTIONS {
            let with = |op| move |team: &Team<'_>, a: Words<'_, '_>, b: Words<'_, '_>| reduce(team, op, a, b);
            let texts = told(job, with(ReduceOp::Sum), with(ReduceOp::Max));
            assert!(texts.iter().all(|text| text.contains("sum of u64") && text.contains("max of u64")));
            let texts = told(job, with(ReduceOp::Sum), |team, a, b| team.all_reduce(u64::max, a, b));
            assert!(texts.iter().all(|text| text.contains("a function of u64")), "{texts:?}");
        }
    });
}

#[test]
fn other_elements_of_reductions_are_told() {
    everywhere(|job| {
        let texts = job.clone().setting("PELAGO_CHECK", "on").run(|world| {
            let (a, team) = (world.alloc_zeroed::<i64>(8).unwrap(), world.team());
            let b = world.alloc_zeroed::<f64>(8).unwrap();
            let of_integers = || team.all_reduce(ReduceOp::Sum, a.span(0..4), a.span(4..8));
            let of_floats = || team.all_reduce(ReduceOp::Sum, b.span(0..4), b.span(4..8));
            let outcome = if world.my_pe() == 1 { of_integers() } else { of_floats() };
            outcome.unwrap_err().to_string()
        });
        for text in texts.unwrap() {
            assert!(text.contains("(sum of i64, blocks of 4") && text.contains("(sum of f64, "), "{text}");
        }
    });
}

/// Reductions of distributed arrays always compare operation and type.
#[test]
fn other_reductions_of_distributed_arrays_are_told() {
    everywhere(|job| {
        let texts = job.run(|world| {
            let block_size = pelago::distributed::BlockSize::Even;
            let array = world.distributed_array::<u64>(9, block_size).unwrap();
            let op = if world.my_pe() == 2 { ReduceOp::Min } else { ReduceOp::Max };
            array.reduce(op).unwrap_err().to_string()
        });
        for text in texts.unwrap() {
            assert!(text.contains("min of u64") && text.contains("max of u64"), "{text}");
        }
    });
}

#[test]
fn other_sizes_are_told() {
    everywhere(|job| {
        let texts = told(
            job,
            |team, a, b| team.all_gather(a.span(0..6), b.span(0..2)),
            |team, a, b| team.all_gather(a.span(0..3), b.span(0..1)),
        );
        assert_told(&texts, "all_gather(blocks of 2 elements", "all_gather(blocks of 1 elements");
    });
}

#[test]
fn calls_in_another_order_are_told() {
    everywhere(|job| {
        let texts = told(
            job,
            |team, a, b| {
                team.nonblocking().all_reduce(ReduceOp::Max, a, b)?.wait();
                team.broadcast(0, b, a)
            },
            |team, a, b| {
                team.broadcast(0, b, a)?;
                team.nonblocking().all_reduce(ReduceOp::Max, a, b).map(pelago::Request::wait)
            },
        );
        assert_told(&texts, "all_reduce(", "broadcast(");
    });
}

#[test]
fn a_call_that_makes_a_team_or_memory_is_told_from_others() {
    everywhere(|job| {
        let texts =
            told(job, |team, a, b| team.broadcast(0, a, b), |team, _, _| team.split_by(Some(1), 0).map(drop));
        assert_told(&texts, "broadcast(", "split_by");
    });
}

#[test]
fn a_barrier_that_meets_something_else_ends_the_job() {
    let outcome = Spmd::new(2).setting("PELAGO_CHECK", "on").run(|world| {
        let array = world.alloc_zeroed::<u64>(1).unwrap();
        let team = world.team();
        match world.my_pe() {
            0 => team.barrier(),
            _ => team.inclusive_scan(ReduceOp::Sum, &array, &array).unwrap(),
        }
    });
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains("barrier()") && text.contains("inclusive_scan("), "{text}");
}

#[test]
fn calls_that_match_go_on_with_checks() {
    everywhere(|job| {
        let sums = job.clone().setting("PELAGO_CHECK", "on").run(|world| {
            let (a, b) = (world.alloc_zeroed::<u64>(1).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
            let team = world.team();
            b.local().set(0, 1 + world.my_pe() as u64);
            for _ in 0..20 {
                team.barrier();
                team.all_reduce(ReduceOp::Sum, &a, &b).unwrap();
                team.nonblocking().sync().unwrap().wait();
            }
            a.local().get(0)
        });
        assert_eq!(sums.unwrap(), [6, 6, 6]);
    });
}

/// Without checks a larger call must not write beyond what the smaller one has announced.
#[test]
fn a_larger_call_does_not_write_beyond_a_smaller_one() {
    let strategies = ["additional", "pairwise-doubling"];
    for (strategy, is_simulated) in strategies.into_iter().flat_map(|s| [(s, false), (s, true)]) {
        let job =
            Spmd::new(2).setting("PELAGO_COLL_FORM", "schedule").setting("PELAGO_SYNC_MEMORY", strategy);
        let job = if is_simulated { job.sim(SimParams::chaos(7)) } else { job };
        let outcome = job.run(|world| {
            let array = world.alloc_zeroed::<u64>(4096).unwrap();
            let others = world.team().space(1 << 16).unwrap();
            let bystander = others.alloc_zeroed::<u64>(4096).unwrap();
            let len = if world.my_pe() == 0 { 4096 } else { 64 };
            array.local().write(0, &vec![7; len]);
            let span = array.span(0..len);
            let call = || world.team().all_reduce(ReduceOp::Sum, span, span);
            let outcome = catch_unwind(AssertUnwindSafe(call));
            assert_eq!(bystander.local().to_vec(), [0; 4096]);
            outcome.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
        });
        let text = outcome.unwrap_err().to_string();
        assert!(text.contains("has announced no place"), "{strategy}: {text}");
    }
}

/// No job takes longer, unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// The outcome of a job; a job that hangs is a failure.
fn end_of(job: Spmd, body: impl Fn(&World) + Send + Sync + 'static) -> Result<(), String> {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let outcome = job.wait_limit(LIMIT / 3).run(body);
        tell.send(outcome.map(drop).map_err(|error| error.to_string()))
    });
    told.recv_timeout(LIMIT).expect("the job hangs")
}

/// A value of a PE for a function of its reductions, which outlives every borrow of it.
#[derive(Clone, Copy)]
struct Lent(usize);

impl Lent {
    fn of<T>(value: &T) -> Lent {
        Lent(std::ptr::from_ref(value).addr())
    }

    /// # Safety
    /// It was created from a `T` that is still alive.
    unsafe fn get<'a, T>(self) -> &'a T {
        // SAFETY: the caller guarantees the type, and that the value is still alive.
        unsafe { &*std::ptr::with_exposed_provenance(self.0) }
    }
}

/// A call that a function of a reduction makes, with a word of its own, and the name of the call in the
/// error.
type Inner = (&'static str, fn(&Team<'_>, &Symmetric<'_, u64>));

const INNER: [Inner; 7] = [
    ("barrier", |_, word| word.world().barrier()),
    ("barrier", |team, _| team.barrier()),
    ("all_reduce", |team, word| team.all_reduce(ReduceOp::Sum, word, word).unwrap()),
    ("barrier", |team, _| team.nonblocking().sync().unwrap().wait()),
    ("broadcast", |team, word| team.nonblocking().broadcast(0, word, word).map(drop).unwrap()),
    ("exchange", |team, _| drop(team.split_by(Some(0), 0).unwrap())),
    ("exchange", |team, _| drop(team.space(64).unwrap())),
];

/// A reduction by a function: its name and its code.
type Outer = (&'static str, fn(&Team<'_>, &Symmetric<'_, u64>, Box<dyn Fn(u64, u64) -> u64 + Send + Sync>));

const OUTER: [Outer; 4] = [
    ("all_reduce", |team, array, function| team.all_reduce(function, array, array).unwrap()),
    ("reduce", |team, array, function| team.reduce(function, 0, array, array).unwrap()),
    ("inclusive_scan", |team, array, function| team.inclusive_scan(function, array, array).unwrap()),
    ("all_reduce", |team, array, function| {
        team.nonblocking().all_reduce(function, array, array).unwrap().wait();
    }),
];

/// Whether this PE combines elements in an operation, in all its forms.
fn combining(outer: &str, world: &World) -> bool {
    world.my_pe() == if outer == "inclusive_scan" { world.n_pes() - 1 } else { 0 }
}

fn jobs() -> [Spmd; 4] {
    let schedules = Spmd::new(3).setting("PELAGO_COLL_FORM", "schedule");
    [Spmd::new(2), Spmd::new(3), schedules, Spmd::new(3).sim(SimParams::chaos(3))]
}

#[test]
fn functions_of_reductions_make_no_collective_calls() {
    for job in jobs() {
        for ((outer, reduce), (inner, call)) in OUTER.into_iter().flat_map(|o| INNER.map(|i| (o, i))) {
            for len in [1, 64, 4096] {
                let end = end_of(job.clone(), move |world| {
                    let (team, word) = (world.team(), world.alloc_zeroed::<u64>(1).unwrap());
                    let array = world.alloc_zeroed::<u64>(len).unwrap();
                    let (lent, calls) = ((Lent::of(&team), Lent::of(&word)), combining(outer, world));
                    let function = move |a: u64, b: u64| {
                        if calls {
                            // SAFETY: both live until the reduction has returned, which is after this
                            // function.
                            call(unsafe { lent.0.get() }, unsafe { lent.1.get() });
                        }
                        a.max(b)
                    };
                    reduce(&team, &array, Box::new(function));
                    // The others do not finish before it is detected.
                    if !calls {
                        word.local().wait_until(0, |value| value == 1);
                    }
                });
                let text = end.expect_err(&format!("{inner} in {outer} of {len} elements"));
                let says = [format!("the function of {outer} calls {inner},"), "before or after".to_owned()];
                assert!(says.iter().all(|part| text.contains(part)), "{len} elements: {text}");
            }
        }
    }
}

/// The root of a broadcast waits for no PE, but writes staging slots.
#[test]
fn a_function_makes_no_call_of_its_team_that_need_not_wait() {
    let end = end_of(Spmd::new(2), |world| {
        let (team, word) = (world.team(), world.alloc_zeroed::<u64>(1).unwrap());
        let array = world.alloc_zeroed::<u64>(8).unwrap();
        let lent = (Lent::of(&team), Lent::of(&word));
        let function = move |a: u64, b: u64| {
            // SAFETY: both live until the reduction has returned, which is after this function.
            let (team, word) = unsafe { (lent.0.get::<Team<'_>>(), lent.1.get::<Symmetric<'_, u64>>()) };
            team.broadcast(0, word, word).unwrap();
            a + b
        };
        team.reduce(function, 0, array.span(0..1), array.span(1..2)).unwrap();
        if world.my_pe() != 0 {
            team.broadcast(0, &word, &word).unwrap();
        }
    });
    let text = end.expect_err("a function makes a collective call");
    assert!(text.contains("PE 0: the function of reduce calls another operation of the team"), "{text}");
}

#[test]
fn a_panic_of_a_function_ends_the_job_even_if_it_is_caught() {
    for job in jobs() {
        for (outer, reduce) in OUTER {
            for len in [1, 64, 4096] {
                let end = end_of(job.clone(), move |world| {
                    let (team, panics) = (world.team(), combining(outer, world));
                    let array = world.alloc_zeroed::<u64>(len).unwrap();
                    let function = move |a: u64, b: u64| if panics { panic!("of no use") } else { a + b };
                    let call = || reduce(&team, &array, Box::new(function));
                    let _ = catch_unwind(AssertUnwindSafe(call));
                    let sum = world.alloc_zeroed::<u64>(4096).unwrap();
                    for _ in 0..20 {
                        team.all_reduce(ReduceOp::Sum, &sum, &sum).unwrap();
                    }
                });
                let text = end.expect_err(&format!("a panic in {outer} of {len} elements"));
                let says = format!("the function of {outer} has panicked: of no use");
                assert!(text.contains(&says), "{len} elements: {text}");
            }
        }
    }
}

/// Too few bytes for a receiver that does not read them from an array of the sender's size.
#[test]
fn fewer_bytes_than_expected_are_told_without_checks() {
    let job = Spmd::new(2).setting("PELAGO_COLL_FORM", "schedule").setting("PELAGO_CHECK", "off");
    for (few, many) in [(1, 3), (2, 3)] {
        let outcome = job.run(|world| {
            let (a, b) = (world.alloc_zeroed::<u64>(30).unwrap(), world.alloc_zeroed::<u64>(30).unwrap());
            let len = if world.my_pe() == 0 { few } else { many };
            world.team().all_reduce(ReduceOp::Sum, a.span(0..len), b.span(0..len)).unwrap();
            world.barrier();
        });
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("must give the same sizes"), "{few} and {many}: {error}");
    }
}
