//! The simulated endpoint.
//!
//! Invariant: only `progress` returns completions and events, and a call that lets other PEs run holds no
//! borrow and no lock meanwhile.

use super::engine::{Action, Finished, Letter, Local, Op, PortId, Region, Standing, State, picoseconds};
use super::network::read;
use super::params::SimParams;
use super::scheduler::{Engine, Guard};
use crate::amo::AtomicKind;
use crate::contract::{Never, Provider};
use crate::operation::{Amo, Get, Put};
use crate::types::{Completions, Event, FabricError, FabricResult, Key, Limits, Pe, Remote, Status, Token};
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// A PE's endpoint in a simulated network, or a context of it.
pub struct Sim {
    me: Pe,
    n_pes: usize,
    port: PortId,
    /// Whether this is the PE's endpoint and not a context. Messages arrive at the endpoint, and the PE takes
    /// part as long as it lives.
    is_first: bool,
    engine: Arc<Engine>,
    limits: Limits,
    executes_atomics: bool,
    completions: Cell<Completions>,
    news: RefCell<News>,
}

/// The events that a call of `progress` passes on.
#[derive(Default)]
struct News {
    finished: Vec<Finished>,
    letters: Vec<Letter>,
}

impl Sim {
    /// Endpoints of PEs that one thread drives in turns. No PE waits for a turn, and every call of `progress`
    /// advances the network until something has happened that a PE can see, or in chaos by 0 to 3 steps.
    pub fn open(n_pes: usize, params: SimParams) -> Vec<Sim> {
        Sim::endpoints(n_pes, params, true)
    }

    /// Endpoints of PEs each of which runs on its own thread, one at a time, from
    /// [`connect`](Provider::connect) until its endpoint is dropped. A PE that runs, and waits by other means
    /// than the calls of its endpoint, stops all others.
    pub fn threads(n_pes: usize, params: SimParams) -> Vec<Sim> {
        Sim::endpoints(n_pes, params, false)
    }

    fn endpoints(n_pes: usize, params: SimParams, driven: bool) -> Vec<Sim> {
        let engine = Arc::new(Engine::new(State::new(n_pes, params, driven)));
        (0..n_pes).map(|me| Sim::endpoint(me, &engine, &mut engine.lock(), true)).collect()
    }

    fn endpoint(me: Pe, engine: &Arc<Engine>, state: &mut State, is_first: bool) -> Sim {
        let SimParams { inject_bytes, message_bytes, transfer_bytes, .. } = state.params;
        Sim {
            me,
            n_pes: state.members.len(),
            port: state.open_port(me),
            is_first,
            engine: Arc::clone(engine),
            limits: Limits { inject_bytes, message_bytes, transfer_bytes },
            executes_atomics: state.params.executes_atomics,
            completions: Cell::default(),
            news: RefCell::default(),
        }
    }

