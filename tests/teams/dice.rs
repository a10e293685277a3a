//! Numbers that look random and are the same at all PEs: splitmix64 (Steele, Lea, Flood 2014).

pub struct Dice(pub u64);

impl Dice {
    /// A number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ mixed >> 27) % limit.max(1) as u64) as usize
    }

    /// A range within an array.
    pub fn range(&mut self, len: usize) -> std::ops::Range<usize> {
        let (one, two) = (self.below(len + 1), self.below(len + 1));
        one.min(two)..one.max(two)
    }

    /// Indices of an array, some of them several times; empty for an empty array.
    pub fn list(&mut self, len: usize, count: usize) -> Vec<usize> {
        (0..if len == 0 { 0 } else { count }).map(|_| self.below(len)).collect()
    }

    /// Different indices of an array.
    pub fn set(&mut self, len: usize, count: usize) -> Vec<usize> {
        let mut seen = vec![false; len];
        let mut list = self.list(len, count);
        list.retain(|&index| !std::mem::replace(&mut seen[index], true));
        list
    }
}
