//! While a domain is on an array, no other code accesses the array.

fn main() {
    pelago::spmd(1, |world| {
        let mut array = world.alloc_zeroed::<u64>(4).unwrap();
        let adding = world.team().atomic_domain::<u64>(pelago::AtomicOp::Add).unwrap();
        let setting = world.team().atomic_domain::<u64>(pelago::AtomicOp::Set).unwrap();
        let sums = adding.on(&mut array).unwrap();
        array.put(0, 0, &[1; 4]).unwrap();
        setting.on(&mut array).unwrap().atomic_set(0, 0, 1).unwrap();
        sums.add(0, 0, 1).unwrap();
    })
    .unwrap();
}
