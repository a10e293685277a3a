//! Nodes, and what is decided by them.

use crate::sim::SimParams;
use crate::{Pe, Spmd};

#[test]
fn a_world_knows_the_nodes_of_its_pes() {
    let seen = |job: Spmd| {
        let all = job.run(|world| (0..world.n_pes()).map(|pe| world.core().node(pe)).collect::<Vec<_>>());
        let mut all = all.expect("the job runs");
        all.dedup();
        assert_eq!(all.len(), 1, "all PEs see the same nodes");
        all.remove(0)
    };
    let on = |nodes: &[u32]| SimParams { nodes: nodes.to_vec(), ..SimParams::default() };
    assert_eq!(seen(Spmd::new(4)), [0; 4]);
    assert_eq!(seen(Spmd::new(4).sim(SimParams::default())), [0; 4]);
    assert_eq!(seen(Spmd::new(5).sim(on(&[8, 8, 3, 8, 3]))), [0, 0, 1, 0, 1]);
    let chaos = SimParams { nodes: vec![1, 0, 1], ..SimParams::chaos(5) };
    assert_eq!(seen(Spmd::new(3).sim(chaos)), [0, 1, 0]);
}

#[test]
fn addresses_are_decided_per_pe() {
    let params = SimParams { maps_nodes: true, ..SimParams::default().on_nodes(4, 2) };
    let outcome = Spmd::new(4).sim(params).run(|world| {
        let array = world.alloc_zeroed::<u64>(1).unwrap();
        let is_near = |pe| world.core().node(pe) == world.core().node(world.my_pe());
        for pe in 0..4 {
            assert_eq!(array.place.fast(pe).is_some(), is_near(pe), "PE {pe}");
            assert_eq!(array.ptr(pe).is_some(), is_near(pe), "PE {pe}");
            assert_eq!(array.on(pe).unwrap().fast_len, usize::from(is_near(pe)), "PE {pe}");
        }
        assert!(array.place.fast(4).is_none() && !world.team().core.is_mapped());
        let node = world.team().split_node().unwrap();
        assert!(node.core.is_mapped() && node.core.is_fast);
        let space = node.space(1 << 12).unwrap();
        let inside = space.alloc_zeroed::<u64>(1).unwrap();
        assert!(inside.are_all_mapped() && !array.are_all_mapped());
    });
    outcome.unwrap();
    let alone = Spmd::new(2).setting("PELAGO_ROUTE", "net").run(|world| {
        let array = world.alloc_zeroed::<u64>(1).unwrap();
        array.place.fast(world.my_pe()).is_none() && array.local().get(0) == 0
    });
    let alone = alone.unwrap();
    assert_eq!(alone, [true, true], "operations on the own part go over the net as well");
}

/// PEs 0 and 1 meet in a team of their node, whose barrier is direct. PE 0 has put to PE 2, which is on
/// the other node; after the barrier PE 1 must find it there.
#[test]
fn a_direct_barrier_completes_puts_to_other_nodes() {
    for seed in 0..20 {
        let params = SimParams { maps_nodes: true, nodes: vec![0, 0, 1], ..SimParams::chaos(seed) };
        let outcome = Spmd::new(3).sim(params).run(|world| {
            let array = world.alloc_zeroed::<u64>(1).unwrap();
            let node = world.team().split_node().unwrap();
            if world.my_pe() == 0 {
                array.p(2, 0, 7).unwrap();
            }
            node.barrier();
            let seen = (world.my_pe() == 1).then(|| array.g(2, 0).unwrap());
            world.barrier();
            seen
        });
        assert_eq!(outcome.unwrap()[1], Some(7), "seed {seed}");
    }
}

#[test]
fn a_world_names_what_is_between_pes_that_are_not_mapped() {
    let fabric = |job: Spmd| job.run(|world| world.fabric()).expect("the job runs").remove(0);
    assert_eq!(fabric(Spmd::new(2)), None);
    assert_eq!(fabric(Spmd::new(2).sim(SimParams::default())).as_deref(), Some("sim"));
}

#[test]
fn a_setting_distributes_pes_of_a_simulation_unless_the_program_does() {
    let nodes = |job: Spmd| {
        let job = job.setting("PELAGO_SIM_NODES", "2");
        job.run(|world| world.core().node(world.my_pe())).expect("the job runs")
    };
    assert_eq!(nodes(Spmd::new(5).sim(SimParams::default())), [0, 0, 0, 1, 1]);
    assert_eq!(nodes(Spmd::new(4).setting("PELAGO_ROUTE", "net")), [0, 0, 1, 1]);
    assert_eq!(nodes(Spmd::new(3)), [0, 0, 0], "mapped PEs are on one node");
    let own = SimParams::default().on_nodes(3, 3);
    assert_eq!(nodes(Spmd::new(3).sim(own)), [0, 1, 2]);
}

#[test]
fn what_stays_on_a_node_takes_less_virtual_time() {
    let time = |to: Pe| {
        let job = Spmd::new(4).sim(SimParams::default().on_nodes(4, 2));
        let times = job.run(|world| {
            let array = world.alloc_zeroed::<u8>(1 << 16).expect("there is memory");
            let start = world.wtime();
            if world.my_pe() == 0 {
                array.put(to, 0, &[1; 1 << 16]).expect("a put inside the array");
                world.quiet();
            }
            world.wtime() - start
        });
        times.expect("the job runs")[0]
    };
    let [near, far] = [1, 2].map(time);
    assert!(near * 2 < far, "{near:?}, {far:?}");
}
