//! The forms of a class: the usual one, and those that are worth a trial.
//!
//! Invariant: the list is the same at all members, as the call, the nodes and the settings are. All forms
//! have the same results, bit for bit, by the laws that the tuner goes by.

use super::trial::CANDIDATES_MAX;
use super::{Form, Online};
use crate::coll::call::Call;
use crate::coll::candidates::Candidate;
use crate::coll::estimate::estimate_ns;
use crate::coll::reduction::Combiner;
use crate::coll::select::{Laws, Preferences, Reason};
use crate::coll::shape::Shape;
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;

/// A form whose estimate is more than this many times the best one is not tried.
const SLOWER_MAX: u64 = 4;

/// Forms with their estimates in nanoseconds, where there are any.
pub type Alternates = Vec<(Form, Option<u64>)>;

/// The usual form, and the most promising others.
pub fn ranked(mut others: Alternates) -> Vec<Form> {
    others.sort_by_key(|(_, ns)| ns.unwrap_or(u64::MAX));
    let best_ns = others.first().and_then(|(_, ns)| *ns).unwrap_or(u64::MAX);
    others.retain(|(_, ns)| ns.is_none_or(|ns| ns / SLOWER_MAX <= best_ns));
    let others = others.into_iter().map(|(form, _)| form).take(CANDIDATES_MAX - 1);
    std::iter::once(Form::Usual).chain(others).collect()
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
pub fn of_all(candidates: &[Candidate], shape: &Shape) -> Alternates {
    let shape = Shape { in_place: false, ..shape.clone() };
    candidates.iter().map(|candidate| (Form::All(*candidate), estimate_ns(candidate, &shape))).collect()
}

/// Whether every order of combination has the same result.
pub fn is_order_free(laws: Option<Laws>) -> bool {
    laws.is_none_or(|laws| laws.is_associative)
}

impl TeamCore {
    /// The forms of the class of a call of a team whose members do not all do it directly.
    pub fn forms(&self, world: &Teams, online: &Online, call: &Call<'_>) -> Vec<Form> {
        let preferences = world.collectives.preferences();
        let (shape, laws) = (call.shape(self), online.laws(call.combiner.as_ref().map(Combiner::laws)));
        let candidates = free_candidates(preferences, &shape, laws);
        let Some(levels) = self.levels_of(world, call) else {
            return ranked(of_all(candidates.get(1..).unwrap_or(&[]), &shape));
        };
        if candidates.is_empty() {
            return vec![Form::Usual];
        }
        // Two levels combine in an order of their own.
        let mut others = if is_order_free(laws) { of_all(&candidates, &shape) } else { Alternates::new() };
        if let Some(leaders) = levels {
            let of_leaders = free_candidates(preferences, &leaders, laws);
            let alternates = of_leaders.iter().skip(1);
            others.extend(alternates.map(|one| (Form::Leaders(*one), estimate_ns(one, &leaders))));
        }
        ranked(others)
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
        let forms = ranked(of_all(&candidates, &all_reduce(16)));
        assert_eq!(forms[0], Form::Usual);
        assert!((2..=CANDIDATES_MAX).contains(&forms.len()), "{forms:?}");
        let names: Vec<_> = forms.iter().map(ToString::to_string).collect();
        assert!(names.contains(&"rabenseifner".to_owned()), "{names:?}");
        let form = |number: usize| Form::All(candidates[number]);
        let found = ranked(vec![(form(0), Some(900)), (form(1), Some(100)), (form(2), Some(399))]);
        assert_eq!(found, [Form::Usual, form(1), form(2)]);
        let found = ranked(vec![(form(0), None), (form(1), None)]);
        assert_eq!(found, [Form::Usual, form(0), form(1)], "too many ranks for estimates");
        assert_eq!(ranked(Alternates::new()), [Form::Usual]);
    }

    #[test]
    fn floats_have_one_order() {
        let found = free_candidates(&Preferences::default(), &all_reduce(4), FLOATS);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(is_order_free(INTEGERS) && is_order_free(None) && !is_order_free(FLOATS));
    }
}
