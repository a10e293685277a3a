//! Blocking calls of groups with the online tuner: the forms of a class are the usual one and plans by other
//! algorithms, and the members tell each other their words by an all-reduce of messages.
//!
//! Invariant: as in [`coll::online`](crate::coll::online). The memory of an all-reduce of words stays until
//! it is over, also if the group is dropped before.

use super::block::Block;
use super::direct::{has_levels, is_small, is_staged};
use super::group::MessageGroup;
use super::operation::{Memory, Outcome};
use super::plan::{Key, MessageCall, Plan, gets};
use super::running::{MessageCollectives, Pending};
use crate::base::locked::locked;
use crate::coll::candidates::Candidate;
use crate::coll::online::forms::{Alternates, Forms, all_ns, free_candidates, is_order_free, of_all, ranked};
use crate::coll::online::trial::{NO_WORDS, Trial, Words};
use crate::coll::online::{Class, Classes, Form, Online, Speaker};
use crate::coll::reduction::{Combiner, ReduceOp};
use crate::coll::shape::Operation;
use crate::msg::TwoSided;
use pelago_fabric::copy;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Plans that a group keeps for forms that are not the usual ones.
const PLANS: usize = 32;

/// The state that the online tuner keeps of a group.
#[derive(Default)]
pub(super) struct GroupTuner {
    classes: Classes<Asked>,
    plans: Mutex<Vec<(Key, Candidate, Arc<Plan>)>>,
}

/// The members of a group, by messages.
struct ByMessages<'a> {
    world: &'a TwoSided,
    all: &'a MessageCollectives,
    group: &'a MessageGroup,
}

/// An all-reduce under way, and its memory: the words of this member, and behind them those of all.
pub(super) struct Asked {
    pending: Arc<Pending>,
    words: Block,
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.pending.is_over() {
            // The operation goes on in every wait of this PE, and still works on them.
            std::mem::forget(std::mem::take(&mut self.words));
        }
    }
}

impl Speaker for ByMessages<'_> {
    type Asked = Asked;

    fn ask(&self, own: &Words) -> Asked {
        let (operation, bytes) = (Operation::AllReduce, size_of::<Words>());
        let (count, element_bytes) = (own.len(), size_of::<u64>());
        let call = MessageCall { operation, root: 0, count, element_bytes, in_place: false, counts: None };
        let words = Block::new(2 * bytes);
        // SAFETY: the block has room for the words twice.
        unsafe { copy::copy(words.at(0), own.as_ptr().cast(), bytes) };
        let combiner = Combiner::of::<u64>(ReduceOp::Max);
        let memory = Memory { source: words.at(0).cast_const(), target: words.at(bytes), combiner };
        // SAFETY: both have as many bytes as the call needs, and stay until the operation is over.
        let started = unsafe { self.all.start_call(self.world, self.group, &call, memory) };
        let started = started.expect("integers are combined in any order, by some algorithm");
        Asked { pending: started.pending(), words }
    }

    fn take(&self, asked: Asked) -> Words {
        let outcome = asked.pending.wait(self.world);
        assert!(outcome.is_ok(), "words of other sizes in an all-reduce of words");
        let (mut most, bytes) = (NO_WORDS, size_of::<Words>());
        // SAFETY: the operation that has written them there is over.
        unsafe { copy::copy(most.as_mut_ptr().cast(), asked.words.at(bytes), bytes) };
        most
    }

    fn settle(&self, class: &Class, forms: &[Form], trial: &Trial) {
        let groups = self.group.nodes.groups(self.group.len());
        self.world.settle_online(("messages", self.group.me, &groups), class, forms, trial);
    }
}

impl MessageGroup {
    fn tuner(&self) -> &GroupTuner {
        self.online.get_or_init(Box::default)
    }

