//! The forms of a class: the usual one, and those that are worth a trial.
//!
//! Invariant: the list is the same at all members, as the call, the nodes and the settings are. All forms
//! have the same results, bit for bit, by the laws that the tuner goes by.

use super::trial::CANDIDATES_MAX;
use super::{Form, Online};
use crate::coll::call::Call;
use crate::coll::candidates::Candidate;
use crate::coll::estimate::Costs;
use crate::coll::reduction::Combiner;
use crate::coll::select::{Laws, Preferences, Reason};
use crate::coll::shape::Shape;
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;

/// A form whose estimate is more than this many times the best one is not tried.
const SLOWER_MAX: u64 = 4;

/// Forms with their estimates in nanoseconds, where there are any.
pub type Alternates = Vec<(Form, Option<u64>)>;

/// The forms of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forms {
    /// The usual one first, then the others by their estimates.
    pub forms: Vec<Form>,
    /// The number of the one with the lowest estimate.
    pub guess: usize,
}

impl Forms {
    /// No form but the usual one.
    pub fn only_usual() -> Forms {
        Forms { forms: vec![Form::Usual], guess: 0 }
    }
}

/// The usual form, with its estimate in nanoseconds if there is one, and the most promising others.
pub fn ranked(usual_ns: Option<u64>, mut others: Alternates) -> Forms {
    others.sort_by_key(|(_, ns)| ns.unwrap_or(u64::MAX));
    let best_ns = others.first().and_then(|(_, ns)| *ns).unwrap_or(u64::MAX);
    others.retain(|(_, ns)| ns.is_none_or(|ns| ns / SLOWER_MAX <= best_ns));
    let is_other_better = usual_ns.is_some_and(|usual_ns| best_ns < usual_ns);
    let others = others.into_iter().map(|(form, _)| form).take(CANDIDATES_MAX - 1);
    let forms = std::iter::once(Form::Usual).chain(others).collect();
    Forms { forms, guess: is_other_better.into() }
}

/// The algorithms that may take the place of the choice for a shape, the choice itself first; none if the
/// choice follows from the settings, or if there is none.
pub fn free_candidates(preferences: &Preferences, shape: &Shape, laws: Option<Laws>) -> Vec<Candidate> {
    // Whether an operation is in place may be known to the root alone.
    let shape = Shape { in_place: false, ..shape.clone() };
    match preferences.choose(&shape, laws) {
        Some(choice)
            if choice.reason == Reason::BuiltIn && !preferences.forced.contains_key(&shape.operation) =>
        {
            preferences.candidates(&shape, laws).into_iter().map(Candidate::from).collect()
        }
        _ => Vec::new(),
    }
}

/// Schedules of all members by these algorithms.
pub fn of_all(costs: &Costs, candidates: &[Candidate], shape: &Shape) -> Alternates {
    candidates.iter().map(|one| (Form::All(*one), all_ns(costs, one, shape))).collect()
}

/// The estimate of a schedule of all members.
pub fn all_ns(costs: &Costs, candidate: &Candidate, shape: &Shape) -> Option<u64> {
    costs.estimate_ns(candidate, &Shape { in_place: false, ..shape.clone() })
}

/// Whether every order of combination has the same result.
pub fn is_order_free(laws: Option<Laws>) -> bool {
    laws.is_none_or(|laws| laws.is_associative)
}

impl TeamCore {
    /// The forms of the class of a call of a team whose members do not all do it directly.
    pub fn forms(&self, world: &Teams, online: &Online, call: &Call<'_>) -> Forms {
        let preferences = world.collectives.preferences();
        let (shape, laws) = (call.shape(self), online.laws(call.combiner.as_ref().map(Combiner::laws)));
        let (candidates, costs) = (free_candidates(preferences, &shape, laws), online.costs());
        let Some((usual, others)) = candidates.split_first() else { return Forms::only_usual() };
        let Some(levels) = self.levels_of(world, call) else {
            return ranked(all_ns(&costs, usual, &shape), of_all(&costs, others, &shape));
        };
        let in_levels_ns = |by: Option<Candidate>| costs.levels_ns(&self.estimated_levels(world, call, by)?);
        // Two levels combine in an order of their own.
        let mut others = match is_order_free(laws) {
            true => of_all(&costs, &candidates, &shape),
            false => Alternates::new(),
        };
        if let Some(leaders) = levels {
            let of_leaders = free_candidates(preferences, &leaders, laws);
            let alternates = of_leaders.iter().skip(1);
            others.extend(alternates.map(|one| (Form::Leaders(*one), in_levels_ns(Some(*one)))));
        }
        ranked(in_levels_ns(None), others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::select::forced;
    use crate::coll::shape::Operation;
    use crate::coll::tuning::Rules;

    const INTEGERS: Option<Laws> = Some(Laws { is_associative: true, is_commutative: true });
    const FLOATS: Option<Laws> = Some(Laws { is_associative: false, is_commutative: true });

    fn all_reduce(n: usize) -> Shape {
        Shape::new(Operation::AllReduce, 0, n, 1 << 13, 8)
    }

    #[test]
    fn settings_and_rules_leave_no_candidates() {
        let of = |preferences: &Preferences| free_candidates(preferences, &all_reduce(4), INTEGERS).len();
        assert!(of(&Preferences::default()) > 3);
        let ring = forced("all_reduce=ring").unwrap();
        assert_eq!(of(&Preferences { forced: ring, ..Preferences::default() }), 0);
        let rules = Rules::parse("[[all_reduce]]\nalgorithm = 'ring'").unwrap();
        assert_eq!(of(&Preferences { rules, ..Preferences::default() }), 0);
        let other = forced("broadcast=linear").unwrap();
        assert!(of(&Preferences { forced: other, ..Preferences::default() }) > 3);
    }

    #[test]
    fn the_most_promising_are_taken_and_slow_ones_are_not() {
        let candidates = free_candidates(&Preferences::default(), &all_reduce(16), INTEGERS);
        let Forms { forms, guess } = ranked(None, of_all(&Costs::default(), &candidates, &all_reduce(16)));
        assert_eq!((forms[0], guess), (Form::Usual, 0));
        assert!((2..=CANDIDATES_MAX).contains(&forms.len()), "{forms:?}");
        let names: Vec<_> = forms.iter().map(ToString::to_string).collect();
        assert!(names.contains(&"rabenseifner".to_owned()), "{names:?}");
        let form = |number: usize| Form::All(candidates[number]);
        let others = || vec![(form(0), Some(900)), (form(1), Some(100)), (form(2), Some(399))];
        let expected = |guess| Forms { forms: vec![Form::Usual, form(1), form(2)], guess };
        assert_eq!(ranked(Some(101), others()), expected(1));
        assert_eq!(ranked(Some(100), others()), expected(0), "the usual one, if no other is better");
        assert_eq!(ranked(None, others()), expected(0), "nothing is known of the usual one");
        let unknown = ranked(Some(1), vec![(form(0), None), (form(1), None)]);
        assert_eq!(unknown.forms, [Form::Usual, form(0), form(1)], "too many ranks for estimates");
        assert_eq!(ranked(None, Alternates::new()), Forms::only_usual());
    }

    #[test]
    fn floats_have_one_order() {
        let found = free_candidates(&Preferences::default(), &all_reduce(4), FLOATS);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(is_order_free(INTEGERS) && is_order_free(None) && !is_order_free(FLOATS));
    }
}
