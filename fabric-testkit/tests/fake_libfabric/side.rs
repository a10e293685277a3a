//! One side of a connection over the fake libfabric: an endpoint with its other objects, called through its
//! function tables.
//!
//! Invariant: objects are closed in the order that libfabric requires, and each close must succeed.

use libc::{c_int, c_void};
use pelago_fabric::ofi::query::{Hints, offers};
use pelago_fabric::ofi::sys::*;
use pelago_fabric::ofi::{Info, Library};
use pelago_fabric_testkit::fake_libfabric;
use std::cell::RefCell;
use std::ptr::{null_mut, without_provenance_mut};

/// The library.
pub fn library() -> &'static Library {
    fake_libfabric::install()
}

/// Hints that match every provider.
pub fn modest(provider: &str) -> Hints {
    let mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    let caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_MULTI_RECV;
    let mode = FI_CONTEXT | FI_CONTEXT2;
    Hints { provider: Some(provider.into()), endpoint: FI_EP_RDM, caps, mode, mr_mode, ..Hints::default() }
}

/// The options of a side.
#[derive(Clone, Copy)]
pub struct Options {
    pub entries: usize,
    pub wait_obj: fi_wait_obj,
    pub selects: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { entries: 1000, wait_obj: FI_WAIT_NONE, selects: true }
    }
}

/// An endpoint, its queue and its counters.
pub struct Side {
    pub info: Info,
    pub fabric: *mut fid_fabric,
    pub domain: *mut fid_domain,
    pub av: *mut fid_av,
    pub cq: *mut fid_cq,
    pub writes: *mut fid_cntr,
    pub reads: *mut fid_cntr,
    pub ep: *mut fid_ep,
    regions: RefCell<Vec<*mut fid_mr>>,
    owns_domain: bool,
}

// SAFETY: any thread may call the library, and only this value closes the objects.
unsafe impl Send for Side {}
// SAFETY: any thread may call the library; only one thread of a test accesses the list of regions.
unsafe impl Sync for Side {}

/// The context of an operation, with the space for the provider that the mode requires.
#[derive(Default)]
#[repr(C)]
pub struct Context([usize; 8]);

impl Context {
    pub fn place(&mut self) -> *mut c_void {
        std::ptr::from_mut(self).cast()
    }

    pub fn spoil(&mut self) {
        self.0[3] += 1;
    }
}

/// The remote range of a transfer.
#[derive(Clone, Copy)]
pub struct There {
    pub address: u64,
    pub key: u64,
}

/// The result of reading a queue.
#[derive(Debug, PartialEq, Eq)]
pub enum Told {
    Nothing,
    Done { context: usize, flags: u64, bytes: usize, buffer: usize },
    Failed { context: usize, error: c_int, words: String },
}

/// Opens an object, which must succeed.
pub fn opened<T>(open: impl FnOnce(*mut *mut T) -> c_int) -> *mut T {
    let mut object = null_mut();
    assert_eq!(open(&mut object), 0, "an object is refused");
    object
}

/// Closes an object.
///
/// # Safety
/// It is an object of the library.
pub unsafe fn close<T>(object: *mut T) -> c_int {
    // SAFETY: the caller guarantees that the object is valid, and objects begin with their fid.
    unsafe { fi_close(object.cast()) }
}

impl Side {
    /// Two sides that have each other's addresses; peer 0 is the first, peer 1 the second.
    pub fn pair(provider: &str) -> [Side; 2] {
        Side::pair_with(provider, Options::default())
    }

    /// The same, with options.
    pub fn pair_with(provider: &str, options: Options) -> [Side; 2] {
        let sides = [(); 2].map(|()| Side::open(provider, options));
        let names = [sides[0].name(), sides[1].name()];
        for side in &sides {
            for (number, name) in names.iter().enumerate() {
                assert_eq!(side.insert(name), Some(number as u64));
            }
        }
        sides
    }

    /// An enabled endpoint in a separate domain.
    pub fn open(provider: &str, options: Options) -> Side {
        let side = Side::bare(provider, options);
        side.bind_all(options.selects);
        assert_eq!(side.enable(), 0, "an endpoint is not enabled");
        side
    }

