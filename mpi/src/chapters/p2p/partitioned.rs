//! Partitioned communication.
//!
//! When a send is initialised, it tells the receive that it matches the number and size of its partitions,
//! and a context of its own. From then on each partition that is ready is a message in that context, whose
//! tag is the number of the partition, so that partitions travel while others are still computed.
//!
//! Invariant: the partitions of one start are sent before those of the next one, so that messages of one tag
//! match in order.

use super::buffer::{bytes_of, outgoing};
use crate::abi::*;
use crate::chapters::comm::Comm;
use crate::chapters::data::Data;
use crate::chapters::datatype::{self, Datatype};
use crate::chapters::error::{Error, On, Result, ensure};
use crate::chapters::info;
use crate::chapters::library::{self, Mpi, PARTITIONED, output};
use crate::chapters::request::{self, Active, Message, NO_PROCESS, Operation, Outcome};
use pelago_core::Pe;
use pelago_core::msg::TwoSided;
use pelago_core::msg::envelope::{Context, Envelope};
use pelago_core::msg::hooks::ProgressHook;
use pelago_core::msg::operation::{Address, Mode, Started};
use pelago_core::msg::request::{RequestId, Status};
use pelago_fabric::sync::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// The words that a send tells its receive: its context, its number of partitions, bytes of each.
type Header = [u64; 3];

/// One side of a partitioned operation.
pub struct Channel {
    state: Mutex<State>,
    /// Whether it was started and is not complete. It changes under the lock.
    is_active: AtomicBool,
    /// The object whose handler gets errors.
    on: On,
}

enum State {
    Send(SendState),
    Receive(ReceiveState),
    /// With `MPI_PROC_NULL`: the partitions of a send, and how many of them are not ready. It may be found
    /// complete before they are.
    Nothing {
        partitions: usize,
        missing: usize,
    },
}

struct SendState {
    to: Address,
    partitions: usize,
    /// Bytes of a partition, and elements.
    bytes: usize,
    count: i64,
    buffer: usize,
    datatype: Arc<Datatype>,
    ready: Vec<bool>,
    sends: Vec<(RequestId, Option<Data>)>,
}

struct ReceiveState {
    comm: Arc<Comm>,
    source: Pe,
    tag: u32,
    partitions: usize,
    count: i64,
    buffer: usize,
    datatype: Arc<Datatype>,
    header: Box<Header>,
    stage: Stage,
    /// Received data that are to be unpacked, and which partitions of them were.
    data: Option<Data>,
    unpacked: Vec<bool>,
    receives: Vec<Option<RequestId>>,
    error: c_int,
}

/// Started receives that do not know their sends. They have no messages in the core that could make progress,
/// so that every wait looks after them.
static WAITING: WaitingChannels = WaitingChannels(Mutex::new(Vec::new()));

struct WaitingChannels(Mutex<Vec<Arc<Channel>>>);

impl WaitingChannels {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Channel>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks after a channel from now on.
    fn add(&self, mpi: &Mpi, channel: &Arc<Channel>) {
        let mut channels = self.lock();
        if channels.is_empty() {
            mpi.core.hooks.add(Arc::clone(&START_RECEIVES));
        }
        if !channels.iter().any(|other| Arc::ptr_eq(other, channel)) {
            channels.push(Arc::clone(channel));
        }
    }

    /// Looks after a channel no more. Without channels, waits have nothing to do for them.
    fn remove(&self, mpi: &Mpi, channel: &Arc<Channel>) {
        let mut channels = self.lock();
        channels.retain(|other| !Arc::ptr_eq(other, channel));
        if channels.is_empty() {
            mpi.core.hooks.remove(&START_RECEIVES);
        }
    }
}

static START_RECEIVES: LazyLock<Arc<dyn ProgressHook>> = LazyLock::new(|| Arc::new(StartReceives));

/// Starts the receives of the partitions of these channels.
struct StartReceives;

