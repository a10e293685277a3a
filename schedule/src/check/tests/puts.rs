//! Tests of the times at which the data of a put have arrived and at which its source is free.

use super::*;

#[test]
fn a_put_is_waited_for_at_its_target() {
    let trial = Trial::new(Operation::Broadcast, 2);
    let open = |b: &mut Builder| b.put(1, HERE, THERE, 8);
    trial.fails(Fault::OpenAtEnd, 0, |rank, b| to_one(rank, b, open, |_| ()));
    let unordered = |b: &mut Builder| {
        b.put(1, HERE, THERE, 8);
        b.signal(1, 0);
    };
    trial.fails(Fault::OpenAtEnd, 0, |rank, b| to_one(rank, b, unordered, |b| b.wait(0, 0)));
    let completed = |b: &mut Builder| {
        b.put(1, HERE, THERE, 8);
        b.complete();
        b.signal(1, 0);
    };
    trial.passes(|rank, b| to_one(rank, b, completed, |b| b.wait(0, 0)));
}

#[test]
fn a_put_reads_its_source_until_it_is_complete() {
    let write = |complete: bool| {
        move |rank: Rank, b: &mut Builder| {
            let staged = scratch(0);
            if rank == 0 {
                b.scratch(8);
                b.copy(HERE, staged, 8);
                b.put_signal(1, staged, THERE, 8, 0);
                if complete {
                    b.complete();
                }
                b.copy(HERE, staged, 8);
                b.copy(HERE, RESULT, 8);
            } else {
                b.wait(0, 0);
            }
        }
    };
    let trial = Trial::new(Operation::Broadcast, 2);
    let text = trial.fails(Fault::Race, 0, write(false));
    assert!(text.starts_with("rank 0, step 2: copy 8 B of source+0 to scratch+0: writes"), "{text}");
    assert!(text.contains("the read of rank 0, step 1: put 8 B of scratch+0 to rank 1"), "{text}");
    trial.passes(write(true));
}

/// Rank 0 completes its put to rank 1 and tells rank 2, which tells rank 1.
#[test]
fn the_data_of_a_signalled_put_are_there_with_its_signal_only() {
    let write = |signal_first: bool| {
        move |rank: Rank, b: &mut Builder| match rank {
            0 => {
                b.put_signal(1, HERE, THERE, 8, 0);
                b.complete();
                b.put_signal(2, HERE, THERE, 8, 0);
                b.copy(HERE, RESULT, 8);
            }
            1 => {
                b.scratch(8);
                let mut waits = [(0, 0), (2, 1)];
                if !signal_first {
                    waits.reverse();
                }
                b.wait(waits[0].0, waits[0].1);
                b.copy(RESULT, scratch(0), 8);
                b.wait(waits[1].0, waits[1].1);
            }
            _ => {
                b.wait(0, 0);
                b.signal(1, 1);
            }
        }
    };
    let trial = Trial::new(Operation::Broadcast, 3);
    trial.passes(write(true));
    let text = trial.fails(Fault::Race, 1, write(false));
    assert!(text.contains("the write of rank 0, step 0: put 8 B"), "{text}");
}

#[test]
fn an_answer_to_a_put_tells_that_it_is_complete() {
    Trial::new(Operation::Broadcast, 2).passes(|rank, b| {
        if rank == 0 {
            b.scratch(8);
            b.copy(HERE, scratch(0), 8);
            b.put_signal(1, scratch(0), THERE, 8, 0);
            b.wait(1, 0);
            b.copy(HERE, scratch(0), 8);
            b.copy(HERE, RESULT, 8);
        } else {
            b.wait(0, 0);
            b.signal(0, 0);
        }
    });
}
