//! Tests with every kind of defect in a small schedule, each beside a correct schedule.

use super::*;
use crate::schedule::{Buffer, Builder, Place, Remote};
use crate::shape::{Blocks, Operation};

mod puts;

/// Checks the schedules that `write` writes, for blocks of one element of 8 bytes.
struct Trial {
    operation: Operation,
    n: usize,
    count: usize,
    element_bytes: usize,
    in_place: bool,
    fold: Fold,
    options: CheckOptions,
}

impl Trial {
    fn new(operation: Operation, n: usize) -> Trial {
        let fold = if operation.combines() { Fold::Ranks } else { Fold::None };
        let options = CheckOptions::default();
        Trial { operation, n, count: 1, element_bytes: 8, in_place: false, fold, options }
    }

    fn run(&self, write: impl Fn(Rank, &mut Builder)) -> Result<Report, Defect> {
        let schedule = |rank| {
            let mut builder = Builder::new(self.options.mailbox_bytes);
            write(rank, &mut builder);
            builder.finish()
        };
        let schedules: Vec<Schedule> = (0..self.n).map(schedule).collect();
        let shape = |rank| {
            let mut shape = Shape::new(self.operation, rank, self.n, self.count, self.element_bytes);
            shape.in_place = self.in_place;
            shape
        };
        check_schedules(&schedules, self.fold, &shape, &self.options)
    }

    #[track_caller]
    fn passes(&self, write: impl Fn(Rank, &mut Builder)) -> Report {
        self.run(write).unwrap_or_else(|defect| panic!("{defect}"))
    }

    /// Expects a defect of kind `fault` at `rank`.
    #[track_caller]
    fn fails(&self, fault: Fault, rank: Rank, write: impl Fn(Rank, &mut Builder)) -> String {
        let defect = self.run(write).expect_err("a defect must be found");
        assert_eq!((defect.fault, defect.rank), (fault, rank), "{defect}");
        defect.to_string()
    }
}

const HERE: Place = Place::source(0);
const RESULT: Place = Place::target(0);
const THERE: Remote = Remote::Target(0);

fn scratch(offset: usize) -> Place {
    Place { buffer: Buffer::Scratch, offset }
}

fn announced(slot: usize) -> Remote {
    Remote::Announced { slot, offset: 0 }
}

/// A broadcast to one other rank, with `put` in the place of the put.
fn to_one(rank: Rank, b: &mut Builder, put: impl Fn(&mut Builder), wait: impl Fn(&mut Builder)) {
    if rank == 0 {
        put(b);
        b.copy(HERE, RESULT, 8);
    } else {
        wait(b);
    }
}

#[test]
fn what_is_right_is_counted() {
    let report = Trial::new(Operation::Broadcast, 2)
        .passes(|rank, b| to_one(rank, b, |b| b.put_signal(1, HERE, THERE, 8, 0), |b| b.wait(0, 0)));
    assert_eq!((report.messages, report.bytes, report.rounds, report.copied_bytes_max), (1, 8, 1, 8));
    assert_eq!((report.slots_max, report.slots_total, report.slots_end), (1, 1, 1));
    assert_eq!((report.in_neighbours_max, report.in_neighbours_total), (1, 1));
}

