//! Schedules: the steps of one rank of a team in a collective operation, as data.
//!
//! A builder makes the schedule of a rank from its [`Shape`](crate::shape::Shape) alone, so it can be read,
//! drawn, checked without processes, simulated and run. The engine runs it, the checker proves it.
//!
//! Invariant: the steps of a rank begin in their order. `Wait` and `Complete` block the steps after them;
//! every other step is only started. The runtime guarantees the following, and nothing more:
//! * A put reads its source at any time after it begins. The source is free after `Complete`, and for the
//!   target's rank after the `Wait` for the put's signal. A put with a signal is complete at the target after
//!   that `Wait`, also for ranks that learn of the `Wait` through later signals. A put without a signal, or a
//!   get, is complete after `Complete`. Puts, gets and signals are not ordered among each other, not even to
//!   one rank; only a put's own signal is ordered after its data.
//! * `Wait` returns once the signal of that slot has arrived. Then the data of the put that signalled have
//!   arrived, and everything that the signalling rank had waited for, copied or reduced before it signalled
//!   has happened.
//! * A slot of a rank is signalled at most once in a collective operation, and each signal is waited for.
//! * A rank's `Source`, `Scratch` and slots belong to it from its first step to its last. Other ranks may
//!   write its `Target` from their first step on, unless it is its `Source` as well: then only after a chain
//!   of signals that begins at a step of that rank, which may still be filling it. They access its `Source`
//!   and `Scratch` only after an announcement, and must have finished (which they signal) before the rank's
//!   last step ends.
//! * When a rank's schedule ends, it has waited for all puts into its `Target`; the engine completes the
//!   rank's own puts at the end.

/// The number of a PE in a team, from 0.
pub type Rank = usize;

/// The number of a synchronisation word of a rank, with its mailbox, from 0.
pub type Slot = usize;

/// Size in bytes of a mailbox of the runtime. Small messages are sent to mailboxes.
pub const MAILBOX_BYTES: usize = 240;

/// Size in bytes of what a signal brings that announces a place: the place, and the room there.
pub const ANNOUNCEMENT_BYTES: usize = 16;

/// The number of slots that a schedule for a team of `n` may use: enough for a ring that goes around twice,
/// and for the pieces of a pipeline.
#[inline]
pub const fn slots_max(n: usize) -> usize {
    2 * n + 64
}

/// A memory that the steps of a rank refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Buffer {
    /// The rank's contribution; read only.
    Source,
    /// The memory for its result.
    Target,
    /// Memory for the duration of the operation, its contents unspecified at the start.
    Scratch,
    /// The data that a `send` into this slot has brought, after the wait for it; read only.
    Mailbox(Slot),
}

/// A place in a rank's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The memory.
    pub buffer: Buffer,
    /// The offset from its start, in bytes.
    pub offset: usize,
}

impl Place {
    /// A place in the source.
    #[inline]
    pub const fn source(offset: usize) -> Place {
        Place { buffer: Buffer::Source, offset }
    }

    /// A place in the target.
    #[inline]
    pub const fn target(offset: usize) -> Place {
        Place { buffer: Buffer::Target, offset }
    }

    /// The data in a slot's mailbox.
    #[inline]
    pub const fn mailbox(slot: Slot) -> Place {
        Place { buffer: Buffer::Mailbox(slot), offset: 0 }
    }

    /// The place `bytes` bytes further on.
    #[inline]
    pub const fn plus(self, bytes: usize) -> Place {
        Place { buffer: self.buffer, offset: self.offset + bytes }
    }
}

/// A place in the memory of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Remote {
    /// Its target, at an offset in bytes.
    Target(usize),
    /// The mailbox of the slot that the put signals.
    Mailbox,
    /// The place that it has announced by its signal in a slot of this rank, plus an offset. This rank must
    /// have waited for the signal.
    Announced {
        /// The slot of this rank.
        slot: Slot,
        /// The offset from the announced place, in bytes.
        offset: usize,
    },
}

/// One step of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Writes to another rank's memory, and then signals there if a slot is given.
    Put {
        /// The target rank.
        to: Rank,
        /// The place of the data.
        from: Place,
        /// The destination.
        into: Remote,
        /// The number of bytes.
        bytes: usize,
        /// The slot of `to` that is signalled when the data have arrived.
        signal: Option<Slot>,
    },
    /// Reads from another rank's memory; the data have arrived after the next `Complete`.
    Get {
        /// The rank that is read.
        of: Rank,
        /// The place of the data: an announced place, or the rank's target.
        from: Remote,
        /// The destination.
        into: Place,
        /// The number of bytes.
        bytes: usize,
    },
    /// Signals another rank, and announces a place of this rank if one is given.
    Signal {
        /// The rank that is signalled.
        to: Rank,
        /// Its slot.
        slot: Slot,
        /// The place that `to` may then access as [`Remote::Announced`].
        announces: Option<Place>,
    },
    /// Waits for the signal of another rank.
    Wait {
        /// The rank that signals.
        of: Rank,
        /// The slot of this rank.
        slot: Slot,
    },
    /// Waits until all gets and puts without signals so far are complete, and all sources are free.
    Complete,
    /// Copies within the rank's own memory.
    Copy {
        /// The place of the data.
        from: Place,
        /// The destination; the two do not overlap.
        into: Place,
        /// The number of bytes.
        bytes: usize,
    },
    /// Copies blocks within the rank's own memory.
    CopyStrided {
        /// The first block.
        from: Place,
        /// The distance from block to block, in bytes.
        from_stride: usize,
        /// The destination of the first block.
        into: Place,
        /// The distance from block to block, in bytes.
        into_stride: usize,
        /// Bytes of a block.
        block: usize,
        /// Number of blocks.
        count: usize,
    },
    /// Combines elements: `into = left op right`. `into` is `left`, is `right`, or overlaps neither.
    Reduce {
        /// The operands that come first in the order of ranks.
        left: Place,
        /// The operands that come after them.
        right: Place,
        /// The place for the results.
        into: Place,
        /// The number of bytes; whole elements.
        bytes: usize,
    },
}

