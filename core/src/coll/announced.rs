//! Places that members announce: the memory to which another member puts data that do not fit into a mailbox.
//!
//! Invariant: an announcement is read from memory that peers write, so it is compared with the member's
//! region before it is used.

use super::schedule::Slot;

/// A place of another member, as it has announced it.
pub struct Announced {
    pub slot: Slot,
    /// From the start of its region.
    pub offset: usize,
    pub bytes: usize,
}

impl Announced {
    /// Where `bytes` bytes at `offset` of the place lie, from the start of a region of `region_bytes`; `None`
    /// if they lie outside the place, or the place outside the region.
    pub fn at(&self, offset: usize, bytes: usize, region_bytes: usize) -> Option<usize> {
        let is_in_region = self.offset.checked_add(self.bytes).is_some_and(|end| end <= region_bytes);
        let is_in_place = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        (is_in_region && is_in_place).then(|| self.offset + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION_BYTES: usize = 1 << 20;

    fn at(place: (usize, usize), offset: usize, bytes: usize) -> Option<usize> {
        let (start, length) = place;
        Announced { slot: 0, offset: start, bytes: length }.at(offset, bytes, REGION_BYTES)
    }

    #[test]
    fn a_range_within_the_place_is_found() {
        assert_eq!(at((4096, 100), 0, 100), Some(4096));
        assert_eq!(at((4096, 100), 60, 40), Some(4156));
        assert_eq!(at((REGION_BYTES - 8, 8), 0, 8), Some(REGION_BYTES - 8));
        assert_eq!(at((4096, 0), 0, 0), Some(4096));
    }

    #[test]
    fn a_range_outside_the_place_or_the_region_is_refused() {
        let refused = [
            ((4096, 100), 0, 101),
            ((4096, 100), 101, 0),
            ((4096, 100), usize::MAX, 2),
            ((REGION_BYTES - 8, 9), 0, 1),
            ((REGION_BYTES + 1, 0), 0, 0),
            ((usize::MAX, 2), 0, 1),
            ((2, usize::MAX), 0, 1),
        ];
        for (place, offset, bytes) in refused {
            assert_eq!(at(place, offset, bytes), None, "{bytes} bytes at {offset} of {place:?}");
        }
    }
}