#[test]
fn signals_and_waits_belong_together() {
    let trial = Trial::new(Operation::Barrier, 2);
    let both = |b: &mut Builder, rank: Rank| {
        b.signal(1 - rank, 0);
        b.wait(1 - rank, 0);
    };
    trial.passes(|rank, b| both(b, rank));
    let only_first = |rank: Rank, b: &mut Builder, extra: &dyn Fn(&mut Builder)| {
        both(b, rank);
        if rank == 0 {
            extra(b);
        }
    };
    trial.fails(Fault::UnwaitedSignal, 0, |rank, b| only_first(rank, b, &|b| b.signal(1, 1)));
    trial.fails(Fault::UnsignalledWait, 0, |rank, b| only_first(rank, b, &|b| b.wait(1, 1)));
    trial.fails(Fault::UnsignalledWait, 0, |rank, b| only_first(rank, b, &|b| b.wait(1, 0)));
    trial.fails(Fault::SignalledTwice, 0, |rank, b| only_first(rank, b, &|b| b.signal(1, 0)));
    let highest = crate::schedule::slots_max(2) - 1;
    let in_slot = |slot: usize| {
        move |rank: Rank, b: &mut Builder| {
            b.signal(1 - rank, slot);
            b.wait(1 - rank, slot);
        }
    };
    trial.passes(in_slot(highest));
    trial.fails(Fault::SlotNumber, 0, in_slot(highest + 1));
    trial.fails(Fault::Peer, 0, |_, b| b.signal(2, 0));
    trial.fails(Fault::Peer, 0, |_, b| b.wait(0, 0));
}

#[test]
fn a_wait_names_the_rank_that_signals() {
    let round = |wrong: bool| {
        move |rank: Rank, b: &mut Builder| {
            b.signal((rank + 1) % 3, 0);
            b.signal((rank + 2) % 3, 1);
            b.wait((rank + if wrong { 1 } else { 2 }) % 3, 0);
            b.wait((rank + if wrong { 2 } else { 1 }) % 3, 1);
        }
    };
    Trial::new(Operation::Barrier, 3).passes(round(false));
    Trial::new(Operation::Barrier, 3).fails(Fault::WrongSender, 0, round(true));
}

#[test]
fn signals_of_a_pair_are_waited_for_in_their_order() {
    let exchange = |first: usize| {
        move |rank: Rank, b: &mut Builder| {
            b.signal(1 - rank, 0);
            b.signal(1 - rank, 1);
            b.wait(1 - rank, first);
            b.wait(1 - rank, 1 - first);
        }
    };
    Trial::new(Operation::Barrier, 2).passes(exchange(0));
    Trial::new(Operation::Barrier, 2).fails(Fault::SignalOrder, 0, exchange(1));
}

#[test]
fn circles_of_waits_are_deadlocks() {
    let text = Trial::new(Operation::Barrier, 3).fails(Fault::Deadlock, 0, |rank, b| {
        b.wait((rank + 2) % 3, 0);
        b.signal((rank + 1) % 3, 0);
    });
    assert!(text.contains("rank 0 (step 0: wait for rank 2, slot 0) waits for rank 2; rank 2"), "{text}");
    assert!(text.ends_with("which is rank 0 again"), "{text}");
}

#[test]
fn circles_of_missing_room_are_deadlocks() {
    let many = |rank: Rank, b: &mut Builder| {
        (0..5).for_each(|slot| b.signal(1 - rank, slot));
        (0..5).for_each(|slot| b.wait(1 - rank, slot));
    };
    let mut trial = Trial::new(Operation::Barrier, 2);
    trial.passes(many);
    trial.options.credits = Some(5);
    trial.passes(many);
    trial.options.credits = Some(4);
    let text = trial.fails(Fault::Deadlock, 0, many);
    assert!(text.contains("rank 0 (step 4: signal rank 1, slot 4) has no room at rank 1"), "{text}");
    trial.passes(|rank, b| {
        if rank == 0 {
            (0..9).for_each(|slot| b.signal(1, slot));
            b.wait(1, 0);
        } else {
            (0..9).for_each(|slot| b.wait(0, slot));
            b.signal(0, 0);
        }
    });
}

