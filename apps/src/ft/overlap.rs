//! The overlap of communication and computation in a run: the *overlap share* is the part of the
//! communication time that is hidden behind computation, `1 - exposed / alone`. *Alone* is the time that the
//! messages of the run take without any computation between them, measured after the run; *exposed* is the
//! time of the run in which a PE starts messages or waits for them. Both are means over the PEs, without
//! packing and barriers. Nothing is hidden where a message has arrived when the call that sends it returns,
//! or where nothing is computed while messages are under way.
//! Invariant: the share is in 0..=1. Source of the efficiency: Bell, Bonachea, Nishtala, Yelick, "Optimizing
//! Bandwidth Limited Problems Using One-Sided Communication and Overlap", table 1.

use serde::Serialize;

use super::phases::Phase;

/// How much of the communication of a run is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Overlap {
    /// The part of the communication time hidden behind computation.
    pub(super) share: f64,
    /// The part that can be hidden according to the paper's formula.
    pub(super) efficiency: f64,
    /// Seconds in which a PE started messages or waited for them.
    pub(super) exposed_seconds: f64,
    /// Seconds that the same messages take alone.
    pub(super) alone_seconds: f64,
}

impl Overlap {
    /// The overlap of a run from its times. `hides_nothing`: no message is under way during a computation.
    pub(super) fn new(
        exposed_seconds: f64,
        alone_seconds: f64,
        efficiency: f64,
        hides_nothing: bool,
    ) -> Self {
        let hidden = 1.0 - exposed_seconds / alone_seconds;
        let share = if hides_nothing || hidden.is_nan() { 0.0 } else { hidden.clamp(0.0, 1.0) };
        Overlap { share, efficiency, exposed_seconds, alone_seconds }
    }
}

/// The time of a PE that counts as communication, of its seconds by phase.
pub(super) fn communication(seconds: &[f64]) -> f64 {
    seconds[Phase::CommunicationStart as usize] + seconds[Phase::CommunicationWait as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_the_part_that_is_not_exposed() {
        for (exposed, alone, share) in [
            (0.0, 2.0, 1.0),
            (0.5, 2.0, 0.75),
            (2.0, 2.0, 0.0),
            (3.0, 2.0, 0.0),
            (0.0, 0.0, 0.0),
            (1.0, 0.0, 0.0),
        ] {
            assert_eq!(Overlap::new(exposed, alone, 0.5, false).share, share, "{exposed} of {alone}");
            assert_eq!(Overlap::new(exposed, alone, 0.5, true).share, 0.0);
        }
    }

    #[test]
    fn starting_and_waiting_are_communication() {
        let mut seconds = [0.0; Phase::ALL.len()];
        for (index, phase) in Phase::ALL.into_iter().enumerate() {
            seconds[index] = if phase.label().starts_with("communication") { 1.5 } else { 100.0 };
        }
        assert_eq!(communication(&seconds), 3.0);
    }
}
