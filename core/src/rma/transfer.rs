//! Puts, gets and quiet over the network: an operation is started as soon as the endpoint has space for it,
//! and blocking calls wait for completion.

use crate::Pe;
use crate::base::awaited::Awaited;
use crate::endpoint::completion_counter::CompletionCounter;
use crate::endpoint::{Endpoint, Injector, RemoteAddress};
use crate::wait::engine::Engine;
use pelago_fabric::inject::{Left, Noted, Unfinished};
use pelago_fabric::sync::Ordering;
use pelago_fabric::{Atomic, AtomicKind, AtomicOp, Completion, Get, Net, Provider, Put, Signal, Status};

/// The number of checks for completion before a wait for quiet. Each takes about a round of the provider's
/// progress.
const LOOKS_FOR_QUIET: u32 = 32;
/// One in this many of those checks also processes received messages.
const LOOKS_PER_SERVICE: u32 = 8;

impl Endpoint {
    /// Starts a put. Without a counter the source may be reused at return, else when the counter has counted
    /// the put as sent.
    ///
    /// # Safety
    /// The range lies in the heap. `source` is valid for reads until it may be reused.
    #[track_caller]
    pub unsafe fn put(
        &self,
        engine: &Engine,
        target: RemoteAddress,
        source: *const u8,
        bytes: usize,
        counter: Option<&CompletionCounter>,
    ) {
        let Some(counter) = counter else {
            if self.injects(bytes) {
                // SAFETY: the caller has promised that the source is valid for reads and the range lies in
                // the heap.
                return unsafe { self.put_injected(engine, target, source, bytes) };
            }
            // SAFETY: the caller has promised that the range lies in the heap, and `track` does not return
            // before the put is sent.
            return engine.track((target.operation, target.pe), CompletionCounter::is_sent, |own| unsafe {
                self.put(engine, target, source, bytes, Some(own));
            });
        };
        self.admit(engine, target);
        for (skipped, piece) in pieces(bytes, self.limits.transfer_bytes) {
            self.started(&self.puts);
            engine.tally.add_net(|counts| counts.net_puts += 1, || target.given("put", piece));
            let announces_sent = piece > self.limits.inject_bytes;
            counter.begin(announces_sent);
            let status = self.issue(engine, target, |net| {
                // SAFETY: the caller has promised that the source is valid for reads and the range lies in
                // the heap.
                unsafe {
                    let (source, completion) = (source.add(skipped), Completion::Tracked(counter.token()));
                    net.put(Put {
                        pe: target.pe,
                        target: target.remote(skipped),
                        source,
                        bytes: piece,
                        completion,
                    })
                }
            });
            if status == Status::Done {
                counter.done_at_once(announces_sent);
            }
        }
    }

    /// Starts a put that signals. With a counter the source may be reused when the counter has counted the
    /// put as sent, else when the endpoint is quiet.
    ///
    /// # Safety
    /// Range and word lie in the heap, the word aligned. `source` is valid for reads until it may be reused.
    #[track_caller]
    pub unsafe fn put_signal(
        &self,
        engine: &Engine,
        (target, source, bytes): (RemoteAddress, *const u8, usize),
        (word, atomic): (RemoteAddress, Atomic),
        counter: Option<&CompletionCounter>,
    ) {
        self.admit(engine, target);
        self.started(&self.puts);
        engine.tally.add_net(|counts| counts.net_puts += 1, || target.given("put", bytes));
        let announces_sent = bytes > self.limits.inject_bytes;
        if let Some(counter) = counter {
            counter.begin(announces_sent);
        }
        let completion = counter.map(CompletionCounter::token).into();
        let put = short_put(target, source, bytes, completion);
        let signal = Signal { word: word.remote(0), atomic };
        // SAFETY: the caller has promised that the source is valid for reads and that range and word lie in
        // the heap.
        let status = self.issue(engine, target, |net| unsafe { net.put_signal(put, signal) });
        if let (Status::Done, Some(counter)) = (status, counter) {
            counter.done_at_once(announces_sent);
        }
    }

    /// Sets a word of 8 bytes after all words that were set here before at the same PE.
    ///
    /// # Safety
    /// The word lies in the heap, aligned. Such puts [signal](Endpoint::signals).
    #[track_caller]
    pub unsafe fn set_word(&self, engine: &Engine, word: RemoteAddress, value: u64) {
        let (nothing, set) = (
            (word, std::ptr::dangling(), 0),
            Atomic { kind: AtomicKind::U64, op: AtomicOp::Set, operand: value, compare: 0 },
        );
        // SAFETY: the caller has promised that the word lies in the heap, and an empty put reads nothing.
        unsafe { self.put_message_signal(engine, nothing, (word, set), Completion::Unreported) };
    }