#[test]
fn accesses_stay_inside_their_memories() {
    let trial = Trial::new(Operation::Broadcast, 2);
    let right = |b: &mut Builder| b.put_signal(1, HERE, THERE, 8, 0);
    let and = |extra: &'static dyn Fn(&mut Builder)| {
        move |rank: Rank, b: &mut Builder| {
            to_one(rank, b, right, |b| b.wait(0, 0));
            if rank == 1 {
                extra(b);
            }
        }
    };
    trial.fails(Fault::Bounds, 1, and(&|b| b.copy(RESULT, Place::target(8), 8)));
    trial.fails(Fault::Bounds, 1, and(&|b| b.copy(HERE, scratch(0), 8)));
    trial.fails(Fault::Bounds, 1, and(&|b| b.copy(RESULT, scratch(0), 8)));
    trial.passes(and(&|b| {
        let place = b.scratch(8);
        b.copy(RESULT, place, 8);
    }));
    trial.fails(Fault::ReadOnly, 1, and(&|b| b.copy(RESULT, HERE, 8)));
    trial.fails(Fault::ReadOnly, 1, and(&|b| b.copy(RESULT, Place::mailbox(0), 8)));
    let beyond = |b: &mut Builder| b.put_signal(1, HERE, Remote::Target(8), 8, 0);
    trial.fails(Fault::Bounds, 0, |rank, b| to_one(rank, b, beyond, |b| b.wait(0, 0)));
}

#[test]
fn elements_are_not_cut() {
    let halves = |rank: Rank, b: &mut Builder| {
        if rank == 0 {
            b.put_signal(1, HERE, THERE, 4, 0);
            b.put_signal(1, Place::source(4), Remote::Target(4), 4, 1);
            b.copy(HERE, RESULT, 8);
        } else {
            b.wait(0, 0);
            b.wait(0, 1);
        }
    };
    let mut trial = Trial::new(Operation::Broadcast, 2);
    let text = trial.fails(Fault::CutElement, 0, halves);
    assert!(text.starts_with("rank 0, step 0: put 4 B of source+0"), "{text}");
    let shifted = |b: &mut Builder| {
        b.scratch(64);
        b.copy(HERE, scratch(4), 8);
    };
    trial.fails(Fault::CutElement, 0, |rank, b| to_one(rank, b, shifted, |_| ()));
    (trial.element_bytes, trial.count) = (1, 8);
    trial.passes(halves);
}

#[test]
fn elements_of_many_units_are_followed_piece_by_piece() {
    // 24 bytes are three units of 8, which is what scratch memory is aligned to.
    let write = |whole: bool| {
        move |_: Rank, b: &mut Builder| {
            let place = b.scratch(48);
            b.copy(HERE, place, 48);
            let shifted = if whole { place } else { place.plus(8) };
            b.copy(shifted, RESULT, 24);
            b.copy(Place::source(24), Place::target(24), 24);
        }
    };
    let trial = Trial { element_bytes: 24, count: 2, ..Trial::new(Operation::AllReduce, 1) };
    trial.passes(write(true));
    let text = trial.fails(Fault::Result, 0, write(false));
    assert!(text.contains("element 0 of the target is put together of several"), "{text}");
}

#[test]
fn operands_do_not_overlap() {
    let mut trial = Trial::new(Operation::Broadcast, 1);
    trial.count = 3;
    let write = |into: usize| {
        move |_: Rank, b: &mut Builder| {
            b.copy(HERE, RESULT, 24);
            b.scratch(64);
            b.copy(HERE, scratch(0), 24);
            b.copy(scratch(0), scratch(into), 24);
        }
    };
    trial.fails(Fault::Overlap, 0, write(16));
    trial.passes(write(24));
    let strided = |stride: usize| {
        move |_: Rank, b: &mut Builder| {
            b.copy(HERE, RESULT, 24);
            b.scratch(64);
            b.copy_strided((HERE, 8), (scratch(0), stride), 8, 3);
            b.copy_strided((HERE, 0), (scratch(8), 16), 8, 3);
        }
    };
    trial.passes(strided(16));
    trial.fails(Fault::Overlap, 0, strided(0));
    let mut trial = Trial::new(Operation::AllReduce, 1);
    trial.count = 2;
    let reduce = |into: usize| {
        move |_: Rank, b: &mut Builder| {
            b.copy(HERE, RESULT, 16);
            b.scratch(64);
            b.copy(HERE, scratch(0), 16);
            b.reduce(HERE, scratch(0), scratch(into), 16);
        }
    };
    trial.fails(Fault::Overlap, 0, reduce(8));
    trial.passes(reduce(0));
}