impl ProgressHook for StartReceives {
    fn advance(&self, _: &TwoSided) {
        let Some(mpi) = library::get() else { return };
        let channels = WAITING.lock().clone();
        for channel in channels {
            // Another thread, or this one in the call that makes progress, looks at it already.
            let Ok(mut state) = channel.state.try_lock() else { continue };
            let waits = match &mut *state {
                State::Receive(receive) => !receive.is_met(mpi),
                State::Send(_) | State::Nothing { .. } => false,
            };
            drop(state);
            if !waits {
                WAITING.remove(mpi, &channel);
            }
        }
    }
}

/// How far a receive is.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    /// It waits for what the send tells.
    Header(RequestId),
    /// It knows the send, and is not started.
    Known,
    Started,
}

impl Channel {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SendState {
    /// Whether a partition can be made ready.
    fn check(&self, partition: c_int) -> Result {
        ensure!(
            partition >= 0 && (partition as usize) < self.partitions,
            MPI_ERR_ARG,
            "there is no partition {partition} of {} partitions of {} bytes",
            self.partitions,
            self.bytes
        );
        ensure!(!self.ready[partition as usize], MPI_ERR_ARG, "partition {partition} is ready already");
        Ok(())
    }

    /// Sends a partition, unless the program names it twice in one call.
    fn make_ready(&mut self, mpi: &Mpi, partition: usize) -> Result {
        ensure!(!self.ready[partition], MPI_ERR_ARG, "partition {partition} is ready already");
        self.ready[partition] = true;
        let distance = self.datatype.extent() * self.count as isize * partition as isize;
        let start = std::ptr::with_exposed_provenance::<c_void>(self.buffer).wrapping_byte_offset(distance);
        let to = Address { tag: partition as u32, ..self.to };
        // SAFETY: the program keeps the buffer until the operation is complete, and a partition that is ready
        // as it is.
        unsafe {
            let data = outgoing(start, self.count, &self.datatype)?;
            if let Some(id) = mpi.core.start_send(to, data.data(), Mode::Standard)? {
                self.sends.push((id, data.kept()));
            }
        }
        Ok(())
    }

    fn poll(&mut self, mpi: &Mpi) -> Option<Outcome> {
        self.sends.retain(|(id, _)| mpi.core.test_message(*id).is_none());
        (self.sends.is_empty() && self.ready.iter().all(|&is| is)).then_some(Outcome::EMPTY)
    }
}

impl ReceiveState {
    fn total(&self) -> usize {
        self.partitions * self.count as usize * self.datatype.size()
    }

    /// Starts the receives of all partitions, once the send is known.
    fn start(&mut self, mpi: &Mpi) {
        let [context, partitions, bytes] = *self.header;
        let (partitions, bytes) = (partitions as usize, bytes as usize);
        let elements = self.partitions * self.count as usize;
        self.error = if partitions * bytes > self.total() { MPI_ERR_TRUNCATE } else { MPI_SUCCESS };
        let buffer = std::ptr::with_exposed_provenance_mut::<u8>(self.buffer);
        let start = match self.datatype.run(elements) {
            Some(offset) => buffer.wrapping_offset(offset),
            None => {
                self.unpacked = vec![false; self.partitions];
                self.data.insert(Data::new(self.total())).as_mut_ptr()
            }
        };
        self.receives = (0..partitions)
            .map(|partition| {
                let pattern =
                    Envelope { context: Context(context), source: self.source as u32, tag: partition as u32 };
                let offset = partition * bytes;
                let room = bytes.min(self.total().saturating_sub(offset));
                // SAFETY: the program keeps the buffer until the operation is complete; this part is in it.
                match unsafe { mpi.core.start_receive(pattern, (start.wrapping_add(offset), room)) } {
                    Started::Done(_) => None,
                    Started::Pending(id) => Some(id),
                }
            })
            .collect();
    }

    /// Whether a receive that was started knows its send, so that its partitions may arrive.
    fn is_met(&mut self, mpi: &Mpi) -> bool {
        if let Stage::Header(id) = self.stage {
            if mpi.core.look(id).is_none() {
                return false;
            }
            self.stage = Stage::Started;
            self.start(mpi);
        }
        true
    }

