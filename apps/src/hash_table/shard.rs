//! One PE's part of a hash table: open addressing with linear probing. Invariant: no slot is free between the
//! place that a key hashes to and the place of the key; so a removal closes its gap.
//! Source: D. Knuth, The Art of Computer Programming, volume 3, section 6.4, algorithms L and R.

use crate::splitmix::mix;

/// The key that marks a free slot. The value of this key is stored outside of the slots.
const FREE: u64 = 0;
/// The minimum number of slots.
const SLOTS_MIN: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: u64,
    value: u64,
}

/// Keys and their values.
#[derive(Clone, Debug)]
pub(super) struct Shard {
    /// The slots; their number is a power of two, and at least a quarter of them is free.
    slots: Vec<Slot>,
    /// The number of slots that are not free.
    used: usize,
    /// The value of the key that marks free slots.
    of_free: Option<u64>,
}

impl Shard {
    /// A shard with memory for `keys` keys; it grows when more are added.
    pub(super) fn with_room(keys: usize) -> Self {
        let slots = (keys + keys / 2).next_power_of_two().max(SLOTS_MIN);
        Shard { slots: vec![Slot { key: FREE, value: 0 }; slots], used: 0, of_free: None }
    }

    /// The number of keys.
    pub(super) fn len(&self) -> usize {
        self.used + usize::from(self.of_free.is_some())
    }

    /// The value of a key.
    pub(super) fn find(&self, key: u64) -> Option<u64> {
        if key == FREE {
            return self.of_free;
        }
        let slot = self.slots[self.place_of(key)];
        (slot.key == key).then_some(slot.value)
    }

    /// Gives a key the value that `change` makes of its present one.
    pub(super) fn update(&mut self, key: u64, change: impl FnOnce(Option<u64>) -> u64) {
        if key == FREE {
            self.of_free = Some(change(self.of_free));
            return;
        }
        let place = self.place_of(key);
        let slot = &mut self.slots[place];
        if slot.key == key {
            slot.value = change(Some(slot.value));
            return;
        }
        *slot = Slot { key, value: change(None) };
        self.used += 1;
        if self.used > self.slots.len() / 4 * 3 {
            self.grow();
        }
    }

    /// Removes a key, if it is there.
    pub(super) fn remove(&mut self, key: u64) {
        if key == FREE {
            self.of_free = None;
            return;
        }
        let (mut hole, mask) = (self.place_of(key), self.slots.len() - 1);
        if self.slots[hole].key != key {
            return;
        }
        self.used -= 1;
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let slot = self.slots[place];
            if slot.key == FREE {
                break;
            }
            let distance = |from: usize| place.wrapping_sub(from) & mask;
            if distance(self.home(slot.key)) >= distance(hole) {
                self.slots[hole] = slot;
                hole = place;
            }
        }
        self.slots[hole].key = FREE;
    }

    /// The slot of a key, or the slot in which it would be inserted.
    #[inline]
    fn place_of(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut place = self.home(key);
        while self.slots[place].key != key && self.slots[place].key != FREE {
            place = (place + 1) & mask;
        }
        place
    }

    /// The slot that a key hashes to. The hash's high bits choose the PE, its low ones the place.
    #[inline]
    fn home(&self, key: u64) -> usize {
        mix(key) as usize & (self.slots.len() - 1)
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![Slot { key: FREE, value: 0 }; 2 * self.slots.len()];
        for slot in std::mem::replace(&mut self.slots, larger) {
            if slot.key != FREE {
                let place = self.place_of(slot.key);
                self.slots[place] = slot;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::splitmix::SplitMix;

    /// Performs the same operations on a shard and on a map, and compares them.
    fn compare(seed: u64, keys: u64, operations: usize) {
        let mut random = SplitMix::new(seed);
        let (mut shard, mut map) = (Shard::with_room(0), HashMap::new());
        for _ in 0..operations {
            let (key, value) = (random.below(keys), random.next());
            match random.below(4) {
                0 => {
                    shard.remove(key);
                    map.remove(&key);
                }
                1 => assert_eq!(shard.find(key), map.get(&key).copied(), "key {key} of seed {seed}"),
                _ => {
                    let change = |old: Option<u64>| old.unwrap_or(7) ^ value;
                    shard.update(key, change);
                    map.insert(key, change(map.get(&key).copied()));
                }
            }
            assert_eq!(shard.len(), map.len(), "seed {seed}");
        }
        for key in 0..keys {
            assert_eq!(shard.find(key), map.get(&key).copied(), "key {key} of seed {seed}");
        }
    }

    #[test]
    fn a_shard_does_what_a_map_does() {
        for (seed, keys) in [(1, 3), (2, 10), (3, 12), (4, 100), (5, 1000), (6, 20_000)] {
            compare(seed, keys, 20_000);
        }
    }

    #[test]
    fn the_key_of_free_slots_is_a_key_as_well() {
        let mut shard = Shard::with_room(4);
        assert_eq!((shard.find(FREE), shard.len()), (None, 0));
        shard.update(FREE, |old| old.map_or(5, |value| value + 1));
        shard.update(FREE, |old| old.map_or(5, |value| value + 1));
        assert_eq!((shard.find(FREE), shard.len()), (Some(6), 1));
        shard.remove(FREE);
        shard.remove(FREE);
        assert_eq!((shard.find(FREE), shard.len()), (None, 0));
    }

    #[test]
    fn a_shard_grows_and_keeps_a_quarter_free() {
        let mut shard = Shard::with_room(0);
        for key in 1..10_000 {
            shard.update(key, |_| 2 * key);
            assert!(shard.used <= shard.slots.len() / 4 * 3 && shard.slots.len().is_power_of_two());
        }
        assert!((1..10_000).all(|key| shard.find(key) == Some(2 * key)));
        assert!(Shard::with_room(1000).slots.len() / 4 * 3 >= 1000);
    }
}
