//! The wait set of a call that waits for all of several elements (OpenSHMEM 1.6, section 9.11): the elements
//! that are still waited for.
//!
//! Invariant: an element for which the comparison has held is not looked at again, whatever value it has
//! then. A set of at most 64 elements takes no memory of the heap, nor does one whose elements come in order.

/// Elements of a word of bits.
const BITS: usize = u64::BITS as usize;

/// The elements that are still waited for.
pub struct WaitSet {
    len: usize,
    /// The comparison has held for all elements before this one.
    first: usize,
    /// A bit for each element for which it has held: of a set of at most 64 elements, or of a larger one.
    few: u64,
    many: Vec<u64>,
}

impl WaitSet {
    /// A set of `len` elements, all waited for.
    pub fn new(len: usize) -> WaitSet {
        WaitSet { len, first: 0, few: 0, many: Vec::new() }
    }

    /// Looks at each element that is still waited for, and returns whether there is none any more.
    #[inline]
    pub fn look(&mut self, mut holds: impl FnMut(usize) -> bool) -> bool {
        while self.first < self.len && (self.has_held(self.first) || holds(self.first)) {
            self.first += 1;
        }
        for index in self.first + 1..self.len {
            if !self.has_held(index) && holds(index) {
                self.note(index);
            }
        }
        self.first == self.len
    }

    #[inline]
    fn has_held(&self, index: usize) -> bool {
        let word = if self.len <= BITS { Some(&self.few) } else { self.many.get(index / BITS) };
        word.is_some_and(|word| word >> (index % BITS) & 1 != 0)
    }

    #[cold]
    fn note(&mut self, index: usize) {
        let bit = 1 << (index % BITS);
        if self.len <= BITS {
            self.few |= bit;
            return;
        }
        if self.many.is_empty() {
            self.many = vec![0; self.len.div_ceil(BITS)];
        }
        self.many[index / BITS] |= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Values come and go; a model keeps for each element whether it was ever seen.
        #[test]
        fn each_element_is_waited_for_until_it_has_held_once(
            len in prop_oneof![0usize..70, Just(64), Just(65), 120usize..200],
            seed in 1u64.., rarity in 1u64..40,
        ) {
            let mut set = WaitSet::new(len);
            let mut seen = vec![false; len];
            let mut random = seed;
            for _ in 0..200 {
                let mut looked_at = Vec::new();
                let is_over = set.look(|index| {
                    looked_at.push(index);
                    random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let holds = (random >> 33).is_multiple_of(rarity);
                    seen[index] |= holds;
                    holds
                });
                prop_assert!(looked_at.is_sorted(), "each once: {looked_at:?}");
                prop_assert_eq!(is_over, seen.iter().all(|&seen| seen));
                let missed = (0..len).find(|index| !seen[*index] && !looked_at.contains(index));
                prop_assert_eq!(missed, None);
            }
        }
    }

    #[test]
    fn what_has_held_for_a_while_is_enough() {
        for len in [2, 100] {
            let mut set = WaitSet::new(len);
            assert!(!set.look(|index| index > 0), "the first is missing");
            assert!(set.look(|index| index == 0), "the others have held before");
        }
        assert!(WaitSet::new(0).look(|_| false));
    }
}
