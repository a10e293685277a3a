//! Blocking calls of teams with the online tuner, and what becomes of the outcome of a trial.

use super::agreement::{Asked, ByEngine};
use super::kept::{Entry, Kept};
use super::trial::Trial;
use super::{Class, Classes, Form, Online};
use crate::base::error::Result;
use crate::base::locked::locked;
use crate::coll::call::Call;
use crate::coll::candidates::Candidate;
use crate::coll::nodes::Groups;
use crate::coll::plans::Key;
use crate::coll::reduction::Combiner;
use crate::coll::schedule::Rank;
use crate::coll::shape::Blocks;
use crate::coll::sync_memory::Plan;
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;
use pelago_fabric::sync::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Plans that a team keeps for forms that are not the usual ones.
const PLANS: usize = 32;

/// The state that the online tuner keeps of a team.
#[derive(Default)]
pub struct TeamTuner {
    classes: Classes<Asked>,
    plans: Mutex<Vec<(Key, Candidate, Arc<Plan>)>>,
}

impl TeamCore {
    /// Does a checked call that has no direct form, by the form that the tuner has for it.
    #[track_caller]
    pub fn perform_online(self: &Arc<Self>, world: &Teams, online: &Online, call: &Call<'_>) -> Result<()> {
        let laws = call.combiner.as_ref().map(Combiner::laws);
        let class = Class::of(call.operation, call.count.saturating_mul(call.element_bytes), laws);
        let class = class.filter(|_| matches!(call.blocks, Blocks::Equal) && !self.is_retired());
        let Some(class) = class else { return self.perform_usually(world, call) };
        let classes = &self.tuner().classes;
        let next = classes.next(&class, &ByEngine { world, team: self }, || {
            let forms = self.forms(world, online, call);
            let groups = self.nodes.groups(self.len());
            let known = world.known_online(online, ("symmetric", &groups), &class, &forms.forms);
            (forms, known)
        });
        let Some(trial) = next.trial else { return self.perform_as(world, call, next.form) };
        let begun = Instant::now();
        let outcome = self.perform_as(world, call, next.form);
        classes.note(trial, begun.elapsed());
        outcome
    }

    /// Does a checked call by a form.
    #[track_caller]
    pub fn perform_as(self: &Arc<Self>, world: &Teams, call: &Call<'_>, form: Form) -> Result<()> {
        match form {
            Form::Usual => self.perform_usually(world, call),
            Form::Leaders(by) => match self.perform_in_levels(world, call, Some(by)) {
                Some(outcome) => outcome,
                None => self.run(world, call, None),
            },
            Form::All(by) => self.run(world, call, Some(by)),
        }
    }

    /// The classes of calls.
    pub fn online_classes(&self) -> &Classes<Asked> {
        &self.tuner().classes
    }

    fn tuner(&self) -> &TeamTuner {
        self.online.get_or_init(Box::default)
    }

    /// The plan of a call by an algorithm that is not the usual one, made now if it was not kept.
    pub fn plan_by(
        &self,
        key: &Key,
        by: &Candidate,
        make: impl FnOnce() -> Result<Plan>,
    ) -> Result<Arc<Plan>> {
        let mut plans = locked(&self.tuner().plans);
        if let Some((.., plan)) = plans.iter().find(|(other, candidate, _)| other == key && candidate == by) {
            return Ok(Arc::clone(plan));
        }
        let plan = Arc::new(make()?);
        if plans.len() == PLANS {
            plans.remove(0);
        }
        plans.push((*key, *by, Arc::clone(&plan)));
        Ok(plan)
    }
}

impl Teams {
    /// The number of the form that was the best in an earlier job; `None` if this is not PE 0, which keeps
    /// the outcomes, or if it does not know.
    pub fn known_online(
        &self,
        online: &Online,
        (place, groups): (&'static str, &Groups),
        class: &Class,
        forms: &[Form],
    ) -> Option<usize> {
        if self.my_pe() != 0 || forms.len() == 1 {
            return None;
        }
        let known = locked(self.kept_online(online)).find(&Entry::of(place, groups, class))?;
        let found = forms.iter().position(|form| Kept::text(form) == known);
        if let Some(found) = found {
            log::debug!(
                target: "coll",
                "{} of up to {} B on {} PEs: {}, as kept",
                class.operation, 1_u64 << class.power, groups.ranks_len(), forms[found]
            );
        }
        found
    }

    /// Records the outcome of a trial.
    pub fn settle_online(
        &self,
        (place, rank, groups): (&'static str, Rank, &Groups),
        class: &Class,
        forms: &[Form],
        trial: &Trial,
    ) {
        let (Some(online), Some(outcome)) = (self.collectives.online(), trial.outcome()) else { return };
        let ranking = trial.ranking();
        if rank == 0 && !ranking.is_empty() {
            let n = groups.ranks_len();
            let us =
                |(number, ns): &(usize, u64)| format!("{} {:.1} us", forms[*number], *ns as f64 / 1000.0);
            let others: Vec<_> = ranking.iter().skip(1).map(us).collect();
            log::info!(
                target: "coll",
                "{} of up to {} B on {n} PEs: {} ({})",
                class.operation, 1_u64 << class.power, us(&ranking[0]), others.join(", ")
            );
        }
        if self.my_pe() == 0 && !ranking.is_empty() {
            let entry = Entry::of(place, groups, class);
            locked(self.kept_online(online)).add(&entry, &forms[outcome]);
            online.has_news.store(true, Ordering::Relaxed);
        }
    }

    /// The outcomes of earlier jobs and of this one, read now if they were not.
    fn kept_online<'a>(&self, online: &'a Online) -> &'a Mutex<Kept> {
        online.kept.get_or_init(|| Mutex::new(Kept::open(&online.folder, self)))
    }

    /// Keeps the outcomes of this job for later ones, if there are new ones: PE 0 does, as it leaves.
    pub fn keep_online(&self) {
        if let Some(online) = self.collectives.online()
            && online.has_news.swap(false, Ordering::Relaxed)
        {
            locked(self.kept_online(online)).save();
        }
    }
}