    /// The same, not bound and not enabled.
    pub fn bare(provider: &str, options: Options) -> Side {
        let mut offers = offers(library(), &modest(provider)).unwrap();
        assert_eq!(offers.len(), 1, "one offer of {provider}");
        let info = offers.remove(0).info;
        let raw = info.as_ptr();
        // SAFETY: the entry comes from the library; each object is opened before those that depend on it.
        unsafe {
            let fabric =
                opened(|place| (library().functions.fi_fabric)((*raw).fabric_attr, place, null_mut()));
            let domain = opened(|place| fi_domain(fabric, raw, place, null_mut()));
            Side::within(info, fabric, domain, options, true)
        }
    }

    /// A further endpoint of the same domain, enabled; to be dropped first.
    pub fn sibling(&self) -> Side {
        let options = Options::default();
        let info = self.info.dup().unwrap();
        // SAFETY: fabric and domain are open as long as this side, which outlives the sibling.
        let side = unsafe { Side::within(info, self.fabric, self.domain, options, false) };
        side.bind_all(options.selects);
        assert_eq!(side.enable(), 0, "an endpoint is not enabled");
        side
    }

    /// # Safety
    /// Fabric and domain are open, and of the entry.
    unsafe fn within(
        info: Info,
        fabric: *mut fid_fabric,
        domain: *mut fid_domain,
        options: Options,
        owns_domain: bool,
    ) -> Side {
        // SAFETY: the caller guarantees that the domain is valid; attributes and places are locals.
        unsafe {
            let mut attributes = Padded::<fi_av_attr>::zeroed();
            let av = opened(|place| fi_av_open(domain, attributes.as_mut_ptr(), place, null_mut()));
            let mut attributes = Padded::<fi_cq_attr>::zeroed();
            attributes.known.size = options.entries;
            attributes.known.format = FI_CQ_FORMAT_DATA;
            attributes.known.wait_obj = options.wait_obj;
            let cq = opened(|place| fi_cq_open(domain, attributes.as_mut_ptr(), place, null_mut()));
            let counter = || {
                let mut attributes = Padded::<fi_cntr_attr>::zeroed();
                opened(|place| fi_cntr_open(domain, attributes.as_mut_ptr(), place, null_mut()))
            };
            let (writes, reads) = (counter(), counter());
            let ep = opened(|place| fi_endpoint(domain, info.as_ptr(), place, null_mut()));
            let regions = RefCell::default();
            Side { info, fabric, domain, av, cq, writes, reads, ep, regions, owns_domain }
        }
    }

    /// Binds the endpoint to its vector, queue and counters.
    fn bind_all(&self, selects: bool) {
        let selective = if selects { FI_SELECTIVE_COMPLETION } else { 0 };
        assert_eq!(self.bind(self.av, 0), 0);
        assert_eq!(self.bind(self.cq, FI_TRANSMIT | selective), 0);
        assert_eq!(self.bind(self.cq, FI_RECV), 0);
        assert_eq!(self.bind(self.writes, FI_WRITE), 0);
        assert_eq!(self.bind(self.reads, FI_READ), 0);
    }

    pub fn bind<T>(&self, object: *mut T, flags: u64) -> c_int {
        // SAFETY: the endpoint is open, and tests bind open objects only.
        unsafe { fi_ep_bind(self.ep, object.cast(), flags) }
    }

    pub fn enable(&self) -> c_int {
        // SAFETY: the endpoint is open as long as this value.
        unsafe { fi_enable(self.ep) }
    }

    /// The address of the endpoint.
    pub fn name(&self) -> Vec<u8> {
        let (mut name, mut bytes) = (vec![0; 128], 128);
        // SAFETY: the endpoint is open, and there is as much room as said.
        assert_eq!(unsafe { fi_getname(self.ep, name.as_mut_ptr().cast(), &mut bytes) }, 0);
        name.truncate(bytes);
        name
    }

    /// Inserts a peer's address; returns its number, if it is accepted.
    pub fn insert(&self, name: &[u8]) -> Option<fi_addr_t> {
        let mut number = 0;
        // SAFETY: the vector is open, and tests give whole addresses.
        let count = unsafe { fi_av_insert(self.av, name.as_ptr().cast(), 1, &mut number, 0, null_mut()) };
        (count == 1).then_some(number)
    }

    /// Registers memory, which tests keep valid until the side is dropped; the region is not bound or
    /// enabled.
    pub fn try_register(&self, memory: &[u8], access: u64, key: u64) -> Result<*mut fid_mr, c_int> {
        let mut region = null_mut();
        let (start, bytes, null) = (memory.as_ptr().cast(), memory.len(), null_mut());
        // SAFETY: the domain is open; the test keeps the memory valid.
        match unsafe { fi_mr_reg(self.domain, start, bytes, access, 0, key, 0, &mut region, null) } {
            0 => {
                self.regions.borrow_mut().push(region);
                Ok(region)
            }
            code => Err(code),
        }
    }

