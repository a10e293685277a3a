//! The steps of a schedule that move data to other members, or signal to them.

use super::{Following, Held, Lease, Request, Signal, TeamEngine};
use crate::base::signal_op::SignalOp;
use crate::coll::block;
use crate::coll::schedule::{ANNOUNCEMENT_BYTES, Buffer, MAILBOX_BYTES, Place, Rank, Remote, Slot};
use crate::coll::teams::Teams;
use crate::endpoint::RemoteAddress;
use crate::memory::route::Route;
use pelago_fabric::sync::{AtomicU64, Ordering};
use pelago_fabric::{Completion, copy};

impl Request {
    pub fn put(
        &mut self,
        world: &Teams,
        held: &mut Held<'_>,
        (to, slot): (Rank, Option<Slot>),
        from: Place,
        into: Remote,
        bytes: usize,
    ) -> bool {
        let mailbox_bytes = if into == Remote::Mailbox { bytes } else { 0 };
        let signal = match slot {
            None => None,
            Some(slot) => match self.reserve(held, to, slot, mailbox_bytes) {
                None => return false,
                signal => signal,
            },
        };
        let offset_bytes = match (into, signal) {
            (Remote::Mailbox, Some(signal)) => self.data_offset(world, held.engine, to, signal, bytes),
            _ => self.remote(world, to, (into, bytes)),
        };
        let (pe, from) = (self.team.pe(to), self.place(world, held.engine, from));
        if world.routes.to(pe) == Route::Mapped {
            // SAFETY: by the plan's shape source and target have this many bytes; the PE is mapped.
            unsafe { copy::copy(world.memory.heap(pe).add(offset_bytes), from, bytes) };
            if let Some(signal) = signal {
                self.write_signal(world, held, to, signal);
            }
            return true;
        }
        let (target, net) =
            (RemoteAddress { operation: self.operation, pe, offset_bytes }, world.net_endpoint());
        if let Some(signal) = signal
            && (net.signals(bytes) || net.signals(0) && net.keeps_messages_behind_puts())
        {
            // SAFETY: the range lies in the other's region; the source stays until the operation is over.
            unsafe { self.put_marked(world, held, (target, from, bytes), to, signal) };
            return true;
        }
        let counter = match signal {
            None => self.transfers(world),
            Some(_) => world.completions.open(),
        };
        // SAFETY: the range lies in the other's region; the source stays until the operation is over.
        unsafe { net.put(world, target, from, bytes, Some(&counter)) };
        if let Some(signal) = signal {
            self.following.push(Following { data: counter, to, signal, _announcement: None });
            self.follow(world, held);
        }
        true
    }

    /// Starts a put over a network whose puts signal, and its mark with it, or right behind it if the put is
    /// too long to signal: the mark is a message then.
    ///
    /// # Safety
    /// The range lies in the other's region. The source is kept until the operation is over.
    unsafe fn put_marked(
        &mut self,
        world: &Teams,
        held: &mut Held<'_>,
        (target, from, bytes): (RemoteAddress, *const u8, usize),
        to: Rank,
        signal: Signal,
    ) {
        let net = world.net_endpoint();
        let offset_bytes = self.word_offset(world, held.engine, to, signal);
        let word = RemoteAddress { offset_bytes, ..target };
        if !net.signals(bytes) {
            // SAFETY: the caller's promises are the same.
            unsafe { net.put(world, target, from, bytes, Some(&self.sources(world))) };
            return self.write_signal(world, held, to, signal);
        }
        let (put, signal) = ((target, from, bytes), (word, SignalOp::Set(signal.seal(held)).atomic()));
        // SAFETY: the caller's promises are the same, and the word lies in the other's block, aligned.
        unsafe {
            match net.injects(bytes) {
                true => net.put_message_signal(world, put, signal, Completion::Unreported),
                false => net.put_signal(world, put, signal, Some(&self.sources(world))),
            }
        }
    }

    pub fn get(&mut self, world: &Teams, of: Rank, offset_bytes: usize, into: *mut u8, bytes: usize) {
        let pe = self.team.pe(of);
        if world.routes.to(pe) == Route::Mapped {
            // SAFETY: by the plan's shape both places have this many bytes; the PE is mapped.
            unsafe { copy::copy(into, world.memory.heap(pe).add(offset_bytes), bytes) };
            return;
        }
        let source = RemoteAddress { operation: self.operation, pe, offset_bytes };
        let counter = self.transfers(world);
        // SAFETY: the range lies in the other's region; the target stays until the operation is over.
        unsafe { world.net_endpoint().get(world, source, into, bytes, Some(&counter)) };
    }

