//! Messages between PEs as parts of a benchmark, and their handlers. Invariant: a handler reads the data of a
//! long message in place before it counts the message or replies, as the runtime does with medium messages;
//! and a block of a flood ends when PE 1 has executed its last request.

use std::cell::Cell;
use std::time::Duration;

use pelago::am::{ARGS_MAX, Am, Handler, HandlerLock, Handlers, Message};

use crate::base::buffers::Rotation;
use crate::base::crowd::Meetings;
use crate::base::prelude::*;

/// The PE that PE 0 sends to.
const TARGET: Pe = 1;
/// The number of places of long messages, which are used in turn: more than a ring holds, so that no message
/// is overwritten before it is read.
const PLACES: usize = 1024;
/// The maximum size of all places, in 8-byte words; if they do not fit, there are fewer places, but at least
/// two.
const REGION_WORDS: usize = 512 << 10;
/// The indices of the counters of executed requests and of replies.
const REQUESTS: usize = 0;
const ANSWERS: usize = 1;
/// The number of consecutive empty polls before a PE waits through the runtime.
const POLLS: u32 = 10_000;
const WORD_BYTES: usize = size_of::<u64>();

/// The kind of a message that is sent repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// With this number of arguments.
    Short(usize),
    /// With this number of bytes.
    Medium(usize),
    Long(usize),
}

impl Kind {
    /// Its name in records.
    pub fn operation(self) -> Operation {
        match self {
            Kind::Short(_) => Operation::MessageShort,
            Kind::Medium(_) => Operation::MessageMedium,
            Kind::Long(_) => Operation::MessageLong,
        }
    }

    /// The size of its arguments or its data, in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Kind::Short(args) => args * size_of::<u32>(),
            Kind::Medium(bytes) | Kind::Long(bytes) => bytes,
        }
    }
}

/// The data that the handlers of a PE access.
pub struct Desk<'w> {
    tally: Symmetric<'w, u64>,
    /// The target of the data of long messages.
    data: Symmetric<'w, u64>,
    /// The data to send, and the received data.
    outgoing: Vec<u64>,
    incoming: HandlerLock<Vec<u64>>,
}

/// The handlers, which all PEs register.
#[derive(Clone, Copy)]
struct Numbers {
    /// For requests that are only counted, that get a short reply, or that get a reply of the same size.
    count: Handler,
    acknowledge: Handler,
    echo: Handler,
    /// For replies, and for the message that all requests of a block have been executed.
    answered: Handler,
}

impl<'w> Desk<'w> {
    /// Collective: allocates memory for long messages of up to `longest` bytes.
    pub fn new(world: &'w World, longest: usize) -> pelago::Result<Self> {
        let words = longest / WORD_BYTES;
        Ok(Desk {
            tally: world.alloc_zeroed(2)?,
            data: world.alloc_zeroed(REGION_WORDS.max(2 * words))?,
            outgoing: vec![1; words],
            incoming: HandlerLock::new(vec![0; words]),
        })
    }

    /// Collective: opens an endpoint of all PEs while `work` runs.
    pub fn serve(&self, work: impl FnOnce(&Traffic<'_, 'w>) -> Result<()>) -> Result<()> {
        let (handlers, numbers) = self.handlers();
        let team = self.tally.world().team();
        team.serve(handlers, |am| work(&Traffic::new(am, self, numbers)))?
    }

    fn handlers(&self) -> (Handlers<'_>, Numbers) {
        let mut handlers = Handlers::new();
        let answered = handlers.add("answered", move |message| self.take(ANSWERS, message));
        let count = handlers.add("count", move |message| self.take(REQUESTS, message));
        let acknowledge = handlers.add("acknowledge", move |message| {
            self.take(REQUESTS, message);
            message.answer_short(answered, &[]).expect("a request has one answer");
        });
        let echo = handlers.add("echo", move |message| {
            self.take(REQUESTS, message);
            let outcome = match message.elements() {
                None => message.answer_medium(answered, message.args(), message.payload()),
                Some(range) => {
                    let source = &self.outgoing[..range.len()];
                    message.answer_long(answered, &[], (&self.data, range.start), source)
                }
            };
            outcome.expect("a request has one answer, which is not longer");
        });
        (handlers, Numbers { count, acknowledge, echo, answered })
    }