    /// Begins a call that starts an operation: it takes time, and in chaos other PEs may run first.
    fn begin(&self) -> Guard<'_> {
        let mut state = self.engine.enter(self.me);
        debug_assert!(state.members[self.me].standing != Standing::Absent, "PE {} is not connected", self.me);
        let hand_over = state.params.hand_over;
        if state.params.chaos && !state.driven && state.random.chance(hand_over) {
            state = self.engine.pass(state, self.me);
        }
        state
    }

    /// Starts an operation, if there is a credit for it.
    fn start(&self, op: impl FnOnce() -> Op) -> Status {
        let mut state = self.begin();
        let outstanding = state.port(self.port).outstanding;
        if state.refuses(self.me, outstanding) {
            return Status::Again;
        }
        let overhead = state.times.overhead;
        state.spend(self.me, overhead);
        state.count_operation(self.me);
        state.start(op());
        Status::Pending
    }

    fn op(
        &self,
        to: Pe,
        action: Action,
        local: *mut u8,
        remote: (Remote, usize),
        token: Option<Token>,
    ) -> Op {
        let (remote, bytes) = remote;
        assert!(to < self.n_pes, "PE {}: {} to PE {to} of {}", self.me, action.name(), self.n_pes);
        assert!(
            bytes <= self.limits.transfer_bytes,
            "PE {}: {} of {bytes} bytes exceeds the {} of this fabric",
            self.me,
            action.name(),
            self.limits.transfer_bytes
        );
        Op {
            port: self.port,
            from: self.me,
            to,
            action,
            local: Local(local),
            kept: None,
            bytes,
            remote,
            token,
            pieces_left: 1,
            owes_sent: false,
        }
    }

    /// Takes the events that `progress` reports.
    fn collect(&self, state: &mut State, news: &mut News) {
        let finished = state.port(self.port).finished.len();
        let finished = state.portion(finished);
        news.finished.extend(state.port(self.port).finished.drain(..finished));
        if !self.is_first {
            return;
        }
        let arrived = state.members[self.me].inbox.len();
        let arrived = state.portion(arrived);
        for letter in state.members[self.me].inbox.drain(..arrived) {
            let channel = state.channels.get_mut(&(letter.from, self.me));
            channel.expect("a message received has a channel").load -= 1;
            news.letters.push(letter);
        }
        let overhead = state.times.overhead;
        state.spend(self.me, overhead * arrived as u64);
    }

    /// Counts and reports.
    fn tell(&self, news: &mut News, handle: &mut dyn FnMut(Event<'_>)) -> usize {
        let mut events = news.letters.len();
        for finished in news.finished.drain(..) {
            let mut done = self.completions.get();
            let event = match finished {
                Finished::Sent(token) => Some(Event::Sent(token)),
                Finished::Put(token) => {
                    done.puts += 1;
                    token.map(Event::Done)
                }
                Finished::Get(token) => {
                    done.gets += 1;
                    token.map(Event::Done)
                }
            };
            self.completions.set(done);
            events += usize::from(event.is_some());
            event.into_iter().for_each(&mut *handle);
        }
        for Letter { from, header, payload } in news.letters.drain(..) {
            handle(Event::Message { from, header, payload: &payload });
        }
        events
    }
}

impl State {
    /// The number of the `waiting` events that are reported now: all, or in chaos perhaps fewer.
    fn portion(&mut self, waiting: usize) -> usize {
        if waiting == 0 || !self.params.chaos || self.random.chance(0.5) {
            waiting
        } else {
            self.random.below(waiting + 1)
        }
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        if self.is_first {
            self.engine.leave(self.me, self.port);
        } else {
            self.engine.enter(self.me).close_port(self.port);
        }
    }
}

/// The bit of the keys of memory that is registered for a time.
const EXPOSED_KEYS: Key = 1 << 63;

impl Provider for Sim {
    const NAME: &'static str = "sim";
    type Inject = Never;

    fn limits(&self) -> Limits {
        self.limits
    }

    fn address(&self) -> FabricResult<Vec<u8>> {
        Ok((self.me as u64).to_ne_bytes().to_vec())
    }

    /// Needs no address. On threads it waits for all other PEs, and returns when it is this PE's turn to run.
    fn connect(&mut self, _lookup: &mut dyn FnMut(Pe) -> FabricResult<Vec<u8>>) -> FabricResult<()> {
        self.engine.join(self.me);
        Ok(())
    }

    fn register(&mut self, key: Key, start: NonNull<u8>, bytes: usize) -> FabricResult<()> {
        let mut state = self.engine.enter(self.me);
        let regions = &mut state.members[self.me].regions;
        if regions.contains_key(&key) {
            return Err(FabricError::Foreign { pe: self.me, what: format!("key {key} is taken") });
        }
        regions.insert(key, Region { start, bytes });
        Ok(())
    }

    unsafe fn expose(&self, start: NonNull<u8>, bytes: usize) -> Option<Key> {
        let mut state = self.engine.enter(self.me);
        let member = &mut state.members[self.me];
        member.exposures += 1;
        let key = EXPOSED_KEYS | member.exposures;
        member.regions.insert(key, Region { start, bytes });
        Some(key)
    }

