//! Tag matching: the queue of posted receives, and the queue of unexpected messages.
//!
//! Invariant: no posted receive matches an unexpected message. Of several receives that match a message the
//! first one that was posted gets it; of several messages that match a receive it gets the first one that has
//! arrived. So messages from one PE to another are received in the order sent, as far as the same receives
//! match them (MPI 4.1, section 3.5).

use super::envelope::Envelope;
use super::queue::{Place, Queue};

/// The queues, with receives `R` and unexpected messages `U`.
pub struct Matching<R, U> {
    /// With the number of the post, which only grows.
    posted: Queue<(u64, R), false>,
    /// How many of the posted receives have a wildcard.
    wildcards: usize,
    posts: u64,
    unexpected: Queue<U, true>,
}

impl<R, U> Default for Matching<R, U> {
    fn default() -> Matching<R, U> {
        Matching { posted: Queue::default(), wildcards: 0, posts: 0, unexpected: Queue::default() }
    }
}

impl<R, U> Matching<R, U> {
    /// Takes the posted receive that a message matches, if there is one.
    #[inline]
    pub fn take_posted(&mut self, message: &Envelope) -> Option<R> {
        if self.posted.is_empty() {
            return None;
        }
        if self.wildcards == 0 {
            return self.posted.take(message).map(|(_, receive)| receive);
        }
        let places = message.patterns().into_iter().filter_map(|pattern| self.posted.find(&pattern));
        let first = places.min_by_key(|&place| self.posted.get(place).1.0);
        first.map(|place| self.unpost(place))
    }

    /// Whether a receive is posted.
    #[inline(always)]
    pub fn has_posted(&self) -> bool {
        !self.posted.is_empty()
    }

    /// Keeps a message that no posted receive matches.
    pub fn keep(&mut self, message: Envelope, unexpected: U) {
        self.unexpected.push(message, unexpected);
    }

    /// The first unexpected message that a receive with this pattern gets.
    #[inline]
    pub fn find_unexpected(&self, pattern: &Envelope) -> Option<Place> {
        match () {
            () if self.unexpected.is_empty() => None,
            () if pattern.is_wildcard() => self.unexpected.find_match(pattern),
            () => self.unexpected.find(pattern),
        }
    }

    /// An unexpected message.
    pub fn unexpected(&self, place: Place) -> (&Envelope, &U) {
        self.unexpected.get(place)
    }

    /// Takes an unexpected message.
    pub fn take_unexpected(&mut self, place: Place) -> (Envelope, U) {
        self.unexpected.remove(place)
    }

    /// Posts a receive that no unexpected message matches.
    pub fn post(&mut self, pattern: Envelope, receive: R) -> Place {
        debug_assert!(self.find_unexpected(&pattern).is_none(), "an unexpected message matches {pattern:?}");
        self.wildcards += usize::from(pattern.is_wildcard());
        self.posts += 1;
        self.posted.push(pattern, (self.posts, receive))
    }

    /// Takes a posted receive back.
    pub fn unpost(&mut self, place: Place) -> R {
        let (pattern, (_, receive)) = self.posted.remove(place);
        self.wildcards -= usize::from(pattern.is_wildcard());
        receive
    }

    /// Whether a message with this envelope comes first for a new receive of just this envelope: no other
    /// receive is posted, and no message is kept that it would get.
    #[inline(always)]
    pub fn is_clear(&self, envelope: &Envelope) -> bool {
        self.posted.is_empty() && (self.unexpected.is_empty() || self.unexpected.find(envelope).is_none())
    }

    /// How many messages are unexpected.
    pub fn unexpected_len(&self) -> usize {
        self.unexpected.len()
    }

