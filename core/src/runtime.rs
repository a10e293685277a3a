//! The runtime of a PE: all layers in one struct, how they come to be, and how a PE leaves its job.
//!
//! Invariant: everything that the fast path reads is written before the core is handed out.

use crate::Pe;
use crate::base::awaited::Awaited;
use crate::base::call::Call;
use crate::base::counters::Tally;
use crate::base::error::{ErrorKind, Result};
use crate::base::panic_message;
use crate::base::trace::Recorder;
use crate::coll::teams::Teams;
use crate::endpoint::completion_counter::CompletionCounters;
use crate::endpoint::contexts::Contexts;
use crate::endpoint::{Endpoint, Injector};
use crate::job::barrier_form::Barrier;
use crate::job::membership::Membership;
use crate::job::nodes::{self, Placement};
use crate::job::outstanding::OutstandingFlags;
use crate::job::upper::{Upper, UpperLayers};
use crate::job::{Job, is_alone_in_process};
use crate::memory::route::Routes;
use crate::memory::segment::Memory;
use crate::message_coll::MessageCollectives;
use crate::messages::message_state::MessageState;
use crate::messages::messaging::Messaging;
use crate::msg::TwoSided;
use crate::msg::hooks::ProgressHooks;
use crate::msg::state::MsgState;
use crate::progress::meeting_points::Point;
use crate::progress::purpose::Purpose;
use crate::wait::engine::Engine;
use crate::wait::policy::WaitPolicy;
use crate::wait::service_thread;
use crate::wakers::Wakers;
use pelago_boot::{Settings, print_stderr};
use pelago_fabric::lazy::Reserved;
use pelago_fabric::shm::Segment;
use pelago_fabric::sync::{AtomicBool, Ordering};
use std::ops::Deref;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A PE of a job. Dropping it leaves the job; that waits for all other PEs to leave as well, or until one of
/// them waits in vain for this one. Dropping a share of it ([`Core::share`]) has no effect on the job.
pub struct Core {
    runtime: SharedRuntime,
    /// Beside the runtime, so that fence and quiet reach it by one load less.
    pub outstanding: OutstandingFlags,
    is_share: bool,
}

impl Deref for Core {
    type Target = Runtime;

    #[inline(always)]
    fn deref(&self) -> &Runtime {
        &self.runtime
    }
}

/// All layers, in one place as long as a core lives: its service thread has a share of them.
#[repr(C)]
pub struct Runtime {
    pub two_sided: TwoSided,
    pub message_coll: MessageCollectives,
    pub wakers: Wakers,
}

impl Deref for Runtime {
    type Target = TwoSided;

    #[inline(always)]
    fn deref(&self) -> &TwoSided {
        &self.two_sided
    }
}

/// An `Arc` of a runtime, kept as the address of the runtime itself: so a function that takes a layer gets
/// its address without an addition.
struct SharedRuntime(NonNull<Runtime>);

// SAFETY: it is an `Arc<Runtime>`, which may be sent: a runtime may be used and dropped by any thread.
unsafe impl Send for SharedRuntime {}
// SAFETY: it is an `Arc<Runtime>`, which may be shared: a runtime may be used by several threads at once.
unsafe impl Sync for SharedRuntime {}

impl SharedRuntime {
    fn new(runtime: Runtime) -> SharedRuntime {
        let runtime = Arc::into_raw(Arc::new(runtime)).cast_mut();
        SharedRuntime(NonNull::new(runtime).expect("an `Arc` has an address"))
    }
}

impl Clone for SharedRuntime {
    fn clone(&self) -> SharedRuntime {
        // SAFETY: the address comes from `Arc::into_raw`, and this share keeps the `Arc` alive.
        unsafe { Arc::increment_strong_count(self.0.as_ptr()) };
        SharedRuntime(self.0)
    }
}

impl Deref for SharedRuntime {
    type Target = Runtime;

    #[inline(always)]
    fn deref(&self) -> &Runtime {
        // SAFETY: this share keeps the runtime alive, and no share borrows it mutably.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedRuntime {
    fn drop(&mut self) {
        // SAFETY: the address comes from `Arc::into_raw`, and this share is not used after it.
        drop(unsafe { Arc::from_raw(self.0.as_ptr()) });
    }
}

/// A share of a runtime, for its service thread.
struct Shared(SharedRuntime);

impl Deref for Shared {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.0.two_sided.messaging.teams.engine
    }
}

impl Upper for Runtime {
    fn advance(&self) {
        if self.has_active_operations() {
            self.drive();
        }
        if self.has_open_handlers() {
            self.execute_messages();
        }
        if self.uses_messages() {
            self.advance_messages();
        }
        if self.message_coll.are_active() {
            self.message_coll.advance(self);
        }
        if self.hooks.are_any() {
            self.hooks.advance(self);
        }
        self.wakers.wake_futures(self);
    }

