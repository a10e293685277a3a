//! Execution of the frames that have arrived: puts, gets and atomics on the memory of the PEs of this
//! process, messages, replies.

use super::completion_queue::Entry;
use super::domain::{Domain, OwedAcks};
use super::frame::{Header, Kind};
use super::local_pe::CachedRegion;
use super::peer::Peer;
use super::progress::Sink;
use super::receiver::{Frame, Next, Receiver};
use super::send_queue::{Data, PendingReply, SendQueue, Source};
use crate::amo::{Atomic, write_word};
use crate::copy;
use crate::sync::{Ordering, fence};
use crate::types::{Event, Pe};

impl Domain {
    /// Executes the frames that the receiver has, and counts them. An error describes a frame that no member
    /// sends.
    pub(super) fn execute_frames(
        &self,
        peer: &Peer,
        receiver: &mut Receiver,
        sink: &mut Sink<'_, '_>,
        frames: &mut usize,
    ) -> Result<(), String> {
        let mut frame = Frame::none();
        loop {
            match receiver.next(&mut frame)? {
                Next::Incomplete => return Ok(()),
                Next::Skipped => continue,
                Next::Complete => {
                    self.take_acks(peer, receiver, frame.header.acks)?;
                    let region = &mut receiver.last_region;
                    // SAFETY: the frame is complete, so its data lie in the buffer until more is received.
                    if !unsafe { self.execute(peer, region, &frame, Some(frame.data), sink)? } {
                        receiver.put_back(&frame.header);
                        return Ok(());
                    }
                    receiver.has_left |= frame.header.kind == Kind::Bye;
                }
                Next::InTarget => {
                    self.take_acks(peer, receiver, frame.header.acks)?;
                    let region = &mut receiver.last_region;
                    // SAFETY: the data of this frame were received into its target.
                    unsafe { self.execute(peer, region, &frame, None, sink)? };
                }
                Next::WantsTarget => {
                    let header = frame.header;
                    let bytes = header.data_bytes();
                    let target = match header.kind {
                        kind if kind.is_put() => {
                            self.place(header.to.into(), header.word, header.offset, bytes)?
                        }
                        _ => reply_target(&peer.send_queue(), bytes)?,
                    };
                    // SAFETY: the target was checked. Its PE keeps it, or the starter of the get does.
                    unsafe { receiver.set_target(header, target) };
                    continue;
                }
            }
            *frames += 1;
        }
    }

    /// Takes the count of acknowledgements of a frame. A count that has not changed was checked before.
    #[inline]
    fn take_acks(&self, peer: &Peer, receiver: &mut Receiver, acks: u32) -> Result<(), String> {
        if receiver.acks != acks {
            if !peer.send_queue().acknowledge(acks) {
                return Err(format!("a count of {acks} puts that were not started"));
            }
            receiver.acks = acks;
        }
        Ok(())
    }