/// Rank 0 takes the element of rank 1 by a get from its announced scratch, and adds it.
fn reduce_by_get(complete: bool, answer: bool) -> impl Fn(Rank, &mut Builder) {
    move |rank, b| {
        let place = b.scratch(8);
        if rank == 0 {
            b.wait(1, 0);
            b.get(1, announced(0), place, 8);
            if complete {
                b.complete();
            }
            if answer {
                b.signal(1, 0);
            }
            b.complete();
            b.reduce(HERE, place, RESULT, 8);
        } else {
            b.copy(HERE, place, 8);
            b.announce(0, 0, place);
            if answer {
                b.wait(0, 0);
            }
        }
    }
}

#[test]
fn a_rank_does_not_end_while_it_is_read() {
    let trial = Trial::new(Operation::Reduce, 2);
    trial.passes(reduce_by_get(true, true));
    trial.fails(Fault::OpenAtEnd, 0, reduce_by_get(true, false));
    trial.fails(Fault::OpenAtEnd, 0, reduce_by_get(false, true));
}

#[test]
fn a_get_is_there_when_it_is_complete() {
    let write = |early: bool, late: bool| {
        move |rank: Rank, b: &mut Builder| {
            if rank == 0 {
                b.announce(1, 0, HERE);
                b.copy(HERE, RESULT, 8);
                b.wait(1, 0);
            } else {
                let place = b.scratch(8);
                b.wait(0, 0);
                b.get(0, announced(0), place, 8);
                if early {
                    b.complete();
                }
                b.copy(place, RESULT, 8);
                if late {
                    b.complete();
                }
                b.signal(0, 0);
            }
        }
    };
    let trial = Trial::new(Operation::Broadcast, 2);
    trial.passes(write(true, false));
    trial.fails(Fault::Race, 1, write(false, true));
    trial.fails(Fault::OpenGet, 1, |rank, b| match rank {
        0 => {
            b.announce(1, 0, HERE);
            b.copy(HERE, RESULT, 8);
            b.wait(1, 0);
        }
        _ => {
            b.wait(0, 0);
            b.get(0, announced(0), RESULT, 8);
            b.signal(0, 0);
        }
    });
}

#[test]
fn places_are_announced_before_they_are_reached() {
    let write = |early: bool, slot: usize, place: Option<Place>| {
        move |rank: Rank, b: &mut Builder| {
            if rank == 0 {
                match place {
                    Some(place) => b.announce(1, 0, place),
                    None => b.signal(1, 0),
                }
                b.copy(HERE, RESULT, 8);
                b.wait(1, 0);
            } else {
                let get = |b: &mut Builder| b.get(0, announced(slot), RESULT, 8);
                if early {
                    get(b);
                }
                b.wait(0, 0);
                if !early {
                    get(b);
                }
                b.complete();
                b.signal(0, 0);
            }
        }
    };
    let trial = Trial::new(Operation::Broadcast, 2);
    trial.passes(write(false, 0, Some(HERE)));
    trial.fails(Fault::NotAnnounced, 1, write(true, 0, Some(HERE)));
    trial.fails(Fault::NotAnnounced, 1, write(false, 1, Some(HERE)));
    trial.fails(Fault::NotAnnounced, 1, write(false, 0, None));
    trial.fails(Fault::Bounds, 1, write(false, 0, Some(Place::source(8))));
    trial.fails(Fault::Bounds, 0, write(false, 0, Some(Place::source(16))));
    trial.fails(Fault::Race, 1, write(false, 0, Some(RESULT)));
}

