//! The smallest provider that fulfils the contract: copy this file to begin a new one (`docs/adding.md`).
//!
//! It connects PEs of one process. Puts and gets are queued and executed in `progress`, as on a network: they
//! return `Pending`, and `Again` when the queue is full. The provider is not optimised, and has no `Inject`;
//! `fabric/src/ofi/prepared.rs` shows how a provider implements it.
//!
//! A provider implements the required methods of [`Provider`] in four groups:
//!
//! | group | methods | here |
//! |---|---|---|
//! | opening | a function of its own, `address`, `connect` | [`Template::open`]; an address is a number |
//! | memory | `register`; `exposed` and `reach` if a key does not suffice | a table of regions by key |
//! | operations | `put`, `get`, `atomic`, `send` | queued |
//! | progress | `progress`, `rest`, `completions`, `context` | `progress` executes the queued operations |
//!
//! All other methods have defaults, which declare that the provider does not support them.

use pelago_fabric::amo::write_word;
use pelago_fabric::{
    Amo, Atomic, AtomicKind, Completions, Event, FabricError, FabricResult, Get, Key, Limits,
};
use pelago_fabric::{Never, Pe, Provider, Put, Remote, Status, Token, copy};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The number of puts and gets that an endpoint queues before it returns `Again`.
const QUEUE_COUNT: usize = 8;
const INJECT_BYTES: usize = 64;

/// The state that the endpoints share, in place of a network.
#[derive(Default)]
struct Hub {
    ports: Vec<Mutex<Port>>,
}

/// The memory and messages of one PE, as the others access them.
#[derive(Default)]
struct Port {
    regions: HashMap<Key, Region>,
    inbox: VecDeque<(Pe, u64, Vec<u8>)>,
}

#[derive(Clone, Copy)]
struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the registering PE guarantees that the memory outlives the endpoints; only `copy` accesses it.
unsafe impl Send for Region {}

/// A queued operation. `kept` holds the data of an injected put.
struct Transfer {
    pe: Pe,
    local: *mut u8,
    kept: Option<Vec<u8>>,
    bytes: usize,
    remote: Remote,
    action: Action,
    token: Option<Token>,
}

// SAFETY: the initiator of the operation keeps the local range valid, independent of the thread that drives
// the endpoint.
unsafe impl Send for Transfer {}

enum Action {
    Put,
    Get,
    Atomic(Atomic),
}

/// A PE's endpoint.
pub struct Template {
    me: Pe,
    /// Whether messages arrive here: they arrive at the endpoint, not at a context.
    receives: bool,
    hub: Arc<Hub>,
    queue: RefCell<VecDeque<Transfer>>,
    completions: Cell<Completions>,
}

impl Template {
    /// Opens the endpoints of `n_pes` PEs.
    pub fn open(n_pes: usize) -> Vec<Template> {
        let hub = Arc::new(Hub { ports: (0..n_pes).map(|_| Mutex::default()).collect() });
        let endpoint = |me| Template {
            me,
            receives: true,
            hub: Arc::clone(&hub),
            queue: RefCell::default(),
            completions: Cell::default(),
        };
        (0..n_pes).map(endpoint).collect()
    }

    fn port(&self, pe: Pe) -> std::sync::MutexGuard<'_, Port> {
        self.hub.ports[pe].lock().expect("no endpoint panics while it holds a port")
    }

    fn enqueue(&self, transfer: Transfer) -> Status {
        let mut queue = self.queue.borrow_mut();
        if queue.len() == QUEUE_COUNT {
            return Status::Again;
        }
        queue.push_back(transfer);
        Status::Pending
    }

    /// Executes one transfer.
    fn complete(&self, transfer: &Transfer) -> FabricResult<()> {
        let port = self.port(transfer.pe);
        let region = port.regions.get(&transfer.remote.key).copied();
        let end = transfer.remote.offset_bytes.checked_add(transfer.bytes);
        let Some(region) = region.filter(|region| end.is_some_and(|end| end <= region.bytes)) else {
            return Err(FabricError::Foreign {
                pe: self.me,
                what: format!(
                    "{:?} + {} bytes is not registered by PE {}",
                    transfer.remote, transfer.bytes, transfer.pe
                ),
            });
        };
        let local = transfer.kept.as_ref().map_or(transfer.local.cast_const(), |kept| kept.as_ptr());
        let mut done = self.completions.get();
        // SAFETY: the initiator guarantees that the local range is valid until completion; the remote range
        // was just checked against the region, whose memory its owner keeps alive.
        unsafe {
            let remote = region.start.as_ptr().add(transfer.remote.offset_bytes);
            match &transfer.action {
                Action::Put => copy::transfer(remote, local, transfer.bytes),
                Action::Get => copy::transfer(transfer.local, remote, transfer.bytes),
                Action::Atomic(atomic) => {
                    let old = atomic.execute(remote);
                    if !transfer.local.is_null() {
                        write_word(atomic.kind, old, transfer.local);
                    }
                }
            }
        }
        match transfer.action {
            Action::Put => done.puts += 1,
            Action::Atomic(_) if transfer.local.is_null() => done.puts += 1,
            Action::Get | Action::Atomic(_) => done.gets += 1,
        }
        self.completions.set(done);
        Ok(())
    }
}

