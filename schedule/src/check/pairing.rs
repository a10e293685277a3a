//! Matches signals with waits, before the schedules run.
//!
//! Invariant: every signal has one wait and every wait one signal, in a slot of their own, and the waits of a
//! rank for another rank have the order of the signals: where synchronisation memory belongs to pairs of
//! ranks, its words are numbered by this order.

use super::defect::{Defect, Fault};
use crate::schedule::{Rank, Schedule, Slot, Step, slots_max};

const NONE: u32 = u32::MAX;

/// A signal and its wait.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    /// The rank that signals.
    pub from: u32,
    /// The step that signals.
    pub signal_step: u32,
    /// The step of the waiting rank.
    pub wait_step: u32,
}

/// By rank and slot.
pub(super) type Pairs = Vec<Vec<Pair>>;

/// Finds signal and wait of each slot.
pub(super) fn pair(schedules: &[Schedule]) -> Result<Pairs, Defect> {
    let n = schedules.len();
    let mut pairs = note_waits(schedules)?;
    for (from, schedule) in schedules.iter().enumerate() {
        for (step, what) in schedule.steps.iter().enumerate() {
            let defect = |fault, text: String| Err(Defect::new(fault, from, step, format!("{what}: {text}")));
            let (to, slot) = match *what {
                Step::Put { to, signal, .. } => (to, signal),
                Step::Signal { to, slot, .. } => (to, Some(slot)),
                Step::Get { of, .. } => (of, None),
                _ => continue,
            };
            if to >= n || to == from {
                return defect(Fault::Peer, format!("not another one of the {n} ranks"));
            }
            let Some(slot) = slot else { continue };
            if slot >= slots_max(n) {
                return defect(Fault::SlotNumber, format!("{n} ranks have slots below {}", slots_max(n)));
            }
            let Some(pair) = pairs[to].get_mut(slot).filter(|pair| pair.wait_step != NONE) else {
                return defect(Fault::UnwaitedSignal, format!("rank {to} never waits for its slot {slot}"));
            };
            let wait = &schedules[to].steps[pair.wait_step as usize];
            if pair.from != NONE {
                let (rank, step) = (pair.from, pair.signal_step);
                return defect(Fault::SignalledTwice, format!("rank {rank} signals it too, in step {step}"));
            }
            if !matches!(wait, Step::Wait { of, .. } if *of == from) {
                let text = format!("step {} of rank {to} is another: {wait}", pair.wait_step);
                return defect(Fault::WrongSender, text);
            }
            (pair.from, pair.signal_step) = (from as u32, step as u32);
        }
    }
    let mut last = vec![None; n];
    for rank in 0..n {
        check_waits(&schedules[rank], &pairs[rank], rank, &mut last)?;
    }
    Ok(pairs)
}

fn note_waits(schedules: &[Schedule]) -> Result<Pairs, Defect> {
    let n = schedules.len();
    let mut pairs = Vec::with_capacity(n);
    for (rank, schedule) in schedules.iter().enumerate() {
        let mut slots: Vec<Pair> = Vec::new();
        for (step, what) in schedule.steps.iter().enumerate() {
            let Step::Wait { of, slot } = *what else { continue };
            let defect = |fault, text: String| Err(Defect::new(fault, rank, step, format!("{what}: {text}")));
            if of >= n || of == rank {
                return defect(Fault::Peer, format!("not another one of the {n} ranks"));
            }
            if slot >= slots_max(n) {
                return defect(Fault::SlotNumber, format!("{n} ranks have slots below {}", slots_max(n)));
            }
            if slot >= slots.len() {
                slots.resize(slot + 1, Pair { from: NONE, signal_step: NONE, wait_step: NONE });
            }
            let pair = &mut slots[slot];
            if pair.wait_step != NONE {
                let text = format!("step {} has waited for this slot, which has one signal", pair.wait_step);
                return defect(Fault::UnsignalledWait, text);
            }
            pair.wait_step = step as u32;
        }
        pairs.push(slots);
    }
    Ok(pairs)
}

/// The last wait for a rank that was checked: the rank that waits, the step of the signal, the slot.
type Last = Option<(Rank, u32, Slot)>;

/// Checks that every wait of a rank has a signal, and that the waits for the same rank are in the order of
/// its signals.
fn check_waits(schedule: &Schedule, slots: &[Pair], rank: Rank, last: &mut [Last]) -> Result<(), Defect> {
    for (step, what) in schedule.steps.iter().enumerate() {
        let Step::Wait { of, slot } = *what else { continue };
        let defect = |fault, text: String| Err(Defect::new(fault, rank, step, format!("{what}: {text}")));
        if slots[slot].from == NONE {
            return defect(Fault::UnsignalledWait, format!("rank {of} never signals it"));
        }
        let signal = slots[slot].signal_step;
        let later = |&(own, before, _): &(Rank, u32, Slot)| own == rank && before > signal;
        if let Some((_, before, other)) = last[of].filter(later) {
            let text = format!(
                "rank {of} signals it in step {signal}, before slot {other} in step {before}, \
                 but slot {other} is waited for first"
            );
            return defect(Fault::SignalOrder, text);
        }
        last[of] = Some((rank, signal, slot));
    }
    Ok(())
}