#[test]
fn an_announced_place_is_not_overwritten_while_it_is_read() {
    let write = |answer_first: bool| {
        move |rank: Rank, b: &mut Builder| {
            if rank == 0 {
                let place = b.scratch(8);
                b.copy(HERE, place, 8);
                b.announce(1, 0, place);
                if answer_first {
                    b.wait(1, 0);
                }
                b.copy(HERE, place, 8);
                b.copy(HERE, RESULT, 8);
                if !answer_first {
                    b.wait(1, 0);
                }
            } else {
                b.wait(0, 0);
                b.get(0, announced(0), RESULT, 8);
                b.complete();
                b.signal(0, 0);
            }
        }
    };
    let trial = Trial::new(Operation::Broadcast, 2);
    trial.passes(write(true));
    let defect = trial.run(write(false)).unwrap_err();
    assert_eq!(defect.fault, Fault::Race, "{defect}");
}

#[test]
fn announced_sources_are_not_written() {
    let write = |place: Place| {
        move |rank: Rank, b: &mut Builder| {
            b.scratch(8);
            if rank == 1 {
                b.announce(0, 0, place);
                b.wait(0, 0);
                b.copy(HERE, RESULT, 8);
            } else {
                b.wait(1, 0);
                b.copy(HERE, RESULT, 8);
                b.put_signal(1, HERE, announced(0), 8, 0);
            }
        }
    };
    let trial = Trial::new(Operation::AllReduce, 2);
    trial.fails(Fault::ReadOnly, 0, write(HERE));
    trial.fails(Fault::Result, 0, write(scratch(0)));
}

#[test]
fn no_contribution_is_left_out() {
    // x0 op x2, or with x1 between them.
    let sum = |all: bool| {
        move |rank: Rank, b: &mut Builder| {
            if rank > 0 {
                return b.send(0, HERE, 8, rank);
            }
            b.wait(1, 1);
            b.wait(2, 2);
            if all {
                b.reduce(HERE, Place::mailbox(1), RESULT, 8);
                b.reduce(RESULT, Place::mailbox(2), RESULT, 8);
            } else {
                b.reduce(HERE, Place::mailbox(2), RESULT, 8);
            }
        }
    };
    for fold in [Fold::Ranks, Fold::Tree, Fold::Any] {
        let trial = Trial { fold, ..Trial::new(Operation::Reduce, 3) };
        trial.passes(sum(true));
        trial.fails(Fault::Result, 0, sum(false));
    }
}

/// Both ranks send each other their element, and combine the two.
fn exchange(early: bool, swapped: bool) -> impl Fn(Rank, &mut Builder) {
    move |rank, b| {
        b.send(1 - rank, HERE, 8, 0);
        if !early {
            b.wait(1 - rank, 0);
        }
        match (rank == 0) != swapped {
            true => b.reduce(HERE, Place::mailbox(0), RESULT, 8),
            false => b.reduce(Place::mailbox(0), HERE, RESULT, 8),
        }
        if early {
            b.wait(1 - rank, 0);
        }
    }
}

#[test]
fn mailboxes_are_read_after_their_wait() {
    let trial = Trial::new(Operation::AllReduce, 2);
    let report = trial.passes(exchange(false, false));
    assert_eq!(report.reduced_bytes_max, 8);
    trial.fails(Fault::Mailbox, 0, exchange(true, false));
    trial.fails(Fault::Unset, 1, |rank, b| {
        b.signal(1 - rank, 0);
        b.wait(1 - rank, 0);
        b.reduce(HERE, Place::mailbox(0), RESULT, 8);
    });
    trial.fails(Fault::Mailbox, 0, |rank, b| {
        b.put(1 - rank, HERE, Remote::Mailbox, 8);
        b.signal(1 - rank, 0);
        b.wait(1 - rank, 0);
    });
    trial.fails(Fault::Mailbox, 0, |rank, b| {
        b.get(1 - rank, Remote::Mailbox, RESULT, 8);
    });
    let mut small = Trial::new(Operation::AllReduce, 2);
    small.options.mailbox_bytes = 4;
    let by_hand = |rank: Rank, b: &mut Builder| {
        b.put_signal(1 - rank, HERE, Remote::Mailbox, 8, 0);
        b.wait(1 - rank, 0);
    };
    small.fails(Fault::Bounds, 0, by_hand);
}

