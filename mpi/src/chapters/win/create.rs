//! How windows come into being, and how they go.
//!
//! All processes exchange where their parts and control blocks lie, and whether they have found memory for
//! them; so all succeed or all fail.

use super::control::{BLOCK_BYTES, Control, DYNAMIC_BLOCK_BYTES, Known, Peer};
use super::epoch::{Access, Epoch};
use super::exclude::Accumulators;
use super::inquiry::GAPS_KEY;
use super::part::{Home, Part};
use super::service::Service;
use super::transfer::Outstanding;
use super::{Predefined, WINDOWS, Window, find, hot};
use crate::abi::*;
use crate::chapters::attribute::Object;
use crate::chapters::comm::{Comm, barrier, gather_words};
use crate::chapters::errhandler::{Handler, HandlerCell};
use crate::chapters::error::{Error, On, Result, ensure};
use crate::chapters::info::{self, Hints};
use crate::chapters::library::{Mpi, output};
use pelago_core::Pe;
use pelago_core::base::awaited::Awaited;
use pelago_core::msg::hooks::ProgressHook;
use pelago_core::msg::process;
use pelago_fabric::sync::{AtomicBool, AtomicUsize, Ordering};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

/// Private memory that belongs to a window is aligned to this, in bytes.
pub(super) const ALIGN_BYTES: usize = 4096;
/// The contents of [`PROBE`].
const PROBE_VALUE: u64 = 0x7065_6c61_676f_0001;
/// A word that the other processes of the node read, to see whether the system permits it.
static PROBE: u64 = PROBE_VALUE;

/// Private memory that a window has allocated.
pub struct Private(*mut u8, Layout);

impl Private {
    fn new(bytes: usize) -> Option<Private> {
        let layout = Layout::from_size_align(bytes.max(1), ALIGN_BYTES).ok()?;
        // SAFETY: the layout has a size.
        let start = unsafe { alloc_zeroed(layout) };
        (!start.is_null()).then_some(Private(start, layout))
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(self.0, self.1) };
    }
}

/// The words that a process tells the others about its part.
const WORDS: usize = 8;

#[derive(Clone, Copy)]
struct Told {
    home: Home,
    bytes: usize,
    disp_unit: usize,
    control: usize,
    context: u64,
    probe: usize,
    /// Whether the process could not allocate what it needs.
    has_failed: bool,
}

impl Told {
    fn words(&self) -> [u64; WORDS] {
        let (kind, at) = match self.home {
            Home::Region { pe, offset } => (1 << 32 | pe as u64, offset as u64),
            Home::Private(address) => (2 << 32, address),
            Home::Dynamic => (3 << 32, 0),
        };
        let failed = u64::from(self.has_failed) << 63;
        let (bytes, unit) = (self.bytes as u64, self.disp_unit as u64);
        [kind, at, bytes, unit, self.control as u64, self.context, self.probe as u64, failed]
    }

    fn of(words: &[u64; WORDS]) -> Told {
        let [kind, at, bytes, unit, control, context, probe, failed] = *words;
        let home = match kind >> 32 {
            1 => Home::Region { pe: kind as u32 as Pe, offset: at as usize },
            2 => Home::Private(at),
            _ => Home::Dynamic,
        };
        Told {
            home,
            bytes: bytes as usize,
            disp_unit: unit as usize,
            control: control as usize,
            context,
            probe: probe as usize,
            has_failed: failed != 0,
        }
    }
}

/// The constituents of a window at this process.
pub(super) struct Made {
    pub flavor: c_int,
    pub base: *mut u8,
    pub bytes: usize,
    pub disp_unit: usize,
    /// Where the part lies; found out from the base if it is `None`.
    pub home: Option<Home>,
    /// The block of this PE's pool that belongs to the window.
    pub memory: Option<(usize, usize)>,
    pub private: Option<Private>,
    pub has_failed: bool,
    /// Whether parts of shared memory need not follow each other.
    pub has_gaps: bool,
    /// The hints that the program gives.
    pub info: MPI_Info,
}

/// Where memory lies: in a symmetric region that is mapped here, or not.
fn home_of(mpi: &Mpi, base: *mut u8) -> Home {
    let memory = &mpi.core.memory;
    for pe in memory.near_pes() {
        let offset = (base as usize).wrapping_sub(memory.heap(pe) as usize);
        if offset < memory.region_bytes() {
            return Home::Region { pe, offset };
        }
    }
    Home::Private(base as u64)
}

/// Checks the arguments that all calls have.
pub(super) fn check(size: isize, disp_unit: i64) -> Result<(usize, usize)> {
    ensure!(size >= 0, MPI_ERR_SIZE, "size is {size}, which is negative");
    ensure!(disp_unit > 0, MPI_ERR_DISP, "disp_unit is {disp_unit}. Give a positive number of bytes");
    Ok((size as usize, disp_unit as usize))
}

