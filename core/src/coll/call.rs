//! A collective call: its operands, the check of its arguments, and the choice of the way it is carried out.

use super::candidates::Candidate;
use super::direct::{Direct, Places};
use super::engine::{Operands, Progress};
use super::operand::Operand;
use super::plans::{Among, Key};
use super::reduction::Combiner;
use super::schedule::Rank;
use super::select;
use super::shape::{Blocks, Operation, Shape};
use super::sync_memory::Plan;
use super::table::{Graph, find};
use crate::base::awaited::Awaited;
use crate::base::awaited::within;
use crate::base::error::{ErrorKind, Result};
use crate::base::trace::{Category, Event, Span};
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;
use crate::job::callback;
use crate::memory::usage::Usage;
use crate::wait::stall;
use std::sync::Arc;

/// A collective operation with all that it works on.
#[derive(Clone)]
pub struct Call<'a> {
    pub operation: Operation,
    pub root: Rank,
    /// Elements of a block.
    pub count: usize,
    pub element_bytes: usize,
    pub blocks: Blocks,
    pub operands: Option<(Operand<'a>, Operand<'a>)>,
    pub combiner: Option<Combiner>,
}

impl<'a> Call<'a> {
    pub fn new(
        operation: Operation,
        root: Rank,
        count: usize,
        target: Operand<'a>,
        source: Operand<'a>,
    ) -> Call<'a> {
        Call {
            operation,
            root,
            count,
            element_bytes: target.element_bytes,
            blocks: Blocks::Equal,
            operands: Some((target, source)),
            combiner: None,
        }
    }

    /// A call without data.
    #[track_caller]
    pub fn barrier() -> Call<'a> {
        Call {
            operation: Operation::Barrier,
            root: 0,
            count: 0,
            element_bytes: 1,
            blocks: Blocks::Equal,
            operands: None,
            combiner: None,
        }
    }

    pub fn of(self, blocks: Blocks) -> Call<'a> {
        Call { blocks, ..self }
    }

    pub fn with(self, combiner: Combiner) -> Call<'a> {
        Call { combiner: Some(combiner), ..self }
    }

    pub fn name(&self) -> &'static str {
        self.operation.name()
    }

    /// Records the call, if this PE records its operations; `form` says how it is carried out.
    #[inline]
    pub fn record<'w>(&self, world: &'w Teams, form: &'static str) -> Option<Span<'w>> {
        let bytes = self.count * self.element_bytes;
        world.tally.span(|| Event::new(Category::Collective, self.name()).detailed(form).of_bytes(bytes))
    }

    /// Whether source and target are the same elements. All members find the same, also if the root of a
    /// broadcast leaves its target as it is: then its own places are the same, but not those of the others.
    pub fn is_in_place(&self) -> bool {
        self.operands.is_some_and(|(target, source)| {
            target.own == source.own && target.offset_bytes == source.offset_bytes && self.count > 0
        })
    }

    /// A broadcast that does not write to the root's target: there the source takes its place. No algorithm
    /// sends the root a part of the block.
    #[must_use]
    pub fn sparing_root(self, me: Rank) -> Call<'a> {
        let spared = |(target, source): (Operand<'a>, Operand<'a>)| match me == self.root {
            true => (Operand { own: source.own, ..target }, source),
            false => (target, source),
        };
        Call { operands: self.operands.map(spared), ..self }
    }

    /// The combiner of an operation that combines elements.
    pub fn combiner(&self) -> &Combiner {
        self.combiner.as_ref().expect("an operation that combines has a combiner")
    }

    /// The usages that keep the arrays from being reclaimed.
    pub fn usages(&self) -> [Option<Arc<Usage>>; 2] {
        let usage = |span: Operand<'_>| Some(Arc::clone(span.usage));
        self.operands.map_or([None, None], |(target, source)| [usage(target), usage(source)])
    }

    pub fn shape(&self, team: &TeamCore) -> Shape {
        Shape {
            root: self.root,
            blocks: self.blocks.clone(),
            in_place: self.is_in_place(),
            nodes: team.nodes.clone(),
            ..Shape::new(self.operation, team.my_rank(), team.len(), self.count, self.element_bytes)
        }
    }

    /// Makes sure that the call can be done and, with checks on, that all members make it.
    #[inline]
    pub fn check(&self, world: &Teams, team: &Arc<TeamCore>) -> Result<()> {
        if world.collectives.are_checked() {
            team.check_call(world, self.words())?;
        }
        self.check_arguments(world, team)
    }

    /// The agreement record of the call, which the other members read.
    fn words(&self) -> [u64; 4] {
        let (count, blocks) = match &self.blocks {
            Blocks::Equal => (self.count, 0),
            Blocks::Counts(counts) => {
                (counts.iter().fold(0, |sum: usize, &count| sum.wrapping_add(count)), 1)
            }
            Blocks::Exchanged { .. } => (0, 2),
            Blocks::Strided { .. } => (self.count, 3),
        };
        let size = (count, self.element_bytes);
        let mut words = words_of(self.operation, self.combiner.as_ref(), self.root, size, self.is_in_place());
        words[3] |= blocks;
        words
    }

    /// The error in the arguments, if there is one.
    #[inline]
    fn check_arguments(&self, world: &Teams, team: &TeamCore) -> Result<()> {
        match self.is_plainly_right(world, team) {
            true => Ok(()),
            false => self.check_slowly(world, team),
        }
    }

    /// Whether a few quick checks show that the call has no error.
    fn is_plainly_right(&self, world: &Teams, team: &TeamCore) -> bool {
        let Some((target, source)) = &self.operands else { return true };
        let (n, count) = (team.len(), self.count);
        let is_open =
            |span: &Operand<'_>| std::ptr::eq(span.world, world) && span.region.is_world() && !span.is_closed;
        let distance = (target.own as usize).abs_diff(source.own as usize);
        let elements = count.saturating_mul(n);
        let (needs, gives) = (self.operation.target_blocks(n), self.operation.source_blocks(n));
        matches!(self.blocks, Blocks::Equal)
            && self.root < n
            && is_open(target)
            && is_open(source)
            && elements < isize::MAX as usize / self.element_bytes.max(1)
            && needs * count <= target.len
            && gives * count <= source.len
            && distance >= elements * self.element_bytes
    }

    #[inline(never)]
    #[track_caller]
    fn check_slowly(&self, world: &Teams, team: &TeamCore) -> Result<()> {
        let refuse = |reason: String| {
            let (me, operation) = (world.my_pe(), self.name());
            Err(ErrorKind::BadCollective { me, operation, reason }.into())
        };
        let n = team.len();
        if self.root >= n {
            return refuse(format!("the root is rank {}, but the team has ranks 0 to {}", self.root, n - 1));
        }
        let Some((target, source)) = self.operands else { return Ok(()) };
        for (name, span) in [("target", target), ("source", source)] {
            if !std::ptr::eq(span.world, world) {
                return Err(ErrorKind::OtherWorld { me: world.my_pe(), operation: self.name() }.into());
            }
            if span.is_closed {
                return Err(ErrorKind::ArrayClosed { me: world.my_pe(), operation: self.name() }.into());
            }
            if !span.region.is_world() && !team.members().iter().all(|pe| span.region.rank_of(pe).is_some()) {
                return refuse(format!("the {name} lies in a space of a team that not all members are in"));
            }
        }
        if let Some(reason) = self.wrong_blocks(team) {
            return refuse(reason);
        }
        let (target_bytes, source_bytes) = self.needed_bytes(team);
        for (name, needed, span) in [("target", target_bytes, target), ("source", source_bytes, source)] {
            let has = span.len * span.element_bytes;
            if needed > has {
                let (needed, has) = (needed / self.element_bytes, has / self.element_bytes);
                return refuse(format!("the {name} has {has} elements, but needs {needed} here"));
            }
        }
        let (t, s) = (target.own as usize, source.own as usize);
        let does_overlap = t < s + source_bytes && s < t + target_bytes && self.may_share_elements(t, s);
        let may_be_same = self.operation == Operation::Broadcast || self.operation.combines();
        let may_be_same = may_be_same && self.operation != Operation::ReduceScatter;
        if does_overlap && !(may_be_same && t == s) && !world.collectives.bears_overlap() {
            return refuse(
                "source and target overlap. Give different elements, or where it is allowed the same".into(),
            );
        }
        Ok(())
    }

    /// Bytes that this member needs of its target and of its source. All members need as long a span as the
    /// root, because a span is the same at all of them.
    fn needed_bytes(&self, team: &TeamCore) -> (usize, usize) {
        let own = self.shape(team);
        let at_root = Shape { rank: self.root, ..own.clone() };
        match self.operation {
            Operation::Gather | Operation::Reduce => (at_root.target_bytes(), own.source_bytes()),
            Operation::Broadcast | Operation::Scatter => (own.target_bytes(), at_root.source_bytes()),
            _ => (own.target_bytes(), own.source_bytes()),
        }
    }

    /// Whether an element of the target may lie on one of the source, where the two spans overlap: those of
    /// equal strides may alternate. With different strides none is taken to.
    fn may_share_elements(&self, target: usize, source: usize) -> bool {
        let Blocks::Strided { source: from, target: into } = self.blocks else { return true };
        let distance = target.abs_diff(source) % (from * self.element_bytes);
        from == into
            && (distance < self.element_bytes || distance > from * self.element_bytes - self.element_bytes)
    }

    fn wrong_blocks(&self, team: &TeamCore) -> Option<String> {
        let (n, me) = (team.len(), team.my_rank());
        match &self.blocks {
            Blocks::Counts(counts) if counts.len() != n => {
                Some(format!("{} counts for {n} members. Give one each", counts.len()))
            }
            Blocks::Exchanged { source, target } if source.len() != n || target.len() != n => Some(format!(
                "{} and {} blocks to send and receive, for {n} members. Give one each",
                source.len(),
                target.len()
            )),
            Blocks::Exchanged { source, target } if source[me].1 != target[me].1 => Some(format!(
                "this member sends itself {} elements and receives {} of them. Give the same number twice",
                source[me].1, target[me].1
            )),
            Blocks::Strided { source: 0, .. } | Blocks::Strided { target: 0, .. } => {
                Some("a stride of 0 elements. Strides are at least 1".to_owned())
            }
            _ => None,
        }
    }
}

