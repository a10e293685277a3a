//! The hash by which a run's points and clusters are compared with those of other programs: FNV-1a of 64
//! bits, except for its start value. Invariant: the start value is that of the reference values, which is the
//! published one without its last decimal digit; every other step is as published. Source: Fowler, Noll, Vo
//! and Eastlake, "The FNV non-cryptographic hash algorithm".

const START: u64 = 1_469_598_103_934_665_603;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// A hash of the bytes added so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fnv(u64);

impl Fnv {
    pub(super) fn new() -> Self {
        Fnv(START)
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    }

    pub(super) fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_the_published_start_hashes_are_the_published_ones() {
        let published = 14_695_981_039_346_656_037;
        assert_eq!(published / 10, START);
        for (text, value) in
            [("", published), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            let mut hash = Fnv(published);
            hash.add(text.as_bytes());
            assert_eq!(hash.value(), value, "{text:?}");
        }
    }
}