    /// Goes on; whether these bytes have arrived. For bytes behind the message, and where no partition has
    /// bytes, all must have arrived.
    fn have_arrived(&mut self, mpi: &Mpi, range: std::ops::Range<usize>) -> bool {
        if !self.is_met(mpi) {
            mpi.core.progress();
            if !self.is_met(mpi) {
                return false;
            }
        }
        let n = self.receives.len();
        let (first, last) = match self.header[2] as usize {
            bytes if bytes > 0 && range.start < n * bytes => {
                (range.start / bytes, range.end.div_ceil(bytes).min(n))
            }
            _ => (0, n),
        };
        let mut all = true;
        for receive in self.receives.iter_mut().take(last).skip(first) {
            if let Some(id) = *receive {
                match mpi.core.test_message(id) {
                    Some(_) => *receive = None,
                    None => all = false,
                }
            }
        }
        all
    }

    /// Whether a partition has arrived; then its data are in the buffer.
    fn has_arrived(&mut self, mpi: &Mpi, partition: usize) -> bool {
        let bytes = self.total() / self.partitions;
        let start = partition * bytes;
        let has_arrived = self.have_arrived(mpi, start..start + bytes);
        if has_arrived {
            self.unpack(partition);
        }
        has_arrived
    }

    /// Unpacks a partition that has arrived, once, if its layout has gaps.
    fn unpack(&mut self, partition: usize) {
        let Some(data) = &self.data else { return };
        if std::mem::replace(&mut self.unpacked[partition], true) {
            return;
        }
        let bytes = self.total() / self.partitions;
        let message_bytes = ((self.header[1] * self.header[2]) as usize).min(self.total());
        let received_bytes = message_bytes.saturating_sub(partition * bytes).min(bytes);
        let part = &data[partition * bytes..][..received_bytes];
        let distance = self.datatype.extent() * self.count as isize * partition as isize;
        let buffer = std::ptr::with_exposed_provenance_mut::<u8>(self.buffer).wrapping_offset(distance);
        // SAFETY: the program keeps the buffer until the operation is complete.
        unsafe { self.datatype.unpack(part.as_ptr(), part.len(), buffer) };
    }

    fn poll(&mut self, mpi: &Mpi) -> Option<Outcome> {
        if !self.have_arrived(mpi, 0..self.total()) {
            return None;
        }
        (0..self.partitions).for_each(|partition| self.unpack(partition));
        self.data = None;
        self.stage = Stage::Known;
        let bytes = (self.header[1] * self.header[2]) as usize;
        let status = Status { source: self.source, tag: self.tag, bytes, is_cancelled: false };
        let status = request::received(&self.comm, &status, self.total());
        Some(Outcome { status, error: self.error })
    }
}

impl Drop for ReceiveState {
    /// A request that was freed before its send is known: what the send tells still arrives.
    fn drop(&mut self) {
        if let Stage::Header(_) = self.stage {
            std::mem::forget(std::mem::take(&mut self.header));
        }
        // Partitions that are under way still arrive there.
        if self.receives.iter().any(Option::is_some) {
            std::mem::forget(self.data.take());
        }
    }
}

/// The operation of a request that was started.
struct Running(Arc<Channel>);

impl Operation for Running {
    fn poll(&mut self, mpi: &Mpi) -> Option<Outcome> {
        let mut state = self.0.lock();
        let outcome = match &mut *state {
            State::Send(send) => send.poll(mpi),
            State::Receive(receive) => receive.poll(mpi),
            State::Nothing { .. } => Some(Outcome { status: NO_PROCESS, error: MPI_SUCCESS }),
        };
        self.0.is_active.store(outcome.is_none(), Ordering::Relaxed);
        outcome
    }

