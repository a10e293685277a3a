//! An endpoint of libfabric with its completion queues and its counters.
//!
//! Invariant: it is closed before them, and all of them before their domain.

use super::domain::{Domain, close, opened};
use super::handlers::keeping_handlers;
use super::library::OfiError;
use super::slots::{Kind, SLOTS_MAX, Slot};
use super::sys::*;
use crate::types::{FabricError, FabricResult, Pe};
use libc::c_void;
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr::{NonNull, null, null_mut};
use std::sync::Arc;

/// Buffers for messages that are posted.
pub(super) const RECEIVES: usize = 4;
/// The length of the addresses of most providers, in bytes, or more.
const ADDRESS_BYTES: usize = 64;
/// Completions that are read at a time.
pub(super) const BATCH: usize = 16;

/// An entry of a completion queue.
#[derive(Clone, Copy)]
pub(super) struct Completion {
    pub(super) slot: NonNull<Slot>,
    pub(super) flags: u64,
    pub(super) bytes: usize,
    /// The start of a message.
    pub(super) data: *const u8,
    /// Whether it is not known if libfabric still owns the buffer for messages.
    pub(super) is_in_doubt: bool,
}

impl Completion {
    /// A completion without data.
    fn empty(slot: NonNull<Slot>, flags: u64) -> Completion {
        Completion { slot, flags, bytes: 0, data: null(), is_in_doubt: false }
    }
}

/// The completions to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Completions of operations that this endpoint has started; all completions, if arrivals have no queue
    /// of their own.
    Transfers,
    /// Completions of messages that have arrived.
    Arrivals,
}

/// An endpoint that is ready for transfers.
pub(super) struct Endpoint {
    pub(super) domain: Arc<Domain>,
    pub(super) ep: NonNull<fid_ep>,
    transfers: NonNull<fid_cq>,
    /// A queue with a wait object makes transfers slower. If no thread has to be woken for transfers, only
    /// the queue of arrivals has one.
    arrivals: Option<NonNull<fid_cq>>,
    puts: NonNull<fid_cntr>,
    pub(super) gets: NonNull<fid_cntr>,
    /// Readable when something may have arrived, or, if there is only one queue, may be complete. `None` if
    /// the provider has no wait descriptors.
    descriptor: Option<RawFd>,
}

// SAFETY: the objects are used by any thread, as `FI_THREAD_SAFE` was asked for.
unsafe impl Send for Endpoint {}

/// An object that is open. It is closed again if a later step of opening fails.
struct Opening<T>(NonNull<T>);

impl<T> Opening<T> {
    fn done(self) -> NonNull<T> {
        let object = self.0;
        std::mem::forget(self);
        object
    }
}

impl<T> Drop for Opening<T> {
    fn drop(&mut self) {
        close(self.0);
    }
}

impl Endpoint {
    /// Opens an endpoint. It has its own completion queue and counters. If `rings` is set it has a wait
    /// descriptor, if the provider has such descriptors.
    ///
    /// # Errors
    /// If the provider refuses.
    pub(super) fn open(domain: &Arc<Domain>, rings: bool) -> FabricResult<Endpoint> {
        keeping_handlers(|| Endpoint::try_open(domain, rings)).map_err(|error| error.at(domain.me))
    }