    fn advance_operations(&self) -> bool {
        self.drive()
    }

    fn wake(&self) {
        self.wakers.wake_futures(self);
    }

    fn receive(&self, purpose: u8, from: Pe, header: u64, payload: &[u8]) -> Option<()> {
        match purpose {
            p if p == Purpose::Active as u8 => self.note_active(from, header, payload),
            p if p == Purpose::ActivePlaced as u8 => self.note_placed(),
            p if p == Purpose::ActiveAsk as u8 => self.tell_executed(from),
            p if p == Purpose::ActiveTold as u8 => {
                let executed = u64::from_le_bytes(payload.get(..8)?.try_into().ok()?);
                self.note_executed(from, executed)
            }
            p if p == Purpose::Message as u8 => self.note_message(from, header, payload),
            _ => None,
        }
    }

    fn try_active(&self, pe: Pe, header: u64, words: &[u64]) -> bool {
        self.messaging.try_active(pe, header, words, &[])
    }

    fn has_sent_all(&self, pe: Pe) -> bool {
        self.two_sided.has_sent_all(pe)
    }

    fn activity(&self) -> u64 {
        let received = if self.has_open_handlers() { self.am.received_cells() } else { 0 };
        self.collectives.moves() + self.message_coll.moves() + received + self.message_activity()
    }

    fn are_messages_settled(&self) -> bool {
        (!self.has_open_handlers() || self.am.are_rings_empty()) && self.are_fifos_settled()
    }
}

impl Core {
    /// Takes PE `me`'s place in its node's memory and waits for all others to do so. The endpoint of the
    /// placement, if it has one, is connected.
    pub fn assemble(
        (me, n_pes): (Pe, usize),
        segment: Arc<Segment>,
        placement: Placement,
        membership: Option<Membership>,
        settings: &Settings,
    ) -> Result<Core> {
        let nodes = nodes::numbered(n_pes, &placement.nodes);
        let tally = Tally::new(settings.counters, recorder((me, n_pes), nodes[me], settings)?);
        let slots = nodes::slots(me, &nodes, segment.layout().n_pes);
        let (net, routes) = (placement.net, Routes::new(me, placement.reach, nodes));
        let memory = Memory::new(segment, slots, &routes, tally.is_on());
        let failure = &memory.header().failure;
        let net = net.map(|net| Endpoint::new(net, (!tally.is_on()).then_some(failure)));
        panic_message::forget_errors(is_alone_in_process(membership.as_ref()));
        // SAFETY: the words lie in the segment and in the endpoint, both of which the job keeps.
        let outstanding = unsafe { OutstandingFlags::of(&memory, net.as_deref()) };
        let job = Job {
            me,
            n_pes,
            number: placement.number,
            cores: 1,
            memory,
            routes,
            tally,
            barrier: Barrier::new(net.is_some()),
            outstanding,
            net,
            no_injector: Injector::none(),
            contexts: Contexts::default(),
            completions: CompletionCounters::default(),
            pids: placement.pids,
            far_status: Reserved::new(n_pes),
            joined_at: Instant::now(),
            bears_threads: AtomicBool::new(false),
            membership: Mutex::new(membership),
            upper: UpperLayers::default(),
        };
        let engine = Core::meet(Engine::new(job, settings), settings)?;
        let teams = Teams::new(engine, settings)?;
        let runtime = SharedRuntime::new(Runtime {
            two_sided: TwoSided {
                messaging: Messaging { teams, am: MessageState::default() },
                msg: MsgState::new(settings),
                hooks: ProgressHooks::default(),
            },
            message_coll: MessageCollectives::default(),
            wakers: Wakers::default(),
        });
        // SAFETY: the runtime holds the job; it is not moved out of its `Arc` nor borrowed mutably.
        unsafe { runtime.upper.set(&*runtime) };
        Core { runtime, outstanding, is_share: false }.joined(settings)
    }

    /// Meets the other PEs of this node, and finds out on how many cores they run.
    fn meet(mut engine: Engine, settings: &Settings) -> Result<Engine> {
        let cores = engine.meet_and_count_cores();
        engine.check_routes().inspect_err(|_| engine.close())?;
        engine.state.job.cores = cores;
        engine.policy = WaitPolicy::new(engine.memory.blocks().len(), cores, engine.net.as_deref(), settings);
        if engine.tally.is_recording() {
            engine.policy = engine.policy.recorded();
        }
        engine.affinity.spread(&engine, settings.spread);
        if engine.affinity.pes_per_core() > 1 {
            engine.policy = engine.policy.crowded(settings);
        }
        Ok(engine)
    }