/// Codes of collective calls, which are sent to the other members: this one plus the number of the
/// operation, and above it the code of the combiner.
const FIRST_CODE: u64 = 1 << 33;
const COMBINER_SHIFT: u32 = 40;

/// The agreement record of a call with blocks of one size: `count` elements of `element_bytes` bytes.
pub fn words_of(
    operation: Operation,
    combiner: Option<&Combiner>,
    root: Rank,
    (count, element_bytes): (usize, usize),
    in_place: bool,
) -> [u64; 4] {
    let number = Operation::ALL.iter().position(|&other| other == operation);
    let code = FIRST_CODE + number.expect("all operations are in the list") as u64;
    let code = code | combiner.map_or(0, Combiner::code) << COMBINER_SHIFT;
    [code, root as u64, count as u64, (element_bytes as u64) << 8 | u64::from(in_place) << 4]
}

/// A description of the call with this code and these arguments, as far as it is known, for messages.
pub fn describe([code, root, count, element]: [u64; 4]) -> Option<String> {
    let (code, combiner) = (code & ((1 << COMBINER_SHIFT) - 1), Combiner::describe(code >> COMBINER_SHIFT));
    let operation = *Operation::ALL.get(usize::try_from(code.checked_sub(FIRST_CODE)?).ok()?)?;
    let (bytes, blocks) = (element >> 8, element & 0xf);
    let place = if element & 0x10 == 0 { "" } else { ", in place" };
    let name = match blocks {
        0 => operation.name().to_owned(),
        1 | 2 => format!("{operation}_varying"),
        _ => format!("{operation}_strided"),
    };
    let what = match (operation, blocks) {
        (Operation::Barrier, _) => String::new(),
        (_, 1 | 2) => format!("elements of {bytes} bytes"),
        _ => format!("blocks of {count} elements of {bytes} bytes"),
    };
    let root = if operation.is_rooted() { format!("root {root}, ") } else { String::new() };
    let combiner = combiner.map_or_else(String::new, |combiner| combiner + ", ");
    Some(format!("{name}({root}{combiner}{what}{place})"))
}