    /// The forms of the class of a call that members do not do over mapped memory.
    fn forms(
        &self,
        world: &TwoSided,
        online: &Online,
        call: &MessageCall,
        combiner: Option<&Combiner>,
    ) -> Forms {
        let (preferences, laws) = (world.collectives.preferences(), combiner.map(Combiner::laws));
        let (shape, laws) = (call.shape(self, self.me), online.laws(laws));
        let mut candidates = free_candidates(preferences, &shape, laws);
        let (usual, costs) = (candidates.first().copied(), online.costs());
        candidates.retain(|candidate| !gets(candidate.algorithm));
        // In two levels they combine in an order of their own.
        let has_levels = has_levels(call, self) && world.collectives.prefers_direct();
        let others = match (has_levels, usual) {
            (true, _) if !is_order_free(laws) => Alternates::new(),
            (true, _) => of_all(&costs, &candidates, &shape),
            // The usual one is in the list, unless it gets.
            (false, Some(usual)) if gets(usual.algorithm) => of_all(&costs, &candidates, &shape),
            (false, _) => of_all(&costs, candidates.get(1..).unwrap_or(&[]), &shape),
        };
        // Two levels over hand-over areas have no estimate.
        let usual = usual.filter(|_| !has_levels);
        ranked(usual.and_then(|usual| all_ns(&costs, &usual, &shape)), others)
    }

    /// The plan of a call by an algorithm that is not the usual one, made now if it was not kept. `None` if
    /// the algorithm cannot do it.
    fn plan_by(&self, call: &MessageCall, combiner: Option<&Combiner>, by: Candidate) -> Option<Arc<Plan>> {
        let mut plans = locked(&self.tuner().plans);
        let is_same =
            |(key, candidate, _): &&(Key, Candidate, _)| key.is_of(call, combiner) && *candidate == by;
        if let Some((.., plan)) = plans.iter().find(is_same) {
            return Some(Arc::clone(plan));
        }
        let plan = Arc::new(Plan::by(self, call, by)?);
        if plans.len() == PLANS {
            plans.remove(0);
        }
        plans.push((Key::of(call, combiner), by, Arc::clone(&plan)));
        Some(plan)
    }
}

impl MessageCollectives {
    /// As [`run_usually`](MessageCollectives::run_usually), by the form that the tuner has for the call.
    ///
    /// # Safety
    /// As [`run_call`](MessageCollectives::run_call).
    #[track_caller]
    pub(super) unsafe fn run_online(
        &self,
        world: &TwoSided,
        online: &Online,
        (group, call): (&MessageGroup, &MessageCall),
        memory: &Memory,
    ) -> Option<Outcome> {
        let combiner = memory.combiner.as_ref();
        let bytes = call.count.saturating_mul(call.element_bytes);
        let class = Class::of(call.operation, bytes, combiner.map(Combiner::laws));
        let is_mapped = || group.members.iter().all(|pe| world.memory.is_mapped(pe));
        let has_form =
            || is_small(call, group) || world.collectives.prefers_direct() && is_staged(call, group);
        let is_direct = || has_form() && is_mapped();
        let class = class.filter(|_| call.counts.is_none() && group.len() > 1 && !is_direct());
        // SAFETY: the caller promises what these functions require.
        let run = |form| unsafe {
            match form {
                Form::All(by) => match group.plan_by(call, combiner, by) {
                    Some(plan) => Some(self.run_plan(world, (group, call), plan, memory)),
                    None => self.run_usually(world, group, call, memory),
                },
                Form::Usual | Form::Leaders(_) => self.run_usually(world, group, call, memory),
            }
        };
        let Some(class) = class else { return run(Form::Usual) };
        let (classes, speaker) = (&group.tuner().classes, ByMessages { world, all: self, group });
        let next = classes.next(&class, &speaker, || {
            let forms = group.forms(world, online, call, combiner);
            let groups = group.nodes.groups(group.len());
            let known = world.known_online(online, ("messages", &groups), &class, &forms.forms);
            (forms, known)
        });
        let Some(trial) = next.trial else { return run(next.form) };
        let begun = Instant::now();
        let outcome = run(next.form);
        classes.note(trial, begun.elapsed());
        outcome
    }
}