    fn try_open(domain: &Arc<Domain>, rings: bool) -> Result<Endpoint, OfiError> {
        let (library, raw) = (domain.library(), domain.domain.as_ptr());
        let queue = |wait_obj| {
            let mut attributes = Padded::<fi_cq_attr>::zeroed();
            attributes.known.size = entries(&domain.offer.provider, rings);
            attributes.known.format = FI_CQ_FORMAT_DATA;
            attributes.known.wait_obj = wait_obj;
            let mut cq = null_mut();
            // SAFETY: the domain is open; attributes and pointer are local variables.
            let code = unsafe { fi_cq_open(raw, attributes.as_mut_ptr(), &mut cq, null_mut()) };
            opened(library, "opening a completion queue", code, cq).map(Opening)
        };
        let ringing = if rings { queue(FI_WAIT_FD).ok() } else { None };
        let descriptor = ringing.as_ref().and_then(descriptor_of);
        let (transfers, arrivals) = match ringing {
            Some(ringing) if domain.offer.data_progress != FI_PROGRESS_AUTO => (ringing, None),
            ringing => (queue(FI_WAIT_NONE)?, ringing),
        };
        let counter = || {
            let mut attributes = Padded::<fi_cntr_attr>::zeroed();
            attributes.known.wait_obj = FI_WAIT_NONE;
            let mut counter = null_mut();
            // SAFETY: the domain is open; attributes and pointer are local variables.
            let code = unsafe { fi_cntr_open(raw, attributes.as_mut_ptr(), &mut counter, null_mut()) };
            opened(library, "opening a completion counter", code, counter).map(Opening)
        };
        let (puts, gets) = (counter()?, counter()?);
        let mut ep = null_mut();
        // SAFETY: the domain is open, and the entry is the one it was opened with; the pointer is a local
        // variable.
        let code = unsafe { fi_endpoint(raw, domain.offer.info.as_ptr(), &mut ep, null_mut()) };
        let ep = Opening(opened(library, "opening an endpoint", code, ep)?);
        let bind = |object: *mut fid, flags: u64| {
            // SAFETY: both objects were opened above, and the endpoint is not enabled yet.
            match unsafe { fi_ep_bind(ep.0.as_ptr(), object, flags) } {
                0 => Ok(()),
                code => Err(library.error("binding an endpoint", code.into(), REMEDY)),
            }
        };
        bind(domain.av.as_ptr().cast(), 0)?;
        bind(transfers.0.as_ptr().cast(), FI_TRANSMIT | FI_SELECTIVE_COMPLETION)?;
        bind(arrivals.as_ref().unwrap_or(&transfers).0.as_ptr().cast(), FI_RECV)?;
        bind(puts.0.as_ptr().cast(), FI_WRITE)?;
        bind(gets.0.as_ptr().cast(), FI_READ)?;
        // SAFETY: the endpoint is open and bound to all objects that it needs.
        match unsafe { fi_enable(ep.0.as_ptr()) } {
            0 => {}
            code => return Err(library.error("enabling an endpoint", code.into(), REMEDY)),
        }
        // If anything fails the endpoint is closed first, as it was opened last.
        let (ep, gets, puts) = (ep.done(), gets.done(), puts.done());
        let (transfers, arrivals) = (transfers.done(), arrivals.map(Opening::done));
        Ok(Endpoint { domain: Arc::clone(domain), ep, transfers, arrivals, puts, gets, descriptor })
    }

    /// The address, for the peers.
    pub(super) fn address(&self) -> FabricResult<Vec<u8>> {
        let (mut address, mut bytes) = (vec![0_u8; ADDRESS_BYTES], 0);
        let ask = |address: &mut Vec<u8>, bytes: &mut usize| {
            *bytes = address.len();
            // SAFETY: the endpoint is enabled, and `bytes` is the length of the buffer.
            unsafe { fi_getname(self.ep.as_ptr(), address.as_mut_ptr().cast(), bytes) }
        };
        let mut code = ask(&mut address, &mut bytes);
        if code == -FI_ETOOSMALL {
            // The provider has said the length.
            address.resize(bytes, 0);
            code = ask(&mut address, &mut bytes);
        }
        if code != 0 {
            let error =
                self.domain.library().error("asking an endpoint for its address", code.into(), REMEDY);
            return Err(error.at(self.domain.me));
        }
        address.truncate(bytes);
        Ok(address)
    }

