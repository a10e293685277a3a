//! The steps of a schedule that move data to other members, or signal to them.

use super::{Following, Request, TeamEngine};
use crate::base::signal_op::SignalOp;
use crate::coll::block;
use crate::coll::schedule::{Buffer, MAILBOX_BYTES, Place, Rank, Remote, Slot};
use crate::coll::sync_memory::{ANNOUNCES, Mark};
use crate::coll::teams::Teams;
use crate::endpoint::RemoteAddress;
use crate::memory::route::Route;
use pelago_fabric::copy;
use pelago_fabric::sync::{AtomicU64, Ordering};

impl Request {
    pub fn put(
        &mut self,
        world: &Teams,
        engine: &mut TeamEngine,
        (to, signal): (Rank, Option<Slot>),
        from: Place,
        into: Remote,
        bytes: usize,
    ) -> bool {
        let mark = match signal {
            None => None,
            Some(slot) => match self.mark(engine, to, slot) {
                None => return false,
                mark => mark,
            },
        };
        let (pe, offset_bytes) = (self.team.pe(to), self.remote(world, engine, to, (into, bytes), mark));
        let from = self.place(world, engine, from);
        if world.routes.to(pe) == Route::Mapped {
            // SAFETY: by the plan's shape source and target have this many bytes; the PE is mapped.
            unsafe { copy::copy(world.memory.heap(pe).add(offset_bytes), from, bytes) };
            if let Some(mark) = mark {
                self.write_mark(world, engine, to, mark);
            }
            return true;
        }
        let (target, net) =
            (RemoteAddress { operation: self.operation, pe, offset_bytes }, world.net_endpoint());
        if let Some(mark) = mark
            && (net.signals(bytes) || net.signals(0) && net.keeps_messages_behind_puts())
        {
            // SAFETY: the range lies in the other's region; the source stays until the operation is over.
            unsafe { self.put_marked(world, engine, (target, from, bytes), to, mark) };
            return true;
        }
        let counter = match mark {
            None => self.transfers(world),
            Some(_) => world.completions.open(),
        };
        // SAFETY: the range lies in the other's region; the source stays until the operation is over.
        unsafe { net.put(world, target, from, bytes, Some(&counter)) };
        if let Some(mark) = mark {
            self.following.push(Following { data: counter, to, mark });
            self.follow(world, engine);
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
        engine: &TeamEngine,
        (target, from, bytes): (RemoteAddress, *const u8, usize),
        to: Rank,
        mark: Mark,
    ) {
        let net = world.net_endpoint();
        let word = RemoteAddress { offset_bytes: self.mark_offset(engine, to, mark), ..target };
        let (put, signal) = ((target, from, bytes), (word, SignalOp::Set(mark.word).atomic()));
        // SAFETY: the caller's promises are the same, and the word lies in the other's block, aligned.
        unsafe {
            match (net.signals(bytes), net.injects(bytes)) {
                (true, true) => net.put_message_signal(world, put, signal),
                (true, false) => net.put_signal(world, put, signal, Some(&self.sources(world))),
                (false, _) => {
                    net.put(world, target, from, bytes, Some(&self.sources(world)));
                    self.write_mark(world, engine, to, mark);
                }
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
        engine: &mut TeamEngine,
        to: Rank,
        slot: Slot,
        announces: Option<Place>,
    ) -> bool {
        let Some(mark) = self.mark(engine, to, slot) else { return false };
        let Some(place) = announces else {
            self.write_mark(world, engine, to, mark);
            return true;
        };
        let mark = Mark { word: mark.word | ANNOUNCES, ..mark };
        let offset = self.place(world, engine, place) as usize - world.memory.heap(world.my_pe()) as usize;
        let words = [offset as u64, (self.bytes_of(place.buffer) - place.offset) as u64];
        let (pe, base) = (self.team.pe(to), self.team.base(to));
        let places = block::announced_offsets(engine.block_ranks, mark.index).map(|offset| base + offset);
        if world.routes.to(pe) == Route::Mapped {
            for (word, offset_bytes) in words.into_iter().zip(places) {
                // SAFETY: the word lies in the other's block, aligned, and is accessed as an atomic only.
                let there = unsafe { &*world.memory.heap(pe).add(offset_bytes).cast::<AtomicU64>() };
                there.store(word, Ordering::Relaxed);
            }
            self.write_mark(world, engine, to, mark);
            return true;
        }
        if world.net_endpoint().signals(size_of_val(&words)) {
            // Both words follow each other.
            let target = RemoteAddress { operation: self.operation, pe, offset_bytes: places[0] };
            let source = (target, words.as_ptr().cast(), size_of_val(&words));
            // SAFETY: the words lie in the other's block; so few bytes are taken before the call returns.
            unsafe { self.put_marked(world, engine, source, to, mark) };
            return true;
        }
        let data = world.completions.open();
        for (word, offset_bytes) in words.into_iter().zip(places) {
            let (target, word) =
                (RemoteAddress { operation: self.operation, pe, offset_bytes }, word.to_ne_bytes());
            // SAFETY: the word lies in the other's block; so few bytes are taken before the call returns.
            unsafe { world.net_endpoint().put(world, target, word.as_ptr(), word.len(), Some(&data)) };
        }
        self.following.push(Following { data, to, mark });
        self.follow(world, engine);
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
    pub fn follow(&mut self, world: &Teams, engine: &TeamEngine) {
        let mut following = std::mem::take(&mut self.following);
        following.retain(|put| {
            let has_arrived = put.data.is_done();
            if has_arrived {
                self.write_mark(world, engine, put.to, put.mark);
                world.completions.release(put.data.clone());
            }
            !has_arrived
        });
        self.following = following;
    }

    fn write_mark(&self, world: &Teams, engine: &TeamEngine, to: Rank, mark: Mark) {
        let offset = self.mark_offset(engine, to, mark);
        world.write_word(self.team.pe(to), offset, mark.word, self.operation);
    }

    /// The place of a mark in the memory of its PE.
    fn mark_offset(&self, engine: &TeamEngine, to: Rank, mark: Mark) -> usize {
        self.team.base(to) + block::word_offset(engine.block_ranks, mark.index)
    }

    pub fn mark(&self, engine: &mut TeamEngine, to: Rank, slot: Slot) -> Option<Mark> {
        let lease = self.lease.as_ref().expect("it is admitted");
        engine.memory.mark(&self.plan, lease, self.at, to, slot)
    }
}