    /// Executes a frame. Its data lie at `data`, or in its target. Returns `false` if an inbox has no room
    /// for it. A frame for a PE that has closed its endpoint is dropped, and the reply to a get from it is
    /// zeros. Such a frame was under way when all PEs had agreed to leave, or the job fails.
    ///
    /// # Safety
    /// The data are in the place that this describes.
    #[inline]
    unsafe fn execute(
        &self,
        peer: &Peer,
        region: &mut CachedRegion,
        frame: &Frame,
        data: Option<*const u8>,
        sink: &mut Sink<'_, '_>,
    ) -> Result<bool, String> {
        let header = &frame.header;
        let bytes = header.data_bytes();
        // SYNC POINT arrival: a thread that sees the data of this frame sees those of all earlier frames.
        fence(Ordering::Release);
        match (header.kind, data) {
            (kind, data) if kind.is_put() => {
                // SAFETY: the caller's promises are the same.
                unsafe { self.execute_put(region, frame, data)? };
            }
            (Kind::Reply, data) => {
                let mut queue = peer.send_queue();
                if data.is_some() {
                    reply_target(&queue, bytes)?;
                }
                let reply = queue.pop_reply().ok_or("an answer to nothing")?;
                drop(queue);
                // SAFETY: the reply has the expected length; the starter has kept the target until now.
                unsafe { complete(&reply, data) };
            }
            (Kind::Get, _) => self.execute_get(peer, header)?,
            (Kind::Fetch | Kind::Update, _) => {
                let [operand, compare, _] = frame.operands;
                let atomic = atomic_of(header, [operand, compare])?;
                let bytes = atomic.kind.bytes();
                let word = self.place(header.to.into(), header.word, header.offset, bytes)?;
                let old = execute_atomic(&atomic, word, header.offset)?;
                if header.kind == Kind::Fetch {
                    let word = old.to_ne_bytes();
                    let data = Data { start: word.as_ptr(), bytes };
                    // SAFETY: the word is a variable of this function, and is copied before this returns.
                    unsafe { self.reply(peer, header, data, Source::Copied) };
                }
            }
            (Kind::Message, Some(data)) => {
                // SAFETY: the caller has promised the data, which stay in the buffer until this returns.
                let payload = unsafe { std::slice::from_raw_parts(data, bytes) };
                let from = peer.process * self.each + usize::from(header.from);
                if !self.deliver(header.to.into(), (from, header.word, payload), sink)? {
                    return Ok(false);
                }
            }
            (Kind::Datagrams, _) => self.connect_datagrams(peer, header)?,
            _ => {}
        }
        if header.kind.is_delivery()
            && sink.own.as_ref().is_none_or(|(own, _)| *own != usize::from(header.to))
        {
            self.local_pes[usize::from(header.to)].ring();
        }
        if header.is_acknowledged() {
            peer.count_executed();
            self.list_ack(peer);
            if !header.kind.is_acknowledged_late() || peer.owed_acks() >= OwedAcks::MESSAGES_MAX {
                self.owed_acks.hurry();
            }
        }
        Ok(true)
    }

    /// Executes a put, and its signal if it has one.
    ///
    /// # Safety
    /// As [`execute`](Domain::execute).
    #[inline]
    unsafe fn execute_put(
        &self,
        region: &mut CachedRegion,
        frame: &Frame,
        data: Option<*const u8>,
    ) -> Result<(), String> {
        let header = &frame.header;
        let (bytes, to) = (header.bytes as usize, header.to);
        let lacks = |key, offset, bytes| self.not_registered(to.into(), key, offset, bytes);
        let pe = self.local_pes.get(usize::from(to));
        let pe = pe.ok_or_else(|| lacks(header.word, header.offset, bytes))?;
        if let Some(data) = data {
            let target = pe.cached_place(region, (to, header.word), header.offset, bytes);
            let target = target.ok_or_else(|| lacks(header.word, header.offset, bytes))?;
            if !target.is_null() {
                // SAFETY: the target was checked, and the caller has promised the data.
                unsafe { copy::transfer(target, data, bytes) };
            }
        }
        if header.kind.has_signal() {
            let [key, offset, operand] = frame.operands;
            let atomic = atomic_of(header, [operand, 0])?;
            let bytes = atomic.kind.bytes();
            let word = pe.cached_place(region, (to, key), offset, bytes);
            let word = word.ok_or_else(|| lacks(key, offset, bytes))?;
            execute_atomic(&atomic, word, offset)?;
        }
        Ok(())
    }

    /// Replies to a get.
    fn execute_get(&self, peer: &Peer, header: &Header) -> Result<(), String> {
        let (bytes, to) = (header.bytes as usize, header.to.into());
        let start = self.place(to, header.word, header.offset, bytes)?.cast_const();
        if start.is_null() {
            let zeros = vec![0; bytes];
            // SAFETY: the zeros are copied before this returns.
            unsafe { self.reply(peer, header, Data { start: zeros.as_ptr(), bytes }, Source::Copied) };
        } else {
            // SAFETY: the source was checked, and its PE keeps it as long as the endpoint.
            unsafe { self.reply(peer, header, Data { start, bytes }, Source::Stays(None)) };
        }
        Ok(())
    }

