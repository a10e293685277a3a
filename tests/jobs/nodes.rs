//! Jobs of several nodes: processes of this machine that are treated as those of two, with TCP between them,
//! and with libfabric if it is installed; and the message if it is not.

use pelago::prelude::*;
use pelago::testing::{JobReport, JobSpec, Place, expect_success};
use pelago::try_processes;
use pelago::{Collective, ReduceOp, SignalOp, Strided};
use std::time::{Duration, Instant};

/// Two PEs on each of two nodes.
const TWO_NODES: (&str, &str) = ("PELAGO_SIM_NODES", "2");
/// The fabric between them.
const TCP: (&str, &str) = ("PELAGO_FABRIC", "tcp");
const LIBFABRIC: (&str, &str) = ("PELAGO_FABRIC", "ofi");

/// Every operation once, to PEs of the own node and of the other.
fn once_to_everybody(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let fabric = world.fabric().unwrap();
    assert!(fabric.starts_with("ofi (") || fabric == "tcp" || fabric == "tcp, encrypted", "{fabric}");
    let inbox = world.alloc_zeroed::<u64>(n).unwrap();
    let count = world.alloc_zeroed::<u64>(1).unwrap();
    for pe in 0..n {
        assert_eq!(inbox.ptr(pe).is_some(), pe / 2 == me / 2, "PE {pe} is mapped if it is on this node");
        inbox.p(pe, me, 10 + me as u64).unwrap();
        count.add(pe, 0, 1 + me as u64).unwrap();
    }
    world.barrier();
    let all: Vec<u64> = (0..n).map(|pe| inbox.g((pe + 1) % n, pe).unwrap()).collect();
    assert_eq!(all, (0..n as u64).map(|pe| 10 + pe).collect::<Vec<_>>());
    assert_eq!(count.local().get(0), (n * (n + 1) / 2) as u64);
    let (sum, own) = (world.alloc_zeroed::<u64>(1).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    own.local().set(0, me as u64);
    world.team().all_reduce(ReduceOp::Sum, &sum, &own).unwrap();
    assert_eq!(sum.local().get(0), (n * (n - 1) / 2) as u64);
    assert_eq!(world.team().split_node().unwrap().n_pes(), 2);
    assert_eq!(world.team().split_shared().unwrap().n_pes(), 2);
    world.barrier();
}

#[test]
fn pes_of_two_nodes_reach_each_other() {
    expect_success(&try_processes!(4, [TWO_NODES], once_to_everybody));
    expect_success(&try_processes!(4, [TWO_NODES, TCP], once_to_everybody));
    expect_success_over_ofi(&try_processes!(4, [TWO_NODES, LIBFABRIC], once_to_everybody));
}

/// With fewer descriptors than a PE needs, a job ends with a reason, no matter which part of it has got none.
#[test]
fn a_job_without_enough_descriptors_ends_in_words() {
    fn here() {}
    fn put_to_all(world: &World) {
        let array = world.alloc_zeroed::<u64>(world.n_pes()).unwrap();
        (0..world.n_pes()).for_each(|pe| array.p(pe, world.my_pe(), 1).unwrap());
        world.barrier();
        assert_eq!(array.local().to_vec(), vec![1; world.n_pes()]);
    }
    let place = Place { function: std::any::type_name_of_val(&here), line: line!() };
    let mut reasons = Vec::new();
    for limit in 4..40 {
        let with_fewer = |spec: &mut JobSpec| {
            spec.env.extend([TWO_NODES, TCP].map(|(name, value)| (name.into(), value.into())));
            let fewer = format!("if [ $PMI_RANK = 0 ]; then ulimit -n {limit}; fi");
            pelago::testing::through_shell(spec, &fewer);
        };
        let report = pelago::testing::run(&place, 8, with_fewer, put_to_all);
        if report.status == 0 {
            break;
        }
        reasons.push(words_of(&report));
    }
    assert!(!reasons.is_empty(), "4 descriptors were enough");
    // A PE of the same node, to which PE 0 has not replied, may report first.
    let causes = ["Too many open files", "fetching the node's memory failed"];
    for (i, text) in reasons.iter().enumerate() {
        assert!(causes.iter().any(|cause| text.contains(cause)), "{} descriptors: {text}", 4 + i);
    }
    let has = |part: &str| reasons.iter().any(|text| text.contains(part));
    let told = "a connection failed: Too many open files (os error 24). Does `ulimit -n` allow";
    assert!(has(told), "{reasons:#?}");
    // The network is not to blame.
    for text in &reasons {
        assert!(!text.contains("Is the network of this host up?"), "{text}");
        assert!(!text.contains("PELAGO_TCP_INTERFACE"), "{text}");
    }
}

/// The same, and data that need several records.
#[cfg(feature = "encrypt")]
fn encrypted_to_everybody(world: &World) {
    assert_eq!(world.fabric().unwrap(), "tcp, encrypted");
    once_to_everybody(world);
    let (me, n, count) = (world.my_pe(), world.n_pes(), 1 << 16);
    let data = world.alloc_zeroed::<u64>(count).unwrap();
    let words = |pe: usize| (0..count).map(|i| (pe * count + i) as u64).collect::<Vec<_>>();
    data.put((me + 2) % n, 0, &words(me)).unwrap();
    world.barrier();
    let mut gotten = vec![0; count];
    data.get((me + 1) % n, 0, &mut gotten).unwrap();
    assert_eq!(gotten, words((me + 1 + n - 2) % n));
    world.barrier();
}

#[cfg(feature = "encrypt")]
#[test]
fn pes_of_two_nodes_reach_each_other_over_encrypted_connections() {
    let encrypted = ("PELAGO_TCP_ENCRYPT", "on");
    expect_success(&try_processes!(4, [TWO_NODES, encrypted], encrypted_to_everybody));
    let threads = [TWO_NODES, TCP, encrypted, ("PELAGO_PES_PER_PROCESS", "2")];
    expect_success(&try_processes!(4, threads, encrypted_to_everybody));
}

#[cfg(not(feature = "encrypt"))]
#[test]
fn a_build_that_cannot_encrypt_says_so() {
    let settings = [TWO_NODES, TCP, ("PELAGO_TCP_ENCRYPT", "on")];
    let words = words_of(&try_processes!(4, settings, |_: &World| ()));
    assert!(words.contains("cannot encrypt") && words.contains("the feature `encrypt`"), "{words}");
}

#[test]
fn a_congestion_control_that_the_system_does_not_permit_is_named() {
    let settings = [TWO_NODES, TCP, ("PELAGO_TCP_CONGESTION", "renoo")];
    let words = words_of(&try_processes!(4, settings, once_to_everybody));
    assert!(words.contains("PELAGO_TCP_CONGESTION") && words.contains("tcp_allowed"), "{words}");
}

#[test]
fn the_ports_can_be_chosen() {
    let settings = [TWO_NODES, TCP, ("PELAGO_TCP_PORTS", "24000-24999")];
    expect_success(&try_processes!(4, settings, once_to_everybody));
    let settings = [TWO_NODES, TCP, ("PELAGO_TCP_PORTS", "25000")];
    let words = words_of(&try_processes!(4, settings, once_to_everybody));
    assert!(words.contains("25000 are in use") && words.contains("PELAGO_TCP_PORTS"), "{words}");
}

#[test]
fn the_congestion_control_can_be_chosen() {
    expect_success(&try_processes!(
        4,
        [TWO_NODES, TCP, ("PELAGO_TCP_CONGESTION", "reno")],
        once_to_everybody
    ));
}

/// PEs 1 and 3 wait, each on its node, until they sleep. PE 0 and PE 2 detect that, and wake one of them
/// through mapped memory and the other over the network.
fn waits_end_from_everywhere(world: &World) {
    let (me, word) = (world.my_pe(), world.alloc_zeroed::<u64>(1).unwrap());
    let pair = world.team().split_by(Some(me as u64 % 2), 0).unwrap().unwrap();
    for (round, writer) in [(1, 0), (2, 2), (3, 0), (4, 2)] {
        if me % 2 == 1 {
            word.local().wait_until(0, |value| value == round);
        } else {
            let limit = Instant::now() + Duration::from_secs(60);
            while !world.has_sleepers_for_data() {
                assert!(Instant::now() < limit, "PE {} does not sleep while it waits", me + 1);
                std::thread::yield_now();
            }
        }
        if me % 2 == 0 {
            // Both sleep.
            pair.sync();
            if me == writer {
                word.p(1, 0, round).unwrap();
                word.p(3, 0, round).unwrap();
                world.quiet();
            }
        }
        world.barrier();
    }
}

#[test]
fn a_wait_in_a_job_of_two_nodes_sleeps_and_is_woken_from_everywhere() {
    expect_success(&try_processes!(4, [TWO_NODES, TCP], waits_end_from_everywhere));
    expect_success_over_ofi(&try_processes!(4, [TWO_NODES, LIBFABRIC], waits_end_from_everywhere));
}

/// The full tier installs libfabric; elsewhere it may be missing, and then the job reports that.
fn expect_success_over_ofi(report: &JobReport) {
    let words = words_of(report);
    match !cfg!(feature = "full") && words.contains("opening libfabric as") {
        true => assert!(words.contains("Install it"), "{words}"),
        false => expect_success(report),
    }
}

/// All output of a job and its PEs.
fn words_of(report: &JobReport) -> String {
    let reasons = report.failures.iter().map(|failure| failure.text.as_str());
    reasons.chain(report.output.iter().map(|output| output.stderr.as_str())).collect::<Vec<_>>().join("\n")
}

#[test]
fn without_a_fabric_nodes_are_told_apart_in_words() {
    for (settings, parts) in [
        (
            &[LIBFABRIC, ("PELAGO_OFI_LIBRARY", "/no/libfabric.so")][..],
            &["`/no/libfabric.so`", "PELAGO_OFI_LIBRARY"][..],
        ),
        (&[("PELAGO_FABRIC", "shm")], &["on node", "PELAGO_FABRIC"]),
        (&[TCP, ("PELAGO_TCP_INTERFACE", "nowhere")], &["has no fabric", "PELAGO_TCP_INTERFACE"]),
    ] {
        let settings: Vec<_> = [TWO_NODES].iter().chain(settings).copied().collect();
        let words = words_of(&try_processes!(4, settings, |_: &World| ()));
        for part in parts {
            assert!(words.contains(part), "{words} does not say {part}");
        }
    }
}

/// The last PE computes, without a call of the runtime, until all operations of the others on it are
/// complete.
fn one_computes(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let target = n - 1;
    let words = world.alloc_zeroed::<u64>(64).unwrap();
    let numbers = world.alloc_zeroed::<f64>(n).unwrap();
    let signal = world.alloc_zeroed::<u64>(1).unwrap();
    world.barrier();
    if me == target {
        let deadline = Instant::now() + Duration::from_secs(60);
        while words.local().get(0) != target as u64 {
            assert!(Instant::now() < deadline, "only {} PEs got through to PE {me}", words.local().get(0));
            std::hint::spin_loop();
        }
    } else {
        words.put(target, 8 + me, &[7]).unwrap();
        world.quiet();
        assert_eq!(words.g(target, 8 + me).unwrap(), 7);
        words.fetch_add(target, 8 + me, 1).unwrap();
        assert_eq!(words.compare_swap(target, 8 + me, 8, 9).unwrap(), 8);
        assert_eq!(numbers.swap(target, me, 0.5).unwrap(), 0.0);
        words.put_signal(target, 16 + me, &[1], &signal, 0, SignalOp::Add(1)).unwrap();
        let every_other = Strided { array_stride: 2, ..Strided::elements(8) };
        words.put_strided(target, 24, &[3; 8], &every_other).unwrap();
        world.quiet();
        // This is the last operation, so that the target computes until all others have been delivered.
        words.add(target, 0, 1).unwrap();
        world.quiet();
    }
    world.barrier();
    if me == target {
        assert!((0..target).all(|pe| numbers.local().get(pe) == 0.5));
        assert_eq!(signal.local().get(0), target as u64);
        assert!((0..target).all(|pe| words.local().get(8 + pe) == 9 && words.local().get(16 + pe) == 1));
    }
    world.barrier();
}

#[test]
fn a_pe_that_computes_keeps_nobody_waiting() {
    const ALL: (&str, &str) = ("PELAGO_ROUTE", "net");
    for way in [TWO_NODES, ALL] {
        expect_success(&try_processes!(4, [way, TCP], one_computes));
        expect_success_over_ofi(&try_processes!(4, [way, LIBFABRIC], one_computes));
    }
}

/// Providers that make progress only when they are called, and that require keys and addresses to be
/// exchanged: each PE's service thread calls them.
#[cfg(feature = "full")]
#[test]
fn providers_without_progress_of_their_own_serve_as_well() {
    for provider in ["udp;ofi_rxd", "shm"] {
        let alone = [("PELAGO_ROUTE", "net"), ("PELAGO_FABRIC", "ofi"), ("PELAGO_OFI_PROVIDER", provider)];
        let nodes = [TWO_NODES, LIBFABRIC, ("PELAGO_OFI_PROVIDER", provider)];
        expect_success_over_ofi(&try_processes!(4, nodes, once_to_everybody));
        expect_success_over_ofi(&try_processes!(4, nodes, one_computes));
        expect_success_over_ofi(&try_processes!(4, alone, one_computes));
    }
}
