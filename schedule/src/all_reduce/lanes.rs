//! All-reduce in lanes: the ranks of a node combine a part of the block each; the ranks that have the same
//! place on their nodes combine that part by recursive doubling; then each rank gives its part to all ranks
//! of its node.
//!
//! Cost, for L nodes of k ranks: each rank sends 2 (k - 1) messages of 1/k of a block inside its node, and
//! log2 L to other nodes, in which all ranks take part, so that a node sends log2 L blocks in all. Parts that
//! are larger than a mailbox cost as many announcements. The ranks of a node need not be contiguous, so the
//! operation must commute.
//! Source: Träff, Hunold 2020, Decomposing MPI collectives for exploiting multi-lane communication.

use crate::algorithm::{Algorithm, Fold, Graph, equal_nodes};
use crate::combine::doubling::{Group, all_reduce_at};
use crate::combine::rank_fold::RankFold;
use crate::combine::transfer::{deliver, take};
use crate::combine::{contribution, parts_bytes};
use crate::schedule::{Builder, Place, Rank, Remote};
use crate::shape::{Operation, Shape};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    operation: Operation::AllReduce,
    name: "lanes",
    summary: "a part by each rank of a node, each part between the nodes, and back to all",
    source: "Träff, Hunold 2020",
    fold: Fold::Any,
    graph: Graph::Other,
    restriction: equal_nodes,
    build,
};

fn build(shape: &Shape, b: &mut Builder) {
    let (nodes, me) = (shape.groups(), shape.rank);
    let (own, place) = (nodes.group(me), nodes.place(me));
    let mates: Vec<Rank> = nodes.ranks(own).iter().collect();
    let lane: Vec<Rank> = (0..nodes.len()).map(|node| nodes.ranks(node).at(place)).collect();
    // On one node all ranks are in one lane.
    let (mates, place, lane, own) = match nodes.len() {
        1 => (vec![me], 0, mates, place),
        _ => (mates, place, lane, own),
    };
    let k = mates.len();
    let others = || (1..k).map(|distance| (place + distance) % k);
    let part = |place: usize| parts_bytes(shape, k, place, place + 1);
    // The slots of the parts that come, of the rooms for them, and of the results, by the place of a mate.
    let (come, room, result, first) = (0, k, 2 * k, 3 * k);

    let have = contribution(shape);
    let (offset, bytes) = part(place);
    let is_large = bytes > b.mailbox_bytes();
    let (rooms, distance) = if is_large { (b.scratch(k * bytes), bytes) } else { (Place::target(0), 0) };
    let room_of = |mate: usize| rooms.plus(mate * distance);
    if is_large {
        for mate in others() {
            b.announce(mates[mate], room + place, room_of(mate));
        }
    }
    for mate in others() {
        let (offset, bytes) = part(mate);
        if bytes > b.mailbox_bytes() {
            b.wait(mates[mate], room + mate);
        }
        let into = Remote::Announced { slot: room + mate, offset: 0 };
        deliver(b, mates[mate], have.plus(offset), bytes, into, come + place);
    }
    let mine = have.plus(offset);
    let mut fold = RankFold::new(mine, Place::target(offset), bytes);
    for (mate, &rank) in mates.iter().enumerate() {
        let operand = match mate == place {
            true => mine,
            false => take(b, rank, bytes, room_of(mate), come + mate),
        };
        fold.add(b, operand);
    }
    fold.finish(b);
    all_reduce_at(b, Group::part(&lane, own), (Place::target(offset), bytes), offset, first);
    for mate in others() {
        b.put_signal(mates[mate], Place::target(offset), Remote::Target(offset), bytes, result + place);
    }
    for mate in others() {
        b.wait(mates[mate], result + mate);
    }
}
