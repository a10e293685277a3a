//! A domain works on arrays of its own type, whose words have one executor.

fn main() {
    pelago::spmd(1, |world| {
        let mut array = world.alloc_zeroed::<i64>(4).unwrap();
        let domain = world.team().atomic_domain::<u64>(pelago::AtomicOp::Add).unwrap();
        domain.on(&mut array).unwrap().add(0, 0, 1).unwrap();
    })
    .unwrap();
}
