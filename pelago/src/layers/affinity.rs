//! PEs take cores of their own.

use crate::spmd;
use pelago_boot::cpus;
use pelago_fabric::sync::Ordering;

#[test]
fn pes_take_cores_of_their_own_only_where_each_has_one() {
    let cores = cpus().len();
    for n in [2, cores + 1] {
        let found = spmd(n, |world| world.core().affinity.thread.load(Ordering::Relaxed) != 0).unwrap();
        assert!(found.iter().all(|&is_moved| is_moved == (n <= cores)), "{n} PEs, {cores} cores: {found:?}");
    }
}

#[test]
fn a_pe_knows_where_the_others_of_its_node_run() {
    let all = cpus();
    let found = spmd(2.min(all.len()), |world| {
        world.barrier();
        let mut cores = (0..world.n_pes()).map(|pe| world.core().core_of(pe));
        let are_known = world.n_pes() < 2 || cores.all(|core| all.contains(&core.unwrap()));
        world.barrier();
        are_known
    });
    assert!(found.unwrap().iter().all(|&are_known| are_known));
}