fn has_direct_form(call: &Call<'_>) -> bool {
    let is_large_in_place = call.is_in_place() && call.count * call.element_bytes > super::block::PAGE_BYTES;
    match (&call.blocks, call.operation) {
        (Blocks::Counts(_) | Blocks::Exchanged { .. }, _) => false,
        (_, Operation::ExclusiveScan) => !is_large_in_place,
        _ => true,
    }
}

impl TeamCore {
    /// Does a call and waits for its end.
    #[inline]
    #[track_caller]
    pub fn do_call(self: &Arc<Self>, world: &Teams, call: &Call<'_>) -> Result<()> {
        call.check(world, self)?;
        match world.is_direct(self) && has_direct_form(call) {
            true => self.perform_directly(world, call),
            false => match world.collectives.online() {
                None => self.perform_usually(world, call),
                Some(online) => self.perform_online(world, online, call),
            },
        }
        .inspect(|()| world.tally.add(|counts| counts.collectives += 1))
    }

    /// Does a checked call that has no direct form, as the settings and thresholds have it.
    #[inline]
    #[track_caller]
    pub fn perform_usually(self: &Arc<Self>, world: &Teams, call: &Call<'_>) -> Result<()> {
        match self.perform_in_levels(world, call, None) {
            Some(outcome) => outcome,
            None => self.run(world, call, None),
        }
    }