    /// Puts a message of the runtime that its receiver waits for. If the provider injects or signals, a quiet
    /// that finds no other operation outstanding does not wait for it.
    ///
    /// # Safety
    /// The range lies in the heap. `source` is valid for reads.
    #[track_caller]
    pub unsafe fn put_message(
        &self,
        engine: &Engine,
        target: RemoteAddress,
        source: *const u8,
        bytes: usize,
    ) {
        // SAFETY: the caller has promised that the source is valid for reads and the range lies in the heap.
        if unsafe { self.injector.put_message(target.pe, target.offset_bytes, source, bytes) } {
            return;
        }
        if !self.signals(bytes) || !self.injects(bytes) {
            // SAFETY: the caller has promised that the source is valid for reads and the range lies in the
            // heap.
            return unsafe { self.put(engine, target, source, bytes, None) };
        }
        self.admit(engine, target);
        engine.tally.add_net(|counts| counts.net_puts += 1, || target.given("put", bytes));
        let put = short_put(target, source, bytes, Completion::Unreported);
        // SAFETY: the caller has promised that the source is valid for reads and the range lies in the heap.
        let _ = self.issue(engine, target, |net| unsafe { net.put(put) });
    }

    /// As [`put_message`](Endpoint::put_message), and signals. The completion is `Unreported`, or `Gathered`
    /// if this PE does not wait for the receiver.
    ///
    /// # Safety
    /// Range and word lie in the heap, the word aligned. `source` is valid for reads. Such puts are
    /// [injected](Endpoint::injects), and [signal](Endpoint::signals).
    #[track_caller]
    pub unsafe fn put_message_signal(
        &self,
        engine: &Engine,
        (target, source, bytes): (RemoteAddress, *const u8, usize),
        (word, atomic): (RemoteAddress, Atomic),
        completion: Completion,
    ) {
        self.admit(engine, target);
        engine.tally.add_net(|counts| counts.net_puts += 1, || target.given("put", bytes));
        let put = short_put(target, source, bytes, completion);
        let signal = Signal { word: word.remote(0), atomic };
        // SAFETY: the caller has promised that the source is valid for reads and that range and word lie in
        // the heap.
        let _ = self.issue(engine, target, |net| unsafe { net.put_signal(put, signal) });
    }

    /// Starts a put whose source may be reused as soon as the provider has accepted it: only quiet observes
    /// its completion.
    ///
    /// # Safety
    /// The range lies in the heap. `source` is valid for reads.
    unsafe fn put_injected(&self, engine: &Engine, target: RemoteAddress, source: *const u8, bytes: usize) {
        // SAFETY: the caller has promised that the source is valid for reads and the range lies in the heap.
        if bytes == 0 || unsafe { self.injector.put(target.pe, target.offset_bytes, source, bytes) } {
            return;
        }
        self.admit(engine, target);
        self.started(&self.puts);
        engine.tally.add_net(|counts| counts.net_puts += 1, || target.given("put", bytes));
        let put = short_put(target, source, bytes, Completion::Counted);
        // SAFETY: the caller has promised that the source is valid for reads and the range lies in the heap.
        let _ = self.issue(engine, target, |net| unsafe { net.put(put) });
    }

    /// Finishes an injected get that was not complete at once.
    ///
    /// # Safety
    /// The promises of the injected get still hold; `into` and `bytes` are the same.
    #[cold]
    #[track_caller]
    pub unsafe fn finish_get(&self, engine: &Engine, get: Unfinished, into: *mut u8, bytes: usize) {
        let Unfinished { pe, offset_bytes, left, .. } = get;
        match left {
            Left::Service => engine.progress(),
            Left::Quiet => self.quiet(engine),
            // SAFETY: the caller has promised that the range lies in the heap and `into` is valid for writes.
            // Without a counter the get is complete at return.
            Left::All => unsafe {
                self.get(engine, RemoteAddress { operation: "get", pe, offset_bytes }, into, bytes, None);
            },
        }
    }

    /// Injects a get if possible, and returns whether it did. An injected get is complete at return.
    ///
    /// # Safety
    /// The range lies in the heap, and the route to the PE is the network. `into` is valid for writes. This
    /// thread may wait.
    #[track_caller]
    pub unsafe fn inject_get(
        &self,
        engine: &Engine,
        injector: &Injector,
        from: (Pe, usize),
        (into, bytes): (*mut u8, usize),
    ) -> bool {
        // SAFETY: these are the arguments of the injected get.
        let finish = move |get| unsafe { self.finish_get(engine, get, into, bytes) };
        // SAFETY: the caller has promised the same that `get_noted` requires.
        let get = || unsafe { injector.get_noted(from, (into, bytes), finish) };
        // Only gets were started since the last one: if these are complete, this one is alone.
        match get() {
            Noted::NotMarkedAnew => self.is_quiet() && get() == Noted::Here,
            noted => noted == Noted::Here,
        }
    }

