//! The value that a domain's atomic fetches in a scope is not read before the scope has ended.

fn main() {
    pelago::spmd(1, |world| {
        let mut array = world.alloc_zeroed::<u64>(4).unwrap();
        let adding = world.team().atomic_domain::<u64>(pelago::AtomicOp::Add).unwrap();
        let (sums, mut old) = (adding.on(&mut array).unwrap(), 0);
        world.scope(|scope| {
            sums.fetch_amo_in(scope, 0, 0, pelago::AtomicOp::Add, 1, &mut old).unwrap();
            assert_eq!(old, 0);
        });
    })
    .unwrap();
}