    #[track_caller]
    fn perform_directly(self: &Arc<Self>, world: &Teams, call: &Call<'_>) -> Result<()> {
        let core = &**self;
        let direct = Direct { world, team: core, operation: call.name() };
        let Some((target, source)) = call.operands else {
            direct.sync();
            return Ok(());
        };
        let bytes = call.count * call.element_bytes;
        let _span = call.record(world, "direct");
        let place = |span: Operand<'_>, rank: Rank| span.place(world, core, rank);
        let source: &Places<'_> = &|rank| place(source, rank);
        let target: &Places<'_> = &|rank| place(target, rank);
        let combiner = || call.combiner();
        // SAFETY: `check` has found that all places lie in their arrays, which all members have.
        unsafe {
            match (call.operation, &call.blocks) {
                (Operation::Barrier, _) => direct.sync(),
                (Operation::Broadcast, _) => direct.broadcast(call.root, source, target, bytes),
                (Operation::Scatter, _) => direct.scatter(call.root, source, target, bytes),
                (Operation::Gather, _) => direct.gather(call.root, source, target, bytes),
                (Operation::AllGather, _) => direct.all_gather(source, target, bytes),
                (Operation::AllToAll, &Blocks::Strided { source: from, target: into }) => {
                    let element = (call.element_bytes, call.count);
                    direct.all_to_all_strided(source, target, element, (from, into));
                }
                (Operation::AllToAll, _) => direct.all_to_all(source, target, bytes),
                (Operation::Reduce, _) => direct.reduce(combiner(), Some(call.root), source, target, bytes),
                (Operation::AllReduce, _) => direct.reduce(combiner(), None, source, target, bytes),
                (Operation::ReduceScatter, _) => direct.reduce_scatter(combiner(), source, target, bytes),
                (Operation::InclusiveScan, _) => direct.scan(combiner(), true, source, target, bytes),
                (Operation::ExclusiveScan, _) => direct.scan(combiner(), false, source, target, bytes),
            }
        }
        Ok(())
    }

    /// Runs a call as a schedule, to its end: by this algorithm, if one is given that can do it.
    #[track_caller]
    pub fn run(self: &Arc<Self>, world: &Teams, call: &Call<'_>, by: Option<Candidate>) -> Result<()> {
        let prepared = match by {
            None => Prepared::new(world, self, call)?,
            Some(by) => Prepared::by(world, self, call, by)?,
        };
        let _span = call.record(world, prepared.plan.algorithm);
        let progress = prepared.start(world, self)?;
        world.await_collective(call.name(), &progress);
        Ok(())
    }
}