    /// Starts a get; without a counter, completes it.
    ///
    /// # Safety
    /// The range lies in the heap. `into` is valid for writes until the get is complete.
    #[track_caller]
    pub unsafe fn get(
        &self,
        engine: &Engine,
        source: RemoteAddress,
        into: *mut u8,
        bytes: usize,
        counter: Option<&CompletionCounter>,
    ) {
        let Some(counter) = counter else {
            // SAFETY: the caller has promised that the range lies in the heap, and `track` does not return
            // before the get is complete.
            return engine.track((source.operation, source.pe), CompletionCounter::is_done, |own| unsafe {
                self.get(engine, source, into, bytes, Some(own));
            });
        };
        self.admit(engine, source);
        for (skipped, piece) in pieces(bytes, self.limits.transfer_bytes) {
            self.started(self.injector.other_gets());
            engine.tally.add_net(|counts| counts.net_gets += 1, || source.given("get", piece));
            counter.begin(false);
            let status = self.issue(engine, source, |net| {
                // SAFETY: the caller has promised that the range lies in the heap and `into` is valid for
                // writes.
                unsafe {
                    let (target, completion) = (into.add(skipped), Completion::Tracked(counter.token()));
                    net.get(Get {
                        pe: source.pe,
                        source: source.remote(skipped),
                        target,
                        bytes: piece,
                        completion,
                    })
                }
            });
            if status == Status::Done {
                counter.done_at_once(false);
            }
        }
    }

    /// Completes all operations that were started here. Other threads start no operation meanwhile, so that a
    /// stream of operations cannot delay this call for ever.
    #[track_caller]
    pub fn quiet(&self, engine: &Engine) {
        let _counted = self.waiting();
        if !self.is_soon_quiet(engine) {
            {
                let _counted = self.quieting();
                engine.progress();
                engine.wait(Awaited::Quiet, || self.is_quiet());
            }
            // The last check has left the injector closed.
            self.injector.stop().leave_open(!self.is_quieting());
        }
        // The checks make progress as well.
        engine.service.hand_over(self);
    }

    /// Whether all operations that were started here are complete, for a caller that continues its program.
    pub fn tests_quiet(&self, engine: &Engine) -> bool {
        let is_quiet = self.is_quiet();
        // The check makes progress as well.
        engine.service.hand_over(self);
        is_quiet
    }

    /// Checks for a short time whether a network that makes progress by itself is quiet. Other PEs are served
    /// meanwhile, also by a PE whose repeated calls of quiet each succeed after a few checks.
    #[track_caller]
    fn is_soon_quiet(&self, engine: &Engine) -> bool {
        self.moves_by_itself()
            && (0..LOOKS_FOR_QUIET).any(|_| {
                if self.looks.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOKS_PER_SERVICE) {
                    engine.progress();
                }
                self.is_quiet()
            })
    }

    /// Admits a new operation, once no other thread waits for quiet.
    #[track_caller]
    pub fn admit(&self, engine: &Engine, target: RemoteAddress) {
        let is_admitted = || !self.is_quieting();
        if !is_admitted() {
            engine.wait(target.room(), is_admitted);
        }
    }

    /// Calls the provider until it accepts. This is the only function that handles `Again` of a transfer.
    #[track_caller]
    fn issue(&self, engine: &Engine, target: RemoteAddress, mut call: impl FnMut(&Net) -> Status) -> Status {
        let mut status = self.call(&mut call);
        if status == Status::Again {
            engine.wait(target.room(), || {
                status = self.call(&mut call);
                status != Status::Again
            });
        }
        status
    }
}

impl Engine {
    /// Waits until all operations of a counter are complete.
    #[track_caller]
    pub fn wait_for(&self, counter: &CompletionCounter) {
        self.wait(Awaited::Quiet, || counter.is_done());
    }

    /// Starts operations with a new counter and waits until they are sent, or until they are done, as
    /// `is_enough` decides.
    #[track_caller]
    pub fn track(
        &self,
        (operation, pe): (&'static str, Pe),
        is_enough: fn(&CompletionCounter) -> bool,
        start: impl FnOnce(&CompletionCounter),
    ) {
        let counter = self.completions.open();
        start(&counter);
        self.wait(Awaited::Completion { operation, pe }, || is_enough(&counter));
        self.completions.release(counter);
    }
}

/// A put in one piece.
fn short_put(target: RemoteAddress, source: *const u8, bytes: usize, completion: Completion) -> Put {
    Put { pe: target.pe, target: target.remote(0), source, bytes, completion }
}

/// A transfer cut into pieces of at most `limit` bytes: the start and the length of each. An empty transfer
/// has no pieces.
fn pieces(bytes: usize, limit: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..bytes).step_by(limit).map(move |start| (start, limit.min(bytes - start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_a_transfer_once() {
        assert_eq!(pieces(0, 10).count(), 0);
        assert_eq!(pieces(10, usize::MAX).collect::<Vec<_>>(), [(0, 10)]);
        assert_eq!(pieces(25, 10).collect::<Vec<_>>(), [(0, 10), (10, 10), (20, 5)]);
    }
}
