//! Runs schedules step by step, each rank until it is blocked, and checks every access.
//!
//! Invariant: steps are run in an order that the happens-before relation allows; data move when their step
//! begins. Any other order gives the same contents, unless two accesses race, which is a defect.

use super::clock::{self, Clock, OPEN, Over};
use super::defect::{Defect, Fault};
use super::memory::{Access, Conflict, Memory, UNSET};
use super::options::CheckOptions;
use super::pairing::{Pair, Pairs};
use super::places::{self, Area, Memories, Refusal, Units};
use super::terms::{Term, Terms, WordMap};
use crate::schedule::{Buffer, Place, Rank, Remote, Schedule, Slot, Step};
use crate::shape::Shape;
use std::rc::Rc;

/// The reason why a rank is blocked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// It waits for a signal in the slot.
    Wait(Slot),
    /// Too many of its signals to the rank are still in flight.
    Credit(Rank),
}

/// A signal that has arrived.
struct Arrival {
    clock: Clock,
    depth: usize,
}

/// The progress of a rank.
struct Progress {
    at: usize,
    held: Option<Held>,
    clock: Clock,
    arrivals: Vec<Option<Arrival>>,
    /// The number of messages of the longest chain that it has waited for, and the same with the gets that it
    /// has begun.
    depth: usize,
    get_depth: usize,
    /// The next `Complete` from here on; the number of steps if there is none.
    next_complete: usize,
    /// Accesses of other ranks to its memories.
    remote: Vec<Access>,
}

/// The state of all ranks of a team.
pub(super) struct Machine<'a> {
    schedules: &'a [Schedule],
    shapes: &'a [Shape],
    pairs: &'a Pairs,
    options: &'a CheckOptions,
    /// Sizes of elements.
    pub units: Units,
    /// All contents.
    pub terms: Terms,
    memories: Vec<Memories>,
    progress: Vec<Progress>,
    accesses: Vec<Over>,
    unwaited: WordMap<u64, usize>,
    moved: Vec<u32>,
}