#[test]
fn the_order_of_operands_is_kept_as_promised() {
    let mut trial = Trial::new(Operation::AllReduce, 2);
    trial.fails(Fault::FoldOrder, 0, exchange(false, true));
    trial.fold = Fold::Tree;
    trial.fails(Fault::FoldOrder, 0, exchange(false, true));
    trial.fold = Fold::Any;
    trial.passes(exchange(false, true));
    trial.fails(Fault::Unequal, 1, |rank, b| {
        b.send(1 - rank, HERE, 8, 0);
        b.wait(1 - rank, 0);
        b.reduce(HERE, Place::mailbox(0), RESULT, 8);
    });
}

#[test]
fn a_fold_of_ranks_is_a_comb() {
    // x0 op (x1 op x2) at rank 0, by rank 1.
    let tree = |rank: Rank, b: &mut Builder| {
        if rank == 0 {
            b.wait(1, 0);
            b.reduce(HERE, Place::mailbox(0), RESULT, 8);
        } else if rank == 1 {
            let place = b.scratch(8);
            b.wait(2, 0);
            b.reduce(HERE, Place::mailbox(0), place, 8);
            b.send(0, place, 8, 0);
        } else {
            b.send(1, HERE, 8, 0);
        }
    };
    let mut trial = Trial::new(Operation::Reduce, 3);
    let text = trial.fails(Fault::FoldOrder, 0, tree);
    assert!(text.contains("is of 0[0] 1[0] 2[0], which is not ranks 0 to 2"), "{text}");
    trial.fold = Fold::Tree;
    assert_eq!(trial.passes(tree).rounds, 2);
}

#[test]
fn every_contribution_counts_once() {
    for fold in [Fold::Ranks, Fold::Tree, Fold::Any] {
        let trial = Trial { fold, ..Trial::new(Operation::AllReduce, 2) };
        trial.fails(Fault::Result, 0, |rank, b| {
            exchange(false, false)(rank, b);
            b.reduce(RESULT, HERE, RESULT, 8);
        });
        trial.fails(Fault::Result, 0, |_, b| b.copy(HERE, RESULT, 8));
    }
}

#[test]
fn results_are_the_right_elements() {
    let mut trial = Trial::new(Operation::Broadcast, 2);
    trial.count = 2;
    let write = |from: usize| {
        move |rank: Rank, b: &mut Builder| {
            if rank == 0 {
                b.copy(HERE, RESULT, 16);
                b.put_signal(1, Place::source(from), THERE, 8, 0);
                b.put_signal(1, Place::source(8 - from), Remote::Target(8), 8, 1);
            } else {
                b.wait(0, 0);
                b.wait(0, 1);
            }
        }
    };
    trial.passes(write(0));
    let text = trial.fails(Fault::Result, 1, write(8));
    assert!(text.contains("element 0 of the target is of 0[1], which is not"), "{text}");
}

#[test]
fn results_do_not_come_from_unset_memory() {
    let trial = Trial::new(Operation::Broadcast, 1);
    trial.fails(Fault::Result, 0, |_, b| {
        let place = b.scratch(8);
        b.copy(place, RESULT, 8);
    });
    trial.fails(Fault::Combines, 0, |_, b| b.reduce(HERE, HERE, RESULT, 8));
    Trial::new(Operation::AllReduce, 1).fails(Fault::Unset, 0, |_, b| {
        let place = b.scratch(8);
        b.reduce(HERE, place, RESULT, 8);
    });
}

#[test]
fn stale_contents_are_found() {
    // Rank 1 forwards the block, before or after the block has arrived.
    let write = |late: bool| {
        move |rank: Rank, b: &mut Builder| match rank {
            0 => {
                b.copy(HERE, RESULT, 8);
                b.put_signal(1, HERE, THERE, 8, 0);
            }
            1 => {
                if late {
                    b.wait(0, 0);
                }
                b.put_signal(2, RESULT, THERE, 8, 0);
                if !late {
                    b.wait(0, 0);
                }
            }
            _ => b.wait(1, 0),
        }
    };
    let trial = Trial::new(Operation::Broadcast, 3);
    assert_eq!(trial.passes(write(true)).rounds, 2);
    trial.fails(Fault::Race, 1, write(false));
}