/// A call with its schedule.
pub struct Prepared {
    pub operation: &'static str,
    /// The agreement record of the call, which the other members read.
    words: [u64; 4],
    plan: Arc<Plan>,
    operands: Operands,
    usages: [Option<Arc<Usage>>; 2],
}

impl Prepared {
    pub fn new(world: &Teams, team: &TeamCore, call: &Call<'_>) -> Result<Prepared> {
        let shape = call.shape(team);
        let make = || {
            let choice = select::choose(world, &shape, call.combiner.as_ref())?;
            let name = choice.algorithm.name;
            Ok(Plan::new(choice.schedule(&shape, super::MAILBOX_BYTES)).by(name))
        };
        let plan = match &call.blocks {
            Blocks::Equal => team.plan(&Key::of(Among::Team, &shape, call.combiner.as_ref()), make)?,
            _ => Arc::new(make()?),
        };
        Ok(Prepared::with(team, call, &shape, plan))
    }

    /// The same by an algorithm that is not the usual one, for blocks of one size.
    fn by(world: &Teams, team: &TeamCore, call: &Call<'_>, by: Candidate) -> Result<Prepared> {
        let shape = call.shape(team);
        if !by.can_do(&shape) {
            return Prepared::new(world, team, call);
        }
        let key = Key::of(Among::Team, &shape, call.combiner.as_ref());
        let make = || Ok(Plan::new(by.schedule(&shape, super::MAILBOX_BYTES)).by(by.algorithm.name));
        let plan = team.plan_by(&key, &by, make)?;
        Ok(Prepared::with(team, call, &shape, plan))
    }

    fn with(team: &TeamCore, call: &Call<'_>, shape: &Shape, plan: Arc<Plan>) -> Prepared {
        let combiner = call.combiner.clone();
        let operands = match call.operands {
            None => Operands::none(),
            Some((target, source)) => Operands {
                source: source.own,
                source_bytes: shape.source_bytes(),
                target: target.own,
                target_bytes: shape.target_bytes(),
                target_bases: target.bases(team),
                combiner,
            },
        };
        Prepared { operation: call.name(), words: call.words(), plan, operands, usages: call.usages() }
    }

    /// A barrier by dissemination, where the memory that signals use does not ask for another graph.
    fn dissemination(world: &Teams, team: &TeamCore) -> Result<Prepared> {
        let (call, preferences) = (Call::barrier(), world.collectives.preferences());
        let is_free = matches!(preferences.graph, None | Some(Graph::Doubling));
        let algorithm = find(Operation::Barrier, "dissemination").filter(|_| is_free);
        let Some(algorithm) = algorithm else { return Prepared::new(world, team, &call) };
        let shape = call.shape(team);
        let make = || Ok(Plan::new(algorithm.schedule(&shape, super::MAILBOX_BYTES)).by(algorithm.name));
        let plan = team.plan(&Key::of(Among::TeamByDissemination, &shape, None), make)?;
        Ok(Prepared {
            operation: call.name(),
            words: call.words(),
            plan,
            operands: Operands::none(),
            usages: [None, None],
        })
    }

    /// Starts the call once more, after the members have compared it if checks are on.
    pub fn start_again(&self, world: &Teams, team: &Arc<TeamCore>) -> Result<Arc<Progress>> {
        // A team that has shrunk compares nothing: a smaller one uses its memory. `start` refuses.
        if world.collectives.are_checked() && !team.is_retired() {
            team.check_call(world, self.words)?;
        }
        self.start(world, team)
    }

    pub fn start(&self, world: &Teams, team: &Arc<TeamCore>) -> Result<Arc<Progress>> {
        if team.is_retired() {
            let reason = "the team has shrunk, and a smaller one uses its memory".to_owned();
            let (me, operation) = (world.my_pe(), self.operation);
            return Err(ErrorKind::BadCollective { me, operation, reason }.into());
        }
        let (operands, usages) = (self.operands.clone(), self.usages.clone());
        // SAFETY: the call was checked: source and target have as many bytes as the shape tells, and lie in
        // arrays that are neither freed nor lent as slices while the request keeps their usages.
        unsafe { world.start_collective(team, self.operation, &self.plan, operands, usages) }
    }
}

