//! Parcels, and the replies to them.

use crate::Spmd;
use crate::sim::SimParams;
use pelago_core::base::locked::locked;
use pelago_core::endpoint::parcel::Home;
use pelago_core::progress::PARCELS_MAX;
use pelago_core::progress::requests::{Asked, Request};
use pelago_fabric::AtomicKind;
use std::sync::Arc;

#[test]
fn parcels_under_way_are_bounded() {
    let outcome = Spmd::new(2).sim(SimParams { credits: 1000, ..SimParams::default() }).run(|world| {
        let array = world.alloc_zeroed::<u64>(4000).unwrap();
        let shape = crate::Strided { array_stride: 2, ..crate::Strided::elements(1000) };
        let mut most = 0;
        for _ in 0..world.n_pes() * 100 {
            array.put_strided(1 - world.my_pe(), 0, &[1; 1000], &shape).unwrap();
            most = most.max(locked(&world.core().requests).parcels);
        }
        world.quiet();
        (most, locked(&world.core().requests).parcels)
    });
    assert_eq!(outcome.unwrap(), [(PARCELS_MAX, 0); 2]);
}

#[test]
fn answers_of_the_wrong_kind_or_length_are_refused() {
    let outcome = Spmd::new(2).sim(SimParams::default()).run(|world| {
        let (net, mut room) = (world.core().net_endpoint(), [0u8; 8]);
        let ask = |what| {
            let request = Request { what, endpoint: Arc::clone(net), token: None };
            locked(&world.core().requests).add(request)
        };
        let home = Home { start: room.as_mut_ptr(), bytes: 8 };
        let answers = [
            world.core().finish_parcel(ask(Asked::Parcel(vec![home])), &[1; 7]),
            world.core().finish_parcel(ask(Asked::Parcel(vec![home])), &[1; 9]),
            world.core().finish_parcel(ask(Asked::Parcel(Vec::new())), &[1]),
            world.core().finish_atomic(ask(Asked::Parcel(vec![home])), 1),
            world.core().finish_parcel(
                ask(Asked::Atomic { kind: AtomicKind::U64, fetched: std::ptr::null_mut() }),
                &[1; 8],
            ),
        ];
        let parcels = locked(&world.core().requests).parcels;
        (answers.iter().position(Option::is_some), parcels, room)
    });
    assert_eq!(outcome.unwrap(), [(None, 0, [0; 8]); 2]);
}