/// The communicator of a window, which has one group.
pub(super) fn communicator(mpi: &Mpi, comm: MPI_Comm) -> Result<&Comm> {
    let comm = mpi.comm(comm)?;
    ensure!(
        comm.remote.is_none(),
        MPI_ERR_COMM,
        "the communicator is an inter-communicator. Windows are for intra-communicators"
    );
    Ok(comm)
}

/// Makes a window, with all processes of a communicator.
pub(super) fn make(mpi: &Mpi, comm: &Comm, made: Made) -> Result<MPI_Win> {
    process::permit_access();
    let is_dynamic = made.flavor == MPI_WIN_FLAVOR_DYNAMIC;
    let control_bytes = if is_dynamic { DYNAMIC_BLOCK_BYTES } else { BLOCK_BYTES };
    let (control, context) = (mpi.core.pool_alloc(control_bytes), mpi.new_context());
    let told = Told {
        home: made.home.unwrap_or_else(|| home_of(mpi, made.base)),
        bytes: made.bytes,
        disp_unit: made.disp_unit,
        control: control.unwrap_or(0),
        context: *context.as_ref().unwrap_or(&0),
        probe: (&raw const PROBE) as usize,
        has_failed: made.has_failed || control.is_none() || context.is_err(),
    };
    let all = gather_words(mpi, comm, told.words())?;
    let all: Vec<Told> = all.iter().map(Told::of).collect();
    if let Some(rank) = all.iter().position(|told| told.has_failed) {
        if let Some(offset) = control {
            mpi.core.pool_free(offset, control_bytes);
        }
        if let Some((offset, bytes)) = made.memory {
            mpi.core.pool_free(offset, bytes);
        }
        return Err(no_room(rank));
    }
    let comm = Comm::new(all[0].context, comm.group.clone(), None, |pe| mpi.core.node(pe));
    let me = comm.my_rank();
    let parts: Box<[Part]> =
        comm.group.pes().iter().zip(&all).map(|(&pe, told)| part(mpi, (pe, told), made.base)).collect();
    let control = Control { offset: told.control, bytes: control_bytes };
    let info = made.info;
    let window = Arc::new(window(mpi, comm, parts, (made, me), control)?);
    window.accept_hints(info)?;
    if window.predefined.flavor == MPI_WIN_FLAVOR_SHARED {
        window.hints.put(GAPS_KEY, if window.has_gaps { "true" } else { "false" });
    }
    let handle = WINDOWS.insert(Arc::clone(&window)).map(MPI_Win);
    let handle = handle.ok_or_else(|| Error::new(MPI_ERR_NO_MEM, "there are too many windows. Free some"))?;
    window.handle.store(handle.0, Ordering::Relaxed);
    window.record.open(handle, &window.parts, !window.is_asked);
    Ok(handle)
}

#[cold]
fn no_room(rank: usize) -> Error {
    Error::new(
        MPI_ERR_NO_MEM,
        format!("rank {rank} has no room for its part. Set PELAGO_POOL_SIZE to a larger size"),
    )
}

/// The part of a process, as this one reaches it.
fn part(mpi: &Mpi, (pe, told): (Pe, &Told), own: *mut u8) -> Part {
    let core = &mpi.core;
    let is_own = pe == core.my_pe();
    let base = match told.home {
        _ if is_own => own,
        Home::Region { pe, offset } if core.memory.is_mapped(pe) => core.memory.heap(pe).wrapping_add(offset),
        _ => null_mut(),
    };
    let may_reach = !is_own && base.is_null() && core.memory.is_mapped(pe);
    let pid = core.pid_of(pe).filter(|_| may_reach).filter(|&pid| is_readable(pid, told.probe));
    Part {
        base,
        bytes: told.bytes,
        direct_bytes: if base.is_null() { 0 } else { told.bytes },
        disp_unit: told.disp_unit,
        is_open: AtomicBool::new(false),
        has_atomics: matches!(told.home, Home::Region { .. }),
        pe,
        home: told.home,
        pid,
        peer: Peer::new(mpi, pe, told.control),
    }
}

/// Whether the system lets this process access another one's memory.
fn is_readable(pid: u32, probe: usize) -> bool {
    let mut word = [0u64];
    let place = word.as_mut_ptr().cast();
    // SAFETY: the place has as many bytes.
    (unsafe { process::read(pid, probe as u64, place, size_of_val(&word)) }) && word[0] == PROBE_VALUE
}