impl Provider for Template {
    const NAME: &'static str = "template";
    type Inject = Never;

    fn limits(&self) -> Limits {
        Limits { inject_bytes: INJECT_BYTES, message_bytes: 4096, transfer_bytes: usize::MAX }
    }

    fn address(&self) -> FabricResult<Vec<u8>> {
        Ok((self.me as u64).to_ne_bytes().to_vec())
    }

    fn connect(&mut self, lookup: &mut dyn FnMut(Pe) -> FabricResult<Vec<u8>>) -> FabricResult<()> {
        for pe in 0..self.hub.ports.len() {
            if lookup(pe)? != (pe as u64).to_ne_bytes() {
                return Err(FabricError::Foreign {
                    pe: self.me,
                    what: format!("the address of PE {pe} is wrong"),
                });
            }
        }
        Ok(())
    }

    fn register(&mut self, key: Key, start: NonNull<u8>, bytes: usize) -> FabricResult<()> {
        let mut port = self.port(self.me);
        if port.regions.contains_key(&key) {
            return Err(FabricError::Foreign { pe: self.me, what: format!("key {key} is taken") });
        }
        port.regions.insert(key, Region { start, bytes });
        Ok(())
    }

    fn context(&self) -> FabricResult<Template> {
        Ok(Template {
            me: self.me,
            receives: false,
            hub: Arc::clone(&self.hub),
            queue: RefCell::default(),
            completions: Cell::default(),
        })
    }

    fn executes(&self, _kind: AtomicKind) -> bool {
        true
    }

    unsafe fn put(&self, put: Put) -> Status {
        let Put { pe, target, source, bytes, completion } = put;
        let token = completion.token();
        let kept = (bytes <= INJECT_BYTES).then(|| {
            // SAFETY: the caller guarantees that the source at least until this call returns is valid.
            unsafe { std::slice::from_raw_parts(source, bytes).to_vec() }
        });
        let (local, action) = (source.cast_mut(), Action::Put);
        self.enqueue(Transfer { pe, local, kept, bytes, remote: target, action, token })
    }

    unsafe fn get(&self, get: Get) -> Status {
        let Get { pe, source, target, bytes, completion } = get;
        let token = completion.token();
        let action = Action::Get;
        self.enqueue(Transfer { pe, local: target, kept: None, bytes, remote: source, action, token })
    }

    unsafe fn atomic(&self, amo: Amo) -> Status {
        let Amo { pe, word, atomic, fetched, completion } = amo;
        let token = completion.token();
        let (bytes, action) = (atomic.kind.bytes(), Action::Atomic(atomic));
        self.enqueue(Transfer { pe, local: fetched, kept: None, bytes, remote: word, action, token })
    }

    fn send(&self, pe: Pe, header: u64, payload: &[u8]) -> Status {
        let mut port = self.port(pe);
        if port.inbox.len() == QUEUE_COUNT {
            return Status::Again;
        }
        port.inbox.push_back((self.me, header, payload.to_vec()));
        Status::Done
    }

    fn progress(&self, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
        let transfers = std::mem::take(&mut *self.queue.borrow_mut());
        let mut events = 0;
        for transfer in &transfers {
            self.complete(transfer)?;
            if let Some(token) = transfer.token {
                if matches!(transfer.action, Action::Put) && transfer.kept.is_none() {
                    handle(Event::Sent(token));
                    events += 1;
                }
                handle(Event::Done(token));
                events += 1;
            }
        }
        if !self.receives {
            return Ok(events);
        }
        let arrived = std::mem::take(&mut self.port(self.me).inbox);
        for (from, header, payload) in &arrived {
            handle(Event::Message { from: *from, header: *header, payload });
        }
        Ok(events + arrived.len())
    }

    fn rest(&self, _bound: Duration) {
        std::thread::yield_now();
    }

    fn completions(&self) -> Completions {
        self.completions.get()
    }
}