    /// The wait descriptor.
    pub(super) fn wait_descriptor(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the descriptor is open as long as the queue, which this endpoint keeps.
        self.descriptor.map(|descriptor| unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    /// Whether the wait descriptor reports everything that happens from now on, and the queue is empty.
    pub(super) fn may_sleep(&self) -> bool {
        let mut queue = self.arrivals.unwrap_or(self.transfers).as_ptr().cast::<fid>();
        // SAFETY: fabric and queue are open, and the list has one entry.
        self.descriptor.is_some() && unsafe { fi_trywait(self.domain.fabric.as_ptr(), &mut queue, 1) } == 0
    }

    /// The number of complete puts and of complete atomics that fetch nothing.
    pub(super) fn count_puts(&self) -> u64 {
        // SAFETY: the counter is open as long as this endpoint.
        unsafe { fi_cntr_read(self.puts.as_ptr()) }
    }

    /// The number of complete gets and fetching atomics.
    pub(super) fn count_gets(&self) -> u64 {
        // SAFETY: the counter is open as long as this endpoint.
        unsafe { fi_cntr_read(self.gets.as_ptr()) }
    }

    /// Whether arrivals have a queue of their own.
    pub(super) fn keeps_arrivals_apart(&self) -> bool {
        self.arrivals.is_some()
    }

    /// Reads completions into `into`. Returns their number.
    ///
    /// # Errors
    /// If an operation has failed.
    pub(super) fn poll(&self, of: Of, into: &mut [Option<Completion>; BATCH]) -> FabricResult<usize> {
        let queue = match of {
            Of::Transfers => self.transfers,
            Of::Arrivals => self.arrivals.unwrap_or(self.transfers),
        };
        let mut entries = std::mem::MaybeUninit::<[fi_cq_data_entry; BATCH]>::uninit();
        // SAFETY: the queue is open, and there is room for `BATCH` entries of its format.
        let count = unsafe { fi_cq_read(queue.as_ptr(), entries.as_mut_ptr().cast(), BATCH) };
        if count == -(FI_EAGAIN as isize) {
            return Ok(0);
        }
        if count < 0 {
            into[0] = Some(self.failed(queue, count)?);
            return Ok(1);
        }
        for (i, into) in into.iter_mut().enumerate().take(count as usize) {
            // SAFETY: `count` entries were filled in; the context is a slot, as every operation has one.
            let entry = unsafe { &*entries.as_ptr().cast::<fi_cq_data_entry>().add(i) };
            *into = NonNull::new(entry.op_context.cast::<Slot>()).map(|slot| Completion {
                slot,
                flags: entry.flags,
                bytes: entry.len,
                data: entry.buf.cast(),
                is_in_doubt: false,
            });
        }
        Ok(count as usize)
    }

    /// Reads the error that the queue reports. A message that is too long for the buffers is not a failure
    /// but a completion without data: no member of the job sends one, but a stranger can.
    fn failed(&self, queue: NonNull<fid_cq>, code: isize) -> FabricResult<Completion> {
        let (library, pe) = (self.domain.library(), self.domain.me);
        if code != -(FI_EAVAIL as isize) {
            return Err(library.error("reading completions", code as i64, REMEDY).at(pe));
        }
        let mut error = Padded::<fi_cq_err_entry>::zeroed();
        // SAFETY: the queue is open; the entry is a local variable, with room behind it.
        let count = unsafe { fi_cq_readerr(queue.as_ptr(), error.as_mut_ptr(), 0) };
        if count != 1 {
            return Err(library.error("reading the error of an operation", count as i64, REMEDY).at(pe));
        }
        let (reason, slot) = (self.reason(error.known.err.into()), error.known.op_context);
        let Some(slot) = NonNull::new(slot.cast::<Slot>()) else {
            return Err(FabricError::TransferLost { pe, reason });
        };
        // SAFETY: the context of an operation under way is its slot.
        let (kind, peer) = unsafe { (slot.as_ref().kind, slot.as_ref().pe) };
        match (kind, error.known.err) {
            (Kind::Receive, FI_ETRUNC) => {
                // Some providers do not report that they have released the buffer.
                let flags = error.known.flags & FI_MULTI_RECV;
                return Ok(Completion { is_in_doubt: flags == 0, ..Completion::empty(slot, flags) });
            }
            (Kind::Receive, FI_ECANCELED) => return Ok(Completion::empty(slot, FI_MULTI_RECV)),
            _ => {}
        }
        Err(FabricError::Unreachable { pe, peer, operation: kind.name(), reason })
    }

    /// The error of a call that has refused an operation and must not be repeated.
    pub(super) fn refusal(&self, operation: &'static str, peer: Pe, code: isize) -> FabricError {
        let reason = self.reason(code as i64);
        FabricError::Unreachable { pe: self.domain.me, peer, operation, reason }
    }

    /// The meaning of an error number, and its likely cause.
    fn reason(&self, code: i64) -> String {
        let reason = self.domain.library().strerror(code);
        match self.domain.offer.source.is_some_and(|source| source.ip().is_loopback()) {
            true => reason + LOOPBACK,
            false => reason,
        }
    }

    /// Posts a buffer for messages. `false` if the provider has no room for it now.
    ///
    /// # Safety
    /// The buffer is valid for writes of `bytes` bytes, and belongs to libfabric, until the queue has given
    /// it back.
    pub(super) unsafe fn post(
        &self,
        (buffer, bytes): (*mut u8, usize),
        descriptor: *mut c_void,
        slot: NonNull<Slot>,
    ) -> FabricResult<bool> {
        let iov = iovec { iov_base: buffer.cast(), iov_len: bytes };
        let message = fi_msg {
            msg_iov: &iov,
            desc: list_of(&descriptor),
            iov_count: 1,
            addr: FI_ADDR_UNSPEC,
            context: slot.as_ptr().cast(),
            data: 0,
        };
        // SAFETY: the endpoint is enabled. The caller guarantees the buffer, and the slot provides the
        // context.
        match unsafe { fi_recvmsg(self.ep.as_ptr(), &message, FI_MULTI_RECV) } {
            0 => Ok(true),
            code if code == -(FI_EAGAIN as isize) => Ok(false),
            code => Err(self.refusal("posting a buffer for messages", self.domain.me, code)),
        }
    }

    /// Asks for a buffer for messages back. If libfabric owns it, the next reads of the queue give it back.
    pub(super) fn cancel(&self, slot: NonNull<Slot>) {
        // SAFETY: the endpoint is open; a context that is not known is refused: then libfabric does not own
        // the buffer.
        let _ = unsafe { fi_cancel(self.ep.as_ptr(), slot.as_ptr().cast()) };
    }

    /// Sets the room below which libfabric gives a buffer for messages back.
    pub(super) fn set_least_room(&self, bytes: usize) -> FabricResult<()> {
        let (level, option) = (FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV);
        // SAFETY: the endpoint is open, and the option is a size.
        let code = unsafe {
            let value = std::ptr::from_ref(&bytes).cast();
            fi_setopt(self.ep.as_ptr(), level, option, value, size_of::<usize>())
        };
        match code {
            0 => Ok(()),
            code => {
                let library = self.domain.library();
                Err(library.error("setting an endpoint's option", code.into(), REMEDY).at(self.domain.me))
            }
        }
    }
}

/// The entries to ask for in a completion queue, which has arrivals or not; 0 is the provider's default.
/// `cxi` takes the number for the queues of the card as well, which arrivals that are not received yet fill
/// too. Other providers only need room for the operations that are under way.
fn entries(provider: &str, has_arrivals: bool) -> usize {
    if has_arrivals && provider == "cxi" { 0 } else { SLOTS_MAX + RECEIVES }
}

/// The descriptor of a queue that was opened with one.
fn descriptor_of(queue: &Opening<fid_cq>) -> Option<RawFd> {
    let mut descriptor: RawFd = -1;
    // SAFETY: the queue is open, and the pointer is one to a descriptor, as the command requires.
    let code = unsafe {
        fi_control(queue.0.as_ptr().cast(), FI_GETWAIT, std::ptr::from_mut(&mut descriptor).cast())
    };
    (code == 0 && descriptor >= 0).then_some(descriptor)
}

const LOOPBACK: &str = ", where this PE's fabric leads to PEs of the same machine only: no other network was \
                        up (`pelago info --fabrics`, PELAGO_OFI_INTERFACE)";

const REMEDY: &str = "Set FI_LOG_LEVEL=warn for what libfabric says about it";

impl Drop for Endpoint {
    fn drop(&mut self) {
        close(self.ep);
        close(self.gets);
        close(self.puts);
        close(self.transfers);
        self.arrivals.into_iter().for_each(close);
    }
}

/// The parts of a transfer, which libfabric reads during the call only.
pub(super) struct Transfer {
    pub(super) local: iovec,
    /// The descriptor of the local memory's registration; null if the provider needs none.
    pub(super) descriptor: *mut c_void,
    pub(super) remote: fi_rma_iov,
}

impl Transfer {
    pub(super) fn message(&self, addr: fi_addr_t, context: Option<NonNull<Slot>>) -> fi_msg_rma {
        fi_msg_rma {
            msg_iov: &self.local,
            desc: list_of(&self.descriptor),
            iov_count: 1,
            addr,
            rma_iov: &self.remote,
            rma_iov_count: 1,
            context: context.map_or(null_mut(), |slot| slot.as_ptr().cast()),
            data: 0,
        }
    }
}

/// A list of one descriptor, as libfabric takes it; null if there is none.
pub(super) fn list_of(descriptor: &*mut c_void) -> *mut *mut c_void {
    if descriptor.is_null() { null_mut() } else { std::ptr::from_ref(descriptor).cast_mut() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_over_cxi_have_a_queue_of_its_default_length() {
        assert_eq!(entries("cxi", true), 0);
        assert!(
            [("cxi", false), ("verbs;ofi_rxm", true), ("efa", true), ("tcp;ofi_rxm", false)]
                .into_iter()
                .all(|(provider, has_arrivals)| entries(provider, has_arrivals) == SLOTS_MAX + RECEIVES)
        );
    }
}
