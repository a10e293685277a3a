//! One transposition within a team, as data: which member gets which piece when. A PE transforms lines of its
//! own *planes* and turns each plane, so that element i of every line is in row i; row i goes to the member
//! that owns its index. The rows travel in *pieces*; in every *step* a PE sends one piece to each member.
//! Staging buffer and inbox have the same arrangement: what goes to a member in the one comes from this
//! member in the other. Invariant: a piece is contiguous at both ends, and the pieces of all members fill the
//! inbox exactly once. Sources: Bell, Bonachea, Nishtala, Yelick, "Optimizing Bandwidth Limited Problems
//! Using One-Sided Communication and Overlap", section 5; Nishtala et al., "Scaling Communication-Intensive
//! Applications on BlueGene/P Using One-Sided Communication and Overlap", algorithms 1 and 2.

use std::ops::Range;

use pelago::Pe;

/// How a plane is cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pieces {
    /// All planes together: one step.
    Blocks,
    /// Each plane on its own: a step a plane.
    Slabs,
    /// Each row on its own: a step a row of each member.
    Pencils,
}

/// The team of a transposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    /// All PEs, in a 1-D decomposition.
    All,
    /// The PEs of a row of the process grid, which share a plane.
    Row,
    /// The PEs of a column of the process grid.
    Column,
}

/// The members of a team, by rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Members {
    pub(super) among: Among,
    pub(super) count: usize,
    /// This PE's rank.
    pub(super) me: usize,
    /// The PE of rank 0.
    pub(super) first: Pe,
    /// The distance between the PEs of two ranks.
    pub(super) stride: usize,
}

impl Members {
    /// The PE of a rank.
    pub(super) fn pe(&self, rank: usize) -> Pe {
        self.first + rank * self.stride
    }

    /// All ranks, beginning with the next one, so that the PEs do not all send to the same PE at once; this
    /// PE's own rank is the last.
    pub(super) fn in_turn(self) -> impl Iterator<Item = usize> {
        let Members { me, count, .. } = self;
        (1..=count).map(move |distance| (me + distance) % count)
    }

    /// This PE's part of an axis of length `len`.
    pub(super) fn part(&self, len: usize) -> Range<usize> {
        let own = len / self.count;
        self.me * own..(self.me + 1) * own
    }
}

/// One message of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// The step in which it is sent.
    pub(super) step: usize,
    /// The rank of the receiver.
    pub(super) rank: usize,
    /// The receiver.
    pub(super) pe: Pe,
    /// The index in the receiver's inbox at which it begins.
    pub(super) place: usize,
    /// Number of elements.
    pub(super) len: usize,
}

/// One transposition, as one PE sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transposition {
    pub(super) team: Members,
    /// Planes of this PE.
    pub(super) planes: usize,
    /// Rows of a turned plane that go to one member.
    pub(super) rows: usize,
    /// Elements of a row; also the number of lines that are transformed in a plane.
    pub(super) row_len: usize,
    pub(super) pieces: Pieces,
}

impl Transposition {
    /// Elements of a line, which is transformed before the transposition.
    pub(super) fn line_len(&self) -> usize {
        self.team.count * self.rows
    }

    /// Elements of a plane.
    pub(super) fn plane_len(&self) -> usize {
        self.line_len() * self.row_len
    }

    /// Elements of a piece.
    pub(super) fn piece_len(&self) -> usize {
        self.row_len
            * match self.pieces {
                Pieces::Blocks => self.planes * self.rows,
                Pieces::Slabs => self.rows,
                Pieces::Pencils => 1,
            }
    }

    /// Number of steps.
    pub(super) fn steps(&self) -> usize {
        self.planes * self.plane_len() / (self.team.count * self.piece_len())
    }

    /// Planes that must be turned before the next piece can be sent: a unit.
    pub(super) fn unit_planes(&self) -> usize {
        match self.pieces {
            Pieces::Blocks => self.planes,
            Pieces::Slabs | Pieces::Pencils => 1,
        }
    }

    /// Elements of a unit.
    pub(super) fn unit_len(&self) -> usize {
        self.unit_planes() * self.plane_len()
    }

    /// Number of units.
    pub(super) fn units(&self) -> usize {
        self.planes / self.unit_planes()
    }

    /// Elements of a unit that go to one member.
    fn part_len(&self) -> usize {
        self.unit_len() / self.team.count
    }

    /// The index of the row `row` of a member, of plane `plane`: in the staging buffer it goes to the member
    /// of rank `rank`, in the inbox it comes from it.
    pub(super) fn at(&self, rank: usize, plane: usize, row: usize) -> usize {
        let (unit, plane) = (plane / self.unit_planes(), plane % self.unit_planes());
        (unit * self.team.count + rank) * self.part_len() + (plane * self.rows + row) * self.row_len
    }

    /// The index at which the piece of a step begins that goes to, or comes from, the member of rank `rank`:
    /// in the staging buffer of the sender, or in the inbox of the receiver.
    pub(super) fn place(&self, step: usize, rank: usize) -> usize {
        let steps = self.steps() / self.units();
        let (unit, step) = (step / steps, step % steps);
        (unit * self.team.count + rank) * self.part_len() + step * self.piece_len()
    }