fn window(
    mpi: &Mpi,
    comm: Comm,
    parts: Box<[Part]>,
    (made, me): (Made, usize),
    control: Control,
) -> Result<Window> {
    let own = &parts[me];
    let accumulators = Accumulators::new(&parts, me);
    let is_dynamic = made.flavor == MPI_WIN_FLAVOR_DYNAMIC;
    // Requests go to parts that are reached by neither loads and stores nor system calls; in epochs of fences
    // and posts also to those that system calls reach.
    let far = |part: &&Part| part.base.is_null() && part.pe != own.pe;
    let asks = parts.iter().filter(far).any(|part| part.pid.is_none());
    let may_ask = parts.iter().filter(far).any(|part| is_dynamic || part.bytes > 0);
    let told = gather_words(mpi, &comm, [u64::from(asks), u64::from(may_ask)])?;
    let is_asked = told.iter().any(|[asks, _]| *asks != 0);
    let service = told.iter().any(|words| *words != [0, 0]).then(|| {
        let kind = (is_dynamic, own.has_atomics);
        let peer = (own.peer, accumulators.clone());
        Arc::new(Service::new(comm.context, (made.base, own.bytes), kind, peer))
    });
    let window = Window {
        record: hot::take(),
        has_gaps: made.has_gaps,
        outstanding: Outstanding::new(parts.len()),
        attached: Mutex::default(),
        known: (0..if is_dynamic { parts.len() } else { 0 }).map(|_| Known::default()).collect(),
        parts,
        control,
        accumulators,
        epoch: Mutex::new(Epoch::default()),
        comm,
        predefined: Predefined {
            base: made.base.cast(),
            size: made.bytes as MPI_Aint,
            disp_unit: c_int::try_from(made.disp_unit).unwrap_or(MPI_UNDEFINED),
            flavor: made.flavor,
            model: MPI_WIN_UNIFIED,
        },
        memory: made.memory,
        _private: made.private,
        service,
        is_asked,
        serves: AtomicBool::new(false),
        handle: AtomicUsize::new(0),
        errhandler: HandlerCell::new(Handler::Fatal),
        attributes: Arc::default(),
        hints: Hints::default(),
        name: Mutex::default(),
    };
    if is_asked {
        window.begin_service(mpi);
    }
    Ok(window)
}

impl Window {
    /// Executes requests of others from now on, in every wait.
    pub(super) fn begin_service(&self, mpi: &Mpi) {
        if let Some(service) = &self.service
            && !self.serves.swap(true, Ordering::Relaxed)
        {
            mpi.core.hooks.add(Arc::clone(service) as Arc<dyn ProgressHook>);
            // Waits make progress on messages from the first look at them on.
            service.advance(&mpi.core);
        }
    }
}

/// `MPI_Win_create`.
pub unsafe fn win_create(
    mpi: &Mpi,
    base: *mut c_void,
    size: MPI_Aint,
    disp_unit: i64,
    info: MPI_Info,
    comm: MPI_Comm,
    win: *mut MPI_Win,
) -> Result {
    info::given(info)?;
    let place = output("win", win)?;
    let comm = communicator(mpi, comm)?;
    let (bytes, disp_unit) = check(size, disp_unit)?;
    ensure!(bytes == 0 || !base.is_null(), MPI_ERR_ARG, "base is null, but size is {bytes}");
    let (flavor, base) = (MPI_WIN_FLAVOR_CREATE, base.cast());
    let made = Made {
        flavor,
        base,
        bytes,
        disp_unit,
        home: None,
        memory: None,
        private: None,
        has_failed: false,
        has_gaps: false,
        info,
    };
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(make(mpi, comm, made)?) };
    Ok(())
}

/// `MPI_Win_allocate`: from the pool, or private memory if the pool has no room.
pub unsafe fn win_allocate(
    mpi: &Mpi,
    size: MPI_Aint,
    disp_unit: i64,
    info: MPI_Info,
    comm: MPI_Comm,
    baseptr: *mut c_void,
    win: *mut MPI_Win,
) -> Result {
    info::given(info)?;
    let (place, base_place) = (output("win", win)?, output("baseptr", baseptr)?);
    let comm = communicator(mpi, comm)?;
    let (bytes, disp_unit) = check(size, disp_unit)?;
    let flavor = MPI_WIN_FLAVOR_ALLOCATE;
    let memory = mpi.core.pool_alloc_for_program(bytes).map(|offset| (offset, bytes));
    let private = if memory.is_none() { Private::new(bytes) } else { None };
    let has_failed = memory.is_none() && private.is_none();
    let own = mpi.core.my_pe();
    let base = match (memory, &private) {
        (Some((offset, _)), _) => mpi.core.memory.heap(own).wrapping_add(offset),
        (None, Some(private)) => private.0,
        (None, None) => null_mut(),
    };
    let made = Made {
        flavor,
        base,
        bytes,
        disp_unit,
        home: None,
        memory,
        private,
        has_failed,
        has_gaps: false,
        info,
    };
    // SAFETY: the caller's pointers are valid for one value each.
    unsafe {
        place.write(make(mpi, comm, made)?);
        base_place.cast::<*mut u8>().write(base);
    }
    Ok(())
}

