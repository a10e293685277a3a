//! The best algorithm for an operation on a modelled machine: all candidates are ranked by the estimate, and
//! the first of them are simulated.
//!
//! Invariant: a result is a function of machine, operation, PEs and bytes alone. Candidates with more
//! messages than the bound are not simulated; they keep their estimates.

use crate::action::Collective;
use crate::engine::{Error, run};
use crate::machine::Machine;
use crate::time::NANOSECOND;
use pelago_schedule::candidates::Candidate;
use pelago_schedule::estimate::Costs;
use pelago_schedule::select::{Laws, Preferences};
use pelago_schedule::shape::{Operation, Shape};
use pelago_schedule::table::algorithms;
use std::sync::Arc;

/// A choice without a file stays unless another one is faster by more than this factor: a model is not exact.
const TIE: f64 = 1.05;

/// A candidate with its times.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// The candidate.
    pub candidate: Candidate,
    /// The estimate, in nanoseconds.
    pub estimated: f64,
    /// The simulated time, in nanoseconds, if it was simulated.
    pub simulated: Option<f64>,
}

impl Trial {
    /// The simulated time, otherwise the estimate.
    pub fn time(&self) -> f64 {
        self.simulated.unwrap_or(self.estimated)
    }
}

/// An operation among a number of PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The operation.
    pub operation: Operation,
    /// The number of PEs.
    pub pes: usize,
    /// The bytes of a block.
    pub bytes: usize,
}

/// The bounds of simulations.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The number of candidates that are simulated, the best by the estimate.
    pub best: usize,
    /// The most messages of a simulation.
    pub messages: f64,
}

impl Cell {
    /// Its shape on a machine, and all its candidates.
    pub fn candidates(&self, machine: &Machine) -> (Shape, Vec<Candidate>) {
        let bytes = if self.operation == Operation::Barrier { 0 } else { self.bytes };
        let any = algorithms().find(|algorithm| algorithm.operation == self.operation);
        let any = any.expect("every operation has an algorithm");
        let shape = Collective::world(any, self.pes, bytes, machine.pes_per_node).shape;
        let candidates = Candidate::all(self.operation).filter(|one| one.can_do(&shape)).collect();
        (shape, candidates)
    }

    /// All candidates, the quickest by the estimate first. None is simulated.
    ///
    /// # Errors
    /// If the machine is too small.
    pub fn estimate(&self, machine: &Machine) -> Result<Vec<Trial>, Error> {
        let costs: Costs = machine.costs(self.pes)?;
        let (shape, candidates) = self.candidates(machine);
        let ranking = costs.ranking(candidates, &shape).into_iter();
        let trial = |(candidate, estimated)| Trial { candidate, estimated, simulated: None };
        Ok(ranking.map(trial).collect())
    }

    /// The same, with the best of them simulated within the bounds.
    ///
    /// # Errors
    /// If the machine is too small.
    pub fn trials(&self, machine: &Machine, bounds: Bounds) -> Result<Vec<Trial>, Error> {
        let mut trials = self.estimate(machine)?;
        for trial in trials.iter_mut().take(bounds.best) {
            trial.simulated = self.simulate(machine, &trial.candidate, bounds.messages)?;
        }
        Ok(trials)
    }

    /// The simulated time of a candidate, in nanoseconds; `None` if it has more messages than the bound.
    ///
    /// # Errors
    /// If the machine is too small.
    pub fn simulate(
        &self,
        machine: &Machine,
        candidate: &Candidate,
        messages: f64,
    ) -> Result<Option<f64>, Error> {
        let bytes = if self.operation == Operation::Barrier { 0 } else { self.bytes };
        let mut collective = Collective::world(candidate.algorithm, self.pes, bytes, machine.pes_per_node);
        collective.shape.tuning = candidate.tuning;
        if collective.messages() > messages {
            return Ok(None);
        }
        let outcome = run(machine, &Arc::new(collective))?;
        Ok(Some(outcome.time as f64 / NANOSECOND as f64))
    }

    /// The trial of the choice without a tuning file, for sums of floating-point numbers.
    pub fn usual<'t>(&self, machine: &Machine, trials: &'t [Trial]) -> Option<&'t Trial> {
        let (shape, _) = self.candidates(machine);
        let sum = Laws { is_associative: false, is_commutative: true };
        let choice = Preferences::default().choose(&shape, self.operation.combines().then_some(sum))?;
        trials.iter().find(|trial| trial.candidate == Candidate::from(choice))
    }
}

/// The trial to choose among those that were simulated, or would have been if they had fewer messages: the
/// quickest, of equal ones the first; or the usual one if it is nearly as quick. `None` if there are no
/// trials.
pub fn choose<'t>(trials: &'t [Trial], usual: Option<&'t Trial>, bounds: Bounds) -> Option<&'t Trial> {
    let (first, rest) = trials.split_at(bounds.best.min(trials.len()));
    let tried = first.iter().chain(rest.iter().filter(|trial| trial.simulated.is_some()));
    let best = tried.min_by(|a, b| a.time().total_cmp(&b.time()))?;
    // An estimate that was not simulated proves nothing against a simulation.
    let usual = usual.filter(|usual| usual.simulated.is_some() == best.simulated.is_some());
    Some(usual.filter(|usual| usual.time() <= best.time() * TIE).unwrap_or(best))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: Cell = Cell { operation: Operation::Broadcast, pes: 16, bytes: 1 << 20 };

    const BOUNDS: Bounds = Bounds { best: 3, messages: 1e6 };

    fn machine() -> Machine {
        Machine::load("tcp-veth").unwrap()
    }

    #[test]
    fn the_best_are_simulated_and_the_quickest_is_chosen() {
        let trials = CELL.trials(&machine(), BOUNDS).unwrap();
        let simulated: Vec<_> = trials.iter().map(|trial| trial.simulated.is_some()).collect();
        assert!(trials.len() > 8, "{trials:?}");
        assert_eq!(simulated.iter().filter(|is| **is).count(), 3);
        assert!(simulated[..3].iter().all(|is| *is), "{simulated:?}");
        let chosen = choose(&trials, None, BOUNDS).unwrap();
        assert!(trials[..3].iter().all(|trial| chosen.time() <= trial.time()), "{chosen:?}");
        let few = CELL.trials(&machine(), Bounds { best: 3, messages: 14.0 }).unwrap();
        assert!(few.iter().all(|trial| trial.simulated.is_none()), "15 messages are more than 14");
    }

    #[test]
    fn the_usual_one_stays_unless_another_is_clearly_quicker() {
        let trials = CELL.estimate(&machine()).unwrap();
        let with =
            |times: [f64; 2]| [0, 1].map(|index| Trial { simulated: Some(times[index]), ..trials[index] });
        for (times, expected) in [([100.0, 104.0], 1), ([100.0, 106.0], 0), ([100.0, 90.0], 1)] {
            let two = with(times);
            let chosen = choose(&two, Some(&two[1]), BOUNDS).unwrap();
            assert_eq!(chosen.candidate, two[expected].candidate, "{times:?}");
        }
        assert!(choose(&[], None, BOUNDS).is_none());
        assert!(CELL.usual(&machine(), &trials).is_some());
    }
}