    /// Reads the data of a long message, and counts. A PE has one thread here, which runs one handler at a
    /// time.
    fn take(&self, what: usize, message: &Message<'_>) {
        if let Some(range) = message.elements() {
            self.data.local().read(range.start, &mut self.incoming.lock()[..range.len()]);
        }
        let tally = self.tally.local();
        tally.set(what, tally.get(what) + 1);
    }
}

/// The messages that a PE sends and awaits.
pub struct Traffic<'a, 'w> {
    am: &'a Am<'a>,
    desk: &'a Desk<'w>,
    numbers: Numbers,
    /// The size of the longest medium message in bytes, rounded down to words.
    pub medium_max: usize,
    payload: Vec<u8>,
    /// Whether PEs 0 and 1 map each other.
    pub is_mapped: bool,
    /// The number of empty polls before a wait.
    polls: u32,
    /// The numbers of requests and replies that have to be executed here, in all blocks so far.
    awaited: [Cell<u64>; 2],
}

impl<'a, 'w> Traffic<'a, 'w> {
    fn new(am: &'a Am<'a>, desk: &'a Desk<'w>, numbers: Numbers) -> Self {
        let world = desk.tally.world();
        let medium_max = am.medium_max() / WORD_BYTES * WORD_BYTES;
        Traffic {
            am,
            desk,
            numbers,
            medium_max,
            payload: vec![1; medium_max],
            is_mapped: [0, TARGET].iter().all(|pe| desk.tally.ptr(*pe).is_some()),
            // A PE that polls keeps its core, which other PEs may need.
            polls: if world.n_pes() > world.cores() { 0 } else { POLLS },
            awaited: Default::default(),
        }
    }