#[test]
fn targets_are_left_alone_outside_the_result() {
    let write = |touches: bool| {
        move |rank: Rank, b: &mut Builder| {
            if rank == 0 {
                b.put_signal(1, HERE, THERE, 8, 0);
                if touches {
                    b.copy(HERE, RESULT, 8);
                }
            } else {
                b.wait(0, 0);
            }
        }
    };
    let trial = Trial::new(Operation::ExclusiveScan, 2);
    trial.passes(write(false));
    trial.fails(Fault::Touched, 0, write(true));
    let shapes = |rank| {
        let mut shape = Shape::new(Operation::AllToAll, rank, 1, 2, 8);
        shape.blocks = Blocks::Strided { source: 1, target: 3 };
        shape
    };
    let check = |blocks: usize| {
        let mut b = Builder::new(0);
        b.copy_strided((HERE, 8), (RESULT, 24), 8, 2);
        b.copy(HERE, Place::target(8), blocks * 8);
        check_schedules(&[b.finish()], Fold::None, &shapes, &CheckOptions::default())
    };
    check(0).unwrap();
    assert_eq!(check(1).unwrap_err().fault, Fault::Touched);
}

#[test]
fn in_place_the_source_is_the_target() {
    // Rank 1 reads the element of rank 0 while a put changes it, or from a copy.
    let write = |copies: bool| {
        move |rank: Rank, b: &mut Builder| {
            let place = b.scratch(8);
            let (own, other) = (if copies { place } else { HERE }, 1 - rank);
            if copies {
                b.copy(HERE, place, 8);
            }
            b.send(other, own, 8, 0);
            b.wait(other, 0);
            match rank {
                0 => b.reduce(own, Place::mailbox(0), RESULT, 8),
                _ => b.reduce(Place::mailbox(0), own, RESULT, 8),
            }
        }
    };
    let mut trial = Trial::new(Operation::AllReduce, 2);
    trial.passes(write(false));
    trial.in_place = true;
    trial.passes(write(true));
    trial.fails(Fault::Race, 1, write(false));
}

#[test]
fn a_barrier_holds_everybody() {
    let one_way = |both: bool| {
        move |rank: Rank, b: &mut Builder| {
            if rank == 0 {
                b.signal(1, 0);
                if both {
                    b.wait(1, 0);
                }
            } else {
                b.wait(0, 0);
                if both {
                    b.signal(0, 0);
                }
            }
        }
    };
    Trial::new(Operation::Barrier, 2).passes(one_way(true));
    Trial::new(Operation::Barrier, 2).fails(Fault::Barrier, 0, one_way(false));
}

#[test]
fn puts_to_one_place_race() {
    let write = |apart: bool| {
        move |rank: Rank, b: &mut Builder| {
            if rank == 0 {
                b.copy(HERE, RESULT, 8);
                b.wait(1, 0);
                b.wait(2, 1);
            } else {
                let place = if apart { 8 * rank } else { 8 };
                b.put_signal(0, HERE, Remote::Target(place), 8, rank - 1);
            }
        }
    };
    let trial = Trial::new(Operation::Gather, 3);
    trial.passes(write(true));
    let defect = trial.run(write(false)).unwrap_err();
    assert_eq!(defect.fault, Fault::Race, "{defect}");
}

#[test]
fn shapes_agree() {
    let shapes = |rank| Shape::new(Operation::Broadcast, rank, 2, 1 + rank, 8);
    let schedules = [Schedule::default(), Schedule::default()];
    let defect = check_schedules(&schedules, Fold::None, &shapes, &CheckOptions::default()).unwrap_err();
    assert_eq!((defect.fault, defect.rank), (Fault::Shapes, 1));
}
