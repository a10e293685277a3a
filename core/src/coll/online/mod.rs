//! The online tuner: the first blocking calls of a class try the forms that an operation may take, the
//! members agree on the fastest, and later calls take it (`PELAGO_COLL_ONLINE`, decision 0062).
//!
//! A *class* of calls of a team has one operation, blocks of up to one power of two of bytes, and, where
//! elements are combined, one pair of laws. All forms of a class have the same results, bit for bit: see
//! [`Preferences::candidates`](super::select::Preferences::candidates).
//!
//! * [`costs`] are what estimates go by;
//! * [`trial`] decides which form each call takes;
//! * [`forms`] lists the forms of a class;
//! * [`calls`] does the calls of teams;
//! * [`agreement`] carries the words of the members;
//! * [`kept`] keeps the outcomes in a file, for later jobs.
//!
//! Invariant: classes, forms and trials follow from values that all members have, so that all members do the
//! same. A member that knows the outcome of an earlier job tells it to the others in the first agreement.

pub mod agreement;
pub mod calls;
pub mod costs;
pub mod forms;
pub mod kept;
pub mod trial;

use super::candidates::Candidate;
use super::estimate::Costs;
use super::select::Laws;
use super::shape::Operation;
use crate::base::locked::locked;
use forms::Forms;
use kept::Kept;
use pelago_boot::{CollOnlineKind, KeepFolder, Settings, SyncMemoryKind};
use pelago_fabric::sync::AtomicBool;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use trial::{Before, Trial, Words};

/// The online tuner of a PE.
pub struct Online {
    /// Whether forms that combine in other orders are tried although the results may differ.
    any_order: bool,
    folder: KeepFolder,
    /// The costs of messages that all PEs have agreed on.
    costs: OnceLock<Costs>,
    /// The outcomes of earlier jobs and of this one, at PE 0.
    kept: OnceLock<Mutex<Kept>>,
    has_news: AtomicBool,
}

impl Online {
    /// The tuner, if the settings ask for it and leave it a choice: not where results must depend on no
    /// algorithm, nor where the synchronisation memory asks for certain algorithms.
    pub fn of(settings: &Settings) -> Option<Box<Online>> {
        let is_free = !settings.deterministic && settings.sync_memory == SyncMemoryKind::PairwiseDoubling;
        (settings.coll_online != CollOnlineKind::Off && is_free).then(|| {
            Box::new(Online {
                any_order: settings.coll_online == CollOnlineKind::AnyOrder,
                folder: settings.coll_online_folder.clone(),
                costs: OnceLock::new(),
                kept: OnceLock::new(),
                has_news: AtomicBool::new(false),
            })
        })
    }

    /// The costs by which forms are estimated.
    pub fn costs(&self) -> Costs {
        self.costs.get().copied().unwrap_or_default()
    }

    /// The laws by which forms count as equal.
    pub fn laws(&self, laws: Option<Laws>) -> Option<Laws> {
        laws.map(|laws| Laws { is_associative: laws.is_associative || self.any_order, ..laws })
    }
}

/// A class of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    pub operation: Operation,
    /// A block has at most two to this power of bytes, and more than half of them.
    pub power: u8,
    pub laws: Option<Laws>,
}

impl Class {
    /// The class of a call with blocks of this many bytes; `None` if such calls are not tuned.
    #[inline]
    pub fn of(operation: Operation, bytes: usize, laws: Option<Laws>) -> Option<Class> {
        let power = bytes.checked_next_power_of_two()?.trailing_zeros() as u8;
        (operation != Operation::Barrier && bytes > 0).then_some(Class { operation, power, laws })
    }
}

/// A form that a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As without the tuner.
    Usual,
    /// In two levels, with this algorithm between the leaders of the nodes.
    Leaders(Candidate),
    /// By a schedule of all members.
    All(Candidate),
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Form::Usual => f.write_str("as usual"),
            Form::Leaders(candidate) => write!(f, "leaders by {candidate}"),
            Form::All(candidate) => write!(f, "{candidate}"),
        }
    }
}

/// How the members of a team tell each other the words of a trial.
pub trait Speaker {
    /// An all-reduce under way.
    type Asked;
    /// Starts an all-reduce, without waiting for anybody: the largest of the members' words, each by itself.
    fn ask(&self, words: &Words) -> Self::Asked;
    /// Its outcome.
    fn take(&self, asked: Self::Asked) -> Words;
    /// The trial of a class is over.
    fn settle(&self, class: &Class, forms: &[Form], trial: &Trial);
}

/// The classes of calls of a team or group, `A` the type of its all-reduces.
pub struct Classes<A>(Mutex<Vec<Tried<A>>>);

