//! The handlers of an endpoint.

use super::replies::Replies;
use super::{ARGS_MAX, Handler, Message};
use crate::Pe;
use crate::base::error::{ErrorKind, Result};
use crate::coll::team::TeamCore;
use pelago_fabric::sync::{AtomicU64, Ordering};
use pelago_schedule::fnv::fnv1a;
use std::mem::transmute;
use std::sync::Arc;

/// Handlers of active messages, numbered from 0 in the order in which they are added.
#[derive(Default)]
pub struct Handlers<'env> {
    entries: Vec<Entry<'env>>,
}

type Function<'env> = Box<dyn Fn(&Message<'_>) + Send + Sync + 'env>;

pub struct Entry<'env> {
    pub name: &'static str,
    pub function: Function<'env>,
}

impl<'env> Handlers<'env> {
    /// No handlers yet.
    pub fn new() -> Handlers<'env> {
        Handlers::default()
    }

    /// Adds a handler.
    ///
    /// # Panics
    /// If there are 65536 already, or one of this name.
    #[track_caller]
    pub fn add(
        &mut self,
        name: &'static str,
        function: impl Fn(&Message<'_>) + Send + Sync + 'env,
    ) -> Handler {
        assert!(!self.entries.iter().any(|entry| entry.name == name), "two handlers are called {name:?}");
        let number = self.next();
        self.entries.push(Entry { name, function: Box::new(function) });
        number
    }

    /// The number of the handler that is added next.
    pub fn next(&self) -> Handler {
        Handler(u16::try_from(self.entries.len()).expect("an endpoint has at most 65536 handlers"))
    }

    /// The number of the handler of this name.
    pub fn find(&self, name: &str) -> Option<Handler> {
        self.entries.iter().position(|entry| entry.name == name).map(|i| Handler(i as u16))
    }

    /// The same for the same names in the same order.
    pub fn fingerprint(&self) -> u64 {
        fnv1a(self.entries.iter().flat_map(|entry| entry.name.bytes().chain([0])))
    }
}

/// The state that a PE keeps of an open endpoint.
pub struct Table {
    pub team: Arc<TeamCore>,
    pub entries: Vec<Entry<'static>>,
    /// The PE of each member.
    pub pes: Box<[u32]>,
    /// Results that are awaited.
    pub replies: Replies,
    /// The number of messages, replies included, that this PE has sent through it, and the number that it has
    /// executed.
    pub sent: AtomicU64,
    pub executed: AtomicU64,
}

impl Table {
    /// # Safety
    /// The table is forgotten before anything that the handlers borrow.
    pub unsafe fn new(team: Arc<TeamCore>, handlers: Handlers<'_>) -> Table {
        // SAFETY: only the lifetime changes; the caller guarantees it.
        let entries = unsafe { transmute::<Vec<Entry<'_>>, Vec<Entry<'static>>>(handlers.entries) };
        let pes = (0..team.len()).map(|rank| team.pe(rank) as u32).collect();
        let (sent, executed) = (AtomicU64::new(0), AtomicU64::new(0));
        Table { team, entries, pes, replies: Replies::default(), sent, executed }
    }

    #[inline]
    pub fn entry(&self, handler: Handler) -> Option<&Entry<'static>> {
        self.entries.get(usize::from(handler.0))
    }

    /// Refuses a handler that is none, and too many arguments.
    #[inline]
    pub fn check(&self, me: Pe, operation: &'static str, handler: Handler, args: &[u32]) -> Result<()> {
        let (args, handlers) = (args.len(), self.entries.len());
        if args > ARGS_MAX {
            return Err(ErrorKind::TooManyArguments { me, operation, args, max: ARGS_MAX }.into());
        }
        if usize::from(handler.0) >= handlers {
            return Err(ErrorKind::NoSuchHandler { me, operation, handler: handler.0, handlers }.into());
        }
        Ok(())
    }

    pub fn pe(&self, rank: usize) -> Pe {
        self.pes[rank] as Pe
    }

    /// How many messages were sent, and how many executed, so far.
    pub fn counts(&self) -> [u64; 2] {
        // SYNC POINT am-end: acquires the stores of the handlers, and the messages that they have sent.
        let executed = self.executed.load(Ordering::Acquire);
        [self.sent.load(Ordering::Relaxed), executed]
    }
}