impl<'a> Machine<'a> {
    /// All ranks at their beginning.
    pub fn new(
        schedules: &'a [Schedule],
        shapes: &'a [Shape],
        pairs: &'a Pairs,
        options: &'a CheckOptions,
    ) -> Machine<'a> {
        let units = Units::new(shapes[0].element_bytes);
        let pieces = units.pieces() as u32;
        let terms = Terms::new(shapes.iter().map(|shape| shape.source_bytes() / units.element));
        let memories = shapes.iter().zip(schedules).map(|(shape, schedule)| {
            let first = 1 + terms.leaf(shape.rank, 0) * pieces;
            Memories::new(shape, schedule, units, options.mailbox_bytes, |unit| first + unit as u32)
        });
        let memories = memories.collect();
        let nothing = Rc::new(vec![0; shapes.len()]);
        let progress = pairs.iter().enumerate().map(|(rank, slots)| Progress {
            at: 0,
            held: None,
            clock: Clock::new(rank, &nothing),
            arrivals: slots.iter().map(|_| None).collect(),
            depth: 0,
            get_depth: 0,
            next_complete: 0,
            remote: Vec::new(),
        });
        Machine {
            schedules,
            shapes,
            pairs,
            options,
            units,
            terms,
            memories,
            progress: progress.collect(),
            accesses: Vec::new(),
            unwaited: WordMap::default(),
            moved: Vec::new(),
        }
    }

    /// Runs all ranks to their ends. Returns the length of the longest chain of messages.
    pub fn run(&mut self) -> Result<usize, Defect> {
        let mut ready: Vec<Rank> = (0..self.ranks()).rev().collect();
        while let Some(rank) = ready.pop() {
            while self.progress[rank].at < self.schedules[rank].steps.len() {
                let step = self.progress[rank].at;
                self.progress[rank].clock.begin(step);
                if let Some(held) = self.holds_up(rank, step) {
                    self.progress[rank].held = Some(held);
                    break;
                }
                if let Some(woken) = self.step(rank, step)? {
                    ready.push(woken);
                }
                self.progress[rank].at += 1;
            }
        }
        let stuck = (0..self.ranks()).find(|&rank| self.progress[rank].held.is_some());
        if let Some(rank) = stuck {
            return Err(self.deadlock(rank));
        }
        for (progress, schedule) in self.progress.iter_mut().zip(self.schedules) {
            progress.clock.begin(schedule.steps.len());
        }
        Ok(self.progress.iter().map(|progress| progress.depth.max(progress.get_depth)).max().unwrap_or(0))
    }

    /// Checks that all gets were completed, and that no rank accesses the memory of a rank that has ended.
    pub fn check_ends(&self) -> Result<(), Defect> {
        for (rank, schedule) in self.schedules.iter().enumerate() {
            let is_complete = |step: &Step| matches!(step, Step::Complete);
            let rest = schedule.steps.iter().rposition(is_complete).map_or(0, |last| last + 1);
            let is_get = |step: &Step| matches!(step, Step::Get { .. });
            if let Some(get) = schedule.steps[rest..].iter().position(is_get) {
                return Err(self.defect(rank, rest + get, Fault::OpenGet, "no complete follows it"));
            }
        }
        for (rank, progress) in self.progress.iter().enumerate() {
            for &access in &progress.remote {
                let over = self.accesses[access as usize];
                if !over.is_known_to(&progress.clock) {
                    let text = format!("rank {rank} can end before this is complete, and does not know");
                    return Err(self.defect(over.rank as Rank, over.step as usize, Fault::OpenAtEnd, &text));
                }
            }
        }
        Ok(())
    }

    /// The number of ranks of the team.
    pub fn ranks(&self) -> usize {
        self.schedules.len()
    }

    /// The clock of a rank.
    pub fn clock(&self, rank: Rank) -> &Clock {
        &self.progress[rank].clock
    }

    /// The target of a rank.
    pub fn target(&self, rank: Rank) -> &Memory {
        self.memories[rank].target()
    }

    fn defect(&self, rank: Rank, step: usize, fault: Fault, text: &str) -> Defect {
        let what = &self.schedules[rank].steps[step];
        Defect::new(fault, rank, step, format!("{what}: {text}"))
    }

    /// The reason why a rank is blocked before a step, if it is.
    fn holds_up(&self, rank: Rank, step: usize) -> Option<Held> {
        let to = match self.schedules[rank].steps[step] {
            Step::Wait { slot, .. } if self.progress[rank].arrivals[slot].is_none() => {
                return Some(Held::Wait(slot));
            }
            Step::Put { to, signal: Some(_), .. } | Step::Signal { to, .. } => to,
            _ => return None,
        };
        let credits = self.options.credits?;
        let unwaited = self.unwaited.get(&direction(rank, to)).copied().unwrap_or(0);
        (unwaited >= credits).then_some(Held::Credit(to))
    }

    /// Performs a step. Returns the rank that it unblocks, if any.
    fn step(&mut self, rank: Rank, step: usize) -> Result<Option<Rank>, Defect> {
        let schedules = self.schedules;
        let done = match &schedules[rank].steps[step] {
            &Step::Put { to, from, into, bytes, signal } => {
                self.put(rank, step, (from, to, into), bytes, signal).map(|()| match signal {
                    Some(slot) => self.signal(rank, to, slot),
                    None => None,
                })
            }
            &Step::Get { of, from, into, bytes } => {
                self.get(rank, step, (of, from, into), bytes).map(|()| None)
            }
            &Step::Signal { to, slot, announces } => {
                let place = announces.map_or(Ok(()), |place| self.area(rank, place, 0).map(|_| ()));
                place.map(|()| self.signal(rank, to, slot))
            }
            &Step::Wait { of, slot } => Ok(self.wait(rank, of, slot)),
            Step::Complete => {
                let progress = &mut self.progress[rank];
                progress.depth = progress.depth.max(progress.get_depth);
                Ok(None)
            }
            &Step::Copy { from, into, bytes } => {
                self.copy(rank, step, (from, 0), (into, 0), bytes, 1).map(|()| None)
            }
            &Step::CopyStrided { from, from_stride, into, into_stride, block, count } => {
                self.copy(rank, step, (from, from_stride), (into, into_stride), block, count).map(|()| None)
            }
            &Step::Reduce { left, right, into, bytes } => {
                self.reduce(rank, step, [left, right, into], bytes).map(|()| None)
            }
        };
        done.map_err(|(fault, text)| self.defect(rank, step, fault, &text))
    }

    fn put(
        &mut self,
        rank: Rank,
        step: usize,
        (from, to, into): (Place, Rank, Remote),
        bytes: usize,
        signal: Option<Slot>,
    ) -> Result<(), Refusal> {
        let from = self.own(rank, step, from, bytes)?;
        let place = match (into, signal) {
            (Remote::Target(offset), _) => Place::target(offset),
            (Remote::Mailbox, Some(slot)) => Place::mailbox(slot),
            (Remote::Mailbox, None) => {
                return Err((Fault::Mailbox, "a mailbox is only written with its signal".to_owned()));
            }
            (Remote::Announced { slot, offset }, _) => self.announced(rank, step, to, slot)?.plus(offset),
        };
        let through_mailbox = matches!(into, Remote::Mailbox);
        if !through_mailbox && !matches!(place.buffer, Buffer::Target | Buffer::Scratch) {
            return Err((Fault::ReadOnly, format!("{place} of rank {to} is only read")));
        }
        let into = self.area(to, place, bytes)?;
        let (reads, writes) = self.begin_put(rank, step, signal.map(|slot| (to, self.pairs[to][slot])));
        self.progress[to].remote.push(writes);
        self.read(rank, &from, reads)?;
        self.write(rank, &into, writes)?;
        self.transfer(&from, &into);
        Ok(())
    }

    fn get(
        &mut self,
        rank: Rank,
        step: usize,
        (of, from, into): (Rank, Remote, Place),
        bytes: usize,
    ) -> Result<(), Refusal> {
        let place = match from {
            Remote::Target(offset) => Place::target(offset),
            Remote::Mailbox => return Err((Fault::Mailbox, "a mailbox is read by its rank only".to_owned())),
            Remote::Announced { slot, offset } => self.announced(rank, step, of, slot)?.plus(offset),
        };
        if matches!(place.buffer, Buffer::Mailbox(_)) {
            return Err((Fault::Mailbox, format!("{place} is read by its rank only")));
        }
        let from = self.area(of, place, bytes)?;
        let into = self.own_writable(rank, into, bytes)?;
        let access = self.begin_transfer(rank, step);
        self.progress[of].remote.push(access);
        self.read(rank, &from, access)?;
        self.write(rank, &into, access)?;
        self.transfer(&from, &into);
        let progress = &mut self.progress[rank];
        progress.get_depth = progress.get_depth.max(progress.depth + 1);
        Ok(())
    }

    fn signal(&mut self, rank: Rank, to: Rank, slot: Slot) -> Option<Rank> {
        let (clock, depth) = (self.progress[rank].clock.clone(), self.progress[rank].depth + 1);
        if self.options.credits.is_some() {
            *self.unwaited.entry(direction(rank, to)).or_insert(0) += 1;
        }
        let receiver = &mut self.progress[to];
        receiver.arrivals[slot] = Some(Arrival { clock, depth });
        let wakes = receiver.held == Some(Held::Wait(slot));
        wakes.then(|| {
            receiver.held = None;
            to
        })
    }

    fn wait(&mut self, rank: Rank, of: Rank, slot: Slot) -> Option<Rank> {
        let progress = &mut self.progress[rank];
        if let Some(arrival) = progress.arrivals[slot].take() {
            progress.clock.learn(&arrival.clock);
            progress.depth = progress.depth.max(arrival.depth);
        }
        if let Some(unwaited) = self.unwaited.get_mut(&direction(of, rank)) {
            *unwaited -= 1;
        }
        let sender = &mut self.progress[of];
        let wakes = sender.held == Some(Held::Credit(rank));
        wakes.then(|| {
            sender.held = None;
            of
        })
    }

    fn copy(
        &mut self,
        rank: Rank,
        step: usize,
        (from, from_stride): (Place, usize),
        (into, into_stride): (Place, usize),
        block: usize,
        count: usize,
    ) -> Result<(), Refusal> {
        let mut blocks = Vec::with_capacity(count);
        for index in 0..count {
            let from = self.own(rank, step, from.plus(index * from_stride), block)?;
            blocks.push((from, self.own_writable(rank, into.plus(index * into_stride), block)?));
        }
        check_apart(&blocks)?;
        let access = self.begin_local(rank, step);
        for (from, into) in &blocks {
            self.read(rank, from, access)?;
            self.write(rank, into, access)?;
            self.transfer(from, into);
        }
        Ok(())
    }

    fn reduce(
        &mut self,
        rank: Rank,
        step: usize,
        [left, right, into]: [Place; 3],
        bytes: usize,
    ) -> Result<(), Refusal> {
        if !self.shapes[rank].operation.combines() {
            let text = format!("{} combines nothing", self.shapes[rank].operation);
            return Err((Fault::Combines, text));
        }
        let (left, right) = (self.own(rank, step, left, bytes)?, self.own(rank, step, right, bytes)?);
        let into = self.own_writable(rank, into, bytes)?;
        for operand in [&left, &right] {
            if *operand != into && operand.overlaps(&into) {
                return Err((Fault::Overlap, "the result overlaps an operand in part".to_owned()));
            }
        }
        let access = self.begin_local(rank, step);
        self.read(rank, &left, access)?;
        self.read(rank, &right, access)?;
        self.write(rank, &into, access)?;
        let pieces = self.units.pieces();
        for at in (0..into.units.len()).step_by(pieces) {
            let left = self.operand(&left, at)?;
            let right = self.operand(&right, at)?;
            let first = 1 + self.terms.combine(left, right) * pieces as u32;
            let start = into.units.start + at;
            let values = &mut self.memories[rank].get(into.buffer).values[start..start + pieces];
            values.iter_mut().zip(first..).for_each(|(place, value)| *place = value);
        }
        Ok(())
    }

    /// The term of the element at offset `at`, in units, of an area.
    fn operand(&mut self, area: &Area, at: usize) -> Result<Term, Refusal> {
        let start = area.units.start + at;
        let values = &self.memories[area.rank].get(area.buffer).values[start..start + self.units.pieces()];
        term(values).ok_or_else(|| match values.contains(&UNSET) {
            true => (Fault::Unset, "an operand was never written".to_owned()),
            false => (Fault::CutElement, "an operand is put together of several".to_owned()),
        })
    }

    fn area(&self, rank: Rank, place: Place, bytes: usize) -> Result<Area, Refusal> {
        let (shape, schedule) = (&self.shapes[rank], &self.schedules[rank]);
        places::area(shape, schedule, self.units, self.options.mailbox_bytes, place, bytes)
    }

    /// The area of a place of the rank itself, to be read.
    fn own(&self, rank: Rank, step: usize, place: Place, bytes: usize) -> Result<Area, Refusal> {
        if let Buffer::Mailbox(slot) = place.buffer {
            let waited = self.pairs[rank].get(slot).is_some_and(|pair| (pair.wait_step as usize) < step);
            if !waited {
                return Err((
                    Fault::Mailbox,
                    format!("{place} is not there before the wait for slot {slot}"),
                ));
            }
        }
        self.area(rank, place, bytes)
    }

    /// The area of a place of the rank itself, to be written.
    fn own_writable(&self, rank: Rank, place: Place, bytes: usize) -> Result<Area, Refusal> {
        match place.buffer {
            Buffer::Target | Buffer::Scratch => self.area(rank, place, bytes),
            Buffer::Source | Buffer::Mailbox(_) => Err((Fault::ReadOnly, format!("{place} is only read"))),
        }
    }

    /// The place that `other` has announced to a rank by its signal in a slot.
    fn announced(&self, rank: Rank, step: usize, other: Rank, slot: Slot) -> Result<Place, Refusal> {
        let refusal = |text: String| Err((Fault::NotAnnounced, text));
        let waited = |pair: &&Pair| (pair.wait_step as usize) < step;
        let Some(pair) = self.pairs[rank].get(slot).filter(waited) else {
            return refusal(format!("slot {slot} has not been waited for before"));
        };
        if pair.from as Rank != other {
            return refusal(format!("slot {slot} is signalled by rank {}", pair.from));
        }
        match self.schedules[other].steps[pair.signal_step as usize] {
            Step::Signal { announces: Some(place), .. } => Ok(place),
            _ => refusal(format!("the signal of rank {other} in slot {slot} announces nothing")),
        }
    }

    /// A put without a signal, or a get, begins.
    fn begin_transfer(&mut self, rank: Rank, step: usize) -> Access {
        let time = self.next_complete(rank, step);
        self.note(Over { rank: rank as u32, step: step as u32, time, peer: rank as u32, peer_time: time })
    }

    /// A put begins: returns its access to the source and its access to the target. If it signals, both are
    /// over for the rank that waits for the signal, and for ranks that learn of it from there; a `Complete`
    /// ends the first one only.
    fn begin_put(&mut self, rank: Rank, step: usize, signal: Option<(Rank, Pair)>) -> (Access, Access) {
        let Some((to, pair)) = signal else {
            let access = self.begin_transfer(rank, step);
            return (access, access);
        };
        let (time, peer_time) = (self.next_complete(rank, step), clock::end(pair.wait_step as usize));
        let over = Over { rank: rank as u32, step: step as u32, time, peer: to as u32, peer_time };
        (self.note(over), self.note(Over { time: OPEN, ..over }))
    }

    /// The time of the `Complete` that follows a step.
    fn next_complete(&mut self, rank: Rank, step: usize) -> clock::Time {
        let progress = &mut self.progress[rank];
        let steps = &self.schedules[rank].steps;
        progress.next_complete = progress.next_complete.max(step);
        while steps.get(progress.next_complete).is_some_and(|step| !matches!(step, Step::Complete)) {
            progress.next_complete += 1;
        }
        if progress.next_complete < steps.len() { clock::end(progress.next_complete) } else { OPEN }
    }

    /// A step begins that is over before the next step.
    fn begin_local(&mut self, rank: Rank, step: usize) -> Access {
        let time = clock::end(step);
        self.note(Over { rank: rank as u32, step: step as u32, time, peer: rank as u32, peer_time: time })
    }

    fn note(&mut self, over: Over) -> Access {
        self.accesses.push(over);
        (self.accesses.len() - 1) as Access
    }

    fn read(&mut self, rank: Rank, area: &Area, access: Access) -> Result<(), Refusal> {
        let (clock, accesses) = (&self.progress[rank].clock, &self.accesses);
        let memory = self.memories[area.rank].get(area.buffer);
        let over = |access: Access| accesses[access as usize].is_known_to(clock);
        memory.read(area.units.clone(), access, over).map_err(|conflict| self.race(area, &conflict, "reads"))
    }

    fn write(&mut self, rank: Rank, area: &Area, access: Access) -> Result<(), Refusal> {
        let (clock, accesses) = (&self.progress[rank].clock, &self.accesses);
        let memory = self.memories[area.rank].get(area.buffer);
        let over = |access: Access| accesses[access as usize].is_known_to(clock);
        memory
            .write(area.units.clone(), access, over)
            .map_err(|conflict| self.race(area, &conflict, "writes"))
    }

    #[cold]
    fn race(&self, area: &Area, conflict: &Conflict, verb: &str) -> Refusal {
        let earlier = self.accesses[conflict.earlier as usize];
        let (rank, step) = (earlier.rank as Rank, earlier.step as usize);
        let place = Place { buffer: area.buffer, offset: area.units.start * self.units.unit };
        let (bytes, owner) = (area.units.len() * self.units.unit, area.rank);
        let other = if conflict.writes { "write" } else { "read" };
        let text = format!(
            "{verb} {bytes} B at {place} of rank {owner}, where nothing orders it with \
             the {other} of rank {rank}, step {step}: {}",
            self.schedules[rank].steps[step]
        );
        (Fault::Race, text)
    }

    fn transfer(&mut self, from: &Area, into: &Area) {
        self.moved.clear();
        self.moved.extend_from_slice(&self.memories[from.rank].get(from.buffer).values[from.units.clone()]);
        self.memories[into.rank].get(into.buffer).values[into.units.clone()].copy_from_slice(&self.moved);
    }

    /// The defect that describes a deadlock: the cycle of waits, from a rank that is blocked.
    #[cold]
    fn deadlock(&self, first: Rank) -> Defect {
        let mut text = "nobody goes on: ".to_owned();
        let (mut seen, mut rank) = (vec![false; self.ranks()], first);
        while !std::mem::replace(&mut seen[rank], true) {
            let progress = &self.progress[rank];
            let step = &self.schedules[rank].steps[progress.at];
            let next = match (progress.held, step) {
                (Some(Held::Credit(to)), _) => {
                    text += &format!("rank {rank} (step {}: {step}) has no room at rank {to}; ", progress.at);
                    to
                }
                (Some(Held::Wait(_)), &Step::Wait { of, .. }) => {
                    text += &format!("rank {rank} (step {}: {step}) waits for rank {of}; ", progress.at);
                    of
                }
                _ => break,
            };
            rank = next;
        }
        text += &format!("which is rank {rank} again");
        Defect::new(Fault::Deadlock, first, self.progress[first].at, text)
    }
}