    /// The partitions that were sent go on.
    fn detach(self: Box<Self>, mpi: &Mpi, on: On) {
        if let State::Send(send) = &mut *self.0.lock() {
            for (id, kept) in send.sends.drain(..) {
                let sent = Message { id, receive: None, kept };
                request::detach(mpi, Active::Message(sent), on);
            }
        }
    }
}

fn checked(partitions: c_int, count: i64, tag: c_int) -> Result<usize> {
    ensure!(partitions >= 0, MPI_ERR_ARG, "partitions is {partitions}, which is negative");
    ensure!(count >= 0, MPI_ERR_COUNT, "count is {count}, which is negative");
    ensure!(tag >= 0, MPI_ERR_TAG, "tag {tag}; tags are 0 to {}", c_int::MAX);
    Ok(partitions as usize)
}

/// A persistent request of a channel.
fn request_of(state: State, on: On) -> Result<MPI_Request> {
    let channel = Arc::new(Channel { state: Mutex::new(state), is_active: AtomicBool::new(false), on });
    request::partitioned(on, Arc::clone(&channel), move |mpi: &Mpi| {
        let mut state = channel.lock();
        channel.is_active.store(true, Ordering::Relaxed);
        match &mut *state {
            State::Send(send) => send.ready.fill(false),
            State::Receive(receive) if receive.stage == Stage::Known => {
                receive.stage = Stage::Started;
                receive.start(mpi);
            }
            State::Receive(receive) => {
                if !receive.is_met(mpi) {
                    WAITING.add(mpi, &channel);
                }
            }
            State::Nothing { partitions, missing } => *missing = *partitions,
        }
        drop(state);
        Ok(Active::Other(Box::new(Running(Arc::clone(&channel)))))
    })
}

/// `MPI_Psend_init`.
pub unsafe fn psend_init(
    mpi: &Mpi,
    buffer: *const c_void,
    partitions: c_int,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    info: MPI_Info,
    request: *mut MPI_Request,
) -> Result {
    info::given(info)?;
    let place = output("request", request)?;
    let partitions = checked(partitions, count, tag)?;
    let own = mpi.comm(comm)?;
    let layout = datatype::share(datatype)?;
    let bytes = bytes_of(count, mpi.datatype(datatype)?)?;
    let state = if dest == MPI_PROC_NULL {
        State::Nothing { partitions, missing: 0 }
    } else {
        let (pe, context) = (own.peer(dest)?, mpi.new_context()?);
        let header: Header = [context, partitions as u64, bytes as u64];
        let to = Address { context: Context(own.context | PARTITIONED), pe, tag: tag as u32 };
        // SAFETY: the words are copied before the call returns.
        unsafe { mpi.core.start_send(to, (header.as_ptr().cast(), size_of_val(&header)), Mode::Buffered)? };
        State::Send(SendState {
            to: Address { context: Context(context), pe, tag: 0 },
            partitions,
            bytes,
            count,
            buffer: buffer.expose_provenance(),
            datatype: layout,
            ready: vec![true; partitions],
            sends: Vec::new(),
        })
    };
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(request_of(state, On::Comm(comm))?) };
    Ok(())
}

/// `MPI_Precv_init`.
pub unsafe fn precv_init(
    mpi: &Mpi,
    buffer: *mut c_void,
    partitions: c_int,
    count: MPI_Count,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    info: MPI_Info,
    request: *mut MPI_Request,
) -> Result {
    info::given(info)?;
    let place = output("request", request)?;
    let partitions = checked(partitions, count, tag)?;
    let own = mpi.share_comm(comm)?;
    bytes_of(count, mpi.datatype(datatype)?)?;
    let state = if source == MPI_PROC_NULL {
        State::Nothing { partitions: 0, missing: 0 }
    } else {
        let pe = own.peer(source)?;
        let mut header: Box<Header> = Box::default();
        let pattern =
            Envelope { context: Context(own.context | PARTITIONED), source: pe as u32, tag: tag as u32 };
        let into = (header.as_mut_ptr().cast(), size_of::<Header>());
        // SAFETY: the words live in the state of the channel until the receive is complete, or as long as the
        // process.
        let stage = match unsafe { mpi.core.start_receive(pattern, into) } {
            Started::Done(_) => Stage::Known,
            Started::Pending(id) => Stage::Header(id),
        };
        State::Receive(ReceiveState {
            comm: own,
            source: pe,
            tag: tag as u32,
            partitions,
            count,
            buffer: buffer.expose_provenance(),
            datatype: datatype::share(datatype)?,
            header,
            stage,
            data: None,
            unpacked: Vec::new(),
            receives: Vec::new(),
            error: MPI_SUCCESS,
        })
    };
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(request_of(state, On::Comm(comm))?) };
    Ok(())
}