    /// The messages of this PE with pieces of a unit, in the order in which they are sent: those to the PE
    /// itself are the last ones.
    pub(super) fn messages_of(&self, unit: usize) -> impl Iterator<Item = Message> + use<> {
        let round = *self;
        let (team, steps) = (self.team, self.steps() / self.units());
        team.in_turn().flat_map(move |rank| {
            (unit * steps..(unit + 1) * steps).map(move |step| {
                let place = round.place(step, team.me);
                Message { step, rank, pe: team.pe(rank), place, len: round.piece_len() }
            })
        })
    }

    /// All messages of this PE.
    pub(super) fn messages(&self) -> impl Iterator<Item = Message> {
        (0..self.units()).flat_map(|unit| self.messages_of(unit))
    }

    /// The pieces of a unit in the order in which they are sent.
    pub(super) fn pieces_in_turn<'a, T>(&self, unit: &'a mut [T]) -> impl Iterator<Item = &'a mut [T]> {
        let next = (self.team.me + 1) % self.team.count;
        let (last, first) = unit.split_at_mut(next * self.part_len());
        let [first, last] = [first, last].map(|pieces| pieces.chunks_exact_mut(self.piece_len()));
        first.chain(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEAM: Members = Members { among: Among::Column, count: 3, me: 1, first: 5, stride: 10 };
    const ALL_PIECES: [Pieces; 3] = [Pieces::Blocks, Pieces::Slabs, Pieces::Pencils];

    fn transposition(me: usize, pieces: Pieces) -> Transposition {
        Transposition { team: Members { me, ..TEAM }, planes: 4, rows: 2, row_len: 5, pieces }
    }

    #[test]
    fn pieces_have_the_sizes_of_their_names() {
        for (pieces, piece_len, steps, unit) in
            [(Pieces::Blocks, 40, 1, 120), (Pieces::Slabs, 10, 4, 30), (Pieces::Pencils, 5, 8, 30)]
        {
            let cut = transposition(0, pieces);
            assert_eq!(
                (cut.piece_len(), cut.steps(), cut.unit_len()),
                (piece_len, steps, unit),
                "{pieces:?}"
            );
            assert_eq!((cut.line_len(), cut.plane_len()), (6, 30));
        }
    }

    #[test]
    fn messages_of_all_members_fill_every_inbox_once() {
        for pieces in ALL_PIECES {
            for receiver in 0..3 {
                let senders = (0..3).map(|sender| transposition(sender, pieces));
                let mut filled: Vec<_> = senders
                    .flat_map(|sender| sender.messages().collect::<Vec<_>>())
                    .filter(|message| message.pe == TEAM.pe(receiver))
                    .flat_map(|message| message.place..message.place + message.len)
                    .collect();
                filled.sort_unstable();
                assert_eq!(filled, (0..120).collect::<Vec<_>>(), "{pieces:?} to {receiver}");
            }
        }
    }

    #[test]
    fn rows_lie_in_the_piece_of_their_step_and_member() {
        for pieces in ALL_PIECES {
            let cut = transposition(1, pieces);
            let mut found = Vec::new();
            for (rank, plane, row) in
                (0..3).flat_map(|rank| (0..8).map(move |index| (rank, index / 2, index % 2)))
            {
                let step = match pieces {
                    Pieces::Blocks => 0,
                    Pieces::Slabs => plane,
                    Pieces::Pencils => plane * 2 + row,
                };
                let (start, at) = (cut.place(step, rank), cut.at(rank, plane, row));
                assert!((start..start + cut.piece_len()).contains(&at), "{pieces:?}");
                assert_eq!(at, cut.at(rank, 0, 0) + cut.at(0, plane, 0) + cut.at(0, 0, row));
                found.push(at);
            }
            found.sort_unstable();
            assert_eq!(found, (0..120).step_by(5).collect::<Vec<_>>(), "{pieces:?}");
        }
    }

    #[test]
    fn every_member_has_its_turn_once_and_the_next_comes_first() {
        assert_eq!(TEAM.in_turn().collect::<Vec<_>>(), [2, 0, 1]);
        assert_eq!([0, 1, 2].map(|rank| TEAM.pe(rank)), [5, 15, 25]);
        for me in 0..3 {
            let cut = transposition(me, Pieces::Slabs);
            let mut unit: Vec<_> = (0..cut.unit_len()).collect();
            let pieces: Vec<_> = cut.pieces_in_turn(&mut unit).map(|piece| piece[0]).collect();
            let messages: Vec<_> = cut.messages_of(2).collect();
            assert_eq!(pieces, messages.iter().map(|message| 10 * message.rank).collect::<Vec<_>>());
            let rows = Transposition { pieces: Pieces::Pencils, ..cut };
            let pieces: Vec<_> = rows.pieces_in_turn(&mut unit).map(|piece| piece[0]).collect();
            let places: Vec<_> =
                rows.messages_of(2).map(|message| rows.place(message.step, message.rank) - 60).collect();
            assert_eq!(pieces, places);
            let ranks = cut.team.in_turn().map(|rank| (2, rank, TEAM.pe(rank), 10 * (2 * 3 + me)));
            let sent = messages.iter().map(|message| (message.step, message.rank, message.pe, message.place));
            assert!(sent.eq(ranks), "{messages:?}");
            assert_eq!(cut.messages().count(), 12);
        }
    }

    #[test]
    fn an_axis_is_shared_in_the_order_of_ranks() {
        assert_eq!(TEAM.part(12), 4..8);
    }
}