/// The steps of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The steps, in their order.
    pub steps: Vec<Step>,
    /// Size of the scratch memory, in bytes.
    pub scratch_bytes: usize,
}

/// The totals of a rank's schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Puts, gets, and signals without data: the messages on the network.
    pub messages: usize,
    /// Bytes of the puts and gets.
    pub bytes: usize,
    /// Waits for signals.
    pub waits: usize,
}

impl Schedule {
    /// The same schedule for ranks that are the members `ranks` of a larger team.
    pub fn among(mut self, ranks: &[Rank]) -> Schedule {
        for step in &mut self.steps {
            match step {
                Step::Put { to: rank, .. }
                | Step::Get { of: rank, .. }
                | Step::Signal { to: rank, .. }
                | Step::Wait { of: rank, .. } => *rank = ranks[*rank],
                _ => {}
            }
        }
        self
    }

    /// The totals of this rank's schedule.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for step in &self.steps {
            match step {
                Step::Put { bytes, .. } | Step::Get { bytes, .. } => {
                    counts.messages += 1;
                    counts.bytes += bytes;
                }
                Step::Signal { .. } => counts.messages += 1,
                Step::Wait { .. } => counts.waits += 1,
                _ => {}
            }
        }
        counts
    }
}

/// Writes the schedule of one rank. Transfers, copies and reductions of 0 bytes add no step, but their
/// signals remain.
#[derive(Debug)]
pub struct Builder {
    mailbox_bytes: usize,
    schedule: Schedule,
}

/// Scratch memory is allocated in multiples of this, so that every element type is aligned in it.
const SCRATCH_ALIGN_BYTES: usize = 64;

impl Builder {
    /// An empty schedule. A mailbox holds `mailbox_bytes` bytes.
    pub fn new(mailbox_bytes: usize) -> Builder {
        Builder { mailbox_bytes, schedule: Schedule::default() }
    }

    /// The schedule that was written.
    pub fn finish(self) -> Schedule {
        self.schedule
    }

    /// Size of a mailbox, in bytes: the most that a [`send`](Builder::send) can carry.
    #[inline]
    pub fn mailbox_bytes(&self) -> usize {
        self.mailbox_bytes
    }

    fn push(&mut self, step: Step) {
        self.schedule.steps.push(step);
    }

    /// Allocates scratch memory that is disjoint from all earlier allocations.
    pub fn scratch(&mut self, bytes: usize) -> Place {
        let offset = self.schedule.scratch_bytes.next_multiple_of(SCRATCH_ALIGN_BYTES);
        self.schedule.scratch_bytes = offset + bytes;
        Place { buffer: Buffer::Scratch, offset }
    }

    /// Puts data without a signal; the target must learn of them in some other way.
    pub fn put(&mut self, to: Rank, from: Place, into: Remote, bytes: usize) {
        if bytes > 0 {
            self.push(Step::Put { to, from, into, bytes, signal: None });
        }
    }

    /// Puts data, then signals.
    pub fn put_signal(&mut self, to: Rank, from: Place, into: Remote, bytes: usize, slot: Slot) {
        match bytes {
            0 => self.signal(to, slot),
            _ => self.push(Step::Put { to, from, into, bytes, signal: Some(slot) }),
        }
    }

    /// Sends data into a slot's mailbox, with the signal.
    ///
    /// # Panics
    /// If the data do not fit in a mailbox.
    pub fn send(&mut self, to: Rank, from: Place, bytes: usize, slot: Slot) {
        assert!(bytes <= self.mailbox_bytes, "{bytes} bytes do not fit in a mailbox");
        self.put_signal(to, from, Remote::Mailbox, bytes, slot);
    }

    /// Gets data; they have arrived after [`complete`](Builder::complete).
    pub fn get(&mut self, of: Rank, from: Remote, into: Place, bytes: usize) {
        if bytes > 0 {
            self.push(Step::Get { of, from, into, bytes });
        }
    }

    /// Signals.
    pub fn signal(&mut self, to: Rank, slot: Slot) {
        self.push(Step::Signal { to, slot, announces: None });
    }

    /// Signals, and announces a place that the other rank may access from then on.
    pub fn announce(&mut self, to: Rank, slot: Slot, place: Place) {
        self.push(Step::Signal { to, slot, announces: Some(place) });
    }

    /// Waits for a signal.
    pub fn wait(&mut self, of: Rank, slot: Slot) {
        self.push(Step::Wait { of, slot });
    }

    /// Waits until all gets and puts without signals so far are complete, and all sources are free.
    pub fn complete(&mut self) {
        self.push(Step::Complete);
    }

    /// Copies within the rank's own memory.
    pub fn copy(&mut self, from: Place, into: Place, bytes: usize) {
        if bytes > 0 && from != into {
            self.push(Step::Copy { from, into, bytes });
        }
    }

    /// Copies `count` blocks of `block` bytes.
    pub fn copy_strided(
        &mut self,
        (from, from_stride): (Place, usize),
        (into, into_stride): (Place, usize),
        block: usize,
        count: usize,
    ) {
        if block > 0 && count > 0 {
            self.push(Step::CopyStrided { from, from_stride, into, into_stride, block, count });
        }
    }

    /// Combines elements: `into = left op right`.
    pub fn reduce(&mut self, left: Place, right: Place, into: Place, bytes: usize) {
        if bytes > 0 {
            self.push(Step::Reduce { left, right, into, bytes });
        }
    }
}