    fn conceal(&self, key: Key) {
        self.engine.enter(self.me).members[self.me].regions.remove(&key);
    }

    fn context(&self) -> FabricResult<Sim> {
        let mut state = self.engine.enter(self.me);
        Ok(Sim::endpoint(self.me, &self.engine, &mut state, false))
    }

    fn executes(&self, _kind: AtomicKind) -> bool {
        self.executes_atomics
    }

    unsafe fn put(&self, put: Put) -> Status {
        let Put { pe, target, source, bytes, completion } = put;
        let token = completion.token();
        self.start(|| {
            let mut op = self.op(pe, Action::Put, source.cast_mut(), (target, bytes), token);
            if bytes <= self.limits.inject_bytes {
                op.local = Local(std::ptr::null_mut());
                // SAFETY: the caller guarantees the source at least until this call returns.
                op.kept = Some(unsafe { read(source, bytes) });
            }
            op.owes_sent = token.is_some() && op.kept.is_none();
            op
        })
    }

    unsafe fn get(&self, get: Get) -> Status {
        let Get { pe, source, target, bytes, completion } = get;
        let token = completion.token();
        self.start(|| self.op(pe, Action::Get, target, (source, bytes), token))
    }

    unsafe fn atomic(&self, amo: Amo) -> Status {
        let Amo { pe, word, atomic, fetched, completion } = amo;
        let token = completion.token();
        assert!(self.executes_atomics, "PE {}: this fabric executes no atomics", self.me);
        self.start(|| self.op(pe, Action::Atomic(atomic), fetched, (word, atomic.kind.bytes()), token))
    }

    fn send(&self, pe: Pe, header: u64, payload: &[u8]) -> Status {
        assert!(
            pe < self.n_pes && payload.len() <= self.limits.message_bytes,
            "PE {}: a message of {} bytes to PE {pe} of {}, the limit is {} bytes",
            self.me,
            payload.len(),
            self.n_pes,
            self.limits.message_bytes
        );
        let mut state = self.begin();
        let load = state.channels.get(&(self.me, pe)).map_or(0, |channel| channel.load);
        if state.refuses(self.me, load) {
            return Status::Again;
        }
        let overhead = state.times.overhead;
        state.spend(self.me, overhead);
        state.count_operation(self.me);
        state.post(pe, Letter { from: self.me, header, payload: payload.to_vec() });
        Status::Done
    }

    fn progress(&self, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
        let mut news = self.news.take();
        let mut state = self.engine.enter(self.me);
        let poll = state.times.poll;
        state.spend(self.me, poll);
        state = self.engine.pass(state, self.me);
        if let Some(error) = state.port(self.port).errors.pop_front() {
            return Err(error);
        }
        self.collect(&mut state, &mut news);
        if news.finished.is_empty() && news.letters.is_empty() {
            state.members[self.me].vain = true;
        } else {
            state.stir(self.me);
        }
        drop(state);
        let events = self.tell(&mut news, handle);
        self.news.replace(news);
        Ok(events)
    }

    /// Ends when something touches this PE, or when no other PE can go on. The bound is only for waits in
    /// real time.
    fn rest(&self, _bound: Duration) {
        let mut state = self.engine.enter(self.me);
        if state.driven {
            return;
        }
        let unseen = state.members[self.me].touches != state.port(self.port).seen;
        let member = &mut state.members[self.me];
        member.vain = true;
        if !unseen && member.waiters.is_empty() {
            member.standing = Standing::Idle;
        }
        state = self.engine.pass(state, self.me);
        let touches = state.members[self.me].touches;
        state.port(self.port).seen = touches;
    }

    fn completions(&self) -> Completions {
        self.completions.get()
    }

    fn virtual_time(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.engine.lock().members[self.me].clock / 1000))
    }

    fn compute(&self, time: Duration) {
        let mut state = self.engine.enter(self.me);
        state.spend(self.me, picoseconds(time));
        state.stir(self.me);
        drop(self.engine.pass(state, self.me));
    }
}