    pub fn signal(
        &mut self,
        world: &Teams,
        held: &mut Held<'_>,
        to: Rank,
        slot: Slot,
        announces: Option<Place>,
    ) -> bool {
        let bytes = if announces.is_some() { ANNOUNCEMENT_BYTES } else { 0 };
        let Some(signal) = self.reserve(held, to, slot, bytes) else { return false };
        let Some(place) = announces else {
            self.write_signal(world, held, to, signal);
            return true;
        };
        let signal = signal.announcing();
        let start = self.place(world, held.engine, place) as usize;
        let offset = start - world.memory.heap(world.my_pe()) as usize;
        let words = [offset as u64, (self.bytes_of(place.buffer) - place.offset) as u64];
        let pe = self.team.pe(to);
        let places = self.announcement_offsets(world, held.engine, to, signal);
        if world.routes.to(pe) == Route::Mapped {
            for (word, offset_bytes) in words.into_iter().zip(places) {
                // SAFETY: the word lies in the other's block, aligned, and is accessed as an atomic only.
                let there = unsafe { &*world.memory.heap(pe).add(offset_bytes).cast::<AtomicU64>() };
                there.store(word, Ordering::Relaxed);
            }
            self.write_signal(world, held, to, signal);
            return true;
        }
        // Both words follow each other.
        let target = RemoteAddress { operation: self.operation, pe, offset_bytes: places[0] };
        let bytes = size_of_val(&words);
        if world.net_endpoint().signals(bytes) {
            // SAFETY: the words lie in the other's block; so few bytes are taken before the call returns.
            unsafe { self.put_marked(world, held, (target, words.as_ptr().cast(), bytes), to, signal) };
            return true;
        }
        let (data, words) = (world.completions.open(), Box::new(words));
        // SAFETY: the words lie in the other's block; the source stays until the put is complete.
        unsafe { world.net_endpoint().put(world, target, words.as_ptr().cast(), bytes, Some(&data)) };
        self.following.push(Following { data, to, signal, _announcement: Some(words) });
        self.follow(world, held);
        true
    }

    /// Size of a buffer of this PE that can be announced, in bytes.
    fn bytes_of(&self, buffer: Buffer) -> usize {
        match buffer {
            Buffer::Source => self.operands.source_bytes,
            Buffer::Target => self.operands.target_bytes,
            Buffer::Scratch => self.plan.schedule.scratch_bytes,
            Buffer::Mailbox(_) => MAILBOX_BYTES,
        }
    }

    /// Signals for the puts whose data have arrived.
    pub fn follow(&mut self, world: &Teams, held: &mut Held<'_>) {
        let mut following = std::mem::take(&mut self.following);
        following.retain(|put| {
            let has_arrived = put.data.is_done();
            if has_arrived {
                self.write_signal(world, held, put.to, put.signal);
                world.completions.release(put.data.clone());
            }
            !has_arrived
        });
        self.following = following;
    }

    fn write_signal(&self, world: &Teams, held: &mut Held<'_>, to: Rank, signal: Signal) {
        let offset = self.word_offset(world, held.engine, to, signal);
        world.write_word(self.team.pe(to), offset, signal.seal(held), self.operation);
    }

    /// The place of a signal's word in the memory of its PE.
    fn word_offset(&self, world: &Teams, engine: &TeamEngine, to: Rank, signal: Signal) -> usize {
        match signal {
            Signal::Array(mark) => self.team.base(to) + block::word_offset(engine.block_ranks, mark.index),
            Signal::Pair(mark) => world.pair_block.word(mark.index),
        }
    }

    /// The place of the data that come with a signal, `bytes` bytes, in the memory of its PE.
    fn data_offset(
        &self,
        world: &Teams,
        engine: &TeamEngine,
        to: Rank,
        signal: Signal,
        bytes: usize,
    ) -> usize {
        match signal {
            Signal::Array(mark) => self.team.base(to) + block::mailbox_offset(engine.block_ranks, mark.index),
            Signal::Pair(mark) => world.pair_block.data(mark.index, bytes),
        }
    }

    /// The places of the two words of an announcement in the memory of its PE, one behind the other.
    fn announcement_offsets(
        &self,
        world: &Teams,
        engine: &TeamEngine,
        to: Rank,
        signal: Signal,
    ) -> [usize; 2] {
        match signal {
            Signal::Array(mark) => {
                let base = self.team.base(to);
                block::announced_offsets(engine.block_ranks, mark.index).map(|offset| base + offset)
            }
            Signal::Pair(mark) => {
                let start = world.pair_block.data(mark.index, ANNOUNCEMENT_BYTES);
                [start, start + size_of::<u64>()]
            }
        }
    }

    /// Takes a slot of a member for the signal of this step, with `bytes` bytes of data; `None` if none is
    /// free.
    fn reserve(&self, held: &mut Held<'_>, to: Rank, slot: Slot, bytes: usize) -> Option<Signal> {
        match self.lease.as_ref().expect("it is admitted") {
            Lease::Array(lease) => {
                let arrays = held.engine.arrays.as_mut().expect("an array was admitted");
                arrays.signals();
                Some(Signal::Array(arrays.mark(&self.plan, *lease, slot)))
            }
            Lease::Pairs(lease) => {
                let target = (self.team.pe(to), self.team.tag(to));
                let mark = held.pairs.reserve((&self.plan, lease), self.at, target, bytes, held.own);
                mark.map(Signal::Pair)
            }
        }
    }
}
