//! Polls: how a PE looks whether active messages have come, in a few instructions if none have.
//!
//! A poll looks at the stamps that the next messages in this PE's rings will bring. It does not call the
//! network, but counts down to a round of progress, which every 64th poll is. As long as messages come
//! through the rings and nothing over the network, the number of polls between two rounds doubles, to 4096 at
//! most: a round takes as long as several messages. A message that came over the network and was noted
//! meanwhile, by the service thread or by another thread of this PE, sets the count to 0, so that the next
//! poll executes it. Waits make progress by themselves.
//!
//! Invariant: a count that is lost, as two threads write at once, delays a message by that many polls at
//! most.

use pelago_fabric::shm::ring::Ring;
use pelago_fabric::sync::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Polls from one round of progress to the next, where there is a network beside the rings: the fewest, and
/// the most.
pub const POLLS_PER_ROUND: i32 = 64;
const POLLS_PER_ROUND_MAX: i32 = 4096;

/// The stamp where there are no rings.
static NO_STAMP: AtomicU64 = AtomicU64::new(0);

/// The words that a poll looks at.
pub struct Polls {
    /// Polls until the next round of progress; negative when it is due.
    left: AtomicI32,
    /// From one round to the next.
    period: AtomicI32,
    /// The activity of the network and the places of the watches at the last round.
    activity: AtomicU32,
    places: [AtomicPtr<AtomicU64>; 2],
    /// The next request, and the next reply.
    watches: [Watch; 2],
}

impl Polls {
    /// The polls of a PE with these rings, of requests and of replies, and with or without a network. A PE
    /// without rings makes a round of progress in every poll.
    ///
    /// # Safety
    /// The rings outlive the result.
    pub unsafe fn new(rings: Option<&[Ring<'static>; 2]>, has_net: bool) -> Polls {
        let period = match (rings, has_net) {
            (None, _) => 0,
            (Some(_), true) => POLLS_PER_ROUND,
            (Some(_), false) => i32::MAX,
        };
        let watches = std::array::from_fn(|kind| Watch::new(rings.map(|rings| &rings[kind])));
        let [left, period] = [period; 2].map(AtomicI32::new);
        Polls { left, period, activity: AtomicU32::new(0), places: Default::default(), watches }
    }

    /// Counts a poll: whether it is to make a round of progress.
    #[inline(always)]
    pub fn count(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed).wrapping_sub(1);
        self.left.store(left, Ordering::Relaxed);
        left < 0
    }

    /// Whether a message lies in a ring.
    #[inline(always)]
    pub fn has_come(&self) -> bool {
        self.watches[0].stamp() | self.watches[1].stamp() != 0
    }

    /// Restarts the count after a round of progress, at which the network had this activity.
    pub fn restart(&self, activity: u32) {
        let is_far = self.activity.swap(activity, Ordering::Relaxed) != activity;
        let is_near = self.watches.iter().zip(&self.places).fold(false, |is_near, (watch, place)| {
            let now = watch.0.load(Ordering::Relaxed);
            is_near | (place.swap(now, Ordering::Relaxed) != now)
        });
        let before = self.period.load(Ordering::Relaxed);
        let period = match (before, is_near && !is_far) {
            (0 | i32::MAX, _) => before,
            (_, true) => (2 * before).min(POLLS_PER_ROUND_MAX),
            (_, false) => POLLS_PER_ROUND,
        };
        self.period.store(period, Ordering::Relaxed);
        self.left.store(period, Ordering::Relaxed);
    }

    /// Lets the next poll make a round of progress.
    pub fn hurry(&self) {
        self.left.store(0, Ordering::Relaxed);
    }

    /// Watches for the next message of the ring of requests (kind 0) or replies (kind 1).
    #[inline]
    pub fn watch(&self, kind: usize, ring: &Ring<'static>) {
        self.watches[kind].set(ring);
    }
}

/// Where the next message of a ring brings its stamp, which is 0 until then, so that a look costs as little
/// as can be. It is set by the thread that has received the message before. While another thread receives, it
/// may be wrong.
struct Watch(AtomicPtr<AtomicU64>);

impl Watch {
    /// The watch of a ring; without one it never sees anything.
    fn new(ring: Option<&Ring<'static>>) -> Watch {
        let watch = Watch(AtomicPtr::new((&raw const NO_STAMP).cast_mut()));
        ring.into_iter().for_each(|ring| watch.set(ring));
        watch
    }

    #[inline]
    fn set(&self, ring: &Ring<'static>) {
        self.0.store(std::ptr::from_ref(ring.next_stamp().0).cast_mut(), Ordering::Relaxed);
    }

    /// Not 0 if the message has come.
    #[inline(always)]
    fn stamp(&self) -> u64 {
        // SAFETY: it is a static word, or one of a ring that outlives this, as the maker of the polls has
        // promised; both are accessed as atomics only.
        unsafe { (*self.0.load(Ordering::Relaxed)).load(Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_of_progress_is_due_after_a_number_of_polls_or_at_once() {
        // SAFETY: no rings are given, so none need outlive the polls.
        let polls = Polls { period: AtomicI32::new(POLLS_PER_ROUND), ..unsafe { Polls::new(None, true) } };
        polls.restart(0);
        polls.restart(0);
        for _ in 0..3 {
            assert!((0..POLLS_PER_ROUND).all(|_| !polls.count() && !polls.has_come()));
            assert!(polls.count());
            // Another thread that polls meanwhile finds it due as well.
            assert!(polls.count());
            polls.restart(0);
        }
        polls.hurry();
        assert!(polls.count());
    }

    #[test]
    fn without_rings_each_poll_is_a_round() {
        // SAFETY: no rings are given, so none need outlive the polls.
        let polls = unsafe { Polls::new(None, true) };
        for _ in 0..3 {
            assert!(polls.count());
            polls.restart(0);
        }
    }

    #[test]
    fn rounds_become_rarer_while_only_rings_bring_messages() {
        // SAFETY: no rings are given, so none need outlive the polls.
        let polls = Polls { period: AtomicI32::new(POLLS_PER_ROUND), ..unsafe { Polls::new(None, true) } };
        let until_round = || (0..).take_while(|_| !polls.count()).count() as i32;
        let stamps = [AtomicU64::new(0), AtomicU64::new(0)];
        let receive =
            |i: usize| polls.watches[0].0.store((&raw const stamps[i % 2]).cast_mut(), Ordering::Relaxed);
        let mut period = POLLS_PER_ROUND;
        for i in 0..10 {
            receive(i);
            polls.restart(7);
            // The first round sees another activity than before.
            period = if i == 0 { period } else { (2 * period).min(POLLS_PER_ROUND_MAX) };
            assert_eq!(until_round(), period);
        }
        assert_eq!(period, POLLS_PER_ROUND_MAX);
        receive(10);
        polls.restart(8);
        assert_eq!(until_round(), POLLS_PER_ROUND, "something came over the network");
        receive(11);
        polls.restart(8);
        assert_eq!(until_round(), 2 * POLLS_PER_ROUND);
        polls.restart(8);
        assert_eq!(until_round(), POLLS_PER_ROUND, "nothing came at all");
    }
}
