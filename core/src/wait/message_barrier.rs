//! Message barriers: every PE of a job with a network has reached a point of the job's life, and knows that
//! the others have.
//!
//! Invariant: a message barrier needs messages only, so that it works before any PE may touch another's
//! memory, and after the last time that it may. Messages go up a tree of the PEs to PE 0 and down again: a PE
//! notifies its parent when it and its whole subtree have arrived, and its children when all PEs have.

use super::engine::Engine;
use crate::Pe;
use crate::base::awaited::Awaited;
use crate::progress::meeting_points::{Point, children, parent};
use crate::progress::purpose::Purpose;
use pelago_fabric::sync::Ordering;
use std::time::Duration;

/// The number of polls before a PE yields its core between polls: PEs that still set up their endpoints and
/// connections need it more, and these barriers are not time-critical.
const LOOKS: u32 = 100;
/// The time for which a PE yields its core.
const NAP: Duration = Duration::from_micros(100);
/// The direction of a message.
const UP: u16 = 0;
const DOWN: u16 = 1;

impl Engine {
    /// Announces that this PE has arrived, and waits for all others; or, when it leaves, until one of them
    /// reports that it still waits for this PE. To be called once for each point.
    pub fn message_barrier(&self, point: Point, awaited: Awaited) {
        self.note_come(point);
        let leaves_core = self.net.as_ref().is_some_and(|net| net.moves_by_itself());
        let mut looks = 0_u32;
        self.wait(awaited, || {
            // SYNC POINT message_barrier: acquires the effects of the thread that processed the last message.
            let is_over = self.message_barrier.points[point as usize].is_over.load(Ordering::Acquire);
            let ends = is_over || point == Point::Leave && self.missed_by().is_some();
            looks = looks.saturating_add(1);
            if !ends && leaves_core && looks > LOOKS {
                std::thread::sleep(NAP);
            }
            ends
        });
        // The messages to the children must be sent now, because this PE may never call the runtime again.
        self.wait(awaited, || self.has_sent_all());
    }

    /// Whether this PE knows that all PEs have come to the end of the job.
    pub fn all_leave(&self) -> bool {
        // SYNC POINT message_barrier: acquires the effects of the thread that processed the last message.
        self.message_barrier.points[Point::Leave as usize].is_over.load(Ordering::Acquire)
    }

    /// Processes the message of another PE. `None` if it is invalid.
    pub fn note_message_barrier(&self, from: Pe, code: u16) -> Option<()> {
        let point = match code >> 1 {
            0 => Point::Join,
            1 => Point::Leave,
            _ => return None,
        };
        let (me, n_pes) = (self.my_pe(), self.n_pes());
        match code & 1 {
            UP if children(me, n_pes).contains(&from) => self.note_come(point),
            DOWN if parent(me) == Some(from) => self.note_over(point),
            _ => return None,
        }
        Some(())
    }

    fn note_come(&self, point: Point) {
        let (me, n_pes) = (self.my_pe(), self.n_pes());
        let expected = children(me, n_pes).len() as u32 + 1;
        if self.message_barrier.points[point as usize].come.fetch_add(1, Ordering::Relaxed) + 1 < expected {
            return;
        }
        match parent(me) {
            Some(parent) => self.send_message_barrier(parent, point, UP),
            None => self.note_over(point),
        }
    }

    fn note_over(&self, point: Point) {
        for child in children(self.my_pe(), self.n_pes()) {
            self.send_message_barrier(child, point, DOWN);
        }
        // SYNC POINT message_barrier: releases the effects of this thread.
        self.message_barrier.points[point as usize].is_over.store(true, Ordering::Release);
    }

    fn send_message_barrier(&self, pe: Pe, point: Point, direction: u16) {
        let code = (point as u16) << 1 | direction;
        self.send_later(pe, Purpose::MessageBarrier, u64::from(code) << 32, Vec::new());
    }
}
