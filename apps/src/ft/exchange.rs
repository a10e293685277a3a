//! One stage of a 3-D FFT: the planes of a PE are computed and turned, and their pieces are sent as soon as
//! they are final. `Pieces` decides when that is: blocks after all planes, slabs after each plane, pencils
//! after each row. Invariant: a piece is sent only after the last change of its elements. Sources: Bell,
//! Bonachea, Nishtala, Yelick, "Optimizing Bandwidth Limited Problems Using One-Sided Communication and
//! Overlap", section 5.3; Nishtala et al., "Scaling Communication-Intensive Applications on BlueGene/P Using
//! One-Sided Communication and Overlap", algorithms 1 and 2.

use num_complex::Complex64;
use pelago::Result;

use super::phases::Phase;
use super::transport::{Carrier, Lane};
use super::transposition::Pieces;

/// The computation of the pieces.
pub(super) trait Producer {
    /// Computes this PE's plane `plane` and turns it; its rows are written to their places in the buffer of
    /// the unit that the plane belongs to. They are complete, unless each row is a piece.
    fn turn(&mut self, plane: usize, unit: &mut [Complex64]);

    /// Completes a turned row that is a piece.
    fn complete(&mut self, row: &mut [Complex64]);
}

/// The producer that computes nothing: with it only the communication takes time.
pub(super) struct Nothing;

impl Producer for Nothing {
    fn turn(&mut self, _: usize, _: &mut [Complex64]) {}

    fn complete(&mut self, _: &mut [Complex64]) {}
}

/// Computes all pieces in `staging`, of which up to `window` units are in use at a time, and sends them. They
/// have arrived when all PEs have returned and passed a barrier.
///
/// # Errors
/// If the runtime refuses an operation.
pub(super) fn exchange(
    carrier: &dyn Carrier,
    lane: &Lane<'_, '_>,
    producer: &mut dyn Producer,
    staging: &mut [Complex64],
    window: usize,
) -> Result<()> {
    let round = lane.transposition;
    for first in (0..round.units()).step_by(window) {
        let mut buffers = staging.chunks_exact_mut(round.unit_len()).take(window);
        let each = round.steps() / round.units();
        let steps = first * each..round.units().min(first.saturating_add(window)) * each;
        carrier.carry(lane, steps, &mut |send| {
            for (unit, buffer) in (first..round.units()).zip(&mut buffers) {
                for plane in unit * round.unit_planes()..(unit + 1) * round.unit_planes() {
                    producer.turn(plane, buffer);
                }
                for (message, piece) in round.messages_of(unit).zip(round.pieces_in_turn(buffer)) {
                    if round.pieces == Pieces::Pencils {
                        producer.complete(piece);
                    }
                    send(message, piece)?;
                }
            }
            Ok(())
        })?;
        lane.clock.lap(Phase::CommunicationWait);
    }
    Ok(())
}