struct Tried<A> {
    class: Class,
    forms: Vec<Form>,
    /// The form with the lowest estimate.
    guess: usize,
    trial: Trial,
    asked: Option<A>,
    /// The form that calls take in place of the best one, for measurements.
    in_place: Option<Form>,
}

/// The outcome of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The forms that were tried, the usual one first.
    pub forms: Vec<Form>,
    /// The number of the one with the lowest estimate, which is known without a trial.
    pub guess: usize,
    /// The number of the best one.
    pub best: usize,
}

/// The form of a call, and the number of its class if it is part of a trial.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    pub form: Form,
    pub trial: Option<usize>,
}

impl<A> Default for Classes<A> {
    fn default() -> Classes<A> {
        Classes(Mutex::default())
    }
}

impl<A> Classes<A> {
    /// The form of the next call of a class. `forms` lists the forms of the class, the usual one first, and
    /// the number of the one that this member knows to be the best.
    pub fn next<S: Speaker<Asked = A>>(
        &self,
        class: &Class,
        speaker: &S,
        forms: impl FnOnce() -> (Forms, Option<usize>),
    ) -> Next {
        let mut classes = locked(&self.0);
        let number = classes.iter().position(|tried| tried.class == *class).unwrap_or_else(|| {
            let (Forms { forms, guess }, known) = forms();
            let trial = Trial::new(forms.len(), known);
            classes.push(Tried { class: *class, forms, guess, trial, asked: None, in_place: None });
            classes.len() - 1
        });
        let tried = &mut classes[number];
        if let Some(outcome) = tried.trial.outcome() {
            return Next { form: tried.in_place.unwrap_or(tried.forms[outcome]), trial: None };
        }
        tried.prepare(speaker);
        Next { form: tried.forms[tried.trial.turn().candidate], trial: Some(number) }
    }

    /// The call that [`next`](Classes::next) has told the form of is over; it took this member that long.
    pub fn note(&self, number: usize, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        locked(&self.0)[number].trial.note(ns);
    }

    /// The outcome of the trial of a class, if it is over; for measurements and tests.
    pub fn outcome(&self, class: &Class) -> Option<Found> {
        let classes = locked(&self.0);
        let tried = classes.iter().find(|tried| tried.class == *class)?;
        let best = tried.trial.outcome()?;
        Some(Found { forms: tried.forms.clone(), guess: tried.guess, best })
    }

    /// Lets the calls of a class whose trial is over take this form from now on, or the best one again, for
    /// measurements. All members do it between the same calls.
    pub fn take(&self, class: &Class, form: Option<Form>) {
        if let Some(tried) = locked(&self.0).iter_mut().find(|tried| tried.class == *class) {
            tried.in_place = form;
        }
    }
}

impl<A> Tried<A> {
    /// The work of the trial before the next call.
    fn prepare<S: Speaker<Asked = A>>(&mut self, speaker: &S) {
        loop {
            match self.trial.turn().before {
                Before::Nothing => return,
                // The number of the call stays until the call is over: it must not ask twice.
                Before::Ask if self.asked.is_some() => return,
                Before::Ask => self.asked = Some(speaker.ask(&self.trial.words())),
                Before::Take => {
                    let asked = self.asked.take().expect("what is taken was asked for");
                    self.trial.agree(&speaker.take(asked));
                    if self.trial.outcome().is_some() {
                        return speaker.settle(&self.class, &self.forms, &self.trial);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_powers_of_two() {
        let power = |bytes| Class::of(Operation::Broadcast, bytes, None).map(|class| class.power);
        assert_eq!([1, 2, 3, 1024, 1025].map(power), [Some(0), Some(1), Some(2), Some(10), Some(11)]);
        assert_eq!((power(0), power(usize::MAX)), (None, None));
        assert_eq!(Class::of(Operation::Barrier, 8, None), None);
    }

    #[test]
    fn settings_that_leave_no_choice_switch_it_off() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string()));
            Online::of(&Settings::from_pairs(pairs).unwrap())
        };
        let on = ("PELAGO_COLL_ONLINE", "on");
        assert!(of(&[]).is_none() && of(&[on]).is_some());
        assert!(of(&[on, ("PELAGO_DETERMINISTIC", "on")]).is_none());
        for memory in ["additional", "barrier", "pairwise-structure", "pairwise-edges"] {
            assert!(of(&[on, ("PELAGO_SYNC_MEMORY", memory)]).is_none(), "{memory}");
        }
        let floats = Some(Laws { is_associative: false, is_commutative: true });
        assert_eq!(of(&[on]).unwrap().laws(floats), floats);
        let any_order = of(&[("PELAGO_COLL_ONLINE", "any-order")]).unwrap();
        assert!(any_order.laws(floats).unwrap().is_associative);
    }
}