    /// The same, bound and enabled if the provider requires it.
    pub fn register(&self, memory: &[u8], access: u64, key: u64) -> *mut fid_mr {
        let region = self.try_register(memory, access, key).unwrap();
        if self.info.domain().mr_mode & FI_MR_ENDPOINT != 0 {
            // SAFETY: region and endpoint are open.
            unsafe {
                assert_eq!(fi_mr_bind(region, self.ep.cast(), 0), 0);
                assert_eq!(fi_mr_enable(region), 0);
            }
        }
        region
    }

    /// Closes a region.
    pub fn unregister(&self, region: *mut fid_mr) -> c_int {
        // SAFETY: the region was opened here, and is not in the list any more once it is closed.
        let code = unsafe { close(region) };
        if code == 0 {
            self.regions.borrow_mut().retain(|other| *other != region);
        }
        code
    }

    /// The address and the key by which a peer accesses a place in memory that was registered here.
    pub fn there(&self, region: *mut fid_mr, memory: &[u8], offset: usize) -> There {
        let is_virtual = self.info.domain().mr_mode & FI_MR_VIRT_ADDR != 0;
        let base = if is_virtual { memory.as_ptr().expose_provenance() } else { 0 };
        // SAFETY: the region is open, as tests close it later.
        There { address: (base + offset) as u64, key: unsafe { fi_mr_key(region) } }
    }

    /// Builds the message structure of a transfer with peer `to`.
    fn transfer<R>(
        (start, bytes): (*const u8, usize),
        descriptor: *mut c_void,
        to: fi_addr_t,
        there: There,
        context: *mut c_void,
        call: impl FnOnce(&fi_msg_rma) -> R,
    ) -> R {
        let local = iovec { iov_base: start.cast_mut().cast(), iov_len: bytes };
        let remote = fi_rma_iov { addr: there.address, len: bytes, key: there.key };
        let mut desc = descriptor;
        call(&fi_msg_rma {
            msg_iov: &local,
            desc: &mut desc,
            iov_count: 1,
            addr: to,
            rma_iov: &remote,
            rma_iov_count: 1,
            context,
            data: 0,
        })
    }

    /// Starts a write. Tests keep source and context until it is complete.
    pub fn write(
        &self,
        source: &[u8],
        descriptor: *mut c_void,
        to: fi_addr_t,
        there: There,
        context: *mut c_void,
        flags: u64,
    ) -> isize {
        let local = (source.as_ptr(), source.len());
        // SAFETY: the endpoint is open; the test keeps the buffers.
        Side::transfer(local, descriptor, to, there, context, |message| unsafe {
            fi_writemsg(self.ep, message, flags | FI_DELIVERY_COMPLETE)
        })
    }

    /// Starts a read. Tests keep target and context until it is complete.
    pub fn read(
        &self,
        target: &mut [u8],
        descriptor: *mut c_void,
        to: fi_addr_t,
        there: There,
        context: *mut c_void,
    ) -> isize {
        let local = (target.as_mut_ptr().cast_const(), target.len());
        // SAFETY: the endpoint is open; the test keeps the buffers.
        Side::transfer(local, descriptor, to, there, context, |message| unsafe {
            fi_readmsg(self.ep, message, FI_COMPLETION)
        })
    }

    /// Sends a message. Tests keep source and context until it is complete.
    pub fn send(
        &self,
        source: &[u8],
        descriptor: *mut c_void,
        to: fi_addr_t,
        context: *mut c_void,
        flags: u64,
    ) -> isize {
        let local = iovec { iov_base: source.as_ptr().cast_mut().cast(), iov_len: source.len() };
        let mut desc = descriptor;
        let (msg_iov, iov_count, desc) = (&raw const local, 1, &raw mut desc);
        let message = fi_msg { msg_iov, desc, iov_count, addr: to, context, data: 0 };
        // SAFETY: the endpoint is open; the test keeps the buffer.
        unsafe { fi_sendmsg(self.ep, &message, flags) }
    }