/// Calls a function with the state of a partitioned request, and whether the request is active. Several
/// threads may do so at once, also while one waits for the request.
fn with_channel<R>(request: MPI_Request, call: impl FnOnce(bool, &mut State) -> Result<R>) -> Result<R> {
    let channel = request::channel(request)?;
    let mut state = channel.lock();
    let is_active = channel.is_active.load(Ordering::Relaxed);
    call(is_active, &mut state).map_err(|error| error.on(channel.on))
}

/// Makes partitions of a send ready; none of them if one cannot be.
fn make_ready(
    mpi: &Mpi,
    request: MPI_Request,
    mut partitions: impl Iterator<Item = c_int> + Clone,
) -> Result {
    let outcome = with_channel(request, |is_active, state| {
        let is_awaited = matches!(state, State::Nothing { missing: 1.., .. });
        ensure!(is_active || is_awaited, MPI_ERR_REQUEST, "the request is inactive. Start it first");
        match state {
            State::Nothing { missing, .. } => {
                *missing = missing.saturating_sub(partitions.clone().count());
                Ok(())
            }
            State::Receive(_) => Err(Error::new(MPI_ERR_REQUEST, "the request is one of a receive")),
            State::Send(send) => {
                partitions.clone().try_for_each(|partition| send.check(partition))?;
                partitions.try_for_each(|partition| send.make_ready(mpi, partition as usize))
            }
        }
    });
    // Another thread may wait for the operation, and sleep.
    mpi.core.ring_own_sleepers();
    outcome
}

/// `MPI_Pready`.
pub unsafe fn pready(mpi: &Mpi, partition: c_int, request: MPI_Request) -> Result {
    make_ready(mpi, request, std::iter::once(partition))
}

/// `MPI_Pready_range`.
pub unsafe fn pready_range(
    mpi: &Mpi,
    partition_low: c_int,
    partition_high: c_int,
    request: MPI_Request,
) -> Result {
    make_ready(mpi, request, partition_low..=partition_high)
}

/// `MPI_Pready_list`.
pub unsafe fn pready_list(
    mpi: &Mpi,
    length: c_int,
    array_of_partitions: *const c_int,
    request: MPI_Request,
) -> Result {
    ensure!(length >= 0, MPI_ERR_ARG, "length is {length}, which is negative");
    // SAFETY: the caller's array has the elements.
    let partitions = (0..length as usize).map(|i| unsafe { array_of_partitions.add(i).read() });
    make_ready(mpi, request, partitions)
}

/// `MPI_Parrived`: also of a request that is inactive, whose partitions have all arrived.
pub unsafe fn parrived(mpi: &Mpi, request: MPI_Request, partition: c_int, flag: *mut c_int) -> Result {
    let flag = output("flag", flag)?;
    if request == MPI_REQUEST_NULL {
        // SAFETY: the caller's pointer is valid for one value.
        unsafe { flag.write(1) };
        return Ok(());
    }
    let has_arrived = with_channel(request, |is_active, state| match state {
        State::Send(_) if is_active => Err(Error::new(MPI_ERR_REQUEST, "the request is one of a send")),
        State::Receive(receive) if is_active => {
            let n = receive.partitions;
            ensure!(
                partition >= 0 && (partition as usize) < n,
                MPI_ERR_ARG,
                "there is no partition {partition} of {n}"
            );
            Ok(receive.has_arrived(mpi, partition as usize))
        }
        _ => Ok(true),
    })?;
    if has_arrived {
        // This call may have matched partitions that had come before, which woke nobody. Another thread may
        // wait for the operation, and sleep.
        mpi.core.ring_own_sleepers();
    }
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { flag.write(mpi.core.note_test(has_arrived).into()) };
    Ok(())
}
