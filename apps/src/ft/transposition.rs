//! The places of the rows of one 3D FFT before, during and after the transposition. A PE transforms its own
//! *planes* along their rows (the inner axis) and across them (the middle axis); a row of the result has one
//! inner index and all the middle ones, and goes to the PE that owns its inner index; that PE transforms
//! along the outer axis. Invariant: the pieces that a variant sends are contiguous at both ends, and the
//! places of all rows fill the inbox exactly once. Source: Bell, Bonachea, Nishtala, Yelick, "Optimizing
//! Bandwidth Limited Problems Using One-Sided Communication and Overlap", section 5.

/// The transposition of one 3D FFT across the PEs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transposition {
    pub(super) pes: usize,
    pub(super) me: usize,
    /// Length of the axis along which the PEs share the planes at the start.
    pub(super) outer: usize,
    /// Length of the axis that stays whole.
    pub(super) middle: usize,
    /// Length of the axis that is contiguous at the start, and shared by the PEs at the end.
    pub(super) inner: usize,
}

impl Transposition {
    /// Planes that each PE owns at the start.
    pub(super) fn planes(&self) -> usize {
        self.outer / self.pes
    }

    /// Rows of each plane that go to one PE; planes that each PE owns at the end.
    pub(super) fn rows(&self) -> usize {
        self.inner / self.pes
    }

    /// Elements of one plane at the start.
    pub(super) fn plane_len(&self) -> usize {
        self.inner * self.middle
    }

    /// Elements of one plane that go to one PE.
    pub(super) fn slab_len(&self) -> usize {
        self.rows() * self.middle
    }

    /// Elements that go from one PE to another.
    pub(super) fn block_len(&self) -> usize {
        self.planes() * self.slab_len()
    }

    /// The index in the receiver's inbox at which its rows of this PE's plane `plane` begin.
    pub(super) fn slab(&self, plane: usize) -> usize {
        self.me * self.block_len() + plane * self.slab_len()
    }

    /// The index in the inbox at which this PE's row `row` of plane `outer` of the grid begins.
    pub(super) fn received(&self, outer: usize, row: usize) -> usize {
        outer * self.slab_len() + row * self.middle
    }

    /// All PEs, beginning with the next one, so that the PEs do not all send to the same PE at once.
    pub(super) fn peers(&self) -> impl Iterator<Item = usize> {
        let Transposition { me, pes, .. } = *self;
        (1..=pes).map(move |distance| (me + distance) % pes)
    }

    /// The rows of a turned plane with their numbers, in the order of `peers`.
    pub(super) fn rows_in_turn<'a, T>(
        &self,
        turned: &'a mut [T],
    ) -> impl Iterator<Item = (usize, &'a mut [T])> {
        let first_row = (self.me + 1) % self.pes * self.rows();
        let (last, first) = turned.split_at_mut(first_row * self.middle);
        let (first, last) = (first.chunks_exact_mut(self.middle), last.chunks_exact_mut(self.middle));
        (first_row..).zip(first).chain((0..).zip(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAY: Transposition = Transposition { pes: 2, me: 1, outer: 4, middle: 3, inner: 6 };

    #[test]
    fn what_the_sender_places_is_what_the_receiver_finds_and_fills_the_inbox() {
        let mut found = Vec::new();
        for (outer, row) in (0..WAY.outer).flat_map(|outer| (0..WAY.rows()).map(move |row| (outer, row))) {
            let sender = Transposition { me: outer / 2, ..WAY };
            assert_eq!(WAY.received(outer, row), sender.slab(outer % 2) + row * WAY.middle);
            found.push(WAY.received(outer, row));
        }
        assert_eq!(found, (0..2 * WAY.block_len()).step_by(WAY.middle).collect::<Vec<_>>());
    }

    #[test]
    fn blocks_consist_of_slabs_and_slabs_of_rows() {
        assert_eq!((WAY.planes(), WAY.rows()), (2, 3));
        assert_eq!((WAY.slab_len(), WAY.block_len(), WAY.plane_len()), (9, 18, 18));
        assert_eq!((WAY.slab(0), WAY.slab(1)), (18, 27));
    }

    #[test]
    fn every_pe_is_a_peer_once_and_the_next_comes_first() {
        let way = Transposition { pes: 4, me: 2, ..WAY };
        assert_eq!(way.peers().collect::<Vec<_>>(), [3, 0, 1, 2]);
        let way = Transposition { me: 0, ..WAY };
        let mut turned: Vec<_> = (0..way.plane_len()).collect();
        let rows: Vec<_> = way.rows_in_turn(&mut turned).map(|(row, pencil)| (row, pencil[0])).collect();
        assert_eq!(rows, [(3, 9), (4, 12), (5, 15), (0, 0), (1, 3), (2, 6)]);
    }
}