    /// Posts a buffer for messages. Tests keep it valid until it is returned.
    pub fn post(
        &self,
        buffer: &mut [u8],
        descriptor: *mut c_void,
        context: *mut c_void,
        flags: u64,
    ) -> isize {
        let local = iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut desc = descriptor;
        let (msg_iov, iov_count, desc) = (&raw const local, 1, &raw mut desc);
        let message = fi_msg { msg_iov, desc, iov_count, addr: FI_ADDR_UNSPEC, context, data: 0 };
        // SAFETY: the endpoint is open; the test keeps the buffer.
        unsafe { fi_recvmsg(self.ep, &message, flags) }
    }

    /// Reads one entry, or an error.
    pub fn poll(&self) -> Told {
        self.told(|entry| {
            // SAFETY: the queue is open, and there is room for one entry of its format.
            unsafe { fi_cq_read(self.cq, entry.cast(), 1) }
        })
    }

    /// The same, but waits for up to `timeout` milliseconds.
    pub fn wait(&self, timeout: c_int) -> Told {
        self.told(|entry| {
            // SAFETY: the queue is open, and there is room for one entry of its format.
            unsafe { fi_cq_sread(self.cq, entry.cast(), 1, std::ptr::null(), timeout) }
        })
    }

    fn told(&self, take: impl FnOnce(*mut fi_cq_data_entry) -> isize) -> Told {
        let mut entry = Padded::<fi_cq_data_entry>::zeroed();
        match take(entry.as_mut_ptr()) {
            1 => {
                let fi_cq_data_entry { op_context, flags, len, buf, .. } = entry.known;
                Told::Done { context: op_context.addr(), flags, bytes: len, buffer: buf.addr() }
            }
            again if again == -(FI_EAGAIN as isize) => Told::Nothing,
            failed if failed == -(FI_EAVAIL as isize) => self.error(),
            code => panic!("a queue answers {code}"),
        }
    }

    fn error(&self) -> Told {
        let (mut entry, mut words) = (Padded::<fi_cq_err_entry>::zeroed(), [0_u8; 200]);
        // SAFETY: the queue is open, the entry is a local, and the buffer for the message has this length and
        // ends with a zero.
        let words = unsafe {
            assert_eq!(fi_cq_readerr(self.cq, entry.as_mut_ptr(), 0), 1);
            let (code, room) = (entry.known.prov_errno, words.as_mut_ptr().cast());
            fi_cq_strerror(self.cq, code, std::ptr::null(), room, words.len());
            std::ffi::CStr::from_bytes_until_nul(&words).unwrap().to_string_lossy().into_owned()
        };
        let (context, error) = (entry.known.op_context.addr(), entry.known.err);
        Told::Failed { context, error, words }
    }

    /// The numbers of completed writes and reads; the call makes progress.
    pub fn counts(&self) -> (u64, u64) {
        // SAFETY: the counters are open as long as this value.
        unsafe { (fi_cntr_read(self.writes), fi_cntr_read(self.reads)) }
    }

    /// The number of failed writes.
    pub fn failed_writes(&self) -> u64 {
        // SAFETY: the counter is open as long as this value.
        unsafe { fi_cntr_readerr(self.writes) }
    }

    /// Polls this side, and the other one if it is given, until this side has an entry.
    pub fn until_told(&self, other: Option<&Side>) -> Told {
        for _ in 0..1000 {
            if let Some(other) = other {
                assert_eq!(other.poll(), Told::Nothing, "the other side is told something");
            }
            match self.poll() {
                Told::Nothing => {}
                told => return told,
            }
        }
        panic!("waited in vain for an entry");
    }
}

/// The descriptor of a region.
pub fn descriptor(region: *mut fid_mr) -> *mut c_void {
    // SAFETY: tests pass open regions, and objects of the library are never freed.
    unsafe { fi_mr_desc(region) }
}

/// A context that is only a number, for providers that require no space.
pub fn number(context: usize) -> *mut c_void {
    without_provenance_mut(context)
}

impl Drop for Side {
    fn drop(&mut self) {
        // SAFETY: this value has opened all of these objects, and no other code uses them any more.
        unsafe {
            let mut codes = vec![close(self.ep)];
            codes.extend(self.regions.take().into_iter().map(|region| close(region)));
            codes.extend([close(self.reads), close(self.writes), close(self.cq), close(self.av)]);
            if self.owns_domain {
                codes.extend([close(self.domain), close(self.fabric)]);
            }
            if !std::thread::panicking() {
                assert!(codes.iter().all(|code| *code == 0), "closing answers {codes:?}");
            }
        }
    }
}