impl Teams {
    /// Whether blocking operations of a team take their direct forms.
    #[inline]
    pub fn is_direct(&self, team: &TeamCore) -> bool {
        team.is_mapped() && self.collectives.prefers_direct()
    }

    #[track_caller]
    pub fn await_collective(&self, operation: &'static str, progress: &Progress) {
        if !progress.is_done() {
            callback::forbid(self, operation);
            let awaited = Awaited::member(operation, None);
            let needed = stall::Needed::begin();
            let awaits = || {
                let pe = progress.awaits();
                // Of other operations the calls are compared before they start, if they are compared at all.
                needed.note(pe.filter(|_| within() != 0));
                pe
            };
            self.wait_for_members(awaited, || progress.is_done(), awaits);
        }
    }
}

impl TeamCore {
    /// The plan of a call, made now if it was not kept.
    pub fn plan(&self, key: &Key, make: impl FnOnce() -> Result<Plan>) -> Result<Arc<Plan>> {
        if let Some(plan) = self.plans().get(key) {
            return Ok(plan);
        }
        let plan = Arc::new(make()?);
        self.plans().keep(*key, &plan);
        Ok(plan)
    }

    /// A barrier of the members.
    #[inline]
    #[track_caller]
    pub fn barrier(self: &Arc<Self>, world: &Teams) {
        if self.is_fast {
            // The meeting orders stores, which completes puts to mapped PEs. Puts over the network need
            // quiet.
            if world.net.is_some() {
                world.quiet();
            }
            return Direct { world, team: self, operation: "barrier" }.sync();
        }
        world.quiet();
        self.sync(world);
    }

    /// A meeting of the members.
    #[inline]
    #[track_caller]
    pub fn sync(self: &Arc<Self>, world: &Teams) {
        match self.is_fast {
            true => Direct { world, team: self, operation: "barrier" }.sync(),
            false => self.sync_slowly(world),
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn sync_slowly(self: &Arc<Self>, world: &Teams) {
        world.tally.add(|counts| counts.barriers += 1);
        let _span = Call::barrier().record(world, "");
        if world.collectives.are_checked()
            && let Err(error) = self.check_call(world, Call::barrier().words())
        {
            world.fail(&error.to_string());
        }
        self.meet_slowly(world);
    }

    /// A meeting of the members, which is not compared with the calls of the others.
    #[track_caller]
    pub fn meet_slowly(self: &Arc<Self>, world: &Teams) {
        self.rest_before_meeting(world);
        if world.is_direct(self) {
            Direct { world, team: self, operation: "barrier" }.sync();
        } else if !self.sync_in_levels(world) {
            self.meet_by_schedule(world, Prepared::new(world, self, &Call::barrier()));
        }
        if world.collectives.frees_at_barrier() {
            self.engine().barrier_passed(usize::from(!world.is_direct(self)));
        }
    }

    /// The same by dissemination among all members.
    #[track_caller]
    pub fn meet_by_dissemination(self: &Arc<Self>, world: &Teams) {
        self.rest_before_meeting(world);
        self.meet_by_schedule(world, Prepared::dissemination(world, self));
        if world.collectives.frees_at_barrier() {
            self.engine().barrier_passed(1);
        }
    }

    /// Where a barrier frees the memory of operations, these must be over.
    #[track_caller]
    fn rest_before_meeting(self: &Arc<Self>, world: &Teams) {
        if world.collectives.frees_at_barrier() && !world.is_at_rest(self) {
            world.wait(Awaited::member("barrier", None), || world.is_at_rest(self));
        }
    }

    #[track_caller]
    fn meet_by_schedule(self: &Arc<Self>, world: &Teams, prepared: Result<Prepared>) {
        match prepared.and_then(|prepared| prepared.start(world, self)) {
            Ok(progress) => world.await_collective("barrier", &progress),
            Err(error) => world.fail(&error.to_string()),
        }
    }
}
