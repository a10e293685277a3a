//! The machine file of Blue Gene/P beside the published figures on which it is fitted, and no others.

use pelago_model::machine::Contention;
use pelago_model::skeletons::{Flood, RoundTrip, Side};
use pelago_model::{Machine, run};

/// 512 nodes are the smallest torus.
const RANKS: usize = 2048;
/// The neighbours of node 0 of 8 x 8 x 8.
const NEIGHBOURS: [u32; 6] = [1, 7, 8, 56, 64, 448];

fn machine() -> Machine {
    // Several messages of a card share its links, which whole messages one after another would not show.
    Machine { contention: Contention::Packets, ..Machine::load("bluegene-p").unwrap() }
}

/// The time of messages divided by that of puts.
fn lead(links: usize, bytes: u64) -> f64 {
    let machine = machine();
    let peers: Vec<u32> = NEIGHBOURS[..links].iter().map(|node| node * 4).collect();
    let [puts, messages] = [Side::OneSided, Side::TwoSided].map(|side| {
        let flood = Flood { side, ranks: RANKS, peers: peers.clone(), each: 2, windows: 8, bytes };
        run(&machine, &flood).unwrap().time as f64
    });
    messages / puts
}

#[test]
fn small_messages_take_twice_as_long_as_puts() {
    let machine = machine();
    for bytes in [1, 8, 32] {
        let [put, message] = [Side::OneSided, Side::TwoSided].map(|side| {
            let trip = RoundTrip { side, ranks: RANKS, peer: NEIGHBOURS[0] * 4, bytes };
            run(&machine, &trip).unwrap().time as f64
        });
        let ratio = message / put;
        assert!((1.9..=2.1).contains(&ratio), "{bytes} bytes: {ratio}");
        assert!((5.8e6..=6.4e6).contains(&message), "two messages of 3 us: {message} ps");
    }
}

#[test]
fn puts_lead_at_8_kib_and_not_at_128_kib() {
    for (links, published) in [(2, 1.24), (4, 1.39)] {
        let found = lead(links, 8 << 10);
        assert!((found - published).abs() <= 0.03, "{links} links: {found} beside {published}");
        let found = lead(links, 128 << 10);
        assert!((0.97..=1.03).contains(&found), "{links} links, 128 KiB: {found}");
    }
}