/// `MPI_Win_create_dynamic`.
pub unsafe fn win_create_dynamic(mpi: &Mpi, info: MPI_Info, comm: MPI_Comm, win: *mut MPI_Win) -> Result {
    info::given(info)?;
    let place = output("win", win)?;
    let comm = communicator(mpi, comm)?;
    let made = Made {
        flavor: MPI_WIN_FLAVOR_DYNAMIC,
        base: null_mut(),
        bytes: 0,
        disp_unit: 1,
        home: Some(Home::Dynamic),
        memory: None,
        private: None,
        has_failed: false,
        has_gaps: false,
        info,
    };
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(make(mpi, comm, made)?) };
    Ok(())
}

fn dynamic(win: MPI_Win) -> Result<&'static Window> {
    let window = find(win)?;
    ensure!(
        window.is_dynamic(),
        MPI_ERR_RMA_FLAVOR,
        "the window is none of MPI_Win_create_dynamic, and has memory of its own"
    );
    Ok(window)
}

/// `MPI_Win_attach`.
pub unsafe fn win_attach(mpi: &Mpi, win: MPI_Win, base: *mut c_void, size: MPI_Aint) -> Result {
    let window = dynamic(win)?;
    ensure!(size >= 0, MPI_ERR_SIZE, "size is {size}, which is negative");
    let (start, bytes) = (base as usize, size as usize);
    ensure!(bytes == 0 || start != 0, MPI_ERR_ARG, "base is null, but size is {bytes}");
    let own = &window.parts[window.comm.my_rank()].peer;
    let mut attached = window.attached.lock().unwrap_or_else(PoisonError::into_inner);
    ensure!(
        !attached.overlaps(start, bytes),
        MPI_ERR_RMA_ATTACH,
        "the {bytes} bytes at {start:#x} overlap memory that is attached. Detach that first"
    );
    ensure!(
        attached.attach(mpi, own, (start, bytes)),
        MPI_ERR_RMA_ATTACH,
        "there is no room to note {} attached ranges. Attach fewer and larger ones, or set PELAGO_POOL_SIZE \
         to a larger size",
        attached.len() + 1
    );
    Ok(())
}

/// `MPI_Win_detach`.
pub unsafe fn win_detach(_mpi: &Mpi, win: MPI_Win, base: *const c_void) -> Result {
    let window = dynamic(win)?;
    let own = &window.parts[window.comm.my_rank()].peer;
    let mut attached = window.attached.lock().unwrap_or_else(PoisonError::into_inner);
    ensure!(
        attached.detach(own, base as usize),
        MPI_ERR_RMA_ATTACH,
        "no attached memory begins at {:#x}. Give the base of MPI_Win_attach",
        base as usize
    );
    Ok(())
}

/// `MPI_Win_free`: waits for all processes of the window.
pub unsafe fn win_free(mpi: &Mpi, win: *mut MPI_Win) -> Result {
    let place = output("win", win)?;
    // SAFETY: the caller's pointer is valid for one value.
    let handle = unsafe { place.read() };
    let window = find(handle)?;
    {
        let epoch = window.epoch();
        let is_idle = matches!(epoch.access, Access::None | Access::Fence) && epoch.exposure.is_none();
        if !is_idle {
            let name =
                if epoch.exposure.is_some() { "an epoch of MPI_Win_post" } else { epoch.access.name() };
            let text = format!("MPI_Win_free within {name}. End it first");
            return Err(Error::new(MPI_ERR_RMA_SYNC, text).on(On::Win(handle)));
        }
    }
    window.attributes.delete_all(Object::Win(handle)).map_err(|error| error.on(On::Win(handle)))?;
    window.complete_all(mpi)?;
    barrier(mpi, &window.comm)?;
    window.outstanding.finish(mpi);
    if let Some(service) = &window.service {
        // The wait runs the service.
        mpi.core.wait(Awaited::Events { count: 1 }, || service.has_sent());
        mpi.core.hooks.remove(&(Arc::clone(service) as Arc<dyn ProgressHook>));
    }
    // Messages of others to this one are over; memory that peers read may go.
    barrier(mpi, &window.comm)?;
    window.record.close();
    if let Some(window) = WINDOWS.remove(handle.0) {
        mpi.core.pool_free(window.control.offset, window.control.bytes);
        window.attached.lock().unwrap_or_else(PoisonError::into_inner).free_blocks(mpi);
        if let Some((offset, bytes)) = window.memory {
            mpi.core.pool_free(offset, bytes);
        }
    }
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(MPI_WIN_NULL) };
    Ok(())
}
