//! A queue of entries that are found by their envelopes; or, if it is ordered, in the order in which they
//! were added as well.
//!
//! Invariant: entries with equal envelopes are in one bin, in the order in which they were added. So the
//! first entry of an envelope is found in a time that does not depend on the length of the queue.

use super::envelope::Envelope;

const NONE: u32 = u32::MAX;
/// Bins of an empty queue.
const BINS_MIN: usize = 32;

/// The queue.
pub struct Queue<T, const ORDERED: bool> {
    slots: Vec<Slot<T>>,
    free: u32,
    bins: Box<[Ends]>,
    all: Ends,
    len: usize,
}

/// The first and the last entry of a list.
#[derive(Clone, Copy)]
struct Ends {
    first: u32,
    last: u32,
}

const EMPTY: Ends = Ends { first: NONE, last: NONE };

#[derive(Clone, Copy)]
struct Links {
    previous: u32,
    next: u32,
}

struct Slot<T> {
    envelope: Envelope,
    /// The links of its bin, and those of the list of all entries.
    links: [Links; 2],
    value: Option<T>,
}

const BIN: usize = 0;
const ALL: usize = 1;

/// The place of an entry, as long as it is in the queue.
pub type Place = u32;

impl<T, const ORDERED: bool> Default for Queue<T, ORDERED> {
    fn default() -> Queue<T, ORDERED> {
        Queue { slots: Vec::new(), free: NONE, bins: vec![EMPTY; BINS_MIN].into(), all: EMPTY, len: 0 }
    }
}

impl<T, const ORDERED: bool> Queue<T, ORDERED> {
    /// The number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    fn bin(&self, envelope: &Envelope) -> usize {
        (envelope.hash() >> 32) as usize & (self.bins.len() - 1)
    }

    /// Adds an entry behind all others.
    #[inline]
    pub fn push(&mut self, envelope: Envelope, value: T) -> Place {
        if self.len == 2 * self.bins.len() {
            self.grow();
        }
        let links = [Links { previous: NONE, next: NONE }; 2];
        let slot = Slot { envelope, links, value: Some(value) };
        let place = match self.free {
            NONE => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
            place => {
                self.free = self.slots[place as usize].links[ALL].next;
                self.slots[place as usize] = slot;
                place
            }
        };
        let bin = self.bin(&envelope);
        self.bins[bin] = link(&mut self.slots, self.bins[bin], place, BIN);
        if ORDERED {
            self.all = link(&mut self.slots, self.all, place, ALL);
        }
        self.len += 1;
        place
    }

    /// Doubles the number of bins. The entries of a bin go to two bins, in the order in which they were.
    #[cold]
    fn grow(&mut self) {
        let bins = vec![EMPTY; 2 * self.bins.len()].into();
        for Ends { first: mut place, .. } in std::mem::replace(&mut self.bins, bins) {
            while place != NONE {
                let slot = &mut self.slots[place as usize];
                let (envelope, next) = (slot.envelope, slot.links[BIN].next);
                slot.links[BIN] = Links { previous: NONE, next: NONE };
                let bin = self.bin(&envelope);
                self.bins[bin] = link(&mut self.slots, self.bins[bin], place, BIN);
                place = next;
            }
        }
    }

    /// The first entry with just this envelope.
    #[inline]
    pub fn find(&self, envelope: &Envelope) -> Option<Place> {
        let mut place = self.bins[self.bin(envelope)].first;
        while place != NONE {
            let slot = &self.slots[place as usize];
            if slot.envelope == *envelope {
                return Some(place);
            }
            place = slot.links[BIN].next;
        }
        None
    }

    /// Takes the first entry with just this envelope.
    #[inline]
    pub fn take(&mut self, envelope: &Envelope) -> Option<T> {
        let bin = self.bin(envelope);
        let mut place = self.bins[bin].first;
        while place != NONE {
            let slot = &self.slots[place as usize];
            if slot.envelope == *envelope {
                return Some(self.remove_from(bin, place));
            }
            place = slot.links[BIN].next;
        }
        None
    }

    /// The entry at a place.
    pub fn get(&self, place: Place) -> (&Envelope, &T) {
        let slot = &self.slots[place as usize];
        (&slot.envelope, slot.value.as_ref().expect("the place has an entry"))
    }

    /// Removes the entry at a place.
    #[inline]
    pub fn remove(&mut self, place: Place) -> (Envelope, T) {
        let envelope = self.slots[place as usize].envelope;
        (envelope, self.remove_from(self.bin(&envelope), place))
    }

    #[inline(always)]
    fn remove_from(&mut self, bin: usize, place: Place) -> T {
        self.bins[bin] = unlink(&mut self.slots, self.bins[bin], place, BIN);
        if ORDERED {
            self.all = unlink(&mut self.slots, self.all, place, ALL);
        }
        self.len -= 1;
        let slot = &mut self.slots[place as usize];
        slot.links[ALL].next = self.free;
        self.free = place;
        slot.value.take().expect("the place has an entry")
    }
}

impl<T> Queue<T, true> {
    /// The first entry whose envelope a pattern matches.
    pub fn find_match(&self, pattern: &Envelope) -> Option<Place> {
        let mut place = self.all.first;
        while place != NONE {
            let slot = &self.slots[place as usize];
            if pattern.matches(&slot.envelope) {
                return Some(place);
            }
            place = slot.links[ALL].next;
        }
        None
    }
}

#[cfg(test)]
impl<T, const ORDERED: bool> Queue<T, ORDERED> {
    pub fn longest_bin(&self) -> usize {
        let length = |ends: &Ends| {
            let some = |place: u32| Some(place).filter(|&place| place != NONE);
            let next = |&place: &u32| some(self.slots[place as usize].links[BIN].next);
            std::iter::successors(some(ends.first), next).count()
        };
        self.bins.iter().map(length).max().unwrap_or(0)
    }
}

/// Links a slot behind the last one of a list.
#[inline(always)]
fn link<T>(slots: &mut [Slot<T>], ends: Ends, place: u32, list: usize) -> Ends {
    if ends.last == NONE {
        return Ends { first: place, last: place };
    }
    slots[place as usize].links[list].previous = ends.last;
    slots[ends.last as usize].links[list].next = place;
    Ends { first: ends.first, last: place }
}

/// Takes a slot out of a list.
#[inline(always)]
fn unlink<T>(slots: &mut [Slot<T>], mut ends: Ends, place: u32, list: usize) -> Ends {
    let Links { previous, next } = slots[place as usize].links[list];
    match previous {
        NONE => ends.first = next,
        _ => slots[previous as usize].links[list].next = next,
    }
    match next {
        NONE => ends.last = previous,
        _ => slots[next as usize].links[list].previous = previous,
    }
    ends
}