    /// Meets the PEs of other nodes, and agrees with all.
    fn joined(self, settings: &Settings) -> Result<Core> {
        if self.net.is_some() {
            self.message_barrier(Point::Join, Awaited::Join);
        }
        let preferences = self.collectives.preferences();
        let preferences = preferences.fingerprint(&(settings.coll_online, settings.coll_form)) >> u8::BITS;
        let call = Call::Join { barrier: settings.barrier as usize, reach: self.routes.code(), preferences };
        self.agree(call).inspect_err(|_| self.close())?;
        self.runtime.two_sided.messaging.teams.engine.barrier.choose(
            settings.barrier,
            self.net.is_some(),
            self.n_pes(),
            self.cores(),
        );
        self.runtime.two_sided.messaging.teams.agree_on_costs();
        if settings.service {
            self.spawn_service().inspect_err(|_| self.close())?;
        }
        Ok(self)
    }

    /// Starts the service thread where there is a use for it, whatever the settings are.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn spawn_service(&self) -> Result<()> {
        service_thread::spawn(Shared(self.runtime.clone()), &self.service)
    }

    /// Says that this PE leaves, and waits for the others to do so, unless one of them waits for it in vain.
    fn leave(&self) {
        let header = self.memory.header();
        self.say_left();
        if self.net.is_some() {
            self.say_left_over_net();
            self.message_barrier(Point::Leave, Awaited::Leave);
        } else {
            self.wait(Awaited::Leave, || {
                header.leaving.load(Ordering::Acquire) as usize >= self.n_pes || self.missed_by().is_some()
            });
        }
        if let (Some(by), Some(of)) = (self.missed_by(), &*self.membership()) {
            of.job.note_missed(&self.missed_words(by));
        }
    }
}

impl Core {
    /// The same PE, for another interface of this process. The memory stays while the share lives; the job is
    /// left when the core ends from which the share was made.
    pub fn share(&self) -> Core {
        Core { runtime: self.runtime.clone(), outstanding: self.outstanding, is_share: true }
    }

    /// Where the runtime lies, as long as the core or a share of it lives.
    pub fn runtime_address(&self) -> *mut Runtime {
        self.runtime.0.as_ptr()
    }

    /// As dropping it, but this process stays in its job, for another core; and the memory that the core
    /// has mapped stays where it is until the core is dropped. `finish` is called when all PEs have left and
    /// their messages have come.
    pub fn end(&self, finish: impl FnOnce()) -> Option<Membership> {
        self.complete_and_leave(finish);
        self.membership().take().inspect(|membership| membership.job.rest())
    }

    /// Completes all messages and operations that this PE has started.
    pub fn complete(&self) {
        self.message_coll.finish(self);
        self.finish_messages();
        self.finish_collectives();
        self.quiet_all();
        self.quiet();
    }

    /// Completes everything and leaves, unless this PE takes part in nothing any more. Once only.
    fn complete_and_leave(&self, finish: impl FnOnce()) {
        if std::thread::panicking() || self.is_closed() {
            return self.tally.finish_record();
        }
        self.message_coll.finish(self);
        self.finish_messages();
        self.finish_collectives();
        if let Some(net) = &self.net {
            // A PE that sees that this PE has left finds its last messages there.
            net.flush();
        }
        self.quiet_all();
        self.quiet();
        self.keep_online();
        self.leave();
        self.take_arrivals();
        self.advance();
        finish();
        self.service.stop();
        if self.missed_by().is_some() {
            // The others go on, and may reach for this PE's memory, which is about to go.
            self.shut_endpoints();
        }
        self.runtime.two_sided.messaging.teams.engine.barrier.close();
        self.tally.finish_record();
    }
}

/// The recorder of a PE, if it is to leave a timeline or statistics.
fn recorder(place: (Pe, usize), node: u32, settings: &Settings) -> Result<Option<Recorder>> {
    let folders = [&settings.trace, &settings.stats].map(|folder| folder.as_ref().map(Path::new));
    Recorder::new(place, node, folders).map_err(|text| ErrorKind::Record { text }.into())
}

impl Drop for Core {
    fn drop(&mut self) {
        if self.is_share {
            return;
        }
        let is_orderly = !std::thread::panicking() && !self.is_closed();
        self.complete_and_leave(|| ());
        self.service.stop();
        let membership = self.membership().take();
        if is_orderly
            && let Some(membership) = membership
            && let Err(error) = membership.finalize()
        {
            print_stderr(&format!("PE {}: leaving the job: {error}\n", self.me));
        }
        // Before the memory goes that operations under way read and write.
        self.shut_endpoints();
    }
}