    /// How many receives are posted, and how many messages are unexpected.
    #[cfg(test)]
    pub fn lengths(&self) -> [usize; 2] {
        [self.posted.len(), self.unexpected.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::super::envelope::{ANY_SOURCE, ANY_TAG, Context};
    use super::*;
    use proptest::prelude::*;

    /// Two lists that are searched from the front.
    #[derive(Default)]
    struct Naive {
        posted: Vec<(Envelope, u32)>,
        unexpected: Vec<(Envelope, u32)>,
    }

    impl Naive {
        fn arrive(&mut self, message: Envelope, number: u32) -> Option<u32> {
            match self.posted.iter().position(|(pattern, _)| pattern.matches(&message)) {
                Some(i) => Some(self.posted.remove(i).1),
                None => {
                    self.unexpected.push((message, number));
                    None
                }
            }
        }

        fn receive(&mut self, pattern: Envelope, number: u32) -> Option<u32> {
            match self.unexpected.iter().position(|(message, _)| pattern.matches(message)) {
                Some(i) => Some(self.unexpected.remove(i).1),
                None => {
                    self.posted.push((pattern, number));
                    None
                }
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Arrive(Envelope),
        Receive(Envelope),
        /// Takes back the posted receive with this index, if there is one.
        Cancel(usize),
    }

    fn envelope(sources: u32, tags: u32, has_wildcards: bool) -> impl Strategy<Value = Envelope> {
        (0..2_u64, 0..sources, 0..tags, 0..8_u8).prop_map(move |(context, source, tag, any)| Envelope {
            context: Context(context),
            source: if has_wildcards && any & 3 == 0 { ANY_SOURCE } else { source },
            tag: if has_wildcards && any >= 5 { ANY_TAG } else { tag },
        })
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        (1..6_u32, 1..40_u32, any::<bool>()).prop_flat_map(|(sources, tags, has_wildcards)| {
            let step = prop_oneof![
                6 => envelope(sources, tags, false).prop_map(Step::Arrive),
                6 => envelope(sources, tags, has_wildcards).prop_map(Step::Receive),
                1 => (0..20_usize).prop_map(Step::Cancel),
            ];
            prop::collection::vec(step, 0..400)
        })
    }

    proptest! {
        #[test]
        fn it_matches_as_two_lists_do(steps in steps()) {
            let (mut naive, mut matching) = (Naive::default(), Matching::<u32, u32>::default());
            let mut places = Vec::new();
            for (number, step) in (0..).zip(steps) {
                match step {
                    Step::Arrive(message) => {
                        let taken = matching.take_posted(&message);
                        if taken.is_none() {
                            matching.keep(message, number);
                        }
                        places.retain(|&(_, posted)| Some(posted) != taken);
                        prop_assert_eq!(taken, naive.arrive(message, number));
                    }
                    Step::Receive(pattern) => {
                        let expected = naive.receive(pattern, number);
                        let found = matching.find_unexpected(&pattern);
                        let taken = found.map(|place| matching.take_unexpected(place));
                        match &taken {
                            Some((message, _)) => prop_assert!(pattern.matches(message)),
                            None => places.push((matching.post(pattern, number), number)),
                        }
                        prop_assert_eq!(taken.map(|(_, number)| number), expected);
                    }
                    Step::Cancel(index) if index < places.len() => {
                        let (place, number) = places.remove(index);
                        prop_assert_eq!(matching.unpost(place), number);
                        naive.posted.retain(|&(_, posted)| posted != number);
                    }
                    Step::Cancel(_) => {}
                }
                prop_assert_eq!(matching.lengths(), [naive.posted.len(), naive.unexpected.len()]);
            }
        }
    }

    /// A receive of the last of many messages with different tags looks at a few of them only.
    #[test]
    fn bins_stay_short() {
        let mut queue = Queue::<u32, false>::default();
        let envelope = |tag| Envelope { context: Context(3), source: 1, tag };
        for tag in 0..10_000 {
            queue.push(envelope(tag), tag);
        }
        let longest = queue.longest_bin();
        assert!(longest <= 24, "a bin has {longest} of 10000 entries");
        let place = queue.find(&envelope(9_999)).expect("it is there");
        assert_eq!(queue.remove(place), (envelope(9_999), 9_999));
    }
}