/// An ordered pair of ranks, packed in one word.
fn direction(from: Rank, to: Rank) -> u64 {
    (from as u64) << 32 | to as u64
}

/// The term that the units of an element form together.
pub(super) fn term(values: &[u32]) -> Option<Term> {
    let pieces = values.len() as u32;
    let term = values[0].checked_sub(1)? / pieces;
    let whole = values.iter().zip(1 + term * pieces..).all(|(&value, piece)| value == piece);
    whole.then_some(term)
}

/// Checks that no block that is written overlaps another block of the step.
fn check_apart(blocks: &[(Area, Area)]) -> Result<(), Refusal> {
    let mut written: Vec<&Area> = blocks.iter().map(|(_, into)| into).collect();
    written.sort_unstable_by_key(|area| area.units.start);
    let among = written.windows(2).any(|pair| pair[0].overlaps(pair[1]));
    let read = blocks.iter().any(|(from, _)| {
        let first = written.partition_point(|into| into.units.end <= from.units.start);
        written.get(first).is_some_and(|into| into.overlaps(from))
    });
    if among || read {
        return Err((Fault::Overlap, "what is read and what is written overlap".to_owned()));
    }
    Ok(())
}

/// The numbers of bytes that a rank copies and that it combines in its own memory.
pub(super) fn local_bytes(schedule: &Schedule) -> (usize, usize) {
    let (mut copied, mut reduced) = (0, 0);
    for step in &schedule.steps {
        match step {
            Step::Copy { bytes, .. } => copied += bytes,
            Step::CopyStrided { block, count, .. } => copied += block * count,
            Step::Reduce { bytes, .. } => reduced += bytes,
            _ => {}
        }
    }
    (copied, reduced)
}