    /// Adds a reply to the peer's send queue. It is sent when all frames that have arrived are executed.
    ///
    /// # Safety
    /// The data are valid for reads as `source` says.
    unsafe fn reply(&self, peer: &Peer, to: &Header, data: Data, source: Source) {
        let mut queue = peer.send_queue();
        let (acks, bytes) = (peer.acks_to_send(), data.bytes as u32);
        let header = Header { from: to.to, to: to.from, bytes, ..Header::control(Kind::Reply, acks) };
        // SAFETY: the caller's promises are the same.
        let pushed = unsafe { queue.push(header, &[], data, source) };
        // The receiver is locked, and the link must be locked before it. So this connects to nobody, and
        // leaves an error to the next round, which finds it again.
        drop(pushed);
        self.list_queue(peer, &mut queue);
    }

    /// Delivers a message to a PE of this process. Returns `false` if the inbox is full.
    pub(super) fn deliver(
        &self,
        slot: usize,
        (from, header, payload): (Pe, u64, &[u8]),
        sink: &mut Sink<'_, '_>,
    ) -> Result<bool, String> {
        let pe =
            self.local_pes.get(slot).ok_or_else(|| format!("a message for PE {slot} of this process"))?;
        if let Some((own, handle)) = sink.own.as_mut()
            && *own == slot
        {
            sink.events += pe.drain_inbox(&mut **handle);
            handle(Event::Message { from, header, payload });
            sink.events += 1;
            return Ok(true);
        }
        Ok(pe.push_message(from, header, payload))
    }
}

/// The atomic of a frame.
#[inline]
fn atomic_of(header: &Header, [operand, compare]: [u64; 2]) -> Result<Atomic, String> {
    let code = header.code;
    Atomic::from_code(code, operand, compare).ok_or_else(|| format!("an atomic of code {code}"))
}

/// Executes an atomic on the word at an offset of a region, or nothing if the word is null. Returns the old
/// value.
#[inline]
fn execute_atomic(atomic: &Atomic, word: *mut u8, offset: u64) -> Result<u64, String> {
    if word.is_null() {
        return Ok(0);
    }
    if !word.addr().is_multiple_of(atomic.kind.bytes()) {
        return Err(format!("an atomic at offset {offset}, which is not aligned"));
    }
    // SAFETY: the word lies in a registered region, as the caller has checked, aligned.
    Ok(unsafe { atomic.execute(word) })
}

/// The target of the oldest operation that expects a reply. An error says that it does not expect one of this
/// length.
fn reply_target(queue: &SendQueue, bytes: usize) -> Result<*mut u8, String> {
    let reply = queue.next_reply().ok_or("an answer to nothing")?;
    if reply.bytes != bytes {
        return Err(format!("{bytes} bytes in answer to a get of {}", reply.bytes));
    }
    Ok(reply.target)
}

/// Completes an operation by its reply, whose data lie at `data`, or in the target.
///
/// # Safety
/// They have the expected length. The target is null or valid for writes.
unsafe fn complete(reply: &PendingReply, data: Option<*const u8>) {
    if let Some(data) = data.filter(|_| !reply.target.is_null()) {
        // SAFETY: the caller has promised both; a word has at most 8 bytes.
        unsafe {
            match reply.atomic {
                None => copy::transfer(reply.target, data, reply.bytes),
                Some(kind) => {
                    let mut word = [0; 8];
                    copy::transfer(word.as_mut_ptr(), data, reply.bytes);
                    write_word(kind, u64::from_ne_bytes(word), reply.target);
                }
            }
        }
    }
    reply.completions.count_get();
    if let Some(token) = reply.token {
        reply.completions.push(Entry::Done(token));
    }
}