    pub fn world(&self) -> &'w World {
        self.desk.tally.world()
    }

    /// All kinds, by size: short messages with and without arguments, messages of these sizes, and the
    /// longest medium message.
    pub fn kinds(&self, bytes: &[usize]) -> Vec<Kind> {
        let medium = bytes.iter().copied().filter(|bytes| *bytes < self.medium_max);
        let medium = medium.chain([self.medium_max]).map(Kind::Medium);
        let long = bytes.iter().copied().map(Kind::Long);
        let mut kinds: Vec<_> =
            [0, ARGS_MAX].map(Kind::Short).into_iter().chain(medium).chain(long).collect();
        kinds.sort_by_key(|kind| kind.bytes());
        kinds
    }

    /// Sends one request of this kind from PE 0 with each call.
    fn request(&'a self, kind: Kind, handler: Handler) -> impl Fn() -> pelago::Result<()> + 'a {
        let (am, data, words) = (self.am, &self.desk.data, kind.bytes() / WORD_BYTES);
        let rotation = Rotation::new(words, data.len().min(PLACES * words));
        let args = [0; ARGS_MAX];
        move || match kind {
            Kind::Short(count) => am.short(TARGET, handler, &args[..count]),
            Kind::Medium(bytes) => am.medium(TARGET, handler, &[], &self.payload[..bytes]),
            Kind::Long(_) => {
                am.long(TARGET, handler, &[], (data, rotation.next()), &self.desk.outgoing[..words])
            }
        }
    }

    /// Round trips: PE 0 sends, and PE 1 replies with the same size.
    pub fn round_trips(&'a self, kind: Kind) -> Part<'a> {
        let request = self.request(kind, self.numbers.echo);
        let lead = move |count| {
            (0..count).try_for_each(|_| {
                request()?;
                self.wait(ANSWERS, 1);
                Ok(())
            })
        };
        self.between_two(lead, || Ok(()))
    }

    /// PE 0 sends requests one after the other; PE 1 reports when it has executed all.
    pub fn flood(&'a self, kind: Kind) -> Part<'a> {
        let request = self.request(kind, self.numbers.count);
        let lead = move |count| {
            (0..count).try_for_each(|_| request())?;
            self.wait(ANSWERS, 1);
            Ok(())
        };
        self.between_two(lead, move || self.am.short(0, self.numbers.answered, &[]))
    }

    /// PE 0 sends requests one after the other, and PE 1 replies to each.
    pub fn answered_flood(&'a self, kind: Kind) -> Part<'a> {
        let request = self.request(kind, self.numbers.acknowledge);
        let lead = move |count| {
            (0..count).try_for_each(|_| request())?;
            self.wait(ANSWERS, count);
            Ok(())
        };
        self.between_two(lead, || Ok(()))
    }

    /// PE 0 sends; PE 1 executes as many requests as the block has operations, and then runs `last`.
    fn between_two(
        &'a self,
        lead: impl FnMut(u64) -> pelago::Result<()> + 'a,
        last: impl Fn() -> pelago::Result<()> + 'a,
    ) -> Part<'a> {
        match self.am.my_rank() {
            0 => Box::new(lead),
            TARGET => Box::new(move |count| {
                self.wait(REQUESTS, count);
                last()
            }),
            _ => rest(),
        }
    }

    /// The members, from PE 1 on, send to PE 0 for the given number of microseconds.
    pub fn senders(&'a self, meetings: &'a Meetings<'_>, members: usize) -> Part<'a> {
        let (am, count) = (self.am, self.numbers.count);
        match am.my_rank() {
            0 => Box::new(move |_| {
                meetings.attend();
                Ok(())
            }),
            me if me <= members => Box::new(move |microseconds| {
                let batch = |requests| (0..requests).try_for_each(|_| am.short(0, count, &[]));
                meetings.work(me - 1, Duration::from_micros(microseconds), batch)
            }),
            _ => rest(),
        }
    }

    /// PE 0 polls, and no PE sends.
    pub fn polls(&'a self) -> Part<'a> {
        only_first(self.desk.tally.world(), move |count| {
            (0..count).for_each(|_| self.am.poll());
            Ok(())
        })
    }

    /// Waits until `more` further messages have been executed here.
    fn wait(&self, what: usize, more: u64) {
        let end = self.awaited[what].get() + more;
        self.awaited[what].set(end);
        let tally = self.desk.tally.local();
        let (mut seen, mut in_vain) = (tally.get(what), 0);
        while seen < end && in_vain < self.polls {
            self.am.poll();
            let now = tally.get(what);
            in_vain = if now == seen { in_vain + 1 } else { 0 };
            seen = now;
        }
        if seen < end {
            tally.wait_until(what, |count| count >= end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ensemble::conduct;

    const KINDS: [Kind; 4] = [Kind::Short(0), Kind::Short(ARGS_MAX), Kind::Medium(512), Kind::Long(512)];

    /// Runs each kind in blocks of 10 round trips, of 20 requests and of 30 requests with replies. Returns,
    /// for each PE, whether the PEs map each other, the executed messages, the data that were read last, and
    /// the data in the last place of long messages.
    fn counted_and_read(spmd: &pelago::Spmd) -> Vec<(bool, [u64; 2], u64, u64)> {
        let counted = spmd.run(|world| {
            let mut desk = Desk::new(world, 512).unwrap();
            desk.outgoing.fill(7 + world.my_pe() as u64);
            let mut is_mapped = false;
            desk.serve(|traffic| {
                is_mapped = traffic.is_mapped;
                let mut parts: Vec<_> = KINDS
                    .into_iter()
                    .flat_map(|kind| {
                        [traffic.round_trips(kind), traffic.flood(kind), traffic.answered_flood(kind)]
                    })
                    .collect();
                conduct(world, &mut parts, |leader| {
                    let mut executed = 0;
                    for part in 0..12 {
                        let count = 10 * (part as u64 % 3 + 1);
                        leader.play(part, count)?;
                        executed += count;
                        assert_eq!(desk.tally.g(TARGET, REQUESTS)?, executed, "at the end of part {part}");
                    }
                    Ok(())
                })?;
                Ok(())
            })
            .unwrap();
            let tally = desk.tally.local();
            let last_place = desk.data.local().get(64 * 29);
            let counted = [tally.get(REQUESTS), tally.get(ANSWERS)];
            (is_mapped, counted, desk.incoming.into_inner()[63], last_place)
        });
        counted.unwrap()
    }

    #[test]
    fn messages_of_all_kinds_are_counted_answered_and_read() {
        let of_each_kind = [10 + 20 + 30, 10 + 1 + 30];
        let [requests, answers] = of_each_kind.map(|count| KINDS.len() as u64 * count);
        for (route, is_mapped) in [("auto", true), ("net", false)] {
            let expected = [([0, answers], 8, 0), ([requests, 0], 7, 7), ([0, 0], 0, 0)];
            let expected = expected.map(|(counted, read, last)| (is_mapped, counted, read, last));
            let spmd = pelago::Spmd::new(3).setting("PELAGO_ROUTE", route);
            assert_eq!(counted_and_read(&spmd), expected, "{route}");
        }
    }
}
